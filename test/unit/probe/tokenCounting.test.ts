import assert from 'node:assert/strict';
import { createMemory, defaultNetwork, endpointFromUrl, type Detection, type EndpointAccess, type EndpointTokens } from '../../../src/probe/index';
import { dialects } from '../../../src/probe/dialect/index';
import { countingOf, createTokenDesk, endpointTokens, type CountingParts, type WantedCounts } from '../../../src/probe/tokenCounting';
import type { ChatPrompt } from '../../../src/prompt/prompt';
import { tokenEndpoints, type TokenEndpoint } from '../../../src/prompt/tokens';

const access = (): EndpointAccess => ({ endpoint: endpointFromUrl('http://127.0.0.1:9/v1'), key: null, network: { ...defaultNetwork, proxy: 'none' }, recorderScript: '', memory: createMemory() });
const detected = (server: string, model = 'tiny'): Detection => ({ api: 'openai-chat', server, version: null, models: [model], maxModelLen: null, metricsUrl: null, evidence: [], needsKey: false, unreachable: null });
const wanted = (...texts: string[]): WantedCounts => ({ texts, requests: [], hosted: false });
const never = () => new AbortController().signal;

/** An endpoint whose tokens are its characters; everything it is asked is written down. */
function characters(more: { readonly endpoint?: TokenEndpoint | null; readonly model?: string; readonly count?: (texts: readonly string[]) => Promise<ReadonlyMap<string, number> | null> } = {}) {
  const asked: string[] = [];
  let open = 0;
  let most = 0;
  const opening = async (): Promise<EndpointTokens> => {
    open += 1;
    most = Math.max(most, open);
    asked.push('open');
    await Promise.resolve();
    return {
      server: 'vllm',
      dialect: 'openai-chat',
      url: '',
      model: more.model ?? 'tiny',
      endpoint: more.endpoint === undefined ? tokenEndpoints.vllm : more.endpoint,
      count: more.count ?? ((texts) => (asked.push(...texts), Promise.resolve(new Map(texts.map((text) => [text, text.length]))))),
      sent: ({ prompt, later }) => (asked.push('sent'), Promise.resolve({ total: 100 + prompt.messages.length, common: later === null ? null : 7, marks: null })),
      rendered: () => (asked.push('rendered'), Promise.resolve('<|start|>x')),
      close: () => ((open -= 1), Promise.resolve()),
    };
  };
  return { asked, opening, most: () => most, open: () => open };
}

describe('how an endpoint counts', () => {
  it('follows the server; where none was found, the API of a provider', () => {
    assert.equal(countingOf({ server: 'llamacpp', dialect: 'anthropic' })?.id, 'llamacpp');
    assert.equal(countingOf({ server: 'ollama', dialect: 'ollama' }), null);
    assert.equal(countingOf({ server: null, dialect: 'openai-chat' }), null);
    assert.equal(countingOf({ server: null, dialect: 'gemini' })?.hosted, true);
  });
});

