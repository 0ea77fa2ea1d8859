import type { Dialect, FrameReader, FrameSink } from './dialect';
import { at, count, object, string, type JsonObject } from './json';
import { bearer, endpointUrl, post, promptText } from './request';

/** Reads `/generate_stream` events: one token each, special ones without text; the last holds the whole text again. */
class GenerateReader implements FrameReader {
  readonly #sink: FrameSink;
  readonly endsAtClose = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(_frame: unknown, json: unknown): boolean {
    const event = object(json);
    const token = object(event?.['token']);
    if (event === null || (token === null && event['generated_text'] === undefined)) return false;
    if (token !== null) {
      if (token['special'] !== true) this.#sink.delta('text', string(token['text']));
      this.#sink.tokens(1, 'one-per-event');
    }
    if (event['generated_text'] !== null && event['generated_text'] !== undefined) {
      this.#details(object(event['details']));
      this.#sink.terminal();
    }
    return true;
  }

  #details(details: JsonObject | null): void {
    const reason = string(details?.['finish_reason']);
    if (reason !== '') this.#sink.finish(reason);
    this.#sink.usage({ prompt: count(details?.['input_length']), output: count(details?.['generated_tokens']) });
  }

  whole(json: unknown): boolean {
    const body = object(Array.isArray(json) ? (json[0] as unknown) : json);
    const text = at(body, 'generated_text');
    if (body === null || typeof text !== 'string') return false;
    this.#sink.delta('text', text);
    this.#details(object(body['details']));
    return true;
  }
}

/** Hugging Face TGI's own API. */
export const tgi: Dialect = {
  id: 'tgi',
  framing: 'sse',
  optional: [],
  request: (input) =>
    post(endpointUrl(input.url, '/generate_stream', null), input, bearer(input.key), {
      inputs: promptText(input.prompt),
      parameters: { details: true, ...(input.maxTokens === null ? {} : { max_new_tokens: input.maxTokens }) },
    }),
  reader: (sink) => new GenerateReader(sink),
};
