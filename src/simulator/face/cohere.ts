/** Cohere's POST /v2/chat: named events around content blocks. */
import type { Piece } from '../answer';
import { renderChat, tokenBytes, tokenize } from '../splitter';
import { contentText, fieldsOf, objectList, optionalBoolean, optionalCount, optionalFields, optionalString, stopStrings } from './bodyFields';
import { bearer, done, jsonReply, retryHeaders, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute } from './persona';

/** The Cohere face. */
export const cohere: Face = {
  id: 'cohere',
  routes: [{ path: /^\/v2\/chat$/, read, voice: (_ask, _request, context) => new CohereVoice(context) }],
  key: bearer,
  refuse: (problem) => jsonReply(problem.status, { id: 'simulated', message: problem.message }, retryHeaders(problem)),
};

/** /v1/tokenize and /v1/models. */
export const cohereRoutes: readonly PlainRoute[] = [
  {
    method: 'POST',
    path: /^\/v1\/tokenize$/,
    answer: (request) => {
      const ids = tokenize(optionalString(fieldsOf(request.body), 'text') ?? '');
      return jsonReply(200, { tokens: ids, token_strings: ids.map((id) => new TextDecoder().decode(tokenBytes(id))) });
    },
  },
  { method: 'GET', path: /^\/v1\/models$/, answer: (_request, { settings }) => jsonReply(200, { models: [{ name: settings.servedModel, endpoints: ['chat'], context_length: settings.maxContext }] }) },
];

function read(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const messages = objectList(body, 'messages').map((message, index) => ({ role: String(message.role), text: contentText(message.content, `messages[${index}].content`) }));
  const tools = Array.isArray(body.tools) && body.tools.length > 0 ? body.tools : null;
  const name = tools ? optionalFields(fieldsOf(tools[0], 'tools[0]'), 'function').name : undefined;
  const forced = body.tool_choice === 'REQUIRED';
  return {
    model: optionalString(body, 'model'),
    prompt: renderChat(messages, tools ? JSON.stringify(tools) : null),
    maxTokens: optionalCount(body, 'max_tokens'),
    minTokens: 0,
    ignoreEos: false,
    stop: stopStrings(body, 'stop_sequences'),
    stream: optionalBoolean(body, 'stream', false),
    salt: '',
    seed: optionalCount(body, 'seed', 0),
    user: null,
    priority: optionalCount(body, 'priority', 0),
    thinking: optionalFields(body, 'thinking').type !== 'disabled',
    form: forced ? { kind: 'tool', name: typeof name === 'string' ? name : 'tool' } : { kind: optionalFields(body, 'response_format').type === 'json_object' ? 'json' : 'text' },
  };
}

type BlockKind = 'reasoning' | 'text' | 'tool';

class CohereVoice implements Voice {
  readonly contentType = 'text/event-stream';
  readonly #context: VoiceContext;
  #open: BlockKind | null = null;
  #index = -1;

  constructor(context: VoiceContext) {
    this.#context = context;
  }

  open(): WireFrame[] {
    const message = { role: 'assistant', content: [], tool_plan: '', tool_calls: [], citations: [] };
    return [event('message-start', { id: this.#context.id, delta: { message } })];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.flatMap(({ kind, ids, text }) => {
      if (kind === 'hidden') return [];
      const frames = this.#open === kind ? [] : [...this.#stop(), this.#start(kind)];
      const message = kind === 'tool' ? { tool_calls: { function: { arguments: text } } } : { content: kind === 'reasoning' ? { thinking: text } : { text } };
      return [...frames, event(kind === 'tool' ? 'tool-call-delta' : 'content-delta', { index: this.#index, delta: { message } }, ids.length)];
    });
  }

  close(end: End): WireFrame[] {
    return [...this.#stop(), event('message-end', { id: this.#context.id, delta: { finish_reason: finishReason(end), usage: usage(end) } }), done];
  }

  fail(problem: Problem): WireFrame[] {
    return [event('message-end', { id: this.#context.id, delta: { finish_reason: 'ERROR', error: problem.message } }), done];
  }

  whole(end: End): unknown {
    const content: Record<string, string>[] = [];
    if (end.reasoning !== '') content.push({ type: 'thinking', thinking: end.reasoning });
    if (end.finish !== 'tool') content.push({ type: 'text', text: end.text });
    const calls = end.finish === 'tool' ? { tool_calls: [{ id: `call_${this.#context.id}`, type: 'function', function: { name: this.#context.answer.tool, arguments: end.toolArguments } }] } : {};
    return { id: this.#context.id, finish_reason: finishReason(end), message: { role: 'assistant', content, ...calls }, usage: usage(end) };
  }

  #start(kind: BlockKind): WireFrame {
    this.#open = kind;
    this.#index += 1;
    if (kind === 'tool') {
      const call = { id: `call_${this.#context.id}`, type: 'function', function: { name: this.#context.answer.tool, arguments: '' } };
      return event('tool-call-start', { index: this.#index, delta: { message: { tool_calls: call } } });
    }
    const content = kind === 'reasoning' ? { type: 'thinking', thinking: '' } : { type: 'text', text: '' };
    return event('content-start', { index: this.#index, delta: { message: { content } } });
  }

  #stop(): WireFrame[] {
    if (this.#open === null) return [];
    const type = this.#open === 'tool' ? 'tool-call-end' : 'content-end';
    this.#open = null;
    return [event(type, { index: this.#index })];
  }
}

function event(type: string, fields: Record<string, unknown>, tokens = 0): WireFrame {
  return sse({ type, ...fields }, tokens, type);
}

function finishReason({ finish }: End): string {
  return { stop: 'COMPLETE', length: 'MAX_TOKENS', tool: 'TOOL_CALL' }[finish];
}

function usage(end: End): Record<string, unknown> {
  const tokens = { input_tokens: end.promptTokens, output_tokens: end.outputTokens };
  return { billed_units: tokens, tokens, cached_tokens: end.cachedTokens };
}
