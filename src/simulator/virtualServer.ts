/**
 * A simulated server without sockets and without waiting: requests go in as HTTP would carry them, bytes come out with the virtual
 * times at which they would have left. Whoever waits through `sleep` and `exchange` lives in the same virtual time.
 */
import { assemble } from './assemble';
import type { Wire } from './delivery';
import { Desk, type Arrived, type Driver } from './desk';
import type { Backend, EngineEvent, EngineRequest, Load, Ms, Refusal } from './engine';
import type { SimulatorSettings } from './settings';

/** One exchange as the client would see it. Times in virtual ms. */
export interface VirtualExchange {
  readonly sent: Ms;
  readonly status: number | null;
  readonly headers: readonly (readonly [string, string])[];
  /** When the response head left. Null when there was none. */
  readonly head: Ms | null;
  /** What left together and when. */
  readonly writes: readonly { readonly at: Ms; readonly bytes: Uint8Array }[];
  /** `cut`: the connection broke. `left`: the client hung up. */
  readonly ended: 'clean' | 'cut' | 'left';
  readonly end: Ms;
}

/** Who wants to see an exchange while it runs. */
export interface Watcher {
  readonly signal?: AbortSignal;
  onHead?(at: Ms, status: number, headers: VirtualExchange['headers']): void;
  onWrite?(at: Ms, bytes: Uint8Array): void;
}

/** A server and the virtual time it lives in. */
export class VirtualServer {
  readonly #time: VirtualTime;
  readonly #desk: Desk;

  constructor(settings: SimulatorSettings) {
    this.#time = new VirtualTime(assemble(settings));
    this.#desk = new Desk(settings, this.#time);
  }

  /** Virtual time, ms from 0. */
  now(): Ms {
    return this.#time.now();
  }

  /** Resolves when `ms` have passed in virtual time, or at once when the signal aborts. */
  sleep(ms: Ms, signal?: AbortSignal): Promise<void> {
    return new Promise((resolve) => {
      if (signal?.aborted) return resolve();
      const takeBack = this.#time.wake(this.now() + Math.max(0, ms), resolve);
      signal?.addEventListener('abort', () => {
        takeBack();
        resolve();
      }, { once: true });
    });
  }

  /** Sends a request and resolves when its answer is over. Aborting the watcher's signal hangs up. */
  exchange(request: { readonly method: string; readonly path: string; readonly headers?: Readonly<Record<string, string>>; readonly body?: string }, watcher: Watcher = {}): Promise<VirtualExchange> {
    const { signal } = watcher;
    const headers = Object.fromEntries(Object.entries(request.headers ?? {}).map(([name, value]) => [name.toLowerCase(), value]));
    const arrived: Arrived = { method: request.method, target: request.path, headers, text: request.body ?? '' };
    return new Promise((resolve) => {
      const wire = new VirtualWire(this.#time, watcher, resolve);
      signal?.addEventListener('abort', () => wire.leave(), { once: true });
      if (signal?.aborted) wire.leave();
      else void this.#desk.handle(arrived, wire);
    });
  }
}

interface Alarm {
  readonly at: Ms;
  readonly act: () => void;
}

/**
 * Virtual time: it stands still while anybody has something to do, and jumps to the next alarm or engine event when nobody has.
 * "Nobody has" is when the event loop comes round without a promise left to settle.
 */
class VirtualTime implements Driver {
  readonly #backend: Backend;
  readonly #listeners = new Map<string, (event: EngineEvent) => void>();
  #alarms: Alarm[] = [];
  #now: Ms = 0;
  #turning = false;

  constructor(backend: Backend) {
    this.#backend = backend;
  }

  now(): Ms {
    return this.#now;
  }

  clockTime(at: Ms): Ms {
    return at;
  }

