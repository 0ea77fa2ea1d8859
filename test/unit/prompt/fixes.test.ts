import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { applyEdits, coarsenFormat, ignoreFixes, markerFixes, placeFixes, sortToolsFix, type Fix, type FixKind } from '../../../src/prompt/fixes';
import { structureFindings } from '../../../src/prompt/structure';
import { parseCode } from '../../../src/prompt/format/code';
import { analyseFile } from '../../../src/prompt/lint';
import { parsePromptFile, useCodeReader } from '../../../src/prompt/parse';
import { analysed, type Analysed } from './analysed';
import { wordCounter, words } from './pieces';

type Options = Parameters<typeof analysed>[3];
const edit = (text: string, fix: Fix | undefined) => {
  assert.ok(fix !== undefined && 'edits' in fix, 'an edit fix is offered');
  return applyEdits(text, fix.edits);
};
const fixesOf = (a: Analysed, text: string, code: string | null = 'clock') => {
  const place = a.report.places.find((p) => p.text.includes(text));
  assert.ok(place, `${text} is a changing place`);
  return placeFixes(place, a, code);
};
const lost = (a: Analysed, text: string) => a.report.places.filter((p) => p.changes && p.text.includes(text)).reduce((most, p) => Math.max(most, p.lostTokens), 0);

/** Applies the fix of a kind and analyses again: the place loses nothing any more, more is reusable, and no word is lost. */
function improves(source: string, file: string, text: string, kind: FixKind, options: Options & { readonly id?: string } = {}): string {
  const before = analysed(source, file, options.id, options);
  const fixed = edit(source, fixesOf(before, text).find((f) => f.kind === kind));
  const after = analysed(fixed, file, options.id, options);
  assert.ok(lost(before, text) >= 256, 'it mattered before');
  assert.ok(lost(after, text) < 256, `still ${lost(after, text)} lost:\n${fixed}`);
  assert.ok(after.report.sameVariant.reuse.tokens > before.report.sameVariant.reuse.tokens, 'more is reusable');
  assert.equal(after.report.total, before.report.total, 'every static word is still there');
  assert.deepEqual(after.file.problems, []);
  return fixed;
}

const rules = words(400, 'rule');
const prompty = `---\nname: x\n---\nsystem:\nYou are careful.\nThe time is {{current_time}}.\n${rules}\n\nuser:\nHello {{question}}\n`;

