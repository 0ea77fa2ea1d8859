import type { Dialect, Frame, FrameReader, FrameSink, GrowthIsToken, OptionalField, RequestInput, WireRequest } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { messageIn } from '../serverError';
import { tellFrameTimings } from './openaiTimings';
import { tellTimings, tellUsage } from './openaiUsage';
import { bearer, endpointUrl, functionTools, openaiMessages, ownFields, post } from './request';

/** Optional fields of the chat and completions APIs; the names of servers are those detection finds. */
export const openaiOptional: readonly OptionalField[] = [
  { field: 'stream_options.include_usage' },
  { field: 'stream_options.continuous_usage_stats', forServers: ['vllm', 'sglang'] },
  { field: 'return_token_ids', forServers: ['vllm', 'sglang'] },
  { field: 'timings_per_token', forServers: ['llama.cpp'] },
  { field: 'perf_metrics_in_response', forServers: ['fireworks'] },
  { field: 'stream_options.include_obfuscation', forServers: ['openai'] },
  { field: 'ignore_eos', forServers: ['vllm', 'sglang', 'llama.cpp', 'tensorrt-llm'], when: 'fixed-length' },
  { field: 'min_tokens', forServers: ['vllm', 'sglang', 'tensorrt-llm'], when: 'fixed-length' },
];

/** What `ask` adds to a chat or completions body. */
export function openaiExtras(input: RequestInput): Record<string, unknown> {
  const { ask, maxTokens } = input;
  const streamOptions = {
    ...(ask.has('stream_options.include_usage') ? { include_usage: true } : {}),
    ...(ask.has('stream_options.continuous_usage_stats') ? { continuous_usage_stats: true } : {}),
    ...(ask.has('stream_options.include_obfuscation') ? { include_obfuscation: false } : {}),
  };
  return {
    stream: true,
    ...(Object.keys(streamOptions).length > 0 ? { stream_options: streamOptions } : {}),
    ...(ask.has('return_token_ids') ? { return_token_ids: true } : {}),
    ...(ask.has('timings_per_token') ? { timings_per_token: true } : {}),
    ...(ask.has('perf_metrics_in_response') ? { perf_metrics_in_response: true } : {}),
    ...(ask.has('ignore_eos') ? { ignore_eos: true } : {}),
    ...(ask.has('min_tokens') && maxTokens !== null ? { min_tokens: maxTokens } : {}),
  };
}

/** The body of a chat request. `max_tokens` and `max_completion_tokens` name one cap; a server knows one or both, so one is sent. */
export function chatBody(input: RequestInput, knowsDeveloper: boolean): Record<string, unknown> {
  const cap = input.ask.has('max_completion_tokens') ? 'max_completion_tokens' : 'max_tokens';
  const tools = functionTools(input.prompt);
  return {
    model: input.model,
    messages: openaiMessages(input, 'chat', knowsDeveloper),
    ...(tools.length > 0 ? { tools } : {}),
    ...ownFields(input, 'chat'),
    [cap]: input.maxTokens,
    ...openaiExtras(input),
  };
}

function request(input: RequestInput): WireRequest {
  return post(endpointUrl(input.url, '/chat/completions', '/v1'), input, bearer(input.key), chatBody(input, new URL(input.url).hostname === 'api.openai.com'));
}

interface Call {
  readonly key: string;
  readonly id: string;
  name: string;
}

