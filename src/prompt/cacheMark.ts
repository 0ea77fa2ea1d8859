import type { CacheMark } from './prompt';

/** The names under which APIs write a cache breakpoint. */
export const markKeys = ['cache_control', 'prompt_cache_breakpoint', 'cachePoint', 'cache_point'] as const;

/** The cache breakpoint that a block, a message or a tool carries; undefined without one. */
export function markOf(value: Readonly<Record<string, unknown>>): CacheMark | undefined {
  for (const key of markKeys) {
    const mark = value[key];
    if (typeof mark !== 'object' || mark === null) continue;
    const { ttl } = mark as { readonly ttl?: unknown };
    return { key: key === 'cache_point' ? 'cachePoint' : key, ttl: typeof ttl === 'string' ? ttl : null };
  }
  return undefined;
}

/** How many cache breakpoints a JSON value holds, however deep. */
export function countMarks(value: unknown): number {
  if (typeof value !== 'object' || value === null) return 0;
  const own = Array.isArray(value) || markOf(value as Record<string, unknown>) === undefined ? 0 : 1;
  return Object.values(value).reduce((sum: number, inner) => sum + countMarks(inner), own);
}
