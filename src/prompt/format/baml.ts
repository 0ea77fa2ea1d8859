/** BAML (`*.baml`): Jinja inside `prompt #"…"#` of functions and in `template_string`s. */
import { LocatedBuilder, type Located } from '../located';
import type { CacheMarkSpan, ControlSpan, Prompt, Span } from '../prompt';
import { partsByRole, promptOf, variableOf, type FormatInput, type ParsedFormat } from './format';
import { parseJinja, roleOf } from './jinja';
import { templateContext, type TemplateContext } from './template';

interface Block {
  readonly kind: 'function' | 'template_string' | 'test';
  readonly name: string;
  readonly parameters: readonly string[];
  readonly start: number;
  readonly end: number;
  readonly bodyStart: number;
}

/** Parses a BAML file: one prompt a function. */
export function parseBaml(input: FormatInput): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  const blocks = findBlocks(input.text);
  for (const block of blocks) if (block.kind === 'template_string') addMacro(input.text, block, context);
  const prompts = blocks.filter((b) => b.kind === 'function').flatMap((block) => functionPrompt(input.text, block, blocks, context));
  return { format: 'baml', language: 'jinja', host: 'BAML (Jinja inside prompt strings)', substituted: true, prompts, problems: context.problems, dependencies: [] };
}

function functionPrompt(text: string, block: Block, blocks: readonly Block[], context: TemplateContext): Prompt[] {
  const at = /\bprompt\s+/g;
  at.lastIndex = block.bodyStart;
  for (let match = at.exec(text); match !== null && match.index < block.end; match = at.exec(text)) {
    const string = stringAt(text, match.index + match[0].length);
    if (string === null) continue;
    const located = dedent(text, string.start, string.end);
    const spans = roles(parseJinja(located, 'jinja', context));
    const place = { start: string.start, end: string.end };
    const samples = blocks.filter((b) => b.kind === 'test').flatMap((b) => testArguments(text, b, block.name));
    const variables = block.parameters.map((name) => variableOf(name, samples[0]?.[name] === undefined ? {} : { sample: samples[0][name] }));
    return [promptOf(place, partsByRole(spans, 'system', place), { macros: context.macros, variables, samples, name: block.name, model: clientOf(text, block) })];
  }
  return [];
}

