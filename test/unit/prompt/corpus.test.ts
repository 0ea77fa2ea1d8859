import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { lintFile, type LintResult } from '../../../src/prompt/lint';
import { o200kCounter } from '../../../src/prompt/tokenizer';
import { remembering } from '../../../src/prompt/tokens';
import { useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';

interface Place {
  readonly offset: number;
  readonly text: string;
  readonly strength: 'certain' | 'name' | 'context';
}
interface Label {
  readonly file: string;
  readonly expect: 'warn' | 'info' | 'quiet';
  readonly doubt?: string;
  readonly firstVolatileSameUser: Place | null;
  readonly firstVolatileAllUsers: Place | null;
}

/** Optional: real files with labels, beside the repository. Scored as their README says: certain and name, without doubtful files. */
const folder = path.join(__dirname, '../../../..', 'shared', 'prompts');
const list = path.join(folder, 'LABELS.jsonl');

describe('prompt/lint: labelled corpus', () => {
  let labels: Label[] = [];
  const results = new Map<string, { readonly user: LintResult; readonly everyone: LintResult }>();

  before(function () {
    if (!fs.existsSync(list)) {
      console.log('      skipped: no labelled corpus beside the repository');
      this.skip();
    }
    useCodeReader(parseCode);
    labels = fs.readFileSync(list, 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Label);
    const readFile = (file: string): string | null => {
      try {
        return fs.readFileSync(file, 'utf8');
      } catch {
        return null;
      }
    };
    for (const label of labels) {
      const file = path.join(folder, label.file);
      const bytes = fs.readFileSync(file);
      results.set(label.file, { user: lintFile(bytes, file, { scope: 'user', readFile }), everyone: lintFile(bytes, file, { scope: 'everyone', readFile }) });
    }
  });

  const warns = (file: string): boolean => [results.get(file)!.user, results.get(file)!.everyone].some((r) => r.findings.some((f) => f.severity === 'warning'));

  it('gives no false warning', () => {
    const wrong = labels.filter((l) => l.doubt === undefined && l.expect !== 'warn' && warns(l.file)).map((l) => l.file);
    const doubtful = labels.filter((l) => l.doubt !== undefined && l.expect !== 'warn' && warns(l.file)).map((l) => l.file);
    console.log(`      false warnings: ${String(wrong.length)} of ${String(labels.filter((l) => l.doubt === undefined && l.expect !== 'warn').length)} files, ${String(doubtful.length)} more in doubtful files`);
    assert.deepEqual(wrong, []);
  });

  it('misses no warning', () => {
    const expected = labels.filter((l) => l.expect === 'warn');
    const missed = expected.filter((l) => !warns(l.file)).map((l) => l.file);
    console.log(`      missed warnings: ${String(missed.length)} of ${String(expected.length)} files, doubtful ones included`);
    assert.deepEqual(missed, []);
  });

  it('warns of the same files when tokens are counted with the vocabulary that lens and terminal estimate by', function () {
    this.timeout(60_000);
    const counter = remembering(o200kCounter(false));
    const readFile = (file: string): string | null => (fs.existsSync(file) ? fs.readFileSync(file, 'utf8') : null);
    const wrong = labels.filter((label) => {
      if (label.doubt !== undefined) return false;
      const file = path.join(folder, label.file);
      const bytes = fs.readFileSync(file);
      const warned = (['user', 'everyone'] as const).some((scope) => lintFile(bytes, file, { scope, readFile, counter }).findings.some(({ severity }) => severity === 'warning'));
      return warned !== (label.expect === 'warn');
    });
    console.log(`      with o200k: ${String(wrong.length)} of ${String(labels.length)} files warned of otherwise than labelled`);
    assert.deepEqual(wrong.map(({ file }) => file), []);
  });

  it('finds at least 95 % of the first volatile places', () => {
    const cases = labels
      .filter((l) => l.doubt === undefined)
      .flatMap((l) => [
        { file: l.file, want: l.firstVolatileSameUser, got: results.get(l.file)!.user.firstVolatile },
        { file: l.file, want: l.firstVolatileAllUsers, got: results.get(l.file)!.everyone.firstVolatile },
      ])
      .filter((c) => c.want?.strength !== 'context');
    const wrong = cases.filter((c) => (c.want?.offset ?? null) !== (c.got?.offset ?? null));
    console.log(`      first offsets: ${String(cases.length - wrong.length)} of ${String(cases.length)} exact; not: ${[...new Set(wrong.map((w) => w.file))].join(', ') || 'none'}`);
    assert.ok(wrong.length <= 0.05 * cases.length, JSON.stringify(wrong));
  });

  it('gives offsets inside the file and tokens in order', () => {
    for (const label of labels) {
      const { user } = results.get(label.file)!;
      const size = fs.statSync(path.join(folder, label.file)).size;
      assert.ok(user.tokens.reusable <= user.tokens.commonPrefix && user.tokens.commonPrefix <= user.tokens.total, label.file);
      for (const f of user.findings) assert.ok(f.start >= 0 && f.start <= f.end && f.end <= size, `${label.file} ${f.code}`);
    }
  });
});
