import assert from 'node:assert/strict';
import * as fc from 'fast-check';
import { bootstrapDifference, generator, median, orderStatisticInterval, orderStatisticRanks, percentile, percentiles, pooledInterval, samplesNeeded, sorted, summarise, summarisePooled, tQuantile, wilson } from '../../../src/report/statistics';

const close = (a: number, b: number, within: number): void => {
  assert.ok(Math.abs(a - b) <= within, `${a} is not ${b} ± ${within}`);
};
const numbers = fc.array(fc.double({ min: -1e6, max: 1e6, noNaN: true }), { minLength: 1, maxLength: 200 });

describe('percentiles', () => {
  // Python's statistics.quantiles(values, n=100, method='inclusive'), which is type 7, gave these.
  const values = [21.741, 62.861, 36.957, 74.091, 78.62, 5.422, 1.06, 145.351, 24.019, 21.36, 434.911, 50.83, 144.857, 51.755, 81.525, 13.06, 80.598];

  it('are type 7, as an independent implementation has them', () => {
    const order = sorted(values);
    close(percentile(order, 0.5), 51.755, 1e-9);
    close(percentile(order, 0.9), 145.0546, 1e-9);
    close(percentile(order, 0.95), 203.263, 1e-9);
    close(percentile(order, 0.99), 388.5814, 1e-9);
    assert.equal(percentile(sorted([1, 2, 3, 4]), 0.5), 2.5);
    close(percentile(sorted([10, 20]), 0.99), 19.9, 1e-12);
    assert.equal(percentile(sorted([7]), 0.99), 7);
  });

  it('do not change when the values are permuted', () => {
    fc.assert(fc.property(numbers, fc.infiniteStream(fc.nat()), (list, random) => {
      const shuffled = list.map((v) => [random.next().value as number, v] as const).sort((a, b) => a[0] - b[0]).map(([, v]) => v);
      for (const p of Object.values(percentiles)) assert.equal(percentile(sorted(shuffled), p), percentile(sorted(list), p));
    }));
  });

  it('rise with p and stay between the least and the greatest', () => {
    fc.assert(fc.property(numbers, (list) => {
      const s = summarise(list)!;
      assert.ok(s.min <= s.p50 && s.p50 <= s.p90 && s.p90 <= s.p95 && s.p95 <= s.p99 && s.p99 <= s.max);
      assert.ok(s.mean >= s.min - 1e-6 && s.mean <= s.max + 1e-6);
    }));
  });

  it('shift with the values', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: -1_000_000, max: 1_000_000 }), { minLength: 1 }), fc.integer({ min: -1_000_000, max: 1_000_000 }), (list, by) => {
      for (const p of Object.values(percentiles)) close(percentile(sorted(list.map((v) => v + by)), p), percentile(sorted(list), p) + by, 1e-6);
    }));
  });

  it('do not exist of an empty set or of what is not a number', () => {
    assert.throws(() => percentile(sorted([]), 0.5), RangeError);
    assert.throws(() => sorted([1, Number.NaN]), RangeError);
    assert.equal(summarise([]), null);
    assert.equal(summarisePooled([[], []]), null);
    assert.equal(median([]), null);
  });
});

/** P(l ≤ B < u) for B ~ Bin(n, p), in logarithms of factorials: nothing shared with the code under test. */
function exactCoverage(n: number, p: number, lower: number | null, upper: number | null): number {
  const logFactorial = [0];
  for (let k = 1; k <= n; k += 1) logFactorial.push(logFactorial[k - 1]! + Math.log(k));
  let sum = 0;
  for (let k = lower ?? 0; k <= (upper ?? n + 1) - 1; k += 1) {
    sum += Math.exp(logFactorial[n]! - logFactorial[k]! - logFactorial[n - k]! + k * Math.log(p) + (n - k) * Math.log(1 - p));
  }
  return sum;
}

