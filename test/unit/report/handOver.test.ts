import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import vm from 'node:vm';
import { dialects } from '../../../src/probe/dialect/index';
import { endpointFromUrl } from '../../../src/probe/endpoint';
import { handOverPlan, type HandOverInput } from '../../../src/probe/handOver';
import { countedTokens, o200kCounter } from '../../../src/prompt/tokenizer';
import { documentedOptions, handOver, HandOverError, handOverTools, type HandOverPlan, type HandOverTool } from '../../../src/report/exchange/handOver';

const golden = path.resolve(__dirname, '../../fixtures/handOver');
const key = 'sk-this-must-never-be-written';

function plan(more: Partial<HandOverInput> = {}, url = 'https://api.example.com/v1'): HandOverPlan {
  return handOverPlan({
    dialect: dialects['openai-chat'],
    endpoint: endpointFromUrl(url, { model: 'org/model-8b', headers: { 'x-team': key }, body: { temperature: 0 } }),
    keyVariable: 'FIRST_TOKEN_API_KEY',
    prompt: { messages: [{ role: 'user', text: "Don't panic: </script> says \"hello\"." }], tools: [] },
    settings: { requests: 200, concurrency: 16, warmup: 2, maxTokens: 128, cache: 'cold' },
    slo: { ttft: 500, tpot: 30, total: 4000, attainment: 0.95 },
    promptTokens: 9,
    counted: true,
    ...more,
  });
}

const rate: HandOverPlan['load'] = { kind: 'rate', perSecond: 2.5, arrivals: 'constant' };
const cases: readonly (readonly [name: string, plan: () => HandOverPlan])[] = [
  ['closed', () => plan({ promptTokens: 512, counted: false, prefixTokens: 256 })],
  ['rate', () => plan({ load: rate, fixedLength: true, settings: { requests: 50, concurrency: 1, warmup: 0, maxTokens: 64, cache: 'as-is' } })],
];

/** Option words of a command: what begins with two dashes at the head of its lines. */
function optionsOf(text: string): string[] {
  return text.split('\n').filter((line) => !line.startsWith('#')).flatMap((line) => /^ {2}(--[a-z0-9-]+)/.exec(line)?.[1] ?? []);
}

/** The words a POSIX shell makes of a command, the program replaced by one that prints its arguments. */
function words(text: string, env: Record<string, string>): string[] {
  const program = text.replace(/^(vllm bench serve|python3 -m sglang\.bench_serving|guidellm run|aiperf profile) /m, "printf '%s\\0' ");
  return execFileSync('sh', ['-c', program], { env: { PATH: process.env['PATH'] ?? '', ...env } }).toString().split('\0').slice(0, -1);
}

