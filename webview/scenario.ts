import { Chart, LogarithmicScale } from 'chart.js';
import { count, digits } from '../src/report/format';
import type { Report } from '../src/report/report';
import { CanvasController, Painted } from './canvasController';
import { el, icon, setText, show } from './element';
import { readScenario, type ScenarioView, type Sweep } from './scenarioResult';
import { readTheme, type Theme } from './theme';

interface SweepScene {
  readonly sweep: Sweep;
  readonly theme: Theme;
}

/** Curves over the same load axis, one above the other, each with its own unit; the knee runs through all. */
class SweepController extends CanvasController<SweepScene> {
  static readonly id = 'sweep';

  protected override paint(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], { sweep, theme }: SweepScene): void {
    const x = this.scale('x');
    const bands = curves(sweep, theme);
    const height = (area.bottom - area.top) / bands.length;
    ctx.font = `${theme.size - 2}px ${theme.family}`;
    bands.forEach((band, i) => drawBand(ctx, { left: area.left, right: area.right, top: area.top + i * height, bottom: area.top + (i + 1) * height }, band, sweep, (load) => x.getPixelForValue(load), theme));
    if (sweep.knee !== null) drawKnee(ctx, area, x.getPixelForValue(sweep.knee), `knee at ${digits(sweep.knee)}`, theme);
  }
}

Chart.register(SweepController, LogarithmicScale);

interface Curve {
  readonly label: string;
  readonly color: string;
  readonly values: readonly (number | null)[];
}

interface Box {
  readonly left: number;
  readonly right: number;
  readonly top: number;
  readonly bottom: number;
}

function curves(sweep: Sweep, theme: Theme): Curve[] {
  return [
    { label: 'throughput, tokens/s', color: theme.answer, values: sweep.steps.map((step) => step.throughput) },
    { label: 'per user, tokens/s', color: theme.reasoning, values: sweep.steps.map((step) => step.perUser) },
    { label: 'goodput, good answers/s', color: theme.good, values: sweep.steps.map((step) => step.goodput) },
  ].filter((curve) => curve.values.some((value) => value !== null));
}

function drawBand(ctx: CanvasRenderingContext2D, box: Box, curve: Curve, sweep: Sweep, x: (load: number) => number, theme: Theme): void {
  const most = curve.values.reduce<number>((max, value) => Math.max(max, value ?? 0), 0);
  const top = box.top + theme.size + 10;
  const bottom = box.bottom - 6;
  const y = (value: number): number => bottom - (most > 0 ? value / most : 0) * (bottom - top);
  ctx.strokeStyle = theme.grid;
  ctx.lineWidth = 1;
  ctx.beginPath();
  ctx.moveTo(box.left, Math.round(bottom) + 0.5);
  ctx.lineTo(box.right, Math.round(bottom) + 0.5);
  ctx.stroke();
  ctx.fillStyle = theme.muted;
  ctx.textAlign = 'left';
  ctx.textBaseline = 'top';
  ctx.fillText(curve.label, box.left + 2, box.top + 2);
  ctx.textAlign = 'right';
  ctx.textBaseline = 'middle';
  ctx.fillText(digits(most), box.left - 6, top);
  ctx.fillText('0', box.left - 6, bottom);
  ctx.strokeStyle = curve.color;
  ctx.fillStyle = curve.color;
  ctx.lineWidth = 1.5;
  ctx.beginPath();
  let drawing = false;
  sweep.steps.forEach((step, i) => {
    const value = curve.values[i];
    if (value === null || value === undefined) drawing = false;
    else if (drawing) ctx.lineTo(x(step.load), y(value));
    else {
      ctx.moveTo(x(step.load), y(value));
      drawing = true;
    }
  });
  ctx.stroke();
  sweep.steps.forEach((step, i) => {
    const value = curve.values[i];
    if (value === null || value === undefined) return;
    ctx.beginPath();
    ctx.arc(x(step.load), y(value), 3, 0, 2 * Math.PI);
    // A step that misses the SLO is an empty ring: shape, not colour.
    if (step.verdict === 'missed') {
      ctx.fillStyle = theme.background;
      ctx.fill();
      ctx.fillStyle = curve.color;
      ctx.stroke();
    } else ctx.fill();
  });
}

function drawKnee(ctx: CanvasRenderingContext2D, area: Box, at: number, label: string, theme: Theme): void {
  const x = Math.round(at) + 0.5;
  ctx.strokeStyle = theme.foreground;
  ctx.setLineDash([4, 3]);
  ctx.beginPath();
  ctx.moveTo(x, area.top);
  ctx.lineTo(x, area.bottom);
  ctx.stroke();
  ctx.setLineDash([]);
  const right = x + 6 + ctx.measureText(label).width < area.right;
  ctx.fillStyle = theme.foreground;
  ctx.textAlign = right ? 'left' : 'right';
  ctx.textBaseline = 'top';
  ctx.fillText(label, right ? x + 5 : x - 5, area.top + 2);
}

