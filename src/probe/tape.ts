import type { Milliseconds } from '../report/sample';

/**
 * What one request left on the wire and nothing else. Plain data and typed arrays: it crosses threads by transfer and a file by `tapeFile`.
 * All stamps are absolute ms of the host's monotonic clock (`process.hrtime`), taken when the bytes arrived, before any decoding.
 */
export interface Tape {
  readonly id: string;
  readonly stamps: Float64Array;
  /** `ends[k]`: offset in `bytes` just behind the k-th read. Same length as `stamps`. */
  readonly ends: Uint32Array;
  readonly bytes: Uint8Array;
  readonly phases: TapePhases;
  readonly status: number | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
  readonly reused: boolean;
  /** The server had closed the reused connection before any response byte, and the request was sent again on a fresh one. */
  readonly redispatched?: boolean;
  readonly alpn: string | null;
  readonly ending: TapeEnding;
}

/** Stamps outside the body; null = did not happen. */
export interface TapePhases {
  readonly start: Milliseconds;
  readonly dns: Milliseconds | null;
  readonly connected: Milliseconds | null;
  readonly secured: Milliseconds | null;
  readonly written: Milliseconds | null;
  readonly sent: Milliseconds | null;
  readonly headers: Milliseconds | null;
  /** End of the body, clean or not. */
  readonly bodyEnd: Milliseconds | null;
}

/** How the exchange ended on the wire; what that *means* is decided with the decoded stream in `run.ts`. */
export type TapeEnding =
  | { readonly kind: 'complete' }
  | { readonly kind: 'closed'; readonly message: string }
  | { readonly kind: 'dns' | 'connect' | 'tls'; readonly message: string }
  | { readonly kind: 'timeout-first-token' | 'timeout-stall' | 'timeout-total'; readonly limit: Milliseconds }
  | { readonly kind: 'cancelled' };
