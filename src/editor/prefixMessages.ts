/** Messages between the extension host and the analysis thread. Types only; everything is plain data. */
import type { EndpointCounts } from '../probe/index';
import type { CountedEnds } from '../prompt/requestDiff';
import type { SentRequest } from '../prompt/sentRequests';
import type { ChatPrompt, Finding, FormatId, InputPrice, RuleTarget, Scope, Severity, TokenCountSource } from '../prompt/index';
import type { EditOutcome } from './prefixEditCost';

/** What a file is judged by. */
export interface JudgeBy {
  /** What is known about the selected endpoint; a rule picked by hand stands in `cache`. */
  readonly target: RuleTarget;
  /** `firstToken.prefix.rules`. */
  readonly overrides: unknown;
  readonly scope: Scope;
  readonly variables: Readonly<Record<string, string>>;
  readonly minLostTokens: number;
  /** ISO date. */
  readonly today: string;
  readonly cost: { /** Prompt tokens per second as last measured on the endpoint. */ readonly prefillRate: number | null; readonly price: InputPrice | null };
  /** Absolute path of a `tokenizer.json`, or null for the built-in estimate. */
  readonly tokenizer: string | null;
  /** Who counts in the end: `auto` = a server of one's own that can, `endpoint` = any that can, `local` = nobody but this machine. */
  readonly tokens: 'auto' | 'endpoint' | 'local';
  /** Absolute path of the server's `chat_template.jinja`, or null. */
  readonly chatTemplate: string | null;
}

/** A text as it stands in an editor. `root`: included files are read below it only; null = nothing is read. */
export interface SourceText {
  readonly uri: string;
  readonly path: string;
  readonly root: string | null;
  readonly text: string;
}

/** A stretch of the file, UTF-16 units, end exclusive. */
export interface Stretch {
  readonly start: number;
  readonly end: number;
}

/** What the lens at the top says about one prompt of a file. */
export interface PromptView extends Stretch {
  readonly index: number;
  readonly name: string | null;
  readonly sentence: string;
  /** Nothing in it is ever replaced. */
  readonly allStatic: boolean;
  /** Worth proving and judging by another rule: something changes in it, or it is sent to the selected endpoint as it is. */
  readonly provable: boolean;
  readonly total: number;
  readonly reusable: number;
  /** The first changing place, and its line from 1. */
  readonly ends: (Stretch & { readonly line: number }) | null;
  /** Lines of Markdown for the hover of the lens. */
  readonly details: readonly string[];
}

/** A lens at a place that breaks the prefix. */
export interface PlaceLens {
  readonly at: number;
  readonly title: string;
}

/** What is said when the pointer rests on a changing place: lines of Markdown. */
export interface PlaceHover extends Stretch {
  readonly lines: readonly string[];
}

/** The rule in force, in words. */
export interface RuleView {
  readonly id: string;
  readonly name: string;
  readonly asOf: string;
  readonly source: readonly string[];
  readonly notes: string;
  /** Why this one: `picked by you`, `the server of the endpoint` … */
  readonly why: string;
}

/** Everything shown about one version of one file. */
export interface FileView {
  /** Null when it is no prompt file by its content. */
  readonly format: FormatId | null;
  readonly host: string;
  /** The file says `first-token: off`. */
  readonly off: boolean;
  readonly rule: RuleView;
  readonly source: TokenCountSource;
  /** False when tokens are estimated. */
  readonly exact: boolean;
  readonly prompts: readonly PromptView[];
  readonly lenses: readonly PlaceLens[];
  readonly hovers: readonly PlaceHover[];
  readonly findings: readonly Finding[];
  /** Files whose text is in here too, and those looked for. */
  readonly dependencies: readonly string[];
  /** Problems with the user's cache rules, in words. */
  readonly problems: readonly string[];
}

/** A quick fix for one place. */
export interface FixView {
  readonly kind: string;
  readonly title: string;
  readonly preview: string;
  readonly code: string | null;
  readonly edits: readonly (Stretch & { readonly text: string })[] | null;
  readonly setting: { readonly name: string; readonly value: string } | null;
}

/** One prompt file of a folder. */
export interface ScannedFile {
  readonly path: string;
  readonly format: FormatId;
  /** Of all its prompts together. */
  readonly tokens: number;
  readonly reusable: number;
  readonly warnings: number;
  readonly severity: Severity | null;
  readonly allStatic: boolean;
  /** Tokens are estimated. */
  readonly about: boolean;
  /** The lenses of its first prompts, each under its name where there are several. */
  readonly sentences: readonly string[];
}

/** A prompt that can be rendered: what Compare Renders offers. */
export interface Renderable {
  readonly index: number;
  readonly name: string | null;
  /** Input sets the file brings along, in words. */
  readonly samples: readonly string[];
  readonly variables: readonly { readonly name: string; readonly value: string | null }[];
  /** The quickest clock in it, a call or a variable: what two times make differ. */
  readonly clock: 'day' | 'minute' | null;
}

