import type { Arrival } from './decode';

const openTag = '<think>';
const closeTag = '</think>';

/** An arrival as the decoder holds it: its kind and text may still change until the thinking is settled. */
export type OpenArrival = { -readonly [K in keyof Arrival]: Arrival[K] };

/** One text, told apart. `tag`: a tag was in it, so the frame generated something even if both are empty. */
export interface Split {
  readonly reasoning: string;
  readonly text: string;
  readonly tag: boolean;
}

/**
 * Tells `<think>…</think>` at the start of an answer from the answer itself, in deltas cut anywhere, and takes the tags out.
 *
 * - `<think>` counts only at the very start, after white space; quoted later it is text.
 * - Close-only: some chat templates open the tag in the prompt, so only `</think>` arrives. Everything before it was then already
 *   handed out as text; it is turned into reasoning when the tag is complete. So an arrival's kind can change until then, and
 *   because the rule looks at nothing but the text, the result is the same live and folded, however the bytes were cut.
 *   The tag counts where nobody writes *about* it: not touching a quote or back-tick, not inside code, no `<think>` before it,
 *   and after a space only at the end of a line.
 * - Where the server tells reasoning apart itself, tags in the text are text.
 */
export class InlineThinking {
  #state: 'start' | 'inside' | 'watch' | 'off' = 'start';
  /** The end of the text so far that may be part of a tag. */
  #tail = '';
  #before = '';
  #backticks = 0;
  readonly #arrivals: OpenArrival[];
  readonly #onFound: (how: 'think-inline' | 'think-close-only') => void;

  /** `arrivals`: all arrivals so far, the text in hand not among them. */
  constructor(arrivals: OpenArrival[], onFound: (how: 'think-inline' | 'think-close-only') => void) {
    this.#arrivals = arrivals;
    this.#onFound = onFound;
  }

  /** The server itself told reasoning apart from text. */
  separate(): void {
    if (this.#state !== 'inside') this.#state = 'off';
  }

  /** True for text that cannot be part of a tag; it needs no `split`. */
  plain(text: string): boolean {
    if (this.#state !== 'watch' || this.#tail !== '' || text.includes('<')) return this.#state === 'off';
    this.#remember(text);
    return true;
  }

  split(text: string): Split {
    switch (this.#state) {
      case 'start':
        return this.#start(text);
      case 'inside':
        return this.#inside(text);
      case 'watch':
        return this.#watch(text);
      case 'off':
        return { reasoning: '', text, tag: false };
    }
  }

  /** The body ended: a close tag at the very end has nothing behind it that could make it a quotation. */
  end(): void {
    if (this.#state === 'watch' && this.#tail === closeTag && this.#counts('')) this.#turn(closeTag.length);
    this.#state = 'off';
  }

  #start(text: string): Split {
    const head = this.#tail + text;
    const word = head.trimStart();
    if (word.length < openTag.length && openTag.startsWith(word)) {
      this.#tail = word;
      return { reasoning: '', text, tag: false };
    }
    if (!word.startsWith(openTag)) {
      this.#state = 'watch';
      return this.#watch(text);
    }
    const inEarlier = this.#tail.length;
    this.#strip('text', inEarlier);
    this.#reclassify();
    this.#state = 'inside';
    this.#tail = '';
    this.#onFound('think-inline');
    const space = text.slice(0, head.length - word.length);
    const rest = this.#inside(word.slice(openTag.length));
    return { reasoning: (inEarlier === 0 ? space : '') + rest.reasoning, text: rest.text, tag: true };
  }

  #inside(text: string): Split {
    const joined = this.#tail + text;
    const at = joined.indexOf(closeTag);
    if (at < 0) {
      this.#tail = partial(joined, closeTag);
      return { reasoning: text, text: '', tag: false };
    }
    const mine = at - this.#tail.length;
    if (mine < 0) this.#strip('reasoning', -mine);
    this.#state = 'off';
    return { reasoning: mine > 0 ? text.slice(0, mine) : '', text: joined.slice(at + closeTag.length), tag: true };
  }

  #watch(text: string): Split {
    if (this.#tail === '' && !text.includes('<')) {
      this.#remember(text);
      return { reasoning: '', text, tag: false };
    }
    const joined = this.#tail + text;
    const offset = this.#tail.length;
    let from = 0;
    for (;;) {
      const at = joined.indexOf('<', from);
      if (at < 0) break;
      this.#remember(joined.slice(from, at));
      if (joined.startsWith(openTag, at)) {
        this.#state = 'off';
        return { reasoning: '', text, tag: false };
      }
      if (joined.startsWith(closeTag, at)) {
        const behind = at + closeTag.length;
        if (behind === joined.length) {
          this.#tail = closeTag;
          return { reasoning: '', text, tag: false };
        }
        if (this.#counts(joined.charAt(behind))) {
          this.#turn(Math.max(0, offset - at));
          return { reasoning: at > offset ? joined.slice(offset, at) : '', text: joined.slice(behind), tag: true };
        }
      } else if (openTag.startsWith(joined.slice(at)) || closeTag.startsWith(joined.slice(at))) {
        this.#tail = joined.slice(at);
        return { reasoning: '', text, tag: false };
      }
      this.#remember('<');
      from = at + 1;
    }
    this.#remember(joined.slice(from));
    this.#tail = '';
    return { reasoning: '', text, tag: false };
  }

  #remember(text: string): void {
    if (text === '') return;
    this.#before = text.charAt(text.length - 1);
    for (let at = text.indexOf('`'); at >= 0; at = text.indexOf('`', at + 1)) this.#backticks++;
  }

  #counts(next: string): boolean {
    const quoted = /["'`‘’“”«»]/;
    if (quoted.test(this.#before) || quoted.test(next) || this.#backticks % 2 === 1) return false;
    return !/[ \t]/.test(this.#before) || next === '' || next === '\n' || next === '\r';
  }

  #turn(tagInEarlier: number): void {
    this.#strip('text', tagInEarlier);
    this.#reclassify();
    this.#state = 'off';
    this.#onFound('think-close-only');
  }

  #reclassify(): void {
    for (const arrival of this.#arrivals) if (arrival.kind === 'text' && arrival.choice === undefined) arrival.kind = 'reasoning';
  }

  /** Takes the last `length` characters of that kind out of the arrivals. */
  #strip(kind: 'text' | 'reasoning', length: number): void {
    for (let at = this.#arrivals.length - 1; at >= 0 && length > 0; at--) {
      const arrival = this.#arrivals[at]!;
      if (arrival.kind !== kind || arrival.choice !== undefined) continue;
      const cut = Math.min(length, arrival.text.length);
      arrival.text = arrival.text.slice(0, arrival.text.length - cut);
      length -= cut;
    }
  }
}

/** The longest end of the text that is a beginning of the tag. */
function partial(text: string, tag: string): string {
  for (let length = Math.min(tag.length - 1, text.length); length > 0; length--) {
    if (text.endsWith(tag.slice(0, length))) return tag.slice(0, length);
  }
  return '';
}
