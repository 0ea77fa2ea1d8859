/**
 * Paged KV cache with prefix reuse: blocks of 16 tokens, each full block named by the chain of everything before it, free blocks kept
 * until they are needed, least recently used first (the scheme of vLLM's automatic prefix caching).
 */

/** Tokens in a block (vLLM's default). */
export const blockSize = 16;

interface Block {
  readonly id: number;
  references: number;
  /** Name of the block's content, once it is full and computed. */
  key: string | null;
}

/** What one sequence holds: its blocks, in order of position. */
export interface Holding {
  readonly blocks: Block[];
  /** Chain name of the last full block that was registered, and how many were. */
  chain: string;
  registered: number;
}

/** The block pool of one replica. Times never appear here: the order of calls is the order of use. */
export class KvCache {
  readonly capacity: number;
  readonly #cached = new Map<string, Block>();
  /** Unreferenced blocks, least recently used first. */
  readonly #free = new Map<number, Block>();
  #queries = 0;
  #hits = 0;

  constructor(blocks: number) {
    this.capacity = blocks;
    for (let id = 0; id < blocks; id++) this.#free.set(id, { id, references: 0, key: null });
  }

  /** Share of the blocks in use by running sequences, 0 to 1. */
  get usage(): number {
    return this.capacity === 0 ? 0 : 1 - this.#free.size / this.capacity;
  }

  get freeBlocks(): number {
    return this.#free.size;
  }

  /** Prompt tokens looked up and found so far (the two sides of a hit rate). */
  get counters(): { readonly queries: number; readonly hits: number } {
    return { queries: this.#queries, hits: this.#hits };
  }

  /** Tokens at the head of `tokens` that could be reused now: whole blocks, and never the last token, whose logits must be computed. */
  cachedTokens(tokens: readonly number[], salt: string): number {
    return this.#match(tokens, salt).length * blockSize;
  }

  #match(tokens: readonly number[], salt: string): { readonly block: Block; readonly key: string }[] {
    const found: { block: Block; key: string }[] = [];
    const most = Math.floor((tokens.length - 1) / blockSize);
    let chain = salt;
    for (let index = 0; index < most; index++) {
      chain = chainName(chain, tokens, index);
      const block = this.#cached.get(chain);
      if (!block) break;
      found.push({ block, key: chain });
    }
    return found;
  }

  /** Takes blocks for all of `tokens`, shared ones first. Null when there are too few free blocks; nothing is taken then. */
  allocate(tokens: readonly number[], salt: string): { readonly holding: Holding; readonly cachedTokens: number } | null {
    const shared = this.#match(tokens, salt);
    const needed = Math.ceil(tokens.length / blockSize) - shared.length;
    const idleShared = shared.filter(({ block }) => block.references === 0).length;
    if (this.#free.size - idleShared < needed) return null;
    const holding: Holding = { blocks: [], chain: shared.at(-1)?.key ?? salt, registered: shared.length };
    for (const { block } of shared) {
      block.references += 1;
      this.#free.delete(block.id);
      holding.blocks.push(block);
    }
    for (let i = 0; i < needed; i++) holding.blocks.push(this.#take());
    this.#queries += tokens.length;
    this.#hits += shared.length * blockSize;
    return { holding, cachedTokens: shared.length * blockSize };
  }

  #take(): Block {
    const block = this.#free.values().next().value!;
    this.#free.delete(block.id);
    if (block.key !== null) this.#cached.delete(block.key);
    block.key = null;
    block.references = 1;
    return block;
  }

  /** Makes room for a sequence of `length` tokens. False when no block is free. */
  extend(holding: Holding, length: number): boolean {
    while (holding.blocks.length * blockSize < length) {
      if (this.#free.size === 0) return false;
      holding.blocks.push(this.#take());
    }
    return true;
  }

  /** Names the blocks that the first `computed` of `tokens` have filled, so that later prompts can share them. */
  register(holding: Holding, tokens: (position: number) => number, computed: number): void {
    while ((holding.registered + 1) * blockSize <= computed) {
      const index = holding.registered;
      const block = holding.blocks[index]!;
      holding.chain = chainName(holding.chain, { at: tokens }, index);
      if (!this.#cached.has(holding.chain) && block.key === null) {
        block.key = holding.chain;
        this.#cached.set(holding.chain, block);
      }
      holding.registered += 1;
    }
  }

  /** Gives the blocks back; their content stays reusable until they are taken, the tail of a sequence first. */
  release(holding: Holding): void {
    for (const block of holding.blocks.reverse()) {
      block.references -= 1;
      if (block.references === 0) this.#free.set(block.id, block);
    }
    holding.blocks.length = 0;
  }

  /** Forgets everything that is not in use. */
  reset(): void {
    for (const block of this.#free.values()) {
      if (block.key !== null) this.#cached.delete(block.key);
      block.key = null;
    }
  }
}

/** Name of block `index` after the chain `parent`: two 32-bit mixes over the parent's name and the block's tokens. */
export function chainName(parent: string, tokens: { at(position: number): number | undefined }, index: number): string {
  let a = 0x811c9dc5;
  let b = 0x9e3779b9;
  for (let i = 0; i < parent.length; i++) {
    a = Math.imul(a ^ parent.charCodeAt(i), 0x01000193);
    b = Math.imul(b ^ parent.charCodeAt(i), 0x85ebca6b) + 0x6d2b79f5;
  }
  for (let i = index * blockSize; i < (index + 1) * blockSize; i++) {
    const token = tokens.at(i)!;
    a = Math.imul(a ^ token, 0x01000193) ^ (a >>> 15);
    b = Math.imul(b ^ token, 0xc2b2ae35) + 0x27d4eb2f;
    b ^= b >>> 13;
  }
  return `${(a >>> 0).toString(36)}.${(b >>> 0).toString(36)}`;
}
