import assert from 'node:assert/strict';
import { parsePromptFile, prepare } from '../../../src/prompt/parse';
import { renderFile, renderForProbe, sampleInputs } from '../../../src/prompt/samples';

const clock = Date.UTC(2026, 4, 4, 12, 30);

describe('prompt/samples: rendering a file for a probe', () => {
  it('GitHub Models: the first testData', () => {
    const text = 'messages:\n  - role: system\n    content: Be short.\n  - role: user\n    content: "Say {{input}} to {{who}}"\ntestData:\n  - input: hello\n';
    const rendered = renderFile(text, 'a.prompt.yml', () => null, {}, clock);
    assert.deepEqual(rendered.prompt.messages, [{ role: 'system', text: 'Be short.' }, { role: 'user', text: 'Say hello to {{who}}' }]);
    assert.deepEqual(rendered.unrendered, ['who']);
  });

  it('Prompty: defaults, samples and a sample file', () => {
    const text = '---\ninputs:\n  - name: city\n    default: Bonn\nsample: ${file:s.json}\n---\nsystem:\nIn {{city}}.\nuser:\n{{question}}\n';
    const file = parsePromptFile(text, 'p/a.prompty', { readFile: (p) => (p === 'p/s.json' ? '{"question":"why"}' : null) })!;
    assert.deepEqual(sampleInputs(file.prompts[0]!), { city: 'Bonn', question: 'why' });
    assert.deepEqual(renderForProbe(file, {}, clock).prompt.messages.map((m) => m.text), ['In Bonn.', 'why']);
    assert.deepEqual(renderForProbe(file, { city: 'Ulm' }, clock).prompt.messages[0]!.text, 'In Ulm.');
  });

  it('promptfoo: the variables of the first test over the defaults', () => {
    const text = 'prompts: ["Say {{a}} and {{b}}"]\nproviders: [x]\ndefaultTest:\n  vars: {b: two}\ntests:\n  - vars: {a: one}\n';
    assert.equal(renderFile(text, 'promptfooconfig.yaml', () => null, {}, clock).prompt.messages[0]!.text, 'Say one and two');
  });

  it('BAML: the arguments of a test', () => {
    const text = 'function A(q: string) -> string {\n  prompt #"\n    {{ _.role("user") }}\n    Answer {{ q }}\n  "#\n}\ntest T {\n  functions [A]\n  args { \n    q "why?"\n  }\n}\n';
    assert.deepEqual(renderFile(text, 'a.baml', () => null, {}, clock).prompt.messages, [{ role: 'user', text: 'Answer why?' }]);
  });

  it('Jinja: loops, conditions and a frozen clock', () => {
    const text = '{% for d in docs %}[{{ d }}]{% endfor %}{% if x %}X{% else %}Y{% endif %} {{ strftime_now("%Y-%m-%d") }}';
    assert.equal(renderFile(text, 'a.j2', () => null, { docs: ['a', 'b'], x: false }, clock).prompt.messages[0]!.text, '[a][b]Y 2026-05-04');
  });

  it('a request body: messages and tools as they stand', async () => {
    await prepare(['a.json']);
    const body = { model: 'm', tools: [{ type: 'function', function: { name: 'f' } }], messages: [{ role: 'user', content: 'a {{b}}' }] };
    const rendered = renderFile(JSON.stringify(body), 'a.json', () => null, {}, clock);
    assert.deepEqual(rendered.prompt, { messages: [{ role: 'user', text: 'a {{b}}' }], tools: body.tools, own: { api: 'chat', model: 'm', fields: {} } });
  });

  it('BAML: a cache marker in the role ends a block of its own', () => {
    const text = 'function F(q: string) -> string {\n  client "c"\n  prompt #"\n    {{ _.role("system", cache_control={"type": "ephemeral"}) }}\n    Rules.\n    {{ _.role("user") }}\n    {{ q }}\n  "#\n}\n';
    const { messages } = renderFile(text, 'a.baml', () => null, { q: 'Why?' }, clock).prompt;
    assert.deepEqual(messages, [{ role: 'system', text: 'Rules.', parts: [{ text: 'Rules.', mark: { key: 'cache_control', ttl: null } }] }, { role: 'user', text: 'Why?' }]);
  });

  it('what is no prompt file is one user message', () => {
    assert.deepEqual(renderFile('x = 1', 'a.rb', () => null, {}, clock), { prompt: { messages: [{ role: 'user', text: 'x = 1' }], tools: [] }, unrendered: [], asWritten: [] });
  });
});

describe('prompt/parse: file names', () => {
});

describe('prompt/samples: placeholders where nobody expands them', () => {
  const asWritten = (text: string, path: string) => renderForProbe(parsePromptFile(text, path)!, {}, 0).asWritten;

  it('are named with their braces in Markdown, plain text and requests', () => {
    assert.deepEqual(asWritten('Today is {{date}}. Greet {{ customer_name }}, and {{date}} again.', 'claims.prompt.md'), ['{{date}}', '{{ customer_name }}']);
    assert.deepEqual(asWritten('Fix ${selection} in ${input:name}.', 'fix.prompt.md'), ['${selection}', '${input:name}']);
    assert.deepEqual(asWritten('Hello {{name}}', 'prompts/a.txt'), ['{{name}}']);
    assert.deepEqual(asWritten(JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello {{name}}' }] }), 'r.json'), ['{{name}}']);
  });

  it('are not, in code and where a host expands them', () => {
    assert.deepEqual(asWritten('Write `{{date}}` or\n```jinja\n{{date}}\n```\nand {"a": {"b": 1}} or ${HOME}.', 'x.prompt.md'), []);
    assert.deepEqual(asWritten('Hello {{name}}', 'a.prompt'), []);
    assert.deepEqual(asWritten('Hello {{ name }}', 'prompts/a.j2'), []);
  });
});
