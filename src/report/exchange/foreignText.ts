/** A result of another tool in words and cells, the same in the panel and in the terminal. */
import { count, digits } from '../numbers';
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
