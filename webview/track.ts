import type { LiveRow } from '../src/report/messages';
import { completed, type DeltaKind, type Milliseconds, type OutcomeKind, type Sample } from '../src/report/sample';

/** Kinds as small numbers, in the order of `kindNames`. */
export const kindNames: readonly DeltaKind[] = ['text', 'reasoning', 'tool', 'token'];
export const reasoningKind = 1;

/**
 * One request in the form the time line draws from: typed arrays that grow, so no object exists per token.
 * All stamps are ms from the window's start; `t`, `kinds` and `tokens` are valid up to `count` and `t` never falls.
 */
export interface Track {
  readonly id: string;
  readonly role: Sample['role'];
  /** Place in the order the requests became known, from 0; `number` counts from 1 within the role. */
  readonly place: number;
  readonly number: number;
  start: Milliseconds;
  connected: Milliseconds | null;
  headers: Milliseconds | null;
  firstToken: Milliseconds | null;
  firstVisible: Milliseconds | null;
  last: Milliseconds | null;
  end: Milliseconds | null;
  outcome: OutcomeKind | null;
  count: number;
  t: Float64Array;
  kinds: Uint8Array;
  /** Tokens of each delta; NaN = unknown. */
  tokens: Float32Array;
  /** Text of each delta as far as it was streamed to the panel; null when only stamps are known. */
  pieces: string[] | null;
  /** The finished sample; null while the request runs. Its own deltas live in the arrays above. */
  sample: Sample | null;
}

/** A request of which nothing has arrived yet. */
export function createTrack(row: Pick<LiveRow, 'id' | 'role' | 'start' | 'headers'>, place: number, number: number): Track {
  return {
    id: row.id, role: row.role, place, number, start: row.start, connected: null, headers: row.headers, firstToken: null, firstVisible: null, last: null, end: null, outcome: null,
    count: 0, t: new Float64Array(64), kinds: new Uint8Array(64), tokens: new Float32Array(64), pieces: [], sample: null,
  };
}

/** Adds what a live message brought. Its window may have got another start since the last one: what is known moves along, times between stamps do not change. */
export function growTrack(track: Track, row: LiveRow): void {
  const shift = row.start - track.start;
  if (shift !== 0) moveTrack(track, shift);
  track.headers ??= row.headers;
  reserve(track, track.count + row.t.length);
  row.t.forEach((t, i) => {
    const kind = row.kinds[i] ?? 'token';
    push(track, t, kind, row.tokens[i] ?? null);
    track.pieces?.push(row.text[i] ?? '');
    track.firstToken ??= t;
    if (kind === 'text') track.firstVisible ??= t;
    track.last = t;
  });
}

/** The track of a finished request. Streamed text of `live` is kept when it belongs to the same deltas. */
export function trackOf(sample: Sample, place: number, number: number, live?: Track): Track {
  const { id, role, start, headers, firstToken, firstVisible, last, end } = sample;
  const n = sample.deltas.length;
  const track: Track = {
    id, role, place, number, start, connected: sample.connection.secured ?? sample.connection.connected, headers, firstToken, firstVisible, last, end, outcome: sample.outcome.kind,
    count: 0, t: new Float64Array(n), kinds: new Uint8Array(n), tokens: new Float32Array(n), pieces: live?.pieces?.length === n ? live.pieces : null, sample,
  };
  for (const [t, kind, tokens] of sample.deltas) push(track, t, kind, tokens);
  return track;
}

function moveTrack(track: Track, by: Milliseconds): void {
  track.start += by;
  for (const stamp of ['connected', 'headers', 'firstToken', 'firstVisible', 'last', 'end'] as const) {
    const t = track[stamp];
    if (t !== null) track[stamp] = t + by;
  }
  for (let index = 0; index < track.count; index += 1) track.t[index] = (track.t[index] as number) + by;
}

function push(track: Track, t: Milliseconds, kind: DeltaKind, tokens: number | null): void {
  track.t[track.count] = t;
  track.kinds[track.count] = kindNames.indexOf(kind);
  track.tokens[track.count] = tokens ?? Number.NaN;
  track.count += 1;
}

function reserve(track: Track, needed: number): void {
  if (needed <= track.t.length) return;
  const size = Math.max(needed, track.t.length * 2);
  const t = new Float64Array(size);
  t.set(track.t);
  const kinds = new Uint8Array(size);
  kinds.set(track.kinds);
  const tokens = new Float32Array(size);
  tokens.set(track.tokens);
  Object.assign(track, { t, kinds, tokens });
}

/** True for a request that ended without an answer. */
export function hasFailed(track: Pick<Track, 'sample'>): boolean {
  return track.sample !== null && !completed(track.sample);
}

/** Index of the first delta that arrived at or after `t` (ms from the window's start); `count` when there is none. */
export function firstAtOrAfter(track: Pick<Track, 't' | 'count'>, t: Milliseconds): number {
  let low = 0;
  let high = track.count;
  while (low < high) {
    const middle = (low + high) >>> 1;
    if ((track.t[middle] as number) < t) low = middle + 1;
    else high = middle;
  }
  return low;
}

/** The gap that ends at delta `index` in ms; null for the first delta. */
export function gapBefore(track: Pick<Track, 't' | 'count'>, index: number): Milliseconds | null {
  return index > 0 && index < track.count ? (track.t[index] as number) - (track.t[index - 1] as number) : null;
}

/** How many deltas share the stamp of delta `index`, that is, came with the same read of the socket. */
export function deltasInSameRead(track: Pick<Track, 't' | 'count'>, index: number): number {
  const t = track.t[index] as number;
  let first = index;
  let last = index;
  while (first > 0 && track.t[first - 1] === t) first -= 1;
  while (last < track.count - 1 && track.t[last + 1] === t) last += 1;
  return last - first + 1;
}
