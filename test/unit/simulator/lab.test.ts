/** What the lab must reproduce: every claim is worked out on paper here and compared with the engine in virtual time. */
import assert from 'node:assert/strict';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { assemble } from '../../../src/simulator/assemble';
import { seededRandom } from '../../../src/simulator/seededRandom';
import type { Tenant } from '../../../src/simulator/settings';
import { closedLoop, runVirtual, type VirtualArrival, type VirtualResult } from '../../../src/simulator/virtual';
import { renderChat } from '../../../src/simulator/splitter';

// Llama 3.1 8B in 16 bits on an H200, by hand.
const weights = 8.03e9 * 2;
const bandwidth = 4.8e12;
const usableFlops = 989e12 * 0.5;
/** 2 (key and value) × 32 layers × 8 KV heads × 128 × 2 bytes. */
const kvBytes = 2 * 32 * 8 * 128 * 2;
const readMs = (kvTokens: number): number => ((weights + kvTokens * kvBytes) / bandwidth) * 1000;

function run(flags: string, arrivals: readonly VirtualArrival[], tenants: readonly Tenant[] = []): VirtualResult[] {
  return runVirtual(assemble({ ...parseSimulatorArgs(flags.split(' ').filter((f) => f !== '')), tenants }), arrivals);
}

function loop(flags: string, users: number, total: number, make: (i: number) => Omit<VirtualArrival, 'at'>): VirtualResult[] {
  const { arrivals, onDone } = closedLoop(users, total, make);
  return runVirtual(assemble(parseSimulatorArgs(flags.split(' ').filter((f) => f !== ''))), arrivals, { onDone });
}

const ttft = (r: VirtualResult): number => r.firstToken! - r.arrival;
const tpot = (r: VirtualResult): number => (r.last! - r.firstToken!) / (r.outputTokens - r.emissions[0]![1]);
const mean = (values: readonly number[]): number => values.reduce((sum, v) => sum + v, 0) / values.length;
const percentile = (values: readonly number[], p: number): number => {
  const sorted = [...values].sort((a, b) => a - b);
  const rank = p * (sorted.length - 1);
  const low = Math.floor(rank);
  return sorted[low]! + (rank - low) * ((sorted[low + 1] ?? sorted[low]!) - sorted[low]!);
};
const within = (actual: number, expected: number, share: number, what: string): void => {
  assert.ok(Math.abs(actual - expected) <= share * Math.abs(expected), `${what}: ${actual} is not within ${share * 100} % of ${expected}`);
};
const throughput = (results: readonly VirtualResult[]): number => (results.reduce((sum, r) => sum + r.outputTokens, 0) / Math.max(...results.map((r) => r.last!))) * 1000;

describe('lab: times on paper', () => {
  it('a lone request: TTFT is its prefill, TPOT the bytes read over the bandwidth, within 2 %', () => {
    for (const [prompt, output] of [[100, 50], [2000, 200], [8000, 64]] as const) {
      const [result] = run('', [{ at: 0, promptTokens: prompt, outputTokens: output }]);
      const attention = 4 * 32 * 32 * 128 * (prompt * (prompt + 1)) * 0.5;
      const prefill = Math.max(readMs(prompt), ((2 * 8.03e9 * prompt + attention) / usableFlops) * 1000);
      within(ttft(result!), prefill, 0.02, 'TTFT');
      within(tpot(result!), readMs(prompt + output / 2), 0.02, 'TPOT');
    }
  });

  it('a batch: every sequence adds its keys and values to what a step reads', () => {
    const batch = 16;
    const results = run('', Array.from({ length: batch }, () => ({ at: 0, promptTokens: 1000, outputTokens: 101 })));
    for (const result of results) within(tpot(result), readMs(batch * 1050), 0.02, 'TPOT');
    assert.ok(readMs(batch * 1050) > 1.1 * readMs(1050), 'the batch is visibly slower than one alone');
  });

  it('other hardware, other numbers: 70B in 8 bits over two H100', () => {
    const [result] = run('--model llama-3.1-70b --gpu h100 --tp 2 --weight-bits 8', [{ at: 0, promptTokens: 500, outputTokens: 101 }]);
    const kv = 2 * 80 * 8 * 128 * 2 * 550;
    within(tpot(result!), ((70.6e9 + kv) / (2 * 3.35e12)) * 1000, 0.02, 'TPOT');
  });

  it('the cached part of a prompt costs no prefill', () => {
    const shared = { promptTokens: 8016, sharedPrefix: 8000, prefix: 'system', outputTokens: 2 };
    const [cold, warm] = run('', [{ at: 0, ...shared }, { at: 10_000, ...shared }]);
    assert.equal(cold!.cachedTokens, 0);
    assert.equal(warm!.cachedTokens, 8000);
    within(ttft(warm!), readMs(8016), 0.02, 'warm TTFT');
    assert.ok(ttft(cold!) > 50 * ttft(warm!));
  });

  it('the demo: one seat serves 128 tokens in 128 steps, so the knee is near 34 users', () => {
    const step = readMs(16 * (60 + 64));
    within(step, 3.4, 0.03, 'step');
    const expected = 16 * (1 + 500 / (128 * step));
    const p95 = (users: number): number => percentile(loop('', users, users * 8, () => ({ promptTokens: 60, outputTokens: 128 })).slice(users).map(ttft), 0.95);
    let knee = 26;
    assert.ok(p95(knee) <= 500);
    while (p95(knee + 1) <= 500) knee += 1;
    within(knee, expected, 0.2, 'knee');
  });
});

