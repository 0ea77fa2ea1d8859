/** The types of a prompt: as sent (`ChatPrompt`) and as written in a file with exact offsets (`PromptFile`, `Prompt`). */

/** Who speaks. */
export type Role = 'system' | 'developer' | 'user' | 'assistant' | 'tool';

/** The API a request body is written for. */
export type RequestApi = 'chat' | 'responses' | 'anthropic' | 'gemini' | 'bedrock';

/** A cache breakpoint at the end of a content block, under the name that the file gives it. */
export interface CacheMark {
  readonly key: 'cache_control' | 'prompt_cache_breakpoint' | 'cachePoint';
  /** As written (`5m`, `1h`), or null for the default. */
  readonly ttl: string | null;
}

/** A content block of a message. */
export interface ChatPart {
  /** What it says; a stand-in in words where it is no text (`[image]`). */
  readonly text: string;
  readonly mark?: CacheMark;
  /** The block as the file writes it, without its marker: sent as it stands to the API it was written for. Absent: plain text. */
  readonly block?: Readonly<Record<string, unknown>>;
}

/** One message. */
export interface ChatMessage {
  readonly role: Role;
  readonly text: string;
  /** Its content blocks, whose texts joined are `text`; absent: one text without a marker. */
  readonly parts?: readonly ChatPart[];
  /** Its other fields as the file writes them (tool calls, a name, an item that has no content): sent to the API they were written for. */
  readonly fields?: Readonly<Record<string, unknown>>;
  /** True for the Responses API's `instructions`, which are no item of the input. */
  readonly instructions?: boolean;
}

/** A prompt ready to be sent. What `probe/` takes. */
export interface ChatPrompt {
  readonly messages: readonly ChatMessage[];
  /** Tool definitions: in the form of `own.api` where that is given, else in the OpenAI function form; or none. */
  readonly tools: readonly unknown[];
  /** One marker for the whole request (Anthropic's top-level `cache_control`), which asks for a breakpoint on the last block. */
  readonly mark?: CacheMark;
  /** For a request that the file holds itself: its API, its model, and those of its other fields that decide what a cache may reuse. */
  readonly own?: { readonly api: RequestApi; readonly model?: string; readonly fields: Readonly<Record<string, unknown>> };
}

/** How a place of the file changes between requests, from never to always; `unknown` stands beside the order. */
export type Volatility = 'constant' | 'deploy' | 'session' | 'day' | 'minute' | 'request' | 'unknown';

/** Who should share the cached prefix: the turns of one conversation, everything of one user, or all users of the application. */
export type Scope = 'conversation' | 'user' | 'everyone';

/** The file formats that are told apart. */
export type FormatId =
  | 'prompty'
  | 'dotprompt'
  | 'handlebars'
  | 'mustache'
  | 'jinja'
  | 'chat-template'
  | 'nunjucks'
  | 'liquid'
  | 'github-models'
  | 'promptfoo'
  | 'semantic-kernel'
  | 'langchain'
  | 'poml'
  | 'baml'
  | 'request-json'
  | 'request-jsonl'
  | 'markdown'
  | 'claude-markdown'
  | 'python'
  | 'javascript'
  | 'text';

/** A region of the source: UTF-16 offsets, end exclusive. */
export interface Place {
  readonly start: number;
  readonly end: number;
}

/** Text that is sent as it stands. `text` is what is sent (unescaped, indentation removed), `start`/`end` where it is written. */
export interface LiteralSpan extends Place {
  readonly kind: 'literal';
  readonly text: string;
  /**
   * Where `text` and source differ in length (escapes, YAML indentation, trimmed white space): pairs
   * `[index in text, source offset]`, ascending; between two pairs both advance alike. Absent: index i is at `start + i`.
   */
  readonly map?: readonly (readonly [number, number])[];
}

/** A value read by an expression: a variable, a property of one, or a call. */
export interface Reference {
  /** Dotted path as written, without sigils: `customer.firstName`, `time.now`, `datetime.now`. */
  readonly path: string;
  /** What a person would call it, where that is not the path (the command line that is run). */
  readonly label?: string;
  /** True when the grammar certainly calls a function here. */
  readonly call: boolean;
  /** Constant string arguments of the call, in order (format strings). */
  readonly strings: readonly string[];
  /** For a call: whether anything stands between its parentheses. */
  readonly given?: boolean;
  /** Set when only its being there is asked (`x is defined`) or its truth (`if x`), not its value. */
  readonly tested?: 'defined' | 'truth';
}

