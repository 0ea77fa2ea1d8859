import assert from 'node:assert/strict';
import { defaultBreaker } from '../../../src/probe/breaker';
import { dialects } from '../../../src/probe/dialect/index';
import { endpointFromUrl, type Endpoint } from '../../../src/probe/endpoint';
import { createMemory, type EndpointMemory } from '../../../src/probe/memory';
import { defaultNetwork, defaultTimeouts } from '../../../src/probe/network';
import { defaultProbeSettings, planProbe, type ProbePlan, type ProbeSettings, type Target } from '../../../src/probe/plan';
import { run, type RunResult, type RunStep } from '../../../src/probe/run';
import { checkStamps, type Sample } from '../../../src/report/sample';
import { chatStream, fakeWorld, type FakeAnswer, type FakeWorld } from './fakeRecorder';

const prompt = { messages: [{ role: 'user' as const, text: 'Say hello' }], tools: [] };
const never = new AbortController().signal;
const ok: FakeAnswer = { reads: chatStream(5) };

function target(more: Partial<Target> = {}, endpoint: Partial<Endpoint> = {}): Target {
  return { endpoint: { ...endpointFromUrl('http://h/v1'), ...endpoint }, dialect: dialects['openai-chat'], model: 'm', server: null, key: 'planted-key-000', timeouts: defaultTimeouts, network: defaultNetwork, memory: createMemory(), ...more };
}

function plan(settings: Partial<ProbeSettings> = {}, to = target()): ProbePlan {
  return planProbe(to, prompt, { ...defaultProbeSettings, warmup: 0, requests: 4, ...settings });
}

interface Ran {
  readonly samples: Sample[];
  readonly steps: RunStep[];
  readonly result: RunResult;
}

async function finish(of: ProbePlan, world: FakeWorld, signal = never, onStep: (step: RunStep) => void = () => undefined): Promise<Ran> {
  const steps: RunStep[] = [];
  const running = run(of, world, signal);
  for (;;) {
    const next = await running.next();
    if (next.done) return { samples: steps.flatMap((step) => (step.type === 'sample' ? [step.sample] : [])), steps, result: next.value };
    steps.push(next.value);
    onStep(next.value);
  }
}

function bodyOf(world: FakeWorld, index: number): Record<string, unknown> {
  return JSON.parse(world.sent[index]!.request.body) as Record<string, unknown>;
}

