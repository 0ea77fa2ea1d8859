/** A result of another tool as plain text. */
import { wrap } from '../terminalReport';
import type { ForeignReport, ForeignRun } from './foreign';
import { foreignCells, foreignHead, foreignNote, foreignSentence, rateText, starNote } from './foreignText';

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
