import type { Dialect, FrameReader, FrameSink, RequestInput } from './dialect';
import { object, string } from './json';
import { bearer, post, promptText } from './request';

/** Reads `generate_stream` events: a piece of text each; no end mark, no usage. */
function tritonReader(sink: FrameSink): FrameReader {
  const read = (json: unknown): boolean => {
    const event = object(json);
    const output = event?.['text_output'];
    if (event === null || output === undefined) return false;
    if (typeof output === 'string') sink.delta('text', output);
    else if (Array.isArray(output)) sink.delta('text', output.map(string).join(''));
    else sink.malformed('`text_output` is no text.');
    return true;
  };
  return { read: (_frame, json) => read(json), whole: read, endsAtClose: true };
}

/** An origin gets the model's path; a path up to the model, a version or the full path is kept. */
function tritonUrl(input: RequestInput): string {
  const url = new URL(input.url);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/generate(?:_stream)?$/, '');
  const model = /\/models\/[^/]+/.test(path) ? path : `${path.replace(/\/(?:v2|v1)$/, '').replace(/\/models$/, '')}/v2/models/${encodeURIComponent(input.model ?? '')}`;
  url.pathname = `${model.endsWith('/models') ? `${model}/${encodeURIComponent(input.model ?? '')}` : model}/generate_stream`;
  return url.href;
}

/** Triton's generate extension (TensorRT-LLM behind Triton). */
export const triton: Dialect = {
  id: 'triton',
  framing: 'sse',
  optional: [{ field: 'exclude_input_in_output' }],
  request: (input) =>
    post(tritonUrl(input), input, bearer(input.key), {
      text_input: promptText(input.prompt),
      ...(input.maxTokens === null ? {} : { max_tokens: input.maxTokens }),
      stream: true,
      bad_words: '',
      stop_words: '',
      ...(input.ask.has('exclude_input_in_output') ? { exclude_input_in_output: true } : {}),
    }),
  reader: (sink) => tritonReader(sink),
};
