import assert from 'node:assert/strict';
import fc from 'fast-check';
import { o200kCounter, tokenizerFromJson } from '../../../src/prompt/tokenizer';
import { applyTemplate, bytesCounter, countAtEndpoint, countedAtEndpoint, remembering, sureHead, tokenEndpointOf, tokenEndpoints, type TokenCounter } from '../../../src/prompt/tokens';

const o200k = o200kCounter(true);
const words = fc.array(fc.oneof(fc.constantFrom('Today', ' is', '\n', '\n\n', ' ', '  ', '.', ',', '123', '4', '中文', 'don', "'t", '{"a":', '/', '\r\n', 'é', '👍', '<|endoftext|>'), fc.string({ maxLength: 5, unit: 'grapheme' })), { maxLength: 30 }).map((w) => w.join(''));

describe('token counting', () => {
  it('o200k counts as published examples do', () => {
    assert.equal(o200k.count('hello world'), 2);
    assert.equal(o200k.count(''), 0);
    assert.ok(o200k.count('<|endoftext|>') > 1, 'a special token in a text is text');
  });
  it('estimates four bytes a token', () => {
    assert.equal(bytesCounter.count(''), 0);
    assert.equal(bytesCounter.count('abcde'), 2);
    assert.equal(bytesCounter.count('é€👍'), Math.ceil((2 + 3 + 4) / 4));
  });
  it('counting by lines equals counting the whole', () => {
    fc.assert(fc.property(words, (text) => assert.equal(remembering(o200k).count(text), o200k.count(text))), { numRuns: 300 });
  });
  it('remembers lines, so an edit counts one line', () => {
    const asked: string[] = [];
    const counter = remembering({ ...o200k, count: (text) => (asked.push(text), o200k.count(text)) });
    counter.count('one\ntwo\nthree\n');
    counter.count('one\n2 two\nthree\n');
    assert.deepEqual(asked, ['one\n', 'two\n', 'three\n', '2 two\n']);
  });
});

describe('the sure head of a cut text', () => {
  it('drops what may merge with the continuation', () => {
    assert.equal(sureHead('Hello world'), 'Hello');
    assert.equal(sureHead('Today is '), 'Today is');
    assert.equal(sureHead('End.\n\n'), 'End');
    assert.equal(sureHead('id: 12345'), 'id:');
    assert.equal(sureHead("they don'"), 'they');
    assert.equal(sureHead('{"a":'), '{"a');
    assert.equal(sureHead(`${'word '.repeat(2000)}tail`), 'word '.repeat(2000).trimEnd());
    assert.equal(sureHead('user_'), 'user');
    assert.equal(sureHead('word'), '');
    assert.equal(sureHead(''), '');
  });
  it('gives up little of a script without spaces, and never half a character', () => {
    assert.equal(sureHead('中文没有空格的一段文字很长很长'), '中文没有空格的');
    assert.ok(!/[\ud800-\udbff]$/.test(sureHead('👍'.repeat(30))));
  });
  it('its tokens open the tokens of every continuation', () => {
    fc.assert(
      fc.property(words, words, (head, rest) => {
        const sure = o200k.encode?.(sureHead(head)) ?? [];
        const all = o200k.encode?.(head + rest) ?? [];
        assert.deepEqual(all.slice(0, sure.length), sure);
      }),
      { numRuns: 3000, seed: 7 },
    );
  });
});

describe('a tokenizer.json', () => {
  const wordLevel = JSON.stringify({
    version: '1.0',
    added_tokens: [],
    normalizer: null,
    pre_tokenizer: { type: 'Whitespace' },
    post_processor: null,
    decoder: null,
    model: { type: 'WordPiece', vocab: { '[UNK]': 0, hello: 1, world: 2, '##s': 3 }, unk_token: '[UNK]', continuing_subword_prefix: '##', max_input_chars_per_word: 100 },
  });
  it('counts by the file', () => {
    const counter = tokenizerFromJson(wordLevel, null);
    assert.deepEqual(counter.encode?.('hello worlds'), [1, 2, 3]);
    assert.deepEqual([counter.count('hello worlds'), counter.count(''), counter.exact, counter.source], [3, 0, true, 'tokenizer.json']);
  });
  it('says what is wrong with another file', () => {
    assert.throws(() => tokenizerFromJson('{', null), /tokenizer\.json is not a JSON object/);
    assert.throws(() => tokenizerFromJson('{"a":1}', null), /no "model"/);
    assert.throws(() => tokenizerFromJson(wordLevel, '[]'), /tokenizer_config\.json is not/);
  });
});