describe('fixes: moving', () => {
  it('a line behind the static text (Prompty)', () => {
    const fixed = improves(prompty, 'a.prompty', 'current_time', 'move-behind');
    assert.equal(fixed, `---\nname: x\n---\nsystem:\nYou are careful.\n${rules}\nThe time is {{current_time}}.\n\nuser:\nHello {{question}}\n`);
  });
  it('a line into the last user message (Prompty)', () => {
    const fixed = improves(prompty, 'a.prompty', 'current_time', 'move-to-user');
    assert.ok(fixed.endsWith(`${rules}\n\nuser:\nHello {{question}}\nThe time is {{current_time}}.\n`));
  });
  it('a sentence of a long line (Jinja)', () => {
    const text = `You are careful. Today is {{ now() }}. ${rules}\n`;
    assert.equal(improves(text, 'a.j2', 'now', 'move-behind'), `You are careful. ${rules} Today is {{ now() }}.\n`);
  });
  it('a line with its line end (Jinja, CRLF)', () => {
    const text = `You are careful.\r\nToday is {{ now() }}.\r\n${rules}\r\n`;
    assert.equal(improves(text, 'a.j2', 'now', 'move-behind'), `You are careful.\r\n${rules}\r\nToday is {{ now() }}.\r\n`);
  });
  it('the first line (Handlebars)', () => {
    assert.equal(improves(`Time: {{current_time}}\n${rules}`, 'a.hbs', 'current_time', 'move-behind'), `${rules}\nTime: {{current_time}}`);
  });
  it('with its indentation (GitHub Models)', () => {
    const text = `messages:\n  - role: system\n    content: |\n      Time: {{current_time}}\n      ${rules}\n  - role: user\n    content: "{{input}}"\nmodel: m\n`;
    assert.equal(improves(text, 'a.prompt.yml', 'current_time', 'move-behind'), `messages:\n  - role: system\n    content: |\n      ${rules}\n      Time: {{current_time}}\n  - role: user\n    content: "{{input}}"\nmodel: m\n`);
    assert.match(improves(text, 'a.prompt.yml', 'current_time', 'move-to-user'), /content: "\{\{input\}\} Time: \{\{current_time\}\}"/);
  });
  it('inside a JSON string (LangChain)', () => {
    const text = `{"_type":"prompt","input_variables":["current_time"],"template_format":"f-string","template":"You are.\\nTime: {current_time}\\n${rules}"}`;
    assert.equal(improves(text, 'p.json', 'current_time', 'move-behind'), `{"_type":"prompt","input_variables":["current_time"],"template_format":"f-string","template":"You are.\\n${rules}\\nTime: {current_time}"}`);
  });
  it('BAML, Semantic Kernel, Dotprompt', () => {
    improves(`function F(current_time: string) -> string {\n  client C\n  prompt #"\n    {{ _.role("system") }}\n    Time: {{ current_time }}\n    ${rules}\n    {{ _.role("user") }}\n    Go\n  "#\n}\n`, 'f.baml', 'current_time', 'move-behind');
    improves(`Time: {{time.now}}\n${rules}\n{{$input}}\n`, 'skprompt.txt', 'time.now', 'move-behind');
    improves(`{{role "system"}}\nTime: {{current_time}}\n${rules}\n{{role "user"}}\n{{question}}\n`, 'a.prompt', 'current_time', 'move-to-user');
  });
  it('never out of a condition or a loop, and not when it already stands last', () => {
    const kinds = (text: string, what: string) => fixesOf(analysed(text, 'a.j2'), what).map((f) => f.kind);
    assert.ok(!kinds(`{% if x %}Time: {{ now() }}{% endif %}\n${rules}`, 'now').includes('move-behind'));
    assert.ok(!kinds(`{% for d in documents %}{{ d }} {{ now() }}{% endfor %}\n${rules}`, 'now').includes('move-behind'));
    assert.ok(!kinds(`${rules}\nTime: {{ now() }}\n`, 'now').includes('move-behind'));
  });
  it('only into a string that substitutes, and not across the strings of a list', () => {
    useCodeReader(parseCode);
    const kinds = (text: string, file: string, what: string) => fixesOf(analysed(text, file), what).map((f) => f.kind);
    const ts = (user: string) => `const messages = [{ role: 'system', content: \`Now \${new Date().toISOString()}. ${rules}\` }, { role: 'user', content: ${user} }];\n`;
    assert.deepEqual([ts('"Say hi"'), ts('`Say hi`')].map((text) => kinds(text, 'a.ts', 'Date').includes('move-to-user')), [false, true]);
    const py = (user: string) => `def build(q):\n    return [{"role": "system", "content": f"""Now {datetime.now()}. ${rules}"""}, {"role": "user", "content": ${user}}]\n`;
    assert.deepEqual([py('"Say hi"'), py('f"Say hi"')].map((text) => kinds(text, 'a.py', 'now').includes('move-to-user')), [false, true]);
    assert.ok(edit(py('f"Say hi"'), fixesOf(analysed(py('f"Say hi"'), 'a.py'), 'now').find((f) => f.kind === 'move-to-user')).includes(String.raw`f"Say hi\nNow {datetime.now()}."`));
    assert.ok(!kinds(`SYSTEM_PROMPT = "\\n".join(["You", f"Now {datetime.now()}", """${rules}\n${rules}"""])\n`, 'a.py', 'now').includes('move-behind'));
  });
  it('into a plain YAML scalar only where it stays one', () => {
    const text = (line: string) => `messages:\n  - role: system\n    content: |\n      ${line}\n      ${rules}\n  - role: user\n    content: Hello {{input}}\nmodel: m\n`;
    const kinds = (line: string) => fixesOf(analysed(text(line), 'a.prompt.yml'), 'current_time').map((f) => f.kind);
    assert.ok(!kinds('At: {{current_time}} # x').includes('move-to-user'));
    assert.ok(kinds('It is {{current_time}} now').includes('move-to-user'));
  });
  it('shows what goes and what comes', () => {
    assert.equal(fixesOf(analysed(prompty, 'a.prompty'), 'current_time')[0]?.preview, '− The time is {{current_time}}.\n+ The time is {{current_time}}.');
  });
});

