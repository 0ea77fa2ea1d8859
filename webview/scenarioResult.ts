import { count, digits, ms, outOf } from '../src/report/format';
import { besideServed, prefixTable } from './prefixResult';

/** One step of a sweep: the load, and what came of it. Rates per second; null = not told. */
export interface SweepStep {
  readonly load: number;
  readonly throughput: number | null;
  readonly perUser: number | null;
  readonly goodput: number | null;
  /** First token, ms. */
  readonly ttft: { readonly p50: number; readonly p99: number } | null;
  readonly good: { readonly good: number; readonly due: number } | null;
  readonly verdict: 'met' | 'missed' | 'unclear' | null;
}

/** A sweep over concurrency or rate, and its knee. */
export interface Sweep {
  readonly axis: string;
  readonly steps: readonly SweepStep[];
  readonly knee: number | null;
}

/** What the panel shows of a scenario. The first row of `table` is its head. */
export interface ScenarioView {
  readonly title: string;
  readonly verdict: string | null;
  readonly sentences: readonly string[];
  /** What stands at the table, when it is the first thing to read. */
  readonly first: readonly string[];
  readonly sweep: Sweep | null;
  readonly table: readonly (readonly string[])[];
}

type Fields = Readonly<Record<string, unknown>>;

/** Reads a scenario's result as stored in a report. The report may be of an older version: what is missing is left out, nothing is guessed. */
export function readScenario(name: string, result: unknown): ScenarioView {
  const fields = isFields(result) ? result : {};
  const sweep = readSweep(fields);
  const proof = prefixTable(fields);
  const sentences = [fields['sentences'], ended(fields['ended'])].flatMap((value: unknown): unknown[] => (Array.isArray(value) ? value : [value])).filter((value) => typeof value === 'string');
  return {
    title: proof ? 'Predicted and served' : name.charAt(0).toUpperCase() + name.slice(1),
    // The verdict of a proof is the panel's own.
    verdict: typeof fields['verdict'] === 'string' && !proof ? fields['verdict'] : null,
    first: proof ? sentences.filter(besideServed) : [],
    sentences: proof ? sentences.filter((sentence) => !besideServed(sentence)) : sentences,
    sweep,
    table: sweep ? sweepTable(sweep) : proof ?? [...evidenceTable(fields['evidence']), ...rowsTable(fields['rows'])],
  };
}

function isFields(value: unknown): value is Fields {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function readSweep(result: Fields): Sweep | null {
  if (!Array.isArray(result['steps'])) return null;
  const all = result['steps'].filter(isFields);
  const by = all.every((step) => typeof step['concurrency'] === 'number') ? 'concurrency' : all.every((step) => typeof step['rate'] === 'number') ? 'rate' : all.every((step) => typeof step['load'] === 'number') ? 'load' : null;
  if (by === null || all.length === 0) return null;
  const knee = isFields(result['knee']) ? numberIn(result['knee'], by) : null;
  return { axis: by === 'rate' ? 'requests per second' : by, steps: all.map((step) => readStep(step, by)).sort((a, b) => a.load - b.load), knee };
}

function readStep(step: Fields, by: string): SweepStep {
  const attained = isFields(step['attainment']) ? step['attainment'] : null;
  const good = attained && numberIn(attained, 'good');
  const due = attained && numberIn(attained, 'due');
  const { verdict } = step;
  return {
    load: Number(step[by]),
    throughput: rate(step['throughput'], 'tokensPerSecond'),
    perUser: rate(step['perUser'], 'p50'),
    goodput: rate(step['goodput'], 'perSecond'),
    ttft: ttftOf(step['summary']),
    good: good !== null && due !== null ? { good, due } : null,
    verdict: verdict === 'met' || verdict === 'missed' || verdict === 'unclear' ? verdict : null,
  };
}

function ended(why: unknown): string[] {
  return typeof why === 'string' && why !== '' ? [`The search ended: ${why}.`] : [];
}

function ttftOf(summary: unknown): SweepStep['ttft'] {
  const ttft = isFields(summary) && isFields(summary['ttft']) ? summary['ttft'] : null;
  const p50 = ttft && numberIn(ttft, 'p50');
  const p99 = ttft && numberIn(ttft, 'p99');
  return p50 !== null && p99 !== null ? { p50, p99 } : null;
}

/** A bare number, or the field that holds it in a report's own form. */
function rate(value: unknown, field: string): number | null {
  return typeof value === 'number' ? value : isFields(value) ? numberIn(value, field) : null;
}

function numberIn(fields: Fields, name: string): number | null {
  const value = fields[name];
  return typeof value === 'number' ? value : null;
}

function sweepTable({ axis, steps }: Sweep): string[][] {
  const text = (value: number | null): string => (value === null ? 'none' : digits(value));
  const head = [axis, 'throughput, tokens/s', 'per user, tokens/s', 'goodput, answers/s', 'TTFT p50', 'TTFT p99', 'good', 'SLO'];
  return [head, ...steps.map((step) => [digits(step.load), text(step.throughput), text(step.perUser), text(step.goodput), step.ttft === null ? 'none' : ms(step.ttft.p50), step.ttft === null ? 'none' : ms(step.ttft.p99), step.good === null ? '' : outOf(step.good.good, step.good.due), step.verdict ?? 'no verdict'])];
}

function evidenceTable(evidence: unknown): string[][] {
  if (!isFields(evidence)) return [];
  const rows = Object.entries(evidence).flatMap(([name, value]) => {
    const text = plain(value);
    return text === null ? [] : [[spaced(name), text]];
  });
  return rows.length === 0 ? [] : [['Evidence', ''], ...rows];
}

/** A list of findings of one form: a row each, a column for every field that is a number or a word in any of them. */
function rowsTable(rows: unknown): string[][] {
  const all = Array.isArray(rows) ? rows.filter(isFields) : [];
  const names = [...new Set(all.flatMap((row) => Object.keys(row).filter((name) => plain(row[name]) !== null)))];
  return names.length === 0 ? [] : [names.map(spaced), ...all.map((row) => names.map((name) => plain(row[name]) ?? ''))];
}

/** A plain value as text; of a distribution its median, of a count its tokens; null for what has no short form. */
function plain(value: unknown): string | null {
  if (isFields(value)) return plain(value['p50'] ?? value['tokens'] ?? null);
  if (typeof value === 'string') return value;
  if (typeof value === 'number') return Number.isInteger(value) ? count(value) : digits(value);
  return typeof value === 'boolean' ? (value ? 'yes' : 'no') : null;
}

function spaced(name: string): string {
  return name.replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
}
