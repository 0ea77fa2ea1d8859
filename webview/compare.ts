import { compareReports, type ComparedMetric, type ComparedPercentile, type Comparison } from '../src/report/compare';
import { digits, verdictSentence } from '../src/report/format';
import type { Report } from '../src/report/report';
import { el, icon, setText, show } from './element';
import type { Selection } from './navigation';
import { applyMessage, createState, type PanelState } from './state';
import { reachOf, Timeline } from './timeline';

interface Side {
  readonly name: 'A' | 'B';
  readonly state: PanelState;
  readonly timeline: Timeline;
}

/** Two reports side by side: what differs, by how much, what forbids the comparison, and both time lines on one axis. */
export class Compare {
  readonly element: HTMLElement;
  readonly #heads = el('div', { class: 'compare-heads' });
  readonly #sentence = el('p', { class: 'compare-sentence', role: 'status' });
  readonly #warnings = el('ul', { class: 'caveats' });
  readonly #served = el('div', {});
  readonly #table = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Comparison table' });
  readonly #sides: readonly Side[];
  #shown: readonly [Report, Report] | null = null;

  constructor() {
    this.#sides = [createSide('A'), createSide('B')];
    this.element = el('div', {},
      el('section', { class: 'first', 'aria-labelledby': 'compare-title' }, el('header', { class: 'section-head' }, el('h2', { id: 'compare-title' }, 'Comparison')), this.#heads, this.#sentence, this.#served, this.#table,
        el('p', { class: 'muted' }, 'In brackets: the 95 % interval of the difference. Where it covers 0, no difference is shown.'), this.#warnings),
      ...this.#sides.map((side) => side.timeline.element));
  }

  /** Draws A and B. */
  draw(a: Report, b: Report): void {
    if (this.#shown?.[0] !== a || this.#shown[1] !== b) this.#drawNumbers(a, b);
    this.#shown = [a, b];
    const reaches = this.#sides.map(({ state }, i) => {
      const report = i === 0 ? a : b;
      if (state.view.kind !== 'run' || state.view.run.report !== report) applyMessage(state, { type: 'report', report, live: false, stopped: null, canRunAgain: false, textKept: false });
      return state.view.kind === 'run' ? reachOf(state.view.run.tracks.values(), null) : { request: 0, run: 0 };
    });
    const reach = { request: Math.max(...reaches.map((each) => each.request)), run: Math.max(...reaches.map((each) => each.run)) };
    this.#sides.forEach(({ name, state, timeline }, i) => {
      timeline.setTitle(`Time line of ${name}: ${(i === 0 ? a : b).endpoint.name}`);
      timeline.draw(state, reach);
    });
  }

  /** Takes the editor's colours again. */
  rebuildTheme(): void {
    for (const { timeline } of this.#sides) timeline.rebuildTheme();
  }

  #drawNumbers(a: Report, b: Report): void {
    const comparison = compareReports(a, b);
    this.#heads.replaceChildren(head('A', a), head('B', b));
    setText(this.#sentence, comparison.sentence);
    this.#served.replaceChildren(...(comparison.served === undefined ? [] : [served(comparison.served)]));
    show(this.#warnings, comparison.warnings.length > 0);
    this.#warnings.replaceChildren(...comparison.warnings.map((warning) => el('li', {}, icon('warning'), el('span', {}, warning))));
    show(this.#table, comparison.rows.length > 0);
    this.#table.replaceChildren(el('table', { class: 'figures' }, el('caption', { class: 'sr-only' }, 'Median and p99 of each metric in both runs, and their difference'),
      el('thead', {}, el('tr', {}, ...['ms', 'A p50', 'B p50', 'difference of p50', 'A p99', 'B p99', 'difference of p99', 'n'].map((text, i) => el('th', { scope: 'col', class: i === 3 || i === 6 ? 'words' : '' }, text)))),
      el('tbody', {}, ...comparison.rows.map(row))));
  }
}

function createSide(name: Side['name']): Side {
  const state = createState();
  const redraw = (selection: Selection): void => {
    state.selection = selection;
    timeline.draw(state, timeline.reach);
    timeline.reveal();
  };
  const nothing = (): void => { /* Text and frames belong to the run's own panel. */ };
  const timeline = new Timeline({ select: redraw, open: nothing, wantAnswer: nothing, remember: nothing }, null);
  return { name, state, timeline };
}

function head(name: string, report: Report): HTMLElement {
  return el('div', {}, el('h3', {}, `${name} · ${[report.endpoint.name, report.endpoint.model, report.plan.prompt.name, new Date(report.window.absolute).toLocaleString()].filter((part) => part !== null).join(' · ')}`), el('p', {}, verdictSentence(report, report.samples, 'editor')));
}

function served(rows: NonNullable<Comparison['served']>): HTMLElement {
  return el('table', { class: 'figures' }, el('caption', {}, 'Prompt tokens served from the cache'),
    el('thead', {}, el('tr', {}, ...['request', 'A', 'B'].map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', {}, ...rows.map(({ label, a, b }) => el('tr', {}, el('th', { scope: 'row' }, label), ...[a, b].map((text) => el('td', {}, text ?? 'not told'))))));
}

function row(compared: ComparedMetric): HTMLElement {
  const [n, m] = compared.n;
  return el('tr', {}, el('th', { scope: 'row' }, compared.label), ...cells(compared.p50), ...cells(compared.p99), el('td', {}, n === m ? String(n) : `${n}, ${m}`));
}

function cells(compared: ComparedPercentile | null): HTMLElement[] {
  if (compared === null) return [el('td', {}, 'none'), el('td', {}, 'none'), el('td', { class: 'words muted' }, 'nothing to compare')];
  const shown = compared.conclusion === 'a-faster' || compared.conclusion === 'b-faster';
  return [el('td', {}, digits(compared.a, true)), el('td', {}, digits(compared.b, true)), el('td', { class: shown ? `words difference ${compared.conclusion}` : 'words difference muted' }, compared.text)];
}
