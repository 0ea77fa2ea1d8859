import type { Milliseconds, OutcomeKind, TokenSource } from '../report/sample';
import { createDecoder, decode, type Decoded } from './decode';
import { dialects } from './dialect';
import type { Dialect, DialectId } from './dialect/dialect';
import { list, object, parseJson, string } from './dialect/json';
import { readSocketRecording } from './socketRecording';
import type { Tape } from './tape';
import { parseTape } from './tapeFile';

/** What `decode --json` prints; a stable interface. null = unknown. Times in ms since the request was written. */
export interface DecodedFile {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish: string | null;
  readonly outputTokens: { readonly count: number | null; readonly source: TokenSource | null };
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly outcome: { readonly kind: OutcomeKind; readonly message?: string };
  /** Deltas by kind. */
  readonly arrivals: { readonly text: number; readonly reasoning: number; readonly tool: number; readonly tokenOnly: number };
  readonly frames: number;
  readonly comments: number;
  /** Only for timed input. */
  readonly headers?: Milliseconds | null;
  readonly firstToken?: Milliseconds | null;
  readonly firstVisible?: Milliseconds | null;
  readonly last?: Milliseconds | null;
  readonly end?: Milliseconds | null;
  readonly gaps?: readonly Milliseconds[];
}

/** A file that cannot be read as what it was said to be; the message says what to change. */
export class UnreadableFile extends Error {}

/**
 * Decodes a recorded response, no network: the raw body (SSE, NDJSON, JSON array, AWS event stream), its payloads one a line or in an
 * array with the SSE framing gone, a single JSON body, a saved tape, or with `timed` a socket recording with read times.
 * `auto` tells the API by content. Rejects with UnreadableFile.
 */
