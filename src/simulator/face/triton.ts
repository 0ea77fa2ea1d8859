/** Triton's generate extension: text pieces, no usage, no end mark. */
import type { Piece } from '../answer';
import { special, tokenize } from '../splitter';
import { fieldsOf, invalid, optionalBoolean, optionalCount, optionalFields, type Fields } from './bodyFields';
import { bearer, jsonReply, retryHeaders, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute } from './persona';

const path = (verb: string): RegExp => new RegExp(`^/v2/models/([^/]+)(?:/versions/[^/]+)?/${verb}$`);

/** The Triton face. */
export const triton: Face = {
  id: 'triton',
  routes: [
    { path: path('generate_stream'), read: (request) => read(request, true), voice },
    { path: path('generate'), read: (request) => read(request, false), voice },
  ],
  key: bearer,
  refuse: (problem) => jsonReply(problem.status, { error: problem.message }, retryHeaders(problem)),
};

/** /v2, /v2/health/live and ready, and the model's description. */
export const tritonRoutes: readonly PlainRoute[] = [
  { method: 'GET', path: /^\/v2$/, open: true, answer: () => jsonReply(200, { name: 'triton', version: '2.61.0', extensions: ['generate', 'statistics'] }) },
  { method: 'GET', path: /^\/v2\/health\/(?:live|ready)$/, open: true, answer: () => ({ status: 200, headers: {}, body: '' }) },
  {
    method: 'GET',
    path: /^\/v2\/models\/([^/]+)$/,
    answer: (_request, { settings }) =>
      jsonReply(200, { name: settings.servedModel, versions: ['1'], platform: 'simulated', inputs: [{ name: 'text_input', datatype: 'BYTES', shape: [-1] }], outputs: [{ name: 'text_output', datatype: 'BYTES', shape: [-1] }] }),
  },
];

/** A parameter, at the top level or under `parameters`. */
function parameters(body: Fields): Fields {
  return { ...body, ...optionalFields(body, 'parameters') };
}

function inputOf(body: Fields): string {
  if (typeof body.text_input === 'string') return body.text_input;
  throw invalid('text_input', 'unexpected shape for input \'text_input\': a string is expected');
}

function read(request: RawRequest, stream: boolean): Ask {
  const body = fieldsOf(request.body);
  const options = parameters(body);
  return {
    model: decodeURIComponent(request.match[1]!),
    prompt: [special.begin, ...tokenize(inputOf(body))],
    maxTokens: optionalCount(options, 'max_tokens') ?? 16,
    minTokens: 0,
    ignoreEos: optionalBoolean(options, 'ignore_eos', false),
    stop: [],
    stream,
    salt: '',
    seed: optionalCount(options, 'random_seed', 0),
    user: null,
    priority: null,
    thinking: false,
    form: { kind: 'text' },
  };
}

function voice(_ask: Ask, request: RawRequest, context: VoiceContext): Voice {
  const body = fieldsOf(request.body);
  const echo = optionalBoolean(parameters(body), 'exclude_input_in_output', false) ? '' : inputOf(body);
  return new TritonVoice(context, echo);
}

class TritonVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #context: VoiceContext;
  #echo: string;

  constructor(context: VoiceContext, echo: string) {
    this.#context = context;
    this.#echo = echo;
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.map(({ ids, text }) => {
      const frame = sse(this.#response(this.#echo + text), ids.length);
      this.#echo = '';
      return frame;
    });
  }

  close(): WireFrame[] {
    return [];
  }

  fail(problem: Problem): WireFrame[] {
    return [sse({ error: problem.message })];
  }

  whole(end: End): unknown {
    return this.#response(this.#echo + end.text);
  }

  #response(text: string): Record<string, string> {
    return { model_name: this.#context.model, model_version: '1', text_output: text };
  }
}
