/**
 * A cache that keeps prefixes only where a request sets a breakpoint, for as long as the breakpoint says (the scheme of Anthropic, Bedrock
 * and OpenAI from GPT-5.6 on). Beside the block pool: what is kept here needs no room in it.
 */
import type { Ms } from './engine';

/** Where a request may find a kept prefix and where it leaves one, in prompt tokens from its first. */
export interface CachePoints {
  readonly reads: readonly number[];
  /** `ttl` counts from the last use. */
  readonly writes: readonly { readonly at: number; readonly ttl: Ms }[];
}

interface Entry {
  readonly ttl: Ms;
  expires: Ms;
}

/** Most prefixes kept; the oldest goes first. */
const mostEntries = 10_000;

/** The prefixes of one replica. Times are those of its engine. */
export class BreakpointCache {
  readonly #entries = new Map<string, Entry>();

  /** Tokens of the longest prefix that is kept and may be read; using it makes it last anew. 0 when there is none. */
  find(prompt: readonly number[], salt: string, reads: readonly number[], now: Ms): number {
    let longest = 0;
    let found: Entry | null = null;
    for (const [at, name] of prefixNames(prompt, salt, reads)) {
      const entry = this.#entries.get(name);
      if (entry && entry.expires > now) {
        longest = at;
        found = entry;
      }
    }
    if (found) found.expires = now + found.ttl;
    return longest;
  }

  /** Keeps the prefixes that end at these places. */
  keep(prompt: readonly number[], salt: string, writes: CachePoints['writes'], now: Ms): void {
    const ttl = new Map(writes.map((write) => [write.at, write.ttl]));
    for (const [at, name] of prefixNames(prompt, salt, [...ttl.keys()])) {
      const before = this.#entries.get(name);
      const lasting = Math.max(ttl.get(at)!, before && before.expires > now ? before.ttl : 0);
      this.#entries.delete(name);
      this.#entries.set(name, { ttl: lasting, expires: now + lasting });
    }
    for (const name of this.#entries.keys()) {
      if (this.#entries.size <= mostEntries) break;
      this.#entries.delete(name);
    }
  }

  reset(): void {
    this.#entries.clear();
  }
}

/** Names of the prefixes that end at these places, shortest first: two 32-bit mixes over the salt and all tokens before the place. */
function* prefixNames(prompt: readonly number[], salt: string, places: readonly number[]): Generator<[at: number, name: string]> {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  const mix = (value: number): void => {
    a = Math.imul(a ^ value, 0x01000193) ^ (a >>> 15);
    b = Math.imul(b ^ value, 0xc2b2ae35) + 0x27d4eb2f;
    b ^= b >>> 13;
  };
  for (let i = 0; i < salt.length; i++) mix(salt.charCodeAt(i));
  let from = 0;
  for (const at of [...new Set(places)].sort((x, y) => x - y)) {
    if (at > prompt.length) return;
    for (; from < at; from++) mix(prompt[from]!);
    yield [at, `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}.${at}`];
  }
}
