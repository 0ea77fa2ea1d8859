import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { readForeign, type ForeignReport, type ForeignRun } from '../../../src/report/exchange/foreign';
import { renderForeign } from '../../../src/report/exchange/foreignTerminal';
import { foreignCells, foreignHead } from '../../../src/report/exchange/foreignText';

const folder = path.resolve(__dirname, '../../fixtures/foreign');
const read = (name: string): ForeignReport => {
  const report = readForeign(readFileSync(path.join(folder, name), 'utf8'));
  assert.ok(report, name);
  return report;
};
const values = (run: ForeignRun | undefined, name: string) => {
  const metric = run?.metrics.find((one) => one.name === name);
  assert.ok(metric, name);
  return metric;
};
const close = (a: number | null, b: number): void => assert.ok(a !== null && Math.abs(a - b) < 1e-6 * Math.max(1, b), `${a} is not ${b}`);
const rate = (run: ForeignRun | undefined, name: string): number | undefined => run?.rates.find((one) => one.name === name)?.value;
const fact = (run: ForeignRun | undefined, name: string): string | undefined => run?.facts.find(([label]) => label === name)?.[1];

describe('results of other tools', () => {
  it('reads vllm bench serve: what the file says, under its names', () => {
    const report = read('vllm.synthetic.json');
    const [run] = report.runs;
    assert.equal(report.tool, 'vllm bench serve');
    assert.equal(run?.title, '2 at once');
    assert.deepEqual(values(run, 'TTFT').values, { mean: 110, min: null, p50: 105, p90: null, p95: null, p99: 130, max: null });
    assert.deepEqual(values(run, 'TTFT').computed, []);
    assert.equal(values(run, 'Client queue time').values.p50, 4);
    assert.equal(fact(run, 'Failed'), '0');
    assert.equal(rate(run, 'Request goodput'), 1.5);
  });

  it('reads appended runs, NaN, and computes only what is missing, from answers that succeeded', () => {
    const [, run] = read('vllm-append-detailed.synthetic.json').runs;
    assert.equal(run?.title, '4 requests/s');
    const ttft = values(run, 'TTFT');
    assert.equal(ttft.values.p50, 105);
    close(ttft.values.min, 100);
    close(ttft.values.max, 300);
    close(ttft.values.p90, 280);
    assert.deepEqual(ttft.computed, ['min', 'p90', 'p95', 'max']);
    assert.equal(values(run, 'TPOT').values.mean, null);
    const itl = values(run, 'ITL');
    assert.equal(itl.n, 6);
    close(itl.values.max, 50);
    close(values(run, 'E2EL').values.mean, (140 + 240 + 360) / 3);
  });

  it('reads SGLang’s lines and tells a rate from a concurrency', () => {
    const report = read('sglang.synthetic.jsonl');
    assert.equal(report.tool, 'SGLang bench_serving');
    assert.deepEqual(report.runs.map((run) => run.title), ['8 requests/s', '16 at once']);
    assert.equal(values(report.runs[0], 'ITL').values.p95, 9);
    assert.equal(values(report.runs[0], 'E2E latency').values.p50, 880);
  });

  it('reads GuideLLM’s document and its table alike, in ms', () => {
    const document = read('guidellm.synthetic.json');
    assert.equal(document.version, '0.7.2 (synthetic)');
    assert.deepEqual(document.runs.map((run) => run.title), ['synchronous', 'constant, 3 requests/s']);
    const table = read('guidellm.synthetic.csv');
    for (const [name, p99] of [['Time to first token', 180], ['Request latency', 1620], ['Inter-token latency', 11.16], ['Time per output token', 12.6]] as const) {
      close(values(document.runs[0], name).values.p99, p99);
      close(values(table.runs[0], name).values.p99, p99);
      close(values(table.runs[0], name).values.p50, values(document.runs[0], name).values.p50!);
      close(values(table.runs[0], name).values.min, values(document.runs[0], name).values.min!);
    }
    assert.equal(table.runs[0]?.title, 'poisson');
    assert.equal(fact(table.runs[0], 'Failed'), '2');
    assert.equal(rate(table.runs[0], 'Output tokens per second'), 384);
  });

  it('reads AIPerf’s three files, each unit as ms', () => {
    const [summary] = read('aiperf.synthetic.json').runs;
    close(values(summary, 'Inter Chunk Latency').values.mean, 6.3);
    close(values(summary, 'Time to First Token').values.p95, 180);
    assert.equal(summary?.title, '8 at once');
    assert.equal(fact(summary, 'Model'), 'synthetic/model-8b');
    const [csv] = read('aiperf.synthetic.csv').runs;
    close(values(csv, 'Request Latency').values.p50, 882);
    assert.equal(rate(csv, 'Request Throughput'), 6);
    const [records] = read('aiperf-records.synthetic.jsonl').runs;
    const ttft = values(records, 'Time to First Token');
    assert.equal(ttft.n, 3);
    close(ttft.values.p50, 200);
    assert.equal(ttft.computed.length, 7);
    assert.equal(values(records, 'Inter Chunk Latency').n, 6);
    assert.equal(fact(records, 'Failed'), '1');
  });

  it('reads LLMPerf’s summary', () => {
    const [run] = read('llmperf.synthetic.json').runs;
    close(values(run, 'ttft_s').values.p99, 216);
    assert.match(values(run, 'inter_token_latency_s').definition, /first token’s wait/);
  });

  it('never shows a number without the tool’s name and definition', () => {
    for (const name of readdirSync(folder).filter((file) => file.includes('synthetic'))) {
      const report = read(name);
      const text = renderForeign(report, 100);
      assert.ok(foreignHead(report)[0]!.startsWith(report.tool));
      assert.ok(text.includes(`A result of ${report.tool}`));
      for (const run of report.runs) {
        for (const metric of run.metrics) {
          assert.ok(metric.definition.length > 5);
          assert.equal(foreignCells(metric).length, foreignHead(report).length);
          assert.ok(text.replace(/\s+/g, ' ').includes(`${metric.name}: ${metric.definition}`), metric.name);
        }
      }
    }
  });

  it('does not take other files for results', () => {
    const others = ['', 'hello', '{}', '[]', '{"a":1}', '{"benchmarks":[{"name":"BM_x","real_time":1}]}', '[1,2]', '{"schema":"first-token/report@1"}', 'a,b\n1,2\n', '{"backend":"x"}', 'Metric,avg\n', '{"metadata":{},"metrics":{}}'];
    for (const text of others) assert.equal(readForeign(text), null, text);
  });

  it('survives a cut file and any text', () => {
    const whole = readFileSync(path.join(folder, 'aiperf-records.synthetic.jsonl'), 'utf8');
    assert.equal(readForeign(whole.slice(0, -40))?.runs.length, 1);
    const names = readdirSync(folder).filter((file) => file.includes('synthetic')).map((file) => readFileSync(path.join(folder, file), 'utf8'));
    fc.assert(fc.property(fc.constantFrom(...names), fc.nat(), fc.string(), (text, at, put) => {
      const cut = at % text.length;
      const report = readForeign(text.slice(0, cut) + put + text.slice(cut + put.length));
      if (report) renderForeign(report, 80);
    }), { numRuns: 300 });
    fc.assert(fc.property(fc.json(), (text) => void readForeign(text)), { numRuns: 200 });
  });

  it('keeps escape sequences of a file out of the terminal', () => {
    const text = readFileSync(path.join(folder, 'vllm.synthetic.json'), 'utf8').replace('synthetic/model-8b', String.raw`evil\u001b[2Jmodel`);
    assert.ok(!renderForeign(readForeign(text)!, 80).includes('\u001b'));
  });
});
