/** Requests as content blocks with breakpoints, and the rules of the providers that cache by them (as published, of late 2026). */
import type { Fingerprint } from '../answerMemory';
import type { CachePoints } from '../breakpointCache';
import { renderBlocks } from '../splitter';
import { invalid, type Fields } from './bodyFields';

/** A piece of a request in the order it is rendered. Blocks with the same `message` follow each other. */
export interface CacheBlock {
  readonly slot: 'tools' | 'system' | 'messages';
  readonly role: string;
  readonly message: number;
  readonly text: string;
  /** The breakpoint on it: how long what ends there is kept, in seconds; null without one. */
  readonly mark: number | null;
}

/** Shorter prefixes are silently not kept (most models' minimum). */
const minimum = 1024;
const minutes = 60;

/** Tokens of the prompt and where each block ends in it. */
export function render(blocks: readonly CacheBlock[]): { readonly prompt: number[]; readonly ends: readonly number[] } {
  const groups: { readonly message: number; readonly role: string; readonly blocks: string[] }[] = [];
  for (const { message, role, text } of blocks) {
    const last = groups.at(-1);
    if (last?.message === message) last.blocks.push(text);
    else groups.push({ message, role, blocks: [text] });
  }
  const { prompt, ends } = renderBlocks(groups);
  return { prompt, ends: ends.flat() };
}

/** A tool list as the text of one block a tool, markers left out. */
export function toolBlocks(tools: readonly unknown[], markOf: (tool: Fields) => number | null): CacheBlock[] {
  return tools.map((tool, i) => {
    const text = JSON.stringify(tool, (key, value: unknown) => (key === 'cache_control' || key === 'prompt_cache_breakpoint' ? undefined : value));
    const mark = typeof tool === 'object' && tool !== null ? markOf(tool as Fields) : null;
    return { slot: 'tools', role: 'tools', message: -2, text: `${i === 0 ? '[' : ','}${text}${i === tools.length - 1 ? ']' : ''}`, mark };
  });
}

/** Anthropic's `cache_control` on a block: seconds, or null. Throws `Refused` for a time to live that does not exist. */
export function ephemeral(part: Fields, field = 'cache_control'): number | null {
  const mark = part[field];
  if (typeof mark !== 'object' || mark === null) return null;
  const { ttl } = mark as Fields;
  if (ttl === undefined || ttl === null || ttl === '5m') return 5 * minutes;
  if (ttl === '1h') return 60 * minutes;
  throw invalid(`${field}.ttl`, `${field}.ttl: '5m' or '1h' is expected.`);
}

/** Anthropic's rule: at most four breakpoints, longer ones first, each looks back over 20 blocks with its own. Throws `Refused`. */
export function markerPoints(blocks: readonly CacheBlock[], marker: string): CachePoints {
  const { ends } = render(blocks);
  const marks = blocks.flatMap(({ mark }, index) => (mark === null ? [] : [{ index, ttl: mark }]));
  if (marks.length > 4) throw invalid(marker, `A maximum of 4 blocks with ${marker} may be provided. Found ${marks.length}.`);
  if (marks.some(({ ttl }, i) => ttl > (marks[i - 1]?.ttl ?? Infinity))) throw invalid(marker, `A ttl='1h' ${marker} block must not come after a ttl='5m' ${marker} block.`);
  const big = (at: number): boolean => at >= minimum;
  return {
    reads: marks.flatMap(({ index }) => ends.slice(Math.max(0, index - 19), index + 1)).filter(big),
    writes: marks.map(({ index, ttl }) => ({ at: ends[index]!, ttl: ttl * 1000 })).filter(({ at }) => big(at)),
  };
}

/**
 * OpenAI's rule from GPT-5.6 on: explicit breakpoints, and an implicit one at the end of the latest user message, tool output or initial
 * system group unless `explicitOnly`. Four are written. No fall-back to the longest prefix.
 */
export function openaiPoints(blocks: readonly CacheBlock[], explicitOnly: boolean): CachePoints {
  const { ends } = render(blocks);
  const explicit = blocks.flatMap(({ mark }, index) => (mark === null ? [] : [ends[index]!]));
  const implicit = explicitOnly ? [] : eligible(blocks).map((index) => ends[index]!);
  const written = [...implicit.slice(-1), ...explicit.slice(implicit.length > 0 ? -3 : -4)];
  const big = (at: number): boolean => at >= minimum;
  const initial = implicit.slice(0, 1);
  return {
    reads: [...explicit.slice(0, 2), ...explicit.slice(-50), ...initial, ...implicit.slice(-21)].filter(big),
    writes: written.filter(big).map((at) => ({ at, ttl: 30 * minutes * 1000 })),
  };
}

/** The last blocks of the initial system group, of user messages and of groups of tool outputs. */
function eligible(blocks: readonly CacheBlock[]): number[] {
  const ends = blocks.map((block, index) => ({ ...block, index })).filter(({ message, slot }, i) => slot !== 'tools' && blocks[i + 1]?.message !== message);
  const leads = (role: string | undefined): boolean => role === 'system' || role === 'developer';
  const firstTurn = ends.findIndex(({ role }) => !leads(role));
  return ends.flatMap(({ role, index }, i) => {
    const next = ends[i + 1]?.role;
    const group = leads(role) && !leads(next) && (firstTurn < 0 || i < firstTurn);
    return group || role === 'user' || (isOutput(role) && !isOutput(next)) ? [index] : [];
  });
}

const isOutput = (role: string | undefined): boolean => role === 'tool' || role === 'function_call_output';

/** Tokens that a request adds to the cache, by how long they are kept: those behind what was read, up to its last breakpoint. */
export function writtenTokens(points: CachePoints | undefined, cachedTokens: number): { readonly short: number; readonly long: number } {
  const until = (writes: CachePoints['writes']): number => Math.max(cachedTokens, ...writes.map(({ at }) => at));
  const writes = points?.writes ?? [];
  const hour = until(writes.filter(({ ttl }) => ttl > 30 * minutes * 1000));
  return { long: hour - cachedTokens, short: Math.max(hour, until(writes)) - hour };
}

/** What a provider remembers of a request: its settings and its blocks. */
export function fingerprint(blocks: readonly CacheBlock[], settings: Fingerprint['settings']): Fingerprint {
  return { settings, blocks: blocks.filter(({ slot }) => slot === 'messages').map(({ role, text }) => `${role}\u0000${text}`), prompt: Uint32Array.from(render(blocks).prompt) };
}

/** The texts of one slot as one value. */
export function slotText(blocks: readonly CacheBlock[], slot: CacheBlock['slot']): string {
  return JSON.stringify(blocks.filter((block) => block.slot === slot).map(({ text }) => text));
}
