/**
 * Percentiles and what may be said about them from n samples. Percentiles are Hyndman and Fan's type 7 (NumPy's default);
 * intervals are two-sided 95 % with equal tails of 2.5 %.
 */
import type { Interval, Summary } from './report';

declare const sortedBrand: unique symbol;

/** Values in rising order: a percentile cannot be taken of anything else. Never holds NaN. */
export type Sorted = Float64Array & { readonly [sortedBrand]: true };

/** `[lower, upper]`; a bound is null where n is too small for it. */
export type Bounds = readonly [lower: number | null, upper: number | null];

/** The percentiles of every table, by column name. */
export const percentiles = { p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99 } as const;

/** Column name of a percentile. */
export type PercentileName = keyof typeof percentiles;

const tail = 0.025;

/** z of a two-sided 95 % interval. */
export const z95 = 1.959963984540054;

/** A sorted copy. Throws a RangeError on NaN, which would make every later number wrong without a sign. */
export function sorted(values: Iterable<number>): Sorted {
  const copy = Float64Array.from(values).sort();
  // Typed arrays sort NaN to the end.
  if (copy.length > 0 && Number.isNaN(copy[copy.length - 1]!)) throw new RangeError('a sample is not a number');
  return copy as Sorted;
}

/** Percentile `p` (0–1) by linear interpolation of closest ranks: h = (n − 1)p (type 7). Throws a RangeError on an empty set: an empty set has none. */
export function percentile(values: Sorted, p: number): number {
  if (values.length === 0) throw new RangeError('an empty set has no percentile');
  const h = (values.length - 1) * Math.min(1, Math.max(0, p));
  const below = Math.floor(h);
  const low = values[below]!;
  const high = values[Math.min(below + 1, values.length - 1)]!;
  // Not low + (high − low)·f alone: rounding could leave the bracket.
  return Math.min(high, Math.max(low, low + (high - low) * (h - below)));
}

/** Middle value of a set in any order (type 7); null when it is empty. */
export function median(values: Iterable<number>): number | null {
  const order = sorted(values);
  return order.length === 0 ? null : percentile(order, 0.5);
}

/**
 * Ranks (from 1) of the order statistics that bound percentile `p` of n values whatever their distribution: the number of values at or
 * below it is B ~ Bin(n, p), so the lower rank is the largest l with P(B < l) ≤ 2.5 %, the upper the smallest u with P(B ≥ u) ≤ 2.5 %.
 * Exact and conservative; null where n is too small (first n with both: 6, 36, 72, 368 for p50, p90, p95, p99).
 */
export function orderStatisticRanks(n: number, p: number): Bounds {
  if (n === 0) return [null, null];
  const { first, probabilities } = binomial(n, p);
  let lower: number | null = null;
  let sum = 0;
  for (let i = 0; i < probabilities.length; i += 1) {
    sum += probabilities[i]!;
    if (sum > tail) break;
    lower = first + i + 1;
  }
  // Where the ignored far tail is all that lies below, rank `first` itself is certain.
  if (lower === null && first > 0) lower = first;
  let upper: number | null = null;
  sum = 0;
  for (let i = probabilities.length - 1; i >= 0; i -= 1) {
    sum += probabilities[i]!;
    if (sum > tail) break;
    upper = first + i;
  }
  return [lower, upper !== null && upper <= n ? upper : null];
}

/** Distribution-free 95 % interval of percentile `p`, by {@link orderStatisticRanks}. */
export function orderStatisticInterval(values: Sorted, p: number): Bounds {
  const [lower, upper] = orderStatisticRanks(values.length, p);
  return [lower === null ? null : values[lower - 1]!, upper === null ? null : values[upper - 1]!];
}

/** The first n at which percentile `p` has both bounds: 6, 36, 72, 368 for p50, p90, p95, p99. */
export function samplesNeeded(p: number): number {
  return Math.ceil(Math.log(tail) / Math.log(Math.max(p, 1 - p)) - 1e-9);
}

/** Requests it takes for an interval of pooled gaps: as many as a median of single values needs. */
const leastClusters = 6;

/**
 * 95 % interval of a percentile of values that come in groups (the gaps of each request), after Woodruff (1952): f_r is the share of
 * group r at or below the percentile, se = sd(f_r)/√R, and the bounds are the quantiles at p ± t(R − 1)·se. A bound is null where
 * that leaves 0–1, and both are null with fewer than {@link leastClusters} groups: with so few, groups that happen to agree would make an
 * interval of no width. Empty groups do not count.
 */
export function pooledInterval(groups: readonly (readonly number[])[], p: number): Bounds {
  const filled = groups.filter((group) => group.length > 0);
  return woodruff(filled, sorted(filled.flat()), p);
}

