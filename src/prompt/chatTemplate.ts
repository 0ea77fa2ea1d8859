/** Renders Jinja (chat templates and prompt templates) under a frozen clock, and finds the dates a chat template hides in a prompt. */
import { Environment, Interpreter, parse, tokenize } from '@huggingface/jinja';
import type { ChatPrompt, Place } from './prompt';

const pad = (n: number, width = 2, fill = '0') => String(n).padStart(width, fill);
const days = ['Sunday', 'Monday', 'Tuesday', 'Wednesday', 'Thursday', 'Friday', 'Saturday'];
const months = ['January', 'February', 'March', 'April', 'May', 'June', 'July', 'August', 'September', 'October', 'November', 'December'];

function dayOfYear(at: Date): number {
  return 1 + Math.floor((Date.UTC(at.getUTCFullYear(), at.getUTCMonth(), at.getUTCDate()) - Date.UTC(at.getUTCFullYear(), 0, 1)) / 86_400_000);
}

const directives: Readonly<Record<string, (at: Date) => string>> = {
  Y: (at) => String(at.getUTCFullYear()),
  y: (at) => pad(at.getUTCFullYear() % 100),
  m: (at) => pad(at.getUTCMonth() + 1),
  B: (at) => months[at.getUTCMonth()] ?? '',
  b: (at) => (months[at.getUTCMonth()] ?? '').slice(0, 3),
  h: (at) => (months[at.getUTCMonth()] ?? '').slice(0, 3),
  d: (at) => pad(at.getUTCDate()),
  e: (at) => pad(at.getUTCDate(), 2, ' '),
  j: (at) => pad(dayOfYear(at), 3),
  A: (at) => days[at.getUTCDay()] ?? '',
  a: (at) => (days[at.getUTCDay()] ?? '').slice(0, 3),
  w: (at) => String(at.getUTCDay()),
  u: (at) => String(at.getUTCDay() === 0 ? 7 : at.getUTCDay()),
  H: (at) => pad(at.getUTCHours()),
  k: (at) => pad(at.getUTCHours(), 2, ' '),
  I: (at) => pad(at.getUTCHours() % 12 === 0 ? 12 : at.getUTCHours() % 12),
  M: (at) => pad(at.getUTCMinutes()),
  S: (at) => pad(at.getUTCSeconds()),
  f: (at) => pad(at.getUTCMilliseconds() * 1000, 6),
  L: (at) => pad(at.getUTCMilliseconds(), 3),
  p: (at) => (at.getUTCHours() < 12 ? 'AM' : 'PM'),
  s: (at) => String(Math.floor(at.getTime() / 1000)),
  Z: () => 'UTC',
  z: () => '+0000',
  n: () => '\n',
  t: () => '\t',
  '%': () => '%',
};
const compound: Readonly<Record<string, string>> = { F: '%Y-%m-%d', T: '%H:%M:%S', X: '%H:%M:%S', R: '%H:%M', D: '%m/%d/%y', x: '%m/%d/%y', c: '%a %b %e %H:%M:%S %Y', r: '%I:%M:%S %p' };

