import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import { lintFile } from '../../../src/prompt/lint';
import { parsePromptFile, useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';
import type { PromptFile } from '../../../src/prompt/prompt';
import { unroll } from '../../../src/prompt/volatility';

const fixtures = path.join(__dirname, '../../fixtures/prompts');
const folder = path.join(fixtures, 'format');
const golden = path.join(fixtures, 'golden');
const readFile = (file: string): string | null => {
  try {
    return fs.readFileSync(file, 'utf8');
  } catch {
    return null;
  }
};

/** One line a piece: slot and role, kind, class with strength, what is written there, and the text where it differs. */
function picture(file: PromptFile): string {
  const lines = [`${file.format} ${file.language ?? '-'} substituted=${String(file.substituted)}`];
  for (const prompt of file.prompts) {
    lines.push(`prompt ${prompt.name ?? '-'} model=${prompt.model ?? '-'} samples=${JSON.stringify(prompt.samples)}`);
    prompt.parts.forEach((part, i) => lines.push(`  part ${String(i)} ${part.slot} ${part.role} message=${String(part.message)} block=${String(part.block)}${part.toolNames.length > 0 ? ` tools=${part.toolNames.join(',')}` : ''}`));
    for (const piece of unroll(file, prompt)) {
      const source = file.text.slice(piece.start, piece.end);
      const { judgement } = piece;
      const where = piece.branches.map((b) => `?${String(b.branch)}`).join('') + (piece.loop === 'constant' ? '' : `*${piece.loop}`);
      lines.push(`  ${String(piece.part)} ${piece.kind}${piece.foreign ? ' foreign' : ''}${piece.history ? ' history' : ''} ${String(piece.start)}–${String(piece.end)} ${judgement.volatility}/${judgement.evidence}/${judgement.strength} ${where} ${JSON.stringify(source)}${piece.kind === 'static' && piece.text !== source ? ` → ${JSON.stringify(piece.text)}` : ''}`);
    }
  }
  for (const problem of file.problems) lines.push(`problem ${String(problem.start)}–${String(problem.end)} ${problem.message}`);
  return `${lines.join('\n')}\n`;
}

describe('prompt/format: golden files', () => {
  before(() => { useCodeReader(parseCode); });

  const files = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) => fs.statSync(path.join(folder, f)).isFile() && path.basename(f) !== 'config.json');
  for (const name of files.sort()) {
    it(name, () => {
      const file = path.join(folder, name);
      const parsed = parsePromptFile(fs.readFileSync(file, 'utf8'), file, { readFile });
      assert.ok(parsed !== null);
      const expected = path.join(golden, `${name.replace(/\//g, '+')}.txt`);
      if (process.env['UPDATE_GOLDEN'] === '1') {
        fs.mkdirSync(golden, { recursive: true });
        fs.writeFileSync(expected, picture(parsed));
      }
      assert.equal(picture(parsed), fs.readFileSync(expected, 'utf8'));
    });
  }
});

describe('prompt/lint: lost caches reported by others, as cause → finding', () => {
  before(() => { useCodeReader(parseCode); });

  interface Case {
    readonly case: number;
    readonly cause: string;
    readonly file: string;
    readonly text: string;
    readonly code: string;
    readonly class: string;
  }
  const cases = fs.readFileSync(path.join(fixtures, 'cases/cases.jsonl'), 'utf8').trim().split('\n').map((l) => JSON.parse(l) as Case);
  for (const c of cases) {
    it(`${String(c.case)}: ${c.cause}`, () => {
      const file = path.join(fixtures, 'cases', c.file);
      const { findings } = lintFile(fs.readFileSync(file), file, { readFile });
      const found = findings.find((f) => f.severity === 'warning');
      assert.deepEqual([found?.code, found?.class, found?.text], [c.code, c.class, c.text], JSON.stringify(findings));
    });
  }
});
