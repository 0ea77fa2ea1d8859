/** Runs arrivals through a backend in virtual time: no clock, no waiting, the same result on every machine. */
import type { Backend, EngineEvent, Ms, Refusal } from './engine';
import { seededRandom, seedOf } from './seededRandom';

/** One request to come. Prompts are made up from their length; `sharedPrefix` tokens of it are the same in all arrivals of one `prefix` name. */
export interface VirtualArrival {
  readonly at: Ms;
  readonly id?: string;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** Exact prompt tokens instead of made-up ones. */
  readonly prompt?: readonly number[];
  readonly sharedPrefix?: number;
  readonly prefix?: string;
  readonly tenant?: string;
  readonly priority?: number;
  readonly salt?: string;
}

/** What became of it. Times in ms of virtual time; null = has not happened. JSON-safe. */
export interface VirtualResult {
  readonly id: string;
  readonly tenant: string;
  readonly arrival: Ms;
  readonly outcome: 'ok' | 'refused' | 'lost' | 'unfinished';
  readonly refusal: Refusal | null;
  readonly scheduled: Ms | null;
  readonly replica: number | null;
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  /** `[when, how many tokens]` of every emission. */
  readonly emissions: readonly (readonly [Ms, number])[];
  readonly firstToken: Ms | null;
  readonly last: Ms | null;
}

/** More arrivals in answer to a result (a closed loop sends its next request then), and when to give up. */
export interface VirtualOptions {
  readonly onDone?: (result: VirtualResult, now: Ms) => readonly VirtualArrival[];
  /** Nothing after this time is simulated. */
  readonly until?: Ms;
}

type Open = { -readonly [K in keyof VirtualResult]: VirtualResult[K] };

/** Runs `arrivals` (any order) until everything is done. Results are in order of arrival. */
export function runVirtual(backend: Backend, arrivals: readonly VirtualArrival[], options: VirtualOptions = {}): VirtualResult[] {
  return new VirtualRun(backend, options).run(arrivals);
}

/** Arrivals and follow-ups of a closed loop: `users` requests are always under way until `total` have been sent; `make` says what the i-th is. */
export function closedLoop(users: number, total: number, make: (index: number) => Omit<VirtualArrival, 'at'>): { readonly arrivals: VirtualArrival[]; readonly onDone: NonNullable<VirtualOptions['onDone']> } {
  let sent = Math.min(users, total);
  const arrivals = Array.from({ length: sent }, (_, index) => ({ at: 0, ...make(index) }));
  return { arrivals, onDone: (_result, now) => (sent < total ? [{ at: now, ...make(sent++) }] : []) };
}

class VirtualRun {
  readonly #backend: Backend;
  readonly #options: VirtualOptions;
  readonly #ahead: VirtualArrival[] = [];
  readonly #open = new Map<string, Open & { emissions: [Ms, number][] }>();
  readonly #results: Open[] = [];

  constructor(backend: Backend, options: VirtualOptions) {
    this.#backend = backend;
    this.#options = options;
  }

  run(arrivals: readonly VirtualArrival[]): VirtualResult[] {
    this.#expect(arrivals);
    for (;;) {
      const arrival = this.#ahead[0];
      const at = Math.min(arrival?.at ?? Infinity, this.#backend.nextAt());
      if (at === Infinity || at > (this.#options.until ?? Infinity)) return this.#results;
      // Who arrives at the very moment an iteration ends can still join the next one.
      if (arrival && arrival.at <= at) this.#submit(this.#ahead.shift()!);
      else for (const event of this.#backend.advance(at)) this.#follow(event);
    }
  }

  #expect(arrivals: readonly VirtualArrival[]): void {
    if (arrivals.length === 0) return;
    this.#ahead.push(...arrivals);
    this.#ahead.sort((a, b) => a.at - b.at);
  }

  #submit(arrival: VirtualArrival): void {
    const id = arrival.id ?? `v${this.#results.length}`;
    const prompt = arrival.prompt ?? makePrompt(arrival, this.#results.length);
    const record = {
      id,
      tenant: arrival.tenant ?? '',
      arrival: arrival.at,
      outcome: 'unfinished' as const,
      refusal: null,
      scheduled: null,
      replica: null,
      promptTokens: prompt.length,
      cachedTokens: 0,
      outputTokens: 0,
      emissions: [],
      firstToken: null,
      last: null,
    };
    this.#results.push(record);
    this.#open.set(id, record);
    const output = Array.from({ length: arrival.outputTokens }, (_, i) => 1_000_000 + (this.#results.length % 1000) * 1000 + i);
    const request = { id, prompt, output, salt: arrival.salt ?? '', tenant: arrival.tenant ?? '', priority: arrival.priority ?? 0 };
    const refusal = this.#backend.submit(request, arrival.at);
    if (refusal) this.#done(id, { outcome: 'refused', refusal }, arrival.at);
  }

  #follow(event: EngineEvent): void {
    const record = this.#open.get(event.id);
    if (!record) return;
    if (event.type === 'scheduled') {
      record.scheduled = event.at;
      record.cachedTokens = event.cachedTokens;
      record.replica = event.replica;
    } else if (event.type === 'lost') this.#done(event.id, { outcome: 'lost' }, event.at);
    else if (event.type === 'tokens') {
      record.emissions.push([event.at, event.count]);
      record.firstToken ??= event.at;
      record.last = event.at;
      record.outputTokens += event.count;
      if (event.last) this.#done(event.id, { outcome: 'ok' }, event.at);
    }
  }

  #done(id: string, how: Partial<Open>, now: Ms): void {
    const record = this.#open.get(id)!;
    Object.assign(record, how);
    this.#open.delete(id);
    this.#expect(this.#options.onDone?.(record, now) ?? []);
  }
}

function makePrompt({ promptTokens, sharedPrefix = 0, prefix = '' }: VirtualArrival, unique: number): number[] {
  const shared = seededRandom(seedOf(new TextEncoder().encode(prefix)));
  const own = seededRandom(0x1234567 + unique);
  return Array.from({ length: promptTokens }, (_, i) => 200_000 + Math.floor((i < sharedPrefix ? shared() : own()) * 1e6));
}
