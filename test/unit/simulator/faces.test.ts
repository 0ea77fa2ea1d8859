/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-member-access, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-return, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-argument, @typescript-eslint/restrict-plus-operands -- the bodies of eleven APIs are read as plain clients read them; types would only restate what is tested */
import assert from 'node:assert/strict';
import zlib from 'node:zlib';
import { faceNames } from '../../../src/simulator/face';
import { call, sseEvents, sseJson, withSimulator, type Answer } from './client';

const question = 'Tell me about the first token.';
const messages = [{ role: 'user', content: question }];

interface Reading {
  readonly text: string;
  readonly reasoning: string;
  readonly output: number | null;
  readonly prompt: number | null;
  readonly cached: number | null;
  readonly finish: string | null;
}

const nothing: Reading = { text: '', reasoning: '', output: null, prompt: null, cached: null, finish: null };

interface Api {
  readonly face: string;
  readonly path: string;
  readonly body: (tokens: number) => object;
  readonly headers?: Record<string, string>;
  /** A request with the key, as this API wants it. */
  readonly key: (key: string) => Record<string, string>;
  readonly read: (answer: Answer) => Reading;
  readonly endMark: (answer: Answer) => boolean;
  /** The message of an error body. */
  readonly problem: (json: any) => unknown;
  /** The error inside a stream, as the last thing of it. */
  readonly inStream: (answer: Answer) => unknown;
  readonly reasons: boolean;
}

const bearer = (key: string): Record<string, string> => ({ authorization: `Bearer ${key}` });
const ndjson = (text: string): any[] => text.split('\n').filter((line) => line !== '').map((line) => JSON.parse(line));
const lastData = (answer: Answer): any => JSON.parse(sseEvents(answer.text).filter(({ data }) => data !== '[DONE]').at(-1)!.data);
const hasDone = (answer: Answer): boolean => sseEvents(answer.text).at(-1)!.data === '[DONE]';
const join = <T>(list: readonly T[], of: (item: T) => string | undefined | null): string => list.map((item) => of(item) ?? '').join('');

const openai = (face: string, over: Partial<Api> = {}): Api => ({
  face,
  path: '/v1/chat/completions',
  body: (tokens) => ({ messages, stream: true, max_tokens: tokens, stream_options: { include_usage: true } }),
  key: bearer,
  read: (answer) => {
    const chunks = sseJson(answer.text);
    const { usage } = chunks.at(-1);
    return {
      text: join(chunks, (c) => c.choices[0]?.delta.content),
      reasoning: join(chunks, (c) => c.choices[0]?.delta.reasoning_content ?? c.choices[0]?.delta.reasoning),
      output: usage.completion_tokens,
      prompt: usage.prompt_tokens,
      cached: usage.prompt_tokens_details.cached_tokens,
      finish: chunks.findLast((c) => c.choices[0]?.finish_reason).choices[0].finish_reason,
    };
  },
  endMark: hasDone,
  problem: (json) => json.error.message,
  inStream: (answer) => lastData(answer).error.message,
  reasons: true,
  ...over,
});

/** A binary event stream: `[event type, payload]` of every frame, checksums verified. */
function awsEvents(body: Buffer): { headers: Record<string, string>; payload: any }[] {
  const crc = (bytes: Uint8Array): number => (zlib as unknown as { crc32(bytes: Uint8Array): number }).crc32(bytes);
  const frames = [];
  for (let at = 0; at < body.length; ) {
    const [total, headLength] = [body.readUInt32BE(at), body.readUInt32BE(at + 4)];
    const frame = body.subarray(at, at + total);
    assert.equal(frame.readUInt32BE(8), crc(frame.subarray(0, 8)));
    assert.equal(frame.readUInt32BE(total - 4), crc(frame.subarray(0, total - 4)));
    const headers: Record<string, string> = {};
    for (let i = 12; i < 12 + headLength; ) {
      const name = frame.subarray(i + 1, i + 1 + frame[i]!).toString();
      i += 1 + name.length;
      assert.equal(frame[i], 7);
      const length = frame.readUInt16BE(i + 1);
      headers[name] = frame.subarray(i + 3, i + 3 + length).toString();
      i += 3 + length;
    }
    frames.push({ headers, payload: JSON.parse(frame.subarray(12 + headLength, total - 4).toString()) });
    at += total;
  }
  return frames;
}

