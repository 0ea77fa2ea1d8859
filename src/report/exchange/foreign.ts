/**
 * Result files of other tools, read by their content. Nothing is converted into our metrics: every number keeps the tool's own name
 * and definition, and what the file does not say is null. Only units are made equal (ms).
 */
import { count, digits } from '../numbers';
import { percentile, sorted } from '../statistics';

/** Tools whose result files are read. */
export type ForeignTool = 'vllm bench serve' | 'SGLang bench_serving' | 'GuideLLM' | 'AIPerf' | 'LLMPerf';

/** The statistics a file may hold. */
export type ForeignStatistic = 'mean' | 'min' | 'p50' | 'p90' | 'p95' | 'p99' | 'max';

/** One latency as the tool measured it, in ms. */
export interface ForeignMetric {
  /** The tool's own name. */
  readonly name: string;
  /** The tool's own definition, in a few words. */
  readonly definition: string;
  readonly n: number | null;
  readonly values: Readonly<Record<ForeignStatistic, number | null>>;
  /** Statistics that the file lacks and that were computed here from its own values per request. */
  readonly computed: readonly ForeignStatistic[];
}

/** A number of the whole run under the tool's own name. */
export interface ForeignRate {
  readonly name: string;
  readonly value: number;
  readonly unit: string;
}

/** One run in the file. */
export interface ForeignRun {
  readonly title: string;
  readonly facts: readonly (readonly [label: string, text: string])[];
  readonly metrics: readonly ForeignMetric[];
  readonly rates: readonly ForeignRate[];
}

/** What a file of another tool says. JSON-safe. */
export interface ForeignReport {
  readonly schema: 'first-token/foreign@1';
  readonly tool: ForeignTool;
  /** The tool's version or the version of its file, null when not told. */
  readonly version: string | null;
  readonly runs: readonly ForeignRun[];
}

type Fields = Readonly<Record<string, unknown>>;

/** The columns, in order. */
export const foreignStatistics: readonly ForeignStatistic[] = ['mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max'];

const nothing: ForeignMetric['values'] = { mean: null, min: null, p50: null, p90: null, p95: null, p99: null, max: null };

/** Reads a result file of another tool; null when it is of none that is known. Never throws. */
export function readForeign(text: string): ForeignReport | null {
  const content = text.replace(/^\uFEFF/, '').trim();
  if (content === '') return null;
  if (!content.startsWith('{') && !content.startsWith('[')) return readCsv(content);
  const whole = parseJson(content);
  const objects = whole !== undefined ? (Array.isArray(whole) ? whole : [whole]) : content.split(/\r?\n/).filter((line) => line.trim() !== '').map(parseJson);
  const all = objects.filter(isFields);
  // A last line that was cut off is dropped; anything else that is not an object makes this no file of ours to read.
  if (all.length === 0 || objects.length - all.length > 1) return null;
  const [first] = all as [Fields];
  if (Array.isArray(first['benchmarks'])) return guidellm(first, first['benchmarks'].filter(isFields));
  if (all.every(isAiperfRecord)) return aiperfRecords(all);
  if (all.every(isSglang)) return report('SGLang bench_serving', null, all.map(sglangRun));
  if (all.every(isVllm)) return report('vllm bench serve', null, all.map(vllmRun));
  if (all.every(isLlmperf)) return report('LLMPerf', textOf(first['version']), all.map(llmperfRun));
  return all.length === 1 && isAiperf(first) ? report('AIPerf', textOf(first['aiperf_version']), [aiperfRun(first)]) : null;
}

function report(tool: ForeignTool, version: string | null, runs: readonly ForeignRun[]): ForeignReport | null {
  const told = runs.filter((run) => run.metrics.length > 0 || run.rates.length > 0);
  return told.length === 0 ? null : { schema: 'first-token/foreign@1', tool, version, runs: told };
}

/** JSON as Python writes it, where NaN and Infinity are numbers; they become null. Undefined for anything else. */
function parseJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    try {
      return JSON.parse(text.replace(/"(?:[^"\\]|\\.)*"|-?\bInfinity\b|\bNaN\b/g, (word) => (word.startsWith('"') ? word : 'null'))) as unknown;
    } catch {
      return undefined;
    }
  }
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function numberOf(value: unknown): number | null {
  return typeof value === 'number' && Number.isFinite(value) ? value : null;
}

