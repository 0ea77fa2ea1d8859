import assert from 'node:assert/strict';
import { askFor, dialects } from '../../../src/probe/dialect';
import type { CacheDiagnosis, DialectId, RequestInput } from '../../../src/probe/dialect/dialect';
import { salted } from '../../../src/probe/plan';
import { refusedField } from '../../../src/probe/serverError';
import { requestPrompt } from '../../../src/prompt/requestPrompt';
import type { ChatPrompt } from '../../../src/prompt/prompt';
import { decodeText } from './streams';

const mark = { cache_control: { type: 'ephemeral' } };
const anthropicFile = requestPrompt({
  model: 'claude-x', max_tokens: 9, thinking: { type: 'enabled', budget_tokens: 2000 },
  tools: [{ name: 'f', description: 'D', input_schema: { type: 'object' }, ...mark }],
  system: [{ type: 'text', text: 'A' }, { type: 'text', text: 'B', cache_control: { type: 'ephemeral', ttl: '1h' } }],
  messages: [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'u' } }, { type: 'text', text: 'Q', ...mark }] }],
})!;
const chatFile = requestPrompt({ model: 'm', messages: [{ role: 'system', content: [{ type: 'text', text: 'S', ...mark }] }, { role: 'user', content: 'Q' }], prompt_cache_key: 'k' })!;

function bodyOf(id: DialectId, url: string, prompt: ChatPrompt, more: Partial<RequestInput> = {}): Record<string, unknown> {
  const wire = dialects[id].request({ url, model: 'm', maxTokens: 8, ask: new Set<string>(), body: {}, headers: {}, key: null, prompt, ...more });
  return JSON.parse(wire.body) as Record<string, unknown>;
}

