/**
 * The recorder's thread. Per socket read it takes the clock and keeps the buffer, nothing else: no text, no JSON, no timer per token.
 * Its event loop is its own, so nothing in the editor can move a stamp.
 */
import { parentPort, workerData } from 'node:worker_threads';
import type { Milliseconds } from '../report/sample';
import { openCanary, runCanarySender, type Canary } from './canary';
import { now } from './clock';
import { openConnections, type Connections, type Exchange, type ExchangeEvents, type LinkInfo } from './connection';
import { defaultNetwork } from './network';
import type { FromRecorder, Part, ThreadData, ToRecorder } from './recorderMessages';
import type { TapeEnding } from './tape';

const handOverPeriod: Milliseconds = 200;
const limitPeriod: Milliseconds = 50;
const rehearsals = 5;
/** A body beyond this is cut off: it would fill the memory, and is no answer. */
const mostBytes = 128 * 1024 * 1024;
/** A tape's headers never hold what a server meant for a browser's cookie jar. */
const droppedHeaders = new Set(['set-cookie', 'set-cookie2']);

type RecordMessage = Extract<ToRecorder, { type: 'record' }>;

/** One exchange being recorded. */
class Recording implements ExchangeEvents {
  readonly message: RecordMessage;
  readonly start = now();
  exchange: Exchange | null = null;
  ending: TapeEnding | null = null;
  done = false;
  hasToken = false;
  lastRead: Milliseconds | null = null;
  readonly #post: (recording: Recording) => void;
  #stamps: number[] = [];
  #ends: number[] = [];
  #chunks: Uint8Array[] = [];
  #size = 0;
  #handedOver = 0;
  #read = -1;
  /** A phase was reached since the last part: a live view shows a request before its first byte. */
  #phaseReached = false;
  #link: LinkInfo | null = null;
  #written: Milliseconds | null = null;
  #sent: Milliseconds | null = null;
  #headersAt: Milliseconds | null = null;
  #bodyEnd: Milliseconds | null = null;
  #status: number | null = null;
  #headers: readonly (readonly [string, string])[] = [];

  constructor(message: RecordMessage, post: (recording: Recording) => void) {
    this.message = message;
    this.#post = post;
  }

