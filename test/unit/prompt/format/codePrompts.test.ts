import assert from 'node:assert/strict';
import { lintFile } from '../../../../src/prompt/lint';
import { parsePromptFile, useCodeReader } from '../../../../src/prompt/parse';
import { parseCode } from '../../../../src/prompt/format/code';

const rules = 'Answer politely and briefly, in the language of the question, and never guess.\n'.repeat(40);
const warnings = (text: string, file: string) => lintFile(text, file).findings.filter(({ severity }) => severity === 'warning').map(({ code, line }) => [code, line]);
const prompts = (text: string, file: string) => parsePromptFile(text, file)?.prompts.map(({ name }) => name) ?? [];

describe('prompt strings in code without a telling name', () => {
  before(() => { useCodeReader(parseCode); });

  const clock: readonly (readonly [string, string, string])[] = [
    ['returned by any function', 'bot.py', `from datetime import datetime\ndef build(q):\n    return f"""You are a bot.\nNow: {datetime.now()}\n${rules}"""\n`],
    ['passed to any call', 'bot.py', `from datetime import datetime\nask(model, f"""You are a bot.\nNow: {datetime.now()}\n${rules}""", q)\n`],
    ['given to any name', 'bot.py', `from datetime import datetime\ntext = f"""# Role\nYour task is to help.\nNow: {datetime.now()}\n${rules}"""\n`],
    ['an item of a list', 'bot.py', `from datetime import datetime\nparts = [f"""Act as a lawyer.\nNow: {datetime.now()}\n${rules}"""]\n`],
    ['an arrow function', 'bot.ts', `export const build = () => \`You are a bot.\nNow: \${new Date().toISOString()}\n${rules}\`;\n`],
    ['a value of an object', 'bot.ts', `ask({ text: \`You’re our helper.\nNow: \${new Date().toISOString()}\n${rules}\` });\n`],
    ['a variable', 'bot.js', `const text = \`You are Ada.\nNow: \${Date.now()}\n${rules}\`;\n`],
  ];
  for (const [what, file, text] of clock) {
    it(`${what} is judged (${file})`, () => {
      const found = warnings(text, file);
      assert.equal(found.length, 1, JSON.stringify(found));
      assert.ok(['clock', 'random'].includes(String(found[0]?.[0])));
    });
  }

  it('is called by its variable, else by its function', () => {
    assert.deepEqual(prompts(`def build(q):\n    return f"""You are a bot. {q}\n${rules}"""\ntext = """You are a bot.\n${rules}"""\n`, 'bot.py'), ['build', 'text']);
  });

  const quiet: readonly (readonly [string, string, string])[] = [
    ['a docstring', 'a.py', `def f():\n    """You are a reader of this function.\n${rules}"""\n    return 1\n`],
    ['the docstring of a module', 'a.py', `"""You are a reader of this module.\n${rules}"""\nx = "message"\n`],
    ['a short string', 'a.py', 'def f(n):\n    return f"You are a winner, {n}!"\n'],
    ['a long text that speaks to nobody', 'a.py', `def f(n):\n    return f"""Dear {n},\nthank you for your message. If you are a member, write to us.\n${rules}"""\n`],
    ['a page', 'a.ts', `export const page = (message: string) => \`<html><body>\${message}${rules}</body></html>\`;\n`],
  ];
  for (const [what, file, text] of quiet) it(`${what} is not (${file})`, () => assert.deepEqual(prompts(text, file), []));
});
