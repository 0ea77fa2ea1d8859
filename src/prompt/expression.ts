/** Reads the inside of a template expression: which values it depends on, which text it sends anyway. Grammar only, no judgement. */
import type { Reference } from './prompt';
import { isTimePlugin } from './vocabulary';

/** What an expression depends on. */
export interface ExpressionParts {
  readonly references: readonly Reference[];
  readonly filters: readonly string[];
  /** Constant strings given to filters, in order. */
  readonly filterStrings: readonly string[];
  /** The text when it is made of constants alone and no filter, else null. */
  readonly constant: string | null;
  /** Constant strings it joins to its values. */
  readonly literals: readonly string[];
  /** Its one variable when it is nothing else, filters aside; or null. */
  readonly plain: string | null;
  /** The arguments of the one outermost call, for macro calls; null when it is not just a call. */
  readonly call: { readonly path: string; readonly arguments: readonly (readonly Reference[])[] } | null;
}

interface Token {
  readonly type: 'name' | 'string' | 'number' | 'op';
  readonly text: string;
}

const keywords = new Set(
  'and or not in is if else true false none null True False None nil undefined contains as await new typeof void instanceof'.split(
    ' ',
  ),
);
const tokenPattern = /\s+|"(?:[^"\\]|\\[^])*"|'(?:[^'\\]|\\[^])*'|`(?:[^`\\]|\\[^])*`|\d+(?:\.\d+)?|[\p{L}_$@][\p{L}\p{N}_$]*|\/\/|\*\*|==|!=|<=|>=|&&|\|\||\?\.|\?\?|[^]/gu;

function tokenize(source: string): Token[] {
  const tokens: Token[] = [];
  for (const [text] of source.matchAll(tokenPattern)) {
    const c = text[0]!;
    if (/\s/.test(c)) continue;
    if ((c === '"' || c === "'" || c === '`') && text.length >= 2) tokens.push({ type: 'string', text: unquote(text) });
    else if (/\d/.test(c)) tokens.push({ type: 'number', text });
    else if (/[\p{L}_$@]/u.test(c)) tokens.push({ type: 'name', text });
    else tokens.push({ type: 'op', text });
  }
  return withoutDeepest(tokens);
}

/** Brackets inside brackets beyond this are left out, what stands in them is not: the reader goes down one call a bracket. */
const deepest = 64;

function withoutDeepest(tokens: Token[]): Token[] {
  let depth = 0;
  return tokens.filter(({ type, text }) => {
    if (type !== 'op') return true;
    if (text === '(' || text === '[' || text === '{') return (depth += 1) <= deepest;
    return (text !== ')' && text !== ']' && text !== '}') || depth === 0 || (depth -= 1) < deepest;
  });
}

function unquote(text: string): string {
  return text.slice(1, -1).replace(/\\([^])/g, (_, c: string) => (c === 'n' ? '\n' : c === 't' ? '\t' : c));
}

const plainPath = /^\s*[A-Za-z_]\w*(?:\.[A-Za-z_]\w*)*\s*$/;
const nothing: readonly never[] = [];

/** Most expressions are one variable. */
function plainExpression(source: string, condition: boolean): ExpressionParts | null {
  if (!plainPath.test(source)) return null;
  const path = source.trim();
  const dot = path.indexOf('.');
  if (keywords.has(dot < 0 ? path : path.slice(0, dot))) return null;
  const reference: Reference = condition ? { path, call: false, strings: nothing, tested: 'truth' } : { path, call: false, strings: nothing };
  return { references: [reference], filters: nothing, filterStrings: nothing, constant: null, literals: nothing, plain: path, call: null };
}

/** Reads an expression of the Jinja family (Jinja2, Nunjucks, Liquid, Python- and JavaScript-like). `condition` asks only for truth. */
export function readExpression(source: string, condition = false): ExpressionParts {
  return plainExpression(source, condition) ?? new Reader(tokenize(source), condition).read();
}

