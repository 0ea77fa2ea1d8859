/** The percentile table, the key numbers and the facts of a run as data: the terminal and the panel show the same rows. */
import { isWarm } from './caveats';
import { clockErrorSentence, costText, outcomeNames, sloText, sourceMark, sourceName } from './format';
import { gapP99, isDue } from './goodput';
import { metricOrder, metricWords } from './metricNames';
import { leastComputed } from './prefill';
import { isProof, proofKinds, proofTtft } from './proof';
import { count, counted, digits, interval, ms, outOf, pace } from './numbers';
import type { MetricName, Report, Summary } from './report';
import { completed, firstVisible, readerStall, tpot, ttft, total, type OutcomeKind, type Sample } from './sample';
import type { PercentileName } from './statistics';

/** Columns in reading order; the unit (ms) stands once in the header. */
export const tableColumns = ['p50', 'p90', 'p95', 'p99', 'mean', 'min', 'max'] as const;

/** A column of numbers. */
export type TableColumn = (typeof tableColumns)[number];

/** One cell. */
export interface TableCell {
  readonly column: TableColumn;
  readonly value: number;
  /** Rounded, without unit. */
  readonly text: string;
  /** `198–221`, or `n too small`; null in columns that have no interval. */
  readonly interval: string | null;
}

/** How a metric stands against its limit: never colour alone, so the mark and the words are here. */
export interface SloCell {
  readonly ok: boolean;
  readonly mark: '✓' | '✗';
  /** `≤ 500 ms: 20 of 20`. */
  readonly text: string;
}

/** One row. Sub-rows follow the row they belong to. */
export interface TableRow {
  readonly metric: MetricName;
  readonly kind: 'metric' | 'cold' | 'warm' | 'from-due';
  readonly label: string;
  readonly unit: 'ms';
  /** Values in the row: requests, or gaps of all of them. */
  readonly n: number;
  readonly cells: readonly TableCell[];
  readonly slo: SloCell | null;
  /** What it is, and what other tools call it. */
  readonly definition: string;
  readonly elsewhere: string;
  /** Some value rests on counts that are not exact: shown with ≈ or ≥. */
  readonly mark: '' | '≈' | '≥';
}

/** Rows of the percentile table, in the order of the run's objective; metrics that are none have none. `samples` stands in for the report's own while they travel apart. */
export function percentileRows(report: Report, samples: readonly Sample[] = report.samples): TableRow[] {
  if (isProof(report.plan)) return proofTtft(samples).map(({ kind, summary }) => tableRow('ttft', 'metric', `${metricWords.ttft.short}, ${proofKinds[kind]}`, summary));
  return metricOrder[report.plan.objective].flatMap((metric) => {
    const summary = report.summary[metric];
    if (summary === null) return [];
    const row = tableRow(metric, 'metric', metricWords[metric].label, summary, { slo: sloCell(metric, report, samples), mark: markOf(metric, report, samples) });
    return [row, ...(metric === 'ttft' ? coldWarmRows(report) : []), ...fromDueRows(metric, report)];
  });
}

function tableRow(metric: MetricName, kind: TableRow['kind'], label: string, summary: Summary, extra: Partial<Pick<TableRow, 'slo' | 'mark'>> = {}): TableRow {
  return {
    metric,
    kind,
    label,
    unit: 'ms',
    n: summary.n,
    cells: tableColumns.map((column) => ({ column, value: summary[column], text: digits(summary[column], true), interval: isPercentile(column) ? interval(summary.ci95[column]) : null })),
    slo: extra.slo ?? null,
    definition: metricWords[metric].definition,
    elsewhere: metricWords[metric].elsewhere,
    mark: extra.mark ?? '',
  };
}

function isPercentile(column: TableColumn): column is PercentileName {
  return column.startsWith('p');
}

/** Sub-rows only where there is something to tell apart. */
function coldWarmRows({ coldWarm }: Report): TableRow[] {
  if (coldWarm === null || coldWarm.cold === null || coldWarm.warm === null) return [];
  const [cold, warm] = coldWarm.by === 'cached-tokens' ? ['cold (not cached)', 'warm (cached)'] : ['first request', 'repeats'];
  return [tableRow('ttft', 'cold', cold, coldWarm.cold), tableRow('ttft', 'warm', warm, coldWarm.warm)];
}

function fromDueRows(metric: MetricName, { fromDue }: Report): TableRow[] {
  const summary = metric === 'ttft' || metric === 'firstVisible' || metric === 'total' ? (fromDue?.[metric] ?? null) : null;
  return summary === null ? [] : [tableRow(metric, 'from-due', 'from when it was due', summary)];
}

