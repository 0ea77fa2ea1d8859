import assert from 'node:assert/strict';
import { twoGroups, type Caveat } from '../../../src/report/caveats';
import { caveatSentence } from '../../../src/report/format';
import type { Sample } from '../../../src/report/sample';
import { generator } from '../../../src/report/statistics';
import { makeReport } from './makeReport';
import { failed, makeSample, steady } from './makeSample';

type Kind = Caveat['kind'];
type Wanted = Parameters<typeof makeReport>[1];

/** The caveat of a kind, or undefined. */
function caveat<K extends Kind>(kind: K, samples: readonly Sample[], more: Wanted = {}): Extract<Caveat, { kind: K }> | undefined {
  return makeReport(samples, more).caveats.find((c): c is Extract<Caveat, { kind: K }> => c.kind === kind);
}

const plain = (n: number, more: Parameters<typeof steady>[4] = {}): Sample[] => Array.from({ length: n }, (_, i) => steady(i * 1000, 100 + (i % 7), 10, 20, { cachedTokens: 0, ...more }));

describe('caveats', () => {
  it('are silent about a clean run of enough requests', () => {
    assert.deepEqual(makeReport(plain(400), { clockErrors: [0.1, 0.2] }).caveats, []);
  });

  it('too-few-samples: names the lowest percentile without an interval', () => {
    assert.deepEqual(caveat('too-few-samples', plain(20)), { kind: 'too-few-samples', metric: 'ttft', percentile: 90, n: 20, needed: 36 });
    assert.equal(caveat('too-few-samples', plain(5))?.percentile, 50);
    assert.equal(caveat('too-few-samples', plain(367))?.needed, 368);
    assert.equal(caveat('too-few-samples', plain(368)), undefined);
    assert.equal(caveat('too-few-samples', []), undefined);
  });

  it('cold-first: the first request is slower and no warm-up was sent', () => {
    const slow = [steady(-1000, 900, 10, 20, { cachedTokens: 0 }), ...plain(6)];
    assert.deepEqual(caveat('cold-first', slow, { plan: { warmup: 0 } }), { kind: 'cold-first', first: 900, rest: 102.5 });
    assert.equal(caveat('cold-first', slow, { plan: { warmup: 1 } }), undefined);
    assert.equal(caveat('cold-first', plain(7), { plan: { warmup: 0 } }), undefined);
    // 12 ms over 4 is a ratio, not a difference anyone feels.
    assert.equal(caveat('cold-first', [steady(-100, 12, 5, 5), ...[0, 100, 200, 300].map((t) => steady(t, 4, 5, 5))], { plan: { warmup: 0 } }), undefined);
  });

  it('cache-hits: from cached tokens', () => {
    const samples = [...plain(3), ...plain(4, { cachedTokens: 96 })];
    assert.deepEqual(caveat('cache-hits', samples), { kind: 'cache-hits', requests: 4, of: 7, cachedTokens: 96, promptTokens: 100, evidence: 'cached-tokens' });
    assert.equal(caveat('cache-hits', plain(7, { cachedTokens: 5 })), undefined);
    assert.equal(caveat('cache-hits', plain(7)), undefined);
  });

  it('cache-hits: from two groups of TTFT where cached tokens are unknown', () => {
    const two = Array.from({ length: 20 }, (_, i) => steady(i * 1000, i < 4 ? 600 + i : 100 + (i % 5), 10, 20));
    assert.deepEqual(caveat('cache-hits', two), { kind: 'cache-hits', requests: 16, of: 20, cachedTokens: null, promptTokens: null, evidence: 'bimodal-ttft' });
    assert.equal(caveat('cache-hits', two, { plan: { cache: 'cold' } }), undefined);
    assert.equal(caveat('cache-hits', two.map((s, i) => ({ ...s, labels: { prompt: i } }))), undefined);
    // Where the head came late for the slow ones, they queued.
    assert.equal(caveat('cache-hits', two.map((s) => ({ ...s, headers: s.firstToken! - 80 }))), undefined);
    assert.equal(caveat('cache-hits', plain(20, { cachedTokens: null })), undefined);
  });

  it('two groups: not in one hump, a long tail or a single outlier', () => {
    const random = generator(8);
    for (let round = 0; round < 300; round += 1) {
      const n = 20 + round;
      assert.equal(twoGroups(Array.from({ length: n }, () => 100 * Math.exp(0.3 * Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(6.283 * random())))), null);
    }
    assert.equal(twoGroups([100, 101, 102, 103, 104, 105, 106, 107, 108, 900]), null);
    assert.equal(twoGroups([]), null);
    assert.equal(twoGroups([100, 101, 103, 104, 300, 301, 302])?.low.length, 4);
  });

  it('cold-not-cold: salted requests that hit the cache all the same', () => {
    assert.deepEqual(caveat('cold-not-cold', plain(5, { cachedTokens: 64 }), { plan: { cache: 'cold' } }), { kind: 'cold-not-cold', requests: 5, of: 5, cachedTokens: 64 });
    assert.equal(caveat('cold-not-cold', plain(5), { plan: { cache: 'cold' } }), undefined);
    assert.equal(caveat('cold-not-cold', plain(5, { cachedTokens: 64 })), undefined);
  });

  it('several-tokens-per-frame: by counts per frame, or by N over frames', () => {
    const four = (tokens: number | null) => makeSample({ deltas: [1, 2, 3, 4, 5, 6].map((i) => [i * 40, 'text', tokens] as const), outputTokens: { count: 24, source: tokens === null ? 'final-usage' : 'token_ids' }, streamTokens: 24 });
    assert.deepEqual(caveat('several-tokens-per-frame', [four(4)]), { kind: 'several-tokens-per-frame', median: 4, max: 4 });
    assert.deepEqual(caveat('several-tokens-per-frame', [four(null)]), { kind: 'several-tokens-per-frame', median: 4, max: 4 });
    assert.equal(caveat('several-tokens-per-frame', plain(3)), undefined);
    // N counted by the frames themselves says nothing about tokens in a frame.
    assert.equal(caveat('several-tokens-per-frame', [makeSample({ deltas: [[1, 'text', null], [2, 'text', null]], outputTokens: { count: 2, source: 'deltas' } })]), undefined);
  });

  it('many-frames-per-read and one-read', () => {
    assert.deepEqual(caveat('many-frames-per-read', [...plain(3), steady(0, 90, 10, 20, { maxDeltasPerRead: 12 })]), { kind: 'many-frames-per-read', requests: 1, of: 4, max: 12 });
    const together = makeSample({ deltas: [0, 1, 1, 1, 1, 2, 3, 4].map((t) => [100 + 9 * t, 'text', 1] as const), maxDeltasPerRead: 4 });
    assert.equal(caveat('many-frames-per-read', [together])?.max, 4);
    // One hiccup in a long answer is not worth a warning.
    assert.equal(caveat('many-frames-per-read', plain(3, { maxDeltasPerRead: 5 })), undefined);
    assert.equal(caveat('many-frames-per-read', plain(3, { maxDeltasPerRead: 3 })), undefined);
    const once = steady(0, 90, 0, 20, { maxDeltasPerRead: 20, reads: 1 });
    assert.deepEqual(caveat('one-read', [...plain(3), once]), { kind: 'one-read', requests: 1, of: 4 });
    assert.equal(caveat('many-frames-per-read', [once]), undefined);
    assert.equal(caveat('one-read', plain(3)), undefined);
    // It says that there is no pace: the advice for ITL, that TPOT is measured, would contradict it.
    assert.equal(caveat('itl-unavailable', [once]), undefined);
    const uncounted = makeSample({ deltas: [[1, 'text', null], [30, 'text', null]], outputTokens: { count: 2, source: 'final-usage' } });
    assert.match(caveat('itl-unavailable', [once, once, uncounted])?.reason ?? '', /how many tokens a frame holds \(1 of 3 requests\)/);
  });

  it('delivery: names the cause and refuses ITL where it would mean nothing', () => {
    const bursts = makeSample({ deltas: Array.from({ length: 40 }, (_, i) => [100 + Math.floor(i / 8) * 200, 'text', 1] as const), maxDeltasPerRead: 8 });
    const batches = (tokens: number | null) => makeSample({ deltas: [1, 2, 3, 4, 5].map((i) => [i * 100, 'text', tokens] as const), outputTokens: { count: 25, source: tokens === null ? 'final-usage' : 'token_ids' }, streamTokens: 25 });
    const of = (samples: Sample[], more: Wanted = {}) => {
      const found = caveat('delivery', samples, more);
      return found === undefined ? undefined : [found.cause, found.itlMeaningless];
    };
    assert.deepEqual(of([bursts]), ['buffering-proxy', true]);
    assert.deepEqual(of([steady(0, 90, 0, 20)]), ['buffering-proxy', true]);
    assert.deepEqual(of([batches(5)]), ['server-batches', false]);
    assert.deepEqual(of([batches(null)]), ['server-batches', true]);
    assert.deepEqual(of([makeSample({ deltas: [[90, 'text', 20]] })]), ['server-batches', true]);
    assert.deepEqual(of([batches(null)], { endpoint: { api: 'azure' } }), ['content-filter', true]);
    assert.deepEqual(of(plain(3, { flags: ['content-encoding:gzip'] })), ['compression', false]);
    assert.deepEqual(of([{ ...bursts, flags: ['content-encoding:gzip'] }]), ['compression', true]);
    assert.equal(of(plain(5)), undefined);
    assert.equal(of([makeSample({ deltas: [[90, 'text', 1]] })]), undefined);
    // Frames that come together because tokens are faster than our reads are no proxy.
    assert.equal(of([makeSample({ deltas: Array.from({ length: 60 }, (_, i) => [100 + Math.floor(i / 3) * 6, 'text', 1] as const) })]), undefined);
  });

  it('late-start and late-write', () => {
    const late = caveat('late-start', [...plain(9), steady(20_000, 100, 10, 5, { due: 19_950 })]);
    assert.deepEqual([late?.requests, late?.of, late?.max], [1, 10, 50]);
    assert.equal(caveat('late-start', plain(3)), undefined);
    assert.deepEqual(caveat('late-write', [...plain(2), steady(0, 100, 10, 5, { written: 3 })]), { kind: 'late-write', requests: 1, of: 3, max: 3 });
    assert.equal(caveat('late-write', [steady(0, 100, 10, 5, { written: 30.5, connection: { reused: false, connected: 30 } })]), undefined);
  });

  it('clock-error: where the error is over 5 % of TTFT or of a gap', () => {
    const found = caveat('clock-error', plain(20), { clockErrors: Array.from({ length: 100 }, (_, i) => (i > 97 ? 2 : 0.1)) });
    assert.deepEqual([found?.metric, found?.percentile, found?.error, found?.value], ['chunkGap', 99, 2, 10]);
    assert.equal(caveat('clock-error', plain(20), { clockErrors: [0.2, 0.3] }), undefined);
    assert.equal(caveat('clock-error', plain(20)), undefined);
  });

  it('failures-left-out: counts kinds, not cancellations', () => {
    const samples = [...plain(3), failed(0, { kind: 'status', status: 503 }), failed(0, { kind: 'connect' }), makeSample({ outcome: { kind: 'cancelled' } })];
    assert.deepEqual(caveat('failures-left-out', samples), { kind: 'failures-left-out', failed: 2, of: 5, kinds: { status: 1, connect: 1 } });
    assert.equal(caveat('failures-left-out', plain(3)), undefined);
  });

  it('tokens-estimated, itl-unavailable, hidden-reasoning, contradicting-usage', () => {
    const usage = makeSample({ deltas: [[1, 'text', null], [30, 'text', null]], outputTokens: { count: 2, source: 'final-usage' } });
    const estimated = makeSample({ deltas: [[1, 'text', null], [30, 'text', null]], outputTokens: { count: 2, source: 'deltas' } });
    assert.equal(caveat('tokens-estimated', [usage, estimated])?.source, 'deltas');
    assert.equal(caveat('tokens-estimated', [usage]), undefined);
    assert.match(caveat('itl-unavailable', [usage])?.reason ?? '', /how many tokens a frame holds \(1 of 1 requests\)/);
    assert.equal(caveat('itl-unavailable', plain(3)), undefined);
    assert.deepEqual(caveat('hidden-reasoning', [steady(0, 100, 10, 5, { outputTokens: { count: 205, source: 'token_ids' }, streamTokens: 5 })]), { kind: 'hidden-reasoning', tokens: 200, requests: 1 });
    assert.equal(caveat('hidden-reasoning', plain(1)), undefined);
    assert.deepEqual(caveat('contradicting-usage', plain(2, { flags: ['cached>prompt'] })), { kind: 'contradicting-usage', what: 'cached>prompt', requests: 2 });
    assert.equal(caveat('contradicting-usage', plain(2, { flags: ['unterminated-last-event'] })), undefined);
  });

  it('connection-not-reused: beyond what has to be opened once', () => {
    const fresh = plain(6, { connection: { reused: false } });
    assert.deepEqual(caveat('connection-not-reused', fresh), { kind: 'connection-not-reused', requests: 6, of: 6 });
    assert.equal(caveat('connection-not-reused', [...fresh.slice(0, 2), ...plain(4)], { plan: { warmup: 0, concurrency: 2 } }), undefined);
  });

  it('h2-stamps, field-refused, tls-not-verified, unrendered-variables, stopped, stamp-order', () => {
    assert.ok(caveat('h2-stamps', plain(1, { connection: { alpn: 'h2' } })));
    assert.equal(caveat('field-refused', plain(1), { endpoint: { refusedFields: ['stream_options'] } })?.field, 'stream_options');
    assert.ok(caveat('tls-not-verified', plain(1), { endpoint: { origin: 'https://a.test', tlsVerified: false } }));
    assert.equal(caveat('tls-not-verified', plain(1), { endpoint: { tlsVerified: false } }), undefined);
    assert.deepEqual(caveat('unrendered-variables', plain(1), { unrendered: ['name'] })?.names, ['name']);
    assert.equal(caveat('stopped', plain(1), { stopped: { by: 'breaker', detail: '5 in a row' } })?.by, 'breaker');
    assert.deepEqual(caveat('stamp-order', plain(1, { headers: -5 })), { kind: 'stamp-order', what: 'headers before written', requests: 1 });
    for (const kind of ['h2-stamps', 'field-refused', 'unrendered-variables', 'stopped', 'stamp-order'] as const) assert.equal(caveat(kind, plain(1)), undefined);
  });
});