class Reader {
  private i = 0;
  private readonly references: Reference[] = [];
  private readonly filters: string[] = [];
  private readonly filterStrings: string[] = [];
  private readonly literals: string[] = [];
  private constant = true;
  private pieces: string[] = [];
  private outer: ExpressionParts['call'] = null;
  private readonly tokens: readonly Token[];
  private readonly condition: boolean;

  constructor(tokens: readonly Token[], condition: boolean) {
    this.tokens = tokens;
    this.condition = condition;
  }

  read(): ExpressionParts {
    while (this.i < this.tokens.length) this.term(0);
    const constant = this.constant && this.tokens.length > 0 && this.filters.length === 0 ? this.pieces.join('') : null;
    const one = this.references.length === 1 && this.literals.length === 0 ? this.references[0]! : null;
    return {
      references: this.references,
      filters: this.filters,
      filterStrings: this.filterStrings,
      constant,
      literals: constant === null ? this.literals : [],
      plain: one !== null && !one.call && this.isPathOnly() ? one.path : null,
      call: this.outer,
    };
  }

  private isPathOnly(): boolean {
    const pipe = this.tokens.findIndex((t) => t.text === '|' && t.type === 'op');
    const head = pipe < 0 ? this.tokens : this.tokens.slice(0, pipe);
    return head.every((t) => t.type !== 'op' || '.[]?.'.includes(t.text));
  }

  /** One operand or operator; `depth` counts the brackets around it. */
  private term(depth: number): void {
    const token = this.tokens[this.i]!;
    this.i += 1;
    if (token.type === 'string') this.string(token.text, depth);
    else if (token.type === 'number') this.number(token.text);
    else if (token.type === 'name') this.name(token.text, depth);
    else if (token.text === '|') this.filter(depth);
    else if ('([{'.includes(token.text)) this.group(token.text, depth);
    else if (token.text !== '+' && token.text !== '~' && token.text !== ')' && token.text !== '}' && token.text !== ']') this.constant = this.constant && token.text === ',';
  }

  private string(text: string, depth: number): void {
    const before = this.tokens[this.i - 2]?.text ?? '';
    const after = this.tokens[this.i]?.text ?? '';
    const compared = /^(?:==|!=|in|not|is|<|>|<=|>=|contains|:)$/;
    this.pieces.push(text);
    if (depth === 0 && !compared.test(before) && !compared.test(after) && after !== '.') this.literals.push(text);
    if (after === '.' || after === '[') this.skipAccess(text);
  }

  private number(text: string): void {
    this.pieces.push(text);
  }

  private group(open: string, depth: number): void {
    const close = open === '(' ? ')' : open === '[' ? ']' : '}';
    const inner = open === '(' && depth === 0 ? 0 : depth + 1;
    while (this.i < this.tokens.length && this.tokens[this.i]!.text !== close) this.term(inner);
    this.i += 1;
    if (open !== '(') this.constant = false;
    if (this.tokens[this.i]?.text === '.') this.skipAccess('');
  }

  /** `.method(args)` on a string or a group: the arguments count, the method does not change more often than its object. */
  private skipAccess(head: string): void {
    const before = this.references.length;
    let path = '';
    while (this.i < this.tokens.length) {
      const text = this.tokens[this.i]!.text;
      if ((text === '.' || text === '?.') && this.tokens[this.i + 1]?.type === 'name') {
        path += `.${this.tokens[this.i + 1]!.text}`;
        this.i += 2;
      } else if (text === '(' || text === '[') {
        this.i += 1;
        this.arguments(text === '(' ? ')' : ']');
      } else break;
    }
    this.constant = false;
    if (head !== '' && path.includes('__') && this.references.length === before) this.references.push({ path: `string${path}`, call: true, strings: [] });
  }

  private filter(depth: number): void {
    const token = this.tokens[this.i];
    if (token?.type !== 'name') return;
    this.i += 1;
    this.filters.push(token.text);
    const next = this.tokens[this.i]?.text;
    if (next === '(') {
      this.i += 1;
      for (const list of this.arguments(')')) this.references.push(...list);
      this.collectStrings();
    } else if (next === ':') {
      this.i += 1;
      while (this.i < this.tokens.length && this.tokens[this.i]!.text !== '|') {
        const argument = this.tokens[this.i]!;
        if (argument.type === 'string') {
          this.filterStrings.push(argument.text);
          this.i += 1;
        } else this.term(depth + 1);
      }
    }
  }

