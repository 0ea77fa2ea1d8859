import type { ChatMessage } from '../../prompt/prompt';
import type { Dialect, FrameReader, FrameSink, GrowthIsToken, RequestInput } from './dialect';
import { at, count, list, object, string, type JsonObject } from './json';
import { blockOf, joined, ownFields, post, systemAndTurns, toolsOf } from './request';

/** Finish reasons as `enum-encoding=int` numbers them. */
const finishNames: readonly string[] = ['FINISH_REASON_UNSPECIFIED', 'STOP', 'MAX_TOKENS', 'SAFETY', 'RECITATION', 'OTHER', 'BLOCKLIST', 'PROHIBITED_CONTENT', 'SPII', 'MALFORMED_FUNCTION_CALL'];

/** Reads `streamGenerateContent` chunks. Each is a whole response piece; usage in each is cumulative; the finish reason may come in every one. */
class GeminiReader implements FrameReader {
  readonly #sink: FrameSink;
  #finished = false;
  #calls = 0;

  constructor(sink: FrameSink) {
    this.#sink = sink;
  }

  get endsAtClose(): boolean {
    return this.#finished;
  }

  read(_frame: unknown, json: unknown): boolean {
    return this.#chunk(object(json), false);
  }

  whole(json: unknown): boolean {
    return this.#chunk(object(json), true);
  }

  #chunk(outer: JsonObject | null, whole: boolean): boolean {
    // Some gateways wrap each chunk in `response`.
    const chunk = object(outer?.['response']) ?? outer;
    if (chunk === null) return false;
    let ends = false;
    const candidates = list(chunk['candidates']);
    for (const value of candidates) ends = this.#candidate(object(value)) || ends;
    const blocked = at(chunk, 'promptFeedback', 'blockReason');
    if (blocked !== undefined && blocked !== null) {
      this.#sink.finish(`PROMPT_BLOCKED:${typeof blocked === 'string' ? blocked : JSON.stringify(blocked)}`);
      this.#finished = true;
    }
    const usage = object(chunk['usageMetadata']);
    if (usage !== null) this.#usage(usage, whole || candidates.length === 0 ? 'no' : ends ? 'if-continuous' : 'yes');
    return Array.isArray(chunk['candidates']) || usage !== null || chunk['promptFeedback'] !== undefined;
  }

  #candidate(candidate: JsonObject | null): boolean {
    if (candidate === null) return false;
    const index = count(candidate['index']) ?? 0;
    const parts = at(candidate, 'content', 'parts');
    if (parts !== undefined && parts !== null && !Array.isArray(parts)) this.#sink.malformed('`parts` is not a list.');
    for (const value of list(parts)) this.#part(object(value), index);
    const reason = candidate['finishReason'];
    const name = typeof reason === 'number' ? (finishNames[reason] ?? String(reason)) : string(reason);
    if (name === '' || name === 'FINISH_REASON_UNSPECIFIED') return false;
    if (index === 0) this.#sink.finish(name);
    this.#finished = true;
    return true;
  }

  #part(part: JsonObject | null, index: number): void {
    if (part === null) return;
    const text = string(part['text']);
    if (part['thought'] === true) {
      if (text !== '') this.#sink.flag('reasoning-summary');
      this.#sink.delta('reasoning', text, index);
    } else this.#sink.delta('text', text, index);
    const call = object(part['functionCall']);
    if (call !== null && index === 0) this.#sink.tool(this.#calls++, string(call['name']), JSON.stringify(call['args'] ?? {}));
    const code = object(part['executableCode']);
    if (code !== null && index === 0) this.#sink.tool(this.#calls++, 'executableCode', string(code['code']));
  }

  #usage(usage: JsonObject, growth: GrowthIsToken): void {
    const visible = count(usage['candidatesTokenCount']);
    const thoughts = count(usage['thoughtsTokenCount']);
    const output = visible === undefined && thoughts === undefined ? undefined : (visible ?? 0) + (thoughts ?? 0);
    this.#sink.usage({ prompt: count(usage['promptTokenCount']), output, reasoning: thoughts, cached: count(usage['cachedContentTokenCount']) });
    if (output !== undefined) this.#sink.running(output, 'usage-difference', growth, thoughts);
  }
}

/** An origin, `…/v1beta`, `…/models/{m}` or the full path; Vertex project paths likewise. SSE is asked for unless the URL says otherwise. */
function geminiUrl(input: RequestInput): string {
  const url = new URL(input.url);
  let path = url.pathname.replace(/\/+$/, '');
  if (!/:(?:stream)?[gG]enerateContent$/.test(path)) {
    if (path === '') path = '/v1beta';
    if (!/\/models\/[^/]+$/.test(path)) path = `${path.replace(/\/models$/, '')}/models/${(input.model ?? '').replace(/^models\//, '')}`;
    path += ':streamGenerateContent';
  } else path = path.replace(/:generateContent$/, ':streamGenerateContent');
  url.pathname = path;
  if (!url.searchParams.has('alt') && !url.searchParams.has('$alt')) url.searchParams.set('alt', 'sse');
  return url.href;
}

/** Google Gemini and Vertex AI. A key goes into a header, never into the URL; Vertex wants it as a bearer token. */
export const gemini: Dialect = {
  id: 'gemini',
  framing: 'sse-or-json-array',
  optional: [],
  request(input) {
    const { prompt } = input;
    const own = prompt.own?.api === 'gemini';
    const { system, turns } = systemAndTurns(prompt);
    const vertex = new URL(input.url).hostname.endsWith('aiplatform.googleapis.com');
    const tools = own ? prompt.tools : prompt.tools.length > 0 ? [{ functionDeclarations: toolsOf(prompt.tools).map(({ name, description, parameters }) => ({ name, description, parameters })) }] : [];
    const parts = ({ parts: blocks, text }: ChatMessage): JsonObject[] => (own && blocks !== undefined ? blocks.map((part) => blockOf(part, own, (words) => ({ text: words }))).filter((block) => block !== null) : [{ text }]);
    return post(geminiUrl(input), input, vertex ? { authorization: input.key === null ? null : `Bearer ${input.key}` } : { 'x-goog-api-key': input.key }, {
      ...(system.length === 0 ? {} : { systemInstruction: { parts: own ? system.flatMap(parts) : [{ text: joined(system) }] } }),
      contents: turns.map((message) => ({ role: message.role === 'assistant' ? 'model' : 'user', parts: parts(message) })),
      ...(tools.length > 0 ? { tools } : {}),
      ...ownFields(input, 'gemini'),
      ...(input.maxTokens === null ? {} : { generationConfig: { maxOutputTokens: input.maxTokens } }),
    });
  },
  reader: (sink) => new GeminiReader(sink),
};