describe('token endpoints', () => {
  const three: TokenCounter = { source: 'bytes/4', exact: false, count: () => 3 };
  it('speak each server’s form', () => {
    assert.deepEqual(tokenEndpoints.vllm.request('hi', 'm'), { path: '/tokenize', body: { model: 'm', prompt: 'hi', add_special_tokens: false } });
    assert.deepEqual(tokenEndpoints.llamacpp.request('hi', 'm'), { path: '/tokenize', body: { content: 'hi', add_special: false } });
    assert.equal(tokenEndpoints.gemini.request('hi', 'gemini-2.5-flash').path, '/v1beta/models/gemini-2.5-flash:countTokens');
    assert.equal(tokenEndpoints.vllm.read({ count: 2, tokens: [1, 2] }), 2);
    assert.equal(tokenEndpoints.llamacpp.read({ tokens: [{ id: 1, piece: 'h' }] }), 1);
    assert.equal(tokenEndpoints.tgi.read([{ id: 1, text: 'h', start: 0, stop: 1 }]), 1);
    assert.equal(tokenEndpoints.openai.read({ object: 'response.input_tokens', input_tokens: 9 }), 9);
    assert.equal(tokenEndpoints.anthropic.read({ error: {} }), null);
    assert.equal(tokenEndpointOf('openai-5.6')?.id, 'openai');
    assert.equal(tokenEndpointOf('ollama'), null);
  });
  it('count each text once, and note what they were not asked', async () => {
    const posts: unknown[] = [];
    const known = await countAtEndpoint(tokenEndpoints.vllm, ['a', 'bb', 'a', ''], null, (_, body) => (posts.push(body), Promise.resolve({ count: 7 })));
    const { counter, missing } = countedAtEndpoint(known ?? new Map(), three);
    assert.deepEqual([counter.count('a'), counter.count(''), counter.exact, counter.source, posts.length, missing.size], [7, 0, true, 'endpoint', 2, 0]);
    assert.equal(counter.count('new'), 3, 'any other text is counted by the fallback');
    assert.deepEqual([...missing], ['new']);
  });
  it('leave the machine only for a provider’s API', () => {
    assert.deepEqual(Object.values(tokenEndpoints).filter(({ hosted }) => hosted).map(({ id }) => id), ['anthropic', 'openai', 'gemini']);
  });
  it('take the cost of an empty message off where whole requests are counted', async () => {
    const post = (_: string, body: unknown) => Promise.resolve({ input_tokens: 8 + (body as { messages: [{ content: string }] }).messages[0].content.length });
    const known = await countAtEndpoint(tokenEndpoints.anthropic, ['12345'], 'claude-sonnet-5', post);
    assert.equal(known?.get('12345'), 5);
  });
  it('give up on an unreadable answer', async () => {
    assert.equal(await countAtEndpoint(tokenEndpoints.tgi, ['x'], null, () => Promise.resolve({ error: 'no' })), null);
  });
  it('are not believed where no vocabulary can count so', async () => {
    const text = 'the boom is rigged last '.repeat(125);
    const counted = async (count: unknown) => await countAtEndpoint(tokenEndpoints.vllm, [text], null, () => Promise.resolve({ count }));
    for (const nonsense of [0, 1, -5, 3.5, 701.5, 1e15, text.length + 65]) assert.equal(await counted(nonsense), null, String(nonsense));
    for (const count of [12, 626, text.length]) assert.equal((await counted(count))?.get(text), count);
    // Whole requests are counted here: what an empty one costs is taken off first.
    assert.equal(await countAtEndpoint(tokenEndpoints.anthropic, [text], null, () => Promise.resolve({ input_tokens: 20 })), null);
    assert.equal(await countAtEndpoint(tokenEndpoints.anthropic, [text], null, () => Promise.resolve({ input_tokens: 8.5 })), null);
  });
  it('read a rendered chat template', () => {
    assert.deepEqual(applyTemplate.request({ messages: [{ role: 'user', text: 'hi' }], tools: [] }), { path: '/apply-template', body: { messages: [{ role: 'user', content: 'hi' }] } });
    assert.deepEqual([applyTemplate.read({ prompt: 'x' }), applyTemplate.read({})], ['x', null]);
  });
});
