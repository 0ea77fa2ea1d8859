import assert from 'node:assert/strict';
import { batching, type BatchingVerdict } from '../../../../src/probe/scenario/batching';
import { inLab } from './virtualLab';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };
const scenario = batching({ prompt, short: 8, long: 64, trials: 3 });

describe('batching', () => {
  const expected: readonly (readonly [string, BatchingVerdict])[] = [
    ['', 'continuous'],
    ['--chunked-prefill 64', 'continuous'],
    ['--speculative 3:0.7', 'continuous'],
    ['--split 1:1', 'continuous'],
    ['--replicas 2', 'continuous'],
    ['--policy request-level', 'request-level'],
    ['--policy request-level --batch-cost 100', 'request-level'],
    ['--policy timed', 'timed'],
    ['--policy timed --batch-timeout 30', 'timed'],
    ['--policy timed --batch-timeout 250 --batch-cost 40', 'timed'],
    ['--max-running 1', 'request-level'],
  ];
  for (const [flags, verdict] of expected) {
    it(`of a server with ${flags === '' ? 'the defaults' : flags} is ${verdict}`, () => {
      const { result } = inLab(scenario, flags);
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
      assert.equal(result.sentences.length, 2);
    });
  }

  it('returns the short answer at step 8 when continuous, with the long one when not', () => {
    const continuous = inLab(scenario, '').result.evidence;
    assert.ok(Math.abs(continuous.shortTogetherMs! - continuous.shortAloneMs!) < 0.1 * continuous.shortAloneMs!);
    assert.deepEqual([continuous.streams, continuous.shortReturnedBeforeLong, continuous.thirdStartedBeforeLongEnded], [true, true, true]);
    const closed = inLab(scenario, '--policy request-level').result.evidence;
    assert.ok(Math.abs(closed.shortTogetherMs! - closed.longTogetherMs!) < 1);
    assert.deepEqual([closed.streams, closed.shortReturnedBeforeLong, closed.thirdStartedBeforeLongEnded, closed.oneByOne], [false, false, false, false]);
  });

  it('measures the window of a timed batcher within 5 %, and its period', () => {
    for (const timeout of [60, 100, 250]) {
      const { windowMs, periodMs } = inLab(scenario, `--policy timed --batch-timeout ${timeout} --batch-cost 20`).result.evidence;
      assert.ok(Math.abs(windowMs! - timeout) <= 0.05 * timeout, `window ${windowMs} of ${timeout}`);
      assert.ok(periodMs! >= timeout && periodMs! <= 1.4 * timeout, `period ${periodMs} of ${timeout}`);
    }
  });

  it('tells one at a time from a batch', () => {
    assert.equal(inLab(scenario, '--max-running 1').result.evidence.oneByOne, true);
    assert.match(inLab(scenario, '--max-running 1').result.sentences[0]!, /one request at a time/);
  });

  it('is unclear, with a reason, when the endpoint fails or the answers are short', () => {
    const failing = inLab(scenario, '', { after: (run) => ({ ...run, samples: run.samples.map((s) => ({ ...s, outcome: { kind: 'status', status: 500, message: 'broken' } })) }) });
    assert.equal(failing.result.verdict, 'unclear');
    assert.match(failing.result.evidence.reason!, /broken/);
    const short = inLab(scenario, '', { after: (run) => ({ ...run, samples: run.samples.map((s) => ({ ...s, outputTokens: { count: 9, source: 'final-usage' } })) }) });
    assert.match(short.result.evidence.reason!, /asks for a long answer/);
    const stopped = inLab(scenario, '', { after: (run, index) => (index === 2 ? { ...run, stopped: { by: 'user', detail: 'stopped by you' } } : run) });
    assert.deepEqual([stopped.result.verdict, stopped.result.stopped], ['unclear', 'stopped by you']);
    assert.ok(stopped.result.evidence.shortTogetherMs !== null);
  });
});
