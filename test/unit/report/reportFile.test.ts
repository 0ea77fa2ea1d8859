import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import * as fc from 'fast-check';
import { toJson } from '../../../src/report/exchange/json';
import { isReportProblem, parseReport, serialiseFinal, serialiseHeader, serialiseSample, type Report } from '../../../src/report/report';
import { makeReport } from './makeReport';
import { failed, steady } from './makeSample';

const samples = [steady(4000, 300, 10, 6, { role: 'warmup' }), steady(5000, 100, 10, 6), steady(5400, 110, 10, 6, { cachedTokens: 96 }), failed(5800, { kind: 'status', status: 429, message: 'slow down', retryAfter: 1500 })];
const header = makeReport([]);
const final = makeReport(samples, { clockErrors: [0.2], texts: { expires: '2026-02-01', answers: { a: { text: 'hello "samples": []', reasoning: '' } } } });
const file = serialiseHeader(header) + samples.map(serialiseSample).join('') + serialiseFinal(final);

function opened(text: string): Report {
  const report = parseReport(text);
  if (isReportProblem(report)) assert.fail(report.message);
  return report;
}

function problem(text: string) {
  const report = parseReport(text);
  if (!isReportProblem(report)) assert.fail('it opened');
  return report;
}

describe('a report file', () => {
  it('gives back the report it was written from', () => {
    assert.deepEqual(opened(file), final);
    assert.deepEqual(opened(file.replaceAll('\n', '\r\n')), final);
    assert.deepEqual(opened(JSON.stringify(final)), final);
    assert.deepEqual(opened(JSON.stringify(final, null, 2)), final);
    assert.deepEqual(opened(`\uFEFF${toJson(final)}`), final);
  });

  it('of a killed run opens with the samples it had, and says so', () => {
    const killed = opened(file.split('\n').slice(0, 4).join('\n'));
    assert.equal(killed.samples.length, 3);
    assert.equal(killed.summary.ttft?.n, 2);
    assert.deepEqual(killed.samples.map((s) => s.start), [-1000, 0, 400]);
    assert.deepEqual(killed.caveats[0], { kind: 'stopped', by: 'interrupted', detail: '2 of 20 requests were written before it ended' });
    assert.equal(killed.id, final.id);
    const header = opened(file.split('\n')[0]!);
    assert.deepEqual([header.samples.length, header.caveats[0]?.kind], [0, 'stopped']);
  });

  it('opens wherever behind the first line it was cut, losing at most the line it was cut in', () => {
    const first = file.indexOf('\n') + 1;
    fc.assert(fc.property(fc.integer({ min: first, max: file.length }), (at) => {
      const text = file.slice(0, at);
      const report = opened(text);
      const whole = text.split('\n').length - 1;
      assert.ok(report.samples.length >= Math.min(samples.length, whole - 1));
    }), { numRuns: 200 });
  });

  it('cut inside its first line cannot be read, and says that', () => {
    assert.equal(problem(file.slice(0, 300)).problem, 'truncated');
    assert.equal(problem(JSON.stringify(final, null, 2).slice(0, 900)).problem, 'truncated');
    assert.equal(problem(JSON.stringify(final).slice(0, -20)).problem, 'truncated');
  });

  it('of another version, or of another kind, is named', () => {
    const other = problem(file.replaceAll('first-token/report@1', 'first-token/report@7'));
    assert.deepEqual([other.problem, other.found], ['other-version', 'first-token/report@7']);
    assert.match(other.message, /version 7/);
    assert.equal(problem('{"schema":"first-token/sweep@1"}').problem, 'not-a-report');
    for (const text of ['', '   \n', '{}', '[]', '[1,2]', 'null', '"x"', '42', 'hello', 'a,b\n1,2', '{"schema":1}']) assert.equal(problem(text).problem, 'not-a-report', text);
  });

  it('that is damaged says where', () => {
    const lines = file.split('\n');
    lines[2] = lines[2]!.slice(0, 40);
    assert.match(problem(lines.join('\n')).message, /Line 3/);
    assert.equal(problem(lines.join('\n')).problem, 'damaged');
    const wrong = problem(JSON.stringify({ ...final, summary: { ...final.summary, ttft: { ...final.summary.ttft, p50: 'fast' } } }));
    assert.deepEqual([wrong.problem, /summary\.ttft\.p50/.test(wrong.message)], ['damaged', true]);
    const sample = problem(serialiseHeader(header) + JSON.stringify({ ...samples[0], deltas: [['x', 'text', 1]] }));
    assert.match(sample.message, /line 2, deltas/);
  });

  it('is quoted only in part where it is wrong', () => {
    const long = 'z'.repeat(1_000_000);
    for (const text of [`{"schema":"first-token/report@${long}"}`, `{"schema":"first-token/${long}"}`, JSON.stringify({ ...final, verdict: long }), JSON.stringify({ ...final, outcomes: { [long]: 5 } }), long, '['.repeat(100_000)]) {
      const read = parseReport(text);
      assert.ok(!isReportProblem(read) || read.message.length < 700);
    }
  });

  it('never makes the reader throw, whatever is in it', () => {
    fc.assert(fc.property(fc.string(), (text) => void parseReport(text)));
    fc.assert(fc.property(fc.json(), (text) => void parseReport(text)));
    fc.assert(fc.property(fc.nat({ max: file.length - 1 }), fc.nat({ max: 255 }), (at, byte) => void parseReport(file.slice(0, at) + String.fromCharCode(byte) + file.slice(at + 1))), { numRuns: 300 });
    const keys = Object.keys(final) as (keyof Report)[];
    fc.assert(fc.property(fc.constantFrom(...keys), fc.jsonValue(), (key, value) => {
      const report = parseReport(JSON.stringify({ ...final, [key]: value }));
      if (isReportProblem(report)) assert.notEqual(report.message, '');
    }), { numRuns: 300 });
  });

  it('written by this version stays readable: a run killed while its third sample was written', () => {
    const report = opened(readFileSync(path.join(__dirname, '../../fixtures/reports/killed.first-token.jsonl'), 'utf8'));
    assert.deepEqual([report.samples.length, report.summary.ttft?.p50, report.summary.tpot?.p50], [2, 100, 10]);
    assert.equal(report.caveats[0]?.kind, 'stopped');
  });
});
