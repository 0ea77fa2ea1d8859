import { markOf } from '../../prompt/cacheMark';
import type { CacheMark, ChatMessage, ChatPart, ChatPrompt, RequestApi, Role } from '../../prompt/prompt';
import type { RequestInput, WireRequest } from './dialect';
import { at, list, object, string, type JsonObject } from './json';

/** Paths (their last segments) that a user may have pasted whole; cut off when another API of the same server is asked. */
const tails = /\/(?:chat\/completions|completions|completion|responses|messages|generate_stream|generate|v2\/chat|api\/chat|embeddings|models)\/?$/;
const version = /\/v\d+[a-z0-9]*(?=\/|$)/;
/** Hosts whose API lies beside `/v1`. */
const withoutVersion: ReadonlySet<string> = new Set(['api.perplexity.ai', 'models.github.ai', 'models.inference.ai.azure.com']);

/**
 * The full URL of an API under `url`, which is an origin, a base such as …/v1, or a full path. `tail` is the API's path under a
 * version (`/chat/completions`), `prefix` the version to add where the URL names none (`/v1`), or null for a server's own API, which
 * lies beside its versions. The query is kept. Throws TypeError on no URL.
 */
export function endpointUrl(url: string, tail: string, prefix: string | null): string {
  const target = new URL(url);
  const path = target.pathname.replace(/\/+$/, '');
  const own = path.endsWith(tail) && (tail !== '/completions' || !path.endsWith('/chat/completions'));
  if (own) return target.href;
  const base = path.replace(tails, '');
  if (prefix === null) target.pathname = `${base.replace(/\/v\d+[a-z0-9]*$/, '')}${tail}`;
  else target.pathname = `${base}${version.test(base) || withoutVersion.has(target.hostname) ? '' : prefix}${tail}`;
  return target.href;
}

/** The server's own root: the URL without a known API path, without its version, without the query. Throws TypeError on no URL. */
export function endpointRoot(url: string): string {
  const target = new URL(url);
  target.pathname = target.pathname.replace(/\/+$/, '').replace(tails, '').replace(/\/(?:v\d+[a-z0-9]*|api)$/, '');
  target.search = '';
  target.hash = '';
  return target.href.replace(/\/$/, '');
}

/** A POST with a JSON body: the dialect's headers, then the endpoint's own, which win whatever their case. `null` values are left out. */
export function post(url: string, input: RequestInput, headers: Readonly<Record<string, string | null>>, body: Readonly<Record<string, unknown>>): WireRequest {
  const all = new Map<string, string>();
  const own: Record<string, string | null> = { 'content-type': 'application/json', accept: 'text/event-stream', 'accept-encoding': 'identity', ...headers };
  for (const [name, value] of [...Object.entries(own), ...Object.entries(input.headers)]) if (value !== null) all.set(name.toLowerCase(), value);
  return { method: 'POST', url, headers: Object.fromEntries(all), body: JSON.stringify(merged(body, input.body)) };
}

/** `Authorization: Bearer`, or nothing without a key. */
export function bearer(key: string | null): { authorization: string | null } {
  return { authorization: key === null ? null : `Bearer ${key}` };
}

/** `extra` laid over `base`: objects field by field, everything else replaced; null and undefined in `base` are left out. */
function merged(base: Readonly<Record<string, unknown>>, extra: Readonly<Record<string, unknown>>): Record<string, unknown> {
  const all: Record<string, unknown> = {};
  for (const [name, value] of Object.entries(base)) if (value !== null && value !== undefined) all[name] = value;
  for (const [name, value] of Object.entries(extra)) {
    const below = object(all[name]);
    const above = object(value);
    all[name] = below !== null && above !== null ? merged(below, above) : value;
  }
  return all;
}

/** The prompt as plain messages in OpenAI's roles, for APIs without content blocks. Tool results have no call to belong to and go as the user's; `developer` only where the server knows it. */
export function chatMessages(prompt: ChatPrompt, knowsDeveloper: boolean): { role: string; content: string }[] {
  return prompt.messages.map(({ role, text }) => ({ role: plainRole(role, knowsDeveloper), content: text }));
}

