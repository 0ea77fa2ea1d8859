import type { ChatMessage } from '../../prompt/prompt';
import type { Dialect, Frame, FrameReader, FrameSink, RequestInput } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { messageIn } from '../serverError';
import { bearer, blockOf, joined, markField, ownFields, post, systemAndTurns, toolsOf, withEndMark } from './request';

/** Reads ConverseStream messages; the event type is in the frame, or, where a file holds payloads alone, the only key of the object. */
class ConverseReader implements FrameReader {
  readonly #sink: FrameSink;
  #stopped = false;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get endsAtClose(): boolean {
    return this.#stopped;
  }

  read(frame: Frame, json: unknown): boolean {
    const body = object(json);
    if (body === null) return false;
    const name = frame.event !== '' ? frame.event : (Object.keys(body)[0] ?? '');
    const event = frame.event !== '' ? body : (object(body[name]) ?? body);
    if (frame.messageType === 'exception' || frame.messageType === 'error' || name.endsWith('Exception')) {
      this.#sink.error(`${name}: ${messageIn(event) ?? 'no message'}`);
      return true;
    }
    switch (name) {
      case 'contentBlockStart':
        this.#start(event);
        break;
      case 'contentBlockDelta':
        this.#delta(event, object(event['delta']));
        break;
      case 'messageStop':
        this.#stopped = true;
        if (string(event['stopReason']) !== '') this.#sink.finish(string(event['stopReason']));
        break;
      case 'metadata':
        this.#metadata(event);
        this.#sink.terminal();
        break;
      default:
        return name === 'messageStart' || name === 'contentBlockStop';
    }
    return true;
  }

  #start(event: JsonObject): void {
    const tool = object(at(event, 'start', 'toolUse'));
    if (tool !== null) this.#sink.toolFrame(count(event['contentBlockIndex']) ?? 0, string(tool['name']), '');
  }

  #delta(event: JsonObject, delta: JsonObject | null): void {
    if (delta === null) return;
    if (delta['text'] !== undefined) this.#sink.delta('text', string(delta['text']));
    const reasoning = object(delta['reasoningContent']);
    if (reasoning !== null) {
      this.#sink.delta('reasoning', string(reasoning['text']));
      if (reasoning['redactedContent'] !== undefined) this.#sink.flag('hidden-reasoning-unknown');
    }
    const tool = object(delta['toolUse']);
    if (tool !== null) this.#sink.tool(count(event['contentBlockIndex']) ?? 0, '', string(tool['input']));
  }

  #metadata(event: JsonObject): void {
    this.#usage(object(event['usage']));
    const latency = count(at(event, 'metrics', 'latencyMs'));
    if (latency !== undefined) this.#sink.timing({ name: 'metrics.latencyMs', ms: latency, covers: 'total' });
  }

  /** `inputTokens` leaves the cache out, as at Anthropic. */
  #usage(usage: JsonObject | null): void {
    const input = count(usage?.['inputTokens']);
    const read = count(usage?.['cacheReadInputTokens']);
    const written = count(usage?.['cacheWriteInputTokens']);
    this.#sink.usage({ prompt: input === undefined ? undefined : input + (read ?? 0) + (written ?? 0), output: count(usage?.['outputTokens']), cached: read, cacheWrite: written });
  }

  whole(json: unknown): boolean {
    const body = object(json);
    const content = at(body, 'output', 'message', 'content');
    if (body === null || !Array.isArray(content)) return false;
    list(content).forEach((value, index) => {
      const block = object(value);
      this.#sink.delta('reasoning', string(at(block, 'reasoningContent', 'reasoningText', 'text')));
      this.#sink.delta('text', string(block?.['text']));
      const tool = object(block?.['toolUse']);
      if (tool !== null) this.#sink.tool(index, string(tool['name']), JSON.stringify(tool['input'] ?? {}));
    });
    if (string(body['stopReason']) !== '') this.#sink.finish(string(body['stopReason']));
    this.#usage(object(body['usage']));
    return true;
  }
}

function bedrockUrl(input: RequestInput): string {
  const url = new URL(input.url);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/converse(?:-stream)?$/, '');
  url.pathname = `${/\/model\/[^/]+$/.test(path) ? path : `${path}/model/${encodeURIComponent(input.model ?? '')}`}/converse-stream`;
  return url.href;
}

/** Content blocks; a marker is a block of its own behind the one that it ends. */
function blocks(message: ChatMessage, own: boolean): JsonObject[] {
  return (message.parts ?? [{ text: message.text }]).flatMap((part) => {
    const block = blockOf(part, own, (text) => ({ text }));
    return [...(block === null ? [] : [block]), ...(part.mark ? [markField('cachePoint', part.mark)] : [])];
  });
}

/** Amazon Bedrock ConverseStream with a bearer key. */
export const bedrock: Dialect = {
  id: 'bedrock',
  framing: 'aws-eventstream',
  optional: [],
  request(input) {
    const prompt = withEndMark(input.prompt);
    const own = prompt.own?.api === 'bedrock';
    const { system, turns } = systemAndTurns(prompt);
    const tools = own ? prompt.tools : toolsOf(prompt.tools).flatMap(({ name, description, parameters, mark }) => [{ toolSpec: { name, description, inputSchema: { json: parameters } } }, ...(mark ? [markField('cachePoint', mark)] : [])]);
    return post(bedrockUrl(input), input, { ...bearer(input.key), accept: 'application/vnd.amazon.eventstream' }, {
      messages: turns.map((message) => ({ role: message.role === 'assistant' ? 'assistant' : 'user', content: blocks(message, own) })),
      ...(system.length === 0 ? {} : { system: system.some(({ parts }) => parts !== undefined) ? system.flatMap((message) => blocks(message, own)) : [{ text: joined(system) }] }),
      ...(input.maxTokens === null ? {} : { inferenceConfig: { maxTokens: input.maxTokens } }),
      ...(tools.length > 0 ? { toolConfig: { tools } } : {}),
      ...ownFields(input, 'bedrock'),
    });
  },
  reader: (sink) => new ConverseReader(sink),
};