  opened(info: LinkInfo): void {
    this.#link = info;
  }
  written(t: Milliseconds): void {
    this.#written = t;
    this.#phaseReached = true;
  }
  sent(t: Milliseconds): void {
    this.#sent = t;
  }
  head(t: Milliseconds, status: number, headers: readonly (readonly [string, string])[]): void {
    this.#headersAt = t;
    this.#phaseReached = true;
    this.#status = status;
    this.#headers = headers.filter(([name]) => !droppedHeaders.has(name));
  }
  data(t: Milliseconds, read: number, chunk: Uint8Array): void {
    this.#size += chunk.length;
    if (read === this.#read) {
      this.#ends[this.#ends.length - 1] = this.#size;
    } else {
      this.#read = read;
      this.lastRead = t;
      this.#stamps.push(t);
      this.#ends.push(this.#size);
    }
    this.#chunks.push(chunk);
    if (this.#size > mostBytes) this.end({ kind: 'closed', message: `The answer was cut off at ${mostBytes / (1024 * 1024)} MB.` });
  }
  ended(t: Milliseconds): void {
    this.#finish(t, { kind: 'complete' });
  }
  failed(t: Milliseconds, failure: { readonly kind: 'dns' | 'connect' | 'tls' | 'closed'; readonly message: string }): void {
    this.#finish(t, failure);
  }

  /** Ends it from our side: the socket is closed in this tick and what was recorded is kept. */
  end(ending: TapeEnding): void {
    if (this.done) return;
    this.ending = ending;
    this.exchange?.abort();
    this.#finish(now(), ending);
  }

  /** The reads since the last call. */
  part(): Part {
    const bytes = new Uint8Array(this.#size - this.#handedOver);
    let at = 0;
    for (const chunk of this.#chunks) {
      bytes.set(chunk, at);
      at += chunk.length;
    }
    const part: Part = {
      stamps: Float64Array.from(this.#stamps),
      ends: Uint32Array.from(this.#ends),
      bytes,
      phases: {
        start: this.start,
        dns: this.#link?.dns ?? null,
        connected: this.#link?.connected ?? null,
        secured: this.#link?.secured ?? null,
        written: this.#written,
        sent: this.#sent,
        headers: this.#headersAt,
        bodyEnd: this.#bodyEnd,
      },
      status: this.#status,
      headers: this.#headers,
    };
    this.#handedOver = this.#size;
    this.#stamps = [];
    this.#ends = [];
    this.#chunks = [];
    this.#read = -1;
    this.#phaseReached = false;
    return part;
  }

  get hasNews(): boolean {
    return this.#phaseReached || this.#stamps.length > 0;
  }
  get facts(): { reused: boolean; redispatched: boolean; alpn: string | null; ending: TapeEnding } {
    return { reused: this.#link?.reused ?? false, redispatched: this.#link?.redispatched ?? false, alpn: this.#link?.alpn ?? null, ending: this.ending! };
  }

  #finish(t: Milliseconds, ending: TapeEnding): void {
    if (this.done) return;
    this.done = true;
    this.ending ??= ending;
    if (this.#headersAt !== null) this.#bodyEnd = t;
    this.#post(this);
  }
}

function runRecorder(port: NonNullable<typeof parentPort>, canaryScript: string | null, connections: Connections): void {
  const active = new Map<string, Recording>();
  const post = (message: FromRecorder, part?: Part): void => {
    port.postMessage(message, part ? [part.stamps.buffer, part.ends.buffer, part.bytes.buffer] : []);
  };
  const canary: Promise<Canary | null> = canaryScript === null ? Promise.resolve(null) : openCanary(canaryScript).catch(() => null);

  const handOver = (recording: Recording, flushed: boolean): void => {
    const part = recording.part();
    post({ type: 'part', id: recording.message.id, part, flushed }, part);
  };
  const finish = (recording: Recording): void => {
    active.delete(recording.message.id);
    const rest = recording.part();
    post({ type: 'tape', id: recording.message.id, rest, facts: recording.facts }, rest);
  };
  const enforceLimits = (): void => {
    const t = now();
    for (const recording of active.values()) {
      const { stall, total, byteIsToken } = recording.message;
      if (total !== null && t - recording.start > total) recording.end({ kind: 'timeout-total', limit: total });
      else if (stall !== null && recording.lastRead !== null && (recording.hasToken || byteIsToken) && t - recording.lastRead > stall) recording.end({ kind: 'timeout-stall', limit: stall });
    }
  };
  setInterval(() => {
    for (const recording of active.values()) if (recording.message.live && recording.hasNews) handOver(recording, false);
  }, handOverPeriod);
  setInterval(enforceLimits, limitPeriod);

  const record = (message: RecordMessage): void => {
    const recording = new Recording(message, finish);
    active.set(message.id, recording);
    try {
      recording.exchange = connections.send(message.request, recording);
    } catch (error) {
      recording.failed(now(), { kind: 'connect', message: error instanceof Error ? error.message : String(error) });
    }
  };
  const answer = (call: number, errors: readonly Milliseconds[] = []): void => {
    post({ type: 'answer', call, errors });
  };

  port.on('message', (message: ToRecorder) => {
    switch (message.type) {
      case 'record':
        record(message);
        return;
      case 'token': {
        const recording = active.get(message.id);
        if (recording) recording.hasToken = true;
        return;
      }
      case 'flush': {
        const recording = active.get(message.id);
        if (recording) handOver(recording, true);
        return;
      }
      case 'end':
        active.get(message.id)?.end(message.ending);
        return;
      case 'warm':
        void connections.warm(message.url, message.count).then(
          () => {
            answer(message.call);
          },
          () => {
            answer(message.call);
          },
        );
        return;
      case 'clockErrors':
        void canary.then((running) => {
          answer(message.call, running?.errors(message.since));
        });
        return;
      case 'close':
        for (const recording of [...active.values()]) recording.end({ kind: 'cancelled' });
        void Promise.allSettled([connections.close(), canary.then((running) => running?.close())]).then(() => {
          answer(message.call);
          port.close();
          process.exit(0);
        });
        return;
      default:
        message satisfies never;
    }
  });
  void canary
    .then((running) => running && rehearse(running.rehearsalUrl))
    .catch(() => undefined)
    .then(() => {
      post({ type: 'ready' });
    });
}

/** A few exchanges on loopback, so that the first measured one does not pay for loading and compiling the HTTP client. */
async function rehearse(url: string): Promise<void> {
  const connections = openConnections({ ...defaultNetwork, proxy: 'none' });
  for (let k = 0; k < rehearsals; k += 1) {
    await new Promise<void>((resolve) => {
      const message: RecordMessage = { type: 'record', id: 'rehearsal', request: { method: 'POST', url, headers: {}, body: '{}' }, live: false, stall: null, total: null, byteIsToken: true };
      const recording = new Recording(message, () => {
        resolve();
      });
      recording.exchange = connections.send(message.request, recording);
    });
  }
  await connections.close();
}

const thread = workerData as ThreadData | null;
if (parentPort && thread?.role === 'canary') runCanarySender();
else if (parentPort && thread?.role === 'recorder') runRecorder(parentPort, thread.canary ? thread.script : null, openConnections(thread.network));
