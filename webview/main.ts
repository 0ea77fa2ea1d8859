import type { FromWebview, ToWebview } from '../src/report/messages';
import { isProof } from '../src/report/proof';
import { unpackMessage } from '../src/report/packing';
import { Answers } from './answers';
import { Compare } from './compare';
import { Distributions } from './distributions';
import { el, show } from './element';
import { Facts } from './facts';
import { drawForeign } from './foreign';
import { KeyNumbers } from './keyNumbers';
import { rowOrders, type Selection } from './navigation';
import { Percentiles } from './percentiles';
import { Scenario } from './scenario';
import { ServerNumbers } from './serverNumbers';
import { applyMessage, createState, type PanelState } from './state';
import { drawProblem } from './problem';
import { watchTheme } from './theme';
import { Timeline, type TimelineMemory } from './timeline';
import { Verdict } from './verdict';

interface Saved extends TimelineMemory {
  readonly reportId: string | null;
  /** The second report of a comparison. */
  readonly comparedWith: string | null;
  readonly selection: Selection | null;
}

interface VsCodeApi {
  postMessage(message: FromWebview): void;
  getState(): unknown;
  setState(state: Saved): void;
}
declare function acquireVsCodeApi(): VsCodeApi;

/** Milliseconds between two drawings: at most ten a second. */
const pace = 100;

/** Message → state → draw. The only place that talks to the editor. */
function start(main: HTMLElement, api: VsCodeApi): void {
  const saved = readSaved(api.getState());
  const state: PanelState = createState(saved?.reportId ?? null, saved?.selection ?? null);
  const post = (message: FromWebview): void => api.postMessage(message);

  const timeline = new Timeline({ select: choose, open: () => answers.focusFrames(), wantAnswer: (sampleId) => post({ type: 'wantAnswer', sampleId }), remember }, saved);
  const answers = new Answers({
    select: choose, back: () => timeline.focus(), copy: (text) => post({ type: 'copy', text }), saveTape: (sampleId) => post({ type: 'saveTape', sampleId }),
    openSetting: (setting) => post({ type: 'openSettings', setting }),
  });
  const verdict = new Verdict(post);
  const keyNumbers = new KeyNumbers();
  const scenario = new Scenario();
  const percentiles = new Percentiles();
  const distributions = new Distributions();
  const server = new ServerNumbers();
  const facts = new Facts();
  // A comparison brings two time lines of its own, so it is made when one is asked for.
  let compare: Compare | null = null;
  const compareView = el('div', {});
  const numbers = el('div', { class: 'numbers' }, percentiles.element, distributions.element);
  const runView = el('div', {}, verdict.element, keyNumbers.element, scenario.element, timeline.element, numbers, answers.element, facts.element, server.element);
  const problemView = el('div', {});
  const foreignView = el('div', {});
  main.append(runView, problemView, compareView, foreignView);

  function draw(): void {
    const { view } = state;
    show(runView, view.kind === 'run');
    show(problemView, view.kind === 'problem');
    show(compareView, view.kind === 'compare');
    show(foreignView, view.kind === 'foreign');
    switch (view.kind) {
      case 'waiting': return;
      case 'problem': return drawProblem(problemView, view.problem, post);
      case 'foreign': return drawForeign(foreignView, view.report);
      case 'compare':
        if (compare === null) compareView.append((compare = new Compare()).element);
        return compare.draw(view.a, view.b);
      case 'run':
        verdict.draw(view.run);
        keyNumbers.draw(view.run);
        timeline.draw(state);
        answers.draw(state);
        askForText();
        drawRest.soon();
    }
  }

  /** What is below the time line, a frame later: the first picture does not wait for it, and a large run that still grows redraws it less often. */
  const drawRest = calmly(() => {
    const { view } = state;
    if (view.kind !== 'run') return;
    const { report, live } = view.run;
    scenario.draw(report);
    show(numbers, live || report.summary.total !== null);
    numbers.classList.toggle('live', live && !isProof(report.plan));
    percentiles.draw(report);
    distributions.draw(state);
    arrange(isProof(report.plan));
    facts.draw(report);
    server.draw(report);
  });

  /** A proof answers first: its table, how long each kind of request waited, what it means; the time line is for the puzzle. */
  let proven = false;
  function arrange(proof: boolean): void {
    if (proof === proven) return;
    proven = proof;
    show(distributions.element, !proof);
    if (proof) scenario.element.after(numbers, scenario.sentences);
    else {
      scenario.element.querySelector('header')?.after(scenario.sentences);
      timeline.element.after(numbers);
    }
  }

  /** The answer of the chosen request, once: of a running one the text comes with the stream. */
  let asked = '';
  function askForText(): void {
    const { selection, view } = state;
    if (selection === null || view.kind !== 'run') return;
    const track = view.run.tracks.get(selection.sampleId);
    if (!track?.sample || track.count === 0 || track.pieces !== null || state.answers.has(track.id) || asked === track.id) return;
    asked = track.id;
    post({ type: 'wantAnswer', sampleId: track.id });
  }

  function askForFrame(): void {
    const { selection } = state;
    if (selection !== null && selection.deltaIndex !== null) post({ type: 'wantFrame', sampleId: selection.sampleId, deltaIndex: selection.deltaIndex });
  }

  function choose(selection: Selection): void {
    if (state.view.kind !== 'run') return;
    const same = state.selection?.sampleId === selection.sampleId && state.selection.deltaIndex === selection.deltaIndex;
    state.selection = selection;
    asked = state.answers.has(selection.sampleId) ? asked : '';
    if (!same) askForFrame();
    remember();
    answers.draw(state);
    timeline.draw(state);
    timeline.reveal();
    askForText();
  }

  function remember(): void {
    const { view } = state;
    const shown = view.kind === 'run' ? { reportId: view.run.report.id, comparedWith: null } : view.kind === 'compare' ? { reportId: view.a.id, comparedWith: view.b.id } : { reportId: saved?.reportId ?? null, comparedWith: saved?.comparedWith ?? null };
    api.setState({ ...shown, selection: state.selection, ...timeline.memory() });
  }

  const redraw = calmly(draw);

  window.addEventListener('message', (event: MessageEvent<ToWebview>) => {
    applyMessage(state, unpackMessage(event.data));
    if (event.data.type === 'report' || event.data.type === 'begin' || event.data.type === 'compare') remember();
    if (event.data.type === 'report') askForFrame();
    redraw.soon();
  });
  window.addEventListener('error', (event) => post({ type: 'failed', message: event.message }));
  window.addEventListener('unhandledrejection', (event) => post({ type: 'failed', message: String(event.reason) }));
  window.addEventListener('resize', () => { if (state.view.kind === 'run') keyNumbers.resize(); });
  watchTheme(() => requestAnimationFrame(() => {
    timeline.rebuildTheme();
    distributions.rebuildTheme(state);
    keyNumbers.rebuildTheme();
    scenario.rebuildTheme();
    compare?.rebuildTheme();
    draw();
  }));
  post({ type: 'ready', reportId: saved?.reportId ?? null, ...(saved?.comparedWith ? { comparedWith: saved.comparedWith } : {}) });
}

