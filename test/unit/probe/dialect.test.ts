import assert from 'node:assert/strict';
import { decodeRecording } from '../../../src/probe/decodeFile';
import { askFor, dialectOf, dialects } from '../../../src/probe/dialect';
import type { DialectId, RequestInput, WireRequest } from '../../../src/probe/dialect/dialect';
import { endpointRoot, endpointUrl } from '../../../src/probe/dialect/request';
import { chunk, decodeReads, decodeText, done, fixture, ownStreams, sse } from './streams';

const none: ReadonlySet<string> = new Set();

function request(id: DialectId, url: string, more: Partial<RequestInput> = {}): WireRequest & { readonly json: Record<string, unknown> } {
  const wire = dialects[id].request({
    url, model: 'm', maxTokens: 64, ask: none, body: {}, headers: {}, key: 'KEY-123',
    prompt: { messages: [{ role: 'system', text: 'Be brief.' }, { role: 'user', text: 'Hi' }, { role: 'assistant', text: 'Yes?' }, { role: 'tool', text: '42' }], tools: [] },
    ...more,
  });
  return { ...wire, json: JSON.parse(wire.body) as Record<string, unknown> };
}

describe('dialects: URLs', () => {
  const urls: readonly (readonly [DialectId, string, string])[] = [
    ['openai-chat', 'http://localhost:8000', 'http://localhost:8000/v1/chat/completions'],
    ['openai-chat', 'http://localhost:8000/', 'http://localhost:8000/v1/chat/completions'],
    ['openai-chat', 'http://localhost:8000/v1', 'http://localhost:8000/v1/chat/completions'],
    ['openai-chat', 'http://localhost:8000/v1/', 'http://localhost:8000/v1/chat/completions'],
    ['openai-chat', 'http://localhost:8000/v1/chat/completions', 'http://localhost:8000/v1/chat/completions'],
    ['openai-chat', 'https://api.groq.com/openai/v1', 'https://api.groq.com/openai/v1/chat/completions'],
    ['openai-chat', 'https://openrouter.ai/api/v1', 'https://openrouter.ai/api/v1/chat/completions'],
    ['openai-chat', 'https://api.z.ai/api/paas/v4', 'https://api.z.ai/api/paas/v4/chat/completions'],
    ['openai-chat', 'https://generativelanguage.googleapis.com/v1beta/openai/', 'https://generativelanguage.googleapis.com/v1beta/openai/chat/completions'],
    ['openai-chat', 'https://api.perplexity.ai', 'https://api.perplexity.ai/chat/completions'],
    ['openai-chat', 'https://h/prefix?tenant=a', 'https://h/prefix/v1/chat/completions?tenant=a'],
    ['openai-chat', 'http://[::1]:8080/v1', 'http://[::1]:8080/v1/chat/completions'],
    ['openai-completions', 'http://h', 'http://h/v1/completions'],
    ['openai-completions', 'http://h/v1/completions', 'http://h/v1/completions'],
    ['openai-completions', 'http://h/v1/chat/completions', 'http://h/v1/completions'],
    ['openai-responses', 'https://api.openai.com/v1', 'https://api.openai.com/v1/responses'],
    ['anthropic', 'https://api.anthropic.com', 'https://api.anthropic.com/v1/messages'],
    ['anthropic', 'http://h/v1/messages', 'http://h/v1/messages'],
    ['azure', 'https://r.openai.azure.com', 'https://r.openai.azure.com/openai/deployments/m/chat/completions?api-version=2024-10-21'],
    ['azure', 'https://r.openai.azure.com/openai/deployments/d', 'https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2024-10-21'],
    ['azure', 'https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01-preview', 'https://r.openai.azure.com/openai/deployments/d/chat/completions?api-version=2025-01-01-preview'],
    ['azure', 'https://r.openai.azure.com/openai/v1', 'https://r.openai.azure.com/openai/v1/chat/completions'],
    ['azure', 'https://r.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview', 'https://r.services.ai.azure.com/models/chat/completions?api-version=2024-05-01-preview'],
    ['gemini', 'https://generativelanguage.googleapis.com', 'https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse'],
    ['gemini', 'https://generativelanguage.googleapis.com/v1beta', 'https://generativelanguage.googleapis.com/v1beta/models/m:streamGenerateContent?alt=sse'],
    ['gemini', 'https://g/v1/projects/p/locations/l/publishers/google/models/x:generateContent', 'https://g/v1/projects/p/locations/l/publishers/google/models/x:streamGenerateContent?alt=sse'],
    ['ollama', 'http://localhost:11434', 'http://localhost:11434/api/chat'],
    ['ollama', 'http://localhost:11434/v1', 'http://localhost:11434/api/chat'],
    ['ollama', 'http://localhost:11434/api/generate', 'http://localhost:11434/api/generate'],
    ['llamacpp', 'http://h:8080/v1', 'http://h:8080/completion'],
    ['llamacpp', 'http://h:8080/v1/chat/completions', 'http://h:8080/completion'],
    ['tgi', 'http://h', 'http://h/generate_stream'],
    ['tgi', 'http://h/generate', 'http://h/generate_stream'],
    ['sglang', 'http://h/generate', 'http://h/generate'],
    ['triton', 'http://h', 'http://h/v2/models/m/generate_stream'],
    ['triton', 'http://h/v2/models/ensemble/versions/2/generate_stream', 'http://h/v2/models/ensemble/versions/2/generate_stream'],
    ['cohere', 'https://api.cohere.com', 'https://api.cohere.com/v2/chat'],
    ['cohere', 'https://api.cohere.com/v2/chat', 'https://api.cohere.com/v2/chat'],
    ['bedrock', 'https://bedrock-runtime.eu-west-1.amazonaws.com', 'https://bedrock-runtime.eu-west-1.amazonaws.com/model/m/converse-stream'],
    ['bedrock', 'https://b/model/x%3A0/converse-stream', 'https://b/model/x%3A0/converse-stream'],
  ];
  for (const [id, given, wanted] of urls) it(`${id}: ${given}`, () => assert.equal(request(id, given).url, wanted));

  it('the root of a server, and no URL at all', () => {
    for (const url of ['http://h:1', 'http://h:1/v1', 'http://h:1/v1/chat/completions?x=1', 'http://h:1/generate_stream', 'http://h:1/api/chat']) assert.equal(endpointRoot(url).replace(/\/api$/, ''), 'http://h:1');
    assert.throws(() => endpointUrl('localhost', '/x', '/v1'), TypeError);
  });
});

