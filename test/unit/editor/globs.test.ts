import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { globPattern } from '../../../src/editor/globs';

const matches = (glob: string, file: string) => globPattern(glob).test(file);

describe('glob patterns', () => {
  const cases: readonly (readonly [string, string, boolean])[] = [
    ['**/*.prompt', '/a/b/c.prompt', true],
    ['**/*.prompt', 'c.prompt', true],
    ['**/*.prompt', '/a/c.prompt.md', false],
    ['**/*.prompt.{yml,yaml}', '/a/x.prompt.yaml', true],
    ['**/*.prompt.{yml,yaml}', '/a/x.prompt.json', false],
    ['**/prompts/**/*.txt', '/w/prompts/a.txt', true],
    ['**/prompts/**/*.txt', '/w/prompts/deep/er/a.txt', true],
    ['**/prompts/**/*.txt', '/w/myprompts/a.txt', false],
    ['*.txt', 'a/b.txt', false],
    ['**/a?.md', '/x/ab.md', true],
    ['**/a?.md', '/x/a.md', false],
    ['**/[a-c]*.md', '/x/beta.md', true],
    ['**/[!a-c]*.md', '/x/beta.md', false],
    ['**/{SKILL,CLAUDE}.md', '/x/skill.md', true],
    ['**/a+b(c).txt', '/x/a+b(c).txt', true],
    ['[', '[', true],
    ['{a,b', 'a', true],
  ];
  for (const [glob, file, expected] of cases) {
    it(`${glob} ${expected ? 'matches' : 'does not match'} ${file}`, () => {
      assert.equal(matches(glob, file), expected);
    });
  }

  it('of the manifest are readable, and match the conventions they are for', () => {
    const manifest = JSON.parse(readFileSync(path.join(__dirname, '../../../package.json'), 'utf8')) as { contributes: { configuration: { properties: Record<string, { default: string[] }> } } };
    const globs = manifest.contributes.configuration.properties['firstToken.promptFiles']!.default.map(globPattern);
    const any = (file: string) => globs.some((glob) => glob.test(file));
    for (const file of ['/w/a.prompty', '/w/a.prompt', '/w/a.prompt.md', '/w/a.prompt.yml', '/w/.github/agents/x.agent.md', '/w/CLAUDE.md', '/w/x/SKILL.md', '/w/.claude/commands/fix.md', '/w/plugins/skprompt.txt', '/w/promptfooconfig.yaml', '/w/x.poml', '/w/baml_src/main.baml', '/w/system_prompt.j2', '/w/prompts/chat/base.hbs', '/w/app/prompts.py', '/w/chat_template.jinja']) assert.ok(any(file), file);
    for (const file of ['/w/README.md', '/w/src/index.ts', '/w/nginx.conf.j2', '/w/data.json', '/w/notes.txt']) assert.ok(!any(file), file);
  });
});
