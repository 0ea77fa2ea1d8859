import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseCode } from '../../../../src/prompt/format/code';

const python = (i: number): string => `PROMPT_${String(i)} = f"""You answer for {team}, at {datetime.now()}.\nRule ${String(i)}: be brief."""\n\ndef add_${String(i)}(a, b):\n    if b > ${String(i)}:\n        return a + str(b)\n    return [a, b]\n\n`;
const script = (i: number): string => `export const prompt${String(i)} = \`You answer for \${team}, at \${new Date().toISOString()}.\nRule ${String(i)}: be brief.\`;\nfunction add${String(i)}(a: string, b: number): string {\n  return a + b.toFixed(${String(i)});\n}\n`;
const bits = ['"""', '`', "'", '${', '{', '}', '(', '\n', 'prompt = "You are the assistant of everyone who asks for help here"\n', 'x', '', '# a comment\n', '/* a', '*/', 'f"""', '    return 1\n'];

describe('prompt/format: code parsed again after an edit', () => {
  for (const [language, path, make] of [['python', 'prompts.py', python], ['javascript', 'prompts.ts', script]] as const) {
    it(`${language}: reads every prompt of a text as if it had never seen another`, () => {
      const whole = Array.from({ length: 200 }, (_, i) => make(i)).join('');
      assert.ok(whole.length > 20_000);
      const read = (text: string, name: string) => parseCode({ path: name, text, readFile: () => null }, language, false).prompts;
      let round = 0;
      fc.assert(
        fc.property(fc.array(fc.tuple(fc.nat(), fc.constantFrom(...bits), fc.nat({ max: 30 })), { minLength: 1, maxLength: 5 }), (edits) => {
          round += 1;
          let text = whole;
          read(text, path);
          for (const [at, bit, remove] of edits) {
            const i = at % (text.length + 1);
            text = text.slice(0, i) + bit + text.slice(i + remove);
            assert.deepEqual(read(text, path), read(text, `fresh${String(round)}-${String(text.length)}-${path}`));
          }
        }),
        { numRuns: 25, seed: 3 },
      );
    }).timeout(60_000);
  }
});