function textOf(value: unknown): string | null {
  return typeof value === 'string' && value !== '' ? value : typeof value === 'number' ? String(value) : null;
}

function inside(value: unknown, ...path: readonly string[]): unknown {
  return path.reduce<unknown>((at, name) => (isFields(at) ? at[name] : undefined), value);
}

function facts(pairs: readonly (readonly [label: string, value: unknown])[]): (readonly [string, string])[] {
  return pairs.flatMap(([label, value]) => {
    const text = typeof value === 'boolean' ? (value ? 'yes' : 'no') : typeof value === 'number' ? (Number.isInteger(value) ? count(value) : digits(value)) : textOf(value);
    return text === null ? [] : [[label, text] as const];
  });
}

function rates(pairs: readonly (readonly [name: string, value: unknown, unit: string])[]): ForeignRate[] {
  return pairs.flatMap(([name, given, unit]) => {
    const value = numberOf(given);
    return value === null ? [] : [{ name, value, unit }];
  });
}

/** A metric, unless the file says nothing about it. What the file lacks is computed from `raw`, its own values (ms). */
function metric(name: string, definition: string, told: Partial<Record<ForeignStatistic, unknown>>, n: number | null, raw: readonly number[] = []): ForeignMetric[] {
  const values: Record<ForeignStatistic, number | null> = { ...nothing };
  const computed: ForeignStatistic[] = [];
  const order = raw.length > 0 ? sorted(raw) : null;
  for (const statistic of foreignStatistics) {
    values[statistic] = numberOf(told[statistic]);
    if (values[statistic] !== null || order === null) continue;
    values[statistic] = statistic === 'mean' ? raw.reduce((sum, value) => sum + value, 0) / raw.length : percentile(order, { min: 0, p50: 0.5, p90: 0.9, p95: 0.95, p99: 0.99, max: 1 }[statistic]);
    computed.push(statistic);
  }
  if (foreignStatistics.every((statistic) => values[statistic] === null)) return [];
  return [{ name, definition, n: n ?? (order === null ? null : raw.length), values, computed }];
}

function secondsToMs(values: readonly number[]): number[] {
  return values.map((value) => value * 1000);
}

// vllm bench serve: --save-result writes one object, --append-result one a line, --save-detailed adds values per request (s).

function isVllm(fields: Fields): boolean {
  return 'request_throughput' in fields && 'total_token_throughput' in fields && ('backend' in fields || 'endpoint_type' in fields);
}

/** `mean_ttft_ms`, `median_ttft_ms`, `p99_ttft_ms` … of vLLM and SGLang. */
function flat(fields: Fields, name: string): Partial<Record<ForeignStatistic, unknown>> {
  return { mean: fields[`mean_${name}_ms`], min: fields[`min_${name}_ms`], p50: fields[`median_${name}_ms`] ?? fields[`p50_${name}_ms`], p90: fields[`p90_${name}_ms`], p95: fields[`p95_${name}_ms`], p99: fields[`p99_${name}_ms`], max: fields[`max_${name}_ms`] };
}

/** Values per request (s) of those that succeeded; empty without details. */
function perRequest(fields: Fields, name: string): number[] {
  const values = fields[name];
  const errors = Array.isArray(fields['errors']) ? (fields['errors'] as unknown[]) : [];
  return Array.isArray(values) ? values.filter((value: unknown, i): value is number => numberOf(value) !== null && (errors[i] ?? '') === '') : [];
}

function pooled(fields: Fields, name: string): number[] {
  const lists = fields[name];
  const all: number[] = [];
  if (Array.isArray(lists)) for (const list of lists as unknown[]) if (Array.isArray(list)) for (const value of list as unknown[]) if (typeof value === 'number' && Number.isFinite(value)) all.push(value * 1000);
  return all;
}

function loadTitle(rate: unknown, concurrency: unknown): string {
  const perSecond = numberOf(rate);
  const most = numberOf(concurrency);
  if (perSecond !== null) return most === null ? `${perSecond} requests/s` : `${perSecond} requests/s, at most ${most} at once`;
  return most === null ? 'all at once' : `${most} at once`;
}

