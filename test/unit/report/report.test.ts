import assert from 'node:assert/strict';
import { buildReport, type ReportInput } from '../../../src/report/report';
import { endpoint, makeReport, plan } from './makeReport';
import { failed, makeSample, steady } from './makeSample';

describe('building a report', () => {
  it('counts time from the first measured start; warm-ups lie before it and enter nothing', () => {
    const report = makeReport([steady(5000, 100, 10, 11), steady(4000, 900, 10, 11, { role: 'warmup' }), steady(5300, 120, 10, 11), failed(3900, { kind: 'status', status: 400 }, { role: 'negotiation' })]);
    assert.deepEqual(report.samples.map((s) => [s.role, s.start]), [['negotiation', -1100], ['warmup', -1000], ['measured', 0], ['measured', 300]]);
    // The last token came at 5300 + 120 + 100, its end one ms later.
    assert.deepEqual([report.window.start, report.window.end], [0, 521]);
    assert.equal(report.summary.ttft?.n, 2);
    assert.equal(report.summary.ttft.max, 120);
    assert.deepEqual(report.outcomes, { ok: 2 });
    assert.equal(report.summary.chunkGap?.n, 20);
  });

  it('says when the window began on people’s clock', () => {
    const report = makeReport([steady(5000, 100, 10, 3)], { wall: { monotonic: 4000, epoch: Date.parse('2026-05-01T10:00:00Z') } });
    assert.equal(report.window.absolute, '2026-05-01T10:00:01.000Z');
  });

  it('computes throughput from completed requests only', () => {
    const report = makeReport([steady(0, 100, 10, 91), steady(0, 100, 10, 91), makeSample({ start: 0, deltas: [[500, 'text', 1]], end: 2000, outcome: { kind: 'truncated' } })]);
    assert.equal(report.window.end, 2000);
    assert.equal(report.throughput.tokensPerSecond, (182 / 2000) * 1000);
    assert.equal(report.throughput.requestsPerSecond, 1);
    assert.equal(report.throughput.source, 'token_ids');
    assert.equal(report.perUser?.p50, 100);
    assert.equal(report.goodput?.perMinute, 60);
    assert.deepEqual([report.attainment?.good, report.attainment?.due], [2, 3]);
    // A failed request is in no latency.
    assert.equal(report.summary.total?.n, 2);
  });

  it('does not let a cancelled request stretch the window', () => {
    const report = makeReport([steady(0, 100, 10, 11), makeSample({ start: 50, deltas: [[90, 'text', 1]], end: 9000, outcome: { kind: 'cancelled' } })]);
    assert.equal(report.window.end, 201);
  });

  it('names the worst source of counts, and gives none where one count is unknown', () => {
    const usage = steady(0, 100, 10, 5, { outputTokens: { count: 5, source: 'final-usage' } });
    assert.equal(makeReport([steady(0, 100, 10, 5), usage]).throughput.source, 'final-usage');
    const unknown = steady(0, 100, 10, 5, { outputTokens: { count: null, source: null }, streamTokens: null });
    assert.equal(makeReport([usage, unknown]).throughput.tokensPerSecond, null);
  });

  it('prices tokens by the hour of the GPUs, else by the list', () => {
    const samples = [steady(0, 100, 10, 91, { promptTokens: 1000, cachedTokens: 400, end: 3600 })];
    const gpu = makeReport(samples, { endpoint: { gpu: { name: 'H200', pricePerHour: 4, count: 2 } } });
    // 3.6 s at 8 an hour cost 0.008.
    assert.ok(Math.abs(gpu.throughput.tokensPerCost!.value - 91 / 0.008) < 1e-6);
    assert.deepEqual([gpu.throughput.tokensPerCost?.currency, gpu.throughput.tokensPerCost?.from], ['USD', 'gpu']);
    const list = makeReport(samples, { endpoint: { price: { currency: 'EUR', inputPerMillion: 2, cachedInputPerMillion: 1, outputPerMillion: 10 } } });
    assert.ok(Math.abs(list.throughput.tokensPerCost!.value - 91 / ((600 * 2 + 400 * 1 + 91 * 10) / 1e6)) < 1e-6);
    assert.equal(makeReport(samples).throughput.tokensPerCost, null);
    assert.equal(makeReport([steady(0, 1, 1, 3, { promptTokens: null })], { endpoint: { price: { currency: 'EUR', inputPerMillion: 2, cachedInputPerMillion: null, outputPerMillion: 10 } } }).throughput.tokensPerCost, null);
  });

  it('splits TTFT by cached tokens where they are told', () => {
    const report = makeReport([steady(0, 500, 10, 3, { cachedTokens: 0 }), steady(1000, 100, 10, 3, { cachedTokens: 96 }), steady(2000, 110, 10, 3, { cachedTokens: 96 }), steady(3000, 480, 10, 3, { cachedTokens: 4 })]);
    assert.equal(report.coldWarm?.by, 'cached-tokens');
    // Four tokens of a template are no warm prompt.
    assert.deepEqual([report.coldWarm.cold?.n, report.coldWarm.warm?.n], [2, 2]);
    assert.equal(report.coldWarm.warm?.max, 110);
    assert.deepEqual(report.cache, { promptTokens: 400, cachedTokens: 196, hits: 3, unknown: 0, hint: null });
  });

  it('splits TTFT into first and repeats where they are not; a warm-up is the first', () => {
    const three = [steady(0, 500, 10, 3), steady(1000, 100, 10, 3), steady(2000, 100, 10, 3)];
    const plain = makeReport(three);
    assert.deepEqual([plain.coldWarm?.by, plain.coldWarm?.cold?.n, plain.coldWarm?.warm?.n], ['repeat', 1, 2]);
    const warmed = makeReport([steady(-1000, 500, 10, 3, { role: 'warmup' }), ...three]);
    assert.deepEqual([warmed.coldWarm?.cold, warmed.coldWarm?.warm?.n], [null, 3]);
    const salted = makeReport(three, { plan: { cache: 'cold' } });
    assert.deepEqual([salted.coldWarm?.cold?.n, salted.coldWarm?.warm], [3, null]);
    const prompts = makeReport(three.map((s, i) => ({ ...s, labels: { prompt: i % 2 } })));
    assert.deepEqual([prompts.coldWarm?.cold?.n, prompts.coldWarm?.warm?.n], [2, 1]);
  });

  it('says how to make the server tell what it cached', () => {
    assert.match(makeReport([steady(0, 1, 1, 3)]).cache.hint ?? '', /--enable-prompt-tokens-details/);
    assert.match(makeReport([steady(0, 1, 1, 3)], { endpoint: { server: 'SGLang 0.5' } }).cache.hint ?? '', /--enable-cache-report/);
    assert.equal(makeReport([steady(0, 1, 1, 3)], { endpoint: { server: null } }).cache.hint, null);
    assert.equal(makeReport([steady(0, 1, 1, 3)]).cache.cachedTokens, null);
  });

  it('refuses ITL where frames do not arrive as they were made', () => {
    const burst = makeSample({ deltas: Array.from({ length: 40 }, (_, i) => [100 + Math.floor(i / 8) * 200, 'text', 1] as const), maxDeltasPerRead: 8, reads: 5 });
    const report = makeReport([burst]);
    assert.equal(report.summary.itl, null);
    assert.notEqual(report.summary.chunkGap, null);
    assert.notEqual(report.summary.tpot, null);
  });

  it('sums up the clock error, and has none without a canary', () => {
    assert.deepEqual(makeReport([steady(0, 1, 1, 3)], { clockErrors: [0.3, 0.1, 0.2] }).clockError, { p50: 0.2, p99: 0.298, max: 0.3, n: 3 });
    assert.equal(makeReport([steady(0, 1, 1, 3)]).clockError, null);
  });

  it('is empty but whole before the first sample, and when nothing succeeded', () => {
    const before = makeReport([]);
    assert.deepEqual([before.window.end, before.verdict, before.attainment, before.coldWarm, before.throughput.tokensPerSecond], [0, null, null, null, null]);
    for (const row of Object.values(before.summary)) assert.equal(row, null);
    const none = makeReport([failed(0, { kind: 'connect', message: 'refused' }), failed(10, { kind: 'connect', message: 'refused' })]);
    for (const row of Object.values(none.summary)) assert.equal(row, null);
    assert.deepEqual(none.outcomes, { connect: 2 });
    assert.equal(none.verdict, 'missed');
  });

  it('measures from due as well when requests come at a rate', () => {
    const late = steady(100, 50, 10, 3, { due: 40 });
    assert.equal(makeReport([late]).fromDue, undefined);
    const report = makeReport([late], { plan: { rate: 5 } });
    assert.equal(report.fromDue?.ttft?.p50, 110);
    assert.equal(report.summary.ttft?.p50, 50);
  });

  it('gives no verdict on the server when the client was the limit', () => {
    const samples = Array.from({ length: 80 }, (_, i) => steady(i * 200, 50, 10, 5));
    assert.equal(makeReport(samples).verdict, 'met');
    const report = makeReport(samples, { clientBottleneck: 'its event loop was busy 97 of 100 parts of the time' });
    assert.equal(report.verdict, null);
    assert.ok(report.caveats.some((caveat) => caveat.kind === 'client-bottleneck'));
  });

  it('is plain JSON with exactly the documented fields, and the same for the same input', () => {
    const samples = [steady(7, 100, 10, 11), failed(9, { kind: 'status', status: 429, retryAfter: 1000 })];
    const input: ReportInput = { id: 'x', createdAt: '2026-01-01T00:00:00.000Z', environment: { product: 'p', node: 'n', platform: 'l', editor: null, remote: null }, endpoint, plan, samples, clockErrors: [0.1] };
    const report = buildReport(input);
    assert.deepEqual(JSON.parse(JSON.stringify(report)), report);
    assert.deepEqual(buildReport({ ...input, samples: [...samples].reverse() }), report);
    for (const field of ['schema', 'createdAt', 'environment', 'endpoint', 'plan', 'window', 'summary', 'throughput', 'goodput', 'attainment', 'verdict', 'outcomes', 'cache', 'caveats', 'clockError', 'samples']) assert.ok(field in report, field);
    assert.deepEqual(Object.keys(report.summary), ['ttft', 'firstVisible', 'firstFrame', 'chunkGap', 'itl', 'tpot', 'total', 'readerStall']);
    assert.deepEqual(Object.keys(report.summary.ttft!), ['n', 'mean', 'min', 'p50', 'p90', 'p95', 'p99', 'max', 'ci95', 'unit']);
    assert.deepEqual(report.samples[0]!.deltas[0], [100, 'text', 1]);
    assert.equal(buildReport({ ...input, withSamples: false }).samples.length, 0);
  });
});