describe('handing a plan over', () => {
  it('sizes prompts by the vocabulary that lens and lint count with, and says about', () => {
    const text = 'Antworte höflich und kurz, in der Sprache der Frage. '.repeat(50);
    const prompt = { messages: [{ role: 'system' as const, text }, { role: 'user' as const, text: 'Why?' }], tools: [{ name: 'look_up' }] };
    const counter = o200kCounter(false);
    const tokens = countedTokens(prompt, counter);
    assert.equal(tokens, counter.count(text) + counter.count('Why?') + counter.count('{"name":"look_up"}'));
    assert.notEqual(tokens, Math.ceil(Buffer.byteLength(`${text}Why?`) / 4));
    assert.equal(countedTokens({ messages: [], tools: [] }, counter), 1);
    assert.match(handOver(plan({ prompt, promptTokens: tokens }), 'vllm').text, new RegExp(`about ${tokens} tokens each`));
    assert.doesNotMatch(handOver(plan({ promptTokens: 512, counted: false }), 'vllm').text, /about/);
  });

  for (const tool of handOverTools) {
    for (const [name, make] of cases) {
      it(`writes for ${tool} what the golden file says (${name})`, () => {
        const made = handOver(make(), tool);
        const file = path.join(golden, `${tool}-${name}.${made.language}.golden`);
        if (process.env['UPDATE_GOLDEN'] === '1') writeFileSync(file, made.text);
        assert.equal(made.text, readFileSync(file, 'utf8'));
      });
    }

    it(`writes for ${tool} only options that are documented, and no secret`, () => {
      for (const [, make] of cases) {
        const { text, language } = handOver(make(), tool);
        const known: readonly string[] = documentedOptions[tool].options;
        const used = language === 'sh' ? optionsOf(text) : [...(/export const options = \{[^]*?\n\};/.exec(text)?.[0] ?? '').matchAll(/(?:^|[{,\s])([a-zA-Z]+): /g)].map((match) => match[1]!).filter((word) => !['plan', 'http_req_failed', 'http_req_duration'].includes(word));
        assert.ok(used.length >= 4, text);
        for (const option of used) assert.ok(known.includes(option), `${option} of ${tool} is not in its list`);
        assert.ok(!text.includes(key));
        assert.match(text, /x-team/);
        assert.match(text, /counts differently/);
      }
    });
  }

  for (const tool of ['vllm', 'sglang', 'guidellm', 'aiperf'] as const) {
    it(`is a command a shell reads as meant (${tool})`, function () {
      if (process.platform === 'win32') this.skip();
      const args = words(handOver(plan({ fixedLength: true }), tool).text, { FIRST_TOKEN_API_KEY: key, MODEL: 'm' });
      const after = (option: string): string | undefined => args[args.indexOf(option) + 1];
      const extra = { vllm: '--extra-body', sglang: '--extra-request-body', aiperf: '--extra-inputs', guidellm: '--backend' }[tool];
      const json = JSON.parse(after(extra) ?? '') as Record<string, unknown>;
      const body = tool === 'guidellm' ? (json['extras'] as { body: Record<string, unknown> }).body : json;
      assert.equal(body['temperature'], 0);
      assert.equal(body['min_tokens'], 128);
      if (tool === 'guidellm') assert.equal(json['api_key'], key);
      if (tool === 'aiperf') assert.equal(after('--api-key'), key);
      if (tool === 'vllm') assert.deepEqual(args.slice(args.indexOf('--goodput') + 1, args.indexOf('--goodput') + 4), ['ttft:500', 'tpot:30', 'e2el:4000']);
    });
  }

  it('writes a k6 script whose request is the one that would be sent', () => {
    const { text } = handOver(plan({ fixedLength: true }), 'k6');
    const script = text.replace(/^import.*$/gm, '').replace('export const options', 'const options').replace('export default function ()', 'const main = () =>');
    const sent: unknown[][] = [];
    vm.runInNewContext(`${script}\nmain();`, { __ENV: { FIRST_TOKEN_API_KEY: key }, http: { post: (...args: unknown[]) => sent.push(args) }, check: () => true });
    const [url, body, { headers }] = sent[0] as [string, string, { headers: Record<string, string> }];
    assert.equal(url, 'https://api.example.com/v1/chat/completions');
    assert.equal(headers['authorization'], `Bearer ${key}`);
    const json = JSON.parse(body) as { messages: { content: string }[]; ignore_eos: boolean };
    assert.equal(json.messages[0]?.content, "Don't panic: </script> says \"hello\".");
    assert.equal(json.ignore_eos, true);
    assert.ok(!text.includes('</script'));
  });

  it('says which tool to take when this one cannot', () => {
    const other = plan({ dialect: dialects.anthropic }, 'https://api.example.com');
    for (const tool of ['vllm', 'sglang', 'guidellm', 'aiperf'] as const satisfies readonly HandOverTool[]) {
      assert.throws(() => handOver(other, tool), (error: Error) => error instanceof HandOverError && /anthropic/.test(error.message) && /k6/.test(error.message));
    }
    assert.match(handOver(other, 'k6').text, /anthropic-version/);
  });

  it('keeps no query value but the API version, and no user name', () => {
    const { request } = plan({ dialect: dialects.gemini }, `https://example.com/v1beta?key=${key}`);
    assert.ok(!request.url.includes(key));
    assert.match(request.url, /alt=sse/);
  });

  it('splits the base from a path of its own', () => {
    const text = handOver(plan({}, 'https://host/team/a/v1/chat/completions'), 'aiperf').text;
    assert.match(text, /--url https:\/\/host\/team\/a \\/);
    assert.ok(!text.includes('--custom-endpoint'));
    assert.match(handOver(plan({}, 'https://models.github.ai/inference/chat/completions'), 'aiperf').text, /--custom-endpoint \/chat\/completions/);
    assert.throws(() => handOver(plan({}, 'https://models.github.ai/inference/chat/completions'), 'sglang'), HandOverError);
  });
});
