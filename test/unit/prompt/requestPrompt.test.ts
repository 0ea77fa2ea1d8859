import assert from 'node:assert/strict';
import { apiOf, requestPrompt } from '../../../src/prompt/requestPrompt';
import type { ChatPrompt } from '../../../src/prompt/prompt';

const read = (body: unknown): ChatPrompt => {
  const prompt = requestPrompt(body);
  assert.ok(prompt);
  return prompt;
};
const texts = (prompt: ChatPrompt) => prompt.messages.map(({ role, text }) => [role, text]);

describe('prompt/requestPrompt: a request body as a prompt', () => {
  it('Anthropic: system blocks, markers with their time, tools as they are, the fields a cache keys by', () => {
    const tools = [{ name: 'f', input_schema: {}, cache_control: { type: 'ephemeral' } }];
    const prompt = read({
      model: 'claude-x', max_tokens: 9, temperature: 1, stream: true, tools, tool_choice: { type: 'auto' },
      system: [{ type: 'text', text: 'A' }, { type: 'text', text: 'B', cache_control: { type: 'ephemeral', ttl: '1h' } }],
      messages: [{ role: 'user', content: [{ type: 'image', source: {} }, { type: 'tool_result', tool_use_id: 't', content: 'R', cache_control: { type: 'ephemeral' } }] }],
    });
    assert.deepEqual(prompt.own, { api: 'anthropic', model: 'claude-x', fields: { tool_choice: { type: 'auto' } } });
    assert.deepEqual(prompt.tools, tools);
    assert.deepEqual(prompt.messages[0], { role: 'system', text: 'AB', parts: [{ text: 'A' }, { text: 'B', mark: { key: 'cache_control', ttl: '1h' } }] });
    assert.deepEqual(prompt.messages[1]?.parts, [
      { text: '[image]', block: { type: 'image', source: {} } },
      { text: 'R', block: { type: 'tool_result', tool_use_id: 't', content: 'R' }, mark: { key: 'cache_control', ttl: null } },
    ]);
  });

  it('Anthropic: one marker for the whole request', () => {
    const prompt = read({ model: 'claude-x', cache_control: { type: 'ephemeral' }, messages: [{ role: 'user', content: 'Hi' }] });
    assert.deepEqual([prompt.own?.api, prompt.mark], ['anthropic', { key: 'cache_control', ttl: null }]);
  });

  it('chat: parts, a marker on the message, tool calls and their results', () => {
    const calls = [{ id: 'c', type: 'function', function: { name: 'f', arguments: '{}' } }];
    const prompt = read({ model: 'm', prompt_cache_key: 'k', messages: [{ role: 'system', content: 'S', cache_control: { type: 'ephemeral' } }, { role: 'assistant', content: null, tool_calls: calls }, { role: 'tool', tool_call_id: 'c', content: 'R' }] });
    assert.deepEqual(prompt.own, { api: 'chat', model: 'm', fields: { prompt_cache_key: 'k' } });
    assert.deepEqual(prompt.messages[0]?.parts, [{ text: 'S', mark: { key: 'cache_control', ttl: null } }]);
    assert.deepEqual(prompt.messages[1]?.fields?.['tool_calls'], calls);
    assert.deepEqual(prompt.messages[2], { role: 'tool', text: 'R', fields: { tool_call_id: 'c' } });
  });

  it('Responses: instructions apart, items without content whole', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    const prompt = read({ model: 'm', instructions: 'I', input: [{ type: 'message', role: 'user', content: [{ type: 'input_text', text: 'Q', prompt_cache_breakpoint: { mode: 'explicit' } }] }, call, { type: 'function_call_output', call_id: 'c', output: 'R' }] });
    assert.equal(prompt.messages[0]?.instructions, true);
    assert.deepEqual(prompt.messages[1], { role: 'user', text: 'Q', parts: [{ text: 'Q', mark: { key: 'prompt_cache_breakpoint', ttl: null } }] });
    assert.deepEqual(prompt.messages[2]?.fields, call);
    assert.deepEqual(texts(prompt).at(-1), ['tool', 'R']);
  });

  it('Gemini and Bedrock: their parts and cache points', () => {
    const gemini = read({ systemInstruction: { parts: [{ text: 'S' }] }, contents: [{ role: 'model', parts: [{ text: 'A' }, { inlineData: {} }] }], cachedContent: 'c' });
    assert.deepEqual(texts(gemini), [['system', 'S'], ['assistant', 'A[image]']]);
    assert.deepEqual(gemini.own, { api: 'gemini', fields: { cachedContent: 'c' } });
    const bedrock = read({ system: [{ text: 'S' }, { cachePoint: { type: 'default' } }], messages: [{ role: 'user', content: [{ text: 'Q' }] }] });
    assert.deepEqual([bedrock.own?.api, bedrock.messages[0]?.parts], ['bedrock', [{ text: 'S', mark: { key: 'cachePoint', ttl: null } }]]);
  });

  it('tells APIs apart by what only they have, and never throws', () => {
    const message = { role: 'user', content: 'Q' };
    assert.equal(apiOf({ model: 'gpt-4o', messages: [message] }), 'chat');
    assert.equal(apiOf({ model: 'claude-x', messages: [message] }), 'anthropic');
    assert.equal(apiOf({ model: 'anthropic/claude-x', messages: [{ role: 'user', content: [{ type: 'text', text: 'Q', cache_control: {} }] }] }), 'chat');
    assert.equal(apiOf({ messages: [message], tools: [{ name: 'f', input_schema: {} }] }), 'anthropic');
    assert.deepEqual(texts(read([message])), [['user', 'Q']]);
    for (const odd of [null, 3, 'x', {}, { messages: 3 }, { messages: [] }, { messages: [null, 3] }]) assert.equal(requestPrompt(odd), null);
    for (const odd of [{ messages: [{ role: 7, content: [null, 3, []] }] }, { input: [{ type: {} }] }, { contents: [{ parts: 3 }] }, { system: { a: 1 }, messages: ['x'] }]) assert.ok(requestPrompt(odd));
  });
});
