import type { Milliseconds, OutcomeKind } from './sample';

/** Reasons to distrust a run, with the numbers in them. `format.ts` turns one into a sentence with a consequence and a next step. */
export type Caveat =
  | { readonly kind: 'too-few-samples'; readonly metric: string; readonly percentile: number; readonly n: number; readonly needed: number }
  | { readonly kind: 'cold-first'; readonly first: Milliseconds; readonly rest: Milliseconds }
  | { readonly kind: 'cache-hits'; readonly requests: number; readonly of: number; readonly cachedTokens: number | null; readonly promptTokens: number | null; readonly evidence: 'cached-tokens' | 'bimodal-ttft' }
  | { readonly kind: 'cold-not-cold'; readonly requests: number; readonly of: number; readonly cachedTokens: number }
  | { readonly kind: 'several-tokens-per-frame'; readonly median: number; readonly max: number }
  | { readonly kind: 'many-frames-per-read'; readonly requests: number; readonly of: number; readonly max: number }
  | { readonly kind: 'one-read'; readonly requests: number; readonly of: number }
  | { readonly kind: 'delivery'; readonly cause: 'server-batches' | 'buffering-proxy' | 'content-filter' | 'compression'; readonly evidence: string; readonly itlMeaningless: boolean }
  | { readonly kind: 'late-start'; readonly requests: number; readonly of: number; readonly p99: Milliseconds; readonly max: Milliseconds }
  | { readonly kind: 'late-write'; readonly requests: number; readonly of: number; readonly max: Milliseconds }
  | { readonly kind: 'clock-error'; readonly metric: string; readonly error: Milliseconds; readonly value: Milliseconds }
  | { readonly kind: 'failures-left-out'; readonly failed: number; readonly of: number; readonly kinds: Readonly<Partial<Record<OutcomeKind, number>>> }
  | { readonly kind: 'tokens-estimated'; readonly source: string }
  | { readonly kind: 'itl-unavailable'; readonly reason: string }
  | { readonly kind: 'hidden-reasoning'; readonly tokens: number; readonly requests: number }
  | { readonly kind: 'contradicting-usage'; readonly what: string; readonly requests: number }
  | { readonly kind: 'connection-not-reused'; readonly requests: number; readonly of: number }
  | { readonly kind: 'unrendered-variables'; readonly names: readonly string[] }
  | { readonly kind: 'h2-stamps' }
  | { readonly kind: 'field-refused'; readonly field: string }
  | { readonly kind: 'tls-not-verified'; readonly origin: string }
  | { readonly kind: 'stopped'; readonly by: 'user' | 'breaker' | 'budget'; readonly detail: string }
  | { readonly kind: 'client-bottleneck'; readonly detail: string };
