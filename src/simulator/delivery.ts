/** Puts one answer on the wire: stamps every frame just before it is written, and plays the faults that happen inside a stream. */
import { gzipSync } from 'node:zlib';
import type { Piece } from './answer';
import type { Problem, Tally, Voice, WireFrame } from './face/face';
import { findFault, type Fault } from './faults';
import type { Truth, TruthStore } from './truth';

/** Stands for bytes that are not UTF-8 until the frame is encoded; the code point is private, no answer holds it. */
const badBytesMark = '\uE0BA';

/** A clock with an alarm: real or virtual, ms. */
export interface Timeline {
  now(): number;
  /** Calls `act` at time `at` or soon after; the answer takes it back. */
  wake(at: number, act: () => void): () => void;
}

/** The sending end of one exchange. Nothing throws when the client has gone. */
export interface Wire {
  /** Whether the response head has been sent. */
  readonly open: boolean;
  /** Sends the head of a streamed answer. */
  head(headers: Readonly<Record<string, string>>): void;
  write(bytes: string | Uint8Array): void;
  /** What was written leaves now. */
  flush(): void;
  end(bytes?: Uint8Array): void;
  /** Breaks the connection. */
  cut(): void;
  /** Sends a whole answer. */
  whole(status: number, headers: Readonly<Record<string, string>>, body: string | Uint8Array): void;
  /** Called when the exchange is over, however it ended. */
  onGone(act: () => void): void;
}

/** What a delivery needs to know. `stop` is called when a fault ends the answer early. */
export interface DeliveryOptions {
  readonly wire: Wire;
  readonly time: Timeline;
  readonly voice: Voice;
  readonly faults: readonly Fault[];
  readonly truth: Truth;
  readonly store: TruthStore;
  readonly headers: Readonly<Record<string, string>>;
  readonly random: () => number;
  readonly stop: () => void;
}

type Batch = readonly WireFrame[] | 'end' | 'cut';

/** One streamed answer. Frames leave in the order they were given, at once unless a fault holds them. */
export class Delivery {
  readonly #options: DeliveryOptions;
  readonly #held: { readonly at: number; readonly batch: Batch }[] = [];
  readonly #zipped: Buffer[] = [];
  #takeBack: (() => void) | null = null;
  #stopComments: (() => void) | null = null;
  /** Tokens handed over so far, and the time before which nothing may leave. */
  #tokens = 0;
  #notBefore = 0;
  #closed = false;
  #opened = false;
  readonly #played = new Set<Fault['kind']>();

  constructor(options: DeliveryOptions) {
    this.#options = options;
  }

  /** Sends the response head. */
  head(): void {
    const { wire, voice, headers } = this.#options;
    if (wire.open) return;
    const encoding = this.#fault('gzip') ? { 'content-encoding': 'gzip' } : {};
    wire.head({ 'content-type': voice.contentType, 'cache-control': 'no-cache', ...voice.headers, ...encoding, ...headers });
    const comments = this.#fault('comments');
    if (comments && voice.contentType.startsWith('text/event-stream')) this.#comment(comments.ms);
  }

