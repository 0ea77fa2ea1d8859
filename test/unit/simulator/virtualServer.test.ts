import assert from 'node:assert/strict';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { dialects } from '../../../src/probe/dialect/index';
import { endpointFromUrl } from '../../../src/probe/endpoint';
import { createMemory } from '../../../src/probe/memory';
import { defaultNetwork, defaultTimeouts } from '../../../src/probe/network';
import { defaultProbeSettings, planProbe, type Target } from '../../../src/probe/plan';
import { run } from '../../../src/probe/run';
import { checkStamps, tpot, ttft, type Sample } from '../../../src/report/sample';
import { loneTtft } from '../../../src/simulator/formula';
import { VirtualServer, type VirtualExchange } from '../../../src/simulator/virtualServer';
import { sseJson } from './client';
import { virtualWorld } from './virtualWorld';

const server = (flags = ''): VirtualServer => new VirtualServer(parseSimulatorArgs(flags.split(' ').filter((flag) => flag !== '')));

const ask = (to: VirtualServer, tokens: number, fault?: string, signal?: AbortSignal): Promise<VirtualExchange> =>
  to.exchange(
    { method: 'POST', path: '/v1/chat/completions', headers: fault === undefined ? {} : { 'X-Fault': fault }, body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], stream: true, max_tokens: tokens, ignore_eos: true }) },
    signal ? { signal } : {},
  );

const text = (exchange: VirtualExchange): string => Buffer.concat(exchange.writes.map(({ bytes }) => bytes)).toString();

describe('virtual server', () => {
  it('answers with the bytes of the real one, at the times of the formula', async () => {
    const simulator = server();
    const answer = await ask(simulator, 100);
    assert.equal(answer.status, 200);
    assert.equal(answer.ended, 'clean');
    assert.equal(sseJson(text(answer)).length, 102);
    const { hardware } = parseSimulatorArgs([]);
    const first = answer.writes[0]!.at - answer.sent;
    assert.ok(Math.abs(first - loneTtft(hardware, 20)) < 0.02 * first);
    assert.ok(answer.end > 100 * 3.34 && answer.end < 100 * 3.4);
    assert.equal(simulator.now(), answer.end);
  });

  it('is much faster than the time it tells, and the same every time', async () => {
    const run = async (): Promise<number[]> => {
      const simulator = server('--max-running 4');
      const ends: number[] = [];
      const user = async (): Promise<void> => {
        for (let i = 0; i < 5; i++) {
          ends.push((await ask(simulator, 64)).end);
          await simulator.sleep(250);
        }
      };
      await Promise.all(Array.from({ length: 8 }, user));
      return ends;
    };
    const [a, b] = [await run(), await run()];
    assert.deepEqual(a, b);
    assert.ok(Math.max(...a) > 2000);
  });

  it('plays faults in virtual time: a stall of a minute takes no minute', async () => {
    const answer = await ask(server(), 20, 'stall:5:60000');
    const gaps = answer.writes.slice(1).map(({ at }, i) => at - answer.writes[i]!.at);
    assert.ok(Math.max(...gaps) >= 60_000 && Math.max(...gaps) < 60_004);
    assert.equal((await ask(server(), 20, 'cut:3')).ended, 'cut');
    assert.equal((await ask(server(), 20, 'status:429:3')).status, 429);
  });

  it('a client can hang up, or give up waiting', async () => {
    const simulator = server('--max-running 1');
    const control = new AbortController();
    const first = ask(simulator, 5000, undefined, control.signal);
    await simulator.sleep(100);
    control.abort();
    const left = await first;
    assert.equal(left.ended, 'left');
    assert.ok(left.writes.length > 10 && left.end === 100);
    assert.equal((await ask(simulator, 4)).ended, 'clean');
    const stalled = new AbortController();
    const waiting = ask(simulator, 4, 'hang', stalled.signal);
    await simulator.sleep(3000);
    stalled.abort();
    assert.equal((await waiting).status, null);
  });

  it('carries a whole probe in virtual time: the samples say what the formula says', async () => {
    const world = virtualWorld(['--max-running', '2']);
    const target: Target = { endpoint: endpointFromUrl('http://virtual/v1'), dialect: dialects['openai-chat'], model: null, server: 'vllm', key: null, timeouts: defaultTimeouts, network: defaultNetwork, memory: createMemory() };
    const prompt = { messages: [{ role: 'user' as const, text: 'Say hello' }], tools: [] };
    const plan = planProbe(target, prompt, { ...defaultProbeSettings, requests: 8, concurrency: 4, warmup: 0, maxTokens: 50 });
    const samples: Sample[] = [];
    for await (const step of run(plan, world, new AbortController().signal)) if (step.type === 'sample') samples.push(step.sample);
    assert.equal(samples.length, 8);
    for (const sample of samples) {
      assert.equal(sample.outcome.kind, 'ok');
      assert.equal(checkStamps(sample), null);
      const pace = tpot(sample)!;
      assert.ok(pace > 3.34 && pace < 3.4, String(pace));
    }
    // Two seats for four users: half of them wait for an answer of 50 steps.
    assert.equal(samples.filter((sample) => ttft(sample)! > 49 * 3.34).length, 6);
  });

  it('limits and hanging up end a virtual exchange as they end a real one', async () => {
    const world = virtualWorld([]);
    const recorder = await world.open();
    const shot = (fault: string): Parameters<typeof recorder.record>[0] => ({
      id: fault,
      request: { method: 'POST', url: 'http://virtual/v1/chat/completions', headers: { 'x-fault': fault }, body: JSON.stringify({ messages: [{ role: 'user', content: 'Hi' }], stream: true, max_tokens: 20 }) },
      timeouts: { firstToken: 1000, stall: 500, total: 60_000 },
    });
    const never = new AbortController().signal;
    assert.deepEqual((await recorder.record(shot('hang'), null, never)).ending, { kind: 'timeout-first-token', limit: 1000 });
    assert.deepEqual((await recorder.record(shot('stall:4'), null, never)).ending, { kind: 'timeout-stall', limit: 500 });
    assert.equal((await recorder.record(shot('cut:4'), null, never)).ending.kind, 'closed');
    const tape = await recorder.record(shot('jitter:1'), null, never);
    assert.equal(tape.ending.kind, 'complete');
    assert.equal(tape.ends.at(-1), tape.bytes.length);
  });

  it('serves the other paths too', async () => {
    const models = await server('--face ollama').exchange({ method: 'GET', path: '/api/version' });
    assert.match(text(models), /version/);
    const simulator = server('--gpu l4 --weight-bits 8');
    const encode = async (inputs: string[]): Promise<number> => {
      const { sent, end } = await simulator.exchange({ method: 'POST', path: '/v1/embeddings', body: JSON.stringify({ input: inputs }) });
      return end - sent;
    };
    const short = 'token '.repeat(8);
    const long = 'token '.repeat(400);
    const [equal, mixed] = [await encode([short, short, short, short]), await encode([short, short, short, long])];
    assert.ok(mixed > 3 * equal && Math.abs(mixed - (await encode([long, long, long, long]))) < 1e-6);
  });
});
