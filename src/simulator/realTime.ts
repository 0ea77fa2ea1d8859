/** Drives a backend by the machine's monotonic clock: what is due is delivered when it is due, to a fraction of a millisecond. */
import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from './engine';

/** Milliseconds of `process.hrtime`: one monotonic clock for all threads and processes of a machine. */
export function clock(): Ms {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Timers fire up to this much late, so they are set this much early; the rest is slept off exactly. */
const timerGrain = 1.2;

const nap = new Int32Array(new SharedArrayBuffer(4));

/** Waits until the clock shows `at`, to a fraction of a millisecond. */
export async function sleepUntil(at: Ms): Promise<void> {
  const wait = at - clock() - timerGrain;
  await (wait >= 1 ? new Promise((resolve) => setTimeout(resolve, wait)) : new Promise((resolve) => setImmediate(resolve)));
  napUntil(at);
}

/** A blocked wait of about a millisecond costs no processor time and wakes on time, which no timer of the event loop does. */
function napUntil(at: Ms): void {
  const early = at - clock();
  if (early > 0.02) Atomics.wait(nap, 0, 0, early);
}

/** A backend in real time. `speed` > 1 lets virtual time run faster than the clock. */
export class RealTime {
  readonly #backend: Backend;
  readonly #speed: number;
  readonly #origin: Ms;
  readonly #listeners = new Map<string, (event: EngineEvent) => void>();
  #timer: NodeJS.Timeout | NodeJS.Immediate | null = null;
  #timerAt = Infinity;

  constructor(backend: Backend, speed = 1) {
    this.#backend = backend;
    this.#speed = speed;
    this.#origin = clock();
  }

  /** Virtual time now, ms. */
  now(): Ms {
    return this.#origin + (clock() - this.#origin) * this.#speed;
  }

  /** The clock time at which virtual time `at` comes, ms. */
  clockTime(at: Ms): Ms {
    return this.#origin + (at - this.#origin) / this.#speed;
  }

  /** Hands in a request; `listener` gets its events as they fall due. */
  submit(request: EngineRequest, listener: (event: EngineEvent) => void): Refusal | null {
    this.#deliver();
    this.#listeners.set(request.id, listener);
    const refusal = this.#backend.submit(request, this.now());
    if (refusal) this.#listeners.delete(request.id);
    this.#schedule();
    return refusal;
  }

  cancel(id: string): void {
    if (!this.#listeners.delete(id)) return;
    this.#backend.cancel(id, this.now());
    this.#schedule();
  }

  load(): Load {
    this.#deliver();
    this.#schedule();
    return this.#backend.load();
  }

  resetCache(): void {
    this.#backend.resetCache();
  }

  stop(): void {
    this.#clearTimer();
  }

  #deliver(): void {
    for (const event of this.#backend.advance(this.now())) {
      const listener = this.#listeners.get(event.id);
      if (event.type === 'lost' || (event.type === 'tokens' && event.last)) this.#listeners.delete(event.id);
      listener?.(event);
    }
  }

  #schedule(): void {
    const at = this.#backend.nextAt();
    if (at === this.#timerAt && this.#timer) return;
    this.#clearTimer();
    if (at === Infinity) return;
    this.#timerAt = at;
    const wait = this.clockTime(at) - clock() - timerGrain;
    this.#timer = wait >= 1 ? setTimeout(() => this.#due(at), wait) : setImmediate(() => this.#due(at));
  }

  #due(at: Ms): void {
    this.#timer = null;
    if (this.clockTime(at) - clock() > timerGrain + 1) return this.#schedule();
    napUntil(this.clockTime(at));
    this.#deliver();
    this.#schedule();
  }

  #clearTimer(): void {
    if (this.#timer) {
      clearTimeout(this.#timer as NodeJS.Timeout);
      clearImmediate(this.#timer as NodeJS.Immediate);
    }
    this.#timer = null;
    this.#timerAt = Infinity;
  }
}
