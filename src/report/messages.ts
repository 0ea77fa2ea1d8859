/** Messages between the editor and the webview. Types only; both ends switch exhaustively over `type`. */
import type { ForeignReport } from './exchange/foreign';
import type { PackedDeltas } from './packing';
import type { Report } from './report';
import type { Milliseconds, Sample, DeltaKind } from './sample';

/** A request while it streams: what has arrived so far since the last message. Times from the window's start (so far). */
export interface LiveRow {
  readonly id: string;
  readonly role: Sample['role'];
  readonly start: Milliseconds;
  readonly headers: Milliseconds | null;
  /** Parallel arrays: stamp, kind and tokens of each new delta. */
  readonly t: readonly Milliseconds[];
  readonly kinds: readonly DeltaKind[];
  readonly tokens: readonly (number | null)[];
  /** New text per delta, for the answer pane; '' for tool and token deltas. */
  readonly text: readonly string[];
}

/** Why the panel shows no report. */
export type PanelProblem =
  | { readonly kind: 'no-run' }
  | { readonly kind: 'other-version'; readonly found: string; readonly path: string }
  | { readonly kind: 'damaged'; readonly detail: string; readonly path: string };

/** Raw frames around a delta: text, time from the request's start, and the frame as it came (redacted). */
export interface FrameView {
  readonly sampleId: string;
  readonly deltaIndex: number;
  /** Null when tape and text were not kept. */
  readonly frames: readonly { readonly index: number; readonly t: Milliseconds; readonly gap: Milliseconds | null; readonly read: number; readonly raw: string; readonly text: string; readonly current: boolean; /** The delta this frame became, so that choosing the frame chooses its tick; null for frames without content. */ readonly delta?: number | null }[] | null;
}

/** Text of one answer; `pieces[i]` belongs to `sample.deltas[i]`. Null when not kept. */
export interface AnswerView {
  readonly sampleId: string;
  readonly pieces: readonly { readonly kind: DeltaKind; readonly text: string }[] | null;
}

/** Editor → webview. Post them through `packMessage`, which turns deltas into typed arrays (`packed`); nobody else reads that field. */
export type ToWebview =
  | { readonly type: 'problem'; readonly problem: PanelProblem }
  /** A run has begun; `total` requests including warm-up. The report is empty but for plan and endpoint. */
  | { readonly type: 'begin'; readonly report: Report; readonly total: number }
  | { readonly type: 'live'; readonly rows: readonly LiveRow[]; readonly done: number; readonly total: number; readonly elapsed: Milliseconds; readonly eta: Milliseconds | null; /** An experiment waits on purpose: in all, and what is left. */ readonly wait?: { readonly whole: Milliseconds; readonly left: Milliseconds } | null }
  /** New finished samples and the report so far (`samples` left empty in it); how many have finished of how many, where more than these are known of. */
  | { readonly type: 'samples'; readonly samples: readonly Sample[]; readonly report: Report; readonly done?: number; readonly total?: number; readonly packed?: PackedDeltas }
  /** The whole report: at the end of a run, or on opening one. */
  | { readonly type: 'report'; readonly report: Report; readonly live: boolean; readonly stopped: 'user' | 'breaker' | 'budget' | null; readonly canRunAgain: boolean; readonly textKept: boolean; readonly packed?: PackedDeltas }
  | { readonly type: 'compare'; readonly a: Report; readonly b: Report; readonly packed?: readonly [a: PackedDeltas, b: PackedDeltas] }
  /** A result file of another tool, under that tool's names. */
  | { readonly type: 'foreign'; readonly report: ForeignReport }
  | { readonly type: 'frame'; readonly view: FrameView }
  | { readonly type: 'answer'; readonly view: AnswerView };

/** Webview → editor. */
export type FromWebview =
  /** What the page showed before it was closed: a report, or two side by side. */
  | { readonly type: 'ready'; readonly reportId: string | null; readonly comparedWith?: string }
  | { readonly type: 'stop' }
  | { readonly type: 'runAgain' }
  | { readonly type: 'compare' }
  | { readonly type: 'export'; readonly format: 'json' | 'csv' | 'markdown' }
  | { readonly type: 'openReport' }
  | { readonly type: 'showLog' }
  | { readonly type: 'openSettings'; readonly setting: string }
  | { readonly type: 'spotCheck' }
  | { readonly type: 'wantFrame'; readonly sampleId: string; readonly deltaIndex: number }
  | { readonly type: 'wantAnswer'; readonly sampleId: string }
  | { readonly type: 'saveTape'; readonly sampleId: string }
  | { readonly type: 'copy'; readonly text: string }
  | { readonly type: 'failed'; readonly message: string };

/** What is sent in the lab, the same on both sides. Lengths in tokens. */
export interface LabLoad {
  /** `users`: each sends its next request when its last one is answered. `rate`: Poisson arrivals, whatever is still under way. */
  readonly arrivals: { readonly kind: 'users'; readonly users: number } | { readonly kind: 'rate'; readonly perSecond: number };
  readonly requests: number;
  readonly promptTokens: number;
  readonly outputTokens: number;
  /** `equal`: all answers have that length; `mixed`: every other one has an eighth of it; `spread`: log-normal around it. */
  readonly lengths: 'equal' | 'mixed' | 'spread';
  /** Every tenth prompt has so many tokens instead; 0 = none. */
  readonly longPromptTokens: number;
  /** So many tokens at a prompt's head are shared by all prompts of its group; 0 = none. */
  readonly sharedTokens: number;
  readonly groups: number;
  /** `heavy-light`: nine of ten requests come from one tenant, the rest from another. */
  readonly tenants: 'one' | 'heavy-light';
  readonly seed: number;
}

/** Editor → lab page. Post them through `packMessage`, as the other page's. A `compare` is the result: A and B under the same load. */
export type ToLab =
  | { readonly type: 'labOptions'; readonly models: readonly string[]; readonly gpus: readonly string[] }
  | { readonly type: 'labRunning' }
  /** `side` says whose settings are wrong; null = the load's. */
  | { readonly type: 'labProblem'; readonly side: 'A' | 'B' | null; readonly message: string }
  | { readonly type: 'labServes'; readonly side: 'A' | 'B'; readonly url: string }
  | Extract<ToWebview, { type: 'compare' }>;

/** Lab page → editor. Settings travel as flags of `first-token simulate`. */
export type FromLab =
  | { readonly type: 'labReady' }
  | { readonly type: 'labRun'; readonly a: readonly string[]; readonly b: readonly string[]; readonly load: LabLoad }
  | { readonly type: 'labServe'; readonly side: 'A' | 'B'; readonly flags: readonly string[] }
  | { readonly type: 'copy'; readonly text: string }
  | { readonly type: 'failed'; readonly message: string };
