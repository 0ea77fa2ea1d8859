/** YAML with places: parses a region of a file and gives the text of scalars with the offset of each character. */
import { isAlias, isMap, isScalar, isSeq, Lexer, parseDocument, type Document, type Node, type Scalar } from 'yaml';
import { alignValue, decodeString, type Located } from '../located';
import type { Problem } from '../prompt';

/** A parsed YAML region. */
export interface YamlRegion {
  /** The value as plain data (JSON-safe where YAML is), or null when there is none. */
  readonly data: unknown;
  readonly root: Node | null;
  /** Where aliases are looked up; null when nothing was parsed. */
  readonly document: Document | null;
  readonly problems: readonly Problem[];
  readonly source: string;
  readonly base: number;
}

/** Detection and parsing read the same region one after the other. */
let last: YamlRegion & { readonly end: number } | null = null;

/** Parses `text.slice(start, end)`; never throws. */
export function readYaml(source: string, start = 0, end = source.length): YamlRegion {
  if (last?.base === start && last.end === end && last.source === source) return last;
  const region = { ...parseRegion(source, start, end), end };
  last = region;
  return region;
}

function parseRegion(source: string, start: number, end: number): YamlRegion {
  const text = source.slice(start, end);
  const deep = tooDeep(text);
  if (deep >= 0) {
    const at = start + deep;
    return { data: null, root: null, document: null, problems: [{ start: at, end: Math.min(at + 1, end), message: `YAML: more than ${String(deepest)} collections stand inside each other here, so this is read as text.` }], source, base: start };
  }
  try {
    const document = parseDocument(text, { logLevel: 'silent', strict: false, uniqueKeys: false, prettyErrors: false });
    const problems = document.errors.map((e) => ({ start: start + e.pos[0], end: start + Math.max(e.pos[0] + 1, Math.min(e.pos[1], text.length)), message: `YAML: ${e.message}` }));
    return { data: document.toJS({ maxAliasCount: 100 }) as unknown, root: document.contents, document, problems, source, base: start };
  } catch (error) {
    const message = error instanceof Error ? error.message : String(error);
    return { data: null, root: null, document: null, problems: [{ start, end: Math.min(start + 1, source.length), message: `YAML: ${message}` }], source, base: start };
  }
}

/** Collections inside collections beyond this are not parsed: the parser's time doubles with levels that are left open, and each takes stack. */
const deepest = 64;

/** Index of the first token that stands inside more than `deepest` collections, or −1; in one pass over the tokens. */
function tooDeep(text: string): number {
  const columns: number[] = [];
  let [at, lineStart, flow] = [0, 0, 0];
  let opens = true;
  let scalar = false;
  for (const token of new Lexer().lex(text)) {
    const first = token[0] ?? '';
    if (scalar) scalar = false;
    else if (first === '\x1f') scalar = true;
    else if (first === '\x18') flow = 0;
    else if (token === '{' || token === '[') flow += 1;
    else if (token === '}' || token === ']') flow = Math.max(0, flow - 1);
    if (flow === 0 && first !== '\ufeff' && first !== '\x02' && first !== '\x18' && first !== '\x1f' && first !== '#' && !/^[ \t]+$/.test(token)) {
      if (token.endsWith('\n')) opens = true;
      else if (opens) {
        const column = at - lineStart;
        while ((columns.at(-1) ?? -1) >= column) columns.pop();
        columns.push(column);
        opens = token === '-' || token === '?' || token === ':';
      } else opens = token === ':';
    }
    if (columns.length + flow > deepest) return at;
    if (first === '\x02' || first === '\x18' || first === '\x1f') continue;
    at += token.length;
    const newline = token.lastIndexOf('\n');
    if (newline >= 0) lineStart = at - token.length + newline + 1;
  }
  return -1;
}

/** The node at a path of keys and indices, or null. */
export function yamlAt(region: YamlRegion, ...path: readonly (string | number)[]): Node | null {
  let node: unknown = region.root;
  for (const key of path) {
    node = named(region, node);
    if (typeof key === 'string' && isMap(node)) node = node.get(key, true);
    else if (typeof key === 'number' && isSeq(node)) node = node.items[key];
    else return null;
  }
  return (node ?? null) as Node | null;
}

/** The node that an alias stands for; any other as it is. */
function named(region: YamlRegion, node: unknown): unknown {
  return isAlias(node) && region.document !== null ? node.resolve(region.document) : node;
}

/** The text of a string scalar (or of what an alias names) with its places, or null for anything else. */
export function yamlText(region: YamlRegion, given: Node | null): Located | null {
  const node = named(region, given);
  if (!isScalar(node) || typeof node.value !== 'string' || !node.range) return null;
  const [from, to] = node.range;
  const start = region.base + from;
  const end = region.base + to;
  const { source } = region;
  switch ((node as Scalar<string>).type) {
    case 'QUOTE_DOUBLE':
      return decodeString(source, start + 1, closing(source, start, end, '"'), 'yaml-double');
    case 'QUOTE_SINGLE':
      return decodeString(source, start + 1, closing(source, start, end, "'"), 'yaml-single');
    case 'BLOCK_FOLDED':
    case 'BLOCK_LITERAL': {
      const newline = source.indexOf('\n', start);
      return alignValue(node.value, source, newline < 0 ? end : newline + 1, end);
    }
    default:
      return alignValue(node.value, source, start, end);
  }
}

function closing(source: string, start: number, end: number, quote: string): number {
  return end - 1 > start && source[end - 1] === quote ? end - 1 : end;
}

/** The place of a node. */
export function yamlPlace(region: YamlRegion, node: Node | null): { start: number; end: number } {
  const range = node?.range;
  return !range ? { start: region.base, end: region.base } : { start: region.base + range[0], end: region.base + range[1] };
}

/** Where the front matter of a file lies: `body` is where the text after it begins. Null when there is none. */
export function frontMatter(text: string): { readonly start: number; readonly end: number; readonly body: number } | null {
  if (!/^\ufeff?---/.test(text.slice(0, 4))) return null;
  const match = /^\ufeff?(---[ \t]*\r?\n)([^]*?)(^---[ \t]*(?:\r?\n|$))/m.exec(text);
  if (match?.index !== 0) return null;
  const start = (text.startsWith('\ufeff') ? 1 : 0) + match[1]!.length;
  return { start, end: start + match[2]!.length, body: match[0].length };
}

/** A value as a record, or an empty one. */
export function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Record<string, unknown>) : {};
}

/** A value as a list, or an empty one. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? value : [];
}
