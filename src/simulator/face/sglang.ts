/** SGLang's own /generate: every event repeats the whole text so far. */
import type { Piece } from '../answer';
import type { Family } from '../ledger';
import { renderChat, special, tokenize } from '../splitter';
import { contentText, fieldsOf, invalid, objectList, optionalBoolean, optionalCount, optionalFields, stopStrings } from './bodyFields';
import { bearer, done, jsonReply, retryHeaders, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute, ServerView } from './persona';
import { metricsReply } from './vllm';

/** The native SGLang face. */
export const sglang: Face = {
  id: 'sglang',
  routes: [{ path: /^\/generate$/, read, voice: (_ask, _request, context) => new GenerateVoice(context) }],
  key: bearer,
  refuse: refuseLikeSglang,
};

/** The error object without a wrapper. */
export function refuseLikeSglang(problem: Problem): ReturnType<typeof jsonReply> {
  const body = { object: 'error', message: problem.message, type: problem.code, param: problem.field ?? null, code: problem.status };
  return jsonReply(problem.status, body, retryHeaders(problem));
}

/** The version the simulator claims. */
export const sglangVersion = '0.5.4';

/** /get_model_info, /get_server_info, /health, /health_generate, /tokenize and /metrics. */
export const sglangRoutes: readonly PlainRoute[] = [
  { method: 'GET', path: /^\/health(?:_generate)?$/, open: true, answer: () => ({ status: 200, headers: {}, body: '' }) },
  {
    method: 'GET',
    path: /^\/(?:get_)?model_info$/,
    open: true,
    answer: (_request, { settings }) => jsonReply(200, { model_path: settings.servedModel, tokenizer_path: settings.servedModel, is_generation: true }),
  },
  {
    method: 'GET',
    path: /^\/(?:get_)?server_info$/,
    answer: (_request, { settings }) =>
      jsonReply(200, { model_path: settings.servedModel, served_model_name: settings.servedModel, version: sglangVersion, max_running_requests: settings.maxRunning, context_length: settings.maxContext, page_size: 16, tp_size: settings.hardware.tensorParallel, enable_cache_report: settings.reportsCached }),
  },
  { method: 'POST', path: /^(?:\/v1)?\/tokenize$/, answer: tokenizeReply },
  { method: 'GET', path: /^\/metrics$/, open: true, answer: (_request, server) => metricsReply(families(server)) },
];

function tokenizeReply(request: RawRequest, { settings }: ServerView): ReturnType<typeof jsonReply> {
  const body = fieldsOf(request.body);
  const ids =
    typeof body.prompt === 'string'
      ? [special.begin, ...tokenize(body.prompt)]
      : renderChat(objectList(body, 'messages').map((message) => ({ role: String(message.role), text: contentText(message.content, 'messages') })));
  return jsonReply(200, { tokens: ids, count: ids.length, max_model_len: settings.maxContext });
}

function families(server: ServerView): Family[] {
  const { ledger, settings } = server;
  const load = server.load();
  const labels = { model_name: settings.servedModel };
  const one = (name: string, type: Family['type'], help: string, value: Family['samples'][number]['value']): Family => ({ name: `sglang:${name}`, type, help, samples: [{ labels, value }] });
  return [
    one('num_running_reqs', 'gauge', 'The number of running requests.', load.running),
    one('num_queue_reqs', 'gauge', 'The number of requests in the waiting queue.', load.waiting),
    one('token_usage', 'gauge', 'The token usage.', load.kvUsage),
    one('cache_hit_rate', 'gauge', 'The prefix cache hit rate.', load.prefixQueries === 0 ? 0 : load.prefixHits / load.prefixQueries),
    one('prompt_tokens_total', 'counter', 'Number of prefill tokens processed.', ledger.promptTokens),
    one('generation_tokens_total', 'counter', 'Number of generation tokens processed.', ledger.generatedTokens),
    one('cached_tokens_total', 'counter', 'Number of cached prompt tokens.', ledger.cachedTokens),
    one('num_requests_total', 'counter', 'Number of requests processed.', ledger.successes),
    one('time_to_first_token_seconds', 'histogram', 'Histogram of time to first token in seconds.', ledger.firstToken),
    one('inter_token_latency_seconds', 'histogram', 'Histogram of inter-token latency in seconds.', ledger.gap),
    one('e2e_request_latency_seconds', 'histogram', 'Histogram of end-to-end request latency in seconds.', ledger.endToEnd),
    one('queue_time_seconds', 'histogram', 'Histogram of queueing time in seconds.', ledger.queue),
  ];
}

function read(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const sampling = optionalFields(body, 'sampling_params');
  const ids = body.input_ids;
  let prompt: number[];
  if (typeof body.text === 'string') prompt = [special.begin, ...tokenize(body.text)];
  else if (Array.isArray(ids) && ids.length > 0 && ids.every((id) => Number.isInteger(id) && (id as number) >= 0)) prompt = ids as number[];
  else throw invalid('text', 'text: a string, or input_ids: a list of token ids, is expected.');
  return {
    model: null,
    prompt,
    maxTokens: optionalCount(sampling, 'max_new_tokens') ?? 128,
    minTokens: optionalCount(sampling, 'min_new_tokens', 0) ?? 0,
    ignoreEos: optionalBoolean(sampling, 'ignore_eos', false),
    stop: stopStrings(sampling),
    stream: optionalBoolean(body, 'stream', false),
    salt: '',
    seed: optionalCount(sampling, 'sampling_seed', 0),
    user: null,
    priority: optionalCount(body, 'priority', -1_000_000),
    thinking: false,
    form: { kind: typeof sampling.json_schema === 'string' ? 'json' : 'text' },
  };
}

class GenerateVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #context: VoiceContext;
  #text = '';

  constructor(context: VoiceContext) {
    this.#context = context;
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    for (const { text } of pieces) this.#text += text;
    const tokens = pieces.reduce((sum, { ids }) => sum + ids.length, 0);
    return [sse(this.#event(this.#text, tally), tokens)];
  }

  close(): WireFrame[] {
    return [done];
  }

  fail(problem: Problem): WireFrame[] {
    return [sse({ error: { message: problem.message } }), done];
  }

  whole(end: End): unknown {
    return this.#event(end.text, end);
  }

  #event(text: string, tally: Tally): Record<string, unknown> {
    const { answer, id, flavour } = this.#context;
    const complete = tally.outputTokens >= answer.tokens.length;
    const reason = answer.finish === 'length' ? { type: 'length', length: tally.outputTokens } : { type: 'stop', matched: special.endOfText };
    const meta: Record<string, unknown> = { id, finish_reason: complete ? reason : null, prompt_tokens: tally.promptTokens, completion_tokens: tally.outputTokens };
    if (flavour.cachedTokens) meta.cached_tokens = tally.cachedTokens;
    if (complete) meta.e2e_latency = (tally.times.queue + tally.times.prefill + tally.times.decode) / 1000;
    return { text, output_ids: answer.tokens.slice(0, tally.outputTokens), meta_info: meta };
  }
}
