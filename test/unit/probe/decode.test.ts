import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createDecoder, decode, frameAt, outcomeOf, type Decoded } from '../../../src/probe/decode';
import { dialects } from '../../../src/probe/dialect';
import type { DialectId } from '../../../src/probe/dialect/dialect';
import type { Tape, TapeEnding } from '../../../src/probe/tape';
import { bedrockStream, chunk, cutAt, decodeReads, decodeText, done, eventStreamMessage, fixture, invariant, ok, ownStreams, schedules, sse, usageChunk } from './streams';

const text = (value: string): object => chunk({ content: value });
const stop = chunk({}, 'stop');
const usage = (output: number, more: object = {}): object => usageChunk({ prompt_tokens: 5, completion_tokens: output, total_tokens: 5 + output, ...more });
const kinds = (decoded: Decoded): string[] => decoded.arrivals.map((arrival) => arrival.kind);
const ks = (decoded: Decoded): (number | null)[] => decoded.arrivals.map((arrival) => arrival.tokens);
const firstOf = (decoded: Decoded, kind: string): number | null => decoded.arrivals.find((arrival) => arrival.kind === kind)?.t ?? null;

function tapeOf(reads: readonly Uint8Array[], ending: TapeEnding = { kind: 'complete' }, status: number | null = 200, headers: readonly (readonly [string, string])[] = []): Tape {
  let sum = 0;
  return {
    id: 't', status, headers, reused: true, alpn: null, ending,
    stamps: Float64Array.from(reads, (_, at) => at + 1),
    ends: Uint32Array.from(reads, (read) => (sum += read.length)),
    bytes: Buffer.concat(reads),
    phases: { start: 0, dns: null, connected: null, secured: null, written: 0, sent: 0, headers: 0.5, bodyEnd: reads.length + 1 },
  };
}

describe('decode: the same however cut', () => {
  for (const { name, id, bytes } of ownStreams) {
    it(`${name} as ${id}, cut anywhere`, () => {
      const whole = decodeReads(id, [bytes]);
      assert.equal(whole.outcome.kind, 'ok', whole.outcome.message);
      assert.ok(whole.arrivals.length > 0);
      for (const [schedule, reads] of Object.entries(schedules(bytes))) assert.deepEqual(invariant(decodeReads(id, reads)), invariant(whole), schedule);
      fc.assert(
        fc.property(fc.uniqueArray(fc.integer({ min: 1, max: bytes.length - 1 }), { maxLength: 12 }), (cuts) => {
          assert.deepEqual(invariant(decodeReads(id, cutAt(bytes, cuts.sort((a, b) => a - b)))), invariant(whole));
        }),
        { numRuns: 60 },
      );
    });
    it(`${name} as ${id}: folded equals incremental, and a frame has the stamp of its last byte`, () => {
      const reads = schedules(bytes)['an event a read']!;
      const decoder = createDecoder(dialects[id], { status: 200, headers: [] });
      const live = reads.flatMap((read, at) => decoder.push(at + 1, read));
      live.push(...decoder.end(reads.length + 1, 'clean'));
      const incremental = decoder.result();
      assert.deepEqual(incremental, decode(tapeOf(reads), dialects[id]));
      assert.deepEqual(live.map(({ t, kind, text: piece }) => [t, kind, piece]), incremental.arrivals.map(({ t, kind, text: piece }) => [t, kind, piece]));
      const frames = frameAt(tapeOf(reads), dialects[id]);
      assert.equal(frames.length, incremental.frames);
      for (const arrival of incremental.arrivals) assert.equal(frames[arrival.frame]!.t, arrival.t);
      for (const arrival of incremental.arrivals) assert.equal(arrival.t, arrival.read + 1);
    });
  }

  it('folded equals incremental for any text, thinking tags included', () => {
    const piece = fc.constantFrom('<think>', '</think>', '<th', 'ink>', '</', '\n', ' ', 'a', '`', '</think>\n\n', '🙂', 'word ');
    fc.assert(
      fc.property(fc.array(piece, { maxLength: 12 }), fc.array(fc.integer({ min: 1, max: 400 }), { maxLength: 6 }), (pieces, steps) => {
        const bytes = Buffer.from(sse(...pieces.map(text), stop, done));
        const cuts = steps.map(((sum) => (step: number) => (sum += step))(0)).filter((cut) => cut < bytes.length);
        const whole = decodeReads('openai-chat', [bytes]);
        const reads = cutAt(bytes, cuts);
        assert.deepEqual(invariant(decodeReads('openai-chat', reads)), invariant(whole));
        assert.deepEqual(decode(tapeOf(reads), dialects['openai-chat']).arrivals, decodeReads('openai-chat', reads).arrivals);
        // The tags are the only characters that may go.
        const all = pieces.join('').length;
        assert.ok(all - whole.text.length - whole.reasoning.length <= '<think></think>'.length);
      }),
      { numRuns: 400 },
    );
  });
});

