/** A result of another tool in words and cells, the same in the panel and in the terminal. */
import { count, digits } from '../numbers';
import { wrap } from '../terminalReport';
import { noteOn } from '../definitions';
import { foreignStatistics, type ForeignMetric, type ForeignReport, type ForeignRun } from './foreign';

/** The first sentence: whose numbers these are. */
export function foreignSentence({ tool, version, runs }: ForeignReport): string {
  return `A result of ${tool}${version === null ? '' : ` (${version})`}, ${runs.length === 1 ? 'one run' : `${count(runs.length)} runs`}. Names and definitions are that tool’s own; set them beside a report of First Token only with their definitions in view.`;
}

/** What the tool counts differently from First Token. */
export function foreignNote({ tool }: ForeignReport): string {
  return `${tool}: ${noteOn(tool)}`;
}

/** The head of a run's table; the first column names the metric, the last is the tool's definition. */
export function foreignHead({ tool }: ForeignReport): string[] {
  return [`${tool}, ms`, 'n', ...foreignStatistics, 'as it defines it'];
}

/** A metric as cells under {@link foreignHead}; a star marks what was computed here, an empty cell what the file does not say. */
export function foreignCells(metric: ForeignMetric): string[] {
  const cell = (statistic: (typeof foreignStatistics)[number]): string => {
    const value = metric.values[statistic];
    return value === null ? '' : `${digits(value, true)}${metric.computed.includes(statistic) ? '*' : ''}`;
  };
  return [metric.name, metric.n === null ? '' : count(metric.n), ...foreignStatistics.map(cell), metric.definition];
}

/** What the stars mean; null when there are none. */
export function starNote(run: ForeignRun): string | null {
  return run.metrics.some((metric) => metric.computed.length > 0) ? '* not in the file: computed here from its own values per request or per gap.' : null;
}

/** A number of the whole run: `Request throughput: 12.3 requests/s`. */
export function rateText({ value, unit }: ForeignRun['rates'][number]): string {
  return `${digits(value)} ${unit}`.trim();
}

/** The whole result as text, ending in a line break. */
export function renderForeign(report: ForeignReport, width: number): string {
  const columns = Math.max(40, width);
  const blocks = [wrap(foreignSentence(report), columns).join('\n'), ...report.runs.map((run) => runText(report, run, columns)), wrap(foreignNote(report), columns).join('\n')];
  return `${blocks.join('\n\n')}\n`;
}

function runText(report: ForeignReport, run: ForeignRun, width: number): string {
  const head = foreignHead(report).slice(0, -1);
  const rows = [head, ...run.metrics.map((metric) => foreignCells(metric).slice(0, -1))];
  const widths = head.map((_, i) => Math.max(...rows.map((row) => clean(row[i]!).length)));
  const table = rows.map((row) => row.map((cell, i) => (i === 0 ? clean(cell).padEnd(widths[i]!) : clean(cell).padStart(widths[i]!))).join('  ').trimEnd());
  const facts = [...run.facts, ...run.rates.map((rate) => [rate.name, rateText(rate)] as const)];
  const labelWidth = Math.max(0, ...facts.map(([label]) => clean(label).length)) + 2;
  const definitions = run.metrics.flatMap((metric) => wrap(`${metric.name}: ${metric.definition}.`, width));
  const star = starNote(run);
  return [`== ${clean(run.title)}`, ...table, ...(star === null ? [] : wrap(star, width)), '', ...definitions, '', ...facts.map(([label, text]) => `${clean(label).padEnd(labelWidth)}${clean(text)}`)].join('\n');
}

/** A name in a file must not steer the terminal. */
function clean(text: string): string {
  return wrap(text, 1000).join(' ');
}
