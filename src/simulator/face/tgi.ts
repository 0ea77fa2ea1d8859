/** Text Generation Inference's own /generate and /generate_stream: one token an event. */
import type { Piece } from '../answer';
import { exposition, type Family } from '../ledger';
import { special, tokenBytes, tokenize } from '../splitter';
import { fieldsOf, invalid, optionalBoolean, optionalCount, optionalFields, stopStrings, type Fields } from './bodyFields';
import { bearer, jsonReply, retryHeaders, type Ask, type End, type Face, type Problem, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute, ServerView } from './persona';

/** The TGI face. */
export const tgi: Face = {
  id: 'tgi',
  routes: [
    { path: /^\/generate_stream$/, read: (request) => read(request, true), voice: (_ask, request, context) => new TgiVoice(context, wantsDetails(request)) },
    { path: /^\/generate$/, read: (request) => read(request, false), voice: (_ask, request, context) => new TgiVoice(context, wantsDetails(request)) },
  ],
  key: bearer,
  refuse: (problem) => jsonReply(problem.status === 400 ? 422 : problem.status, errorBody(problem), retryHeaders(problem)),
};

/** The version the simulator claims. */
export const tgiVersion = '3.3.4';

/** /info, /health, /tokenize and /metrics. */
export const tgiRoutes: readonly PlainRoute[] = [
  {
    method: 'GET',
    path: /^\/info$/,
    open: true,
    answer: (_request, { settings }) =>
      jsonReply(200, {
        model_id: settings.servedModel,
        max_concurrent_requests: 128,
        max_best_of: 2,
        max_input_tokens: settings.maxContext - 1,
        max_total_tokens: settings.maxContext,
        router: 'text-generation-router',
        version: tgiVersion,
        docker_label: 'simulated',
      }),
  },
  { method: 'GET', path: /^\/health$/, open: true, answer: () => ({ status: 200, headers: {}, body: '' }) },
  { method: 'POST', path: /^\/tokenize$/, answer: (request) => jsonReply(200, tokenSpans(inputsOf(fieldsOf(request.body)))) },
  { method: 'GET', path: /^\/metrics$/, open: true, answer: (_request, server) => ({ status: 200, headers: { 'content-type': 'text/plain; version=0.0.4' }, body: exposition(families(server)) }) },
];

function errorBody({ status, message }: Problem): Record<string, string> {
  const types: Readonly<Record<number, string>> = { 400: 'validation', 422: 'validation', 429: 'overloaded', 503: 'overloaded' };
  return { error: message, error_type: types[status] ?? 'generation' };
}

function tokenSpans(text: string): Record<string, unknown>[] {
  let start = 0;
  return tokenize(text).map((id) => {
    const piece = new TextDecoder().decode(tokenBytes(id));
    const span = { id, text: piece, start, stop: start + piece.length };
    start = span.stop;
    return span;
  });
}

function families(server: ServerView): Family[] {
  const { ledger } = server;
  const load = server.load();
  const one = (name: string, type: Family['type'], help: string, value: Family['samples'][number]['value']): Family => ({ name: `tgi_${name}`, type, help, samples: [{ labels: {}, value }] });
  return [
    one('queue_size', 'gauge', 'Requests waiting', load.waiting),
    one('batch_current_size', 'gauge', 'Requests in the batch', load.running),
    one('request_count', 'counter', 'Requests', ledger.successes),
    one('request_success', 'counter', 'Requests that succeeded', ledger.successes),
    one('request_duration', 'histogram', 'Seconds per request', ledger.endToEnd),
    one('request_queue_duration', 'histogram', 'Seconds in the queue', ledger.queue),
    one('request_mean_time_per_token_duration', 'histogram', 'Seconds per token', ledger.gap),
  ];
}

function inputsOf(body: Fields): string {
  if (typeof body.inputs === 'string' && body.inputs !== '') return body.inputs;
  throw invalid('inputs', 'Input validation error: `inputs` cannot be empty', 422);
}

function wantsDetails(request: RawRequest): boolean {
  return optionalBoolean(optionalFields(fieldsOf(request.body), 'parameters'), 'details', false);
}

function read(request: RawRequest, stream: boolean): Ask {
  const body = fieldsOf(request.body);
  const parameters = optionalFields(body, 'parameters');
  return {
    model: null,
    prompt: [special.begin, ...tokenize(inputsOf(body))],
    maxTokens: optionalCount(parameters, 'max_new_tokens') ?? 100,
    minTokens: 0,
    ignoreEos: false,
    stop: stopStrings(parameters),
    stream,
    salt: '',
    seed: optionalCount(parameters, 'seed', 0),
    user: null,
    priority: null,
    thinking: false,
    form: { kind: parameters.grammar === undefined || parameters.grammar === null ? 'text' : 'json' },
  };
}

class TgiVoice implements Voice {
  readonly contentType = 'text/event-stream';
  readonly #context: VoiceContext;
  readonly #details: boolean;
  #index = 0;
  #text = '';

  constructor(context: VoiceContext, details: boolean) {
    this.#context = context;
    this.#details = details;
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    const total = this.#context.answer.tokens.length;
    return pieces.flatMap(({ ids, text }) => {
      this.#text += text;
      return ids.map((id, i) => {
        this.#index += 1;
        const last = this.#index === total;
        // Several tokens of one step share their text: it stands on the last of them.
        const token = { id, text: i === ids.length - 1 ? text : '', logprob: -0.1, special: false };
        return this.#event({ index: this.#index, token, generated_text: last ? this.#text : null, details: last && this.#details ? this.#facts(tally) : null }, 1);
      });
    });
  }

  close(): WireFrame[] {
    return [];
  }

  fail(problem: Problem): WireFrame[] {
    return [this.#event(errorBody(problem), 0)];
  }

  whole(end: End): unknown {
    return { generated_text: end.text, ...(this.#details ? { details: { ...this.#facts(end), tokens: [] } } : {}) };
  }

  #facts(tally: Tally): Record<string, unknown> {
    const reason = this.#context.answer.finish === 'length' ? 'length' : 'eos_token';
    return { finish_reason: reason, generated_tokens: tally.outputTokens, input_length: tally.promptTokens, seed: null };
  }

  #event(value: unknown, tokens: number): WireFrame {
    return { data: `data:${JSON.stringify(value)}\n\n`, tokens };
  }
}
