import assert from 'node:assert/strict';
import { keyNumbers, percentileRows, reportFacts } from '../../../src/report/table';
import { metricOrder, metricWords } from '../../../src/report/metricNames';
import { renderReport, wrap } from '../../../src/report/terminalReport';
import { makeReport } from './makeReport';
import { failed, makeSample, steady } from './makeSample';

const reasoned = (start: number, cached: number) => makeSample({ start, headers: start + 20, cachedTokens: cached, deltas: Array.from({ length: 40 }, (_, i) => [start + 100 + i * 20 + (i > 20 ? 400 : 0), i < 10 ? 'reasoning' : 'text', 1] as const) });
const report = makeReport([reasoned(-3000, 0), reasoned(0, 0), reasoned(2000, 96), reasoned(4000, 96), failed(6000, { kind: 'status', status: 503, message: 'busy \u001B[31m\u202Enow' })].map((s, i) => (i === 0 ? { ...s, role: 'warmup' as const } : s)), { clockErrors: [0.1, 0.4] });

describe('the rows of the percentile table', () => {
  const rows = percentileRows(report);

  it('hold the report’s own numbers, in the order of the objective', () => {
    const metrics = rows.filter((row) => row.kind === 'metric').map((row) => row.metric);
    assert.deepEqual(metrics, metricOrder.chat.filter((metric) => report.summary[metric] !== null));
    for (const row of rows) {
      if (row.kind !== 'metric') continue;
      for (const cell of row.cells) assert.equal(cell.value, report.summary[row.metric]![cell.column]);
      assert.equal(row.n, report.summary[row.metric]!.n);
      assert.equal(row.definition, metricWords[row.metric].definition);
    }
    assert.equal(percentileRows(makeReport(report.samples, { plan: { objective: 'batch' } }))[0]?.metric, 'total');
  });

  it('say n too small in words where an interval has no bounds, and nothing where a column has none', () => {
    const cells = rows[0]!.cells;
    assert.deepEqual(cells.map((cell) => cell.interval), ['n too small', 'n too small', 'n too small', 'n too small', null, null, null]);
    const many = percentileRows(makeReport(Array.from({ length: 20 }, (_, i) => steady(i * 1000, 100 + i, 10, 5))));
    assert.equal(many[0]?.cells[0]?.interval, '105–114');
  });

  it('split TTFT into cold and warm only where both were seen', () => {
    assert.deepEqual(rows.slice(0, 3).map((row) => [row.kind, row.label, row.n]), [['metric', 'First token (TTFT)', 3], ['cold', 'cold (not cached)', 1], ['warm', 'warm (cached)', 2]]);
    assert.ok(percentileRows(makeReport([reasoned(0, 96), reasoned(2000, 96)])).every((row) => row.kind === 'metric'));
    const due = percentileRows(makeReport([steady(10, 100, 10, 5, { due: 0 })], { plan: { rate: 1 } }));
    assert.deepEqual(due.filter((row) => row.kind === 'from-due').map((row) => row.metric), ['ttft', 'firstVisible', 'total']);
  });

  it('judge against the limits with a mark and words', () => {
    const ttft = rows[0]!.slo!;
    // 3 of 4 is below 95 of 100: the failure is due.
    assert.deepEqual(ttft, { ok: false, mark: '✗', text: '≤ 500 ms: 3 of 4' });
    const met = percentileRows(makeReport([steady(0, 100, 10, 5)], { plan: { slo: { ttft: 100, gapP99: 9, attainment: 0.95 } } }));
    assert.deepEqual(met.find((row) => row.metric === 'ttft')?.slo, { ok: true, mark: '✓', text: '≤ 100 ms: 1 of 1' });
    assert.deepEqual(met.find((row) => row.metric === 'chunkGap')?.slo, { ok: false, mark: '✗', text: 'p99 ≤ 9 ms: 0 of 1' });
    assert.equal(met.find((row) => row.metric === 'total')?.slo, null);
  });

  it('mark what rests on estimates', () => {
    const estimated = makeReport([makeSample({ deltas: [[10, 'text', null], [40, 'text', null]], outputTokens: { count: 2, source: 'deltas' } })]);
    const mark = (metric: string) => percentileRows(estimated).find((row) => row.metric === metric)?.mark;
    assert.deepEqual([mark('tpot'), mark('readerStall'), mark('ttft')], ['≥', '≈', '']);
  });

  it('are none for a report without answers', () => {
    assert.deepEqual(percentileRows(makeReport([])), []);
    assert.deepEqual(keyNumbers(makeReport([])), []);
  });
});

