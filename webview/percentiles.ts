import { count } from '../src/report/format';
import type { Report } from '../src/report/report';
import { percentileRows, tableColumns, type TableRow } from '../src/report/table';
import { DefinitionBox } from './definition';
import { el, icon, setText, show } from './element';

interface Cells {
  readonly values: readonly { readonly text: HTMLElement; readonly interval: HTMLElement | null }[];
  readonly n: HTMLElement;
  readonly slo: HTMLElement;
}

/** The percentile table. Its rows are made once and only their text changes while a run grows, so nothing jumps under the pointer. */
export class Percentiles {
  readonly element: HTMLElement;
  readonly #definition = new DefinitionBox();
  readonly #body = el('tbody');
  readonly #none = el('p', { class: 'muted' }, 'No answer has come to its end yet.');
  readonly #scroll: HTMLElement;
  readonly #sloHead = el('th', { scope: 'col', class: 'words' }, 'limit');
  #rowsKey = '';
  #cells: Cells[] = [];

  constructor() {
    const head = el('tr', {}, el('th', { scope: 'col' }, 'ms'), ...tableColumns.map((column) => el('th', { scope: 'col' }, column)), el('th', { scope: 'col' }, 'n'), this.#sloHead);
    this.#scroll = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Percentile table' },
      el('table', { class: 'figures percentiles' }, el('caption', { class: 'sr-only' }, 'Percentiles of each metric in milliseconds, with 95 % intervals'), el('thead', {}, head), this.#body));
    this.element = el('section', { 'aria-labelledby': 'percentiles-title' },
      el('header', { class: 'section-head' }, el('h2', { id: 'percentiles-title' }, 'Percentiles'), el('span', { class: 'muted' }, 'small: 95 % interval')), this.#scroll, this.#none, this.#definition.element);
  }

  /** Draws the rows of a report. */
  draw(report: Report): void {
    const rows = percentileRows(report);
    show(this.#scroll, rows.length > 0);
    show(this.#none, rows.length === 0);
    show(this.#sloHead, rows.some((row) => row.slo !== null));
    const key = rows.map((row) => `${row.metric} ${row.kind} ${row.label} ${row.slo === null ? '' : 'slo'}`).join('|');
    if (key !== this.#rowsKey) this.#build(rows);
    this.#rowsKey = key;
    rows.forEach((row, i) => fill(this.#cells[i] as Cells, row));
  }

  #build(rows: readonly TableRow[]): void {
    this.#cells = [];
    const judged = rows.some((row) => row.slo !== null);
    this.#body.replaceChildren(...rows.map((row) => {
      const values = row.cells.map((cell) => ({ text: el('span'), interval: cell.interval === null ? null : el('span', { class: 'interval' }) }));
      const cells: Cells = { values, n: el('td'), slo: el('td', { class: 'words' }) };
      this.#cells.push(cells);
      const name = row.kind === 'metric' ? this.#definition.term(row.label, row.definition, row.elsewhere) : row.label;
      show(cells.slo, judged);
      return el('tr', { class: row.kind === 'metric' ? 'metric' : 'sub' }, el('th', { scope: 'row' }, name), ...values.map(({ text, interval }) => el('td', {}, text, interval)), cells.n, cells.slo);
    }));
  }
}

function fill(cells: Cells, row: TableRow): void {
  row.cells.forEach((cell, i) => {
    const target = cells.values[i];
    if (target === undefined) return;
    setText(target.text, row.mark + cell.text);
    if (target.interval) setText(target.interval, cell.interval ?? '');
  });
  setText(cells.n, count(row.n));
  if (row.slo === null) return;
  const text = row.slo.text;
  if (cells.slo.dataset['text'] === `${row.slo.mark} ${text}`) return;
  cells.slo.dataset['text'] = `${row.slo.mark} ${text}`;
  cells.slo.className = `words ${row.slo.ok ? 'yes' : 'no'}`;
  cells.slo.replaceChildren(icon(row.slo.ok ? 'pass' : 'fail'), el('span', { class: 'sr-only' }, row.slo.mark), text);
}
