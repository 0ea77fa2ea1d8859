/**
 * One request as measured, and the definition of every per-request metric. This is the only place where a metric is defined;
 * everything that shows a number gets it from here.
 */

/** Milliseconds as floating point, from one monotonic clock (`process.hrtime`). Rounded only in `format.ts`. */
export type Milliseconds = number;

/** What a delta carries. `token`: the server's token count grew without any text (half a character). */
export type DeltaKind = 'text' | 'reasoning' | 'tool' | 'token';

/**
 * Where a token count comes from, best first.
 * `final-usage` knows only the total; `deltas` is a lower bound; `tokenizer` is an estimate unless it is the endpoint's own.
 */
export type TokenSource =
  | 'token_ids'
  | 'server-count'
  | 'usage-difference'
  | 'logprobs'
  | 'one-per-event'
  | 'final-usage'
  | 'endpoint-tokenizer'
  | 'local-tokenizer'
  | 'deltas';

/** How a request ended: exactly one per request. */
export type OutcomeKind =
  | 'ok'
  | 'not-streaming'
  | 'dns'
  | 'connect'
  | 'tls'
  | 'status'
  | 'timeout-first-token'
  | 'timeout-stall'
  | 'timeout-total'
  | 'stream-error'
  | 'truncated'
  | 'malformed'
  | 'empty'
  | 'invalid'
  | 'cancelled';

/** The outcome with what is needed to act on it. `message` is the server's or the system's own words, redacted of keys. */
export interface Outcome {
  readonly kind: OutcomeKind;
  readonly message?: string;
  /** HTTP status of a `status` outcome. */
  readonly status?: number;
  /** Milliseconds the server asked to wait, from any form of Retry-After. */
  readonly retryAfter?: Milliseconds;
  /** First bytes of the error body or the raw error frame, redacted and bounded. */
  readonly raw?: string;
  /** A request field the server refused (400/422 naming it). */
  readonly refusedField?: string;
}

/** `[t, kind, tokens]`: arrival in ms from the report's window start, kind, tokens in the delta or null when unknown. */
export type Delta = readonly [t: Milliseconds, kind: DeltaKind, tokens: number | null];

/** Phases of the connection a request used. Times are stamps like `start`; null when reused or not applicable. */
export interface Connection {
  readonly reused: boolean;
  readonly dns: Milliseconds | null;
  readonly connected: Milliseconds | null;
  readonly secured: Milliseconds | null;
  readonly alpn: string | null;
}

/** A duration reported by the server itself, in its own definition. Never mixed with the client's numbers in one column. */
export interface ServerTiming {
  /** As the server names it, with its path: `timings.prompt_ms`, `x_groq.usage.queue_time`, `openai-processing-ms`. */
  readonly name: string;
  readonly ms: Milliseconds;
  /** What it covers, where known. */
  readonly covers: 'queue' | 'prefill' | 'decode' | 'ttft' | 'total' | 'load' | 'other';
}

