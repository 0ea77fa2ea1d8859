/** Compares two captured requests in the order a server renders them, and what an edit of a prompt file costs. */
import { findNodeAtLocation, parseTree } from 'jsonc-parser';
import type { Piece, Place, Prompt, Role, Slot } from './prompt';
import { reusable, type CacheRule, type Layout, type LayoutBlock, type Reuse } from './rules';
import { sureHead, type TokenCounter } from './tokens';

/** One request read from a JSON, JSONL or log file. */
export interface CapturedRequest {
  /** `custom_id`, `key`, `id` or the number from 1. */
  readonly name: string;
  /** Where it stands in the file (UTF-16 units). */
  readonly place: Place;
  /** Path of the body inside the value at `place`. */
  readonly path: readonly string[];
  readonly body: Readonly<Record<string, unknown>>;
}

type Json = Readonly<Record<string, unknown>>;
const record = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : []);
const isBody = (value: Json) => Array.isArray(value['messages']) || Array.isArray(value['contents']) || Array.isArray(value['input']) || (typeof value['input'] === 'string' && 'model' in value) || (typeof value['prompt'] === 'string' && 'model' in value);

function captured(value: unknown, place: Place, index: number): CapturedRequest | null {
  const outer = record(value);
  for (const path of [[], ['body'], ['params'], ['request'], ['request', 'body'], ['payload'], ['data']]) {
    const body = path.reduce<Json>((at, key) => record(at[key]), outer);
    if (!isBody(body)) continue;
    const name = outer['custom_id'] ?? outer['key'] ?? outer['id'];
    return { name: typeof name === 'string' ? name : String(index + 1), place, path, body };
  }
  return null;
}

