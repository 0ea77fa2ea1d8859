import assert from 'node:assert/strict';
import type { PrefixResult } from '../../../../src/probe/scenario/prefix';
import { prove, rowOf, type Server } from './proofs';

type Mark = Readonly<Record<string, unknown>>;
const rules = (words: string, n: number): string => Array.from({ length: n }, (_, i) => `${words} ${i}: answer in plain words and name the source of what you say.`).join('\n');
const tool = (name: string, more: Mark = {}) => ({ name, description: rules(`Use ${name} with care`, 30), input_schema: { type: 'object', properties: { city: { type: 'string' } } }, ...more });
const mark = (ttl?: string): Mark => ({ cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } });

/** A request for Anthropic with breakpoints where they are given. */
function request(marks: { readonly tools?: Mark; readonly system?: Mark; readonly user?: Mark; readonly whole?: Mark }, question = 'What is the weather in Bergen?') {
  return {
    model: 'claude-sonnet-4-5',
    max_tokens: 400,
    tools: [tool('weather'), tool('news', marks.tools)],
    system: [{ type: 'text', text: rules('Rule', 80) }, { type: 'text', text: rules('Also', 40), ...marks.system }],
    messages: [{ role: 'user', content: [{ type: 'text', text: rules('Case', 40), ...marks.user }, { type: 'text', text: question }] }],
    ...marks.whole,
  };
}

const file = (...bodies: readonly object[]) => ({ name: bodies.length > 1 ? 'batch.jsonl' : 'request.json', text: bodies.map((body) => JSON.stringify(body)).join('\n') });
const anthropic: Server = { flags: '--face anthropic --served-model claude-sonnet-4-5', api: 'anthropic', server: 'anthropic', rule: 'anthropic', model: 'claude-sonnet-4-5' };
const openai: Server = { flags: '--face openai --served-model gpt-5.6', api: 'openai-responses', server: 'openai', rule: 'openai-5.6', model: 'gpt-5.6' };

/**
 * Predicted and served of both repeats: within one block of 16 where the provider counted (Anthropic), else within a fiftieth, since the
 * place of the template's own tokens is guessed.
 */
function agrees(result: PrefixResult): { readonly warm: number; readonly changed: number } {
  const served = (kind: 'warm' | 'changed'): number => {
    const row = rowOf(result, kind);
    assert.ok(row.predicted && row.served && row.promptTokens !== null, kind);
    assert.ok(Math.abs(row.predicted.tokens - row.served.p50) <= (result.countedBy === 'provider' ? 16 : 0.02 * row.promptTokens), `${kind}: predicted ${row.predicted.tokens}, served ${row.served.p50} of ${row.promptTokens}`);
    assert.equal(row.state, 'yes', kind);
    return row.served.p50;
  };
  assert.equal(rowOf(result, 'cold').served?.max, 0, 'cold is cold, whatever its markers');
  return { warm: served('warm'), changed: served('changed') };
}

