import { count, digits } from '../src/report/format';
import type { Report, ServerView } from '../src/report/report';
import { el, show } from './element';

/** The server's own numbers over the run, in their own definitions, never mixed with what was measured here. */
export class ServerNumbers {
  readonly element: HTMLElement;
  readonly #body = el('div');
  #shown: ServerView | null = null;

  constructor() {
    this.element = el('section', { 'aria-labelledby': 'server-title' }, el('header', { class: 'section-head' }, el('h2', { id: 'server-title' }, 'What the server says')), this.#body);
  }

  /** Draws the server's view; hidden where the server told nothing. */
  draw(report: Report): void {
    const view = report.serverView;
    show(this.element, view !== null);
    if (view === null || view === this.#shown) return;
    this.#shown = view;
    this.#body.replaceChildren(
      el('p', { class: 'muted' }, `${view.server ?? 'The server'}, over this run, from ${view.source}. Its own definitions: compare with care.`),
      ...(view.histograms.length === 0 ? [] : [histograms(view)]),
      counters(view),
      ...view.notes.map((note) => el('p', { class: 'muted' }, note)));
  }
}

function histograms(view: ServerView): HTMLElement {
  const number = (value: number | string | null): string => (value === null ? 'none' : typeof value === 'string' ? value : digits(value, true));
  return el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Histograms of the server' }, el('table', { class: 'figures' },
    el('caption', {}, 'Histograms of the server, in ms'),
    el('thead', {}, el('tr', {}, ...['Histogram', 'mean', 'p50', 'p90', 'p99', 'n'].map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', {}, ...view.histograms.map((row) => el('tr', {}, el('th', { scope: 'row', title: row.name }, row.label),
      ...[row.mean, row.p50, row.p90, row.p99].map((value) => el('td', {}, number(value))), el('td', {}, count(row.n)))))));
}

function counters(view: ServerView): HTMLElement {
  const rate = view.prefixCacheHitRate;
  return el('dl', { class: 'facts' },
    ...(rate === null ? [] : [fact('Prefix cache', `${digits(rate)} of the tokens looked up were there`, '')]),
    ...view.counters.map((counter) => fact(counter.label, counter.difference === null ? 'unknown' : count(counter.difference), counter.name)));
}

function fact(name: string, text: string, title: string): HTMLElement {
  return el('div', { class: 'fact' }, el('dt', { title: title === '' ? null : title }, name), el('dd', {}, text));
}
