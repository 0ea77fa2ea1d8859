import assert from 'node:assert/strict';
import { asOtherTools, type Tool } from '../../../src/report/definitions';
import { diagnose, splitTime, waitReason } from '../../../src/report/diagnosis';
import { failed, makeSample, steady } from './makeSample';

describe('the same trace as other tools report it', () => {
  // Opens at 10 with a role frame; two reasoning tokens at 100 and 120; four answer tokens in frames of 1 and 3 at 200 and 260; usage at 280. N = 6.
  const trace = makeSample({ firstFrame: 10, deltas: [[100, 'reasoning', 1], [120, 'reasoning', 1], [200, 'text', 1], [260, 'text', 3]], end: 280 });
  const of = (tool: Tool) => {
    const row = asOtherTools([trace]).find((r) => r.tool === tool)!;
    return [row.ttft, row.itl, row.tpot];
  };

  it('is computed by each tool’s own definition', () => {
    // Ours: ITL 20, 80, 20, 20, 20; TPOT 160/5.
    assert.deepEqual(of('First Token'), [100, 20, 32]);
    // First frame at 10; gaps 90, 20, 80, 60; (260 − 10)/5.
    assert.deepEqual(of('vllm bench serve'), [10, 70, 50]);
    // Gaps 20, 80, 60; (280 − 100)/5.
    assert.deepEqual(of('SGLang bench_serving'), [100, 60, 36]);
    assert.deepEqual(of('AIPerf'), [100, 32, null]);
    assert.deepEqual(of('GuideLLM'), [100, 32, 260 / 6]);
    // First content at 200; one gap of 60, then 0, 0; (260 − 200)/5.
    assert.deepEqual(of('inference-perf'), [200, 0, 12]);
    // 20, 80, and 60 over three tokens.
    assert.deepEqual(of('GenAI-Perf'), [10, 20, null]);
    // Two lines of content: (200 + 60)/2.
    assert.deepEqual(of('LLMPerf'), [200, 130, null]);
  });

  it('agrees on a plain stream of one token a frame', () => {
    const rows = asOtherTools([steady(0, 50, 10, 20, { end: 240 })]);
    for (const row of rows) assert.equal(row.ttft, 50, row.tool);
    assert.deepEqual(rows.filter((row) => row.tpot !== null).map((row) => row.tpot), [10, 10, 10, 240 / 20, 10]);
  });

  it('is none without a token, but vLLM’s TPOT of one token is 0', () => {
    for (const row of asOtherTools([failed(0, { kind: 'connect' })])) assert.deepEqual([row.ttft, row.itl, row.tpot], [null, null, null]);
    assert.equal(asOtherTools([makeSample({ deltas: [[5, 'text', 1]] })]).find((row) => row.tool === 'vllm bench serve')?.tpot, 0);
  });
});

describe('where the time went', () => {
  it('adds up to the total, connection and queue apart', () => {
    const s = steady(0, 500, 10, 21, { headers: 120, connection: { reused: false, connected: 30, secured: 80 } });
    assert.deepEqual(splitTime(s), { connection: 80, queue: 40, prefill: 380, decode: 200, stalls: 0 });
  });

  it('believes the server about queue and prefill', () => {
    const told = (covers: 'queue' | 'prefill', value: number) => splitTime(steady(0, 500, 10, 21, { headers: 2, serverTimings: [{ name: 'x', ms: value, covers }] }));
    assert.equal(told('queue', 300)?.queue, 300);
    assert.deepEqual([told('prefill', 150)?.queue, told('prefill', 150)?.prefill], [350, 150]);
    // Never more than the wait itself.
    assert.equal(told('queue', 9000)?.prefill, 0);
  });

  it('takes gaps that stand out for stalls', () => {
    const s = makeSample({ deltas: [[100, 'text', 1], [110, 'text', 1], [120, 'text', 1], [620, 'text', 1], [630, 'text', 1]] });
    assert.deepEqual([splitTime(s)?.stalls, splitTime(s)?.decode], [490, 40]);
  });

  it('says the largest part and what to do about it', () => {
    const decoding = diagnose([steady(0, 100, 30, 100, { headers: 5 })])!;
    assert.equal(decoding.main, 'decode');
    assert.match(decoding.sentence, /^An answer takes 3\u202F070 ms on average: prefill 95 ms, decoding 2\u202F970 ms\. Most of it is generating 100 tokens/);
    assert.equal(diagnose([steady(0, 900, 1, 100, { headers: 800 })])?.main, 'queue');
    assert.match(diagnose([steady(0, 900, 1, 100, { headers: 5, promptTokens: 1900, cachedTokens: 0 })])?.sentence ?? '', /reading the prompt \(1\u202F900 prompt tokens, none cached\)/);
    assert.equal(diagnose([failed(0, { kind: 'dns' })]), null);
    assert.equal(waitReason([failed(0, { kind: 'dns' })]), null);
  });
});