describe('order-statistic intervals', () => {
  for (const n of [6, 20, 36, 72, 100, 368, 1000]) {
    it(`cover at least 95 % by the exact binomial sum at n = ${n}, and no narrower ranks would keep both tails`, () => {
      for (const p of Object.values(percentiles)) {
        const [lower, upper] = orderStatisticRanks(n, p);
        assert.ok(exactCoverage(n, p, lower, upper) >= 0.95);
        // Each tail holds at most 2.5 %, and with the next rank inward it would hold more.
        if (lower !== null) assert.ok(1 - exactCoverage(n, p, lower, null) <= 0.025);
        assert.ok(1 - exactCoverage(n, p, (lower ?? 0) + 1, null) > 0.025);
        if (upper !== null) assert.ok(1 - exactCoverage(n, p, null, upper) <= 0.025);
        assert.ok(1 - exactCoverage(n, p, null, (upper ?? n + 1) - 1) > 0.025);
      }
    });

    it(`cover as often as the binomial sum says when values are drawn, n = ${n}`, () => {
      const random = generator(n);
      const rounds = n > 300 ? 400 : 2000;
      for (const p of Object.values(percentiles)) {
        const [lower, upper] = orderStatisticRanks(n, p);
        let hits = 0;
        for (let i = 0; i < rounds; i += 1) {
          const [low, high] = orderStatisticInterval(sorted(Array.from({ length: n }, random)), p);
          if ((low === null || low <= p) && (high === null || high >= p)) hits += 1;
        }
        const exact = exactCoverage(n, p, lower, upper);
        close(hits / rounds, exact, 4 * Math.sqrt((exact * (1 - exact)) / rounds) + 2 / rounds);
      }
    });
  }

  it('have both bounds first at n = 6, 36, 72 and 368', () => {
    for (const [p, first] of [[0.5, 6], [0.9, 36], [0.95, 72], [0.99, 368]] as const) {
      assert.equal(samplesNeeded(p), first);
      assert.ok(!orderStatisticRanks(first, p).includes(null));
      assert.ok(orderStatisticRanks(first - 1, p).includes(null));
    }
    assert.deepEqual(orderStatisticRanks(0, 0.5), [null, null]);
    assert.deepEqual(orderStatisticRanks(6, 0.5), [1, 6]);
    assert.deepEqual(orderStatisticRanks(20, 0.5), [6, 15]);
  });
});

describe('pooled intervals', () => {
  /** Requests that differ: each has a level of its own, its gaps scatter around it. */
  function draw(requests: number, perRequest: number, random: () => number): number[][] {
    const normal = (): number => Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
    return Array.from({ length: requests }, () => {
      const level = Math.exp(3 + 0.3 * normal());
      return Array.from({ length: perRequest }, () => level * Math.exp(0.25 * normal()));
    });
  }
  const truth = sorted(draw(20_000, 20, generator(99)).flat());

  for (const requests of [20, 40, 100]) {
    it(`cover 91–98 % with ${requests} requests, where taking gaps as independent covers far less`, () => {
      const random = generator(requests);
      const rounds = 500;
      const covered = { clustered: 0, independent: 0 };
      const median = percentile(truth, 0.5);
      const inside = ([low, high]: readonly [number | null, number | null]): boolean => (low ?? Number.NEGATIVE_INFINITY) <= median && median <= (high ?? Number.POSITIVE_INFINITY);
      for (let i = 0; i < rounds; i += 1) {
        const groups = draw(requests, 50, random);
        if (inside(pooledInterval(groups, 0.5))) covered.clustered += 1;
        if (inside(orderStatisticInterval(sorted(groups.flat()), 0.5))) covered.independent += 1;
      }
      // 500 rounds know a share of 95 % to about ± 2 %.
      assert.ok(covered.clustered / rounds >= 0.91 - 0.01 && covered.clustered / rounds <= 0.98 + 0.01, String(covered.clustered / rounds));
      assert.ok(covered.independent / rounds < 0.8, String(covered.independent / rounds));
    });
  }

  it('cover p90 as well', () => {
    const random = generator(5);
    const at = percentile(truth, 0.9);
    let hits = 0;
    for (let i = 0; i < 500; i += 1) {
      const [low, high] = pooledInterval(draw(40, 50, random), 0.9);
      if ((low ?? 0) <= at && at <= (high ?? Number.POSITIVE_INFINITY)) hits += 1;
    }
    assert.ok(hits / 500 >= 0.9 && hits / 500 <= 0.99, String(hits / 500));
  });

  it('are wider for one long request than for many, and none for fewer than six', () => {
    assert.deepEqual(pooledInterval([[1, 2, 3, 4]], 0.5), [null, null]);
    assert.deepEqual(pooledInterval([[1, 2], []], 0.5), [null, null]);
    assert.deepEqual(summarisePooled([[1, 2, 3]])!.ci95.p50, [null, null]);
    // A few requests that happen to agree prove nothing.
    assert.deepEqual(pooledInterval(Array.from({ length: 5 }, () => [5, 5]), 0.5), [null, null]);
    assert.deepEqual(pooledInterval(Array.from({ length: 6 }, () => [5, 5]), 0.5), [5, 5]);
    // Half the requests lie below, half above: no bound at all.
    assert.deepEqual(pooledInterval([[1, 1], [1, 1], [1, 1], [9, 9], [9, 9], [9, 9]], 0.5), [null, null]);
  });

  it('pool the values of all requests', () => {
    const s = summarisePooled([[1, 2], [3], [4, 5]])!;
    assert.equal(s.n, 5);
    assert.equal(s.p50, 3);
    assert.equal(s.mean, 3);
  });
});

