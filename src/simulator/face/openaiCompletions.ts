/** POST /v1/completions: a bare prompt, no template. */
import type { Piece } from '../answer';
import { special, tokenize } from '../splitter';
import { fieldsOf, invalid, type Fields } from './bodyFields';
import { bearer, done, sse, type Ask, type End, type Face, type RawRequest, type Tally, type Voice, type VoiceContext, type WireFrame } from './face';
import { readOpenaiFields, readWishes, type StreamWishes } from './openaiChat';
import { openaiError, refuseLikeOpenai } from './openaiErrors';
import { openaiUsage } from './openaiUsage';

/** The completions face. */
export const openaiCompletions: Face = {
  id: 'openai-completions',
  routes: [
    {
      path: /^(?:\/openai)?(?:\/v1)?\/completions$/,
      read: readCompletion,
      voice: (ask, request, context) => new CompletionVoice(ask, readWishes(fieldsOf(request.body)), context),
    },
  ],
  key: bearer,
  refuse: refuseLikeOpenai,
};

function readCompletion(request: RawRequest): Ask {
  const body = fieldsOf(request.body);
  const fields = readOpenaiFields(body);
  // The API's own default is 16 tokens.
  return { ...fields, maxTokens: fields.maxTokens ?? 16, prompt: readPrompt(body), form: { kind: 'text' }, thinking: false };
}

function readPrompt(body: Fields): number[] {
  const value = body.prompt;
  const prompt: unknown = Array.isArray(value) && value.length === 1 && typeof value[0] !== 'number' ? value[0] : value;
  if (typeof prompt === 'string') return [special.begin, ...tokenize(prompt)];
  if (Array.isArray(prompt) && prompt.length > 0 && prompt.every((id) => Number.isInteger(id) && (id as number) >= 0)) return prompt as number[];
  throw invalid('prompt', 'prompt: a string or a list of token ids is expected.');
}

class CompletionVoice implements Voice {
  readonly contentType = 'text/event-stream; charset=utf-8';
  readonly #ask: Ask;
  readonly #wishes: StreamWishes;
  readonly #context: VoiceContext;
  #first = true;

  constructor(ask: Ask, wishes: StreamWishes, context: VoiceContext) {
    this.#ask = ask;
    this.#wishes = wishes;
    this.#context = context;
  }

  open(): WireFrame[] {
    return [];
  }

  say(pieces: readonly Piece[], tally: Tally): WireFrame[] {
    const last = tally.outputTokens >= this.#context.answer.tokens.length;
    const reason = this.#context.answer.finish;
    return pieces.map((piece) => {
      const choice: Record<string, unknown> = { text: piece.text, logprobs: null, finish_reason: last ? reason : null, stop_reason: null };
      if (this.#wishes.tokenIds) {
        if (this.#first) choice.prompt_token_ids = this.#ask.prompt;
        choice.token_ids = piece.ids;
      }
      this.#first = false;
      return this.#chunk(choice, piece.ids.length, tally);
    });
  }

  close(end: End): WireFrame[] {
    const usage = this.#wishes.usage ? [sse({ ...this.#head(), choices: [], usage: openaiUsage(end, this.#context.flavour) })] : [];
    return [...usage, done];
  }

  fail(problem: Parameters<typeof openaiError>[0]): WireFrame[] {
    return [sse(openaiError(problem)), done];
  }

  whole(end: End): unknown {
    const choice = { index: 0, text: end.text, logprobs: null, finish_reason: end.finish, stop_reason: null };
    return { ...this.#head(), choices: [choice], usage: openaiUsage(end, this.#context.flavour) };
  }

  #head(): Record<string, unknown> {
    const { id, created, model } = this.#context;
    return { id: `cmpl-${id}`, object: 'text_completion', created, model };
  }

  #chunk(choice: Record<string, unknown>, tokens: number, tally: Tally): WireFrame {
    const usage = this.#wishes.continuousUsage ? { usage: openaiUsage(tally, this.#context.flavour, false) } : {};
    return sse({ ...this.#head(), choices: [{ index: 0, ...choice }], ...usage }, tokens);
  }
}
