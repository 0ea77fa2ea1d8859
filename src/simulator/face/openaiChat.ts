/** POST /v1/chat/completions, as vLLM and its look-alikes speak it. */
import { renderChat, tokenBytes, type TemplateMessage } from '../splitter';
import type { Piece } from '../answer';
import type { CachePoints } from '../breakpointCache';
import { contentParts, contentText, fieldsOf, invalid, objectList, optionalBoolean, optionalCount, optionalFields, optionalString, stopStrings, type Fields } from './bodyFields';
import { openaiPoints, render, toolBlocks, writtenTokens, type CacheBlock } from './cacheBlocks';
import { llamacppTimings } from './llamacpp';
import { bearer, done, sse, type Ask, type End, type Face, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import { openaiError, refuseLikeOpenai } from './openaiErrors';
import { cachesByBreakpoints } from './openaiModels';
import { openaiUsage } from './openaiUsage';

/** The chat face. */
export const openaiChat: Face = {
  id: 'openai-chat',
  routes: [{ path: /^(?:\/openai)?(?:\/v1)?\/chat\/completions$/, read: readChat, points: chatPoints, voice: chatVoice }],
  key: bearer,
  refuse: refuseLikeOpenai,
};

/** Reads a chat body. Throws `Refused` naming the field. */
export function readChat(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const messages = objectList(body, 'messages').map(readMessage);
  const tools = Array.isArray(body.tools) && body.tools.length > 0 ? body.tools : null;
  const prompt = cachesByBreakpoints(body.model) ? render(chatBlocks(body)).prompt : renderChat(messages, tools ? JSON.stringify(tools) : null);
  return { ...readOpenaiFields(body), prompt, form: readForm(body, tools) };
}

function chatBlocks(body: Fields): CacheBlock[] {
  const tools = Array.isArray(body.tools) ? toolBlocks(body.tools as readonly unknown[], () => null) : [];
  const messages = objectList(body, 'messages').flatMap((message, index): CacheBlock[] => {
    const parts = contentParts(message.content, `messages[${index}].content`);
    const calls = Array.isArray(message.tool_calls) ? [{ text: JSON.stringify(message.tool_calls), part: {} }] : [];
    return [...parts, ...calls].map(({ text, part }) => ({ slot: 'messages', role: String(message.role), message: index, text, mark: 'prompt_cache_breakpoint' in part ? 1 : null }));
  });
  return [...tools, ...messages];
}

function chatPoints({ body }: RawRequest): CachePoints | null {
  const fields = fieldsOf(body);
  return cachesByBreakpoints(fields.model) ? openaiPoints(chatBlocks(fields), optionalFields(fields, 'prompt_cache_options').mode === 'explicit') : null;
}

function readMessage(message: Fields, index: number): TemplateMessage {
  if (typeof message.role !== 'string') throw invalid('messages', `messages[${index}].role: a string is expected.`);
  const calls = Array.isArray(message.tool_calls) ? JSON.stringify(message.tool_calls) : '';
  return { role: message.role, text: contentText(message.content, `messages[${index}].content`) + calls };
}

function readForm(body: Fields, tools: readonly unknown[] | null): Ask['form'] {
  const choice = body.tool_choice;
  if (tools && choice !== undefined && choice !== 'none' && choice !== 'auto') {
    const wanted = typeof choice === 'object' && choice !== null ? optionalFields(choice as Fields, 'function').name : undefined;
    const first = optionalFields(fieldsOf(tools[0], 'tools[0]'), 'function').name;
    const name = wanted ?? first;
    return { kind: 'tool', name: typeof name === 'string' ? name : 'tool' };
  }
  const type = optionalFields(body, 'response_format').type;
  return { kind: type === 'json_object' || type === 'json_schema' ? 'json' : 'text' };
}

/** Fields that chat and completions share; `prompt` and `form` are the caller's. */
export function readOpenaiFields(body: Fields): Omit<Ask, 'prompt' | 'form'> {
  const choices = optionalCount(body, 'n');
  if (choices !== null && choices > 1) throw invalid('n', 'n: only one choice is supported.');
  const streamOptions = body.stream_options;
  const stream = optionalBoolean(body, 'stream', false);
  if (streamOptions !== undefined && streamOptions !== null && !stream) throw invalid('stream_options', 'Stream options can only be defined when `stream=True`.');
  return {
    model: optionalString(body, 'model'),
    maxTokens: optionalCount(body, 'max_completion_tokens') ?? optionalCount(body, 'max_tokens'),
    minTokens: optionalCount(body, 'min_tokens', 0) ?? 0,
    ignoreEos: optionalBoolean(body, 'ignore_eos', false),
    stop: stopStrings(body),
    stream,
    salt: optionalString(body, 'cache_salt') ?? '',
    seed: optionalCount(body, 'seed', 0),
    user: optionalString(body, 'user'),
    priority: optionalCount(body, 'priority', -1_000_000),
    thinking: optionalFields(body, 'chat_template_kwargs').enable_thinking !== false && body.reasoning_effort !== 'none',
  };
}

/** What the client asked to be told while the answer streams. */
export interface StreamWishes {
  readonly usage: boolean;
  readonly continuousUsage: boolean;
  readonly tokenIds: boolean;
  readonly logprobs: boolean;
}

/** Reads `stream_options`, `return_token_ids` and `logprobs`. */
export function readWishes(body: Fields): StreamWishes {
  const options = optionalFields(body, 'stream_options');
  const usage = optionalBoolean(options, 'include_usage', false);
  return {
    usage,
    continuousUsage: usage && optionalBoolean(options, 'continuous_usage_stats', false),
    tokenIds: optionalBoolean(body, 'return_token_ids', false),
    logprobs: body.logprobs === true || (typeof body.logprobs === 'number' && body.logprobs > 0),
  };
}

/** Words an answer as chat completion chunks. */
export function chatVoice(ask: Ask, request: RawRequest, context: VoiceContext): Voice {
  const body = fieldsOf(request.body);
  return new ChatVoice(ask, readWishes(body), context, mannerOf(context.flavour.server, body));
}

/** How a server's chunks differ from the plain ones. */
interface Manner {
  /** Delta of the chunk that opens the answer; null when there is none. */
  readonly opening: Record<string, unknown> | null;
  /** Fields of every delta. */
  readonly delta: Record<string, unknown>;
  /** Fields of every choice. */
  readonly choice: Record<string, unknown>;
  /** Fields of every chunk. */
  readonly chunk: Record<string, unknown>;
  /** Fields beside the content of a chunk, and beside the usage at the end. */
  timings(tally: Tally, last: boolean): Record<string, unknown>;
}

const plain: Manner = { opening: { role: 'assistant', content: '' }, delta: {}, choice: { logprobs: null }, chunk: {}, timings: () => ({}) };

function mannerOf(server: string, body: Fields): Manner {
  switch (server) {
    case 'llamacpp': {
      const each = body.timings_per_token === true;
      const timings = (tally: Tally, last: boolean): Record<string, unknown> => (last || each ? { timings: llamacppTimings(tally) } : {});
      return { ...plain, opening: { role: 'assistant', content: null }, choice: {}, chunk: { system_fingerprint: 'b6500-simulated' }, timings };
    }
    case 'sglang': {
      const nulls = { role: null, content: null, reasoning_content: null, tool_calls: null };
      return { ...plain, opening: { ...nulls, role: 'assistant', content: '' }, delta: nulls, choice: { logprobs: null, matched_stop: null } };
    }
    case 'tgi':
      return { ...plain, opening: null, delta: { role: 'assistant' }, chunk: { id: '', system_fingerprint: '3.3.4-simulated' } };
    case 'ollama':
      return { ...plain, opening: null, delta: { role: 'assistant', content: '' }, choice: {}, chunk: { system_fingerprint: 'fp_ollama' } };
    case 'azure':
      return { ...plain, choice: { logprobs: null, content_filter_results: {} }, chunk: { system_fingerprint: 'fp_simulated' } };
    default:
      return plain;
  }
}

class ChatVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #ask: Ask;
  readonly #wishes: StreamWishes;
  readonly #context: VoiceContext;
  readonly #manner: Manner;
  #toolNamed = false;

  constructor(ask: Ask, wishes: StreamWishes, context: VoiceContext, manner: Manner) {
    this.#ask = ask;
    this.#wishes = wishes;
    this.#context = context;
    this.#manner = manner;
  }

  #usage(end: End): Record<string, unknown> {
    const { points } = this.#ask;
    return openaiUsage(end, this.#context.flavour, true, points ? writtenTokens(points, end.cachedTokens).short : null);
  }

  open(tally: Tally): WireFrame[] {
    if (this.#manner.opening === null) return [];
    const extra = this.#wishes.tokenIds ? { prompt_token_ids: this.#ask.prompt } : {};
    return [this.#chunk({ ...this.#manner.choice, delta: this.#manner.opening, finish_reason: null }, 0, { ...tally, outputTokens: 0 }, extra)];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    return pieces
      .filter((piece) => piece.kind !== 'hidden')
      .map((piece) => {
        const choice: Record<string, unknown> = { ...this.#manner.choice, delta: { ...this.#manner.delta, ...this.#delta(piece) }, finish_reason: null };
        if (this.#wishes.logprobs) choice.logprobs = logprobs(piece.ids);
        if (this.#wishes.tokenIds) choice.token_ids = piece.ids;
        return this.#chunk(choice, piece.ids.length, tally, this.#manner.timings(tally, false));
      });
  }

  #delta({ kind, text }: Piece): Record<string, unknown> {
    if (kind === 'reasoning') return { [this.#context.flavour.reasoningField]: text };
    if (kind !== 'tool') return { content: text };
    const call: Record<string, unknown> = { index: 0, function: { arguments: text } };
    if (!this.#toolNamed) Object.assign(call, { id: `call_${this.#context.id}`, type: 'function', function: { name: this.#context.answer.tool, arguments: text } });
    this.#toolNamed = true;
    return { tool_calls: [call] };
  }

  close(end: End): WireFrame[] {
    const finish = { ...this.#manner.choice, delta: this.#manner.delta, finish_reason: finishReason(end) };
    const timings = this.#manner.timings(end, true);
    const frames = [this.#chunk(finish, 0, end, this.#wishes.usage ? {} : timings)];
    if (this.#wishes.usage) frames.push(sse({ ...this.#head(), choices: [], usage: this.#usage(end), ...timings }));
    return [...frames, done];
  }

  fail(problem: Parameters<typeof openaiError>[0]): WireFrame[] {
    return [sse(openaiError(problem)), done];
  }

  whole(end: End): unknown {
    const { context, flavour } = { context: this.#context, flavour: this.#context.flavour };
    const message: Record<string, unknown> = { role: 'assistant', content: end.finish === 'tool' ? null : end.text };
    if (end.reasoning !== '') message[flavour.reasoningField] = end.reasoning;
    if (end.finish === 'tool') message.tool_calls = [{ id: `call_${context.id}`, type: 'function', function: { name: context.answer.tool, arguments: end.toolArguments } }];
    const choice = { index: 0, message, logprobs: null, finish_reason: finishReason(end) };
    return { ...this.#head(), object: 'chat.completion', choices: [choice], usage: this.#usage(end), ...this.#manner.timings(end, true) };
  }

  #head(): Record<string, unknown> {
    const { id, created, model } = this.#context;
    return { id: `chatcmpl-${id}`, object: 'chat.completion.chunk', created, model, ...this.#manner.chunk };
  }

  #chunk(choice: Record<string, unknown>, tokens: number, tally: Tally, extra: Record<string, unknown> = {}): WireFrame {
    const usage = this.#wishes.continuousUsage ? { usage: openaiUsage(tally, this.#context.flavour, false) } : {};
    return sse({ ...this.#head(), choices: [{ index: 0, ...choice }], ...usage, ...extra }, tokens);
  }
}

/** OpenAI's name for why an answer ended. */
export function finishReason({ finish }: End): string {
  return finish === 'tool' ? 'tool_calls' : finish;
}

function logprobs(ids: readonly number[]): Record<string, unknown> {
  const content = ids.map((id) => {
    const bytes = tokenBytes(id);
    return { token: new TextDecoder().decode(bytes), logprob: -0.1, bytes: [...bytes], top_logprobs: [] };
  });
  return { content };
}