const geminiReading = (chunks: any[]): Reading => {
  const parts = chunks.flatMap((c) => c.candidates[0].content.parts);
  const usage = chunks.at(-1).usageMetadata;
  return {
    text: join(parts, (p: any) => (p.thought ? '' : p.text)),
    reasoning: join(parts, (p: any) => (p.thought ? p.text : '')),
    output: usage.candidatesTokenCount + (usage.thoughtsTokenCount ?? 0),
    prompt: usage.promptTokenCount,
    cached: usage.cachedContentTokenCount ?? 0,
    finish: chunks.at(-1).candidates[0].finishReason,
  };
};

const geminiBody = (tokens: number): object => ({ contents: [{ role: 'user', parts: [{ text: question }] }], generationConfig: { maxOutputTokens: tokens } });

const apis: Readonly<Record<string, Api>> = {
  'vllm chat': openai('vllm'),
  'sglang chat': openai('sglang', { problem: (json) => json.message }),
  'llama.cpp chat': openai('llamacpp'),
  'tgi chat': openai('tgi'),
  'ollama chat, OpenAI mode': openai('ollama', { problem: (json) => json.error.message ?? json.error }),
  'openai chat': openai('openai'),
  azure: openai('azure', { path: '/openai/deployments/llama-3.1-8b/chat/completions?api-version=2024-10-21', key: (key) => ({ 'api-key': key }) }),
  'azure v1': openai('azure', { path: '/openai/v1/chat/completions', body: (tokens) => ({ model: 'llama-3.1-8b', messages, stream: true, max_tokens: tokens, stream_options: { include_usage: true } }), key: bearer }),
  responses: {
    face: 'vllm',
    path: '/v1/responses',
    body: (tokens) => ({ input: question, stream: true, max_output_tokens: tokens }),
    key: bearer,
    read: (answer) => {
      const events = sseJson(answer.text);
      assert.deepEqual(events.map((e) => e.sequence_number), events.map((_, i) => i));
      assert.deepEqual(events.map((e) => e.type), sseEvents(answer.text).map((e) => e.event));
      const text = join(events, (e) => (e.type === 'response.output_text.delta' ? e.delta : ''));
      assert.equal(text, events.find((e) => e.type === 'response.output_text.done').text);
      const { response } = events.at(-1);
      return {
        text,
        reasoning: join(events, (e) => (e.type === 'response.reasoning_text.delta' ? e.delta : '')),
        output: response.usage.output_tokens,
        prompt: response.usage.input_tokens,
        cached: response.usage.input_tokens_details.cached_tokens,
        finish: response.incomplete_details?.reason ?? response.status,
      };
    },
    endMark: (answer) => ['response.completed', 'response.incomplete'].includes(sseEvents(answer.text).at(-1)!.event),
    problem: (json) => json.error.message,
    inStream: (answer) => {
      assert.equal(sseEvents(answer.text).at(-2)!.event, 'error');
      return lastData(answer).response.error.message;
    },
    reasons: true,
  },
  anthropic: {
    face: 'anthropic',
    path: '/v1/messages',
    body: (tokens) => ({ model: 'llama-3.1-8b', messages, stream: true, max_tokens: tokens }),
    key: (key) => ({ 'x-api-key': key }),
    read: (answer) => {
      const events = sseJson(answer.text);
      assert.equal(events[0].type, 'message_start');
      const open = events.filter((e) => e.type === 'content_block_start').length;
      assert.equal(open, events.filter((e) => e.type === 'content_block_stop').length);
      const { delta, usage } = events.find((e) => e.type === 'message_delta');
      return {
        text: join(events, (e) => e.delta?.text),
        reasoning: join(events, (e) => e.delta?.thinking),
        output: usage.output_tokens,
        prompt: usage.input_tokens + usage.cache_read_input_tokens,
        cached: usage.cache_read_input_tokens,
        finish: delta.stop_reason,
      };
    },
    endMark: (answer) => sseEvents(answer.text).at(-1)!.event === 'message_stop',
    problem: (json) => json.error.message,
    inStream: (answer) => lastData(answer).error.message,
    reasons: true,
  },
  'gemini sse': {
    face: 'gemini',
    path: '/v1beta/models/llama-3.1-8b:streamGenerateContent?alt=sse',
    body: geminiBody,
    key: (key) => ({ 'x-goog-api-key': key }),
    read: (answer) => {
      assert.ok(answer.text.includes('\r\n\r\n'));
      return geminiReading(sseJson(answer.text));
    },
    endMark: (answer) => lastData(answer).candidates[0].finishReason !== undefined,
    problem: (json) => json.error.message,
    inStream: (answer) => {
      const bare = answer.text.slice(answer.text.lastIndexOf('\r\n\r\n{') + 4);
      assert.ok(bare.split('\n').length > 3, 'several lines without data:');
      return JSON.parse(bare).error.message;
    },
    reasons: true,
  },
  'gemini array': {
    face: 'gemini',
    path: '/v1beta/models/llama-3.1-8b:streamGenerateContent',
    body: geminiBody,
    key: (key) => ({ 'x-goog-api-key': key }),
    read: (answer) => geminiReading(JSON.parse(answer.text)),
    endMark: (answer) => answer.text.trimEnd().endsWith(']'),
    problem: (json) => json.error.message,
    inStream: (answer) => JSON.parse(answer.text).at(-1).error.message,
    reasons: true,
  },
  'ollama chat': {
    face: 'ollama',
    path: '/api/chat',
    body: (tokens) => ({ model: 'llama-3.1-8b', messages, options: { num_predict: tokens } }),
    key: bearer,
    read: (answer) => {
      const lines = ndjson(answer.text);
      const last = lines.at(-1);
      return { ...nothing, text: join(lines, (l) => l.message.content), reasoning: join(lines, (l) => l.message.thinking), output: last.eval_count, prompt: last.prompt_eval_count, finish: last.done_reason };
    },
    endMark: (answer) => ndjson(answer.text).at(-1).done === true,
    problem: (json) => json.error,
    inStream: (answer) => ndjson(answer.text).at(-1).error,
    reasons: true,
  },
  'ollama generate': {
    face: 'ollama',
    path: '/api/generate',
    body: (tokens) => ({ model: 'llama-3.1-8b', prompt: question, options: { num_predict: tokens } }),
    key: bearer,
    read: (answer) => {
      const lines = ndjson(answer.text);
      return { ...nothing, text: join(lines, (l) => l.response), reasoning: join(lines, (l) => l.thinking), output: lines.at(-1).eval_count, prompt: lines.at(-1).prompt_eval_count, finish: lines.at(-1).done_reason };
    },
    endMark: (answer) => ndjson(answer.text).at(-1).done === true,
    problem: (json) => json.error,
    inStream: (answer) => ndjson(answer.text).at(-1).error,
    reasons: true,
  },
  llamacpp: {
    face: 'llamacpp',
    path: '/completion',
    body: (tokens) => ({ prompt: question, n_predict: tokens, stream: true, timings_per_token: true, return_progress: true }),
    key: bearer,
    read: (answer) => {
      const events = sseJson(answer.text);
      assert.ok(events[0].prompt_progress);
      const tokens = events.slice(1, -1);
      assert.deepEqual(tokens.map((e) => e.timings.predicted_n), tokens.map((_, i) => i + 1));
      assert.ok(tokens.every((e) => e.tokens.length === 1));
      const { timings, stop_type } = events.at(-1);
      return { ...nothing, text: join(events, (e) => e.content), output: timings.predicted_n, prompt: timings.prompt_n + timings.cache_n, cached: timings.cache_n, finish: stop_type };
    },
    endMark: (answer) => lastData(answer).stop === true,
    problem: (json) => json.error.message,
    inStream: (answer) => lastData(answer).error.message,
    reasons: false,
  },
  tgi: {
    face: 'tgi',
    path: '/generate_stream',
    body: (tokens) => ({ inputs: question, parameters: { max_new_tokens: tokens, details: true } }),
    key: bearer,
    read: (answer) => {
      assert.ok(answer.text.startsWith('data:{'), 'no space after the colon');
      const events = sseJson(answer.text);
      const last = events.at(-1);
      assert.equal(last.generated_text, join(events, (e) => e.token.text));
      assert.deepEqual(events.map((e) => e.index), events.map((_, i) => i + 1));
      return { ...nothing, text: last.generated_text, output: last.details.generated_tokens, prompt: last.details.input_length, finish: last.details.finish_reason };
    },
    endMark: (answer) => lastData(answer).generated_text !== null,
    problem: (json) => json.error,
    inStream: (answer) => lastData(answer).error,
    reasons: false,
  },
  sglang: {
    face: 'sglang',
    path: '/generate',
    body: (tokens) => ({ text: question, sampling_params: { max_new_tokens: tokens }, stream: true }),
    key: bearer,
    read: (answer) => {
      const events = sseJson(answer.text);
      for (let i = 1; i < events.length; i++) assert.ok(events[i].text.startsWith(events[i - 1].text), 'cumulative');
      const { text, meta_info } = events.at(-1);
      return { ...nothing, text, output: meta_info.completion_tokens, prompt: meta_info.prompt_tokens, cached: meta_info.cached_tokens, finish: meta_info.finish_reason.type };
    },
    endMark: hasDone,
    problem: (json) => json.message,
    inStream: (answer) => lastData(answer).error.message,
    reasons: false,
  },
  triton: {
    face: 'triton',
    path: '/v2/models/llama-3.1-8b/generate_stream',
    body: (tokens) => ({ text_input: question, max_tokens: tokens, stream: true, exclude_input_in_output: true }),
    key: bearer,
    read: (answer) => ({ ...nothing, text: join(sseJson(answer.text), (e) => e.text_output) }),
    endMark: (answer) => answer.whole,
    problem: (json) => json.error,
    inStream: (answer) => lastData(answer).error,
    reasons: false,
  },
  cohere: {
    face: 'cohere',
    path: '/v2/chat',
    body: (tokens) => ({ model: 'llama-3.1-8b', messages, stream: true, max_tokens: tokens }),
    key: bearer,
    read: (answer) => {
      const events = sseJson(answer.text);
      assert.deepEqual(events.map((e) => e.type), sseEvents(answer.text).filter((e) => e.event !== '').map((e) => e.event));
      const { finish_reason, usage } = events.at(-1).delta;
      return { text: join(events, (e) => e.delta?.message?.content?.text), reasoning: join(events, (e) => e.delta?.message?.content?.thinking), output: usage.tokens.output_tokens, prompt: usage.tokens.input_tokens, cached: usage.cached_tokens, finish: finish_reason };
    },
    endMark: hasDone,
    problem: (json) => json.message,
    inStream: (answer) => lastData(answer).delta.error,
    reasons: true,
  },
  bedrock: {
    face: 'bedrock',
    path: '/model/llama-3.1-8b/converse-stream',
    body: (tokens) => ({ messages: [{ role: 'user', content: [{ text: question }] }], inferenceConfig: { maxTokens: tokens } }),
    key: bearer,
    read: (answer) => {
      const frames = awsEvents(answer.body);
      const { usage, metrics } = frames.at(-1)!.payload;
      assert.ok(metrics.latencyMs >= 0);
      return {
        text: join(frames, ({ payload }) => payload.delta?.text),
        reasoning: join(frames, ({ payload }) => payload.delta?.reasoningContent?.text),
        output: usage.outputTokens,
        prompt: usage.inputTokens + usage.cacheReadInputTokens,
        cached: usage.cacheReadInputTokens,
        finish: frames.find(({ headers }) => headers[':event-type'] === 'messageStop')!.payload.stopReason,
      };
    },
    endMark: (answer) => awsEvents(answer.body).at(-1)!.headers[':event-type'] === 'metadata',
    problem: (json) => json.message,
    inStream: (answer) => {
      const { headers, payload } = awsEvents(answer.body).at(-1)!;
      assert.equal(headers[':message-type'], 'exception');
      return payload.message;
    },
    reasons: true,
  },
};

