import assert from 'node:assert/strict';
import { bytes, clockErrorSentence, count, counted, digits, interval, lensText, ms, outcomeName, outcomeSentence, pace, sloText, statusText, tokensCached, verdictIcon, verdictSentence, verdictShort } from '../../../src/report/format';
import type { OutcomeKind } from '../../../src/report/sample';
import { makeReport } from './makeReport';
import { failed, makeSample, steady } from './makeSample';

describe('numbers', () => {
  it('have three significant digits and thin separators', () => {
    for (const [x, text] of [[0, '0'], [0.0001, '0'], [0.0312, '0.031'], [0.3, '0.3'], [2.136, '2.14'], [9.996, '10'], [31.04, '31'], [212.4, '212'], [999.6, '1\u202F000'], [1234.5, '1\u202F230'], [1_234_567, '1\u202F230\u202F000'], [-41.26, '−41.3']] as const) assert.equal(digits(x), text);
    assert.equal(digits(31.04, true), '31.0');
    assert.equal(digits(Number.NaN), 'none');
  });

  it('are ms under 10 s, then s, also where rounding crosses', () => {
    for (const [x, text] of [[0.28, '0.280 ms'], [11.004, '11.0 ms'], [30, '30 ms'], [212, '212 ms'], [9994, '9\u202F990 ms'], [9996, '10 s'], [12_345, '12.3 s'], [123_456, '123 s']] as const) assert.equal(ms(x), text);
  });

  it('that count things are exact', () => {
    assert.equal(count(1904), '1\u202F904');
    assert.equal(counted(1, 'token'), '1 token');
    assert.equal(counted(0, 'token'), '0 tokens');
    assert.equal(tokensCached(1904, 1920), '1\u202F904 of 1\u202F920 cached');
    assert.equal(tokensCached(5, null), '5 cached');
  });

  it('come with their unit', () => {
    assert.equal(pace(31.25), '31.3 tokens/s');
    assert.deepEqual([bytes(512), bytes(12_345), bytes(4_500_000)], ['512 B', '12.3 kB', '4.5 MB']);
    assert.equal(interval([198.2, 221]), '198–221');
    assert.equal(interval([198.2, null]), 'n too small');
  });
});

describe('outcomes in words', () => {
  const kinds: Record<OutcomeKind, true> = { ok: true, 'not-streaming': true, dns: true, connect: true, tls: true, status: true, 'timeout-first-token': true, 'timeout-stall': true, 'timeout-total': true, 'stream-error': true, truncated: true, malformed: true, empty: true, invalid: true, cancelled: true };

  it('exist for every kind, and end as sentences', () => {
    for (const kind of Object.keys(kinds) as OutcomeKind[]) {
      assert.notEqual(outcomeName({ kind }), '');
      assert.match(outcomeSentence({ kind }), /\.$/);
      assert.doesNotMatch(outcomeSentence({ kind }), /undefined/);
    }
  });

  it('quote the server, its wait and the refused field, and say what to change', () => {
    assert.equal(outcomeName({ kind: 'status', status: 429 }), 'HTTP 429');
    assert.equal(
      outcomeSentence({ kind: 'status', status: 429, message: 'Rate limit\nreached', retryAfter: 2000 }),
      'Too many requests (HTTP 429). It said: “Rate limit reached”. It asks to wait 2\u202F000 ms. Lower the concurrency (-c) or ask for a higher limit.',
    );
    assert.match(outcomeSentence({ kind: 'status', status: 401 }), /Set the key: FIRST_TOKEN_API_KEY/);
    assert.match(outcomeSentence({ kind: 'status', status: 400, refusedField: 'stream_options' }), /refuses the field stream_options/);
    assert.match(outcomeSentence({ kind: 'connect', message: 'connect ECONNREFUSED 127.0.0.1:1' }), /^connect ECONNREFUSED 127\.0\.0\.1:1\. Behind a proxy/);
    assert.ok(outcomeSentence({ kind: 'stream-error', message: 'x'.repeat(5000) }).length < 500);
  });
});