describe('fixes: coarser clocks', () => {
  it('drops the time of day of a format', () => {
    const cases: readonly (readonly [string, string | null])[] = [
      ['%Y-%m-%d %H:%M:%S', '%Y-%m-%d'],
      ['%Y-%m-%dT%H:%M:%SZ', '%Y-%m-%d'],
      ['%A, %d %B %Y, %I:%M %p', '%A, %d %B %Y'],
      ['%H:%M %d.%m.%Y', '%d.%m.%Y'],
      ['%H:%M', '%Y-%m-%d'],
      ['%d.%m.%Y %H:%M Uhr', '%d.%m.%Y'],
      ['%d.%m.%Y um %H:%M Uhr', '%d.%m.%Y'],
      ['%Y年%m月%d日 %H时%M分', '%Y年%m月%d日'],
      ['Now: %H:%M %d %b', 'Now: %d %b'],
      ['%H:%M on %d.%m.', null],
      ["dd.MM.yyyy HH:mm 'Uhr'", 'dd.MM.yyyy'],
      ['%c', '%x'],
      ['yyyy-MM-dd HH:mm:ss', 'yyyy-MM-dd'],
      ["yyyy-MM-dd'T'HH:mm", 'yyyy-MM-dd'],
      ['%Y-%m-%d', null],
      ['no format', null],
    ];
    for (const [format, expected] of cases) assert.equal(coarsenFormat(format), expected, format);
  });
  it('and the place then changes by the day', () => {
    const of = (text: string, file: string, what: string) => {
      const fixed = edit(text, fixesOf(analysed(text, file), what).find((f) => f.kind === 'coarsen'));
      return [fixed.replace(rules, '').trim(), analysed(fixed, file).report.places[0]?.judgement.volatility];
    };
    assert.deepEqual(of(`{{ strftime_now("%Y-%m-%d %H:%M") }} ${rules}`, 'a.j2', 'strftime'), ['{{ strftime_now("%Y-%m-%d") }}', 'day']);
    assert.deepEqual(of(`{{ now() }} ${rules}`, 'a.j2', 'now'), ["{{ now().strftime('%Y-%m-%d') }}", 'day']);
    assert.deepEqual(of(`{{time.now}} ${rules}`, 'skprompt.txt', 'time'), ['{{time.Date}}', 'day']);
  });
  it('with the quotes that the string around leaves free', () => {
    useCodeReader(parseCode);
    const of = (text: string, file: string) => edit(text, fixesOf(analysed(text, file), 'now').find((f) => f.kind === 'coarsen')).replace(rules, '…');
    assert.equal(of(`SYSTEM_PROMPT = f'Now {datetime.now()} ${rules}'\n`, 'a.py'), `SYSTEM_PROMPT = f'Now {datetime.now().strftime("%Y-%m-%d")} …'\n`);
    assert.equal(of(`SYSTEM_PROMPT = f"Now {datetime.now()} ${rules}"\n`, 'a.py'), `SYSTEM_PROMPT = f"Now {datetime.now().strftime('%Y-%m-%d')} …"\n`);
    assert.equal(of(`SYSTEM_PROMPT = f"Now {datetime.now():%d.%m.%Y %H:%M Uhr} ${rules}"\n`, 'a.py'), `SYSTEM_PROMPT = f"Now {datetime.now():%d.%m.%Y} …"\n`);
    const yaml = (quoted: string) => `_type: prompt\ninput_variables: []\ntemplate_format: jinja2\ntemplate: ${quoted}\n`;
    assert.equal(of(yaml(`'Now {{ now() }} ${rules}'`), 'c.yaml'), yaml(`'Now {{ now().strftime("%Y-%m-%d") }} …'`));
    assert.equal(of(yaml(`"Now {{ now() }} ${rules}"`), 'c.yaml'), yaml(`"Now {{ now().strftime('%Y-%m-%d') }} …"`));
  });
  it('not where something computes with the clock, or the language has no such call', () => {
    useCodeReader(parseCode);
    const kinds = (text: string, file: string) => fixesOf(analysed(text, file), 'now').map((f) => f.kind);
    assert.ok(!kinds(`SYSTEM_PROMPT = f"Now {datetime.now() + delta} ${rules}"\n`, 'a.py').includes('coarsen'));
    assert.ok(!kinds(`SYSTEM_PROMPT = f"Now {datetime.now()!r} ${rules}"\n`, 'a.py').includes('coarsen'));
    assert.ok(!kinds(`{{ now() | upper }} ${rules}`, 'a.j2').includes('coarsen'));
    assert.ok(!kinds(`providers: [x]\nprompts:\n  - 'Now {{ now() }}. ${rules}'\n`, 'promptfooconfig.yaml').includes('coarsen'));
  });
});

