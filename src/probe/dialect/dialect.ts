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

/** How the body is cut into frames. `gemini` answers SSE or a JSON array, so `sse-or-json-array` looks at the first byte. */
export type Framing = 'sse' | 'ndjson' | 'json-array' | 'sse-or-json-array' | 'aws-eventstream';

/** What a dialect needs to build a request. */
export interface RequestInput {
  /** The endpoint's `url` as given: an origin, …/v1 or the full path. */
  readonly url: string;
  readonly model: string | null;
  readonly prompt: ChatPrompt;
  readonly maxTokens: number | null;
  /** Optional request fields to ask for (`stream_options.include_usage`, `return_token_ids` …); the dialect's list minus what the endpoint refused. */
  readonly ask: ReadonlySet<string>;
  /** Extra body fields from the settings, merged last. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly headers: Readonly<Record<string, string>>;
  readonly key: string | null;
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

/** Token counts as the server reports them, normalised: `output` includes reasoning, `prompt` includes cached. */
export interface Usage {
  readonly prompt?: number;
  readonly output?: number;
  readonly reasoning?: number;
  readonly cached?: number;
  readonly cacheWrite?: number;
}

/** What a dialect says about a frame, in stream order, through the sink. */
export interface FrameSink {
  /** Generated content. `tokens` only where this very frame tells it. An empty text with tokens ≥ 1 is kind `token`. */
  delta(kind: DeltaKind, text: string, tokens?: number, source?: TokenSource): void;
  /** A piece of a tool call: `key` tells calls apart (index or id). Name and arguments are appended; it counts as one `tool` delta if either is non-empty. */
  tool(key: string | number, name: string, args: string, tokens?: number, source?: TokenSource): void;
  /** Exact running count of output tokens so far (continuous usage, `predicted_n`); the decoder turns it into k per delta. */
  running(outputTokens: number, source: TokenSource): void;
  /** Last one wins, field by field. */
  usage(usage: Usage): void;
  timing(timing: ServerTiming): void;
  finish(reason: string): void;
  /** The dialect's terminal marker ([DONE], message_stop, done:true …). */
  end(): void;
  /** An error frame inside the stream. */
  error(message: string): void;
  /** A frame that is not what the dialect says. */
  malformed(message: string): void;
  flag(flag: string): void;
}

/** One API family: path, body, and how to read one frame. Pure. */
export interface Dialect {
  readonly id: DialectId;
  readonly framing: Framing;
  /** Optional fields to ask for, by the name a server would complain about; dropped once and remembered when refused. `forServers`: asked only where detected. */
  readonly optional: readonly { readonly field: string; readonly forServers?: readonly string[] }[];
  request(input: RequestInput): WireRequest;
  /** A fresh reader for one stream (or for a single JSON body answering `stream: true`). */
  reader(sink: FrameSink, context: { readonly headers: readonly (readonly [string, string])[] }): FrameReader;
}

/** Reads frames of one stream, in order. */
export interface FrameReader {
  read(frame: Frame): void;
  /** A whole non-streaming JSON body of this API. */
  whole(json: unknown): void;
  /** True when the dialect has no terminal marker and a clean end of the body is the end. */
  readonly endsAtClose: boolean;
}
