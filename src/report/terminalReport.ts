/** A report as plain text: verdict, a token strip a request, percentile table, facts, caveats. */
import { diagnose, isStall } from './diagnosis';
import { caveatSentence, outcomeName, verdictMarks, verdictSentence } from './format';
import { isProof } from './proof';
import { count, ms } from './numbers';
import type { Report } from './report';
import { chunkGaps, completed, lastStamp, type Milliseconds, type Sample } from './sample';
import { median, percentile, sorted } from './statistics';
import { percentileRows, reportFacts, tableColumns, type TableColumn, type TableRow } from './table';

/** How to draw. */
export interface TerminalOptions {
  /** Columns of the terminal; lines are wrapped or cut to it. At least 40 are assumed. */
  readonly width: number;
  /** ANSI colours; shapes and words carry the meaning without them. */
  readonly colour: boolean;
  /** Most token strips shown; default 20. */
  readonly strips?: number;
  /** Stands in for the report's own samples. */
  readonly samples?: readonly Sample[];
}

type Style = 'bold' | 'dim' | 'red' | 'green' | 'yellow' | 'blue' | 'magenta';
type Paint = (style: Style, text: string) => string;

const codes: Readonly<Record<Style, string>> = { bold: '1', dim: '2', red: '31', green: '32', yellow: '33', blue: '34', magenta: '35' };
const verdictColours = { met: 'green', missed: 'red', unclear: 'yellow' } as const;

/** The whole report as text, ending in a line break. */
export function renderReport(report: Report, options: TerminalOptions): string {
  const width = Math.max(40, options.width);
  const paint: Paint = options.colour ? (style, text) => `\u001B[${codes[style]}m${text}\u001B[0m` : (_, text) => text;
  const samples = options.samples ?? report.samples;
  const found = scenarioBlock(report, width, paint);
  const verdict = verdictBlock(report, samples, width, paint);
  const blocks = [
    ...(isProof(report.plan) ? [verdict, found] : [found, verdict]),
    stripBlock(samples, width, options.strips ?? 20, paint),
    tableBlock(percentileRows(report, samples), width, paint),
    factBlock(report, width, paint),
    caveatBlock(report, width, paint),
  ];
  return `${blocks.filter((lines) => lines.length > 0).map((lines) => lines.join('\n')).join('\n\n')}\n`;
}

/** What an experiment found, in its own sentences; the rest of the report is of the step it chose. */
function scenarioBlock({ scenario }: Report, width: number, paint: Paint): string[] {
  const sentences = (scenario?.result as { readonly sentences?: unknown } | null | undefined)?.sentences;
  if (scenario === undefined || !Array.isArray(sentences)) return [];
  const head = `${scenario.name}${scenario.shown?.length ? `, numbers below of step ${scenario.shown.join(', ')}` : ''}`;
  return [...wrap(head, width).map((line) => paint('bold', line)), ...sentences.flatMap((sentence: unknown) => (typeof sentence === 'string' ? wrap(sentence, width) : []))];
}

function verdictBlock(report: Report, samples: readonly Sample[], width: number, paint: Paint): string[] {
  const { verdict } = report;
  const mark = verdict === null ? '' : `${verdictMarks[verdict]} `;
  const [first, ...rest] = wrap(`${mark}${verdictSentence(report, samples)}`, width);
  const style: Style = verdict === null ? 'bold' : verdictColours[verdict];
  const reason = isProof(report.plan) ? null : diagnose(samples);
  return [...[first ?? '', ...rest].map((line) => paint(style, line)), ...(reason === null ? [] : wrap(reason.sentence, width))];
}

/** Signs of the strip. Answer tokens are heights, reasoning is shades, so that both read without colour. */
const signs = { connection: '·', queue: '┄', prefill: '─', stall: '╌', answer: '▁▂▃▄▅▆▇█', reasoning: '░▒▓', fail: '✗' } as const;

type Cell = { readonly sign: string; readonly style: Style | null };

