/** The paths a vLLM server answers beside generation. */
import { detokenize, renderChat, special, tokenBytes, tokenize } from '../splitter';
import { exposition, type Family } from '../ledger';
import { contentText, fieldsOf, invalid, objectList, optionalBoolean } from './bodyFields';
import { jsonReply, type RawRequest } from './face';
import type { PlainRoute, ServerView } from './persona';

/** The version the simulator claims where a server would tell its own. */
export const claimedVersion = '0.11.0';

/** /health, /ping, /version, /load, /tokenize, /detokenize, /reset_prefix_cache and /metrics. */
export const vllmRoutes: readonly PlainRoute[] = [
  { method: 'GET', path: /^\/(?:health|ping)$/, open: true, answer: () => ({ status: 200, headers: {}, body: '' }) },
  { method: 'GET', path: /^\/version$/, open: true, answer: () => jsonReply(200, { version: claimedVersion }) },
  { method: 'GET', path: /^\/load$/, answer: (_request, server) => jsonReply(200, { server_load: server.load().running + server.load().waiting }) },
  { method: 'POST', path: /^\/tokenize$/, answer: tokenizeReply },
  { method: 'POST', path: /^\/detokenize$/, answer: (request) => jsonReply(200, { prompt: detokenize(tokenIds(request)) }) },
  {
    method: 'POST',
    path: /^\/reset_prefix_cache$/,
    answer: (_request, server) => {
      server.resetCache();
      return { status: 200, headers: {}, body: '' };
    },
  },
  { method: 'GET', path: /^\/metrics$/, open: true, answer: (_request, server) => metricsReply(vllmFamilies(server)) },
];

function tokenizeReply(request: RawRequest, { settings }: ServerView): ReturnType<typeof jsonReply> {
  const body = fieldsOf(request.body);
  const ids = promptIds(body);
  const text = optionalBoolean(body, 'return_token_strs', false) ? { token_strs: ids.map((id) => new TextDecoder().decode(tokenBytes(id))) } : {};
  return jsonReply(200, { count: ids.length, max_model_len: settings.maxContext, tokens: ids, ...text });
}

function promptIds(body: ReturnType<typeof fieldsOf>): number[] {
  if (typeof body.prompt === 'string') return [...(optionalBoolean(body, 'add_special_tokens', true) ? [special.begin] : []), ...tokenize(body.prompt)];
  if (body.messages === undefined) throw invalid('prompt', 'prompt: a string, or messages: a list, is expected.');
  const messages = objectList(body, 'messages').map((message) => ({ role: String(message.role), text: contentText(message.content, 'messages') }));
  const tools = Array.isArray(body.tools) && body.tools.length > 0 ? JSON.stringify(body.tools) : null;
  return renderChat(messages, tools, optionalBoolean(body, 'add_generation_prompt', true));
}

/** The `tokens` of a detokenize body. */
export function tokenIds(request: RawRequest): number[] {
  const { tokens } = fieldsOf(request.body);
  if (Array.isArray(tokens) && tokens.every((id) => Number.isInteger(id) && (id as number) >= 0)) return tokens as number[];
  throw invalid('tokens', 'tokens: a list of token ids is expected.');
}

/** An exposition as an HTTP answer. */
export function metricsReply(families: readonly Family[]): ReturnType<typeof jsonReply> {
  return { status: 200, headers: { 'content-type': 'text/plain; version=0.0.4; charset=utf-8' }, body: exposition(families) };
}

function vllmFamilies(server: ServerView): Family[] {
  const { ledger, settings } = server;
  const load = server.load();
  const labels = { engine: '0', model_name: settings.servedModel };
  const family = (name: string, type: Family['type'], help: string, value: Family['samples'][number]['value']): Family => ({ name: `vllm:${name}`, type, help, samples: [{ labels, value }] });
  return [
    family('num_requests_running', 'gauge', 'Number of requests in model execution batches.', load.running),
    family('num_requests_waiting', 'gauge', 'Number of requests waiting to be processed.', load.waiting),
    family('kv_cache_usage_perc', 'gauge', 'KV-cache usage. 1 means 100 percent usage.', load.kvUsage),
    family('prefix_cache_queries_total', 'counter', 'Prefix cache queries, in terms of number of queried tokens.', load.prefixQueries),
    family('prefix_cache_hits_total', 'counter', 'Prefix cache hits, in terms of number of cached tokens.', load.prefixHits),
    family('num_preemptions_total', 'counter', 'Cumulative number of preemptions from the engine.', load.preemptions),
    family('prompt_tokens_total', 'counter', 'Number of prefill tokens processed.', ledger.promptTokens),
    family('generation_tokens_total', 'counter', 'Number of generation tokens processed.', ledger.generatedTokens),
    {
      name: 'vllm:request_success_total',
      type: 'counter',
      help: 'Count of successfully processed requests.',
      samples: ['stop', 'length'].map((reason) => ({ labels: { ...labels, finished_reason: reason }, value: ledger.finished.get(reason) ?? 0 })),
    },
    family('time_to_first_token_seconds', 'histogram', 'Histogram of time to first token in seconds.', ledger.firstToken),
    family('inter_token_latency_seconds', 'histogram', 'Histogram of inter-token latency in seconds.', ledger.gap),
    family('e2e_request_latency_seconds', 'histogram', 'Histogram of e2e request latency in seconds.', ledger.endToEnd),
    family('request_queue_time_seconds', 'histogram', 'Histogram of time spent in WAITING phase for request.', ledger.queue),
    family('request_prefill_time_seconds', 'histogram', 'Histogram of time spent in PREFILL phase for request.', ledger.prefill),
    family('request_decode_time_seconds', 'histogram', 'Histogram of time spent in DECODE phase for request.', ledger.decode),
  ];
}
