import assert from 'node:assert/strict';
import { PlanError } from '../../../../src/probe/plan';
import { nextToTry, type Tried } from '../../../../src/probe/scenario/kneeSearch';
import { requestsAt, sweep, type SweepOptions } from '../../../../src/probe/scenario/sweep';
import { fixedPrompt } from '../../../../src/probe/workload';
import { sloPresets } from '../../../../src/report/goodput';
import { kneeOfSeats } from '../../../../src/simulator/formula';
import { cutShort, inLab } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };
const options: SweepOptions = { workload: fixedPrompt(prompt, 'built-in'), list: null, most: 256, within: null, tolerance: 0.125 };

describe('a sweep', () => {
  it('finds the knee of the demo within 20 % of 16 × (1 + 500 / (128 × 3.42)), in less than 40 s', () => {
    const { result, runs } = inLab(sweep(options), '');
    const paper = kneeOfSeats(16, 128, 3.42, 500);
    assert.ok(Math.abs(paper - 34) < 0.5);
    assert.ok(result.knee !== null && Math.abs(result.knee.concurrency - paper) <= 0.2 * paper, `knee ${result.knee?.concurrency}, on paper ${paper}`);
    assert.ok(runs.at(-1)!.elapsed < 36_000, `took ${runs.at(-1)!.elapsed} ms`);
    assert.equal(result.ended, 'the knee is enclosed');
    assert.ok(result.sentences.length >= 2 && result.sentences[0]!.startsWith(`For chat, serve at most ${result.knee.concurrency} at once`));
  });

  it('climbs 1, 2, 4 … with at least 20 and five requests a slot, then encloses the knee', () => {
    const { result, steps } = inLab(sweep(options), '');
    const loads = steps.map((step) => step.plan.concurrency);
    assert.deepEqual(loads.slice(0, 6), [1, 2, 4, 8, 16, 32]);
    for (const { plan } of steps) assert.ok(plan.shots.filter((shot) => shot.role === 'measured').length >= requestsAt(plan.concurrency));
    const broken = result.steps.find((step) => step.concurrency > result.knee!.concurrency)!;
    assert.ok(broken.concurrency - result.knee!.concurrency <= 0.125 * result.knee!.concurrency);
    assert.deepEqual(result.steps.map((step) => step.concurrency), [...result.steps.map((step) => step.concurrency)].sort((a, b) => a - b));
  });

  it('moves the knee with the seats, the length of answers and the limit', () => {
    for (const [flags, maxTokens, ttft] of [['--max-running 8', 128, 500], ['', 64, 500], ['', 128, 1500]] as const) {
      const { result } = inLab(sweep(options), flags, { settings: { maxTokens }, slo: { ...sloPresets.chat, ttft } });
      const paper = kneeOfSeats(flags === '' ? 16 : 8, maxTokens, 3.42, ttft);
      assert.ok(Math.abs(result.knee!.concurrency - paper) <= 0.2 * paper, `${flags} ${maxTokens} ${ttft}: knee ${result.knee!.concurrency}, on paper ${paper}`);
    }
  });

  it('proves a knee below fifteen with more answers', () => {
    const { result, steps } = inLab(sweep(options), '--max-running 2', { settings: { maxTokens: 128 } });
    assert.equal(result.knee?.verdict, 'met');
    assert.ok(result.knee.concurrency >= 3 && result.knee.concurrency <= 5, `knee ${result.knee.concurrency}`);
    assert.ok(result.knee.attainment!.due >= 73);
    assert.ok(steps.some((step, i) => steps.findIndex((other) => other.plan.concurrency === step.plan.concurrency) < i), 'it was tried twice');
  });

  it('shows goodput falling while throughput still rises', () => {
    const long = fixedPrompt({ messages: [{ role: 'user', text: 'word '.repeat(4000) }], tools: [] }, 'long');
    const { result } = inLab(sweep({ ...options, workload: long, list: [8, 16, 64], tolerance: 5 }), '--max-running 64', { slo: { ttft: 100_000, tpot: 8, attainment: 0.95 }, settings: { maxTokens: 64 } });
    const steps = result.steps;
    const broken = steps.at(-1)!;
    assert.equal(broken.verdict, 'missed');
    assert.ok(steps.every((step, i) => i === 0 || step.throughput.tokensPerSecond! > steps[i - 1]!.throughput.tokensPerSecond!));
    assert.ok(steps.every((step, i) => i === 0 || step.perUser!.p50 < steps[i - 1]!.perUser!.p50));
    assert.ok(broken.goodput!.perSecond < result.knee!.goodput!.perSecond);
  });

  it('without limits climbs until throughput no longer grows, and asks nothing of chat', () => {
    const { result } = inLab(sweep(options), '', { slo: sloPresets.batch, objective: 'batch' });
    assert.equal(result.ended, 'throughput no longer grows');
    assert.equal(result.best.batch?.concurrency, 16);
  });

  it('counts tokens per cost by the hour of the GPU', () => {
    const { result } = inLab(sweep({ ...options, list: [16] }), '', { endpoint: { gpu: { name: 'h200', pricePerHour: 4, count: 1, currency: 'USD' } } });
    const { tokensPerSecond, tokensPerCost } = result.steps[0]!.throughput;
    assert.equal(tokensPerCost!.value, (tokensPerSecond! * 3600) / 4);
  });

  it('climbs a list, and searches between its loads', () => {
    const { steps, result } = inLab(sweep({ ...options, list: [4, 20, 60] }), '');
    assert.deepEqual(steps.slice(0, 3).map((step) => step.plan.concurrency), [4, 20, 60]);
    assert.ok(result.knee!.concurrency > 27 && result.knee!.concurrency < 41);
  });

  it('has no knee where nothing keeps the SLO, and says what to do', () => {
    const { result } = inLab(sweep(options), '', { slo: { ttft: 1, attainment: 0.95 } });
    assert.equal(result.knee, null);
    assert.match(result.sentences[0]!, /No concurrency .*firstToken\.slo/);
  });

  it('keeps what was measured when it is cancelled on the way up, when the endpoint dies and when the budget ends', () => {
    for (const by of ['user', 'breaker', 'budget'] as const) {
      const { result } = inLab(sweep(options), '', { after: (run, index) => (index === 3 ? cutShort(run, 0.5, { by, detail: `stopped: ${by}` }) : run) });
      assert.deepEqual(result.steps.map((step) => step.concurrency), [1, 2, 4, 8]);
      assert.equal(result.steps[3]!.requests, 20);
      assert.equal(result.ended, `stopped: ${by}`);
      assert.ok(result.sentences.length > 0);
    }
  });

  it('ends before a step that would take too long', () => {
    const { result, runs } = inLab(sweep({ ...options, within: 20_000 }), '');
    assert.match(result.ended, /--within/);
    assert.ok(runs.at(-1)!.elapsed <= 20_000);
  });

  it('refuses a verdict when the client was the limit, tries a broken step once more, and takes another recorder', () => {
    const busy = { loopUse: 0.95, clockErrorP99: 400, lateP99: 3 };
    const { result, steps } = inLab(sweep(options), '', { slo: { ttft: 300, attainment: 0.95 }, after: (run, _, step) => (step.plan.concurrency >= 32 ? { ...run, client: busy } : run) });
    assert.equal(result.steps.at(-1)!.verdict, null);
    assert.match(result.steps.at(-1)!.clientBottleneck!, /event loop was busy 95/);
    assert.equal(result.ended, 'this machine could not send more');
    assert.equal(steps.at(-1)!.plan.recorders, 4);
    assert.ok(result.sentences.some((sentence) => sentence.includes('this machine was the limit')));
  });

  it('keeps in memory only what the report is made from', () => {
    const { steps, finished, result } = inLab(sweep(options), '');
    assert.deepEqual(finished.shown, [`c${result.knee!.concurrency}`]);
    assert.deepEqual(steps[3]!.shown, ['c4']);
  });

  it('refuses what cannot be carried out, naming the flag', () => {
    const bad = (more: Partial<SweepOptions>, pattern: RegExp, slo = sloPresets.chat): void => {
      assert.throws(() => inLab(sweep({ ...options, ...more }), '', { slo }), (error) => error instanceof PlanError && pattern.test(error.message));
    };
    bad({ most: 5000 }, /--most/);
    bad({ list: [4, 2] }, /--steps/);
    bad({ list: [2000] }, /--steps/);
    bad({}, /attainment/, { ttft: 500, attainment: 1 });
    bad({ workload: { ...options.workload, timed: true } }, /rate --trace/);
  });
});

