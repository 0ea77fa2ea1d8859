/** llama.cpp's own /completion, its slots and its metrics. */
import type { Piece } from '../answer';
import { exposition, type Family } from '../ledger';
import { detokenize, renderChat, special, tokenBytes, tokenize, tokenizeRendered } from '../splitter';
import { contentText, fieldsOf, invalid, objectList, optionalBoolean, optionalCount, optionalString, stopStrings, type Fields } from './bodyFields';
import { bearer, jsonReply, retryHeaders, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Reply, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute, ServerView } from './persona';
import { tokenIds } from './vllm';

/** The native completion face. */
export const llamacpp: Face = {
  id: 'llamacpp',
  routes: [{ path: /^\/completions?$/, read, voice: (ask, request, context) => new CompletionVoice(ask, fieldsOf(request.body), context) }],
  key: bearer,
  refuse: refuseLikeLlamacpp,
};

/** `{"error": {code, message, type}}` with a numeric code. */
export function refuseLikeLlamacpp(problem: Problem): Reply {
  return jsonReply(problem.status, errorBody(problem), retryHeaders(problem));
}

function errorBody({ status, message }: Problem): Record<string, unknown> {
  const types: Readonly<Record<number, string>> = { 400: 'invalid_request_error', 401: 'authentication_error', 404: 'not_found_error', 503: 'unavailable_error' };
  return { error: { code: status, message, type: types[status] ?? 'server_error' } };
}

/** /health, /props, /slots, /tokenize, /detokenize, /apply-template (without the begin mark, which /tokenize adds) and /metrics. */
export const llamacppRoutes: readonly PlainRoute[] = [
  { method: 'GET', path: /^(?:\/v1)?\/health$/, open: true, answer: () => jsonReply(200, { status: 'ok' }) },
  { method: 'GET', path: /^\/props$/, answer: props },
  { method: 'GET', path: /^\/slots$/, answer: slots },
  { method: 'POST', path: /^\/tokenize$/, answer: tokenizeReply },
  { method: 'POST', path: /^\/detokenize$/, answer: (request) => jsonReply(200, { content: detokenize(tokenIds(request)) }) },
  { method: 'POST', path: /^\/apply-template$/, answer: (request) => jsonReply(200, { prompt: detokenize(chatPrompt(fieldsOf(request.body)).slice(1)) }) },
  { method: 'GET', path: /^\/metrics$/, answer: (_request, server) => ({ status: 200, headers: { 'content-type': 'text/plain; version=0.0.4' }, body: exposition(families(server)) }) },
];

function props(_request: RawRequest, { settings }: ServerView): Reply {
  const perSlot = Math.floor(settings.maxContext);
  return jsonReply(200, {
    default_generation_settings: { id: 0, n_ctx: perSlot, params: { n_predict: -1 } },
    total_slots: settings.maxRunning,
    model_path: `${settings.servedModel}.gguf`,
    chat_template: '{% for m in messages %}<|start|>{{ m.role }}\n{{ m.content }}<|end|>\n{% endfor %}',
    build_info: 'b6500-simulated',
  });
}

function slots(_request: RawRequest, server: ServerView): Reply {
  const { running } = server.load();
  return jsonReply(200, Array.from({ length: server.settings.maxRunning }, (_, id) => ({ id, n_ctx: server.settings.maxContext, is_processing: id < running })));
}

function tokenizeReply(request: RawRequest): Reply {
  const body = fieldsOf(request.body);
  const ids = [...(optionalBoolean(body, 'add_special', false) ? [special.begin] : []), ...(optionalBoolean(body, 'parse_special', true) ? tokenizeRendered : tokenize)(optionalString(body, 'content') ?? '')];
  if (!optionalBoolean(body, 'with_pieces', false)) return jsonReply(200, { tokens: ids });
  return jsonReply(200, { tokens: ids.map((id) => ({ id, piece: new TextDecoder().decode(tokenBytes(id)) })) });
}

function chatPrompt(body: Fields): number[] {
  return renderChat(objectList(body, 'messages').map((message) => ({ role: String(message.role), text: contentText(message.content, 'messages') })));
}

function families(server: ServerView): Family[] {
  const { ledger } = server;
  const load = server.load();
  const one = (name: string, type: 'counter' | 'gauge', help: string, value: number): Family => ({ name: `llamacpp:${name}`, type, help, samples: [{ labels: {}, value }] });
  const rate = (tokens: number, seconds: number): number => (seconds === 0 ? 0 : tokens / seconds);
  const evaluated = ledger.promptTokens - ledger.cachedTokens;
  return [
    one('prompt_tokens_total', 'counter', 'Number of prompt tokens processed.', evaluated),
    one('prompt_seconds_total', 'counter', 'Prompt process time', ledger.prefill.sum),
    one('tokens_predicted_total', 'counter', 'Number of generation tokens processed.', ledger.generatedTokens),
    one('tokens_predicted_seconds_total', 'counter', 'Predict process time', ledger.decode.sum),
    one('prompt_tokens_seconds', 'gauge', 'Average prompt throughput in tokens/s.', rate(evaluated, ledger.prefill.sum)),
    one('predicted_tokens_seconds', 'gauge', 'Average generation throughput in tokens/s.', rate(ledger.generatedTokens, ledger.decode.sum)),
    one('requests_processing', 'gauge', 'Number of requests processing.', load.running),
    one('requests_deferred', 'gauge', 'Number of requests deferred.', load.waiting),
  ];
}

