import assert from 'node:assert/strict';
import { compareReports } from '../../../src/report/compare';
import { caveatSentence, outcomeSentence, verdictIcon, verdictSentence } from '../../../src/report/format';
import { proofOf } from '../../../src/report/proof';
import { keyNumbers, percentileRows, reportFacts } from '../../../src/report/table';
import { renderReport } from '../../../src/report/terminalReport';
import { makeReport } from './makeReport';
import { makeSample } from './makeSample';

const waits = { cold: 40, warm: 12, changed: 15 } as const;
type Kind = keyof typeof waits;
const kinds = Object.keys(waits) as Kind[];

/** A proof of so many pairs; `served` of a later request. */
function proofReport(pairs: number, served: number, by = 0) {
  const samples = Array.from({ length: pairs }, (_, i) => kinds.map((kind) => makeSample({ start: i * 100, promptTokens: 424, cachedTokens: kind === 'cold' ? 0 : served, labels: { kind, pair: i + 1 }, deltas: [[i * 100 + waits[kind] + by + i / 10, 'text', 1], [i * 100 + 60, 'text', 1]] }))).flat();
  const rows = kinds.map((kind) => ({ kind, n: pairs, promptTokens: 424, served: { p50: kind === 'cold' ? 0 : served, min: 0, max: served, n: pairs, from: 'usage' }, state: kind === 'cold' ? 'unknown' : served > 0 ? 'yes' : 'less' }));
  const result = { schema: 'first-token/prefix@1', verdict: `As predicted: the server took ${served} of 424 tokens.`, sentences: ['Expiry: not waited for.'], rows, failure: null };
  return makeReport(samples, { plan: { scenario: 'prefix' }, scenario: { name: 'prefix', result }, clientBottleneck: 'its stamps were 40 ms late at p99', clockErrors: Array.from({ length: 20 }, () => 0.1) });
}

describe('the report of a proof', () => {
  it('puts the proof in the place of the verdict on the SLO, which a busy machine cannot take away', () => {
    const report = proofReport(6, 368);
    assert.equal(verdictSentence(report), 'As predicted: the server took 368 of 424 tokens.');
    assert.equal(verdictIcon(report), 'passed');
    assert.equal(verdictIcon(proofReport(6, 0)), 'failed');
    assert.deepEqual([report.verdict, report.goodput, report.attainment], [null, null, null]);
    assert.deepEqual(report.caveats, []);
    assert.deepEqual(keyNumbers(report), []);
    const labels = reportFacts(report).map(({ label }) => label);
    for (const gone of ['SLO', 'Goodput', 'Throughput', 'Prefill']) assert.ok(!labels.includes(gone), gone);
    const text = renderReport(report, { width: 100, colour: false });
    assert.match(text, /^As predicted: [\s\S]*Expiry: not waited for/);
    assert.doesNotMatch(text, /SLO|This machine was the limit|An answer takes/);
  });

  it('never mixes TTFT of cold and warm requests', () => {
    const rows = percentileRows(proofReport(6, 368));
    assert.deepEqual(rows.map(({ label, n }) => [label, n]), [['TTFT, cold', 6], ['TTFT, the same again', 6], ['TTFT, a later request', 6]]);
    const p50 = rows.map(({ cells }) => Math.round(cells.find(({ column }) => column === 'p50')!.value));
    assert.deepEqual(p50, [40, 12, 15]);
  });

  it('is compared by what was served, and by each kind of request', () => {
    const { sentence, served, rows } = compareReports(proofReport(6, 368), proofReport(6, 0, 30));
    assert.equal(sentence, 'Served from the cache of a later request: A 368 of 424, B 0 of 424 tokens.');
    assert.deepEqual(served?.map(({ label, a, b }) => [label, a, b]), [['cold', '0 of 424', '0 of 424'], ['the same again', '368 of 424', '0 of 424'], ['a later request', '368 of 424', '0 of 424']]);
    assert.deepEqual(rows.map(({ label, p50 }) => [label, p50?.conclusion]), [['TTFT, cold', 'a-faster'], ['TTFT, the same again', 'a-faster'], ['TTFT, a later request', 'a-faster']]);
    assert.equal(compareReports(proofReport(6, 368), makeReport([makeSample()])).served, undefined, 'a proof and a probe are compared as runs');
  });

  it('of another version or damaged claims nothing', () => {
    for (const result of [null, 7, {}, { rows: 'no' }, { rows: [null, { kind: 'odd', served: { p50: 1 } }] }]) {
      const report = makeReport([makeSample()], { plan: { scenario: 'prefix' }, scenario: { name: 'prefix', result } });
      assert.deepEqual(proofOf(report), { verdict: null, state: 'unknown', served: [] });
      assert.match(verdictSentence(report), /^No pair of the proof/);
    }
    assert.equal(proofOf(makeReport([makeSample()])), null);
  });
});

describe('a machine that was busy', () => {
  const busy = { clientBottleneck: 'its event loop was busy 95 of 100 parts of the time' };
  const failed = (kind: 'connect' | 'status' | 'timeout-first-token') => makeReport([makeSample({ outcome: { kind }, deltas: [] }), makeSample({ outcome: { kind }, deltas: [] })], busy);

  it('is not blamed for what a server refused or nobody answered', () => {
    for (const kind of ['connect', 'status'] as const) assert.ok(!failed(kind).caveats.some((caveat) => caveat.kind === 'client-bottleneck'), kind);
    assert.ok(failed('timeout-first-token').caveats.some(({ kind }) => kind === 'client-bottleneck'));
    assert.ok(makeReport([makeSample()], busy).caveats.some(({ kind }) => kind === 'client-bottleneck'));
  });
});

describe('advice by where it is read', () => {
  const flags = /(^|[\s(])--?[a-z]/;

  it('names settings in the editor, and the flags too in a terminal', () => {
    const few = { kind: 'too-few-samples', metric: 'ttft', percentile: 90, n: 20, needed: 36 } as const;
    assert.match(caveatSentence(few), /\(-n 36, firstToken\.probe\.requests\)/);
    assert.match(caveatSentence(few, 'editor'), /needs 36 \(firstToken\.probe\.requests\)/);
    const hits = { kind: 'cache-hits', requests: 19, of: 20, cachedTokens: 16, promptTokens: 31, evidence: 'cached-tokens' } as const;
    for (const caveat of [few, hits, { ...hits, evidence: 'bimodal-ttft' } as const, { kind: 'cold-first', first: 900, rest: 100 } as const]) {
      assert.match(caveatSentence(caveat), flags, caveat.kind);
      assert.doesNotMatch(caveatSentence(caveat, 'editor'), flags, caveat.kind);
    }
    assert.match(caveatSentence(hits, 'editor'), /Set firstToken\.probe\.cache to cold to see the other/);
    for (const outcome of [{ kind: 'status', status: 404 }, { kind: 'status', status: 429 }, { kind: 'status', status: 401 }, { kind: 'timeout-total' }, { kind: 'malformed' }, { kind: 'connect' }] as const) {
      assert.doesNotMatch(outcomeSentence(outcome, 'editor'), /(^|[\s(])--?[a-z]|_API_KEY|HTTPS_PROXY/, JSON.stringify(outcome));
      assert.notEqual(outcomeSentence(outcome), outcomeSentence(outcome, 'editor'));
    }
  });
});
