import assert from 'node:assert/strict';
import fs from 'node:fs';
import path from 'node:path';
import fc from 'fast-check';
import { analyseFile, lintFile } from '../../../src/prompt/lint';
import { maximumLength, parsePromptFile, useCodeReader } from '../../../src/prompt/parse';
import { parseCode } from '../../../src/prompt/format/code';
import type { Span } from '../../../src/prompt/prompt';
import { unroll } from '../../../src/prompt/volatility';

const folder = path.join(__dirname, '../../fixtures/prompts');
const files: string[] = fs.readdirSync(folder, { recursive: true, encoding: 'utf8' }).filter((f) => fs.statSync(path.join(folder, f)).isFile() && !f.endsWith('.jsonl') && !f.includes('golden'));

function check(text: string, file: string): void {
  const parsed = parsePromptFile(text, file);
  if (parsed === null) return;
  for (const prompt of parsed.prompts) {
    for (const part of prompt.parts) inside(part.spans, text, file);
    for (const piece of unroll(parsed, prompt)) assert.ok(piece.start >= 0 && piece.start <= piece.end && piece.end <= text.length, `${file}: piece ${String(piece.start)}–${String(piece.end)} of ${String(text.length)}`);
  }
  const bytes = Buffer.byteLength(text);
  for (const f of lintFile(text, file).findings) assert.ok(f.start >= 0 && f.start <= f.end && f.end <= bytes, `${file}: ${f.code} ${String(f.start)}–${String(f.end)} of ${String(bytes)}`);
}

function inside(spans: readonly Span[], text: string, file: string): void {
  for (const span of spans) {
    assert.ok(span.start >= 0 && span.start <= span.end && span.end <= text.length, `${file}: ${span.kind} ${String(span.start)}–${String(span.end)} of ${String(text.length)}`);
    if (span.kind === 'literal' && span.map === undefined) assert.equal(span.text, text.slice(span.start, span.end), `${file}: literal text is the source`);
    if (span.kind === 'control') for (const branch of span.branches) inside(branch.spans, text, file);
  }
}

