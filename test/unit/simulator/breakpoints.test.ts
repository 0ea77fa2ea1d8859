import assert from 'node:assert/strict';
import { BreakpointCache } from '../../../src/simulator/breakpointCache';
import { virtualWorld, type VirtualWorld } from './virtualWorld';

const rules = (words: string, n: number): string => Array.from({ length: n }, (_, i) => `${words} ${i}: answer in plain words and name the source of what you say.`).join('\n');
const mark = (ttl?: string) => ({ cache_control: { type: 'ephemeral', ...(ttl === undefined ? {} : { ttl }) } });

interface Usage {
  readonly input_tokens: number;
  readonly cache_read_input_tokens: number;
  readonly cache_creation_input_tokens: number;
  readonly cache_creation: { readonly ephemeral_5m_input_tokens: number; readonly ephemeral_1h_input_tokens: number };
}

const body = (marks: { readonly system?: object; readonly user?: object }, question = 'Why?') => ({
  model: 'claude', max_tokens: 4,
  system: [{ type: 'text', text: rules('Rule', 90), ...marks.system }],
  messages: [{ role: 'user', content: [{ type: 'text', text: rules('Case', 60), ...marks.user }, { type: 'text', text: question }] }],
});

async function post(world: VirtualWorld, path: string, json: object): Promise<Record<string, unknown>> {
  const answer = await world.server.exchange({ method: 'POST', path, headers: { 'content-type': 'application/json' }, body: JSON.stringify(json) });
  return JSON.parse(Buffer.concat(answer.writes.map(({ bytes }) => bytes)).toString()) as Record<string, unknown>;
}

const usage = async (world: VirtualWorld, json: object): Promise<Usage> => (await post(world, '/v1/messages', json))['usage'] as Usage;
const claude = () => virtualWorld(['--face', 'anthropic', '--served-model', 'claude']);

describe('a cache of breakpoints', () => {
  it('keeps prefixes only where they end, for their time, which a use begins anew', () => {
    const cache = new BreakpointCache();
    const prompt = Array.from({ length: 40 }, (_, i) => i * 7);
    cache.keep(prompt, '', [{ at: 10, ttl: 100 }, { at: 30, ttl: 50 }], 0);
    assert.equal(cache.find(prompt, '', [5, 10, 20, 30], 1), 30);
    assert.equal(cache.find(prompt, '', [5, 10, 20], 1), 10);
    assert.equal(cache.find(prompt, 'another salt', [10, 30], 1), 0);
    assert.equal(cache.find([...prompt.slice(0, 12), 999, ...prompt.slice(13)], '', [10, 30], 1), 10);
    assert.equal(cache.find(prompt, '', [30], 50), 30, 'used at 1, so it lasts until 51');
    assert.equal(cache.find(prompt, '', [30], 101), 0);
    assert.equal(cache.find(prompt, '', [41], 0), 0, 'a place behind the end');
    cache.reset();
    assert.equal(cache.find(prompt, '', [10], 1), 0);
  });

  it('Anthropic’s usage: what was read, what was kept for how long, and the rest add up to what its counting says', async () => {
    const world = claude();
    const marked = body({ system: mark('1h'), user: mark() });
    const total = (await post(world, '/v1/messages/count_tokens', marked))['input_tokens'];
    const first = await usage(world, marked);
    assert.equal(first.cache_read_input_tokens, 0);
    assert.ok(first.cache_creation.ephemeral_1h_input_tokens > 1024 && first.cache_creation.ephemeral_5m_input_tokens > 1024);
    assert.equal(first.cache_creation.ephemeral_1h_input_tokens + first.cache_creation.ephemeral_5m_input_tokens, first.cache_creation_input_tokens);
    assert.equal(first.input_tokens + first.cache_creation_input_tokens, total);
    const second = await usage(world, body({ system: mark('1h'), user: mark() }, 'How?'));
    assert.deepEqual([second.cache_read_input_tokens, second.cache_creation_input_tokens], [first.cache_creation_input_tokens, 0]);
    const unmarked = await usage(world, body({}));
    assert.deepEqual([unmarked.cache_read_input_tokens, unmarked.cache_creation_input_tokens, unmarked.input_tokens], [0, 0, total]);
  });

  it('an entry can be read once the answer that wrote it has begun, not before', async () => {
    const world = claude();
    const [a, b] = await Promise.all([usage(world, body({ system: mark() })), usage(world, body({ system: mark() }, 'How?'))]);
    assert.deepEqual([a.cache_read_input_tokens, b.cache_read_input_tokens], [0, 0]);
    assert.ok((await usage(world, body({ system: mark() }))).cache_read_input_tokens > 1024);
  });

  it('the same API of a server of one’s own caches whole blocks, whatever is marked', async () => {
    const world = virtualWorld(['--face', 'vllm']);
    const plain = { ...body({ system: mark() }), model: 'llama-3.1-8b' };
    await usage(world, plain);
    const again = await usage(world, plain);
    assert.equal(again.cache_read_input_tokens % 16, 0);
    assert.ok(again.cache_read_input_tokens > 2000 && again.input_tokens <= 16);
  });
});