let uncached = 0;

function read(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const predict = optionalCount(body, 'n_predict', -2);
  return {
    model: null,
    prompt: readPrompt(body),
    maxTokens: predict === null || predict < 1 ? null : predict,
    minTokens: 0,
    ignoreEos: optionalBoolean(body, 'ignore_eos', false),
    stop: stopStrings(body),
    stream: optionalBoolean(body, 'stream', false),
    // Without `cache_prompt` nothing is reused: a salt nobody else has.
    salt: optionalBoolean(body, 'cache_prompt', true) ? '' : `uncached ${uncached++}`,
    seed: optionalCount(body, 'seed', -1),
    user: null,
    priority: null,
    thinking: false,
    form: { kind: body.json_schema === undefined ? 'text' : 'json' },
  };
}

function readPrompt({ prompt }: Fields): number[] {
  if (typeof prompt === 'string') return [special.begin, ...tokenize(prompt)];
  if (Array.isArray(prompt) && prompt.length > 0) {
    return prompt.flatMap((part: unknown) => {
      if (typeof part === 'string') return tokenize(part);
      if (Number.isInteger(part) && (part as number) >= 0) return [part as number];
      throw invalid('prompt', 'prompt: strings and token ids are expected.');
    });
  }
  throw invalid('prompt', 'prompt: a string or a list of token ids is expected.');
}

/** `timings` of a llama.cpp answer: ms, and tokens per second. */
export function llamacppTimings(tally: Tally): Record<string, number> {
  const { times } = tally;
  const computed = tally.promptTokens - tally.cachedTokens;
  const perSecond = (tokens: number, ms: number): number => (ms === 0 ? 0 : (tokens / ms) * 1000);
  return {
    cache_n: tally.cachedTokens,
    prompt_n: computed,
    prompt_ms: times.prefill,
    prompt_per_token_ms: times.prefill / computed,
    prompt_per_second: perSecond(computed, times.prefill),
    predicted_n: tally.outputTokens,
    predicted_ms: times.decode,
    predicted_per_token_ms: times.decode / Math.max(1, tally.outputTokens),
    predicted_per_second: perSecond(tally.outputTokens, times.decode),
  };
}

class CompletionVoice implements Voice {
  readonly contentType = 'text/event-stream';
  readonly #ask: Ask;
  readonly #body: Fields;
  readonly #context: VoiceContext;

  constructor(ask: Ask, body: Fields, context: VoiceContext) {
    this.#ask = ask;
    this.#body = body;
    this.#context = context;
  }

  open(tally: Tally): WireFrame[] {
    if (this.#body.return_progress !== true) return [];
    const progress = { total: tally.promptTokens, cache: tally.cachedTokens, processed: tally.promptTokens, time_ms: tally.times.prefill };
    return [sse({ index: 0, content: '', tokens: [0], stop: false, id_slot: 0, tokens_predicted: 0, tokens_evaluated: tally.promptTokens, prompt_progress: progress })];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    const timings = this.#body.timings_per_token === true ? { timings: llamacppTimings(tally) } : {};
    return pieces.map(({ ids, text }) =>
      sse({ index: 0, content: text, tokens: ids, stop: false, id_slot: 0, tokens_predicted: tally.outputTokens, tokens_evaluated: tally.promptTokens, ...timings }, ids.length),
    );
  }

  close(end: End): WireFrame[] {
    return [sse(this.#last('', end))];
  }

  fail(problem: Problem): WireFrame[] {
    return [sse(errorBody(problem))];
  }

  whole(end: End): unknown {
    const tokens = this.#body.return_tokens === true ? this.#context.answer.tokens : [];
    return { ...this.#last(end.text, end), tokens };
  }

  #last(content: string, end: End): Record<string, unknown> {
    return {
      index: 0,
      content,
      tokens: [],
      id_slot: 0,
      stop: true,
      model: this.#context.model,
      tokens_predicted: end.outputTokens,
      tokens_evaluated: end.promptTokens,
      generation_settings: { n_predict: this.#ask.maxTokens ?? -1, stream: this.#ask.stream },
      prompt: detokenize(this.#ask.prompt.slice(1)),
      has_new_line: end.text.includes('\n'),
      truncated: false,
      stop_type: end.finish === 'length' ? 'limit' : this.#ask.stop.length > 0 ? 'word' : 'eos',
      stopping_word: '',
      tokens_cached: end.promptTokens + end.outputTokens - 1,
      timings: llamacppTimings(end),
    };
  }
}