describe('caveats in words', () => {
  const all: { readonly [K in Kind]: Extract<Caveat, { kind: K }> } = {
    'too-few-samples': { kind: 'too-few-samples', metric: 'ttft', percentile: 90, n: 20, needed: 36 },
    'cold-first': { kind: 'cold-first', first: 900, rest: 100 },
    'cache-hits': { kind: 'cache-hits', requests: 19, of: 20, cachedTokens: 1904, promptTokens: 1920, evidence: 'cached-tokens' },
    'cold-not-cold': { kind: 'cold-not-cold', requests: 3, of: 20, cachedTokens: 64 },
    'several-tokens-per-frame': { kind: 'several-tokens-per-frame', median: 4, max: 9 },
    'many-frames-per-read': { kind: 'many-frames-per-read', requests: 3, of: 20, max: 12 },
    'one-read': { kind: 'one-read', requests: 3, of: 20 },
    delivery: { kind: 'delivery', cause: 'buffering-proxy', evidence: '8 frames a read', itlMeaningless: true },
    'late-start': { kind: 'late-start', requests: 3, of: 20, p99: 30, max: 40 },
    'late-write': { kind: 'late-write', requests: 3, of: 20, max: 4 },
    'clock-error': { kind: 'clock-error', metric: 'chunkGap', error: 2, value: 10, percentile: 99 },
    'failures-left-out': { kind: 'failures-left-out', failed: 2, of: 20, kinds: { status: 1, connect: 1 } },
    'tokens-estimated': { kind: 'tokens-estimated', source: 'deltas' },
    'itl-unavailable': { kind: 'itl-unavailable', reason: 'the whole answer came in one read' },
    'hidden-reasoning': { kind: 'hidden-reasoning', tokens: 200, requests: 20 },
    'contradicting-usage': { kind: 'contradicting-usage', what: 'cached>prompt', requests: 2 },
    'connection-not-reused': { kind: 'connection-not-reused', requests: 20, of: 20 },
    'unrendered-variables': { kind: 'unrendered-variables', names: ['name'] },
    'user-message-added': { kind: 'user-message-added', text: '(no user message in this file)' },
    'h2-stamps': { kind: 'h2-stamps' },
    'field-refused': { kind: 'field-refused', field: 'stream_options' },
    'tls-not-verified': { kind: 'tls-not-verified', origin: 'https://a.test' },
    stopped: { kind: 'stopped', by: 'breaker', detail: '5 in a row' },
    'stamp-order': { kind: 'stamp-order', what: 'end before last', requests: 1 },
    'client-bottleneck': { kind: 'client-bottleneck', detail: 'busy' },
  };

  it('say what, then what it means, then what to do, without unfinished numbers', () => {
    for (const one of Object.values(all)) {
      const words = caveatSentence(one);
      assert.match(words, /[:.].*\.$/s, words);
      assert.doesNotMatch(words, /undefined|NaN|null|\d\.\d{4}|!|%/, words);
    }
  });

  it('advise token ids only where counts are missing', () => {
    assert.doesNotMatch(caveatSentence(all['itl-unavailable']), /TPOT|return_token_ids/);
    assert.doesNotMatch(caveatSentence({ kind: 'itl-unavailable', reason: 'the frames did not arrive as they were generated' }), /return_token_ids/);
    assert.match(caveatSentence({ kind: 'itl-unavailable', reason: 'the server does not say how many tokens a frame holds (3 of 3 requests)' }), /TPOT are measured.*return_token_ids/);
  });

  it('name the setting or the flag', () => {
    assert.match(caveatSentence(all['cold-first']), /--warmup 1, firstToken\.probe\.warmup/);
    assert.match(caveatSentence(all['cache-hits']), /1\u202F904 of 1\u202F920 tokens.*--cache cold/);
    assert.match(caveatSentence(all['too-few-samples']), /p90, p95 and p99.*-n 36/);
    assert.match(caveatSentence(all.delivery), /proxy_buffering off and proxy_http_version 1\.1.*X-Accel-Buffering: no/);
  });
});