function vllmRun(fields: Fields): ForeignRun {
  const completed = numberOf(fields['completed']);
  return {
    title: loadTitle(fields['request_rate'], fields['max_concurrency']),
    facts: facts([['Model', fields['model_id']], ['Backend', fields['backend'] ?? fields['endpoint_type']], ['Date', fields['date']], ['Answered', completed], ['Failed', fields['failed']], ['Prompts', fields['num_prompts']], ['Prompt tokens', fields['total_input_tokens']], ['Answer tokens', fields['total_output_tokens']], ['Duration, s', fields['duration']]]),
    metrics: [
      ...metric('TTFT', 'to the first frame with choices, role-only included', flat(fields, 'ttft'), completed, secondsToMs(perRequest(fields, 'ttfts'))),
      ...metric('TPOT', '(latency − TTFT) / (N − 1) per answer; 0 for one token', flat(fields, 'tpot'), completed),
      ...metric('ITL', 'gaps between frames; one frame is one token', flat(fields, 'itl'), null, pooled(fields, 'itls')),
      ...metric('E2EL', 'from sending to the last frame', flat(fields, 'e2el'), completed, secondsToMs(perRequest(fields, 'latencies'))),
      ...metric('Client queue time', 'waiting for one of the slots of --max-concurrency, before sending', flat(fields, 'client_queue_time'), completed),
    ],
    rates: rates([['Request throughput', fields['request_throughput'], 'requests/s'], ['Request goodput', fields['request_goodput'], 'requests/s'], ['Output token throughput', fields['output_throughput'], 'tokens/s'], ['Total token throughput', fields['total_token_throughput'], 'tokens/s, prompts included'], ['Peak concurrent requests', fields['max_concurrent_requests'], 'requests']]),
  };
}

// SGLang bench_serving: one object a line; --output-details adds values per request (s).

function isSglang(fields: Fields): boolean {
  return 'request_throughput' in fields && ('mean_e2e_latency_ms' in fields || 'total_output_tokens_retokenized' in fields);
}

function sglangRun(fields: Fields): ForeignRun {
  const completed = numberOf(fields['completed']);
  return {
    title: loadTitle(fields['request_rate'], fields['max_concurrency']),
    facts: facts([['Model', inside(fields['server_info'], 'model_path')], ['Backend', fields['backend']], ['Data', fields['dataset_name']], ['Answered', completed], ['Prompt tokens', fields['total_input_tokens']], ['Answer tokens', fields['total_output_tokens']], ['Answer tokens, counted again', fields['total_output_tokens_retokenized']], ['Tokens a step (speculative)', fields['accept_length']], ['Duration, s', fields['duration']]]),
    metrics: [
      ...metric('TTFT', 'to the first frame with content or reasoning', flat(fields, 'ttft'), completed, secondsToMs(perRequest(fields, 'ttfts'))),
      ...metric('TPOT', '(latency − TTFT) / (N − 1) per answer', flat(fields, 'tpot'), completed),
      ...metric('ITL', 'gaps between frames with content; one frame is one token', flat(fields, 'itl'), null, pooled(fields, 'itls')),
      ...metric('E2E latency', 'from sending to the last line, usage included', flat(fields, 'e2e_latency'), completed),
    ],
    rates: rates([['Request throughput', fields['request_throughput'], 'requests/s'], ['Output token throughput', fields['output_throughput'], 'tokens/s'], ['Input token throughput', fields['input_throughput'], 'tokens/s'], ['Concurrency', fields['concurrency'], 'requests, mean']]),
  };
}

// GuideLLM: one JSON document with a list of benchmarks; or CSV with three rows of headers.

const guidellmMetrics = [
  ['time_to_first_token_ms', 'Time to first token', 'to the first line with content, reasoning or a tool call; wall clock', 1],
  ['time_per_output_token_ms', 'Time per output token', '(last − start) / N per answer: includes the first token', 1],
  ['inter_token_latency_ms', 'Inter-token latency', '(last − first) / (N − 1), one mean per answer', 1],
  ['request_latency', 'Request latency', 'from start to end of a request', 1000],
] as const;

function guidellm(whole: Fields, benchmarks: readonly Fields[]): ForeignReport | null {
  return report('GuideLLM', textOf(inside(whole, 'metadata', 'guidellm_version')), benchmarks.map(guidellmRun));
}