describe('prompt/parse: bad input', () => {
  before(() => { useCodeReader(parseCode); });

  it('never throws on a file cut anywhere', () => {
    for (const file of files) {
      const text = fs.readFileSync(path.join(folder, file), 'utf8');
      const step = Math.max(1, Math.floor(text.length / 12));
      for (let cut = 0; cut < text.length; cut += step) check(text.slice(0, cut), file);
    }
  }).timeout(60_000);

  it('never throws on mutated files, and offsets stay inside', () => {
    const bits = ['{{', '}}', '{%', '%}', '{#', '#}', '{{#if ', '{{/if}}', '{% endif %}', '"', "'", '`', '\\', '\n', '\r\n', '\0', '\ufeff', '---\n', '{"', '[', '😀', '\ud800', 'system:\n', '{{!--', '{{=<% %>=}}', '${', '#"', '<message role="user">', '{% raw %}', '{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}'];
    fc.assert(
      fc.property(fc.constantFrom(...files), fc.array(fc.tuple(fc.nat(), fc.constantFrom(...bits), fc.nat({ max: 40 })), { minLength: 1, maxLength: 6 }), (file, edits) => {
        let text = fs.readFileSync(path.join(folder, file), 'utf8');
        for (const [at, bit, remove] of edits) {
          const i = at % (text.length + 1);
          text = text.slice(0, i) + bit + text.slice(i + remove);
        }
        check(text, file);
      }),
      { numRuns: 200, seed: 7 },
    );
  }).timeout(60_000);

  it('never throws on arbitrary text under any name', () => {
    const names = ['a.j2', 'chat_template.jinja', 'a.hbs', 'a.mustache', 'a.liquid', 'a.njk', 'a.prompt', 'a.prompty', 'a.poml', 'a.baml', 'skprompt.txt', 'a.prompt.yml', 'promptfooconfig.yaml', 'a.yaml', 'a.json', 'a.jsonl', 'a.md', 'CLAUDE.md', '.claude/commands/a.md', 'a.txt', 'prompt.py', 'prompt.ts', 'a'];
    const text = fc.array(fc.oneof(fc.string(), fc.constantFrom('{{', '}}', '{% if x %}', '{% endif %}', '{{#each a}}', '{{/each}}', '---\n', 'prompt = f"""', '"""', '{"messages":[{"role":"user","content":"', '"}]}', 'messages:\n  - role: user\n    content: ', '<p for="a in b">', 'prompt #"', '"#'))).map((a) => a.join(''));
    fc.assert(fc.property(fc.constantFrom(...names), text, (name, t) => { check(t, name); }), { numRuns: 500, seed: 11 });
  }).timeout(60_000);

  it('refuses binary files and files over 5 MB with a problem at their head', () => {
    const binary = lintFile(Uint8Array.from([1, 0, 2, 0]), 'a.j2');
    assert.match(binary.findings[0]!.message, /not text/);
    const large = lintFile('x'.repeat(maximumLength + 1), 'a.j2');
    assert.match(large.findings[0]!.message, /5 MB/);
    assert.equal(large.findings[0]!.severity, 'information');
  });

  it('reads UTF-16 and keeps going after broken UTF-8', () => {
    const wide = Buffer.concat([Buffer.from([0xff, 0xfe]), Buffer.from('{{ now() }} text', 'utf16le')]);
    assert.equal(lintFile(wide, 'a.j2').firstVolatile?.text, '{{ now() }}');
    assert.equal(lintFile(Buffer.concat([Buffer.from([0xc3, 0x28]), Buffer.from('{{ now() }}')]), 'a.j2').firstVolatile?.text, '{{ now() }}');
  });

  it('takes blocks inside blocks without end: no exception, and what stands in them is still found', () => {
    const deep = (open: string, inside: string): string => `${open.repeat(20_000)}${inside}`;
    const rows: readonly (readonly [string, string, string])[] = [
      ['a.j2', deep('{% if x %}a ', '{{ now() }} b'), '{{ now() }}'],
      ['a.liquid', deep('{% for x in y %}a ', "{{ 'now' | date: '%H' }} b"), "{{ 'now' | date: '%H' }}"],
      ['a.hbs', deep('{{#if x}}a ', '{{current_time}} b'), '{{current_time}}'],
      ['a.mustache', deep('{{#x}}a ', '{{current_time}} b'), '{{current_time}}'],
      ['a.poml', deep('<b>a ', '{{current_time}} b'), '{{current_time}}'],
    ];
    for (const [name, text, first] of rows) {
      check(text, name);
      const result = lintFile(text, name);
      assert.ok(result.findings.some((f) => f.code === 'syntax' && /inside each other|never closed/.test(f.message)), name);
      const file = parsePromptFile(text, name);
      assert.ok(file !== null && unroll(file, file.prompts[0]!).some((piece) => piece.kind === 'value' && text.slice(piece.start, piece.end) === first), `${name}: ${first}`);
    }
    const closed = `${'{% if x %}'.repeat(300)}a${'{% endif %}'.repeat(300)} {{ now() }} ${'b '.repeat(300)}`;
    assert.deepEqual(lintFile(closed, 'a.j2').findings.filter((f) => f.code === 'syntax').map((f) => f.message), ['More than 100 blocks inside each other: these are not told apart.']);
    assert.equal(lintFile(closed, 'a.j2').firstVolatile?.text, '{{ now() }}');
  }).timeout(30_000);

  it('reads YAML whose collections stand inside each other without end as text, and says where', () => {
    const long = 'b '.repeat(800);
    const rows: readonly (readonly [string, string, number])[] = [
      ['a.prompt.yml', `content: ${'{'.repeat(500)}`, 9 + 63],
      ['a.prompt.yml', `content: ${'[{'.repeat(500)}`, 9 + 63],
      ['a.prompt.yml', `? ${'? '.repeat(20_000)}`, 2 * 64],
      ['a.prompt.yml', `- ${'- '.repeat(20_000)}`, 2 * 64],
      ['a.prompt.yml', Array.from({ length: 300 }, (_, i) => `${' '.repeat(i)}a:\n`).join(''), Array.from({ length: 64 }, (_, i) => i + 3).reduce((a, b) => a + b) + 64],
      ['a.prompty', `---\na: ${'{'.repeat(500)}\n---\nsystem:\nIt is {{current_time}}. ${long}`, 7 + 63],
      ['a.prompt', `---\na: ${'['.repeat(500)}\n---\nIt is {{current_time}}. ${long}`, 7 + 63],
      ['promptfooconfig.yaml', `prompts: ${'['.repeat(500)}`, 9 + 63],
    ];
    for (const [name, text, start] of rows) {
      const { findings } = lintFile(text, name);
      const syntax = findings.filter((f) => f.code === 'syntax');
      assert.equal(syntax.length, 1, `${name} ${text.slice(0, 20)}`);
      assert.match(syntax[0]!.message, /^YAML: more than 64 collections/);
      assert.equal(syntax[0]!.start, start, `${name} ${text.slice(0, 20)}`);
      assert.equal(findings.some((f) => f.severity === 'warning'), text.includes('current_time'), name);
    }
    const quoted = `model: a\nmessages:\n  - role: system\n    content: |\n      ${'{['.repeat(400)} {{current_time}}\n      ${long}\n    note: "${'{'.repeat(100)}"\n    tag: a${'['.repeat(100)} # ${'{'.repeat(100)}\n`;
    assert.deepEqual(lintFile(quoted, 'a.prompt.yml').findings.map((f) => f.code), ['clock'], 'braces inside texts are no collections');
  });

  it('takes expressions with brackets inside brackets without end', () => {
    for (const [name, head] of [['p.py', 'SYSTEM_PROMPT = f\"\"\"'], ['p.ts', 'const systemPrompt = `$'], ['a.j2', '{{ '], ['a.baml', 'function F(a: string) -> string {\n prompt #"\n{{ ']] as const) {
      for (const bit of ['{#', '{(', '{f(', '{[', '(', 'a[', 'f(']) check(`${head}${bit.repeat(10_000)}`, name);
    }
    for (const open of ['(', 'f(']) {
      const deep = `{{ ${open.repeat(5000)}now()${')'.repeat(5000)} }} ${'b '.repeat(800)}`;
      assert.deepEqual(lintFile(deep, 'a.j2').findings.map((f) => f.code), ['clock'], open);
    }
  }).timeout(60_000);

  it('makes one literal with a problem at its head of a file that a reader fails on', () => {
    try {
      useCodeReader(() => { throw new RangeError('Maximum call stack size exceeded'); });
      const result = lintFile('x\nSYSTEM_PROMPT = "You are"', 'p.py');
      assert.deepEqual(result.findings.map((f) => [f.code, f.line, f.message]), [['syntax', 1, 'This file could not be read: Maximum call stack size exceeded']]);
      assert.equal(result.firstVolatile, null);
      assert.ok(result.tokens.total > 0);
    } finally {
      useCodeReader(parseCode);
    }
    const strings = `SYSTEM_PROMPT = ${'f"{'.repeat(3000)}`;
    assert.doesNotThrow(() => lintFile(strings, 'p.py'));
    const unread = parsePromptFile('{{ now() }}', 'a.j2')!;
    const failing = { ...unread, prompts: [{ ...unread.prompts[0]!, get parts(): never { throw new RangeError('too deep'); } }] };
    assert.deepEqual(analyseFile(failing).findings.map((f) => [f.code, f.line]), [['syntax', 1]]);
  }).timeout(60_000);

  it('cuts cycles of includes and of macros', () => {
    const store: Record<string, string> = { 'p/a.j2': '{% include "b.j2" %}A {{ now() }}', 'p/b.j2': '{% include "a.j2" %}B' };
    const read = (file: string): string | null => store[file] ?? null;
    const result = lintFile(store['p/a.j2']!, 'p/a.j2', { readFile: read });
    assert.equal(result.firstVolatile?.text, '{{ now() }}');
    assert.equal(lintFile('{% macro a(x) %}{{ b(x) }}{% endmacro %}{% macro b(x) %}{{ a(x) }}{% endmacro %}{{ a(1) }}', 'a.j2').firstVolatile, null);
    assert.equal(lintFile('{% extends "a.j2" %}{% block x %}{% endblock %}', 'a.j2', { readFile: (f) => (f === 'a.j2' ? '{% extends "a.j2" %}' : null) }).firstVolatile, null);
  });

  it('survives a readFile that throws', () => {
    const result = lintFile('{% include "b.j2" %}{{ now() }}', 'a.j2', { readFile: () => { throw new Error('no'); } });
    assert.equal(result.firstVolatile?.text, '{{ now() }}');
  });

  it('reports half-typed syntax at its place and analyses the rest', () => {
    const result = lintFile('{% if x %}a\n{{ name.\n\n{{ now() }}\n', 'a.j2');
    assert.deepEqual(result.findings.filter((f) => f.code === 'syntax').map((f) => f.line), [1, 2]);
    assert.equal(result.firstVolatile?.line, 4);
  });
});
