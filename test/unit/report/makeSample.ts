import type { Delta, Sample } from '../../../src/report/sample';

/** What a test says of a sample; the rest follows as for a plain answer. */
export interface Wanted extends Partial<Omit<Sample, 'deltas' | 'connection' | 'outcome'>> {
  readonly deltas?: readonly Delta[];
  readonly connection?: Partial<Sample['connection']>;
  readonly outcome?: Sample['outcome'];
}

let made = 0;

/** A sample that keeps its own invariants unless told otherwise: stamps follow from the deltas, counts from their tokens. */
export function makeSample(wanted: Wanted = {}): Sample {
  made += 1;
  const start = wanted.start ?? 0;
  const deltas: readonly Delta[] = wanted.deltas ?? [[start + 100, 'text', 1], [start + 130, 'text', 1], [start + 160, 'text', 1]];
  const firstToken = deltas[0]?.[0] ?? null;
  const last = deltas.at(-1)?.[0] ?? null;
  const known = deltas.every((delta) => delta[2] !== null);
  const counted = known ? deltas.reduce((sum, delta) => sum + (delta[2] ?? 0), 0) : deltas.length;
  return {
    id: `s${made}`,
    role: 'measured',
    due: start,
    start,
    written: start + 0.2,
    sent: start + 0.3,
    headers: firstToken === null ? start + 1 : Math.min(firstToken, start + 20),
    firstFrame: firstToken,
    firstToken,
    firstVisible: deltas.find((delta) => delta[1] === 'text')?.[0] ?? null,
    last,
    end: last === null ? start + 2 : last + 1,
    outputTokens: { count: counted, source: known ? 'token_ids' : 'final-usage' },
    streamTokens: wanted.outputTokens?.count ?? counted,
    reasoningTokens: null,
    n1: deltas[0]?.[2] ?? null,
    promptTokens: 100,
    cachedTokens: null,
    outcome: { kind: 'ok' },
    finish: 'stop',
    visibleChars: deltas.map((delta) => (delta[1] === 'text' ? 4 : 0)),
    reads: new Set(deltas.map((delta) => delta[0])).size,
    maxDeltasPerRead: 1,
    bytes: 500,
    serverTimings: [],
    flags: [],
    labels: {},
    ...wanted,
    deltas,
    connection: { reused: true, dns: null, connected: null, secured: null, alpn: null, ...wanted.connection },
  };
}

/** An answer of `n` single-token frames, `gap` ms apart, the first after `wait` ms. */
export function steady(start: number, wait: number, gap: number, n: number, more: Wanted = {}): Sample {
  return makeSample({ start, deltas: Array.from({ length: n }, (_, i) => [start + wait + i * gap, 'text', 1] as const), ...more });
}

/** A request that failed before anything came. */
export function failed(start: number, outcome: Sample['outcome'], more: Wanted = {}): Sample {
  return makeSample({ start, deltas: [], headers: null, firstFrame: null, outcome, finish: null, outputTokens: { count: null, source: null }, streamTokens: null, promptTokens: null, ...more });
}
