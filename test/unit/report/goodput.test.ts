import assert from 'node:assert/strict';
import { answersToProve, attainment, breaches, brokenLimits, gapP99, isGood, sloPresets, verdict } from '../../../src/report/goodput';
import type { Slo } from '../../../src/report/report';
import { failed, makeSample, steady } from './makeSample';

const slo: Slo = { ttft: 200, tpot: 30, attainment: 0.95 };

describe('good answers', () => {
  it('are those inside every limit, the limit itself included', () => {
    assert.equal(isGood(steady(0, 200, 30, 10), slo), true);
    assert.deepEqual(brokenLimits(steady(0, 201, 31, 10), slo), ['ttft', 'tpot']);
    assert.deepEqual(brokenLimits(steady(0, 50, 10, 10), { firstVisible: 40, gapP99: 9, total: 100, attainment: 1 }), ['firstVisible', 'gapP99', 'total']);
  });

  it('may be too short for a pace, but not without a first token', () => {
    assert.equal(isGood(makeSample({ deltas: [[100, 'text', 1]] }), slo), true);
    assert.equal(isGood(makeSample({ deltas: [[100, 'text', 1]] }), { gapP99: 1, attainment: 1 }), true);
    const json = makeSample({ deltas: [], outcome: { kind: 'not-streaming' }, end: 90 });
    assert.deepEqual(brokenLimits(json, slo), ['ttft']);
    assert.equal(isGood(json, { total: 100, attainment: 1 }), true);
    assert.deepEqual(brokenLimits(makeSample({ deltas: [[10, 'tool', 1]] }), { firstVisible: 100, attainment: 1 }), ['firstVisible']);
  });

  it('are never failures, whatever the limits', () => {
    for (const kind of ['status', 'timeout-stall', 'stream-error', 'truncated', 'empty', 'cancelled'] as const) assert.equal(isGood(makeSample({ outcome: { kind } }), { attainment: 0 }), false);
  });

  it('pass the check of the answer where there is one', () => {
    const s = steady(0, 50, 10, 5);
    const checked: Slo = { valid: { pattern: 'yes' }, attainment: 1 };
    assert.equal(isGood(s, checked), true);
    assert.deepEqual(brokenLimits({ ...s, outcome: { kind: 'invalid' } }, checked), ['valid']);
  });

  it('have the p99 of their own gaps', () => {
    assert.equal(gapP99(makeSample({ deltas: [[0, 'text', 1], [10, 'text', 1], [40, 'text', 1]] })), 10 + 20 * 0.99);
    assert.equal(gapP99(makeSample({ deltas: [[0, 'text', 1]] })), null);
  });
});

describe('attainment and verdict', () => {
  const good = (n: number) => Array.from({ length: n }, () => steady(0, 50, 10, 5));
  const bad = (n: number) => Array.from({ length: n }, () => failed(0, { kind: 'status', status: 503 }));

  it('count failures as due and not good, and leave out what the user cancelled, warm-ups and negotiation', () => {
    const samples = [...good(7), ...bad(2), makeSample({ outcome: { kind: 'cancelled' } }), steady(0, 50, 10, 5, { role: 'warmup' }), failed(0, { kind: 'status' }, { role: 'negotiation' })];
    const reached = attainment(samples, slo)!;
    assert.deepEqual([reached.good, reached.due, reached.share], [7, 9, 7 / 9]);
    assert.deepEqual({ ...breaches(samples, slo), by: undefined }, { due: 9, failed: 2, by: undefined });
    assert.equal(attainment([makeSample({ outcome: { kind: 'cancelled' } })], slo), null);
  });

  it('is met only where Wilson’s interval lies above, missed where it lies below, else unclear', () => {
    const of = (g: number, b: number) => verdict(attainment([...good(g), ...bad(b)], slo), slo);
    assert.equal(of(73, 0), 'met');
    assert.equal(of(72, 0), 'unclear');
    assert.equal(of(20, 0), 'unclear');
    assert.equal(of(10, 10), 'missed');
    assert.equal(of(18, 2), 'unclear');
    assert.equal(verdict(null, slo), null);
    assert.equal(answersToProve(slo), 73);
    assert.equal(answersToProve({ attainment: 1 }), null);
  });

  it('has presets for a chat and for a batch', () => {
    assert.deepEqual(sloPresets.chat, { ttft: 500, tpot: 30, attainment: 0.95 });
    assert.equal(isGood(steady(0, 5000, 400, 10), sloPresets.batch), true);
  });
});
