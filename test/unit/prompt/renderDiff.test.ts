import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { parsePromptFile } from '../../../src/prompt/parse';
import { compareRenders, firstDifference, renderPrompt, type RenderInputs } from '../../../src/prompt/renderDiff';
import { o200kCounter } from '../../../src/prompt/tokenizer';
import { wordCounter } from './pieces';

const clock = Date.UTC(2026, 2, 5, 7, 8, 9);
const inputs = (values: Record<string, unknown> = {}, more: Partial<RenderInputs> = {}): RenderInputs => ({ values, clock, nonce: 'n1', ...more });
const open = (text: string, name: string) => {
  const file = parsePromptFile(text, name);
  const prompt = file?.prompts[0];
  assert.ok(file && prompt, name);
  return { file, prompt };
};
const sent = (text: string, name: string, values: Record<string, unknown> = {}) => {
  const { file, prompt } = open(text, name);
  const rendered = renderPrompt(file, prompt, inputs(values));
  return { messages: rendered.chat.messages.map((m) => [m.role, m.text]), unrendered: rendered.unrendered };
};

describe('rendering a prompt', () => {
  it('Prompty with Jinja: filters, conditions, loops, set', () => {
    const text = `---\nname: x\n---\nsystem:\n{% set who = name | upper %}Hello {{ who }}.{% if vip %} Gold.{% elif known %} Known.{% else %} New.{% endif %}\n{% for d in docs %}{{ loop.index }}. {{ d.title }}\n{% endfor %}\nuser:\n{{ question }}\n`;
    const values = { name: 'Ada', vip: false, known: true, docs: [{ title: 'A' }, { title: 'B' }], question: 'Why?' };
    assert.deepEqual(sent(text, 'a.prompty', values), { messages: [['system', 'Hello ADA. Known.\n1. A\n2. B'], ['user', 'Why?']], unrendered: [] });
  });
  it('Handlebars: sections, items, else', () => {
    const text = `Hi {{user.name}}. {{#if a}}yes{{else}}no{{/if}} {{#unless a}}not{{/unless}} {{#each items}}[{{this}}]{{/each}}{{#each rows}}<{{title}}>{{/each}}`;
    assert.deepEqual(sent(text, 'a.hbs', { user: { name: 'Bo' }, a: false, items: [1, 2], rows: [{ title: 'x' }] }).messages.map((m) => m[1]), ['Hi Bo. no not [1][2]<x>']);
  });
  it('Mustache, Semantic Kernel, GitHub Models, LangChain', () => {
    assert.equal(sent('{{#a}}A{{/a}}{{^a}}B{{/a}} {{x}}', 'a.mustache', { a: [], x: 1 }).messages[0]?.[1], 'B 1');
    assert.equal(sent('Ask: {{$input}}', 'skprompt.txt', { input: 'hi' }).messages[0]?.[1], 'Ask: hi');
    assert.deepEqual(sent('messages:\n  - role: system\n    content: S\n  - role: user\n    content: "{{input}}!"\ntestData:\n  - input: from the file\nmodel: m\n', 'a.prompt.yml').messages.at(-1)?.[0], 'user');
    assert.equal(sent('{"_type":"prompt","input_variables":["a"],"template":"A {a} {{b}}"}', 'p.json', { a: 'x' }).messages[0]?.[1], 'A x {b}');
  });
  it('a value that is missing stays as written and is named', () => {
    assert.deepEqual(sent('Hi {{ name }} and {{ name }}', 'a.j2'), { messages: [['system', 'Hi {{ name }} and {{ name }}']], unrendered: ['name'] });
  });
  it('clocks are frozen in every language', () => {
    assert.equal(sent('{{ strftime_now("%Y-%m-%d") }}', 'a.j2').messages[0]?.[1], '2026-03-05');
    assert.match(String(sent('{{time.Date}}', 'skprompt.txt').messages[0]?.[1]), /05 March 2026/);
  });
  it('never throws on half-typed text', () => {
    fc.assert(
      fc.property(fc.array(fc.constantFrom('{{', '}}', '{%', '%}', ' if ', ' for x in y ', 'endif', 'endfor', '#each a', '/each', 'text', '\n', '"', '| upper', 'now()')), fc.constantFrom('a.j2', 'a.hbs', 'a.prompty', 'a.prompt', 'skprompt.txt'), (parts, name) => {
        const file = parsePromptFile(parts.join(''), name);
        for (const prompt of file?.prompts ?? []) renderPrompt(file!, prompt, inputs({ y: [1, 2], a: ['x'] }));
      }),
    );
  });
});