function guidellmRun(benchmark: Fields): ForeignRun {
  const metrics = isFields(benchmark['metrics']) ? benchmark['metrics'] : {};
  const strategy = inside(benchmark, 'config', 'strategy') ?? inside(benchmark, 'args', 'strategy');
  const totals = metrics['request_totals'];
  const successful = (name: string): unknown => inside(metrics, name, 'successful') ?? inside(metrics, name, 'total');
  return {
    title: strategyTitle(strategy),
    facts: facts([['Answered', inside(totals, 'successful')], ['Failed', inside(totals, 'errored')], ['Not finished', inside(totals, 'incomplete')], ['Prompt tokens, mean', inside(successful('prompt_token_count'), 'mean')], ['Answer tokens, mean', inside(successful('output_token_count'), 'mean')], ['Duration, s', benchmark['duration']]]),
    metrics: guidellmMetrics.flatMap(([field, name, definition, factor]) => {
      const summary = successful(field);
      const scaled = (value: unknown): number | null => (numberOf(value) === null ? null : (value as number) * factor);
      const at = (p: string): number | null => scaled(inside(summary, 'percentiles', p));
      return metric(name, definition, { mean: scaled(inside(summary, 'mean')), min: scaled(inside(summary, 'min')), p50: scaled(inside(summary, 'median')) ?? at('p50'), p90: at('p90'), p95: at('p95'), p99: at('p99'), max: scaled(inside(summary, 'max')) }, numberOf(inside(summary, 'count')));
    }),
    rates: rates([['Requests per second', inside(successful('requests_per_second'), 'mean'), 'requests/s, mean'], ['Output tokens per second', inside(successful('output_tokens_per_second'), 'mean'), 'tokens/s, mean'], ['Total tokens per second', inside(successful('tokens_per_second'), 'mean'), 'tokens/s, mean, prompts included'], ['Concurrency', inside(successful('request_concurrency'), 'mean'), 'requests, mean']]),
  };
}

function strategyTitle(strategy: unknown): string {
  const kind = textOf(inside(strategy, 'type_')) ?? textOf(inside(strategy, 'kind')) ?? textOf(strategy) ?? 'run';
  const rate = numberOf(inside(strategy, 'rate'));
  const streams = numberOf(inside(strategy, 'streams'));
  return `${kind}${rate === null ? '' : `, ${rate} requests/s`}${streams === null ? '' : `, ${streams} at once`}`;
}

const guidellmColumns = { 'Time to First Token': 0, 'Time per Output Token': 1, 'Inter Token Latency': 2, 'Request Latency': 3 } as const;

function guidellmCsv(rows: readonly (readonly string[])[]): ForeignReport | null {
  const [groups, names, statistics] = rows as [readonly string[], readonly string[], readonly string[]];
  const runs = rows.slice(3).filter((row) => row.length > 1).map((row): ForeignRun => {
    const cell = (group: string, name: RegExp, statistic = ''): string | null => {
      const at = groups.findIndex((head, i) => head === group && name.test(names[i] ?? '') && (statistics[i] ?? '') === statistic);
      return at < 0 || row[at] === '' || row[at] === undefined ? null : row[at];
    };
    const number = (text: string | null): number | null => (text === null ? null : numberOf(Number(text)));
    const metrics = Object.entries(guidellmColumns).flatMap(([group, index]) => {
      const [, name, definition, factor] = guidellmMetrics[index];
      const of = (statistic: string): number | null => {
        const value = number(cell(group, /^Successful /, statistic));
        return value === null ? null : value * factor;
      };
      const listed = (cell(group, /^Successful /, 'Percentiles') ?? '').replace(/[[\]\s]/g, '').split(',').map((part) => (part === '' ? null : numberOf(Number(part))));
      const at = (i: number): number | null => (listed[i] === null || listed[i] === undefined ? null : listed[i] * factor);
      // [min, p0.1, p1, p5, p10, p25, p75, p90, p95, p99, max]
      return metric(name, definition, { mean: of('Mean'), min: at(0), p50: of('Median'), p90: at(7), p95: at(8), p99: at(9), max: at(10) }, number(cell('Request Counts', /^Successful$/)));
    });
    return {
      title: cell('Benchmark', /^Strategy$/) ?? 'run',
      facts: facts([['Answered', cell('Request Counts', /^Successful$/)], ['Failed', cell('Request Counts', /^Errored$/)], ['Not finished', cell('Request Counts', /^Incomplete$/)], ['Duration, s', cell('Timings', /^Duration$/, 'Sec')]]),
      metrics,
      rates: rates([['Requests per second', number(cell('Server Throughput', /^Successful Requests\/Sec$/, 'Mean')), 'requests/s, mean'], ['Output tokens per second', number(cell('Token Throughput', /^Successful Output Tokens\/Sec$/, 'Mean')), 'tokens/s, mean']]),
    };
  });
  return report('GuideLLM', null, runs);
}

