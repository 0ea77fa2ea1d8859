import type { ForeignReport, ForeignRun } from '../src/report/exchange/foreign';
import { foreignCells, foreignHead, foreignNote, foreignSentence, rateText, starNote } from '../src/report/exchange/foreignText';
import { el } from './element';

/** Draws a result of another tool: its numbers under its own names, each with its definition in the same row. */
export function drawForeign(root: HTMLElement, report: ForeignReport): void {
  root.replaceChildren(
    el('section', { class: 'first', 'aria-labelledby': 'foreign-title' }, el('header', { class: 'section-head' }, el('h1', { id: 'foreign-title' }, `Result of ${report.tool}`)), el('p', { role: 'status' }, foreignSentence(report)), el('p', { class: 'muted' }, foreignNote(report))),
    ...report.runs.map((run, i) => runSection(report, run, `Run ${i + 1}, ${run.title}`)));
}

function runSection(report: ForeignReport, run: ForeignRun, name: string): HTMLElement {
  const head = foreignHead(report).slice(0, -1);
  const facts = [...run.facts, ...run.rates.map((rate) => [rate.name, rateText(rate)] as const)];
  const star = starNote(run);
  return el('section', { 'aria-label': name },
    el('header', { class: 'section-head' }, el('h2', {}, run.title)),
    run.metrics.length === 0 ? null : el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': `${name}: latencies as ${report.tool} measured them` }, el('table', { class: 'figures' },
      el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, ...run.metrics.map((metric) => el('tr', {}, ...foreignCells(metric).slice(0, -1).map((text, i) => (i === 0 ? el('th', { scope: 'row', class: 'defined' }, text, el('span', { class: 'muted' }, metric.definition)) : el('td', {}, text)))))))),
    star === null ? null : el('p', { class: 'muted' }, star),
    facts.length === 0 ? null : el('dl', { class: 'facts' }, ...facts.map(([label, text]) => el('div', { class: 'fact' }, el('dt', {}, label), el('dd', {}, text)))));
}
