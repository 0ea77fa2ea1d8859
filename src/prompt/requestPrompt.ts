/** The prompt of a request body as the file writes it: content blocks, cache markers, tools and the fields that a cache keys by are kept. */
import { markKeys, markOf } from './cacheMark';
import type { CacheMark, ChatMessage, ChatPart, ChatPrompt, RequestApi, Role } from './prompt';

type Json = Readonly<Record<string, unknown>>;
const record = (value: unknown): Json => (typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as Json) : {});
const list = (value: unknown): readonly unknown[] => (Array.isArray(value) ? (value as readonly unknown[]) : []);
const filled = (value: Json): boolean => Object.keys(value).length > 0;
const without = (value: Json, keys: readonly string[]): Json => Object.fromEntries(Object.entries(value).filter(([key]) => !keys.includes(key)));

/** Fields beside the messages that decide what a cache may reuse, or what is rendered before the messages; the others are the probe's own. */
const kept: ReadonlySet<string> = new Set([
  'tool_choice', 'parallel_tool_calls', 'response_format', 'text', 'reasoning', 'reasoning_effort', 'verbosity', 'service_tier', 'user', 'safety_identifier',
  'prompt_cache_key', 'prompt_cache_options', 'prompt_cache_retention', 'prompt_cache_isolation_key', 'chat_template', 'chat_template_kwargs',
  'thinking', 'output_config', 'output_format', 'context_management', 'speed', 'mcp_servers', 'provider', 'toolConfig', 'cachedContent',
]);

const roles: Readonly<Record<string, Role>> = { system: 'system', developer: 'developer', user: 'user', assistant: 'assistant', model: 'assistant', tool: 'tool', function: 'tool' };

/** The API that a body is written for, by the fields that only it has; `chat` where nothing tells. */
export function apiOf(body: Json): RequestApi {
  if (Array.isArray(body['contents'])) return 'gemini';
  if ('input' in body && !('messages' in body)) return 'responses';
  const messages = list(body['messages']).map(record);
  const blocks = [...list(body['system']), ...messages.flatMap(({ content }) => list(content))].map(record);
  if ('inferenceConfig' in body || 'toolConfig' in body || blocks.some((block) => 'cachePoint' in block || ('text' in block && !('type' in block)))) return 'bedrock';
  if ('system' in body || 'anthropic_version' in body || 'cache_control' in body) return 'anthropic';
  if (list(body['tools']).some((tool) => 'input_schema' in record(tool)) || blocks.some(({ type }) => typeof type === 'string' && /^(?:tool_use|tool_result|thinking|redacted_thinking|document|image)$/.test(type))) return 'anthropic';
  const { model } = body;
  return typeof model === 'string' && /^claude/i.test(model) && !messages.some(({ role }) => role === 'system' || role === 'developer') ? 'anthropic' : 'chat';
}

/** The prompt of a request body (a list stands for its messages); null when it holds no message. Never throws. */
export function requestPrompt(value: unknown): ChatPrompt | null {
  const body = Array.isArray(value) ? { messages: value as unknown } : record(value);
  const api = apiOf(body);
  const messages = [...leading(body), ...turns(body)];
  if (messages.length === 0) return null;
  const mark = 'cache_control' in body ? markOf(body) : undefined;
  const fields = Object.fromEntries(Object.entries(body).filter(([name, field]) => kept.has(name) && field !== null && !(api === 'bedrock' && name === 'toolConfig')));
  return { messages, tools: toolsOf(body), ...(mark ? { mark } : {}), own: { api, ...(typeof body['model'] === 'string' ? { model: body['model'] } : {}), fields } };
}

function toolsOf(body: Json): readonly unknown[] {
  if (Array.isArray(body['tools'])) return list(body['tools']);
  if (Array.isArray(body['functions'])) return list(body['functions']).map((fn) => ({ type: 'function', function: fn }));
  return list(record(body['toolConfig'])['tools']);
}