for (const [name, api] of Object.entries(apis)) {
  describe(`face: ${name}`, () => {
    const ask = (url: string, tokens: number, headers: Record<string, string> = {}): Promise<Answer> => call(url, api.path, { body: api.body(tokens), headers: { ...api.headers, ...headers } });

    it('streams text, usage, finish and end mark; the same answer as every other face', () =>
      withSimulator(`--face ${api.face}`, async (url) => {
        const answer = await ask(url, 24, { 'x-request-id': 'once' });
        assert.equal(answer.status, 200);
        assert.ok(answer.whole && api.endMark(answer));
        const { text, output, prompt, cached, finish } = api.read(answer);
        assert.match(text, /^[A-Z][a-z ]+/);
        const truth = JSON.parse((await call(url, '/truth/once')).text);
        assert.equal(truth.outputTokens, 24);
        assert.equal(truth.frames.reduce((sum: number, [, n]: [number, number]) => sum + n, 0), 24, 'every token stands in a frame');
        if (output !== null) assert.equal(output, 24);
        if (prompt !== null) assert.equal(prompt, truth.promptTokens);
        if (cached !== null) assert.equal(cached, truth.cachedTokens);
        if (finish !== null) assert.match(finish, /length|max_tokens|MAX_TOKENS|limit|max_output_tokens/);
      }));

    it('fails inside the stream as this server does', () =>
      withSimulator(`--face ${api.face}`, async (url) => {
        const answer = await ask(url, 24, { 'x-fault': 'error-frame:3' });
        assert.equal(answer.status, 200);
        assert.match(String(api.inStream(answer)), /engine died/);
      }));

    it('words refusals its own way, and looks for its key where clients put it', () =>
      withSimulator(`--face ${api.face} --api-key k-123`, async (url) => {
        const refused = await ask(url, 4);
        assert.equal(refused.status, 401);
        assert.match(String(api.problem(JSON.parse(refused.text))), /key/i);
        assert.equal((await ask(url, 4, api.key('k-123'))).status, 200);
        const broken = await call(url, api.path, { body: {}, headers: api.key('k-123') });
        assert.ok(broken.status === 400 || broken.status === 422, String(broken.status));
        assert.equal(typeof api.problem(JSON.parse(broken.text)), 'string');
      }));

    if (api.reasons) {
      it('keeps reasoning apart from the answer', () =>
        withSimulator(`--face ${api.face} --reasoning 8`, async (url) => {
          const { text, reasoning, output } = api.read(await ask(url, 24));
          assert.ok(reasoning.length > 10 && text.length > 10 && !text.includes(reasoning));
          assert.equal(output, 24);
        }));
    }

    it('plays the faults of a stream', () =>
      withSimulator(`--face ${api.face}`, async (url) => {
        const [cut, short, empty, bad] = await Promise.all(['cut:3', 'truncate:3', 'empty', 'malformed:3'].map((fault) => ask(url, 8, { 'x-fault': fault })));
        assert.equal(cut!.whole, false);
        assert.equal(short!.whole, true);
        assert.ok(short!.body.length < (await ask(url, 8)).body.length);
        assert.ok(empty!.whole);
        assert.throws(() => {
          api.read(bad!);
        });
      }));
  });
}