describe('dialects: cache markers', () => {
  it('Anthropic sends its own file as it stands, but for thinking that the answer leaves no room for', () => {
    const body = bodyOf('anthropic', 'https://api.anthropic.com', anthropicFile);
    assert.deepEqual(body['tools'], anthropicFile.tools);
    assert.deepEqual(body['system'], [{ type: 'text', text: 'A' }, { type: 'text', text: 'B', cache_control: { type: 'ephemeral', ttl: '1h' } }]);
    assert.deepEqual(body['messages'], [{ role: 'user', content: [{ type: 'image', source: { type: 'url', url: 'u' } }, { type: 'text', text: 'Q', ...mark }] }]);
    assert.ok(!('thinking' in body));
    assert.deepEqual(bodyOf('anthropic', 'https://api.anthropic.com', anthropicFile, { maxTokens: 4096 })['thinking'], { type: 'enabled', budget_tokens: 2000 });
  });

  it('Anthropic takes the markers of a chat file, and one for the whole request', () => {
    const body = bodyOf('anthropic', 'http://h', { ...chatFile, mark: { key: 'cache_control', ttl: '1h' } });
    assert.deepEqual(body['system'], [{ type: 'text', text: 'S', ...mark }]);
    assert.deepEqual(body['cache_control'], { type: 'ephemeral', ttl: '1h' });
    assert.ok(!('prompt_cache_key' in body));
  });

  it('Bedrock writes them behind the block and the tool, with their time', () => {
    const body = bodyOf('bedrock', 'https://b', anthropicFile);
    assert.deepEqual(body['system'], [{ text: 'A' }, { text: 'B' }, { cachePoint: { type: 'default', ttl: '1h' } }]);
    assert.deepEqual(body['toolConfig'], { tools: [{ toolSpec: { name: 'f', description: 'D', inputSchema: { json: { type: 'object' } } } }, { cachePoint: { type: 'default' } }] });
    assert.deepEqual(body['messages'], [{ role: 'user', content: [{ text: '[image]' }, { text: 'Q' }, { cachePoint: { type: 'default' } }] }]);
  });

  it('chat: as the file writes them, or as the host knows them, or not at all', () => {
    const system = (url: string, prompt: ChatPrompt, model = 'm') => (bodyOf('openai-chat', url, prompt, { model })['messages'] as { content: unknown }[])[0]?.content;
    assert.deepEqual(system('http://localhost:4000', chatFile), [{ type: 'text', text: 'S', ...mark }]);
    assert.deepEqual(system('https://openrouter.ai/api/v1', anthropicFile), [{ type: 'text', text: 'A' }, { type: 'text', text: 'B', cache_control: { type: 'ephemeral', ttl: '1h' } }]);
    assert.deepEqual(system('https://dashscope.aliyuncs.com/compatible-mode/v1', chatFile), [{ type: 'text', text: 'S', ...mark }]);
    assert.deepEqual(system('https://api.openai.com', chatFile, 'gpt-5.6'), [{ type: 'text', text: 'S', prompt_cache_breakpoint: { mode: 'explicit' } }]);
    assert.deepEqual(system('https://api.openai.com', chatFile, 'gpt-5.4-mini'), [{ type: 'text', text: 'S' }]);
    assert.equal(system('http://localhost:8000', anthropicFile), 'AB');
    assert.equal(bodyOf('openai-chat', 'http://h', chatFile)['prompt_cache_key'], 'k');
    assert.deepEqual(bodyOf('openai-chat', 'http://h', anthropicFile)['tools'], [{ type: 'function', function: { name: 'f', description: 'D', parameters: { type: 'object' } } }]);
  });

  it('Responses: items and instructions as the file writes them', () => {
    const call = { type: 'function_call', call_id: 'c', name: 'f', arguments: '{}' };
    const breakpoint = { type: 'input_text', text: 'Q', prompt_cache_breakpoint: { mode: 'explicit' } };
    const prompt = requestPrompt({ model: 'gpt-5.6', instructions: 'I', input: [{ role: 'user', content: [breakpoint] }, call], prompt_cache_options: { mode: 'explicit' } })!;
    const body = bodyOf('openai-responses', 'https://api.openai.com', prompt, { ask: new Set(['prompt_cache_options.comparison_response_id']), compareWith: 'resp_1' });
    assert.equal(body['instructions'], 'I');
    assert.deepEqual(body['input'], [{ role: 'user', content: [breakpoint] }, call]);
    assert.deepEqual(body['prompt_cache_options'], { mode: 'explicit', comparison_response_id: 'resp_1' });
    assert.deepEqual((bodyOf('openai-chat', 'http://h', prompt)['messages'] as { role: string }[]).map(({ role }) => role), ['system', 'user', 'assistant']);
  });

  it('a nonce makes the request new from its first bytes on, tools included, and moves no marker', () => {
    const cold = salted(anthropicFile, 'NONCE');
    const body = bodyOf('anthropic', 'http://h', cold);
    assert.deepEqual((body['tools'] as { description: string }[])[0]?.description, 'NONCE D');
    assert.deepEqual((body['system'] as { text: string }[]).map(({ text }) => text), ['NONCE\nA', 'B']);
    const imageFirst = salted({ ...anthropicFile, messages: anthropicFile.messages.slice(1) }, 'NONCE');
    assert.deepEqual((bodyOf('anthropic', 'http://h', imageFirst)['messages'] as { content: { type: string }[] }[])[0]?.content.map(({ type }) => type), ['text', 'image', 'text']);
    const count = (value: unknown) => JSON.stringify(value).split('cache_control').length;
    assert.equal(count(body), count(bodyOf('anthropic', 'http://h', anthropicFile)));
  });
});

