import type { Dialect, FrameReader, FrameSink } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { tellTimings } from './openaiUsage';
import { bearer, endpointUrl, post, promptText } from './request';

/** Reads `/completion` events. Frames of prompt progress carry a made-up token and generate nothing; `stop: true` ends. */
class CompletionReader implements FrameReader {
  readonly #sink: FrameSink;
  readonly endsAtClose = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(_frame: unknown, json: unknown): boolean {
    const event = object(json);
    if (event === null || (event['content'] === undefined && event['stop'] === undefined)) return false;
    if (event['prompt_progress'] !== undefined && event['prompt_progress'] !== null) return true;
    const index = count(event['index']) ?? 0;
    const stops = event['stop'] === true;
    this.#sink.delta('text', string(event['content']), index);
    const tokens = event['tokens'];
    if (Array.isArray(tokens) && tokens.length > 0) this.#sink.tokens(tokens.length, 'server-count');
    this.#counts(event, stops);
    if (stops && index === 0) {
      this.#sink.finish(finishOf(event));
      this.#sink.terminal();
    }
    return true;
  }

  #counts(event: JsonObject, stops: boolean): void {
    const predicted = count(event['tokens_predicted']) ?? count(at(event, 'timings', 'predicted_n'));
    tellTimings(this.#sink, event['timings'], stops ? 'if-continuous' : 'yes');
    const timed = count(at(event, 'timings', 'predicted_n')) !== undefined;
    if (!timed && predicted !== undefined) this.#sink.running(predicted, 'server-count', stops ? 'if-continuous' : 'yes');
    this.#sink.usage({ prompt: count(event['tokens_evaluated']), output: predicted }, 'server-count');
  }

  whole(json: unknown): boolean {
    // Several prompts or choices come as a list of bodies.
    const bodies = (Array.isArray(json) ? list(json) : [json]).map(object);
    if (bodies.length === 0 || bodies.some((body) => body === null || typeof body['content'] !== 'string')) return false;
    bodies.forEach((body, at) => this.#sink.delta('text', string(body?.['content']), at));
    this.#sink.finish(finishOf(bodies[0]!));
    for (const body of bodies) this.#counts(body!, true);
    if (bodies.length > 1) {
      const sum = (path: readonly string[]): number => bodies.reduce((all, body) => all + (count(at(body, ...path)) ?? 0), 0);
      this.#sink.usage({ prompt: sum(['tokens_evaluated']), output: sum(['tokens_predicted']), cached: sum(['timings', 'cache_n']) }, 'server-count');
    }
    return true;
  }
}

/** `eos`, `word`, `limit`, as the server says it; old builds say it in flags. */
function finishOf(event: JsonObject): string {
  const type = string(event['stop_type']);
  if (type !== '' && type !== 'none') return type;
  if (event['stopped_limit'] === true) return 'limit';
  if (event['stopped_word'] === true) return 'word';
  return 'eos';
}

/** llama.cpp's own `/completion`. */
export const llamacpp: Dialect = {
  id: 'llamacpp',
  framing: 'sse',
  optional: [{ field: 'return_tokens' }, { field: 'timings_per_token' }, { field: 'ignore_eos', when: 'fixed-length' }],
  request(input) {
    const { ask } = input;
    return post(endpointUrl(input.url, '/completion', null), input, bearer(input.key), {
      ...(input.model === null ? {} : { model: input.model }),
      prompt: promptText(input.prompt),
      n_predict: input.maxTokens,
      stream: true,
      cache_prompt: true,
      ...(ask.has('return_tokens') ? { return_tokens: true } : {}),
      ...(ask.has('timings_per_token') ? { timings_per_token: true } : {}),
      ...(ask.has('ignore_eos') ? { ignore_eos: true } : {}),
    });
  },
  reader: (sink) => new CompletionReader(sink),
};
