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

  it('names what is wrong: no file, no prompt, an unknown rule, a bad list', async () => {
    writeFileSync(path.join(folder.path, 'math.py'), 'def add(a, b):\n    return a + b\n');
    for (const [args, words] of [
      [[], /Name the prompt file to prove/],
      [['nowhere.prompty', '--endpoint', simulator.url], /nowhere\.prompty cannot be read/],
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