  wake(at: Ms, act: () => void): () => void {
    const alarm: Alarm = { at: Math.max(at, this.#now), act };
    let place = this.#alarms.length;
    while (place > 0 && this.#alarms[place - 1]!.at > alarm.at) place -= 1;
    this.#alarms.splice(place, 0, alarm);
    this.#turn();
    return () => {
      this.#alarms = this.#alarms.filter((other) => other !== alarm);
    };
  }

  submit(request: EngineRequest, listener: (event: EngineEvent) => void): Refusal | null {
    this.#listeners.set(request.id, listener);
    const refusal = this.#backend.submit(request, this.#now);
    if (refusal) this.#listeners.delete(request.id);
    this.#turn();
    return refusal;
  }

  cancel(id: string): void {
    if (this.#listeners.delete(id)) this.#backend.cancel(id, this.#now);
    this.#turn();
  }

  load(): Load {
    return this.#backend.load();
  }

  resetCache(): void {
    this.#backend.resetCache();
  }

  #turn(): void {
    if (this.#turning) return;
    this.#turning = true;
    setImmediate(() => {
      this.#turning = false;
      this.#step();
    });
  }

  #step(): void {
    const alarm = this.#alarms[0];
    const at = Math.min(alarm?.at ?? Infinity, this.#backend.nextAt());
    if (at === Infinity) return;
    this.#now = Math.max(this.#now, at);
    if (alarm && alarm.at <= at) {
      this.#alarms.shift();
      alarm.act();
    } else {
      for (const event of this.#backend.advance(at)) {
        const listener = this.#listeners.get(event.id);
        if (event.type === 'lost' || (event.type === 'tokens' && event.last)) this.#listeners.delete(event.id);
        listener?.(event);
      }
    }
    this.#turn();
  }
}

class VirtualWire implements Wire {
  readonly #time: VirtualTime;
  readonly #watcher: Watcher;
  readonly #done: (exchange: VirtualExchange) => void;
  readonly #sent: Ms;
  readonly #writes: { at: Ms; bytes: Uint8Array }[] = [];
  #pending: Uint8Array[] = [];
  #status: number | null = null;
  #headers: readonly (readonly [string, string])[] = [];
  #head: Ms | null = null;
  #over = false;
  readonly #gone: (() => void)[] = [];

  constructor(time: VirtualTime, watcher: Watcher, done: (exchange: VirtualExchange) => void) {
    this.#time = time;
    this.#watcher = watcher;
    this.#done = done;
    this.#sent = time.now();
  }

  get open(): boolean {
    return this.#head !== null;
  }

  head(headers: Readonly<Record<string, string>>): void {
    this.#begin(200, headers);
  }

  write(bytes: string | Uint8Array): void {
    if (!this.#over) this.#pending.push(typeof bytes === 'string' ? new TextEncoder().encode(bytes) : bytes);
  }

  flush(): void {
    if (this.#pending.length === 0) return;
    const write = { at: this.#time.now(), bytes: Buffer.concat(this.#pending) };
    this.#pending = [];
    this.#writes.push(write);
    this.#watcher.onWrite?.(write.at, write.bytes);
  }

  end(bytes?: Uint8Array): void {
    if (bytes) this.write(bytes);
    this.#finish('clean');
  }

  cut(): void {
    this.#finish('cut');
  }

  whole(status: number, headers: Readonly<Record<string, string>>, body: string | Uint8Array): void {
    if (this.open || this.#over) return;
    this.#begin(status, headers);
    if (body.length > 0) this.write(body);
    this.#finish('clean');
  }

  onGone(act: () => void): void {
    this.#gone.push(act);
  }

  leave(): void {
    this.#finish('left');
  }

  #begin(status: number, headers: Readonly<Record<string, string>>): void {
    this.#status = status;
    this.#headers = Object.entries(headers);
    this.#head = this.#time.now();
    this.#watcher.onHead?.(this.#head, status, this.#headers);
  }

  #finish(ended: VirtualExchange['ended']): void {
    if (this.#over) return;
    this.flush();
    this.#over = true;
    for (const act of this.#gone) act();
    this.#done({ sent: this.#sent, status: this.#status, headers: this.#headers, head: this.#head, writes: this.#writes, ended, end: this.#time.now() });
  }
}
