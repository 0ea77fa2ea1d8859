/** POST /v1/messages: blocks between a start and a stop. */
import type { Piece } from '../answer';
import { changeSince } from '../answerMemory';
import type { CachePoints } from '../breakpointCache';
import { contentParts, fieldsOf, invalid, objectList, optionalBoolean, optionalCount, optionalFields, optionalString, stopStrings, type Fields } from './bodyFields';
import { ephemeral, fingerprint, markerPoints, render, slotText, toolBlocks, writtenTokens, type CacheBlock } from './cacheBlocks';
import { bearer, header, jsonReply, retryHeaders, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Reply, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute } from './persona';

/** The Messages face. */
export const anthropic: Face = {
  id: 'anthropic',
  routes: [{ path: /^(?:\/v1)?\/messages$/, read, points, voice: (ask, request, context) => new MessagesVoice(ask, request, context) }],
  key: (request) => header(request, 'x-api-key') ?? bearer(request),
  refuse,
};

/** /v1/messages/count_tokens and /v1/models in Anthropic's shape. */
export const anthropicRoutes: readonly PlainRoute[] = [
  { method: 'POST', path: /^\/v1\/messages\/count_tokens$/, answer: (request) => jsonReply(200, { input_tokens: render(blocksOf(fieldsOf(request.body))).prompt.length }) },
  {
    method: 'GET',
    path: /^\/v1\/models$/,
    answer: (_request, { settings }) =>
      jsonReply(200, {
        data: [{ type: 'model', id: settings.servedModel, display_name: settings.servedModel, created_at: '2024-07-23T00:00:00Z' }],
        has_more: false,
        first_id: settings.servedModel,
        last_id: settings.servedModel,
      }),
  },
];

function refuse(problem: Problem): Reply {
  return jsonReply(problem.status, errorBody(problem), retryHeaders(problem));
}

function errorBody({ status, message }: Problem): Record<string, unknown> {
  return { type: 'error', error: { type: errorTypes[status] ?? (status >= 500 ? 'api_error' : 'invalid_request_error'), message } };
}

const errorTypes: Readonly<Record<number, string>> = {
  401: 'authentication_error',
  403: 'permission_error',
  404: 'not_found_error',
  413: 'request_too_large',
  429: 'rate_limit_error',
  503: 'overloaded_error',
  529: 'overloaded_error',
};

function blocksOf(body: Fields): CacheBlock[] {
  const tools = Array.isArray(body.tools) ? toolBlocks(body.tools as readonly unknown[], ephemeral) : [];
  const system = contentParts(body.system, 'system').map(({ text, part }): CacheBlock => ({ slot: 'system', role: 'system', message: -1, text, mark: ephemeral(part) }));
  const messages = objectList(body, 'messages').flatMap((message, index) => contentParts(message.content, `messages[${index}].content`).map(({ text, part }): CacheBlock => ({ slot: 'messages', role: String(message.role), message: index, text, mark: ephemeral(part) })));
  return [...tools, ...system, ...messages];
}

/** One `cache_control` for the whole request is a breakpoint on its last block. */
function points({ body }: RawRequest): CachePoints {
  const fields = fieldsOf(body);
  const blocks = blocksOf(fields);
  const whole = ephemeral(fields);
  const last = blocks.length - 1;
  return markerPoints(whole === null ? blocks : blocks.map((block, i) => (i === last && block.mark === null ? { ...block, mark: whole } : block)), 'cache_control');
}

function read(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const maxTokens = optionalCount(body, 'max_tokens');
  if (maxTokens === null) throw invalid('max_tokens', 'max_tokens: Field required');
  const choice = optionalFields(body, 'tool_choice');
  const firstTool = Array.isArray(body.tools) && body.tools.length > 0 ? fieldsOf(body.tools[0], 'tools[0]').name : undefined;
  const forced = choice.type === 'any' || choice.type === 'tool' ? (choice.name ?? firstTool) : undefined;
  return {
    model: optionalString(body, 'model'),
    prompt: render(blocksOf(body)).prompt,
    maxTokens,
    minTokens: 0,
    ignoreEos: optionalBoolean(body, 'ignore_eos', false),
    stop: stopStrings(body, 'stop_sequences'),
    stream: optionalBoolean(body, 'stream', false),
    salt: optionalString(body, 'cache_salt') ?? '',
    seed: null,
    user: optionalString(optionalFields(body, 'metadata'), 'user_id'),
    priority: null,
    thinking: optionalFields(body, 'thinking').type !== 'disabled',
    form: typeof forced === 'string' ? { kind: 'tool', name: forced } : { kind: 'text' },
  };
}

type BlockKind = 'reasoning' | 'text' | 'tool';

class MessagesVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly headers: Readonly<Record<string, string>>;
  readonly #context: VoiceContext;
  readonly #points: CachePoints | undefined;
  readonly #diagnostics: Record<string, unknown>;
  #open: BlockKind | null = null;
  #index = -1;

  constructor(ask: Ask, { body }: RawRequest, context: VoiceContext) {
    this.#context = context;
    this.#points = ask.points;
    this.#diagnostics = diagnose(fieldsOf(body), context);
    this.headers = { 'request-id': `req_${context.id}` };
  }

  open(tally: Tally): WireFrame[] {
    const message = { ...this.#message(), content: [], stop_reason: null, stop_sequence: null, ...this.#diagnostics, usage: { ...this.#usage(tally), output_tokens: 1 } };
    return [event('message_start', { message }), event('ping', {})];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.flatMap(({ kind, ids, text }) => {
      if (kind === 'hidden') return [];
      const frames = this.#open === kind ? [] : [...this.#stop(), ...this.#start(kind)];
      return [...frames, event('content_block_delta', { index: this.#index, delta: deltaOf(kind, text) }, ids.length)];
    });
  }

  close(end: End): WireFrame[] {
    const delta = { stop_reason: stopReason(end), stop_sequence: null };
    return [...this.#stop(), event('message_delta', { delta, usage: { ...this.#usage(end), output_tokens: end.outputTokens } }), event('message_stop', {})];
  }

  fail(problem: Problem): WireFrame[] {
    return [sse(errorBody({ ...problem, status: 529 }), 0, 'error')];
  }

  whole(end: End): unknown {
    const content: Record<string, unknown>[] = [];
    if (end.reasoning !== '') content.push({ type: 'thinking', thinking: end.reasoning, signature: 'c2ltdWxhdGVk' });
    if (end.finish === 'tool') content.push({ type: 'tool_use', id: `toolu_${this.#context.id}`, name: this.#context.answer.tool, input: toolInput(end.toolArguments) });
    else content.push({ type: 'text', text: end.text });
    return { ...this.#message(), content, stop_reason: stopReason(end), stop_sequence: null, ...this.#diagnostics, usage: { ...this.#usage(end), output_tokens: end.outputTokens } };
  }

  /** `input_tokens` excludes what came from the cache and what was added to it. */
  #usage({ promptTokens, cachedTokens }: Tally): Record<string, unknown> {
    const { short, long } = writtenTokens(this.#points, cachedTokens);
    return {
      input_tokens: promptTokens - cachedTokens - short - long,
      cache_creation_input_tokens: short + long,
      cache_read_input_tokens: cachedTokens,
      ...(this.#points ? { cache_creation: { ephemeral_5m_input_tokens: short, ephemeral_1h_input_tokens: long } } : {}),
    };
  }

  #message(): Record<string, unknown> {
    return { id: `msg_${this.#context.id}`, type: 'message', role: 'assistant', model: this.#context.model };
  }

  #start(kind: BlockKind): WireFrame[] {
    this.#open = kind;
    this.#index += 1;
    const blocks: Record<BlockKind, Record<string, unknown>> = {
      reasoning: { type: 'thinking', thinking: '', signature: '' },
      text: { type: 'text', text: '' },
      tool: { type: 'tool_use', id: `toolu_${this.#context.id}`, name: this.#context.answer.tool, input: {} },
    };
    const start = event('content_block_start', { index: this.#index, content_block: blocks[kind] });
    return kind === 'tool' ? [start, event('content_block_delta', { index: this.#index, delta: deltaOf('tool', '') })] : [start];
  }

  #stop(): WireFrame[] {
    if (this.#open === null) return [];
    const signed = this.#open === 'reasoning' ? [event('content_block_delta', { index: this.#index, delta: { type: 'signature_delta', signature: 'c2ltdWxhdGVk' } })] : [];
    this.#open = null;
    return [...signed, event('content_block_stop', { index: this.#index })];
  }
}

function event(type: string, fields: Record<string, unknown>, tokens = 0): WireFrame {
  return sse({ type, ...fields }, tokens, type);
}

function deltaOf(kind: BlockKind, text: string): Record<string, unknown> {
  if (kind === 'reasoning') return { type: 'thinking_delta', thinking: text };
  return kind === 'tool' ? { type: 'input_json_delta', partial_json: text } : { type: 'text_delta', text };
}

/** Compares with an earlier answer as asked, and remembers this one for later. */
function diagnose(body: Fields, { id, model, memory }: VoiceContext): Record<string, unknown> {
  if (body.diagnostics === undefined || body.diagnostics === null) return {};
  const previous = optionalString(fieldsOf(body.diagnostics, 'diagnostics'), 'previous_message_id');
  const blocks = blocksOf(body);
  const now = fingerprint(blocks, [['model_changed', model], ['tools_changed', slotText(blocks, 'tools')], ['system_changed', slotText(blocks, 'system')]]);
  memory.remember(`msg_${id}`, now);
  if (previous === null) return { diagnostics: null };
  const before = memory.find(previous);
  if (before === null) return { diagnostics: { cache_miss_reason: { type: 'previous_message_not_found' } } };
  const change = changeSince(before, now, 'messages_changed');
  return { diagnostics: change === null ? null : { cache_miss_reason: { type: change.change, cache_missed_input_tokens: change.missed } } };
}

function stopReason({ finish }: End): string {
  return { stop: 'end_turn', length: 'max_tokens', tool: 'tool_use' }[finish];
}

/** The arguments as JSON; an object with the text when they were cut short. */
export function toolInput(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return { unfinished: text };
  }
}
