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
