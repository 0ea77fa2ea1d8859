import assert from 'node:assert/strict';
import { chatStream, fakeWorld } from '../fakeRecorder';
import { PlanError, type ProbePlan, type Shot } from '../../../../src/probe/plan';
import { run } from '../../../../src/probe/run';
import { arrivalTimes } from '../../../../src/probe/scenario/arrivals';
import { rate, type RateOptions } from '../../../../src/probe/scenario/rate';
import { fixedPrompt, trace } from '../../../../src/probe/workload';
import { percentile, sorted } from '../../../../src/report/statistics';
import type { Sample } from '../../../../src/report/sample';
import { cutShort, inLab, labTarget } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };
const options: RateOptions = { workload: fixedPrompt(prompt, 'built-in'), arrivals: 'constant', seed: 1, list: null, most: 1000, duration: 5000, within: null, tolerance: 0.1, mostInFlight: 1000 };

describe('arrivals', () => {
  it('are evenly spaced, or the same Poisson process for the same seed', () => {
    assert.deepEqual(arrivalTimes('constant', 4, 4, 1), [0, 250, 500, 750]);
    assert.deepEqual(arrivalTimes('poisson', 4, 50, 9), arrivalTimes('poisson', 4, 50, 9));
    assert.notDeepEqual(arrivalTimes('poisson', 4, 50, 9), arrivalTimes('poisson', 4, 50, 8));
  });

  it('of a Poisson process pass the test of Kolmogorov and Smirnov on their gaps, and have no memory', () => {
    const n = 5000;
    for (const seed of [1, 2, 3, 4, 5]) {
      const times = arrivalTimes('poisson', 20, n + 1, seed);
      const gaps = times.slice(1).map((t, i) => t - times[i]!);
      // Distance between the gaps' distribution and 1 − exp(−λt), against its critical value at 1 %.
      const order = [...gaps].sort((a, b) => a - b);
      const distance = Math.max(...order.map((gap, i) => Math.max(Math.abs((i + 1) / n - (1 - Math.exp(-gap / 50))), Math.abs(i / n - (1 - Math.exp(-gap / 50))))));
      assert.ok(distance < 1.63 / Math.sqrt(n), `seed ${seed}: distance ${distance}`);
      const mean = gaps.reduce((sum, gap) => sum + gap, 0) / n;
      const product = gaps.slice(1).reduce((sum, gap, i) => sum + (gap - mean) * (gaps[i]! - mean), 0) / gaps.reduce((sum, gap) => sum + (gap - mean) ** 2, 0);
      assert.ok(Math.abs(product) < 3 / Math.sqrt(n), `seed ${seed}: autocorrelation ${product}`);
    }
  });
});

