import type { Milliseconds } from '../report/sample';
import type { HeaderList, OptionalField } from './dialect/dialect';
import { at, count, list, object, parseJson, string } from './dialect/json';

/** Longest error message and raw excerpt that are kept. */
const maxMessage = 500;
const maxRaw = 2000;
/** How far a page is searched: the patterns take time by the square of it. */
const maxScan = 8192;

/**
 * The message of an error frame, in every shape seen inside a stream: `{"error":{message}}`, `{"error":"…"}`, `{"type":"error",…}`,
 * `{"object":"error",…}`, `event: error`. Null when the frame is none.
 */
export function errorInFrame(json: unknown, event: string): string | null {
  const frame = object(json);
  if (frame === null) return event === 'error' ? messageIn(json) ?? 'The server sent an error event.' : null;
  const error = frame['error'];
  if (error !== undefined && error !== null && error !== false && error !== '') return messageIn(frame) ?? 'The server sent an error without a message.';
  if (event === 'error' || frame['type'] === 'error' || frame['object'] === 'error') return messageIn(frame) ?? short(JSON.stringify(frame));
  return null;
}

/** The message in an error object of any server; null when there is none. */
export function messageIn(json: unknown): string | null {
  if (typeof json === 'string') return json.trim() === '' ? null : short(json);
  if (Array.isArray(json)) {
    const all = json.map(messageIn).filter((m) => m !== null);
    return all.length === 0 ? null : short(all.join('; '));
  }
  const body = object(json);
  if (body === null) return null;
  const error = body['error'];
  if (typeof error === 'object' && error !== null) {
    const inner = messageIn(error);
    if (inner !== null) return inner;
  }
  const raw = string(at(body, 'metadata', 'raw'));
  for (const name of ['message', 'msg', 'detail', 'details', 'error_description', 'errors', 'Message', 'title']) {
    const value = body[name];
    if (value === undefined || value === null) continue;
    const inner = messageIn(value);
    if (inner === null) continue;
    const where = list(body['loc']).filter((part) => typeof part === 'string' || typeof part === 'number').join('.');
    const full = where === '' ? inner : `${where}: ${inner}`;
    return short(raw === '' || full.includes(raw) ? full : `${full}: ${raw}`);
  }
  if (typeof error === 'string' && error !== '') return short(error);
  const code = body['code'] ?? body['type'] ?? body['status'];
  return typeof code === 'string' && code !== '' && code !== 'error' ? short(code) : null;
}

/** What an error body says: JSON in any known shape, an SSE `data:` line with one, the title of an HTML page, or the text itself. */
export function messageOfBody(body: string): string | null {
  const text = body.trim();
  if (text === '') return null;
  const json = parseJson(text) ?? text.split(/\r\n|\n|\r/).map((line) => (line.startsWith('data:') ? parseJson(line.slice(5)) : undefined)).find((value) => value !== undefined);
  if (json !== undefined && json !== null) return messageIn(json) ?? short(text);
  if (text.startsWith('<')) return titleOf(text) ?? short(text.slice(0, maxScan).replace(/<[^>]*>/g, ' ').replace(/\s+/g, ' ').trim());
  return short(text);
}

/** The title of an HTML page; null without one. */
export function titleOf(html: string): string | null {
  const start = html.slice(0, maxScan);
  const title = /<title[^>]*>([^<]*)/i.exec(start)?.[1]?.trim() ?? /<h1[^>]*>([^<]*)/i.exec(start)?.[1]?.trim() ?? '';
  return title === '' ? null : short(title);
}

/** The first characters of an error body or frame, keys blacked out. */
export function excerpt(raw: string): string {
  return withoutKeys(raw.length > maxRaw ? `${raw.slice(0, maxRaw)}…` : raw);
}

function short(text: string): string {
  const line = withoutKeys(text.slice(0, maxScan).trim());
  return line.length > maxMessage ? `${line.slice(0, maxMessage)}…` : line;
}

/** Servers echo keys in error texts; what looks like one is blacked out here, the key in use is by whoever knows it. */
function withoutKeys(text: string): string {
  return text.replace(/\b(?:sk|gsk|xai|pplx|nvapi|hf|csk|AIza|r8)[-_][A-Za-z0-9_-]{8,}|\bAIza[A-Za-z0-9_-]{20,}|\b(Bearer\s+)[A-Za-z0-9._~+/=-]{8,}/g, (_all, bearer: string | undefined) => `${bearer ?? ''}…`);
}

/**
 * How long the server asks to wait, in ms: `retry-after-ms`, `retry-after` (seconds or HTTP date), `RetryInfo.retryDelay` in the body,
 * `x-ratelimit-reset-*` and the like (durations "16.601s", "6m0s", "132ms", plain seconds, ISO time, epoch). Dates are taken against
 * the response's own `date` header, because this is pure; without one a date tells nothing. Undefined when not told.
 */
export function retryAfter(headers: HeaderList, body: string): Milliseconds | undefined {
  const told = toldWait(headers, body);
  return told !== undefined && Number.isFinite(told) ? told : undefined;
}

