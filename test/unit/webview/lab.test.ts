/** The lessons of the lab page: each runs, and shows what its text says. */
import assert from 'node:assert/strict';
import { labReport } from '../../../src/editor/labReport';
import { labNumbers, labSentence, type LabNumber } from '../../../src/report/labDifference';
import { checkStamps } from '../../../src/report/sample';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { LabError, runLab } from '../../../src/simulator/lab';
import { flagsOf, lessons, usualChoice, usualLoad, type LabChoice } from '../../../webview/labSettings';

function run(id: string): { readonly a: ReturnType<typeof labReport>; readonly b: ReturnType<typeof labReport>; readonly of: (label: string) => LabNumber; readonly sentence: string } {
  const lesson = lessons.find((one) => one.id === id)!;
  const [a, b] = ([lesson.a, lesson.b] as const).map((choice, i) => labReport(i === 0 ? 'A' : 'B', runLab(flagsOf({ ...usualChoice, ...choice }), { ...usualLoad, ...lesson.load }), '0'));
  const numbers = labNumbers(a!, b!);
  return { a: a!, b: b!, sentence: labSentence(a!, b!), of: (label) => numbers.find((number) => number.label === label)! };
}

const ratio = ({ a, b }: LabNumber): number => b! / a!;
const within = (value: number, expected: number, share: number): void => assert.ok(Math.abs(value - expected) <= share * expected, `${value} is not within ${share} of ${expected}`);

describe('the lab page', () => {
  for (const lesson of lessons) {
    it(`can run the lesson “${lesson.title}”, and its stamps are in order`, () => {
      const { a, b, sentence } = run(lesson.id);
      for (const report of [a, b]) {
        assert.ok(report.samples.length > 0);
        for (const sample of report.samples) assert.equal(checkStamps(sample), null);
        assert.equal(report.samples.length, lesson.load.requests ?? usualLoad.requests);
      }
      assert.match(sentence, /instead of/);
    });
  }

  it('request-level: nothing streams and short answers wait for long ones; continuous refills seats', () => {
    const { a, b, of } = run('batching');
    assert.ok(a.samples.every((sample) => sample.deltas.length === 1));
    assert.ok(b.samples.every((sample) => sample.deltas.length === sample.outputTokens.count));
    assert.ok(ratio(of('First token, p50')) < 0.25);
    const batch = a.samples.filter((sample) => sample.last === a.samples[0]!.last);
    assert.deepEqual([...new Set(batch.map((sample) => sample.outputTokens.count))].sort(), [64, 8]);
  });

  it('timed: throughput is the batch over 100 ms', () => {
    const { of } = run('timed');
    within(of('Throughput').a!, 10, 0.001);
    within(of('Throughput').b!, 80, 0.001);
  });

  it('seats: more tokens a second for all, fewer for each', () => {
    const { of } = run('seats');
    assert.ok(ratio(of('Throughput')) > 3);
    assert.ok(ratio(of('Time per token (TPOT), p50')) > 1.3);
  });

  it('chunked prefill: short gaps, a later first token of the long prompt', () => {
    const { of, sentence } = run('chunked');
    assert.ok(ratio(of('Longest gap in an answer, p99')) < 0.1);
    assert.ok(ratio(of('First token, p99')) > 1.02);
    assert.match(sentence, /^B gains: longest gap/);
  });

  it('bits and bandwidth: the time per token follows the bytes', () => {
    within(ratio(run('bandwidth').of('Time per token (TPOT), p50')), 0.5, 0.02);
    within(ratio(run('gpu').of('Time per token (TPOT), p50')), 4.8 / 2.039, 0.01);
  });

  it('prefix cache and router: hits, their price in balance', () => {
    assert.equal(run('prefix').of('Prompt tokens from the cache').b, 0);
    const { of } = run('router');
    assert.ok(ratio(of('Prompt tokens from the cache')) > 1.2);
    assert.ok(ratio(of('Requests at the busiest replica')) > 1);
  });

  it('fair queuing keeps the light tenant’s first token; a bounded queue keeps everybody’s it takes', () => {
    assert.ok(ratio(run('fair').of('Light tenant’s first token, p95')) < 0.1);
    const { of } = run('queue');
    assert.ok(of('First token, p99').b! < 500 && of('First token, p99').a! > 2000);
    assert.ok(of('Refused or lost').b! > 0 && of('Refused or lost').a === 0);
    assert.ok(ratio(of('Good answers (chat SLO)')) > 2);
  });

  it('speculation and split pools', () => {
    assert.ok(ratio(run('speculative').of('Time per token (TPOT), p50')) < 0.5);
    assert.ok(ratio(run('split').of('Longest gap in an answer, p99')) < 0.7);
  });

  it('says so when nothing differs', () => {
    const report = labReport('A', runLab([], { ...usualLoad, requests: 8 }), '0');
    assert.match(labSentence(report, report), /behave the same/);
    assert.ok(labNumbers(report, report).every((number) => number.difference === 'the same'));
  });

  it('writes flags the simulator takes for every policy, and none for the usual settings', () => {
    assert.deepEqual(flagsOf(usualChoice), []);
    const choices: readonly Partial<LabChoice>[] = [...lessons.flatMap(({ a, b }) => [a, b]), ...(['continuous', 'chunked', 'request-level', 'timed', 'speculative', 'split'] as const).map((policy) => ({ policy, replicas: 3, router: 'prefix-affinity' as const, spill: 2, queue: 4, order: 'fair' as const, prefixCache: false, gpu: 'h100', tensorParallel: 2, weightBits: 8, kvBits: 8, batchCost: 50 }))];
    for (const choice of choices) parseSimulatorArgs(flagsOf({ ...usualChoice, ...choice }));
    assert.equal(parseSimulatorArgs(flagsOf({ ...usualChoice, policy: 'timed', batchSize: 3 })).batchSize, 3);
  });

  it('refuses loads that are too large or make no sense, by name', () => {
    const wrong = [{ requests: 0 }, { requests: 3000 }, { requests: 2000, outputTokens: 500 }, { promptTokens: 1.5 }, { arrivals: { kind: 'rate', perSecond: 0 } as const }, { arrivals: { kind: 'users', users: 5000 } as const }, { requests: 500, promptTokens: 60_000 }, { groups: 0 }];
    for (const load of wrong) assert.throws(() => runLab([], { ...usualLoad, ...load }), (error: Error) => error instanceof LabError && error.message.length > 20, JSON.stringify(load));
  });
});