describe('a request as it is sent', () => {
  const user = (text: string) => ({ messages: [{ role: 'user' as const, text }], tools: [] });
  const target = (server: string | null, api: 'openai-chat' | 'anthropic') => ({ endpoint: endpointFromUrl('http://127.0.0.1:9/v1'), dialect: dialects[api], model: 'tiny', server }) as unknown as CountingParts['target'];
  const opened = (parts: Partial<CountingParts> & Pick<CountingParts, 'target'>) => endpointTokens({ post: () => Promise.reject(new Error('not asked')), bodyOf: ({ messages }) => ({ messages: messages.map(({ role, text }) => ({ role, content: text })) }), tokensOf: () => Promise.resolve(null), close: () => Promise.resolve(), ...parts });
  const letters = ({ messages }: ChatPrompt) => Promise.resolve([1, 1, ...Array.from(messages[0]?.text ?? '', (c) => c.charCodeAt(0)), 2]);

  it('has what a later one shares with it, by the token ids of both', async () => {
    const tokens = opened({ target: target('vllm', 'openai-chat'), tokensOf: letters });
    assert.deepEqual(await tokens.sent({ prompt: user('It is ten.'), later: user('It is two.') }), { total: 13, common: 9, marks: null });
    assert.deepEqual(await tokens.sent({ prompt: user('It is ten.'), later: null }), { total: 13, common: null, marks: null });
    assert.deepEqual(await tokens.sent({ prompt: user('It'), later: user('It is') }), { total: 5, common: 4, marks: null });
  });

  it('is not known where ids are told of the messages alone, or of nothing', async () => {
    const beside = opened({ target: target('vllm', 'anthropic'), tokensOf: letters, bodyOf: () => ({ system: 'x', messages: [] }) });
    assert.equal(await beside.sent({ prompt: user('x'), later: null }), null);
    assert.equal(await opened({ target: target('sglang', 'openai-chat') }).sent({ prompt: user('x'), later: null }), null);
  });

  it('has its markers where the provider counts them', async () => {
    const asked: unknown[] = [];
    const lengthOf = (value: unknown): number => (typeof value === 'string' ? value.length : Array.isArray(value) ? value.reduce((sum: number, one) => sum + lengthOf((one as { text?: unknown; content?: unknown }).text ?? (one as { content?: unknown }).content), 0) : 0);
    const body = { system: [{ type: 'text', text: 'rules'.repeat(10), cache_control: { type: 'ephemeral' } }, { type: 'text', text: 'more' }], messages: [{ role: 'user', content: 'question' }] };
    const tokens = opened({
      target: target(null, 'anthropic'),
      bodyOf: () => body,
      post: (url, sent) => {
        asked.push(url);
        const { system, messages } = sent as { system?: unknown; messages: unknown };
        return Promise.resolve({ status: 200, text: JSON.stringify({ input_tokens: 7 + lengthOf(system) + lengthOf(messages) }) } as Awaited<ReturnType<CountingParts['post']>>);
      },
    });
    assert.deepEqual(await tokens.sent({ prompt: user('question'), later: null }), { total: 7 + 50 + 4 + 8, common: null, marks: [50] });
    assert.ok(asked.length >= 3);
  });
});

