/** Handlebars (with the helpers of Dotprompt and Semantic Kernel) and Mustache: blocks, partials and helpers over the tokens of the scanner. */
import { readHelper } from '../expression';
import { Located } from '../located';
import type { ControlSpan, Place, Reference, Span } from '../prompt';
import { living, roleOf } from './jinja';
import { scan, type ScanToken } from './scanner';
import { expressionSpan, findInclude, insideInclude, rawSpan, report, textSpan, type TemplateContext } from './template';

interface Open {
  readonly token: ScanToken;
  readonly helper: string;
  readonly control: ControlSpan['control'] | 'role';
  readonly binds: readonly string[];
  readonly name: string | null;
  readonly references: readonly Reference[];
  /** `truth`: what a constant condition gives, null for one that depends on something. */
  readonly branches: { tag: Place; references: readonly Reference[]; spans: Span[]; truth?: boolean | null }[];
  exhaustive: boolean;
}

/** Blocks inside blocks beyond this are read as if they stood in the innermost one. */
const deepest = 100;

/**
 * Parses template text into spans. Names inside `#each` and `#with` belong to the item: such a control binds `*` (all bare names);
 * a Mustache section binds `?` (the item's name or an outer one).
 */
export function parseHandlebars(located: Located, language: 'handlebars' | 'mustache', context: TemplateContext): Span[] {
  return new Builder(located, language, context).run();
}

class Builder {
  private readonly stack: Open[] = [];
  private readonly top: Span[] = [];
  /** Helpers of open blocks that stand too deep to be blocks. */
  private readonly flattened: string[] = [];
  private readonly inline = new Map<string, Span[]>();
  private readonly located: Located;
  private readonly language: 'handlebars' | 'mustache';
  private readonly context: TemplateContext;

  constructor(located: Located, language: 'handlebars' | 'mustache', context: TemplateContext) {
    this.located = located;
    this.language = language;
    this.context = context;
  }

  run(): Span[] {
    const tokens = standalone(this.located.text, scan(this.located.text, this.language));
    tokens.forEach((token, i) => {
      this.token(token, tokens[i - 1], tokens[i + 1]);
    });
    while (this.stack.length > 0) {
      const open = this.stack.at(-1)!;
      report(this.context, this.located, open.token, `{{#${open.helper}}} is never closed.`);
      this.close(this.located.text.length);
    }
    return this.top;
  }

  private get spans(): Span[] {
    return this.stack.at(-1)?.branches.at(-1)?.spans ?? this.top;
  }

  private place(token: ScanToken): Place {
    return { start: this.located.at(token.start), end: this.located.endAt(token.end) };
  }

  private token(token: ScanToken, before: ScanToken | undefined, after: ScanToken | undefined): void {
    if (token.type === 'text') textSpan(this.located, token, before, after, this.spans);
    else if (token.type === 'raw') {
      if (token.unclosed === true) report(this.context, this.located, token, 'This tag is never closed; it is read as text.');
      this.spans.push(rawSpan(this.located, token));
    } else if (token.type === 'comment') this.comment(token);
    else this.mustache(token);
  }

  private comment(token: ScanToken): void {
    this.spans.push({ kind: 'comment', ...this.place(token), text: this.located.text.slice(token.inner.start, token.inner.end) });
  }

  private mustache(token: ScanToken): void {
    const inner = this.located.text.slice(token.inner.start, token.inner.end).trim();
    const sigil = inner[0] ?? '';
    if (sigil === '!') this.comment(token);
    else if (sigil === '#') this.open(token, inner.slice(1).trim());
    else if (sigil === '/') this.end(token, inner.slice(1).trim());
    else if (sigil === '>') this.partial(token, inner.slice(1).trim());
    else if (inner === '^' || /^else\b/.test(inner)) this.otherwise(token, inner.replace(/^(?:\^|else)\s*/, ''));
    else if (sigil === '^') this.open(token, inner.slice(1).trim(), true);
    else if (inner === '') report(this.context, this.located, token, 'This expression is empty.');
    else this.output(token, inner.replace(/^&\s*/, ''));
  }

