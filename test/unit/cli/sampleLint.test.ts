import assert from 'node:assert/strict';
import path from 'node:path';
import { ruleIds } from '../../../src/prompt/lint';
import { sampleFiles } from '../../editor/sampleFiles';
import { root, temporaryFolder, terminal } from './terminal';

interface Linted {
  readonly file: string;
  readonly format: string;
  readonly findings: readonly { readonly severity: string; readonly line: number; readonly text: string }[];
}

describe('first-token lint on the sample workspace', () => {
  const cwd = path.join(root, 'test/fixtures/workspace');
  const state = temporaryFolder();
  after(() => state.dispose());
  it('warns of what is broken in it and of nothing else', async () => {
    const { code, stdout, stderr } = await terminal(['lint', '.', '--json'], { cwd }).ended;
    assert.equal(code, 1, stderr);
    const results = JSON.parse(stdout) as readonly Linted[];
    const named = new Map(results.map((result) => [path.relative(cwd, path.resolve(cwd, result.file)).replaceAll(path.sep, '/'), result]));
    for (const { file, format, breaks } of sampleFiles) {
      const result = named.get(file);
      assert.equal(result?.format, format, file);
      assert.deepEqual(result.findings.filter(({ severity }) => severity === 'warning').map(({ line, text }) => [line, text]), breaks, file);
    }
  });

  const said = async (...args: string[]): Promise<string> => (await terminal(['lint', ...args], { cwd }).ended).stdout;

  it('judges each file by what it is written for, and says by which rule', async () => {
    const requests = await said('prompts/requests');
    assert.match(requests, /anthropic-unmarked\.json .*0 of about [\d,]+ tokens reusable on anthropic for the same user \(rule: the model it names\), .*up to 1,042 with a cache marker$/m);
    assert.match(requests, /gemini\.json .*reusable on gemini /);
    assert.match(requests, /openai-chat\.json .*1,280 of about 1,313 tokens reusable on openai /);
    assert.match(requests, /openai-responses\.json .*1,056 of 1,056 tokens reusable on openai-5\.6 /);
    assert.match(requests, /nightly\.jsonl .*reusable on vllm .*\(rule: assumed\)$/m);
    assert.match(await said('prompts/requests/gemini.json', '--rule', 'sglang'), /reusable on sglang for the same user, common/);
  });

  it('has a line for each prompt of a file with several, and sums of what they are', async () => {
    const lines = (await said('prompts/requests/nightly.jsonl')).trim().split('\n');
    const numbers = (line: string) => (/([\d,]+) of (?:about )?([\d,]+) tokens/.exec(line) ?? []).slice(1).map((n) => Number(n.replaceAll(',', '')));
    assert.match(lines[0]!, /: 4 prompts, together /);
    assert.doesNotMatch(lines[0]!, /common prefix/);
    const each = lines.filter((line) => /^ {2}\S+:\d {2}question-\d: /.test(line)).map(numbers);
    assert.equal(each.length, 4);
    assert.deepEqual(numbers(lines[0]!), [0, 1].map((i) => each.reduce((sum, pair) => sum + pair[i]!, 0)));
    const [json] = JSON.parse(await said('prompts/requests/nightly.jsonl', '--json')) as { tokens: { total: number; reusable: number } }[];
    assert.deepEqual([json!.tokens.reusable, json!.tokens.total], numbers(lines[0]!));
  });

  it('lists every rule in its help', async () => {
    const help = await said('--help');
    for (const id of ruleIds()) assert.match(help, new RegExp(`[ ,:]${id.replaceAll('.', '\\.')}(?=[\\s,.])`), id);
  });

  it('with an endpoint it says what a proof predicts and the server serves', async () => {
    for (const file of ['triage.prompt.jinja', 'prompts/requests/openai-chat.json']) {
      const [{ tokens }] = JSON.parse(await said(file, '--demo', '--json')) as [{ tokens: { total: number; reusable: number; source: string } }];
      const proof = (await terminal(['prove', file, '--demo', '--pairs', '1'], { cwd, env: { XDG_STATE_HOME: state.path } }).ended).stdout;
      const row = (name: string) => (new RegExp(`^${name} .*`, 'm').exec(proof)?.[0] ?? '').replace(name, '').replaceAll('\u202f', '').replaceAll(',', '').trim().split(/\s+/).slice(1, 4).map(Number);
      // A request in which nothing changes is sent the same again; a template with other values.
      const [total] = row('the same again');
      const [, predicted, served] = row(file.endsWith('.json') ? 'the same again' : 'a later request');
      assert.deepEqual([tokens.source, tokens.total, tokens.reusable, tokens.reusable], ['endpoint', total, predicted, served], proof);
    }
  }).timeout(60_000);

  it('says it in words: the scope, a file without a prompt, and the sum', async () => {
    const { stdout } = await terminal(['lint', 'support.prompty', 'prompts/semantic-kernel/Summary/skprompt.txt', 'prompts/semantic-kernel/Summary/config.json', '--scope', 'everyone'], { cwd }).ended;
    assert.match(stdout, /^support\.prompty \(prompty\): 0 of about [\d,]+ tokens reusable on vllm for everyone/m);
    assert.match(stdout, /config\.json \(\w+\): no prompt in it$/m);
    assert.match(stdout, /\n\n3 files, 2 warnings, 0 information, 0 hints\n$/);
  });
});