/** One request as measured. Stamps are ms from the window's start; null = none. JSON-safe, holds no prompt and no answer text. */
export interface Sample {
  readonly id: string;
  /** `warmup` and `negotiation` samples lie outside the window and enter no statistic. */
  readonly role: 'measured' | 'warmup' | 'negotiation';
  readonly due: Milliseconds;
  readonly start: Milliseconds;
  readonly written: Milliseconds | null;
  readonly sent: Milliseconds | null;
  readonly headers: Milliseconds | null;
  readonly firstFrame: Milliseconds | null;
  readonly firstToken: Milliseconds | null;
  readonly firstVisible: Milliseconds | null;
  readonly last: Milliseconds | null;
  readonly end: Milliseconds | null;
  readonly connection: Connection;
  /** N: all output tokens, hidden reasoning included. */
  readonly outputTokens: { readonly count: number | null; readonly source: TokenSource | null };
  /** N_stream: N minus reasoning tokens that never appeared in the stream. */
  readonly streamTokens: number | null;
  readonly reasoningTokens: number | null;
  /** Tokens of the first delta; null when unknown (counts as 1). */
  readonly n1: number | null;
  readonly promptTokens: number | null;
  /** As the server says; null = it did not say. */
  readonly cachedTokens: number | null;
  readonly outcome: Outcome;
  readonly finish: string | null;
  readonly deltas: readonly Delta[];
  /** Visible characters of each delta, in the order of `deltas` (0 for reasoning, tool and token-only deltas); spreads N where token counts are unknown. */
  readonly visibleChars: readonly number[];
  /** Socket reads that held body bytes, and the most deltas one of them held. */
  readonly reads: number;
  readonly maxDeltasPerRead: number;
  readonly bytes: number;
  readonly serverTimings: readonly ServerTiming[];
  /** What the decoder or the reconciliation of counts noticed: `cached>prompt`, `reasoning>completion`, `unterminated-last-event` … */
  readonly flags: readonly string[];
  /** Free labels of a scenario: tenant, step, pair, prompt index. */
  readonly labels: Readonly<Record<string, string | number>>;
}

/** Time to first token: `firstToken − start` (ms). Reasoning counts. Null when no token came. */
export function ttft(s: Sample): Milliseconds | null {
  return since(s.start, s.firstToken);
}

/** Time to the first visible token: `firstVisible − start` (ms), what a reader waits for. Null when no answer text came. */
export function firstVisible(s: Sample): Milliseconds | null {
  return since(s.start, s.firstVisible);
}

/** Time to the first frame of any kind: `firstFrame − start` (ms). Null when no frame came. */
export function firstFrame(s: Sample): Milliseconds | null {
  return since(s.start, s.firstFrame);
}

/** Time to the response head: `headers − start` (ms). On servers that answer when a slot starts this is queueing. */
export function headersTime(s: Sample): Milliseconds | null {
  return since(s.start, s.headers);
}

/** Total latency: `last − start` (ms); for a JSON answer without a stream, the time to its end. Null when nothing came. */
export function total(s: Sample): Milliseconds | null {
  return since(s.start, s.last ?? (s.outcome.kind === 'not-streaming' ? s.end : null));
}

/** `end − last` (ms): usage frames and end markers, never part of the latency. Null when either is missing. */
export function streamTail(s: Sample): Milliseconds | null {
  return s.last === null ? null : since(s.last, s.end);
}

/** Differences of successive delta stamps (ms); empty with fewer than two deltas. */
export function chunkGaps(s: Sample): Milliseconds[] {
  const gaps: Milliseconds[] = [];
  for (let d = 1; d < s.deltas.length; d += 1) gaps.push(s.deltas[d]![0] - s.deltas[d - 1]![0]);
  return gaps;
}

/** True when more than one token came and all of them in one read: such a stream holds no pace, so TPOT and ITL are none. */
export function arrivedAtOnce(s: Sample): boolean {
  return s.firstToken !== null && s.firstToken === s.last && (s.deltas.length > 1 || (s.streamTokens ?? 0) > 1 || (s.n1 ?? 0) > 1);
}

/** Why a sample has no inter-token latencies. */
export type NoItl = 'no-second-delta' | 'one-read' | 'tokens-unknown' | 'counts-disagree';

/** More tokens than any answer has: a count above it is a server's mistake, and would fill the memory with values. */
const mostTokens = 2_000_000;

/**
 * Inter-token latencies (ms): a delta of k tokens after a gap g gives k values of g/k. Only where every k is known and both checks hold:
 * Σk = N_stream and Σ ITL = last − firstToken; otherwise the reason why there are none.
 */
