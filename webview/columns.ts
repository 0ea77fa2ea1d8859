import type { Milliseconds } from '../src/report/sample';
import { firstAtOrAfter, reasoningKind, type Track } from './track';

/** What one row shows in each pixel column of the visible span. Reused between rows, so drawing allocates nothing per frame. */
export interface Columns {
  width: number;
  /** Deltas in the column: answer (text, tools, bare tokens) and reasoning. */
  readonly answer: Uint16Array;
  readonly reasoning: Uint16Array;
  /** The longest gap that ends in the column, in ms (0 = none), and the delta that ends it. The slot behind the last column holds a gap that ends beyond it. */
  readonly gap: Float64Array;
  readonly gapEnd: Int32Array;
  /** The most deltas any column holds. */
  most: number;
}

/** Room for rows of up to `width` pixel columns. */
export function createColumns(width: number): Columns {
  return { width, answer: new Uint16Array(width), reasoning: new Uint16Array(width), gap: new Float64Array(width + 1), gapEnd: new Int32Array(width + 1), most: 0 };
}

/**
 * Sorts a row's deltas between `from` and `to` (ms from the window's start) into pixel columns, left to right.
 * Counts may be summed into a column, a gap keeps its maximum: a stall never disappears by zooming out.
 */
export function fillColumns(columns: Columns, track: Pick<Track, 't' | 'kinds' | 'count'>, from: Milliseconds, to: Milliseconds): void {
  const { width, answer, reasoning, gap, gapEnd } = columns;
  answer.fill(0);
  reasoning.fill(0);
  gap.fill(0);
  gapEnd.fill(-1);
  columns.most = 0;
  const scale = width / (to - from);
  let index = firstAtOrAfter(track, from);
  for (; index < track.count; index += 1) {
    const t = track.t[index] as number;
    const beyond = t > to;
    const column = beyond ? width : Math.min(width - 1, Math.floor((t - from) * scale));
    if (index > 0) {
      const length = t - (track.t[index - 1] as number);
      if (length > (gap[column] as number)) {
        gap[column] = length;
        gapEnd[column] = index;
      }
    }
    if (beyond) break;
    const kind = track.kinds[index] === reasoningKind ? reasoning : answer;
    kind[column] = (kind[column] as number) + 1;
    columns.most = Math.max(columns.most, (answer[column] as number) + (reasoning[column] as number));
  }
}