/** Runs `work` in a frame soon, at most ten times a second, and never more than a quarter of the time. */
function calmly(work: () => void): { readonly soon: () => void } {
  const clock = (): number => Number(document.timeline.currentTime ?? 0);
  let last = Number.NEGATIVE_INFINITY;
  let rest = pace;
  let waiting = false;
  const run = (begun: number): void => {
    waiting = false;
    last = begun;
    work();
    // The next frame comes when this one's work is done.
    requestAnimationFrame((next) => { rest = Math.max(pace, 4 * (next - begun)); });
  };
  return {
    soon: () => {
      if (waiting) return;
      waiting = true;
      window.setTimeout(() => requestAnimationFrame(run), Math.max(0, last + rest - clock()));
    },
  };
}

/** State of an earlier life of this panel; anything odd is forgotten rather than trusted. */
function readSaved(value: unknown): Saved | null {
  if (typeof value !== 'object' || value === null) return null;
  const { reportId, comparedWith, selection, zoom, axis, sort } = value as Record<string, unknown>;
  return {
    reportId: typeof reportId === 'string' ? reportId : null,
    comparedWith: typeof comparedWith === 'string' ? comparedWith : null,
    selection: isSelection(selection) ? selection : null,
    zoom: isSpan(zoom) ? zoom : null,
    axis: axis === 'run' ? 'run' : 'request',
    sort: rowOrders.find((order) => order === sort) ?? 'start',
  };
}

function isSelection(value: unknown): value is Selection {
  const candidate = value as Selection | null;
  return typeof candidate === 'object' && candidate !== null && typeof candidate.sampleId === 'string' && (candidate.deltaIndex === null || Number.isInteger(candidate.deltaIndex));
}

function isSpan(value: unknown): value is { from: number; to: number } {
  const candidate = value as { from: unknown; to: unknown } | null;
  return typeof candidate === 'object' && candidate !== null && typeof candidate.from === 'number' && typeof candidate.to === 'number' && candidate.from < candidate.to;
}

const root = document.getElementById('panel');
if (root) start(root, acquireVsCodeApi());
