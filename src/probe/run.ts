/**
 * Carries out a plan: slots or a schedule, warm-up, negotiation of fields, retries, breaker, budget, cancellation. Everything that
 * happened is a sample; nothing is thrown away. The seams (`open`, `now`, `sleep`) are the only ones in the product.
 */
import { setMaxListeners } from 'node:events';
import type { LiveRow } from '../report/messages';
import type { Milliseconds, Outcome, Sample } from '../report/sample';
import { assembleSample } from './assembly';
import { createBreaker } from './breaker';
import { createDecoder, decode, outcomeOf, type Arrival, type Decoded, type Decoder } from './decode';
import { askFor } from './dialect/index';
import type { WireRequest } from './dialect/dialect';
import { judge } from './outcome';
import { salted, saltedBeside, type ProbePlan, type Shot, type Target } from './plan';
import type { Part, Recorder } from './recording';
import { createRedactor, secretsOf, type Redact } from './redact';
import type { Tape } from './tape';

/** Where a run touches the world. */
export interface RunSeams {
  /** Opens a recorder for a target; the run closes it. */
  open(target: Target): Promise<Recorder>;
  now(): Milliseconds;
  /** Resolves after `ms`, or at once when the signal aborts. */
  sleep(ms: Milliseconds, signal: AbortSignal): Promise<void>;
}

/** Why a run ended before its last shot. */
export interface Stopped {
  readonly by: 'user' | 'breaker' | 'budget';
  readonly detail: string;
}

/** One thing that happened in a run. Stamps are ms from the window's start (the first measured start). */
export type RunStep =
  | { readonly type: 'live'; readonly rows: readonly LiveRow[]; readonly done: number; readonly total: number; readonly elapsed: Milliseconds; readonly eta: Milliseconds | null; /** Stamp of the clock that the rows' times are counted from. */ readonly origin: Milliseconds; /** Nothing is in flight: what the next request waits for in all, and how much of it is left. */ readonly wait: Wait | null }
  | { readonly type: 'sample'; readonly sample: Sample; readonly decoded: Decoded; readonly tape: Tape; readonly shot: Shot };

/** A request that is to be sent later: ms from the schedule's start, and ms to go. */
export interface Wait {
  readonly whole: Milliseconds;
  readonly left: Milliseconds;
}

/** What a run leaves behind, beside its samples. */
export interface RunResult {
  /** Stamp of the clock at the window's start. */
  readonly origin: Milliseconds;
  readonly stopped: Stopped | null;
  /** Errors of all canaries in the window, ms. */
  readonly clockErrors: readonly Milliseconds[];
  /** What it took out of the budget: requests sent, output tokens, money. */
  readonly used: Used;
}

/** Requests, output tokens and money. */
export interface Used {
  readonly requests: number;
  readonly outputTokens: number;
  readonly cost: number;
}

const livePeriod: Milliseconds = 250;
/** A schedule never has more in flight: beyond this the client is the bottleneck. */
const mostInFlight = 4096;
/** How often a schedule that was held back looks for room. */
const holdBack: Milliseconds = 10;
const longestWait: Milliseconds = 60_000;

/** Runs a plan. Aborting the signal closes all sockets; what was measured until then is yielded before the end. */
export async function* run(plan: ProbePlan, seams: RunSeams, signal: AbortSignal): AsyncGenerator<RunStep, RunResult> {
  const running = new Run(plan, seams);
  const cancel = (): void => {
    running.stop({ by: 'user', detail: 'stopped by you' });
  };
  if (signal.aborted) cancel();
  else signal.addEventListener('abort', cancel, { once: true });
  const work = running.work();
  try {
    yield* running.steps(work);
    return await work;
  } finally {
    signal.removeEventListener('abort', cancel);
    running.abandon();
    await work.catch(() => undefined);
  }
}

/** One exchange in flight. */
interface InFlight {
  readonly shot: Shot;
  readonly id: string;
  readonly role: Sample['role'];
  start: Milliseconds | null;
  headers: Milliseconds | null;
  fresh: Arrival[];
  decoder: Decoder | null;
  first: Milliseconds | null;
}

