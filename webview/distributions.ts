import { Chart, LinearScale, LogarithmicScale } from 'chart.js';
import { count, digits, ms } from '../src/report/format';
import type { Report, Summary } from '../src/report/report';
import { chunkGaps, completed, ttft, type Milliseconds } from '../src/report/sample';
import { sorted, type Sorted } from '../src/report/statistics';
import { binLogarithmic, type Bins } from './bins';
import { CanvasController, Painted } from './canvasController';
import { el, setText, show } from './element';
import type { PanelState } from './state';
import { readTheme, type Theme } from './theme';

/** A labelled line at a percentile. */
interface Mark {
  readonly label: string;
  readonly at: Milliseconds;
}

interface EcdfScene {
  readonly values: Sorted;
  readonly marks: readonly Mark[];
  readonly theme: Theme;
}

interface BinsScene {
  readonly bins: Bins;
  readonly marks: readonly Mark[];
  readonly theme: Theme;
  readonly longGap: Milliseconds;
}

/** Each request as a dot at its value, at the share of requests that were as fast or faster. */
class EcdfController extends CanvasController<EcdfScene> {
  static readonly id = 'ecdf';

  protected override paint(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], { values, marks, theme }: EcdfScene): void {
    const x = this.scale('x');
    const y = this.scale('y');
    drawMarks(ctx, area, marks, (at) => x.getPixelForValue(at), theme);
    ctx.strokeStyle = theme.answer;
    ctx.fillStyle = theme.answer;
    ctx.lineWidth = 1.5;
    ctx.globalAlpha = values.length <= 80 ? 0.5 : 1;
    ctx.beginPath();
    ctx.moveTo(area.left, y.getPixelForValue(0));
    values.forEach((value, i) => {
      ctx.lineTo(x.getPixelForValue(value), y.getPixelForValue(i / values.length));
      ctx.lineTo(x.getPixelForValue(value), y.getPixelForValue((i + 1) / values.length));
    });
    ctx.lineTo(area.right, y.getPixelForValue(1));
    ctx.stroke();
    ctx.globalAlpha = 1;
    if (values.length <= 80) {values.forEach((value, i) => {
      ctx.beginPath();
      ctx.arc(x.getPixelForValue(value), y.getPixelForValue((i + 1) / values.length), 2.5, 0, 2 * Math.PI);
      ctx.fill();
    });}
  }
}

/** Counts in bins of equal width on a logarithmic axis; a bin that holds anything is at least two pixels high, so a single stall shows. */
class BinsController extends CanvasController<BinsScene> {
  static readonly id = 'bins';

  protected override paint(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], { bins, marks, theme, longGap }: BinsScene): void {
    const x = this.scale('x');
    const y = this.scale('y');
    bins.counts.forEach((count, i) => {
      if (count === 0) return;
      const from = x.getPixelForValue(bins.edges[i] as number);
      const to = x.getPixelForValue(bins.edges[i + 1] as number);
      const top = Math.min(y.getPixelForValue(count), area.bottom - 2);
      ctx.fillStyle = (bins.edges[i] as number) >= longGap ? theme.gap : theme.answer;
      ctx.fillRect(from, top, Math.max(1, to - from - (to - from > 3 ? 1 : 0)), area.bottom - top);
    });
    drawMarks(ctx, area, marks, (at) => x.getPixelForValue(at), theme);
  }
}

Chart.register(EcdfController, BinsController, LinearScale, LogarithmicScale);

/** Lines of labels above the plot. */
const labelLines = 3;