/** What stands before the messages in a place of its own. */
function leading(body: Json): ChatMessage[] {
  return ['system', 'instructions', 'systemInstruction', 'system_instruction'].flatMap((key): ChatMessage[] => {
    const value = body[key];
    if (value === undefined || value === null || value === '') return [];
    const message: ChatMessage = { role: 'system', ...contentOf(record(value)['parts'] ?? value) };
    return [key === 'instructions' ? { ...message, instructions: true } : message];
  });
}

function turns(body: Json): ChatMessage[] {
  return ['messages', 'input', 'contents'].flatMap((key): ChatMessage[] => {
    const value = body[key];
    if (typeof value === 'string') return [{ role: 'user', text: value }];
    return list(value).flatMap((message) => messageOf(message) ?? []);
  });
}

const contentKeys = ['content', 'parts'];

function messageOf(value: unknown): ChatMessage | null {
  if (typeof value === 'string') return { role: 'user', text: value };
  const message = record(value);
  if (!filled(message)) return null;
  const { type } = message;
  const role = roles[typeof message['role'] === 'string' ? message['role'] : ''] ?? (type === 'function_call_output' ? 'tool' : typeof type === 'string' && type.endsWith('call') ? 'assistant' : 'user');
  const key = contentKeys.find((name) => message[name] !== undefined && message[name] !== null);
  // An item without content (a call of a tool, its output, reasoning) is sent whole or, elsewhere, in words.
  if (key === undefined) return { role, text: typeof message['output'] === 'string' ? message['output'] : JSON.stringify(message), parts: [], fields: message };
  const content = contentOf(message[key]);
  const own = markOf(message);
  const fields = without(message, ['role', ...contentKeys, ...markKeys]);
  const marked = own === undefined ? content : onLast(content, own);
  const calls = list(message['tool_calls']);
  const text = calls.length > 0 && content.text === '' ? JSON.stringify(calls) : content.text;
  return { role, ...marked, text, ...(filled(fields) && !(type === 'message' && Object.keys(fields).length === 1) ? { fields } : {}) };
}

function onLast(content: Pick<ChatMessage, 'text' | 'parts'>, mark: CacheMark): Pick<ChatMessage, 'text' | 'parts'> {
  const parts = content.parts ?? [{ text: content.text }];
  return { text: content.text, parts: parts.map((part, i) => (i === parts.length - 1 ? { ...part, mark } : part)) };
}

function contentOf(value: unknown): Pick<ChatMessage, 'text' | 'parts'> {
  if (typeof value === 'string') return { text: value };
  if (!Array.isArray(value)) return { text: textOf(record(value)) };
  const parts: ChatPart[] = [];
  for (const item of value as readonly unknown[]) {
    const block = record(item);
    const mark = markOf(block);
    const last = parts.at(-1);
    // Bedrock's marker is a block of its own behind the one that it ends.
    if (mark !== undefined && Object.keys(block).length === 1) {
      if (last !== undefined) parts[parts.length - 1] = { ...last, mark };
    } else parts.push({ ...partOf(item, block), ...(mark ? { mark } : {}) });
  }
  return { text: parts.map(({ text }) => text).join(''), parts };
}

function partOf(item: unknown, block: Json): ChatPart {
  if (typeof item === 'string') return { text: item };
  const bare = without(block, markKeys);
  const plain = typeof block['text'] === 'string' && Object.keys(bare).every((key) => key === 'text' || (key === 'type' && /^(?:text|input_text|output_text)$/.test(String(block['type']))));
  return plain ? { text: block['text'] as string } : { text: textOf(bare), block: bare };
}

/** A block in words, for an API that it was not written for. */
function textOf(block: Json): string {
  for (const key of ['text', 'thinking', 'content']) {
    const value = block[key];
    if (typeof value === 'string') return value;
    if (Array.isArray(value)) return contentOf(value).text;
  }
  const media = ['image', 'audio', 'video', 'file', 'document'].find((kind) => new RegExp(kind).test(String(block['type'])) || kind in block);
  if (media !== undefined) return `[${media}]`;
  return 'inlineData' in block || 'inline_data' in block || 'fileData' in block ? '[image]' : JSON.stringify(block);
}
