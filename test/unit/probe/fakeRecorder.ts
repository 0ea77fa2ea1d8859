/** A recorder without a network: answers are tapes made at once, on a clock the test moves. For what a run does, not for what it measures. */
import type { WireRequest } from '../../../src/probe/dialect/dialect';
import type { Part, Recorder, RecordRequest } from '../../../src/probe/recording';
import type { RunSeams } from '../../../src/probe/run';
import type { Tape } from '../../../src/probe/tape';

/** What a fake server answers: text pieces of one read each, or an ending. */
export interface FakeAnswer {
  readonly status?: number;
  readonly headers?: readonly (readonly [string, string])[];
  readonly reads?: readonly string[];
  readonly ending?: Tape['ending'];
  /** ms of the fake clock from start to head, and between reads. */
  readonly wait?: number;
  /** Never answers until it is cancelled. */
  readonly hangs?: boolean;
}

/** A whole chat stream of `tokens` one-token chunks with usage. */
export function chatStream(tokens: number, usage: Readonly<Record<string, unknown>> = {}): string[] {
  const chunk = (value: unknown): string => `data: ${JSON.stringify(value)}\n\n`;
  return [
    chunk({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] }),
    ...Array.from({ length: tokens }, (_, k) => chunk({ choices: [{ index: 0, delta: { content: `w${k} ` } }] })),
    chunk({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }),
    chunk({ choices: [], usage: { prompt_tokens: 10, completion_tokens: tokens, ...usage } }),
    'data: [DONE]\n\n',
  ];
}

/** The world of a run: its clock, what was sent, how many were in flight at most. */
export interface FakeWorld extends RunSeams {
  readonly sent: { readonly id: string; readonly request: WireRequest; readonly at: number; readonly inFlight: number }[];
  readonly warmed: { readonly url: string; readonly count: number }[];
  readonly slept: number[];
  closed: number;
  opened: number;
}

/** A world whose server answers by `answer`, called with the request and how many came before. */
export function fakeWorld(answer: (request: WireRequest, index: number) => FakeAnswer): FakeWorld {
  let time = 1000;
  let inFlight = 0;
  const world: FakeWorld = {
    sent: [],
    warmed: [],
    slept: [],
    closed: 0,
    opened: 0,
    now: () => time,
    sleep: async (ms, signal) => {
      world.slept.push(ms);
      await tick();
      if (!signal.aborted) time += ms;
    },
    open: () => {
      world.opened += 1;
      return Promise.resolve(recorder);
    },
  };
  const recorder: Recorder = {
    async record(shot: RecordRequest, onPart: ((part: Part) => void) | null, signal: AbortSignal): Promise<Tape> {
      const index = world.sent.length;
      inFlight += 1;
      world.sent.push({ id: shot.id, request: shot.request, at: time, inFlight });
      const { status = 200, headers = [['content-type', 'text/event-stream']], reads = [], ending = { kind: 'complete' }, wait = 10, hangs = false } = answer(shot.request, index);
      const start = time;
      await tick();
      if (hangs && !signal.aborted) await new Promise((resolve) => signal.addEventListener('abort', resolve, { once: true }));
      inFlight -= 1;
      const answered = ending.kind === 'complete' || reads.length > 0;
      const stamps = Float64Array.from(reads, (_, k) => start + wait * (k + 1));
      const bytes = new TextEncoder().encode(reads.join(''));
      let at = 0;
      const ends = Uint32Array.from(reads, (text) => (at += Buffer.byteLength(text)));
      const last = stamps.at(-1) ?? start + wait;
      time = Math.max(time, last);
      const phases = { start, dns: null, connected: null, secured: null, written: start, sent: start, headers: answered ? start + wait : null, bodyEnd: answered ? last : null };
      const facts = { status: answered ? status : null, headers: answered ? headers : [], phases };
      if (reads.length > 0) onPart?.({ stamps, ends, bytes: new Uint8Array(bytes), ...facts });
      return { id: shot.id, stamps, ends, bytes, ...facts, reused: true, alpn: null, ending: signal.aborted ? { kind: 'cancelled' } : ending };
    },
    warm(url, count) {
      world.warmed.push({ url, count });
      return Promise.resolve();
    },
    clockErrors: () => Promise.resolve([0.1, 0.2]),
    close() {
      world.closed += 1;
      return Promise.resolve();
    },
  };
  return world;
}

function tick(): Promise<void> {
  return new Promise((resolve) => setImmediate(resolve));
}
