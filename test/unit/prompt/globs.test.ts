import assert from 'node:assert/strict';
import { globPattern } from '../../../src/prompt/globs';

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
});
