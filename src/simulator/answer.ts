/** Makes an answer: which tokens it will have, which of them are reasoning, and the text each emission adds. */
import type { Ask } from './face/face';
import { prose, reasoningProse } from './prose';
import { seededRandom, seedOf } from './seededRandom';
import { detokenize, special, tokenBytes, tokenize } from './splitter';

/** How reasoning reaches the client: in a field of its own, inside `<think>` tags of the text, or not at all. */
export type ReasoningStyle = 'field' | 'think' | 'hidden';

/** What a server does by default. */
export interface AnswerSettings {
  readonly reasoningTokens: number;
  readonly reasoningStyle: ReasoningStyle;
  readonly seed: number;
  /** Longest prompt plus answer. */
  readonly maxContext: number;
}

/** An answer, known whole before its first token is due. */
export interface Answer {
  readonly tokens: readonly number[];
  /** The first so many are reasoning. */
  readonly reasoningTokens: number;
  readonly style: ReasoningStyle;
  readonly finish: 'stop' | 'length' | 'tool';
  readonly tool: string | null;
}

/** A run of tokens of one kind. `hidden` ones were generated but are not shown; text may be empty while half a character is held back. */
export interface Piece {
  readonly kind: 'reasoning' | 'text' | 'tool' | 'hidden';
  readonly ids: readonly number[];
  readonly text: string;
}

/** The answer to `ask`: the same for the same prompt and seed. Always at least one token. */
export function composeAnswer(ask: Ask, settings: AnswerSettings): Answer {
  const seed = ask.seed ?? seedOf([settings.seed, ...ask.prompt]);
  const room = Math.max(1, Math.min(ask.maxTokens ?? Infinity, settings.maxContext - ask.prompt.length));
  const reasoning = ask.thinking ? reasoningOf(settings, seed, room) : [];
  const body = bodyOf(ask, seed, ask.prompt.some((id) => id >= 1000 && id < 66_536), room - reasoning.length);
  const all = [...reasoning, ...body.tokens];
  const tokens = all.slice(0, room);
  if (tokens.length === 0) tokens.push(special.endOfText);
  const cut = all.length > room || body.endless;
  const finish = cut ? 'length' : ask.form.kind === 'tool' ? 'tool' : 'stop';
  return { tokens, reasoningTokens: Math.min(reasoning.length, tokens.length), style: settings.reasoningStyle, finish, tool: ask.form.kind === 'tool' ? ask.form.name : null };
}

function reasoningOf(settings: AnswerSettings, seed: number, room: number): number[] {
  if (settings.reasoningTokens === 0) return [];
  const inline = settings.reasoningStyle === 'think';
  const plain = tokenize(reasoningProse(seed, settings.reasoningTokens)).slice(0, settings.reasoningTokens);
  const tokens = inline ? [special.think, ...tokenize('\n'), ...plain, ...tokenize('\n'), special.endThink, ...tokenize('\n\n')] : plain;
  return tokens.slice(0, room);
}

function bodyOf(ask: Ask, seed: number, withSigns: boolean, room: number): { readonly tokens: number[]; readonly endless: boolean } {
  if (ask.form.kind !== 'text') return { tokens: tokenize(jsonAnswer(seed)), endless: false };
  const natural = 160 + Math.floor(seededRandom(seed ^ 0x2545f491)() * 400);
  const endless = ask.ignoreEos && ask.maxTokens !== null;
  const wanted = endless ? room : Math.max(natural, ask.minTokens);
  const tokens = tokenize(prose(seed, Math.min(wanted, room), withSigns));
  const stopped = ask.stop.length > 0 ? cutAtStop(tokens, ask.stop, ask.minTokens) : null;
  if (stopped) return { tokens: stopped, endless: false };
  return { tokens: tokens.slice(0, wanted), endless };
}

/** Tokens before the first stop string, or null when none occurs. */
function cutAtStop(tokens: readonly number[], stops: readonly string[], minTokens: number): number[] | null {
  const text = detokenize(tokens);
  const from = detokenize(tokens.slice(0, minTokens)).length;
  const found = stops.map((stop) => text.indexOf(stop, from)).filter((at) => at >= 0);
  return found.length === 0 ? null : tokenize(text.slice(0, Math.min(...found)));
}

function jsonAnswer(seed: number): string {
  const random = seededRandom(seed);
  return JSON.stringify({ answer: prose(seed, 12), score: Math.round(random() * 100) / 100, tags: ['latency', 'queue'] });
}

/** Turns generated tokens into pieces of text, holding back the bytes of a character that is not complete. */
export class Speaker {
  readonly #answer: Answer;
  readonly #decoder = new TextDecoder('utf-8', { ignoreBOM: true });

  constructor(answer: Answer) {
    this.#answer = answer;
  }

  /** Pieces for tokens `from` … `from + count − 1`; calls must be in order. */
  say(from: number, count: number): Piece[] {
    const { tokens, reasoningTokens, style, tool } = this.#answer;
    const border = style === 'think' ? 0 : reasoningTokens;
    const pieces: Piece[] = [];
    const add = (kind: Piece['kind'], start: number, end: number): void => {
      if (start >= end) return;
      const ids = tokens.slice(start, end);
      const text = ids.map((id) => this.#decoder.decode(tokenBytes(id), { stream: true })).join('');
      pieces.push({ kind, ids, text: kind === 'hidden' ? '' : text });
    };
    add(style === 'hidden' ? 'hidden' : 'reasoning', from, Math.min(from + count, border));
    add(tool === null ? 'text' : 'tool', Math.max(from, border), from + count);
    return pieces;
  }
}
