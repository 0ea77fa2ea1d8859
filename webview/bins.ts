import type { Milliseconds } from '../src/report/sample';

/** A histogram: `counts[i]` values lie in [`edges[i]`, `edges[i + 1]`). */
export interface Bins {
  readonly edges: Float64Array;
  readonly counts: Uint32Array;
}

/** Below this a gap only says that two deltas came with the same read; all such gaps share the first bin. */
const smallest: Milliseconds = 0.1;

/**
 * Sorts values (ms) into bins of equal width on a logarithmic axis, `perDecade` to a factor of ten, from the decade-part that holds the smallest to that
 * of the largest value. Values below 0.1 ms are counted in the first bin. Null for no values.
 */
export function binLogarithmic(values: readonly Milliseconds[], perDecade = 24): Bins | null {
  if (values.length === 0) return null;
  const place = (value: Milliseconds): number => Math.floor(Math.log10(Math.max(value, smallest)) * perDecade + 1e-9);
  let first = Number.POSITIVE_INFINITY;
  let last = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    first = Math.min(first, place(value));
    last = Math.max(last, place(value));
  }
  // At least a decade wide, so that a perfectly even stream still shows an axis.
  const missing = Math.max(0, perDecade - (last - first + 1));
  first -= Math.floor(missing / 2);
  last += Math.ceil(missing / 2);
  const counts = new Uint32Array(last - first + 1);
  for (const value of values) counts[place(value) - first] = (counts[place(value) - first] as number) + 1;
  return { edges: Float64Array.from({ length: counts.length + 1 }, (_, i) => 10 ** ((first + i) / perDecade)), counts };
}