describe('a run', () => {
  it('sends warm-ups first, outside the window, and counts stamps from the first measured start', async () => {
    const world = fakeWorld(() => ok);
    const { samples, result } = await finish(plan({ warmup: 2, requests: 3 }), world);
    assert.deepEqual(samples.map(({ id, role }) => [id, role]), [['warmup-1', 'warmup'], ['warmup-2', 'warmup'], ['1', 'measured'], ['2', 'measured'], ['3', 'measured']]);
    assert.equal(samples[2]!.start, 0);
    assert.ok(samples[0]!.start < 0 && samples[1]!.start < 0);
    assert.equal(result.stopped, null);
    assert.deepEqual(result.clockErrors, [0.1, 0.2]);
    assert.equal(result.origin, world.sent[2]!.at);
    for (const sample of samples) {
      assert.equal(checkStamps(sample), null);
      assert.equal(sample.outcome.kind, 'ok');
      assert.deepEqual([sample.outputTokens.count, sample.promptTokens, sample.deltas.length, sample.finish], [5, 10, 5, 'stop']);
      assert.deepEqual(sample.visibleChars, [3, 3, 3, 3, 3]);
    }
    assert.deepEqual([world.opened, world.closed], [1, 1]);
  });

  it('keeps as many in flight as the concurrency, warm-up included, and warms as many connections', async () => {
    const world = fakeWorld(() => ok);
    await finish(plan({ warmup: 4, requests: 12, concurrency: 4 }), world);
    assert.equal(Math.max(...world.sent.map(({ inFlight }) => inFlight)), 4);
    assert.equal(world.sent.length, 16);
    assert.deepEqual(world.warmed, [{ url: 'http://h/v1', count: 4 }]);
  });

  it('uses its recorders in turn', async () => {
    const world = fakeWorld(() => ok);
    const { result } = await finish(plan({ requests: 6, recorders: 3, concurrency: 3 }), world);
    assert.deepEqual([world.opened, world.closed], [3, 3]);
    assert.deepEqual(world.warmed.map(({ count }) => count), [1, 1, 1]);
    assert.equal(result.clockErrors.length, 6);
  });

  it('keeps a schedule, whatever is in flight', async () => {
    const base = plan({ requests: 3 });
    const world = fakeWorld(() => ({ ...ok, wait: 0 }));
    const { samples } = await finish({ ...base, shots: base.shots.map((shot, k) => ({ ...shot, dueAt: k * 100 })) }, world);
    assert.deepEqual(world.sent.map(({ at }) => at - world.sent[0]!.at), [0, 100, 200]);
    assert.deepEqual(samples.map(({ due }) => due), [0, 100, 200]);
  });

  describe('field negotiation', () => {
    const pickyServer = (field: string): ((request: { body: string }) => FakeAnswer) => (request) =>
      request.body.includes(`"${field}"`) ? { status: 400, reads: [JSON.stringify({ error: { message: `Unrecognized request argument supplied: ${field}`, param: field } })] } : ok;

    it('drops a refused field in the warm-up, remembers it, and asks no more', async () => {
      const memory = createMemory();
      const world = fakeWorld(pickyServer('stream_options'));
      const { samples } = await finish(plan({ warmup: 1, requests: 2 }, target({ memory })), world);
      assert.deepEqual(samples.map(({ id, role }) => [id, role]), [['warmup-1', 'negotiation'], ['warmup-1.2', 'warmup'], ['1', 'measured'], ['2', 'measured']]);
      assert.deepEqual(memory.recall('http://h/v1').refused, ['stream_options']);
      assert.ok('stream_options' in bodyOf(world, 0) && !('stream_options' in bodyOf(world, 1)));
      const again = fakeWorld(pickyServer('stream_options'));
      assert.equal((await finish(plan({ warmup: 0, requests: 1 }, target({ memory })), again)).samples.length, 1);
    });

    it('without a warm-up makes the rejected attempt a sample outside the window', async () => {
      const world = fakeWorld(pickyServer('stream_options'));
      const { samples } = await finish(plan({ requests: 2 }), world);
      assert.deepEqual(samples.map(({ id, role, outcome }) => [id, role, outcome.kind]), [['1', 'negotiation', 'status'], ['1.2', 'measured', 'ok'], ['2', 'measured', 'ok']]);
      assert.equal(samples[1]!.start, 0);
      assert.equal(samples[1]!.labels['again'], '1');
      assert.ok(samples[0]!.start < 0);
    });

    it('swaps max_tokens for max_completion_tokens where a server wants that', async () => {
      const world = fakeWorld(pickyServer('max_tokens'));
      const { samples } = await finish(plan({ requests: 1 }), world);
      assert.equal(samples.at(-1)!.outcome.kind, 'ok');
      assert.ok('max_completion_tokens' in bodyOf(world, 1) && !('max_tokens' in bodyOf(world, 1)));
    });

    it('does not ask for ever: a field of the user’s own stays', async () => {
      const world = fakeWorld(pickyServer('temperature'));
      const { samples } = await finish(plan({ requests: 2 }, target({}, { body: { temperature: 0 } })), world);
      assert.deepEqual(samples.map(({ role, outcome }) => [role, outcome.kind]), [['measured', 'status'], ['measured', 'status']]);
    });
  });

  describe('cold prompts', () => {
    it('begin with the nonce, or carry cache_salt for vLLM', async () => {
      const world = fakeWorld(() => ok);
      await finish(plan({ requests: 3, cache: 'cold' }), world);
      const texts = world.sent.map((_, k) => (bodyOf(world, k)['messages'] as { content: string }[])[0]!.content);
      assert.ok(texts.every((text) => /^[0-9a-f]{16}\nSay hello$/.test(text)), texts[0]);
      assert.equal(new Set(texts).size, 3);
      const vllm = fakeWorld(() => ok);
      await finish(plan({ requests: 2, cache: 'cold' }, target({ server: 'vllm' })), vllm);
      const salts = vllm.sent.map((_, k) => bodyOf(vllm, k)['cache_salt']);
      assert.ok(salts.every((salt) => /^[0-9a-f]{16}$/.test(String(salt))) && salts[0] !== salts[1]);
      assert.equal((bodyOf(vllm, 0)['messages'] as { content: string }[])[0]!.content, 'Say hello');
    });
  });

  describe('that fails', () => {
    it('is stopped by the breaker, and says with what', async () => {
      const world = fakeWorld(() => ({ status: 503, reads: ['{"error":{"message":"overloaded"}}'] }));
      const { samples, result } = await finish(plan({ requests: 100 }), world);
      assert.equal(samples.length, 5);
      assert.equal(result.stopped?.by, 'breaker');
      assert.match(result.stopped.detail, /5 requests in a row failed.*overloaded/);
    });

    it('keeps the key out of the reason for stopping', async () => {
      const world = fakeWorld(() => ({ status: 401, reads: ['{"error":{"message":"the key planted-KEY-4711 is wrong"}}'] }));
      const { result } = await finish(plan({ requests: 100 }, { ...target(), key: 'planted-KEY-4711' }), world);
      assert.match(result.stopped?.detail ?? '', /the key \[redacted\] is wrong/);
    });

    it('goes on without a breaker', async () => {
      const world = fakeWorld(() => ({ ending: { kind: 'connect', message: 'refused' } }));
      const { samples, result } = await finish(plan({ requests: 30, breaker: null }), world);
      assert.deepEqual([samples.length, result.stopped], [30, null]);
      assert.ok(samples.every(({ outcome }) => outcome.kind === 'connect'));
    });

    it('cancels what is in flight when the breaker stops it', async () => {
      const world = fakeWorld((_request, index) => (index === 0 ? { hangs: true } : { status: 500, reads: ['x'] }));
      const { samples, result } = await finish(plan({ requests: 50, concurrency: 2, breaker: { ...defaultBreaker, consecutive: 3 } }), world);
      assert.equal(result.stopped?.by, 'breaker');
      assert.deepEqual(samples.map(({ outcome }) => outcome.kind).sort(), ['cancelled', 'status', 'status', 'status']);
    });

    it('never shows the key, wherever the server puts it', async () => {
      const world = fakeWorld(() => ({ status: 401, reads: [JSON.stringify({ error: { message: 'Incorrect API key provided: planted-key-000' } })] }));
      const { samples } = await finish(plan({ requests: 1 }, target({}, { headers: { 'x-other': 'planted-other-1' } })), world);
      assert.match(samples[0]!.outcome.message!, /Incorrect API key provided: \[redacted\]/);
      assert.ok(!JSON.stringify(samples).includes('planted'));
    });
  });

  describe('with retries', () => {
    const retry = { attempts: 2, wait: 100, share: 5 };
    it('sends a temporary failure again as a new sample, waiting longer each time', async () => {
      const world = fakeWorld((_request, index) => (index < 2 ? { status: 429, reads: ['slow down'] } : ok));
      const { samples } = await finish(plan({ requests: 1, retry }), world);
      assert.deepEqual(samples.map(({ id, role, outcome }) => [id, role, outcome.kind]), [['1', 'measured', 'status'], ['1.2', 'measured', 'status'], ['1.3', 'measured', 'ok']]);
      assert.ok(world.slept[0]! >= 50 && world.slept[0]! <= 100 && world.slept[1]! >= 100 && world.slept[1]! <= 200, String(world.slept));
    });

    it('waits as long as the server asks', async () => {
      const world = fakeWorld((_request, index) => (index === 0 ? { status: 429, headers: [['retry-after', '7']], reads: ['x'] } : ok));
      await finish(plan({ requests: 1, retry }), world);
      assert.equal(world.slept[0], 7000);
    });

    it('does not send again what will fail again, nor more than its share', async () => {
      const denied = fakeWorld(() => ({ status: 401, reads: ['no'] }));
      assert.equal((await finish(plan({ requests: 2, retry }), denied)).samples.length, 2);
      const busy = fakeWorld(() => ({ status: 503, reads: ['busy'] }));
      assert.equal((await finish(plan({ requests: 10, breaker: null, retry: { ...retry, share: 0.2 } }), busy)).samples.length, 12);
    });
  });

  describe('with a budget', () => {
    it('stops at the tokens', async () => {
      const world = fakeWorld(() => ok);
      const { samples, result } = await finish(plan({ requests: 100, budget: { requests: null, outputTokens: 12, cost: null } }), world);
      assert.equal(samples.length, 3);
      assert.equal(result.stopped?.by, 'budget');
      assert.match(result.stopped.detail, /15 output tokens.*12.*maxTotalTokens/);
    });

    it('stops at the money, cached tokens at their own price', async () => {
      const price = { currency: 'EUR', inputPerMillion: 1e6, cachedInputPerMillion: 0, outputPerMillion: 0 };
      const world = fakeWorld(() => ({ reads: chatStream(1, { prompt_tokens_details: { cached_tokens: 8 } }) }));
      const { samples, result } = await finish(plan({ requests: 100, budget: { requests: null, outputTokens: null, cost: 5 } }, target({}, { price })), world);
      assert.equal(samples.length, 3, 'two uncached tokens at 1 each');
      assert.equal(result.stopped?.by, 'budget');
    });

    it('counts attempts, not shots, and lets what is in flight end', async () => {
      const world = fakeWorld(() => ({ status: 500, reads: ['x'] }));
      const { samples, result } = await finish(plan({ requests: 4, concurrency: 2, breaker: null, budget: { requests: 5, outputTokens: null, cost: null }, retry: { attempts: 3, wait: 1, share: 1 } }), world);
      assert.equal(samples.length, 5);
      assert.ok(samples.every(({ outcome }) => outcome.kind === 'status'));
      assert.equal(result.stopped?.by, 'budget');
      const exact = await finish(plan({ requests: 4, budget: { requests: 4, outputTokens: null, cost: null } }), fakeWorld(() => ok));
      assert.deepEqual([exact.samples.length, exact.result.stopped], [4, null]);
    });
  });

  describe('that is cancelled', () => {
    it('keeps everything measured until then', async () => {
      const abort = new AbortController();
      const world = fakeWorld((_request, index) => (index < 3 ? ok : { hangs: true, reads: chatStream(2).slice(0, 2) }));
      const { samples, result } = await finish(plan({ requests: 10 }), world, abort.signal, (step) => {
        if (step.type === 'sample' && step.sample.id === '3') setImmediate(() => abort.abort());
      });
      assert.deepEqual(samples.map(({ id, outcome }) => [id, outcome.kind]), [['1', 'ok'], ['2', 'ok'], ['3', 'ok'], ['4', 'cancelled']]);
      assert.equal(samples[3]!.deltas.length, 1, 'what had arrived of the last one');
      assert.equal(result.stopped?.by, 'user');
      assert.equal(world.closed, 1);
    });

    it('before it began sends nothing', async () => {
      const abort = new AbortController();
      abort.abort();
      const world = fakeWorld(() => ok);
      const { samples, result } = await finish(plan(), world, abort.signal);
      assert.deepEqual([samples.length, world.sent.length, result.stopped?.by], [0, 0, 'user']);
      assert.equal(world.closed, world.opened);
    });

    it('in the warm-up still tells the warm-up', async () => {
      const abort = new AbortController();
      const world = fakeWorld(() => {
        setImmediate(() => abort.abort());
        return { hangs: true };
      });
      const { samples } = await finish(plan({ warmup: 1 }), world, abort.signal);
      assert.deepEqual(samples.map(({ role, outcome }) => [role, outcome.kind]), [['warmup', 'cancelled']]);
    });

    it('by a consumer that goes away closes everything', async () => {
      const world = fakeWorld((_request, index) => (index === 0 ? ok : { hangs: true }));
      for await (const step of run(plan({ requests: 5 }), world, never)) if (step.type === 'sample') break;
      assert.equal(world.closed, 1);
      assert.ok(world.sent.length <= 2);
    });
  });

  it('fails when a recorder cannot be opened', async () => {
    const world = fakeWorld(() => ok);
    await assert.rejects(finish(plan(), { ...world, open: () => Promise.reject(new Error('no thread')) }), /no thread/);
  });

  it('shares a memory between runs of one place only', async () => {
    const memory: EndpointMemory = createMemory({}, () => undefined);
    memory.refuse('http://h/v1?key=secret', 'stream_options');
    assert.deepEqual(Object.keys(memory.all), ['http://h/v1']);
    const elsewhere = fakeWorld(() => ok);
    await finish(plan({ requests: 1 }, target({ memory }, { url: 'http://other/v1' })), elsewhere);
    assert.ok('stream_options' in bodyOf(elsewhere, 0));
  });
});
