/** A scenario's result as text for a terminal: a table, then its sentences. */
import { digits } from '../report/format';
import { wrap } from '../report/terminalReport';

/** Rows under a head, columns aligned: the first to the left, the others to the right. */
export function alignedTable(rows: readonly (readonly string[])[]): string {
  const widths = (rows[0] ?? []).map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  return rows.map((row) => row.map((cell, column) => (column === 0 || column === widths.length - 1 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!))).join('  ').trimEnd()).join('\n');
}

/** A number or `none`. */
export function number(value: number | null | undefined): string {
  return value === null || value === undefined ? 'none' : digits(value);
}

/** Sentences as paragraphs of at most `width` characters. */
export function paragraphs(sentences: readonly string[], width: number): string {
  return sentences.map((sentence) => wrap(sentence, width).join('\n')).join('\n\n');
}

/** A bar of `of` parts of `most`, `cells` wide. */
export function bar(value: number | null, most: number, cells: number): string {
  if (value === null || !(most > 0)) return '';
  const eighths = Math.round((value / most) * cells * 8);
  return '█'.repeat(Math.floor(eighths / 8)) + ['', '▏', '▎', '▍', '▌', '▋', '▊', '▉'][eighths % 8]!;
}