/** One side of a render: an input set of the file (by index), values over it, and a clock in epoch ms. */
export interface RenderSide {
  readonly sample: number;
  readonly values: Readonly<Record<string, unknown>>;
  readonly clock: number;
  readonly nonce: string;
}

/** Two texts side by side with their first difference. `line` and `column` from 1. */
export interface SideBySide {
  readonly first: string;
  readonly second: string;
  readonly difference: { readonly line: number; readonly column: number; readonly byte: number; readonly sameTokens: number } | null;
  readonly tokens: number;
  /** Sentences about it. */
  readonly words: readonly string[];
}

/** The two requests of a proof, and what differs between them. */
export interface ProofPrompts {
  readonly first: ChatPrompt;
  readonly second: ChatPrompt;
  /** What was changed for the second request, in words. */
  readonly change: string;
  /** True when both are requests as the file holds them. */
  readonly captured: boolean;
  readonly unrendered: readonly string[];
  readonly rule: RuleView;
  /** Tokens of a cache block under the rule. */
  readonly block: number;
  /** How to make the server tell what it cached, or null. */
  readonly tell: string | null;
  /** The rule asks only how many leading tokens are equal. */
  readonly byTokens: boolean;
}

/** Extension host → thread. Each is answered once, under its `id`. */
export type PrefixQuestion =
  /** `counted`: what the endpoint said of the texts; used when it knows them all. */
  | { readonly type: 'analyse'; readonly source: SourceText; readonly version: number; readonly judge: JudgeBy; readonly counted?: EndpointCounts | null }
  /** What the endpoint has to count for this file beyond `known`. */
  | { readonly type: 'texts'; readonly source: SourceText; readonly judge: JudgeBy; readonly known: EndpointCounts['tokens'] }
  /** Fixes at a stretch of a version that was analysed. */
  | { readonly type: 'fixes'; readonly uri: string; readonly version: number; readonly start: number; readonly end: number }
  | { readonly type: 'rules'; readonly judge: JudgeBy }
  | { readonly type: 'renderable'; readonly source: SourceText; readonly judge: JudgeBy }
  | { readonly type: 'renders'; readonly source: SourceText; readonly index: number; readonly a: RenderSide; readonly b: RenderSide; readonly judge: JudgeBy }
  | { readonly type: 'requests'; readonly text: string }
  | { readonly type: 'compareRequests'; readonly a: { readonly text: string; readonly index: number }; readonly b: { readonly text: string; readonly index: number }; readonly judge: JudgeBy }
  | { readonly type: 'editCost'; readonly before: SourceText; readonly after: SourceText; readonly judge: JudgeBy }
  | { readonly type: 'proof'; readonly source: SourceText; readonly judge: JudgeBy; readonly clock: number }
  /** What the rule predicts for counted tokens, or for two request bodies. */
  | { readonly type: 'predict'; readonly judge: JudgeBy; readonly of: { readonly total: number; readonly common: number } | { readonly first: Readonly<Record<string, unknown>>; readonly second: Readonly<Record<string, unknown>>; /** Where their blocks end in the provider's own tokens, as far as it counted them. */ readonly ends?: readonly [CountedEnds, CountedEnds] } }
  | { readonly type: 'scan'; readonly roots: readonly string[]; readonly globs: readonly string[]; readonly most: number; readonly judge: JudgeBy };

/** The answer to each question. */
export interface PrefixAnswers {
  analyse: FileView;
  /** Null when the endpoint is not asked: it cannot count, is not to be asked, or the file asks too much. */
  texts: { readonly texts: readonly string[]; readonly requests: readonly SentRequest[]; readonly hosted: boolean } | null;
  /** Null when another version was analysed since. */
  fixes: readonly FixView[] | null;
  rules: { readonly rules: readonly RuleView[]; readonly chosen: RuleView };
  renderable: readonly Renderable[];
  renders: SideBySide;
  requests: readonly { readonly name: string; readonly model: string | null; readonly line: number }[];
  compareRequests: SideBySide;
  editCost: EditOutcome & { /** The outcome as a sentence. */ readonly words: string };
  proof: ProofPrompts;
  predict: { readonly tokens: number; readonly why: string; readonly total: number; readonly common: number };
  /** Files found, and whether it was cut short at `most` or by a cancellation. */
  scan: { readonly found: number; readonly complete: boolean };
}

/** Extension host → thread. */
export type ToThread = { readonly type: 'ask'; readonly id: number; readonly question: PrefixQuestion } | { readonly type: 'cancel'; readonly id: number };

/** Thread → extension host. */
export type FromThread =
  | { readonly type: 'answer'; readonly id: number; readonly answer: PrefixAnswers[keyof PrefixAnswers] }
  | { readonly type: 'failed'; readonly id: number; readonly message: string }
  /** Files of a scan, as they are found. */
  | { readonly type: 'scanned'; readonly id: number; readonly files: readonly ScannedFile[] };
