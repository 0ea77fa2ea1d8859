import { diagnose } from '../src/report/diagnosis';
import { caveatSentence } from '../src/report/format';
import type { Report } from '../src/report/report';
import { reportFacts } from '../src/report/table';
import { el, icon, show } from './element';

/** Where the time went, the caveats, then what the run was: where, what, how much, under which limits. */
export class Facts {
  readonly element: HTMLElement;
  readonly #caveats = el('ul', { class: 'caveats' });
  readonly #where = el('p', { class: 'where' });
  readonly #facts = el('dl', { class: 'facts' });
  #key = '';

  constructor() {
    this.element = el('section', { 'aria-labelledby': 'facts-title' }, el('header', { class: 'section-head' }, el('h2', { id: 'facts-title' }, 'Facts and caveats')), this.#where, this.#caveats, this.#facts);
  }

  /** Draws the facts of a report. */
  draw(report: Report): void {
    const sentences = report.caveats.map(caveatSentence);
    const diagnosis = diagnose(report.samples)?.sentence ?? '';
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
}
