import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import type { JudgeBy, ScannedFile } from '../../../src/editor/prefixMessages';
import { fileView, fixesAt, scannedFile, worstFirst } from '../../../src/editor/prefixView';
import * as prompt from '../../../src/prompt/index';
import { findingCodes } from '../../../src/prompt/findingCodes';
import { proofPair, ruleArithmetic } from '../../../src/prompt/proofPair';

const root = path.resolve(__dirname, '../../..');
const rules = 'Always answer politely and briefly, in the language of the question.\n'.repeat(60);
const judge = (more: Partial<JudgeBy> = {}): JudgeBy => ({ target: {}, overrides: {}, scope: 'user', variables: {}, minLostTokens: 256, today: '2026-12-01', cost: { prefillRate: null, price: null }, tokenizer: null, tokens: 'auto', chatTemplate: null, ...more });

function analysed(text: string, name: string, rule = 'vllm') {
  const file = prompt.parsePromptFile(text, name);
  assert.ok(file);
  return prompt.analyseFile(file, { rule, today: '2026-12-01' });
}

function viewOf(text: string, name: string, by: JudgeBy = judge()) {
  const one = analysed(text, name);
  return fileView(prompt, one, prompt.ruleFor({}, prompt.loadRules()), by, { hidden: null, problems: [], countedBy: null });
}

const clock = `---\nname: x\n---\nsystem:\nIt is {{current_time}}.\n${rules}\nuser:\n{{question}}\n`;