describe('faces without streaming', () => {
  const whole: readonly [string, string, object, (json: any) => string][] = [
    ['vllm', '/v1/chat/completions', { messages, max_tokens: 9 }, (j) => j.choices[0].message.content],
    ['vllm', '/v1/responses', { input: question, max_output_tokens: 9 }, (j) => j.output[0].content[0].text],
    ['anthropic', '/v1/messages', { messages, max_tokens: 9 }, (j) => j.content[0].text],
    ['gemini', '/v1beta/models/llama-3.1-8b:generateContent', geminiBody(9), (j) => j.candidates[0].content.parts[0].text],
    ['ollama', '/api/chat', { model: 'llama-3.1-8b', messages, stream: false, options: { num_predict: 9 } }, (j) => j.message.content],
    ['ollama', '/api/generate', { model: 'llama-3.1-8b', prompt: question, stream: false, options: { num_predict: 9 } }, (j) => j.response],
    ['llamacpp', '/completion', { prompt: question, n_predict: 9 }, (j) => j.content],
    ['tgi', '/generate', { inputs: question, parameters: { max_new_tokens: 9 } }, (j) => j.generated_text],
    ['sglang', '/generate', { text: question, sampling_params: { max_new_tokens: 9 } }, (j) => j.text],
    ['triton', '/v2/models/llama-3.1-8b/generate', { text_input: question, max_tokens: 9, parameters: { exclude_input_in_output: true } }, (j) => j.text_output],
    ['cohere', '/v2/chat', { messages, max_tokens: 9 }, (j) => j.message.content[0].text],
    ['bedrock', '/model/llama-3.1-8b/converse', { messages: [{ role: 'user', content: [{ text: question }] }], inferenceConfig: { maxTokens: 9 } }, (j) => j.output.message.content[0].text],
  ];
  for (const [face, path, body, read] of whole) {
    it(`${face} ${path}`, () =>
      withSimulator(`--face ${face}`, async (url) => {
        const answer = await call(url, path, { body });
        assert.equal(answer.status, 200);
        assert.match(read(JSON.parse(answer.text)), /^[A-Z][a-z ]+/);
      }));
  }
});