function woodruff(groups: readonly (readonly number[])[], pooled: Sorted, p: number): Bounds {
  const count = groups.length;
  if (count < leastClusters) return [null, null];
  const at = percentile(pooled, p);
  const shares = groups.map((group) => group.reduce((below, value) => below + (value <= at ? 1 : 0), 0) / group.length);
  const mean = shares.reduce((sum, share) => sum + share, 0) / count;
  const variance = shares.reduce((sum, share) => sum + (share - mean) ** 2, 0) / (count - 1);
  const reach = tQuantile(1 - tail, count - 1) * Math.sqrt(variance / count);
  const bound = (q: number): number | null => (q < 0 || q > 1 ? null : percentile(pooled, q));
  return [bound(p - reach), bound(p + reach)];
}

/** Wilson's 95 % interval of a share, `good` of `n`. `[0, 1]` when n is 0. */
export function wilson(good: number, n: number): readonly [number, number] {
  if (n === 0) return [0, 1];
  const share = good / n;
  const square = z95 * z95;
  const centre = share + square / (2 * n);
  const half = z95 * Math.sqrt((share * (1 - share)) / n + square / (4 * n * n));
  const scale = 1 + square / n;
  return [good === 0 ? 0 : (centre - half) / scale, good === n ? 1 : (centre + half) / scale];
}

/** One value per request → the summary of the metric; null of an empty set, never NaN and never 0. */
export function summarise(values: readonly number[]): Summary | null {
  const order = sorted(values);
  return summaryOf(order, (p) => orderStatisticInterval(order, p));
}

/** Many values per request (gaps, ITL) → the summary over all of them, with intervals whose unit is the request; null of an empty set. */
export function summarisePooled(groups: readonly (readonly number[])[]): Summary | null {
  const filled = groups.filter((group) => group.length > 0);
  const order = sorted(filled.flat());
  return summaryOf(order, (p) => woodruff(filled, order, p));
}

function summaryOf(order: Sorted, interval: (p: number) => Bounds): Summary | null {
  if (order.length === 0) return null;
  const ci95: Interval = { p50: interval(0.5), p90: interval(0.9), p95: interval(0.95), p99: interval(0.99) };
  return {
    n: order.length,
    mean: order.reduce((sum, value) => sum + value, 0) / order.length,
    min: order[0]!,
    p50: percentile(order, 0.5),
    p90: percentile(order, 0.9),
    p95: percentile(order, 0.95),
    p99: percentile(order, 0.99),
    max: order[order.length - 1]!,
    ci95,
    unit: 'ms',
  };
}

/** A difference of percentiles, b − a, with its bootstrap interval. */
export interface Difference {
  readonly a: number;
  readonly b: number;
  readonly difference: number;
  readonly ci95: readonly [number, number];
}

/**
 * Difference of percentile `p`, B − A, with a 95 % percentile-bootstrap interval. Each entry of `a` and `b` is one request: a number, or
 * the values it gave (gaps); requests are what is drawn again, so values of one request stay together. The same seed gives the same
 * interval. Null when a side is empty. Without `draws`: 1000, and down to 300 where there are more than 40,000 values.
 */
export function bootstrapDifference(a: readonly (number | readonly number[])[], b: readonly (number | readonly number[])[], p: number, seed: number, draws?: number): Difference | null {
  return bootstrapDifferences(a, b, [p], seed, draws)?.[0] ?? null;
}

/** {@link bootstrapDifference} of several percentiles, sorting once. */
export function bootstrapDifferences(a: readonly (number | readonly number[])[], b: readonly (number | readonly number[])[], ps: readonly number[], seed: number, draws?: number): Difference[] | null {
  const left = resampler(a);
  const right = resampler(b);
  if (left === null || right === null) return null;
  const times = draws ?? Math.max(300, Math.min(1000, Math.floor(4e7 / (left.values.length + right.values.length))));
  return ps.map((p) => {
    const random = generator(seed);
    const differences = sorted(Array.from({ length: times }, () => right.draw(p, random) - left.draw(p, random)));
    const at = { a: percentile(left.values, p), b: percentile(right.values, p) };
    return { ...at, difference: at.b - at.a, ci95: [percentile(differences, tail), percentile(differences, 1 - tail)] };
  });
}

interface Resampler {
  readonly values: Sorted;
  draw(p: number, random: () => number): number;
}

