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
