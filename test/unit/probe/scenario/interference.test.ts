import assert from 'node:assert/strict';
import { PlanError } from '../../../../src/probe/plan';
import { interference, type InterferenceVerdict } from '../../../../src/probe/scenario/interference';
import { inLab } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };
const options = { prompt, lengths: [512, 1024, 2048, 4096, 8192], streams: 2, streamTokens: 256, repeats: 2, seed: 1 };
const scenario = interference(options);

describe('interference', () => {
  const expected: readonly (readonly [string, InterferenceVerdict])[] = [
    ['', 'whole-prompt'],
    ['--chunked-prefill 256', 'chunked'],
    ['--chunked-prefill 1024', 'chunked'],
    ['--split 1:1', 'isolated'],
    ['--policy request-level', 'unclear'],
  ];
  for (const [flags, verdict] of expected) {
    it(`with ${flags === '' ? 'the defaults' : flags} is ${verdict}`, () => {
      const { result } = inLab(scenario, flags);
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
      assert.equal(result.sentences.length, 2);
    });
  }

  it('sees a spike as long as the prefill, growing with the prompt', () => {
    const { byLength, spikeShare } = inLab(scenario, '').result.evidence;
    assert.ok(spikeShare! > 0.9);
    for (const { ttftMs, spikeMs } of byLength.slice(2)) assert.ok(Math.abs(spikeMs - ttftMs) < 0.25 * ttftMs, `${spikeMs} of ${ttftMs}`);
    assert.ok(byLength.every((at, i) => i === 0 || at.spikeMs > byLength[i - 1]!.spikeMs));
  });

  it('tells the size of a chunk within a third, and that spikes stop growing', () => {
    for (const chunk of [256, 512, 1024]) {
      const { chunkTokens, byLength } = inLab(scenario, `--chunked-prefill ${chunk}`).result.evidence;
      assert.ok(chunkTokens! > 0.66 * chunk && chunkTokens! < 1.5 * chunk, `${chunkTokens} of ${chunk}`);
      const [third, , last] = byLength.slice(-3);
      assert.ok(last!.spikeMs < 1.6 * third!.spikeMs);
    }
  });

  it('leaves out prompts the model cannot take', () => {
    const { steps } = inLab(scenario, '', { maxModelLen: 3000 });
    assert.deepEqual([...new Set(steps[1]!.plan.shots.map((shot) => shot.labels['length']).filter((length) => length !== undefined))], [512, 1024, 2048]);
    assert.throws(() => inLab(scenario, '', { maxModelLen: 100 }), (error) => error instanceof PlanError && error.message.includes('--lengths'));
  });

  it('keeps what it knows when it is stopped', () => {
    const { result } = inLab(scenario, '', { after: (run, index) => (index === 1 ? { ...run, samples: run.samples.filter((s) => Number(s.labels['length'] ?? 0) < 5000), stopped: { by: 'user', detail: 'stopped by you' } } : run) });
    assert.equal(result.stopped, 'stopped by you');
    assert.equal(result.evidence.byLength.length, 4);
  });
});
