import assert from 'node:assert/strict';
import type { LlamaServer } from '../../host/llama/server.mjs';
import { ttft, type Sample } from '../../../src/report/sample';
import { probed } from './job';

/** The module is plain Node for the launchers, so it is loaded as it is. */
const host = import('../../host/llama/server.mjs');

function measured(samples: readonly Sample[]): Sample[] {
  return samples.filter((s) => s.role === 'measured');
}

function timing(sample: Sample, covers: string): number | null {
  return sample.serverTimings.find((t) => t.covers === covers)?.ms ?? null;
}

describe("llama.cpp's own server", function () {
  this.timeout(300_000);
  let server: LlamaServer;

  before(async function () {
    const { ensureLlamaServer, llamaServerProblem, startLlamaServer } = await host;
    const problem = llamaServerProblem();
    if (problem !== null) {
      // Skipped by name, with the reason in it.
      this.test!.parent!.title += ` (${problem})`;
      for (const test of this.test!.parent!.tests) test.title += ` (${problem})`;
      this.skip();
    }
    await ensureLlamaServer();
    server = await startLlamaServer();
  });
  after(async () => {
    await (server as LlamaServer | undefined)?.stop();
  });

  for (const [face, path, api] of [
    ['OpenAI chat', '', 'openai-chat'],
    ['OpenAI completions', '/v1/completions', 'openai-completions'],
    ['OpenAI responses', '/v1/responses', 'openai-responses'],
    ['Anthropic messages', '/v1/messages', 'anthropic'],
    ['native completion', '/completion', 'llamacpp'],
  ] as const) {
    it(`is probed through its ${face} face, cold and warm`, async () => {
      const prompt = `${face}: ${'the pace is what keeps them reading. '.repeat(20)}`;
      const warm = await probed(server.url + path, { prompt });
      assert.equal(warm.report.endpoint.api, api);
      assert.equal(warm.report.endpoint.server, 'llamacpp');
      assert.equal(warm.report.outcomes.ok, 3, JSON.stringify(warm.report.samples.map((s) => s.outcome)));
      for (const sample of measured(warm.report.samples)) {
        assert.ok((sample.outputTokens.count ?? 0) > 0);
        assert.ok(sample.deltas.length > 0);
        assert.ok((sample.promptTokens ?? 0) > 100, `prompt tokens ${String(sample.promptTokens)}`);
      }
      const cold = await probed(server.url + path, { prompt, settings: { cache: 'cold' } });
      assert.equal(cold.report.outcomes.ok, 3);
      const cached = (samples: readonly Sample[]): number | null => samples.reduce<number | null>((sum, s) => (s.cachedTokens === null ? sum : (sum ?? 0) + s.cachedTokens), null);
      const [served, salted] = [cached(measured(warm.report.samples)), cached(measured(cold.report.samples))];
      // A face that does not tell cached tokens says unknown, never 0.
      if (served !== null) {
        assert.ok(served > 300, `warm ${served}`);
        assert.ok((salted ?? 0) < served / 3, `cold ${String(salted)}, warm ${served}`);
      } else assert.equal(warm.report.cache.cachedTokens, null);
    });
  }

  it("agrees with the server's own timings", async () => {
    const { report } = await probed(server.url, { settings: { requests: 5, maxTokens: 48 } });
    for (const sample of measured(report.samples)) {
      const [prefill, decode] = [timing(sample, 'prefill'), timing(sample, 'decode')];
      assert.ok(prefill !== null && decode !== null);
      // The client sees everything the server counts, and the way to it besides.
      assert.ok((ttft(sample) ?? 0) > prefill * 0.9, `TTFT ${String(ttft(sample))}, prefill ${prefill}`);
      const seen = sample.last! - sample.firstToken!;
      assert.ok(Math.abs(seen - decode) < Math.max(40, decode * 0.5), `decode ${decode}, seen ${seen}`);
    }
  });

  it('counts what its metrics count', async () => {
    const { report } = await probed(server.url, { settings: { requests: 4, warmup: 0, maxTokens: 20 } });
    const view = report.serverView;
    assert.equal(view?.server, 'llamacpp');
    const generated = view.counters.find((c) => c.name === 'llamacpp:tokens_predicted_total')?.difference;
    const told = report.samples.reduce((sum, s) => sum + (s.outputTokens.count ?? 0), 0);
    assert.ok(generated !== null && generated !== undefined && Math.abs(generated - told) <= report.samples.length, `server ${String(generated)}, client ${told}`);
  });

  it('shows queueing behind its slots as time until the response head', async () => {
    const { startLlamaServer } = await host;
    const narrow = await startLlamaServer({ flags: ['--parallel', '1'] });
    try {
      const alone = await probed(narrow.url, { settings: { requests: 4, maxTokens: 64 } });
      const queued = await probed(narrow.url, { settings: { requests: 9, concurrency: 3, maxTokens: 64 } });
      const heads = (samples: readonly Sample[]): number => {
        const sorted = measured(samples).map((s) => s.headers! - s.start).sort((a, b) => a - b);
        return sorted[Math.floor(sorted.length / 2)]!;
      };
      assert.ok(heads(queued.report.samples) > 3 * heads(alone.report.samples));
    } finally {
      await narrow.stop();
    }
  });

  it('takes an API key, and says when it is missing or wrong', async () => {
    const { startLlamaServer } = await host;
    const locked = await startLlamaServer({ flags: ['--api-key', 'right-key-1234'] });
    try {
      const { report } = await probed(locked.url, { key: 'right-key-1234' });
      assert.equal(report.outcomes.ok, 3);
      for (const [path, key] of [['', 'wrong-key-9876'], ['/v1/messages', 'wrong-key-9876']] as const) {
        const refused = await probed(locked.url + path, { key, settings: { requests: 1, warmup: 0 } });
        assert.equal(refused.report.samples.at(-1)?.outcome.status, 401);
        assert.ok(!JSON.stringify(refused.report).includes(key));
      }
    } finally {
      await locked.stop();
    }
  });

  it('is truncated, never ok, when it is killed in mid-stream', async () => {
    const { startLlamaServer } = await host;
    const doomed = await startLlamaServer();
    let killed = false;
    const { report } = await probed(doomed.url, {
      settings: { requests: 2, warmup: 0, concurrency: 2, maxTokens: 4000 },
      onEvent: (event) => {
        if (!killed && event.type === 'live' && event.rows.some((row) => row.t.length > 0)) {
          killed = true;
          doomed.process.kill('SIGKILL');
        }
      },
    });
    await doomed.stop();
    assert.equal(killed, true);
    assert.equal(report.outcomes.ok, undefined);
    assert.ok((report.outcomes.truncated ?? 0) > 0);
  });

  it('has its failure in mid-stream told as an error, never as an answer', async () => {
    const { startLlamaServer } = await host;
    const junk = await startLlamaServer({ model: 'junk' });
    try {
      for (const path of ['', '/v1/messages', '/v1/responses']) {
        const { report } = await probed(junk.url + path, { settings: { requests: 12, warmup: 0, maxTokens: 60, concurrency: 2 } });
        assert.ok((report.outcomes['stream-error'] ?? 0) > 0, `${path}: ${JSON.stringify(report.outcomes)}`);
        for (const sample of report.samples) if (sample.outcome.kind === 'stream-error') assert.ok(sample.outcome.message);
      }
    } finally {
      await junk.stop();
    }
  });

  it('has its reasoning told apart from the answer', async () => {
    const { startLlamaServer } = await host;
    const thinker = await startLlamaServer({ model: 'think', flags: ['--jinja'] });
    try {
      const { report, reasoning } = await probed(thinker.url, { settings: { requests: 4, maxTokens: 200 } });
      assert.equal(report.outcomes.ok, 4);
      assert.ok(reasoning.some((text) => text.length > 0));
      const hidden = measured(report.samples).filter((s) => s.deltas[0]?.[1] === 'reasoning');
      assert.ok(hidden.length > 0);
      for (const sample of hidden) assert.ok(sample.firstVisible === null || sample.firstVisible > sample.firstToken!);
    } finally {
      await thinker.stop();
    }
  });

  it('refuses a prompt over its context in words', async () => {
    const { report } = await probed(server.url, { prompt: 'word '.repeat(30_000), settings: { requests: 1, warmup: 0 } });
    const [sample] = report.samples;
    assert.equal(sample?.outcome.kind, 'status');
    assert.match(sample.outcome.message ?? '', /context/);
  });
});
