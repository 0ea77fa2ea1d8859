/** Jinja2, Nunjucks and Liquid: statements and expressions over the tokens of the scanner. */
import { readExpression } from '../expression';
import { Located } from '../located';
import type { ControlSpan, IncludeSpan, Place, Reference, Role, Span } from '../prompt';
import { scan, type ScanToken } from './scanner';
import { dependencies, expressionSpan, findInclude, insideInclude, rawSpan, report, textSpan, type TemplateContext } from './template';

/** Which of the three. */
export type JinjaLanguage = 'jinja' | 'nunjucks' | 'liquid';

interface Open {
  readonly token: ScanToken;
  readonly keyword: string;
  readonly control: ControlSpan['control'];
  readonly binds: readonly string[];
  readonly name: string | null;
  readonly references: readonly Reference[];
  /** `truth`: what a constant condition gives, null for one that depends on something. */
  readonly branches: { tag: Place; references: readonly Reference[]; spans: Span[]; truth?: boolean | null }[];
  exhaustive: boolean;
  readonly role: Role | null;
}

const blockKeywords: Readonly<Record<string, ControlSpan['control']>> = {
  if: 'condition',
  ifAsync: 'condition',
  unless: 'condition',
  ifchanged: 'condition',
  case: 'condition',
  switch: 'condition',
  for: 'loop',
  asyncEach: 'loop',
  asyncAll: 'loop',
  tablerow: 'loop',
  macro: 'macro',
  block: 'block',
  filter: 'block',
  call: 'block',
  autoescape: 'block',
  generation: 'block',
  spaceless: 'block',
  trans: 'block',
  chat: 'block',
  with: 'with',
  capture: 'set',
};
/** Nunjucks' loops end by other names. */
const endOf: Readonly<Record<string, string>> = { asyncEach: 'each', asyncAll: 'all', ifAsync: 'if' };
/** Blocks inside blocks beyond this are read as if they stood in the innermost one. */
const deepest = 100;
const middles = /^(?:elif|elseif|elsif|else|when|case|default)$/;

/** Parses template text into spans; problems, macros and read files go into the context. */
export function parseJinja(located: Located, language: JinjaLanguage, context: TemplateContext): Span[] {
  return new Builder(located, language, context).run();
}

class Builder {
  private readonly stack: Open[] = [];
  private readonly top: Span[] = [];
  /** Keywords of open blocks that stand too deep to be blocks. */
  private readonly flattened: string[] = [];
  private parent: { span: IncludeSpan; spans: readonly Span[] } | null = null;
  private readonly located: Located;
  private readonly language: JinjaLanguage;
  private readonly context: TemplateContext;

  constructor(located: Located, language: JinjaLanguage, context: TemplateContext) {
    this.located = located;
    this.language = language;
    this.context = context;
  }

  run(): Span[] {
    const tokens = scan(this.located.text, this.language);
    tokens.forEach((token, i) => {
      this.token(token, tokens[i - 1], tokens[i + 1]);
    });
    while (this.stack.length > 0) {
      const open = this.stack[this.stack.length - 1]!;
      report(this.context, this.located, open.token, `{% ${open.keyword} %} is never closed.`);
      this.close(this.located.text.length);
    }
    return this.parent === null ? this.top : this.inherit();
  }

  private get spans(): Span[] {
    return this.stack[this.stack.length - 1]?.branches.at(-1)?.spans ?? this.top;
  }

  private token(token: ScanToken, before: ScanToken | undefined, after: ScanToken | undefined): void {
    if (token.type === 'text') textSpan(this.located, this.context.trimsBlocks === true ? this.trimmed(token, before, after) : token, before, after, this.spans);
    else if (token.type === 'raw') {
      if (token.unclosed === true) report(this.context, this.located, token, 'This tag is never closed; it is read as text.');
      this.spans.push(rawSpan(this.located, token));
    } else if (token.type === 'comment') {
      this.spans.push({ kind: 'comment', start: this.located.at(token.start), end: this.located.endAt(token.end), text: this.inner(token) });
    } else if (token.type === 'output') this.output(token);
    else this.statement(token);
  }