describe('dialects: requests', () => {
  it('the key goes where each API wants it, and nowhere without a key', () => {
    const header: Readonly<Record<string, DialectId[]>> = {
      authorization: ['openai-chat', 'openai-completions', 'openai-responses', 'ollama', 'llamacpp', 'tgi', 'sglang', 'triton', 'cohere', 'bedrock'],
      'api-key': ['azure'],
      'x-api-key': ['anthropic'],
      'x-goog-api-key': ['gemini'],
    };
    for (const [name, ids] of Object.entries(header)) {
      for (const id of ids) {
        const wire = request(id, 'https://h');
        assert.ok(wire.headers[name]?.endsWith('KEY-123'), `${id} ${name}`);
        assert.equal(Object.values(wire.headers).filter((value) => value.includes('KEY-123')).length, 1);
        assert.ok(!wire.url.includes('KEY-123') && !wire.body.includes('KEY-123'));
        assert.equal(Object.values(request(id, 'https://h', { key: null }).headers).filter((value) => value.includes('null') || value.includes('KEY')).length, 0);
      }
    }
    assert.equal(request('gemini', 'https://eu-aiplatform.googleapis.com/v1/projects/p').headers['authorization'], 'Bearer KEY-123');
  });

  it('compression is declined, and the endpoint’s headers and body come last', () => {
    for (const id of Object.keys(dialects) as DialectId[]) {
      const wire = request(id, 'https://h', { headers: { 'X-Team': 'a', 'Accept-Encoding': 'br' }, body: { seed: 7, stream_options: { extra: 1 } } });
      assert.equal(wire.headers['accept-encoding'], 'br', id);
      assert.equal(request(id, 'https://h').headers['accept-encoding'], 'identity', id);
      assert.deepEqual([wire.headers['x-team'], wire.json['seed'], wire.method], ['a', 7, 'POST']);
    }
    const merged = request('openai-chat', 'https://h', { ask: new Set(['stream_options.include_usage']), body: { stream_options: { extra: 1 }, max_tokens: null } });
    assert.deepEqual([merged.json['stream_options'], merged.json['max_tokens']], [{ include_usage: true, extra: 1 }, null]);
  });

  it('messages: system apart where the API wants it, developer only where it is known', () => {
    assert.deepEqual((request('openai-chat', 'https://h').json['messages'] as { role: string }[]).map((m) => m.role), ['system', 'user', 'assistant', 'user']);
    assert.equal(request('anthropic', 'https://h').json['system'], 'Be brief.');
    assert.deepEqual(request('gemini', 'https://h').json['systemInstruction'], { parts: [{ text: 'Be brief.' }] });
    assert.deepEqual((request('gemini', 'https://h').json['contents'] as { role: string }[]).map((m) => m.role), ['user', 'model', 'user']);
    assert.deepEqual(request('bedrock', 'https://h').json['inferenceConfig'], { maxTokens: 64 });
    assert.equal(request('openai-completions', 'https://h').json['prompt'], 'Be brief.\n\nHi\n\nYes?\n\n42');
    const developer = { prompt: { messages: [{ role: 'developer' as const, text: 'x' }], tools: [] } };
    assert.equal((request('openai-chat', 'https://h', developer).json['messages'] as { role: string }[])[0]!.role, 'system');
    assert.equal((request('openai-chat', 'https://api.openai.com/v1', developer).json['messages'] as { role: string }[])[0]!.role, 'developer');
  });

  it('tools in the form of each API', () => {
    const tool = { type: 'function', function: { name: 'add', description: 'Adds', parameters: { type: 'object', properties: { a: { type: 'number' } } } } };
    const prompt = { prompt: { messages: [{ role: 'user' as const, text: 'x' }], tools: [tool] } };
    assert.deepEqual(request('openai-chat', 'https://h', prompt).json['tools'], [tool]);
    assert.deepEqual(request('openai-responses', 'https://h', prompt).json['tools'], [{ type: 'function', ...tool.function }]);
    assert.deepEqual(request('anthropic', 'https://h', prompt).json['tools'], [{ name: 'add', description: 'Adds', input_schema: tool.function.parameters }]);
    assert.deepEqual(request('gemini', 'https://h', prompt).json['tools'], [{ functionDeclarations: [tool.function] }]);
    assert.deepEqual(request('bedrock', 'https://h', prompt).json['toolConfig'], { tools: [{ toolSpec: { name: 'add', description: 'Adds', inputSchema: { json: tool.function.parameters } } }] });
  });

  it('one cap on output: max_tokens, or max_completion_tokens where asked', () => {
    assert.deepEqual([request('openai-chat', 'https://h').json['max_tokens'], request('openai-chat', 'https://h').json['max_completion_tokens']], [64, undefined]);
    const other = request('openai-chat', 'https://h', { ask: new Set(['max_completion_tokens']) }).json;
    assert.deepEqual([other['max_tokens'], other['max_completion_tokens']], [undefined, 64]);
    assert.equal(request('anthropic', 'https://h', { maxTokens: null }).json['max_tokens'], 4096);
    for (const id of ['openai-chat', 'gemini', 'ollama', 'tgi'] as const) assert.ok(!request(id, 'https://h', { maxTokens: null }).body.includes('64'));
  });
});

