import type { ForeignReport, ForeignRun } from '../src/report/exchange/foreign';
import { foreignCells, foreignHead, foreignNote, foreignSentence, rateText, starNote } from '../src/report/exchange/foreignText';
import { el } from './element';

/** Draws a result of another tool: its numbers under its own names, each with its definition in the same row. */
export function drawForeign(root: HTMLElement, report: ForeignReport): void {
  root.replaceChildren(
    el('section', { class: 'first', 'aria-labelledby': 'foreign-title' }, el('header', { class: 'section-head' }, el('h2', { id: 'foreign-title' }, `Result of ${report.tool}`)), el('p', { role: 'status' }, foreignSentence(report)), el('p', { class: 'muted' }, foreignNote(report))),
    ...report.runs.map((run) => runSection(report, run)));
}

function runSection(report: ForeignReport, run: ForeignRun): HTMLElement {
  const head = foreignHead(report);
  const last = head.length - 1;
  const facts = [...run.facts, ...run.rates.map((rate) => [rate.name, rateText(rate)] as const)];
  const star = starNote(run);
  return el('section', { 'aria-label': run.title },
    el('header', { class: 'section-head' }, el('h2', {}, run.title)),
    run.metrics.length === 0 ? null : el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `Latencies as ${report.tool} measured them` }, el('table', { class: 'figures' },
      el('thead', {}, el('tr', {}, ...head.map((text, i) => el('th', { scope: 'col', class: i === last ? 'words' : '' }, text)))),
      el('tbody', {}, ...run.metrics.map((metric) => el('tr', {}, ...foreignCells(metric).map((text, i) => (i === 0 ? el('th', { scope: 'row' }, text) : el('td', { class: i === last ? 'note' : '' }, text)))))))),
    star === null ? null : el('p', { class: 'muted' }, star),
    facts.length === 0 ? null : el('dl', { class: 'facts' }, ...facts.map(([label, text]) => el('div', { class: 'fact' }, el('dt', {}, label), el('dd', {}, text)))));
}