  /** Without the line break right behind a tag or comment and the indentation before one, unless a `+` keeps them. */
  private trimmed(token: ScanToken, before: ScanToken | undefined, after: ScanToken | undefined): ScanToken {
    const { text } = this.located;
    const isTag = (other: ScanToken | undefined) => other?.type === 'tag' || other?.type === 'comment';
    let { start, end } = token;
    if (before !== undefined && isTag(before) && text[before.end - 3] !== '+') start += /^\r?\n/.exec(text.slice(start, Math.min(start + 2, end)))?.[0].length ?? 0;
    if (after !== undefined && isTag(after) && text[after.start + 2] !== '+') {
      let indent = end;
      while (indent > start && /[ \t]/.test(text[indent - 1]!)) indent -= 1;
      if (indent === 0 || text[indent - 1] === '\n') end = indent;
    }
    return { ...token, start, end };
  }

  private inner(token: ScanToken): string {
    return this.located.text.slice(token.inner.start, token.inner.end);
  }

  private place(token: ScanToken): Place {
    return { start: this.located.at(token.start), end: this.located.endAt(token.end) };
  }

  private output(token: ScanToken): void {
    const inner = this.inner(token);
    if (inner.trim() === '') {
      report(this.context, this.located, token, 'This expression is empty.');
      return;
    }
    this.spans.push(expressionSpan(this.located, token, inner, readExpression(inner)));
  }

  private statement(token: ScanToken): void {
    const inner = this.inner(token).trim();
    const keyword = /^[A-Za-z_]\w*/.exec(inner)?.[0] ?? '';
    const rest = inner.slice(keyword.length).trim();
    if (keyword === 'set' || keyword === 'assign') this.set(token, rest);
    else if (keyword === 'include' || keyword === 'render') this.include(token, rest);
    else if (keyword === 'extends' || keyword === 'layout') this.extends(token, rest);
    else if (keyword === 'import' || keyword === 'from') this.import(inner);
    else if (keyword === 'echo' && this.language === 'liquid') this.echo(token, rest);
    else if (keyword === 'liquid' && this.language === 'liquid') this.lines(token);
    else if (/^end/.test(keyword)) this.end(token, keyword.slice(3).replace(/^_/, ''));
    else if (middles.test(keyword) && this.enclosing()) this.middle(token, keyword, rest);
    else if (Object.hasOwn(blockKeywords, keyword)) this.open(token, keyword, rest);
    else this.single(token, keyword, rest);
  }

  private echo(token: ScanToken, rest: string): void {
    if (rest !== '') this.spans.push(expressionSpan(this.located, token, rest, readExpression(rest)));
  }

  /** Liquid `{% liquid %}`: a tag a line, all at the place of the one that holds them. */
  private lines(token: ScanToken): void {
    let start = token.inner.start;
    let comment = false;
    for (const [index, line] of this.inner(token).split('\n').entries()) {
      const end = start + line.length;
      const text = line.trim();
      if (/^(?:end)?comment\b/.test(text)) comment = text.startsWith('c');
      else if (text !== '' && !comment && !text.startsWith('#') && (index > 0 || !text.startsWith('liquid'))) this.statement({ ...token, inner: { start, end } });
      start = end + 1;
    }
  }

  private enclosing(): boolean {
    const control = this.stack.at(-1)?.control;
    return control === 'condition' || control === 'loop';
  }

  /** `do`, `break`, `now`, `cycle` and tags of extensions. */
  private single(token: ScanToken, keyword: string, rest: string): void {
    if (/^(?:do|break|continue|debug|comment|liquid|increment|decrement|)$/.test(keyword)) {
      if (keyword === '') this.spans.push({ kind: 'comment', ...this.place(token), text: rest });
      return;
    }
    const parts = readExpression(rest);
    const references = dependencies(parts);
    const strings = [...rest.matchAll(/["']([^"']*)["']/g)].map((m) => m[1]!);
    const span = expressionSpan(this.located, token, this.inner(token), parts);
    this.spans.push({ ...span, name: keyword, references: [{ path: keyword, call: true, strings }, ...references], constant: null, literals: [], macro: null });
  }

