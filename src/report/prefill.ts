/** The pace of prefill from samples, only where enough was computed that the fixed cost of a request does not decide it. */
import { completed, prefillRate, ttft, type Sample } from './sample';
import { median } from './statistics';

/** An answer tells a pace of prefill from this many prompt tokens that were not cached: below, connecting, scheduling and one decode step weigh more. */
export const leastComputed = 256;
/** Long answers that a difference needs, so that one slow request does not set the price of a token. */
const leastLong = 3;
/** Newer samples stand for the older ones beyond this: every pair is looked at. */
const mostPoints = 400;

/** Prompt tokens that were computed, of an answer over a connection that was there before; null where the server does not tell or opening the connection is inside its wait. */
function computed(s: Sample): number | null {
  return s.role === 'negotiation' || !s.connection.reused || !completed(s) || s.promptTokens === null || s.cachedTokens === null ? null : s.promptTokens - s.cachedTokens;
}

/** `(prompt − cached) / TTFT` in tokens per second, at the median of the answers that had at least {@link leastComputed} tokens to compute; null without one. */
export function prefillPace(samples: readonly Sample[]): { readonly p50: number; readonly n: number } | null {
  const rates = samples.filter((s) => (computed(s) ?? 0) >= leastComputed).flatMap((s) => prefillRate(s) ?? []);
  const p50 = median(rates);
  return p50 === null ? null : { p50, n: rates.length };
}

/**
 * What a prompt token more or less costs, as tokens per second: the slope of TTFT over computed tokens (Theil–Sen: the median over all pairs at
 * least {@link leastComputed} tokens apart), in which fixed costs cancel. Null without three long answers to compare, or without a rise.
 */
export function prefillSlope(samples: readonly Sample[]): number | null {
  const points = samples.flatMap((s): (readonly [tokens: number, wait: number])[] => {
    const [tokens, wait] = [computed(s), ttft(s)];
    return tokens === null || wait === null ? [] : [[tokens, wait]];
  }).slice(-mostPoints);
  const slopes: number[] = [];
  const long = new Set<number>();
  points.forEach(([tokens, wait], i) => points.forEach(([fewer, shorter]) => {
    if (tokens - fewer < leastComputed) return;
    slopes.push((wait - shorter) / (tokens - fewer));
    long.add(i);
  }));
  const slope = median(slopes);
  return slope === null || slope <= 0 || long.size < leastLong ? null : 1000 / slope;
}
