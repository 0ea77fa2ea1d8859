/** The main-thread side of the recorder: starts its thread, hands it requests, and gives back tapes. */
import type { EventLoopUtilization } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';
import type { Milliseconds } from '../report/sample';
import { now } from './clock';
import type { WireRequest } from './dialect/dialect';
import type { NetworkOptions, Timeouts } from './network';
import type { ExchangeFacts, FromRecorder, Part, ThreadData, ToRecorder } from './recorderMessages';
import type { Tape, TapeEnding, TapePhases } from './tape';

export type { Part } from './recorderMessages';

/** What the decoder knows about a running exchange; the recorder itself reads no text. */
export interface Progress {
  firstToken(): Milliseconds | null;
  /** The dialect's end marker has arrived. Asked at every part, so it must cost nothing. */
  ended(): boolean;
}

/** One request to record. Without `progress` the first body byte counts as a token. */
export interface RecordRequest {
  readonly id: string;
  readonly request: WireRequest;
  readonly timeouts: Timeouts;
  /** What it says decides the first-token limit, arms the stall limit and closes a stream that was left open. */
  readonly progress?: Progress;
}

/** Records exchanges in a thread of its own. */
export interface Recorder {
  /**
   * Resolves when the tape is whole; never rejects. New reads and phases are handed to `onPart` a few times a second, the last
   * ones at the end; all parts concatenate to the tape. Aborting closes the socket at once and resolves with ending `cancelled`.
   */
  record(shot: RecordRequest, onPart: ((part: Part) => void) | null, signal: AbortSignal): Promise<Tape>;
  /** Opens connections until `count` stand ready for the URL's origin; failures are left for the first request. */
  warm(url: string, count: number): Promise<void>;
  /** The canary's errors (arrival − send stamp, ms) since a stamp of the clock; empty where loopback cannot be used. */
  clockErrors(since: Milliseconds): Promise<readonly Milliseconds[]>;
  /** Share of time (0–1) its event loop was busy since the last call; the first call starts counting. */
  loopUse?(): number;
  close(): Promise<void>;
}

/** A stream that stays open after its end marker is closed by us after this long. */
const graceAfterEnd: Milliseconds = 1000;
const closeLimit: Milliseconds = 1000;

/** Starts a recorder. `script` is the path of the built recorder; `canary` (default true) runs its error measurement. Rejects when the thread does not start. */
export async function openRecorder(options: { readonly script: string; readonly network: NetworkOptions; readonly canary?: boolean }): Promise<Recorder> {
  const { script, network, canary = true } = options;
  const worker = new Worker(script, { workerData: { role: 'recorder', script, network, canary } satisfies ThreadData });
  const recorder = new ThreadRecorder(worker);
  await recorder.ready;
  return recorder;
}

class ThreadRecorder implements Recorder {
  readonly ready: Promise<void>;
  readonly #worker: Worker;
  readonly #running = new Map<string, Running>();
  readonly #calls = new Map<number, (errors: readonly Milliseconds[]) => void>();
  #nextCall = 0;
  #stopped: string | null = null;
  #loop: EventLoopUtilization | null = null;

  constructor(worker: Worker) {
    this.#worker = worker;
    this.ready = new Promise((resolve, reject) => {
      worker.on('message', (message: FromRecorder) => {
        if (message.type === 'ready') resolve();
        else this.#receive(message);
      });
      worker.on('error', (error: Error) => {
        reject(new Error(`The recorder did not start: ${error.message}`));
        this.#stop(error.message);
      });
      worker.on('exit', (code) => {
        reject(new Error(`The recorder ended with code ${code} before it was ready`));
        this.#stop(`exit code ${code}`);
      });
    });
  }