  private open(token: ScanToken, keyword: string, rest: string): void {
    if (this.stack.length >= deepest) {
      if (this.flattened.length === 0) report(this.context, this.located, token, `More than ${String(deepest)} blocks inside each other: these are not told apart.`);
      this.flattened.push(keyword);
      return;
    }
    const control = blockKeywords[keyword]!;
    let binds: string[] = [];
    let name: string | null = null;
    let references: Reference[];
    let role: Role | null = null;
    if (control === 'loop') {
      const loop = /^([^]*?)\s+in\s+([^]+)$/.exec(rest);
      binds = names(loop?.[1] ?? rest);
      references = dependencies(readExpression((loop?.[2] ?? '').replace(/\brecursive\s*$/, '').replace(/\breversed\s*$|\b(?:limit|offset|cols)\s*:\s*[\w.]+/g, '')));
    } else if (control === 'macro') {
      const macro = /^([\w.]+)\s*(?:\(([^]*)\))?/.exec(rest);
      name = macro?.[1] ?? null;
      binds = splitParameters(macro?.[2] ?? '');
      references = [];
    } else if (keyword === 'block') {
      name = /^[\w-]+/.exec(rest)?.[0] ?? null;
      references = [];
    } else if (keyword === 'chat') {
      role = roleOf(/role\s*=\s*["'](\w+)/.exec(rest)?.[1]);
      references = [];
    } else if (keyword === 'with') {
      binds = [...rest.matchAll(/([A-Za-z_]\w*)\s*=(?!=)/g)].map((m) => m[1]!);
      references = dependencies(readExpression(rest)).filter((r) => !binds.includes(r.path));
    } else if (control === 'set') {
      binds = [rest];
      references = [];
    } else references = dependencies(readExpression(rest, true));
    if (keyword === 'call') references = dependencies(readExpression(rest.replace(/^\([^)]*\)\s*/, '')));
    const tag = this.place(token);
    const truth = keyword === 'if' || keyword === 'ifAsync' ? truthOf(rest, this.language) : keyword === 'unless' ? negated(truthOf(rest, this.language)) : null;
    this.stack.push({ token, keyword, control, binds, name, references, role, exhaustive: false, branches: [{ tag, references, spans: [], truth }] });
  }

  private middle(token: ScanToken, keyword: string, rest: string): void {
    if (this.flattened.length > 0) return;
    const open = this.stack.at(-1)!;
    const references = keyword === 'else' || keyword === 'default' ? [] : dependencies(readExpression(rest.replace(/^if\s+/, ''), true));
    const selector = keyword === 'when' || keyword === 'case' ? open.references : [];
    if (keyword === 'else' || keyword === 'default') open.exhaustive = true;
    if ((keyword === 'when' || keyword === 'case') && open.branches.length === 1 && open.branches[0]!.spans.every((s) => s.kind === 'literal')) open.branches.length = 0;
    const truth = /^el(?:if|seif|sif)$/.test(keyword) ? truthOf(rest, this.language) : keyword === 'else' && /^if\s/.test(rest) ? truthOf(rest.slice(2).trim(), this.language) : null;
    open.branches.push({ tag: this.place(token), references: [...selector, ...references], spans: [], truth });
  }

  private end(token: ScanToken, keyword: string): void {
    const flat = this.flattened.lastIndexOf(keyword);
    if (flat >= 0) {
      this.flattened.length = flat;
      return;
    }
    this.flattened.length = 0;
    const depth = this.stack.findLastIndex((open) => open.keyword === keyword || endOf[open.keyword] === keyword || (keyword === 'set' && open.keyword === 'set') || (keyword === '' && open.keyword !== ''));
    if (depth < 0) {
      report(this.context, this.located, token, keyword === '' ? 'Nothing is open here.' : `No {% ${keyword} %} is open here.`);
      return;
    }
    while (this.stack.length > depth + 1) {
      const inner = this.stack.at(-1)!;
      report(this.context, this.located, inner.token, `{% ${inner.keyword} %} is never closed.`);
      this.close(token.start);
    }
    this.close(token.end);
  }

  private close(end: number): void {
    const open = this.stack.pop()!;
    const tag = this.place(open.token);
    const spans = this.spans;
    if (open.role !== null) {
      spans.push({ kind: 'role-mark', ...tag, role: open.role }, ...open.branches.flatMap((b) => b.spans));
      return;
    }
    const { branches, exhaustive } = open.control === 'condition' ? living(open) : open;
    const control: ControlSpan = {
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
    };
    if (open.control === 'macro' && open.name !== null) this.context.macros[open.name] ??= control;
    spans.push(control);
  }

  private set(token: ScanToken, rest: string): void {
    const assignment = /^([^=]*?)\s*=(?!=)\s*([^]+)$/.exec(rest);
    const tag = this.place(token);
    if (assignment === null) {
      const target = rest.split('|')[0]!.trim();
      this.stack.push({ token, keyword: 'set', control: 'set', binds: [target], name: null, references: [], role: null, exhaustive: false, branches: [{ tag, references: [], spans: [] }] });
      return;
    }
    const parts = readExpression(assignment[2]!);
    const references = dependencies(parts);
    this.spans.push({
      kind: 'control',
      control: 'set',
      ...tag,
      tag,
      source: this.located.text.slice(token.start, token.end),
      binds: names(assignment[1]!),
      name: null,
      references,
      constant: references.length === 0 ? (parts.constant ?? parts.literals.join('')) : null,
      branches: [],
      exhaustive: false,
    });
  }

  private include(token: ScanToken, rest: string): void {
    const constant = /^(["'])([^"']*)\1\s*(?:$|with\b|without\b|ignore\b|,|only\b|for\b)/.exec(rest);
    const list = /^\[\s*(["'][^\]]*)\]/.exec(rest);
    const targets = constant !== null ? [constant[2]!] : list !== null ? [...list[1]!.matchAll(/["']([^"']+)["']/g)].map((m) => m[1]!) : [];
    const argument = (constant === null ? rest : rest.slice(constant[2]!.length + 2)).replace(/\b(?:ignore\s+missing|with(?:out)?\s+context|with|only|for|as)\b/g, ' ').replace(/[\w-]+\s*:/g, ' ');
    const references = list === null ? dependencies(readExpression(argument)) : [];
    const names = this.language === 'liquid' ? targets.flatMap((t) => [t, `${t}.liquid`, `_${t}.liquid`]) : targets;
    const found = targets.length === 0 ? null : findInclude(names, this.context);
    const include: IncludeSpan = {
      kind: 'include',
      ...this.place(token),
      source: this.located.text.slice(token.start, token.end),
      target: targets[0] ?? null,
      references,
      path: found?.path ?? null,
      spans: found === null ? null : this.read(found),
    };
    this.spans.push(found === null || this.language !== 'liquid' || targets[0] === undefined ? include : this.given(token, rest, targets[0], include));
  }

  /** Liquid `{% render 'p', key: value %}` and `{% include 'p' with value as key %}`: inside, each key has its value. */
  private given(token: ScanToken, rest: string, target: string, include: Span): Span {
    const value = /(?:"[^"]*"|'[^']*'|[^\s,|]+)(?:\s*\|\s*(?:[^,"']|"[^"]*"|'[^']*')*)?/.source;
    const pairs = [...rest.matchAll(new RegExp(`([\\w-]+)\\s*:\\s*(${value})`, 'g'))].map((m) => ({ name: m[1]!, text: m[2]! }));
    const whole = new RegExp(`\\b(?:with|for)\\s+("[^"]*"|'[^']*'|[\\w.\\[\\]-]+)(?:\\s+as\\s+([\\w-]+))?`).exec(rest.replace(/^(["']).*?\1/, ''));
    if (whole !== null) pairs.push({ name: whole[2] ?? target.replace(/^.*\//, '').replace(/\.liquid$/, ''), text: whole[1]! });
    const tag = this.place(token);
    const source = this.located.text.slice(token.start, token.end);
    return pairs.reduce((inner: Span, { name, text }): Span => {
      const references = dependencies(readExpression(text));
      return { kind: 'control', control: 'with', ...tag, tag, source, binds: [name], name: null, references, constant: null, branches: [{ tag, references: [], spans: [inner] }], exhaustive: false };
    }, include);
  }

  private read(found: { path: string; text: string }): Span[] {
    return parseJinja(Located.slice(found.text), this.language, insideInclude(this.context, found.path));
  }

  private extends(token: ScanToken, rest: string): void {
    const target = /^["']([^"']+)["']/.exec(rest)?.[1] ?? null;
    const found = target === null ? null : findInclude([target], this.context);
    const span: IncludeSpan = {
      kind: 'include',
      ...this.place(token),
      source: this.located.text.slice(token.start, token.end),
      target,
      references: target === null ? dependencies(readExpression(rest)) : [],
      path: found?.path ?? null,
      spans: null,
    };
    if (found === null) this.spans.push(span);
    else this.parent = { span, spans: parseJinja(bodyOf(found.text), this.language, insideInclude(this.context, found.path)) };
  }

  /** The parent's text with this file's blocks in their places; what stands outside blocks is not sent. */
  private inherit(): Span[] {
    const own = new Map<string, ControlSpan>();
    const collect = (spans: readonly Span[]): void => {
      for (const span of spans) {
        if (span.kind === 'control' && span.control === 'block' && span.name !== null) own.set(span.name, { ...span, local: true });
        if (span.kind === 'control') for (const branch of span.branches) collect(branch.spans);
      }
    };
    collect(this.top);
    const replace = (spans: readonly Span[]): Span[] =>
      spans.map((span) => {
        if (span.kind !== 'control') return span;
        const block = span.control === 'block' && span.name !== null ? own.get(span.name) : undefined;
        return block ?? { ...span, branches: span.branches.map((b) => ({ ...b, spans: replace(b.spans) })) };
      });
    const before = this.top.filter((s) => s.kind === 'role-mark' || s.kind === 'comment' || (s.kind === 'control' && (s.control === 'set' || s.control === 'macro')));
    return [...before, { ...this.parent!.span, spans: replace(this.parent!.spans) }];
  }

  private import(inner: string): void {
    const from = /^from\s+["']([^"']+)["']\s+import\s+([^]+)$/.exec(inner);
    const whole = /^import\s+["']([^"']+)["']\s+as\s+(\w+)/.exec(inner);
    const target = from?.[1] ?? whole?.[1];
    if (target === undefined) return;
    const found = findInclude([target], this.context);
    if (found === null) return;
    const inside: TemplateContext = { ...insideInclude(this.context, found.path), macros: {} };
    parseJinja(Located.slice(found.text), this.language, inside);
    if (whole !== null) for (const [name, macro] of Object.entries(inside.macros)) this.context.macros[`${whole[2]!}.${name}`] ??= macro;
    for (const item of from?.[2]?.split(',') ?? []) {
      const pair = /^\s*(\w+)(?:\s+as\s+(\w+))?/.exec(item);
      const macro = pair === null ? undefined : inside.macros[pair[1]!];
      if (macro !== undefined) this.context.macros[pair![2] ?? pair![1]!] ??= macro;
    }
  }
}

/** The branches that can be sent: not those of a condition that is never true, and none behind one that always is. */
export function living<T extends { readonly truth?: boolean | null; readonly references: readonly Reference[] }>(open: { readonly branches: readonly T[]; readonly exhaustive: boolean }): { branches: readonly T[]; exhaustive: boolean } {
  const sent = open.branches.findIndex((b) => b.truth === true);
  const reached = sent < 0 ? open.branches : open.branches.slice(0, sent + 1);
  return { branches: reached.filter((b) => b.truth !== false), exhaustive: open.exhaustive || sent >= 0 };
}

/** What a condition made of a constant alone gives, or null. */
function truthOf(condition: string, language: JinjaLanguage): boolean | null {
  const not = /^not\s+([^]+)$/.exec(condition);
  if (not !== null) return negated(truthOf(not[1]!, language));
  const bare = condition.replace(/^\(\s*([^()]*?)\s*\)$/, '$1');
  if (/^(?:true|True)$/.test(bare)) return true;
  if (/^(?:false|False|none|None|null|nil)$/.test(bare)) return false;
  if (/^(?:\d+|""|'')$/.test(bare)) return language === 'liquid' || !/^(?:0+|""|'')$/.test(bare);
  return null;
}

function negated(truth: boolean | null): boolean | null {
  return truth === null ? null : !truth;
}

function names(list: string): string[] {
  return list
    .split(',')
    .map((n) => n.trim().replace(/^\(|\)$/g, ''))
    .filter((n) => n !== '');
}

function splitParameters(list: string): string[] {
  return names(list.replace(/=\s*(?:"[^"]*"|'[^']*'|\[[^\]]*\]|\([^)]*\)|[^,]*)/g, ''));
}

/** The body of a parent template: front matter is not inherited. */
function bodyOf(text: string): Located {
  const front = /^\ufeff?---\r?\n[^]*?\r?\n---[ \t]*(?:\r?\n|$)/.exec(text);
  return Located.slice(text, front?.[0].length ?? 0);
}

/** The role that a word names, or null. */
export function roleOf(word: string | undefined): Role | null {
  switch (word?.toLowerCase()) {
    case 'system':
    case 'developer':
    case 'user':
    case 'assistant':
    case 'tool':
      return word.toLowerCase() as Role;
    case 'human':
      return 'user';
    case 'ai':
    case 'model':
    case 'bot':
      return 'assistant';
    case 'function':
      return 'tool';
    default:
      return null;
  }
}
