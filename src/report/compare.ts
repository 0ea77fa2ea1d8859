/** Two runs side by side: what differs, by how much, and what forbids the comparison. */
import { metricOrder, metricWords } from './metricNames';
import { count, digits, ms, outOf } from './numbers';
import { isProof, proofKinds, proofOf, proofWaits, type ProofKind, type Served } from './proof';
import type { MetricName, Report } from './report';
import { chunkGaps, completed, firstFrame, firstVisible, itl, readerStall, total, tpot, ttft, type Sample } from './sample';
import { bootstrapDifferences, samplesNeeded, type Difference } from './statistics';

/** What may be said about a difference. `too-few`: n is too small to bound this percentile at all. */
export type Conclusion = 'a-faster' | 'b-faster' | 'no-difference-shown' | 'too-few';

/** One percentile of one metric in both runs (ms). */
export interface ComparedPercentile extends Difference {
  readonly percentile: 'p50' | 'p99';
  readonly conclusion: Conclusion;
  /** `B is 41 ms faster (31–52)`, `no difference shown (−3 to 8 ms)`, `n too small`. */
  readonly text: string;
}

/** One metric in both runs; null where one of them has none. */
export interface ComparedMetric {
  readonly metric: MetricName;
  readonly label: string;
  readonly n: readonly [a: number, b: number];
  readonly p50: ComparedPercentile | null;
  readonly p99: ComparedPercentile | null;
}

/** Two runs compared: rows in the order of A's objective, reasons to distrust the comparison, and one sentence. */
export interface Comparison {
  readonly rows: readonly ComparedMetric[];
  readonly warnings: readonly string[];
  readonly sentence: string;
  /** Of two proofs: served tokens of each kind of request in words (`368 of 424`); null where one does not tell. */
  readonly served?: readonly { readonly label: string; readonly a: string | null; readonly b: string | null }[];
}

/** Compares B with A. Pure: the same reports and seed give the same intervals. */
export function compareReports(a: Report, b: Report, seed = 1): Comparison {
  if (isProof(a.plan) && isProof(b.plan)) return compareProofs(a, b, seed);
  const rows = metricOrder[a.plan.objective].flatMap((metric): ComparedMetric[] => {
    const [left, right] = [valuesOf(a, metric), valuesOf(b, metric)];
    if (left.length === 0 && right.length === 0) return [];
    const [p50, p99] = bootstrapDifferences(left, right, [0.5, 0.99], seed) ?? [];
    return [{ metric, label: metricWords[metric].label, n: [left.length, right.length], p50: compared(left, right, 'p50', p50), p99: compared(left, right, 'p99', p99) }];
  });
  return { rows, warnings: warningsOf(a, b), sentence: sentenceOf(rows, a, b) };
}

/** Two proofs: served tokens first, then TTFT of each kind of request, because cold and warm together are no distribution. */
function compareProofs(a: Report, b: Report, seed: number): Comparison {
  const kinds = Object.keys(proofKinds) as ProofKind[];
  const rows = kinds.flatMap((kind): ComparedMetric[] => {
    const [left, right] = [proofWaits(a.samples, kind), proofWaits(b.samples, kind)];
    if (left.length === 0 && right.length === 0) return [];
    const [p50, p99] = bootstrapDifferences(left, right, [0.5, 0.99], seed) ?? [];
    return [{ metric: 'ttft', label: `${metricWords.ttft.short}, ${proofKinds[kind]}`, n: [left.length, right.length], p50: compared(left, right, 'p50', p50), p99: compared(left, right, 'p99', p99) }];
  });
  const [inA, inB] = [proofOf(a)?.served ?? [], proofOf(b)?.served ?? []];
  const of = (all: readonly Served[], kind: ProofKind): string | null => {
    const one = all.find((served) => served.kind === kind);
    return one === undefined ? null : one.of === null ? count(one.tokens) : outOf(one.tokens, one.of);
  };
  const served = kinds.map((kind) => ({ label: proofKinds[kind], a: of(inA, kind), b: of(inB, kind) })).filter((row) => row.a !== null || row.b !== null);
  const later = served.find(({ label }) => label === proofKinds.changed);
  const names = a.endpoint.name === b.endpoint.name ? '' : ` A is ${a.endpoint.name}, B is ${b.endpoint.name}.`;
  const sentence = later === undefined ? 'Neither proof tells what was served of a later request.' : `Served from the cache of a later request: A ${later.a ?? 'not told'}, B ${later.b ?? 'not told'} tokens.${names}`;
  return { rows, warnings: warningsOf(a, b), sentence, served };
}

