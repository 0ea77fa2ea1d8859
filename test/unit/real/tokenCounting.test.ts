/** Counts of servers against the prompt tokens that the same servers report for the same request. */
import assert from 'node:assert/strict';
import { copyFileSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { createMemory, defaultNetwork, endpointFromUrl, reachEndpoint, type Endpoint } from '../../../src/probe/index';
import { endpointTokens, type EndpointTokens } from '../../../src/probe/tokenCounting';
import { findWrittenDate } from '../../../src/prompt/chatTemplate';
import type { LintResult } from '../../../src/prompt/index';
import { startSimulator } from '../../../src/simulator/start';
import type { LlamaServer } from '../../host/llama/server.mjs';
import { dist, root, temporaryFolder, terminal } from '../cli/terminal';
import { recorderScript } from '../probe/builtRecorder';
import { probed } from './job';

const host = import('../../host/llama/server.mjs');
const text = 'Zwölf Boxkämpfer jagen Viktor quer über den großen Sylter Deich. 12 boxers, 345 dikes!\n\nThe pace is what keeps them reading.';
const prompt = { messages: [{ role: 'user', text } as const], tools: [] };

async function counting(url: string, more: Partial<Endpoint> = {}): Promise<EndpointTokens> {
  return endpointTokens(await reachEndpoint({ endpoint: endpointFromUrl(url, more), key: null, network: { ...defaultNetwork, proxy: 'none' }, recorderScript: await recorderScript(), memory: createMemory() }, new AbortController().signal));
}

describe('token counts of every server that counts', function () {
  this.timeout(60_000);
  const faces: { face: string; api?: 'gemini' | 'anthropic'; sent: boolean }[] = [
    { face: 'vllm', sent: true },
    { face: 'llamacpp', sent: true },
    { face: 'sglang', sent: false },
    { face: 'tgi', sent: false },
    { face: 'anthropic', api: 'anthropic', sent: true },
    { face: 'gemini', api: 'gemini', sent: false },
  ];
  for (const { face, api, sent } of faces) {
    it(`${face}: of a text, and of the request as it is sent`, async () => {
      const simulator = await startSimulator({ script: path.join(dist, 'simulator.js'), args: ['--face', face] });
      const endpoint = api === undefined ? {} : { api, model: 'llama-3.1-8b' };
      const tokens = await counting(simulator.url, endpoint);
      try {
        assert.equal(tokens.endpoint?.id, face);
        const counts = await tokens.count([text, 'a b c', 'a b']);
        assert.equal((counts?.get('a b c') ?? 0) - (counts?.get('a b') ?? 0), 1);
        const { report } = await probed(simulator.url, { prompt: text, endpoint, settings: { requests: 1, warmup: 0 } });
        const reported = report.samples[0]?.promptTokens ?? null;
        const own = counts?.get(text) ?? 0;
        assert.ok(own > 20);
        if (face !== 'tgi') assert.ok(reported !== null && reported > own && reported - own < 16, `the text has ${own} tokens, the request ${String(reported)}: the template's come on top`);
        assert.equal((await tokens.sent({ prompt, later: null }))?.total ?? null, sent ? reported : null);
      } finally {
        await tokens.close();
        await simulator.stop();
      }
    });
  }

  it('none of one that is not there: it says so in plain words', async () => {
    await assert.rejects(counting('http://127.0.0.1:9'), /refused|Nothing/i);
  });
});

describe('first-token lint --endpoint', function () {
  this.timeout(120_000);
  const folder = temporaryFolder();
  const file = path.join(root, 'test/fixtures/workspace/support-fixed.prompty');
  before(() => {
    copyFileSync(file, path.join(folder.path, 'rules.prompty'));
  });
  after(() => {
    folder.dispose();
  });
  const lint = async (args: readonly string[]) => {
    const { stdout, stderr } = await terminal(['lint', 'rules.prompty', ...args], { cwd: folder.path }).ended;
    return { stdout, stderr };
  };
  const tokensOf = async (args: readonly string[]) => (JSON.parse((await lint([...args, '--json'])).stdout) as LintResult[])[0]!;

  it('estimates with o200k, and counts at the endpoint by its rule; with what is hidden it is what a proof reports', async () => {
    assert.deepEqual([(await tokensOf([])).tokens.source, (await tokensOf([])).rule], ['o200k', 'vllm']);
    const simulator = await startSimulator({ script: path.join(dist, 'simulator.js'), args: ['--face', 'llamacpp'] });
    try {
      const { tokens, rule } = await tokensOf(['--endpoint', simulator.url]);
      assert.deepEqual([tokens.source, rule], ['endpoint', 'llamacpp']);
      const { stdout } = await lint(['--endpoint', simulator.url]);
      const text = Number(/counted as sent, the text of the file has ([\d,]+)/.exec(stdout)?.[1]);
      assert.ok(text > 0 && text < tokens.total, 'the chat template and the sample values add some');
      const proof = await terminal(['prove', 'rules.prompty', '--endpoint', simulator.url, '--pairs', '1', '--json'], { cwd: folder.path }).ended;
      const { rows } = JSON.parse(proof.stdout) as { rows: { kind: string; promptTokens: number }[] };
      // The proof's nonce stands in the first bytes here.
      const reported = rows.find(({ kind }) => kind === 'cold')?.promptTokens ?? 0;
      assert.ok(reported >= tokens.total && reported - tokens.total < 40, `${reported} reported, ${tokens.total} counted`);
    } finally {
      await simulator.stop();
    }
  });

  it('agrees with the proof to the token where the nonce stands beside the prompt', async () => {
    const simulator = await startSimulator({ script: path.join(dist, 'simulator.js') });
    try {
      const { tokens } = await tokensOf(['--endpoint', simulator.url]);
      const proof = await terminal(['prove', 'rules.prompty', '--endpoint', simulator.url, '--pairs', '1', '--json'], { cwd: folder.path }).ended;
      const { rows } = JSON.parse(proof.stdout) as { rows: { kind: string; promptTokens: number }[] };
      assert.equal(rows.find(({ kind }) => kind === 'cold')?.promptTokens, tokens.total);
    } finally {
      await simulator.stop();
    }
  });

  it('says that an endpoint does not count, and estimates', async () => {
    const { tokens } = await tokensOf(['--endpoint', 'http://127.0.0.1:9']);
    assert.equal(tokens.source, 'o200k');
    assert.match((await lint(['--endpoint', 'http://127.0.0.1:9'])).stderr, /did not count tokens, so they are estimated/);
    const ollama = await startSimulator({ script: path.join(dist, 'simulator.js'), args: ['--face', 'ollama'] });
    try {
      const { stderr } = await lint(['--endpoint', ollama.url]);
      assert.match(stderr, /does not count tokens for others/);
    } finally {
      await ollama.stop();
    }
  });

  it('counts with the tokenizer.json of the settings', async () => {
    const tokenizer = { version: '1.0', added_tokens: [], normalizer: null, pre_tokenizer: { type: 'Whitespace' }, post_processor: null, decoder: null, model: { type: 'WordLevel', vocab: { '[UNK]': 0, the: 1 }, unk_token: '[UNK]' } };
    writeFileSync(path.join(folder.path, 'tokenizer.json'), JSON.stringify(tokenizer));
    mkdirSync(path.join(folder.path, '.vscode'));
    writeFileSync(path.join(folder.path, '.vscode', 'settings.json'), JSON.stringify({ 'firstToken.prefix': { tokenizer: 'tokenizer.json' } }));
    const { tokens } = await tokensOf([]);
    const words = readFileSync(file, 'utf8').split('---').at(-1)!.match(/\w+|[^\w\s]+/g) ?? [];
    assert.equal(tokens.source, 'tokenizer.json');
    assert.ok(tokens.total > 0.7 * words.length && tokens.total <= words.length, `${tokens.total} of ${words.length}`);
    writeFileSync(path.join(folder.path, '.vscode', 'settings.json'), '{}');
  });

  it('finds a date that a chat_template.jinja beside the file writes', async () => {
    writeFileSync(path.join(folder.path, 'chat_template.jinja'), "Current date: {{ strftime_now('%d %B %Y') }}\n{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}");
    const { findings } = await tokensOf([]);
    const found = findings.filter(({ code }) => code === 'hidden-date');
    assert.deepEqual(found.map(({ severity, class: volatility }) => [severity, volatility]), [['information', 'day']]);
    assert.match(found[0]!.message, /chat template writes the date before it \(Current date: 15 January 2026\)/);
  });
});

describe("llama.cpp's own server counts", function () {
  this.timeout(300_000);
  let server: LlamaServer | undefined;

  before(async function () {
    const { ensureLlamaServer, llamaServerProblem } = await host;
    const problem = llamaServerProblem();
    if (problem !== null) {
      for (const test of this.test!.parent!.tests) test.title += ` (${problem})`;
      this.skip();
    }
    await ensureLlamaServer();
  });
  afterEach(async () => {
    await server?.stop();
    server = undefined;
  });

  it('the tokens of a text, and of the request exactly as its usage tells', async () => {
    server = await (await host).startLlamaServer();
    const tokens = await counting(server.url);
    try {
      assert.equal(tokens.server, 'llamacpp');
      assert.ok(((await tokens.count([text]))?.get(text) ?? 0) > 20);
      const { report } = await probed(server.url, { prompt: text, settings: { requests: 1, warmup: 0 } });
      assert.equal((await tokens.sent({ prompt, later: null }))?.total, report.samples[0]?.promptTokens);
      assert.equal(findWrittenDate((await tokens.rendered()) ?? '', Date.now()), null);
    } finally {
      await tokens.close();
    }
  });

  it('and shows the date that a chat template of its own hides', async () => {
    const folder = temporaryFolder();
    const template = path.join(folder.path, 'dated.jinja');
    writeFileSync(template, "{{ '<|im_start|>system\\nCurrent date: ' + strftime_now('%Y-%m-%d') + '<|im_end|>\\n' }}{% for m in messages %}{{ '<|im_start|>' + m.role + '\\n' + m.content + '<|im_end|>\\n' }}{% endfor %}{{ '<|im_start|>assistant\\n' }}");
    server = await (await host).startLlamaServer({ flags: ['--jinja', '--chat-template-file', template] });
    try {
      copyFileSync(path.join(root, 'test/fixtures/workspace/support-fixed.prompty'), path.join(folder.path, 'rules.prompty'));
      const { stdout, stderr } = await terminal(['lint', 'rules.prompty', '--endpoint', server.url, '--json'], { cwd: folder.path }).ended;
      const [result] = JSON.parse(stdout) as LintResult[];
      assert.equal(result?.tokens.source, 'endpoint', stderr);
      assert.match(result.findings.find(({ code }) => code === 'hidden-date')?.message ?? '', /writes the date before it \(.*Current date: \d{4}-\d\d-\d\d/);
    } finally {
      folder.dispose();
    }
  });
});