  record(shot: RecordRequest, onPart: ((part: Part) => void) | null, signal: AbortSignal): Promise<Tape> {
    return new Promise((resolve) => {
      const running = new Running(shot, onPart, this.#post, (tape) => {
        signal.removeEventListener('abort', cancel);
        this.#running.delete(shot.id);
        resolve(tape);
      });
      const cancel = (): void => {
        this.#post({ type: 'end', id: shot.id, ending: { kind: 'cancelled' } });
      };
      if (signal.aborted || this.#stopped !== null) {
        running.abandon(signal.aborted ? { kind: 'cancelled' } : { kind: 'closed', message: `The recorder has stopped (${this.#stopped}).` });
        return;
      }
      this.#running.set(shot.id, running);
      signal.addEventListener('abort', cancel, { once: true });
      running.begin();
    });
  }

  async warm(url: string, count: number): Promise<void> {
    await this.#call((call) => ({ type: 'warm', call, url, count }));
  }

  clockErrors(since: Milliseconds): Promise<readonly Milliseconds[]> {
    return this.#call((call) => ({ type: 'clockErrors', call, since }));
  }

  loopUse(): number {
    if (this.#stopped !== null) return 0;
    const before = this.#loop;
    this.#loop = this.#worker.performance.eventLoopUtilization();
    return before === null ? this.#loop.utilization : this.#worker.performance.eventLoopUtilization(this.#loop, before).utilization;
  }

  async close(): Promise<void> {
    if (this.#stopped !== null) return;
    let timer: NodeJS.Timeout | undefined;
    const patience = new Promise<void>((resolve) => {
      timer = setTimeout(resolve, closeLimit);
    });
    await Promise.race([this.#call((call) => ({ type: 'close', call })), patience]);
    clearTimeout(timer);
    await this.#worker.terminate();
  }

  readonly #post = (message: ToRecorder): void => {
    this.#worker.postMessage(message);
  };

  #call(message: (call: number) => ToRecorder): Promise<readonly Milliseconds[]> {
    if (this.#stopped !== null) return Promise.resolve([]);
    const call = (this.#nextCall += 1);
    return new Promise((resolve) => {
      this.#calls.set(call, resolve);
      this.#post(message(call));
    });
  }

  #receive(message: Exclude<FromRecorder, { type: 'ready' }>): void {
    switch (message.type) {
      case 'part':
        this.#running.get(message.id)?.receive(message.part, message.flushed);
        return;
      case 'tape':
        this.#running.get(message.id)?.finish(message.rest, message.facts);
        return;
      case 'answer':
        this.#calls.get(message.call)?.(message.errors);
        this.#calls.delete(message.call);
        return;
      default:
        message satisfies never;
    }
  }

  #stop(reason: string): void {
    this.#stopped ??= reason;
    for (const running of [...this.#running.values()]) running.abandon({ kind: 'closed', message: `The recorder stopped (${reason}).` });
    for (const resolve of this.#calls.values()) resolve([]);
    this.#calls.clear();
  }
}

/** One exchange as the main thread sees it: the parts so far, and the limits that need a decoder's answer. */
class Running {
  readonly #shot: RecordRequest;
  readonly #onPart: ((part: Part) => void) | null;
  readonly #post: (message: ToRecorder) => void;
  readonly #resolve: (tape: Tape) => void;
  readonly #began = now();
  readonly #parts: Part[] = [];
  #phases: TapePhases;
  #tokenTold = false;
  #deadline: NodeJS.Timeout | null = null;
  #grace: NodeJS.Timeout | null = null;

  constructor(shot: RecordRequest, onPart: ((part: Part) => void) | null, post: (message: ToRecorder) => void, resolve: (tape: Tape) => void) {
    this.#shot = shot;
    this.#onPart = onPart;
    this.#post = post;
    this.#resolve = resolve;
    this.#phases = { start: this.#began, dns: null, connected: null, secured: null, written: null, sent: null, headers: null, bodyEnd: null };
  }

  begin(): void {
    const { id, request, timeouts, progress } = this.#shot;
    this.#post({ type: 'record', id, request, live: this.#onPart !== null || progress !== undefined, stall: timeouts.stall, total: timeouts.total, byteIsToken: progress === undefined });
    if (timeouts.firstToken !== null) this.#arm(timeouts.firstToken);
  }

  receive(part: Part, flushed: boolean): void {
    this.#accept(part);
    const firstToken = this.#firstToken();
    if (firstToken !== null && !this.#tokenTold) {
      this.#tokenTold = true;
      this.#post({ type: 'token', id: this.#shot.id });
    }
    // Not put off by what still comes: a server may go on sending pings for ever.
    if (!this.#grace && this.#shot.progress?.ended()) {
      this.#grace = setTimeout(() => {
        this.#end({ kind: 'closed', message: 'The server left the stream open after its end marker.' });
      }, graceAfterEnd);
    }
    if (flushed) this.#judgeFirstToken(firstToken);
  }

  finish(rest: Part, facts: ExchangeFacts): void {
    this.#accept(rest);
    this.#settle(facts, rest.status, rest.headers);
  }

  /** Ends it without a word from the thread. */
  abandon(ending: TapeEnding): void {
    const last = this.#parts.at(-1);
    this.#settle({ reused: false, redispatched: false, alpn: null, ending }, last?.status ?? null, last?.headers ?? []);
  }

  #accept(part: Part): void {
    this.#parts.push(part);
    this.#phases = part.phases;
    this.#onPart?.(part);
  }

  #firstToken(): Milliseconds | null {
    if (this.#shot.progress) return this.#shot.progress.firstToken();
    return this.#parts.find((part) => part.stamps.length > 0)?.stamps[0] ?? null;
  }

  #arm(after: Milliseconds): void {
    this.#deadline = setTimeout(() => {
      this.#post({ type: 'flush', id: this.#shot.id });
    }, after);
  }

  /** All bytes read up to the deadline are here now, so a token that came in time cannot be missed. */
  #judgeFirstToken(firstToken: Milliseconds | null): void {
    const limit = this.#shot.timeouts.firstToken!;
    const left = this.#phases.start + limit - now();
    if (firstToken !== null && firstToken <= this.#phases.start + limit) return;
    if (firstToken === null && left > 0) this.#arm(Math.ceil(left));
    else this.#end({ kind: 'timeout-first-token', limit });
  }

  #end(ending: TapeEnding): void {
    this.#post({ type: 'end', id: this.#shot.id, ending });
  }

  #settle(facts: ExchangeFacts, status: number | null, headers: Part['headers']): void {
    if (this.#deadline) clearTimeout(this.#deadline);
    if (this.#grace) clearTimeout(this.#grace);
    this.#resolve({ id: this.#shot.id, ...joined(this.#parts), phases: this.#phases, status, headers, ...facts });
  }
}

function joined(parts: readonly Part[]): Pick<Tape, 'stamps' | 'ends' | 'bytes'> {
  if (parts.length === 1) return parts[0]!;
  const reads = parts.reduce((sum, part) => sum + part.stamps.length, 0);
  const stamps = new Float64Array(reads);
  const ends = new Uint32Array(reads);
  const bytes = new Uint8Array(parts.reduce((sum, part) => sum + part.bytes.length, 0));
  let read = 0;
  let at = 0;
  for (const part of parts) {
    stamps.set(part.stamps, read);
    ends.set(part.ends, read);
    bytes.set(part.bytes, at);
    read += part.stamps.length;
    at += part.bytes.length;
  }
  return { stamps, ends, bytes };
}