/** Metrics that rest on a token count carry the mark of its source; a reader stall that had to spread tokens is ≈. */
function markOf(metric: MetricName, { plan, throughput }: Report, samples: readonly Sample[]): TableRow['mark'] {
  if (metric === 'tpot' || metric === 'itl') return sourceMark(throughput.source);
  if (metric !== 'readerStall') return '';
  return samples.some((s) => s.role === 'measured' && completed(s) && readerStall(s, plan.readerPace)?.approximate === true) ? '≈' : '';
}

/** Limits by the row they stand in, and the value each judges. */
const limits = {
  ttft: ['ttft', ttft],
  firstVisible: ['firstVisible', firstVisible],
  tpot: ['tpot', tpot],
  chunkGap: ['gapP99', gapP99],
  total: ['total', total],
} as const;

function sloCell(metric: MetricName, report: Report, samples: readonly Sample[]): SloCell | null {
  if (!(metric in limits)) return null;
  const [name, value] = limits[metric as keyof typeof limits];
  const most = report.plan.slo[name];
  if (most === undefined) return null;
  const passes = name === 'tpot' || name === 'gapP99';
  const due = samples.filter(isDue);
  if (due.length === 0) return null;
  const within = due.filter((s) => {
    const v = completed(s) ? value(s) : undefined;
    return v === null ? passes : v !== undefined && v <= most;
  }).length;
  const ok = within >= report.plan.slo.attainment * due.length;
  return { ok, mark: ok ? '✓' : '✗', text: `${name === 'gapP99' ? 'p99 ' : ''}≤ ${ms(most)}: ${outOf(within, due.length)}` };
}

/** One of the few large numbers at the top. */
export interface KeyNumber {
  readonly id: 'ttft' | 'firstVisible' | 'tpot' | 'throughput' | 'goodput' | 'cost' | 'total';
  readonly label: string;
  /** Large: the median, or the rate itself. */
  readonly value: string;
  /** Small beside it: `p99 410 ms`, `31 tokens/s`. */
  readonly beside: string;
  /** Its own value for every answer (ms), for the dot strip; empty for rates of the whole run. */
  readonly dots: readonly number[];
  /** Interval of the median, for the whisker. */
  readonly whisker: readonly [number | null, number | null] | null;
  readonly definition: string;
}

/** At most four key numbers, those of the objective first. */
export function keyNumbers(report: Report, samples: readonly Sample[] = report.samples): KeyNumber[] {
  // What a proof found stands in its verdict and table; its answers of a few tokens have no pace worth a large number.
  if (isProof(report.plan)) return [];
  const done = samples.filter((s) => s.role === 'measured' && completed(s));
  const latency = (id: 'ttft' | 'firstVisible' | 'tpot' | 'total', value: (s: Sample) => number | null): KeyNumber[] => {
    const row = report.summary[id];
    if (row === null) return [];
    const speed = id === 'tpot' && report.perUser !== null ? `${pace(report.perUser.p50)}, ` : '';
    return [{ id, label: metricWords[id].label, value: ms(row.p50), beside: `${speed}p99 ${ms(row.p99)}`, dots: done.map(value).filter((v) => v !== null), whisker: row.ci95.p50, definition: metricWords[id].definition }];
  };
  // Only when it differs: a reader of an answer without reasoning waits for the first token.
  const visible = report.summary.firstVisible !== null && report.summary.firstVisible.p50 !== report.summary.ttft?.p50 ? latency('firstVisible', firstVisible) : [];
  const chat = [...latency('ttft', ttft), ...visible, ...latency('tpot', tpot), ...(report.goodput === null ? throughputNumber(report) : goodputNumber(report))];
  const batch = [...throughputNumber(report), ...costNumber(report), ...latency('total', total), ...latency('tpot', tpot)];
  return (report.plan.objective === 'chat' ? chat : batch).slice(0, 4);
}

function rateNumber(id: KeyNumber['id'], label: string, value: string, beside: string, definition: string): KeyNumber[] {
  return [{ id, label, value, beside, dots: [], whisker: null, definition }];
}

function throughputNumber({ throughput }: Report): KeyNumber[] {
  if (throughput.tokensPerSecond === null) return [];
  const requests = throughput.requestsPerSecond === null ? '' : `${digits(throughput.requestsPerSecond)} requests/s`;
  return rateNumber('throughput', 'Throughput', `${sourceMark(throughput.source)}${pace(throughput.tokensPerSecond)}`, requests, 'Output tokens of all answers divided by the time from the first start to the last end; warm-up is outside.');
}

function goodputNumber({ goodput, attainment, plan }: Report): KeyNumber[] {
  if (goodput === null || attainment === null) return [];
  return rateNumber('goodput', 'Goodput', `${digits(goodput.perMinute)} good answers/min`, `${outOf(attainment.good, attainment.due)} good`, `Answers that meet the SLO (${sloText(plan.slo)}) per minute; failures are due and not good.`);
}