interface Finished {
  readonly flight: InFlight;
  readonly due: Milliseconds;
  readonly role: Sample['role'];
  readonly tape: Tape;
  readonly decoded: Decoded;
  readonly outcome: Outcome;
  readonly redact: Redact;
}

class Run {
  readonly #plan: ProbePlan;
  readonly #seams: RunSeams;
  readonly #halt = new AbortController();
  readonly #recorders: Recorder[][] = [];
  readonly #inFlight = new Set<InFlight>();
  readonly #queue: RunStep[] = [];
  /** Samples that wait for the window's start to be known. */
  readonly #waiting: Finished[] = [];
  readonly #breaker: ((outcome: Outcome) => string | null) | null;
  #wake: () => void = () => undefined;
  #stopped: Stopped | null = null;
  #origin: Milliseconds | null = null;
  #began = 0;
  #sent = 0;
  #done = 0;
  #retries = 0;
  #outputTokens = 0;
  #cost = 0;
  #turn = 0;
  /** The shot that the schedule waits for. */
  #next: { readonly due: Milliseconds; readonly whole: Milliseconds } | null = null;

  constructor(plan: ProbePlan, seams: RunSeams) {
    this.#plan = plan;
    this.#seams = seams;
    this.#breaker = plan.breaker ? createBreaker(plan.breaker) : null;
    // Every request in flight listens.
    setMaxListeners(0, this.#halt.signal);
  }

  stop(stopped: Stopped): void {
    this.#stopped ??= stopped;
    this.#halt.abort();
  }

  /** Ends it without a reason of its own: its consumer went away. */
  abandon(): void {
    this.#halt.abort();
  }

  /** Yields what happens until `work` is over and everything was told. */
  async *steps(work: Promise<unknown>): AsyncGenerator<RunStep, void> {
    let over = false;
    const end = (): void => {
      over = true;
      this.#wake();
    };
    work.then(end, end);
    const ticker = setInterval(() => {
      this.#tellLive();
    }, livePeriod);
    try {
      for (;;) {
        for (let step = this.#queue.shift(); step; step = this.#queue.shift()) yield step;
        if (over) return;
        await new Promise<void>((resolve) => {
          this.#wake = resolve;
          if (this.#queue.length > 0 || over) resolve();
        });
      }
    } finally {
      clearInterval(ticker);
    }
  }

  async work(): Promise<RunResult> {
    const { shots } = this.#plan;
    try {
      await this.#open();
      this.#began = this.#seams.now();
      await this.#inSlots(shots.filter((shot) => shot.role === 'warmup'));
      const measured = shots.filter((shot) => shot.role === 'measured');
      await this.#measured(measured);
      this.#settleOrigin(this.#origin ?? this.#began);
      return { origin: this.#origin!, stopped: this.#stopped, clockErrors: await this.#clockErrors(this.#origin!), used: { requests: this.#sent, outputTokens: this.#outputTokens, cost: this.#cost } };
    } finally {
      await Promise.all(this.#recorders.flat().map((recorder) => recorder.close()));
    }
  }

  async #open(): Promise<void> {
    const { targets, recorders, concurrency } = this.#plan;
    for (const target of targets) {
      const opened = await Promise.all(Array.from({ length: recorders }, () => this.#seams.open(target)));
      this.#recorders.push(opened);
    }
    if (this.#halted) return;
    const share = Math.ceil(Math.min(concurrency, this.#plan.shots.length) / recorders);
    await Promise.race([
      Promise.all(targets.flatMap((target, index) => this.#recorders[index]!.map((recorder) => recorder.warm(target.endpoint.url, share)))),
      aborted(this.#halt.signal),
    ]);
  }

  async #clockErrors(since: Milliseconds): Promise<Milliseconds[]> {
    return (await Promise.all(this.#recorders.flat().map((recorder) => recorder.clockErrors(since)))).flat();
  }

  get #halted(): boolean {
    return this.#halt.signal.aborted;
  }

  /** Shots with a time on schedule, the others in the slots of the plan or of their lane, all at once. */
  async #measured(shots: readonly Shot[]): Promise<void> {
    const { lanes = {}, concurrency } = this.#plan;
    const queued = new Map<string, Shot[]>();
    for (const shot of shots) {
      if (shot.dueAt !== null) continue;
      const name = shot.lane ?? '';
      const lane = queued.get(name);
      if (lane) lane.push(shot);
      else queued.set(name, [shot]);
    }
    let foreground = true;
    const inLane = (name: string): Promise<void> => this.#inSlots(queued.get(name) ?? [], lanes[name]?.concurrency ?? concurrency, () => foreground || lanes[name]?.background !== true);
    const names = [...queued.keys()];
    const behind = names.filter((name) => lanes[name]?.background).map(inLane);
    await Promise.all([this.#onSchedule(shots.filter((shot) => shot.dueAt !== null)), ...names.filter((name) => !lanes[name]?.background).map(inLane)]);
    foreground = false;
    await Promise.all(behind);
  }

  /** Closed loop: as many slots as the concurrency, each sends its next shot when its last one has ended. */
  async #inSlots(shots: readonly Shot[], concurrency = this.#plan.concurrency, wanted: () => boolean = () => true): Promise<void> {
    let next = 0;
    const slot = async (): Promise<void> => {
      for (let shot = shots[next]; shot && !this.#halted && wanted(); shot = shots[next]) {
        next += 1;
        await this.#fire(shot, this.#seams.now());
      }
    };
    await Promise.all(Array.from({ length: Math.min(concurrency, shots.length) }, slot));
  }

  /** Open loop: each shot at its time, whatever is still running. */
  async #onSchedule(shots: readonly Shot[]): Promise<void> {
    const from = this.#seams.now();
    const most = this.#plan.mostInFlight ?? mostInFlight;
    const running: Promise<void>[] = [];
    for (const shot of [...shots].sort((a, b) => (a.dueAt ?? 0) - (b.dueAt ?? 0))) {
      const due = from + (shot.dueAt ?? 0);
      this.#next = { due, whole: shot.dueAt ?? 0 };
      for (let wait = due - this.#seams.now(); wait > 0 && !this.#halted; wait = due - this.#seams.now()) await this.#seams.sleep(wait, this.#halt.signal);
      while (this.#inFlight.size >= most && !this.#halted) await this.#seams.sleep(holdBack, this.#halt.signal);
      if (this.#halted) break;
      running.push(this.#fire(shot, due));
    }
    this.#next = null;
    await Promise.all(running);
  }

  /** Sends a shot until it counts: a refused field is dropped and the shot sent again, a retryable failure waits its turn. */
  async #fire(shot: Shot, firstDue: Milliseconds): Promise<void> {
    let due = firstDue;
    let again = 0;
    for (let attempt = 1; !this.#halted && this.#mayAsk(); attempt += 1) {
      const finished = await this.#attempt(shot, attempt === 1 ? shot.id : `${shot.id}.${attempt}`, due);
      if (!finished) return;
      if (finished.role === 'negotiation') {
        due = this.#seams.now();
        continue;
      }
      const wait = this.#retryWait(finished.outcome, again);
      if (wait === null) return;
      again += 1;
      await this.#seams.sleep(wait, this.#halt.signal);
      due = this.#seams.now();
    }
  }

  async #attempt(shot: Shot, id: string, due: Milliseconds): Promise<Finished | null> {
    const target = this.#plan.targets[shot.target]!;
    const ask = this.#ask(target, shot);
    const request = buildRequest(target, shot, ask);
    const flight: InFlight = { shot, id, role: shot.role, start: null, headers: null, fresh: [], decoder: null, first: null };
    this.#inFlight.add(flight);
    this.#sent += 1;
    const recorders = this.#recorders[shot.target]!;
    const recorder = recorders[(this.#turn += 1) % recorders.length]!;
    const tape = await recorder.record(
      { id, request, timeouts: target.timeouts, progress: { firstToken: () => flight.first, ended: () => flight.decoder?.ended === true } },
      (part) => {
        this.#receive(flight, target, part);
      },
      this.#halt.signal,
    );
    this.#inFlight.delete(flight);
    const decoded = flight.decoder ? finish(flight.decoder, tape) : decode(tape, target.dialect);
    const outcome = judge(tape, decoded, target.timeouts);
    const negotiable = this.#negotiate(target, shot, outcome, ask);
    const redact = createRedactor([target.key, ...secretsOf(request.url, request.headers)]);
    const finished: Finished = { flight, due, role: negotiable ? 'negotiation' : shot.role, tape, decoded, outcome, redact };
    this.#count(finished, target);
    return finished;
  }

  #ask(target: Target, shot: Shot, alsoRefused?: string): ReadonlySet<string> {
    const { endpoint, server, memory, dialect } = target;
    const refused = new Set(memory.recall(endpoint.url).refused);
    if (alsoRefused !== undefined) refused.add(alsoRefused);
    return askFor(dialect, { url: endpoint.url, server, refused, fixedLength: this.#plan.fixedLength ?? false, diagnosing: shot.compareWith !== undefined });
  }

  /** Whether a refusal can be answered by another request: the field was ours to leave out. Remembers it then. */
  #negotiate(target: Target, shot: Shot, outcome: Outcome, asked: ReadonlySet<string>): boolean {
    const field = outcome.kind === 'status' ? outcome.refusedField : undefined;
    if (field === undefined) return false;
    const next = this.#ask(target, shot, field);
    if (next.size === asked.size && [...next].every((name) => asked.has(name))) return false;
    target.memory.refuse(target.endpoint.url, field);
    return true;
  }

  #receive(flight: InFlight, target: Target, part: Part): void {
    flight.start = part.phases.start;
    flight.headers = part.phases.headers;
    if (part.status === null) return;
    flight.decoder ??= createDecoder(target.dialect, { status: part.status, headers: part.headers });
    let from = part.ends.length > 0 ? part.ends.at(-1)! - part.bytes.length : 0;
    const base = from;
    part.stamps.forEach((stamp, k) => {
      const to = part.ends[k]!;
      const arrivals = flight.decoder!.push(stamp, part.bytes.subarray(from - base, to - base));
      from = to;
      flight.first ??= arrivals[0]?.t ?? null;
      flight.fresh.push(...arrivals);
    });
  }

  #count(finished: Finished, target: Target): void {
    const { decoded, outcome, role, tape, redact } = finished;
    if (role !== 'negotiation') this.#done += 1;
    const { price } = target.endpoint;
    const output = decoded.outputTokens.count ?? decoded.arrivals.length;
    this.#outputTokens += output;
    if (price) {
      const cached = decoded.cachedTokens ?? 0;
      this.#cost += (Math.max(0, (decoded.promptTokens ?? 0) - cached) * (price.inputPerMillion ?? 0) + cached * (price.cachedInputPerMillion ?? price.inputPerMillion ?? 0) + output * (price.outputPerMillion ?? 0)) / 1e6;
    }
    if (role === 'measured' && this.#origin === null) this.#settleOrigin(Math.min(tape.phases.start, ...[...this.#inFlight].flatMap((flight) => (flight.role === 'measured' && flight.start !== null ? [flight.start] : []))));
    if (this.#origin === null) this.#waiting.push(finished);
    else this.#emit(finished);
    const reason = role === 'negotiation' ? null : this.#breaker?.(outcome);
    if (reason) this.stop({ by: 'breaker', detail: `${reason}, the last one with: ${redact(outcome.message ?? outcome.kind)}` });
    this.#spend();
  }

  /** Whether one more request is within the budget. Those in flight are left to end. */
  #mayAsk(): boolean {
    const { requests } = this.#plan.budget;
    if (requests === null || this.#sent < requests) return true;
    this.#stopped ??= { by: 'budget', detail: `${requests} requests were sent, the limit (firstToken.probe.maxRequests)` };
    return false;
  }

  /** Stops the run when its tokens or its money are used up. */
  #spend(): void {
    const { outputTokens, cost } = this.#plan.budget;
    if (outputTokens !== null && this.#outputTokens >= outputTokens) this.stop({ by: 'budget', detail: `${this.#outputTokens} output tokens, the limit is ${outputTokens} (firstToken.probe.maxTotalTokens)` });
    else if (cost !== null && this.#cost >= cost) this.stop({ by: 'budget', detail: `cost ${this.#cost.toPrecision(3)}, the limit is ${cost} (firstToken.probe.maxCost)` });
  }

  #retryWait(outcome: Outcome, again: number): Milliseconds | null {
    const { retry, shots } = this.#plan;
    if (!retry || again >= retry.attempts || this.#halted) return null;
    const temporary = outcome.kind.startsWith('timeout-') || (outcome.kind === 'status' && (outcome.status === 429 || (outcome.status ?? 0) >= 500));
    const refused = outcome.kind === 'status' && (outcome.status === 429 || (outcome.status === 503 && outcome.retryAfter !== undefined));
    if (retry.refusalsOnly && !refused) return null;
    if (!temporary || this.#retries >= Math.ceil(shots.length * retry.share)) return null;
    this.#retries += 1;
    const backOff = retry.wait * 2 ** again * (0.5 + Math.random() / 2);
    return Math.min(longestWait, Math.max(backOff, outcome.retryAfter ?? 0));
  }

  #settleOrigin(origin: Milliseconds): void {
    this.#origin = origin;
    for (const finished of this.#waiting.splice(0)) this.#emit(finished);
  }

  #emit({ flight, due, role, tape, decoded, outcome, redact }: Finished): void {
    const labels = flight.id === flight.shot.id ? flight.shot.labels : { ...flight.shot.labels, again: flight.shot.id };
    const sample = assembleSample({ id: flight.id, role, due, labels }, tape, decoded, outcome, this.#origin!, redact);
    this.#tell({ type: 'sample', sample, decoded, tape, shot: flight.shot });
  }

  #tellLive(): void {
    const left = this.#next === null ? 0 : this.#next.due - this.#seams.now();
    const wait = this.#inFlight.size === 0 && this.#next !== null && left > 0 ? { whole: this.#next.whole, left } : null;
    if (this.#inFlight.size === 0 && wait === null) return;
    const origin = this.#origin ?? Math.min(...[...this.#inFlight].map((flight) => flight.start ?? Infinity), this.#seams.now());
    const rows = [...this.#inFlight].flatMap((flight): LiveRow[] => {
      if (flight.start === null) return [];
      const fresh = flight.fresh.splice(0);
      return [
        {
          id: flight.id,
          role: flight.role,
          start: flight.start - origin,
          headers: flight.headers === null ? null : flight.headers - origin,
          t: fresh.map((arrival) => arrival.t - origin),
          kinds: fresh.map((arrival) => arrival.kind),
          tokens: fresh.map((arrival) => arrival.tokens),
          text: fresh.map((arrival) => (arrival.kind === 'text' || arrival.kind === 'reasoning' ? arrival.text : '')),
        },
      ];
    });
    const elapsed = this.#seams.now() - this.#began;
    const total = this.#plan.shots.length;
    this.#tell({ type: 'live', rows, done: this.#done, total, elapsed, eta: this.#done === 0 ? null : (elapsed / this.#done) * (total - this.#done), origin, wait });
  }

  #tell(step: RunStep): void {
    this.#queue.push(step);
    this.#wake();
  }
}

/** The live decoder has seen every read of the tape already; only the end is missing. Equal to `decode(tape)`. */
function finish(decoder: Decoder, tape: Tape): Decoded {
  decoder.end(tape.phases.bodyEnd ?? tape.stamps.at(-1) ?? tape.phases.start, tape.ending.kind === 'complete' ? 'clean' : 'cut');
  const decoded = decoder.result();
  return { ...decoded, outcome: outcomeOf(tape.ending, decoded) };
}

/** The request of a shot. vLLM is salted beside the prompt, every other server in the prompt's first bytes. */
function buildRequest(target: Target, shot: Shot, ask: ReadonlySet<string>): WireRequest {
  const beside = shot.nonce !== null && saltedBeside(target);
  return target.dialect.request({
    url: target.endpoint.url,
    model: target.model,
    prompt: shot.nonce === null || beside ? shot.prompt : salted(shot.prompt, shot.nonce),
    maxTokens: shot.maxTokens,
    ask,
    body: beside ? { cache_salt: shot.nonce, ...target.endpoint.body } : target.endpoint.body,
    headers: target.endpoint.headers,
    key: target.key,
    ...(shot.compareWith === undefined ? {} : { compareWith: shot.compareWith }),
  });
}

function aborted(signal: AbortSignal): Promise<void> {
  return new Promise((resolve) => {
    const end = (): void => {
      resolve();
    };
    if (signal.aborted) end();
    signal.addEventListener('abort', end, { once: true });
  });
}
