import assert from 'node:assert/strict';
import { fileFindings, requestFindings, structureFindings, type StructureCode, type StructureFinding } from '../../../src/prompt/structure';
import { analysed, type Analysed } from './analysed';
import { wordCounter, words } from './pieces';

const all = (a: Analysed): readonly StructureFinding[] => [...fileFindings(a.file), ...structureFindings({ ...a, counter: wordCounter }), ...requestFindings(a.file, { report: a.report, counter: wordCounter })];
const find = (code: StructureCode, text: string, path: string, id = 'vllm', more: Parameters<typeof analysed>[3] = {}) => all(analysed(text, path, id, more)).filter((f) => f.code === code);
const shown = (text: string, f: StructureFinding | undefined) => (f === undefined ? null : text.slice(f.start, f.end));

const prompty = (body: string) => `---\nname: x\n---\n${body}`;
const block = (text: string, marker = false, ttl?: string) => ({ type: 'text', text, ...(marker ? { cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } } : {}) });
const request = (body: Record<string, unknown>) => JSON.stringify({ model: 'claude-sonnet-5', ...body });

describe('structure: bytes', () => {
  it('a byte order mark', () => {
    assert.equal(find('byte-order-mark', '\ufeffHello {{name}}', 'a.j2').length, 1);
    assert.equal(find('byte-order-mark', 'Hello {{name}}', 'a.j2').length, 0);
  });
  it('mixed line ends, at the first of the rarer kind', () => {
    const text = 'a\r\nb\r\nc\nd {{x}}';
    const [f] = find('mixed-line-ends', text, 'a.j2');
    assert.deepEqual([f?.start, shown(text, f), /2 CRLF/.test(f?.message ?? '')], [7, '\n', true]);
    assert.equal(find('mixed-line-ends', 'a\r\nb\r\n', 'a.j2').length, 0);
  });
  it('spaces at the ends of lines, in templates only', () => {
    const text = 'one\ntwo  \nthree {{x}}\n';
    const [f] = find('trailing-space', text, 'a.j2');
    assert.deepEqual([f?.start, shown(text, f)], [7, '  ']);
    assert.equal(find('trailing-space', 'two  \nthree', 'SKILL.md').length, 0);
  });
  it('decomposed characters', () => {
    const text = 'Résume\u0301 {{x}}';
    const [f] = find('unicode-form', text, 'a.j2');
    assert.equal(f?.start, 5);
    assert.equal(find('unicode-form', 'Résumé {{x}}', 'a.j2').length, 0);
  });
});