describe('the first difference of two texts', () => {
  it('in bytes, lines and tokens', () => {
    const a = 'é one\ntwo three four';
    const difference = firstDifference(a, 'é one\ntwo thread', o200kCounter(true));
    assert.ok(difference);
    assert.deepEqual([difference.at, difference.byte, difference.line, difference.column, difference.first, difference.second, difference.byIds], [14, 15, 2, 9, 'e four', 'ad', true]);
    assert.equal(difference.sameTokens, 4);
    assert.equal(firstDifference(a, a, wordCounter), null);
  });
  it('one is the beginning of the other', () => {
    assert.deepEqual([firstDifference('ab', 'abc', wordCounter)?.first, firstDifference('ab', 'abc', wordCounter)?.second], ['', 'c']);
  });
  it('never inside a character', () => {
    assert.equal(firstDifference('x👍', 'x👎', wordCounter)?.at, 1);
  });
  it('is where the texts are the same before and not after', () => {
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), fc.string({ unit: 'grapheme' }), (head, a, b) => {
        const difference = firstDifference(head + a, head + b, wordCounter);
        if (difference === null) return assert.equal(a, b);
        assert.equal((head + a).slice(0, difference.at), (head + b).slice(0, difference.at));
        assert.equal(new TextEncoder().encode((head + a).slice(0, difference.at)).length, difference.byte);
        return assert.notEqual((head + a).slice(difference.at, difference.at + 2), (head + b).slice(difference.at, difference.at + 2));
      }),
    );
  });
});

describe('comparing two renders', () => {
  const text = `---\nname: x\n---\nsystem:\nYou are careful.\nToday is {{ strftime_now("%Y-%m-%d") }}.\n\nuser:\n{{ question }}\n`;
  const { file, prompt } = open(text, 'a.prompty');
  const at = (place: { readonly start: number; readonly end: number } | null | undefined) => (place ? text.slice(place.start, place.end) : null);
  it('two clocks: the date', () => {
    const result = compareRenders(file, prompt, inputs({ question: 'q' }), inputs({ question: 'q' }, { clock: clock + 86_400_000 }), wordCounter);
    assert.equal(at(result.difference?.place), '{{ strftime_now("%Y-%m-%d") }}');
    assert.deepEqual([result.difference?.first.slice(0, 2), result.difference?.second.slice(0, 2)], ['5.', '6.']);
  });
  it('two input sets: the question', () => {
    const result = compareRenders(file, prompt, inputs({ question: 'one' }), inputs({ question: 'two' }), wordCounter);
    assert.equal(at(result.difference?.place), '{{ question }}');
  });
  it('the same inputs: none', () => {
    assert.equal(compareRenders(file, prompt, inputs({ question: 'one' }), inputs({ question: 'one' }), wordCounter).difference, null);
  });
  it('a branch that only one render takes', () => {
    const source = 'Start. {% if pro %}Pro text. {% endif %}Rest.';
    const { file: other, prompt: one } = open(source, 'b.j2');
    const result = compareRenders(other, one, inputs({ pro: true }), inputs({ pro: false }), wordCounter);
    assert.equal(source.slice(result.difference?.place?.start, result.difference?.place?.end), 'Pro text. ');
  });
});

const corpus = path.join(__dirname, '..', '..', '..', '..', 'shared', 'prompts');
describe('rendering the prompt files of the corpus', () => {
  before(function () {
    if (!existsSync(path.join(corpus, 'LABELS.jsonl'))) this.skip();
  });
  it('every file renders, and static files render to themselves', () => {
    for (const line of readFileSync(path.join(corpus, 'LABELS.jsonl'), 'utf8').split('\n').filter((l) => l !== '')) {
      const { file: name } = JSON.parse(line) as { readonly file: string };
      const file = parsePromptFile(readFileSync(path.join(corpus, name), 'utf8'), name);
      for (const prompt of file?.prompts ?? []) {
        const [a, b] = [renderPrompt(file!, prompt, inputs()), renderPrompt(file!, prompt, inputs())];
        assert.equal(a.text, b.text, name);
        assert.ok(a.text.length > 0, name);
      }
    }
  });
});