/** `{{ _.role("user", cache_control={…}) }}` begins a message; its cache mark ends the message. */
function roles(spans: readonly Span[]): Span[] {
  const out: Span[] = [];
  let mark: CacheMarkSpan | null = null;
  for (const span of spans) {
    const role = span.kind === 'expression' && span.macro?.name === '_.role' ? roleOf(/["'](\w+)["']/.exec(span.source)?.[1]) : null;
    if (role === null) {
      out.push(span);
      continue;
    }
    if (mark !== null) out.push(mark);
    const source = (span as { source: string }).source;
    mark = source.includes('cache_control') ? { kind: 'cache-mark', start: span.start, end: span.end, ttl: /ttl["']?\s*:\s*["'](\w+)/.exec(source)?.[1] ?? null } : null;
    out.push({ kind: 'role-mark', start: span.start, end: span.end, role });
  }
  if (mark !== null) out.push(mark);
  return out;
}

function addMacro(text: string, block: Block, context: TemplateContext): void {
  const string = stringAt(text, block.bodyStart);
  if (string === null) return;
  const spans = parseJinja(dedent(text, string.start, string.end), 'jinja', context);
  const tag = { start: block.start, end: block.bodyStart };
  const macro: ControlSpan = { kind: 'control', control: 'macro', start: block.start, end: string.end, tag, source: text.slice(tag.start, tag.end), binds: block.parameters, name: block.name, references: [], constant: null, branches: [{ tag, references: [], spans }], exhaustive: false };
  context.macros[block.name] ??= macro;
}

/** A block string `#"…"#` (any number of #) or a plain one at `from`; white space before it is skipped. */
function stringAt(text: string, from: number): { start: number; end: number } | null {
  const open = /\s*(#*)"/y;
  open.lastIndex = from;
  const match = open.exec(text);
  if (match === null) return null;
  const start = open.lastIndex;
  const close = text.indexOf(`"${match[1]!}`, start);
  return { start, end: close < 0 ? text.length : close };
}

/** The string as BAML sends it: common indentation and blank edges removed. */
function dedent(text: string, start: number, end: number): Located {
  const lines: { from: number; to: number }[] = [];
  for (let from = start; from <= end; ) {
    const newline = text.indexOf('\n', from);
    const to = newline < 0 || newline >= end ? end : newline + 1;
    lines.push({ from, to });
    if (to >= end) break;
    from = to;
  }
  const blank = (line: { from: number; to: number }): boolean => text.slice(line.from, line.to).trim() === '';
  while (lines.length > 0 && blank(lines[0]!)) lines.shift();
  while (lines.length > 0 && blank(lines.at(-1)!)) lines.pop();
  const indents = lines.filter((l) => !blank(l)).map((l) => /^[ \t]*/.exec(text.slice(l.from, l.to))![0].length);
  const indent = indents.length === 0 ? 0 : Math.min(...indents);
  const out = new LocatedBuilder();
  for (const line of lines) out.add(text.slice(Math.min(line.from + indent, line.to), line.to), Math.min(line.from + indent, line.to));
  return out.done(lines.at(-1)?.to ?? end);
}

/** Top-level blocks, with strings and comments skipped. */
function findBlocks(text: string): Block[] {
  const blocks: Block[] = [];
  const token = /\/\/[^\n]*|\/\*[^]*?\*\/|#+"|"(?:[^"\\\n]|\\.)*"|\b(function|template_string|test)\s+(\w+)\s*(\([^)]*\))?/g;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const [found, kind, name] = match as unknown as [string, Block['kind'] | undefined, string | undefined, string | undefined];
    if (/^#+"$/.test(found)) {
      const close = text.indexOf(`"${found.slice(0, -1)}`, token.lastIndex);
      token.lastIndex = close < 0 ? text.length : close + found.length;
    } else if (kind !== undefined && name !== undefined) {
      const parameters = (match[3] ?? '').slice(1, -1).split(',').map((p) => /^\s*(\w+)/.exec(p)?.[1] ?? '').filter((p) => p !== '');
      const bodyStart = token.lastIndex;
      const end = kind === 'template_string' ? bodyStart : blockEnd(text, bodyStart);
      blocks.push({ kind, name, parameters, start: match.index, end, bodyStart });
      if (kind !== 'template_string') token.lastIndex = end;
    }
  }
  return blocks;
}

function blockEnd(text: string, from: number): number {
  const token = /\/\/[^\n]*|#+"|"(?:[^"\\\n]|\\.)*"|[{}]/g;
  token.lastIndex = from;
  let depth = 0;
  for (let match = token.exec(text); match !== null; match = token.exec(text)) {
    const found = match[0];
    if (/^#+"$/.test(found)) {
      const close = text.indexOf(`"${found.slice(0, -1)}`, token.lastIndex);
      token.lastIndex = close < 0 ? text.length : close + found.length;
    } else if (found === '{') depth += 1;
    else if (found === '}') {
      depth -= 1;
      if (depth <= 0) return token.lastIndex;
    }
  }
  return text.length;
}

/** String arguments of a test of the function. */
function testArguments(text: string, block: Block, name: string): Readonly<Record<string, unknown>>[] {
  const body = text.slice(block.bodyStart, block.end);
  if (!new RegExp(`functions\\s*\\[[^\\]]*\\b${name}\\b`).test(body)) return [];
  const values: Record<string, unknown> = {};
  const at = body.indexOf('args');
  if (at < 0) return [];
  for (const match of body.slice(at).matchAll(/^\s*(\w+)\s+(?:#"([^]*?)"#|"((?:[^"\\]|\\.)*)"|(-?\d+(?:\.\d+)?|true|false))/gm)) values[match[1]!] = match[2]?.trim() ?? match[3] ?? match[4];
  return [values];
}

function clientOf(text: string, block: Block): string | null {
  return /\bclient\s+(?:"([^"]+)"|(\w+))/.exec(text.slice(block.bodyStart, block.end))?.slice(1).find((x) => x !== undefined) ?? null;
}