/** A value, or the values, each request gave; those that gave none are left out. What the report itself refused stays refused. */
function valuesOf(report: Report, metric: MetricName): (number | number[])[] {
  if (report.summary[metric] === null) return [];
  const done = report.samples.filter((s) => s.role === 'measured' && completed(s));
  const of: Record<MetricName, (s: Sample) => number | number[] | null> = {
    ttft,
    firstVisible,
    firstFrame,
    chunkGap: chunkGaps,
    itl,
    tpot,
    total,
    readerStall: (s) => readerStall(s, report.plan.readerPace)?.ms ?? null,
  };
  return done.map(of[metric]).filter((value): value is number | number[] => value !== null && !(Array.isArray(value) && value.length === 0));
}

function compared(a: readonly (number | number[])[], b: readonly (number | number[])[], percentile: 'p50' | 'p99', found: Difference | undefined): ComparedPercentile | null {
  if (found === undefined) return null;
  const conclusion = conclude(found, Math.min(a.length, b.length), percentile === 'p50' || a.some(Array.isArray) ? 0.5 : 0.99);
  return { ...found, percentile, conclusion, text: differenceText(found, conclusion) };
}

/** Below the n that bounds the percentile of one run, resampling cannot see its tail either. Gaps are many per request: there the requests must allow a median. */
function conclude({ ci95: [low, high] }: Difference, n: number, p: number): Conclusion {
  if (n < samplesNeeded(p)) return 'too-few';
  if (low > 0) return 'a-faster';
  return high < 0 ? 'b-faster' : 'no-difference-shown';
}

function differenceText({ difference, ci95: [low, high] }: Difference, conclusion: Conclusion): string {
  if (conclusion === 'too-few') return 'n too small';
  if (conclusion === 'no-difference-shown') return `no difference shown (${digits(low, true)} to ${ms(high)})`;
  const sizes = [Math.abs(low), Math.abs(high)].sort((x, y) => x - y);
  return `${conclusion === 'b-faster' ? 'B' : 'A'} is ${ms(Math.abs(difference))} faster (${digits(sizes[0]!, true)}–${digits(sizes[1]!, true)})`;
}

function sentenceOf(rows: readonly ComparedMetric[], a: Report, b: Report): string {
  const [first] = rows;
  if (first === undefined) return 'Neither run has an answer to compare.';
  if (first.p50 === null) return `Only ${first.n[0] > 0 ? 'A' : 'B'} has answers, so there is nothing to compare.`;
  const names = a.endpoint.name === b.endpoint.name ? '' : ` A is ${a.endpoint.name}, B is ${b.endpoint.name}.`;
  return `${first.label}, median: ${first.p50.text} (A ${ms(first.p50.a)}, B ${ms(first.p50.b)}).${names}`;
}

/** Everything that differs besides what one may want to compare, and runs that saw different moments of the server. */
function warningsOf(a: Report, b: Report): string[] {
  const warnings: string[] = [];
  const differ = (what: string, x: unknown, y: unknown, then: string): void => {
    if (x !== y) warnings.push(`${what} (A ${String(x)}, B ${String(y)}): ${then}`);
  };
  if (a.plan.prompt.sha256 !== b.plan.prompt.sha256) warnings.push(`The prompts differ (A ${a.plan.prompt.name}, B ${b.plan.prompt.name}): first token and total depend on their length. Probe both with the same prompt.`);
  differ('The endpoints differ', `${a.endpoint.origin}${a.endpoint.path}`, `${b.endpoint.origin}${b.endpoint.path}`, 'the way there differs too, not only the server.');
  differ('The models differ', a.endpoint.model ?? 'unknown', b.endpoint.model ?? 'unknown', 'tokens of two models are not the same amount of text.');
  differ('The concurrency differs', a.plan.concurrency, b.plan.concurrency, 'the servers were not under the same load.');
  differ('The maximum of tokens differs', a.plan.maxTokens ?? 'none', b.plan.maxTokens ?? 'none', 'totals cannot be compared.');
  differ('The cache setting differs', a.plan.cache, b.plan.cache, 'first tokens cannot be compared. Run both cold, or both as-is.');
  differ('The warm-up differs', a.plan.warmup, b.plan.warmup, 'the one with less pays for its first requests.');
  differ('The token counts have different sources', a.throughput.source ?? 'unknown', b.throughput.source ?? 'unknown', 'TPOT and throughput may differ by the counting.');
  differ('The reader’s pace differs', a.plan.readerPace, b.plan.readerPace, 'reader stalls cannot be compared.');
  if (!interleaved(a, b)) warnings.push('The runs were not interleaved: a change of the server’s load between them looks like a difference. Compare runs that were sent in turns, or repeat both.');
  if (a.endpoint.name !== b.endpoint.name && a.environment.remote !== b.environment.remote) warnings.push('They were measured from different machines.');
  return warnings;
}

function interleaved(a: Report, b: Report): boolean {
  const [from, since] = [Date.parse(a.window.absolute), Date.parse(b.window.absolute)];
  return from < since + b.window.end && since < from + a.window.end;
}
