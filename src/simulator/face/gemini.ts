/** Google's generateContent: SSE with `alt=sse`, else one JSON array whose elements arrive over time. */
import type { Piece } from '../answer';
import { renderChat, type TemplateMessage } from '../splitter';
import { contentText, fieldsOf, objectList, optionalCount, optionalFields, stopStrings, type Fields } from './bodyFields';
import { bearer, header, jsonReply, type Ask, type End, type Face, type Problem, type RawRequest, type Reply, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import type { PlainRoute } from './persona';
import { toolInput } from './anthropic';

const path = (verb: string): RegExp => new RegExp(`^/v1(?:beta)?(?:/projects/[^/]+/locations/[^/]+/publishers/google)?/models/([^/:]+):${verb}$`);

/** The Gemini face. */
export const gemini: Face = {
  id: 'gemini',
  routes: [
    { path: path('streamGenerateContent'), read: (request) => read(request, true), voice: (_ask, request, context) => new GeminiVoice(context, request.url.searchParams.get('alt') === 'sse') },
    { path: path('generateContent'), read: (request) => read(request, false), voice: (_ask, _request, context) => new GeminiVoice(context, true) },
  ],
  key: (request) => header(request, 'x-goog-api-key') ?? request.url.searchParams.get('key') ?? bearer(request),
  refuse,
};

/** :countTokens and the list of models. */
export const geminiRoutes: readonly PlainRoute[] = [
  { method: 'POST', path: path('countTokens'), answer: (request) => jsonReply(200, { totalTokens: promptOf(fieldsOf(request.body)).length }) },
  {
    method: 'GET',
    path: /^\/v1beta\/models$/,
    answer: (_request, { settings }) =>
      jsonReply(200, { models: [{ name: `models/${settings.servedModel}`, displayName: settings.servedModel, inputTokenLimit: settings.maxContext, supportedGenerationMethods: ['generateContent', 'countTokens'] }] }),
  },
];

function refuse(problem: Problem): Reply {
  return jsonReply(problem.status, errorBody(problem));
}

function errorBody({ status, message, retryAfter }: Problem): Record<string, unknown> {
  const names: Readonly<Record<number, string>> = { 400: 'INVALID_ARGUMENT', 401: 'UNAUTHENTICATED', 403: 'PERMISSION_DENIED', 404: 'NOT_FOUND', 429: 'RESOURCE_EXHAUSTED', 503: 'UNAVAILABLE' };
  const wait = retryAfter ?? null;
  const details = wait === null ? [] : [{ '@type': 'type.googleapis.com/google.rpc.RetryInfo', retryDelay: `${wait.toFixed(3)}s` }];
  return { error: { code: status, message, status: names[status] ?? 'INTERNAL', ...(details.length > 0 ? { details } : {}) } };
}

function promptOf(body: Fields): number[] {
  const messages: TemplateMessage[] = objectList(body, 'contents').map((content, index) => ({
    role: content.role === 'model' ? 'assistant' : 'user',
    text: contentText(content.parts, `contents[${index}].parts`),
  }));
  const system = contentText(optionalFields(body, 'systemInstruction').parts ?? optionalFields(body, 'system_instruction').parts, 'systemInstruction');
  const tools = Array.isArray(body.tools) && body.tools.length > 0 ? JSON.stringify(body.tools) : null;
  return renderChat(system === '' ? messages : [{ role: 'system', text: system }, ...messages], tools);
}

function read(request: RawRequest, stream: boolean): Ask {
  const body = fieldsOf(request.body);
  const config = optionalFields(body, 'generationConfig');
  const forced = optionalFields(optionalFields(body, 'toolConfig'), 'functionCallingConfig').mode === 'ANY';
  return {
    model: decodeURIComponent(request.match[1]!),
    prompt: promptOf(body),
    maxTokens: optionalCount(config, 'maxOutputTokens'),
    minTokens: 0,
    ignoreEos: false,
    stop: stopStrings(config, 'stopSequences'),
    stream,
    salt: '',
    seed: optionalCount(config, 'seed', 0),
    user: null,
    priority: null,
    thinking: optionalFields(config, 'thinkingConfig').thinkingBudget !== 0,
    form: forced ? { kind: 'tool', name: firstFunction(body) } : { kind: config.responseMimeType === 'application/json' ? 'json' : 'text' },
  };
}

function firstFunction(body: Fields): string {
  const declared = Array.isArray(body.tools) ? fieldsOf(body.tools[0], 'tools[0]').functionDeclarations : undefined;
  const first = Array.isArray(declared) ? fieldsOf(declared[0], 'functionDeclarations[0]').name : undefined;
  return typeof first === 'string' ? first : 'tool';
}

class GeminiVoice implements Voice {
  readonly contentType: string;
  readonly #context: VoiceContext;
  readonly #sse: boolean;
  #started = false;
  #toolText = '';
  #toolTokens = 0;

  constructor(context: VoiceContext, asSse: boolean) {
    this.#context = context;
    this.#sse = asSse;
    this.contentType = asSse ? 'text/event-stream' : 'application/json; charset=UTF-8';
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    const frames: WireFrame[] = [];
    for (const { kind, ids, text } of pieces) {
      if (kind === 'hidden') continue;
      if (kind === 'tool') {
        // A function call comes whole, in one chunk at the end.
        this.#toolText += text;
        this.#toolTokens += ids.length;
        continue;
      }
      const part = kind === 'reasoning' ? { text, thought: true } : { text };
      frames.push(this.#frame(this.#chunk([part], tally, null), ids.length));
    }
    return frames;
  }

  close(end: End): WireFrame[] {
    const parts = end.finish === 'tool' ? [this.#call(this.#toolText)] : [{ text: '' }];
    const last = this.#frame(this.#chunk(parts, end, finishReason(end)), end.finish === 'tool' ? this.#toolTokens : 0);
    return this.#sse ? [last] : [last, { data: '\n]\n', tokens: 0 }];
  }

  fail(problem: Problem): WireFrame[] {
    const text = JSON.stringify(errorBody({ ...problem, status: 503 }), null, 2);
    if (this.#sse) return [{ data: `${text}\r\n\r\n`, tokens: 0 }];
    return [{ data: `${this.#started ? ',' : '['}\n${text}\n]\n`, tokens: 0 }];
  }

  whole(end: End): unknown {
    const thoughts = end.reasoning === '' ? [] : [{ text: end.reasoning, thought: true }];
    const body = end.finish === 'tool' ? this.#call(end.toolArguments) : { text: end.text };
    return this.#chunk([...thoughts, body], end, finishReason(end));
  }

  #call(args: string): Record<string, unknown> {
    return { functionCall: { name: this.#context.answer.tool, args: toolInput(args) } };
  }

  #chunk(parts: unknown[], tally: Tally, reason: string | null): Record<string, unknown> {
    const thoughts = tally.reasoningTokens;
    const usage: Record<string, number> = { promptTokenCount: tally.promptTokens, candidatesTokenCount: tally.outputTokens - thoughts, totalTokenCount: tally.promptTokens + tally.outputTokens };
    if (thoughts > 0) usage.thoughtsTokenCount = thoughts;
    if (tally.cachedTokens > 0) usage.cachedContentTokenCount = tally.cachedTokens;
    const candidate = { content: { parts, role: 'model' }, index: 0, ...(reason === null ? {} : { finishReason: reason }) };
    return { candidates: [candidate], usageMetadata: usage, modelVersion: this.#context.model, responseId: this.#context.id };
  }

  #frame(chunk: unknown, tokens: number): WireFrame {
    const text = JSON.stringify(chunk);
    const data = this.#sse ? `data: ${text}\r\n\r\n` : `${this.#started ? '\n,\n' : '['}${text}`;
    this.#started = true;
    return { data, tokens };
  }
}

function finishReason({ finish }: End): string {
  return finish === 'length' ? 'MAX_TOKENS' : 'STOP';
}