function parsed(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

/** Every request of a file: one JSON body, a JSON list of them, or one a line; lines that hold none are left out. */
export function requestsIn(text: string): readonly CapturedRequest[] {
  const start = text.startsWith('\ufeff') ? 1 : 0;
  const whole = parsed(text.slice(start));
  if (whole !== undefined) {
    const one = captured(whole, { start, end: text.length }, 0);
    if (one !== null) return [one];
    const root = parseTree(text.slice(start));
    return list(whole).flatMap((value, i) => {
      const node = root?.children?.[i];
      const place = node === undefined ? { start, end: text.length } : { start: start + node.offset, end: start + node.offset + node.length };
      return captured(value, place, i) ?? [];
    });
  }
  const requests: CapturedRequest[] = [];
  let at = start;
  for (const line of text.slice(start).split('\n')) {
    const request = line.trim() === '' ? null : captured(parsed(line), { start: at, end: at + line.length }, requests.length);
    if (request !== null) requests.push(request);
    at += line.length + 1;
  }
  return requests;
}

/** A piece of a request as a server renders it: a tool, a system text, or a content block. */
export interface RequestBlock {
  readonly slot: Slot;
  readonly role: Role;
  /** JSON path inside the body. */
  readonly path: readonly (string | number)[];
  /** What is sent: text, or the JSON of a tool or other block with its keys in the order written, without cache markers. */
  readonly text: string;
  readonly endsMessage: boolean;
  readonly marker: { readonly ttl: string | null } | null;
}

const markerKeys = new Set(['cache_control', 'prompt_cache_breakpoint', 'cachePoint']);
const roles: Readonly<Record<string, Role>> = { system: 'system', developer: 'developer', user: 'user', assistant: 'assistant', model: 'assistant', tool: 'tool', function: 'tool' };

function markerOf(value: unknown): { readonly ttl: string | null } | null {
  const block = record(value);
  for (const key of markerKeys) {
    if (!(key in block)) continue;
    const { ttl } = record(block[key]);
    return { ttl: typeof ttl === 'string' ? ttl : null };
  }
  return null;
}

const writeJson = (value: unknown) => JSON.stringify(value, (key, inner: unknown) => (markerKeys.has(key) ? undefined : inner)) ?? '';

function textOf(value: unknown): string {
  if (typeof value === 'string') return value;
  const block = record(value);
  const { text } = block;
  const rest = Object.keys(block).filter((k) => k !== 'text' && k !== 'type' && !markerKeys.has(k));
  return typeof text === 'string' && rest.length === 0 ? text : writeJson(value);
}

function contentBlocks(slot: Slot, role: Role, value: unknown, path: readonly (string | number)[]): RequestBlock[] {
  const parts = Array.isArray(value) ? (value as readonly unknown[]) : Array.isArray(record(value)['parts']) ? list(record(value)['parts']) : [value];
  const inner = Array.isArray(value) ? path : Array.isArray(record(value)['parts']) ? [...path, 'parts'] : null;
  const blocks: RequestBlock[] = [];
  parts.forEach((part, i) => {
    const only = record(part);
    const standalone = 'cachePoint' in only && Object.keys(only).length === 1;
    const last = blocks.at(-1);
    if (standalone && last !== undefined) blocks[blocks.length - 1] = { ...last, marker: markerOf(part) };
    else blocks.push({ slot, role, path: inner === null ? path : [...inner, i], text: textOf(part), endsMessage: false, marker: markerOf(part) });
  });
  return blocks;
}

const ended = (blocks: readonly RequestBlock[]) => blocks.map((b, i) => (i === blocks.length - 1 ? { ...b, endsMessage: true } : b));

function messageBlocks(message: unknown, path: readonly (string | number)[]): RequestBlock[] {
  if (typeof message === 'string') return ended(contentBlocks('messages', 'user', message, path));
  const m = record(message);
  const type = typeof m['type'] === 'string' ? m['type'] : '';
  const role = roles[typeof m['role'] === 'string' ? m['role'] : ''] ?? (type === 'function_call_output' ? 'tool' : type === 'function_call' ? 'assistant' : 'user');
  const slot: Slot = role === 'system' || role === 'developer' ? 'system' : 'messages';
  const key = ['content', 'parts', 'output'].find((k) => k in m && m[k] !== null);
  const content = key === undefined ? [] : contentBlocks(slot, role, m[key], [...path, key]);
  const marked = markerOf(m);
  const own = content.map((b, i) => (marked !== null && i === content.length - 1 ? { ...b, marker: marked } : b));
  const rest = Object.fromEntries(Object.entries(m).filter(([k]) => !['role', 'content', 'parts', 'output', 'id', 'status'].includes(k) && !markerKeys.has(k) && !(k === 'type' && type === 'message')));
  const calls = Object.keys(rest).length === 0 ? [] : [{ slot, role, path, text: writeJson(rest), endsMessage: false, marker: null }];
  return ended([...own, ...calls]);
}

/** A request body as blocks in render order: tools, system, messages. System messages keep their place among the messages. */
export function blocksIn(body: Json): readonly RequestBlock[] {
  const toolsKey = 'tools' in body ? 'tools' : 'functions';
  const config = record(body['toolConfig']);
  const tools: readonly [unknown, readonly (string | number)[]][] = Array.isArray(body[toolsKey]) ? list(body[toolsKey]).map((t, i) => [t, [toolsKey, i]]) : list(config['tools']).map((t, i) => [t, ['toolConfig', 'tools', i]]);
  const toolBlocks = tools.map(([tool, path]): RequestBlock => ({ slot: 'tools', role: 'system', path, text: writeJson(tool), endsMessage: false, marker: markerOf(tool) }));
  const system = ['system', 'instructions', 'systemInstruction', 'system_instruction'].flatMap((key) => (body[key] === undefined || body[key] === null ? [] : ended(contentBlocks('system', 'system', body[key], [key]))));
  const messages = ['messages', 'input', 'contents', 'prompt'].flatMap((key) => {
    const value = body[key];
    if (typeof value === 'string') return ended(contentBlocks('messages', 'user', value, [key]));
    return list(value).flatMap((message, i) => messageBlocks(message, [key, i]));
  });
  return [...ended(toolBlocks), ...system, ...messages];
}

/** A field outside the text that makes the server start anew, from the table of what invalidates what. */
export interface FieldDifference {
  readonly field: string;
  readonly invalidates: 'everything' | 'messages';
}

const fields: readonly FieldDifference[] = [
  { field: 'model', invalidates: 'everything' },
  { field: 'parallel_tool_calls', invalidates: 'everything' },
  { field: 'text', invalidates: 'everything' },
  { field: 'response_format', invalidates: 'everything' },
  { field: 'reasoning', invalidates: 'everything' },
  { field: 'reasoning_effort', invalidates: 'everything' },
  { field: 'verbosity', invalidates: 'everything' },
  { field: 'chat_template', invalidates: 'everything' },
  { field: 'chat_template_kwargs', invalidates: 'everything' },
  { field: 'cache_salt', invalidates: 'everything' },
  { field: 'prompt_cache_key', invalidates: 'everything' },
  { field: 'thinking', invalidates: 'messages' },
  { field: 'tool_choice', invalidates: 'messages' },
  { field: 'context_management', invalidates: 'messages' },
  { field: 'output_format', invalidates: 'messages' },
];

/** How the first differing blocks differ. */
export type DifferenceKind = 'text' | 'key-order' | 'tool-order' | 'role' | 'added' | 'removed';

/** Where two requests first differ. */
export interface RequestDifference {
  readonly kind: DifferenceKind;
  readonly slot: Slot;
  /** JSON path in the second request's body (in the first's when the second has no such block). */
  readonly path: readonly (string | number)[];
  /** Offset in the block's text (UTF-16 units). */
  readonly at: number;
  /** UTF-8 bytes of rendered text before it. */
  readonly byte: number;
  /** Up to 40 characters of each request there. */
  readonly first: string;
  readonly second: string;
}

/** Two requests compared. Tokens count the text of the blocks, without the server's own framing. */
export interface RequestComparison {
  /** Null when every block is the same. */
  readonly difference: RequestDifference | null;
  /** Fields beside the text that differ and invalidate. */
  readonly fields: readonly FieldDifference[];
  /** Tokens of the second request, and those before the first difference. */
  readonly total: number;
  readonly common: number;
  /** What the second request can reuse of the first under the rule. */
  readonly reuse: Reuse;
}

function sorted(value: unknown): unknown {
  if (Array.isArray(value)) return value.map(sorted);
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value)
      .sort(([a], [b]) => (a < b ? -1 : 1))
      .map(([k, inner]) => [k, sorted(inner)]),
  );
}
const canonical = (text: string) => {
  const value = parsed(text);
  return typeof value === 'object' && value !== null ? JSON.stringify(sorted(value)) : text;
};

