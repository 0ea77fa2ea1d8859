import assert from 'node:assert/strict';
import fc from 'fast-check';
import { blockSize, KvCache } from '../../../src/simulator/kvCache';

const prompt = (length: number, from = 0): number[] => Array.from({ length }, (_, i) => from + i);

function put(cache: KvCache, tokens: number[], salt = ''): number {
  const taken = cache.allocate(tokens, salt);
  assert.ok(taken);
  cache.register(taken.holding, (i) => tokens[i]!, tokens.length);
  cache.release(taken.holding);
  return taken.cachedTokens;
}

describe('kvCache', () => {
  it('reuses whole blocks of the common head and always recomputes the last token', () => {
    const cache = new KvCache(100);
    assert.equal(put(cache, prompt(64)), 0);
    // All 64 tokens are there, but the last must be computed for its logits: three blocks of 16 remain.
    assert.equal(put(cache, prompt(64)), 48);
    assert.equal(put(cache, prompt(65)), 64);
    assert.equal(put(cache, [...prompt(40), ...prompt(40, 1000)]), 32);
    assert.equal(put(cache, prompt(64, 1)), 0, 'one token earlier shifts every block');
  });

  it('shares nothing between salts', () => {
    const cache = new KvCache(100);
    put(cache, prompt(64), 'a');
    assert.equal(put(cache, prompt(64), 'b'), 0);
    assert.equal(put(cache, prompt(64), 'a'), 48);
  });

  it('evicts the least recently used prefix, its tail first', () => {
    const cache = new KvCache(8);
    put(cache, prompt(64)); // blocks 4
    put(cache, prompt(64, 1000)); // blocks 4
    put(cache, prompt(64)); // used again
    put(cache, prompt(32, 2000)); // takes two blocks of the second prompt, from its tail
    assert.equal(cache.cachedTokens(prompt(65), ''), 64);
    assert.equal(cache.cachedTokens(prompt(65, 1000), ''), 32);
  });

  it('never gives away a block in use', () => {
    const cache = new KvCache(4);
    const first = cache.allocate(prompt(48), '');
    assert.ok(first);
    assert.equal(cache.allocate(prompt(32, 500), ''), null);
    assert.equal(cache.freeBlocks, 1);
    assert.equal(cache.usage, 0.75);
    cache.release(first.holding);
    assert.equal(cache.usage, 0);
  });

  it('two sequences hold one shared block, which is free only when both have let go', () => {
    const cache = new KvCache(10);
    put(cache, prompt(33));
    const [a, b] = [cache.allocate(prompt(33), '')!, cache.allocate(prompt(33), '')!];
    assert.equal(a.cachedTokens, 32);
    assert.equal(10 - cache.freeBlocks, 4, 'two shared and one each');
    cache.release(a.holding);
    assert.equal(10 - cache.freeBlocks, 3);
    cache.release(b.holding);
    assert.equal(cache.freeBlocks, 10);
  });

  it('never loses or doubles a block, whatever happens', () => {
    const step = fc.record({ length: fc.integer({ min: 1, max: 120 }), from: fc.integer({ min: 0, max: 3 }), keep: fc.boolean() });
    fc.assert(
      fc.property(fc.array(step, { maxLength: 40 }), (steps) => {
        const cache = new KvCache(20);
        const held = [];
        for (const { length, from, keep } of steps) {
          const tokens = prompt(length, from);
          const taken = cache.allocate(tokens, '');
          if (!taken) continue;
          assert.ok(taken.cachedTokens < length && taken.cachedTokens % blockSize === 0);
          cache.register(taken.holding, (i) => tokens[i]!, length);
          if (keep) held.push(taken.holding);
          else cache.release(taken.holding);
        }
        for (const holding of held) cache.release(holding);
        assert.equal(cache.freeBlocks, 20);
      }),
    );
  });
});