describe('lab: batching', () => {
  it('a batch of fixed cost: throughput = batch / cost, latency = wait + cost', () => {
    const flags = '--policy timed --batch-size 4 --batch-timeout 30 --batch-cost 100';
    const full = run(flags, Array.from({ length: 40 }, () => ({ at: 0, promptTokens: 10, outputTokens: 1 })));
    assert.equal(Math.max(...full.map((r) => r.last!)), 1000, 'ten batches of 100 ms');
    assert.equal(throughput(full), 4 / 0.1);
    const early = run(flags, [{ at: 0, promptTokens: 10, outputTokens: 1 }, { at: 10, promptTokens: 10, outputTokens: 1 }]);
    assert.deepEqual(early.map(ttft), [130, 120], 'the first waits for the timeout, the second joins it');
    const during = run(flags, [0, 0, 0, 0, 50].map((at) => ({ at, promptTokens: 10, outputTokens: 1 })));
    assert.equal(ttft(during[4]!), 50 + 100, 'its timeout passes while the server works, so it waits for the end only');
  });

  const mixed: VirtualArrival[] = [
    { at: 0, id: 'short', promptTokens: 20, outputTokens: 8 },
    { at: 0, id: 'long', promptTokens: 20, outputTokens: 64 },
    { at: 20, id: 'third', promptTokens: 20, outputTokens: 8 },
  ];

  it('request-level: the short answer waits for the long one, and so does who comes later', () => {
    const [short, long, third] = run('--policy request-level', mixed);
    assert.equal(short!.last, long!.last);
    assert.deepEqual(short!.emissions.length, 1, 'nothing streams');
    within(long!.last! - short!.scheduled!, 64 * readMs(2 * 50), 0.02, '64 steps');
    assert.equal(short!.scheduled, 5, 'an idle server collects for 5 ms');
    assert.equal(third!.scheduled, long!.last);
  });

  it('continuous: the short one returns at step 8 and its seat is filled at the next step', () => {
    const [short, long, third] = run('--policy continuous --max-running 2', mixed);
    const steps = long!.emissions.map(([at]) => at);
    assert.equal(short!.last, steps[7]);
    assert.equal(third!.scheduled, steps[7]);
    assert.equal(third!.firstToken, steps[8]);
    assert.ok(third!.last! < long!.last!);
  });

  it('bigger batches raise the total while each user slows; 1 … 64', () => {
    const table = [1, 2, 4, 8, 16, 32, 64].map((batch) => {
      const results = run(`--max-running ${batch}`, Array.from({ length: batch }, () => ({ at: 0, promptTokens: 1000, outputTokens: 129 })));
      return { batch, total: throughput(results), perUser: 1000 / mean(results.map(tpot)) };
    });
    for (let i = 1; i < table.length; i++) {
      assert.ok(table[i]!.total > table[i - 1]!.total, `total rises at ${table[i]!.batch}`);
      assert.ok(table[i]!.perUser < table[i - 1]!.perUser, `each user slows at ${table[i]!.batch}`);
      within(table[i]!.perUser, 1000 / readMs(table[i]!.batch * 1064), 0.02, `pace at ${table[i]!.batch}`);
    }
  });

  it('goodput falls while throughput still rises', () => {
    const at = (seats: number): { total: number; good: number } => {
      const results = loop(`--gpu l4 --weight-bits 8 --max-running ${seats}`, seats, seats * 4, () => ({ promptTokens: 800, outputTokens: 64 }));
      const good = results.filter((r) => ttft(r) <= 500 && tpot(r) <= 60).length;
      return { total: throughput(results), good: (good / Math.max(...results.map((r) => r.last!))) * 1000 };
    };
    const [few, many] = [at(2), at(24)];
    assert.ok(many.total > 1.5 * few.total, `throughput ${few.total} → ${many.total}`);
    assert.ok(many.good < few.good, `goodput ${few.good} → ${many.good}`);
  });

  it('p99 moves while the mean hardly does: a rare long prompt holds up everyone for one step', () => {
    const arrivals: VirtualArrival[] = Array.from({ length: 4 }, () => ({ at: 0, promptTokens: 50, outputTokens: 1200 }));
    const gaps = (flags: string, withLong: boolean): number[] => {
      const long = withLong ? Array.from({ length: 15 }, (_, i) => ({ at: 200 + i * 250, promptTokens: 1500, outputTokens: 1 })) : [];
      const results = run(flags, [...arrivals, ...long]).slice(0, 4);
      return results.flatMap((r) => r.emissions.slice(1).map(([at], i) => at - r.emissions[i]![0]));
    };
    const [calm, busy] = [gaps('', false), gaps('', true)];
    assert.ok(percentile(busy, 0.99) > 10 * percentile(calm, 0.99), 'p99');
    assert.ok(mean(busy) < 1.25 * mean(calm), 'mean');
  });

  it('chunked prefill bounds what a long prompt costs the others; whole prefill does not', () => {
    const spike = (flags: string, length: number): number => {
      const [steady] = run(flags, [{ at: 0, promptTokens: 50, outputTokens: 400 }, { at: 300, promptTokens: length, outputTokens: 1 }]);
      return Math.max(...steady!.emissions.slice(1).map(([at], i) => at - steady!.emissions[i]![0]));
    };
    const whole = [2000, 4000, 8000].map((length) => spike('', length));
    const chunked = [2000, 4000, 8000].map((length) => spike('--chunked-prefill 256', length));
    assert.ok(whole[1]! > 1.8 * whole[0]! && whole[2]! > 1.8 * whole[1]!, 'grows with the prompt');
    for (const gap of chunked) assert.ok(gap < 1.5 * ((2 * 8.03e9 * 256) / usableFlops) * 1000, 'one chunk, whatever the prompt');
  });

  it('split pools: a long prompt does not touch the others; the transfer takes KV bytes over the link', () => {
    const [steady, long] = run('--split 1:1:10', [{ at: 0, promptTokens: 50, outputTokens: 400 }, { at: 300, promptTokens: 8000, outputTokens: 3 }]);
    const gaps = steady!.emissions.slice(2).map(([at], i) => at - steady!.emissions[i + 1]![0]);
    assert.ok(Math.max(...gaps) < 1.5 * mean(gaps));
    const transfer = ((8000 * kvBytes) / 10e9) * 1000;
    const firstGap = long!.emissions[1]![0] - long!.emissions[0]![0];
    assert.ok(firstGap >= transfer && firstGap <= transfer + 2.5 * readMs(8500), `${firstGap} after a transfer of ${transfer}`);
    assert.equal(long!.outputTokens, 3);
  });

  it('speculation gives (1 − p^(k+1)) / (1 − p) tokens a step', () => {
    const results = run('--speculative 3:0.7', Array.from({ length: 8 }, () => ({ at: 0, promptTokens: 100, outputTokens: 1000 })));
    const perStep = mean(results.map((r) => (r.outputTokens - 1) / (r.emissions.length - 1)));
    within(perStep, (1 - 0.7 ** 4) / (1 - 0.7), 0.03, 'tokens a step');
  });
});