describe('the desk of counts', () => {
  it('asks for each text once, and opens nothing for what it knows', async () => {
    const { asked, opening, open } = characters();
    const desk = createTokenDesk({ open: opening, now: () => 0 });
    const at = access();
    at.memory.detected(at.endpoint.url, detected('vllm'));
    assert.deepEqual(await desk.count(at, wanted('one', 'three'), never()), { tokens: [['one', 3], ['three', 5]], sent: [], rendered: '<|start|>x', by: 'vllm /tokenize' });
    assert.deepEqual((await desk.count(at, wanted('three', 'fifteen'), never()))?.tokens, [['three', 5], ['fifteen', 7]]);
    assert.deepEqual((await desk.count(at, wanted('fifteen', 'one'), never()))?.tokens, [['fifteen', 7], ['one', 3]]);
    assert.deepEqual(asked, ['open', 'one', 'three', 'rendered', 'open', 'fifteen']);
    assert.equal(open(), 0, 'what was opened is closed');
  });

  it('counts the request as it is sent, once', async () => {
    const { asked, opening } = characters();
    const desk = createTokenDesk({ open: opening, now: () => 0 });
    const at = access();
    at.memory.detected(at.endpoint.url, detected('vllm'));
    const prompt = { messages: [{ role: 'user', text: 'x' } as const], tools: [] };
    const requests = [{ prompt, later: null }, { prompt, later: prompt }];
    for (let i = 0; i < 2; i += 1) assert.deepEqual((await desk.count(at, { texts: ['x'], requests, hosted: false }, never()))?.sent, [{ total: 101, common: null, marks: null }, { total: 101, common: 7, marks: null }]);
    assert.equal(asked.filter((one) => one === 'sent').length, 2, 'each once');
  });

  it('asks an endpoint one question at a time', async () => {
    const { opening, most } = characters();
    const desk = createTokenDesk({ open: opening, now: () => 0 });
    const at = access();
    await Promise.all(['a', 'bb', 'ccc'].map((text) => desk.count(at, wanted(text), never())));
    assert.equal(most(), 1);
  });

  it('leaves an endpoint that failed in peace for a while, and tells why once', async () => {
    let time = 0;
    const told: string[] = [];
    let opened = 0;
    const desk = createTokenDesk({ open: () => ((opened += 1), Promise.reject(new Error('refused'))), now: () => time, failed: (_, why) => told.push(why), rest: 60_000 });
    const at = access();
    for (const now of [0, 10, 59_000]) {
      time = now;
      assert.equal(await desk.count(at, wanted('x'), never()), null);
    }
    assert.deepEqual([opened, told], [1, ['refused']]);
    time = 61_000;
    await desk.count(at, wanted('x'), never());
    assert.equal(opened, 2);
  });

  it('gives up on a file that takes an endpoint too long, and on answers that are no counts', async () => {
    let time = 0;
    const told: string[] = [];
    const slow = characters({ count: (texts) => ((time += 6000), Promise.resolve(new Map(texts.map((text) => [text, 1])))) });
    const many = Array.from({ length: 100 }, (_, i) => `text ${i}`);
    assert.equal(await createTokenDesk({ open: slow.opening, now: () => time, failed: (_, why) => told.push(why) }).count(access(), wanted(...many), never()), null);
    assert.equal(slow.open(), 0);
    const unreadable = characters({ count: () => Promise.resolve(null) });
    assert.equal(await createTokenDesk({ open: unreadable.opening, now: () => 0, failed: (_, why) => told.push(why) }).count(access(), wanted('x'), never()), null);
    assert.deepEqual(told, ['100 texts take it longer than 15 s.', 'Its answer is no token count.']);
  });

  it('is no failure when a newer edit cancels it', async () => {
    const { asked, opening } = characters();
    const told: string[] = [];
    const desk = createTokenDesk({ open: opening, now: () => 0, failed: (_, why) => told.push(why) });
    const at = access();
    const abort = new AbortController();
    abort.abort();
    assert.equal(await desk.count(at, wanted('x'), abort.signal), null);
    const late = new AbortController();
    const failing = createTokenDesk({ open: () => (late.abort(), Promise.reject(new Error('Cancelled.'))), now: () => 0, failed: (_, why) => told.push(why) });
    assert.equal(await failing.count(at, wanted('x'), late.signal), null);
    assert.deepEqual([asked, told], [[], []]);
    assert.deepEqual((await desk.count(at, wanted('x'), never()))?.tokens, [['x', 1]], 'the next edit is counted');
  });

  it('sends nothing to a provider’s API unless that is wanted', async () => {
    const { asked, opening } = characters({ endpoint: tokenEndpoints.anthropic });
    const desk = createTokenDesk({ open: opening, now: () => 0 });
    const at = access();
    at.memory.detected(at.endpoint.url, detected('anthropic'));
    assert.equal(await desk.count(at, wanted('x'), never()), null);
    assert.deepEqual(asked, [], 'it is not even opened');
    const unknown = access();
    assert.equal(await desk.count(unknown, wanted('x'), never()), null);
    assert.deepEqual(asked, ['open'], 'found out by detection, and asked no more');
    assert.deepEqual((await desk.count(at, { ...wanted('x'), hosted: true }, never()))?.tokens, [['x', 1]]);
  });

  it('asks no server that does not count', async () => {
    const { asked, opening } = characters();
    const at = access();
    at.memory.detected(at.endpoint.url, detected('ollama'));
    assert.equal(await createTokenDesk({ open: opening, now: () => 0 }).count(at, wanted('x'), never()), null);
    assert.deepEqual(asked, []);
  });

  it('forgets the counts of another model, and all of them in time', async () => {
    let time = 0;
    const { asked, opening } = characters();
    const desk = createTokenDesk({ open: opening, now: () => time });
    const at = access();
    at.memory.detected(at.endpoint.url, detected('vllm', 'tiny'));
    await desk.count(at, wanted('x'), never());
    at.memory.detected(at.endpoint.url, detected('vllm', 'other'));
    await desk.count(at, wanted('x'), never());
    assert.equal(asked.filter((one) => one === 'x').length, 2);
    at.memory.detected(at.endpoint.url, detected('vllm', 'tiny'));
    await desk.count(at, wanted('x'), never());
    const before = asked.length;
    time = 11 * 60_000;
    await desk.count(at, wanted('x'), never());
    assert.ok(asked.length > before);
  });
});
