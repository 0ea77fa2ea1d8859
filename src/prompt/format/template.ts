/** What the template grammars share: the files they read, literal text between tags, and turning expression parts into spans. */
import type { ExpressionParts } from '../expression';
import type { Located } from '../located';
import type { ControlSpan, ExpressionSpan, Problem, Reference, Span } from '../prompt';
import type { ScanToken } from './scanner';

/** Reads another file of the workspace: its text, or null when there is none. */
export type ReadFile = (path: string) => string | null;

/** What a grammar needs beside the text, and what it collects. */
export interface TemplateContext {
  /** Path of the file that is parsed (of the included file inside an include). */
  readonly path: string;
  readonly readFile: ReadFile;
  /** Files being read now, outermost first: a cycle stops here. */
  readonly stack: readonly string[];
  /** Number of included files so far, to bound work. */
  readonly budget: { left: number };
  readonly dependencies: Set<string>;
  readonly problems: Problem[];
  readonly macros: Record<string, ControlSpan>;
  /** True where the host removes a tag's line with it (Jinja's `trim_blocks` and `lstrip_blocks`, both off unless a host sets them). */
  readonly trimsBlocks?: boolean;
}

/** A context for parsing the file at `path`. */
export function templateContext(path: string, readFile: ReadFile): TemplateContext {
  return { path, readFile, stack: [path], budget: { left: 200 }, dependencies: new Set(), problems: [], macros: {} };
}

/** The folder of a path, without a trailing slash; '' at the top. */
export function folderOf(path: string): string {
  const at = Math.max(path.lastIndexOf('/'), path.lastIndexOf('\\'));
  return at < 0 ? '' : path.slice(0, at);
}

/** Joins a folder and a relative path and removes `.` and `..`. */
export function joinPath(folder: string, path: string): string {
  if (path.startsWith('/') || folder === '') return normalise(path);
  return normalise(`${folder}/${path}`);
}

function normalise(path: string): string {
  const out: string[] = [];
  const absolute = path.startsWith('/');
  for (const piece of path.split(/[\\/]/)) {
    if (piece === '' || piece === '.') continue;
    if (piece === '..' && out.length > 0 && out[out.length - 1] !== '..') out.pop();
    else if (piece !== '..' || !absolute) out.push(piece);
  }
  return (absolute ? '/' : '') + out.join('/');
}

/**
 * Looks for an included file: beside the including one, then up to `levels` folders above (template roots), each of `names` in turn.
 * A file that is already being read counts as not found (the cycle is cut).
 */
export function findInclude(names: readonly string[], context: TemplateContext, levels = 3): { path: string; text: string } | null {
  let folder = folderOf(context.path);
  for (let level = 0; level <= levels && context.budget.left > 0; level += 1) {
    for (const name of names) {
      const path = joinPath(folder, name);
      if (context.stack.includes(path)) return null;
      const text = context.readFile(path);
      context.dependencies.add(path);
      if (text !== null) {
        context.budget.left -= 1;
        return { path, text };
      }
    }
    if (folder === '' || folder === '/') break;
    folder = folderOf(folder);
  }
  return null;
}

/** The context inside an included file. */
export function insideInclude(context: TemplateContext, path: string): TemplateContext {
  return { ...context, path, stack: [...context.stack, path], problems: [] };
}

/** Notes that something could not be read. */
export function report(context: TemplateContext, located: Located, token: { start: number; end: number }, message: string): void {
  context.problems.push({ start: located.at(token.start), end: located.endAt(token.end), message });
}

/** The literal between two tags, white space removed where a tag asks for it. */
export function textSpan(located: Located, token: ScanToken, before: ScanToken | undefined, after: ScanToken | undefined, span: Span[]): void {
  let { start, end } = token;
  if (before?.trimRight === true) while (start < end && /\s/.test(located.text[start]!)) start += 1;
  if (after?.trimLeft === true) while (end > start && /\s/.test(located.text[end - 1]!)) end -= 1;
  if (end > start) span.push(located.literal(start, end));
}

/** The raw region as a span: sent as it stands. */
export function rawSpan(located: Located, token: ScanToken): Span {
  const literal = located.literal(token.inner.start, token.inner.end);
  return { kind: 'raw', start: located.at(token.start), end: located.endAt(token.end), text: literal.text, map: literal.map ?? [[0, literal.start]] };
}

const randomFilters = /^(?:random|shuffle|shuf|sample|uuid|uuid4|nanoid)$/i;
const clockFilters = /^(?:now|utcnow|today|timestamp)$/i;

/** All that the value depends on, with filter effects: random filters, clock filters, date formats on their values. */
export function dependencies(parts: ExpressionParts): Reference[] {
  const references = parts.references.map((r) => (parts.filterStrings.length > 0 ? { ...r, strings: [...r.strings, ...parts.filterStrings] } : r));
  for (const filter of parts.filters) {
    if (randomFilters.test(filter) || clockFilters.test(filter)) references.push({ path: filter, call: true, strings: parts.filterStrings });
  }
  const clockText = parts.literals[0];
  if (clockText !== undefined && /^(?:now|today)$/i.test(clockText) && parts.filters.some((f) => /date|time|format/i.test(f))) {
    references.push({ path: clockText.toLowerCase(), call: true, strings: parts.filterStrings });
  }
  return references;
}

const silentCalls = /^(?:raise_exception|raise|throw|assert|debug|log|set)$/;

/** An output tag as a span. */
export function expressionSpan(located: Located, token: { start: number; end: number }, inner: string, parts: ExpressionParts): ExpressionSpan {
  const references = dependencies(parts);
  const silent = parts.call !== null && silentCalls.test(parts.call.path);
  return {
    kind: 'expression',
    start: located.at(token.start),
    end: located.endAt(token.end),
    source: located.text.slice(token.start, token.end),
    name: parts.plain ?? inner.trim(),
    references: silent ? [] : references,
    filters: parts.filters,
    clockFormat: references.flatMap((r) => r.strings).find((s) => /%[a-zA-Z-]|[yYMDHhms]{2,}|^[a-zA-Z][-:/. ][a-zA-Z]/.test(s)) ?? null,
    constant: silent ? '' : references.length === 0 ? (parts.constant ?? parts.literals.join('')) : null,
    literals: references.length === 0 || references.length > parts.references.length + parts.filters.length ? [] : parts.literals.filter((l) => !references.some((r) => r.call && r.path === l.toLowerCase())),
    macro: parts.call === null ? null : { name: parts.call.path, arguments: parts.call.arguments },
    output: !silent,
  };
}
