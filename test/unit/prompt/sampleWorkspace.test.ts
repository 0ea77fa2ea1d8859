import assert from 'node:assert/strict';
import { existsSync, readFileSync, readdirSync, statSync } from 'node:fs';
import path from 'node:path';
import { parseCode } from '../../../src/prompt/format/code';
import { findingCodes } from '../../../src/prompt/findingCodes';
import { analyseFile, lintResult } from '../../../src/prompt/lint';
import { parsePromptFile, useCodeReader } from '../../../src/prompt/parse';
import { loadRules, ruleFor } from '../../../src/prompt/rules';
import { o200kCounter } from '../../../src/prompt/tokenizer';
import { otherFiles, sampleFiles } from '../../editor/sampleFiles';

const folder = path.join(__dirname, '../../fixtures/workspace');
const book = loadRules();

function read(file: string): string | null {
  return existsSync(file) && statSync(file).isFile() ? readFileSync(file, 'utf8') : null;
}

function analyse(name: string, rule?: string) {
  const file = parsePromptFile(readFileSync(path.join(folder, name), 'utf8'), path.join(folder, name), { readFile: read });
  if (file === null) return null;
  const choice = ruleFor({ cache: rule ?? null, model: file.prompts[0]?.model ?? null }, book);
  return analyseFile(file, { rule: choice.rule, counter: o200kCounter(false), today: '2026-11-30' });
}

describe('the sample workspace', () => {
  before(() => { useCodeReader(parseCode); });

  it('has a row for every file', () => {
    const files = readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((name) => statSync(path.join(folder, name)).isFile()).map((name) => name.replaceAll(path.sep, '/'));
    assert.deepEqual(files.sort(), [...sampleFiles.map(({ file }) => file), ...otherFiles].sort());
    const readme = readFileSync(path.join(folder, 'README.md'), 'utf8');
    for (const { file } of sampleFiles) {
      const parent = file.split('/').slice(0, 2).join('/');
      assert.ok(readme.includes(file.includes('/') ? `\`${parent}/\`` : `\`${file}\``), `README.md names ${file}`);
    }
  });

  it('has a file of each format', () => {
    const formats = new Set(sampleFiles.map(({ format }) => format));
    for (const format of ['prompty', 'dotprompt', 'handlebars', 'mustache', 'jinja', 'chat-template', 'nunjucks', 'liquid', 'github-models', 'promptfoo', 'semantic-kernel', 'langchain', 'poml', 'baml', 'request-json', 'request-jsonl', 'markdown', 'claude-markdown', 'python', 'javascript', 'text']) assert.ok(formats.has(format), format);
  });

  for (const { file, format, lens, breaks } of sampleFiles) {
    it(file, () => {
      const analysed = analyse(file);
      assert.ok(analysed);
      assert.equal(analysed.file.format, format);
      assert.deepEqual(analysed.prompts.map(({ report }) => report.sentence.replace(/\babout /g, '')), lens);
      assert.deepEqual(analysed.findings.filter(({ severity }) => severity === 'warning').map(({ line, text }) => [line, text]), breaks);
      for (const { code } of analysed.findings) assert.ok(code in findingCodes, code);
      assert.ok(lintResult(analysed, file).tokens.total > 0);
    });
  }

  it('what is fixed in it reuses what is broken in its pair', () => {
    for (const [broken, fixed] of [['support.prompty', 'support-fixed.prompty'], ['prompts/jinja/order-status.j2', 'prompts/jinja/order-status-fixed.j2'], ['prompts/dotprompt/reply.prompt', 'prompts/dotprompt/reply-fixed.prompt'], ['prompts/promptfoo/promptfooconfig.yaml', 'prompts/promptfoo/answer.txt'], ['prompts/requests/anthropic-unmarked.json', 'prompts/requests/anthropic-marked.json']] as const) {
      const reused = (name: string) => analyse(name)?.prompts[0]?.report.sameVariant.reuse.tokens ?? -1;
      assert.ok(reused(broken) === 0 && reused(fixed) > 250, `${broken}: ${String(reused(broken))}, ${fixed}: ${String(reused(fixed))}`);
    }
  });

  it('never throws under any rule', () => {
    for (const { file } of sampleFiles) for (const id of book.rules.keys()) assert.ok((analyse(file, id)?.prompts.length ?? 0) > 0, `${file} on ${id}`);
  });
});