describe('fixes: splitting and marking', () => {
  const static2000 = words(2000, 'rule');
  it('ends the message before the changing line, so that message ends are reusable (OpenAI 5.6)', () => {
    const text = `---\nname: x\n---\nsystem:\n${static2000}\nTime: {{current_time}}\n`;
    const before = analysed(text, 'a.prompty', 'openai-5.6');
    assert.equal(before.report.reuse.tokens, 0);
    const fixed = edit(text, fixesOf(before, 'current_time').find((f) => f.kind === 'split'));
    assert.equal(fixed, `---\nname: x\n---\nsystem:\n${static2000}\nuser:\nTime: {{current_time}}\n`);
    const after = analysed(fixed, 'a.prompty', 'openai-5.6');
    assert.equal(after.report.reuse.tokens, 2000);
    assert.ok(!structureFindings({ ...after, counter: wordCounter }).some((f) => f.code === 'variable-in-static-message'));
  });
  it('in the other formats with roles (Anthropic)', () => {
    const cases: readonly (readonly [string, string])[] = [
      ['a.prompt', `{{role "system"}}\n${static2000}\nTime: {{current_time}}\n`],
      ['f.baml', `function F(current_time: string) -> string {\n  client C\n  prompt #"\n    {{ _.role("system") }}\n    ${static2000}\n    Time: {{ current_time }}\n  "#\n}\n`],
      ['a.prompt.yml', `messages:\n  - role: system\n    content: |\n      ${static2000}\n      Time: {{current_time}}\nmodel: claude-sonnet-5\n`],
      ['skprompt.txt', `<message role="system">${static2000}\nTime: {{$current_time}}</message>`],
    ];
    for (const [file, text] of cases) {
      const before = analysed(text, file, 'anthropic', { format: 'jinja' });
      const fixed = edit(text, fixesOf(before, 'current_time').find((f) => f.kind === 'split'));
      const after = analysed(fixed, file, 'anthropic', { format: 'jinja' });
      assert.deepEqual([before.report.withMarker, after.report.withMarker, after.file.problems], [0, 2000, []], `${file}\n${fixed}`);
    }
  });
  it('not where nothing would be left before it (BAML)', () => {
    const text = `function F(current_time: string) -> string {\n  client C\n  prompt #"\n    {{ _.role("system") }}\n    Time: {{ current_time }}\n    ${static2000}\n  "#\n}\n`;
    assert.ok(!fixesOf(analysed(text, 'f.baml', 'anthropic'), 'current_time').some((f) => f.kind === 'split'));
  });
  it('not under a rule that reuses inside messages', () => {
    assert.ok(!fixesOf(analysed(prompty, 'a.prompty', 'vllm'), 'current_time').some((f) => f.kind === 'split'));
  });
  const marked = (body: unknown, id: string) => {
    const text = JSON.stringify(body, null, 2);
    const before = analysed(text, 'r.json', id);
    const [fix] = markerFixes(before);
    assert.ok(fix !== undefined && 'edits' in fix && fix.edits.every(({ start, end, text: added }) => start === end && added !== ''), 'a marker is inserted, nothing is replaced');
    const fixed = edit(text, fix);
    const after = analysed(fixed, 'r.json', id);
    assert.ok(after.pieces.some((p) => p.kind === 'mark'), fixed);
    assert.deepEqual(markerFixes(after), []);
    return JSON.parse(fixed) as Record<string, unknown>;
  };
  it('a marker on the system block (Anthropic)', () => {
    const body = { model: 'claude-sonnet-5', system: 'You "are".', messages: [{ role: 'user', content: 'hi' }] };
    assert.deepEqual(marked(body, 'anthropic')['system'], [{ type: 'text', text: 'You "are".', cache_control: { type: 'ephemeral' } }]);
    const blocks = { model: 'claude-sonnet-5', system: [{ type: 'text', text: 'a' }, { type: 'text', text: 'b' }], messages: [{ role: 'user', content: 'hi' }] };
    assert.deepEqual(marked(blocks, 'anthropic')['system'], [{ type: 'text', text: 'a' }, { type: 'text', text: 'b', cache_control: { type: 'ephemeral' } }]);
    const tools = { model: 'claude-sonnet-5', tools: [{ name: 'a', input_schema: {} }, { name: 'b', input_schema: {} }], messages: [{ role: 'user', content: 'hi' }] };
    assert.deepEqual(marked(tools, 'anthropic')['tools'], [{ name: 'a', input_schema: {} }, { name: 'b', input_schema: {}, cache_control: { type: 'ephemeral' } }]);
  });
  it('a breakpoint on the system message (OpenAI 5.6), never on instructions', () => {
    const body = { model: 'gpt-5.6', messages: [{ role: 'system', content: 'S' }, { role: 'user', content: 'hi' }] };
    assert.deepEqual(marked(body, 'openai-5.6')['messages'], [{ role: 'system', content: [{ type: 'text', text: 'S', prompt_cache_breakpoint: { mode: 'explicit' } }] }, { role: 'user', content: 'hi' }]);
    const text = JSON.stringify({ model: 'gpt-5.6', instructions: 'S', input: 'hi' });
    assert.deepEqual(markerFixes(analysed(text, 'r.json', 'openai-5.6')), []);
  });
  it('a cache point (Bedrock)', () => {
    const body = { model: 'nova', system: [{ text: 'S' }], messages: [{ role: 'user', content: [{ text: 'hi' }] }] };
    assert.deepEqual(marked(body, 'bedrock')['system'], [{ text: 'S' }, { cachePoint: { type: 'default' } }]);
  });
  it('role metadata (BAML), where the message before the change ends', () => {
    const text = `function F(question: string) -> string {\n  client C\n  prompt #"\n    {{ _.role("system") }}\n    ${static2000}\n    {{ _.role("user") }}\n    {{ question }}\n  "#\n}\n`;
    const before = analysed(text, 'f.baml', 'anthropic');
    assert.equal(before.report.reuse.tokens, 0);
    const fixed = edit(text, markerFixes(before)[0]);
    assert.match(fixed, /_\.role\("system", cache_control=\{"type": "ephemeral"\}\)/);
    assert.equal(analysed(fixed, 'f.baml', 'anthropic').report.reuse.tokens, 2000);
  });
  it('none under a rule without markers', () => {
    assert.deepEqual(markerFixes(analysed(JSON.stringify({ model: 'm', messages: [{ role: 'system', content: 'S' }, { role: 'user', content: 'hi' }] }), 'r.json', 'vllm')), []);
  });
});

