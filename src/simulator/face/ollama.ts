/** Ollama's own API: /api/chat and /api/generate, one JSON object a line, streaming unless told otherwise. */
import type { Piece } from '../answer';
import { renderChat, special, tokenize, type TemplateMessage } from '../splitter';
import { contentText, fieldsOf, invalid, objectList, optionalBoolean, optionalCount, optionalFields, optionalString, stopStrings, type Fields } from './bodyFields';
import { bearer, jsonReply, retryHeaders, type Ask, type End, type Face, type Problem, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute } from './persona';
import { toolInput } from './anthropic';

/** The Ollama face. */
export const ollama: Face = {
  id: 'ollama',
  routes: [
    { path: /^\/api\/chat$/, read: (request) => read(fieldsOf(request.body), chatPrompt(fieldsOf(request.body))), voice: (_ask, _request, context) => new OllamaVoice(context, 'chat') },
    { path: /^\/api\/generate$/, read: readGenerate, voice: (_ask, _request, context) => new OllamaVoice(context, 'generate') },
  ],
  key: bearer,
  refuse: (problem) => jsonReply(problem.status, errorBody(problem), retryHeaders(problem)),
};

/** The version the simulator claims. */
export const ollamaVersion = '0.33.3';

/** /api/version, /api/tags, /api/ps, /api/show and the greeting at /. */
export const ollamaRoutes: readonly PlainRoute[] = [
  { method: 'GET', path: /^\/$/, open: true, answer: () => ({ status: 200, headers: { 'content-type': 'text/plain; charset=utf-8' }, body: 'Ollama is running' }) },
  { method: 'GET', path: /^\/api\/version$/, open: true, answer: () => jsonReply(200, { version: ollamaVersion }) },
  { method: 'GET', path: /^\/api\/(?:tags|ps)$/, answer: (_request, { settings }) => jsonReply(200, { models: [{ name: settings.servedModel, model: settings.servedModel, size: settings.hardware.model.parameters, details: { family: 'simulated' } }] }) },
  {
    method: 'POST',
    path: /^\/api\/show$/,
    answer: (_request, { settings }) => jsonReply(200, { details: { family: 'simulated' }, model_info: { 'general.parameter_count': settings.hardware.model.parameters, 'simulated.context_length': settings.maxContext }, capabilities: ['completion', 'tools'] }),
  },
];

function errorBody({ message }: Problem): Record<string, string> {
  return { error: message };
}

function chatPrompt(body: Fields): number[] {
  const messages: TemplateMessage[] = objectList(body, 'messages').map((message, index) => ({ role: String(message.role), text: contentText(message.content, `messages[${index}].content`) }));
  return renderChat(messages, Array.isArray(body.tools) && body.tools.length > 0 ? JSON.stringify(body.tools) : null);
}

function readGenerate(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const prompt = optionalString(body, 'prompt') ?? '';
  const system = optionalString(body, 'system');
  const raw = optionalBoolean(body, 'raw', false);
  const messages = [...(system === null ? [] : [{ role: 'system', text: system }]), { role: 'user', text: prompt }];
  return read(body, raw ? [special.begin, ...tokenize(prompt)] : renderChat(messages));
}

function read(body: Fields, prompt: number[]): Ask {
  const model = optionalString(body, 'model');
  if (model === null) throw invalid('model', 'model is required');
  const options = optionalFields(body, 'options');
  const predict = optionalCount(options, 'num_predict', -2);
  return {
    model,
    prompt,
    maxTokens: predict === null || predict < 1 ? null : predict,
    minTokens: 0,
    ignoreEos: false,
    stop: stopStrings(options),
    stream: optionalBoolean(body, 'stream', true),
    salt: '',
    seed: optionalCount(options, 'seed', 0),
    user: null,
    priority: null,
    thinking: body.think !== false,
    form: { kind: body.format === 'json' || typeof body.format === 'object' && body.format !== null ? 'json' : 'text' },
  };
}

class OllamaVoice implements Voice {
  readonly contentType = 'application/x-ndjson';
  readonly #context: VoiceContext;
  readonly #kind: 'chat' | 'generate';

  constructor(context: VoiceContext, kind: 'chat' | 'generate') {
    this.#context = context;
    this.#kind = kind;
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.filter(({ kind }) => kind !== 'hidden').map(({ kind, ids, text }) => this.#line({ ...this.#content(text, kind === 'reasoning'), done: false }, ids.length));
  }

  close(end: End): WireFrame[] {
    return [this.#line({ ...this.#content('', false), ...this.#summary(end) }, 0)];
  }

  fail(problem: Problem): WireFrame[] {
    return [{ data: `${JSON.stringify(errorBody(problem))}\n`, tokens: 0 }];
  }

  whole(end: End): unknown {
    const body = this.#content(end.text, false);
    if (end.reasoning !== '') Object.assign(this.#kind === 'chat' ? (body.message as object) : body, { thinking: end.reasoning });
    if (end.finish === 'tool') (body.message as Record<string, unknown>).tool_calls = [{ function: { name: this.#context.answer.tool, arguments: toolInput(end.toolArguments) } }];
    return { ...this.#head(), ...body, ...this.#summary(end) };
  }

  #head(): Record<string, unknown> {
    return { model: this.#context.model, created_at: new Date(this.#context.created * 1000).toISOString() };
  }

  #content(text: string, thinking: boolean): Record<string, unknown> {
    if (this.#kind === 'generate') return thinking ? { response: '', thinking: text } : { response: text };
    return { message: thinking ? { role: 'assistant', content: '', thinking: text } : { role: 'assistant', content: text } };
  }

  /** Durations in ns. The end token is counted, and a prompt count of nothing is left out. */
  #summary(end: End & Tally): Record<string, unknown> {
    const ns = (ms: number): number => Math.round(ms * 1e6);
    const { queue, prefill, decode } = end.times;
    return {
      done: true,
      done_reason: end.finish === 'length' ? 'length' : 'stop',
      total_duration: ns(queue + prefill + decode),
      load_duration: ns(1),
      prompt_eval_count: end.promptTokens,
      prompt_eval_cached_count: end.cachedTokens,
      prompt_eval_duration: ns(prefill),
      eval_count: end.outputTokens + (end.finish === 'length' ? 0 : 1),
      eval_duration: ns(decode),
    };
  }

  #line(fields: Record<string, unknown>, tokens: number): WireFrame {
    return { data: `${JSON.stringify({ ...this.#head(), ...fields })}\n`, tokens };
  }
}