  #comment(every: number): void {
    const { wire, time } = this.#options;
    this.#stopComments = time.wake(time.now() + every, () => {
      wire.write(': still working\n\n');
      wire.flush();
      this.#comment(every);
    });
  }

  /** Sends the pieces of one emission, with what comes before the first of them. */
  say(pieces: readonly Piece[], tally: Tally): void {
    if (this.#closed) return;
    this.#open(tally);
    if (this.#fault('empty')) return;
    const { voice } = this.#options;
    const told = pieces.map((piece) => this.#altered(piece));
    const frames = voice.say(told, tally);
    if (this.#interrupted()) return;
    if (this.#tokens === 0) this.#hold(this.#fault('slow-first')?.ms ?? 0);
    this.#send(this.#broken(frames));
    this.#tokens += pieces.reduce((sum, piece) => sum + piece.ids.length, 0);
  }

  /** Sends what comes after the last token and ends the response. */
  close(frames: readonly WireFrame[], tally: Tally): void {
    if (this.#closed) return;
    this.#open(tally);
    if (this.#interrupted()) return;
    this.#send(frames);
    this.#finish('end');
  }

  /** Ends the stream with an error inside it. */
  fail(problem: Problem): void {
    if (this.#closed) return;
    this.#send(this.#options.voice.fail(problem));
    this.#finish('end');
  }

  /** Breaks the connection. */
  cut(): void {
    if (!this.#closed) this.#finish('cut');
  }

  /** Forgets what is held; the client has gone. */
  dispose(): void {
    this.#closed = true;
    this.#held.length = 0;
    this.#takeBack?.();
    this.#stopComments?.();
  }

  #fault<K extends Fault['kind']>(kind: K): Extract<Fault, { kind: K }> | null {
    return findFault(this.#options.faults, kind);
  }

  #open(tally: Tally): void {
    this.head();
    if (this.#opened) return;
    this.#opened = true;
    this.#send(this.#options.voice.open(tally));
  }

  #altered(piece: Piece): Piece {
    const huge = this.#fault('huge');
    if (huge && this.#tokens === 0) return { ...piece, text: 'latency '.repeat(Math.ceil(huge.bytes / 8)).slice(0, huge.bytes) };
    return this.#due('bad-utf8') ? { ...piece, text: piece.text + badBytesMark } : piece;
  }

  #broken(frames: WireFrame[]): WireFrame[] {
    if (!this.#due('malformed')) return frames;
    return frames.map(({ data, tokens }) => ({ tokens, data: typeof data === 'string' ? data.replace(/\{[^]*\}/, (json) => json.slice(0, json.length / 2)) : data.subarray(0, data.length / 2) }));
  }

  /** True the first time that enough tokens are out for a fault of this kind. */
  #due(kind: 'error-frame' | 'cut' | 'truncate' | 'stall' | 'bad-utf8' | 'malformed'): boolean {
    const fault = this.#fault(kind);
    if (!fault || this.#tokens < fault.after || this.#played.has(kind)) return false;
    this.#played.add(kind);
    return true;
  }

  /** Plays the faults that interrupt or end a stream. True when the answer is over. */
  #interrupted(): boolean {
    if (this.#due('stall')) this.#hold(this.#fault('stall')!.ms);
    if (this.#due('error-frame')) this.fail({ status: 500, code: 'internal_error', message: 'The engine died while it was generating (simulated).' });
    else if (this.#due('cut')) this.#finish('cut');
    else if (this.#due('truncate')) this.#finish('end');
    if (this.#closed) this.#options.stop();
    return this.#closed;
  }

  #hold(ms: number): void {
    if (ms > 0) this.#notBefore = Math.max(this.#notBefore, this.#options.time.now() + ms);
  }

  #finish(how: 'end' | 'cut'): void {
    this.#queue(how);
    this.#closed = true;
  }

  #send(frames: readonly WireFrame[]): void {
    if (frames.length === 0) return;
    const jitter = this.#fault('jitter');
    if (jitter) this.#notBefore = Math.max(this.#notBefore, this.#options.time.now() + this.#options.random() * jitter.ms);
    const buffer = this.#fault('buffer');
    if (buffer) this.#notBefore = Math.max(this.#notBefore, Math.ceil(this.#options.time.now() / buffer.ms) * buffer.ms);
    this.#queue(frames);
  }

  #queue(batch: Batch): void {
    if (this.#held.length === 0 && this.#notBefore <= this.#options.time.now()) this.#write(batch);
    else {
      this.#held.push({ at: this.#notBefore, batch });
      this.#wait();
    }
  }

  #wait(): void {
    const next = this.#held[0];
    if (!next || this.#takeBack || next.at === Infinity) return;
    const { time } = this.#options;
    this.#takeBack = time.wake(next.at, () => {
      this.#takeBack = null;
      while (this.#held.length > 0 && this.#held[0]!.at <= time.now()) this.#write(this.#held.shift()!.batch);
      this.#wait();
    });
  }

  #write(batch: Batch): void {
    const { wire } = this.#options;
    this.#stopComments?.();
    if (batch === 'cut') wire.cut();
    else if (batch === 'end') wire.end(this.#fault('gzip') ? gzipSync(Buffer.concat(this.#zipped)) : undefined);
    else {
      for (const frame of batch) this.#writeFrame(frame);
      wire.flush();
    }
  }

  #writeFrame({ data, tokens }: WireFrame): void {
    const { wire, store, truth, time } = this.#options;
    const bytes = typeof data === 'string' && data.includes(badBytesMark) ? spoiled(data) : data;
    store.frame(truth, time.now(), tokens);
    if (this.#fault('gzip')) this.#zipped.push(Buffer.from(bytes as string));
    else wire.write(bytes);
  }
}

function spoiled(data: string): Buffer {
  const at = data.indexOf(badBytesMark);
  return Buffer.concat([Buffer.from(data.slice(0, at)), Buffer.of(0xff, 0xfe, 0x80), Buffer.from(data.slice(at + 1))]);
}