  private lastArguments: string[] = [];

  private collectStrings(): void {
    this.filterStrings.push(...this.lastArguments);
  }

  /** Reads a bracket's content up to `close`; returns the references of each argument and keeps constant strings in `lastArguments`. */
  private arguments(close: string): Reference[][] {
    const lists: Reference[][] = [];
    const strings: string[] = [];
    let current: Reference[] = [];
    let any = false;
    while (this.i < this.tokens.length && this.tokens[this.i]!.text !== close) {
      const token = this.tokens[this.i]!;
      any = true;
      if (token.text === ',' && token.type === 'op') {
        this.i += 1;
        lists.push(current);
        current = [];
      } else if (token.type === 'string') {
        strings.push(token.text);
        this.i += 1;
      } else if (token.type === 'name' && this.tokens[this.i + 1]?.text === '=' && this.tokens[this.i + 2]?.text !== '=') {
        this.i += 2;
      } else {
        const inner = new Reader(this.tokens, false);
        inner.i = this.i;
        inner.term(1);
        this.i = Math.max(inner.i, this.i + 1);
        current.push(...inner.references);
        strings.push(...inner.filterStrings);
      }
    }
    this.i += 1;
    if (any) lists.push(current);
    this.lastArguments = strings;
    return lists;
  }

  private name(first: string, depth: number): void {
    if (first === 'is' || first === 'instanceof') {
      this.test();
      return;
    }
    if (keywords.has(first)) {
      if (/^(?:true|false|none|null|True|False|None|nil)$/.test(first)) this.pieces.push(first);
      else this.constant = false;
      return;
    }
    this.constant = false;
    this.outer = null;
    const begin = this.i - 1;
    let path = first;
    let call = false;
    let given = false;
    let strings: string[] = [];
    const nested: Reference[] = [];
    let lists: Reference[][] = [];
    while (this.i < this.tokens.length) {
      const text = this.tokens[this.i]!.text;
      const next = this.tokens[this.i + 1];
      if ((text === '.' || text === '?.') && (next?.type === 'name' || next?.type === 'number')) {
        path += `.${next.text}`;
        this.i += 2;
      } else if (text === '[' && (next?.type === 'string' || next?.type === 'number') && this.tokens[this.i + 2]?.text === ']') {
        path += `.${next.text}`;
        this.i += 3;
      } else if (text === '[') {
        this.i += 1;
        this.arguments(']');
      } else if (text === '(') {
        this.i += 1;
        if (!call) given = this.tokens[this.i]?.text !== ')';
        lists = this.arguments(')');
        nested.push(...lists.flat());
        strings = [...strings, ...this.lastArguments];
        call = true;
        strings.push(...dateOnly(path, this.lastArguments, this.tokens.slice(Math.max(0, this.i - 4), this.i)));
        if (this.tokens[this.i]?.text === '.' || this.tokens[this.i]?.text === '?.') path += '()';
      } else break;
    }
    const tested = this.testedAs(begin, depth);
    this.references.push({ path, call, strings, ...(call ? { given } : {}), ...(tested === null ? {} : { tested }) }, ...nested);
    const pipe = this.tokens[this.i]?.text === '|';
    if (call && begin === 0 && (this.i >= this.tokens.length || pipe)) this.outer = { path, arguments: lists };
  }

  private testedAs(begin: number, depth: number): 'defined' | 'truth' | null {
    const before = this.tokens[begin - 1]?.text ?? '';
    const after = this.tokens[this.i]?.text ?? '';
    const third = this.tokens[this.i + 1]?.text ?? '';
    const test = third === 'not' ? (this.tokens[this.i + 2]?.text ?? '') : third;
    if (after === 'is' && /^(?:defined|undefined|none|None|string|mapping|iterable|sequence|number|boolean)$/.test(test)) return /^(?:un)?defined$/.test(test) ? 'defined' : null;
    const asksTruth = this.condition && depth === 0 && /^(?:|\(|and|or|not|&&|\|\||!)$/.test(before) && /^(?:|\)|and|or|&&|\|\|)$/.test(after);
    const inline = depth === 0 && /^(?:if|and|or|not|\()$/.test(before) && /^(?:else|and|or|\))$/.test(after) && this.tokens.slice(0, begin).some((t) => t.text === 'if' && t.type === 'name');
    return asksTruth || inline ? 'truth' : null;
  }

