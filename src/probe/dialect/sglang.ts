import type { Dialect, FrameReader, FrameSink } from './dialect';
import { count, object, string, type JsonObject } from './json';
import { bearer, endpointUrl, post, promptText } from './request';

/** Reads `/generate` events. `text` is the whole answer so far, or with `--incremental-streaming-output` only the new piece. */
class GenerateReader implements FrameReader {
  readonly #sink: FrameSink;
  #sofar = '';
  #cumulative: boolean | null = null;
  #finished = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get endsAtClose(): boolean {
    return this.#finished;
  }

  read(_frame: unknown, json: unknown): boolean {
    const event = object(json);
    const meta = object(event?.['meta_info']);
    if (event === null || (meta === null && typeof event['text'] !== 'string' && !Array.isArray(event['output_ids']))) return false;
    const index = count(event['index']) ?? 0;
    const stops = meta !== null && this.#finish(meta);
    this.#sink.delta('text', this.#news(string(event['text'])), index);
    if (meta !== null) this.#meta(meta, stops);
    return true;
  }

  /** The new piece of text. Which of the two forms it is shows in the second event, which repeats the first or does not. */
  #news(text: string): string {
    if (this.#cumulative === null) {
      if (this.#sofar === '') {
        this.#sofar = text;
        return text;
      }
      if (text === '') return '';
      this.#cumulative = text.length >= this.#sofar.length && text.startsWith(this.#sofar);
    }
    if (!this.#cumulative) return text;
    // A replacement character at the end is half a character and is rewritten in the next event.
    const same = text.startsWith(this.#sofar) ? this.#sofar.length : commonLength(this.#sofar, text);
    this.#sofar = text;
    return text.slice(same);
  }

  #finish(meta: JsonObject): boolean {
    const reason = meta['finish_reason'];
    const type = string(object(reason)?.['type']) || string(reason);
    if (type === '') return false;
    this.#finished = true;
    this.#sink.finish(type);
    if (type === 'abort' || type === 'error') this.#sink.error(string(object(reason)?.['message']) || `The server ended the answer with finish reason \`${type}\`.`);
    return true;
  }

  #meta(meta: JsonObject, stops: boolean): void {
    const output = count(meta['completion_tokens']);
    this.#sink.usage({ prompt: count(meta['prompt_tokens']), output, cached: count(meta['cached_tokens']), reasoning: count(meta['reasoning_tokens']) });
    if (output !== undefined) this.#sink.running(output, 'usage-difference', stops ? 'if-continuous' : 'yes');
    const latency = count(meta['e2e_latency']);
    if (latency !== undefined) this.#sink.timing({ name: 'meta_info.e2e_latency', ms: latency * 1000, covers: 'total' });
  }

  whole(json: unknown): boolean {
    const body = object(json);
    const meta = object(body?.['meta_info']);
    if (body === null || typeof body['text'] !== 'string') return false;
    this.#sink.delta('text', body['text']);
    if (meta !== null) {
      this.#finish(meta);
      this.#meta(meta, true);
    }
    return true;
  }
}

function commonLength(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at++;
  return at;
}

/** SGLang's own `/generate`. */
export const sglang: Dialect = {
  id: 'sglang',
  framing: 'sse',
  optional: [{ field: 'ignore_eos', when: 'fixed-length' }],
  request: (input) =>
    post(endpointUrl(input.url, '/generate', null), input, bearer(input.key), {
      text: promptText(input.prompt),
      sampling_params: { ...(input.maxTokens === null ? {} : { max_new_tokens: input.maxTokens }), ...(input.ask.has('ignore_eos') ? { ignore_eos: true } : {}) },
      stream: true,
    }),
  reader: (sink) => new GenerateReader(sink),
};
