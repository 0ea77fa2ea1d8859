/** POML (`*.poml`): mark-up whose text content is sent; `{{ }}` expressions, `for=`, `if=`, `<let>`, included documents, speakers. */
import { readExpression } from '../expression';
import { Located } from '../located';
import type { Branch, ControlSpan, Place, Reference, Role, Span, Variable } from '../prompt';
import { partsByRole, promptOf, variableOf, type FormatInput, type ParsedFormat } from './format';
import { dependencies, expressionSpan, findInclude, insideInclude, templateContext, type TemplateContext } from './template';
import { scan } from './scanner';

interface Tag {
  readonly name: string;
  readonly place: Place;
  readonly attributes: ReadonlyMap<string, { readonly value: string; readonly start: number }>;
}

interface Open {
  readonly tag: Tag;
  readonly spans: Span[];
}

const speakers: Readonly<Record<string, Role>> = { systemmsg: 'system', systemmessage: 'system', humanmsg: 'user', humanmessage: 'user', usermsg: 'user', usermessage: 'user', aimsg: 'assistant', aimessage: 'assistant', assistantmessage: 'assistant' };
const silent = /^(?:stylesheet|meta|outputschema|toolrequest|tooldefinition|tool|runtime|component)$/;
const included = /^(?:document|doc|table|include|folder|webpage|img|image|audio|txt|csv|excel)$/;

/** Parses a POML file. Text outside `<human-msg>` and the like is the system message. */
export function parsePoml(input: FormatInput): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  const variables: Variable[] = [];
  const spans = new PomlReader(input.text, context, variables).run();
  const place = { start: 0, end: input.text.length };
  return {
    format: 'poml',
    language: 'poml',
    host: 'POML renderer',
    substituted: true,
    prompts: [promptOf(place, partsByRole(spans, 'system', place), { macros: {}, variables })],
    problems: context.problems,
    dependencies: [...context.dependencies],
  };
}

/** Tags inside tags beyond this are read as if they stood in the innermost one. */
const deepest = 100;

class PomlReader {
  private readonly stack: Open[] = [];
  private readonly top: Span[] = [];
  private readonly text: string;
  private readonly context: TemplateContext;
  private readonly variables: Variable[];

  constructor(text: string, context: TemplateContext, variables: Variable[]) {
    this.text = text;
    this.context = context;
    this.variables = variables;
  }

