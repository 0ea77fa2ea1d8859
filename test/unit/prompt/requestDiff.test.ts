import assert from 'node:assert/strict';
import { existsSync, readFileSync } from 'node:fs';
import path from 'node:path';
import { blocksIn, compareRequests, editCost, placeOfPath, requestsIn } from '../../../src/prompt/requestDiff';
import { loadRules } from '../../../src/prompt/rules';
import { build, wordCounter, words } from './pieces';

const book = loadRules();
const known = (id: string, model: string | null = null) => {
  const rule = book.rules.get(id);
  assert.ok(rule);
  return { rule, model, counter: wordCounter };
};
const tool = (name: string, more: Record<string, unknown> = {}) => ({ type: 'function', function: { name, description: `does ${name}`, ...more } });
const chat = (system: string, ...turns: string[]) => ({ model: 'm', messages: [{ role: 'system', content: system }, ...turns.map((content, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content }))] });

describe('requests in a file', () => {
  it('one body, a list, a batch, a log', () => {
    assert.equal(requestsIn(JSON.stringify(chat('s', 'u')))[0]?.name, '1');
    assert.equal(requestsIn(JSON.stringify([chat('s', 'u'), chat('s', 'v')])).length, 2);
    const batch = `${JSON.stringify({ custom_id: 'r1', body: chat('s', 'u') })}\n\n${JSON.stringify({ custom_id: 'r2', body: chat('s', 'v') })}\nnot json\n`;
    assert.deepEqual(requestsIn(batch).map((r) => [r.name, r.path, batch.slice(r.place.start, r.place.end).startsWith('{"custom_id"')]), [['r1', ['body'], true], ['r2', ['body'], true]]);
    assert.deepEqual(requestsIn('hello'), []);
    assert.deepEqual(requestsIn('{"a":1}'), []);
    assert.equal(requestsIn(`\ufeff${JSON.stringify(chat('s', 'u'))}`).length, 1);
  });
  it('finds a path in the file', () => {
    const text = `${JSON.stringify({ body: chat('s', 'u') })}\n${JSON.stringify({ body: chat('s', 'other') })}`;
    const request = requestsIn(text)[1];
    assert.ok(request);
    const place = placeOfPath(text, request, ['messages', 1, 'content']);
    assert.equal(text.slice(place.start, place.end), '"other"');
    assert.deepEqual(placeOfPath(text, request, ['nothing']), request.place);
  });
});

describe('render order', () => {
  it('tools, system, messages, whatever the order of the fields; blocks and markers', () => {
    const body = { messages: [{ role: 'user', content: [{ type: 'text', text: 'a', cache_control: { type: 'ephemeral', ttl: '1h' } }, { type: 'text', text: 'b' }] }], system: 'S', tools: [{ name: 't', input_schema: {} }] };
    assert.deepEqual(
      blocksIn(body).map((b) => [b.slot, b.role, b.text, b.endsMessage, b.marker?.ttl ?? null]),
      [
        ['tools', 'system', '{"name":"t","input_schema":{}}', true, null],
        ['system', 'system', 'S', true, null],
        ['messages', 'user', 'a', false, '1h'],
        ['messages', 'user', 'b', true, null],
      ],
    );
  });
  it('Gemini, Responses, Bedrock and tool results', () => {
    assert.deepEqual(blocksIn({ contents: [{ role: 'model', parts: [{ text: 'x' }] }], systemInstruction: { parts: [{ text: 'S' }] } }).map((b) => [b.role, b.text]), [['system', 'S'], ['assistant', 'x']]);
    assert.deepEqual(blocksIn({ model: 'm', instructions: 'I', input: 'q' }).map((b) => [b.role, b.text]), [['system', 'I'], ['user', 'q']]);
    assert.deepEqual(blocksIn({ input: [{ type: 'function_call_output', call_id: 'c', output: 'o' }] }).map((b) => b.role), ['tool', 'tool']);
    assert.deepEqual(blocksIn({ messages: [{ role: 'user', content: [{ text: 'a' }, { cachePoint: { type: 'default' } }, { text: 'b' }] }] }).map((b) => [b.text, b.marker !== null]), [['a', true], ['b', false]]);
    assert.equal(blocksIn({ messages: [{ role: 'assistant', content: null, tool_calls: [{ id: '1' }] }] })[0]?.text, '{"tool_calls":[{"id":"1"}]}');
  });
});

