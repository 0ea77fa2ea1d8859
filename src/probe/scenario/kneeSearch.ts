/** Which load to try next on the way to the knee: up by doubling, then between the last that kept the SLO and the first that broke it. */
import type { Slo, Verdict } from '../../report/report';
import type { Attainment } from '../../report/goodput';

/** A load that was tried. */
export interface Tried {
  readonly load: number;
  readonly verdict: Verdict | null;
  readonly attainment: Attainment | null;
  /** {@link strain} of its samples. */
  readonly strain: number | null;
  /** What came out of it, per second; null = unknown. */
  readonly output: number | null;
  /** It cannot be held whatever the SLO says: the queue grew. */
  readonly unstable?: boolean;
}

/** Bounds of the search. */
export interface SearchLimits {
  readonly first: number;
  readonly most: number;
  /** The search ends when the broken load is within this share of the kept one. */
  readonly tolerance: number;
  /** Loads are whole numbers. */
  readonly whole: boolean;
  /** Loads to climb instead of doubling, rising. */
  readonly list: readonly number[] | null;
}

/** A load is climbed past as long as the share of good answers is enough; few requests rarely prove it, and need not on the way up. */
export function passes({ attainment, unstable }: Tried, slo: Slo): boolean {
  return !unstable && attainment !== null && attainment.share >= slo.attainment;
}

/** The kept and the broken load that enclose the knee; `broken` null while nothing broke. */
export function bracket(tried: readonly Tried[], slo: Slo): { readonly kept: Tried | null; readonly broken: Tried | null } {
  const latest = [...new Map(tried.map((t) => [t.load, t])).values()];
  const broken = latest.filter((t) => !passes(t, slo)).reduce<Tried | null>((least, t) => (least === null || t.load < least.load ? t : least), null);
  const kept = latest.filter((t) => passes(t, slo) && (broken === null || t.load < broken.load)).reduce<Tried | null>((most, t) => (most === null || t.load > most.load ? t : most), null);
  return { kept, broken };
}

/** The next load to try, or null when the knee is enclosed tightly enough or the bounds are reached. */
export function nextToTry(tried: readonly Tried[], slo: Slo, limits: SearchLimits): number | null {
  const { kept, broken } = bracket(tried, slo);
  return broken === null ? climb(tried, kept, limits) : between(kept, broken, limits);
}

function climb(tried: readonly Tried[], kept: Tried | null, { first, most, list, whole }: SearchLimits): number | null {
  if (list !== null) return list.find((load) => load > (kept?.load ?? 0)) ?? null;
  if (kept === null) return first;
  const doubled = Math.min(most, kept.load * 2);
  if (doubled <= kept.load) return null;
  const expected = breakingLoad(tried, kept);
  if (expected === null) return doubled;
  // A little behind where it should break, so that one step encloses the knee; the estimate may be wrong, then the climb goes on.
  const target = Math.max(expected * 1.05, kept.load * 1.05);
  return Math.min(doubled, whole ? Math.max(kept.load + 1, Math.ceil(target)) : target);
}

/** A server that gave less than this share of the added load's worth has reached its end: from there on waiting grows in a straight line. */
const fullGrowth = 0.75;

/** Where a straight line through the last two kept loads reaches the limit; null while the server still takes all that comes. */
function breakingLoad(tried: readonly Tried[], kept: Tried): number | null {
  const before = tried.filter((t) => t.load < kept.load && t.strain !== null).reduce<Tried | null>((most, t) => (most === null || t.load > most.load ? t : most), null);
  if (before === null || kept.strain === null || before.strain === null || !(kept.strain > 0.5) || !(kept.strain < 1)) return null;
  const growth = kept.output === null || before.output === null || before.output <= 0 ? null : (kept.output / before.output - 1) / (kept.load / before.load - 1);
  if (growth === null || growth > fullGrowth) return null;
  const slope = (kept.strain - before.strain) / (kept.load - before.load);
  return slope > 0 ? kept.load + (1 - kept.strain) / slope : null;
}

function between(kept: Tried | null, broken: Tried, { first, tolerance, whole }: SearchLimits): number | null {
  const low = kept?.load ?? 0;
  const gap = broken.load - low;
  if (gap <= Math.max(whole ? 1 : 0, tolerance * low)) return null;
  // Nothing was kept: downwards, but not without end.
  if (kept === null) {
    const half = broken.load / 2;
    if (whole) return half >= 1 ? Math.floor(half) : null;
    return half >= first / 64 ? half : null;
  }
  let at = 0.5;
  if (kept.strain !== null && broken.strain !== null && Number.isFinite(broken.strain) && broken.strain > kept.strain && kept.strain < 1) {
    at = Math.min(0.8, Math.max(0.2, (1 - kept.strain) / (broken.strain - kept.strain)));
  }
  const next = low + at * gap;
  if (!whole) return next;
  return Math.min(broken.load - 1, Math.max(low + 1, Math.round(next)));
}
