import assert from 'node:assert/strict';
import path from 'node:path';
import { sampleFiles } from '../../editor/sampleFiles';
import { root, terminal } from './terminal';

interface Linted {
  readonly file: string;
  readonly format: string;
  readonly findings: readonly { readonly severity: string; readonly line: number; readonly text: string }[];
}

describe('first-token lint on the sample workspace', () => {
  it('warns of what is broken in it and of nothing else', async () => {
    const cwd = path.join(root, 'test/fixtures/workspace');
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

  it('says it in words: the scope, a file without a prompt, and the sum', async () => {
    const cwd = path.join(root, 'test/fixtures/workspace');
    const { stdout } = await terminal(['lint', 'support.prompty', 'prompts/semantic-kernel/Summary', '--scope', 'everyone'], { cwd }).ended;
    assert.match(stdout, /^support\.prompty \(prompty\): 0 of about [\d,]+ tokens reusable on vllm for everyone/m);
    assert.match(stdout, /config\.json \(\w+\): no prompt in it$/m);
    assert.match(stdout, /\n\n3 files, 2 warnings, 0 information, 0 hints\n$/);
  });
});
