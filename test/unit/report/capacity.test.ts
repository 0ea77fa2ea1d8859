import assert from 'node:assert/strict';
import { busyThroughput, clientBottleneck, knee, queueGrowth, type LoadStep } from '../../../src/report/capacity';
import { generator } from '../../../src/report/statistics';
import { failed, makeSample, steady } from './makeSample';

describe('the knee', () => {
  it('is the largest load that is met', () => {
    const steps: LoadStep[] = [{ load: 1, verdict: 'met' }, { load: 2, verdict: 'met' }, { load: 8, verdict: 'missed' }, { load: 4, verdict: 'unclear' }];
    assert.equal(knee(steps)?.load, 2);
    assert.equal(knee([{ load: 1, verdict: 'missed' }]), null);
    assert.equal(knee([]), null);
    // A step that was repeated counts as it came out last.
    assert.equal(knee([{ load: 4, verdict: 'met' }, { load: 4, verdict: 'missed' }, { load: 2, verdict: 'met' }])?.load, 2);
  });
});

describe('throughput while all slots are busy', () => {
  it('counts tokens where they arrived, within the span in which all slots were in flight', () => {
    // Two slots; the second starts 1000 ms later; the first ends at 2001.
    const a = steady(0, 101, 100, 20); // 20 tokens at 101, 201 … 2001; ends 2002
    const b = steady(1000, 101, 100, 20); // 1101 … 3001; ends 3002
    const span = busyThroughput([a, b], 2)!;
    assert.deepEqual([span.from, span.to], [1000, 2002]);
    // a: 1001 … 2001 = 11; b: 1101 … 2001 = 10.
    assert.ok(Math.abs(span.tokensPerSecond! - 21 / 1.002) < 1e-9);
    assert.ok(Math.abs(span.requestsPerSecond - 1 / 1.002) < 1e-9);
  });

  it('leaves warm-ups out, and is null when the slots were never all busy', () => {
    assert.equal(busyThroughput([steady(0, 10, 10, 5)], 2), null);
    assert.equal(busyThroughput([steady(0, 10, 10, 5), steady(0, 10, 10, 5, { role: 'warmup' })], 2), null);
    const unknown = makeSample({ start: 0, deltas: [[10, 'text', null], [20, 'text', null]], outputTokens: { count: null, source: null }, streamTokens: null });
    assert.equal(busyThroughput([unknown], 1)?.tokensPerSecond, null);
  });

  it('counts hidden reasoning with the frames that were seen', () => {
    const hidden = makeSample({ start: 0, deltas: [[50, 'text', 1], [60, 'text', 1]], end: 100, outputTokens: { count: 10, source: 'token_ids' }, streamTokens: 2 });
    assert.equal(busyThroughput([hidden], 1)?.tokensPerSecond, 100);
  });
});

describe('a queue', () => {
  const random = generator(6);
  /** One server, `service` ms a request, arrivals each `every` ms with some scatter. */
  function arrivals(every: number, service: number, n = 60) {
    let free = 0;
    return Array.from({ length: n }, (_, i) => {
      const due = i * every + random() * every;
      free = Math.max(free, due) + service;
      return makeSample({ due, start: due, deltas: [[free, 'text', 1]] });
    }).sort((a, b) => a.due - b.due);
  }

  it('grows when requests come faster than they are served, by 1 − μ/λ', () => {
    const growth = queueGrowth(arrivals(50, 100))!;
    assert.equal(growth.growing, true);
    // λ = 20/s, μ = 10/s: the wait gains as much as the run lasts.
    assert.ok(growth.perSecond > 850 && growth.perSecond < 1150, String(growth.perSecond));
  });

  it('does not grow when they come slower', () => {
    assert.equal(queueGrowth(arrivals(200, 100))?.growing, false);
    assert.equal(queueGrowth(arrivals(200, 100, 5)), null);
    assert.equal(queueGrowth(Array.from({ length: 12 }, () => failed(0, { kind: 'connect' }))), null);
  });
});

describe('the client as the limit', () => {
  const slo = { ttft: 500, tpot: 30, attainment: 0.95 };
  const bad = [steady(0, 600, 20, 11)];

  it('is told by its own numbers', () => {
    assert.equal(clientBottleneck({ loopUse: 0.3, clockErrorP99: 2, lateP99: 1 }, bad, slo), null);
    assert.equal(clientBottleneck({ loopUse: null, clockErrorP99: null, lateP99: null }, [], slo), null);
    assert.match(clientBottleneck({ loopUse: 0.93, clockErrorP99: 160, lateP99: 180 }, bad, slo) ?? '', /93 of 100.*160 ms late.*started 180 ms late/);
  });

  it('late stamps count only where they could have changed what was good', () => {
    const late = { loopUse: 0.1, clockErrorP99: 60, lateP99: 1 };
    assert.match(clientBottleneck({ ...late, clockErrorP99: 200 }, bad, slo) ?? '', /200 ms late/);
    // Good although its first token may have been stamped late; the pace is at most 20 + 60 / 10 = 26 ms.
    assert.equal(clientBottleneck(late, [steady(0, 100, 20, 11)], slo), null);
    // 25 + 60 / 10 = 31 ms would break the limit of 30 ms.
    assert.match(clientBottleneck(late, [steady(0, 100, 25, 11)], slo) ?? '', /60 ms late/);
    // What failed, or was wrong, is so with every clock.
    assert.equal(clientBottleneck(late, [steady(0, 100, 20, 11), failed(0, { kind: 'connect' }), steady(0, 100, 25, 11, { outcome: { kind: 'invalid' } })], slo), null);
    // Late stamps make gaps shorter and longer.
    assert.match(clientBottleneck(late, [steady(0, 100, 20, 11)], { ...slo, gapP99: 500 }) ?? '', /60 ms late/);
  });
});
