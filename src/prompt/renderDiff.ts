/** Renders a prompt with given inputs under a frozen clock, and finds where two renders first differ. */
import { renderJinja, strftime } from './chatTemplate';
import type { Branch, ChatMessage, ChatPart, ChatPrompt, ControlSpan, ExpressionSpan, Part, Place, Prompt, PromptFile, Reference, Role, Span } from './prompt';
import { sureHead, type TokenCounter } from './tokens';
import { judgeCall } from './vocabulary';

/** What one render is made with. */
export interface RenderInputs {
  /** Values by variable name. Missing ones: the file's sample, then its default, else the expression stays as written. */
  readonly values: Readonly<Record<string, unknown>>;
  /** Epoch milliseconds, shown in UTC. */
  readonly clock: number;
  /** What random and id calls give; two different ones stand for two requests. */
  readonly nonce: string;
}

/** A stretch of a rendered text and the place of the file it comes from. */
export interface RenderedPiece extends Place {
  /** Offset of its first character in `RenderedPrompt.text`. */
  readonly at: number;
}

/** A prompt as it would be sent. */
export interface RenderedPrompt {
  readonly chat: ChatPrompt;
  /** All messages in render order, each under a line with its role: what the diff editor shows. */
  readonly text: string;
  readonly pieces: readonly RenderedPiece[];
  /** Names of variables that had no value, in order, once each. */
  readonly unrendered: readonly string[];
  /** Names without a value for which nothing is written at all: the list of a loop, the test of a condition. */
  readonly leftOut: readonly string[];
}

type Scope = Readonly<Record<string, unknown>>;

const words = (value: unknown): string => {
  if (value === null || value === undefined) return '';
  if (typeof value === 'string') return value;
  if (typeof value === 'number' || typeof value === 'boolean' || typeof value === 'bigint') return String(value);
  return JSON.stringify(value);
};

function lookUp(path: string, scope: Scope): unknown {
  let value: unknown = scope;
  const name = path.replace(/^\$/, '').replace(/\(\)$/, '');
  if (Object.hasOwn(scope, name)) return scope[name];
  for (const step of name.replace(/^this\./, '').split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, step)) return undefined;
    value = (value as Record<string, unknown>)[step];
  }
  return value;
}

const isMissing = (path: string, scope: Scope) => lookUp(path, scope) === undefined && lookUp(path.split('.')[0] ?? '', scope) === undefined;

const truthy = (value: unknown) => (Array.isArray(value) ? value.length > 0 : value !== undefined && value !== null && value !== false && value !== '' && value !== 0);

class Renderer {
  readonly unrendered = new Set<string>();
  readonly leftOut = new Set<string>();
  readonly written = new Set<string>();
  readonly pieces: RenderedPiece[] = [];
  text = '';
  private work = 0;
  private readonly file: PromptFile;
  private readonly prompt: Prompt;
  private readonly inputs: RenderInputs;
  private readonly jinja: boolean;

  constructor(file: PromptFile, prompt: Prompt, inputs: RenderInputs) {
    this.file = file;
    this.prompt = prompt;
    this.inputs = inputs;
    this.jinja = ['jinja', 'nunjucks', 'liquid'].includes(file.language ?? '') || ['jinja', 'chat-template', 'nunjucks'].includes(file.format);
  }

  spans(spans: readonly Span[], scope: Scope, foreign: Place | null): Scope {
    let names = scope;
    for (const span of spans) {
      this.work += 1;
      if (this.work > 200_000) break;
      names = this.span(span, names, foreign);
    }
    return names;
  }

  private write(text: string, place: Place) {
    if (text === '') return;
    this.pieces.push({ at: this.text.length, start: place.start, end: place.end });
    this.text += text;
  }

  private span(span: Span, scope: Scope, foreign: Place | null): Scope {
    switch (span.kind) {
      case 'literal':
      case 'raw':
        this.write(span.text, foreign ?? span);
        return scope;
      case 'expression':
        if (span.output) this.write(this.expression(span, scope, foreign), foreign ?? span);
        return scope;
      case 'control':
        return this.control(span, scope, foreign);
      case 'include':
        if (span.spans !== null) this.spans(span.spans, scope, foreign ?? span);
        else this.unknown(span.target ?? span.source, span.source, foreign ?? span);
        return scope;
      case 'media':
        this.write(`[${span.media}]`, foreign ?? span);
        return scope;
      case 'role-mark':
      case 'cache-mark':
      case 'comment':
        return scope;
    }
  }