/** Dashed lines, each with a label above the plot; a label that would touch the one before it stands a line lower. */
function drawMarks(ctx: CanvasRenderingContext2D, area: { left: number; right: number; top: number; bottom: number }, marks: readonly Mark[], x: (at: Milliseconds) => number, theme: Theme): void {
  const line = theme.size + 1;
  ctx.font = `${theme.size - 2}px ${theme.family}`;
  ctx.textBaseline = 'top';
  ctx.textAlign = 'left';
  ctx.lineWidth = 1;
  const ends: number[] = [];
  for (const mark of marks) {
    const at = Math.round(x(mark.at)) + 0.5;
    const width = ctx.measureText(mark.label).width;
    const left = at + 4 + width > area.right ? at - 4 - width : at + 4;
    const found = ends.findIndex((end) => left > end + 4);
    const row = found < 0 ? ends.length : found;
    ends[row] = Math.max(left + width, at);
    ctx.strokeStyle = theme.muted;
    ctx.setLineDash([3, 3]);
    ctx.beginPath();
    const top = area.top - (labelLines - row) * line;
    ctx.moveTo(at, top);
    ctx.lineTo(at, area.bottom);
    ctx.stroke();
    ctx.setLineDash([]);
    ctx.fillStyle = theme.background;
    ctx.fillRect(left - 1, top, width + 2, line - 1);
    ctx.fillStyle = theme.foreground;
    ctx.fillText(mark.label, left, top);
  }
}

function marksOf(summary: Summary): Mark[] {
  return (['p50', 'p90', 'p99'] as const).map((name) => ({ label: `${name} ${ms(summary[name])}`, at: summary[name] }));
}

interface Figure {
  readonly element: HTMLElement;
  readonly title: HTMLElement;
  readonly canvas: HTMLCanvasElement;
  readonly none: HTMLElement;
  readonly table: HTMLDetailsElement;
}

function figure(title: string): Figure {
  const canvas = el('canvas', { role: 'img' });
  const heading = el('h3', {}, title);
  const none = el('p', { class: 'muted' });
  const table = el('details', { class: 'alternative' }, el('summary', {}, 'As a table'));
  return { element: el('figure', { class: 'distribution' }, heading, el('div', { class: 'chart' }, canvas), none, table), title: heading, canvas, none, table };
}

/** The distributions section: first tokens as an empirical distribution, gaps as a histogram on a logarithmic axis. */
export class Distributions {
  readonly element: HTMLElement;
  readonly #ttft = figure('First token (TTFT), share of requests');
  readonly #gaps = figure('Gaps between deltas, count');
  readonly #ecdf = new Painted<EcdfScene>(this.#ttft.canvas);
  readonly #bins = new Painted<BinsScene>(this.#gaps.canvas);
  #theme = readTheme();
  #key = '';

