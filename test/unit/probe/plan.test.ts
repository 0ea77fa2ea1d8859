import assert from 'node:assert/strict';
import { dialects } from '../../../src/probe/dialect/index';
import { endpointFromUrl, type Endpoint } from '../../../src/probe/endpoint';
import { createMemory } from '../../../src/probe/memory';
import { defaultNetwork, defaultTimeouts } from '../../../src/probe/network';
import { checkRequest, defaultProbeSettings, estimate, PlanError, planProbe, readProbeSettings, salted, summarisePlan, timeoutsFor, type ProbeSettings, type Target } from '../../../src/probe/plan';
import type { ChatPrompt } from '../../../src/prompt/prompt';

const prompt: ChatPrompt = { messages: [{ role: 'system', text: 'Be kind.' }, { role: 'user', text: 'Hello' }], tools: [] };
const priced = { ...endpointFromUrl('http://h/v1'), price: { currency: 'EUR', inputPerMillion: 1, cachedInputPerMillion: null, outputPerMillion: 10 } };

function target(endpoint: Endpoint = priced): Target {
  return { endpoint, dialect: dialects['openai-chat'], model: 'm', server: null, key: null, timeouts: defaultTimeouts, network: defaultNetwork, memory: createMemory() };
}

function settings(more: Partial<ProbeSettings> = {}): ProbeSettings {
  return { ...defaultProbeSettings, ...more };
}

function refused(read: () => unknown): string {
  try {
    read();
  } catch (error) {
    assert.ok(error instanceof PlanError, String(error));
    return error.message;
  }
  return assert.fail('no PlanError');
}

describe('a plan', () => {
  it('lists every shot: warm-ups, then the measured ones', () => {
    const plan = planProbe(target(), prompt, settings({ requests: 3, warmup: 2, maxTokens: 7 }));
    assert.deepEqual(plan.shots.map(({ id, role }) => [id, role]), [['warmup-1', 'warmup'], ['warmup-2', 'warmup'], ['1', 'measured'], ['2', 'measured'], ['3', 'measured']]);
    assert.ok(plan.shots.every((shot) => shot.maxTokens === 7 && shot.nonce === null && shot.dueAt === null));
  });

  it('salts every cold shot differently, and equally long', () => {
    const nonces = planProbe(target(), prompt, settings({ requests: 50, cache: 'cold' })).shots.map(({ nonce }) => nonce!);
    assert.equal(new Set(nonces).size, 51);
    assert.ok(nonces.every((nonce) => /^[0-9a-f]{16}$/.test(nonce)));
    const cold = salted(prompt, nonces[0]!);
    assert.ok(cold.messages[0]!.text.startsWith(nonces[0]!), 'the very first bytes');
    assert.ok(cold.messages[0]!.text.endsWith('Be kind.'));
    assert.deepEqual(cold.messages[1], prompt.messages[1]);
  });

  it('adds up what it may use', () => {
    const plan = planProbe(target(), { messages: [{ role: 'user', text: 'x'.repeat(400) }], tools: [] }, settings({ requests: 9, warmup: 1, maxTokens: 50 }));
    assert.deepEqual(estimate(plan), { requests: 10, promptTokens: 1000, outputTokens: 500, cost: { value: (1000 * 1 + 500 * 10) / 1e6, currency: 'EUR' } });
    assert.deepEqual(estimate(planProbe(target(endpointFromUrl('http://h')), prompt, settings({ maxTokens: null }))), { requests: 21, promptTokens: 84, outputTokens: null, cost: null });
  });

  it('is refused over its own limits', () => {
    assert.match(refused(() => planProbe(target(), prompt, settings({ budget: { requests: 20, outputTokens: null, cost: null } }))), /21 requests.*limit of 20.*maxRequests/);
    assert.match(refused(() => planProbe(target(endpointFromUrl('http://h')), prompt, settings({ budget: { requests: null, outputTokens: null, cost: 1 } }))), /maxCost.*has no price/);
  });

  it('is told without the prompt', () => {
    const told = summarisePlan('probe', settings(), prompt, 'greeting.txt', { slo: { attainment: 0.9 }, objective: 'chat', readerPace: 120 });
    assert.ok(!JSON.stringify(told).includes('Hello'));
    assert.deepEqual([told.prompt.name, told.prompt.characters, told.requests, told.warmup], ['greeting.txt', 14, 20, 1]);
    assert.match(told.prompt.sha256, /^[0-9a-f]{64}$/);
  });
});