export function itlOrReason(s: Sample): Milliseconds[] | NoItl {
  if (arrivedAtOnce(s)) return 'one-read';
  if (s.deltas.length < 2 || s.firstToken === null || s.last === null) return 'no-second-delta';
  let tokens = 0;
  for (const [, , k] of s.deltas) {
    if (k === null) return 'tokens-unknown';
    tokens += k;
  }
  if (s.streamTokens === null) return 'tokens-unknown';
  if (tokens !== s.streamTokens || tokens > mostTokens) return 'counts-disagree';
  const values: Milliseconds[] = [];
  let sum = 0;
  for (let d = 1; d < s.deltas.length; d += 1) {
    const k = s.deltas[d]![2] ?? 0;
    const gap = s.deltas[d]![0] - s.deltas[d - 1]![0];
    for (let i = 0; i < k; i += 1) values.push(gap / k);
    if (k > 0) sum += gap;
  }
  const span = s.last - s.firstToken;
  return Math.abs(sum - span) <= roundingError(span) ? values : 'counts-disagree';
}

/** Inter-token latencies (ms) as in {@link itlOrReason}, or null where they cannot be had. */
export function itl(s: Sample): Milliseconds[] | null {
  const values = itlOrReason(s);
  return typeof values === 'string' ? null : values;
}

/**
 * Time per output token (ms): `(last − firstToken) / (N_stream − n₁)`, n₁ being the tokens of the first delta (1 unless known).
 * Null when N_stream is unknown or ≤ n₁, and when the whole answer came in one read.
 */
export function tpot(s: Sample): Milliseconds | null {
  if (s.firstToken === null || s.last === null || s.streamTokens === null || arrivedAtOnce(s)) return null;
  const later = s.streamTokens - (s.n1 ?? 1);
  return later > 0 ? (s.last - s.firstToken) / later : null;
}

/** Prompt tokens per second that were not cached: `(prompt − cached) / TTFT`. Null when the server does not tell both, or nothing was left to compute. */
export function prefillRate(s: Sample): number | null {
  const wait = ttft(s);
  if (wait === null || wait <= 0 || s.promptTokens === null || s.cachedTokens === null) return null;
  const computed = s.promptTokens - s.cachedTokens;
  return computed > 0 ? (computed / wait) * 1000 : null;
}

/** Reader stall (ms), and whether the tokens per delta had to be spread by characters (shown with ≈). */
export interface ReaderStall {
  readonly ms: Milliseconds;
  readonly approximate: boolean;
}

/**
 * How long a reader at `pace` ms a token had to wait in all: r₀ = firstVisible; for visible token i arriving at aᵢ,
 * stall += max(0, aᵢ − (rᵢ₋₁ + pace)) and rᵢ = max(aᵢ, rᵢ₋₁ + pace). Null when no visible token came.
 */
export function readerStall(s: Sample, pace: Milliseconds): ReaderStall | null {
  if (s.firstVisible === null) return null;
  const { tokens, approximate } = visibleTokens(s);
  let read = Number.NEGATIVE_INFINITY;
  let stall = 0;
  for (let d = 0; d < s.deltas.length; d += 1) {
    const k = tokens[d] ?? 0;
    if (k === 0) continue;
    const arrival = s.deltas[d]![0];
    if (Number.isFinite(read)) stall += Math.max(0, arrival - (read + pace));
    // The tokens behind the first of a delta have arrived before the reader wants them: they only move him on.
    read = Math.max(arrival, read + pace) + (k - 1) * pace;
  }
  return Number.isFinite(read) ? { ms: stall, approximate } : null;
}

/** The stamps in the order they must have; those that are null are left out. */
const stampOrder = ['due', 'start', 'written', 'headers', 'firstToken', 'last', 'end'] as const;

/** The invariant `due ≤ start ≤ written ≤ headers ≤ firstToken ≤ last ≤ end` over the stamps that are present; the first pair that breaks it, or null. */
export function checkStamps(s: Sample): string | null {
  let before: (typeof stampOrder)[number] = 'due';
  for (const name of stampOrder) {
    const value = s[name];
    if (value === null) continue;
    if (!Number.isFinite(value)) return `${name} is not a number`;
    if (value < s[before]!) return `${name} before ${before}`;
    before = name;
  }
  return null;
}