describe('rate', () => {
  it('finds the rate that can be sustained on paper', () => {
    for (const arrivals of ['constant', 'poisson'] as const) {
      const { result } = inLab(rate({ ...options, arrivals }), '', { settings: { maxTokens: 64 } });
      // 16 seats, 64 tokens of about 3.45 ms each.
      const paper = 16_000 / (64 * 3.45);
      assert.ok(result.knee !== null && result.knee.rate > 0.75 * paper && result.knee.rate < 1.1 * paper, `${arrivals}: ${result.knee?.rate}, on paper ${paper}`);
      assert.match(result.sentences[0]!, /can be sustained/);
    }
  });

  it('sees the queue grow by 1 − μ/λ beyond capacity, and that is never a met verdict', () => {
    const { result } = inLab(rate({ ...options, list: [110] }), '', { settings: { maxTokens: 64 }, slo: { ttft: 60_000, attainment: 0.95 } });
    const [step] = result.steps;
    const capacity = 16_000 / (64 * 3.45);
    assert.equal(step!.queue!.growing, true);
    assert.ok(Math.abs(step!.queue!.perSecond - 1000 * (110 / capacity - 1)) < 120, `grows ${step!.queue!.perSecond}`);
    assert.equal(step!.attainment!.share, 1);
    assert.equal(step!.verdict, 'missed');
    assert.match(result.sentences[1]!, /come faster than they are served/);
  });

  it('tells latencies from start and from due side by side', () => {
    const { result } = inLab(rate({ ...options, list: [10] }), '', { after: (ran) => ({ ...ran, samples: ran.samples.map((s) => ({ ...s, due: s.start - 40 })), client: { ...ran.client, lateP99: 40 } }) });
    const [step] = result.steps;
    assert.ok(Math.abs(step!.fromDue.ttft!.p50 - step!.summary.ttft!.p50 - 40) < 1e-6);
    assert.equal(step!.late!.p99, 40);
    assert.ok(result.sentences.some((sentence) => sentence.includes('read the rows from due')));
    assert.equal(step!.verdict, null);
  });

  it('replays a trace by its own times', () => {
    const file = Array.from({ length: 30 }, (_, i) => JSON.stringify({ timestamp: i * 100, input_length: 100, output_length: 16 })).join('\n');
    const { result, steps } = inLab(rate({ ...options, workload: trace('t.jsonl', file) }), '');
    assert.equal(result.arrivals, 'trace');
    assert.deepEqual(steps[0]!.plan.shots.filter((shot) => shot.role === 'measured').map((shot) => shot.dueAt).slice(0, 3), [0, 100, 200]);
    assert.equal(result.steps[0]!.requests, 30);
  });

  it('keeps what was measured when it is stopped', () => {
    const { result } = inLab(rate(options), '', { after: (ran, index) => (index === 2 ? cutShort(ran, 0.5, { by: 'breaker', detail: '5 requests in a row failed' }) : ran) });
    assert.equal(result.steps.length, 2);
    assert.equal(result.ended, '5 requests in a row failed');
  });

  it('refuses what cannot be carried out, naming the flag', () => {
    const bad = (more: Partial<RateOptions>, pattern: RegExp): void => {
      assert.throws(() => inLab(rate({ ...options, ...more }), ''), (error) => error instanceof PlanError && pattern.test(error.message));
    };
    bad({ list: [4, 2] }, /--rates/);
    bad({ most: 1e6 }, /--most/);
    bad({ list: [9000], duration: 100_000 }, /--duration/);
    bad({ workload: { ...options.workload, turns: 3 } }, /sweep --turns/);
  });
});

describe('coordinated omission', () => {
  it('hides a stall from start, and not from due: p99 within 2 % of paper', async () => {
    // One request at a time, 10 ms each, one every 20 ms; the 500th takes 5 s. All that were due meanwhile start late.
    const [service, every, stall, requests, stalled] = [10, 20, 5000, 2000, 500];
    const world = fakeWorld((_, index) => ({ reads: chatStream(1), wait: (index === stalled ? stall : service) / chatStream(1).length }));
    const shots = Array.from({ length: requests }, (_, i): Shot => ({ id: `${i}`, role: 'measured', target: 0, dueAt: i * every, prompt, maxTokens: 1, nonce: null, labels: {} }));
    const plan: ProbePlan = { scenario: 'rate', targets: [labTarget()], shots, concurrency: 1, budget: { requests: null, outputTokens: null, cost: null }, breaker: null, retry: null, recorders: 1, mostInFlight: 1 };
    const samples: Sample[] = [];
    const going = run(plan, { ...world, sleep: async (ms, signal) => world.sleep(Math.min(ms, 1), signal) }, new AbortController().signal);
    for (let next = await going.next(); !next.done; next = await going.next()) if (next.value.type === 'sample') samples.push(next.value.sample);
    assert.equal(samples.length, requests);
    const p99 = (values: number[]): number => percentile(sorted(values), 0.99);
    const fromStart = p99(samples.map((s) => s.end! - s.start));
    const fromDue = p99(samples.map((s) => s.end! - s.due));
    // On paper: request k after the stall ends service·k after the stall's end and was due every·k after its beginning.
    let free = 0;
    const paper = p99(Array.from({ length: requests }, (_, i) => {
      const start = Math.max(free, i * every);
      free = start + (i === stalled ? stall : service);
      return free - i * every;
    }));
    assert.ok(Math.abs(fromDue - paper) <= 0.02 * paper, `from due ${fromDue}, on paper ${paper}`);
    assert.ok(fromStart < 2 * service, `from start ${fromStart}`);
    assert.ok(samples.filter((s) => s.start - s.due > 10).length > 400, 'those held back say so');
  });
});