/** A time as `strftime` writes it, in UTC (epoch milliseconds); flags `-`, `_` and `#` drop leading zeros. Unknown directives stay. */
export function strftime(format: string, clock: number): string {
  const at = new Date(clock);
  return format.replace(/%([-_#]?)([A-Za-z%])/g, (whole, flag: string, letter: string) => {
    const expanded = compound[letter];
    if (expanded !== undefined) return strftime(expanded, clock);
    const text = directives[letter]?.(at);
    if (text === undefined) return whole;
    return flag === '' ? text : text.replace(/^[0 ]+(?=.)/, '');
  });
}

/** A rendered text, or in words why there is none. */
export type Rendered = { readonly text: string } | { readonly problem: string };

function range(from: number, to?: number, step = 1): number[] {
  const [start, stop] = to === undefined ? [0, from] : [from, to];
  const length = step === 0 ? 0 : Math.max(0, Math.ceil((stop - start) / step));
  return Array.from({ length: Math.min(length, 100_000) }, (_, i) => start + i * step);
}

/**
 * Renders a Jinja source with the given names; clock calls (`strftime_now(format)`, `now()`, `utcnow()`) read the frozen clock (epoch
 * milliseconds, shown in UTC). What the engine does not know (`include`, `extends`, custom filters) comes back as a problem.
 */
export function renderJinja(source: string, names: Readonly<Record<string, unknown>>, clock: number): Rendered {
  const iso = () => strftime('%Y-%m-%d %H:%M:%S', clock);
  const globals: Record<string, unknown> = {
    true: true,
    false: false,
    none: null,
    True: true,
    False: false,
    None: null,
    raise_exception: (message: unknown) => {
      throw new Error(String(message));
    },
    range,
    strftime_now: (format: unknown) => strftime(String(format), clock),
    now: iso,
    utcnow: iso,
  };
  try {
    const environment = new Environment();
    for (const [name, value] of Object.entries({ ...globals, ...names })) environment.set(name, value);
    const program = parse(tokenize(source, { lstrip_blocks: true, trim_blocks: true }));
    const result = new Interpreter(environment).run(program) as { readonly value: unknown };
    return { text: String(result.value) };
  } catch (error) {
    return { problem: error instanceof Error ? error.message : String(error) };
  }
}

/** What a server passes to the template beside the conversation. */
export interface ChatTemplateOptions {
  /** Epoch milliseconds. */
  readonly clock: number;
  /** `bos_token`, `enable_thinking`, `date_string` … */
  readonly names?: Readonly<Record<string, unknown>>;
}

/** The text a model sees: a conversation through a server's `chat_template.jinja`, with the generation prompt. */
export function renderChatTemplate(template: string, prompt: ChatPrompt, options: ChatTemplateOptions): Rendered {
  const names = {
    bos_token: '',
    eos_token: '',
    add_generation_prompt: true,
    ...options.names,
    messages: prompt.messages.map((m) => ({ role: m.role, content: m.text })),
    ...(prompt.tools.length > 0 ? { tools: prompt.tools } : {}),
  };
  return renderJinja(template, names, options.clock);
}

/** A date or time that a chat template writes into every prompt, which the prompt's author cannot see. */
export interface HiddenClock {
  /** `minute` when it changes within a day. */
  readonly volatility: 'minute' | 'day';
  /** Where the rendered texts first differ, in UTF-16 units of the rendered text. */
  readonly at: number;
  /** The rendered text before it: what can be reused at most when the date changes. */
  readonly head: string;
  /** The line of the rendered text with the date, under the first clock. */
  readonly line: string;
  /** The clock calls of the template (any of them may be the one). */
  readonly calls: readonly Place[];
}

function firstDifferent(a: string, b: string): number {
  const end = Math.min(a.length, b.length);
  for (let i = 0; i < end; i += 1) if (a.charCodeAt(i) !== b.charCodeAt(i)) return i;
  return end;
}

function lineAround(text: string, at: number): string {
  const start = text.lastIndexOf('\n', at - 1) + 1;
  const end = text.indexOf('\n', at);
  return text.slice(start, end < 0 ? undefined : end);
}

const firstClock = Date.UTC(2026, 0, 15, 10, 20, 30);
/** Same day, another hour, minute and second. */
const laterThatDay = Date.UTC(2026, 0, 15, 21, 43, 52);
/** Another year, month, day and weekday at the same time of day. */
const anotherDay = Date.UTC(2027, 10, 28, 10, 20, 30);

const shortConversation: ChatPrompt = { messages: [{ role: 'system', text: 'x' }, { role: 'user', text: 'y' }], tools: [] };

/**
 * Renders the conversation under three clocks and tells whether the template itself makes the texts differ: `null` when it does not,
 * a problem when the template cannot be rendered.
 */
export function findHiddenClock(template: string, prompt: ChatPrompt = shortConversation, names: Readonly<Record<string, unknown>> = {}): HiddenClock | { readonly problem: string } | null {
  const texts: string[] = [];
  for (const clock of [firstClock, laterThatDay, anotherDay]) {
    const rendered = renderChatTemplate(template, prompt, { clock, names });
    if ('problem' in rendered) return rendered;
    texts.push(rendered.text);
  }
  const [first = '', later = '', other = ''] = texts;
  const volatility = first !== later ? 'minute' : first !== other ? 'day' : null;
  if (volatility === null) return null;
  const at = Math.min(firstDifferent(first, later), firstDifferent(first, other));
  const calls = [...template.matchAll(/\b(?:strftime_now|utcnow|now)\s*\(/g)].map((m) => ({ start: m.index, end: m.index + m[0].length }));
  return { volatility, at, head: first.slice(0, at), line: lineAround(first, at), calls };
}

/** A date or time that a chat template writes, as far as lens and lint speak of it. */
export type HiddenDate = Pick<HiddenClock, 'volatility' | 'line'>;

const dateFormats = ['%Y-%m-%d', '%Y/%m/%d', '%d/%m/%Y', '%m/%d/%Y', '%d.%m.%Y', '%d %b %Y', '%-d %b %Y', '%d %B %Y', '%-d %B %Y', '%b %d, %Y', '%b %-d, %Y', '%B %d, %Y', '%B %-d, %Y', '%b %d %Y', '%B %d %Y'];
const dayLength = 86_400_000;

/**
 * Looks for today's date in a text that a server rendered with its own chat template, where its clock cannot be frozen: the first line
 * that holds the date of `at` (epoch ms; a day before or after, for the server's time zone). The conversation itself must hold no date.
 */
export function findWrittenDate(rendered: string, at: number): HiddenDate | null {
  const dates = new Set([0, -dayLength, dayLength].flatMap((offset) => dateFormats.map((format) => strftime(format, at + offset))));
  const places = [...dates].map((date) => rendered.indexOf(date)).filter((place) => place >= 0);
  if (places.length === 0) return null;
  const line = lineAround(rendered, Math.min(...places));
  const minute = new Date(at).getUTCMinutes();
  const isNow = [...line.matchAll(/\b\d{1,2}:(\d\d)\b/g)].some((time) => [0, 1, 59].includes((Number(time[1]) - minute + 60) % 60));
  return { volatility: isNow ? 'minute' : 'day', line };
}

/** What a hidden date does to the prefix, in words. */
export function hiddenDateWords({ volatility, line }: HiddenDate): string {
  const [what, when] = volatility === 'day' ? ['date', 'the next day'] : ['time', 'a minute later'];
  return `the chat template writes the ${what} before it (${line.trim().slice(0, 60)}), so nothing after that is reused ${when}`;
}
