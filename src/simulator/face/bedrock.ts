/** Bedrock's Converse and ConverseStream: binary event-stream frames with checksums. */
import { crc32 } from 'node:zlib';
import type { Piece } from '../answer';
import type { CachePoints } from '../breakpointCache';
import { contentParts, fieldsOf, objectList, optionalCount, optionalFields, stopStrings, type Fields } from './bodyFields';
import { ephemeral, markerPoints, render, writtenTokens, type CacheBlock } from './cacheBlocks';
import { bearer, jsonReply, type Ask, type End, type Face, type Problem, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import { toolInput } from './anthropic';

/** The Bedrock face. */
export const bedrock: Face = {
  id: 'bedrock',
  routes: [
    { path: /^\/model\/([^/]+)\/converse-stream$/, read: (request) => read(request, true), points, voice: (ask, _request, context) => new ConverseVoice(ask, context) },
    { path: /^\/model\/([^/]+)\/converse$/, read: (request) => read(request, false), points, voice: (ask, _request, context) => new ConverseVoice(ask, context) },
  ],
  key: bearer,
  refuse: (problem) => jsonReply(problem.status, { message: problem.message }, { 'x-amzn-errortype': exceptionName(problem.status) }),
};

function exceptionName(status: number): string {
  const names: Readonly<Record<number, string>> = { 400: 'ValidationException', 401: 'UnrecognizedClientException', 403: 'AccessDeniedException', 404: 'ResourceNotFoundException', 429: 'ThrottlingException', 503: 'ServiceUnavailableException' };
  return names[status] ?? 'InternalServerException';
}

/** A `cachePoint` is a block of its own that marks the one before it. */
function withPoints(items: readonly { readonly text: string; readonly part: Fields }[], block: (text: string) => Omit<CacheBlock, 'mark'>): CacheBlock[] {
  const blocks: CacheBlock[] = [];
  for (const { text, part } of items) {
    const last = blocks.at(-1);
    if (!('cachePoint' in part)) blocks.push({ ...block(text), mark: null });
    else if (last) blocks[blocks.length - 1] = { ...last, mark: ephemeral(part, 'cachePoint') };
  }
  return blocks;
}

function blocksOf(body: Fields): CacheBlock[] {
  const { tools } = optionalFields(body, 'toolConfig');
  const listed = (Array.isArray(tools) ? (tools as readonly unknown[]) : []).map((tool, i) => ({ text: JSON.stringify(tool), part: fieldsOf(tool, `tools[${i}]`) }));
  return [
    ...withPoints(listed, (text) => ({ slot: 'tools', role: 'tools', message: -2, text })),
    ...withPoints(contentParts(body.system, 'system'), (text) => ({ slot: 'system', role: 'system', message: -1, text })),
    ...objectList(body, 'messages').flatMap((message, index) => withPoints(contentParts(message.content, `messages[${index}].content`), (text) => ({ slot: 'messages', role: String(message.role), message: index, text }))),
  ];
}

function points({ body }: RawRequest): CachePoints {
  return markerPoints(blocksOf(fieldsOf(body)), 'cachePoint');
}

function read(request: RawRequest, stream: boolean): Ask {
  const body = fieldsOf(request.body);
  const config = optionalFields(body, 'inferenceConfig');
  const toolConfig = optionalFields(body, 'toolConfig');
  const tools = Array.isArray(toolConfig.tools) && toolConfig.tools.length > 0 ? toolConfig.tools : null;
  const name = tools ? optionalFields(fieldsOf(tools[0], 'tools[0]'), 'toolSpec').name : undefined;
  const forced = tools !== null && optionalFields(toolConfig, 'toolChoice').any !== undefined;
  return {
    model: decodeURIComponent(request.match[1]!),
    prompt: render(blocksOf(body)).prompt,
    maxTokens: optionalCount(config, 'maxTokens'),
    minTokens: 0,
    ignoreEos: false,
    stop: stopStrings(config, 'stopSequences'),
    stream,
    salt: '',
    seed: null,
    user: null,
    priority: null,
    thinking: true,
    form: forced ? { kind: 'tool', name: typeof name === 'string' ? name : 'tool' } : { kind: 'text' },
  };
}

type BlockKind = 'reasoning' | 'text' | 'tool';

class ConverseVoice implements Voice {
  readonly contentType = 'application/vnd.amazon.eventstream';
  readonly headers: Readonly<Record<string, string>>;
  readonly #context: VoiceContext;
  readonly #points: CachePoints | undefined;
  #open: BlockKind | null = null;
  #index = -1;

  constructor(ask: Ask, context: VoiceContext) {
    this.#points = ask.points;
    this.#context = context;
    this.headers = { 'x-amzn-requestid': context.id };
  }

  open(): WireFrame[] {
    return [event('messageStart', { role: 'assistant' })];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.flatMap(({ kind, ids, text }) => {
      if (kind === 'hidden') return [];
      const frames = this.#open === kind ? [] : [...this.#stop(), ...this.#start(kind)];
      const delta = kind === 'reasoning' ? { reasoningContent: { text } } : kind === 'tool' ? { toolUse: { input: text } } : { text };
      return [...frames, event('contentBlockDelta', { contentBlockIndex: this.#index, delta }, ids.length)];
    });
  }

  close(end: End): WireFrame[] {
    return [...this.#stop(), event('messageStop', { stopReason: stopReason(end) }), event('metadata', { usage: usage(end, this.#points), metrics: { latencyMs: latency(end) } })];
  }

  fail(problem: Problem): WireFrame[] {
    return [{ data: encodeEvent({ ':exception-type': 'internalServerException', ':content-type': 'application/json', ':message-type': 'exception' }, { message: problem.message }), tokens: 0 }];
  }

  whole(end: End): unknown {
    const content: Record<string, unknown>[] = [];
    if (end.reasoning !== '') content.push({ reasoningContent: { reasoningText: { text: end.reasoning } } });
    if (end.finish === 'tool') content.push({ toolUse: { toolUseId: `tooluse_${this.#context.id}`, name: this.#context.answer.tool, input: toolInput(end.toolArguments) } });
    else content.push({ text: end.text });
    return { output: { message: { role: 'assistant', content } }, stopReason: stopReason(end), usage: usage(end, this.#points), metrics: { latencyMs: latency(end) } };
  }

  #start(kind: BlockKind): WireFrame[] {
    this.#open = kind;
    this.#index += 1;
    if (kind !== 'tool') return [];
    const toolUse = { toolUseId: `tooluse_${this.#context.id}`, name: this.#context.answer.tool };
    return [event('contentBlockStart', { contentBlockIndex: this.#index, start: { toolUse } })];
  }

  #stop(): WireFrame[] {
    if (this.#open === null) return [];
    this.#open = null;
    return [event('contentBlockStop', { contentBlockIndex: this.#index })];
  }
}

function event(type: string, payload: Record<string, unknown>, tokens = 0): WireFrame {
  return { data: encodeEvent({ ':event-type': type, ':content-type': 'application/json', ':message-type': 'event' }, payload), tokens };
}

function stopReason({ finish }: End): string {
  return { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use' }[finish];
}

function usage(tally: Tally, kept: CachePoints | undefined): Record<string, number> {
  const { promptTokens, cachedTokens, outputTokens } = tally;
  const { short, long } = writtenTokens(kept, cachedTokens);
  return { inputTokens: promptTokens - cachedTokens - short - long, outputTokens, totalTokens: promptTokens + outputTokens, cacheReadInputTokens: cachedTokens, cacheWriteInputTokens: short + long };
}

function latency({ times }: End): number {
  return Math.round(times.queue + times.prefill + times.decode);
}

/** One frame: total length, header length, their checksum, headers, JSON payload, checksum of all before it. */
function encodeEvent(headers: Readonly<Record<string, string>>, payload: unknown): Uint8Array {
  const head = Buffer.concat(Object.entries(headers).map(([name, value]) => encodeHeader(name, value)));
  const body = Buffer.from(JSON.stringify(payload));
  const frame = Buffer.alloc(12 + head.length + body.length + 4);
  frame.writeUInt32BE(frame.length, 0);
  frame.writeUInt32BE(head.length, 4);
  frame.writeUInt32BE(crc32(frame.subarray(0, 8)), 8);
  head.copy(frame, 12);
  body.copy(frame, 12 + head.length);
  frame.writeUInt32BE(crc32(frame.subarray(0, frame.length - 4)), frame.length - 4);
  return frame;
}

/** Name length and name, type 7 (string), value length and value. */
function encodeHeader(name: string, value: string): Buffer {
  const head = Buffer.alloc(4 + name.length);
  head.writeUInt8(name.length, 0);
  head.write(name, 1);
  head.writeUInt8(7, 1 + name.length);
  head.writeUInt16BE(Buffer.byteLength(value), 2 + name.length);
  return Buffer.concat([head, Buffer.from(value)]);
}