  private output(token: ScanToken, inner: string): void {
    const parts = readHelper(inner);
    const role = /^role\s+["'](\w+)["']/.exec(inner);
    if (role !== null && this.language === 'handlebars') this.spans.push({ kind: 'role-mark', ...this.place(token), role: roleOf(role[1]) ?? 'user' });
    else if (/^media\b/.test(inner) && parts.words.length > 1) this.spans.push({ kind: 'media', ...this.place(token), media: 'image', references: parts.references.slice(1) });
    else if (/^(?:set|assign)\b/.test(inner) && parts.words.length > 2) this.set(token, parts.words, parts.references.slice(1));
    else this.spans.push(expressionSpan(this.located, token, inner, parts));
  }

  /** Semantic Kernel's `{{set "name" value}}`. */
  private set(token: ScanToken, words: readonly string[], references: readonly Reference[]): void {
    const tag = this.place(token);
    const value = words[2]!;
    this.spans.push({
      kind: 'control',
      control: 'set',
      ...tag,
      tag,
      source: this.located.text.slice(token.start, token.end),
      binds: [words[1]!.replace(/^["']|["']$/g, '')],
      name: null,
      references,
      constant: /^["'\d]/.test(value) ? value.replace(/^["']|["']$/g, '') : null,
      branches: [],
      exhaustive: false,
    });
  }

  private open(token: ScanToken, inner: string, inverse = false): void {
    const text = inner.replace(/^[*>]\s*/, '');
    const parts = readHelper(text);
    const helper = parts.words[0] ?? '';
    if (this.stack.length >= deepest) {
      if (this.flattened.length === 0) report(this.context, this.located, token, `More than ${String(deepest)} blocks inside each other: these are not told apart.`);
      this.flattened.push(helper);
      return;
    }
    const decorator = inner[0] === '*' || inner[0] === '>';
    const control = inverse ? 'condition' : decorator ? 'block' : controlOf(helper, parts.words.length, this.language);
    const role = /\brole\s*=\s*["']?(\w+)/.exec(text)?.[1];
    const references = (control === 'condition' ? parts.references.map((r) => ({ ...r, tested: 'truth' as const })) : parts.references).filter(
      (r, i) => i > 0 || parts.words.length === 1 || r.path !== helper,
    );
    const section = control === 'loop' && helper !== 'each';
    const each = helper === 'each' || helper === 'with' || helper === 'let' || helper === 'list';
    const tag = this.place(token);
    this.stack.push({
      token,
      helper,
      control: /^(?:message|chat|role)$/.test(helper) && role !== undefined ? 'role' : control,
      binds: [...parts.block, ...(each && parts.block.length === 0 ? ['this', '*'] : section ? ['.', '?'] : each ? ['this'] : [])],
      name: decorator ? (parts.words[0]?.replace(/^["']|["']$/g, '') === 'inline' ? (parts.words[1] ?? '').replace(/^["']|["']$/g, '') : helper) : (role ?? null),
      references,
      branches: [{ tag, references, spans: [], truth: truthOf(helper, parts.words) }],
      exhaustive: false,
    });
  }

  private otherwise(token: ScanToken, rest: string): void {
    if (this.flattened.length > 0) return;
    const open = this.stack.at(-1);
    if (open === undefined) {
      report(this.context, this.located, token, 'Nothing is open here.');
      return;
    }
    const references = rest === '' ? [] : readHelper(rest.replace(/^(?:if|unless)\s+/, '')).references.map((r) => ({ ...r, tested: 'truth' as const }));
    if (rest === '') open.exhaustive = true;
    open.branches.push({ tag: this.place(token), references, spans: [], truth: truthOf(/^(?:if|unless)\b/.exec(rest)?.[0] ?? '', rest.split(/\s+/)) });
  }

  private end(token: ScanToken, name: string): void {
    const flat = this.flattened.lastIndexOf(name);
    if (flat >= 0) {
      this.flattened.length = flat;
      return;
    }
    this.flattened.length = 0;
    const depth = this.stack.findLastIndex((open) => open.helper === name || open.name === name);
    if (depth < 0) {
      report(this.context, this.located, token, `No {{#${name}}} is open here.`);
      return;
    }
    while (this.stack.length > depth + 1) {
      report(this.context, this.located, this.stack.at(-1)!.token, `{{#${this.stack.at(-1)!.helper}}} is never closed.`);
      this.close(token.start);
    }
    const closed = this.close(token.end);
    if (closed.control === 'role') this.spans.push({ kind: 'role-mark', ...this.place(token), role: 'user' });
  }

  private close(end: number): Open {
    const open = this.stack.pop()!;
    const spans = this.spans;
    const tag = this.place(open.token);
    if (open.control === 'role') spans.push({ kind: 'role-mark', ...tag, role: roleOf(open.name ?? undefined) ?? 'user' }, ...open.branches.flatMap((b) => b.spans));
    else if (open.helper === '*inline' || (open.control === 'block' && open.helper === 'inline')) this.inline.set(open.name ?? '', open.branches[0]!.spans);
    else {
      const { branches, exhaustive } = open.control === 'condition' ? living(open) : open;
      spans.push({
        kind: 'control',
        control: open.control,
        start: tag.start,
        end: this.located.endAt(end),
        tag,
        source: this.located.text.slice(open.token.start, open.token.end),
        binds: open.binds,
        name: open.name,
        references: open.references,
        constant: null,
        branches,
        exhaustive,
      });
    }
    return open;
  }

  private partial(token: ScanToken, inner: string): void {
    const parts = readHelper(inner);
    const name = parts.words[0] ?? '';
    const dynamic = name.startsWith('(');
    const target = dynamic ? null : name.replace(/^["']|["']$/g, '');
    const inline = target === null ? undefined : this.inline.get(target);
    const found = target === null || inline !== undefined ? null : findInclude(partialNames(target, this.context.path), this.context, 0);
    const inside = found === null ? null : insideInclude(this.context, found.path);
    const spans = inline ?? (found === null ? null : parseHandlebars(bodyOf(found.text), this.language, inside!));
    const include: Span = {
      kind: 'include',
      ...this.place(token),
      source: this.located.text.slice(token.start, token.end),
      target,
      references: dynamic ? parts.references : parts.references.slice(1),
      path: found?.path ?? null,
      spans,
    };
    this.spans.push(spans === null ? include : this.bound(token, parts.words.slice(1), include));
  }

  /** `{{> name context key=value}}`: inside, bare names belong to the context and each key has its value. */
  private bound(token: ScanToken, words: readonly string[], include: Span): Span {
    return words.reduce((inner: Span, word): Span => {
      const pair = /^([^\s"'()=]+)=([^]*)$/.exec(word);
      const { references } = readHelper(pair?.[2] ?? word);
      if (pair === null && references.length === 0) return inner;
      const tag = this.place(token);
      const source = this.located.text.slice(token.start, token.end);
      return { kind: 'control', control: 'with', ...tag, tag, source, binds: pair === null ? ['this', '*'] : [pair[1]!], name: null, references, constant: null, branches: [{ tag, references: [], spans: [inner] }], exhaustive: false };
    }, include);
  }
}

function controlOf(helper: string, words: number, language: 'handlebars' | 'mustache'): ControlSpan['control'] {
  if (language === 'mustache') return 'loop';
  if (helper === 'each' || helper === 'list') return 'loop';
  if (helper === 'with' || helper === 'let') return 'with';
  if (/^(?:if|unless|ifEquals|ifEq|ifCond|unlessEquals|eq|is|isnt|compare|and|or)$/.test(helper)) return 'condition';
  return words === 1 ? 'loop' : 'block';
}

/** What `{{#if false}}` and the like give, or null. */
function truthOf(helper: string, words: readonly string[]): boolean | null {
  const word = words.length === 2 && /^(?:if|unless)$/.test(helper) ? words[1]! : '';
  const truth = word === 'true' ? true : /^(?:false|null|undefined|0|""|'')$/.test(word) ? false : null;
  return truth !== null && helper === 'unless' ? !truth : truth;
}

/** File names of a partial: as written when it has an extension, else with those of templates; `_name` as Dotprompt has it. */
function partialNames(target: string, from: string): string[] {
  const own = /\.[^./\\]+$/.exec(from)?.[0] ?? '';
  const extensions = [...new Set([own, '.hbs', '.handlebars', '.mustache', '.prompt'])].filter((e) => e !== '' && e !== '.md' && e !== '.txt');
  const names = /\.\w+$/.test(target) ? [target] : extensions.flatMap((e) => [`${target}${e}`, `_${target}${e}`]);
  return [...names, ...names.map((n) => `partials/${n}`), ...names.map((n) => `../partials/${n}`)];
}

function bodyOf(text: string): Located {
  const front = /^\ufeff?---\r?\n[^]*?\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  return Located.slice(text, front?.[0].length ?? 0);
}

const isBlank = (character: string | undefined) => character === ' ' || character === '\t';

/** Block tags, comments and partials alone on their line take the line with them. */
function standalone(text: string, tokens: readonly ScanToken[]): ScanToken[] {
  const out: ScanToken[] = tokens.map((t) => ({ ...t }));
  tokens.forEach((token, i) => {
    const first = text[token.inner.start];
    const block = token.type === 'comment' || (token.type === 'output' && (first === '#' || first === '/' || first === '^' || first === '!' || /^\s*else\b/.test(text.slice(token.inner.start, token.inner.start + 8))));
    if (!block) return;
    let lineStart = token.start;
    while (lineStart > 0 && isBlank(text[lineStart - 1])) lineStart -= 1;
    let lineEnd = token.end;
    while (isBlank(text[lineEnd])) lineEnd += 1;
    if (text[lineEnd] === '\r') lineEnd += 1;
    const ends = lineEnd >= text.length || text[lineEnd] === '\n';
    if (lineEnd < text.length) lineEnd += 1;
    const before = out[i - 1];
    const after = out[i + 1];
    const alone = ends && (lineStart === 0 || text[lineStart - 1] === '\n');
    if (!alone || (before !== undefined && before.type !== 'text' && before.end > lineStart) || (after !== undefined && after.type !== 'text' && after.start < lineEnd)) return;
    if (before?.type === 'text' && before.start <= lineStart) out[i - 1] = { ...before, end: lineStart };
    if (after?.type === 'text' && after.end >= lineEnd) out[i + 1] = { ...after, start: lineEnd };
  });
  return out;
}