describe('the verdict in words', () => {
  const good = (n: number) => Array.from({ length: n }, (_, i) => steady(i * 1000, 212, 32, 30, { cachedTokens: 0, promptTokens: 1900 }));
  const slo = { ttft: 500, tpot: 40, attainment: 0.95 };

  it('meets: how many, first token, pace', () => {
    const report = makeReport(good(80), { plan: { slo } });
    assert.equal(verdictSentence(report), 'Meets the chat SLO: 80 of 80 answers. First token 212 ms (p99 212), then 31.3 tokens/s.');
    assert.equal(verdictIcon(report), 'passed');
    assert.equal(lensText(report), 'TTFT 212 ms (p99 212) · 31.3 tok/s · meets SLO');
    assert.equal(statusText(report), 'h200: 212 ms · 31.3 tok/s');
  });

  it('misses: the limit, in how many, and what the wait was made of', () => {
    const slow = good(20).map((s, i) => (i < 7 ? steady(i * 1000, 900, 32, 30, { cachedTokens: 0, promptTokens: 1900, headers: i * 1000 + 10 }) : s));
    const report = makeReport(slow, { plan: { slo } });
    assert.equal(verdictSentence(report), 'Misses the chat SLO: TTFT above 500 ms in 7 of 20; most of it is prefill (1\u202F900 prompt tokens, none cached).');
    assert.equal(verdictIcon(report), 'failed');
    const queued = slow.map((s) => ({ ...s, headers: s.firstToken! - 5 }));
    assert.match(verdictSentence(makeReport(queued, { plan: { slo } })), /most of it is queueing\.$/);
  });

  it('is open while too few were sent, or when they disagree', () => {
    assert.equal(verdictSentence(makeReport(good(20), { plan: { slo } })), 'All 20 answers so far meet the chat SLO; 73 would prove it. First token 212 ms (p99 212), then 31.3 tokens/s.');
    const one = makeReport([...good(19), failed(19_000, { kind: 'timeout-stall' })], { plan: { slo } });
    assert.equal(verdictSentence(one), 'Unclear: 19 of 20 meet the chat SLO, which asks for 95 of 100; 1 of 20 failed (stalled 1).');
    assert.deepEqual([one.verdict, verdictShort(one.verdict), verdictIcon(one)], ['unclear', 'SLO unclear', 'queued']);
  });

  it('is refused when the client was the limit, however good the answers look', () => {
    const report = makeReport(good(80), { plan: { slo }, clientBottleneck: 'its stamps were 60 ms late at p99' });
    assert.equal(verdictSentence(report), 'No verdict on the chat SLO: this machine was the limit, not the server. 80 of 80 answers were within it. First token 212 ms (p99 212), then 31.3 tokens/s.');
    assert.deepEqual([report.verdict, verdictShort(report.verdict)], [null, 'no verdict']);
  });

  it('puts throughput first for a batch', () => {
    const report = makeReport(good(80), { plan: { objective: 'batch', slo: { attainment: 0.95 } }, endpoint: { gpu: { name: 'H200', pricePerHour: 4, count: 1 } } });
    assert.match(verdictSentence(report), /^Meets the batch SLO: 80 of 80 answers\. 29\.9 tokens\/s in all, [\d\u202F]+ tokens per USD; an answer takes 1\u202F140 ms \(p99 1\u202F140\)\.$/);
  });

  it('shows the first error when nothing came, and says when nothing ran', () => {
    const none = makeReport([failed(0, { kind: 'connect', message: 'ECONNREFUSED' }), failed(5, { kind: 'connect', message: 'ECONNREFUSED' })]);
    assert.match(verdictSentence(none), /^No answer came \(no connection in 2 of 2\)\. ECONNREFUSED\. Behind a proxy/);
    assert.equal(verdictSentence(makeReport([])), 'No request has ended yet.');
    assert.equal(verdictSentence(makeReport([makeSample({ outcome: { kind: 'cancelled' } })])), 'Stopped before the first answer came.');
    assert.equal(lensText(none), 'no answer · misses SLO');
  });

  it('works from a report whose samples travel apart', () => {
    const samples = good(80);
    const report = makeReport(samples, { plan: { slo: { ...slo, ttft: 100 } }, withSamples: false });
    assert.match(verdictSentence(report), /^Misses the chat SLO: 0 of 80 answers are good\.$/);
    assert.match(verdictSentence(report, samples), /TTFT above 100 ms in 80 of 80/);
  });

  it('says the SLO and the measuring error in words', () => {
    assert.equal(sloText({ ttft: 500, tpot: 30, valid: { pattern: 'x' }, attainment: 0.95 }), 'TTFT ≤ 500 ms, TPOT ≤ 30 ms, the answer is valid, in at least 95 of 100 answers');
    assert.equal(sloText({ attainment: 0.9 }), 'the answer comes, in at least 90 of 100 answers');
    assert.equal(clockErrorSentence({ p50: 0.3, p99: 2.1, max: 4, n: 1200 }), 'This run’s stamps are right to 0.300 ms (p99 2.10), at most 4 ms off in 1\u202F200 canary frames.');
    assert.match(clockErrorSentence(null), /not known/);
  });
});