  run(): Span[] {
    const token = /<!--[^]*?(?:-->|$)|<(\/?)([A-Za-z][\w:.-]*)((?:\s+[\w:.-]+(?:\s*=\s*(?:"[^"]*"|'[^']*'))?)*)\s*(\/?)>/g;
    let from = this.text.startsWith('\ufeff') ? 1 : 0;
    for (let match = token.exec(this.text); match !== null; match = token.exec(this.text)) {
      this.content(from, match.index);
      from = token.lastIndex;
      const place = { start: match.index, end: from };
      const name = (match[2] ?? '').toLowerCase().replace(/[-_:.]/g, '');
      if (match[2] === undefined) this.spans.push({ kind: 'comment', ...place, text: match[0] });
      else if (match[1] === '/') this.end(name, place);
      else {
        const tag = { name, place, attributes: attributesOf(match[3] ?? '', match.index + 1 + match[2].length) };
        if (match[4] === '/') this.empty(tag);
        else if (name === 'stylesheet' || name === 'let') from = this.skipTo(match[2], tag, token);
        else if (this.stack.length < deepest) this.stack.push({ tag, spans: [] });
        else this.flattened.push(name);
      }
    }
    this.content(from, this.text.length);
    while (this.stack.length > 0) {
      const open = this.stack.at(-1)!;
      this.context.problems.push({ ...open.tag.place, message: `<${open.tag.name}> is never closed.` });
      this.close();
    }
    return this.top;
  }

  /** Names of open tags that stand too deep to be told apart. */
  private readonly flattened: string[] = [];

  private get spans(): Span[] {
    return this.stack.at(-1)?.spans ?? this.top;
  }

  private content(from: number, to: number): void {
    if (to <= from || this.stack.some((o) => silent.test(o.tag.name))) return;
    const located = Located.slice(this.text, from, to);
    for (const token of scan(located.text, 'double-brace')) {
      const inner = located.text.slice(token.inner.start, token.inner.end);
      if (token.type === 'output' && inner.trim() !== '') this.spans.push(expressionSpan(located, token, inner, readExpression(inner)));
      else if (located.text.slice(token.start, token.end).trim() !== '') this.spans.push(located.literal(token.start, token.end));
    }
  }

  /** Reads the raw content of a tag that is data (`let`, `stylesheet`); returns where its end tag ends. */
  private skipTo(name: string, tag: Tag, token: RegExp): number {
    const close = new RegExp(`</${name}\\s*>`, 'gi');
    close.lastIndex = token.lastIndex;
    const end = close.exec(this.text);
    const to = end === null ? this.text.length : close.lastIndex;
    if (tag.name === 'let') this.let_(tag, this.text.slice(tag.place.end, end?.index ?? to));
    token.lastIndex = to;
    return to;
  }

  private let_(tag: Tag, body: string | null): void {
    const name = tag.attributes.get('name')?.value;
    if (name === undefined) return;
    const value = tag.attributes.get('value')?.value;
    const src = tag.attributes.get('src')?.value;
    if (src !== undefined) findInclude([src], this.context);
    const references = value === undefined ? [] : dependencies(readExpression(value));
    if (references.length === 0) this.variables.push(variableOf(name, { fixed: true, ...(body === null || body.trim() === '' ? {} : { default: body.trim() }) }));
    else this.top.push(control('set', tag, { binds: [name], references, branches: [] }));
  }

  private empty(tag: Tag): void {
    if (tag.name === 'let') this.let_(tag, null);
    else if (included.test(tag.name)) for (const span of this.wrap(tag, this.document(tag))) this.spans.push(span);
  }

  /** A file put in by `src`; a path with an expression depends on it. */
  private document(tag: Tag): Span[] {
    const source = this.text.slice(tag.place.start, tag.place.end);
    const src = tag.attributes.get('src')?.value ?? tag.attributes.get('url')?.value ?? tag.attributes.get('records')?.value ?? '';
    const dynamic = /\{\{|^\{/.test(src) || tag.attributes.has('records');
    const references = dynamic ? dependencies(readExpression(src.replace(/\{\{|\}\}/g, ' '))) : [];
    if (/^(?:img|image|audio)$/.test(tag.name)) return [{ kind: 'media', ...tag.place, media: tag.name === 'audio' ? 'audio' : 'image', references }];
    const found = dynamic || src === '' ? null : findInclude([src], this.context);
    const spans = found === null ? null : tag.name === 'include' ? this.include(found) : [Located.slice(found.text).literal()];
    return [{ kind: 'include', ...tag.place, source, target: dynamic ? null : src, references, path: found?.path ?? null, spans }];
  }

  /** `<include>` puts in the tags of another file, which see the variables of this one. */
  private include(found: { readonly path: string; readonly text: string }): Span[] {
    return new PomlReader(found.text, insideInclude(this.context, found.path), this.variables).run();
  }

  /** What attributes send: a caption stands as text before the content of its tag. */
  private captions(tag: Tag): Span[] {
    if (silent.test(tag.name)) return [];
    return [...tag.attributes].flatMap(([name, { value, start }]) => {
      if (!/caption$|^(?:title|alt)$/.test(name) || !value.includes('{{')) return [];
      const located = Located.slice(this.text, start, start + value.length);
      return scan(located.text, 'double-brace').flatMap((token): Span[] => {
        const inner = located.text.slice(token.inner.start, token.inner.end);
        return token.type === 'output' && inner.trim() !== '' ? [expressionSpan(located, token, inner, readExpression(inner))] : [located.literal(token.start, token.end)];
      });
    });
  }

  private end(name: string, place: Place): void {
    const flat = this.flattened.lastIndexOf(name);
    if (flat >= 0) {
      this.flattened.length = flat;
      return;
    }
    this.flattened.length = 0;
    const depth = this.stack.findLastIndex((o) => o.tag.name === name);
    if (depth < 0) {
      this.context.problems.push({ ...place, message: `No <${name}> is open here.` });
      return;
    }
    while (this.stack.length > depth + 1) {
      this.context.problems.push({ ...this.stack.at(-1)!.tag.place, message: `<${this.stack.at(-1)!.tag.name}> is never closed.` });
      this.close();
    }
    this.close();
  }

  private close(): void {
    const open = this.stack.pop()!;
    const target = this.spans;
    const speaker = speakers[open.tag.name];
    if (silent.test(open.tag.name)) return;
    const body = included.test(open.tag.name) && open.tag.attributes.has('src') ? this.document(open.tag) : open.spans;
    if (speaker !== undefined && this.stack.length <= 1) target.push({ kind: 'role-mark', ...open.tag.place, role: speaker });
    for (const span of this.wrap(open.tag, body)) target.push(span);
  }

  /** `for=` and `if=` of a tag around its content. */
  private wrap(tag: Tag, spans: readonly Span[]): Span[] {
    let body = [...this.captions(tag), ...spans];
    const loop = /^\s*([\w,\s]+?)\s+in\s+([^]+)$/.exec(tag.attributes.get('for')?.value ?? '');
    if (loop !== null) body = [control('loop', tag, { binds: [loop[1]!.trim()], references: dependencies(readExpression(loop[2]!)), branches: [{ tag: tag.place, references: [], spans: body }] })];
    const condition = tag.attributes.get('if')?.value;
    if (condition !== undefined) {
      const references = dependencies(readExpression(condition.replace(/\{\{|\}\}/g, ' '), true));
      body = [control('condition', tag, { binds: [], references, branches: [{ tag: tag.place, references, spans: body }] })];
    }
    return body;
  }
}

function control(kind: ControlSpan['control'], tag: Tag, rest: { binds: readonly string[]; references: readonly Reference[]; branches: readonly Branch[] }): ControlSpan {
  return { kind: 'control', control: kind, ...tag.place, tag: tag.place, source: `<${tag.name}>`, name: null, constant: null, exhaustive: false, ...rest };
}

function attributesOf(source: string, base: number): Map<string, { value: string; start: number }> {
  const found = new Map<string, { value: string; start: number }>();
  for (const match of source.matchAll(/([\w:.-]+)\s*=\s*(?:"([^"]*)"|'([^']*)')/g)) found.set(match[1]!.toLowerCase(), { value: match[2] ?? match[3] ?? '', start: base + match.index + match[0].search(/["']/) + 1 });
  return found;
}
