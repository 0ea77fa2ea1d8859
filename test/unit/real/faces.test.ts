import assert from 'node:assert/strict';
import path from 'node:path';
import { startSimulator } from '../../../src/simulator/start';
import { probed } from './job';

const script = path.resolve(__dirname, '../../../dist/simulator.js');

/** Every API end to end: detected or named, with its key header, its body, its stream, its usage and its errors. */
describe('every API against a face of the simulator', function () {
  this.timeout(60_000);

  const faces: { face: string; url?: string; api: string; server: string | null; tokens: string | null; cached: boolean | 'marked only' }[] = [
    { face: 'vllm', api: 'openai-chat', server: 'vllm', tokens: 'token_ids', cached: true },
    { face: 'vllm', url: '/v1/completions', api: 'openai-completions', server: 'vllm', tokens: 'token_ids', cached: true },
    { face: 'sglang', api: 'openai-chat', server: 'sglang', tokens: null, cached: true },
    { face: 'sglang', url: '/generate', api: 'sglang', server: 'sglang', tokens: 'usage-difference', cached: true },
    { face: 'llamacpp', api: 'openai-chat', server: 'llamacpp', tokens: 'server-count', cached: true },
    { face: 'llamacpp', url: '/completion', api: 'llamacpp', server: 'llamacpp', tokens: null, cached: true },
    { face: 'tgi', url: '/generate_stream', api: 'tgi', server: 'tgi', tokens: 'one-per-event', cached: false },
    { face: 'ollama', api: 'ollama', server: 'ollama', tokens: 'final-usage', cached: true },
    { face: 'ollama', url: '/api/generate', api: 'ollama', server: 'ollama', tokens: 'final-usage', cached: true },
    { face: 'triton', url: '/v2/models/llama-3.1-8b/generate_stream', api: 'triton', server: 'triton', tokens: 'deltas', cached: false },
    { face: 'anthropic', api: 'anthropic', server: 'anthropic', tokens: 'final-usage', cached: 'marked only' },
    { face: 'openai', url: '/v1/responses', api: 'openai-responses', server: null, tokens: 'final-usage', cached: true },
    { face: 'gemini', api: 'gemini', server: null, tokens: null, cached: true },
    { face: 'cohere', api: 'cohere', server: null, tokens: 'final-usage', cached: true },
    { face: 'azure', api: 'azure', server: null, tokens: 'final-usage', cached: true },
    { face: 'bedrock', api: 'bedrock', server: null, tokens: 'final-usage', cached: 'marked only' },
  ];
  for (const { face, url = '', api, tokens, cached } of faces) {
    it(`${api} on ${face}${url === '' ? '' : ` at ${url}`}`, async () => {
      const key = 'key-for-the-faces-1234';
      const simulator = await startSimulator({ script, args: ['--face', face, '--api-key', key] });
      try {
        // Hosted APIs are told by their host, which a loopback address is not; the others must be found.
        const named = ['gemini', 'cohere', 'azure', 'bedrock'].includes(face) ? { api: api as 'gemini', model: 'llama-3.1-8b' } : {};
        const prompt = 'The pace is what keeps them reading. '.repeat(40);
        const { report, texts } = await probed(simulator.url + url, { key, prompt, endpoint: named, settings: { requests: 3, maxTokens: 24 } });
        assert.equal(report.endpoint.api, api);
        assert.equal(report.outcomes.ok, 3, JSON.stringify(report.samples.map((s) => s.outcome)));
        assert.ok(texts.every((text) => text.length > 20), JSON.stringify(texts));
        for (const sample of report.samples.filter((s) => s.role === 'measured')) {
          assert.ok(Math.abs((sample.outputTokens.count ?? 0) - 24) <= 1, `${String(sample.outputTokens.count)} tokens by ${String(sample.outputTokens.source)}`);
          if (tokens !== null) assert.equal(sample.outputTokens.source, tokens);
          if (cached === 'marked only') assert.equal(sample.cachedTokens, 0, 'plain text has no cache marker');
          else if (cached) assert.ok((sample.cachedTokens ?? 0) > 100, `cached ${String(sample.cachedTokens)} of ${String(sample.promptTokens)}`);
          else assert.equal(sample.cachedTokens, null);
        }
        const refused = await probed(simulator.url + url, { key: 'wrong-key-9876', prompt, endpoint: named, settings: { requests: 1, warmup: 0 } });
        const outcome = refused.report.samples.at(-1)?.outcome;
        assert.equal(outcome?.kind, 'status', JSON.stringify(outcome));
        assert.ok(outcome.status === 401 || outcome.status === 403 || outcome.status === 400, String(outcome.status));
        assert.ok(!JSON.stringify(refused.report).includes('wrong-key-9876'));
      } finally {
        await simulator.stop();
      }
    });
  }
});
