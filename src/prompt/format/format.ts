/** What every format gives, and how spans become the parts of a prompt. */
import type { ControlSpan, FormatId, LiteralSpan, Part, Place, Problem, Prompt, Role, Slot, Span, Variable } from '../prompt';
import type { Located } from '../located';
import { parseDoubleBraces, parseFormatString, parseSemanticKernel } from './braces';
import { parseHandlebars } from './handlebars';
import { parseJinja } from './jinja';
import type { ReadFile, TemplateContext } from './template';

/** A file to parse. */
export interface FormatInput {
  readonly path: string;
  /** The whole text, a byte order mark included. */
  readonly text: string;
  readonly readFile: ReadFile;
  /** Syntax errors of code are problems too; else they are left to the language's own tools. */
  readonly codeErrors?: boolean;
}

/** What a format makes of a file. */
export interface ParsedFormat {
  readonly format: FormatId;
  readonly language: string | null;
  readonly host: string;
  readonly substituted: boolean;
  readonly guessed?: boolean;
  readonly prompts: readonly Prompt[];
  readonly problems: readonly Problem[];
  readonly dependencies: readonly string[];
}

/** The template languages a format may leave to its settings. */
export type InnerLanguage = 'jinja' | 'nunjucks' | 'liquid' | 'handlebars' | 'mustache' | 'semantic-kernel' | 'double-brace' | 'f-string' | 'none';

/** Parses template text in the given language; `none` is one literal. */
export function parseTemplate(located: Located, language: InnerLanguage, context: TemplateContext): Span[] {
  switch (language) {
    case 'jinja':
    case 'nunjucks':
    case 'liquid':
      return parseJinja(located, language, context);
    case 'handlebars':
    case 'mustache':
      return parseHandlebars(located, language, context);
    case 'semantic-kernel':
      return parseSemanticKernel(located, context);
    case 'double-brace':
      return parseDoubleBraces(located);
    case 'f-string':
      return parseFormatString(located);
    case 'none':
      return located.text === '' ? [] : [located.literal()];
  }
}

/** The template language a word of a settings file names, or null. */
export function languageNamed(word: unknown): InnerLanguage | null {
  if (typeof word !== 'string') return null;
  switch (word.toLowerCase().replace(/[^a-z0-9]/g, '')) {
    case 'jinja':
    case 'jinja2':
      return 'jinja';
    case 'nunjucks':
      return 'nunjucks';
    case 'liquid':
      return 'liquid';
    case 'handlebars':
    case 'hbs':
      return 'handlebars';
    case 'mustache':
      return 'mustache';
    case 'semantickernel':
      return 'semantic-kernel';
    case 'fstring':
      return 'f-string';
    case 'text':
    case 'none':
    case 'plain':
      return 'none';
    default:
      return null;
  }
}

/** The slot of a role: system and developer text stand before the conversation. */
export function slotOf(role: Role): Slot {
  return role === 'system' || role === 'developer' ? 'system' : 'messages';
}

/** Cuts spans at their role marks into one part a message. Text before the first mark belongs to `first`; blank text there is dropped. */
export function partsByRole(spans: readonly Span[], first: Role, place: Place): Part[] {
  const parts: Part[] = [];
  let role = first;
  let current: Span[] = [];
  const flush = (end: number): void => {
    const blank = current.every((s) => s.kind === 'comment' || s.kind === 'role-mark' || (s.kind === 'literal' && s.text.trim() === ''));
    if (blank && (parts.length > 0 || !current.some((s) => s.kind === 'comment'))) return;
    parts.push({ start: current[0]?.start ?? place.start, end, slot: slotOf(role), role, message: parts.length, block: 0, spans: current, toolNames: [] });
  };
  for (const span of spans) {
    if (span.kind === 'role-mark') {
      if (current.length > 0) flush(span.start);
      role = span.role;
      current = [span];
    } else current.push(span);
  }
  if (current.length > 0) flush(place.end);
  return parts;
}

/** Cuts literal text at role marks: each match of `pattern` is one, its role is given by `roleOf`, null keeps it as text. */
export function markRoles(spans: readonly Span[], pattern: RegExp, roleOf: (match: RegExpExecArray) => Role | null): Span[] {
  return spans.flatMap((span) => (span.kind === 'literal' ? cutLiteral(span, pattern, roleOf) : [span]));
}

function cutLiteral(span: LiteralSpan, pattern: RegExp, roleOf: (match: RegExpExecArray) => Role | null): Span[] {
  const out: Span[] = [];
  let from = 0;
  for (const match of span.text.matchAll(pattern)) {
    const role = roleOf(match);
    if (role === null) continue;
    if (match.index > from) out.push(sliceLiteral(span, from, match.index));
    from = match.index + match[0].length;
    out.push({ kind: 'role-mark', start: offsetIn(span, match.index), end: offsetIn(span, from), role });
  }
  if (from === 0) return [span];
  if (from < span.text.length) out.push(sliceLiteral(span, from, span.text.length));
  return out;
}

/** Index of the last pair at or before `index` of the text, or −1. */
function lastPair(map: NonNullable<LiteralSpan['map']>, index: number): number {
  let low = -1;
  let high = map.length - 1;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (map[middle]![0] <= index) low = middle;
    else high = middle - 1;
  }
  return low;
}

/** The source offset of an index in a literal's text (its length gives the end). */
export function offsetIn(span: { readonly start: number; readonly end: number; readonly text: string; readonly map?: LiteralSpan['map'] }, index: number): number {
  if (index >= span.text.length) return span.end;
  const pair = span.map?.[lastPair(span.map, index)];
  return Math.min(pair === undefined ? span.start + index : pair[1] + (index - pair[0]), span.end);
}

function sliceLiteral(span: LiteralSpan, from: number, to: number): LiteralSpan {
  const start = offsetIn(span, from);
  const end = offsetIn(span, to);
  const text = span.text.slice(from, to);
  if (span.map === undefined) return { kind: 'literal', start, end, text };
  const map: [number, number][] = [[0, start]];
  for (let k = lastPair(span.map, from) + 1; k < span.map.length; k += 1) {
    const [i, offset] = span.map[k]!;
    if (i >= to) break;
    if (i > from) map.push([i - from, offset]);
  }
  return { kind: 'literal', start, end, text, map };
}

/** A prompt with the usual empty fields. */
export function promptOf(place: Place, parts: readonly Part[], rest: Partial<Omit<Prompt, 'parts' | 'start' | 'end'>> & { macros: Readonly<Record<string, ControlSpan>> }): Prompt {
  return { start: place.start, end: place.end, parts: inRenderOrder(parts), name: null, model: null, variables: [], samples: [], chatTemplate: false, ...rest };
}

/** Tools, then system text, then the rest; the order within each stays. */
export function inRenderOrder(parts: readonly Part[]): readonly Part[] {
  const tools = parts.filter((p) => p.slot === 'tools');
  return tools.length === 0 || tools[0] === parts[0] ? parts : [...tools, ...parts.filter((p) => p.slot !== 'tools')];
}

/** A variable with the usual empty fields. */
export function variableOf(name: string, rest: Partial<Variable> = {}): Variable {
  return { name, fixed: false, messages: false, ...rest };
}
