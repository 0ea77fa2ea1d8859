/** What one step of load came to: rates, latencies, attainment, and how near the SLO it was. Shared by the sweep over concurrency and the search for a rate. */
import { busyThroughput, clientBottleneck } from '../../report/capacity';
import { attainment, gapP99, isDue, verdict, type Attainment } from '../../report/goodput';
import type { Report, Slo, Summary, Verdict } from '../../report/report';
import { completed, firstVisible, lastStamp, total, tpot, ttft, type OutcomeKind, type Sample } from '../../report/sample';
import { percentile, sorted, summarise } from '../../report/statistics';
import type { Target } from '../plan';
import type { StepRun } from './scenario';

/** Numbers of one step; rates per second, times in ms, null = none. Forms are those of a report. */
export interface LoadResult {
  readonly requests: number;
  readonly throughput: {
    /** Over the span in which all slots were busy; where there are no slots or they were never all busy, over the window. */
    readonly tokensPerSecond: number | null;
    readonly requestsPerSecond: number | null;
    readonly tokensPerCost: { readonly value: number; readonly currency: string } | null;
    readonly over: 'busy-span' | 'window';
  };
  readonly perUser: Report['perUser'];
  readonly goodput: Report['goodput'];
  readonly attainment: Attainment | null;
  /** Null also when the client was the limit. */
  readonly verdict: Verdict | null;
  readonly summary: { readonly ttft: Summary | null; readonly firstVisible: Summary | null; readonly tpot: Summary | null; readonly total: Summary | null };
  readonly outcomes: Readonly<Partial<Record<OutcomeKind, number>>>;
  /** Why the client itself was the limit; null when it was not. */
  readonly clientBottleneck: string | null;
}

const values = (samples: readonly Sample[], metric: (s: Sample) => number | null): number[] => samples.map(metric).filter((value) => value !== null);

/** Reads a step. `slots`: how many requests were kept in flight; null for a schedule. */
export function loadResult(run: Pick<StepRun, 'samples' | 'client'>, slo: Slo, slots: number | null, target: Pick<Target, 'endpoint'>): LoadResult {
  const measured = run.samples.filter((s) => s.role === 'measured');
  const done = measured.filter(completed);
  const reached = attainment(measured, slo);
  const window = measured.filter((s) => s.outcome.kind !== 'cancelled').reduce((end, s) => Math.max(end, lastStamp(s)), 0);
  const first = summarise(values(done, ttft));
  const bottleneck = clientBottleneck(run.client, measured, slo);
  const outcomes: Partial<Record<OutcomeKind, number>> = {};
  for (const { outcome } of measured) outcomes[outcome.kind] = (outcomes[outcome.kind] ?? 0) + 1;
  const pace = summarise(values(done, tpot));
  return {
    requests: measured.length,
    throughput: throughput(done, measured, slots, window, target),
    perUser: pace === null || pace.p50 <= 0 || pace.p99 <= 0 ? null : { p50: 1000 / pace.p50, p99: 1000 / pace.p99 },
    goodput: reached === null || window <= 0 ? null : { perSecond: (reached.good / window) * 1000, perMinute: (reached.good / window) * 60_000 },
    attainment: reached,
    verdict: bottleneck === null ? verdict(reached, slo) : null,
    summary: { ttft: first, firstVisible: summarise(values(done, firstVisible)), tpot: pace, total: summarise(values(done, total)) },
    outcomes,
    clientBottleneck: bottleneck,
  };
}

function throughput(done: readonly Sample[], measured: readonly Sample[], slots: number | null, window: number, { endpoint }: Pick<Target, 'endpoint'>): LoadResult['throughput'] {
  const busy = slots === null ? null : busyThroughput(measured, slots);
  const counts = values(done, (s) => s.outputTokens.count);
  const sum = counts.length === done.length && done.length > 0 ? counts.reduce((all, n) => all + n, 0) : null;
  const tokensPerSecond = busy?.tokensPerSecond ?? (sum === null || window <= 0 ? null : (sum / window) * 1000);
  return {
    tokensPerSecond,
    requestsPerSecond: busy?.requestsPerSecond ?? (done.length === 0 || window <= 0 ? null : (done.length / window) * 1000),
    tokensPerCost: tokensPerCost(tokensPerSecond, endpoint),
    over: busy === null ? 'window' : 'busy-span',
  };
}

/** Tokens per unit of money at a steady rate: by the hour of the GPUs, else by the price of output tokens. */
function tokensPerCost(tokensPerSecond: number | null, { gpu, price }: Target['endpoint']): LoadResult['throughput']['tokensPerCost'] {
  if (tokensPerSecond === null) return null;
  if (gpu !== null && gpu.pricePerHour !== null && gpu.pricePerHour > 0) return { value: (tokensPerSecond * 3600) / (gpu.pricePerHour * Math.max(1, gpu.count)), currency: gpu.currency };
  return price !== null && price.outputPerMillion !== null && price.outputPerMillion > 0 ? { value: 1e6 / price.outputPerMillion, currency: price.currency } : null;
}

/**
 * How near to its SLO a step came: the largest of (percentile at the wanted attainment) / limit, so 1 is where it breaks. Infinite when more
 * failed than may; null without a limit to compare with. Steps between which it is known can be interpolated.
 */
export function strain(samples: readonly Sample[], slo: Slo): number | null {
  const due = samples.filter(isDue);
  if (due.length === 0) return null;
  const limits = [[slo.ttft, ttft], [slo.firstVisible, firstVisible], [slo.tpot, tpot], [slo.gapP99, gapP99], [slo.total, total]] as const;
  const strains = limits.flatMap(([limit, metric]) => {
    if (limit === undefined) return [];
    // What failed is as bad as it gets; a pace of none passes (metrics of goodput).
    const all = due.map((s) => (completed(s) ? (metric(s) ?? (metric === tpot || metric === gapP99 ? 0 : Number.POSITIVE_INFINITY)) : Number.POSITIVE_INFINITY));
    const order = [...sorted(all)];
    return [order[Math.min(order.length - 1, Math.floor((order.length - 1) * slo.attainment))]! / limit];
  });
  return strains.length === 0 ? (due.every(completed) ? null : due.filter((s) => !completed(s)).length / due.length > 1 - slo.attainment ? Number.POSITIVE_INFINITY : null) : Math.max(...strains);
}

/** A percentile of a metric over what was answered; null when nothing was. */
export function percentileOf(samples: readonly Sample[], metric: (s: Sample) => number | null, p: number): number | null {
  const found = sorted(values(samples.filter(completed), metric));
  return found.length === 0 ? null : percentile(found, p);
}
