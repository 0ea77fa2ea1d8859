/**
 * An inference server's core as a step function over virtual time: requests wait, take seats, are computed iteration by
 * iteration, and yield tokens. No clock and no I/O: whoever drives it says what time it is.
 */
import { BreakpointCache, type CachePoints } from './breakpointCache';
import { stepTime } from './formula';
import { blockSize, KvCache, type Holding } from './kvCache';
import { kvCapacity, type Hardware } from './model';
import { ArrivalOrder, isComplete, type BatchingPolicy, type BatchView, type QueueDiscipline, type WorkItem } from './policy/policy';

/** Milliseconds of the driver's clock. */
export type Ms = number;

/** One generation, fully known beforehand: the engine decides only when each token comes. */
export interface EngineRequest {
  readonly id: string;
  readonly prompt: readonly number[];
  /** The tokens it will generate, in order; at least one. */
  readonly output: readonly number[];
  /** Separates prefix caches: only requests of the same salt share blocks. */
  readonly salt: string;
  readonly tenant: string;
  /** Lower is served first where a policy looks at it. */
  readonly priority: number;
  /** Keys and values of this many prompt tokens come with the request (from a prefill pool). */
  readonly received?: number;
  /** Cache by breakpoints instead of blocks. */
  readonly points?: CachePoints;
}

/** What happened to a request, at virtual time `at`. `from` and `count` are positions in `request.output`. */
export type EngineEvent =
  | { readonly type: 'scheduled'; readonly id: string; readonly at: Ms; readonly cachedTokens: number; readonly replica: number }
  | { readonly type: 'tokens'; readonly id: string; readonly at: Ms; readonly from: number; readonly count: number; readonly last: boolean }
  | { readonly type: 'preempted'; readonly id: string; readonly at: Ms }
  | { readonly type: 'lost'; readonly id: string; readonly at: Ms; readonly reason: string };

/** Why a request is not taken. `retryAfter` in seconds, null when trying again would not help. */
export interface Refusal {
  readonly status: 400 | 429 | 503;
  readonly code: string;
  readonly message: string;
  readonly retryAfter: number | null;
}

/** A moment's state, summed over whatever is behind it. */
export interface Load {
  readonly waiting: number;
  readonly running: number;
  readonly seats: number;
  /** Share of KV blocks in use, 0 to 1. */
  readonly kvUsage: number;
  /** Running totals. */
  readonly prefixQueries: number;
  readonly prefixHits: number;
  readonly preemptions: number;
}

/** Anything that turns requests into tokens over virtual time: one engine, two pools, a fleet. Call `advance(now)` before anything else at `now`. */
export interface Backend {
  submit(request: EngineRequest, now: Ms): Refusal | null;
  cancel(id: string, now: Ms): void;
  /** When something will happen next; Infinity when idle. */
  nextAt(): Ms;
  /** Everything that is due at or before `now`, in order of time. */
  advance(now: Ms): EngineEvent[];
  load(): Load;
  /** Prompt tokens that would be found in the cache now. */
  cachedTokens(prompt: readonly number[], salt: string): number;
  resetCache(): void;
}

/** A request inside the engine. `computed` counts tokens whose keys and values exist, `generated` those sampled so far. */
export interface Sequence {
  readonly request: EngineRequest;
  readonly arrivedAt: Ms;
  readonly order: number;
  scheduledAt: Ms | null;
  cachedTokens: number;
  computed: number;
  generated: number;
  /** Generated tokens that were handed out already. */
  sent: number;
  holding: Holding | null;
  /** Its breakpoints have been kept. */
  kept?: boolean;
}

/** What an engine is made of. `kvBlocks` defaults to what fits beside the weights. */
export interface EngineOptions {
  readonly hardware: Hardware;
  readonly batching: BatchingPolicy;
  readonly maxRunning: number;
  readonly queue?: QueueDiscipline;
  readonly kvBlocks?: number;
  readonly prefixCaching?: boolean;
}

interface RunningIteration {
  readonly end: Ms;
  readonly work: readonly WorkItem[];
  readonly whole: boolean;
}

