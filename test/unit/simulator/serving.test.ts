/* eslint-disable @typescript-eslint/no-explicit-any, @typescript-eslint/no-unsafe-member-access, @typescript-eslint/no-unsafe-assignment, @typescript-eslint/no-unsafe-return, @typescript-eslint/no-unsafe-call, @typescript-eslint/no-unsafe-argument -- the bodies of other people's APIs are read as a plain client reads them; types would only restate what is tested */
import assert from 'node:assert/strict';
import { writeFileSync, mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { call, sseEvents, sseJson, withSimulator } from './client';

const hello = [{ role: 'user', content: 'Tell me about the first token.' }];
const chat = '/v1/chat/completions';

interface TruthRecord {
  arrival: number;
  scheduled: number;
  promptTokens: number;
  cachedTokens: number;
  outputTokens: number;
  frames: [number, number][];
  end: number;
  outcome: string;
  replica: number;
}

async function truthOf(url: string, id: string): Promise<TruthRecord> {
  return JSON.parse((await call(url, `/truth/${id}`)).text) as TruthRecord;
}

describe('serving: chat completions', () => {
  it('streams a role chunk, a chunk a token, the finish, the usage and the end mark', () =>
    withSimulator('', async (url) => {
      const body = { model: 'llama-3.1-8b', messages: hello, stream: true, max_tokens: 20, stream_options: { include_usage: true } };
      const answer = await call(url, chat, { body });
      assert.equal(answer.status, 200);
      assert.match(answer.headers['content-type']!, /^text\/event-stream/);
      const events = sseEvents(answer.text);
      assert.equal(events.at(-1)!.data, '[DONE]');
      const chunks = sseJson(answer.text);
      assert.deepEqual(chunks[0].choices[0].delta, { role: 'assistant', content: '' });
      assert.equal(chunks.filter((c) => c.choices[0]?.delta.content).length, 20);
      assert.equal(chunks.at(-2).choices[0].finish_reason, 'length');
      const usage = chunks.at(-1);
      assert.deepEqual(usage.choices, []);
      assert.equal(usage.usage.completion_tokens, 20);
      const tokens = JSON.parse((await call(url, '/tokenize', { body: { messages: hello } })).text);
      assert.equal(usage.usage.prompt_tokens, tokens.count, '/tokenize and usage agree');
      const truth = await truthOf(url, answer.headers['x-request-id'] as string);
      assert.equal(truth.frames.length, events.length, 'a stamp for every frame');
      assert.equal(truth.frames.reduce((sum, [, n]) => sum + n, 0), 20);
      assert.equal(truth.outcome, 'ok');
    }));

  it('says the same without streaming', () =>
    withSimulator('', async (url) => {
      const whole = JSON.parse((await call(url, chat, { body: { messages: hello, max_tokens: 30 } })).text);
      const streamed = sseJson((await call(url, chat, { body: { messages: hello, max_tokens: 30, stream: true } })).text);
      assert.equal(whole.choices[0].message.content, streamed.map((c) => c.choices[0].delta.content ?? '').join(''));
      assert.equal(whole.usage.completion_tokens, 30);
      assert.equal(whole.object, 'chat.completion');
    }));

  it('counts every token when asked: token ids, continuous usage, logprobs', () =>
    withSimulator('', async (url) => {
      const body = { messages: [{ role: 'user', content: 'naïve?' }], stream: true, max_tokens: 200, return_token_ids: true, logprobs: true, stream_options: { include_usage: true, continuous_usage_stats: true } };
      const chunks = sseJson((await call(url, chat, { body })).text);
      assert.ok(Array.isArray(chunks[0].prompt_token_ids));
      const content = chunks.filter((c) => c.choices[0]?.token_ids);
      const ids = content.flatMap((c) => c.choices[0].token_ids as number[]);
      assert.equal(ids.length, chunks.at(-1).usage.completion_tokens);
      assert.deepEqual(content.map((c) => c.usage.completion_tokens), content.map((_, i) => i + 1));
      assert.ok(content.every((c) => c.choices[0].logprobs.content.length === 1));
      assert.ok(content.some((c) => c.choices[0].delta.content === ''), 'half a character is a token without text');
      const text = content.map((c) => c.choices[0].delta.content).join('');
      assert.ok(!text.includes('\uFFFD'));
      assert.equal(JSON.parse((await call(url, '/detokenize', { body: { tokens: ids } })).text).prompt, text);
    }));

  it('ends naturally, at a stop string, or not before min_tokens', () =>
    withSimulator('--speed 50', async (url) => {
      const ask = async (more: object): Promise<any> => JSON.parse((await call(url, chat, { body: { messages: hello, ...more } })).text);
      const natural = await ask({});
      assert.equal(natural.choices[0].finish_reason, 'stop');
      const stopped = await ask({ stop: '.' });
      assert.ok(!stopped.choices[0].message.content.includes('.'));
      assert.equal(stopped.choices[0].finish_reason, 'stop');
      assert.ok(natural.choices[0].message.content.startsWith(stopped.choices[0].message.content));
      assert.equal((await ask({ ignore_eos: true, max_tokens: 900 })).usage.completion_tokens, 900);
      assert.ok((await ask({ min_tokens: 800 })).usage.completion_tokens >= 800);
    }));

  it('tells cached tokens: whole blocks of the common head, per salt', () =>
    withSimulator('', async (url) => {
      const messages = [{ role: 'system', content: 'Be brief. '.repeat(100) }, ...hello];
      const ask = async (more: object = {}): Promise<{ prompt: number; cached: number | undefined }> => {
        const { usage } = JSON.parse((await call(url, chat, { body: { messages, max_tokens: 2, ...more } })).text);
        return { prompt: usage.prompt_tokens, cached: usage.prompt_tokens_details?.cached_tokens };
      };
      assert.equal((await ask()).cached, 0);
      const { prompt, cached } = await ask();
      assert.equal(cached, Math.floor((prompt - 1) / 16) * 16);
      assert.equal((await ask({ cache_salt: 'other' })).cached, 0);
      await call(url, '/reset_prefix_cache', { method: 'POST' });
      assert.equal((await ask()).cached, 0);
    }));

  it('a second turn reuses the first one with its answer', () =>
    withSimulator('', async (url) => {
      const first = JSON.parse((await call(url, chat, { body: { messages: hello, max_tokens: 64 } })).text);
      const messages = [...hello, { role: 'assistant', content: first.choices[0].message.content }, { role: 'user', content: 'And then?' }];
      const second = JSON.parse((await call(url, chat, { body: { messages, max_tokens: 2 } })).text);
      const reusable = Number(first.usage.prompt_tokens) + 64;
      assert.ok(second.usage.prompt_tokens_details.cached_tokens >= Math.floor((reusable - 1) / 16) * 16 - 16);
    }));

  it('reasons in a field, in the text, or hidden; only visible text comes later', () =>
    withSimulator('--reasoning 30', async (url) => {
      const chunks = sseJson((await call(url, chat, { body: { messages: hello, stream: true, max_tokens: 50, stream_options: { include_usage: true } } })).text);
      assert.equal(chunks.filter((c) => c.choices[0]?.delta.reasoning_content).length, 30);
      assert.equal(chunks.filter((c) => c.choices[0]?.delta.content).length, 20);
      assert.equal(chunks.at(-1).usage.completion_tokens_details.reasoning_tokens, 30);
      const off = JSON.parse((await call(url, chat, { body: { messages: hello, max_tokens: 50, chat_template_kwargs: { enable_thinking: false } } })).text);
      assert.equal(off.choices[0].message.reasoning_content, undefined);
    }));

  it('hidden reasoning moves the first visible token and not the first generated one', async () => {
    const run = (flags: string): Promise<{ visible: number; counted: number }> =>
      withSimulator(flags, async (url) => {
        await call(url, chat, { body: { messages: hello, stream: true, max_tokens: 4 } });
        const answer = await call(url, chat, { body: { messages: hello, stream: true, max_tokens: 60, stream_options: { include_usage: true } } });
        const { arrival, frames } = await truthOf(url, answer.headers['x-request-id'] as string);
        return { visible: frames.find(([, n]) => n > 0)![0] - arrival, counted: sseJson(answer.text).at(-1).usage.completion_tokens };
      });
    const [plain, hidden] = [await run(''), await run('--reasoning 40:hidden')];
    assert.equal(hidden.counted, 60);
    // 40 steps of at least 3.3 ms pass unseen; the engine's first token is as early as before.
    assert.ok(hidden.visible - plain.visible > 40 * 3.3 * 0.9, `${plain.visible} → ${hidden.visible}`);
    const inline = await withSimulator('--reasoning 10:think', async (url) => JSON.parse((await call(url, chat, { body: { messages: hello, max_tokens: 60 } })).text));
    assert.match(inline.choices[0].message.content, /^<think>\n.+\n<\/think>\n\n/);
  });

  it('calls a tool when it must', () =>
    withSimulator('', async (url) => {
      const tools = [{ type: 'function', function: { name: 'lookup', parameters: { type: 'object' } } }];
      const chunks = sseJson((await call(url, chat, { body: { messages: hello, tools, tool_choice: 'required', stream: true } })).text);
      const calls = chunks.flatMap((c) => (c.choices[0].delta.tool_calls ?? []) as any[]);
      assert.equal(calls[0].function.name, 'lookup');
      assert.equal(typeof JSON.parse(calls.map((c) => c.function.arguments as string).join('')).answer, 'string');
      assert.equal(chunks.at(-1).choices[0].finish_reason, 'tool_calls');
    }));

  it('refuses what is wrong, and names it', () =>
    withSimulator('--max-context 200', async (url) => {
      const fails = async (body: unknown, status: number, pattern: RegExp): Promise<void> => {
        const answer = await call(url, chat, { body });
        assert.equal(answer.status, status);
        assert.match(JSON.parse(answer.text).error.message, pattern);
      };
      await fails('{"messages":', 400, /not valid JSON/);
      await fails({ messages: [] }, 400, /messages/);
      await fails({ messages: hello, max_tokens: 'many' }, 400, /max_tokens/);
      await fails({ messages: hello, max_tokens: 0 }, 400, /max_tokens/);
      await fails({ messages: hello, n: 3 }, 400, /\bn\b/);
      await fails({ messages: hello, model: 'gpt-9' }, 404, /gpt-9/);
      await fails({ messages: hello, stream_options: {} }, 400, /stream/);
      await fails({ messages: hello, max_tokens: 500 }, 400, /maximum context length is 200 tokens/);
      assert.equal((await call(url, '/v1/nothing')).status, 404);
    }));

  it('wants its key where it has one', () =>
    withSimulator('--api-key secret-1', async (url) => {
      const body = { messages: hello, max_tokens: 1 };
      assert.equal((await call(url, chat, { body })).status, 401);
      assert.equal((await call(url, chat, { body, headers: { authorization: 'Bearer other' } })).status, 401);
      assert.equal((await call(url, chat, { body, headers: { authorization: 'Bearer secret-1' } })).status, 200);
      assert.equal((await call(url, '/v1/models')).status, 401);
      assert.equal((await call(url, '/health')).status, 200);
    }));

  it('sends several tokens a frame with --stream-interval, the first at once', () =>
    withSimulator('--stream-interval 8', async (url) => {
      const body = { messages: hello, stream: true, max_tokens: 33, return_token_ids: true };
      const sizes = sseJson((await call(url, chat, { body })).text).flatMap((c) => (c.choices[0].token_ids ? [c.choices[0].token_ids.length as number] : []));
      assert.deepEqual(sizes, [1, 8, 8, 8, 8]);
    }));
});

describe('serving: completions and the rest', () => {
  it('completes a bare prompt without a role chunk; token ids work as a prompt too', () =>
    withSimulator('', async (url) => {
      const streamed = sseJson((await call(url, '/v1/completions', { body: { prompt: 'Once', stream: true, max_tokens: 5, stream_options: { include_usage: true } } })).text);
      assert.equal(streamed.length, 6);
      assert.ok(streamed[0].choices[0].text.length > 0);
      assert.equal(streamed[4].choices[0].finish_reason, 'length');
      const { tokens } = JSON.parse((await call(url, '/tokenize', { body: { prompt: 'Once' } })).text);
      const whole = JSON.parse((await call(url, '/v1/completions', { body: { prompt: tokens, max_tokens: 5 } })).text);
      assert.equal(whole.choices[0].text, streamed.slice(0, 5).map((c) => c.choices[0].text).join(''));
    }));

  it('lists its model and its metrics by the names vLLM uses', () =>
    withSimulator('--served-model demo', async (url) => {
      const models = JSON.parse((await call(url, '/v1/models')).text);
      assert.deepEqual([models.data[0].id, models.data[0].max_model_len], ['demo', 131072]);
      await call(url, chat, { body: { model: 'demo', messages: hello, stream: true, max_tokens: 10 } });
      const { text } = await call(url, '/metrics');
      const value = (name: string): number => Number(new RegExp(`^vllm:${name}(?:\\{[^}]*\\})? (\\S+)$`, 'm').exec(text)?.[1]);
      assert.equal(value('generation_tokens_total'), 10);
      assert.equal(value('time_to_first_token_seconds_count'), 1);
      assert.equal(value('inter_token_latency_seconds_count'), 9);
      assert.ok(Math.abs(value('inter_token_latency_seconds_sum') / 9 - 0.00335) < 0.0002);
      assert.equal(value('num_requests_running'), 0);
      assert.match(text, /vllm:time_to_first_token_seconds_bucket\{engine="0",model_name="demo",le="\+Inf"\} 1/);
    }));

  it('frees the seat of a client that leaves', () =>
    withSimulator('--max-running 1', async (url) => {
      const body = { messages: hello, stream: true, max_tokens: 4000, ignore_eos: true };
      await assert.rejects(call(url, chat, { body, leaveAfter: 100, headers: { 'x-request-id': 'leaver' } }));
      const next = await call(url, chat, { body: { messages: hello, max_tokens: 2 } });
      assert.equal(next.status, 200);
      const left = await truthOf(url, 'leaver');
      assert.equal(left.outcome, 'cancelled');
      assert.ok(left.outputTokens < 400);
    }));

  it('keeps the pace of the formula in real time', () =>
    withSimulator('', async (url) => {
      const answers = await Promise.all(Array.from({ length: 4 }, (_, i) => call(url, chat, { body: { messages: [{ role: 'user', content: `${i}` }], stream: true, max_tokens: 200, ignore_eos: true } })));
      for (const answer of answers) {
        const { frames } = await truthOf(url, answer.headers['x-request-id'] as string);
        const stamps = frames.filter(([, n]) => n > 0).map(([at]) => at);
        const pace = (stamps.at(-1)! - stamps[0]!) / (stamps.length - 1);
        // The steps are scheduled in virtual time, so lateness never adds up; a tenth is for a machine that stalls at either end.
        assert.ok(pace > 3.35 * 0.9 && pace < 3.45 * 1.1, String(pace));
      }
    }));

  it('holds the response head back until the slot with --headers-at slot', () =>
    withSimulator('--max-running 1 --headers-at slot', async (url) => {
      const body = { messages: hello, stream: true, max_tokens: 100, ignore_eos: true };
      const [, second] = await Promise.all([call(url, chat, { body }), call(url, chat, { body })]);
      const { arrival, scheduled } = await truthOf(url, second.headers['x-request-id'] as string);
      assert.ok(scheduled - arrival > 200 || second.stamps.length > 0);
    }));
});

describe('serving: policies on the wire', () => {
  const burst = async (url: string, lengths: readonly number[]): Promise<any[]> =>
    Promise.all(
      lengths.map(async (length, i) => {
        const answer = await call(url, chat, { body: { messages: [{ role: 'user', content: `${i}` }], stream: true, max_tokens: length, ignore_eos: true }, headers: { 'x-request-id': `b${i}` } });
        return { status: answer.status, retry: answer.headers['retry-after'], frames: answer.status === 200 ? (await truthOf(url, `b${i}`)).frames.filter(([, n]) => n > 0) : [] };
      }),
    );

  it('continuous and request-level can be told apart by when the short answer returns', async () => {
    const [short, long] = await withSimulator('', (url) => burst(url, [8, 64]));
    assert.equal(short.frames.length, 8);
    assert.ok(short.frames.at(-1)[0] < long.frames.at(-1)[0] - 100);
    const [shortBatch, longBatch] = await withSimulator('--policy request-level --gather 100', (url) => burst(url, [8, 64]));
    assert.equal(shortBatch.frames.length, 1, 'everything in one frame at the end');
    assert.ok(Math.abs(shortBatch.frames[0][0] - longBatch.frames[0][0]) < 20);
  });

  it('a bounded queue answers 429 with Retry-After at once', () =>
    withSimulator('--max-running 1 --queue 1', async (url) => {
      const results = await burst(url, [100, 100, 100, 100]);
      const refused = results.filter((r) => r.status === 429);
      assert.equal(refused.length, 2);
      assert.ok(refused.every((r) => r.retry === '1'));
    }));

  it('tenants are known by key, header or user; a quota ends in 429', async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'tenants-'));
    const file = path.join(folder, 'tenants.json');
    writeFileSync(file, JSON.stringify([{ name: 'a', keys: ['key-a'], tokensPerSecond: 10, burst: 60 }, { name: 'b', keys: ['key-b'] }]));
    try {
      await withSimulator(`--tenants ${file} --fair`, async (url) => {
        const ask = (headers: Record<string, string>, more: object = {}): ReturnType<typeof call> => call(url, chat, { body: { messages: hello, max_tokens: 20, ...more }, headers });
        assert.equal((await ask({ authorization: 'Bearer nobody' })).status, 401);
        assert.equal((await ask({ authorization: 'Bearer key-a' })).status, 200);
        const refused = await ask({ authorization: 'Bearer key-a' });
        assert.equal(refused.status, 429);
        assert.ok(Number(refused.headers['retry-after']) >= 1);
        assert.equal((await ask({ authorization: 'Bearer key-b' })).status, 200);
      });
    } finally {
      rmSync(folder, { recursive: true });
    }
  });

  it('replicas share the work, and the truth tells who did it', () =>
    withSimulator('--replicas 2', async (url) => {
      await burst(url, [4, 4, 4, 4]);
      const replicas = await Promise.all([0, 1, 2, 3].map(async (i) => (await truthOf(url, `b${i}`)).replica));
      assert.deepEqual([...replicas].sort(), [0, 0, 1, 1]);
    }));
});