describe('a proof where only breakpoints are cached', () => {
  it('Anthropic: a request without a marker predicts 0 and is served 0', async () => {
    const { result } = await prove(anthropic, file(request({})));
    assert.deepEqual(agrees(result), { warm: 0, changed: 0 });
    assert.equal(result.countedBy, 'provider');
    assert.equal(result.markers, 0);
  });

  it('Anthropic: the markers of the file are sent, and served is what they promise', async () => {
    const { result, sent } = await prove(anthropic, file(request({ tools: mark(), system: mark(), user: mark() })));
    const { warm, changed } = agrees(result);
    assert.equal(result.markers, 3);
    assert.ok(changed > 2500 && warm === changed, `${changed}: the question behind the last marker is no part of it`);
    for (const body of sent) assert.equal(body.split('"cache_control"').length - 1, 3);
    assert.deepEqual(result.notes, []);
  });

  it('Anthropic: a change before the last marker falls back to the marker before it', async () => {
    const marks = { tools: mark(), system: mark('5m'), user: mark() };
    const other = request(marks);
    const later = { ...other, messages: [{ role: 'user', content: [{ type: 'text', text: rules('Another case', 40), ...mark() }, { type: 'text', text: 'And in Oslo?' }] }] };
    const { result } = await prove(anthropic, file(request(marks), later));
    const { warm, changed } = agrees(result);
    assert.ok(changed > 1024 && changed < warm);
    assert.match(result.change, /^the next request of the file/);
  });

  it('Anthropic: one marker for the whole request covers its end, so another end is not served', async () => {
    const { result } = await prove(anthropic, file(request({ whole: mark() })));
    const { warm, changed } = agrees(result);
    const { promptTokens } = rowOf(result, 'warm');
    assert.ok(warm > 0.98 * promptTokens!);
    assert.ok(changed === 0, 'the first two blocks of the message were never written');
  });

  it('Anthropic: the marked block and the 19 before it are looked at, no more', async () => {
    const turns = (n: number) => ({ ...request({ system: mark() }), messages: Array.from({ length: n }, (_, i) => ({ role: i % 2 === 0 ? 'user' : 'assistant', content: [{ type: 'text', text: `Turn ${i}.`, ...(i === n - 1 ? mark() : {}) }] })) });
    const near = await prove(anthropic, file(turns(1), { ...turns(19), system: turns(1).system }));
    assert.ok(agrees(near.result).changed > 1024);
    const bare = (n: number) => ({ ...turns(n), system: request({}).system });
    const within = await prove(anthropic, file(bare(1), bare(19)));
    assert.ok(agrees(within.result).changed > 1024, 'the first turn was written, 18 blocks back');
    const beyond = await prove(anthropic, file(bare(1), bare(23)));
    assert.equal(agrees(beyond.result).changed, 0);
  });

  it('Anthropic: entries of 5 minutes and of an hour expire when they should, and a use makes them last anew', async () => {
    const waits = { pairs: 1, expiry: [120, 400, 4000] };
    const gone = async (ttl: string) => (await prove(anthropic, file(request({ system: mark(ttl) })), waits)).result.expiry?.map(({ cached }) => (cached ?? 0) > 1024);
    assert.deepEqual(await gone('5m'), [true, false, false]);
    assert.deepEqual(await gone('1h'), [true, true, false]);
  });

  it('Anthropic: the minimum is met or missed by the provider’s count, not by that of the text', async () => {
    const sized = (n: number) => file({ ...request({ tools: mark() }), tools: [{ ...tool('weather'), description: rules('Use it with care', n), ...mark() }] });
    const at = async (n: number): Promise<number> => agrees((await prove(anthropic, sized(n), { pairs: 1 })).result).changed;
    assert.equal(await at(36), 0, 'some 976 tokens');
    assert.ok((await at(42)) > 1024, 'some 1,126 tokens, of which a guess by the text knows 879');
  });

  it('Anthropic: without a marker there is nothing to hit or to expire, and that is what is said', async () => {
    const { result } = await prove(anthropic, file(request({})), { pairs: 1, affinity: 3, expiry: [60] });
    assert.deepEqual([result.affinity, result.expiry, result.skipped], [null, null, ['affinity', 'expiry']], 'neither sent nor waited for');
    for (const words of [/^Affinity: not tried/, /^Expiry: not tried|^Expiry: not waited/]) assert.ok(result.sentences.some((sentence) => words.test(sentence)), String(words));
  });

  it('Anthropic: what is refused there is refused here', async () => {
    const system = Array.from({ length: 5 }, (_, i) => ({ type: 'text', text: `Part ${i}.`, ...mark() }));
    const { result, samples } = await prove(anthropic, file({ ...request({}), system }), { pairs: 1 });
    assert.equal(samples.length, 1, 'the warm-up tells enough');
    assert.match(result.failure ?? '', /maximum of 4 blocks with cache_control/);
    assert.match(samples.at(-1)?.outcome.message ?? '', /maximum of 4 blocks with cache_control/);
    const late = await prove(anthropic, file(request({ tools: mark('5m'), system: mark('1h') })), { pairs: 1 });
    assert.match(late.samples.at(-1)?.outcome.message ?? '', /must not come after/);
  });

  it('Bedrock: the same markers as blocks of its own', async () => {
    const bedrock: Server = { flags: '--face bedrock --served-model claude-sonnet-4-5', api: 'bedrock', server: 'bedrock', rule: 'bedrock', model: 'claude-sonnet-4-5' };
    const { result, sent } = await prove(bedrock, file(request({ tools: mark(), system: mark() })));
    assert.ok(agrees(result).changed > 1024);
    assert.equal(result.markers, 2);
    assert.ok(sent.every((body) => body.includes('{"cachePoint":{"type":"default"}}')));
  });

  for (const api of ['openai-responses', 'openai-chat'] as const) {
    it(`OpenAI from GPT-5.6 on, ${api}: message ends without a marker, markers where they stand, no longest prefix`, async () => {
      const server: Server = { ...openai, api };
      const key = api === 'openai-chat' ? 'messages' : 'input';
      const type = api === 'openai-chat' ? 'text' : 'input_text';
      const body = (content: unknown, more: object = {}) => ({ model: 'gpt-5.6', [key]: [{ role: 'developer', content: rules('Rule', 80) }, { role: 'user', content }], prompt_cache_key: 'weather', ...more });
      const plain = agrees((await prove(server, file(body(`${rules('Case', 40)} What now?`)))).result);
      assert.ok(plain.warm > plain.changed && plain.changed === 0, 'the developer message was never written: it is not the latest end');
      const split = [{ type, text: rules('Case', 40), prompt_cache_breakpoint: { mode: 'explicit' } }, { type, text: 'What now?' }];
      const marked = await prove(server, file(body(split)));
      assert.ok(agrees(marked.result).changed > 1024);
      assert.ok(marked.sent.every((sent) => sent.includes('"prompt_cache_breakpoint":{"mode":"explicit"}') && sent.includes('"prompt_cache_key":"weather"')));
    });
  }

  it('says in words what an API without markers is not sent', async () => {
    const vllm: Server = { flags: '', api: 'openai-chat', server: 'vllm', rule: 'vllm' };
    const { result, sent } = await prove(vllm, file(request({ tools: mark(), system: mark() })));
    assert.equal(result.markers, 0);
    assert.match(result.notes.join(' '), /2 cache markers of the file cannot be written in the API of this endpoint \(openai-chat\)/);
    assert.ok(sent.every((body) => !body.includes('cache_control') && body.includes('"type":"function"')));
    assert.equal(rowOf(result, 'warm').state, 'yes');
  });
});

