import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { promptPaths } from '../../../src/prompt/globs';
import { defaultPromptFiles } from '../../../src/prompt/promptPaths';

describe('prompt/promptPaths', () => {
  it('is the default of firstToken.promptFiles, pattern by pattern: editor, tree and terminal take the same files', () => {
    const manifest = JSON.parse(readFileSync(path.join(__dirname, '../../../package.json'), 'utf8')) as { contributes: { configuration: { properties: Record<string, { default: string[] }> } } };
    assert.deepEqual(manifest.contributes.configuration.properties['firstToken.promptFiles']?.default, defaultPromptFiles);
  });

  const isPromptPath = promptPaths(defaultPromptFiles);
  const taken = ['a.prompty', 'x/a.prompt', 'a.prompt.yml', 'a.prompt.md', 'b/skprompt.txt', 'AGENTS.md', '.github/copilot-instructions.md', 'x/.claude/commands/go.md', 'chat_template.jinja', 'prompts/system.txt', 'src/prompts.py', 'system_prompt.j2', 'a.poml', 'a.baml', 'promptfooconfig.yaml', '/w/my-prompts/deep/a.json', 'C:\\w\\prompts\\a.j2', 'prompts/README.prompt.md', 'test_it.prompty'];
  for (const file of taken) it(`takes ${file}`, () => assert.ok(isPromptPath(file)));
  const left = ['README.md', 'src/index.ts', 'package.json', 'prompts/README.md', 'templates/page.hbs', 'a.txt', 'src/prompt.test.ts', 'notes.md', 'data.jsonl', 'prompts/test_prompts.py', 'prompts/summary/config.json', 'prompts/package.json', 'docs/prompt-caching.md'];
  for (const file of left) it(`leaves ${file}`, () => assert.ok(!isPromptPath(file)));

  it('gives the last pattern that matches the last word', () => {
    const mine = promptPaths(['**/*.txt', '!**/old/**', '**/old/kept.txt']);
    assert.deepEqual(['a.txt', 'old/a.txt', 'old/kept.txt', 'a.md'].map(mine), [true, false, true, false]);
  });
});