describe('decode: reports from the field', () => {
  it('1 reasoning in `delta.reasoning` first: first token at reasoning, first visible at content', () => {
    const decoded = decodeText('openai-chat', [sse(chunk({ role: 'assistant', content: '' })), sse(chunk({ reasoning: 'Hm' })), sse(text('Yes')), sse(stop, done)]);
    assert.deepEqual([decoded.arrivals[0]!.t, firstOf(decoded, 'text')], [2, 3]);
  });

  it('2 `reasoning_content` alone sets the first token', () => {
    const decoded = decodeText('openai-chat', [sse(chunk({ role: 'assistant', content: null })), sse(chunk({ reasoning_content: 'Hm' })), sse(stop, done)]);
    assert.deepEqual([decoded.arrivals[0]!.t, decoded.reasoning, decoded.outcome.kind], [2, 'Hm', 'ok']);
  });

  it('3 the token count belongs to the stream the first token is taken from: hidden reasoning is not in N_stream', () => {
    const told = { completion_tokens_details: { reasoning_tokens: 40 } };
    const hidden = decodeText('openai-chat', sse(text('a'), text('b'), stop, usage(42, told), done));
    assert.deepEqual([hidden.outputTokens.count, hidden.streamTokens, hidden.flags.includes('hidden-reasoning')], [42, 2, true]);
    const shown = decodeText('openai-chat', sse(chunk({ reasoning: 'long' }), text('a'), stop, usage(42, told), done));
    assert.equal(shown.streamTokens, 42);
  });

  it('4 a reasoning-only answer has a first token and no visible one', () => {
    const decoded = decodeText('openai-chat', sse(chunk({ reasoning_content: 'Still thinking' }), chunk({}, 'length'), done));
    assert.deepEqual([decoded.arrivals.length, firstOf(decoded, 'text'), decoded.finish, decoded.outcome.kind], [1, null, 'length', 'ok']);
  });

  it('5 null fields everywhere do not hide reasoning', () => {
    const nulls = { role: null, content: null, reasoning_content: null, tool_calls: null };
    const decoded = decodeText('openai-chat', sse(chunk(nulls), chunk({ ...nulls, reasoning_content: 'r' }), chunk({ ...nulls, content: 'c' }), stop, done));
    assert.deepEqual(kinds(decoded), ['reasoning', 'text']);
  });

  it('6 a usage frame with `choices: []` is no delta', () => {
    const decoded = decodeText('openai-chat', [sse(text('a')), sse(stop), sse(usage(1)), done]);
    assert.deepEqual([decoded.arrivals.length, decoded.arrivals.at(-1)!.t, decoded.outputTokens], [1, 1, { count: 1, source: 'final-usage' }]);
  });

  it('7 an answer in one frame: the usage frame moves nothing', () => {
    const decoded = decodeText('openai-chat', [sse(chunk({ role: 'assistant', content: 'All of it.' }, 'stop')), sse(usage(4)), done]);
    assert.deepEqual([decoded.arrivals.length, decoded.arrivals[0]!.t, decoded.streamTokens, decoded.text], [1, 1, 4, 'All of it.']);
  });

  it('8 frames are not counted as tokens', () => {
    const decoded = decodeText('openai-chat', sse(text('several words at once'), text('and more'), stop, usage(9), done));
    assert.deepEqual([decoded.outputTokens, ks(decoded)], [{ count: 9, source: 'final-usage' }, [null, null]]);
    assert.deepEqual(decodeText('openai-chat', sse(text('a'), text('b'), stop, done)).outputTokens, { count: null, source: null });
  });

  it('9 speculative decoding: several tokens a frame are counted as such', () => {
    const decoded = decodeReads('openai-chat', [fixture('vllmTokenIds.sse')]);
    assert.deepEqual(ks(decoded), [2, 1, 1, 3, 1]);
    assert.deepEqual([decoded.outputTokens, decoded.n1], [{ count: 8, source: 'token_ids' }, 2]);
  });

  it('10 an empty delta whose usage grew is a token, and the first frame may hold several', () => {
    const decoded = decodeReads('openai-chat', [fixture('vllmContinuousUsage.sse')]);
    assert.deepEqual(kinds(decoded), ['text', 'token', 'text', 'tool', 'token']);
    assert.deepEqual([ks(decoded), decoded.n1, decoded.outputTokens.source], [[2, 1, 1, 16, 1], 2, 'usage-difference']);
    const first = decodeText('openai-chat', [sse(chunk({ content: '' }, null, { usage: { prompt_tokens: 5, completion_tokens: 1 } })), sse(chunk({ content: 'é' }, null, { usage: { prompt_tokens: 5, completion_tokens: 2 } })), sse(stop, done)]);
    assert.deepEqual([kinds(first), first.arrivals[0]!.t, firstOf(first, 'text')], [['token', 'text'], 1, 2]);
  });

  it('11 tokens a tool-call parser held back come with the frame they arrive in', () => {
    const at = (n: number): object => ({ usage: { prompt_tokens: 5, completion_tokens: n, total_tokens: 5 + n } });
    const decoded = decodeText('openai-chat', sse(chunk({ content: 'a' }, null, at(1)), chunk({ tool_calls: [{ index: 0, id: 'x', function: { name: 'f', arguments: '{}' } }] }, null, at(17)), chunk({}, 'tool_calls', at(17)), usage(17), done));
    assert.deepEqual([ks(decoded), decoded.outputTokens.count], [[1, 16], 17]);
  });

  it('12 text is never tokenised again: k comes from the server or is unknown', () => {
    const decoded = decodeText('openai-chat', sse(chunk({ content: 'a' }, null), chunk({ content: 'b' }), stop, usage(2), done));
    assert.deepEqual([ks(decoded), decoded.n1], [[null, null], null]);
  });

  it('13 close-only </think>: what came before turns into reasoning, the first visible token is behind it', () => {
    const decoded = decodeText('openai-chat', [sse(text('Let me see')), sse(text('.\n</th')), sse(text('ink>')), sse(text('\n\nFour')), sse(text('.')), sse(stop, done)]);
    assert.deepEqual([decoded.reasoning, decoded.text, firstOf(decoded, 'text')], ['Let me see.\n', '\n\nFour.', 4]);
    assert.deepEqual(kinds(decoded), ['reasoning', 'reasoning', 'reasoning', 'text', 'text']);
    assert.ok(decoded.flags.includes('think-close-only'));
  });

  it('14 a stream with CRLF line ends', () => {
    const decoded = decodeText('openai-chat', sse(text('a'), text('b'), stop, done).replace(/\n/g, '\r\n'));
    assert.deepEqual([decoded.text, decoded.frames, decoded.outcome.kind], ['ab', 4, 'ok']);
  });

  it('15 CR and LF in two reads end one line, not two', () => {
    const wire = sse(text('a'), text('b'), stop, done).replace(/\n/g, '\r\n');
    const pieces = wire.split(/(?<=\r)/);
    const decoded = decodeText('openai-chat', pieces);
    assert.deepEqual([decoded.text, decoded.frames, decoded.outcome.kind], ['ab', 4, 'ok']);
  });

  it('16 `data:` without a space, and bare CR', () => {
    const wire = sse(text('a'), text('b'), stop, done);
    for (const form of [wire.replace(/data: /g, 'data:'), wire.replace(/\n/g, '\r')]) assert.deepEqual([decodeText('openai-chat', form).text, decodeText('openai-chat', form).outcome.kind], ['ab', 'ok']);
    const bare = decodeText('openai-chat', wire.replace(/\n/g, '\r').split(/(?<=\r\r)/));
    assert.deepEqual(bare.arrivals.map((arrival) => arrival.t), [1, 2], 'not a read late');
  });

  it('17 a mixed \\n\\r\\n delimiter delivers at once', () => {
    const decoded = decodeText('openai-chat', sse(text('a'), text('b'), stop, done).replace(/\n\n/g, '\n\r\n').split(/(?<=\r\n)/));
    assert.deepEqual([decoded.text, decoded.arrivals.map((arrival) => arrival.t)], ['ab', [1, 2]]);
  });

  it('18 UTF-8 cut inside a character', () => {
    const bytes = Buffer.from(sse(text('é🙂漢'), stop, done));
    const decoded = decodeReads('openai-chat', Array.from(bytes, (_, at) => bytes.subarray(at, at + 1)));
    assert.deepEqual([decoded.text, decoded.flags.includes('not-utf8')], ['é🙂漢', false]);
  });

  it('19 a read is not a line: one event over many reads, many events in one', () => {
    const wire = sse(text('a'), text('b'), text('c'), stop, done);
    const decoded = decodeText('openai-chat', [wire.slice(0, 7), wire.slice(7, 20), wire.slice(20)]);
    assert.deepEqual([decoded.text, decoded.reads, decoded.maxDeltasPerRead], ['abc', 3, 3]);
  });

  it('20 an error event under 200 fails', () => {
    const overloaded = 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n';
    const first = decodeText('anthropic', overloaded);
    assert.deepEqual([first.outcome.kind, first.outcome.message], ['stream-error', 'Overloaded']);
    const perplexity = decodeText('openai-chat', sse({ error: { message: 'Invalid model', type: 'invalid_model', code: 400 } }));
    assert.deepEqual([perplexity.outcome.kind, perplexity.outcome.message], ['stream-error', 'Invalid model']);
  });

  it('21 a bare JSON error without `data:` is not dropped, whole or cut from its line end', () => {
    const wire = 'data: {"candidates":[{"content":{"parts":[{"text":"First"}]},"finishReason":"STOP"}]}\n\n{\n  "error": {\n    "code": 499,\n    "message": "Cancelled."\n  }\n}';
    for (const reads of [[wire], [wire.slice(0, -1), '}'], wire.split(/(?<=\n)/), Array.from(wire)]) {
      const decoded = decodeText('gemini', reads);
      assert.deepEqual([decoded.outcome.kind, decoded.outcome.message, decoded.text], ['stream-error', 'Cancelled.', 'First']);
    }
    const line = decodeText('openai-chat', [sse(text('a')), '{"error":{"message":"Boom"}}', '\n']);
    assert.deepEqual([line.outcome.kind, line.outcome.message], ['stream-error', 'Boom']);
  });

  it('22 a clean end without finish reason or [DONE] is truncated', () => {
    assert.equal(decodeText('openai-chat', sse(text('a'), text('b'))).outcome.kind, 'truncated');
    assert.equal(decodeText('anthropic', fixture('anthropic.sse').toString().replace(/event: message_stop[^]*$/, '')).outcome.kind, 'truncated');
    assert.equal(decodeText('openai-responses', fixture('openaiResponses.sse').toString().replace(/event: response.completed[^]*$/, '')).outcome.kind, 'truncated');
    assert.equal(decodeText('ollama', fixture('ollamaChat.ndjson').toString().split('\n').slice(0, 2).join('\n')).outcome.kind, 'truncated');
  });

  it('23 [DONE] without a finish reason is complete', () => {
    const decoded = decodeText('openai-chat', sse(text('a'), done));
    assert.deepEqual([decoded.outcome.kind, decoded.finish, decoded.end], ['ok', null, 1]);
  });

  it('24 usage in choices[0].usage', () => {
    const last = { choices: [{ index: 0, delta: {}, finish_reason: 'stop', usage: { prompt_tokens: 8, completion_tokens: 3, total_tokens: 11, cached_tokens: 6 } }] };
    const decoded = decodeText('openai-chat', sse(text('a'), last, done));
    assert.deepEqual([decoded.outputTokens.count, decoded.promptTokens, decoded.cachedTokens], [3, 8, 6]);
  });

  it('25 a 400 or 422 that names a field says which', () => {
    const refuse = (status: number, body: object, id: DialectId = 'openai-chat'): string | undefined => decodeText(id, JSON.stringify(body), 'clean', { status, headers: [] }).outcome.refusedField;
    assert.equal(refuse(400, { error: { message: 'Unrecognized request argument supplied: stream_options', param: null } }), 'stream_options');
    assert.equal(refuse(422, { detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted' }] }), 'stream_options');
    assert.equal(refuse(422, { detail: [{ type: 'extra_forbidden', loc: ['body', 'stream_options', 'continuous_usage_stats'], msg: 'Extra inputs are not permitted' }] }), 'stream_options.continuous_usage_stats');
    assert.equal(refuse(400, { error: { message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.", param: 'max_tokens' } }), 'max_tokens');
    assert.equal(refuse(400, { error: { message: "Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead." } }), 'max_tokens');
    assert.equal(refuse(400, { message: 'ignore_eos: unknown field' }), 'ignore_eos');
    assert.equal(refuse(400, { error: { message: 'max_tokens is too large: 99999', param: 'max_tokens' } }), undefined);
    assert.equal(refuse(401, { error: { message: 'stream_options' } }), undefined);
  });

  it('26 a first frame with `choices: []`', () => {
    const decoded = decodeReads('azure', [fixture('azure.sse')]);
    assert.deepEqual([decoded.text, decoded.arrivals.length, decoded.outcome.kind], ['One two', 2, 'ok']);
  });

  it('27 a first byte after more than 300 s is a stamp like any other', () => {
    const decoder = createDecoder(dialects.ollama, ok);
    decoder.push(400_000, fixture('ollamaChat.ndjson'));
    decoder.end(400_001, 'clean');
    assert.deepEqual([decoder.result().outcome.kind, decoder.result().arrivals[0]!.t], ['ok', 400_000]);
  });

  it('28 a buffered answer shows in the most deltas of one read', () => {
    const frames = Array.from({ length: 50 }, (_, at) => sse(text(`${at} `)));
    assert.equal(decodeText('openai-chat', [frames.join(''), sse(stop, done)]).maxDeltasPerRead, 50);
    assert.equal(decodeText('openai-chat', [...frames, sse(stop, done)]).maxDeltasPerRead, 1);
  });

  it('29 empty first frames during chunked prefill are not the first token', () => {
    const empty = chunk({ content: '' });
    const decoded = decodeText('openai-chat', [sse(chunk({ role: 'assistant' })), sse(empty), sse(empty), sse(text('Now')), sse(stop, done)]);
    assert.deepEqual([decoded.arrivals.length, decoded.arrivals[0]!.t, decoded.firstFrame], [1, 4, 1]);
  });

  it('30 cumulative usage is taken last, never summed', () => {
    const at = (n: number): object => ({ usage: { prompt_tokens: 5, completion_tokens: n, total_tokens: 5 + n } });
    const decoded = decodeText('openai-chat', sse(chunk({ content: 'a' }, null, at(1)), chunk({ content: 'b' }, null, at(2)), chunk({}, 'stop', at(2)), usage(2), done));
    assert.deepEqual([decoded.outputTokens.count, decoded.promptTokens, ks(decoded)], [2, 5, [1, 1]]);
  });

  it('31 no [DONE], but a finish reason and a clean end: complete', () => {
    const decoded = decodeText('openai-chat', sse(text('a'), stop));
    assert.deepEqual([decoded.outcome.kind, decoded.end], ['ok', 2]);
    assert.equal(decodeText('openai-chat', sse(text('a'), stop), 'cut').outcome.kind, 'truncated');
  });
});

describe('decode: errors inside a 200, no shape a success', () => {
  const start: Readonly<Partial<Record<DialectId, string>>> = {
    'openai-chat': sse(text('a')),
    'openai-completions': sse({ object: 'text_completion', choices: [{ index: 0, text: 'a', finish_reason: null }] }),
    llamacpp: sse({ content: 'a', stop: false }),
    tgi: 'data:{"index":1,"token":{"id":1,"text":"a","special":false},"generated_text":null,"details":null}\n\n',
    sglang: sse({ text: 'a', meta_info: { finish_reason: null, completion_tokens: 1 } }),
    triton: sse({ text_output: 'a' }),
  };
  const shapes: readonly (readonly [string, DialectId, string, string])[] = [
    ['vLLM: data error, then [DONE]', 'openai-chat', sse({ error: { message: 'Engine died', type: 'InternalServerError', code: 500 } }, done), 'Engine died'],
    ['OpenAI Responses: error event, then response.failed', 'openai-responses', 'event: error\ndata: {"type":"error","code":"insufficient_quota","message":"No quota"}\n\nevent: response.failed\ndata: {"type":"response.failed","response":{"status":"failed","error":{"code":"insufficient_quota","message":"No quota"}}}\n\n', 'No quota'],
    ['OpenAI Responses: response.failed alone', 'openai-responses', sse({ type: 'response.failed', response: { status: 'failed', error: { code: 'server_error', message: 'Broke' } } }), 'Broke'],
    ['Anthropic', 'anthropic', 'event: error\ndata: {"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}\n\n', 'Overloaded'],
    ['llama.cpp on /v1/messages: without the wrapper', 'anthropic', 'event: error\ndata: {"code":500,"message":"Bad output","type":"server_error"}\n\n', 'Bad output'],
    ['Groq: error event, no [DONE]', 'openai-chat', 'event: error\ndata: {"error":{"message":"Tool call failed","status_code":400}}\n\n', 'Tool call failed'],
    ['OpenRouter: error beside choices, then [DONE]', 'openai-chat', sse({ error: { code: 502, message: 'Provider down' }, choices: [{ index: 0, delta: { content: '' }, finish_reason: 'error' }] }, done), 'Provider down'],
    ['Gemini: bare JSON without data:', 'gemini', '{"error":{"code":503,"message":"Overloaded","status":"UNAVAILABLE"}}', 'Overloaded'],
    ['Gemini: error in the array', 'gemini', '[{"error":{"code":503,"message":"Overloaded"}}]', 'Overloaded'],
    ['Ollama: an error line', 'ollama', '{"message":{"role":"assistant","content":"a"},"done":false}\n{"error":"model runner has unexpectedly stopped"}\n', 'model runner has unexpectedly stopped'],
    ['llama.cpp before Sep 2025: an SSE field error:', 'openai-chat', 'error: {"code":500,"message":"context shift","type":"server_error"}\n\n', 'context shift'],
    ['llama.cpp now', 'llamacpp', sse({ error: { code: 500, message: 'Failed', type: 'server_error' } }), 'Failed'],
    ['TGI native', 'tgi', 'data:{"error":"Model is overloaded","error_type":"overloaded"}\n\n', 'Model is overloaded'],
    ['TGI /v1', 'openai-chat', sse({ error: { message: 'Input validation error', http_status_code: 422 } }, done), 'Input validation error'],
    ['SGLang: data error', 'sglang', sse({ error: { message: 'Queue timeout' } }), 'Queue timeout'],
    ['SGLang: without wrapper', 'openai-chat', sse({ object: 'error', message: 'Too long', type: 'BadRequest', code: 400 }, done), 'Too long'],
    ['SGLang: finish reason abort', 'sglang', sse({ text: 'a', meta_info: { finish_reason: { type: 'abort', message: 'Aborted' }, completion_tokens: 1 } }, done), 'Aborted'],
    ['finish reason abort in chat', 'openai-chat', sse(chunk({}, 'abort'), done), 'The server ended the answer with finish reason `abort`.'],
    ['finish reason error', 'openai-chat', sse(chunk({}, 'error'), done), 'The server ended the answer with finish reason `error`.'],
    ['finish reason error in completions', 'openai-completions', sse({ object: 'text_completion', choices: [{ index: 0, text: '', finish_reason: 'error' }] }, done), 'The server ended the answer with finish reason `error`.'],
    ['Triton', 'triton', sse({ error: 'in ensemble: failed' }), 'in ensemble: failed'],
    ['Cohere', 'cohere', sse({ type: 'message-end', delta: { finish_reason: 'ERROR', error: 'Generation failed' } }, done), 'Generation failed'],
  ];
  for (const [name, id, wire, message] of shapes) {
    it(name, () => {
      const before = start[id] ?? '';
      for (const reads of [[before + wire], Array.from(before + wire)]) {
        const decoded = decodeText(id, reads.filter((read) => read !== ''));
        assert.deepEqual([decoded.outcome.kind, decoded.outcome.message], ['stream-error', message]);
      }
    });
  }

  it('Bedrock: an exception frame', () => {
    const wire = Buffer.concat([eventStreamMessage('messageStart', { role: 'assistant' }), eventStreamMessage('throttlingException', { message: 'Too many tokens' }, 'exception')]);
    const decoded = decodeReads('bedrock', [wire]);
    assert.deepEqual([decoded.outcome.kind, decoded.outcome.message], ['stream-error', 'throttlingException: Too many tokens']);
  });

  it('a damaged event stream is malformed, a cut one truncated', () => {
    const wire = bedrockStream();
    const damaged = Buffer.from(wire);
    damaged[200] = damaged[200]! ^ 1;
    assert.equal(decodeReads('bedrock', [damaged]).outcome.kind, 'malformed');
    assert.equal(decodeReads('bedrock', [wire.subarray(0, wire.length - 40)], 'cut').outcome.kind, 'truncated');
  });

  it('all empty with finish reason stop is empty; content_filter with text is a finish reason', () => {
    assert.equal(decodeText('openai-chat', sse(chunk({ role: 'assistant', content: '' }), stop, usage(0), done)).outcome.kind, 'empty');
    assert.equal(decodeText('openai-chat', sse(chunk({ content: '' }), chunk({}, 'content_filter'), done)).outcome.kind, 'empty');
    const filtered = decodeText('openai-chat', sse(text('a'), chunk({}, 'content_filter'), done));
    assert.deepEqual([filtered.outcome.kind, filtered.finish], ['ok', 'content_filter']);
  });

  it('a clean end inside a frame is truncated too, also where a clean end is a proper one', () => {
    assert.equal(decodeText('openai-chat', `${sse(text('a'), stop)}data: {"choices":[],"usa`).outcome.kind, 'truncated');
    assert.equal(decodeText('triton', `${sse({ text_output: 'a' })}data: {"text_out`).outcome.kind, 'truncated');
    assert.equal(decodeText('triton', sse({ text_output: 'a' })).outcome.kind, 'ok');
    for (const cut of ['d', 'data', 'data:', 'data: ', 'event: mess', 'id: 4']) {
      assert.equal(decodeText('triton', cut).outcome.kind, 'truncated', cut);
      assert.equal(decodeText('triton', `${sse({ text_output: 'a' })}${cut}`).outcome.kind, 'truncated', cut);
    }
    assert.equal(decodeText('triton', `${sse({ text_output: 'a' })}: ping`).outcome.kind, 'ok');
    for (const begun of ['d', 'data', 'event: mess', 'event: message\n', 'retr']) assert.equal(decodeText('anthropic', begun).outcome.kind, 'truncated', begun);
    assert.equal(decodeText('openai-chat', 'upstream connect error').outcome.kind, 'malformed');
  });

  it('a body of no bytes: empty when HTTP ended it, truncated when cut', () => {
    assert.equal(decodeText('openai-chat', []).outcome.kind, 'empty');
    assert.equal(decodeText('openai-chat', [], 'cut').outcome.kind, 'truncated');
    assert.equal(decodeText('openai-chat', ': ping\n\n').outcome.kind, 'truncated');
  });

  it('frames of another API are malformed, and the setting to change is named', () => {
    const decoded = decodeReads('openai-chat', [fixture('anthropic.sse')]);
    assert.equal(decoded.outcome.kind, 'malformed');
    assert.match(decoded.outcome.message!, /--api/);
  });

  it('a frame that is no JSON is malformed, but not when the body was cut inside it', () => {
    assert.equal(decodeText('openai-chat', sse(text('a'), 'data: {"choices":[{"delta"\n\n', stop, done)).outcome.kind, 'malformed');
    assert.equal(decodeText('openai-chat', `${sse(text('a'))}data: {"choices":[{"delta"`, 'cut').outcome.kind, 'truncated');
    assert.equal(decodeText('openai-chat', sse({ choices: 'none' }, done)).outcome.kind, 'malformed');
  });
});

describe('decode: bodies that are no stream', () => {
  const answer = { object: 'chat.completion', choices: [{ index: 0, message: { role: 'assistant', content: 'Hi' }, finish_reason: 'stop' }], usage: { prompt_tokens: 4, completion_tokens: 1, total_tokens: 5 } };

  it('one JSON body is `not-streaming`: text and usage, no deltas', () => {
    for (const body of [JSON.stringify(answer), JSON.stringify(answer, null, 2), `\n${JSON.stringify(answer)}\n`]) {
      const decoded = decodeText('openai-chat', Array.from(body));
      assert.deepEqual([decoded.outcome.kind, decoded.text, decoded.arrivals.length, decoded.outputTokens.count, decoded.end], ['not-streaming', 'Hi', 0, 1, body.length + 1]);
    }
  });

  it('each API knows its own whole body', () => {
    const bodies: readonly (readonly [DialectId, object])[] = [
      ['openai-completions', { object: 'text_completion', choices: [{ text: 'Hi', finish_reason: 'stop' }] }],
      ['openai-responses', { status: 'completed', output: [{ type: 'message', content: [{ type: 'output_text', text: 'Hi' }] }] }],
      ['anthropic', { type: 'message', content: [{ type: 'text', text: 'Hi' }], stop_reason: 'end_turn', usage: { input_tokens: 1, output_tokens: 1 } }],
      ['gemini', { candidates: [{ content: { parts: [{ text: 'Hi' }] }, finishReason: 'STOP' }] }],
      ['ollama', { message: { role: 'assistant', content: 'Hi' }, done: true, done_reason: 'stop' }],
      ['llamacpp', { content: 'Hi', stop: true, stop_type: 'eos' }],
      ['tgi', { generated_text: 'Hi' }],
      ['sglang', { text: 'Hi', meta_info: { finish_reason: { type: 'stop' } } }],
      ['triton', { text_output: 'Hi', model_name: 'm' }],
      ['cohere', { message: { role: 'assistant', content: [{ type: 'text', text: 'Hi' }] }, finish_reason: 'COMPLETE' }],
      ['bedrock', { output: { message: { role: 'assistant', content: [{ text: 'Hi' }] } }, stopReason: 'end_turn' }],
    ];
    for (const [id, body] of bodies) {
      const decoded = decodeText(id, JSON.stringify(body), 'clean', { status: 200, headers: [['content-type', 'application/json']] });
      assert.deepEqual([decoded.outcome.kind, decoded.text, decoded.arrivals.length], ['not-streaming', 'Hi', 0], id);
    }
  });

  it('a JSON error under 200 is a stream error; a cut body is truncated; other JSON is malformed', () => {
    assert.deepEqual([decodeText('openai-chat', '{"error":{"message":"No"}}').outcome.kind, decodeText('openai-chat', '{"error":{"message":"No"}}').outcome.message], ['stream-error', 'No']);
    assert.equal(decodeText('openai-chat', '{"detail":"Not found"}').outcome.kind, 'stream-error');
    assert.equal(decodeText('openai-chat', '{"choices":[{"message":').outcome.kind, 'truncated');
    assert.equal(decodeText('openai-chat', '{"status":true}').outcome.kind, 'malformed');
    assert.equal(decodeText('ollama', '{\n "error": "pretty"\n}\n').outcome.message, 'pretty');
  });

  it('an error body from a file, where no status is known, is a refusal', () => {
    assert.deepEqual([decodeText('openai-chat', '{"error":{"message":"No"}}', 'clean', { status: null, headers: [] }).outcome.kind], ['status']);
  });

  it('HTML under 200 is malformed, with its title; plain text is no stream', () => {
    const html = decodeText('openai-chat', '<html><head><title>502 Bad Gateway</title></head></html>');
    assert.deepEqual([html.outcome.kind, html.outcome.message], ['malformed', 'An HTML page came instead of a stream: 502 Bad Gateway']);
    assert.equal(decodeText('openai-chat', 'upstream connect error\n').outcome.kind, 'malformed');
    assert.equal(decodeText('openai-chat', `${sse(text('a'))}<html><title>504</title></html>\n`).outcome.kind, 'malformed');
  });

  it('several JSON objects in a row are frames', () => {
    const decoded = decodeText('openai-chat', [`${JSON.stringify(text('a'))}\n`, `${JSON.stringify(text('b'))}\n`, `${JSON.stringify(stop)}\n`]);
    assert.deepEqual([decoded.text, decoded.arrivals.map((arrival) => arrival.t), decoded.outcome.kind], ['ab', [1, 2], 'ok']);
  });
});

describe('decode: refusals', () => {
  const refused = (status: number, body: string, headers: readonly (readonly [string, string])[] = []): Decoded => decodeText('openai-chat', body, 'clean', { status, headers });
  const wait = (headers: readonly (readonly [string, string])[], body = '{}'): number | undefined => refused(429, body, headers).outcome.retryAfter;

  it('the message of every shape', () => {
    const bodies: readonly (readonly [string, string])[] = [
      ['{"error":{"message":"Bad key","type":"x"}}', 'Bad key'],
      ['{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}', 'invalid x-api-key'],
      ['{"error":"model not found"}', 'model not found'],
      ['{"code":"Client specified an invalid argument","error":"Bad argument"}', 'Bad argument'],
      ['{"detail":"Invalid API Key"}', 'Invalid API Key'],
      ['{"detail":[{"loc":["body","model"],"msg":"field required"}]}', 'body.model: field required'],
      ['{"object":"error","message":"Too long","code":400}', 'Too long'],
      ['{"message":"The provided model identifier is invalid."}', 'The provided model identifier is invalid.'],
      ['[{"error":{"code":400,"message":"Bad","status":"INVALID_ARGUMENT"}}]', 'Bad'],
      ['{"error":{"code":429,"message":"Provider returned error","metadata":{"raw":"slow down"}}}', 'Provider returned error: slow down'],
      ['<html><head><title>429 Too Many Requests</title></head></html>', '429 Too Many Requests'],
      ['data: {"error":{"message":"In an event"}}\n\n', 'In an event'],
      ['Just words', 'Just words'],
    ];
    for (const [body, message] of bodies) assert.deepEqual([refused(418, body).outcome.kind, refused(418, body).outcome.message, refused(418, body).outcome.status], ['status', message, 418]);
    assert.equal(refused(404, '').outcome.message, undefined);
  });

  it('keys that a server echoes are blacked out', () => {
    const outcome = refused(401, '{"error":{"message":"Incorrect API key provided: sk-proj-abcdefgh12345678."}}').outcome;
    assert.ok(!JSON.stringify(outcome).includes('abcdefgh12345678'));
  });

  it('Retry-After in all its forms', () => {
    const date: readonly [string, string] = ['Date', 'Mon, 30 Nov 2026 10:00:00 GMT'];
    assert.equal(wait([['Retry-After', '7']]), 7000);
    assert.equal(wait([date, ['retry-after', 'Mon, 30 Nov 2026 10:00:09 GMT']]), 9000);
    assert.equal(wait([['retry-after', 'Mon, 30 Nov 2026 10:00:09 GMT']]), undefined);
    assert.equal(wait([['retry-after', '2'], ['retry-after-ms', '1500']]), 1500);
    assert.equal(wait([['retry-after', '1'], ['retry-after-ms', '0']]), 1000);
    assert.equal(wait([], '{"error":{"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"17.5s"}]}}'), 17_500);
    assert.equal(wait([['x-ratelimit-reset-tokens', '16.601s'], ['x-ratelimit-remaining-tokens', '0'], ['x-ratelimit-reset-requests', '6m0s'], ['x-ratelimit-remaining-requests', '9']]), 16_601);
    assert.equal(wait([['x-ratelimit-reset-tokens', '132ms'], ['x-ratelimit-reset-requests', '1m30s']]), 90_000);
    assert.equal(wait([['x-ratelimit-reset-tokens', '26']]), 26_000);
    assert.equal(wait([date, ['anthropic-ratelimit-tokens-reset', '2026-11-30T10:00:20Z']]), 20_000);
    assert.equal(wait([date, ['x-ratelimit-reset', '1796032830']]), 30_000);
    assert.equal(wait([]), undefined);
    assert.equal(decodeText('openai-chat', sse(text('a'), done), 'clean', { status: 200, headers: [['retry-after', '59']] }).outcome.retryAfter, undefined);
  });
});

describe('decode: how the exchange ended', () => {
  const reads = [Buffer.from(sse(text('a'))), Buffer.from(sse(stop, done))];
  it('the wire decides unless the stream had ended or failed', () => {
    const kind = (ending: TapeEnding, parts = reads.slice(0, 1)): string => decode(tapeOf(parts, ending), dialects['openai-chat']).outcome.kind;
    assert.equal(kind({ kind: 'closed', message: 'reset' }), 'truncated');
    assert.equal(kind({ kind: 'timeout-stall', limit: 10 }), 'timeout-stall');
    assert.equal(kind({ kind: 'timeout-first-token', limit: 10 }, []), 'timeout-first-token');
    assert.equal(kind({ kind: 'cancelled' }), 'cancelled');
    assert.equal(kind({ kind: 'cancelled' }, reads), 'ok');
    assert.equal(kind({ kind: 'timeout-total', limit: 10 }, reads), 'ok');
    assert.equal(kind({ kind: 'closed', message: 'reset' }, reads), 'ok');
    for (const failed of ['dns', 'connect', 'tls'] as const) assert.equal(kind({ kind: failed, message: 'no' }, []), failed);
    assert.equal(outcomeOf({ kind: 'cancelled' }, decodeText('openai-chat', '{}', 'cut', { status: 500, headers: [] })).kind, 'status');
  });
});

describe('decode: inline thinking', () => {
  const answer = (...pieces: string[]): Decoded => decodeText('openai-chat', [...pieces.map((piece) => sse(text(piece))), sse(stop, done)]);

  it('a tag at the start, whole, split, after white space', () => {
    for (const pieces of [['<think>Hm</think>Yes'], ['<th', 'ink>', 'Hm', '</', 'think>', 'Yes'], ['\n', '<think>', 'Hm', '</think>', 'Yes']]) {
      const decoded = answer(...pieces);
      assert.deepEqual([decoded.reasoning.trim(), decoded.text], ['Hm', 'Yes'], pieces.join('|'));
      assert.equal(firstOf(decoded, 'text'), pieces.length);
      assert.ok(decoded.flags.includes('think-inline'));
    }
  });

  it('a tag quoted later is text', () => {
    for (const pieces of [['Use <think> to think</think>.'], ['The tag `</think>` ends it.'], ['It says "</think>" there.'], ['the ', '</think>', ' tag ends it'], ['```\nx</think>\n```\nDone'], ['<thinking>no</thinking>']]) {
      const decoded = answer(...pieces);
      assert.deepEqual([decoded.text, decoded.reasoning], [pieces.join(''), ''], pieces.join('|'));
    }
  });

  it('an open tag never closed is all reasoning; a half tag at the end is text', () => {
    assert.deepEqual([answer('<think>', 'Hm').reasoning, answer('<think>', 'Hm').text], ['Hm', '']);
    assert.deepEqual([answer('<thi').text, answer('<thi').reasoning], ['<thi', '']);
  });

  it('close-only at the very end, and directly before text', () => {
    assert.deepEqual([answer('All thought', '</think>').reasoning, answer('All thought', '</think>').text], ['All thought', '']);
    assert.deepEqual([answer('Hm.', '</think>', 'Four').reasoning, answer('Hm.', '</think>', 'Four').text], ['Hm.', 'Four']);
  });

  it('is left alone where the server tells reasoning apart', () => {
    const decoded = decodeText('openai-chat', sse(chunk({ reasoning_content: 'r' }), text('a\n'), text('</think>\n'), stop, done));
    assert.deepEqual([decoded.text, decoded.reasoning], ['a\n</think>\n', 'r']);
  });

  it('a frame with the end of thinking and the start of the answer is one delta, of text', () => {
    const decoded = answer('<think>', 'Hm</think>Yes');
    assert.deepEqual([kinds(decoded), decoded.reasoning, decoded.text], [['reasoning', 'text'], 'Hm', 'Yes']);
    assert.deepEqual(decoded.arrivals[1]!.beside, { kind: 'reasoning', text: 'Hm' });
  });
});

describe('decode: token counts', () => {
  it('logprobs tell k, also of a frame without text', () => {
    const with_ = (value: string, n: number): object => ({ choices: [{ index: 0, delta: { content: value }, logprobs: { content: Array.from({ length: n }, () => ({})) }, finish_reason: null }] });
    const decoded = decodeText('openai-chat', sse(with_('ab', 2), with_('', 1), with_('🙂', 1), stop, usage(4), done));
    assert.deepEqual([ks(decoded), kinds(decoded), decoded.outputTokens], [[2, 1, 1], ['text', 'token', 'text'], { count: 4, source: 'logprobs' }]);
  });

  it('one token an event: Together, TGI', () => {
    const one = (value: string, id: number): object => ({ choices: [{ index: 0, text: value, delta: { content: value, token_id: id }, finish_reason: null }] });
    const together = decodeText('openai-chat', sse(one('a', 1), one('', 2), one('🙂', 3), { choices: [{ index: 0, delta: { content: '', token_id: 4 }, finish_reason: 'stop' }], usage: { prompt_tokens: 5, completion_tokens: 4, total_tokens: 9 } }, done));
    assert.deepEqual([ks(together), together.outputTokens, together.text], [[1, 1, 1, 1], { count: 4, source: 'one-per-event' }, 'a🙂']);
    const tgi = decodeReads('tgi', [fixture('tgi.sse')]);
    assert.deepEqual([ks(tgi), tgi.outputTokens, tgi.text, tgi.finish], [[1, 1, 1, 1], { count: 4, source: 'one-per-event' }, 'Tiefes Lernen', 'eos_token']);
  });

  it('llama.cpp: prompt progress is no token; where `tokens` fall short, predicted_n counts', () => {
    const decoded = decodeReads('llamacpp', [fixture('llamacpp.sse')]);
    assert.deepEqual([ks(decoded), decoded.outputTokens, decoded.promptTokens, decoded.cachedTokens], [[1, 1, 2, 1], { count: 5, source: 'server-count' }, 6, 4]);
  });

  it('SGLang native: cumulative text, running count, cached tokens', () => {
    const decoded = decodeReads('sglang', [fixture('sglang.sse')]);
    assert.deepEqual([decoded.text, ks(decoded), kinds(decoded), decoded.cachedTokens], ['Der Tag ist um.', [1, 2, 2, 1], ['text', 'text', 'text', 'token'], 3]);
    const incremental = decodeText('sglang', sse({ text: 'Der', meta_info: { completion_tokens: 1 } }, { text: ' Tag', meta_info: { completion_tokens: 2, finish_reason: { type: 'length' } } }, done));
    assert.equal(incremental.text, 'Der Tag');
  });

  it('counts that do not add up are dropped and flagged', () => {
    const at = (n: number): object => ({ usage: { prompt_tokens: 5, completion_tokens: n, total_tokens: 5 + n } });
    const decoded = decodeText('openai-chat', sse(chunk({ role: 'assistant', content: '' }, null, at(0)), chunk({ content: 'a' }, null, at(7)), chunk({ content: 'b' }, null, at(15)), chunk({}, 'stop', at(15)), usage(16), done));
    assert.deepEqual([ks(decoded), decoded.n1, decoded.outputTokens], [[null, null], null, { count: 16, source: 'final-usage' }]);
    assert.ok(decoded.flags.includes('token-counts-do-not-add-up'));
  });

  it('the best source that adds up wins', () => {
    const both = (value: string, ids: number[], n: number): object => ({ choices: [{ index: 0, delta: { content: value }, token_ids: ids, logprobs: { content: ids.map(() => ({})) }, finish_reason: null }], usage: { prompt_tokens: 1, completion_tokens: n, total_tokens: 1 + n } });
    assert.equal(decodeText('openai-chat', sse(both('a', [1], 1), both('bc', [2, 3], 3), stop, done)).outputTokens.source, 'token_ids');
    assert.deepEqual(ks(decodeText('openai-chat', sse(both('a', [1], 2), both('bc', [2], 3), stop, done))), [2, 1]);
  });

  it('usage traps: excluded reasoning, reasoning over completion, cached over prompt', () => {
    const of = (more: object): Decoded => decodeText('openai-chat', sse(chunk({ reasoning: 'r' }), text('a'), stop, usageChunk(more), done));
    const xai = of({ prompt_tokens: 213, completion_tokens: 2, total_tokens: 413, completion_tokens_details: { reasoning_tokens: 198 } });
    assert.deepEqual([xai.outputTokens.count, xai.streamTokens], [200, 200]);
    const router = of({ prompt_tokens: 43, completion_tokens: 10, total_tokens: 53, completion_tokens_details: { reasoning_tokens: 11 } });
    assert.deepEqual([router.outputTokens.count, router.flags.includes('reasoning>completion')], [10, true]);
    const grok = of({ prompt_tokens: 7, completion_tokens: 8, total_tokens: 15, prompt_tokens_details: { cached_tokens: 161 } });
    assert.deepEqual([grok.cachedTokens, grok.flags.includes('cached>prompt')], [7, true]);
  });

  it('a usage frame with choices, after the text, is no token', () => {
    const decoded = decodeText('openai-chat', [sse(text('a')), sse(chunk({ content: '' }, null, { usage: { prompt_tokens: 5, completion_tokens: 1 } })), sse(stop, done)]);
    assert.deepEqual(kinds(decoded), ['text']);
  });
});

describe('decode: bytes', () => {
  it('bytes that are not UTF-8 are flagged; a replacement character that was sent is not', () => {
    const bytes = Buffer.from(sse(text('a?b'), stop, done));
    bytes[bytes.indexOf('?')] = 0xff;
    assert.ok(decodeReads('openai-chat', [bytes]).flags.includes('not-utf8'));
    const sent = Buffer.from(sse(text('a\uFFFDb'), stop, done));
    for (const reads of Object.values(schedules(sent))) assert.ok(!decodeReads('openai-chat', reads).flags.includes('not-utf8'));
  });

  it('a byte order mark and an unterminated last event', () => {
    const decoded = decodeText('openai-chat', `\uFEFF${sse(text('a'), stop)}data: [DONE]`);
    assert.deepEqual([decoded.text, decoded.outcome.kind, decoded.flags], ['a', 'ok', ['unterminated-last-event']]);
  });

  it('NDJSON: CRLF, several lines a read, U+2028 inside, no newline at the end', () => {
    const wire = fixture('ollamaChat.ndjson').toString().replace('Äh', 'Ä\u2028\u0085h').replace(/\n/g, '\r\n').trimEnd();
    const decoded = decodeText('ollama', wire);
    assert.deepEqual([decoded.text, decoded.outcome.kind, decoded.frames], ['Ä\u2028\u0085h', 'ok', 4]);
  });

  it('comments are counted and are no frame', () => {
    const decoded = decodeText('openai-chat', [': OPENROUTER PROCESSING\n\n', ':\n\n', sse(text('a'), stop, done)]);
    assert.deepEqual([decoded.comments, decoded.firstFrame, decoded.frames], [2, 3, 3]);
  });

  it('one frame of 4 MB in small reads is handed over once', () => {
    const big = 'x'.repeat(4 * 1024 * 1024);
    const bytes = Buffer.from(sse(text(big), stop, done));
    const reads = cutAt(bytes, Array.from({ length: Math.floor(bytes.length / 1000) }, (_, at) => (at + 1) * 1000));
    const decoded = decodeReads('openai-chat', reads);
    assert.deepEqual([decoded.text.length, decoded.outcome.kind, decoded.arrivals[0]!.read], [big.length, 'ok', reads.findIndex((_, at) => (at + 1) * 1000 >= bytes.indexOf('\n\n') + 2)]);
  });
});
