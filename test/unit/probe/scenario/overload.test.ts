import assert from 'node:assert/strict';
import { PlanError } from '../../../../src/probe/plan';
import { overload, type OverloadVerdict } from '../../../../src/probe/scenario/overload';
import { inLab } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };
const options = { prompt, maxTokens: 64, concurrency: 48, factor: 3, duration: 2000, mostRequests: 600 };

describe('overload', () => {
  const expected: readonly (readonly [string, OverloadVerdict])[] = [
    ['', 'unbounded'],
    ['--policy request-level', 'unbounded'],
    ['--queue 4', 'bounded'],
    ['--queue 0', 'bounded'],
    ['--shed 200', 'bounded'],
  ];
  for (const [flags, verdict] of expected) {
    it(`with ${flags === '' ? 'the defaults' : flags} is ${verdict}`, () => {
      const { result } = inLab(overload(options), flags);
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
      assert.equal(result.sentences.length, 2);
    });
  }

  it('finds the capacity, the growth of the wait and the time to drain on paper', () => {
    const { evidence } = inLab(overload(options), '').result;
    // 16 seats, 64 tokens of about 3.45 ms each.
    const capacity = 16_000 / (64 * 3.45);
    assert.ok(Math.abs(evidence.capacityPerSecond! - capacity) < 0.1 * capacity, `capacity ${evidence.capacityPerSecond}`);
    // The wait grows by factor − 1 seconds a second; draining takes as many times the burst.
    assert.ok(Math.abs(evidence.waitGrowthPerSecondMs! - 2000) < 200, `growth ${evidence.waitGrowthPerSecondMs}`);
    assert.ok(Math.abs(evidence.recoveryMs! - 4000) < 600, `recovery ${evidence.recoveryMs}`);
  });

  it('sees a bounded queue keep the wait, tell when to come back and recover at once', () => {
    const { evidence } = inLab(overload(options), '--queue 4').result;
    assert.ok(evidence.refused > 0.4 * evidence.burstRequests);
    assert.ok(evidence.refusedAfterMs! < 10, `refused after ${evidence.refusedAfterMs}`);
    assert.equal(evidence.retryAfterMs, 1000);
    assert.ok(evidence.ttftP99Ms! < 300 && evidence.recoveryMs! < 400, `${evidence.ttftP99Ms} ${evidence.recoveryMs}`);
  });

  it('is no overload where the fleet grows with it, and failing where answers break', () => {
    assert.equal(inLab(overload({ ...options, factor: 1.05, duration: 300 }), '--max-running 512').result.verdict, 'absorbed');
    const broken = inLab(overload(options), '', { after: (run, _, step) => (step.name === 'burst' ? { ...run, samples: run.samples.map((s, i) => (i % 3 === 0 ? { ...s, outcome: { kind: 'truncated' } } : s)) } : run) });
    assert.equal(broken.result.verdict, 'failing');
  });

  it('keeps what it knows when it is stopped, and refuses a factor of one', () => {
    const { result } = inLab(overload(options), '', { after: (run, index) => (index === 1 ? { ...run, stopped: { by: 'budget', detail: 'the budget' } } : run) });
    assert.deepEqual([result.verdict, result.stopped, result.evidence.ttftBeforeMs !== null], ['unclear', 'the budget', true]);
    assert.throws(() => inLab(overload({ ...options, factor: 1 }), ''), (error) => error instanceof PlanError && error.message.includes('--factor'));
  });
});