describe('dialects: the provider’s cache diagnostics', () => {
  it('Anthropic: asked with its beta header beside the endpoint’s own', () => {
    const ask = new Set(['diagnostics', 'cache-diagnosis-2026-04-07']);
    const input: RequestInput = { url: 'http://h', model: 'm', maxTokens: 8, ask, body: {}, headers: { 'Anthropic-Beta': 'a-1' }, key: null, prompt: chatFile, compareWith: null };
    const first = dialects.anthropic.request(input);
    assert.equal(first.headers['anthropic-beta'], 'a-1,cache-diagnosis-2026-04-07');
    assert.deepEqual((JSON.parse(first.body) as Record<string, unknown>)['diagnostics'], { previous_message_id: null });
    const general = dialects.anthropic.request({ ...input, ask: new Set(['diagnostics']), compareWith: 'msg_1' });
    assert.equal(general.headers['anthropic-beta'], 'a-1');
    assert.deepEqual((JSON.parse(general.body) as Record<string, unknown>)['diagnostics'], { previous_message_id: 'msg_1' });
  });

  it('Anthropic: a refusal of the beta name drops the header alone, one of the field drops the field', () => {
    const refused = (message: string) => refusedField(400, JSON.stringify({ type: 'error', error: { type: 'invalid_request_error', message } }), dialects.anthropic.optional);
    assert.equal(refused('Unexpected value(s) `cache-diagnosis-2026-04-07` for the `anthropic-beta` header.'), 'cache-diagnosis-2026-04-07');
    assert.equal(refused('diagnostics: Extra inputs are not permitted'), 'diagnostics');
    const left = (name: string) => [...askFor(dialects.anthropic, { url: 'https://api.anthropic.com', server: null, refused: new Set([name]), fixedLength: true, diagnosing: true })];
    assert.deepEqual(left('cache-diagnosis-2026-04-07'), ['diagnostics']);
    assert.deepEqual(left('none').length, 2);
    assert.deepEqual([...askFor(dialects.anthropic, { url: 'https://api.anthropic.com', server: null, refused: new Set(), fixedLength: true })], [], 'a probe asks for none of it');
  });

  const event = (value: object): string => `data: ${JSON.stringify(value)}\n\n`;
  const anthropic = (diagnostics: unknown): CacheDiagnosis | null => {
    const message = { id: 'msg_1', usage: { input_tokens: 9 }, ...(diagnostics === undefined ? {} : { diagnostics }) };
    const decoded = decodeText('anthropic', event({ type: 'message_start', message }) + event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: 'Hi' } }) + event({ type: 'message_stop' }));
    assert.equal(decoded.answerId, 'msg_1');
    return decoded.diagnosis;
  };
  it('Anthropic: what comes back on message_start', () => {
    assert.equal(anthropic(undefined), null);
    assert.deepEqual(anthropic(null), { state: 'same', reason: null, missedTokens: null });
    assert.equal(anthropic({ cache_miss_reason: null })?.state, 'unknown');
    assert.deepEqual(anthropic({ cache_miss_reason: { type: 'tools_changed', cache_missed_input_tokens: 321 } }), { state: 'changed', reason: 'tools_changed', missedTokens: 321 });
    assert.equal(anthropic({ cache_miss_reason: { type: 'previous_message_not_found' } })?.state, 'not-found');
    assert.equal(anthropic({ cache_miss_reason: { type: 'unavailable' } })?.state, 'unknown');
    assert.equal(anthropic('?')?.state, 'unknown');
  });

  it('OpenAI: what comes back with the last event', () => {
    const openai = (told: unknown): CacheDiagnosis | null => decodeText('openai-responses', event({ type: 'response.output_text.delta', delta: 'Hi' }) + event({ type: 'response.completed', response: { id: 'resp_1', prompt_cache_diagnostics: told } })).diagnosis;
    assert.equal(openai(undefined), null);
    assert.deepEqual(openai({ type: 'cache_hit' }), { state: 'same', reason: null, missedTokens: null });
    assert.deepEqual(openai({ type: 'cache_miss', reason: 'input_changed', cache_missed_tokens: 5, comparison_reusable_tokens: 7 }), { state: 'changed', reason: 'input_changed', missedTokens: 5 });
    assert.equal(openai({ type: 'comparison_response_not_found' })?.state, 'not-found');
    assert.deepEqual(openai({ type: 'unavailable' }), { state: 'unknown', reason: 'unavailable', missedTokens: null });
  });
});