  private unknown(name: string, source: string, place: Place) {
    this.unrendered.add(name);
    this.written.add(name);
    this.write(source, place);
  }

  private expression(span: ExpressionSpan, scope: Scope, foreign: Place | null): string {
    if (span.constant !== null) return span.constant;
    if (span.macro !== null && Object.hasOwn(this.prompt.macros, span.macro.name)) return this.macro(span, scope, foreign);
    const known = span.references.every((r) => lookUp(r.path, scope) !== undefined || lookUp(r.path.split('.')[0] ?? '', scope) !== undefined);
    if (this.jinja && (known || span.references.some((r) => r.call))) {
      const rendered = this.evaluate(span.source, scope);
      if (rendered !== null && (rendered !== '' || known)) return rendered;
    }
    const [first] = span.references;
    if (first === undefined) return span.literals.join('');
    const value = lookUp(first.path, scope);
    if (value !== undefined) return span.references.length > 1 && !this.jinja ? span.references.map((r) => words(lookUp(r.path, scope))).join('') : words(value);
    const called = this.call(span, first);
    if (called !== null) return called;
    for (const reference of span.references) {
      this.unrendered.add(reference.path);
      this.written.add(reference.path);
    }
    return span.source;
  }

  private evaluate(source: string, scope: Scope, before = ''): string | null {
    const rendered = renderJinja(before + source, scope, this.inputs.clock);
    return 'text' in rendered ? rendered.text : null;
  }

  /** Clock and random calls of any host, as far as the vocabulary knows them. */
  private call(span: ExpressionSpan, reference: Reference): string | null {
    const judged = reference.call || /^time\./i.test(reference.path) ? judgeCall(reference.path, reference.strings) : null;
    if (judged === null || judged === 'silent') return null;
    if (judged.volatility === 'day') return strftime(percent(span.clockFormat) ?? '%A, %d %B %Y', this.inputs.clock);
    if (judged.volatility === 'minute') return strftime(percent(span.clockFormat) ?? '%A, %d %B %Y %H:%M:%S', this.inputs.clock);
    return judged.volatility === 'request' ? this.inputs.nonce : null;
  }

  private macro(span: ExpressionSpan, scope: Scope, foreign: Place | null): string {
    const sources = Object.values(this.prompt.macros).map((macro) => this.file.text.slice(macro.start, macro.end));
    const rendered = this.evaluate(span.source, scope, sources.join(''));
    if (rendered !== null) return rendered;
    const macro = this.prompt.macros[span.macro?.name ?? ''];
    if (macro === undefined) return span.source;
    const bound = Object.fromEntries(macro.binds.map((name, i) => [name, words(lookUp(span.macro?.arguments[i]?.[0]?.path ?? '', scope))]));
    this.spans(macro.branches[0]?.spans ?? [], { ...scope, ...bound }, foreign ?? span);
    return '';
  }

  private control(span: ControlSpan, scope: Scope, foreign: Place | null): Scope {
    switch (span.control) {
      case 'macro':
        return scope;
      case 'set':
        return this.assign(span, scope);
      case 'condition': {
        const branch = span.branches.find((b, i) => this.holds(b, i === 0 ? span.source : this.file.text.slice(b.tag.start, b.tag.end), scope));
        if (branch !== span.branches[0]) for (const { path } of span.branches[0]?.references ?? []) if (isMissing(path, scope)) this.leftOut.add(path);
        return branch === undefined ? scope : this.spans(branch.spans, scope, foreign);
      }
      case 'loop':
        this.loop(span, scope, foreign);
        return scope;
      case 'with': {
        const value = lookUp(span.references[0]?.path ?? '', scope);
        const inner = typeof value === 'object' && value !== null ? { ...scope, ...value, this: value } : scope;
        const bound = Object.fromEntries(span.binds.map((name) => [name, value]));
        for (const branch of span.branches) this.spans(branch.spans, { ...inner, ...bound }, foreign);
        return scope;
      }
      case 'block':
        return span.branches.reduce((names, branch) => this.spans(branch.spans, names, foreign), scope);
    }
  }

  private assign(span: ControlSpan, scope: Scope): Scope {
    const [name] = span.binds;
    if (name === undefined) return scope;
    if (span.constant !== null) return { ...scope, [name]: span.constant };
    const after = this.jinja ? this.evaluate(`{{ ${name} | tojson }}`, scope, span.source) : null;
    if (after === null) return { ...scope, [name]: lookUp(span.references[0]?.path ?? '', scope) };
    try {
      return { ...scope, [name]: JSON.parse(after) as unknown };
    } catch {
      return scope;
    }
  }

