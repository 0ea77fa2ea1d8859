import assert from 'node:assert/strict';
import { readScenario } from '../../../webview/scenarioResult';

describe('a scenario result', () => {
  it('of a sweep gives steps in order of the load, and the knee', () => {
    const view = readScenario('sweep', {
      steps: [
        { concurrency: 4, throughput: { tokensPerSecond: 400 }, perUser: { p50: 100 }, goodput: { perSecond: 3 }, attainment: { good: 19, due: 20 }, verdict: 'missed' },
        { concurrency: 1, throughput: 120, perUser: 120, goodput: 1, attainment: { good: 20, due: 20 }, verdict: 'met' },
      ],
      knee: { concurrency: 1 }, sentences: ['One.', 'Two.'],
    });
    assert.deepEqual(view.sweep?.steps.map((step) => [step.load, step.throughput, step.perUser, step.goodput, step.verdict]), [[1, 120, 120, 1, 'met'], [4, 400, 100, 3, 'missed']]);
    assert.equal(view.sweep.knee, 1);
    assert.deepEqual(view.sentences, ['One.', 'Two.']);
    assert.equal(view.table.length, 3);
  });
  it('of a rate search is read by its rate, without a knee when none was met', () => {
    const view = readScenario('rate', { steps: [{ rate: 2.5 }], knee: null });
    assert.equal(view.sweep?.axis, 'requests per second');
    assert.equal(view.sweep.knee, null);
    assert.equal(view.sweep.steps[0]?.throughput, null);
  });
  it('of a detector gives its verdict and evidence', () => {
    const view = readScenario('batching', { verdict: 'continuous', evidence: { shortReturned: 412, answers: 3, streamed: true, nested: {} } });
    assert.equal(view.sweep, null);
    assert.equal(view.verdict, 'continuous');
    assert.deepEqual(view.table.slice(1), [['short returned', '412'], ['answers', '3'], ['streamed', 'yes']]);
  });
  it('with rows of findings gives a column for each plain field', () => {
    const view = readScenario('prefix', { rows: [{ kind: 'cold', cached: 0 }, { kind: 'warm', cached: 1904, ttft: 91.54, nested: [] }] });
    assert.deepEqual(view.table, [['kind', 'cached', 'ttft'], ['cold', '0', ''], ['warm', '1\u202F904', '91.5']]);
  });
  it('of a proof puts served tokens and what affinity and expiry came to first, and leaves its verdict to the panel', () => {
    const row = (kind: string, served: number) => ({ kind, n: 6, promptTokens: 1424, predicted: { tokens: 1368, exact: true }, served: { p50: served, min: served, max: served, n: 6, from: 'usage' }, ttft: { p50: 20.5, low: 18, high: 22 }, state: 'yes' });
    const view = readScenario('prefix', { schema: 'first-token/prefix@1', verdict: 'As predicted.', rows: [row('cold', 0), row('changed', 1368)], sentences: ['Predicted by the rule.', 'Affinity: 9 of 9 repeats hit.', 'Expiry, cached after a wait of 60 s.'] });
    assert.equal(view.verdict, null);
    assert.deepEqual(view.first, ['Affinity: 9 of 9 repeats hit.', 'Expiry, cached after a wait of 60 s.']);
    assert.deepEqual(view.sentences, ['Predicted by the rule.']);
    assert.deepEqual(view.table[2], ['a later request', '6', '1,424', '1,368', '1,368', '✓ as predicted']);
    assert.ok(!view.table.flat().some((text) => /TTFT|20\.5/.test(text)), 'how long each waited has a table of its own');
  });
  it('of a sweep says that a step has no verdict, not that it was refused', () => {
    const view = readScenario('sweep', { steps: [{ concurrency: 1, verdict: null, clientBottleneck: 'busy' }], knee: null });
    assert.equal(view.table[1]?.at(-1), 'no verdict');
  });
  it('that is damaged shows nothing rather than guessing', () => {
    for (const result of [null, 'x', [], { steps: [{}] }, { steps: 'x' }]) assert.equal(readScenario('sweep', result).sweep, null);
  });
});