describe('what the editor shows of a file', () => {
  it('says of placeholders in a format without variables that they are sent as written, and finds nothing', () => {
    const claims = viewOf(`Today is {{date}}. Greet {{customer_name}}.\n${rules}`, 'claims.prompt.md');
    assert.ok(claims.prompts[0]?.details.includes('Sent as written: `{{date}}`, `{{customer_name}}`. This format has no variables, so nothing replaces them here.'), claims.prompts[0]?.details.join('\n'));
    assert.deepEqual(claims.findings, []);
    assert.ok(viewOf(clock, 'a.prompty').prompts[0]?.details.every((line) => !line.startsWith('Sent as written')));
  });

  it('has a lens for each finding that costs tokens, with ms and money where they are known', () => {
    const plain = viewOf(clock, 'a.prompty');
    assert.equal(plain.lenses.length, 1);
    assert.match(plain.lenses[0]!.title, /computed again$/);
    const priced = viewOf(clock, 'a.prompty', judge({ cost: { prefillRate: 1000, price: { currency: 'USD', inputPerMillion: 10, cachedInputPerMillion: 1 } } }));
    assert.match(priced.lenses[0]!.title, /\(about \d[\d,]* ms, 0\.0\d+ USD per request\)$/);
  });

  it('keeps levels of evidence apart', () => {
    const call = viewOf(`Now {{ now() }}\n${rules}`, 'x_prompt.jinja').hovers[0]!.lines.join('\n');
    assert.match(call, /certain \(level 1 of 5\)/);
    const name = viewOf(clock, 'a.prompty').hovers[0]!.lines.join('\n');
    assert.match(name, /hardly means anything else \(level 0 of 5\)/);
    const weak = viewOf(`{{ message }}\n${rules}`, 'x_prompt.jinja').hovers[0]!.lines.join('\n');
    assert.match(weak, /level 0 of 5/);
    const unknown = viewOf(`{{ thing }}\n${rules}`, 'x_prompt.jinja').hovers[0]!.lines.join('\n');
    assert.match(unknown, /Evidence: none/);
    const marked = viewOf(`{# first-token: thing=request #}{{ thing }}\n${rules}`, 'x_prompt.jinja').hovers[0]!.lines.join('\n');
    assert.match(marked, /you said so/);
  });

  it('names the values whose length no number holds', () => {
    const details = (text: string) => viewOf(text, 'x_prompt.jinja').prompts[0]!.details.filter((line) => line.startsWith('Not counted'));
    assert.deepEqual(details(`${rules}{{ tone }} {{ place }} {{ a }} {{ b }} {{ question }} {{ c }}`), ['Not counted: the values of tone, place, a and 1 more.']);
    assert.deepEqual(details(`${rules}{{ question }}`), []);
    assert.deepEqual(details(rules), []);
  });

  it('shows more than a sentence of a static prompt only when it is not cached as it stands', () => {
    const one = (rule: string) => {
      const file = analysed(JSON.stringify({ model: 'claude-sonnet-5', system: rules.repeat(4), messages: [{ role: 'user', content: 'x' }] }), 'r.json', rule);
      return fileView(prompt, file, { ...prompt.ruleFor({ cache: rule }, prompt.loadRules()) }, judge(), { hidden: null, problems: [], countedBy: null }).prompts[0]!;
    };
    assert.deepEqual([one('vllm').allStatic, one('anthropic').allStatic], [true, false]);
    assert.match(one('anthropic').sentence, /without a cache_control marker: add one/);
  });

  it('offers a proof of a quiet file that is sent to the selected endpoint as it is, or that marks what is cached', () => {
    const provable = (text: string, name: string, url: string | null) => viewOf(text, name, judge({ target: { url } })).prompts[0]!;
    const body = JSON.stringify({ model: 'tiny', messages: [{ role: 'user', content: rules }] });
    for (const [url, offered] of [['http://127.0.0.1:8000', true], [null, false]] as const) {
      const one = provable(body, 'r.json', url);
      assert.deepEqual([one.allStatic, one.provable], [true, offered]);
      assert.match(one.sentence, /^about [\d,]+ tokens, all static$/);
      assert.equal(provable(rules, 'AGENTS.md', url).provable, false, 'an assistant sends its instructions in its own way');
    }
  });

  it('says where no endpoint is selected that the rule is assumed', () => {
    assert.equal(viewOf(clock, 'a.prompty').rule.why, 'assumed: no endpoint selected');
    assert.equal(viewOf(clock, 'a.prompty', judge({ target: { url: 'http://127.0.0.1:8000' } })).rule.why, 'assumed, as no endpoint tells');
  });

  it('sums the prompts of a file up for the tree, and names each in its tooltip', () => {
    const line = (name: string, tokens: number) => JSON.stringify({ custom_id: name, body: { model: 'm', messages: [{ role: 'user', content: 'word '.repeat(tokens) }] } });
    const one = analysed(`${line('a', 100)}\n${line('b', 300)}\n`, 'batch.jsonl');
    const row = scannedFile(one)!;
    assert.equal(row.tokens, one.prompts.reduce((sum, { report }) => sum + report.sameVariant.total, 0));
    assert.deepEqual(row.sentences.map((sentence) => sentence.slice(0, 8)), ['a: about', 'b: about']);
    const baml = (name: string, body: string) => `function ${name}(question: string) -> string {\n  client C\n  prompt #"\n    ${body}\n  "#\n}\n`;
    const mixed = scannedFile(analysed(baml('Broken', `{{ question }}\n${rules}`) + baml('Good', `${rules}\n{{ question }}`), 'f.baml'))!;
    assert.ok(mixed.reusable > 0.4 * mixed.tokens && mixed.reusable < 0.6 * mixed.tokens, `${mixed.reusable} of ${mixed.tokens}`);
  });

  it('shows backticks of a place as they are', () => {
    const hover = viewOf(`---\nargument-hint: x\n---\n!\`git status\`\n${rules}`, '.claude/commands/c.md').hovers[0]!;
    assert.match(hover.lines[0]!, /^\*\*`` !`git status` ``\*\*/);
  });

  it('is empty but for the syntax when the file is switched off', () => {
    const off = viewOf(clock.replace('name: x', '# first-token: off\nname: x'), 'a.prompty');
    assert.deepEqual([off.off, off.prompts, off.lenses, off.hovers, off.findings], [true, [], [], [], []]);
  });

  it('survives structured cloning, since it crosses a thread', () => {
    assert.deepEqual(structuredClone(viewOf(clock, 'a.prompty')), viewOf(clock, 'a.prompty'));
  });

  it('limits a batch of thousands', () => {
    const line = JSON.stringify({ custom_id: 'x', body: { model: 'm', messages: [{ role: 'user', content: 'Hi' }] } });
    assert.equal(viewOf(`${line}\n`.repeat(3000), 'batch.jsonl').prompts.length, 100);
  });

  it('offers each fix once', () => {
    const one = analysed(clock, 'a.prompty');
    const at = clock.indexOf('{{current_time}}');
    const fixes = fixesAt(prompt, one, { start: at, end: at + 3 });
    assert.equal(new Set(fixes.map(({ title }) => title)).size, fixes.length);
    assert.ok(fixes.some(({ kind }) => kind === 'move-behind') && fixes.some(({ setting }) => setting !== null));
    assert.deepEqual(fixesAt(prompt, one, { start: clock.length - 1, end: clock.length }).filter(({ kind }) => kind === 'move-behind'), []);
  });

  it('lets each finding of an included file be ignored by its own code', () => {
    const text = `{% include "p.j2" %}\n${rules}`;
    const file = prompt.parsePromptFile(text, 'a.j2', { readFile: (name) => (name === 'p.j2' ? '{{ current_time }} {{ request_id }}' : null) });
    assert.ok(file);
    const one = prompt.analyseFile(file, { rule: 'vllm', today: '2026-12-01' });
    const codes = one.findings.filter(({ start }) => start === 0).map(({ code }) => code);
    assert.ok(new Set(codes).size === 2, `two findings at one place: ${codes.join(', ')}`);
    const titles = fixesAt(prompt, one, { start: 0, end: 3 }).map(({ title }) => title);
    for (const code of codes) assert.ok(titles.includes(`Ignore ${code} in this file`), `${code}: ${titles.join(', ')}`);
  });

  it('sorts the worst first', () => {
    const file = (name: string, reusable: number, tokens: number): ScannedFile => ({ path: name, format: 'prompty', tokens, reusable, warnings: 0, severity: null, allStatic: false, about: false, sentences: [] });
    const sorted = [file('good', 90, 100), file('small', 0, 10), file('bad', 0, 1000), file('empty', 0, 0)].sort(worstFirst);
    assert.deepEqual(sorted.map((one) => one.path), ['bad', 'small', 'good', 'empty']);
    const scanned = scannedFile(analysed(clock, 'a.prompty'));
    assert.ok(scanned && scanned.warnings === 1 && scanned.severity === 'warning' && scanned.reusable < 20);
    assert.equal(scannedFile(analysed(rules, 'static.prompt.md'))?.allStatic, true);
  });
});

