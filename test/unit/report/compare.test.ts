import assert from 'node:assert/strict';
import { compareReports } from '../../../src/report/compare';
import { generator } from '../../../src/report/statistics';
import { makeReport } from './makeReport';
import { failed, steady } from './makeSample';

function run(n: number, wait: number, seed: number, more: Parameters<typeof makeReport>[1] = {}) {
  const random = generator(seed);
  return makeReport(Array.from({ length: n }, (_, i) => steady(i * 500, wait + 20 * random(), 10 + random(), 20)), more);
}

describe('comparing two runs', () => {
  it('shows the difference of medians with its interval, and says who is faster', () => {
    const { rows, sentence } = compareReports(run(40, 200, 1), run(40, 150, 2));
    const ttft = rows[0]!;
    assert.equal(ttft.metric, 'ttft');
    assert.ok(Math.abs(ttft.p50!.difference + 50) < 6);
    assert.ok(ttft.p50!.ci95[0] <= ttft.p50!.difference && ttft.p50!.difference <= ttft.p50!.ci95[1]);
    assert.equal(ttft.p50!.conclusion, 'b-faster');
    assert.match(ttft.p50!.text, /^B is \S+ ms faster \(\S+–\S+\)$/);
    assert.match(sentence, /^First token \(TTFT\), median: B is .* \(A \d+ ms, B \d+ ms\)\./);
    assert.equal(compareReports(run(40, 150, 1), run(40, 200, 2)).rows[0]?.p50?.conclusion, 'a-faster');
  });

  it('shows no difference where the interval covers 0', () => {
    const { rows } = compareReports(run(40, 200, 1), run(40, 200, 2));
    assert.equal(rows[0]?.p50?.conclusion, 'no-difference-shown');
    assert.match(rows[0].p50.text, /^no difference shown \(−.* to .* ms\)$/);
  });

  it('claims nothing about a percentile that few requests cannot bound', () => {
    const { rows } = compareReports(run(40, 200, 1), run(40, 100, 2));
    assert.deepEqual([rows[0]?.p99?.conclusion, rows[0]?.p99?.text], ['too-few', 'n too small']);
    assert.equal(compareReports(run(400, 200, 1), run(400, 100, 2)).rows[0]?.p99?.conclusion, 'b-faster');
    assert.equal(compareReports(run(4, 200, 1), run(4, 100, 2)).rows[0]?.p50?.conclusion, 'too-few');
  });

  it('is mirrored when A and B are exchanged, and the same for the same seed', () => {
    const [a, b] = [run(30, 200, 3), run(30, 180, 4)];
    assert.equal(compareReports(a, b).rows[0]!.p50!.difference, -compareReports(b, a).rows[0]!.p50!.difference);
    assert.deepEqual(compareReports(a, b, 9), compareReports(a, b, 9));
  });

  it('warns of everything else that differs', () => {
    const a = run(10, 200, 1);
    assert.deepEqual(compareReports(a, run(10, 200, 2)).warnings, []);
    const b = run(10, 200, 2, {
      plan: { concurrency: 8, cache: 'cold', maxTokens: 64, warmup: 0, readerPace: 60, prompt: { name: 'other', characters: 1, sha256: 'cd' } },
      endpoint: { name: 'b', origin: 'http://other', model: 'x' },
      createdAt: '2027-01-01T00:00:00.000Z',
    });
    const { warnings } = compareReports(a, b);
    for (const words of [/prompts differ/, /endpoints differ/, /models differ/, /concurrency differs \(A 1, B 8\)/, /cache setting differs/, /maximum of tokens differs/, /warm-up differs/, /pace differs/, /not interleaved/]) assert.ok(warnings.some((warning) => words.test(warning)), String(words));
  });

  it('says so when a run has nothing to compare', () => {
    const none = makeReport([failed(0, { kind: 'connect' })]);
    assert.match(compareReports(run(10, 200, 1), none).sentence, /^Only A has answers/);
    assert.match(compareReports(none, none).sentence, /^Neither run/);
  });
});
