/** Which answers were good under an SLO, and whether that is enough. */
import type { Slo, Verdict } from './report';
import { chunkGaps, completed, firstVisible, total, tpot, ttft, type Milliseconds, type Sample } from './sample';
import { percentile, sorted, wilson, z95 } from './statistics';

/** The limits a request can break. */
export type SloLimit = 'ttft' | 'firstVisible' | 'tpot' | 'gapP99' | 'total' | 'valid';

/** Presets: chat is judged on first token and pace; batch only on whether the answer came (its number is throughput per cost). */
export const sloPresets: Readonly<Record<'chat' | 'batch', Slo>> = {
  chat: { ttft: 500, tpot: 30, attainment: 0.95 },
  batch: { attainment: 0.95 },
};

/** p99 of one request's own gaps (ms), type 7; null with fewer than two deltas. */
export function gapP99(s: Sample): Milliseconds | null {
  const gaps = chunkGaps(s);
  return gaps.length === 0 ? null : percentile(sorted(gaps), 0.99);
}

/**
 * The limits a request broke; empty for a good one, null when it failed before a limit could be asked. An answer that failed its check
 * (outcome `invalid`) broke `valid` only.
 * TPOT and gaps of *none* on an answer that came pass (too short to have a pace); first token, first visible token and total of *none* fail.
 */
export function brokenLimits(s: Sample, slo: Slo): SloLimit[] | null {
  if (s.outcome.kind === 'invalid') return ['valid'];
  if (!completed(s)) return null;
  const broken: SloLimit[] = [];
  const judge = (limit: SloLimit, value: Milliseconds | null, most: Milliseconds | undefined, none: 'passes' | 'fails'): void => {
    if (most !== undefined && (value === null ? none === 'fails' : value > most)) broken.push(limit);
  };
  judge('ttft', ttft(s), slo.ttft, 'fails');
  judge('firstVisible', firstVisible(s), slo.firstVisible, 'fails');
  judge('tpot', tpot(s), slo.tpot, 'passes');
  if (slo.gapP99 !== undefined) judge('gapP99', gapP99(s), slo.gapP99, 'passes');
  judge('total', total(s), slo.total, 'fails');
  return broken;
}

/** True when the answer came and broke no limit. */
export function isGood(s: Sample, slo: Slo): boolean {
  return brokenLimits(s, slo)?.length === 0;
}

/** Requests that count: measured and not cancelled by the user. Failures, time-outs and rejections are due and not good. */
export function isDue(s: Sample): boolean {
  return s.role === 'measured' && s.outcome.kind !== 'cancelled';
}

/** Good and due requests with the share and its Wilson 95 % interval. */
export interface Attainment {
  readonly good: number;
  readonly due: number;
  readonly share: number;
  readonly ci95: readonly [number, number];
}

/** How many of the due requests were good; null when none was due. */
export function attainment(samples: readonly Sample[], slo: Slo): Attainment | null {
  const due = samples.filter(isDue);
  if (due.length === 0) return null;
  const good = due.filter((s) => isGood(s, slo)).length;
  return { good, due: due.length, share: good / due.length, ci95: wilson(good, due.length) };
}

/** `met` / `missed` / `unclear`: the Wilson interval lies above / below / across `slo.attainment`. Null when nothing was due. */
export function verdict(reached: Attainment | null, slo: Slo): Verdict | null {
  if (reached === null) return null;
  const [low, high] = reached.ci95;
  if (low >= slo.attainment) return 'met';
  return high < slo.attainment ? 'missed' : 'unclear';
}

/** Due requests that break each limit that is set; failures apart, as they broke none. */
export function breaches(samples: readonly Sample[], slo: Slo): { readonly due: number; readonly failed: number; readonly by: ReadonlyMap<SloLimit, number> } {
  const due = samples.filter(isDue);
  const by = new Map<SloLimit, number>();
  let failed = 0;
  for (const s of due) {
    const broken = brokenLimits(s, slo);
    if (broken === null) failed += 1;
    for (const limit of broken ?? []) by.set(limit, (by.get(limit) ?? 0) + 1);
  }
  return { due: due.length, failed, by };
}

/** How many answers, all good, it takes for the verdict `met` (73 for an attainment of 0.95): n/(n + z²) ≥ attainment. Null at 1, which no number proves. */
export function answersToProve(slo: Slo): number | null {
  if (slo.attainment >= 1) return null;
  return Math.max(1, Math.ceil((slo.attainment * z95 * z95) / (1 - slo.attainment) - 1e-9));
}