/** Draws percentiles of resampled requests without sorting each draw: the values are sorted once, and a draw says how often each request counts. */
function resampler(requests: readonly (number | readonly number[])[]): Resampler | null {
  const groups = requests.map((entry) => (typeof entry === 'number' ? [entry] : entry)).filter((group) => group.length > 0);
  if (groups.length === 0) return null;
  const flat = Float64Array.from(groups.flat());
  const group = Uint32Array.from(groups.flatMap((values, g) => values.map(() => g)));
  const values = sorted(flat);
  const owner = Uint32Array.from(flat.keys()).sort((x, y) => flat[x]! - flat[y]!).map((at) => group[at]!);
  const times = new Uint32Array(groups.length);
  const draw = (p: number, random: () => number): number => {
    times.fill(0);
    let n = 0;
    for (let i = 0; i < groups.length; i += 1) {
      const g = Math.floor(random() * groups.length);
      times[g]! += 1;
      n += groups[g]!.length;
    }
    const h = (n - 1) * p;
    const below = Math.floor(h);
    const above = Math.min(below + 1, n - 1);
    const [low, high] = p <= 0.5 ? ranksFromBelow(below, above) : ranksFromAbove(below, above, n);
    return low + (high - low) * (h - below);
  };
  /** Values at two ranks (from 0) of the draw, counted from the nearer end: a p99 is a hundredth of the way. */
  const ranksFromBelow = (below: number, above: number): [number, number] => {
    let seen = 0;
    let low = Number.NaN;
    for (let i = 0; ; i += 1) {
      seen += times[owner[i]!]!;
      if (Number.isNaN(low) && seen > below) low = values[i]!;
      if (seen > above) return [low, values[i]!];
    }
  };
  const ranksFromAbove = (below: number, above: number, n: number): [number, number] => {
    let seen = n;
    let high = Number.NaN;
    for (let i = values.length - 1; ; i -= 1) {
      seen -= times[owner[i]!]!;
      if (Number.isNaN(high) && seen <= above) high = values[i]!;
      if (seen <= below) return [values[i]!, high];
    }
  };
  return { values, draw };
}

/** A small seeded generator of uniform numbers in [0, 1): mulberry32 (Tommy Ettinger, public domain). Good enough for resampling, not for secrets. */
export function generator(seed: number): () => number {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let x = Math.imul(state ^ (state >>> 15), state | 1);
    x ^= x + Math.imul(x ^ (x >>> 7), x | 61);
    return ((x ^ (x >>> 14)) >>> 0) / 2 ** 32;
  };
}

/** Quantile `p` of Student's t with whole degrees of freedom ≥ 1, right to about 1e-9 (p between 0.5 and 1). */
export function tQuantile(p: number, degrees: number): number {
  let low = 0;
  let high = 2;
  while (tCumulative(high, degrees) < p) high *= 2;
  while (high - low > 1e-12 * high) {
    const middle = (low + high) / 2;
    if (middle <= low || middle >= high) break;
    if (tCumulative(middle, degrees) < p) low = middle;
    else high = middle;
  }
  return (low + high) / 2;
}

/** P(T ≤ t) for t ≥ 0 by the finite series of Abramowitz and Stegun 26.7.3 and 26.7.4, exact for whole degrees of freedom. */
function tCumulative(t: number, degrees: number): number {
  const angle = Math.atan(t / Math.sqrt(degrees));
  const cosine = Math.cos(angle);
  const square = cosine * cosine;
  const odd = degrees % 2 === 1;
  let term = odd ? cosine : 1;
  let sum = degrees === 1 ? 0 : term;
  for (let k = odd ? 3 : 2; k <= degrees - 2; k += 2) {
    term *= square * ((k - 1) / k);
    sum += term;
  }
  const within = odd ? (2 / Math.PI) * (angle + Math.sin(angle) * sum) : Math.sin(angle) * sum;
  return 0.5 + within / 2;
}

/**
 * Probabilities of Bin(n, p) where they are above 1e-20 of the largest, and the k of the first. Built outward from the mode and
 * normalised, so no factorial overflows and no far tail underflows.
 */
function binomial(n: number, p: number): { first: number; probabilities: number[] } {
  const mode = Math.min(n, Math.floor((n + 1) * p));
  const odds = p / (1 - p);
  const down: number[] = [];
  for (let k = mode, value = 1; k > 0 && value > 1e-20; k -= 1) {
    value *= k / ((n - k + 1) * odds);
    down.push(value);
  }
  const up: number[] = [];
  for (let k = mode, value = 1; k < n && value > 1e-20; k += 1) {
    value *= ((n - k) / (k + 1)) * odds;
    up.push(value);
  }
  const weights = [...down.reverse(), 1, ...up];
  const sum = weights.reduce((all, weight) => all + weight, 0);
  return { first: mode - down.length, probabilities: weights.map((weight) => weight / sum) };
}
