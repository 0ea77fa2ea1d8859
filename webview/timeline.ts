import { Chart, LinearScale } from 'chart.js';
import { digits, ms } from '../src/report/format';
import type { Milliseconds } from '../src/report/sample';
import { total, ttft } from '../src/report/sample';
import { Painted } from './canvasController';
import { el, setText, show } from './element';
import { drawMinimap } from './minimap';
import { hitTest, isNavigationKey, move, orderTracks, type Hit, type RowOrder, type Selection } from './navigation';
import { pieceOf, type PanelState, type Run } from './state';
import { readTheme, type Theme } from './theme';
import { describeDelta, describeRequest } from './timelineReading';
import { nameOf, noteOf, timelineTable } from './timelineTable';
import { gutter, TimelineController, type TimelineScene } from './timelineController';
import { hasFailed, type Track } from './track';
import { axisEnd, clampFirstRow, clampSpan, isWhole, panSpan, revealInSpan, revealRow, zoomSpan, type Span } from './viewport';

Chart.register(TimelineController, LinearScale);

/** What the time line asks of the panel around it. */
export interface TimelineHost {
  readonly select: (selection: Selection) => void;
  /** Enter on a token: show its frame. */
  readonly open: () => void;
  /** Rest on a row whose text is not known yet. */
  readonly wantAnswer: (sampleId: string) => void;
  readonly remember: () => void;
}

/** What the time line remembers over a reload. */
export interface TimelineMemory {
  readonly zoom: Span | null;
  readonly axis: 'request' | 'run';
  readonly sort: RowOrder;
}

/** How a time line differs from the panel's own. */
export interface TimelineLook {
  /** Rows shown at a time; more scroll. */
  readonly rows?: number;
  /** A simulated run: nobody reads it and nothing connects, so neither is drawn. */
  readonly simulated?: boolean;
}

/** Ids must be unique in the page, and a comparison shows two time lines. */
let made = 0;

const usualRows = 40;
/** How far each axis reaches, in ms. */
export interface Ends {
  readonly request: Milliseconds;
  readonly run: Milliseconds;
}

const laneHeight = 96;
const gaugeHeight = 40;
const axisHeight = 44;

/** The time line section: rows of ticks, crosshair reading, zoom, pan, keyboard, and the same as a table. */
export class Timeline {
  readonly element: HTMLElement;
  readonly #host: TimelineHost;
  readonly #mostRows: number;
  readonly #simulated: boolean;
  readonly #canvas = el('canvas', { role: 'img' });
  readonly #stage: HTMLElement;
  readonly #plot: HTMLElement;
  readonly #minimap = el('canvas', { class: 'minimap', 'aria-hidden': 'true' });
  readonly #reading = el('p', { class: 'reading' });
  readonly #spoken = el('p', { class: 'sr-only', 'aria-live': 'polite' });
  readonly #title = el('h2', {}, 'Time line');
  readonly #legend = el('ul', { class: 'legend', 'aria-label': 'Legend' });
  readonly #table = el('details', { class: 'alternative' }, el('summary', {}, 'Time line as a table'));
  readonly #axisButtons: Record<'request' | 'run', HTMLButtonElement>;
  readonly #sort: HTMLSelectElement;
  readonly #reset: HTMLButtonElement;
  readonly #chart = new Painted<TimelineScene>(this.#canvas);
  #theme: Theme = readTheme();
  #state: PanelState | null = null;
  #rows: readonly Track[] = [];
  #span: Span | null = null;
  #axis: 'request' | 'run' = 'request';
  #order: RowOrder = 'start';
  #firstRow = 0;
  #ends: Ends = { request: 0, run: 0 };
  #reach: Ends = { request: 0, run: 0 };
  #runId = '';
  #pointer: TimelineScene['pointer'] = null;
  #tableKey = '';
  #minimapKey = '';
  #restTimer = 0;