  constructor() {
    this.element = el('section', { class: 'distributions', 'aria-labelledby': 'distributions-title' },
      el('header', { class: 'section-head' }, el('h2', { id: 'distributions-title' }, 'Distributions')), this.#ttft.element, this.#gaps.element);
  }

  /** Takes the editor's colours again. */
  rebuildTheme(state: PanelState): void {
    this.#theme = readTheme();
    this.#ecdf.reset();
    this.#bins.reset();
    this.#key = '';
    this.draw(state);
  }

  /** Draws the distributions of the run; nothing when no request completed yet. */
  draw(state: PanelState): void {
    if (state.view.kind !== 'run') return;
    const { report } = state.view.run;
    const done = report.samples.filter((sample) => sample.role === 'measured' && completed(sample));
    const key = `${report.id} ${done.length} ${report.summary.chunkGap?.n ?? 0}`;
    if (key === this.#key) return;
    this.#key = key;
    this.#drawTtft(report, sorted(done.map(ttft).filter((value) => value !== null)));
    this.#drawGaps(report, done.flatMap(chunkGaps));
  }

  #padding(): { top: number; right: number } {
    return { top: labelLines * (this.#theme.size + 1) + 4, right: 6 };
  }

  #drawTtft(report: Report, values: Sorted): void {
    const summary = report.summary.ttft;
    const present = summary !== null && values.length > 0;
    toggle(this.#ttft, present, 'No first token yet.');
    if (!present) return;
    const last = values.at(-1) ?? 0;
    this.#ecdf.show({
      padding: this.#padding(), type: EcdfController.id, scene: { values, marks: marksOf(summary), theme: this.#theme },
      scales: scales(this.#theme, { type: 'linear', min: 0, max: last * 1.08, title: 'ms' }, { max: 1, step: 0.5, text: (share) => `${Math.round(share * 100)} %` }),
    });
    this.#ttft.canvas.setAttribute('aria-label', `Distribution of the first token over ${values.length} requests: ${marksOf(summary).map((mark) => mark.label).join(', ')}.`);
    fillTable(this.#ttft.table, ['Share of requests', 'First token within, ms'], sharesOf(values));
  }

  #drawGaps(report: Report, gaps: readonly Milliseconds[]): void {
    const summary = report.summary.chunkGap;
    const bins = binLogarithmic(gaps);
    const present = summary !== null && bins !== null;
    toggle(this.#gaps, present, 'No gaps: fewer than two deltas came.');
    if (!present) return;
    const most = bins.counts.reduce((max, count) => Math.max(max, count), 0);
    this.#bins.show({
      padding: this.#padding(), type: BinsController.id, scene: { bins, marks: marksOf(summary), theme: this.#theme, longGap: summary.p99 },
      scales: scales(this.#theme, { type: 'logarithmic', min: bins.edges[0] ?? 1, max: bins.edges.at(-1) ?? 10, title: 'ms, logarithmic' }, { max: most * 1.04, text: count }),
    });
    this.#gaps.canvas.setAttribute('aria-label', `Distribution of ${summary.n} gaps: ${marksOf(summary).map((mark) => mark.label).join(', ')}, longest ${ms(summary.max)}.`);
    fillTable(this.#gaps.table, ['From, ms', 'To, ms', 'Gaps'], [...bins.counts].flatMap((n, i) => (n === 0 ? [] : [[ms(bins.edges[i] as number), ms(bins.edges[i + 1] as number), count(n)]])));
  }
}

function toggle(target: Figure, present: boolean, none: string): void {
  show(target.canvas.parentElement as HTMLElement, present);
  show(target.table, present);
  show(target.none, !present);
  setText(target.none, none);
}

function sharesOf(values: Sorted): string[][] {
  return [0.1, 0.25, 0.5, 0.75, 0.9, 1].map((share) => [`${Math.round(share * 100)} %`, ms(values[Math.ceil(share * values.length) - 1] as number)]);
}

function fillTable(details: HTMLDetailsElement, head: readonly string[], rows: readonly (readonly string[])[]): void {
  details.querySelector('.scroll')?.remove();
  details.append(el('div', { class: 'scroll' }, el('table', { class: 'figures' },
    el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))),
    el('tbody', {}, ...rows.map((row) => el('tr', {}, ...row.map((text) => el('td', {}, text))))))));
}

function scales(theme: Theme, x: { type: 'linear' | 'logarithmic'; min: number; max: number; title: string }, y: { max: number; step?: number; text: (value: number) => string }): { x: object; y: object } {
  const font = { family: theme.family, size: theme.size - 2 };
  const ticks = { color: theme.muted, font, maxRotation: 0, minRotation: 0 };
  return {
    x: {
      type: x.type, min: x.min, max: x.max, border: { color: theme.grid }, grid: { display: false },
      ticks: { ...ticks, autoSkipPadding: 16, includeBounds: false, callback: (value: number | string) => digits(Number(value)) },
      ...(x.type === 'logarithmic' ? { afterBuildTicks: (axis: { ticks: { value: number }[] }) => { axis.ticks = logarithmicTicks(x.min, x.max); } } : {}), title: { display: true, text: x.title, color: theme.muted, font, padding: 0 },
    },
    y: { type: 'linear', min: 0, max: y.max, border: { display: false }, grid: { color: theme.grid, tickLength: 0 }, ticks: { ...ticks, maxTicksLimit: 4, ...(y.step === undefined ? {} : { stepSize: y.step }), padding: 6, includeBounds: false, callback: (value: number | string) => y.text(Number(value)) } },
  };
}

/** On a logarithmic axis 1, 2 and 5 of each decade have a label. */
function logarithmicTicks(min: number, max: number): { value: number }[] {
  const ticks: { value: number }[] = [];
  for (let decade = 10 ** Math.floor(Math.log10(min)); decade <= max; decade *= 10) {
    for (const step of [1, 2, 5]) if (step * decade >= min && step * decade <= max) ticks.push({ value: step * decade });
  }
  return ticks;
}