function kindOf(a: RequestBlock, b: RequestBlock, left: readonly RequestBlock[], right: readonly RequestBlock[]): DifferenceKind {
  if (a.text !== b.text && canonical(a.text) === canonical(b.text)) return 'key-order';
  const tools = (blocks: readonly RequestBlock[]) => blocks.filter((x) => x.slot === 'tools').map((x) => canonical(x.text));
  if (a.slot === 'tools' && b.slot === 'tools' && tools(left).sort().join('\n') === tools(right).sort().join('\n')) return 'tool-order';
  return a.text === b.text ? 'role' : 'text';
}

function firstDifferent(a: string, b: string): number {
  let at = 0;
  while (at < a.length && at < b.length && a.charCodeAt(at) === b.charCodeAt(at)) at += 1;
  const before = a.charCodeAt(at - 1);
  return at > 0 && before >= 0xd800 && before <= 0xdbff ? at - 1 : at;
}

const bytes = (text: string) => new TextEncoder().encode(text).length;
const same = (a: RequestBlock, b: RequestBlock) => a.text === b.text && a.role === b.role && a.slot === b.slot;

function findDifference(left: readonly RequestBlock[], right: readonly RequestBlock[]): { readonly index: number; readonly difference: RequestDifference } | null {
  let byte = 0;
  for (let i = 0; i < Math.max(left.length, right.length); i += 1) {
    const a = left[i];
    const b = right[i];
    if (a !== undefined && b !== undefined && same(a, b)) {
      byte += bytes(b.text);
      continue;
    }
    const shown = (b ?? a)!;
    const at = a === undefined || b === undefined ? 0 : firstDifferent(a.text, b.text);
    const kind = a === undefined ? 'added' : b === undefined ? 'removed' : kindOf(a, b, left, right);
    const cut = (block: RequestBlock | undefined) => (block === undefined ? '' : block.text.slice(at, at + 40));
    return { index: i, difference: { kind, slot: shown.slot, path: shown.path, at, byte: byte + bytes(shown.text.slice(0, at)), first: cut(a), second: cut(b) } };
  }
  return null;
}