/** The same sample with every stamp moved by `by` ms (times between stamps do not change). */
export function shiftSample(s: Sample, by: Milliseconds): Sample {
  if (by === 0) return s;
  const move = (t: Milliseconds | null): Milliseconds | null => (t === null ? null : t + by);
  const { dns, connected, secured } = s.connection;
  return {
    ...s,
    due: s.due + by,
    start: s.start + by,
    written: move(s.written),
    sent: move(s.sent),
    headers: move(s.headers),
    firstFrame: move(s.firstFrame),
    firstToken: move(s.firstToken),
    firstVisible: move(s.firstVisible),
    last: move(s.last),
    end: move(s.end),
    connection: { ...s.connection, dns: move(dns), connected: move(connected), secured: move(secured) },
    deltas: s.deltas.map(([t, kind, tokens]) => [t + by, kind, tokens] as const),
  };
}

/** The latest stamp a sample has: its end, or how far it came. */
export function lastStamp(s: Sample): Milliseconds {
  const { dns, connected, secured } = s.connection;
  return Math.max(...[s.start, dns, connected, secured, s.written, s.sent, s.headers, s.firstFrame, s.last, s.end].filter((t) => t !== null));
}

/** An answer came to its end: streamed (`ok`) or as one JSON body (`not-streaming`). Only these enter a latency distribution. */
export function completed(s: Sample): boolean {
  return s.outcome.kind === 'ok' || s.outcome.kind === 'not-streaming';
}

function since(from: Milliseconds, to: Milliseconds | null): Milliseconds | null {
  return to === null ? null : to - from;
}

/** Stamps are sums and differences of doubles: two ways to the same span may differ by this much. */
function roundingError(span: Milliseconds): Milliseconds {
  return 1e-6 * Math.max(1, span);
}

/** Visible tokens of each delta: as the server counts them, or the visible part of N spread over the text by characters. */
function visibleTokens(s: Sample): { tokens: number[]; approximate: boolean } {
  const visible = s.deltas.map((delta, d) => delta[1] === 'text' && (s.visibleChars[d] ?? 1) > 0);
  if (s.deltas.every((delta, d) => !visible[d] || delta[2] !== null)) {
    // A text delta whose token was counted earlier still shows something: the reader sees at least one piece at firstVisible.
    const first = visible.indexOf(true);
    return { tokens: s.deltas.map((delta, d) => (visible[d] ? Math.max(delta[2] ?? 0, d === first ? 1 : 0) : 0)), approximate: false };
  }
  const pieces = visible.filter(Boolean).length;
  const shown = visibleCount(s, pieces);
  const characters = s.deltas.map((_, d) => (visible[d] ? (s.visibleChars[d] ?? 1) : 0));
  const all = characters.reduce((sum, c) => sum + c, 0);
  let seen = 0;
  let given = 0;
  const tokens = characters.map((c) => {
    if (c === 0) return 0;
    seen += c;
    const until = Math.max(1, Math.floor((seen * shown) / all + 1e-9));
    const k = until - given;
    given = until;
    return k;
  });
  return { tokens, approximate: true };
}

/** How many of N were visible: all but the reasoning; where reasoning was streamed uncounted, its share of the deltas. */
function visibleCount(s: Sample, pieces: number): number {
  const count = s.outputTokens.count;
  if (count === null) return pieces;
  if (s.reasoningTokens !== null) return Math.max(1, count - s.reasoningTokens);
  const streamed = s.streamTokens ?? count;
  const reasoning = s.deltas.some((delta) => delta[1] === 'reasoning');
  return Math.max(1, reasoning ? (streamed * pieces) / s.deltas.length : streamed);
}
