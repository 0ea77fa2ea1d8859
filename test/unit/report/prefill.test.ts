import assert from 'node:assert/strict';
import fc from 'fast-check';
import { leastComputed, prefillPace, prefillSlope } from '../../../src/report/prefill';
import { reportFacts } from '../../../src/report/table';
import { makeReport } from './makeReport';
import { makeSample } from './makeSample';

const connection = { reused: true };
/** An answer whose first token takes a fixed cost and so much per computed token (ms). */
const answer = (prompt: number, cached: number, { fixed = 11, each = 0.03, ...more }: { fixed?: number; each?: number } & Parameters<typeof makeSample>[0] = {}) =>
  makeSample({ connection, promptTokens: prompt, cachedTokens: cached, deltas: [[fixed + each * (prompt - cached), 'text', 1]], ...more });

describe('the pace of prefill', () => {
  it('is not taken from short prompts, warm answers, new connections or failures', () => {
    const warmUp = answer(31, 0, { role: 'warmup', fixed: 19 });
    for (const samples of [
      [warmUp],
      Array.from({ length: 20 }, () => answer(31, 16)),
      Array.from({ length: 20 }, () => answer(1920, 1904)),
      [answer(424, 0, { connection: { reused: false } })],
      [answer(424, 0, { outcome: { kind: 'truncated' } })],
      [answer(424, 0, { cachedTokens: null })],
    ]) {
      assert.equal(prefillPace(samples), null);
      assert.equal(prefillSlope(samples), null);
    }
  });

  it('stands in the facts only where enough was computed, and says so', () => {
    const factsOf = (samples: Parameters<typeof makeReport>[0]) => reportFacts(makeReport(samples)).find(({ label }) => label === 'Prefill')?.text;
    assert.equal(factsOf(Array.from({ length: 4 }, () => answer(31, 16))), undefined);
    assert.match(factsOf([answer(1000, 0, { fixed: 0, each: 0.1 }), answer(1000, 990)]) ?? '', /^10\u202F000 prompt tokens\/s, in the median of 1 answer that had at least 256 not cached$/);
  });

  it('cancels fixed costs where answers of different lengths are compared', () => {
    const samples = [...Array.from({ length: 3 }, () => answer(424, 0)), ...Array.from({ length: 3 }, () => answer(424, 416))];
    assert.ok(Math.abs((prefillSlope(samples) ?? 0) - 1000 / 0.03) < 1);
    assert.equal(prefillSlope(samples.slice(1)), null, 'two long answers are too few');
    assert.equal(prefillSlope(samples.map((s) => ({ ...s, firstToken: 20 }))), null, 'no rise is no price');
  });

  it('finds the price of a token whatever the fixed cost, with one slow answer among them', () => {
    fc.assert(
      fc.property(fc.double({ min: 0, max: 5000, noNaN: true }), fc.double({ min: 0.001, max: 2, noNaN: true }), fc.integer({ min: leastComputed, max: 20_000 }), (fixed, each, more) => {
        const slow = answer(more + 8, 0, { fixed: fixed + 10_000, each });
        const samples = [...Array.from({ length: 6 }, () => [answer(more + 8, 0, { fixed, each }), answer(more + 8, more, { fixed, each })]).flat(), slow];
        const found = prefillSlope(samples);
        assert.ok(found !== null && Math.abs(found * each - 1000) < 1, String(found));
      }),
      { numRuns: 60 },
    );
  });
});