describe('t, Wilson and the bootstrap', () => {
  it('has the tabulated quantiles of Student’s t', () => {
    // Abramowitz and Stegun, table 26.10 (and its continuation).
    for (const [degrees, q] of [[1, 12.706], [2, 4.303], [3, 3.182], [4, 2.776], [9, 2.262], [10, 2.228], [19, 2.093], [29, 2.045], [30, 2.042], [60, 2.0], [120, 1.98], [999, 1.962]] as const) close(tQuantile(0.975, degrees), q, 6e-4);
    close(tQuantile(0.995, 5), 4.032, 6e-4);
  });

  it('has Wilson’s interval as written in his paper’s formula', () => {
    const [low, high] = wilson(15, 20);
    close(low, 0.5313, 1e-4);
    close(high, 0.8881, 1e-4);
    assert.deepEqual(wilson(0, 0), [0, 1]);
    close(wilson(20, 20)[0], 0.8389, 1e-4);
    assert.equal(wilson(20, 20)[1], 1);
    assert.equal(wilson(0, 5)[0], 0);
  });

  it('finds the difference of two medians and gives the same interval for the same seed', () => {
    const random = generator(1);
    const a = Array.from({ length: 60 }, () => 100 + 20 * random());
    const b = Array.from({ length: 60 }, () => 130 + 20 * random());
    const found = bootstrapDifference(a, b, 0.5, 7)!;
    close(found.difference, 30, 5);
    assert.ok(found.ci95[0] > 20 && found.ci95[0] < found.difference && found.difference < found.ci95[1] && found.ci95[1] < 40);
    assert.deepEqual(bootstrapDifference(a, b, 0.5, 7), found);
    assert.notDeepEqual(bootstrapDifference(a, b, 0.5, 8)!.ci95, found.ci95);
    assert.equal(bootstrapDifference([], b, 0.5, 7), null);
  });

  it('covers the true difference of medians about 95 times in 100', () => {
    const random = generator(12);
    let hits = 0;
    for (let i = 0; i < 300; i += 1) {
      const draw = (shift: number): number[] => Array.from({ length: 40 }, () => shift - 50 * Math.log(1 - random()));
      const { ci95 } = bootstrapDifference(draw(0), draw(10), 0.5, i, 400)!;
      if (ci95[0] <= 10 && 10 <= ci95[1]) hits += 1;
    }
    assert.ok(hits / 300 >= 0.9, String(hits / 300));
  });

  it('keeps the gaps of one request together', () => {
    const random = generator(3);
    const requests = Array.from({ length: 10 }, () => {
      const level = 10 + 20 * random();
      return Array.from({ length: 100 }, () => level + random());
    });
    const width = ([low, high]: readonly [number, number]): number => high - low;
    const clustered = width(bootstrapDifference(requests, requests, 0.5, 1)!.ci95);
    const independent = width(bootstrapDifference(requests.flat(), requests.flat(), 0.5, 1)!.ci95);
    assert.ok(clustered > 3 * independent);
  });

  it('resamples as sorting each draw would', () => {
    fc.assert(fc.property(fc.array(fc.integer({ min: 0, max: 50 }), { minLength: 1, maxLength: 20 }), fc.nat(), (list, seed) => {
      // With one draw both ends of the interval are that draw: redo it by hand.
      const found = bootstrapDifference([0], list, 0.9, seed, 1)!;
      const random = generator(seed);
      const again = Array.from(list, () => list[Math.floor(random() * list.length)]!);
      close(found.ci95[0], percentile(sorted(again), 0.9), 1e-9);
    }));
  });
});