describe('first difference of two requests', () => {
  it('nothing differs', () => {
    const result = compareRequests(chat(words(100), 'q'), chat(words(100), 'q'), known('vllm'));
    assert.deepEqual([result.difference, result.common, result.total, result.reuse.tokens], [null, 101, 101, 96]);
  });
  it('a changed word, with bytes and tokens before it', () => {
    const result = compareRequests(chat('é one two three', 'q'), chat('é one two thread', 'q'), known('sglang'));
    assert.ok(result.difference);
    assert.deepEqual([result.difference.kind, result.difference.path, result.difference.at, result.difference.byte, result.difference.first, result.difference.second], ['text', ['messages', 0, 'content'], 14, 15, 'e', 'ad']);
    assert.equal(result.common, 3);
  });
  it('names a key order as such', () => {
    const a = { ...chat('s', 'q'), tools: [tool('x', { parameters: { a: 1, b: 2 } })] };
    const b = { ...chat('s', 'q'), tools: [tool('x', { parameters: { b: 2, a: 1 } })] };
    assert.deepEqual([compareRequests(a, b, known('vllm')).difference?.kind, compareRequests(a, b, known('vllm')).difference?.slot], ['key-order', 'tools']);
  });
  it('names an order of tools as such, and an added tool not', () => {
    const with_ = (...names: string[]) => ({ ...chat('s', 'q'), tools: names.map((n) => tool(n)) });
    assert.equal(compareRequests(with_('a', 'b'), with_('b', 'a'), known('vllm')).difference?.kind, 'tool-order');
    assert.equal(compareRequests(with_('a', 'b'), with_('a', 'c'), known('vllm')).difference?.kind, 'text');
    assert.equal(compareRequests(chat('s', 'q'), chat('s', 'q', 'a', 'r'), known('vllm')).difference?.kind, 'added');
    assert.equal(compareRequests(chat('s', 'q', 'a', 'r'), chat('s', 'q'), known('vllm')).difference?.kind, 'removed');
    assert.equal(compareRequests({ messages: [{ role: 'user', content: 'x' }] }, { messages: [{ role: 'system', content: 'x' }] }, known('vllm')).difference?.kind, 'role');
  });
  it('names fields that invalidate', () => {
    const a = chat(words(2000), 'q');
    const model = compareRequests(a, { ...a, model: 'other' }, known('vllm'));
    assert.deepEqual([model.fields, model.reuse.tokens, model.common], [[{ field: 'model', invalidates: 'everything' }], 0, 2001]);
    const thinking = compareRequests(a, { ...a, thinking: { type: 'enabled' } }, known('vllm'));
    assert.equal(thinking.reuse.tokens, 2000);
  });
});

describe('what the second request can reuse', () => {
  it('a conversation, by family', () => {
    const first = chat(words(2000), words(100, 'q'));
    const second = chat(words(2000), words(100, 'q'), words(50, 'a'), words(20, 'r'));
    const of = (id: string, model: string) => compareRequests(first, second, known(id, model)).reuse.tokens;
    assert.equal(of('vllm', 'm'), 2096);
    assert.equal(of('openai-5.6', 'gpt-5.6'), 2100);
    assert.equal(of('deepseek', 'deepseek-chat'), 2048);
    assert.equal(of('anthropic', 'claude-sonnet-5'), 0);
  });
  it('GPT-5.6: a stable system prompt without a marker is not found by the second request', () => {
    const [a, b] = [chat(words(9000), 'what is x'), chat(words(9000), 'how is y')];
    assert.equal(compareRequests(a, b, known('openai', 'gpt-5.4')).reuse.tokens, 8960);
    assert.equal(compareRequests(a, b, known('openai-5.6', 'gpt-5.6')).reuse.tokens, 0);
    const marked = (q: string) => ({ model: 'gpt-5.6', messages: [{ role: 'system', content: [{ type: 'text', text: words(9000), prompt_cache_breakpoint: { mode: 'explicit' } }] }, { role: 'user', content: q }] });
    assert.equal(compareRequests(marked('what is x'), marked('how is y'), known('openai-5.6', 'gpt-5.6')).reuse.tokens, 9000);
  });
  it('Anthropic: the marker of the turn before, within 20 blocks', () => {
    const turn = (n: number) => {
      const messages = Array.from({ length: n }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: words(100, `m${i}x`), ...(i === n - 1 ? { cache_control: { type: 'ephemeral' } } : {}) }] }));
      return { model: 'claude-sonnet-5', system: words(2000), messages };
    };
    assert.equal(compareRequests(turn(1), turn(3), known('anthropic', 'claude-sonnet-5')).reuse.tokens, 2100);
    assert.equal(compareRequests(turn(1), turn(21), known('anthropic', 'claude-sonnet-5')).reuse.tokens, 0);
  });
  it('DeepSeek: A+B, then A+C misses', () => {
    assert.equal(compareRequests(chat(words(6400), 'b'), chat(words(6400), 'c'), known('deepseek', 'deepseek-chat')).reuse.tokens, 0);
  });
});

describe('what an edit costs', () => {
  const version = (text: string) => build([{ role: 'system', text }, { role: 'user', text: '{{q:request}}' }]);
  it('nothing when nothing changed', () => {
    assert.deepEqual(editCost(version('a b c'), version('a b c'), wordCounter), { kept: 3, invalidated: 0, place: null });
  });
  it('everything behind the first changed word', () => {
    const after = version(`one two THREE four {{x:unknown}} five`);
    const cost = editCost(version(`one two three four {{x:unknown}} five`), after, wordCounter);
    assert.deepEqual([cost.kept, cost.invalidated, after.text.slice(cost.place?.start, (cost.place?.start ?? 0) + 5)], [2, 3, 'THREE']);
  });
  it('a renamed variable, a removed end', () => {
    assert.deepEqual(editCost(version('one two {{a:unknown}} three'), version('one two {{b:unknown}} three'), wordCounter).invalidated, 1);
    const removed = editCost(version('one two three'), version('one two'), wordCounter);
    assert.deepEqual([removed.kept + removed.invalidated, removed.place !== null], [2, true]);
  });
});

const logs = path.join(import.meta.dirname, '../../../../shared/prompts/raw-json');
describe('captured requests of the corpus', () => {
  before(function () {
    if (!existsSync(logs)) this.skip();
  });
  it('every file holds requests, and each equals itself', () => {
    for (const name of ['evalscope-fc-tools.jsonl', 'openhands-cache-c1_t1.json', 'openhands-claude-sonnet-4-tools-log.json', 'sk-chat-roles-streaming-request.json']) {
      const requests = requestsIn(readFileSync(path.join(logs, name), 'utf8'));
      assert.ok(requests.length > 0, name);
      for (const r of requests) assert.equal(compareRequests(r.body, r.body, known('vllm')).difference, null);
    }
  });
});
