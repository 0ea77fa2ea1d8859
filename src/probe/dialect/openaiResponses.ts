import type { CacheDiagnosis, Dialect, Frame, FrameReader, FrameSink, RequestInput } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { messageIn } from '../serverError';
import { openaiUsage } from './openaiUsage';
import { bearer, endpointUrl, openaiMessages, ownFields, post, toolsOf } from './request';

/** Output items are told apart by their index: some proxies give one item a new id in every event. */
const keyOf = (event: JsonObject): string => String(count(event['output_index']) ?? string(event['item_id']));

/** Reads the typed events of the Responses API. Only `*.delta` events generate; `*.done` repeat. */
class ResponsesReader implements FrameReader {
  readonly #sink: FrameSink;
  readonly endsAtClose = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(frame: Frame, json: unknown): boolean {
    const event = object(json);
    if (event === null) return false;
    const type = string(event['type']) || frame.event;
    switch (type) {
      case 'response.output_text.delta':
      case 'response.refusal.delta':
        this.#delta('text', event);
        break;
      case 'response.reasoning_summary_text.delta':
      case 'response.reasoning_summary.delta':
        this.#sink.flag('reasoning-summary');
        this.#delta('reasoning', event);
        break;
      case 'response.reasoning_text.delta':
      case 'response.reasoning.delta':
        this.#delta('reasoning', event);
        break;
      case 'response.function_call_arguments.delta':
      case 'response.custom_tool_call_input.delta':
      case 'response.mcp_call_arguments.delta':
      case 'response.mcp_call.arguments_delta':
        this.#sink.tool(keyOf(event), '', string(event['delta']));
        break;
      case 'response.function_call_arguments.done':
      case 'response.custom_tool_call_input.done':
        this.#sink.toolFrame(keyOf(event), string(event['name']), string(event['arguments']) || string(event['input']));
        break;
      case 'response.output_item.added':
      case 'response.output_item.done':
        this.#item(object(event['item']), keyOf(event));
        break;
      case 'response.completed':
      case 'response.incomplete':
      case 'response.failed':
      case 'response.cancelled':
        this.#over(type, object(event['response']));
        break;
      default:
        return type.startsWith('response.') || type === 'error' || type === 'keepalive' || type === 'ping';
    }
    return true;
  }

  #delta(kind: 'text' | 'reasoning', event: JsonObject): void {
    const delta = event['delta'];
    if (typeof delta !== 'string') {
      this.#sink.malformed(`\`delta\` of ${string(event['type'])} is no text.`);
      return;
    }
    this.#sink.delta(kind, delta);
    const logprobs = list(event['logprobs']).length;
    if (logprobs > 0) this.#sink.tokens(logprobs, 'logprobs');
  }

  #item(item: JsonObject | null, key: string): void {
    const type = string(item?.['type']);
    if (item === null || !/call$/.test(type) || string(item['name']) === '') return;
    this.#sink.toolFrame(key, string(item['name']), string(item['arguments']) || string(item['input']));
  }

  #over(type: string, response: JsonObject | null): void {
    const usage = openaiUsage(response?.['usage'], (flag) => this.#sink.flag(flag));
    if (usage !== null) this.#sink.usage(usage);
    this.#diagnosis(response);
    const status = type.slice('response.'.length);
    const reason = string(object(response?.['incomplete_details'])?.['reason']);
    this.#sink.finish(reason === '' ? status : reason);
    if (status === 'failed') this.#sink.error(messageIn({ error: response?.['error'] }) ?? 'The response failed.');
    this.#sink.terminal();
  }

  #diagnosis(response: JsonObject | null): void {
    if (string(response?.['id']) !== '') this.#sink.answerId(string(response?.['id']));
    const told = object(response?.['prompt_cache_diagnostics']);
    if (told === null) return;
    const states: Readonly<Record<string, CacheDiagnosis['state']>> = { cache_hit: 'same', cache_miss: 'changed', comparison_response_not_found: 'not-found' };
    const type = string(told['type']);
    const reason = string(told['reason']) || string(at(told, 'reason', 'type'));
    this.#sink.diagnosis({ state: states[type] ?? 'unknown', reason: reason !== '' ? reason : type === 'cache_hit' || type === '' ? null : type, missedTokens: count(told['cache_missed_tokens']) ?? null });
  }

  whole(json: unknown): boolean {
    const response = object(json);
    if (response === null || !Array.isArray(response['output'])) return false;
    list(response['output']).forEach((value, at) => {
      const item = object(value);
      if (item === null) return;
      if (string(item['type']) === 'reasoning') {
        for (const part of [...list(item['summary']), ...list(item['content'])]) this.#sink.delta('reasoning', string(object(part)?.['text']));
      } else if (string(item['type']) === 'message') {
        for (const part of list(item['content'])) this.#sink.delta('text', string(object(part)?.['text']) || string(object(part)?.['refusal']));
      } else if (/call$/.test(string(item['type']))) this.#sink.tool(at, string(item['name']), string(item['arguments']) || string(item['input']));
    });
    this.#over(`response.${string(response['status']) || 'completed'}`, response);
    return true;
  }
}

const comparison = 'prompt_cache_options.comparison_response_id';

/** Tools lie flat in this API. */
function toolsFor({ prompt }: RequestInput): readonly unknown[] {
  if (prompt.own?.api === 'responses') return prompt.tools;
  return toolsOf(prompt.tools).map(({ name, description, parameters }) => ({ type: 'function', name, description, parameters }));
}

/** OpenAI Responses, and LM Studio, vLLM, Ollama, llama.cpp, OpenRouter, DeepSeek, Bedrock speaking it. */
export const openaiResponses: Dialect = {
  id: 'openai-responses',
  framing: 'sse',
  optional: [
    { field: 'stream_options.include_obfuscation', forServers: ['openai'] },
    { field: 'ignore_eos', forServers: ['vllm'], when: 'fixed-length' },
    { field: comparison, forServers: ['openai'], when: 'diagnosing' },
  ],
  request(input) {
    const tools = toolsFor(input);
    const fields = ownFields(input, 'responses');
    const instructions = input.prompt.own?.api === 'responses' ? input.prompt.messages.find((message) => message.instructions) : undefined;
    return post(endpointUrl(input.url, '/responses', '/v1'), input, bearer(input.key), {
      model: input.model,
      ...(instructions ? { instructions: instructions.text } : {}),
      input: openaiMessages(input, 'responses', true),
      ...(tools.length > 0 ? { tools } : {}),
      ...fields,
      stream: true,
      max_output_tokens: input.maxTokens,
      ...(typeof input.compareWith === 'string' && input.ask.has(comparison) ? { prompt_cache_options: { ...object(fields['prompt_cache_options']), comparison_response_id: input.compareWith } } : {}),
      ...(input.ask.has('stream_options.include_obfuscation') ? { stream_options: { include_obfuscation: false } } : {}),
      ...(input.ask.has('ignore_eos') ? { ignore_eos: true } : {}),
    });
  },
  reader: (sink) => new ResponsesReader(sink),
};