describe('fixes: tools, classes, silence', () => {
  it('sorts tools and keeps their text', () => {
    const text = `{"model":"m","tools":[\n  {"name": "b", "input_schema": {}},\n  {"name":"a","input_schema":{"x":1}}\n],"messages":[{"role":"user","content":"hi"}]}`;
    const fixed = edit(text, sortToolsFix(analysed(text, 'r.json'))[0]);
    assert.equal(fixed, `{"model":"m","tools":[\n  {"name":"a","input_schema":{"x":1}},\n  {"name": "b", "input_schema": {}}\n],"messages":[{"role":"user","content":"hi"}]}`);
    const after = analysed(fixed, 'r.json');
    assert.deepEqual(sortToolsFix(after), []);
    assert.ok(!structureFindings({ ...after, counter: wordCounter }).some((f) => f.code === 'unsorted-tools'));
  });
  it('marks a variable in the settings, and it no longer breaks', () => {
    const text = `{{current_time}} ${rules}`;
    const fixes = fixesOf(analysed(text, 'a.hbs'), 'current_time').filter((f) => f.kind === 'classify');
    assert.deepEqual(fixes.map((f) => ('setting' in f ? [f.setting.name, f.setting.value] : null)), [['current_time', 'constant'], ['current_time', 'session']]);
    const after = analysed(text, 'a.hbs', 'vllm', { volatility: { variables: { current_time: 'constant' } } });
    assert.equal(after.report.end, null);
    assert.ok(!fixesOf(analysed(`{{ now() }} ${rules}`, 'a.j2'), 'now').some((f) => f.kind === 'classify'), 'a clock call is a clock call');
  });
  it('writes pragmas that the parser reads, in every format with comments', () => {
    useCodeReader(parseCode);
    const cases: readonly (readonly [string, string])[] = [
      ['a.prompty', prompty],
      ['a.j2', `{{ now() }} ${rules}`],
      ['a.hbs', `{{current_time}} ${rules}`],
      ['a.mustache', `{{current_time}} ${rules}`],
      ['a.liquid', `{{ 'now' | date: "%H" }} ${rules}`],
      ['a.prompt', `---\nmodel: m\n---\n{{current_time}} ${rules}`],
      ['a.prompt.yml', `messages:\n  - role: user\n    content: "{{current_time}} x"\nmodel: m\n`],
      ['f.baml', `function F(current_time: string) -> string {\n  client C\n  prompt #"\n    {{ current_time }} ${rules}\n  "#\n}\n`],
      ['a.poml', `<poml><task>{{current_time}} do</task></poml>`],
      ['b.prompt.yml', `messages:\n  - role: user\n    content: |\n      Hello there.\n      It is {{current_time}}.\n      ${rules}\nmodel: m\n`],
      ['c.prompt.yml', `messages:\n  - role: user\n    content: >-\n\n      Hello {{current_time}}\n      ${rules}\n`],
      ['d.prompt.yml', `messages:\n  - role: user\n    content: "Hello\n      {{current_time}} ${rules}"\n`],
      ['promptfooconfig.yaml', `providers: [x]\nprompts:\n  - |\n    Hello\n    {{current_time}} ${rules}\n  - 'It is {{current_time}} ${rules}'\n`],
      ['kernel.yaml', `name: k\ntemplate_format: handlebars\ntemplate: |\n  Hello\n  {{current_time}} ${rules}\ninput_variables:\n  - name: x\n`],
      ['chain.yaml', `_type: prompt\ninput_variables: [current_time]\ntemplate: |\n  Hello\n  {current_time} ${rules}\n`],
      ['prompt.py', `import x\n\ndef ask():\n    prompt = f"""Hello\n    there,\n    {datetime.now()} ${rules}"""\n    return prompt\n`],
      ['prompt.ts', `export function ask() {\n  const prompt = \`Hello\n  there,\n  \${new Date()} ${rules}\`;\n  return prompt;\n}\n`],
      ['messages.ts', `const messages = [\n  { role: 'system', content: \`Hello, you,\n  \${new Date()} ${rules}\` },\n];\n`],
      ['.claude/commands/x.md', `!\`date\` ${rules}`],
    ];
    for (const [file, text] of cases) {
      const a = analysed(text, file);
      const place = a.report.places[0];
      assert.ok(place, file);
      const fixes = ignoreFixes(a.file, place, 'clock');
      const pragmas = fixes.map((fix) => analysed(edit(text, fix), file).file.pragmas.map((p) => p.pragma).join());
      assert.deepEqual(pragmas, ['ignore-line', 'ignore', 'off'], `${file}: ${fixes.map((f) => f.preview).join(' | ')}`);
      const before = a.report.total;
      for (const fix of fixes) {
        const after = analysed(edit(text, fix), file);
        assert.deepEqual(after.file.problems, a.file.problems, `${file}: ${fix.title}`);
        if (!fix.title.includes('is sent')) assert.equal(after.report.total, before, `${file}: ${fix.title} sends nothing`);
      }
      const here = fixes[0];
      assert.ok(here?.title.startsWith('Ignore here'));
      const after = analysed(edit(text, here), file);
      const line = after.file.pragmas[0];
      const moved = after.report.places[0];
      assert.ok(line?.pragma === 'ignore-line' && moved !== undefined && line.line <= moved.line && moved.line <= line.last, `${file}: ${edit(text, here).slice(0, 200)}`);
      const codes = (source: string) => analyseFile(parsePromptFile(source, file)!, { minLostTokens: 1 }).findings.filter(({ code }) => code === 'clock' || code === 'command').length;
      const found = placeFixes(place, a, codes(text) > 0 && file.includes('.claude') ? 'command' : 'clock').find(({ title }) => title.startsWith('Ignore here'));
      assert.ok(found !== undefined && codes(edit(text, found)) === codes(text) - 1, `${file}: the finding is gone`);
    }
  });
  it('in the line ends of the file, and in a comment that is none of the prompt', () => {
    const crlf = prompty.replaceAll('\n', '\r\n');
    for (const fix of ignoreFixes(analysed(crlf, 'a.prompty').file, analysed(crlf, 'a.prompty').report.places[0]!, 'clock')) assert.doesNotMatch(edit(crlf, fix), /[^\r]\n/, fix.title);
    const bare = `Now {{current_time}} ${rules}\n`;
    const off = edit(bare, ignoreFixes(analysed(bare, 'a.prompty').file, analysed(bare, 'a.prompty').report.places[0]!, 'clock').find(({ title }) => title === 'Ignore this file'));
    assert.match(off, /^\{# first-token: off -?#\}/, 'without front matter a # would be sent');
    const titles = (text: string, file: string, read: Readonly<Record<string, string>> = {}) => {
      const parsed = parsePromptFile(text, file, { readFile: (name) => read[name] ?? null })!;
      return ignoreFixes(parsed, analyseFile(parsed, { minLostTokens: 1 }).prompts[0]!.report.places[0]!, 'clock').map(({ title }) => title);
    };
    assert.deepEqual(titles(`{{=<% %>=}}<%current_time%> ${rules}`, 'a.mustache'), ['Ignore clock in this file', 'Ignore this file'], 'braces are text behind the other delimiters');
    assert.deepEqual(titles(JSON.stringify([{ role: 'user', content: `Now {{current_time}} ${rules}` }]), 'chat.json', { 'promptfooconfig.yaml': 'prompts: [file://chat.json]\n' }), ['Ignore here'], 'JSON has no comments, its template has');
    assert.equal(titles(`{% extends 'base.j2' %}{% block head %}{{ current_time }}{% endblock %}`, 'child.j2', { 'base.j2': `{% block head %}x{% endblock %} ${rules}` })[0], 'Ignore here', 'heeded in the block of a child');
  });
  it('offers none where the format has no comments', () => {
    const a = analysed(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'x' }] }), 'r.json');
    assert.deepEqual(ignoreFixes(a.file, { start: 0, end: 0 }, 'clock'), []);
  });
});