// AIPerf: profile_export_aiperf.json and .csv hold aggregates, profile_export.jsonl one record a request.

const aiperfMetrics: readonly (readonly [tag: string, name: string, definition: string])[] = [
  ['time_to_first_token', 'Time to First Token', 'to the first response with content or reasoning'],
  ['time_to_second_token', 'Time to Second Token', 'from the first to the second response'],
  ['inter_token_latency', 'Inter Token Latency', '(latency − TTFT) / (N − 1), one mean per answer'],
  ['inter_chunk_latency', 'Inter Chunk Latency', 'the gaps between responses'],
  ['request_latency', 'Request Latency', 'from sending to the last response'],
];

const aiperfRates: readonly (readonly [tag: string, name: string])[] = [
  ['request_throughput', 'Request Throughput'],
  ['goodput', 'Goodput'],
  ['output_token_throughput', 'Output Token Throughput'],
  ['output_token_throughput_per_user', 'Output Token Throughput Per User'],
];

const unitsInMs: Readonly<Record<string, number>> = { ns: 1e-6, us: 1e-3, µs: 1e-3, ms: 1, s: 1000, sec: 1000, seconds: 1000 };

function isAiperf(fields: Fields): boolean {
  return aiperfMetrics.some(([tag]) => typeof inside(fields, tag, 'unit') === 'string' && numberOf(inside(fields, tag, 'avg')) !== null);
}

function aiperfRun(fields: Fields): ForeignRun {
  const answered = numberOf(inside(fields, 'request_count', 'avg'));
  const loadgen = inside(fields, 'input_config', 'loadgen');
  const models = inside(fields, 'input_config', 'endpoint', 'model_names');
  return {
    title: loadTitle(inside(loadgen, 'request_rate'), inside(loadgen, 'concurrency')).replace(/^all at once$/, 'run'),
    facts: facts([['Model', Array.isArray(models) ? models.filter((name) => typeof name === 'string').join(', ') : models], ['Answered', answered], ['Failed', inside(fields, 'error_request_count', 'avg')], ['Prompt tokens, mean', inside(fields, 'input_sequence_length', 'avg')], ['Answer tokens, mean', inside(fields, 'output_sequence_length', 'avg')], ['Cancelled', fields['was_cancelled'] === true ? true : null], ['Duration, s', inside(fields, 'benchmark_duration', 'avg')]]),
    metrics: aiperfMetrics.flatMap(([tag, name, definition]) => {
      const summary = fields[tag];
      const factor = unitsInMs[textOf(inside(summary, 'unit')) ?? ''];
      if (factor === undefined) return [];
      const scaled = (statistic: string): number | null => {
        const value = numberOf(inside(summary, statistic));
        return value === null ? null : value * factor;
      };
      return metric(name, definition, { mean: scaled('avg'), min: scaled('min'), p50: scaled('p50'), p90: scaled('p90'), p95: scaled('p95'), p99: scaled('p99'), max: scaled('max') }, tag === 'inter_chunk_latency' ? null : answered);
    }),
    rates: rates(aiperfRates.map(([tag, name]) => [name, inside(fields, tag, 'avg'), textOf(inside(fields, tag, 'unit')) ?? ''] as const)),
  };
}

function isAiperfRecord(fields: Fields): boolean {
  return isFields(fields['metadata']) && ('request_start_ns' in fields['metadata'] || 'benchmark_phase' in fields['metadata']) && 'metrics' in fields;
}

function aiperfRecords(records: readonly Fields[]): ForeignReport | null {
  const profiling = records.filter((record) => (inside(record, 'metadata', 'benchmark_phase') ?? 'profiling') === 'profiling');
  const answered = profiling.filter((record) => !isFields(record['error']));
  const valuesOf = (tag: string): number[] => answered.flatMap((record) => {
    const value = inside(record, 'metrics', tag, 'value');
    const factor = unitsInMs[textOf(inside(record, 'metrics', tag, 'unit')) ?? ''];
    if (factor === undefined) return [];
    return (Array.isArray(value) ? (value as unknown[]) : [value]).flatMap((one) => (numberOf(one) === null ? [] : [(one as number) * factor]));
  });
  const run: ForeignRun = {
    title: 'records per request',
    facts: facts([['Answered', answered.length], ['Failed', profiling.length - answered.length]]),
    metrics: aiperfMetrics.flatMap(([tag, name, definition]) => metric(name, definition, {}, null, valuesOf(tag))),
    rates: [],
  };
  return report('AIPerf', null, [run]);
}