function plainRole(role: Role, knowsDeveloper: boolean): string {
  if (role === 'developer') return knowsDeveloper ? 'developer' : 'system';
  return role === 'tool' ? 'user' : role;
}

const markerHosts = /(?:^|\.)(?:openrouter\.ai|aliyuncs\.com|minimax\.io|minimaxi\.com)$/;
const openaiHosts = /(?:^|\.)(?:openai\.com|openai\.azure\.com|cognitiveservices\.azure\.com|services\.ai\.azure\.com)$/;

/**
 * How an OpenAI-like endpoint writes a breakpoint of the prompt: by its host, else as the file does when it was written for this API.
 * Null where the API has none: other hosts, and OpenAI's models before GPT-5.6.
 */
export function markKey({ url, model, prompt }: Pick<RequestInput, 'url' | 'model' | 'prompt'>, api: RequestApi, mark: CacheMark): CacheMark['key'] | null {
  const { hostname } = new URL(url);
  const own = prompt.own?.api === api;
  if (markerHosts.test(hostname)) return 'cache_control';
  if (own && (mark.key === 'prompt_cache_breakpoint' || (mark.key === 'cache_control' && !openaiHosts.test(hostname)))) return mark.key;
  const [, major = '0', minor = '0'] = /gpt-(\d+)(?:\.(\d+))?/.exec(model ?? '') ?? [];
  return openaiHosts.test(hostname) && Number(major) + Number(minor) / 10 >= 5.6 ? 'prompt_cache_breakpoint' : null;
}

/** A breakpoint as a field of the block that it ends. */
export function markField(key: CacheMark['key'], { ttl }: CacheMark): JsonObject {
  if (key === 'prompt_cache_breakpoint') return { [key]: { mode: 'explicit' } };
  return { [key]: { type: key === 'cache_control' ? 'ephemeral' : 'default', ...(ttl === null ? {} : { ttl }) } };
}

/** A content block for an API: as the file writes it where it was written for this API, else its text by `text`; null when there is nothing to send. */
export function blockOf(part: ChatPart, own: boolean, text: (text: string) => JsonObject): JsonObject | null {
  if (own && part.block !== undefined) return typeof part.block['text'] === 'string' ? { ...part.block, text: part.text } : part.block;
  return part.text === '' ? null : text(part.text);
}

/** Content blocks with their markers as fields; `text` makes a block of a text, `key` names a marker or gives null where it cannot be sent. */
export function markedBlocks(message: ChatMessage, own: boolean, text: (text: string) => JsonObject, key: (mark: CacheMark) => CacheMark['key'] | null): JsonObject[] {
  return (message.parts ?? [{ text: message.text }]).flatMap((part) => {
    const block = blockOf(part, own, text);
    const name = part.mark === undefined ? null : key(part.mark);
    return block === null ? [] : [{ ...block, ...(part.mark === undefined || name === null ? {} : markField(name, part.mark)) }];
  });
}

/** The prompt with its one marker for the whole request on the last block, for APIs that know only markers on blocks. */
export function withEndMark(prompt: ChatPrompt): ChatPrompt {
  const { mark } = prompt;
  const last = prompt.messages.at(-1);
  if (mark === undefined || last === undefined) return prompt;
  const parts = last.parts ?? [{ text: last.text }];
  return { ...prompt, messages: [...prompt.messages.slice(0, -1), { ...last, parts: parts.map((part, i) => (i === parts.length - 1 ? { mark, ...part } : part)) }] };
}

/** The messages of an OpenAI-like API: blocks, markers and fields as the file writes them where it was written for this API, else texts with the markers that the endpoint knows. */
export function openaiMessages(input: RequestInput, api: 'chat' | 'responses', knowsDeveloper: boolean): JsonObject[] {
  const { mark } = input.prompt;
  const prompt = mark !== undefined && markKey(input, api, mark) === 'cache_control' ? withEndMark(input.prompt) : input.prompt;
  const own = prompt.own?.api === api;
  const key = (one: CacheMark): CacheMark['key'] | null => markKey(input, api, one);
  return prompt.messages.flatMap((message) => {
    if (api === 'responses' && own && message.instructions) return [];
    const { role, text, parts, fields } = message;
    if (own && parts?.length === 0 && fields !== undefined) return [fields];
    const sent = own && role === 'tool' ? role : plainRole(role, knowsDeveloper);
    const type = api === 'chat' ? 'text' : role === 'assistant' ? 'output_text' : 'input_text';
    const blocks = parts === undefined ? null : markedBlocks(message, own, (words) => ({ type, text: words }), key);
    const asBlocks = blocks !== null && blocks.length > 0 && (own || blocks.some((block) => markOf(block) !== undefined));
    return [{ role: sent, content: asBlocks ? blocks : text, ...(own ? fields : {}) }];
  });
}