  /** `memory` as it was before a reload: its zoom counts only for the report it was made on. */
  constructor(host: TimelineHost, memory: (TimelineMemory & { readonly reportId: string | null }) | null, look: TimelineLook = {}) {
    this.#host = host;
    this.#mostRows = look.rows ?? usualRows;
    this.#simulated = look.simulated ?? false;
    const id = `timeline-${made}`;
    made += 1;
    this.#title.id = `${id}-title`;
    this.#span = memory?.zoom ?? null;
    this.#runId = memory?.reportId ?? '';
    this.#axis = memory?.axis ?? 'request';
    this.#order = memory?.sort ?? 'start';
    const axisButton = (axis: 'request' | 'run', text: string): HTMLButtonElement => el('button', { type: 'button', class: 'segment', on: { click: () => this.#setAxis(axis) } }, text);
    this.#axisButtons = { request: axisButton('request', 'Since each start'), run: axisButton('run', 'Since the run’s start') };
    this.#sort = el('select', { class: 'select', 'aria-label': 'Sort requests by', on: { change: () => this.#setOrder(this.#sort.value as RowOrder) } },
      el('option', { value: 'start' }, 'Sort by start'), el('option', { value: 'ttft' }, 'Sort by first token'), el('option', { value: 'total' }, 'Sort by total'));
    this.#reset = el('button', { type: 'button', class: 'tool', title: 'Show everything (0 or double-click)', on: { click: () => this.#zoomTo(null) } }, 'Reset zoom');
    const zoomButton = (text: string, label: string, factor: number): HTMLElement => el('button', { type: 'button', class: 'tool square', 'aria-label': label, title: label, on: { click: () => this.#zoomAround(factor) } }, text);
    this.#plot = el('div', { class: 'plot' }, this.#canvas);
    this.#stage = el('div', { class: 'stage', tabindex: '0', role: 'application', 'aria-label': 'Time line of the requests', 'aria-describedby': `${id}-keys` }, this.#plot, this.#minimap);
    this.element = el('section', { class: 'timeline', 'aria-labelledby': `${id}-title` },
      el('header', { class: 'section-head' }, this.#title,
        el('div', { class: 'tools' },
          el('div', { class: 'segments', role: 'group', 'aria-label': 'Time axis' }, this.#axisButtons.request, this.#axisButtons.run), this.#sort,
          zoomButton('−', 'Zoom out (−)', 1 / 1.6), zoomButton('+', 'Zoom in (+)', 1.6), this.#reset)),
      this.#reading, this.#stage, this.#legend,
      el('p', { id: `${id}-keys`, class: 'sr-only' }, 'Up and down arrows move between requests, left and right between tokens, with Ctrl between long gaps. Enter opens the frame, Escape goes back. Plus and minus zoom, 0 shows everything.'),
      this.#spoken, this.#table);
    this.#listen();
  }

  /** Another heading, for a time line beside another one. */
  setTitle(title: string): void {
    setText(this.#title, title);
  }

  /** What to remember over a reload. */
  memory(): TimelineMemory {
    return { zoom: this.#span, axis: this.#axis, sort: this.#order };
  }

  /** How far the axes were asked to reach. */
  get reach(): Ends {
    return this.#reach;
  }

  /** Shows a span of the axis in force; null = everything. */
  zoom(span: Span | null): void {
    this.#zoomTo(span);
  }

  /** Moves the keyboard back to the time line. */
  focus(): void {
    this.#stage.focus();
  }

  /** Takes the editor's colours again. */
  rebuildTheme(): void {
    this.#theme = readTheme();
    this.#chart.reset();
    this.#minimapKey = '';
    if (this.#state) this.draw(this.#state, this.#reach);
  }

  /** Draws the run in `state`; nothing is drawn for other views. Axes reach at least as far as `reach`, so that two time lines can share theirs. */
  draw(state: PanelState, reach: Ends = { request: 0, run: 0 }): void {
    this.#state = state;
    this.#reach = reach;
    if (state.view.kind !== 'run') return;
    const { run } = state.view;
    if (run.report.id !== this.#runId) this.#startRun(run);
    this.#rows = this.#ordered(run);
    this.#growAxes(run);
    this.#firstRow = clampFirstRow(this.#firstRow, this.#shown(), this.#rows.length);
    this.#controls();
    this.#paint();
    this.#read();
    this.#drawLegend(run);
    this.#drawMinimap();
    if (this.#table.open) this.#drawTable();
  }

  /** Brings the selected token into view, after a choice made elsewhere. */
  reveal(): void {
    const { selection } = this.#state ?? {};
    const row = this.#rows.findIndex((track) => track.id === selection?.sampleId);
    const track = this.#rows[row];
    if (track === undefined || !selection) return;
    this.#firstRow = revealRow(this.#firstRow, row, this.#shown(), this.#rows.length);
    const t = selection.deltaIndex === null ? undefined : track.t[selection.deltaIndex];
    if (t !== undefined && this.#span !== null) this.#span = revealInSpan(this.#span, this.#at(track, t), this.#whole());
    this.#paint();
    this.#read();
    this.#drawMinimap();
  }

  #startRun(run: Run): void {
    this.#span = null;
    this.#runId = run.report.id;
    this.#ends = { request: 0, run: 0 };
    this.#firstRow = 0;
    this.#tableKey = '';
    this.#minimapKey = '';
  }

  #ordered(run: Run): readonly Track[] {
    const measures: Record<RowOrder, (track: Track) => Milliseconds | null> = {
      start: (track) => track.start,
      ttft: (track) => (track.sample ? ttft(track.sample) : null),
      total: (track) => (track.sample ? total(track.sample) : null),
    };
    return orderTracks([...run.tracks.values()], measures[this.#order]);
  }

  #growAxes(run: Run): void {
    const needed = reachOf(this.#rows, run.elapsed);
    const least = run.live ? 1000 : 0;
    this.#ends = {
      request: axisEnd(Math.max(needed.request * 1.02, this.#reach.request * 1.02, least), run.live ? this.#ends.request : 0),
      run: axisEnd(Math.max(needed.run * 1.02, this.#reach.run * 1.02, least), run.live ? this.#ends.run : 0),
    };
  }

  #whole(): Span {
    const first = this.#axis === 'run' ? this.#rows.reduce((min, track) => Math.min(min, track.start), 0) : 0;
    return { from: first, to: this.#ends[this.#axis] };
  }

  #visible(): Span {
    const whole = this.#whole();
    return this.#span === null ? whole : clampSpan(this.#span, whole);
  }

  #at(track: Track, t: Milliseconds): Milliseconds {
    return this.#axis === 'request' ? t - track.start : t;
  }

  #shown(): number {
    return Math.min(this.#mostRows, Math.max(this.#planned(), 1));
  }

  /** Rows the run will have, so that the chart has its height from the first moment on. */
  #planned(): number {
    const view = this.#state?.view;
    return Math.max(this.#rows.length, view?.kind === 'run' && view.run.live ? view.run.total : 0);
  }

  #rowHeight(): number {
    const rows = this.#planned();
    return rows <= 6 ? 32 : rows <= 12 ? 26 : rows <= 24 ? 20 : rows <= this.#mostRows ? 16 : 14;
  }

  /** A finished run without a single token has nothing to show against a reader. */
  #laneHeight(): number {
    const view = this.#state?.view;
    if (this.#simulated) return 0;
    return (view?.kind === 'run' && view.run.live) || this.#rows.some((track) => track.count > 0) ? laneHeight : 0;
  }

  #gauges(): TimelineScene['gauges'] {
    const view = this.#state?.view;
    if (this.#axis !== 'run' || view?.kind !== 'run') return [];
    return (view.run.report.serverView?.gauges ?? []).filter((gauge) => gauge.points.length > 1).map(({ label, points }) => ({ label, points }));
  }

  #scene(): TimelineScene {
    const view = this.#state?.view;
    const report = view?.kind === 'run' ? view.run.report : null;
    const selected = this.#rows.find((track) => track.id === this.#state?.selection?.sampleId);
    return {
      rows: this.#rows, firstRow: this.#firstRow, shownRows: this.#shown(), rowHeight: this.#rowHeight(), laneHeight: this.#laneHeight(), gaugeHeight, gauges: this.#gauges(), span: this.#visible(), axis: this.#axis,
      longGap: report?.summary.chunkGap?.p99 ?? null, readerPace: this.#simulated ? null : (report?.plan.readerPace ?? 120), now: view?.kind === 'run' ? view.run.elapsed : null,
      selection: this.#state?.selection ?? null, pointer: this.#pointer, theme: this.#theme,
      words: {
        name: nameOf, value: (track) => this.#value(track), note: noteOf, gap: ms, time: ms,
        laneTitle: selected ? `Request ${nameOf(selected)}\nagainst a reader` : '',
      },
    };
  }

  #value(track: Track): string {
    const value = track.sample ? (this.#order === 'total' ? total(track.sample) : ttft(track.sample)) : this.#order === 'total' || track.firstToken === null ? null : track.firstToken - track.start;
    return value === null ? '' : ms(value);
  }

  #paint(): void {
    const scene = this.#scene();
    const height = scene.shownRows * scene.rowHeight + scene.laneHeight + scene.gauges.length * gaugeHeight + axisHeight;
    if (this.#plot.style.height !== `${height}px`) this.#plot.style.height = `${height}px`;
    const title = this.#axis === 'request' ? 'ms since each request’s start' : 'ms since the run’s start';
    this.#chart.show({ type: TimelineController.id, scene, scales: this.#scales(scene.span, title), padding: { left: gutter, right: 8, top: 2 } });
    this.#canvas.setAttribute('aria-label', `Time line of ${this.#rows.length} requests. The table below it holds the same.`);
  }

  #scales(span: Span, title: string): { x: object; y: object } {
    const theme = this.#theme;
    const font = { family: theme.family, size: theme.size - 2 };
    return {
      x: {
        type: 'linear', min: span.from, max: span.to, border: { color: theme.grid }, grid: { color: theme.grid, tickLength: 4 },
        ticks: { color: theme.muted, font, maxRotation: 0, minRotation: 0, autoSkipPadding: 24, includeBounds: false, callback: (value: number | string) => digits(Number(value)) },
        title: { display: true, text: title, color: theme.muted, font, padding: 0 },
      },
      y: { type: 'linear', display: false, min: 0, max: 1 },
    };
  }

  #controls(): void {
    for (const axis of ['request', 'run'] as const) this.#axisButtons[axis].setAttribute('aria-pressed', String(this.#axis === axis));
    this.#sort.value = this.#order;
    this.#reset.disabled = this.#span === null;
    this.#stage.classList.toggle('with-minimap', this.#rows.length > this.#mostRows);
    show(this.#minimap, this.#rows.length > this.#mostRows);
  }

  #setAxis(axis: 'request' | 'run'): void {
    if (axis === this.#axis) return;
    this.#axis = axis;
    this.#span = null;
    this.#pointer = null;
    this.#redraw();
  }

  #setOrder(order: RowOrder): void {
    this.#order = order;
    this.#firstRow = 0;
    this.#minimapKey = '';
    this.#redraw();
    this.reveal();
  }

  #redraw(): void {
    if (this.#state) this.draw(this.#state, this.#reach);
    this.#host.remember();
  }

  #zoomTo(span: Span | null): void {
    this.#span = span === null || isWhole(span, this.#whole()) ? null : span;
    this.#reset.disabled = this.#span === null;
    this.#paint();
    this.#drawMinimap();
    this.#host.remember();
  }

  #zoomAround(factor: number): void {
    const visible = this.#visible();
    const selection = this.#state?.selection;
    const track = this.#rows.find((row) => row.id === selection?.sampleId);
    const index = selection?.deltaIndex ?? null;
    const t = index === null ? undefined : track?.t[index];
    const at = track && t !== undefined ? this.#at(track, t) : null;
    const around = at !== null && at >= visible.from && at <= visible.to ? at : (visible.from + visible.to) / 2;
    this.#zoomTo(zoomSpan(visible, around, factor, this.#whole()));
  }

  // ---- pointer and keyboard ----

  #listen(): void {
    let drag: { x: number; y: number; span: Span; firstRow: number; moved: boolean } | null = null;
    let lastPageScroll = Number.NEGATIVE_INFINITY;
    // A wheel that began on the page keeps scrolling the page when the time line comes under the pointer.
    window.addEventListener('wheel', (event) => { if (!this.#stage.contains(event.target as Node)) lastPageScroll = event.timeStamp; }, { passive: true });
    this.#stage.addEventListener('wheel', (event) => {
      if (event.timeStamp - lastPageScroll < 300) lastPageScroll = event.timeStamp;
      else this.#wheel(event);
    }, { passive: false });
    this.#plot.addEventListener('pointerdown', (event) => {
      if (event.button !== 0) return;
      drag = { x: event.clientX, y: event.clientY, span: this.#visible(), firstRow: this.#firstRow, moved: false };
      this.#plot.setPointerCapture(event.pointerId);
    });
    this.#plot.addEventListener('pointermove', (event) => {
      if (drag === null) return this.#hover(event);
      drag.moved ||= Math.abs(event.clientX - drag.x) + Math.abs(event.clientY - drag.y) > 4;
      if (drag.moved) this.#drag(drag, event);
    });
    this.#plot.addEventListener('pointerup', (event) => {
      if (drag !== null && !drag.moved) this.#click(event);
      else if (drag !== null) this.#host.remember();
      drag = null;
    });
    this.#plot.addEventListener('pointercancel', () => { drag = null; });
    this.#plot.addEventListener('pointerleave', () => this.#leave());
    this.#plot.addEventListener('dblclick', () => this.#zoomTo(null));
    this.#stage.addEventListener('keydown', (event) => this.#key(event));
    this.#minimap.addEventListener('pointerdown', (event) => { this.#minimap.setPointerCapture(event.pointerId); this.#scrollMinimap(event); });
    this.#minimap.addEventListener('pointermove', (event) => { if (event.buttons === 1) this.#scrollMinimap(event); });
    this.#table.addEventListener('toggle', () => { if (this.#table.open) this.#drawTable(); });
  }

  /** Row and time under a pointer event; null outside the rows. */
  #locate(event: MouseEvent): { row: number; at: Milliseconds; track: Track; hit: Hit } | null {
    const area = this.#chart.area;
    if (!area) return null;
    const box = this.#canvas.getBoundingClientRect();
    const row = this.#firstRow + Math.floor((event.clientY - box.top - area.top) / this.#rowHeight());
    const track = this.#rows[row];
    if (track === undefined || row < this.#firstRow || row >= this.#firstRow + this.#shown()) return null;
    const visible = this.#visible();
    const perPixel = (visible.to - visible.from) / area.width;
    const at = visible.from + (event.clientX - box.left - area.left) * perPixel;
    if (event.clientX - box.left < area.left) return { row, at: visible.from, track, hit: { part: 'row', deltaIndex: null } };
    return { row, at, track, hit: hitTest(track, this.#axis === 'request' ? at + track.start : at, perPixel * 3) };
  }

  #hover(event: PointerEvent): void {
    const place = this.#locate(event);
    this.#pointer = place === null ? null : { row: place.row, at: place.at };
    this.#chart.repaint(this.#scene());
    this.#read(place ?? undefined);
    window.clearTimeout(this.#restTimer);
    if (place && this.#state && place.hit.deltaIndex !== null && pieceOf(this.#state, place.track, place.hit.deltaIndex) === null && !this.#state.answers.has(place.track.id)) {
      this.#restTimer = window.setTimeout(() => this.#host.wantAnswer(place.track.id), 150);
    }
  }

  #leave(): void {
    window.clearTimeout(this.#restTimer);
    if (this.#pointer === null) return;
    this.#pointer = null;
    this.#paint();
    this.#read();
  }

  #click(event: PointerEvent): void {
    const place = this.#locate(event);
    if (place === null) return;
    this.#host.select({ sampleId: place.track.id, deltaIndex: place.hit.deltaIndex });
  }

  #drag(from: { x: number; y: number; span: Span; firstRow: number }, event: PointerEvent): void {
    const area = this.#chart.area;
    if (!area) return;
    const perPixel = (from.span.to - from.span.from) / area.width;
    if (this.#span !== null) this.#span = panSpan(from.span, (from.x - event.clientX) * perPixel, this.#whole());
    this.#firstRow = clampFirstRow(from.firstRow + Math.round((from.y - event.clientY) / this.#rowHeight()), this.#shown(), this.#rows.length);
    this.#pointer = null;
    this.#paint();
    this.#drawMinimap();
  }

  #wheel(event: WheelEvent): void {
    const area = this.#chart.area;
    if (!area) return;
    const box = this.#canvas.getBoundingClientRect();
    const inGutter = event.clientX - box.left < area.left || event.target === this.#minimap;
    const unit = event.deltaMode === WheelEvent.DOM_DELTA_LINE ? 16 : 1;
    if (inGutter && this.#rows.length > this.#mostRows && !event.ctrlKey) {
      this.#scrollRows(this.#firstRow + Math.sign(event.deltaY) * Math.max(1, Math.round(Math.abs(event.deltaY * unit) / 40)));
      event.preventDefault();
      return;
    }
    const visible = this.#visible();
    if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
      const by = (event.shiftKey && event.deltaX === 0 ? event.deltaY : event.deltaX) * unit;
      if (this.#span !== null) this.#zoomTo(panSpan(visible, (by * (visible.to - visible.from)) / area.width, this.#whole()));
      event.preventDefault();
      return;
    }
    // Fully zoomed out there is nothing left to zoom, so the page may scroll.
    if (event.deltaY > 0 && this.#span === null) return;
    event.preventDefault();
    const at = visible.from + ((event.clientX - box.left - area.left) / area.width) * (visible.to - visible.from);
    this.#zoomTo(zoomSpan(visible, at, Math.exp((-event.deltaY * unit) / (event.ctrlKey ? 100 : 300)), this.#whole()));
  }

  #scrollRows(to: number): void {
    const first = clampFirstRow(to, this.#shown(), this.#rows.length);
    if (first === this.#firstRow) return;
    this.#firstRow = first;
    this.#paint();
    this.#drawMinimap();
  }

  #key(event: KeyboardEvent): void {
    if (event.altKey || event.metaKey) return;
    if (isNavigationKey(event.key)) {
      const to = move(this.#rows, this.#state?.selection ?? null, event.key, event.ctrlKey ? this.#scene().longGap ?? 0 : null);
      if (to !== null) {
        this.#host.select(to);
        this.reveal();
        setText(this.#spoken, this.#describe(to));
      }
    } else if (event.key === 'Enter') this.#host.open();
    else if (event.key === '+' || event.key === '=') this.#zoomAround(1.6);
    else if (event.key === '-') this.#zoomAround(1 / 1.6);
    else if (event.key === '0') this.#zoomTo(null);
    else return;
    event.preventDefault();
  }

  // ---- words ----

  /** The line above the chart: what is under the pointer, else what is chosen. */
  #read(place?: { track: Track; hit: Hit; at: Milliseconds }): void {
    if (place) setText(this.#reading, this.#describe({ sampleId: place.track.id, deltaIndex: place.hit.deltaIndex }, place.hit.part));
    else if (this.#pointer === null && this.#state?.selection) setText(this.#reading, this.#describe(this.#state.selection));
    else if (this.#pointer === null) setText(this.#reading, 'Point at a tick or a gap to read it.');
  }

  #describe(selection: Selection, part: Hit['part'] = 'delta'): string {
    const track = this.#rows.find((row) => row.id === selection.sampleId);
    if (track === undefined || this.#state === null) return '';
    const index = selection.deltaIndex;
    return index === null || index >= track.count ? describeRequest(track) : describeDelta(track, index, part, pieceOf(this.#state, track, index));
  }

  #drawLegend(run: Run): void {
    const longGap = run.report.summary.chunkGap?.p99;
    const entries: (readonly [string, string])[] = [...(this.#simulated ? [] : [['connect', 'connecting'] as const]), ['wait', 'queue and prefill']];
    if (this.#rows.some((track) => track.firstToken !== null && track.firstToken !== track.firstVisible)) entries.push(['reasoning', 'reasoning']);
    entries.push(['answer', 'answer']);
    if (longGap !== undefined) entries.push(['gap', `gap above the p99 of ${ms(longGap)}`]);
    if (!this.#simulated) entries.push(['reader', `a fast reader, ${ms(run.report.plan.readerPace)} a token`]);
    if (this.#rows.some((track) => hasFailed(track))) entries.push(['failure', 'failed']);
    const text = entries.map(([, words]) => words).join('|');
    if (this.#legend.dataset['key'] === text) return;
    this.#legend.dataset['key'] = text;
    this.#legend.replaceChildren(...entries.map(([name, words]) => el('li', {}, el('span', { class: `swatch swatch-${name}`, 'aria-hidden': 'true' }), words)));
  }

  #drawTable(): void {
    const key = `${this.#runId} ${this.#order} ${this.#rows.map((track) => (track.sample ? '1' : '0')).join('')}`;
    if (key === this.#tableKey) return;
    this.#tableKey = key;
    this.#table.querySelector('.scroll')?.remove();
    this.#table.append(el('div', { class: 'scroll', tabindex: '0', role: 'region', 'aria-label': 'Requests' }, timelineTable(this.#rows)));
  }

  #drawMinimap(): void {
    if (this.#rows.length <= this.#mostRows) return;
    const height = this.#shown() * this.#rowHeight();
    const key = [this.#runId, this.#rows.length, this.#rows.reduce((sum, track) => sum + track.count, 0), this.#order, this.#axis, this.#firstRow, height].join(' ');
    if (key === this.#minimapKey) return;
    this.#minimapKey = key;
    drawMinimap(this.#minimap, { rows: this.#rows, whole: this.#whole(), at: (track, t) => this.#at(track, t), firstRow: this.#firstRow, shownRows: this.#shown(), height, theme: this.#theme });
  }

  #scrollMinimap(event: PointerEvent): void {
    const box = this.#minimap.getBoundingClientRect();
    const row = ((event.clientY - box.top) / box.height) * this.#rows.length;
    this.#scrollRows(Math.round(row - this.#shown() / 2));
  }
}

/** How far the rows reach since their own starts and since the run's start; a waiting request reaches as far as the run's clock. */
export function reachOf(tracks: Iterable<Track>, elapsed: Milliseconds | null): Ends {
  let request = 100;
  let run = 100;
  for (const track of tracks) {
    const end = track.last ?? track.end ?? (track.outcome === null && elapsed !== null ? elapsed : track.firstToken ?? track.headers ?? track.start);
    request = Math.max(request, end - track.start);
    run = Math.max(run, end);
  }
  return { request, run };
}
