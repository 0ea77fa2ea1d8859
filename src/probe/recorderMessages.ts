/** Messages between the main thread and the recorder's thread. Types only; both ends switch exhaustively over `type`. */
import type { Milliseconds } from '../report/sample';
import type { WireRequest } from './dialect/dialect';
import type { NetworkOptions } from './network';
import type { TapeEnding, TapePhases } from './tape';

/** What the thread is started with. The same script is the recorder and, in a thread of its own, the canary's sender. */
export type ThreadData = { readonly role: 'recorder'; readonly script: string; readonly network: NetworkOptions; readonly canary: boolean } | { readonly role: 'canary' };

/** The reads since the last message. `ends` are offsets in the whole body, so parts concatenate into a tape. */
export interface Part {
  readonly stamps: Float64Array<ArrayBuffer>;
  readonly ends: Uint32Array<ArrayBuffer>;
  readonly bytes: Uint8Array<ArrayBuffer>;
  readonly phases: TapePhases;
  readonly status: number | null;
  readonly headers: readonly (readonly [name: string, value: string])[];
}

/** Everything about an exchange that is not its bytes. */
export interface ExchangeFacts {
  readonly reused: boolean;
  readonly redispatched: boolean;
  readonly alpn: string | null;
  readonly ending: TapeEnding;
}

/** Main thread → recorder. */
export type ToRecorder =
  | { readonly type: 'record'; readonly id: string; readonly request: WireRequest; readonly live: boolean; readonly stall: Milliseconds | null; readonly total: Milliseconds | null; /** A body byte counts as a token: nobody decodes. */ readonly byteIsToken: boolean }
  /** A token has arrived: the stall limit counts from now on. */
  | { readonly type: 'token'; readonly id: string }
  /** Hand over at once what has arrived; answered by a `part` with `flushed`. */
  | { readonly type: 'flush'; readonly id: string }
  /** End it now, with this ending. */
  | { readonly type: 'end'; readonly id: string; readonly ending: TapeEnding }
  | { readonly type: 'warm'; readonly call: number; readonly url: string; readonly count: number }
  | { readonly type: 'clockErrors'; readonly call: number; readonly since: Milliseconds }
  | { readonly type: 'close'; readonly call: number };

/** Recorder → main thread. */
export type FromRecorder =
  | { readonly type: 'ready' }
  | { readonly type: 'part'; readonly id: string; readonly part: Part; readonly flushed: boolean }
  | { readonly type: 'tape'; readonly id: string; readonly rest: Part; readonly facts: ExchangeFacts }
  | { readonly type: 'answer'; readonly call: number; readonly errors: readonly Milliseconds[] };
