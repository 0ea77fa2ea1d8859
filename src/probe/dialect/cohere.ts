import type { Dialect, Frame, FrameReader, FrameSink } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { bearer, chatMessages, endpointUrl, functionTools, post } from './request';

const structure = /^(?:message-start|content-start|content-end|tool-call-end|citation-start|citation-end|debug)$/;

/** Reads v2 chat events. The tool plan is the model thinking aloud, so it is reasoning; tokens generated, not tokens billed, are counted. */
class CohereReader implements FrameReader {
  readonly #sink: FrameSink;
  readonly endsAtClose = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  read(frame: Frame, json: unknown): boolean {
    const event = object(json);
    if (event === null) return false;
    const type = string(event['type']) || frame.event;
    const message = object(at(event, 'delta', 'message'));
    const key = count(event['index']) ?? 0;
    const call = object(at(message, 'tool_calls', 'function'));
    switch (type) {
      case 'content-delta':
        this.#sink.delta('text', string(at(message, 'content', 'text')));
        this.#sink.delta('reasoning', string(at(message, 'content', 'thinking')));
        break;
      case 'tool-plan-delta':
        this.#sink.delta('reasoning', string(message?.['tool_plan']));
        break;
      case 'tool-call-start':
      case 'tool-call-delta':
        this.#sink.tool(key, string(call?.['name']), string(call?.['arguments']));
        break;
      case 'message-end':
        this.#over(object(event['delta']));
        break;
      default:
        return structure.test(type);
    }
    return true;
  }

  #over(delta: JsonObject | null): void {
    const reason = string(delta?.['finish_reason']);
    if (reason !== '') this.#sink.finish(reason);
    if (/^ERROR|^TIMEOUT/.test(reason)) this.#sink.error(string(delta?.['error']) || `The server ended the answer with finish reason \`${reason}\`.`);
    this.#usage(object(delta?.['usage']));
    this.#sink.terminal();
  }

  #usage(usage: JsonObject | null): void {
    const output = count(at(usage, 'tokens', 'output_tokens')) ?? count(at(usage, 'billed_units', 'output_tokens'));
    const prompt = count(at(usage, 'tokens', 'input_tokens')) ?? count(at(usage, 'billed_units', 'input_tokens'));
    this.#sink.usage({ prompt, output, cached: count(usage?.['cached_tokens']) });
  }

  whole(json: unknown): boolean {
    const body = object(json);
    const message = object(body?.['message']);
    if (body === null || message === null) return false;
    this.#sink.delta('reasoning', string(message['tool_plan']));
    for (const value of list(message['content'])) {
      this.#sink.delta('reasoning', string(object(value)?.['thinking']));
      this.#sink.delta('text', string(object(value)?.['text']));
    }
    list(message['tool_calls']).forEach((value, index) => {
      const call = object(object(value)?.['function']);
      if (call !== null) this.#sink.tool(index, string(call['name']), string(call['arguments']));
    });
    if (string(body['finish_reason']) !== '') this.#sink.finish(string(body['finish_reason']));
    this.#usage(object(body['usage']));
    return true;
  }
}

/** Cohere v2. */
export const cohere: Dialect = {
  id: 'cohere',
  framing: 'sse',
  optional: [],
  request: (input) =>
    post(endpointUrl(input.url, '/chat', '/v2'), input, bearer(input.key), {
      model: input.model,
      messages: chatMessages(input.prompt, false),
      ...(input.prompt.tools.length > 0 ? { tools: functionTools(input.prompt) } : {}),
      stream: true,
      max_tokens: input.maxTokens,
    }),
  reader: (sink) => new CohereReader(sink),
};