/** Tokens up to the end of a block, by its number from 0, as a provider counted them; ascending. */
export type CountedEnds = readonly (readonly [block: number, tokens: number])[];

function layoutOf(blocks: readonly RequestBlock[], counter: TokenCounter, counted: CountedEnds = []): readonly LayoutBlock[] {
  let at = 0;
  const ends = blocks.map((b) => (at += counter.count(b.text)));
  return blocks.map((b, i) => ({ at: fitted(ends, i, counted), slot: b.slot, role: b.role, endsMessage: b.endsMessage, marker: b.marker }));
}

/** The end of a block between the two counted ones around it, in proportion to the text. */
function fitted(ends: readonly number[], index: number, counted: CountedEnds): number {
  const own = ends[index] ?? 0;
  const [before, from] = counted.findLast(([block]) => block <= index) ?? [-1, 0];
  const [after, to] = counted.find(([block]) => block >= index) ?? [before, from];
  const [start, end] = [ends[before] ?? 0, ends[after] ?? 0];
  return after === before || end === start ? from + (before === index ? 0 : own - start) : Math.round(from + ((own - start) / (end - start)) * (to - from));
}

/** Positions where a provider with breakpoints wrote an entry for a request: its markers, and the end of its latest eligible message. */
function writtenBy(layout: readonly LayoutBlock[], rule: CacheRule, automatic: boolean): readonly number[] {
  const marks = layout.filter((b) => b.marker !== null).map((b) => b.at);
  const ends = layout.filter((b) => b.endsMessage && b.slot !== 'tools' && b.role !== 'assistant').map((b) => b.at);
  const last = automatic || rule.breakpoints?.implicit === 'message-ends' || rule.family === 'units' ? (rule.family === 'units' ? layout.at(-1)?.at : ends.at(-1)) : undefined;
  return last === undefined ? marks : [...marks, last];
}

/**
 * Compares request B with request A, which was sent before it: the first difference in render order (differences that are only the order
 * of JSON keys or of tools are named as such), and what B can reuse of A.
 */
export function compareRequests(a: Json, b: Json, known: { readonly rule: CacheRule; readonly model: string | null; readonly counter: TokenCounter; readonly ends?: readonly [a: CountedEnds, b: CountedEnds] }): RequestComparison {
  const { rule, model, counter } = known;
  const [left, right] = [blocksIn(a), blocksIn(b)];
  const found = findDifference(left, right);
  const layout = layoutOf(right, counter, known.ends?.[1]);
  const total = layout.at(-1)?.at ?? 0;
  const before = found === null ? total : found.index === 0 ? 0 : (layout[found.index - 1]?.at ?? total);
  const cut = found === null ? '' : (right[found.index]?.text ?? '').slice(0, found.difference.at);
  const within = found === null ? total : (layout[found.index]?.at ?? total);
  const common = Math.min(total, Math.max(before, Math.min(within, before + counter.count(sureHead(cut)))));
  const differing = fields.filter(({ field }) => JSON.stringify(a[field]) !== JSON.stringify(b[field]));
  const restart = differing.some((f) => f.invalidates === 'everything');
  const firstMessage = layout.find((l) => l.slot === 'messages');
  const beforeMessages = firstMessage === undefined ? total : (layout[layout.indexOf(firstMessage) - 1]?.at ?? 0);
  const reach = restart ? 0 : differing.length > 0 ? Math.min(common, beforeMessages) : common;
  const automatic = (body: Json) => 'cache_control' in body;
  const request: Layout = {
    // A request that only repeats A's beginning is still a different one: its own end was never written.
    total: found !== null && common >= total ? total + 1 : total,
    common: reach,
    blocks: layout,
    automatic: automatic(b),
    explicitOnly: record(b['prompt_cache_options'])['mode'] === 'explicit',
    written: writtenBy(layoutOf(left, counter, known.ends?.[0]), rule, automatic(a)),
    earlier: 1,
  };
  return { difference: found?.difference ?? null, fields: differing, total, common, reuse: reusable(rule, model, request) };
}