/** A line a request on one scale: what happened in each slice of time since its start. */
function stripBlock(samples: readonly Sample[], width: number, most: number, paint: Paint): string[] {
  const shown = samples.filter((s) => s.role !== 'negotiation');
  if (shown.length === 0) return [];
  // One more takes no more room than the words for it.
  const rows = shown.slice(0, shown.length === most + 1 ? most + 1 : most);
  const names = nameRows(rows);
  const nameWidth = Math.max(...names.map((name) => name.length));
  const notes = rows.map(noteOf);
  const columns = Math.max(10, width - nameWidth - 4 - Math.max(...notes.map((note) => note.length)));
  const span = rows.reduce((longest, s) => Math.max(longest, lastStamp(s) - s.start), 0) || 1;
  const slice = span / columns;
  const full = fullSlice(rows.flatMap((s) => sliceTokens(s, columns, slice).map(({ tokens }) => tokens)));
  const lines = rows.map((s, i) => {
    const cells = strip(s, columns, slice, full);
    const drawn = cells.map(({ sign, style }) => (style === null ? sign : paint(style, sign))).join('');
    return `${paint('dim', names[i]!.padStart(nameWidth))}  ${drawn}  ${completed(s) ? notes[i]! : paint('red', notes[i]!)}`;
  });
  const more = shown.length > rows.length ? [paint('dim', `… and ${count(shown.length - rows.length)} more`)] : [];
  return [...wrap(`Tokens over ${ms(span)} since each start, a column is ${ms(slice)}`, width).map((line) => paint('bold', line)), ...lines, ...more, ...wrap(legend(rows), width).map((line) => paint('dim', line))];
}

function nameRows(rows: readonly Sample[]): string[] {
  const seen = { measured: 0, warmup: 0, negotiation: 0 };
  return rows.map(({ role }) => {
    seen[role] += 1;
    return role === 'warmup' ? `warm-up ${seen[role]}` : String(seen[role]);
  });
}

function noteOf(s: Sample): string {
  return completed(s) ? ms((s.last ?? lastStamp(s)) - s.start) : `${signs.fail} ${outcomeName(s.outcome)}`;
}

/** Tokens that fill a column to the top: as many as all but the fullest fiftieth hold, so that one burst does not flatten the rest. */
function fullSlice(tokens: readonly number[]): number {
  const order = sorted(tokens.filter((n) => n > 0));
  return order.length === 0 ? 1 : Math.max(1, percentile(order, 0.98));
}

function sliceTokens(s: Sample, columns: number, slice: Milliseconds): { tokens: number; reasoning: number }[] {
  const slices = Array.from({ length: columns }, () => ({ tokens: 0, reasoning: 0 }));
  for (const [t, kind, tokens] of s.deltas) {
    const at = slices[Math.min(columns - 1, Math.max(0, Math.floor((t - s.start) / slice)))]!;
    at.tokens += Math.max(1, tokens ?? 1);
    if (kind === 'reasoning') at.reasoning += Math.max(1, tokens ?? 1);
  }
  return slices;
}

function strip(s: Sample, columns: number, slice: Milliseconds, full: number): Cell[] {
  const cells = sliceTokens(s, columns, slice).map(({ tokens, reasoning }, column): Cell => {
    if (tokens > 0) return tokenCell(tokens, reasoning * 2 > tokens, full);
    return waitCell(s, s.start + (column + 0.5) * slice);
  });
  const gaps = chunkGaps(s);
  const usual = median(gaps) ?? 0;
  gaps.forEach((gap, i) => {
    if (!isStall(gap, usual)) return;
    const from = Math.floor((s.deltas[i]![0] - s.start) / slice) + 1;
    const to = Math.min(columns, Math.floor((s.deltas[i + 1]![0] - s.start) / slice));
    drawStall(cells, from, to, ms(gap));
  });
  return cells;
}

function tokenCell(tokens: number, isReasoning: boolean, full: number): Cell {
  const levels = isReasoning ? signs.reasoning : signs.answer;
  const level = Math.min(levels.length - 1, Math.ceil((tokens / full) * levels.length) - 1);
  return { sign: levels[Math.max(0, level)]!, style: isReasoning ? 'magenta' : 'green' };
}

function waitCell(s: Sample, t: Milliseconds): Cell {
  const blank: Cell = { sign: ' ', style: null };
  if (s.firstToken !== null && t >= s.firstToken) return blank;
  if (t > lastStamp(s)) return blank;
  const ready = s.connection.reused ? s.start : (s.connection.secured ?? s.connection.connected ?? s.start);
  if (t < ready) return { sign: signs.connection, style: 'dim' };
  return t < (s.headers ?? Number.POSITIVE_INFINITY) ? { sign: signs.queue, style: 'dim' } : { sign: signs.prefill, style: 'blue' };
}

/** A stall fills its blank columns and says its length where there is room. */
function drawStall(cells: Cell[], from: number, to: number, label: string): void {
  const room = to - from;
  const text = room >= label.length + 2 ? ` ${label} ` : '';
  const left = from + Math.floor((room - text.length) / 2);
  for (let i = Math.max(0, from); i < to; i += 1) {
    const letter = text[i - left];
    cells[i] = { sign: i >= left && letter !== undefined ? letter : signs.stall, style: 'yellow' };
  }
}