describe('dialects: optional fields', () => {
  const ask = (id: DialectId, more: Partial<Parameters<typeof askFor>[1]> = {}): string[] => [...askFor(dialects[id], { url: 'http://h', server: null, refused: none, fixedLength: false, ...more })].sort();

  it('only what the server is known to understand', () => {
    assert.deepEqual(ask('openai-chat'), ['stream_options.include_usage']);
    assert.deepEqual(ask('openai-chat', { server: 'vllm 0.11.0' }), ['return_token_ids', 'stream_options.continuous_usage_stats', 'stream_options.include_usage']);
    assert.deepEqual(ask('openai-chat', { server: 'llamacpp' }), ['stream_options.include_usage', 'timings_per_token']);
    assert.deepEqual(ask('openai-chat', { url: 'https://api.openai.com/v1' }), ['max_completion_tokens', 'stream_options.include_obfuscation', 'stream_options.include_usage']);
    assert.ok(ask('openai-chat', { server: 'vllm', fixedLength: true }).includes('ignore_eos'));
    assert.ok(request('openai-chat', 'http://h', { ask: new Set(['ignore_eos', 'min_tokens']) }).body.includes('"min_tokens":64'));
  });

  it('refused fields are left out; a refused parent takes its children, a refused max_tokens brings the other name', () => {
    assert.deepEqual(ask('openai-chat', { refused: new Set(['stream_options']), server: 'vllm' }), ['return_token_ids']);
    assert.deepEqual(ask('openai-chat', { refused: new Set(['stream_options.continuous_usage_stats']), server: 'vllm' }), ['return_token_ids', 'stream_options.include_usage']);
    assert.deepEqual(ask('openai-chat', { refused: new Set(['max_tokens']) }), ['max_completion_tokens', 'stream_options.include_usage']);
    assert.deepEqual(ask('azure', { refused: new Set(['max_completion_tokens']) }), ['stream_options.include_usage']);
  });

  it('an id that is none', () => assert.equal(dialectOf('toString'), null));
});