/** Something the host replaces by a value. */
export interface ExpressionSpan extends Place {
  readonly kind: 'expression';
  /** The source, delimiters included. */
  readonly source: string;
  /** The variable's path when the expression is one plain variable, else the text inside the delimiters. */
  readonly name: string;
  /** Every variable and call that the value depends on. */
  readonly references: readonly Reference[];
  /** Names of the filters or pipes applied, in order. */
  readonly filters: readonly string[];
  /** A date format given to the expression (`strftime('%Y')`, `| date: "%B"`), or null. */
  readonly clockFormat: string | null;
  /** The text it always renders to, when the grammar alone tells; else null. */
  readonly constant: string | null;
  /** Literal text that it sends around its values (`'Date: ' + date`), in order. */
  readonly literals: readonly string[];
  /** The name of the macro of this file that it calls, with the references of each argument, or null. */
  readonly macro: { readonly name: string; readonly arguments: readonly (readonly Reference[])[] } | null;
  /** False when it computes or checks but sends nothing (`raise_exception`). */
  readonly output: boolean;
}

/** One branch of a control block. */
export interface Branch {
  /** Where the opening tag of this branch stands (`{% elif x %}`, `{{else}}`). */
  readonly tag: Place;
  readonly references: readonly Reference[];
  readonly spans: readonly Span[];
}

/** A block that repeats, chooses, defines or assigns. */
export interface ControlSpan extends Place {
  readonly kind: 'control';
  readonly control: 'loop' | 'condition' | 'set' | 'macro' | 'block' | 'with';
  /** The opening tag. */
  readonly tag: Place;
  /** The opening tag's source. */
  readonly source: string;
  /** Names bound inside: loop variables, macro parameters, the variable that is set. */
  readonly binds: readonly string[];
  /** The macro's or block's name, or null. */
  readonly name: string | null;
  /** What a loop iterates, a condition tests in its first branch, a set reads. */
  readonly references: readonly Reference[];
  /** The constant a `set` assigns, or null. */
  readonly constant: string | null;
  /** Bodies: one for a loop, set block or macro; one for each case of a condition. An absent `else` is not listed. */
  readonly branches: readonly Branch[];
  /** True when a condition has an `else`, so one branch is always sent. */
  readonly exhaustive: boolean;
  /** True for a block of this file that stands inside an included parent: its offsets count in this file again. */
  readonly local?: boolean;
}

/** Text of another file put in here. */
export interface IncludeSpan extends Place {
  readonly kind: 'include';
  readonly source: string;
  /** The path as written when it is a constant, else null. */
  readonly target: string | null;
  /** What the path or the include's arguments depend on. */
  readonly references: readonly Reference[];
  /** The path that was read, or null when it could not be read or was cut off as a cycle. */
  readonly path: string | null;
  /** The spans of that file; their offsets count in that file. Null when not read. */
  readonly spans: readonly Span[] | null;
}

/** A mark that begins a message (`{{role "system"}}`, `system:`); not sent as text. */
export interface RoleMarkSpan extends Place {
  readonly kind: 'role-mark';
  readonly role: Role;
}

/** A cache breakpoint written by the author (`cache_control`, `prompt_cache_breakpoint`, `cachePoint`). It ends the part it stands in. */
export interface CacheMarkSpan extends Place {
  readonly kind: 'cache-mark';
  /** Time to live as written, or null for the default. */
  readonly ttl: string | null;
}

/** Not sent: a comment of the format, front matter, settings. */
export interface CommentSpan extends Place {
  readonly kind: 'comment';
  readonly text: string;
}

/** Text protected from expansion (`{% raw %}`, `{{{{raw}}}}`): sent as it stands. */
export interface RawSpan extends Place {
  readonly kind: 'raw';
  readonly text: string;
  readonly map?: readonly (readonly [number, number])[];
}

/** An image, sound or file inside a message. */
export interface MediaSpan extends Place {
  readonly kind: 'media';
  readonly media: 'image' | 'audio' | 'video' | 'file';
  /** What its address depends on; empty for literal data. */
  readonly references: readonly Reference[];
}

/** Everything a part is made of, in source order. */
export type Span = LiteralSpan | ExpressionSpan | ControlSpan | IncludeSpan | RoleMarkSpan | CacheMarkSpan | CommentSpan | RawSpan | MediaSpan;

/** Where a part goes in the rendered request. */
export type Slot = 'tools' | 'system' | 'messages';

/** A piece of a prompt that is sent as one block: a tool list, a message, or a content block of a message. */
export interface Part extends Place {
  readonly slot: Slot;
  readonly role: Role;
  /** Number of the message from 0; null for tools. Parts of one message follow each other. */
  readonly message: number | null;
  /** Number of the content block inside its message from 0. */
  readonly block: number;
  readonly spans: readonly Span[];
  /** Names of the tools in order, for a tools part; else empty. */
  readonly toolNames: readonly string[];
}

/** What the file says about a variable of its own. */
export interface Variable {
  readonly name: string;
  /** A default the file gives (weak: it may be constant), JSON-safe; undefined when none. */
  readonly default?: unknown;
  /** A value for trying out (testData, sample, vars), JSON-safe; undefined when none. */
  readonly sample?: unknown;
  /** True when the file fixes the value for good (`partial_variables`, a constant `set`). */
  readonly fixed: boolean;
  /** True when every test of the configuration gives it the same value. */
  readonly shared?: boolean;
  /** True when the value inserts whole messages (history, thread). */
  readonly messages: boolean;
}