function legend(rows: readonly Sample[]): string {
  const kinds = new Set(rows.flatMap((s) => s.deltas.map((delta) => delta[1])));
  return [
    rows.some((s) => !s.connection.reused) ? `${signs.connection} connecting` : '',
    `${signs.queue} until the response head (queue)`,
    `${signs.prefill} until the first token (prefill)`,
    kinds.has('reasoning') ? `${signs.reasoning} reasoning` : '',
    '▁▄█ answer',
    rows.some(hasStall) ? `${signs.stall} stall` : '',
  ].filter((part) => part !== '').join('   ');
}

function hasStall(s: Sample): boolean {
  const gaps = chunkGaps(s);
  const usual = median(gaps) ?? 0;
  return gaps.some((gap) => isStall(gap, usual));
}

/** Columns by what is missed most when there is no room for all. */
const columnPriority: readonly TableColumn[] = ['p50', 'p99', 'p90', 'p95', 'max', 'mean', 'min'];

function tableBlock(rows: readonly TableRow[], width: number, paint: Paint): string[] {
  if (rows.length === 0) return [];
  const labels = rows.map((row) => `${row.kind === 'metric' ? '' : '  '}${row.label}${row.mark === '' ? '' : ` ${row.mark}`}`);
  const labelWidth = Math.max(16, ...labels.map((label) => label.length));
  const countWidth = Math.max(2, ...rows.map((row) => count(row.n).length)) + 2;
  const cellOf = (row: TableRow, column: TableColumn) => row.cells.find((cell) => cell.column === column)!;
  const widthOf = (column: TableColumn): number => 2 + Math.max(column.length, ...rows.flatMap((row) => [cellOf(row, column).text.length, cellOf(row, column).interval?.length ?? 0]));
  let room = width - labelWidth - countWidth;
  const fitting = new Set<TableColumn>();
  for (const column of columnPriority) {
    room -= widthOf(column);
    if (room < 0) break;
    fitting.add(column);
  }
  const columns = tableColumns.filter((column) => fitting.has(column));
  const line = (label: string, n: string, cells: readonly string[]): string => `${label.padEnd(labelWidth)}${n.padStart(countWidth)}${cells.map((text, i) => text.padStart(widthOf(columns[i]!))).join('')}`.trimEnd();
  const lines = [paint('bold', line('Percentiles, ms', 'n', columns))];
  rows.forEach((row, i) => {
    lines.push(line(labels[i]!, count(row.n), columns.map((column) => cellOf(row, column).text)));
    lines.push(paint('dim', line('  95 % interval', '', columns.map((column) => cellOf(row, column).interval ?? ''))));
    if (row.slo !== null) lines.push(paint(row.slo.ok ? 'green' : 'red', `  ${row.slo.mark} ${row.slo.text}`));
  });
  return lines;
}

function factBlock(report: Report, width: number, paint: Paint): string[] {
  const facts = reportFacts(report);
  const labelWidth = Math.max(...facts.map(({ label }) => label.length)) + 2;
  return facts.flatMap(({ label, text }) => {
    const [first, ...rest] = wrap(text, width - labelWidth);
    return [`${paint('dim', label.padEnd(labelWidth))}${first ?? ''}`, ...rest.map((line) => `${' '.repeat(labelWidth)}${line}`)];
  });
}

function caveatBlock(report: Report, width: number, paint: Paint): string[] {
  if (report.caveats.length === 0) return [];
  const lines = report.caveats.flatMap((caveat) => {
    const [first, ...rest] = wrap(caveatSentence(caveat), width - 2);
    return [`${paint('yellow', '!')} ${first ?? ''}`, ...rest.map((line) => `  ${line}`)];
  });
  return [paint('bold', 'Read with care'), ...lines];
}

/** Control characters and text-direction overrides: a server's words must not steer the terminal. */
const controls = /[\u0000-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]+/g;

/** Lines of at most `width` characters, broken at spaces; a longer word is cut, control characters become a space. */
export function wrap(text: string, width: number): string[] {
  const lines: string[] = [];
  let line = '';
  for (const word of text.replace(controls, ' ').split(' ')) {
    let rest = word;
    if (line !== '' && line.length + 1 + rest.length > width) {
      lines.push(line);
      line = '';
    }
    while (rest.length > width) {
      lines.push(rest.slice(0, width));
      rest = rest.slice(width);
    }
    line = line === '' ? rest : `${line} ${rest}`;
  }
  if (line !== '') lines.push(line);
  return lines;
}
