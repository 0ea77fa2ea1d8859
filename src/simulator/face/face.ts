/** What every API of the simulator has in common: how a request is read, how an answer is worded, how a refusal looks. */
import type { Answer, Piece } from '../answer';
import type { AnswerMemory } from '../answerMemory';
import type { CachePoints } from '../breakpointCache';

/** A request as it came, its JSON already parsed. `match` is the path's match against the route. */
export interface RawRequest {
  readonly method: string;
  readonly url: URL;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
  readonly match: RegExpExecArray;
}

/** What a request wants, in the engine's terms. */
export interface Ask {
  readonly model: string | null;
  readonly prompt: readonly number[];
  /** Null: up to the model's natural end. */
  readonly maxTokens: number | null;
  readonly minTokens: number;
  readonly ignoreEos: boolean;
  readonly stop: readonly string[];
  readonly stream: boolean;
  readonly salt: string;
  readonly seed: number | null;
  /** The `user` field: names a tenant where neither key nor header does. */
  readonly user: string | null;
  readonly priority: number | null;
  /** False switches the server's reasoning off for this request. */
  readonly thinking: boolean;
  /** Where a server that caches by breakpoints may read and keep its prefix. */
  readonly points?: CachePoints;
  readonly form: { readonly kind: 'text' | 'json' } | { readonly kind: 'tool'; readonly name: string };
}

/** Server-side durations of one answer so far, ms. */
export interface ServerTimes {
  readonly queue: number;
  readonly prefill: number;
  readonly decode: number;
}

/** Counts and durations so far. */
export interface Tally {
  readonly promptTokens: number;
  readonly cachedTokens: number;
  readonly outputTokens: number;
  readonly reasoningTokens: number;
  readonly times: ServerTimes;
}

/** A finished answer. */
export interface End extends Tally {
  readonly finish: 'stop' | 'length' | 'tool';
  readonly text: string;
  readonly reasoning: string;
  readonly toolArguments: string;
}

/** Bytes that make one frame of the dialect, and the generated tokens in it. */
export interface WireFrame {
  readonly data: string | Uint8Array;
  readonly tokens: number;
}

/** A whole HTTP answer. */
export interface Reply {
  readonly status: number;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string | Uint8Array;
}

/** A refusal in the simulator's own terms; each face words it its own way. `retryAfter` in seconds. */
export interface Problem {
  readonly status: number;
  readonly code: string;
  readonly message: string;
  readonly field?: string | null;
  readonly retryAfter?: number | null;
}

/** Thrown while a request is read. */
export class Refused extends Error {
  readonly problem: Problem;

  constructor(problem: Problem) {
    super(problem.message);
    this.problem = problem;
  }
}

/** What a voice knows about the answer it will give. */
export interface VoiceContext {
  readonly id: string;
  readonly model: string;
  /** Seconds since 1970, for `created` fields only. */
  readonly created: number;
  readonly answer: Answer;
  readonly flavour: Flavour;
  /** What the server answered before, for a provider that says what broke its cache. */
  readonly memory: AnswerMemory;
}

/** Differences between servers that speak the same API. */
export interface Flavour {
  readonly server: string;
  /** Usage tells cached prompt tokens (vLLM: `--enable-prompt-tokens-details`). */
  readonly cachedTokens: boolean;
  /** Name of the reasoning field in OpenAI-like deltas. */
  readonly reasoningField: 'reasoning_content' | 'reasoning';
}

/** Words one answer. Streamed: `open`, `say` per emission, `close`; or `fail` anywhere. Otherwise `whole`. */
export interface Voice {
  readonly contentType: string;
  readonly headers?: Readonly<Record<string, string>>;
  /** Frames that precede the first token, sent with it. */
  open(tally: Tally): WireFrame[];
  say(pieces: readonly Piece[], tally: Tally): WireFrame[];
  close(end: End): WireFrame[];
  /** An error inside the stream, and what such a server sends after it. */
  fail(problem: Problem): WireFrame[];
  whole(end: End): unknown;
}

/** One API: the paths it answers, where it looks for a key, how it refuses. */
export interface Face {
  readonly id: string;
  readonly routes: readonly GenerateRoute[];
  key(request: RawRequest): string | null;
  refuse(problem: Problem): Reply;
}

/** A path that generates. `read` throws `Refused`. */
export interface GenerateRoute {
  readonly path: RegExp;
  read(request: RawRequest): Ask;
  /** The breakpoints of a request, for servers that cache by them; null for a model that caches whole prefixes. Throws `Refused`. */
  points?(request: RawRequest): CachePoints | null;
  voice(ask: Ask, request: RawRequest, context: VoiceContext): Voice;
}

/** An SSE event with JSON data. */
export function sse(value: unknown, tokens = 0, event: string | null = null): WireFrame {
  return { data: `${event === null ? '' : `event: ${event}\n`}data: ${JSON.stringify(value)}\n\n`, tokens };
}

/** The end mark of OpenAI-like streams. */
export const done: WireFrame = { data: 'data: [DONE]\n\n', tokens: 0 };

/** A JSON answer. */
export function jsonReply(status: number, value: unknown, headers: Readonly<Record<string, string>> = {}): Reply {
  return { status, headers: { 'content-type': 'application/json', ...headers }, body: JSON.stringify(value) };
}

/** The `Retry-After` header of a problem, if it has one (whole seconds, rounded up). */
export function retryHeaders({ retryAfter }: Problem): Record<string, string> {
  return retryAfter === null || retryAfter === undefined ? {} : { 'retry-after': String(Math.max(0, Math.ceil(retryAfter))) };
}

/** A request header as one string. */
export function header(request: RawRequest, name: string): string | null {
  const value = request.headers[name];
  return (Array.isArray(value) ? value[0] : value) ?? null;
}

/** The key of `Authorization: Bearer`. */
export function bearer(request: RawRequest): string | null {
  return /^Bearer (.+)$/i.exec(header(request, 'authorization') ?? '')?.[1] ?? null;
}
