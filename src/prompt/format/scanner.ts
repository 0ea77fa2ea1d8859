/** The one scanner for delimiter languages: finds tags, comments and raw regions with exact places and survives half-typed text. */

/** A template language written with delimiters. */
export type TemplateLanguage = 'jinja' | 'nunjucks' | 'liquid' | 'handlebars' | 'mustache' | 'semantic-kernel' | 'double-brace';

/** A piece of template text; `start`/`end` are indices in the scanned text. */
export interface ScanToken {
  readonly type: 'text' | 'output' | 'tag' | 'comment' | 'raw';
  readonly start: number;
  readonly end: number;
  /** Inside of the delimiters without trim marks (for raw: the protected text). */
  readonly inner: { readonly start: number; readonly end: number };
  /** White space before or behind is removed. */
  readonly trimLeft: boolean;
  readonly trimRight: boolean;
  /** Set on a token that never closes: its opening delimiter is sent as text. */
  readonly unclosed?: boolean;
}

interface Delimiter {
  readonly open: string;
  readonly close: string;
  readonly type: 'output' | 'tag' | 'comment';
}

const jinjaLike: readonly Delimiter[] = [
  { open: '{#', close: '#}', type: 'comment' },
  { open: '{%', close: '%}', type: 'tag' },
  { open: '{{', close: '}}', type: 'output' },
];
const delimiters: Readonly<Record<TemplateLanguage, readonly Delimiter[]>> = {
  jinja: jinjaLike,
  nunjucks: jinjaLike,
  liquid: jinjaLike.slice(1),
  handlebars: [
    { open: '{{!--', close: '--}}', type: 'comment' },
    { open: '{{~!--', close: '--}}', type: 'comment' },
    { open: '{{!', close: '}}', type: 'comment' },
    { open: '{{~!', close: '}}', type: 'comment' },
    { open: '{{{', close: '}}}', type: 'output' },
    { open: '{{', close: '}}', type: 'output' },
  ],
  mustache: [
    { open: '{{!', close: '}}', type: 'comment' },
    { open: '{{{', close: '}}}', type: 'output' },
    { open: '{{', close: '}}', type: 'output' },
  ],
  'semantic-kernel': [{ open: '{{', close: '}}', type: 'output' }],
  'double-brace': [{ open: '{{', close: '}}', type: 'output' }],
};

/** Cuts template text into tokens, whole and in order: their places cover the text without gap. */
export function scan(text: string, language: TemplateLanguage): ScanToken[] {
  return new Scanner(text, language).run();
}

class Scanner {
  private readonly tokens: ScanToken[] = [];
  private textFrom = 0;
  private i = 0;
  private active: readonly Delimiter[];
  /** Closing delimiters that no longer come: a file of unclosed tags is searched to its end once. */
  private readonly absent = new Set<string>();
  private readonly text: string;
  private readonly language: TemplateLanguage;

  constructor(text: string, language: TemplateLanguage) {
    this.text = text;
    this.language = language;
    this.active = delimiters[language];
  }

  run(): ScanToken[] {
    while (this.i < this.text.length) {
      const at = this.nextOpen(this.i);
      if (at < 0) break;
      this.i = at;
      if (!this.escaped(at) && !this.rawBlock(at)) this.delimited(at);
    }
    this.flush(this.text.length);
    return this.tokens;
  }

  private nextOpen(from: number): number {
    if (this.active !== delimiters[this.language]) return this.text.indexOf(this.active[0]!.open, from);
    for (let i = this.text.indexOf('{', from); i >= 0; i = this.text.indexOf('{', i + 1)) {
      const next = this.text[i + 1];
      if (next === '{' || (this.active.length === 3 && (next === '%' || next === '#')) || (this.active.length === 2 && next === '%')) return i;
    }
    return -1;
  }

  private flush(to: number): void {
    if (to > this.textFrom) this.tokens.push({ type: 'text', start: this.textFrom, end: to, inner: { start: this.textFrom, end: to }, trimLeft: false, trimRight: false });
  }

