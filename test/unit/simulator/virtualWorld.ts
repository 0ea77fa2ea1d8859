/** The seams of a run over a simulated server in virtual time: real plans, real decoding, no socket and no waiting. */
import type { Part, Recorder, RecordRequest } from '../../../src/probe/recording';
import type { RunSeams } from '../../../src/probe/run';
import type { Tape, TapeEnding } from '../../../src/probe/tape';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { VirtualServer, type VirtualExchange } from '../../../src/simulator/virtualServer';

/** Seams of a run, and the server behind them. */
export interface VirtualWorld extends RunSeams {
  readonly server: VirtualServer;
  open(): Promise<Recorder>;
}

/** A world whose only server has these simulator flags. Time starts at 0 and moves only while somebody waits. */
export function virtualWorld(flags: readonly string[]): VirtualWorld {
  const server = new VirtualServer(parseSimulatorArgs(flags));
  const recorder: Recorder = {
    record: (shot, onPart, signal) => new Recording(server, shot, onPart, signal).tape(),
    warm: () => Promise.resolve(),
    clockErrors: () => Promise.resolve([0]),
    close: () => Promise.resolve(),
  };
  return { server, now: () => server.now(), sleep: (ms, signal) => server.sleep(ms, signal), open: () => Promise.resolve(recorder) };
}

/** One exchange with its limits, as the recorder would keep it. */
class Recording {
  readonly #server: VirtualServer;
  readonly #shot: RecordRequest;
  readonly #onPart: ((part: Part) => void) | null;
  readonly #signal: AbortSignal;
  readonly #hangUp = new AbortController();
  readonly #over = new AbortController();
  readonly #start: number;
  #ending: TapeEnding | null = null;
  #facts: { status: number | null; headers: VirtualExchange['headers']; head: number | null } = { status: null, headers: [], head: null };
  #lastWrite: number | null = null;
  #handed = 0;

  constructor(server: VirtualServer, shot: RecordRequest, onPart: ((part: Part) => void) | null, signal: AbortSignal) {
    this.#server = server;
    this.#shot = shot;
    this.#onPart = onPart;
    this.#signal = signal;
    this.#start = server.now();
  }

  async tape(): Promise<Tape> {
    const { request, timeouts, id } = this.#shot;
    const cancel = (): void => this.#stop({ kind: 'cancelled' });
    if (this.#signal.aborted) cancel();
    this.#signal.addEventListener('abort', cancel, { once: true });
    if (timeouts.total !== null) void this.#limit(timeouts.total, { kind: 'timeout-total', limit: timeouts.total });
    if (timeouts.firstToken !== null) void this.#limit(timeouts.firstToken, { kind: 'timeout-first-token', limit: timeouts.firstToken }, () => !this.#hasToken());
    if (timeouts.stall !== null) void this.#watchStall(timeouts.stall);
    const url = new URL(request.url);
    const exchange = await this.#server.exchange(
      { method: request.method, path: url.pathname + url.search, headers: request.headers, body: request.body },
      {
        signal: this.#hangUp.signal,
        onHead: (head, status, headers) => {
          this.#facts = { status, headers, head };
        },
        onWrite: (at, bytes) => {
          this.#lastWrite = at;
          // The run's decoder must know when the first token came; what follows is read from the tape.
          if (this.#onPart && !this.#hasToken()) this.#hand(this.#onPart, at, bytes);
        },
      },
    );
    this.#over.abort();
    this.#signal.removeEventListener('abort', cancel);
    return this.#assemble(id, exchange);
  }

  #hasToken(): boolean {
    return this.#shot.progress ? this.#shot.progress.firstToken() !== null : this.#lastWrite !== null;
  }

  #hand(onPart: (part: Part) => void, at: number, bytes: Uint8Array): void {
    this.#handed += 1;
    onPart({ stamps: Float64Array.of(at), ends: Uint32Array.of(bytes.length), bytes: new Uint8Array(bytes), phases: this.#phases(null), status: this.#facts.status, headers: this.#facts.headers });
  }

  #stop(ending: TapeEnding): void {
    this.#ending ??= ending;
    this.#hangUp.abort();
  }

  async #limit(ms: number, ending: TapeEnding, applies: () => boolean = () => true): Promise<void> {
    await this.#server.sleep(ms, this.#over.signal);
    if (!this.#over.signal.aborted && applies()) this.#stop(ending);
  }

  async #watchStall(limit: number): Promise<void> {
    while (!this.#over.signal.aborted) {
      const since = this.#server.now() - (this.#lastWrite ?? this.#server.now());
      if (this.#hasToken() && since >= limit) return this.#stop({ kind: 'timeout-stall', limit });
      await this.#server.sleep(Math.max(1, limit - since), this.#over.signal);
    }
  }

  #phases(bodyEnd: number | null): Tape['phases'] {
    return { start: this.#start, dns: null, connected: null, secured: null, written: this.#start, sent: this.#start, headers: this.#facts.head, bodyEnd };
  }

  #assemble(id: string, exchange: VirtualExchange): Tape {
    let length = 0;
    const ends = Uint32Array.from(exchange.writes, ({ bytes }) => (length += bytes.length));
    const ending = this.#ending ?? (exchange.ended === 'clean' ? { kind: 'complete' as const } : { kind: 'closed' as const, message: 'The connection broke (simulated).' });
    if (this.#onPart) for (const { at, bytes } of exchange.writes.slice(this.#handed)) this.#hand(this.#onPart, at, bytes);
    return {
      id,
      stamps: Float64Array.from(exchange.writes, ({ at }) => at),
      ends,
      bytes: new Uint8Array(Buffer.concat(exchange.writes.map(({ bytes }) => bytes))),
      phases: this.#phases(exchange.end),
      status: exchange.status,
      headers: exchange.headers,
      reused: true,
      alpn: null,
      ending,
    };
  }
}