describe('lab: prefix reuse', () => {
  const rules = 'Answer in two sentences. Never guess a number. '.repeat(60);
  const reuse = (system: (day: number) => string, question = 'How long?'): number[] => {
    const prompts = [1, 2, 3].map((day) => renderChat([{ role: 'system', text: system(day) }, { role: 'user', text: question }]));
    const arrivals = prompts.map((prompt, i) => ({ at: i * 10_000, promptTokens: prompt.length, prompt, outputTokens: 4 }));
    return run('', arrivals).map((r) => r.cachedTokens / r.promptTokens);
  };

  it('a date at the top of the prompt: nothing is reused; at its end: nearly all', () => {
    assert.deepEqual(reuse((day) => `Today is 2024-03-0${day}. ${rules}`), [0, 0, 0]);
    const [first, second, third] = reuse((day) => `${rules} Today is 2024-03-0${day}.`);
    assert.equal(first, 0);
    assert.ok(second! > 0.95 && third! > 0.95, `${second} ${third}`);
  });

  it('affinity beats round robin on hits and loses on balance, until it spills over', () => {
    const random = seededRandom(7);
    const arrivals = Array.from({ length: 240 }, (_, i) => ({
      at: i * 30,
      prefix: random() < 0.4 ? 'hot' : `tenant ${Math.floor(random() * 16)}`,
      sharedPrefix: 960,
      promptTokens: 1000,
      outputTokens: 60,
    }));
    const measure = (router: string): { hits: number; most: number } => {
      const results = run(`--replicas 4 --max-running 8 --kv-blocks 400 --router ${router}`, arrivals);
      const per = [0, 1, 2, 3].map((replica) => results.filter((r) => r.replica === replica).length);
      return { hits: results.reduce((sum, r) => sum + r.cachedTokens, 0) / results.reduce((sum, r) => sum + r.promptTokens, 0), most: Math.max(...per) / (results.length / 4) };
    };
    const [turns, affine, spilling] = [measure('round-robin'), measure('prefix-affinity --spill 1000'), measure('prefix-affinity --spill 4')];
    assert.ok(affine.hits > turns.hits + 0.05, `hits ${turns.hits} → ${affine.hits}`);
    assert.ok(affine.most > 1.5 && turns.most < 1.1, `balance ${turns.most} → ${affine.most}`);
    assert.ok(spilling.most < affine.most && spilling.hits > turns.hits, `spill-over ${spilling.most}, ${spilling.hits}`);
  });
});