describe('dialects: what each stream says', () => {
  const says: Readonly<Record<string, readonly [text: string, reasoning: string, tools: readonly (readonly [string, string])[], finish: string | null, output: number | null, prompt: number | null, cached: number | null]>> = {
    'openaiChat.sse': ['Olá!', '', [], 'stop', 2, 9, 4],
    'openaiCompletions.sse': ['\n\nGröße.', '', [], 'length', 3, 3, null],
    'openaiResponses.sse': ['Hi 🙂', 'Think', [['look', '{"a":1}']], 'completed', 12, 10, 8],
    'azure.sse': ['One two', '', [], 'stop', null, null, null],
    'anthropic.sse': ['Ja, schön.', 'Hm.', [['add', '{"a":2}']], 'tool_use', 30, 25, 20],
    'gemini.sse': ['Eins zwei', 'Plan', [['f', '{"x":"}\\"{"}']], 'STOP', 14, 7, 2],
    'gemini.json': ['Eins zwei', 'Plan', [['f', '{"x":"}\\"{"}']], 'STOP', 14, 7, 2],
    'ollamaChat.ndjson': ['Äh', 'Hm', [['get', '{"a":1}']], 'stop', 4, 11, null],
    'ollamaGenerate.ndjson': ['Ein Satz', '', [], 'length', 4, 11, null],
    'llamacpp.sse': ['Ein Worté', '', [], 'eos', 5, 6, 4],
    'tgi.sse': ['Tiefes Lernen', '', [], 'eos_token', 4, 8, null],
    'sglang.sse': ['Der Tag ist um.', '', [], 'stop', 6, 6, 3],
    'triton.sse': ['Ein kurzer Satz', '', [], null, null, null, null],
    'cohere.sse': ['Vier', 'DenkPlan', [['add', '{}']], 'COMPLETE', 9, 20, 16],
    'vllmTokenIds.sse': ['Zwei Token🙂 am Ende', '', [], 'stop', 8, 3, null],
    'vllmContinuousUsage.sse': ['Ab🙂', '', [['go', '{}']], 'tool_calls', 21, 5, null],
    'Converse stream': ['Grüß', 'Hm', [['go', '{"a":1}']], 'tool_use', 9, 9, 4],
  };
  for (const { name, id, bytes } of ownStreams) {
    it(`${name} as ${id}`, async () => {
      const decoded = decodeReads(id, [bytes]);
      const [text, reasoning, tools, finish, output, prompt, cached] = says[name]!;
      assert.deepEqual([decoded.text, decoded.reasoning, decoded.toolCalls.map((call) => [call.name, call.arguments]), decoded.finish], [text, reasoning, tools, finish]);
      assert.deepEqual([decoded.outputTokens.count, decoded.promptTokens, decoded.cachedTokens, decoded.outcome.kind], [output, prompt, cached, 'ok']);
      const byContent = await decodeRecording(bytes, 'auto', false);
      assert.deepEqual([byContent.text, byContent.reasoning, byContent.outcome.kind], [text, reasoning, 'ok'], 'told by content');
    });
  }

  it('structure frames are no deltas', () => {
    const of = (name: string, id: DialectId): string[] => decodeReads(id, [fixture(name)]).arrivals.map((arrival) => arrival.kind);
    assert.deepEqual(of('anthropic.sse', 'anthropic'), ['reasoning', 'text', 'text', 'tool']);
    assert.deepEqual(of('openaiResponses.sse', 'openai-responses'), ['reasoning', 'text', 'text', 'tool', 'tool']);
    assert.deepEqual(of('gemini.sse', 'gemini'), ['reasoning', 'text', 'tool']);
    assert.deepEqual(of('llamacpp.sse', 'llamacpp'), ['text', 'text', 'text', 'token']);
  });

  it('server timings under their own names, in ms', () => {
    const of = (decoded: { serverTimings: readonly { name: string; ms: number }[] }): Record<string, number> => Object.fromEntries(decoded.serverTimings.map(({ name, ms }) => [name, ms]));
    assert.deepEqual(of(decodeReads('ollama', [fixture('ollamaChat.ndjson')])), { total_duration: 5000, load_duration: 1000, prompt_eval_duration: 500, eval_duration: 3000 });
    assert.deepEqual(of(decodeReads('llamacpp', [fixture('llamacpp.sse')])), { 'timings.prompt_ms': 8, 'timings.predicted_ms': 25 });
    const told = of(
      decodeText('openai-chat', sse(chunk({ content: 'a' }, 'stop', { time_info: { queue_time: 0.5 }, sla_metrics: { ttft_ms: 274 }, x_groq: { usage: { prompt_time: 0.002, prompt_tokens: 1, completion_tokens: 1 } }, perf_metrics: { 'server-time-to-first-token': '0.25' } }), { choices: [], usage: { prompt_tokens: 1, completion_tokens: 1, latency_checkpoint: { engine_ttft_ms: 30 } }, metrics: { queue_time_ms: 4 } }, done), 'clean', {
        status: 200,
        headers: [['openai-processing-ms', '33'], ['Server-Timing', 'gfet4t7; dur=859, other;desc=x'], ['fireworks-server-time-to-first-token', '0.2']],
      }),
    );
    assert.deepEqual(told, { 'openai-processing-ms': 33, 'server-timing.gfet4t7': 859, 'fireworks-server-time-to-first-token': 200, 'x_groq.usage.prompt_time': 2, 'time_info.queue_time': 500, 'sla_metrics.ttft_ms': 274, 'perf_metrics.server-time-to-first-token': 250, 'usage.latency_checkpoint.engine_ttft_ms': 30, 'metrics.queue_time_ms': 4 });
  });

  it('quirks of the look-alikes', () => {
    const of = (...frames: readonly unknown[]): [string, string] => {
      const decoded = decodeText('openai-chat', sse(...frames, chunk({}, 'stop'), done));
      assert.equal(decoded.outcome.kind, 'ok');
      return [decoded.text, decoded.reasoning];
    };
    assert.deepEqual(of(chunk({ reasoning: 'once', reasoning_content: 'once' })), ['', 'once'], 'Cloudflare: both names');
    assert.deepEqual(of(chunk({ content: '', reasoning: 'r', reasoning_details: [{ type: 'reasoning.text', text: 'r' }] })), ['', 'r'], 'OpenRouter');
    assert.deepEqual(of(chunk({ content: '', reasoning_details: [{ type: 'reasoning.text', text: 'only' }] })), ['', 'only'], 'Snowflake');
    assert.deepEqual(of(chunk({ content: [{ type: 'thinking', thinking: [{ type: 'text', text: 'r' }] }] }), chunk({ content: [{ type: 'text', text: 'a' }] }), chunk({ content: 'b' })), ['ab', 'r'], 'Mistral');
    assert.deepEqual(of({ choices: [{ index: 0, delta: { content: 'a' }, message: { content: 'a' } }] }, { choices: [{ index: 0, delta: { content: 'b' }, message: { content: 'ab' } }] }), ['ab', ''], 'Perplexity: cumulative message');
    assert.deepEqual(of(chunk({ content: 'a' }), { object: 'chat.completion', choices: [{ index: 0, message: { content: 'a' }, finish_reason: 'stop' }] }), ['a', ''], 'a last frame that repeats the whole');
    assert.deepEqual(of({ choices: [{ index: 0, text: 'a', delta: { content: 'a', token_id: 1 } }] }), ['a', ''], 'Together: text beside delta');
    assert.deepEqual(of(chunk({ refusal: 'No.' })), ['No.', ''], 'a refusal is visible');
  });

  it('tool calls in pieces, parallel, all under index 0, legacy', () => {
    const call = (...pieces: object[]): (readonly [string, string])[] => decodeText('openai-chat', sse(...pieces.map((piece) => chunk({ tool_calls: [piece] })), chunk({}, 'tool_calls'), done)).toolCalls.map((c) => [c.name, c.arguments]);
    assert.deepEqual(call({ index: 0, id: 'a', function: { name: 'f', arguments: '' } }, { index: 0, function: { arguments: '{"x"' } }, { index: 1, id: 'b', function: { name: 'g', arguments: '{}' } }, { index: 0, function: { arguments: ':1}' } }), [['f', '{"x":1}'], ['g', '{}']]);
    assert.deepEqual(call({ index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }, { index: 0, id: 'b', function: { name: 'f', arguments: '{}' } }), [['f', '{}'], ['f', '{}']]);
    assert.deepEqual(call({ index: 0, id: 'a', function: { name: 'f', arguments: '' } }, { index: 0, id: 'a', function: { name: 'f', arguments: '{}' } }), [['f', '{}']]);
    const legacy = decodeText('openai-chat', sse(chunk({ function_call: { name: 'f', arguments: '' } }), chunk({ function_call: { arguments: '{}' } }), chunk({}, 'function_call'), done));
    assert.deepEqual(legacy.toolCalls, [{ name: 'f', arguments: '{}' }]);
  });

  it('n > 1: the answer is choice 0, the deltas are of all', () => {
    const of = (index: number, content: string): object => ({ choices: [{ index, delta: { content }, finish_reason: null }] });
    const decoded = decodeText('openai-chat', sse(of(0, 'a'), of(1, 'x'), of(0, 'b'), of(1, 'y'), { choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] }, { choices: [{ index: 1, delta: {}, finish_reason: 'length' }] }, done));
    assert.deepEqual([decoded.text, decoded.arrivals.length, decoded.finish, decoded.flags], ['ab', 4, 'stop', ['several-choices']]);
    assert.deepEqual(decoded.arrivals.map((arrival) => arrival.choice), [undefined, 1, undefined, 1]);
  });

  it('hidden reasoning without a number leaves N_stream unknown', () => {
    const wire = fixture('anthropic.sse').toString().replace('{"type":"thinking","thinking":""}', '{"type":"redacted_thinking","data":"x"}').replace(/event: content_block_delta\ndata: [^\n]*thinking_delta[^\n]*\n\n/, '');
    assert.deepEqual([decodeText('anthropic', wire).streamTokens, decodeText('anthropic', wire).outputTokens.count], [null, 30]);
  });
});