function aiperfCsv(rows: readonly (readonly string[])[]): ForeignReport | null {
  const fields: Record<string, Record<string, unknown>> = {};
  let head: readonly string[] = [];
  for (const row of rows) {
    if (row[0] === 'Metric') head = row;
    const match = /^(.*?)(?: \(([^)]*)\))?$/.exec(row[0] ?? '');
    const known = [...aiperfMetrics, ...aiperfRates, ['request_count', 'Request Count'] as const, ['error_request_count', 'Error Request Count'] as const].find(([, name]) => name.toLowerCase() === (match?.[1] ?? '').trim().toLowerCase());
    if (!known || head.length < 2) continue;
    const cells = head.slice(1).map((statistic, i) => [statistic === 'Value' ? 'avg' : statistic, row[i + 1] === '' || row[i + 1] === undefined ? null : Number(row[i + 1])] as const);
    fields[known[0]] = { unit: match?.[2] ?? '', ...Object.fromEntries(cells) };
  }
  return isAiperf(fields) ? report('AIPerf', null, [aiperfRun(fields)]) : null;
}

// LLMPerf: a flat object; `results_ttft_s_quantiles_p50` …, in seconds.

function isLlmperf(fields: Fields): boolean {
  return 'results_ttft_s_mean' in fields || 'results_inter_token_latency_s_mean' in fields;
}

function llmperfRun(fields: Fields): ForeignRun {
  const completed = numberOf(fields['results_num_completed_requests']);
  const seconds = (name: string): Partial<Record<ForeignStatistic, unknown>> => {
    const of = (statistic: string): number | null => {
      const value = numberOf(fields[`results_${name}_${statistic}`]);
      return value === null ? null : value * 1000;
    };
    return { mean: of('mean'), min: of('min'), p50: of('quantiles_p50'), p90: of('quantiles_p90'), p95: of('quantiles_p95'), p99: of('quantiles_p99'), max: of('max') };
  };
  return {
    title: loadTitle(null, fields['num_concurrent_requests']).replace(/^all at once$/, 'run'),
    facts: facts([['Model', fields['model']], ['Answered', completed], ['Failed', fields['results_number_errors']], ['Prompt tokens, mean', fields['results_number_input_tokens_mean']], ['Answer tokens, mean', fields['results_number_output_tokens_mean']]]),
    metrics: [
      ...metric('ttft_s', 'to the first data line with content', seconds('ttft_s'), completed),
      ...metric('inter_token_latency_s', 'mean of all gaps, the first token’s wait among them, divided by the lines: one per answer', seconds('inter_token_latency_s'), completed),
      ...metric('end_to_end_latency_s', 'from sending to the end', seconds('end_to_end_latency_s'), completed),
    ],
    rates: rates([['mean_output_throughput_token_per_s', fields['results_mean_output_throughput_token_per_s'], 'tokens/s'], ['num_completed_requests_per_min', fields['results_num_completed_requests_per_min'], 'requests/min']]),
  };
}

function readCsv(text: string): ForeignReport | null {
  const rows = csvRows(text.slice(0, 20_000_000));
  const [first = []] = rows;
  if (first[0] === 'Metric') return aiperfCsv(rows);
  return rows.length > 3 && first.includes('Time to First Token') ? guidellmCsv(rows) : null;
}

/** Comma-separated values by RFC 4180, rows of any length. */
function csvRows(text: string): string[][] {
  const rows: string[][] = [[]];
  for (const [, quoted, plain, end] of text.matchAll(/(?:"((?:[^"]|"")*)"|([^,\r\n]*))(,|\r?\n|$)/g)) {
    rows.at(-1)!.push(quoted === undefined ? (plain ?? '') : quoted.replaceAll('""', '"'));
    if (end === '') break;
    if (end !== ',') rows.push([]);
  }
  return rows;
}