export async function decodeRecording(file: Uint8Array | string, api: DialectId | 'auto', timed: boolean): Promise<DecodedFile> {
  const bytes = typeof file === 'string' ? Buffer.from(file, 'utf8') : file;
  if (timed) {
    const tape = await readSocketRecording(Buffer.from(bytes).toString('utf8'));
    if (tape === null) throw new UnreadableFile('This is no socket recording (one JSON object a line with `t` and `b`, `x` or `event`). Leave --timed out for a recorded body.');
    return timedAnswer(tape, decode(tape, dialectFor(api, tape.bytes)));
  }
  const start = Buffer.from(bytes.subarray(0, 400)).toString('latin1').trimStart();
  if (/^\{\s*"schema"\s*:\s*"first-token\/tape@/.test(start)) return savedAnswer(Buffer.from(bytes).toString('utf8'), api);
  if (/^\{\s*"t"\s*:/.test(start)) {
    const tape = await readSocketRecording(Buffer.from(bytes).toString('utf8'));
    if (tape !== null) return answer(decode(tape, dialectFor(api, tape.bytes)));
  }
  const dialect = dialectFor(api, bytes);
  const decoder = createDecoder(dialect, { status: null, headers: [] });
  decoder.push(0, asSent(bytes, dialect));
  decoder.end(0, 'clean');
  return answer(decoder.result());
}

function savedAnswer(text: string, api: DialectId | 'auto'): DecodedFile {
  const saved = parseTape(text);
  if (typeof saved === 'string') throw new UnreadableFile(saved);
  return timedAnswer(saved.tape, decode(saved.tape, dialects[api === 'auto' ? saved.api : api]));
}

/** The answer of a tape, with its times. */
export function timedAnswer(tape: Tape, decoded: Decoded): DecodedFile {
  const { start, headers } = tape.phases;
  const stamps = decoded.arrivals.map((arrival) => arrival.t);
  const since = (stamp: Milliseconds | null | undefined): Milliseconds | null => (stamp === null || stamp === undefined ? null : micro(stamp - start));
  return {
    ...answer(decoded),
    headers: since(headers),
    firstToken: since(stamps[0]),
    firstVisible: since(decoded.arrivals.find((arrival) => arrival.kind === 'text')?.t),
    last: since(stamps.at(-1)),
    end: since(decoded.end),
    gaps: stamps.slice(1).map((stamp, at) => micro(stamp - stamps[at]!)),
  };
}

/** Differences of stamps without the noise of floating point; recordings are no finer than a microsecond. */
function micro(ms: Milliseconds): Milliseconds {
  return Math.round(ms * 1000) / 1000;
}

function answer(decoded: Decoded): DecodedFile {
  const { text, reasoning, toolCalls, finish, outputTokens, promptTokens, cachedTokens, frames, comments } = decoded;
  const { kind, message } = decoded.outcome;
  const of = (kind: string): number => decoded.arrivals.filter((arrival) => arrival.kind === kind).length;
  return {
    text, reasoning, toolCalls, finish, outputTokens, promptTokens, cachedTokens,
    outcome: { kind, ...(message === undefined ? {} : { message }) },
    arrivals: { text: of('text'), reasoning: of('reasoning'), tool: of('tool'), tokenOnly: of('token') },
    frames, comments,
  };
}

/**
 * The bytes as the server sent them. Payloads whose SSE framing was stripped (JSON objects one a line, or in an array, for an API
 * that speaks SSE) get it back: `data:` and a blank line, `event:` where the API has it, `[DONE]` where the API ends with it.
 */
export function asSent(bytes: Uint8Array, dialect: Dialect): Uint8Array {
  if (dialect.framing !== 'sse' && dialect.framing !== 'sse-or-json-array') return bytes;
  const payloads = strippedPayloads(Buffer.from(bytes).toString('utf8'), dialect);
  if (payloads === null) return bytes;
  const named = dialect.id === 'anthropic' || dialect.id === 'cohere' || dialect.id === 'openai-responses';
  const done = dialect.id === 'openai-chat' || dialect.id === 'openai-completions' || dialect.id === 'azure';
  const frames = payloads.map((payload) => {
    const type = named ? string(object(payload)?.['type']) : '';
    return `${type === '' ? '' : `event: ${type}\n`}data: ${JSON.stringify(payload)}\n\n`;
  });
  return Buffer.from(frames.join('') + (done ? 'data: [DONE]\n\n' : ''), 'utf8');
}

function strippedPayloads(text: string, dialect: Dialect): readonly unknown[] | null {
  const trimmed = text.trim();
  // Gemini's own array is a framing, not a stripped one.
  if (trimmed.startsWith('[')) return dialect.framing === 'sse-or-json-array' ? null : listOrNull(parseJson(trimmed));
  if (!trimmed.startsWith('{')) return null;
  const lines = trimmed.split('\n').filter((line) => line.trim() !== '');
  if (lines.length < 2) return null;
  const payloads: unknown[] = [];
  for (const line of lines) {
    const json = parseJson(line);
    if (json === undefined) return null;
    payloads.push(json);
  }
  return payloads;
}

function listOrNull(json: unknown): readonly unknown[] | null {
  return Array.isArray(json) ? list(json) : null;
}

/** What only one API says, most telling first. */
const marks: readonly (readonly [RegExp, DialectId])[] = [
  [/"(?:type|event_type)"\s*:\s*"response\.|^event:\s*response\./m, 'openai-responses'],
  [/"type"\s*:\s*"(?:message_start|content_block_delta|content_block_start|message_delta)"/, 'anthropic'],
  [/"type"\s*:\s*"(?:message-start|content-delta|tool-plan-delta|message-end)"/, 'cohere'],
  [/"(?:candidates|usageMetadata|promptFeedback)"\s*:/, 'gemini'],
  [/"(?:messageStart|contentBlockDelta|messageStop)"\s*:/, 'bedrock'],
  [/"object"\s*:\s*"text_completion"/, 'openai-completions'],
  [/"choices"\s*:/, 'openai-chat'],
  [/"text_output"\s*:/, 'triton'],
  [/"meta_info"\s*:/, 'sglang'],
  [/"token"\s*:\s*\{\s*"id"/, 'tgi'],
  [/"done"\s*:\s*(?:true|false)/, 'ollama'],
  [/"(?:stop|tokens_predicted)"\s*:/, 'llamacpp'],
];

/** The dialect asked for, or for `auto` the one whose marks are in the body; OpenAI chat where nothing tells. */
function dialectFor(api: DialectId | 'auto', bytes: Uint8Array): Dialect {
  if (api !== 'auto') return dialects[api];
  if (bytes[0] === 0) return dialects.bedrock;
  const text = Buffer.from(bytes.subarray(0, 256 * 1024)).toString('utf8');
  return dialects[marks.find(([pattern]) => pattern.test(text))?.[1] ?? 'openai-chat'];
}