describe('faces: tools', () => {
  const schema = { type: 'object', properties: {} };
  it('anthropic sends the arguments in pieces, gemini whole', async () => {
    await withSimulator('--face anthropic', async (url) => {
      const body = { messages, max_tokens: 200, stream: true, tools: [{ name: 'lookup', input_schema: schema }], tool_choice: { type: 'any' } };
      const events = sseJson((await call(url, '/v1/messages', { body })).text);
      assert.equal(events.find((e) => e.type === 'content_block_start').content_block.name, 'lookup');
      assert.ok(JSON.parse(join(events, (e) => e.delta?.partial_json)).answer);
      assert.equal(events.find((e) => e.type === 'message_delta').delta.stop_reason, 'tool_use');
    });
    await withSimulator('--face gemini', async (url) => {
      const body = { ...geminiBody(200), tools: [{ functionDeclarations: [{ name: 'lookup' }] }], toolConfig: { functionCallingConfig: { mode: 'ANY' } } };
      const chunks = sseJson((await call(url, '/v1beta/models/llama-3.1-8b:streamGenerateContent?alt=sse', { body })).text);
      const calls = chunks.flatMap((c) => c.candidates[0].content.parts).filter((p: any) => p.functionCall);
      assert.equal(calls.length, 1);
      assert.equal(calls[0].functionCall.name, 'lookup');
      assert.ok(calls[0].functionCall.args.answer);
    });
  });
});

