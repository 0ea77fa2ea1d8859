import { diagnose } from '../src/report/diagnosis';
import { asOtherTools } from '../src/report/definitions';
import { caveatSentence, digits } from '../src/report/format';
import { isProof } from '../src/report/proof';
import type { Report } from '../src/report/report';
import { reportFacts } from '../src/report/table';
import { el, icon, show } from './element';

/** Where the time went, the caveats, then what the run was: where, what, how much, under which limits. */
export class Facts {
  readonly element: HTMLElement;
  readonly #caveats = el('ul', { class: 'caveats' });
  readonly #where = el('p', { class: 'where' });
  readonly #facts = el('dl', { class: 'facts' });
  readonly #tools = el('details', { class: 'fold' }, el('summary', {}, 'The same run as other tools would report it'));
  #report: Report | null = null;
  #key = '';

  constructor() {
    this.element = el('section', { 'aria-labelledby': 'facts-title' }, el('header', { class: 'section-head' }, el('h2', { id: 'facts-title' }, 'Facts and caveats')), this.#where, this.#caveats, this.#facts, this.#tools);
    this.#tools.addEventListener('toggle', () => this.#drawTools());
  }

  /** Draws the facts of a report. */
  draw(report: Report): void {
    this.#report = report;
    const proof = isProof(report.plan);
    show(this.#tools, !proof && report.summary.ttft !== null);
    const sentences = report.caveats.map((caveat) => caveatSentence(caveat, 'editor'));
    const diagnosis = proof ? '' : (diagnose(report.samples)?.sentence ?? '');
    const facts = reportFacts(report);
    const key = JSON.stringify([sentences, diagnosis, facts]);
    if (key === this.#key) return;
    this.#key = key;
    this.#where.textContent = diagnosis;
    show(this.#where, diagnosis !== '');
    show(this.#caveats, sentences.length > 0);
    this.#caveats.replaceChildren(...sentences.map((sentence) => el('li', {}, icon('warning'), el('span', {}, sentence))));
    this.#facts.replaceChildren(...facts.map(({ label, text }) => el('div', { class: 'fact' }, el('dt', {}, label), el('dd', {}, text))));
  }

  #drawTools(): void {
    if (!this.#tools.open || this.#report === null) return;
    const number = (value: number | null): HTMLElement => el('td', {}, value === null ? 'none' : digits(value, true));
    const rows = asOtherTools(this.#report.samples).map((row) => el('tr', {}, el('th', { scope: 'row' }, row.tool), number(row.ttft), number(row.itl), number(row.tpot), el('td', { class: 'note' }, row.note)));
    this.#tools.querySelector('.scroll')?.remove();
    this.#tools.append(el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Other tools' }, el('table', { class: 'figures' }, el('caption', { class: 'sr-only' }, 'Medians in milliseconds by the definitions of other tools'),
      el('thead', {}, el('tr', {}, ...['p50, ms', 'TTFT', '“ITL”', 'TPOT'].map((text) => el('th', { scope: 'col' }, text)), el('th', { scope: 'col', class: 'words' }, 'what differs'))), el('tbody', {}, ...rows))));
  }
}