/** Reads chat chunks of OpenAI and of everyone who speaks like it. */
class ChatReader implements FrameReader {
  readonly #sink: FrameSink;
  #finished = false;
  #anything = false;
  readonly #calls = new Map<string, Call>();
  #callCount = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get endsAtClose(): boolean {
    return this.#finished;
  }

  read(_frame: Frame, json: unknown): boolean {
    const chunk = object(json);
    if (chunk === null) return false;
    const rawChoices = chunk['choices'];
    if (rawChoices !== undefined && rawChoices !== null && !Array.isArray(rawChoices)) this.#sink.malformed('`choices` is not a list.');
    const choices = list(rawChoices);
    let finishes = this.#finished;
    for (const choice of choices) finishes = this.#choice(object(choice)) || finishes;
    const growth: GrowthIsToken = choices.length === 0 ? 'no' : finishes ? 'if-continuous' : 'yes';
    return this.#accounts(chunk, choices, growth) || Array.isArray(rawChoices);
  }

  /** Usage and timings, wherever this server puts them. */
  #accounts(chunk: JsonObject, choices: readonly unknown[], growth: GrowthIsToken): boolean {
    let known = false;
    const grouped = chunk['x_groq'] === undefined ? undefined : at(chunk, 'x_groq', 'usage');
    const first = object(choices[0])?.['usage'];
    const own = chunk['usage'];
    if (grouped !== undefined && grouped !== null) known = tellUsage(this.#sink, grouped, (own ?? first) ? null : growth) || known;
    if (first !== undefined && first !== null) known = tellUsage(this.#sink, first, own ? null : growth) || known;
    if (own !== undefined && own !== null) known = tellUsage(this.#sink, own, growth) || known;
    // Frames of prompt progress carry timings, but generate nothing.
    const progress = chunk['prompt_progress'] !== undefined && chunk['prompt_progress'] !== null;
    if (chunk['timings'] !== undefined) known = tellTimings(this.#sink, chunk['timings'], progress ? 'no' : growth) || known;
    tellFrameTimings(this.#sink, chunk);
    // Events of other APIs have a type of their own, and some carry usage too.
    return (known && chunk['type'] === undefined) || progress || chunk['prompt_filter_results'] !== undefined || chunk['object'] === 'chat.completion.chunk';
  }

  /** Returns whether the choice ends here. */
  #choice(choice: JsonObject | null): boolean {
    if (choice === null) return false;
    const index = count(choice['index']) ?? 0;
    const delta = object(choice['delta']);
    if (delta !== null) this.#delta(delta, index);
    else this.#withoutDelta(choice, index);
    this.#tokens(choice, delta);
    const reason = string(choice['finish_reason']) || string(choice['native_finish_reason']);
    const failed = choice['error'];
    if (failed !== undefined && failed !== null) this.#sink.error(messageIn({ error: failed }) ?? 'The server reports an error for this choice.');
    if (reason === '') return false;
    if (reason === 'error' || reason === 'abort') this.#sink.error(`The server ended the answer with finish reason \`${reason}\`.`);
    if (index === 0) this.#sink.finish(reason);
    this.#finished = true;
    return true;
  }

  #delta(delta: JsonObject, index: number): void {
    const reasoning = reasoningText(delta);
    if (reasoning !== '') this.#say('reasoning', reasoning, index);
    else if (delta['reasoning_details'] !== undefined && list(delta['reasoning_details']).some((d) => string(object(d)?.['type']).endsWith('encrypted'))) this.#sink.flag('encrypted-reasoning');
    this.#content(delta['content'], index);
    this.#say('text', string(delta['refusal']), index);
    if (delta['tool_calls'] !== undefined || delta['function_call'] !== undefined) this.#toolCalls(delta, index);
  }

  #say(kind: 'text' | 'reasoning', text: string, index: number): void {
    if (text === '') return;
    this.#anything = true;
    this.#sink.delta(kind, text, index);
  }

  /** A string, or Mistral's list of parts: thinking, text, references. */
  #content(content: unknown, index: number): void {
    if (typeof content === 'string') this.#say('text', content, index);
    else if (Array.isArray(content)) {
      for (const item of content) {
        const part = object(item);
        if (part === null) continue;
        const thinking = part['thinking'];
        if (thinking !== undefined) this.#say('reasoning', typeof thinking === 'string' ? thinking : list(thinking).map((t) => string(object(t)?.['text'])).join(''), index);
        else this.#say('text', string(part['text']), index);
      }
    } else if (content !== null && content !== undefined) this.#sink.malformed('`delta.content` is neither text nor a list.');
  }

  #toolCalls(delta: JsonObject, index: number): void {
    list(delta['tool_calls']).forEach((item, position) => {
      const piece = object(item);
      if (piece !== null) this.#call(piece, count(piece['index']) ?? position, index);
    });
    const legacy = object(delta['function_call']);
    if (legacy !== null) this.#call({ function: legacy }, -1, index);
  }

  #call(piece: JsonObject, position: number, choice: number): void {
    const fn = object(piece['function']) ?? piece;
    const id = string(piece['id']);
    const name = string(fn['name']);
    const rawArgs = fn['arguments'];
    const args = typeof rawArgs === 'string' ? rawArgs : rawArgs === undefined || rawArgs === null ? '' : JSON.stringify(rawArgs);
    const slot = `${choice}:${position}`;
    let call = this.#calls.get(slot);
    // Some servers send every parallel call under index 0 with an id of its own.
    if (call === undefined || (id !== '' && call.id !== '' && id !== call.id && name !== '')) {
      call = { key: `${slot}:${this.#callCount++}`, id, name: '' };
      this.#calls.set(slot, call);
    }
    const newName = name === call.name ? '' : name;
    call.name += newName;
    if (newName === '' && args === '') return;
    this.#anything = true;
    if (choice === 0) this.#sink.tool(call.key, newName, args);
    else this.#sink.delta('text', newName + args, choice);
  }

  /** `text` instead of `delta` (Together's base models); `message` with the whole answer, which repeats the deltas or replaces them. */
  #withoutDelta(choice: JsonObject, index: number): void {
    this.#say('text', string(choice['text']), index);
    const message = object(choice['message']);
    if (message !== null && !this.#anything) this.#delta(message, index);
  }

  #tokens(choice: JsonObject, delta: JsonObject | null): void {
    const ids = choice['token_ids'];
    if (Array.isArray(ids)) this.#sink.tokens(ids.length, 'token_ids');
    const logprobs = object(choice['logprobs']);
    if (logprobs !== null) {
      const content = list(logprobs['content']).length + list(logprobs['reasoning_content']).length + list(logprobs['refusal']).length;
      if (content > 0) this.#sink.tokens(content, 'logprobs');
    }
    if (count(delta?.['token_id']) !== undefined) this.#sink.tokens(1, 'one-per-event');
  }

  whole(json: unknown): boolean {
    const body = object(json);
    const choices = list(body?.['choices']);
    if (body === null || choices.length === 0) return false;
    for (const item of choices) {
      const choice = object(item);
      if (choice === null) continue;
      const index = count(choice['index']) ?? 0;
      const message = object(choice['message']) ?? object(choice['delta']);
      if (message !== null) this.#delta(message, index);
      else this.#say('text', string(choice['text']), index);
      if (index === 0) this.#sink.finish(string(choice['finish_reason']) || 'stop');
    }
    this.#accounts(body, choices, 'no');
    return true;
  }
}

/** Reasoning goes by four names; where a server fills several they repeat each other, so the first that says anything counts. */
function reasoningText(delta: JsonObject): string {
  const told = string(delta['reasoning_content']) || string(delta['reasoning']) || string(delta['thinking']);
  if (told !== '' || delta['reasoning_details'] === undefined) return told;
  return list(delta['reasoning_details'])
    .map((detail) => string(object(detail)?.['text']) || string(object(detail)?.['summary']))
    .join('');
}

/** Reads chat chunks for dialects that share the form. */
export function chatReader(sink: FrameSink): FrameReader {
  return new ChatReader(sink);
}

/** OpenAI chat completions and its look-alikes (vLLM, SGLang, llama.cpp, LM Studio, TGI, OpenRouter, DeepSeek, Groq, Mistral …). */
export const openaiChat: Dialect = {
  id: 'openai-chat',
  framing: 'sse',
  optional: [...openaiOptional, { field: 'max_completion_tokens', forServers: ['openai', 'azure'] }],
  request,
  reader: (sink) => chatReader(sink),
};
