import type { ForeignReport } from '../src/report/exchange/foreign';
import type { AnswerView, FrameView, PanelProblem, ToWebview } from '../src/report/messages';
import type { Report } from '../src/report/report';
import type { Milliseconds } from '../src/report/sample';
import type { Selection } from './navigation';
import { createTrack, growTrack, trackOf, type Track } from './track';

/** A run as the panel knows it, growing or finished. */
export interface Run {
  report: Report;
  /** By sample id, in the order they became known. */
  readonly tracks: Map<string, Track>;
  live: boolean;
  stopped: 'user' | 'breaker' | 'budget' | null;
  canRunAgain: boolean;
  textKept: boolean;
  done: number;
  total: number;
  elapsed: Milliseconds | null;
  eta: Milliseconds | null;
  /** The experiment waits on purpose: in all, and what is left. */
  wait: { readonly whole: Milliseconds; readonly left: Milliseconds } | null;
}

/** What the panel shows. `waiting`: nothing was heard from the editor yet. */
export type View =
  | { readonly kind: 'waiting' }
  | { readonly kind: 'problem'; readonly problem: PanelProblem }
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'compare'; readonly a: Report; readonly b: Report }
  | { readonly kind: 'foreign'; readonly report: ForeignReport };

/** Everything the sections draw from. */
export interface PanelState {
  view: View;
  /** The report the selection belongs to; after a reload, the one that was shown before. */
  reportId: string | null;
  selection: Selection | null;
  readonly answers: Map<string, AnswerView>;
  frame: FrameView | null;
}

/** Answers kept for reading; older ones are asked for again. */
const keptAnswers = 40;

/** The state before the first message; `reportId` and `selection` as they were before a reload. */
export function createState(reportId: string | null = null, selection: Selection | null = null): PanelState {
  return { view: { kind: 'waiting' }, reportId, selection, answers: new Map(), frame: null };
}

/** Folds one message into the state. A message that belongs to no run shown is ignored. */
export function applyMessage(state: PanelState, message: ToWebview): void {
  switch (message.type) {
    case 'problem':
      state.view = { kind: 'problem', problem: message.problem };
      return;
    case 'begin':
      forgetOtherRun(state, message.report);
      state.view = { kind: 'run', run: { report: message.report, tracks: new Map(), live: true, stopped: null, canRunAgain: false, textKept: true, done: 0, total: message.total, elapsed: null, eta: null, wait: null } };
      return;
    case 'live': {
      if (state.view.kind !== 'run') return;
      const { run } = state.view;
      const { done, total, elapsed, eta, wait = null } = message;
      Object.assign(run, { done, total, elapsed, eta, wait });
      for (const row of message.rows) {
        let track = run.tracks.get(row.id);
        if (track?.sample) continue;
        if (track === undefined) run.tracks.set(row.id, (track = createTrack(row, run.tracks.size, nextNumber(run, row.role))));
        growTrack(track, row);
      }
      chooseFirst(state, run);
      return;
    }
    case 'samples': {
      if (state.view.kind !== 'run') return;
      const { run } = state.view;
      const known = run.report.samples.filter((sample) => !message.samples.some((other) => other.id === sample.id));
      run.report = { ...message.report, samples: [...known, ...message.samples] };
      run.done = message.done ?? run.done;
      run.total = message.total ?? run.total;
      run.wait = null;
      addSamples(run, message.samples);
      chooseFirst(state, run);
      return;
    }
    case 'report': {
      const tracks = state.view.kind === 'run' && state.view.run.report.id === message.report.id ? state.view.run.tracks : new Map<string, Track>();
      forgetOtherRun(state, message.report);
      const { report, live, stopped, canRunAgain, textKept } = message;
      const measured = report.samples.filter((sample) => sample.role === 'measured').length;
      const run: Run = { report, tracks, live, stopped, canRunAgain, textKept, done: measured, total: Math.max(measured, report.plan.requests), elapsed: null, eta: null, wait: null };
      if (!live) for (const [id, track] of tracks) if (track.sample === null) tracks.delete(id);
      addSamples(run, report.samples);
      state.view = { kind: 'run', run };
      chooseFirst(state, run);
      return;
    }
    case 'compare':
      state.view = { kind: 'compare', a: message.a, b: message.b };
      return;
    case 'foreign':
      state.view = { kind: 'foreign', report: message.report };
      return;
    case 'frame':
      if (message.view.sampleId === state.selection?.sampleId) state.frame = message.view;
      return;
    case 'answer':
      remember(state, message.view);
      return;
  }
}

function addSamples(run: Run, samples: Report['samples']): void {
  for (const sample of samples) {
    const live = run.tracks.get(sample.id);
    if (live?.sample !== sample) run.tracks.set(sample.id, trackOf(sample, live?.place ?? run.tracks.size, live?.number ?? nextNumber(run, sample.role), live));
  }
}

function nextNumber(run: Run, role: Track['role']): number {
  let number = 1;
  for (const track of run.tracks.values()) if (track.role === role) number += 1;
  return number;
}

function remember(state: PanelState, view: AnswerView): void {
  state.answers.delete(view.sampleId);
  state.answers.set(view.sampleId, view);
  const oldest = state.answers.keys().next();
  if (state.answers.size > keptAnswers && oldest.done !== true) state.answers.delete(oldest.value);
}

/** Answers and frames of one run say nothing about another; the selection survives a reload of the same one. */
function forgetOtherRun(state: PanelState, report: Report): void {
  if (state.reportId === report.id) return;
  state.reportId = report.id;
  state.selection = null;
  state.frame = null;
  state.answers.clear();
}

/** Until the user chooses, the first measured request that has tokens is shown below the time line. */
function chooseFirst(state: PanelState, run: Run): void {
  if (state.selection !== null && (run.live || run.tracks.has(state.selection.sampleId))) return;
  const tracks = [...run.tracks.values()];
  const first = tracks.find((track) => track.role === 'measured' && track.count > 0) ?? (run.live ? undefined : tracks.find((track) => track.role === 'measured'));
  if (first !== undefined) state.selection = { sampleId: first.id, deltaIndex: null };
  else if (!run.live) state.selection = null;
}

/** Text of one delta, when the panel has it. */
export function pieceOf(state: PanelState, track: Track, index: number): string | null {
  return state.answers.get(track.id)?.pieces?.[index]?.text ?? track.pieces?.[index] ?? null;
}