describe('structure: blocks and markers', () => {
  it('an image before text', () => {
    const text = request({ messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'base64', media_type: 'image/png', data: 'AAAA' } }, block(words(300))] }] });
    const [f] = find('image-before-text', text, 'r.json', 'vllm');
    assert.equal(f?.lostTokens, 300);
    assert.equal(find('image-before-text', request({ messages: [{ role: 'user', content: [block('a'), { type: 'image', source: { data: 'AAAA' } }] }] }), 'r.json').length, 0);
  });
  it('a marker after a changing value', () => {
    const text = `client<llm> C { provider anthropic\n options { model "claude-sonnet-5"\n allowed_role_metadata ["cache_control"] } }\nfunction F(question: string) -> string {\n client C\n prompt #"\n{{ _.role("system") }}\n${words(1200)}\n{{ question }}\n{{ _.role("user", cache_control={"type": "ephemeral"}) }}\nmore words\n"#\n}\n`;
    const a = analysed(text, 'f.baml', 'anthropic');
    assert.ok(a.pieces.some((p) => p.kind === 'mark'), 'the parser sees the marker');
    const [f] = all(a).filter((x) => x.code === 'marker-after-dynamic');
    assert.ok(f);
    assert.match(f.message, /after \{\{ question \}\}/);
    assert.ok(f.lostTokens >= 1200);
  });
  it('no marker where only markers are cached, once a file', () => {
    const one = request({ system: words(1500), messages: [{ role: 'user', content: 'x' }] });
    const [f] = find('no-marker', one, 'r.json', 'anthropic');
    assert.deepEqual([f?.severity, f?.lostTokens], ['information', 1500]);
    assert.equal(find('no-marker', `${one}\n${one}\n`, 'r.jsonl', 'anthropic', { index: 1 }).length, 0);
    assert.equal(find('no-marker', one, 'r.json', 'openai').length, 0);
  });
  it('the same of a template, which has no markers: an information about its application', () => {
    const template = (system: string) => prompty(`system:\n${system}\nuser:\n{{question}}\n`);
    const [f] = find('no-marker', template(words(1500)), 'a.prompty', 'anthropic');
    assert.deepEqual([f?.severity, f?.lostTokens], ['information', 1500]);
    assert.match(f?.message ?? '', /As this file is sent, Anthropic caches nothing: .* If the application that sends it sets one, up to 1,500 tokens are reusable\.$/);
    assert.deepEqual(find('no-marker', template(words(900)), 'a.prompty', 'anthropic'), [], 'too short for a marker to help');
    assert.deepEqual(find('no-marker', template(words(1500)), 'a.prompty', 'vllm'), []);
    for (const host of ['CLAUDE.md', 'SKILL.md', '.claude/commands/c.md']) assert.deepEqual(find('no-marker', words(1500), host, 'anthropic'), [], `${host}: its host sets markers`);
    assert.equal(find('no-marker', request({ system: words(900), messages: [{ role: 'user', content: 'x' }] }), 'r.json', 'anthropic').length, 0, 'under the minimum a marker gives nothing');
    assert.equal(find('no-marker', request({ system: [block(words(1500), true)], messages: [{ role: 'user', content: 'x' }] }), 'r.json', 'anthropic').length, 0);
  });
  it('more than four markers', () => {
    const five = request({ messages: [{ role: 'user', content: [1, 2, 3, 4, 5].map((n) => block(`part ${n}`, true)) }] });
    const [f] = find('too-many-markers', five, 'r.json', 'anthropic');
    assert.match(f?.message ?? '', /^5 cache markers, but Anthropic allows 4 and refuses/);
    assert.equal(find('too-many-markers', request({ messages: [{ role: 'user', content: [1, 2, 3, 4].map((n) => block(`part ${n}`, true)) }] }), 'r.json', 'anthropic').length, 0);
  });
  it('one hour after five minutes', () => {
    const of = (first: string | undefined, second: string | undefined) => find('ttl-order', request({ system: [block('s', true, first)], messages: [{ role: 'user', content: [block('u', true, second)] }] }), 'r.json', 'anthropic').length;
    assert.deepEqual([of(undefined, '1h'), of('5m', '1h'), of('1h', '5m'), of('1h', '1h')], [1, 1, 0, 0]);
  });
  it('more blocks than a marker looks back over', () => {
    const of = (blocks: number) => find('look-back', request({ system: [block('s', true)], messages: [{ role: 'user', content: [...Array.from({ length: blocks - 1 }, (_, i) => block(`b${i}`)), block('last', true)] }] }), 'r.json', 'anthropic');
    assert.equal(of(19).length, 0);
    assert.match(of(20)[0]?.message ?? '', /^20 blocks lie between/);
  });
  it('a static part under the minimum', () => {
    const of = (n: number, id: string) => find('under-minimum', prompty(`system:\n${words(n)}\n\nuser:\n{{question}}\n`), 'a.prompty', id).length;
    assert.deepEqual([of(600, 'openai'), of(1200, 'openai'), of(600, 'vllm'), of(100, 'openai')], [1, 0, 0, 0]);
    assert.equal(find('under-minimum', words(600), 'SKILL.md', 'openai').length, 0, 'a static file is quiet');
    assert.equal(find('under-minimum', request({ system: [block(words(300), true)], messages: [{ role: 'user', content: 'x' }] }), 'r.json', 'anthropic').length, 1);
    const [early] = find('under-minimum', request({ system: [block(words(300), true), block(words(2000))], messages: [{ role: 'user', content: 'x' }] }), 'r.json', 'anthropic');
    assert.match(early?.message ?? '', /^On Anthropic the cache_control marker comes before the minimum of 1,024 tokens: nothing is cached/);
  });
  it('a variable inside a message that holds static text', () => {
    const text = prompty(`user:\n${words(5000)}\n{{question}}\n`);
    const [f] = find('variable-in-static-message', text, 'a.prompty', 'openai-5.6');
    assert.deepEqual([shown(text, f), (f?.lostTokens ?? 0) >= 4990], ['{{question}}', true]);
    assert.equal(find('variable-in-static-message', text, 'a.prompty', 'vllm').length, 0);
    assert.equal(find('variable-in-static-message', prompty(`system:\n${words(5000)}\n\nuser:\n{{question}}\n`), 'a.prompty', 'openai-5.6').length, 0);
  });
});

describe('structure: tools and keys', () => {
  const tools = (...names: string[]) => ({ tools: names.map((name) => ({ name, input_schema: { type: 'object', properties: {} } })), messages: [{ role: 'user', content: 'hi' }] });
  it('unsorted tools', () => {
    const text = request(tools('b', 'a'));
    const [f] = find('unsorted-tools', text, 'r.json');
    assert.deepEqual([shown(text, f), f?.severity], ['"a"', 'hint']);
    assert.equal(find('unsorted-tools', request(tools('a', 'b')), 'r.json').length, 0);
  });
  it('tools in another order than in the request before', () => {
    const text = [request(tools('a', 'b')), request(tools('b', 'a'))].join('\n');
    const a = analysed(text, 'batch.jsonl');
    const found = requestFindings(a.file, { report: a.report, counter: wordCounter });
    assert.deepEqual(found.map((f) => [f.code, f.severity, f.start > text.indexOf('\n')]), [['unsorted-tools', 'information', true]]);
  });
  it('JSON keys in another order than in the request before', () => {
    const other = { tools: [{ input_schema: { properties: {}, type: 'object' }, name: 'a' }], messages: [{ role: 'user', content: 'hi' }] };
    const text = [request(tools('a')), request(other), request(other)].join('\n');
    const a = analysed(text, 'batch.jsonl');
    assert.deepEqual(requestFindings(a.file, { report: a.report, counter: wordCounter }).map((f) => f.code), ['key-order']);
  });
});
