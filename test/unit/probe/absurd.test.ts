/** What a hostile or broken server says: it must never end the process, leak the key or leave a report that cannot be opened. */
import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { assembleSample } from '../../../src/probe/assembly';
import { decode } from '../../../src/probe/decode';
import { decodeRecording } from '../../../src/probe/decodeFile';
import { dialects } from '../../../src/probe/dialect';
import type { DialectId } from '../../../src/probe/dialect/dialect';
import { judge } from '../../../src/probe/outcome';
import { createRedactor } from '../../../src/probe/redact';
import type { Tape } from '../../../src/probe/tape';
import { isReportProblem, parseReport, serialiseFinal, serialiseHeader, serialiseSample } from '../../../src/report/report';
import { itlOrReason, type Sample } from '../../../src/report/sample';
import { renderReport } from '../../../src/report/terminalReport';
import { makeReport } from '../report/makeReport';
import { chunk, done, sse, usageChunk } from './streams';

const key = 'planted-KEY-4711-abcdef';

function tapeOf(body: string, status = 200, headers: Tape['headers'] = []): Tape {
  const bytes = new TextEncoder().encode(body);
  const half = bytes.length >> 1;
  const phases = { start: 0, dns: null, connected: null, secured: null, written: 0, sent: 0, headers: 1, bodyEnd: 30 };
  return { id: '1', stamps: Float64Array.from([10, 20]), ends: Uint32Array.from([half, bytes.length]), bytes, phases, status, headers, reused: true, alpn: null, ending: { kind: 'complete' } };
}

function sampleOf(body: string, status = 200, headers: Tape['headers'] = [], api: DialectId = 'openai-chat'): Sample {
  const tape = tapeOf(body, status, headers);
  const decoded = decode(tape, dialects[api]);
  const outcome = judge(tape, decoded, { firstToken: null, stall: null, total: null });
  return assembleSample({ id: '1', role: 'measured', due: 0, labels: {} }, tape, decoded, outcome, 0, createRedactor([key]));
}