  private holds(branch: Branch, tag: string, scope: Scope): boolean {
    if (branch.references.length === 0 && /\belse\s*\W*$/.test(tag) && !/\bif\b/.test(tag)) return true;
    if (this.jinja) {
      const test = /\{%[-+~]?\s*(?:if|elif|elsif|elseif|unless)\b([\s\S]*?)[-+~]?%\}/.exec(tag);
      const answer = test === null ? null : this.evaluate(`{% if ${test[1] ?? ''} %}1{% endif %}`, scope);
      if (answer !== null) return (answer === '1') !== /^\{%[-+~]?\s*unless/.test(tag);
    }
    const some = branch.references.length === 0 || branch.references.some((r) => truthy(lookUp(r.path, scope)));
    return some !== /^\{\{[~]?\s*(?:#unless|\^)/.test(tag);
  }

  private loop(span: ControlSpan, scope: Scope, foreign: Place | null) {
    const items = this.items(span, scope);
    if (items === null) {
      for (const reference of span.references) {
        this.unrendered.add(reference.path);
        this.leftOut.add(reference.path);
      }
      return;
    }
    items.forEach((item, index) => {
      const bound = span.binds.length >= 2 && Array.isArray(item) ? Object.fromEntries(span.binds.map((name, i) => [name, (item as unknown[])[i]])) : Object.fromEntries(span.binds.map((name) => [name, item]));
      const fields = typeof item === 'object' && item !== null && !this.jinja ? item : {};
      const loop = { index: index + 1, index0: index, first: index === 0, last: index === items.length - 1, length: items.length };
      this.spans(span.branches[0]?.spans ?? [], { ...scope, ...fields, ...bound, this: item, '.': item, loop, forloop: loop, '@index': index, '@first': loop.first, '@last': loop.last }, foreign);
    });
    if (items.length === 0 && span.branches[1] !== undefined) this.spans(span.branches[1].spans, scope, foreign);
  }

  private items(span: ControlSpan, scope: Scope): readonly unknown[] | null {
    const head = /\{%[-+~]?\s*for\s+([\s\S]+?)\s+in\s+([\s\S]*?)[-+~]?%\}/.exec(span.source);
    if (this.jinja && head !== null) {
      const each = this.evaluate(`{% for x in ${(head[2] ?? '').replace(/\s+(?:if|recursive)\b[\s\S]*$/, '')} %}{{ x | tojson }}\u0001{% endfor %}`, scope);
      if (each !== null && (each !== '' || span.references.every((r) => lookUp(r.path.split('.')[0] ?? '', scope) !== undefined))) {
        return each.split('\u0001').slice(0, -1).map((item) => JSON.parse(item) as unknown);
      }
    }
    const value = lookUp(span.references[0]?.path ?? '', scope);
    if (Array.isArray(value)) return value as readonly unknown[];
    if (value === undefined) return null;
    return truthy(value) ? [value] : [];
  }
}

/** A strftime format, or null for the other families of formats. */
const percent = (format: string | null) => (format?.includes('%') === true ? format : null);

const titles: Readonly<Record<Role, string>> = { system: 'system', developer: 'developer', user: 'user', assistant: 'assistant', tool: 'tool' };

/** Values by name: what was given, else the file's sample, else its default. */
function valuesOf(prompt: Prompt, given: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const values: Record<string, unknown> = {};
  for (const variable of prompt.variables) {
    const value = variable.sample ?? variable.default;
    if (value !== undefined) values[variable.name] = value;
  }
  return { ...values, ...given };
}

/**
 * Renders one prompt of a file. Jinja expressions are evaluated by a Jinja engine; in other languages variables, sections and loops are
 * filled in and filters are not applied. What has no value stays as written and is listed. Never throws.
 */
export function renderPrompt(file: PromptFile, prompt: Prompt, inputs: RenderInputs): RenderedPrompt {
  const renderer = new Renderer(file, prompt, inputs);
  const messages: { readonly role: Role; readonly tools: boolean; readonly message: number | null; text: string; parts: ChatPart[] }[] = [];
  let scope: Scope = valuesOf(prompt, inputs.values);
  for (const part of prompt.parts) {
    const last = messages.at(-1);
    const continues = last !== undefined && last.message !== null && last.message === part.message;
    if (!continues) renderer.text += `${renderer.text === '' ? '' : '\n\n'}── ${part.slot === 'tools' ? 'tools' : titles[part.role]} ──\n`;
    const from = renderer.text.length;
    scope = renderer.spans(part.spans, scope, null);
    const text = renderer.text.slice(from);
    const piece = markedText(part, text);
    if (continues) {
      last.text += text;
      last.parts.push(piece);
    } else messages.push({ role: part.role, tools: part.slot === 'tools', message: part.slot === 'tools' ? null : part.message, text, parts: [piece] });
  }
  const sent = messages.filter((m) => !m.tools && m.text.trim() !== '');
  return { chat: { messages: sent.map(({ role, text, parts }) => ({ role, text: text.trim(), ...marked(parts) })), tools: [] }, text: renderer.text, pieces: renderer.pieces, unrendered: [...renderer.unrendered], leftOut: [...renderer.leftOut].filter((name) => !renderer.written.has(name)) };
}

/** A part with the cache marker that its file sets on it. */
function markedText({ spans }: Part, text: string): ChatPart {
  const mark = spans.findLast((span) => span.kind === 'cache-mark');
  return mark?.kind === 'cache-mark' ? { text, mark: { key: 'cache_control', ttl: mark.ttl } } : { text };
}

/** The content blocks of a message in which a marker stands, without white space at both ends; a message without one is one text. */
function marked(parts: readonly ChatPart[]): Pick<ChatMessage, 'parts'> {
  if (parts.every(({ mark }) => mark === undefined)) return {};
  const trimmed = parts.map((part, i) => ({ ...part, text: i === 0 ? part.text.trimStart() : part.text }));
  const last = trimmed.length - 1;
  return { parts: trimmed.map((part, i) => (i === last ? { ...part, text: part.text.trimEnd() } : part)) };
}

/** Where two texts first differ. */
export interface TextDifference {
  /** Offset in UTF-16 units, equal in both texts. */
  readonly at: number;
  /** The same in UTF-8 bytes. */
  readonly byte: number;
  /** Line and column from 1, in both texts. */
  readonly line: number;
  readonly column: number;
  /** Number of leading tokens that are equal, and whether the ids were compared (else they are a lower bound). */
  readonly sameTokens: number;
  readonly byIds: boolean;
  /** What stands there in each text: up to 40 characters, '' at the end. */
  readonly first: string;
  readonly second: string;
}

/** The first place where two texts differ, null when they are equal. A pair of surrogates is never split. */
export function firstDifference(a: string, b: string, counter: TokenCounter): TextDifference | null {
  if (a === b) return null;
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  const before = a.charCodeAt(at - 1);
  if (at > 0 && before >= 0xd800 && before <= 0xdbff) at -= 1;
  const head = a.slice(0, at);
  const lines = head.split(/\r\n|\r|\n/);
  const tokens = sameTokens(a, b, head, counter);
  return { at, byte: new TextEncoder().encode(head).length, line: lines.length, column: (lines.at(-1)?.length ?? 0) + 1, ...tokens, first: a.slice(at, at + 40), second: b.slice(at, at + 40) };
}

function sameTokens(a: string, b: string, head: string, counter: TokenCounter): { readonly sameTokens: number; readonly byIds: boolean } {
  if (counter.encode === undefined) return { sameTokens: counter.count(sureHead(head)), byIds: false };
  const [first, second] = [counter.encode(a), counter.encode(b)];
  let same = 0;
  while (same < first.length && same < second.length && first[same] === second[same]) same += 1;
  return { sameTokens: same, byIds: true };
}

/** Two renders of one prompt with their first difference and the place of the file it comes from (null when they are equal). */
export interface RenderComparison {
  readonly first: RenderedPrompt;
  readonly second: RenderedPrompt;
  readonly difference: (TextDifference & { readonly place: Place | null }) | null;
}

/** Renders a prompt twice, with two input sets or under two clocks, and compares what would be sent. */
export function compareRenders(file: PromptFile, prompt: Prompt, a: RenderInputs, b: RenderInputs, counter: TokenCounter): RenderComparison {
  const first = renderPrompt(file, prompt, a);
  const second = renderPrompt(file, prompt, b);
  const difference = firstDifference(first.text, second.text, counter);
  if (difference === null) return { first, second, difference: null };
  const inside = (pieces: readonly RenderedPiece[]) => pieces.findLast((piece) => piece.at <= difference.at);
  // A text that is only in one render (a condition, one more item) begins there; a value that differs begins in both.
  const [left, right] = [inside(first.pieces), inside(second.pieces)];
  const piece = left === undefined || (right !== undefined && right.at > left.at) ? right : left;
  return { first, second, difference: { ...difference, place: piece === undefined ? null : { start: piece.start, end: piece.end } } };
}