describe('the findings page', () => {
  it('has a section with what, why and fix for every code, and no other', () => {
    const page = readFileSync(path.join(root, 'docs/findings.md'), 'utf8');
    const sections = new Map(page.split(/^## /m).slice(1).map((section) => [section.slice(0, section.indexOf('\n')).trim(), section]));
    assert.deepEqual([...sections.keys()].sort(), Object.keys(findingCodes).sort());
    for (const [code, section] of sections) for (const word of ['What', 'Why', 'Fix']) assert.ok(section.includes(`**${word}.**`), `${code}: ${word}`);
  });
});

describe('the two requests of a proof', () => {
  it('differ in what changes in the scope, first of all where the lens says so', () => {
    const pair = proofPair(prompt, analysed(clock.replace('name: x', 'sample:\n  current_time: 2026-05-04 09:31:07\n  question: Why?'), 'a.prompty'), 0);
    assert.match(pair.change, /current_time/);
    assert.match(pair.first.messages[0]!.text, /^It is 2026-05-04 09:31:07\./);
    assert.match(pair.second.messages[0]!.text, /^It is 3137-16-15 10:42:18\./);
    assert.deepEqual(pair.unrendered, []);
  });

  it('have another clock for clock calls', () => {
    const pair = proofPair(prompt, analysed(`It is {{ now().strftime('%Y-%m-%d %H:%M') }}.\n${rules}`, 'x_prompt.jinja'), 0);
    assert.match(pair.first.messages[0]!.text, /^It is 1970-01-01 00:00\./);
    assert.match(pair.second.messages[0]!.text, /^It is 1970-01-02 01:01\./);
  });

  it('differ at the very end when nothing in the file changes', () => {
    const pair = proofPair(prompt, analysed(rules, 'static.prompt.md'), 0);
    assert.match(pair.change, /nothing in the file changes/);
    assert.ok(pair.second.messages[0]!.text.startsWith(pair.first.messages[0]!.text));
  });

  it('name what they leave unfilled, and change nested values', () => {
    const pair = proofPair(prompt, analysed(`${rules}{{ customer.question }}`, 'x_prompt.jinja'), 0);
    assert.deepEqual(pair.unrendered, ['customer.question']);
    assert.match(pair.second.messages[0]!.text, /another value$/);
  });
});

describe('the arithmetic of a rule', () => {
  it('of the longest prefix takes token counts', () => {
    const vllm = ruleArithmetic(prompt, prompt.ruleNamed('vllm'), null, prompt.bytesCounter);
    assert.equal(vllm.block, 16);
    assert.equal(vllm.ofTokens!(424, 424).tokens, 416);
    assert.equal(vllm.ofTokens!(426, 390).tokens, 384);
  });

  it('of breakpoints asks for the bodies', () => {
    const anthropic = ruleArithmetic(prompt, prompt.ruleNamed('anthropic'), 'claude-sonnet-4-5', prompt.bytesCounter);
    assert.equal(anthropic.ofTokens, null);
    const body = (marked: boolean, question: string) => ({ model: 'claude-sonnet-4-5', system: [{ type: 'text', text: rules.repeat(2), ...(marked ? { cache_control: { type: 'ephemeral' } } : {}) }], messages: [{ role: 'user', content: question }] });
    assert.equal(anthropic.ofBodies(body(false, 'a'), body(false, 'b')).tokens, 0);
    assert.ok(anthropic.ofBodies(body(true, 'a'), body(true, 'b')).tokens > 1024);
  });
});