/** What a scenario found: its sentences, for a sweep the curves, and everything as a table. */
export class Scenario {
  readonly element: HTMLElement;
  readonly #title = el('h2', { id: 'scenario-title' });
  readonly #canvas = el('canvas', { role: 'img' });
  readonly #chartBox = el('div', { class: 'chart sweep' }, this.#canvas);
  readonly #key = el('p', { class: 'muted' }, '● meets the SLO or is unclear   ○ misses it');
  /** The result in sentences; of a proof they explain, so they may stand elsewhere. */
  readonly sentences = el('div', { class: 'sentences' });
  readonly #first = el('div', { class: 'sentences first-said' });
  readonly #table = el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Result as a table' });
  readonly #chart = new Painted<SweepScene>(this.#canvas);
  #theme = readTheme();
  #shown: unknown = null;
  #view: ScenarioView | null = null;

  constructor() {
    this.element = el('section', { 'aria-labelledby': 'scenario-title' }, el('header', { class: 'section-head' }, this.#title), this.sentences, this.#chartBox, this.#key, el('div', { class: 'said-beside' }, this.#table, this.#first));
  }

  /** Takes the editor's colours again. */
  rebuildTheme(): void {
    this.#theme = readTheme();
    this.#chart.reset();
    if (this.#view?.sweep) this.#drawSweep(this.#view.sweep);
  }

  /** Draws the scenario's result; hidden for a plain probe. */
  draw(report: Report): void {
    if (report.scenario === this.#shown && this.#shown !== null) return;
    this.#shown = report.scenario ?? null;
    this.#view = report.scenario === undefined ? null : readScenario(report.scenario.name, report.scenario.result);
    const view = this.#view;
    show(this.element, view !== null);
    show(this.sentences, view !== null);
    if (view === null) return;
    setText(this.#title, view.title);
    this.sentences.replaceChildren(...(view.verdict === null ? [] : [el('p', { class: 'finding' }, icon('info'), view.verdict)]), ...view.sentences.map((sentence) => el('p', {}, sentence)));
    this.#first.replaceChildren(...view.first.map((sentence) => el('p', { class: 'finding' }, icon('info'), sentence)));
    show(this.#chartBox, view.sweep !== null);
    show(this.#key, view.sweep !== null);
    this.#drawTable(view);
    if (view.sweep !== null) this.#drawSweep(view.sweep);
  }

  #drawSweep(sweep: Sweep): void {
    const loads = sweep.steps.map((step) => step.load);
    const [least, most] = [Math.min(...loads), Math.max(...loads)];
    const theme = this.#theme;
    const font = { family: theme.family, size: theme.size - 2 };
    const x = {
      type: 'logarithmic', min: least / 1.08, max: most * 1.08, border: { color: theme.grid }, grid: { color: theme.grid, tickLength: 4 },
      ticks: { color: theme.muted, font, maxRotation: 0, minRotation: 0, autoSkip: false, callback: (value: number | string) => count(Number(value)) },
      title: { display: true, text: sweep.axis, color: theme.muted, font, padding: 0 },
      afterBuildTicks: (axis: { ticks: { value: number }[] }) => { axis.ticks = spacedTicks(loads, least, most); },
    };
    this.#chart.show({ type: SweepController.id, scene: { sweep, theme }, scales: { x, y: { type: 'logarithmic', display: false, min: 1, max: 10 } }, padding: { left: 64, right: 8 } });
    this.#canvas.setAttribute('aria-label', `Throughput, rate per user and goodput against ${sweep.axis}${sweep.knee === null ? '; no step meets the SLO' : `; the knee is at ${digits(sweep.knee)}`}. The table below holds the numbers.`);
  }

  #drawTable(view: ScenarioView): void {
    const [head, ...rows] = view.table;
    show(this.#table, head !== undefined && rows.length > 0);
    if (head === undefined) return;
    this.#table.replaceChildren(el('table', { class: 'figures' },
      el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))),
      el('tbody', {}, ...rows.map((row) => el('tr', { class: row[0] === String(view.sweep?.knee ?? '') ? 'knee' : '' }, el('th', { scope: 'row' }, row[0] ?? ''), ...row.slice(1).map((text) => el('td', {}, text)))))));
  }
}

/** Loads that were measured, as long as their labels do not touch. */
function spacedTicks(loads: readonly number[], least: number, most: number): { value: number }[] {
  const ticks: { value: number }[] = [];
  const span = Math.log(most / least) || 1;
  for (const value of [...loads].sort((a, b) => a - b)) {
    const before = ticks.at(-1);
    if (before === undefined || Math.log(value / before.value) / span > 0.045) ticks.push({ value });
  }
  return ticks;
}