describe('the search for a knee', () => {
  const limits = { first: 1, most: 256, tolerance: 0.1, whole: true, list: null };
  const slo = sloPresets.chat;
  const tried = (load: number, share: number, strain: number | null, output: number | null = load): Tried => ({ load, verdict: share >= 0.95 ? 'met' : 'missed', attainment: { good: share * 100, due: 100, share, ci95: [0, 1] }, strain, output });

  it('doubles, ends at the most, and goes below the first when that is broken', () => {
    assert.equal(nextToTry([], slo, limits), 1);
    assert.equal(nextToTry([tried(1, 1, 0.1)], slo, limits), 2);
    assert.equal(nextToTry([tried(200, 1, 0.1)], slo, limits), 256);
    assert.equal(nextToTry([tried(256, 1, 0.1)], slo, limits), null);
    assert.equal(nextToTry([tried(8, 0, 3)], slo, limits), 4);
    assert.equal(nextToTry([tried(1, 0, 3)], slo, limits), null);
  });

  it('takes the straight line of a full server, and not that of a free one', () => {
    assert.equal(nextToTry([tried(16, 1, 0.02, 4600), tried(32, 1, 0.88, 4650)], slo, limits), 36);
    assert.equal(nextToTry([tried(16, 1, 0.02, 2300), tried(32, 1, 0.88, 4600)], slo, limits), 64);
  });

  it('ends always, and always inside the bracket', () => {
    for (const wall of [1, 2, 3, 7, 33, 100, 255]) {
      const all: Tried[] = [];
      for (let steps = 0; ; steps += 1) {
        assert.ok(steps < 25, `no end for a knee of ${wall}`);
        const next = nextToTry(all, slo, limits);
        if (next === null) break;
        assert.ok(!all.some(({ load }) => load === next), `${next} tried twice`);
        all.push(tried(next, next <= wall ? 1 : 0, next <= wall ? 0.9 : 3));
      }
      const kept = Math.max(0, ...all.filter(({ load }) => load <= wall).map(({ load }) => load));
      assert.ok(wall - kept <= Math.max(1, 0.1 * wall), `knee ${kept} for ${wall}`);
    }
  });
});