describe('lab: sharing', () => {
  const tenant = (name: string, more: Partial<Tenant> = {}): Tenant => ({ name, keys: [], weight: 1, priority: 0, quota: null, ...more });
  const heavyAndLight: VirtualArrival[] = [
    ...Array.from({ length: 300 }, (_, i) => ({ at: i, tenant: 'heavy', promptTokens: 100, outputTokens: 128 })),
    ...Array.from({ length: 20 }, (_, i) => ({ at: 500 + i * 300, tenant: 'light', priority: -1, promptTokens: 100, outputTokens: 32 })),
  ];
  const lightTtft = (flags: string, tenants: Tenant[] = [tenant('heavy'), tenant('light')]): number =>
    percentile(run(flags, heavyAndLight, tenants).filter((r) => r.tenant === 'light').map(ttft), 0.95);

  it('fair queuing keeps a light tenant inside its SLO next to a heavy one; first come, first served does not', () => {
    assert.ok(lightTtft('') > 1000);
    assert.ok(lightTtft('--fair') < 500);
    assert.ok(lightTtft('--priority') < 500, 'so does a class of its own');
  });

  it('shares follow the weights within 5 %', () => {
    const tenants = [tenant('a', { weight: 3 }), tenant('b', { weight: 1 })];
    const arrivals = ['a', 'b'].flatMap((name) => Array.from({ length: 400 }, (_, i) => ({ at: 0, id: `${name}${i}`, tenant: name, promptTokens: 50, outputTokens: 40 })));
    const until = 2500;
    const served = (name: string): number =>
      runVirtual(assemble({ ...parseSimulatorArgs(['--fair']), tenants }), arrivals, { until })
        .filter((r) => r.tenant === name)
        .reduce((sum, r) => sum + r.outputTokens, 0);
    within(served('a') / served('b'), 3, 0.05, 'ratio');
  });

  it('a token bucket lets the burst and then the rate through, and says when to come back', () => {
    const tenants = [tenant('a', { quota: { tokensPerSecond: 100, burst: 200 } })];
    const results = run('', Array.from({ length: 100 }, (_, i) => ({ at: i * 100, tenant: 'a', promptTokens: 30, outputTokens: 20 })), tenants);
    const passed = results.filter((r) => r.outcome === 'ok');
    // 200 saved up and 100 a second over 9.9 s, at 50 a request.
    assert.equal(passed.length, Math.floor((200 + 990) / 50));
    const refused = results.find((r) => r.outcome === 'refused')!;
    assert.equal(refused.refusal!.status, 429);
    const later = run('', [...Array.from({ length: 4 }, () => ({ at: 0, tenant: 'a', promptTokens: 30, outputTokens: 20 })), { at: 1, tenant: 'a', promptTokens: 30, outputTokens: 20 }], tenants);
    within(later[4]!.refusal!.retryAfter!, 0.5, 0.01, 'Retry-After');
  });

  it('a bounded queue refuses at once; without it the wait grows', () => {
    const burst = Array.from({ length: 60 }, () => ({ at: 0, promptTokens: 50, outputTokens: 128 }));
    const bounded = run('--queue 8', burst);
    assert.equal(bounded.filter((r) => r.outcome === 'ok').length, 16 + 8);
    assert.ok(bounded.every((r) => r.outcome === 'ok' || (r.refusal!.status === 429 && r.refusal!.retryAfter! > 0)));
    assert.ok(Math.max(...run('', burst).map(ttft)) > 2.5 * Math.max(...bounded.filter((r) => r.outcome === 'ok').map(ttft)));
  });

  it('shedding keeps the wait of those it lets in below its limit', () => {
    const arrivals = Array.from({ length: 600 }, (_, i) => ({ at: i * 15, promptTokens: 50, outputTokens: 128 }));
    const results = run('--shed 300', arrivals);
    const admitted = results.filter((r) => r.outcome === 'ok').slice(100);
    assert.ok(results.some((r) => r.refusal?.status === 503));
    assert.ok(percentile(admitted.map((r) => r.scheduled! - r.arrival), 0.95) < 300 * 1.25);
    assert.ok(Math.max(...run('', arrivals).map(ttft)) > 1000, 'without it the queue grows');
  });
});

