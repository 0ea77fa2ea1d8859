/** Reads fields of a JSON body and says which one is wrong. */
import { Refused } from './face';

/** A JSON object. */
export type Fields = Readonly<Record<string, unknown>>;

/** The body as an object. Throws `Refused` (400) when it is not one. */
export function fieldsOf(value: unknown, what = 'The body'): Fields {
  if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Fields;
  throw invalid(null, `${what} must be a JSON object.`);
}

/** A refusal that names the field, status 400 unless given. */
export function invalid(field: string | null, message: string, status = 400): Refused {
  return new Refused({ status, code: 'invalid_request_error', message, field });
}

/** An optional string. */
export function optionalString(fields: Fields, name: string): string | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value === 'string') return value;
  throw invalid(name, `${name}: a string is expected.`);
}

/** An optional whole number of at least `least`. */
export function optionalCount(fields: Fields, name: string, least = 1): number | null {
  const value = fields[name];
  if (value === undefined || value === null) return null;
  if (typeof value === 'number' && Number.isInteger(value) && value >= least) return value;
  throw invalid(name, `${name}: a whole number of at least ${least} is expected, got ${JSON.stringify(value)}.`);
}

/** An optional boolean, `fallback` when absent. */
export function optionalBoolean(fields: Fields, name: string, fallback: boolean): boolean {
  const value = fields[name];
  if (value === undefined || value === null) return fallback;
  if (typeof value === 'boolean') return value;
  throw invalid(name, `${name}: true or false is expected.`);
}

/** An optional object; empty when absent. */
export function optionalFields(fields: Fields, name: string): Fields {
  const value = fields[name];
  return value === undefined || value === null ? {} : fieldsOf(value, name);
}

/** Stop strings: one or a list. */
export function stopStrings(fields: Fields, name = 'stop'): string[] {
  const value = fields[name];
  if (value === undefined || value === null) return [];
  const list: unknown[] = Array.isArray(value) ? value : [value];
  return list.map((entry) => {
    if (typeof entry === 'string' && entry !== '') return entry;
    throw invalid(name, `${name}: a string or a list of strings is expected.`);
  });
}

/** A list of objects. Throws when it is absent, empty or holds something else. */
export function objectList(fields: Fields, name: string): Fields[] {
  const value = fields[name];
  if (!Array.isArray(value) || value.length === 0) throw invalid(name, `${name}: a list that is not empty is expected.`);
  return value.map((entry, index) => fieldsOf(entry, `${name}[${index}]`));
}

/** Text of a message's content: a string, null, or parts whose `text` is joined (pictures count as their type's name). */
export function contentText(content: unknown, field: string): string {
  if (content === undefined || content === null) return '';
  if (typeof content === 'string') return content;
  if (!Array.isArray(content)) throw invalid(field, `${field}: a string or a list of parts is expected.`);
  return content.map((part: unknown) => partText(part, field)).join('');
}

function partText(part: unknown, field: string): string {
  if (typeof part === 'string') return part;
  const fields = fieldsOf(part, field);
  if (typeof fields.text === 'string') return fields.text;
  if (typeof fields.content === 'string' || Array.isArray(fields.content)) return contentText(fields.content, field);
  return typeof fields.type === 'string' ? `[${fields.type}]` : JSON.stringify(fields);
}

/** Content as blocks: a string is one, null is none, a list has one for each part. */
export function contentParts(content: unknown, field: string): { readonly text: string; readonly part: Fields }[] {
  if (Array.isArray(content)) return content.map((part: unknown) => ({ text: partText(part, field), part: typeof part === 'string' ? {} : fieldsOf(part, field) }));
  const text = contentText(content, field);
  return text === '' ? [] : [{ text, part: {} }];
}
