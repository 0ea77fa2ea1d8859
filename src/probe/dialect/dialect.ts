import type { DeltaKind, ServerTiming, TokenSource } from '../../report/sample';
import type { ChatPrompt } from '../../prompt/prompt';

/** Ids are part of the stable interface (settings, `--api`, reports). */
export type DialectId =
  | 'openai-chat'
  | 'openai-completions'
  | 'openai-responses'
  | 'azure'
  | 'anthropic'
  | 'gemini'
  | 'ollama'
  | 'llamacpp'
  | 'tgi'
  | 'sglang'
  | 'triton'
  | 'cohere'
  | 'bedrock';

/** APIs that encode instead of generate: no stream, no probe; the encoder scenario speaks them. */
export type EncoderApi = 'embeddings' | 'pooling' | 'rerank' | 'classify';

/** How the body is cut into frames. `gemini` answers SSE or a JSON array, so `sse-or-json-array` looks at the first byte. */
export type Framing = 'sse' | 'ndjson' | 'json-array' | 'sse-or-json-array' | 'aws-eventstream';

/** HTTP headers in wire order. */
export type HeaderList = readonly (readonly [name: string, value: string])[];

/** What a dialect needs to build a request. */
export interface RequestInput {
  /** The endpoint's `url` as given: an origin, …/v1 or the full path. */
  readonly url: string;
  readonly model: string | null;
  readonly prompt: ChatPrompt;
  readonly maxTokens: number | null;
  /** Optional request fields to ask for (`stream_options.include_usage`, `return_token_ids` …): `askFor` in `index.ts` computes it. */
  readonly ask: ReadonlySet<string>;
  /** Extra body fields from the settings, merged last. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string | null;
  /** The answer that the provider shall compare this request with; null = none yet, only remember this one; absent = not asked. */
  readonly compareWith?: string | null;
}

/** What a provider itself says broke its cache, compared with an earlier request. */
export interface CacheDiagnosis {
  /** `same`: it found no difference; `not-found`: it no longer knows the earlier request; `unknown`: it compared nothing, or not in time. */
  readonly state: 'same' | 'changed' | 'not-found' | 'unknown';
  /** In the provider's own word (`system_changed`, `input_changed` …), or null. */
  readonly reason: string | null;
  /** Prompt tokens behind the first difference, as the provider estimates them; null = not told. */
  readonly missedTokens: number | null;
}

/** One HTTP request, complete but for the connection. `headers` may hold the key: never log it. */
export interface WireRequest {
  readonly method: 'POST' | 'GET';
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: string;
}

/** One SSE event, NDJSON line, array element or binary event, before its JSON is read. */
export interface Frame {
  readonly data: string;
  /** SSE `event:` or the event-stream's `:event-type`; '' when absent. */
  readonly event: string;
  /** Binary event streams: `:message-type`. */
  readonly messageType?: string;
}

/** Token counts as the server reports them, normalised: `output` includes reasoning, `prompt` includes cached. Absent = not told. */
export interface Usage {
  readonly prompt?: number | undefined;
  readonly output?: number | undefined;
  readonly reasoning?: number | undefined;
  readonly cached?: number | undefined;
  readonly cacheWrite?: number | undefined;
}

/** Token sources that count the tokens of one frame. */
export type FrameTokenSource = Exclude<TokenSource, 'final-usage' | 'endpoint-tokenizer' | 'local-tokenizer' | 'deltas'>;

/**
 * Whether a running count that grew in a frame without content makes that frame a token of its own:
 * `yes` for a generation frame, `if-continuous` for a frame that ends the answer (only when earlier frames counted too),
 * `no` for a frame that reports usage only.
 */
export type GrowthIsToken = 'yes' | 'if-continuous' | 'no';

/** What a dialect says about a frame, in stream order, through the sink. */
export interface FrameSink {
  /** Generated content; an empty text says nothing. `choice` above 0 is counted as an arrival but is no part of the answer. */
  delta(kind: Exclude<DeltaKind, 'tool' | 'token'>, text: string, choice?: number): void;
  /** A piece of a tool call: `key` tells calls apart (index or id). Name and arguments are appended; it is a delta if either is non-empty. */
  tool(key: string | number, name: string, args: string): void;
  /** Names a tool call, or gives its whole arguments, in a structure frame that is no delta. */
  toolFrame(key: string | number, name: string, args: string): void;
  /** Tokens generated in this very frame, told by `source`. A frame without content and tokens ≥ 1 becomes a `token` delta. */
  tokens(count: number, source: FrameTokenSource): void;
  /** Exact running count of output tokens so far (continuous usage, `predicted_n`), and how many of them were reasoning; becomes tokens per delta. */
  running(outputTokens: number, source: 'usage-difference' | 'server-count', growth: GrowthIsToken, reasoningTokens?: number): void;
  /** Last one wins, field by field. `from: 'server-count'` is used only where no usage object tells the field. */
  usage(usage: Usage, from?: 'server-count'): void;
  timing(timing: ServerTiming): void;
  finish(reason: string): void;
  /** The provider's id of this answer. */
  answerId(id: string): void;
  /** What the provider says of its cache; the last one counts. */
  diagnosis(diagnosis: CacheDiagnosis): void;
  /** The dialect's terminal marker (message_stop, done:true …); `[DONE]` is seen by the decoder itself. */
  terminal(): void;
  /** This frame is a whole answer, not a piece of a stream; call it before the deltas. */
  whole(): void;
  /** An error frame inside the stream. */
  error(message: string): void;
  /** A frame that is not what the dialect says. */
  malformed(message: string): void;
  flag(flag: string): void;
}

/** An optional request field: asked for, dropped once and remembered when refused. */
export interface OptionalField {
  /** Dotted path in the body, as `ask` holds it. */
  readonly field: string;
  /** Asked only where one of these servers was detected (`vllm`, `sglang`, `llama.cpp` …); absent = everywhere. */
  readonly forServers?: readonly string[];
  /** Asked only when every answer must have the same length, or when the provider shall say what broke its cache. */
  readonly when?: 'fixed-length' | 'diagnosing';
}

/** One API family: path, body, and how to read one frame. Pure. */
export interface Dialect {
  readonly id: DialectId | EncoderApi;
  readonly framing: Framing;
  readonly optional: readonly OptionalField[];
  request(input: RequestInput): WireRequest;
  /** A fresh reader for one stream (or for a single JSON body answering `stream: true`). */
  reader(sink: FrameSink, context: { readonly headers: HeaderList }): FrameReader;
}

/** Reads frames of one stream, in order. */
export interface FrameReader {
  /** Reads one frame; false when this API sends no such frame. Errors in the shapes of `serverError.ts` were already reported by the decoder. */
  read(frame: Frame, json: unknown): boolean;
  /** A whole non-streaming JSON body of this API; false when it is none. */
  whole(json: unknown): boolean;
  /** True when a clean end of the body here and now is a proper end, without a terminal marker (a finish reason was seen, or the API has no marker). */
  readonly endsAtClose: boolean;
}
