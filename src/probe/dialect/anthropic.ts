import type { ChatMessage } from '../../prompt/prompt';
import type { Dialect, Frame, FrameReader, FrameSink, RequestInput, Usage } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { endpointUrl, joined, markedBlocks, markField, ownFields, post, systemAndTurns, toolsOf } from './request';

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
        this.#diagnosis(object(event['message']));
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
        this.#diagnosis(object(event['delta']));
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

  /** The id to compare a later request with, and what Anthropic found when it compared this one: null for no difference, no reason while it still compares. */
  #diagnosis(message: JsonObject | null): void {
    if (string(message?.['id']) !== '') this.#sink.answerId(string(message?.['id']));
    const told = message?.['diagnostics'];
    if (told === undefined) return;
    const reason = at(told, 'cache_miss_reason');
    const type = string(at(reason, 'type'));
    const state = told === null ? 'same' : type === '' || type === 'unavailable' ? 'unknown' : type === 'previous_message_not_found' ? 'not-found' : 'changed';
    this.#sink.diagnosis({ state, reason: type === '' ? null : type, missedTokens: count(at(reason, 'cache_missed_input_tokens')) ?? null });
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
    this.#diagnosis(message);
    return true;
  }
}

const key = (event: JsonObject): number => count(event['index']) ?? 0;

/** A block's own input: whole only when it is not the empty object that deltas will fill. */
function inputOf(input: unknown): string {
  const value = object(input);
  return value === null || Object.keys(value).length === 0 ? '' : JSON.stringify(value);
}

const text = (words: string): JsonObject => ({ type: 'text', text: words });

/** Content blocks; Anthropic's API has a marker, so every marker of a prompt is sent. */
const blocks = (message: ChatMessage, own: boolean): JsonObject[] => markedBlocks(message, own, text, () => 'cache_control');

function messagesOf(input: RequestInput): JsonObject {
  const own = input.prompt.own?.api === 'anthropic';
  const { system, turns } = systemAndTurns(input.prompt, own);
  const apart = system.some(({ parts }) => parts !== undefined);
  return {
    ...(system.length === 0 ? {} : { system: apart ? system.flatMap((message) => blocks(message, own)) : joined(system) }),
    messages: turns.map((message) => ({ role: message.role === 'assistant' || (own && message.role === 'system') ? message.role : 'user', content: message.parts === undefined ? message.text : blocks(message, own) })),
  };
}

function toolsFor({ prompt }: RequestInput): readonly unknown[] {
  if (prompt.own?.api === 'anthropic') return prompt.tools;
  return toolsOf(prompt.tools).map(({ name, description, parameters, mark }) => ({ name, description, input_schema: parameters, ...(mark ? markField('cache_control', mark) : {}) }));
}

/** The file's fields; a budget for thinking that the answer's length does not leave room for would be refused. */
function fieldsOf(input: RequestInput, maxTokens: number): JsonObject {
  const fields = ownFields(input, 'anthropic');
  const budget = count(at(fields, 'thinking', 'budget_tokens'));
  return budget !== undefined && budget >= maxTokens ? { ...fields, thinking: null } : fields;
}

const beta = 'cache-diagnosis-2026-04-07';

/** The beta header of the cache diagnostics beside those that the endpoint sends: their set is part of what the cache keys by, so all requests of a proof carry it. */
function betas({ headers, ask }: RequestInput): Record<string, string | null> {
  if (!ask.has('diagnostics') || !ask.has(beta)) return {};
  const own = Object.entries(headers).filter(([name]) => name.toLowerCase() === 'anthropic-beta').map(([, value]) => value);
  return { 'anthropic-beta': [...own, beta].join(',') };
}

/** Anthropic Messages, and vLLM, llama.cpp, TensorRT-LLM and others speaking it. `max_tokens` is required, so a run without a cap sends 4096. */
export const anthropic: Dialect = {
  id: 'anthropic',
  framing: 'sse',
  optional: [
    { field: 'ignore_eos', forServers: ['llama.cpp'], when: 'fixed-length' },
    { field: 'diagnostics', forServers: ['anthropic'], when: 'diagnosing' },
    { field: beta, forServers: ['anthropic'], when: 'diagnosing' },
  ],
  request(input) {
    const maxTokens = input.maxTokens ?? 4096;
    const tools = toolsFor(input);
    const { mark } = input.prompt;
    const more = betas(input);
    const headers = 'anthropic-beta' in more ? Object.fromEntries(Object.entries(input.headers).filter(([name]) => name.toLowerCase() !== 'anthropic-beta')) : input.headers;
    return post(endpointUrl(input.url, '/messages', '/v1'), { ...input, headers }, { 'x-api-key': input.key, 'anthropic-version': '2023-06-01', ...more }, {
      model: input.model,
      max_tokens: maxTokens,
      ...(tools.length > 0 ? { tools } : {}),
      ...messagesOf(input),
      ...(mark ? markField('cache_control', mark) : {}),
      ...fieldsOf(input, maxTokens),
      stream: true,
      ...(input.compareWith !== undefined && input.ask.has('diagnostics') ? { diagnostics: { previous_message_id: input.compareWith } } : {}),
      ...(input.ask.has('ignore_eos') ? { ignore_eos: true } : {}),
    });
  },
  reader: (sink) => new MessagesReader(sink),
};
