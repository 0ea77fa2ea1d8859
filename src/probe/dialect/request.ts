import type { ChatPrompt } from '../../prompt/prompt';
import type { RequestInput, WireRequest } from './dialect';
import { object, string } from './json';

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

/** The prompt as OpenAI messages. Tool results have no call to belong to in a plain prompt and go as the user's; `developer` only where the server knows it. */
export function chatMessages(prompt: ChatPrompt, knowsDeveloper: boolean): { role: string; content: string }[] {
  return prompt.messages.map(({ role, text }) => {
    if (role === 'developer') return { role: knowsDeveloper ? 'developer' : 'system', content: text };
    return { role: role === 'tool' ? 'user' : role, content: text };
  });
}

/** The prompt for APIs that take one text: the messages one after another. */
export function promptText(prompt: ChatPrompt): string {
  return prompt.messages.map((message) => message.text).join('\n\n');
}

/** System text and the turns apart, for APIs that want them so; turns are `user` and `assistant` only. */
export function systemAndTurns(prompt: ChatPrompt): { system: string; turns: { role: 'user' | 'assistant'; text: string }[] } {
  const system = prompt.messages.filter((m) => m.role === 'system' || m.role === 'developer').map((m) => m.text);
  const turns: { role: 'user' | 'assistant'; text: string }[] = [];
  for (const { role, text } of prompt.messages) {
    if (role === 'system' || role === 'developer') continue;
    turns.push({ role: role === 'assistant' ? 'assistant' : 'user', text });
  }
  return { system: system.join('\n\n'), turns };
}

/** A tool of the prompt (OpenAI function form) in its parts. */
export function toolParts(tool: unknown): { name: string; description: string | undefined; parameters: unknown } {
  const outer = object(tool);
  const inner = object(outer?.['function']) ?? outer;
  const description = string(inner?.['description']);
  return { name: string(inner?.['name']), description: description === '' ? undefined : description, parameters: inner?.['parameters'] ?? { type: 'object', properties: {} } };
}