  /** `is [not] test(args)`: the test's name is no variable. */
  private test(): void {
    this.constant = false;
    if (this.tokens[this.i]?.text === 'not') this.i += 1;
    if (this.tokens[this.i]?.type === 'name') this.i += 1;
  }
}

/** Reads a Handlebars, Mustache or Semantic Kernel call: words parted by spaces, `key=value`, `(sub expression)`, `as |x|`. */
export function readHelper(source: string): ExpressionParts & { readonly words: readonly string[]; readonly block: readonly string[] } {
  if (/^[A-Za-z_][\w.]*$/.test(source) && !/^(?:true|false|null|undefined)$/.test(source)) {
    return { references: [{ path: source, call: false, strings: nothing }], filters: nothing, filterStrings: nothing, constant: null, literals: nothing, plain: source, call: null, words: [source], block: nothing };
  }
  const block = /\bas\s*\|([^|]*)\|/.exec(source);
  const text = block === null ? source : source.slice(0, block.index);
  const words = text.match(/"(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|\((?:[^()"']|"[^"]*"|'[^']*'|\([^()]*\))*\)|[^\s()=]+=(?:"[^"]*"|'[^']*'|\([^()]*\)|[^\s()]+)|[^\s()]+/g) ?? [];
  const references: Reference[] = [];
  const strings: string[] = [];
  let head: Reference | null = null;
  for (const [index, raw] of words.entries()) {
    const equals = index > 0 ? /^[^\s"'()=]+=/.exec(raw) : null;
    const word = equals === null ? raw : raw.slice(equals[0].length);
    if (/^["']/.test(word)) strings.push(word.slice(1, -1));
    else if (word.startsWith('(')) references.push(...readHelper(word.slice(1, -1)).references);
    else if (!/^(?:\d|true$|false$|null$|undefined$|-)/.test(word)) {
      const reference = { path: cleanPath(word), call: index === 0 && (words.length > 1 || isTimePlugin(word)), strings } satisfies Reference;
      if (index === 0) head = reference;
      references.push(reference);
    }
  }
  const only = words.length === 1 ? words[0] : null;
  const constant = only !== null && /^["']/.test(only) ? only.slice(1, -1) : null;
  return {
    references,
    filters: [],
    filterStrings: head?.call === true ? strings : [],
    constant,
    literals: [],
    plain: only !== null && constant === null && head !== null ? head.path : null,
    call: null,
    words,
    block: block === null ? [] : (block[1]!.match(/[^\s]+/g) ?? []),
  };
}

function cleanPath(word: string): string {
  return word.replace(/^\$/, '').replace(/\[([^\]]*)\]/g, '$1').replace(/\/(?=\w)/g, (_, i: number) => (i > 0 && word[i - 1] === '.' ? '/' : '.'));
}

/** A method that keeps only the date of a time counts as a date format. */
function dateOnly(path: string, strings: readonly string[], last: readonly Token[]): string[] {
  const method = path.slice(path.lastIndexOf('.') + 1);
  const text = last.map((t) => t.text).join('');
  const cut = /^(?:slice|substring|substr)$/.test(method) && /0,(?:4|7|8|10)\)$/.test(text);
  const whole = /^(?:toDateString|toLocaleDateString|getFullYear|getMonth|getDate|getDay|getUTC(?:FullYear|Month|Date|Day)|toISODate|date|weekday|isoweekday|toordinal|isocalendar)$/.test(method) && path.includes('.');
  return cut || whole || (method === 'split' && strings[0] === 'T') ? ['%Y-%m-%d'] : [];
}
