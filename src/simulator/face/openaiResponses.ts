/** POST /v1/responses: typed events with sequence numbers. */
import type { Piece } from '../answer';
import { changeSince, type Fingerprint } from '../answerMemory';
import type { CachePoints } from '../breakpointCache';
import { contentParts, fieldsOf, invalid, optionalBoolean, optionalCount, optionalFields, optionalString, type Fields } from './bodyFields';
import { fingerprint, openaiPoints, render, slotText, toolBlocks, writtenTokens, type CacheBlock } from './cacheBlocks';
import { bearer, sse, type Ask, type End, type Face, type Problem, type RawRequest, type Voice, type VoiceContext, type WireFrame } from './face';
import { refuseLikeOpenai } from './openaiErrors';
import { cachesByBreakpoints } from './openaiModels';

/** The Responses face. */
export const openaiResponses: Face = {
  id: 'openai-responses',
  routes: [{ path: /^(?:\/openai)?(?:\/v1)?\/responses$/, read, points, voice: (ask, request, context) => new ResponsesVoice(ask, request, context) }],
  key: bearer,
  refuse: refuseLikeOpenai,
};

function read(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const tools = Array.isArray(body.tools) && body.tools.length > 0 ? body.tools : null;
  const forced = tools !== null && body.tool_choice !== undefined && body.tool_choice !== 'auto' && body.tool_choice !== 'none';
  const name = forced ? fieldsOf(tools[0], 'tools[0]').name : null;
  return {
    model: optionalString(body, 'model'),
    prompt: render(blocksOf(body)).prompt,
    maxTokens: optionalCount(body, 'max_output_tokens'),
    minTokens: 0,
    ignoreEos: optionalBoolean(body, 'ignore_eos', false),
    stop: [],
    stream: optionalBoolean(body, 'stream', false),
    salt: optionalString(body, 'cache_salt') ?? '',
    seed: null,
    user: optionalString(body, 'user'),
    priority: optionalCount(body, 'priority', -1_000_000),
    thinking: optionalFields(body, 'reasoning').effort !== 'none',
    form: forced ? { kind: 'tool', name: typeof name === 'string' ? name : 'tool' } : { kind: 'text' },
  };
}

function blocksOf(body: Fields): CacheBlock[] {
  const { input } = body;
  const instructions = optionalString(body, 'instructions');
  const tools = Array.isArray(body.tools) ? toolBlocks(body.tools as readonly unknown[], () => null) : [];
  const system: CacheBlock[] = instructions === null ? [] : [{ slot: 'system', role: 'system', message: -1, text: instructions, mark: null }];
  if (typeof input === 'string') return [...tools, ...system, { slot: 'messages', role: 'user', message: 0, text: input, mark: null }];
  if (!Array.isArray(input) || input.length === 0) throw invalid('input', 'input: a string or a list that is not empty is expected.');
  const messages = input.flatMap((item: unknown, index) => {
    const fields = fieldsOf(item, `input[${index}]`);
    const role = [fields.role, fields.type].find((name) => typeof name === 'string') ?? 'user';
    return contentParts(fields.content ?? fields.output, `input[${index}].content`).map(({ text, part }): CacheBlock => ({ slot: 'messages', role, message: index, text, mark: 'prompt_cache_breakpoint' in part ? 1 : null }));
  });
  return [...tools, ...system, ...messages];
}

function points({ body }: RawRequest): CachePoints | null {
  const fields = fieldsOf(body);
  return cachesByBreakpoints(fields.model) ? openaiPoints(blocksOf(fields), optionalFields(fields, 'prompt_cache_options').mode === 'explicit') : null;
}

/** The settings that the cache keys by, in the order in which a change is told. */
function settingsOf(body: Fields, blocks: readonly CacheBlock[], model: string): Fingerprint['settings'] {
  const value = (field: unknown): string => JSON.stringify(field ?? null);
  return [
    ['model_changed', model],
    ['prompt_cache_key_changed', value(body.prompt_cache_key)],
    ['service_tier_changed', value(body.service_tier)],
    ['tools_changed', slotText(blocks, 'tools')],
    ['text_format_changed', value(optionalFields(body, 'text').format)],
    ['reasoning_effort_changed', value(optionalFields(body, 'reasoning').effort)],
    ['verbosity_changed', value(optionalFields(body, 'text').verbosity)],
    ['input_changed', slotText(blocks, 'system')],
  ];
}

/** What the comparison that was asked for gives; every answer is remembered for a later one. */
function diagnose(body: Fields, { id, model, memory }: VoiceContext): Record<string, unknown> {
  const blocks = blocksOf(body);
  const now = fingerprint(blocks, settingsOf(body, blocks, model));
  memory.remember(`resp_${id}`, now);
  const compared = optionalString(optionalFields(body, 'prompt_cache_options'), 'comparison_response_id');
  if (compared === null) return {};
  const before = memory.find(compared);
  if (before === null) return { prompt_cache_diagnostics: { type: 'comparison_response_not_found' } };
  const change = changeSince(before, now, 'input_changed');
  return { prompt_cache_diagnostics: change === null ? { type: 'cache_hit' } : { type: 'cache_miss', reason: change.change, cache_missed_tokens: change.missed, comparison_reusable_tokens: change.reusable } };
}

type ItemKind = 'reasoning' | 'text' | 'tool';

class ResponsesVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #context: VoiceContext;
  readonly #points: CachePoints | undefined;
  readonly #diagnostics: Record<string, unknown>;
  readonly #done: Record<string, unknown>[] = [];
  #sequence = 0;
  #open: { readonly kind: ItemKind; text: string } | null = null;

  constructor(ask: Ask, { body }: RawRequest, context: VoiceContext) {
    this.#context = context;
    this.#points = ask.points;
    this.#diagnostics = context.flavour.server === 'openai' ? diagnose(fieldsOf(body), context) : {};
  }

  open(): WireFrame[] {
    return [this.#event('response.created', { response: this.#response('in_progress') }), this.#event('response.in_progress', { response: this.#response('in_progress') })];
  }

  say(pieces: readonly Piece[]): WireFrame[] {
    return pieces.flatMap(({ kind, ids, text }) => {
      if (kind === 'hidden') return [];
      const frames = this.#open?.kind === kind ? [] : [...this.#closeItem(), ...this.#openItem(kind)];
      this.#open!.text += text;
      return [...frames, this.#event(deltaType[kind], { ...this.#place(kind), delta: text }, ids.length)];
    });
  }

  close(end: End): WireFrame[] {
    const frames = this.#closeItem();
    const complete = end.finish !== 'length';
    const details = complete ? {} : { incomplete_details: { reason: 'max_output_tokens' } };
    const response = { ...this.#response(complete ? 'completed' : 'incomplete'), ...details, output: this.#done, ...this.#diagnostics, usage: usage(end, this.#points) };
    return [...frames, this.#event(complete ? 'response.completed' : 'response.incomplete', { response })];
  }

  fail(problem: Problem): WireFrame[] {
    const error = { code: problem.code, message: problem.message };
    return [this.#event('error', { ...error, param: problem.field ?? null }), this.#event('response.failed', { response: { ...this.#response('failed'), error } })];
  }

  whole(end: End): unknown {
    const output: Record<string, unknown>[] = [];
    if (end.reasoning !== '') output.push(this.#item('reasoning', end.reasoning, 'completed', 0));
    if (end.finish === 'tool') output.push(this.#item('tool', end.toolArguments, 'completed', output.length));
    else output.push(this.#item('text', end.text, 'completed', output.length));
    return { ...this.#response(end.finish === 'length' ? 'incomplete' : 'completed'), output, ...this.#diagnostics, usage: usage(end, this.#points) };
  }

  #event(type: string, fields: Record<string, unknown>, tokens = 0): WireFrame {
    return sse({ type, sequence_number: this.#sequence++, ...fields }, tokens, type);
  }

  #response(status: string): Record<string, unknown> {
    const { id, created, model } = this.#context;
    return { id: `resp_${id}`, object: 'response', created_at: created, status, model, output: [], error: null, usage: null };
  }

  #place(kind: ItemKind): Record<string, unknown> {
    const index = this.#done.length;
    return { item_id: this.#itemId(kind, index), output_index: index, ...(kind === 'tool' ? {} : { content_index: 0 }) };
  }

  #itemId(kind: ItemKind, index: number): string {
    return `${{ reasoning: 'rs', text: 'msg', tool: 'fc' }[kind]}_${this.#context.id}_${index}`;
  }

  #item(kind: ItemKind, text: string, status: string, index: number): Record<string, unknown> {
    const id = this.#itemId(kind, index);
    if (kind === 'tool') return { id, type: 'function_call', status, call_id: `call_${this.#context.id}`, name: this.#context.answer.tool, arguments: text };
    const content = text === '' && status === 'in_progress' ? [] : [contentPart(kind, text)];
    return kind === 'reasoning' ? { id, type: 'reasoning', status, summary: [], content } : { id, type: 'message', status, role: 'assistant', content };
  }

  #openItem(kind: ItemKind): WireFrame[] {
    this.#open = { kind, text: '' };
    const added = this.#event('response.output_item.added', { output_index: this.#done.length, item: this.#item(kind, '', 'in_progress', this.#done.length) });
    return kind === 'tool' ? [added] : [added, this.#event('response.content_part.added', { ...this.#place(kind), part: contentPart(kind, '') })];
  }

  #closeItem(): WireFrame[] {
    if (!this.#open) return [];
    const { kind, text } = this.#open;
    this.#open = null;
    const place = this.#place(kind);
    const frames = [this.#event(deltaType[kind].replace('.delta', '.done'), { ...place, [kind === 'tool' ? 'arguments' : 'text']: text })];
    if (kind !== 'tool') frames.push(this.#event('response.content_part.done', { ...place, part: contentPart(kind, text) }));
    const item = this.#item(kind, text, 'completed', this.#done.length);
    frames.push(this.#event('response.output_item.done', { output_index: this.#done.length, item }));
    this.#done.push(item);
    return frames;
  }
}

const deltaType: Readonly<Record<ItemKind, string>> = {
  reasoning: 'response.reasoning_text.delta',
  text: 'response.output_text.delta',
  tool: 'response.function_call_arguments.delta',
};

function contentPart(kind: ItemKind, text: string): Record<string, unknown> {
  return kind === 'reasoning' ? { type: 'reasoning_text', text } : { type: 'output_text', text, annotations: [] };
}

function usage(end: End, kept: CachePoints | undefined): Record<string, unknown> {
  return {
    input_tokens: end.promptTokens,
    input_tokens_details: { cached_tokens: end.cachedTokens, ...(kept ? { cache_write_tokens: writtenTokens(kept, end.cachedTokens).short } : {}) },
    output_tokens: end.outputTokens,
    output_tokens_details: { reasoning_tokens: end.reasoningTokens },
    total_tokens: end.promptTokens + end.outputTokens,
  };
}