/** The report of a run with this one sample, written, read again and drawn. */
function reopened(sample: Sample): string {
  const file = serialiseHeader(makeReport([])) + serialiseSample(sample) + serialiseFinal(makeReport([sample]));
  const report = parseReport(file);
  if (isReportProblem(report)) assert.fail(`${report.message}\n${file}`);
  const shown = renderReport(report, { width: 80, colour: false });
  assert.doesNotMatch(file + shown, /KEY-4711/);
  assert.doesNotMatch(shown, /NaN|undefined|Infinity/);
  assert.doesNotMatch(shown, /[\u0000-\u0009\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/);
  return shown;
}

describe('an absurd server', () => {
  const answer = sse(chunk({ content: 'a' }), chunk({ content: 'b' }), chunk({}, 'stop'), done);

  it('that nests its JSON without end is read like one that sends no JSON', () => {
    const objects = `${'{"error":'.repeat(60_000)}1${'}'.repeat(60_000)}`;
    const lists = `${'['.repeat(60_000)}"x"${']'.repeat(60_000)}`;
    for (const deep of [objects, lists]) {
      assert.equal(sampleOf(`data: ${deep}\n\n${answer}`).outcome.kind, 'malformed');
      assert.equal(sampleOf(deep, 500).outcome.kind, 'status');
      for (const api of ['ollama', 'gemini', 'tgi'] as const) assert.ok(['malformed', 'stream-error'].includes(sampleOf(`${deep}\n`, 200, [], api).outcome.kind));
    }
    const brackets = '['.repeat(5000);
    assert.equal(sampleOf(sse(chunk({ content: brackets }), done)).outcome.kind, 'ok', 'brackets inside text nest nothing');
  });

  it('and a recording of one can be decoded', async () => {
    const deep = `{"a":${'['.repeat(60_000)}${']'.repeat(60_000)}}`;
    assert.equal((await decodeRecording(`${deep}\n${deep}\n`, 'auto', false)).outcome.kind, 'malformed');
  });

  it('that claims a billion tokens fills no memory', () => {
    const billion = sampleOf(sse({ choices: [{ delta: { content: 'a' } }], usage: { completion_tokens: 1 } }, { choices: [{ delta: { content: 'b' } }], usage: { completion_tokens: 1e9 } }, done));
    assert.equal(billion.streamTokens, 1e9);
    assert.equal(itlOrReason(billion), 'counts-disagree');
    reopened(billion);
  });

  it('has not told a count where its number is none', () => {
    for (const count of ['1e999', '1e300', '-5', '1.5', '"7"', 'null', '{}', 'true']) {
      const { outputTokens, promptTokens } = sampleOf(`${sse(chunk({ content: 'a' }), chunk({ content: 'b' }))}data: {"choices":[],"usage":{"prompt_tokens":${count},"completion_tokens":${count}}}\n\n${done}`);
      assert.deepEqual([outputTokens, promptTokens], [{ count: 2, source: 'deltas' }, null], count);
    }
    assert.equal(sampleOf(sse(chunk({ content: 'a' }), usageChunk({ completion_tokens: 3 }), done)).outputTokens.count, 3);
  });

  it('keeps no number that JSON cannot hold', () => {
    const digits = '9'.repeat(400);
    for (const header of ['server-timing', 'openai-processing-ms', 'fireworks-server-processing-time']) {
      for (const value of [`a;dur=${digits}`, 'a;dur=1.2.3', 'a;dur=.', digits, '1e308', 'NaN']) reopened(sampleOf(answer, 200, [[header, value]]));
    }
    for (const wait of [digits, `${digits}d`, '1e308', '-1', 'Fri, 31 Dec 275760 23:59:59 GMT']) {
      for (const header of ['retry-after', 'retry-after-ms', 'x-ratelimit-reset-requests']) reopened(sampleOf('{}', 429, [[header, wait], ['date', 'Mon, 01 Jan 0001 00:00:00 GMT']]));
    }
  });

  it('that echoes the key gets it nowhere into the report', () => {
    reopened(sampleOf(sse(chunk({ content: 'a' }), chunk({}, `${key}\u001b[31m${'z'.repeat(5000)}`), done)));
    reopened(sampleOf(answer, 200, [['server-timing', `${key};dur=5`], ['content-encoding', key]]));
    reopened(sampleOf('moved', 302, [['location', `/x/${key}`]]));
    reopened(sampleOf(sse({ error: { message: `bad key ${key}` } })));
    for (let before = 470; before < 500; before += 1) reopened(sampleOf(JSON.stringify({ error: { message: `${'x'.repeat(before)}${key} is wrong` } }), 401));
    for (let before = 1980; before < 2000; before += 1) {
      const { raw } = sampleOf(`${'x'.repeat(before)}${key}`, 401).outcome;
      assert.doesNotMatch(raw ?? '', /plan/, 'not even its beginning, where the text was cut');
    }
  });

  it('whose page is made to be slow to search is searched no further than its beginning', function () {
    this.timeout(5000);
    for (const page of ['<title'.repeat(40_000), '<'.repeat(250_000), `<${'<h1'.repeat(80_000)}`]) sampleOf(page, 502);
  });

  it('may say anything: the report opens again', function () {
    this.timeout(60_000);
    const word = fc.oneof(fc.string(), fc.constantFrom(key, '\u001b[31m', '\u202e', '9'.repeat(400), '1e999', '-1', '<title>', '['.repeat(2000)));
    const header = fc.tuple(fc.constantFrom('server-timing', 'retry-after', 'content-encoding', 'openai-processing-ms', 'location', 'date', 'x-ratelimit-reset-tokens', 'x-total-time'), word);
    const value = fc.oneof(word, fc.double(), fc.integer(), fc.constant(null), fc.array(word, { maxLength: 2 }), fc.dictionary(fc.constantFrom('__proto__', 'message', 'error', 'content'), word));
    const frame = fc.record({ choices: fc.array(fc.record({ index: value, delta: fc.record({ content: value, reasoning: value, tool_calls: value }, { requiredKeys: [] }), finish_reason: value }, { requiredKeys: [] }), { maxLength: 2 }), usage: fc.dictionary(fc.constantFrom('completion_tokens', 'prompt_tokens', 'prompt_tokens_details'), value), timings: fc.dictionary(fc.constantFrom('predicted_n', 'prompt_ms', 'predicted_ms', 'cache_n'), value), error: value }, { requiredKeys: [] });
    fc.assert(
      fc.property(fc.constantFrom(200, 200, 200, 302, 400, 429, 503), fc.array(header, { maxLength: 3 }), fc.array(fc.oneof(frame, word), { maxLength: 5 }), fc.constantFrom<DialectId>('openai-chat', 'anthropic', 'llamacpp', 'ollama', 'gemini'), (status, headers, frames, api) => {
        const body = api === 'ollama' ? frames.map((one) => `${typeof one === 'string' ? one : JSON.stringify(one)}\n`).join('') : sse(...frames, done);
        reopened(sampleOf(body, status, headers, api));
      }),
      { numRuns: 400 },
    );
  });
});
