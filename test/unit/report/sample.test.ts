import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { arrivedAtOnce, checkStamps, chunkGaps, firstFrame, firstVisible, headersTime, itl, itlOrReason, prefillRate, readerStall, shiftSample, streamTail, total, tpot, ttft, type Delta } from '../../../src/report/sample';
import { failed, makeSample, steady } from './makeSample';

describe('per-request metrics, against samples computed by hand', () => {
  const reasoned = makeSample({
    start: 1000,
    headers: 1010,
    firstFrame: 1011,
    deltas: [[1100, 'reasoning', 1], [1120, 'reasoning', 2], [1200, 'text', 1], [1260, 'text', 3]],
    end: 1275,
    promptTokens: 500,
    cachedTokens: 400,
  });

  it('counts from start to the first token of any kind, and to the first visible one', () => {
    assert.equal(ttft(reasoned), 100);
    assert.equal(firstVisible(reasoned), 200);
    assert.equal(firstFrame(reasoned), 11);
    assert.equal(headersTime(reasoned), 10);
  });

  it('ends at the last token; the tail is apart', () => {
    assert.equal(total(reasoned), 260);
    assert.equal(streamTail(reasoned), 15);
  });

  it('gives none, never 0, where no token came', () => {
    const none = failed(0, { kind: 'empty' });
    for (const metric of [ttft, firstVisible, firstFrame, total, tpot, streamTail, itl, prefillRate]) assert.equal(metric(none), null);
    assert.deepEqual(chunkGaps(none), []);
    assert.equal(readerStall(none, 120), null);
    assert.equal(firstVisible(makeSample({ deltas: [[50, 'tool', 1]] })), null);
  });

  it('gives a JSON answer a total latency only', () => {
    const json = makeSample({ deltas: [], headers: 5, end: 321, outcome: { kind: 'not-streaming' }, outputTokens: { count: 40, source: 'final-usage' }, streamTokens: 40 });
    assert.equal(total(json), 321);
    assert.equal(ttft(json), null);
    assert.equal(tpot(json), null);
  });

  it('takes gaps between deltas, and splits one of k tokens into k inter-token latencies', () => {
    assert.deepEqual(chunkGaps(reasoned), [20, 80, 60]);
    assert.deepEqual(itl(reasoned), [10, 10, 80, 20, 20, 20]);
  });

  it('has no ITL where a count is unknown or the sums disagree', () => {
    assert.equal(itlOrReason(makeSample({ deltas: [[1, 'text', 1], [2, 'text', null], [3, 'text', 1]] })), 'tokens-unknown');
    assert.equal(itlOrReason(makeSample({ deltas: [[1, 'text', 1], [2, 'text', 1]], streamTokens: 3 })), 'counts-disagree');
    assert.equal(itlOrReason(makeSample({ deltas: [[1, 'text', 1]] })), 'no-second-delta');
    // A frame without a token of its own would leave its gap uncounted.
    assert.equal(itlOrReason(makeSample({ deltas: [[1, 'text', 1], [5, 'text', 0], [6, 'text', 1]] })), 'counts-disagree');
  });

  it('divides by the tokens behind the first frame', () => {
    assert.equal(tpot(reasoned), 160 / 6);
    assert.equal(tpot(makeSample({ deltas: [[10, 'text', 3], [30, 'text', 1], [50, 'text', 1]] })), 20);
    // n₁ unknown counts as 1; hidden reasoning is not in N_stream.
    assert.equal(tpot(makeSample({ deltas: [[10, 'text', null], [70, 'text', null]], outputTokens: { count: 104, source: 'final-usage' }, streamTokens: 4 })), 20);
  });

  it('has no TPOT for one token, for unknown counts, and for an answer in one read', () => {
    assert.equal(tpot(makeSample({ deltas: [[10, 'text', 1]] })), null);
    assert.equal(tpot(makeSample({ deltas: [[10, 'text', 2], [20, 'token', 0]], streamTokens: 2 })), null);
    assert.equal(tpot(makeSample({ streamTokens: null })), null);
    const once = makeSample({ deltas: [[10, 'text', 1], [10, 'text', 1], [10, 'text', 1]], maxDeltasPerRead: 3 });
    assert.equal(arrivedAtOnce(once), true);
    assert.equal(tpot(once), null);
    assert.equal(itl(once), null);
    assert.equal(arrivedAtOnce(makeSample({ deltas: [[10, 'text', null]], outputTokens: { count: 50, source: 'final-usage' }, streamTokens: 50 })), true);
    assert.equal(arrivedAtOnce(makeSample({ deltas: [[10, 'text', 1]] })), false);
  });

  it('leaves cached tokens out of the prefill rate, and does not take unknown for 0', () => {
    assert.equal(prefillRate(reasoned), 1000);
    assert.equal(prefillRate(makeSample({ cachedTokens: null })), null);
    assert.equal(prefillRate(makeSample({ cachedTokens: 100 })), null);
  });
});