/** The file's own fields beside its messages, where it was written for this API. */
export function ownFields({ prompt }: RequestInput, api: RequestApi): JsonObject {
  return prompt.own?.api === api ? prompt.own.fields : {};
}

/** The prompt for APIs that take one text: the messages one after another. */
export function promptText(prompt: ChatPrompt): string {
  return prompt.messages.map((message) => message.text).join('\n\n');
}

/** What is sent where an API wants a user message and the file has none. */
export const noUserMessage = '(no user message in this file)';

/** Whether the API takes no request without a user message and this prompt brings none, so that {@link noUserMessage} is sent. */
export function lacksUserMessage(api: string, prompt: ChatPrompt): boolean {
  return (api === 'anthropic' || api === 'bedrock' || api === 'gemini') && prompt.messages.length > 0 && prompt.messages.every(({ role }) => role === 'system' || role === 'developer');
}

/**
 * System messages and the turns apart, for APIs that want them so. With `late`, only those before the first turn are system messages:
 * what the file says later stays where it is. Without a turn there is {@link noUserMessage}.
 */
export function systemAndTurns(prompt: ChatPrompt, late = false): { system: ChatMessage[]; turns: ChatMessage[] } {
  const isSystem = ({ role }: ChatMessage): boolean => role === 'system' || role === 'developer';
  const first = prompt.messages.findIndex((message) => !isSystem(message));
  const leads = (message: ChatMessage, i: number): boolean => isSystem(message) && (!late || first < 0 || i < first);
  const turns = prompt.messages.filter((message, i) => !leads(message, i));
  return { system: prompt.messages.filter(leads), turns: turns.length > 0 || prompt.messages.length === 0 ? turns : [{ role: 'user', text: noUserMessage }] };
}

/** The texts of messages as one. */
export function joined(messages: readonly ChatMessage[]): string {
  return messages.map(({ text }) => text).join('\n\n');
}

/** A tool in its parts, whatever API it was written for. */
export interface ToolParts {
  readonly name: string;
  readonly description: string | undefined;
  readonly parameters: unknown;
  readonly mark?: CacheMark;
}

/** The tools of a prompt in their parts; a marker behind a tool (Bedrock) is the tool's. */
export function toolsOf(tools: readonly unknown[]): ToolParts[] {
  const all: ToolParts[] = [];
  for (const tool of tools) {
    const outer = object(tool) ?? {};
    const mark = markOf(outer);
    const last = all.at(-1);
    if (mark !== undefined && Object.keys(outer).length === 1) {
      if (last !== undefined) all[all.length - 1] = { ...last, mark };
      continue;
    }
    const declared = list(outer['functionDeclarations'] ?? outer['function_declarations']);
    for (const one of declared.length > 0 ? declared : [outer]) all.push({ ...toolParts(object(one) ?? {}), ...(mark ? { mark } : {}) });
  }
  return all;
}

function toolParts(outer: JsonObject): ToolParts {
  const inner = object(outer['function']) ?? object(outer['toolSpec']) ?? outer;
  const description = string(inner['description']);
  const mark = markOf(inner);
  return { name: string(inner['name']), description: description === '' ? undefined : description, parameters: inner['parameters'] ?? inner['input_schema'] ?? at(inner, 'inputSchema', 'json') ?? { type: 'object', properties: {} }, ...(mark ? { mark } : {}) };
}

/** Tools in the OpenAI function form: as they are where they were written in it. */
export function functionTools(prompt: ChatPrompt): readonly unknown[] {
  if (prompt.own === undefined || prompt.own.api === 'chat') return prompt.tools;
  return toolsOf(prompt.tools).map(({ name, description, parameters }) => ({ type: 'function', function: { name, description, parameters } }));
}
