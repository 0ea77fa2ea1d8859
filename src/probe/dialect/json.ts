/** Reading JSON that nobody promised anything about. */

/** A JSON object of unknown content. */
export type JsonObject = Readonly<Record<string, unknown>>;

/** The value as an object; null for everything else, arrays included. */
export function object(value: unknown): JsonObject | null {
  return typeof value === 'object' && value !== null && !Array.isArray(value) ? (value as JsonObject) : null;
}

/** The value as a list; empty for everything else. */
export function list(value: unknown): readonly unknown[] {
  return Array.isArray(value) ? (value as unknown[]) : [];
}

/** The value as a string; '' for everything else. */
export function string(value: unknown): string {
  return typeof value === 'string' ? value : '';
}

/** The value as a count: a finite number ≥ 0; undefined for everything else. */
export function count(value: unknown): number | undefined {
  return typeof value === 'number' && Number.isFinite(value) && value >= 0 ? value : undefined;
}

/** The value at a dotted path of objects; undefined where the path breaks. */
export function at(value: unknown, ...path: readonly string[]): unknown {
  let here = value;
  for (const name of path) {
    const parent = object(here);
    if (parent === null) return undefined;
    here = parent[name];
  }
  return here;
}

/** Deeper nesting than any server's answer; walking or writing what nests much deeper would exhaust the stack. */
const deepest = 500;

/** The text as JSON; undefined when it is none, or nests deeper than 500 levels. */
export function parseJson(text: string): unknown {
  try {
    return text.length > 2 * deepest && nestsTooDeep(text) ? undefined : (JSON.parse(text) as unknown);
  } catch {
    return undefined;
  }
}

function nestsTooDeep(text: string): boolean {
  let depth = 0;
  let quoted = false;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (quoted) {
      if (code === 92) at++;
      else if (code === 34) quoted = false;
    } else if (code === 34) quoted = true;
    else if (code === 91 || code === 123) {
      if (++depth > deepest) return true;
    } else if (code === 93 || code === 125) depth--;
  }
  return false;
}