const corpus = path.join(__dirname, '..', '..', '..', '..', 'shared', 'prompts');
describe('fixes on the prompt files of the corpus', () => {
  before(function () {
    if (!existsSync(path.join(corpus, 'LABELS.jsonl'))) this.skip();
  });
  it('every move keeps every word, breaks no syntax and lowers what is lost', () => {
    let tried = 0;
    const labels = readFileSync(path.join(corpus, 'LABELS.jsonl'), 'utf8').split('\n').filter((line) => line !== '').map((line) => JSON.parse(line) as { readonly file: string; readonly prompts?: unknown });
    for (const { file, prompts } of labels) {
      if (prompts !== undefined) continue;
      const text = readFileSync(path.join(corpus, file), 'utf8');
      if (/promptfooconfig\.yaml$/.test(file)) continue;
      const before = analysed(text, file);
      for (const place of before.report.places.filter((p) => p.matters)) {
        for (const fix of placeFixes(place, before, 'clock').filter((f) => f.kind === 'move-behind' || f.kind === 'move-to-user')) {
          tried += 1;
          const after = analysed(edit(text, fix), file);
          assert.ok(Math.abs(after.report.total - before.report.total) <= 2, `${file}: ${before.report.total} → ${after.report.total} words after ${fix.title}: ${fix.preview}`);
          assert.equal(after.file.problems.length, before.file.problems.length, `${file}: ${fix.title}`);
          const same = (a: Analysed) => a.report.places.filter((p) => p.text === place.text).reduce((sum, p) => sum + p.lostTokens, 0);
          assert.ok(same(after) < same(before), `${file}: ${place.text}`);
        }
      }
    }
    assert.ok(tried >= 3, `${tried} fixes tried`);
  });
});