describe('the provider’s own cache diagnostics', () => {
  it('Anthropic: says what changed, and nothing of the same request; apart from what was served', async () => {
    const marks = { system: mark() };
    const changed = { ...request(marks), system: [{ type: 'text', text: rules('Rule', 79), ...mark() }] };
    const { result, sent } = await prove(anthropic, file(request(marks), changed), { pairs: 2 });
    assert.equal(result.diagnosis?.warm?.state, 'same');
    assert.deepEqual([result.diagnosis.changed?.state, result.diagnosis.changed?.reason, result.diagnosis.changed?.n], ['changed', 'system_changed', 2]);
    assert.ok((result.diagnosis.changed?.missedTokens ?? 0) > 100);
    const ids = sent.slice(1).map((body) => (JSON.parse(body) as { diagnostics: { previous_message_id: string | null } }).diagnostics.previous_message_id);
    assert.deepEqual(ids.map((id) => id === null), [true, false, false, true, false, false]);
    assert.ok(result.sentences.some((sentence) => /own cache diagnostics say \(level 4 too, but apart from served.*\)\. The later request: the system changed \(system_changed\), with about .* behind it\. The same one again: nothing broke the prefix\./.test(sentence)));
  });

  it('Anthropic: tools and messages are told apart, a continued conversation is no change', async () => {
    const said = async (second: object): Promise<string | null | undefined> => (await prove(anthropic, file(request({}), second), { pairs: 1 })).result.diagnosis?.changed?.reason;
    assert.equal(await said({ ...request({}), tools: [tool('weather')] }), 'tools_changed');
    assert.equal(await said(request({}, 'And tomorrow?')), 'messages_changed');
    const longer = request({});
    assert.equal(await said({ ...longer, messages: [...longer.messages, { role: 'assistant', content: 'Rain.' }, { role: 'user', content: 'And tomorrow?' }] }), null);
  });

  it('OpenAI: compares by response id, from the second request of a pair on', async () => {
    const body = (text: string) => ({ model: 'gpt-5.6', input: [{ role: 'developer', content: rules('Rule', 80) }, { role: 'user', content: text }] });
    const { result } = await prove(openai, file(body('What now?'), body('What else?')), { pairs: 1 });
    assert.deepEqual([result.diagnosis?.warm?.state, result.diagnosis?.changed?.reason], ['same', 'input_changed']);
    assert.ok((result.diagnosis?.changed?.missedTokens ?? 0) > 0);
  });

  it('a refusal of the field drops it and the proof goes on', async () => {
    const { result, samples } = await prove({ ...anthropic, flags: `${anthropic.flags} --fault refuse:diagnostics` }, file(request({ system: mark() })), { pairs: 2 });
    assert.equal(samples.filter(({ role }) => role === 'negotiation').length, 1);
    assert.equal(result.diagnosis, null);
    assert.ok(agrees(result).changed > 1024);
  });

  it('servers of their own are not asked', async () => {
    const { result, sent } = await prove({ flags: '', api: 'openai-responses', server: 'vllm', rule: 'vllm' }, file({ model: 'llama-3.1-8b', input: rules('Rule', 40) }), { pairs: 1 });
    assert.ok(sent.every((body) => !body.includes('comparison_response_id')));
    assert.equal(result.diagnosis, null);
  });
});
