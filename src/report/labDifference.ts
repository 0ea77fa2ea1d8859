/** Two runs of the lab under the same load: their key numbers side by side, and the difference in one sentence. Virtual time is exact, so nothing is estimated. */
import { digits, ms, outOf } from './numbers';
import type { Report } from './report';
import { completed, total, ttft, type Sample } from './sample';
import { percentile, sorted } from './statistics';

/** One number of both runs; null where a run has none. */
export interface LabNumber {
  readonly label: string;
  readonly a: number | null;
  readonly b: number | null;
  readonly aText: string;
  readonly bText: string;
  readonly better: 'less' | 'more';
  /** `B better, 3.2 times`, `the same`; empty where there is nothing to compare. */
  readonly difference: string;
}

/** Differences below this share are not worth a word. */
const worthSaying = 0.03;

interface Row {
  readonly label: string;
  readonly better: 'less' | 'more';
  readonly value: (report: Report) => number | null;
  readonly text: (value: number, report: Report) => string;
}

const answered = (report: Report): Sample[] => report.samples.filter(completed);
const at = (values: readonly (number | null)[], p: number): number | null => {
  const known = values.filter((value) => value !== null);
  return known.length === 0 ? null : percentile(sorted(known), p);
};

const rows: readonly Row[] = [
  { label: 'First token, p50', better: 'less', value: (r) => r.summary.ttft?.p50 ?? null, text: ms },
  { label: 'First token, p99', better: 'less', value: (r) => r.summary.ttft?.p99 ?? null, text: ms },
  { label: 'Time per token (TPOT), p50', better: 'less', value: (r) => r.summary.tpot?.p50 ?? null, text: ms },
  { label: 'Longest gap in an answer, p99', better: 'less', value: (r) => at(answered(r).map(longestGap), 0.99), text: ms },
  { label: 'Whole answer, p50', better: 'less', value: (r) => at(answered(r).map(total), 0.5), text: ms },
  { label: 'Whole answer, p99', better: 'less', value: (r) => at(answered(r).map(total), 0.99), text: ms },
  { label: 'Throughput', better: 'more', value: (r) => r.throughput.tokensPerSecond, text: (value) => `${digits(value)} tokens/s` },
  { label: 'Good answers (chat SLO)', better: 'more', value: (r) => r.attainment?.good ?? null, text: (value, r) => outOf(value, r.attainment?.due ?? 0) },
  { label: 'Refused or lost', better: 'less', value: (r) => r.samples.filter((s) => !completed(s)).length, text: (value, r) => outOf(value, r.samples.length) },
  { label: 'Prompt tokens from the cache', better: 'more', value: cachedShare, text: (value, r) => outOf(value * promptTokens(r), promptTokens(r)) },
  { label: 'Requests at the busiest replica', better: 'less', value: busiest, text: (value, r) => outOf(value, r.samples.length) },
  { label: 'Light tenant’s first token, p95', better: 'less', value: (r) => tenantTtft(r, 'light'), text: ms },
  { label: 'Heavy tenant’s first token, p95', better: 'less', value: (r) => tenantTtft(r, 'heavy'), text: ms },
];

function longestGap(s: Sample): number | null {
  let most: number | null = null;
  for (let i = 1; i < s.deltas.length; i += 1) most = Math.max(most ?? 0, s.deltas[i]![0] - s.deltas[i - 1]![0]);
  return most;
}

/** Null for one replica alone. */
function busiest({ samples }: Report): number | null {
  const counts = new Map<unknown, number>();
  for (const { labels } of samples) if (labels['replica'] !== undefined) counts.set(labels['replica'], (counts.get(labels['replica']) ?? 0) + 1);
  return counts.size < 2 ? null : Math.max(...counts.values());
}

function promptTokens(report: Report): number {
  return answered(report).reduce((sum, s) => sum + (s.promptTokens ?? 0), 0);
}

function cachedShare(report: Report): number | null {
  const all = promptTokens(report);
  return all === 0 ? null : answered(report).reduce((sum, s) => sum + (s.cachedTokens ?? 0), 0) / all;
}

function tenantTtft(report: Report, tenant: string): number | null {
  return at(answered(report).filter((s) => s.labels['tenant'] === tenant).map(ttft), 0.95);
}

/** The key numbers of A and B; those that neither has, or that are zero in both, are left out. */
export function labNumbers(a: Report, b: Report): LabNumber[] {
  return rows.flatMap(({ label, better, value, text }): LabNumber[] => {
    const [left, right] = [value(a), value(b)];
    if ((left === null && right === null) || (label.startsWith('Refused') && left === 0 && right === 0) || (label.startsWith('Prompt') && !left && !right)) return [];
    return [{ label, a: left, b: right, aText: left === null ? 'none' : text(left, a), bText: right === null ? 'none' : text(right, b), better, difference: differenceOf(left, right, better) }];
  });
}

function differenceOf(a: number | null, b: number | null, better: LabNumber['better']): string {
  if (a === null || b === null) return '';
  if (a === b || Math.abs(b - a) <= worthSaying * Math.max(a, b)) return 'the same';
  const winner = (better === 'less') === (b < a) ? 'B' : 'A';
  const factor = Math.min(a, b) <= 0 ? null : Math.max(a, b) / Math.min(a, b);
  return `${winner} better${factor === null ? '' : `, ${digits(factor)} times`}`;
}

/** The difference in one sentence, largest first: what B does better, and what it costs. */
export function labSentence(a: Report, b: Report): string {
  const known = labNumbers(a, b).filter((number) => number.difference.includes('better'));
  if (known.length === 0) return 'Under this load the two behave the same: no number differs by more than 3 in 100.';
  const weight = (number: LabNumber): number => (number.a === null || number.b === null ? 0 : Math.min(number.a, number.b) <= 0 ? 3 : Math.max(number.a, number.b) / Math.min(number.a, number.b));
  const of = (side: 'A' | 'B'): LabNumber[] => known.filter((number) => number.difference.startsWith(side)).sort((x, y) => weight(y) - weight(x));
  const say = (numbers: readonly LabNumber[], side: 'A' | 'B', most = 3): string => unlike(numbers).slice(0, most).map((number) => `${lower(number.label)} ${side === 'B' ? number.bText : number.aText} instead of ${side === 'B' ? number.aText : number.bText}`).join('; ');
  const [forB, forA] = [of('B'), of('A')];
  if (forA.length === 0) return `B is better: ${say(forB, 'B')}.`;
  if (forB.length === 0) return `A is better: ${say(forA, 'A')}.`;
  // What users get decides who is said to gain; what it costs comes second.
  const good = known.find((number) => number.label.startsWith('Good'))?.difference.charAt(0);
  const [first, second] = (good ?? (weight(forB[0]!) >= weight(forA[0]!) ? 'B' : 'A')) === 'B' ? (['B', 'A'] as const) : (['A', 'B'] as const);
  const numbers = { A: forA, B: forB };
  return `${first} gains: ${say(numbers[first], first, 2)}. It pays with: ${say(numbers[second], first, 1)}.`;
}

/** One of a kind: p50 and p99 of the same thing say it twice. */
function unlike(numbers: readonly LabNumber[]): LabNumber[] {
  const seen = new Set<string>();
  return numbers.filter(({ label }) => {
    const kind = label.split(',')[0]!;
    const fresh = !seen.has(kind);
    seen.add(kind);
    return fresh;
  });
}

function lower(label: string): string {
  return label.startsWith('Time per token') ? 'time per token' : label.charAt(0).toLowerCase() + label.slice(1).replace(/, (p\d+)/, ' ($1)');
}
