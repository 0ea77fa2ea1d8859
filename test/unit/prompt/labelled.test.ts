import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { lintFile } from '../../../src/prompt/lint';
import { useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';
import type { Scope } from '../../../src/prompt/prompt';

interface Label {
  readonly file: string;
  readonly expect: 'warn' | 'quiet';
  readonly first: string | null;
  readonly class: string | null;
  readonly scope: Scope;
  readonly code: string | null;
}

const folder = path.join(__dirname, '../../fixtures/prompts/labelled');
const labels = fs.readFileSync(path.join(folder, 'labels.jsonl'), 'utf8').trim().split('\n').map((line) => JSON.parse(line) as Label);
const readFile = (file: string): string | null => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

describe('prompt/lint: labelled files of our own', () => {
  before(() => { useCodeReader(parseCode); });

  for (const label of labels) {
    it(`${label.file}: ${label.expect}${label.first === null ? '' : ` at ${label.first}`}`, () => {
      const file = path.join(folder, label.file);
      const bytes = fs.readFileSync(file);
      const result = lintFile(bytes, file, { scope: label.scope, readFile });
      const warnings = result.findings.filter((f) => f.severity === 'warning');
      assert.equal(result.firstVolatile?.text ?? null, label.first);
      assert.equal(result.firstVolatile?.class ?? null, label.class);
      if (label.first !== null) {
        const { offset } = result.firstVolatile!;
        assert.equal(bytes.subarray(offset, offset + Buffer.byteLength(label.first)).toString('utf8'), label.first, 'the offset counts UTF-8 bytes');
      }
      if (label.expect === 'quiet') assert.deepEqual(warnings, []);
      else {
        assert.ok(warnings.length > 0, `no warning: ${JSON.stringify(result, null, 1)}`);
        assert.equal(warnings[0]?.code, label.code);
        assert.ok(warnings.every((w) => w.lostTokens >= 256));
      }
    });
  }

  it('holds at least thirty warning cases', () => {
    assert.ok(labels.filter((l) => l.expect === 'warn').length >= 30);
  });
});
