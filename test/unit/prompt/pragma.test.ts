import assert from 'node:assert/strict';
import { lintFile } from '../../../src/prompt/lint';
import { useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';

const rules = Array.from({ length: 40 }, (_, i) => `Rule ${String(i + 1)}: keep the answer to the point and name the source of each figure.`).join('\n');
const warnings = (text: string, file: string, options = {}): string[] => lintFile(text, file, options).findings.filter((f) => f.severity === 'warning').map((f) => f.code);
const inYaml = (text: string): string => text.replace(/^/gm, '      ');

/** A file of each format with one warning; `COMMENT` is where its comment stands. */
const files: Readonly<Record<string, readonly [file: string, text: string]>> = {
  jinja: ['a.j2', `{# COMMENT #}\n{{ question }}\n${rules}`],
  nunjucks: ['a.njk', `{# COMMENT #}\n{{ question }}\n${rules}`],
  liquid: ['a.liquid', `{% comment %} COMMENT {% endcomment %}\n{{ question }}\n${rules}`],
  handlebars: ['a.hbs', `{{!-- COMMENT --}}\n{{question}}\n${rules}`],
  mustache: ['a.mustache', `{{! COMMENT }}\n{{question}}\n${rules}`],
  dotprompt: ['a.prompt', `---\nmodel: m\n---\n{{! COMMENT }}\n{{question}}\n${rules}`],
  'prompty front matter': ['a.prompty', `---\nname: a # COMMENT\n---\nsystem:\n{{question}}\n${rules}`],
  'github models': ['a.prompt.yml', `# COMMENT\nmessages:\n  - role: system\n    content: |\n${inYaml(`{{question}}\n${rules}`)}\n`],
  'semantic kernel': ['a.yaml', `# COMMENT\nname: a\ntemplate_format: handlebars\ntemplate: |\n${inYaml(`{{question}}\n${rules}`)}\n`],
  langchain: ['a.yaml', `# COMMENT\n_type: prompt\ninput_variables: [question]\ntemplate: |\n${inYaml(`{question}\n${rules}`)}\n`],
  promptfoo: ['promptfooconfig.yaml', `# COMMENT\nproviders: [a]\nprompts:\n  - |\n${inYaml(`{{question}}\n${rules}`)}\n`],
  poml: ['a.poml', `<poml><!-- COMMENT -->\n<task>{{question}}\n${rules}</task></poml>`],
  baml: ['a.baml', `// COMMENT\nfunction A(question: string) -> string {\n  prompt #"\n{{ question }}\n${rules}\n"#\n}\n`],
  python: ['prompt.py', `# COMMENT\nPROMPT = f"""{question}\n${rules}"""\n`],
  typescript: ['prompt.ts', `// COMMENT\nconst prompt = \`\${question}\n${rules}\`;\n`],
  'claude command': ['.claude/commands/a.md', `---\nargument-hint: x\n---\n<!-- COMMENT -->\n$ARGUMENTS\n${rules}`],
};

describe('prompt/pragma', () => {
  before(() => { useCodeReader(parseCode); });

  for (const [name, [file, text]] of Object.entries(files)) {
    const variable = name === 'claude command' ? 'arguments' : 'question';
    it(`${name}: off, ignore, ignore-line and a class, in the format's comment`, () => {
      assert.deepEqual(warnings(text.replace('COMMENT', 'a note'), file), ['request-value']);
      assert.deepEqual(warnings(text.replace('COMMENT', 'first-token: off'), file), []);
      assert.deepEqual(warnings(text.replace('COMMENT', 'first-token: ignore request-value'), file), []);
      assert.deepEqual(warnings(text.replace('COMMENT', 'first-token: ignore clock'), file), ['request-value']);
      assert.deepEqual(warnings(text.replace('COMMENT', `first-token: ${variable}=constant`), file), []);
      assert.equal(lintFile(text.replace('COMMENT', `first-token: ${variable}=session`), file).firstVolatile, null);
    });
  }

  it('ignores the line below, and only that', () => {
    const text = `Head\n{# first-token: ignore-line #}\n{{ question }}\n${rules}\n{{ query }}\n${rules}`;
    assert.deepEqual(lintFile(text, 'a.j2').findings.filter((f) => f.severity === 'warning').map((f) => f.text), ['{{ query }}']);
  });

  it('takes classes from the settings, below the pragma and above the name', () => {
    const text = `{# COMMENT #}{{ question }} {{ tone }}\n${rules}`;
    assert.deepEqual(warnings(text, 'a.j2', { variables: { question: 'deploy' } }), []);
    assert.equal(lintFile(text, 'a.j2', { variables: { question: 'deploy', tone: 'minute' } }).firstVolatile?.text, '{{ tone }}');
    assert.equal(lintFile(text.replace('COMMENT', 'first-token: tone=constant'), 'a.j2', { variables: { question: 'deploy', tone: 'minute' } }).firstVolatile, null);
    assert.deepEqual(warnings(text, 'a.j2', { variables: { question: 'sometimes' } }), ['request-value']);
  });

  it('is text when it stands in no comment', () => {
    assert.deepEqual(warnings(`first-token: off\n{{ question }}\n${rules}`, 'a.j2'), ['request-value']);
  });
});
