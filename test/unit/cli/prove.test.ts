import assert from 'node:assert/strict';
import { cpSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import type { PrefixResult } from '../../../src/probe/index';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { dist, root, temporaryFolder, terminal, type Ended } from './terminal';

describe('first-token prove', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  let simulator: StartedSimulator;
  const run = (args: readonly string[]): Promise<Ended> => terminal(['prove', ...args], { cwd: folder.path }).ended;

  before(async () => {
    simulator = await startSimulator({ script: path.join(dist, 'simulator.js') });
    cpSync(path.join(root, 'test/fixtures/workspace/support-fixed.prompty'), path.join(folder.path, 'rules.prompty'));
  });
  after(async () => {
    await simulator.stop();
    folder.dispose();
  });

  it('prints the result and nothing else with --json, and the report is kept', async () => {
    const { code, stdout } = await run(['rules.prompty', '--endpoint', simulator.url, '--pairs', '2', '--affinity', '3', '--json']);
    assert.equal(code, 0);
    const result = JSON.parse(stdout) as PrefixResult;
    assert.equal(result.schema, 'first-token/prefix@1');
    assert.deepEqual(result.rows.map(({ kind, n }) => [kind, n]), [['cold', 2], ['warm', 2], ['changed', 2]]);
    for (const { predicted, served } of result.rows.slice(1)) assert.ok(predicted?.exact && served && Math.abs(predicted.tokens - served.p50) <= 16);
    assert.deepEqual([result.affinity?.hits, result.affinity?.of], [2, 2]);
    assert.equal(result.rule.id, 'vllm');
  });

  it('says the verdict, a table and what it means', async () => {
    const { code, stdout } = await run(['rules.prompty', '--endpoint', simulator.url, '--pairs', '1']);
    assert.equal(code, 0);
    assert.match(stdout, /^As predicted: the server took \d+ of \d+ tokens/);
    assert.match(stdout, /a later request .* ✓ as predicted/);
    assert.match(stdout, /whole blocks of 16 tokens/);
  });

  it('sends a request file as it is written: markers predicted and served, and what the provider says broke the cache', async () => {
    const rules = (words: string) => Array.from({ length: 120 }, (_, i) => `${words} ${i}: answer in plain words and name the source.`).join('\n');
    const request = (question: string, first: string) => ({ model: 'claude-sonnet-4-5', max_tokens: 300, system: [{ type: 'text', text: rules('Rule'), cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content: [{ type: 'text', text: rules(first), cache_control: { type: 'ephemeral' } }, { type: 'text', text: question }] }] });
    writeFileSync(path.join(folder.path, 'batch.jsonl'), [request('Why?', 'Case'), request('How?', 'Another case')].map((params, i) => JSON.stringify({ custom_id: `q${i + 1}`, params })).join('\n'));
    const anthropic = await startSimulator({ script: path.join(dist, 'simulator.js'), args: ['--face', 'anthropic', '--served-model', 'claude-sonnet-4-5'] });
    try {
      const { code, stdout } = await run(['batch.jsonl', '--endpoint', anthropic.url, '--pairs', '1', '--json']);
      assert.equal(code, 0);
      const result = JSON.parse(stdout) as PrefixResult;
      assert.deepEqual([result.rule.id, result.markers, result.countedBy, result.notes], ['anthropic', 2, 'provider', []]);
      for (const { predicted, served } of result.rows.slice(1)) assert.ok(predicted && served && served.p50 > 1024 && Math.abs(predicted.tokens - served.p50) <= 16, `${predicted?.tokens} ${served?.p50}`);
      assert.ok(result.rows[2]!.served!.p50 < result.rows[1]!.served!.p50);
      assert.deepEqual([result.diagnosis?.warm?.state, result.diagnosis?.changed?.reason], ['same', 'messages_changed']);
      const elsewhere = await run(['batch.jsonl', '--endpoint', simulator.url, '--pairs', '1']);
      assert.match(elsewhere.stdout, /2 cache markers of the file cannot be written in the API of this endpoint/);
    } finally {
      await anthropic.stop();
    }
  });

  it('takes the flags of a simulated server, and refuses more requests than it may send before it sends one', async () => {
    const shaped = await run(['rules.prompty', '--demo', '--lab', '--face sglang', '--pairs', '1']);
    assert.equal(shaped.code, 0, shaped.stderr);
    const refused = await run(['rules.prompty', '--endpoint', simulator.url, '--max-requests', '1']);
    assert.equal(refused.code, 2);
    assert.match(refused.stderr, /This proof sends 19 requests \(a warm-up and three for each of 6 pairs\), over the limit of 1: lower --pairs, or raise the limit \(--max-requests, /);
    const waits = await run(['rules.prompty', '--endpoint', simulator.url, '--pairs', '1', '--expiry', '1,2', '--max-requests', '7']);
    assert.match(waits.stderr, /sends 8 requests .*, and those for affinity and expiry\), over the limit of 7/);
  });

  it('names what is wrong: no file, no prompt, an unknown rule, a bad list', async () => {
    writeFileSync(path.join(folder.path, 'math.py'), 'def add(a, b):\n    return a + b\n');
    writeFileSync(path.join(folder.path, 'large.md'), 'a'.repeat(5_000_001));
    for (const [args, words] of [
      [[], /Name the prompt file to prove/],
      [['nowhere.prompty', '--endpoint', simulator.url], /nowhere\.prompty cannot be read/],
      [['large.md', '--endpoint', simulator.url], /large\.md has more than 5 MB/],
      [['math.py', '--endpoint', simulator.url], /holds no prompt/],
      [['rules.prompty', '--endpoint', simulator.url, '--rule', 'vlm'], /--rule takes vllm, /],
      [['rules.prompty', '--endpoint', simulator.url, '--expiry', '60,x'], /--expiry takes numbers above 0/],
    ] as const) {
      const { code, stderr } = await run(args);
      assert.equal(code, 2, stderr);
      assert.match(stderr, words);
    }
  });
});
