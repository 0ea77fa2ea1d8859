import assert from 'node:assert/strict';
import { decode } from '../../../../src/probe/decode';
import { PlanError } from '../../../../src/probe/plan';
import { SharedBudget } from '../../../../src/probe/scenario/budget';
import { cosine } from '../../../../src/probe/scenario/encoder';
import { encoderDialect } from '../../../../src/probe/scenario/encoderDialect';
import { keepRecorders } from '../../../../src/probe/scenario/keptRecorders';
import { checkOpenFiles, openFiles } from '../../../../src/probe/scenario/openFiles';
import { stepPlan } from '../../../../src/probe/scenario/scenario';
import { defaultProbeSettings, type ProbePlan } from '../../../../src/probe/plan';
import { oneShot } from '../../../../src/probe/scenario/detector';
import { sloPresets } from '../../../../src/report/goodput';
import { fakeWorld } from '../fakeRecorder';
import { labTarget } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Hello' }], tools: [] };

function planOf(requests: number, maxTokens = 10, endpoint = {}): ProbePlan {
  const context = { target: labTarget(endpoint), settings: defaultProbeSettings, slo: sloPresets.chat, objective: 'chat' as const, maxModelLen: null };
  return stepPlan(context, 'test', { shots: Array.from({ length: requests }, (_, i) => oneShot(`${i}`, prompt, maxTokens)) });
}

describe('a budget that steps share', () => {
  it('gives each step what is left, and ends before a step that does not fit', () => {
    const budget = new SharedBudget({ requests: 30, outputTokens: 1000, cost: null });
    const first = budget.allow(planOf(20));
    assert.ok(!('by' in first));
    assert.deepEqual(first.budget, { requests: 30, outputTokens: 1000, cost: null });
    budget.spend({ requests: 20, outputTokens: 200, cost: 0 });
    const second = budget.allow(planOf(5));
    assert.ok(!('by' in second));
    assert.deepEqual(second.budget, { requests: 10, outputTokens: 800, cost: null });
    const third = budget.allow(planOf(11));
    assert.ok('by' in third && third.by === 'budget' && third.detail.includes('10 of 30 are left'));
  });

  it('too small for the first step says so before anything is sent', () => {
    assert.throws(() => new SharedBudget({ requests: 5, outputTokens: null, cost: null }).allow(planOf(20)), (error) => error instanceof PlanError && /too small for one step: the first step needs up to 20 requests, 5 of 5/.test(error.message));
    assert.throws(() => new SharedBudget({ requests: null, outputTokens: 100, cost: null }).allow(planOf(20)), (error) => error instanceof PlanError && error.message.includes('maxTotalTokens'));
    const priced = planOf(20, 10, { price: { currency: 'USD', inputPerMillion: 1000, outputPerMillion: 1000, cachedInputPerMillion: null } });
    assert.throws(() => new SharedBudget({ requests: null, outputTokens: null, cost: 0.01 }).allow(priced), (error) => error instanceof PlanError && error.message.includes('maxCost'));
  });
});

describe('open files', () => {
  it('are asked of the system and checked before a load', () => {
    const files = openFiles();
    if (files !== null) assert.ok(files.limit > 0 && files.open > 0);
    assert.doesNotThrow(() => checkOpenFiles(100, { limit: 1024, open: 20 }));
    assert.throws(() => checkOpenFiles(2000, { limit: 1024, open: 20 }), (error) => error instanceof PlanError && /at most 940 at once .*ulimit -n 4096/.test(error.message));
    assert.doesNotThrow(() => checkOpenFiles(1e6, null));
  });
});

