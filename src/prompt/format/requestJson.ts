/** Request bodies in JSON, and batches of them in JSONL: OpenAI Chat and Responses, Anthropic, Gemini. Nobody expands them: every text is literal. */
import { findNodeAtLocation, getNodeValue, parseTree, type Node } from 'jsonc-parser';
import type { Part, Problem, Prompt, Role, Slot, Span } from '../prompt';
import { promptOf, type FormatInput, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { record } from './yaml';
import { jsonText } from './yamlPrompts';

const host = 'nobody: request data, sent as it stands';

/** True when a JSON value is a request body, a batch line, or a log that holds one. */
export function isRequest(data: unknown): boolean {
  return bodyPath(data) !== null;
}

/** Where in a JSON value the request body lies: `[]` for the value itself; null when there is none. */
function bodyPath(data: unknown): readonly string[] | null {
  const root = record(data);
  if (isBody(root)) return [];
  for (const key of ['body', 'params', 'request', 'payload', 'data']) if (isBody(record(root[key]))) return [key];
  return isMessages(data) ? [] : null;
}

function isBody(body: Readonly<Record<string, unknown>>): boolean {
  if (isMessages(body['messages'])) return true;
  if (Array.isArray(body['contents']) && body['contents'].some((c) => 'parts' in record(c))) return true;
  const responses = typeof body['input'] === 'string' || isMessages(body['input']);
  return responses && (typeof body['model'] === 'string' || typeof body['instructions'] === 'string') && !('_type' in body);
}

function isMessages(value: unknown): boolean {
  return Array.isArray(value) && value.length > 0 && value.some((m) => typeof record(m)['role'] === 'string' && ('content' in record(m) || 'tool_calls' in record(m) || 'parts' in record(m)));
}

/** Parses one request body. */
export function parseRequestJson(input: FormatInput): ParsedFormat {
  const problems: Problem[] = [];
  const prompt = readRequest(input.text, input.text.startsWith('\ufeff') ? 1 : 0, input.text.length, problems);
  return { format: 'request-json', language: null, host, substituted: false, prompts: prompt === null ? [] : [prompt], problems, dependencies: [] };
}

/** Parses a batch: one request a line. */
export function parseRequestJsonl(input: FormatInput): ParsedFormat {
  const problems: Problem[] = [];
  const prompts: Prompt[] = [];
  let from = 0;
  while (from < input.text.length) {
    const newline = input.text.indexOf('\n', from);
    const to = newline < 0 ? input.text.length : newline;
    if (input.text.slice(from, to).trim() !== '') {
      const prompt = readRequest(input.text, from, to, problems);
      if (prompt !== null) prompts.push(prompt);
    }
    from = to + 1;
  }
  return { format: 'request-jsonl', language: null, host, substituted: false, prompts, problems, dependencies: [] };
}

function readRequest(source: string, start: number, end: number, problems: Problem[]): Prompt | null {
  const errors: { error: number; offset: number; length: number }[] = [];
  const line = source.slice(start, end);
  const root = parseTree(line, errors, { allowTrailingComma: true });
  for (const e of errors.slice(0, 1)) problems.push({ start: start + Math.min(e.offset, end - start), end: Math.min(end, start + e.offset + Math.max(1, e.length)), message: 'JSON: this cannot be read.' });
  if (root === undefined) return null;
  shift(root, start);
  const data = getNodeValue(root) as unknown;
  const path = bodyPath(data);
  if (path === null) return null;
  const body = path.length === 0 ? root : findNodeAtLocation(root, [...path]);
  if (body === undefined) return null;
  const outer = record(data);
  const reader = new BodyReader(source, body);
  const model = record(path.length === 0 ? data : outer[path[0]!])['model'] ?? outer['model'];
  const name = outer['custom_id'] ?? outer['key'] ?? outer['id'];
  return promptOf({ start, end }, reader.parts(), { macros: {}, model: typeof model === 'string' ? model : null, name: typeof name === 'string' ? name : null });
}

function shift(node: Node, by: number): void {
  if (by === 0) return;
  const stack = [node];
  while (stack.length > 0) {
    const next = stack.pop()!;
    (next as { offset: number }).offset += by;
    for (const child of next.children ?? []) stack.push(child);
  }
}

class BodyReader {
  private readonly found: Part[] = [];
  private message = 0;
  private readonly source: string;
  private readonly body: Node;

  constructor(source: string, body: Node) {
    this.source = source;
    this.body = body;
  }

  parts(): Part[] {
    if (this.body.type === 'array') this.messages(this.body);
    else {
      this.tools(this.at('tools') ?? this.at('functions'));
      for (const key of ['system', 'instructions', 'systemInstruction', 'system_instruction', 'developer']) {
        const node = this.at(key);
        if (node !== undefined) this.content('system', node);
      }
      for (const key of ['messages', 'input', 'contents']) {
        const node = this.at(key);
        if (node?.type === 'array') this.messages(node);
        else if (node?.type === 'string') this.content('user', node);
      }
      this.topMark();
    }
    return this.found;
  }

  private at(key: string): Node | undefined {
    return this.body.type === 'object' ? findNodeAtLocation(this.body, [key]) : undefined;
  }

  private tools(node: Node | undefined): void {
    if (node?.type !== 'array' || (node.children ?? []).length === 0) return;
    const names = (node.children ?? []).flatMap((child) => toolNames(getNodeValue(child)));
    const marks = (node.children ?? []).flatMap((child) => cacheMarks(child));
    const literal: Span = { kind: 'literal', start: node.offset, end: node.offset + node.length, text: this.source.slice(node.offset, node.offset + node.length) };
    this.found.push({ start: node.offset, end: node.offset + node.length, slot: 'tools', role: 'system', message: null, block: 0, spans: [literal, ...marks], toolNames: names });
  }

  private messages(node: Node): void {
    for (const child of node.children ?? []) {
      if (child.type === 'string') {
        this.content('user', child);
        continue;
      }
      const roleText = findNodeAtLocation(child, ['role'])?.value as unknown;
      const kind = findNodeAtLocation(child, ['type'])?.value as unknown;
      const role = roleOf(typeof roleText === 'string' ? roleText : undefined) ?? (kind === 'function_call_output' ? 'tool' : kind === 'function_call' ? 'assistant' : 'user');
      const content = ['content', 'parts', 'output', 'arguments'].map((key) => findNodeAtLocation(child, [key])).find((n) => n !== undefined && n.type !== 'null');
      const calls = findNodeAtLocation(child, ['tool_calls']);
      const before = this.found.length;
      if (content !== undefined) this.content(role, content, child);
      if (calls !== undefined && (calls.children ?? []).length > 0) {
        const number = this.found.length > before ? this.message - 1 : this.message++;
        this.push(role, number, this.found.length - before, calls, [{ kind: 'literal', start: calls.offset, end: calls.offset + calls.length, text: this.source.slice(calls.offset, calls.offset + calls.length) }]);
      }
    }
  }

  /** A string, a list of content blocks, or `{parts: [...]}`: one part a block. */
  private content(role: Role, node: Node, owner: Node = node): void {
    const number = this.message;
    this.message += 1;
    const inner = node.type === 'object' ? (findNodeAtLocation(node, ['parts']) ?? findNodeAtLocation(node, ['content']) ?? node) : node;
    if (inner.type !== 'array') {
      const text = inner.type === 'string' ? jsonText(this.source, inner) : null;
      const spans: Span[] = text !== null ? (text.text === '' ? [] : [text.literal()]) : [{ kind: 'literal', start: inner.offset, end: inner.offset + inner.length, text: this.source.slice(inner.offset, inner.offset + inner.length) }];
      this.push(role, number, 0, inner, [...spans, ...(owner === node ? [] : ownMarks(owner))]);
      return;
    }
    const blocks = inner.children ?? [];
    blocks.forEach((block, index) => {
      const last = index === blocks.length - 1 && owner !== node ? ownMarks(owner) : [];
      this.push(role, number, index, block, [...this.block(block), ...last]);
    });
  }

  private block(block: Node): Span[] {
    if (block.type === 'string') return [jsonText(this.source, block)!.literal()];
    const marks = cacheMarks(block);
    for (const key of ['text', 'input_text', 'thinking']) {
      const text = jsonText(this.source, findNodeAtLocation(block, [key]));
      if (text !== null) return [...(text.text === '' ? [] : [text.literal()]), ...marks];
    }
    const kind = findNodeAtLocation(block, ['type'])?.value as unknown;
    const media = mediaKind(typeof kind === 'string' ? kind : '', block);
    const place = { start: block.offset, end: block.offset + block.length };
    if (media !== null) return [{ kind: 'media', ...place, media, references: [] }, ...marks];
    const content = findNodeAtLocation(block, ['content']);
    const nested = content === undefined ? null : jsonText(this.source, content);
    if (nested !== null) return [nested.literal(), ...marks];
    return [{ kind: 'literal', ...place, text: this.source.slice(place.start, place.end) }, ...marks];
  }

  private push(role: Role, message: number, block: number, node: Node, spans: readonly Span[]): void {
    const slot: Slot = role === 'system' || role === 'developer' ? 'system' : 'messages';
    this.found.push({ start: node.offset, end: node.offset + node.length, slot, role, message, block, spans, toolNames: [] });
  }

  /** Anthropic's one top-level `cache_control` marks the end of the prompt. */
  private topMark(): void {
    const marks = ownMarks(this.body);
    const last = this.found.at(-1);
    if (marks.length > 0 && last !== undefined) this.found[this.found.length - 1] = { ...last, spans: [...last.spans, ...marks] };
  }
}

const markKeys = ['cache_control', 'prompt_cache_breakpoint', 'cachePoint', 'cache_point'];

function ownMarks(node: Node): Span[] {
  if (node.type !== 'object') return [];
  return markKeys.flatMap((key): Span[] => {
    const mark = findNodeAtLocation(node, [key]);
    if (mark?.type !== 'object') return [];
    const ttl = findNodeAtLocation(mark, ['ttl'])?.value as unknown;
    return [{ kind: 'cache-mark', start: mark.offset, end: mark.offset + mark.length, ttl: typeof ttl === 'string' ? ttl : null }];
  });
}

function cacheMarks(block: Node): Span[] {
  const inFunction = block.type === 'object' ? findNodeAtLocation(block, ['function']) : undefined;
  return [...ownMarks(block), ...(inFunction === undefined ? [] : ownMarks(inFunction))];
}

function mediaKind(kind: string, block: Node): 'image' | 'audio' | 'video' | 'file' | null {
  if (/image/.test(kind)) return 'image';
  if (/audio/.test(kind)) return 'audio';
  if (/video/.test(kind)) return 'video';
  if (/^(?:file|document|input_file)$/.test(kind)) return 'file';
  const data = ['inlineData', 'inline_data', 'fileData', 'file_data', 'image_url'].map((key) => (block.type === 'object' ? findNodeAtLocation(block, [key]) : undefined)).find((n) => n !== undefined);
  return data === undefined ? null : 'image';
}

function toolNames(tool: unknown): string[] {
  const t = record(tool);
  const declared = t['functionDeclarations'] ?? t['function_declarations'];
  if (Array.isArray(declared)) return declared.flatMap((d) => toolNames(d));
  const name = t['name'] ?? record(t['function'])['name'] ?? record(t['toolSpec'])['name'] ?? t['type'];
  return typeof name === 'string' ? [name] : [];
}