/** Something that could not be read, at its place. */
export interface Problem extends Place {
  readonly message: string;
}

/** One prompt of a file: what one request sends, in render order (tools, system, messages). */
export interface Prompt extends Place {
  /** The name the file gives it (function, request id, index), or null. */
  readonly name: string | null;
  /** The model the file names, or null. */
  readonly model: string | null;
  readonly parts: readonly Part[];
  readonly variables: readonly Variable[];
  /** Macros by name: bodies in this file or imported ones. */
  readonly macros: Readonly<Record<string, ControlSpan>>;
  /** Input sets for a rendering: each maps variable names to values. */
  readonly samples: readonly Readonly<Record<string, unknown>>[];
  /** True when a loop over `messages` is the conversation itself (chat templates): append-only, not a loss. */
  readonly chatTemplate: boolean;
}

/** A line in a comment that changes what is reported: `first-token: off`, `first-token: ignore CODE`, `first-token: NAME=constant`. */
export type Pragma = Place &
  (
    | { readonly pragma: 'off' }
    | { readonly pragma: 'ignore'; readonly code: string }
    | {
        readonly pragma: 'ignore-line';
        /** The line it stands on; it holds for this one and the ones up to `last`. */
        readonly line: number;
        /** The next line, or the last of the string or block that begins there where no comment can stand inside of it. */
        readonly last: number;
        readonly code: string | null;
      }
    | { readonly pragma: 'variable'; readonly name: string; readonly volatility: Volatility }
  );

/** A prompt file as parsed. */
export interface PromptFile {
  readonly path: string;
  readonly format: FormatId;
  /** The template language inside, when the format leaves the choice (`jinja`, `mustache`, `f-string` …), or null. */
  readonly language: string | null;
  /** In words, who expands the file. */
  readonly host: string;
  /** False when nobody expands the file: every character is literal. */
  readonly substituted: boolean;
  /** True when only the folder and the look of the text tell that somebody expands it: then nothing is a warning. */
  readonly guessed?: boolean;
  readonly text: string;
  readonly prompts: readonly Prompt[];
  readonly problems: readonly Problem[];
  readonly pragmas: readonly Pragma[];
  /** Other files that were read, and those that were looked for (to re-analyse when one changes). */
  readonly dependencies: readonly string[];
}

/** What kind of evidence decided a class, strongest first in the order of the type. */
export type Evidence =
  | 'pragma'
  | 'setting'
  | 'literal'
  | 'fixed'
  | 'role'
  | 'call'
  | 'name'
  | 'include'
  | 'default'
  | 'rendered'
  | 'none';

/** A class with the reason for it. */
export interface Judgement {
  readonly volatility: Volatility;
  readonly evidence: Evidence;
  /** `certain`: grammar or a call alone; `strong`: a name that means nothing else; `weak`: a name of the usual vocabulary that often is fixed; `none`: nothing known. */
  readonly strength: 'certain' | 'strong' | 'weak' | 'none';
  /** The variable or call that decided, as written. */
  readonly name: string;
  /** One plain sentence for the hover. */
  readonly reason: string;
}

/** The condition branch a piece stands in: `control` is the offset of the condition's opening tag, `branch` its case from 0. */
export interface BranchStep {
  readonly control: number;
  readonly branch: number;
  /** Class of the condition. */
  readonly volatility: Volatility;
}

/**
 * The prompt as one request would send it, unrolled: macros at their calls, includes in place, loop bodies once, both branches
 * of a condition one after the other (told apart by `branches`). What `prefix.ts` counts.
 */
export interface Piece extends Place {
  /** Index into `Prompt.parts`. */
  readonly part: number;
  /**
   * `static`: text as sent; `value`: an expression or unread include; `point`: a condition, loop or set tag that decides what follows
   * and sends nothing; `media`; `mark`: a cache breakpoint.
   */
  readonly kind: 'static' | 'value' | 'point' | 'media' | 'mark';
  /** Static text; empty for the other kinds. */
  readonly text: string;
  /** For a static piece whose text is not a plain slice of the file (`[index, offset]` as in `LiteralSpan.map`); `foreign` pieces stand in another file or a macro and have none. */
  readonly map?: readonly (readonly [number, number])[];
  readonly judgement: Judgement;
  /** Enclosing condition branches, outermost first. */
  readonly branches: readonly BranchStep[];
  /** Class of the enclosing loops together, `constant` outside any. */
  readonly loop: Volatility;
  /** True when start and end are the place of the call or include here, and the text stands elsewhere. */
  readonly foreign: boolean;
  /** True for the conversation itself (messages of a chat template, a history at its place): append-only. */
  readonly history: boolean;
  /** The span it comes from; for marks, values and points what quick fixes need. */
  readonly span: Span;
  /** True for a point that opens a condition (a variant point) rather than a loop. */
  readonly variant: boolean;
}