  private push(token: ScanToken): void {
    this.flush(token.start);
    this.tokens.push(token);
    this.textFrom = token.end;
    this.i = token.end;
  }

  /** Handlebars `\{{x}}`: the backslash is not sent, the braces are. */
  private escaped(at: number): boolean {
    if (this.language !== 'handlebars' || this.text[at - 1] !== '\\' || this.text[at - 2] === '\\') return false;
    const close = this.text.indexOf('}}', at);
    const end = close < 0 ? this.text.length : close + 2;
    this.flush(at - 1);
    this.textFrom = at - 1;
    this.push({ type: 'raw', start: at - 1, end, inner: { start: at, end }, trimLeft: false, trimRight: false });
    return true;
  }

  private rawBlock(at: number): boolean {
    if (this.language === 'handlebars' && this.text.startsWith('{{{{', at)) {
      const open = /^\{\{\{\{\s*([\w-]+)[^}]*\}\}\}\}/.exec(this.text.slice(at, at + 200));
      if (open === null) return false;
      const from = at + open[0].length;
      const close = this.text.indexOf(`{{{{/${open[1]!}}}}}`, from);
      const to = close < 0 ? this.text.length : close;
      const end = close < 0 ? to : close + `{{{{/${open[1]!}}}}}`.length;
      this.push({ type: 'raw', start: at, end, inner: { start: from, end: to }, trimLeft: false, trimRight: false, ...(close < 0 ? { unclosed: true } : {}) });
      return true;
    }
    if (!this.text.startsWith('{%', at)) return false;
    if (this.language === 'liquid' && this.lineComment(at)) return true;
    const open = /^\{%[-+]?\s*(raw|verbatim|comment|doc)\b[^%]*?([-+]?)%\}/.exec(this.text.slice(at, at + 80));
    const comment = open?.[1] === 'comment' || open?.[1] === 'doc';
    if (open === null || (comment && this.language !== 'liquid')) return false;
    const from = at + open[0].length;
    const close = this.closingTag(open[1]!, from);
    const to = close?.index ?? this.text.length;
    this.push({
      type: comment ? 'comment' : 'raw',
      start: at,
      end: close === null ? to : to + close[0].length,
      inner: { start: from, end: to },
      trimLeft: open[0][2] === '-',
      trimRight: close?.[3] === '-',
      ...(close === null ? { unclosed: true } : {}),
    });
    return true;
  }

  /** The end tag of a raw region; comments of Liquid stand inside each other. */
  private closingTag(keyword: string, from: number): RegExpExecArray | null {
    const tag = new RegExp(`\\{%([-+]?)\\s*(end)?${keyword}\\s*([-+]?)%\\}`, 'g');
    tag.lastIndex = from;
    let depth = 1;
    for (let match = tag.exec(this.text); match !== null; match = tag.exec(this.text)) {
      if (match[2] === undefined) depth += keyword === 'comment' ? 1 : 0;
      else if ((depth -= 1) === 0) return match;
    }
    return null;
  }

  /** Liquid `{% # a note %}`: whatever stands in it is not read. */
  private lineComment(at: number): boolean {
    if (!/^\{%-?\s*#/.test(this.text.slice(at, at + 80))) return false;
    const close = this.find('%}', at + 2);
    if (close < 0) return false;
    const trim = this.text[close - 1] === '-';
    this.push({ type: 'comment', start: at, end: close + 2, inner: { start: at + 2, end: close }, trimLeft: this.text[at + 2] === '-', trimRight: trim });
    return true;
  }

  private delimited(at: number): void {
    const delimiter = this.active.find((d) => this.text.startsWith(d.open, at));
    if (delimiter === undefined) {
      this.i = at + 1;
      return;
    }
    const from = at + delimiter.open.length;
    const close = delimiter.type === 'comment' ? this.find(delimiter.close, from) : this.findClose(from, delimiter);
    if (close < 0) {
      this.push({ type: 'raw', start: at, end: from, inner: { start: at, end: from }, trimLeft: false, trimRight: false, unclosed: true });
      return;
    }
    const end = close + delimiter.close.length;
    if (delimiter.type === 'output' && this.language === 'mustache' && this.setDelimiters(at, from, close, end)) return;
    const marks = trimMarks(delimiter, this.language);
    let [start, stop] = [from, close];
    const left = start < stop && marks.has(this.text[start]!);
    const trimLeft = left && this.text[start] !== '+';
    if (left) start += 1;
    const right = start < stop && marks.has(this.text[stop - 1]!);
    const trimRight = right && this.text[stop - 1] !== '+';
    if (right) stop -= 1;
    this.push({ type: delimiter.type, start: at, end, inner: { start, end: stop }, trimLeft, trimRight });
  }

  private find(close: string, from: number): number {
    if (this.absent.has(close)) return -1;
    const at = this.text.indexOf(close, from);
    if (at < 0) this.absent.add(close);
    return at;
  }

  /** The end of an expression: strings and brackets are skipped, a new opening or an empty line means it was left open. */
  private findClose(from: number, delimiter: Delimiter): number {
    const { close } = delimiter;
    let depth = 0;
    const limit = Math.min(this.text.length, from + 20_000);
    for (let i = from; i < limit; i += 1) {
      const c = this.text[i]!;
      if (c === close[0] && this.text.startsWith(close, i) && (depth === 0 || close[0] !== '}')) return i;
      if (c === '"' || c === "'" || (c === '`' && this.language === 'nunjucks')) {
        const quote = this.stringEnd(i, c, limit);
        if (quote < 0) return this.bareClose(from, close, limit);
        i = quote;
      } else if (!close.endsWith('}')) continue;
      else if (c === '{' && (this.text[i + 1] === '{' || this.text[i + 1] === '%') && depth === 0) return -1;
      else if (c === '{') depth += 1;
      else if (c === '}' && depth > 0) depth -= 1;
      else if (c === '\n' && delimiter.type === 'output' && /^\n[ \t]*\r?\n/.test(this.text.slice(i, i + 80))) return -1;
    }
    return -1;
  }

  private stringEnd(from: number, quote: string, limit: number): number {
    for (let i = from + 1; i < limit; i += 1) {
      if (this.text[i] === '\\') i += 1;
      else if (this.text[i] === quote) return i;
      else if (this.text[i] === '\n' && this.language !== 'jinja' && this.language !== 'nunjucks') return -1;
    }
    return -1;
  }

  /** A quote that never ends (an apostrophe): the first closing delimiter on the line counts. */
  private bareClose(from: number, close: string, limit: number): number {
    const rest = this.text.slice(from, limit);
    const line = rest.indexOf('\n');
    const at = (line < 0 ? rest : rest.slice(0, line)).indexOf(close);
    return at < 0 ? -1 : from + at;
  }

  /** Mustache `{{=<% %>=}}`. */
  private setDelimiters(at: number, from: number, close: number, end: number): boolean {
    const inner = this.text.slice(from, close).trim();
    const change = /^=\s*(\S+)\s+(\S+?)\s*=$/.exec(inner);
    if (change === null) return false;
    const [, open, shut] = change as unknown as [string, string, string];
    this.active = open === '{{' ? delimiters.mustache : [{ open, close: shut, type: 'output' }];
    this.push({ type: 'comment', start: at, end, inner: { start: from, end: close }, trimLeft: false, trimRight: false });
    return true;
  }
}

const none: ReadonlySet<string> = new Set();
const dashes: ReadonlySet<string> = new Set('-+');
const tildes: ReadonlySet<string> = new Set('~');

function trimMarks(delimiter: Delimiter, language: TemplateLanguage): ReadonlySet<string> {
  if (language === 'handlebars') return delimiter.open === '{{{' ? none : tildes;
  return language === 'mustache' || language === 'semantic-kernel' || language === 'double-brace' ? none : dashes;
}
