import type { Dialect, Frame, FrameReader, FrameSink, Usage } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { endpointUrl, post, systemAndTurns, toolParts } from './request';

const structure: ReadonlySet<string> = new Set(['message_start', 'content_block_start', 'content_block_stop', 'ping', 'message_delta', 'message_stop', 'error']);

/** Reads Messages events. Usage is cumulative and may be revised, so the last of each field counts; `input_tokens` leaves the cache out. */
class MessagesReader implements FrameReader {
  readonly #sink: FrameSink;
  #input: number | undefined;
  #read: number | undefined;
  #written: number | undefined;
  readonly endsAtClose = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(frame: Frame, json: unknown): boolean {
    const event = object(json);
    if (event === null) return false;
    const type = string(event['type']) || frame.event;
    switch (type) {
      case 'message_start':
        this.#usage(object(at(event, 'message', 'usage')));
        break;
      case 'content_block_start':
        this.#block(event, object(event['content_block']));
        break;
      case 'content_block_delta':
        this.#delta(event, object(event['delta']));
        break;
      case 'message_delta':
        this.#usage(object(event['usage']));
        this.#finish(at(event, 'delta', 'stop_reason'));
        break;
      case 'message_stop':
        this.#metrics(object(event['amazon-bedrock-invocationMetrics']));
        this.#sink.terminal();
        break;
      default:
        return structure.has(type);
    }
    return true;
  }

  #block(event: JsonObject, block: JsonObject | null): void {
    if (block === null) return;
    const type = string(block['type']);
    if (type === 'redacted_thinking') this.#sink.flag('hidden-reasoning-unknown');
    else if (type.endsWith('tool_use')) this.#sink.toolFrame(key(event), string(block['name']), inputOf(block['input']));
    else if (type === 'text') this.#sink.delta('text', string(block['text']));
    else if (type === 'thinking') this.#sink.delta('reasoning', string(block['thinking']));
  }

  #delta(event: JsonObject, delta: JsonObject | null): void {
    switch (string(delta?.['type'])) {
      case 'text_delta':
        this.#sink.delta('text', string(delta?.['text']));
        break;
      case 'thinking_delta':
        this.#sink.delta('reasoning', string(delta?.['thinking']));
        break;
      case 'input_json_delta':
        this.#sink.tool(key(event), '', string(delta?.['partial_json']));
        break;
      case '':
        this.#sink.malformed('`delta` has no type.');
        break;
    }
  }

  #finish(reason: unknown): void {
    if (string(reason) !== '') this.#sink.finish(string(reason));
  }

  #usage(usage: JsonObject | null): void {
    if (usage === null) return;
    this.#input = count(usage['input_tokens']) ?? this.#input;
    this.#read = count(usage['cache_read_input_tokens']) ?? this.#read;
    this.#written = count(usage['cache_creation_input_tokens']) ?? this.#written;
    const prompt = this.#input === undefined ? undefined : this.#input + (this.#read ?? 0) + (this.#written ?? 0);
    const told: Usage = {
      prompt,
      output: count(usage['output_tokens']),
      reasoning: count(at(usage, 'output_tokens_details', 'thinking_tokens')),
      cached: this.#read,
      cacheWrite: this.#written,
    };
    this.#sink.usage(told);
  }

  #metrics(metrics: JsonObject | null): void {
    const total = count(metrics?.['invocationLatency']);
    const first = count(metrics?.['firstByteLatency']);
    if (total !== undefined) this.#sink.timing({ name: 'amazon-bedrock-invocationMetrics.invocationLatency', ms: total, covers: 'total' });
    if (first !== undefined) this.#sink.timing({ name: 'amazon-bedrock-invocationMetrics.firstByteLatency', ms: first, covers: 'ttft' });
  }

  whole(json: unknown): boolean {
    const message = object(json);
    if (message === null || !Array.isArray(message['content'])) return false;
    list(message['content']).forEach((value, index) => {
      const block = object(value);
      const type = string(block?.['type']);
      if (type === 'text') this.#sink.delta('text', string(block?.['text']));
      else if (type === 'thinking') this.#sink.delta('reasoning', string(block?.['thinking']));
      else if (type.endsWith('tool_use')) this.#sink.tool(index, string(block?.['name']), JSON.stringify(block?.['input'] ?? {}));
    });
    this.#usage(object(message['usage']));
    this.#finish(message['stop_reason']);
    return true;
  }
}

const key = (event: JsonObject): number => count(event['index']) ?? 0;

/** A block's own input: whole only when it is not the empty object that deltas will fill. */
function inputOf(input: unknown): string {
  const value = object(input);
  return value === null || Object.keys(value).length === 0 ? '' : JSON.stringify(value);
}

/** Anthropic Messages, and vLLM, llama.cpp, TensorRT-LLM and others speaking it. `max_tokens` is required, so a run without a cap sends 4096. */
export const anthropic: Dialect = {
  id: 'anthropic',
  framing: 'sse',
  optional: [{ field: 'ignore_eos', forServers: ['llama.cpp'], when: 'fixed-length' }],
  request(input) {
    const { system, turns } = systemAndTurns(input.prompt);
    const tools = input.prompt.tools.map(toolParts).map(({ name, description, parameters }) => ({ name, description, input_schema: parameters }));
    return post(endpointUrl(input.url, '/messages', '/v1'), input, { 'x-api-key': input.key, 'anthropic-version': '2023-06-01' }, {
      model: input.model,
      max_tokens: input.maxTokens ?? 4096,
      ...(system === '' ? {} : { system }),
      messages: turns.map(({ role, text }) => ({ role, content: text })),
      ...(tools.length > 0 ? { tools } : {}),
      stream: true,
      ...(input.ask.has('ignore_eos') ? { ignore_eos: true } : {}),
    });
  },
  reader: (sink) => new MessagesReader(sink),
};