describe('kept recorders', () => {
  it('are handed back between runs and closed once', async () => {
    const world = fakeWorld(() => ({}));
    const kept = keepRecorders({ ...world, open: async (target) => ({ ...(await world.open(target)) }) });
    for (let run = 0; run < 3; run += 1) {
      const [a, b] = [await kept.seams.open(labTarget()), await kept.seams.open(labTarget())];
      await Promise.all([a.close(), b.close()]);
    }
    assert.deepEqual([world.opened, world.closed], [2, 0]);
    await kept.close();
    assert.deepEqual([world.opened, world.closed], [2, 2]);
    assert.equal(kept.loopUse(), null);
  });
});

describe('encoder APIs', () => {
  const answerOf = (api: 'embeddings' | 'pooling' | 'rerank' | 'classify', json: unknown) => {
    const bytes = new TextEncoder().encode(JSON.stringify(json));
    const phases = { start: 0, dns: null, connected: null, secured: null, written: 0, sent: 0, headers: 1, bodyEnd: 2 };
    return decode({ id: 'x', stamps: Float64Array.of(2), ends: Uint32Array.of(bytes.length), bytes, phases, status: 200, headers: [['content-type', 'application/json']], reused: true, alpn: null, ending: { kind: 'complete' } }, encoderDialect(api));
  };
  const inputOf = (api: 'embeddings' | 'rerank') =>
    encoderDialect(api).request({ url: 'http://h/v1', model: 'm', prompt: { messages: ['q', 'a', 'b'].map((text) => ({ role: 'user' as const, text })), tools: [] }, maxTokens: null, ask: new Set(), body: {}, headers: {}, key: 'k' });

  it('send their inputs', () => {
    const embeddings = inputOf('embeddings');
    assert.equal(embeddings.url, 'http://h/v1/embeddings');
    assert.deepEqual(JSON.parse(embeddings.body), { model: 'm', input: ['q', 'a', 'b'] });
    const rerank = inputOf('rerank');
    assert.equal(rerank.url, 'http://h/rerank');
    assert.deepEqual(JSON.parse(rerank.body), { model: 'm', query: 'q', documents: ['a', 'b'] });
    assert.equal(rerank.headers['authorization'], 'Bearer k');
  });

  it('read vectors as numbers, in base64 and by token, in the order of the inputs', () => {
    const base64 = Buffer.from(Float32Array.of(0.5, -1).buffer).toString('base64');
    const decoded = answerOf('embeddings', { data: [{ index: 1, embedding: [3, 4] }, { index: 0, embedding: base64 }], usage: { prompt_tokens: 7, total_tokens: 7 } });
    assert.deepEqual(JSON.parse(decoded.text), { vectors: [[0.5, -1], [3, 4]] });
    assert.deepEqual([decoded.outcome.kind, decoded.promptTokens], ['not-streaming', 7]);
    assert.deepEqual(JSON.parse(answerOf('pooling', { data: [{ index: 0, data: [[1, 3], [3, 5]] }] }).text), { vectors: [[2, 4]] });
  });

  it('read scores and labels', () => {
    assert.deepEqual(JSON.parse(answerOf('rerank', { results: [{ index: 1, relevance_score: 0.9 }, { index: 0, relevance_score: 0.2 }] }).text), { scores: [0.2, 0.9] });
    assert.deepEqual(JSON.parse(answerOf('classify', { data: [{ index: 0, label: 'A', probs: [1] }] }).text), { labels: ['A'] });
  });

  it('tell what is no answer of theirs', () => {
    assert.notEqual(answerOf('embeddings', { hello: 1 }).outcome.kind, 'not-streaming');
    assert.notEqual(answerOf('rerank', { results: [] }).outcome.kind, 'not-streaming');
    assert.equal(answerOf('embeddings', { error: { message: 'no such model' } }).outcome.message, 'no such model');
  });

  it('compare vectors by their direction', () => {
    assert.equal(cosine([1, 0], [0, 2]), 0);
    assert.ok(Math.abs(cosine([1, 2, 3], [2, 4, 6]) - 1) < 1e-12);
    assert.equal(cosine([0, 0], [1, 1]), 0);
  });
});