function costNumber({ throughput }: Report): KeyNumber[] {
  const cost = throughput.tokensPerCost;
  if (cost === null) return [];
  return rateNumber('cost', 'Throughput per cost', `${digits(cost.value)} tokens/${cost.currency}`, cost.from === 'gpu' ? 'by the GPU’s price' : 'by token prices', 'Output tokens per unit of money: by the price of the GPU for the time of the run, or by the prices of the tokens.');
}

/** One line of facts. */
export interface Fact {
  readonly label: string;
  readonly text: string;
}

/** What was measured, where, with what counts, and what it cost and yielded. */
export function reportFacts(report: Report): Fact[] {
  const { endpoint, plan, throughput, cache } = report;
  const proof = isProof(plan);
  const facts: (Fact | null)[] = [
    { label: 'Endpoint', text: `${endpoint.name} (${endpoint.origin}${endpoint.path})${endpoint.server === null ? '' : `, ${endpoint.server}`}` },
    { label: 'Model', text: `${endpoint.model ?? 'not told'}, API ${endpoint.api}${endpoint.alpn === null ? '' : `, ${endpoint.alpn}`}` },
    { label: 'Plan', text: planText(report) },
    { label: 'Prompt', text: `${plan.prompt.name}, ${counted(plan.prompt.characters, 'character')}` },
    { label: 'Tokens from', text: sourceName(throughput.source) },
    { label: 'Window', text: `${ms(report.window.end)} from ${report.window.absolute}` },
    proof || throughput.tokensPerSecond === null ? null : { label: 'Throughput', text: `${sourceMark(throughput.source)}${pace(throughput.tokensPerSecond)}${throughput.requestsPerSecond === null ? '' : `, ${digits(throughput.requestsPerSecond)} requests/s`}` },
    proof || throughput.tokensPerCost === null ? null : { label: 'Per cost', text: costText(throughput.tokensPerCost) },
    proof ? null : { label: 'SLO', text: sloText(plan.slo) },
    report.goodput === null || report.attainment === null ? null : { label: 'Goodput', text: `${digits(report.goodput.perSecond)}/s, ${digits(report.goodput.perMinute)}/min (${outOf(report.attainment.good, report.attainment.due)} good; 95 % interval of the share ${digits(report.attainment.ci95[0])}–${digits(report.attainment.ci95[1])})` },
    { label: 'Outcomes', text: outcomesText(report.outcomes) },
    { label: 'Cache', text: cacheText(cache) },
    // A proof says it in its own sentences.
    proof || report.prefillRate === null ? null : { label: 'Prefill', text: `${digits(report.prefillRate.p50)} prompt tokens/s, in the median of ${counted(report.prefillRate.n, 'answer')} that had at least ${leastComputed} not cached` },
    { label: 'Measuring error', text: clockErrorSentence(report.clockError) },
    report.environment.remote === null ? null : { label: 'Measured from', text: report.environment.remote },
  ];
  return facts.filter((fact) => fact !== null);
}

function planText({ plan }: Report): string {
  const most = plan.maxTokens === null ? '' : `, at most ${counted(plan.maxTokens, 'token')}`;
  return `${plan.scenario}: ${counted(plan.requests, 'request')}, ${count(plan.concurrency)} at a time, ${plan.warmup === 0 ? 'no warm-up' : `${count(plan.warmup)} before as warm-up`}${most}, cache ${plan.cache}`;
}

/** Outcomes as words: `ok 19, HTTP error 1`. */
export function outcomesText(outcomes: Report['outcomes']): string {
  const entries = Object.entries(outcomes) as [OutcomeKind, number][];
  return entries.length === 0 ? 'none yet' : entries.map(([kind, n]) => `${outcomeNames[kind]} ${count(n)}`).join(', ');
}

function cacheText({ promptTokens, cachedTokens, hits, unknown, hint }: Report['cache']): string {
  const told = cachedTokens === null ? 'cached tokens unknown: the server does not tell' : `${promptTokens === null ? counted(cachedTokens, 'prompt token') : `${outOf(cachedTokens, promptTokens)} prompt tokens`} from the cache, in ${counted(hits, 'answer')}`;
  const some = cachedTokens !== null && unknown > 0 ? `, unknown in ${count(unknown)}` : '';
  return `${told}${some}.${hint === null ? '' : ` ${hint}`}`;
}

/** How one request stands in a list: its cache state in one word, null when the server does not tell. */
export function cacheState(s: Sample): 'cold' | 'warm' | null {
  const warm = isWarm(s);
  if (warm === null) return null;
  return warm ? 'warm' : 'cold';
}
