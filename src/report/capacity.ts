/** What a row of load steps says: the knee, throughput while all slots were busy, a growing queue, and whether the client was the limit. */
import { brokenLimits, isDue, isGood } from './goodput';
import type { Slo, Verdict } from './report';
import { completed, lastStamp, ttft, type Milliseconds, type Sample } from './sample';
import { summarise, tQuantile } from './statistics';

/** One step of a sweep or a rate search, as far as the knee needs it. */
export interface LoadStep {
  /** Concurrency, or requests per second. */
  readonly load: number;
  readonly verdict: Verdict | null;
}

/** The largest load whose verdict is *met*; null when none is. Steps in any order; of two runs at one load the later in the list counts. */
export function knee<Step extends LoadStep>(steps: readonly Step[]): Step | null {
  const latest = new Map(steps.map((step) => [step.load, step]));
  return [...latest.values()].filter(({ verdict }) => verdict === 'met').reduce<Step | null>((best, step) => (best === null || step.load > best.load ? step : best), null);
}

/** The span in which all slots were busy, and what came out of it. */
export interface BusySpan {
  readonly from: Milliseconds;
  readonly to: Milliseconds;
  readonly tokensPerSecond: number | null;
  readonly requestsPerSecond: number;
}

/**
 * Throughput over the span in which all `slots` were busy: from the first moment that many requests were in flight to the last. Tokens are
 * counted where they arrived (N of a request spread over its deltas by their own counts), so a request that lies half outside counts half.
 * Null when the slots were never all busy.
 */
export function busyThroughput(samples: readonly Sample[], slots: number): BusySpan | null {
  const measured = samples.filter((s) => s.role === 'measured');
  const span = busySpan(measured, slots);
  if (span === null) return null;
  const [from, to] = span;
  const seconds = (to - from) / 1000;
  const done = measured.filter(completed);
  const ended = done.filter((s) => lastStamp(s) > from && lastStamp(s) <= to).length;
  const counts = done.map((s) => tokensWithin(s, from, to));
  const known = counts.filter((n) => n !== null);
  return {
    from,
    to,
    tokensPerSecond: known.length === counts.length && known.length > 0 ? known.reduce((sum, n) => sum + n, 0) / seconds : null,
    requestsPerSecond: ended / seconds,
  };
}

function busySpan(measured: readonly Sample[], slots: number): [Milliseconds, Milliseconds] | null {
  const events = measured.flatMap((s) => [[s.start, 1], [lastStamp(s), -1]] as const).sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  let flying = 0;
  let from: Milliseconds | null = null;
  let to: Milliseconds | null = null;
  for (const [t, change] of events) {
    if (flying >= slots && change < 0) to = t;
    flying += change;
    if (flying >= slots) from ??= t;
  }
  return from === null || to === null || to <= from ? null : [from, to];
}

/** Tokens of a request that arrived in (from, to]; null when N is unknown. */
function tokensWithin(s: Sample, from: Milliseconds, to: Milliseconds): number | null {
  const n = s.outputTokens.count;
  if (n === null) return null;
  if (s.deltas.length === 0) return lastStamp(s) > from && lastStamp(s) <= to ? n : 0;
  const known = s.deltas.every((delta) => delta[2] !== null);
  const weight = (tokens: number | null): number => (known ? (tokens ?? 0) : 1);
  const all = s.deltas.reduce((sum, delta) => sum + weight(delta[2]), 0);
  const within = s.deltas.reduce((sum, delta) => sum + (delta[0] > from && delta[0] <= to ? weight(delta[2]) : 0), 0);
  return all === 0 ? 0 : (n * within) / all;
}

/** Whether the wait from `due` to the first token grows over the run, and how fast. */
export interface QueueGrowth {
  readonly growing: boolean;
  /** Milliseconds of wait gained per second of the run. */
  readonly perSecond: number;
  /** Lower 95 % bound of it. */
  readonly atLeast: number;
}

/**
 * A straight line through (due, wait until the first token from `due`). An arrival rate λ above the service rate μ makes the wait grow by
 * 1 − μ/λ: growing when the slope's lower 95 % bound is above 10 ms per second. Null with fewer than ten answers or no spread in time.
 */
export function queueGrowth(samples: readonly Sample[]): QueueGrowth | null {
  const points = samples.filter((s) => s.role === 'measured' && completed(s)).map((s) => [s.due, (s.firstToken ?? lastStamp(s)) - s.due] as const);
  const n = points.length;
  if (n < 10) return null;
  const mean = (at: 0 | 1): number => points.reduce((sum, point) => sum + point[at], 0) / n;
  const [dueMean, waitMean] = [mean(0), mean(1)];
  const spread = points.reduce((sum, [due]) => sum + (due - dueMean) ** 2, 0);
  if (spread === 0) return null;
  const slope = points.reduce((sum, [due, wait]) => sum + (due - dueMean) * (wait - waitMean), 0) / spread;
  const residual = points.reduce((sum, [due, wait]) => sum + (wait - waitMean - slope * (due - dueMean)) ** 2, 0);
  const error = Math.sqrt(residual / (n - 2) / spread);
  const atLeast = (slope - tQuantile(0.975, n - 2) * error) * 1000;
  return { growing: atLeast > 10, perSecond: slope * 1000, atLeast };
}

/** What the client measured of itself during a run. */
export interface ClientLoad {
  /** Share of time the recorder's event loop was busy, 0–1; null when not measured. */
  readonly loopUse: number | null;
  /** p99 of the canary's error (ms); null when not measured. */
  readonly clockErrorP99: Milliseconds | null;
  /** p99 of `start − due` (ms). */
  readonly lateP99: Milliseconds | null;
}

/**
 * Why the client itself was the limit, in numbers for the caveat; null when it was not. The run then gets no verdict on the server. A busy loop
 * or late starts mean that the load was not what it says; late stamps count only where they could have changed what was good.
 */
export function clientBottleneck(load: ClientLoad, samples: readonly Sample[], slo: Slo): string | null {
  const reasons: string[] = [];
  if (load.loopUse !== null && load.loopUse > 0.8) reasons.push(`its event loop was busy ${Math.round(load.loopUse * 100)} of 100 parts of the time`);
  const first = summarise(samples.filter((s) => s.role === 'measured' && completed(s)).flatMap((s) => ttft(s) ?? []));
  const limit = Math.max(20, 0.25 * (first?.p50 ?? 0));
  if (load.clockErrorP99 !== null && load.clockErrorP99 > limit && !holdsDespite(load.clockErrorP99, samples, slo)) reasons.push(`its stamps were ${Math.round(load.clockErrorP99)} ms late at p99`);
  if (load.lateP99 !== null && load.lateP99 > limit) reasons.push(`its requests started ${Math.round(load.lateP99)} ms late at p99`);
  return reasons.length === 0 ? null : reasons.join(', ');
}

/**
 * Whether each answer is as good, or as bad, with stamps `error` ms late as with right ones: what failed or was wrong stays so, and a late stamp
 * only makes a good answer look slower, but for its pace, which a first token stamped late shortens.
 */
function holdsDespite(error: Milliseconds, samples: readonly Sample[], slo: Slo): boolean {
  if (slo.gapP99 !== undefined) return false;
  return samples.filter(isDue).every((s) => {
    const broken = brokenLimits(s, slo);
    if (broken === null || broken.includes('valid')) return true;
    return broken.length === 0 && isGood({ ...s, firstToken: s.firstToken === null ? null : Math.max(s.start, s.firstToken - error) }, slo);
  });
}
