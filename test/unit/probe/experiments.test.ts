/** What the palette offers: every effort comes to its verdict within the budget it names, on the demo's settings in virtual time. */
import assert from 'node:assert/strict';
import { experiments, settingsFor, type ExperimentName } from '../../../src/probe/experiments';
import { defaultProbeSettings, estimate } from '../../../src/probe/plan';
import { SharedBudget } from '../../../src/probe/scenario/budget';
import { inLab } from './scenario/virtualLab';

const sent = { prompt: { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] }, promptName: 'built-in' };
// The encoder is not among what virtual time carries out; its own tests run it over HTTP.
const names = (Object.keys(experiments) as ExperimentName[]).filter((name) => name !== 'encoder');

describe('the experiments of the palette', function () {
  this.timeout(60_000);

  for (const name of names) {
    for (const effort of experiments[name].efforts) {
      it(`${name}, ${effort.label}: ends within ${effort.requests} requests with a result in words`, () => {
        const settings = settingsFor(effort, defaultProbeSettings);
        const budget = new SharedBudget(settings.budget);
        let requests = 0;
        const { result, steps } = inLab(effort.make(sent), '', {
          settings,
          after: (run, _index, step) => {
            const allowed = budget.allow(step.plan);
            assert.ok(!('by' in allowed), `${step.name} does not fit: ${'detail' in allowed ? allowed.detail : ''}`);
            const needed = estimate(step.plan);
            budget.spend({ requests: needed.requests, outputTokens: needed.outputTokens ?? 0, cost: 0 });
            requests += run.samples.length;
            return run;
          },
        });
        assert.ok(steps.length > 0 && requests > 0 && requests <= effort.requests);
        assert.ok(result.sentences.length > 0 && result.sentences.every((sentence) => sentence.length > 10));
        assert.ok(result.schema.startsWith(`first-token/${name}@`));
      });
    }
  }

  it('finds the verdicts of the demo', () => {
    const verdict = (name: ExperimentName): unknown => (inLab(experiments[name].efforts[0]!.make(sent), '', { settings: settingsFor(experiments[name].efforts[0]!, defaultProbeSettings) }).result as unknown as { verdict?: unknown }).verdict;
    assert.equal(verdict('batching'), 'continuous');
    assert.equal(verdict('interference'), 'whole-prompt');
    assert.equal(verdict('overload'), 'unbounded');
  });

  it('never raises the user’s own budget', () => {
    const [effort] = experiments.sweep.efforts;
    const own = { ...defaultProbeSettings, budget: { requests: 100, outputTokens: 500, cost: 2 } };
    assert.deepEqual(settingsFor(effort!, own).budget, { requests: 100, outputTokens: 500, cost: 2 });
    assert.deepEqual(settingsFor(effort!, defaultProbeSettings).budget, { requests: effort!.requests, outputTokens: effort!.requests * effort!.maxTokens, cost: null });
  });

  it('offers the smallest effort first', () => {
    for (const { efforts } of Object.values(experiments)) assert.deepEqual(efforts.map(({ requests }) => requests), efforts.map(({ requests }) => requests).sort((a, b) => a - b));
  });
});