describe('probe settings', () => {
  it('are read over the defaults', () => {
    assert.deepEqual(readProbeSettings(undefined), defaultProbeSettings);
    const read = readProbeSettings({ requests: 5, maxTokens: null, maxTotalTokens: 1000, breaker: null, retry: { attempts: 1 } });
    assert.deepEqual([read.requests, read.maxTokens, read.budget.outputTokens, read.breaker, read.retry], [5, null, 1000, null, { attempts: 1, wait: 1000, share: 0.1 }]);
  });

  it('say which one is wrong', () => {
    const wrong: [unknown, RegExp][] = [
      [[], /firstToken\.probe must be an object/],
      [{ request: 5 }, /no property "request"/],
      [{ requests: '5' }, /firstToken\.probe\.requests \(-n\) must be a whole number from 1 to 100000; it is "5"/],
      [{ requests: 0 }, /requests/],
      [{ requests: 1.5 }, /requests/],
      [{ concurrency: 1001 }, /concurrency \(-c\)/],
      [{ warmup: -1 }, /warmup \(--warmup\)/],
      [{ maxTokens: 0 }, /maxTokens \(--max-tokens\)/],
      [{ maxTokens: '256' }, /maxTokens/],
      [{ cache: 'hot' }, /cache \(--cache\) must be "as-is" or "cold"; it is "hot"/],
      [{ maxCost: -1 }, /maxCost/],
      [{ breaker: { consecutive: 0 } }, /breaker\.consecutive/],
      [{ retry: { attempts: 99 } }, /retry\.attempts/],
      [{ breaker: 'abc' }, /probe\.breaker must be an object, true or false; it is "abc"/],
      [{ breaker: [1] }, /probe\.breaker must be an object/],
      [{ breaker: { windw: 5 } }, /probe\.breaker has no property "windw"/],
      [{ breaker: { constructor: 5 } }, /no property "constructor"/],
      [{ retry: 2 }, /probe\.retry must be an object/],
      [{ retry: { wait: Infinity } }, /retry\.wait/],
      [{ retry: { share: Infinity } }, /retry\.share/],
      [{ maxCost: Infinity }, /maxCost/],
    ];
    for (const [json, message] of wrong) assert.match(refused(() => readProbeSettings(json)), message);
  });
});

describe('a request that cannot be sent', () => {
  it('is told before anything is', () => {
    const endpoint = endpointFromUrl('http://h');
    assert.match(refused(() => checkRequest({ ...endpoint, url: 'h:80' }, prompt, 'p')), /has no scheme.*--endpoint/);
    assert.match(refused(() => checkRequest(endpoint, { messages: [], tools: [] }, 'empty.txt')), /"empty\.txt" is empty/);
    assert.match(refused(() => checkRequest(endpoint, { messages: [{ role: 'user', text: ' \n' }], tools: [] }, 'p')), /is empty/);
    assert.match(refused(() => checkRequest({ ...endpoint, headers: { a: '${env:TOKEN}' } }, prompt, 'p')), /TOKEN.*--allow-env TOKEN/);
    const message = refused(() => checkRequest({ ...endpoint, headers: { 'x-key': 'planted\nvalue' } }, prompt, 'p'));
    assert.match(message, /"x-key".*does not allow/);
    assert.ok(!message.includes('planted'));
    assert.match(refused(() => checkRequest({ ...endpoint, headers: { 'x-name': '名' } }, prompt, 'p')), /"x-name".*does not allow/);
    for (const name of ['Content-Length', 'transfer-encoding', 'expect', 'upgrade']) assert.match(refused(() => checkRequest({ ...endpoint, headers: { [name]: '5' } }, prompt, 'p')), /belongs to the connection.*leave it out/);
    checkRequest({ ...endpoint, headers: { connection: 'close', 'x-name': 'Grüße\t1' } }, prompt, 'p');
    checkRequest(endpoint, prompt, 'p');
  });
});

describe('limits', () => {
  it('are the endpoint’s, then the network’s, then the defaults', () => {
    const endpoint = { ...endpointFromUrl('http://h'), timeouts: { firstToken: 1, stall: null } };
    assert.deepEqual(timeoutsFor(endpoint, { firstToken: 2, total: 3 }), { firstToken: 1, stall: null, total: 3 });
    assert.deepEqual(timeoutsFor(endpointFromUrl('http://h')), defaultTimeouts);
  });
});