/** One replica: a queue, seats, a block pool and one iteration at a time. */
export class Engine implements Backend {
  readonly hardware: Hardware;
  readonly #batching: BatchingPolicy;
  readonly #maxRunning: number;
  readonly #queue: QueueDiscipline;
  readonly #cache: KvCache;
  readonly #points = new BreakpointCache();
  readonly #prefixCaching: boolean;
  readonly #known = new Map<string, Sequence>();
  readonly #running: Sequence[] = [];
  #iteration: RunningIteration | null = null;
  #wakeAt: Ms = Infinity;
  #order = 0;
  #preemptions = 0;

  constructor(options: EngineOptions) {
    this.hardware = options.hardware;
    this.#batching = options.batching;
    this.#maxRunning = options.maxRunning;
    this.#queue = options.queue ?? new ArrivalOrder();
    this.#prefixCaching = options.prefixCaching ?? true;
    this.#cache = new KvCache(options.kvBlocks ?? Math.floor(kvCapacity(options.hardware) / blockSize));
  }

  submit(request: EngineRequest, now: Ms): Refusal | null {
    const blocks = Math.ceil((request.prompt.length + request.output.length) / blockSize);
    if (blocks > this.#cache.capacity) {
      const message = `The request needs ${blocks} KV blocks of ${blockSize} tokens and the server has ${this.#cache.capacity}.`;
      return { status: 400, code: 'kv_cache_too_small', message, retryAfter: null };
    }
    const sequence: Sequence = { request, arrivedAt: now, order: this.#order++, scheduledAt: null, cachedTokens: 0, computed: 0, generated: 0, sent: 0, holding: null };
    this.#known.set(request.id, sequence);
    this.#queue.push(sequence);
    this.#wake(now);
    return null;
  }

  cancel(id: string, now: Ms): void {
    const sequence = this.#known.get(id);
    if (!sequence) return;
    this.#queue.remove(sequence);
    this.#leave(sequence);
    this.#wake(now);
  }

  nextAt(): Ms {
    return this.#iteration?.end ?? this.#wakeAt;
  }

  advance(now: Ms): EngineEvent[] {
    const events: EngineEvent[] = [];
    for (let at = this.nextAt(); at <= now; at = this.nextAt()) {
      if (this.#iteration) this.#finish(this.#iteration, events);
      else this.#begin(at, events);
    }
    return events;
  }

  load(): Load {
    const { queries, hits } = this.#cache.counters;
    return {
      waiting: this.#queue.size,
      running: this.#running.length,
      seats: this.#maxRunning,
      kvUsage: this.#cache.usage,
      prefixQueries: queries,
      prefixHits: hits,
      preemptions: this.#preemptions,
    };
  }

  cachedTokens(prompt: readonly number[], salt: string): number {
    return this.#prefixCaching ? this.#cache.cachedTokens(prompt, salt) : 0;
  }

  resetCache(): void {
    this.#cache.reset();
    this.#points.reset();
  }

  #wake(now: Ms): void {
    if (!this.#iteration) this.#wakeAt = Math.min(this.#wakeAt, now);
  }

  #begin(now: Ms, events: EngineEvent[]): void {
    this.#wakeAt = Infinity;
    const plan = this.#batching.plan(this.#view(now, events));
    if ('idleUntil' in plan) {
      this.#wakeAt = plan.idleUntil;
      return;
    }
    const work = this.#withMemory(plan.work, now, events);
    if (work.length === 0) {
      // Everything planned was preempted: what is left must be planned anew.
      if (plan.work.length > 0) this.#wakeAt = now;
      return;
    }
    const cost = plan.duration ?? stepTime(this.hardware, work.map(({ sequence, tokens, drafts = 0 }) => ({ tokens: tokens + drafts, context: sequence.computed })));
    this.#iteration = { end: now + cost + (plan.extra ?? 0), work, whole: plan.whole ?? false };
  }

  #view(now: Ms, events: EngineEvent[]): BatchView {
    return {
      now,
      waiting: this.#queue.size,
      oldestArrival: () => oldest(this.#queue.values()),
      running: this.#running,
      maxRunning: this.#maxRunning,
      admit: () => this.#admit(now, events),
    };
  }

  #admit(now: Ms, events: EngineEvent[]): Sequence | null {
    const sequence = this.#queue.peek();
    if (!sequence || this.#running.length >= this.#maxRunning) return null;
    const { request } = sequence;
    const tokens = sequence.generated === 0 ? request.prompt : [...request.prompt, ...request.output.slice(0, sequence.generated)];
    const inBlocks = this.#prefixCaching && request.points === undefined;
    const taken = this.#cache.allocate(tokens, inBlocks ? request.salt : `${request.salt}\u0000${request.id}`);
    if (!taken) return null;
    const cachedTokens = request.points && this.#prefixCaching ? this.#points.find(request.prompt, request.salt, request.points.reads, now) : taken.cachedTokens;
    this.#queue.remove(sequence);
    sequence.holding = taken.holding;
    sequence.computed = Math.min(Math.max(cachedTokens, request.received ?? 0), tokens.length - 1);
    if (sequence.scheduledAt === null) {
      sequence.scheduledAt = now;
      sequence.cachedTokens = cachedTokens;
      events.push({ type: 'scheduled', id: request.id, at: now, cachedTokens, replica: 0 });
    }
    this.#running.push(sequence);
    return sequence;
  }

  /** Keeps the work whose sequences get a block for their next token; preempts the youngest of the others for it (recomputed later, as vLLM does). */
  #withMemory(work: readonly WorkItem[], now: Ms, events: EngineEvent[]): WorkItem[] {
    for (const { sequence } of work) {
      while (sequence.holding && !this.#cache.extend(sequence.holding, sequence.request.prompt.length + sequence.generated)) {
        this.#preempt(this.#running.at(-1)!, now, events);
      }
    }
    return work.filter(({ sequence }) => sequence.holding !== null);
  }

