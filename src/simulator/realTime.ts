/** Drives a backend by the machine's monotonic clock: what is due is delivered when it is due, to a fraction of a millisecond. */
import type { Driver } from './desk';
import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from './engine';

/** Milliseconds of `process.hrtime`: one monotonic clock for all threads and processes of a machine. */
export function clock(): Ms {
  return Number(process.hrtime.bigint()) / 1e6;
}

/** Timers fire up to this much late, so they are set this much early; the rest is slept off exactly. */
const timerGrain = 1.2;

const nap = new Int32Array(new SharedArrayBuffer(4));

/** A blocked wait of about a millisecond costs no processor time and wakes on time, which no timer of the event loop does. */
function napUntil(at: Ms): void {
  const early = at - clock();
  if (early > 0.02) Atomics.wait(nap, 0, 0, early);
}

/** A backend in real time. `speed` > 1 lets virtual time run faster than the clock. */
export class RealTime implements Driver {
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

  /** The clock, ms. */
  now(): Ms {
    return clock();
  }

  wake(at: Ms, act: () => void): () => void {
    const early = Math.max(0, at - clock() - timerGrain);
    const timer = setTimeout(() => {
      // A long wait may end early by more than the grain when the clocks drift apart.
      if (at - clock() < 2 * timerGrain) napUntil(at);
      act();
    }, early);
    return () => {
      clearTimeout(timer);
    };
  }

  #virtualNow(): Ms {
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
    const refusal = this.#backend.submit(request, this.#virtualNow());
    if (refusal) this.#listeners.delete(request.id);
    this.#schedule();
    return refusal;
  }

  cancel(id: string): void {
    if (!this.#listeners.delete(id)) return;
    this.#backend.cancel(id, this.#virtualNow());
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
    for (const event of this.#backend.advance(this.#virtualNow())) {
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