function toldWait(headers: HeaderList, body: string): Milliseconds | undefined {
  const get = (name: string): string | undefined => headers.find(([key]) => key.toLowerCase() === name)?.[1].trim();
  const now = Date.parse(get('date') ?? '');
  const exact = seconds(get('retry-after-ms'));
  if (exact !== undefined && exact > 0) return exact;
  const told = get('retry-after');
  const plain = told === undefined ? undefined : (duration(told) ?? instant(told, now));
  if (plain !== undefined) return plain;
  if (exact !== undefined) return exact;
  return retryInfo(parseJson(body.trim())) ?? rateLimitReset(headers, now);
}

/** Gemini: `error.details[]` of type `google.rpc.RetryInfo`. */
function retryInfo(json: unknown): Milliseconds | undefined {
  const body = Array.isArray(json) ? (json[0] as unknown) : json;
  for (const detail of list(at(body, 'error', 'details'))) {
    const delay = string(object(detail)?.['retryDelay']);
    if (delay !== '') return duration(delay);
  }
  return undefined;
}

/** The reset of the limits that are used up; where `remaining` tells of none, the latest of all resets. */
function rateLimitReset(headers: HeaderList, now: number): Milliseconds | undefined {
  const resets: { wait: Milliseconds; exhausted: boolean }[] = [];
  const lower = new Map(headers.map(([name, value]) => [name.toLowerCase(), value.trim()]));
  for (const [name, value] of lower) {
    if (!name.includes('ratelimit') || !name.includes('reset')) continue;
    const wait = duration(value, now) ?? instant(value, now);
    if (wait !== undefined) resets.push({ wait, exhausted: lower.get(name.replace('reset', 'remaining')) === '0' });
  }
  const used = resets.filter((r) => r.exhausted);
  const waits = (used.length > 0 ? used : resets).map((r) => r.wait);
  return waits.length === 0 ? undefined : Math.max(...waits);
}

function seconds(value: string | undefined): number | undefined {
  return value === undefined || value === '' ? undefined : count(Number(value));
}

const unitMs: Readonly<Record<string, number>> = { ms: 1, s: 1000, m: 60_000, h: 3_600_000, d: 86_400_000 };

/** "16.601s", "1m30s", "132ms", "2h3m", plain seconds; with `now`, a number beyond a year is an epoch in s or ms. */
function duration(value: string, now = Number.NaN): Milliseconds | undefined {
  if (/^(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+$/.test(value)) {
    let ms = 0;
    for (const [, amount, unit] of value.matchAll(/(\d+(?:\.\d+)?)(ms|s|m|h|d)/g)) ms += Number(amount) * unitMs[unit!]!;
    return ms;
  }
  const number = seconds(value);
  if (number === undefined) return undefined;
  if (number < 31_536_000) return number * 1000;
  if (Number.isNaN(now)) return undefined;
  return Math.max(0, (number > 1e11 ? number : number * 1000) - now);
}

function instant(value: string, now: number): Milliseconds | undefined {
  const then = /[A-Za-z:]/.test(value) ? Date.parse(value) : Number.NaN;
  return Number.isNaN(then) || Number.isNaN(now) ? undefined : Math.max(0, then - now);
}

const refusal = /unsupported|unrecogni[sz]ed|unknown|not (?:supported|permitted|allowed|recogni[sz]ed|a valid)|unexpected|forbidden|extra (?:inputs?|fields?)|invalid (?:param|field|arg)|additional propert/i;
const lengthFields = ['max_completion_tokens', 'max_tokens'];

/**
 * The optional request field a 400 or 422 names (§22): by `param`, by a validation list's `loc`, else by its name in the message.
 * The answer is the dotted name of the dialect's list, or its parent (`stream_options`) where only that is named.
 * The two length fields count only where the words are those of a refusal: "max_tokens is too large" is none.
 */
export function refusedField(status: number, body: string, optional: readonly OptionalField[]): string | undefined {
  if (status !== 400 && status !== 422) return undefined;
  const json = parseJson(body.trim());
  const param = string(at(json, 'error', 'param')) || string(object(json)?.['param']);
  const named = [param, ...list(object(json)?.['detail']).map((d) => list(object(d)?.['loc']).join('.'))].filter((name) => name !== '');
  const fields = [...optional.map((o) => o.field), ...lengthFields];
  const leafFirst = [...new Set(fields)].sort((a, b) => b.split('.').length - a.split('.').length);
  const parents = [...new Set(fields.filter((f) => f.includes('.')).map((f) => f.slice(0, f.indexOf('.'))))];
  const leaf = (field: string): string => field.slice(field.lastIndexOf('.') + 1);
  const allowed = (field: string): boolean => !lengthFields.includes(field) || refusal.test(body);
  const has = (text: string, name: string): boolean => new RegExp(`(?<![A-Za-z0-9_])${name}(?![A-Za-z0-9_])`).test(text);
  for (const text of named) {
    const hit = leafFirst.find((f) => has(text, leaf(f)) && allowed(f)) ?? parents.find((p) => has(text, p));
    if (hit !== undefined) return hit;
  }
  const message = messageOfBody(body) ?? '';
  const inMessage = leafFirst.filter((f) => has(message, leaf(f)) && allowed(f)).sort((a, b) => message.indexOf(leaf(a)) - message.indexOf(leaf(b)));
  return inMessage[0] ?? parents.find((p) => has(message, p));
}