describe('reader stall', () => {
  it('is 0 for a stream never slower than the reader', () => {
    assert.deepEqual(readerStall(steady(0, 50, 120, 10), 120), { ms: 0, approximate: false });
  });

  it('adds what the reader waits beyond the pace', () => {
    // r₀ = 100; token 1 at 150 is read at 220; token 2 at 500 is wanted at 340: 160 ms of waiting, read at 500; token 3 at 600 wanted at 620: none.
    const s = makeSample({ deltas: [[100, 'text', 1], [150, 'text', 1], [500, 'text', 1], [600, 'text', 1]] });
    assert.deepEqual(readerStall(s, 120), { ms: 160, approximate: false });
  });

  it('lets tokens that came together be read one after the other', () => {
    // Three tokens at 100 are read at 100, 220, 340; the fourth, at 500, is wanted at 460.
    const s = makeSample({ deltas: [[100, 'text', 3], [500, 'text', 1]] });
    assert.deepEqual(readerStall(s, 120), { ms: 40, approximate: false });
  });

  it('does not count reasoning: the reader starts with the answer', () => {
    const s = makeSample({ deltas: [[100, 'reasoning', 1], [5000, 'reasoning', 1], [9000, 'text', 1], [9100, 'text', 1]] });
    assert.equal(readerStall(s, 120)?.ms, 0);
  });

  it('spreads N over the characters where counts are unknown, and says so', () => {
    // 4 tokens over 4 + 12 characters: one in the first piece, three in the second.
    const s = makeSample({ deltas: [[0, 'text', null], [500, 'text', null], [1000, 'text', null]], visibleChars: [4, 4, 8], outputTokens: { count: 4, source: 'final-usage' }, streamTokens: 4 });
    // Token 1 at 0; 2 at 500 (wanted 120: 380); 3 and 4 at 1000 (wanted 620: 380).
    assert.deepEqual(readerStall(s, 120), { ms: 760, approximate: true });
  });

  it('equals the recurrence written out token by token', () => {
    const gapsAndCounts = fc.array(fc.tuple(fc.integer({ min: 0, max: 400 }), fc.integer({ min: 1, max: 5 })), { minLength: 1, maxLength: 30 });
    fc.assert(fc.property(gapsAndCounts, fc.integer({ min: 1, max: 300 }), (steps, pace) => {
      let t = 70;
      const deltas = steps.map(([gap, k]): Delta => [(t += gap), 'text', k]);
      const arrivals = deltas.flatMap(([at, , k]) => Array.from({ length: k ?? 0 }, () => at));
      let read = arrivals[0]!;
      let stall = 0;
      for (const a of arrivals.slice(1)) {
        stall += Math.max(0, a - (read + pace));
        read = Math.max(a, read + pace);
      }
      assert.equal(readerStall(makeSample({ deltas }), pace)?.ms, stall);
    }));
  });
});

describe('stamps', () => {
  it('hold their order, and the first pair that does not is named', () => {
    assert.equal(checkStamps(makeSample()), null);
    assert.equal(checkStamps(makeSample({ written: null, headers: null })), null);
    assert.equal(checkStamps(makeSample({ due: 5, start: 4 })), 'start before due');
    assert.equal(checkStamps(makeSample({ end: 1 })), 'end before last');
    assert.equal(checkStamps(makeSample({ headers: Number.NaN })), 'headers is not a number');
  });

  it('move together and change no metric', () => {
    const s = steady(10, 40, 8, 12, { connection: { reused: false, connected: 11 } });
    const moved = shiftSample(s, 1024);
    assert.equal(moved.start, 1034);
    assert.equal(moved.connection.connected, 1035);
    for (const metric of [ttft, firstVisible, firstFrame, headersTime, total, tpot, streamTail]) assert.equal(metric(moved), metric(s));
    assert.deepEqual(itl(moved), itl(s));
    assert.equal(checkStamps(moved), null);
  });

  it('keep Σ ITL = last − firstToken and one value per later token', () => {
    const anyDeltas = fc.array(fc.tuple(fc.double({ min: 0.001, max: 500, noNaN: true }), fc.integer({ min: 1, max: 8 })), { minLength: 2, maxLength: 60 });
    fc.assert(fc.property(anyDeltas, (steps) => {
      let t = 30;
      const s = makeSample({ deltas: steps.map(([gap, k]): Delta => [(t += gap), 'text', k]) });
      const values = itl(s)!;
      assert.equal(values.length, s.streamTokens! - s.n1!);
      assert.ok(Math.abs(values.reduce((sum, v) => sum + v, 0) - (s.last! - s.firstToken!)) < 1e-6 * Math.max(1, s.last! - s.firstToken!));
      assert.ok(Math.abs(values.reduce((sum, v) => sum + v, 0) / values.length - tpot(s)!) < 1e-6 * Math.max(1, tpot(s)!));
    }));
  });
});
