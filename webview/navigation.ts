import type { Milliseconds } from '../src/report/sample';
import { firstAtOrAfter, gapBefore, type Track } from './track';

/** What is chosen: a request, and one of its deltas (null = the request as a whole). */
export interface Selection {
  readonly sampleId: string;
  readonly deltaIndex: number | null;
}

/** What lies under the pointer in a row: a delta, or the gap that ends at a delta. */
export interface Hit {
  readonly part: 'delta' | 'gap' | 'row';
  readonly deltaIndex: number | null;
}

/** Finds what is at `t` (ms from the window's start) in a row; a delta within `reach` ms wins over the gap around it. */
export function hitTest(track: Track, t: Milliseconds, reach: Milliseconds): Hit {
  if (track.count === 0) return { part: 'row', deltaIndex: null };
  const after = firstAtOrAfter(track, t);
  const distance = (index: number): number => (index >= 0 && index < track.count ? Math.abs((track.t[index] as number) - t) : Number.POSITIVE_INFINITY);
  const nearest = distance(after) < distance(after - 1) ? after : after - 1;
  if (distance(nearest) <= reach) return { part: 'delta', deltaIndex: nearest };
  if (after > 0 && after < track.count) return { part: 'gap', deltaIndex: after };
  return { part: 'row', deltaIndex: null };
}

/** Keys the time line answers to while it has the focus. */
export type NavigationKey = 'ArrowUp' | 'ArrowDown' | 'ArrowLeft' | 'ArrowRight' | 'Home' | 'End' | 'PageUp' | 'PageDown';
const navigationKeys = new Set<string>(['ArrowUp', 'ArrowDown', 'ArrowLeft', 'ArrowRight', 'Home', 'End', 'PageUp', 'PageDown']);

/** True for a key that moves the selection. */
export function isNavigationKey(key: string): key is NavigationKey {
  return navigationKeys.has(key);
}

/**
 * Where a key leads from `from` through `tracks` in the order shown: up and down between requests (to the delta nearest in time since each start),
 * left and right between tokens, Home and End within a request. With `longGap` left and right jump to the next gap longer than that many ms.
 * Null when there is nothing to choose.
 */
export function move(tracks: readonly Track[], from: Selection | null, key: NavigationKey, longGap: Milliseconds | null = null): Selection | null {
  const first = tracks[0];
  if (first === undefined) return null;
  const row = from === null ? -1 : tracks.findIndex((track) => track.id === from.sampleId);
  const track = tracks[row];
  if (track === undefined || from === null) return { sampleId: first.id, deltaIndex: first.count > 0 ? 0 : null };
  switch (key) {
    case 'ArrowUp': return toRow(tracks, track, row - 1, from.deltaIndex);
    case 'ArrowDown': return toRow(tracks, track, row + 1, from.deltaIndex);
    case 'PageUp': return toRow(tracks, track, row - 10, from.deltaIndex);
    case 'PageDown': return toRow(tracks, track, row + 10, from.deltaIndex);
    case 'Home': return toDelta(track, 0);
    case 'End': return toDelta(track, track.count - 1);
    case 'ArrowLeft': return longGap === null ? toDelta(track, (from.deltaIndex ?? track.count) - 1) : toGap(track, from.deltaIndex ?? track.count, -1, longGap) ?? from;
    case 'ArrowRight': return longGap === null ? toDelta(track, (from.deltaIndex ?? -1) + 1) : toGap(track, from.deltaIndex ?? -1, 1, longGap) ?? from;
  }
}

function toDelta(track: Track, index: number): Selection {
  return { sampleId: track.id, deltaIndex: track.count === 0 ? null : Math.min(Math.max(index, 0), track.count - 1) };
}

function toGap(track: Track, from: number, step: 1 | -1, longGap: Milliseconds): Selection | null {
  for (let index = from + step; index >= 0 && index < track.count; index += step) {
    if ((gapBefore(track, index) ?? 0) > longGap) return { sampleId: track.id, deltaIndex: index };
  }
  return null;
}

function toRow(tracks: readonly Track[], from: Track, row: number, deltaIndex: number | null): Selection {
  const to = tracks[Math.min(Math.max(row, 0), tracks.length - 1)] as Track;
  if (to.count === 0 || deltaIndex === null) return { sampleId: to.id, deltaIndex: null };
  const t = to.start + (from.t[deltaIndex] ?? from.start) - from.start;
  return toDelta(to, hitTest(to, t, Number.POSITIVE_INFINITY).deltaIndex ?? 0);
}

/** How the rows are ordered. */
export type RowOrder = 'start' | 'ttft' | 'total';
export const rowOrders: readonly RowOrder[] = ['start', 'ttft', 'total'];

/** The tracks in the order asked for; `measure` gives a track's value or null (those come last, by start). Warm-up requests stay on top. */
export function orderTracks(tracks: readonly Track[], measure: (track: Track) => Milliseconds | null): readonly Track[] {
  const rank = (track: Track): number => (track.role === 'measured' ? 1 : 0);
  return [...tracks].sort((a, b) => rank(a) - rank(b) || compareNullLast(measure(a), measure(b)) || a.start - b.start || a.place - b.place);
}

function compareNullLast(a: number | null, b: number | null): number {
  if (a === null || b === null) return a === b ? 0 : a === null ? 1 : -1;
  return a - b;
}