/** Where a JSON path of a request's body stands in the file, to open the editor there; the request's place when it cannot be found. */
export function placeOfPath(text: string, request: CapturedRequest, path: readonly (string | number)[]): Place {
  const { start, end } = request.place;
  const root = parseTree(text.slice(start, end));
  const node = root === undefined ? undefined : findNodeAtLocation(root, [...request.path, ...path]);
  return node === undefined ? request.place : { start: start + node.offset, end: start + node.offset + node.length };
}

/** What an edit costs once: tokens of the new text that are no longer the beginning of what was cached. */
export interface EditCost {
  /** Tokens before the first change, of the new version. */
  readonly kept: number;
  /** Tokens after it that every cache computes again once. */
  readonly invalidated: number;
  /** Where the new version first differs in the file, null when the prompt is the same. */
  readonly place: Place | null;
}

interface Stretch {
  readonly text: string;
  readonly sent: boolean;
  readonly place: Place;
}

/** A value stands for itself: two versions with the same expression at the same place still share what follows it. */
function stretches(prompt: Prompt, pieces: readonly Piece[]): readonly Stretch[] {
  const out: Stretch[] = [];
  let part = -1;
  for (const piece of pieces) {
    const owner = prompt.parts[piece.part];
    if (piece.part !== part) out.push({ text: `\u0000${owner?.slot ?? ''} ${owner?.role ?? ''}\u0000`, sent: false, place: { start: piece.start, end: piece.start } });
    part = piece.part;
    if (piece.kind === 'static') out.push({ text: piece.text, sent: true, place: piece });
    else out.push({ text: `\u0000${piece.kind} ${'source' in piece.span ? piece.span.source : ''}\u0000`, sent: false, place: piece });
  }
  return out;
}

/** Compares two versions of a prompt, each unrolled: what the edit since the older one invalidates. Pure text counts, values do not. */
export function editCost(before: { readonly prompt: Prompt; readonly pieces: readonly Piece[] }, after: { readonly prompt: Prompt; readonly pieces: readonly Piece[] }, counter: TokenCounter): EditCost {
  const old = stretches(before.prompt, before.pieces)
    .map((p) => p.text)
    .join('');
  const fresh = stretches(after.prompt, after.pieces);
  const at = firstDifferent(old, fresh.map((p) => p.text).join(''));
  let offset = 0;
  let kept = 0;
  let total = 0;
  let place: Place | null = null;
  for (const piece of fresh) {
    const end = offset + piece.text.length;
    if (piece.sent) {
      const tokens = counter.count(piece.text);
      total += tokens;
      if (end <= at) kept += tokens;
      else if (offset < at) kept += counter.count(sureHead(piece.text.slice(0, at - offset)));
    }
    if (place === null && end > at) place = { start: Math.min(piece.place.end, piece.place.start + Math.max(0, piece.sent ? at - offset : 0)), end: piece.place.end };
    offset = end;
  }
  const unchanged = at === offset && at === old.length;
  return { kept, invalidated: total - kept, place: unchanged ? null : place };
}