  #preempt(sequence: Sequence, now: Ms, events: EngineEvent[]): void {
    this.#unseat(sequence);
    sequence.computed = 0;
    this.#preemptions += 1;
    this.#queue.push(sequence);
    events.push({ type: 'preempted', id: sequence.request.id, at: now });
  }

  #finish(iteration: RunningIteration, events: EngineEvent[]): void {
    this.#iteration = null;
    this.#wakeAt = iteration.end;
    for (const item of iteration.work) if (item.sequence.holding) this.#progress(item, iteration);
    const release = this.#batching.release === 'token' || this.#running.every(isComplete);
    if (release) for (const sequence of [...this.#running]) this.#send(sequence, iteration.end, events);
  }

  #progress({ sequence, tokens, emits = 1 }: WorkItem, { whole, end }: RunningIteration): void {
    const { request } = sequence;
    const promptPart = Math.max(0, Math.min(request.prompt.length - sequence.computed, tokens));
    sequence.computed += tokens;
    let made = 0;
    if (sequence.computed >= request.prompt.length + sequence.generated) {
      const left = request.output.length - sequence.generated;
      made = whole ? left : Math.min(emits, left);
      sequence.generated += made;
      sequence.computed += made - 1;
      if (!this.#cache.extend(sequence.holding!, sequence.computed)) sequence.computed = sequence.holding!.blocks.length * blockSize;
    }
    const at = (position: number): number => request.prompt[position] ?? request.output[position - request.prompt.length]!;
    this.#cache.register(sequence.holding!, at, sequence.computed);
    if (request.points && this.#prefixCaching && made > 0 && !sequence.kept) {
      // An entry can be read once the answer that wrote it has begun.
      this.#points.keep(request.prompt, request.salt, request.points.writes, end);
      sequence.kept = true;
    }
    this.#queue.served(sequence, promptPart, made);
  }

  #send(sequence: Sequence, at: Ms, events: EngineEvent[]): void {
    const count = sequence.generated - sequence.sent;
    if (count === 0) return;
    const last = isComplete(sequence);
    events.push({ type: 'tokens', id: sequence.request.id, at, from: sequence.sent, count, last });
    sequence.sent = sequence.generated;
    if (last) this.#leave(sequence);
  }

  #leave(sequence: Sequence): void {
    this.#known.delete(sequence.request.id);
    this.#unseat(sequence);
  }

  #unseat(sequence: Sequence): void {
    if (sequence.holding) this.#cache.release(sequence.holding);
    sequence.holding = null;
    const seat = this.#running.indexOf(sequence);
    if (seat >= 0) this.#running.splice(seat, 1);
  }
}

function oldest(waiting: Iterable<Sequence>): Ms | null {
  let found: Ms | null = null;
  for (const { arrivedAt } of waiting) if (found === null || arrivedAt < found) found = arrivedAt;
  return found;
}