describe('faces: one server at a time', () => {
  /** Paths by which a detector tells servers apart, and who answers them. */
  const marks: readonly [string, readonly string[], (answer: Answer) => boolean][] = [
    ['/version', ['vllm', 'all'], ({ text }) => typeof JSON.parse(text).version === 'string'],
    ['/get_server_info', ['sglang', 'all'], ({ text }) => JSON.parse(text).version !== undefined],
    ['/props', ['llamacpp', 'all'], ({ text }) => JSON.parse(text).total_slots === 16],
    ['/info', ['tgi', 'all'], ({ text }) => JSON.parse(text).router === 'text-generation-router'],
    ['/api/version', ['ollama', 'all'], ({ text }) => JSON.parse(text).version !== undefined],
    ['/v2', ['triton', 'all'], ({ text }) => JSON.parse(text).name === 'triton'],
  ];
  for (const face of faceNames) {
    it(face, () =>
      withSimulator(`--face ${face}`, async (url) => {
        for (const [path, owners, check] of marks) {
          const answer = await call(url, path);
          assert.equal(answer.status === 200 && check(answer), owners.includes(face), path);
        }
      }));
  }

  it('/v1/models names its owner', async () => {
    for (const [face, owner] of [['vllm', 'vllm'], ['sglang', 'sglang'], ['llamacpp', 'llamacpp'], ['ollama', 'library']] as const) {
      await withSimulator(`--face ${face}`, async (url) => assert.equal(JSON.parse((await call(url, '/v1/models')).text).data[0].owned_by, owner));
    }
  });

  it('/metrics has the names of each server', async () => {
    for (const [face, name] of [['vllm', 'vllm:kv_cache_usage_perc'], ['sglang', 'sglang:num_queue_reqs'], ['llamacpp', 'llamacpp:requests_processing'], ['tgi', 'tgi_queue_size']] as const) {
      await withSimulator(`--face ${face}`, async (url) => assert.ok((await call(url, '/metrics')).text.includes(`\n${name}`)));
    }
  });
});