describe('lab: fleets', () => {
  it('an autoscaler adds replicas under load, each after its slow start, and the queue drains faster', () => {
    const arrivals = Array.from({ length: 900 }, (_, i) => ({ at: i * 12, promptTokens: 50, outputTokens: 128 }));
    const fixed = run('', arrivals);
    const scaled = run('--autoscale 1:4:queue:4 --slow-start 2000', arrivals);
    const second = scaled.find((r) => r.replica === 1);
    assert.ok(second && second.arrival >= 3000, 'not before a look (1 s) and the slow start (2 s)');
    assert.ok(percentile(scaled.map(ttft), 0.95) < 0.5 * percentile(fixed.map(ttft), 0.95));
    assert.ok(scaled.every((r) => r.replica! < 4));
  });

  it('a starting replica takes as long as its weights take to load', () => {
    const arrivals = Array.from({ length: 900 }, (_, i) => ({ at: i * 12, promptTokens: 50, outputTokens: 128 }));
    const second = run('--autoscale 1:2:queue:4', arrivals).find((r) => r.replica === 1)!;
    within(second.arrival, 1000 + (weights / 3e9) * 1000, 0.25, 'first request on the new replica');
  });

  it('a dead replica loses its share of round robin', () => {
    const results = run('--replicas 4 --fault dead:2', Array.from({ length: 40 }, (_, i) => ({ at: i * 100, promptTokens: 10, outputTokens: 4 })));
    assert.equal(results.filter((r) => r.outcome === 'lost').length, 10);
  });
});

describe('lab: memory', () => {
  it('too few blocks: the youngest is preempted and recomputed, and everyone still gets every token', () => {
    const arrivals = Array.from({ length: 4 }, () => ({ at: 0, promptTokens: 100, outputTokens: 200 }));
    const roomy = run('', arrivals);
    const tight = run('--kv-blocks 40', arrivals);
    assert.ok(tight.every((r) => r.outcome === 'ok' && r.outputTokens === 200));
    assert.ok(tight[3]!.last! > 1.3 * roomy[3]!.last!);
  });

  it('a request that can never fit is refused', () => {
    const [result] = run('--kv-blocks 10', [{ at: 0, promptTokens: 200, outputTokens: 10 }]);
    assert.equal(result!.refusal!.status, 400);
  });
});
