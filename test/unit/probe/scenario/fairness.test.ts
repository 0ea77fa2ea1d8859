import assert from 'node:assert/strict';
import { PlanError } from '../../../../src/probe/plan';
import { fairness, type FairnessVerdict, type TenantLoad } from '../../../../src/probe/scenario/fairness';
import type { Tenant } from '../../../../src/simulator/settings';
import { inLab } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };

function load(name: string, more: Partial<TenantLoad> = {}): TenantLoad {
  return { name, key: null, headers: {}, body: { user: name }, heavy: false, concurrency: 1, requests: 24, every: 150, maxTokens: 32, ...more };
}
function heavy(name: string, more: Partial<TenantLoad> = {}): TenantLoad {
  return load(name, { heavy: true, concurrency: 64, requests: 640, every: null, maxTokens: 128, ...more });
}
function tenant(name: string, more: Partial<Tenant> = {}): Tenant {
  return { name, keys: [], weight: 1, priority: 0, quota: null, ...more };
}

const scenario = fairness({ prompt, tenants: [load('light'), heavy('heavy')] });

describe('fairness', () => {
  const expected: readonly (readonly [string, readonly Tenant[], FairnessVerdict])[] = [
    ['', [], 'not-isolated'],
    ['--fair', [tenant('light'), tenant('heavy')], 'isolated'],
    ['', [tenant('light'), tenant('heavy', { quota: { tokensPerSecond: 500, burst: 2000 } })], 'isolated'],
    ['--max-running 256', [], 'unclear'],
  ];
  for (const [flags, tenants, verdict] of expected) {
    it(`with ${flags || 'no flags'}${tenants.some(({ quota }) => quota) ? ' and a quota' : ''} is ${verdict}`, () => {
      const { result } = inLab(scenario, flags, { tenants });
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
      assert.equal(result.sentences.length, 2);
    });
  }

  it('tells who was refused, and how long they should wait', () => {
    const { result } = inLab(scenario, '', { tenants: [tenant('light'), tenant('heavy', { quota: { tokensPerSecond: 500, burst: 2000 } })] });
    const [light, big] = result.evidence.tenants;
    assert.equal(light!.refused, 0);
    assert.ok(big!.refused > 0 && big!.retryAfterMs! > 0);
  });

  it('sees the weights of fair queuing in the shares of tokens, within 5 %', () => {
    for (const weight of [2, 3]) {
      const both = fairness({ prompt, tenants: [load('probe', { requests: 40, every: 400 }), heavy('a', { requests: 4000 }), heavy('b', { requests: 4000 })] });
      const { result } = inLab(both, '--fair', { tenants: [tenant('probe'), tenant('a'), tenant('b', { weight })] });
      const [, a, b] = result.evidence.tenants;
      assert.ok(Math.abs(b!.tokens / a!.tokens - weight) <= 0.05 * weight, `${b!.tokens} / ${a!.tokens} is not ${weight}`);
    }
  });

  it('needs a light and a heavy tenant', () => {
    for (const tenants of [[load('a')], [heavy('a')]]) assert.throws(() => inLab(fairness({ prompt, tenants }), ''), (error) => error instanceof PlanError && error.message.includes('"heavy": true'));
  });
});