describe('key numbers and facts', () => {
  it('are at most four, those of the objective first, with a dot an answer', () => {
    const numbers = keyNumbers(report);
    assert.deepEqual(numbers.map((n) => n.id), ['ttft', 'firstVisible', 'tpot', 'goodput']);
    assert.deepEqual(numbers[0]?.dots, [100, 100, 100]);
    assert.equal(numbers[2]?.beside.startsWith('33.1 tokens/s, p99 '), true);
    assert.deepEqual(keyNumbers(makeReport([steady(0, 100, 10, 5)])).map((n) => n.id), ['ttft', 'tpot', 'goodput']);
    assert.deepEqual(keyNumbers(makeReport([steady(0, 100, 10, 5)], { plan: { objective: 'batch' } })).map((n) => n.id), ['throughput', 'total', 'tpot']);
  });

  it('name endpoint, plan, counts, outcomes, cache and error', () => {
    const facts = new Map(reportFacts(report).map(({ label, text }) => [label, text]));
    assert.equal(facts.get('Outcomes'), 'ok 3, HTTP error 1');
    assert.equal(facts.get('Cache'), '192 of 300 prompt tokens from the cache, in 2 answers.');
    assert.match(facts.get('Measuring error') ?? '', /right to 0\.250 ms/);
    assert.match(facts.get('Tokens from') ?? '', /token ids/);
    assert.match(facts.get('Plan') ?? '', /1 before as warm-up/);
    assert.ok([...facts.values()].every((text) => !/undefined|NaN|null/.test(text)));
  });
});

describe('the report in a terminal', () => {
  const text = renderReport(report, { width: 100, colour: false });
  const strips = text.split('\n').filter((line) => /^\s*(warm-up )?\d+ {2}/.test(line));

  it('draws a strip a request: queue, prefill, reasoning, answer, the stall with its length, the failure with its name', () => {
    assert.equal(strips.length, 5);
    assert.match(strips[1]!, /1 {2}┄+─+[░▒▓ ]+[▁▂▃▄▅▆▇█ ]+╌* 420 ms ╌*[▁▂▃▄▅▆▇█ ]+ +1\u202F280 ms$/);
    assert.match(strips[4]!, /✗ HTTP 503$/);
    assert.match(strips[0]!, /^warm-up 1 /);
  });

  it('shows the same numbers as the rows', () => {
    for (const row of percentileRows(report)) assert.ok(text.split('\n').some((line) => line.includes(row.label) && line.includes(row.cells[0]!.text)), row.label);
    assert.match(text, /n too small/);
    assert.match(text, /! 1 of 4 requests failed/);
  });

  it('fits any width, and lets no server steer the terminal', () => {
    for (const width of [40, 60, 80, 120, 200]) {
      for (const line of renderReport(report, { width, colour: false }).split('\n')) assert.ok(line.length <= Math.max(width, 50), `${width}: ${line}`);
    }
    const none = makeReport([report.samples.at(-1)!]);
    assert.doesNotMatch(renderReport(none, { width: 80, colour: false }), /[\u0000-\u0009\u000B-\u001F\u202E]/);
    assert.match(renderReport(none, { width: 80, colour: false }), /busy +\[31m +now/);
  });

  it('draws stamps that no run can have, without a step a column between them', () => {
    const wild = makeReport([steady(0, 100, 10, 5), makeSample({ deltas: [[5, 'text', 1], [-4e9, 'text', 1], [9, 'text', 1]] }), makeSample({ deltas: [[1e300, 'text', 1e300], [-1e300, 'text', 1e300]], streamTokens: 2e300 })]);
    const before = process.hrtime.bigint();
    renderReport(wild, { width: 80, colour: false });
    assert.ok(Number(process.hrtime.bigint() - before) < 2e9);
  });

  it('colours only when asked, and the words stay', () => {
    const coloured = renderReport(report, { width: 100, colour: true });
    assert.match(coloured, /\u001B\[31m/);
    assert.equal(coloured.replace(/\u001B\[\d+m/g, ''), text);
  });

  it('shows no more strips than asked, and works before the first answer', () => {
    assert.match(renderReport(report, { width: 100, colour: false, strips: 2 }), /… and 3 more/);
    assert.doesNotMatch(renderReport(report, { width: 100, colour: false, strips: 4 }), / more/, 'the last one takes the room of the words');
    assert.match(renderReport(makeReport([]), { width: 100, colour: false }), /^No request has ended yet\./);
  });

  it('wraps at spaces and cuts what is longer', () => {
    assert.deepEqual(wrap('one two three', 7), ['one two', 'three']);
    assert.deepEqual(wrap('abcdefghij', 4), ['abcd', 'efgh', 'ij']);
    assert.deepEqual(wrap('', 4), []);
  });
});
