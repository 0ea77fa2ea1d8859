import type { Dialect, FrameReader, FrameSink, GrowthIsToken } from './dialect';
import { count, list, object, string } from './json';
import { openaiExtras, openaiOptional } from './openaiChat';
import { tellFrameTimings } from './openaiTimings';
import { tellTimings, tellUsage } from './openaiUsage';
import { bearer, endpointUrl, post, promptText } from './request';

/** Reads chunks of `/v1/completions`: the first chunk is a token, the last text chunk may hold the finish reason and usage. */
function completionsReader(sink: FrameSink): FrameReader {
  let finished = false;
  const choiceText = (value: unknown): boolean => {
    const choice = object(value);
    if (choice === null) return false;
    const index = count(choice['index']) ?? 0;
    sink.delta('reasoning', string(choice['reasoning_content']) || string(choice['reasoning']), index);
    sink.delta('text', string(choice['text']) || string(object(choice['delta'])?.['content']), index);
    const ids = choice['token_ids'];
    if (Array.isArray(ids)) sink.tokens(ids.length, 'token_ids');
    const logprobs = object(choice['logprobs']);
    const tokens = list(logprobs?.['tokens']).length || list(logprobs?.['content']).length;
    if (tokens > 0) sink.tokens(tokens, 'logprobs');
    const reason = string(choice['finish_reason']);
    if (reason === '') return false;
    if (reason === 'error' || reason === 'abort') sink.error(`The server ended the answer with finish reason \`${reason}\`.`);
    if (index === 0) sink.finish(reason);
    finished = true;
    return true;
  };
  const body = (json: unknown, whole: boolean): boolean => {
    const chunk = object(json);
    if (chunk === null) return false;
    const rawChoices = chunk['choices'];
    if (rawChoices !== undefined && rawChoices !== null && !Array.isArray(rawChoices)) sink.malformed('`choices` is not a list.');
    const choices = list(rawChoices);
    let finishes = finished;
    for (const choice of choices) finishes = choiceText(choice) || finishes;
    const growth: GrowthIsToken = whole || choices.length === 0 ? 'no' : finishes ? 'if-continuous' : 'yes';
    const usage = tellUsage(sink, chunk['usage'], growth);
    const timings = tellTimings(sink, chunk['timings'], chunk['prompt_progress'] === undefined ? growth : 'no');
    tellFrameTimings(sink, chunk);
    return whole ? choices.length > 0 : Array.isArray(rawChoices) || ((usage || timings) && chunk['type'] === undefined) || chunk['object'] === 'text_completion';
  };
  return {
    read: (_frame, json) => body(json, false),
    whole: (json) => body(json, true),
    get endsAtClose() {
      return finished;
    },
  };
}

/** OpenAI's legacy completions and look-alikes. */
export const openaiCompletions: Dialect = {
  id: 'openai-completions',
  framing: 'sse',
  optional: openaiOptional,
  request(input) {
    const body = { model: input.model, prompt: promptText(input.prompt), max_tokens: input.maxTokens, ...openaiExtras(input) };
    return post(endpointUrl(input.url, '/completions', '/v1'), input, bearer(input.key), body);
  },
  reader: (sink) => completionsReader(sink),
};
