import type { Milliseconds } from '../src/report/sample';

/** A visible span of time on the axis, in ms of that axis. */
export interface Span {
  readonly from: Milliseconds;
  readonly to: Milliseconds;
}

/** Zooming in stops here: 2 ms across the whole chart already shows each read apart. */
const shortest: Milliseconds = 2;
const steps = [1, 1.2, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10];

/** The end of an axis that shows everything up to `needed` ms; it grows in steps and never shrinks below `current`, so a live axis does not jitter. */
export function axisEnd(needed: Milliseconds, current: Milliseconds = 0): Milliseconds {
  if (needed <= current) return current;
  const decade = 10 ** Math.floor(Math.log10(Math.max(needed, 10)));
  return (steps.find((step) => step * decade >= needed) ?? 10) * decade;
}

/** `span` moved, and if needed shortened, so that it lies within `whole`. */
export function clampSpan(span: Span, whole: Span): Span {
  const length = Math.min(Math.max(span.to - span.from, shortest), whole.to - whole.from);
  const from = Math.min(Math.max(span.from, whole.from), whole.to - length);
  return { from, to: from + length };
}

/** Zooms by `factor` (above 1 = closer) around `at`, which stays under the pointer. */
export function zoomSpan(span: Span, at: Milliseconds, factor: number, whole: Span): Span {
  const length = Math.max((span.to - span.from) / factor, shortest);
  const share = (at - span.from) / (span.to - span.from);
  const from = at - share * length;
  return clampSpan({ from, to: from + length }, whole);
}

/** Moves by `by` ms, keeping the length. */
export function panSpan(span: Span, by: Milliseconds, whole: Span): Span {
  return clampSpan({ from: span.from + by, to: span.to + by }, whole);
}

/** Moves just far enough that `at` is visible, with a tenth of the span as margin. */
export function revealInSpan(span: Span, at: Milliseconds, whole: Span): Span {
  const margin = (span.to - span.from) / 10;
  if (at < span.from + margin) return panSpan(span, at - margin - span.from, whole);
  if (at > span.to - margin) return panSpan(span, at + margin - span.to, whole);
  return span;
}

/** True when `span` shows all of `whole`. */
export function isWhole(span: Span, whole: Span): boolean {
  return span.from <= whole.from && span.to >= whole.to;
}

/** First visible row so that `row` is among the `shown` ones of `total`, moving `first` as little as possible. */
export function revealRow(first: number, row: number, shown: number, total: number): number {
  const moved = row < first ? row : row >= first + shown ? row - shown + 1 : first;
  return clampFirstRow(moved, shown, total);
}

/** `first` kept between 0 and the last full page. */
export function clampFirstRow(first: number, shown: number, total: number): number {
  return Math.min(Math.max(first, 0), Math.max(0, total - shown));
}
