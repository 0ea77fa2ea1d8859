import assert from 'node:assert/strict';
import { parsePromptFile } from '../../../../src/prompt/parse';
import type { Piece } from '../../../../src/prompt/prompt';
import { unroll } from '../../../../src/prompt/volatility';

function read(text: string, path: string, files: Readonly<Record<string, string>> = {}) {
  const file = parsePromptFile(text, path, { readFile: (name) => files[name] ?? null });
  assert.ok(file, path);
  const prompt = file.prompts[0];
  assert.ok(prompt);
  return { file, prompt, pieces: unroll(file, prompt) };
}

const values = (pieces: readonly Piece[]): string[] => pieces.filter(({ kind }) => kind === 'value').map(({ judgement }) => `${judgement.name} ${judgement.volatility}`);
const sent = (pieces: readonly Piece[]): string => pieces.map(({ kind, text }) => (kind === 'value' ? '<>' : text)).join('');

describe('prompt/format: arguments of Handlebars partials', () => {
  const files = { 'p/tone.hbs': '{{style}} {{who}} {{when}} {{other}}', 'p/item.hbs': '{{title}} {{current_time}}' };
  it('names inside have the values they were given, and no others', () => {
    assert.deepEqual(values(read('{{> tone style="plain" who=user.name when=current_time}}', 'p/a.hbs', files).pieces).filter((value) => !value.endsWith(' constant')), ['user.name session', 'current_time minute', 'other unknown']);
    assert.deepEqual(values(read('{{> tone who="x"}}', 'p/a.hbs', files).pieces), ['style deploy', ' constant', 'when unknown', 'other unknown']);
  });
  it('a context gives the bare names its class', () => {
    assert.deepEqual(values(read('{{> item user}}', 'p/a.hbs', files).pieces), values(read('{{#with user}}{{title}} {{current_time}}{{/with}}', 'p/a.hbs').pieces));
    assert.deepEqual(values(read('{{> item query}}', 'p/a.hbs', files).pieces)[0], 'title request');
    assert.deepEqual(values(read('{{> item}}', 'p/a.hbs', files).pieces), ['title deploy', 'current_time minute']);
  });
});

describe('prompt/format: lines of block tags', () => {
  const text = 'a\n  {% if x %}\n  b\n  {% endif %}\nc {% if y %}d{% endif %}\n{# note #}\ne\n';
  it('stay in plain Jinja and go in a chat template', () => {
    assert.equal(sent(read(text, 'a.j2').pieces), 'a\n  \n  b\n  \nc d\n\ne\n');
    assert.equal(sent(read(text, 'chat_template.jinja').pieces), 'a\n  b\nc de\n');
  });
  it('a plus keeps them', () => {
    assert.equal(sent(read('a\n  {%+ if x +%}\nb{% endif %}\n', 'chat_template.jinja').pieces), 'a\n  \nb');
    assert.equal(sent(read('a {{- x }}\n  {{ y }}\n', 'chat_template.jinja').pieces), 'a<>\n  <>\n');
  });
});

describe('prompt/format: chat arrays of promptfoo', () => {
  const files = { 'q/promptfooconfig.yaml': 'providers: [a]\nprompts:\n  - file://p.json\n  - file://p.yaml\n' };
  const messages = (text: string, path: string): readonly (readonly [string, string])[] => {
    const { prompt, pieces } = read(text, path, files);
    return prompt.parts.map(({ role }, index) => [role, sent(pieces.filter(({ part }) => part === index))] as const);
  };
  it('are one message a role, whatever the order of the keys, without the quotes and brackets around them', () => {
    assert.deepEqual(messages('[\n  {"role": "system", "content": "Say\\n{{tone}} \\"things\\"."},\n  {"content": "{{question}}", "role": "user"}\n]\n', 'q/p.json'), [['system', 'Say\n<> "things".'], ['user', '<>']]);
    assert.deepEqual(messages('- role: system\n  content: |\n    Be brief.\n    Be {{tone}}.\n- content: "{{question}}"\n  role: user\n', 'q/p.yaml'), [['system', 'Be brief.\nBe <>.\n'], ['user', '<>']]);
  });
  it('are cut at the role keys where tags stand around messages', () => {
    const text = '[\n  {"role": "system", "content": "Be brief."},\n{% for m in history %}  {"role": "{{ m.role }}", "content": "{{ m.content }}"},\n{% endfor %}  {"role": "user", "content": "{{question}}"}\n]\n';
    const cut = messages(text, 'q/p.json');
    assert.deepEqual([cut[0]?.[0], cut.at(-1)], ['system', ['user', '<>']]);
    assert.ok(cut[0]?.[1].startsWith('Be brief.'));
  });
  it('keep exact offsets', () => {
    const text = '[{"role": "system", "content": "a\\n\\u00e9 {{now}} b"}, {"role": "user", "content": "{{question}}"}]';
    for (const piece of read(text, 'q/p.json', files).pieces) if (piece.kind === 'value') assert.match(text.slice(piece.start, piece.end), /^\{\{\w+\}\}$/);
  });
});