describe('face: encoder', () => {
  const texts = ['the first token waits', 'the first token waits for the queue', 'completely different words entirely'];
  const cosine = (a: number[], b: number[]): number => a.reduce((sum, v, i) => sum + v * b[i]!, 0);
  const embed = async (url: string, input: unknown, more: object = {}): Promise<number[][]> =>
    JSON.parse((await call(url, '/v1/embeddings', { body: { input, ...more } })).text).data.map((d: any) => d.embedding);

  it('embeds: unit vectors, near for near texts, in floats or base64', () =>
    withSimulator('', async (url) => {
      const [a, b, c] = (await embed(url, texts)) as [number[], number[], number[]];
      assert.ok(Math.abs(cosine(a, a) - 1) < 1e-9);
      assert.ok(cosine(a, b) > 0.7 && cosine(a, b) > cosine(a, c) + 0.3);
      const encoded = JSON.parse((await call(url, '/v1/embeddings', { body: { input: texts[0], encoding_format: 'base64' } })).text).data[0].embedding;
      const bytes = Buffer.from(encoded, 'base64');
      assert.ok(Math.abs(bytes.readFloatLE(0) - a[0]!) < 1e-6);
    }));

  it('a quantised server nearly agrees', () =>
    withSimulator('', (full) =>
      withSimulator('--weight-bits 6', async (quantised) => {
        const [[a], [b]] = [await embed(full, texts[0]), await embed(quantised, texts[0])];
        const likeness = cosine(a!, b!) / Math.sqrt(cosine(b!, b!));
        assert.ok(likeness > 0.97 && likeness < 0.9999, String(likeness));
      })));

  it('reranks, classifies and pools', () =>
    withSimulator('', async (url) => {
      const ranked = JSON.parse((await call(url, '/rerank', { body: { query: 'first token', documents: texts, top_n: 2 } })).text).results;
      assert.equal(ranked.length, 2);
      assert.notEqual(ranked[0].index, 2);
      assert.ok(ranked[0].relevance_score >= ranked[1].relevance_score);
      const classed = JSON.parse((await call(url, '/classify', { body: { input: texts } })).text).data;
      assert.ok(classed.every((d: any) => Math.abs(d.probs.reduce((x: number, y: number) => x + y) - 1) < 1e-9 && d.label.startsWith('LABEL_')));
      assert.equal(JSON.parse((await call(url, '/pooling', { body: { input: texts } })).text).data[2].data.length, 128);
    }));

  it('refuses what is not text', () =>
    withSimulator('', async (url) => {
      for (const body of [{}, { input: [] }, { input: [{}] }]) assert.equal((await call(url, '/v1/embeddings', { body })).status, 400);
    }));
});
