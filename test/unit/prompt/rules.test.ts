import assert from 'node:assert/strict';
import fc from 'fast-check';
import { ageOf, blockOf, eligibleEnds, knowsModel, loadRules, minimumOf, readFactor, reusable, ruleFor, writeFactor, type CacheRule, type Layout, type LayoutBlock, type RuleTarget } from '../../../src/prompt/rules';
import { promptFileOf, ruleForFile } from '../../../src/prompt/lint';
import { prepare } from '../../../src/prompt/parse';

const book = loadRules();
const rule = (id: string): CacheRule => {
  const found = book.rules.get(id);
  assert.ok(found, `rule ${id}`);
  return found;
};
const block = (at: number, role: LayoutBlock['role'], more: Partial<LayoutBlock> = {}): LayoutBlock => ({ at, role, slot: role === 'system' ? 'system' : 'messages', endsMessage: true, marker: null, ...more });
const marker = { ttl: null };
const layout = (common: number, blocks: readonly LayoutBlock[], more: Partial<Layout> = {}): Layout => ({ total: blocks.at(-1)?.at ?? 0, common, blocks, automatic: false, ...more });
const tokens = (id: string, l: Layout, model: string | null = null) => reusable(rule(id), model, l).tokens;
const one = (common: number, total: number, more: Partial<Layout> = {}) => layout(common, [block(total, 'user')], more);

const ids = 'vllm sglang llamacpp tensorrt-llm tgi ollama openai openai-5.6 azure anthropic bedrock gemini deepseek xai groq mistral fireworks together kimi qwen openrouter minimax'.split(' ');

describe('cache rules: the data', () => {
  it('has every rule id once, dated and sourced', () => {
    assert.deepEqual([...book.rules.keys()].sort(), [...ids].sort());
    for (const r of book.rules.values()) assert.match(r.asOf, /^20\d\d-\d\d-\d\d$/);
    assert.deepEqual(book.problems, []);
  });
});

describe('cache rules: longest prefix', () => {
  it('vLLM floors to blocks of 16', () => {
    assert.equal(tokens('vllm', one(3125, 4000)), 3120);
    assert.equal(tokens('vllm', one(15, 4000)), 0);
    assert.equal(tokens('vllm', one(16, 4000)), 16);
  });
  it('vLLM gives floor((n-1)/16)*16 of an identical prompt', () => {
    assert.equal(tokens('vllm', one(4000, 4000)), 3984);
    assert.equal(tokens('vllm', one(4001, 4001)), 4000);
    assert.equal(tokens('vllm', one(1, 1)), 0);
  });
  it('vLLM uses the large block of a hybrid model', () => {
    assert.equal(tokens('vllm', one(500, 4000), 'Qwen/Qwen3.5-35B-A3B'), 0);
    assert.equal(tokens('vllm', one(1100, 4000), 'Qwen/Qwen3.5-35B-A3B'), 1056);
  });
  it('SGLang and llama.cpp reuse to the token, all but the last', () => {
    for (const id of ['sglang', 'llamacpp', 'ollama']) {
      assert.equal(tokens(id, one(3125, 4000)), 3125);
      assert.equal(tokens(id, one(4000, 4000)), 3999);
    }
  });
  it('TensorRT-LLM floors to 32, xAI to 128, Kimi to 256', () => {
    assert.equal(tokens('tensorrt-llm', one(3125, 4000)), 3104);
    assert.equal(tokens('xai', one(3125, 4000)), 3072);
    assert.equal(tokens('kimi', one(3125, 4000)), 3072);
    assert.equal(tokens('kimi', one(255, 4000)), 0);
  });
  it('OpenAI before 5.6 needs 1,024 tokens and counts in 128', () => {
    assert.equal(tokens('openai', one(1023, 4000)), 0);
    assert.equal(tokens('openai', one(1024, 4000)), 1024);
    assert.equal(tokens('openai', one(1151, 4000)), 1024);
    assert.equal(tokens('openai', one(1152, 4000)), 1152);
    assert.equal(reusable(rule('openai'), 'gpt-5.4', one(1000, 4000)).bound, 'minimum');
  });
  it('OpenAI 5.5 counts in 2,048', () => {
    assert.equal(tokens('openai', one(4000, 9000), 'gpt-5.5'), 2048);
    assert.equal(tokens('openai', one(2000, 9000), 'gpt-5.5'), 0);
    assert.equal(tokens('openai', one(4000, 9000), 'gpt-5.4'), 3968);
  });
  it('Gemini takes its minimum from the model', () => {
    assert.equal(tokens('gemini', one(3000, 9000), 'gemini-2.5-flash'), 3000);
    assert.equal(tokens('gemini', one(3000, 9000), 'gemini-3.7-flash'), 0);
  });
  it('MiniMax is passive from 512 on, and a marker may give more', () => {
    assert.equal(tokens('minimax', one(511, 4000)), 0);
    assert.equal(tokens('minimax', one(600, 4000)), 600);
  });
});

describe('cache rules: breakpoints', () => {
  it('GPT-5.6 reuses nothing of a static block that a variable follows in the same message', () => {
    const reuse = reusable(rule('openai-5.6'), 'gpt-5.6', layout(9000, [block(9200, 'user')]));
    assert.equal(reuse.tokens, 0);
    assert.equal(reuse.bound, 'no-message-end');
  });
  it('GPT-5.6 reuses up to a message end, or an explicit marker inside the message', () => {
    assert.equal(tokens('openai-5.6', layout(9100, [block(9000, 'system'), block(9200, 'user')]), 'gpt-5.6'), 9000);
    assert.equal(tokens('openai-5.6', layout(9100, [block(9000, 'user', { endsMessage: false, marker }), block(9200, 'user')]), 'gpt-5.6'), 9000);
    assert.equal(tokens('openai-5.6', layout(1000, [block(900, 'system'), block(9200, 'user')]), 'gpt-5.6'), 0);
  });
  it('GPT-5.6 with explicit markers only ignores message ends', () => {
    const blocks = [block(9000, 'system'), block(9200, 'user')];
    assert.equal(tokens('openai-5.6', layout(9100, blocks, { explicitOnly: true })), 0);
  });
  it('GPT-5.6 finds what the earlier request wrote, and only that', () => {
    const blocks = [block(9000, 'system'), block(9200, 'user')];
    assert.equal(tokens('openai-5.6', layout(9100, blocks, { written: [9180] })), 0);
    const turn2 = [block(9000, 'system'), block(9200, 'user'), block(9300, 'assistant'), block(9400, 'user')];
    assert.equal(tokens('openai-5.6', layout(9290, turn2, { written: [9200] })), 9200);
  });
  it('takes as eligible the user messages, the last tool output of a group and the end of the initial system group', () => {
    const blocks = [block(1, 'system'), block(2, 'developer'), block(3, 'user'), block(4, 'assistant'), block(5, 'tool'), block(6, 'tool'), block(7, 'system'), block(8, 'user')];
    assert.deepEqual(eligibleEnds(blocks), [1, 2, 5, 7]);
  });
  it('looks at the initial system group and the latest 20 earlier message ends', () => {
    const turns = Array.from({ length: 40 }, (_, i) => block(2000 + 100 * i, i % 2 === 0 ? 'user' : 'assistant'));
    const blocks = [block(1500, 'system'), ...Array.from({ length: 30 }, (_, i) => block(1600 + 10 * i, 'user')), ...turns.map((b) => ({ ...b, role: 'user' as const }))];
    assert.equal(tokens('openai-5.6', layout(1605, blocks)), 1500);
  });

  it('Anthropic caches nothing without a marker where the format has markers', () => {
    const reuse = reusable(rule('anthropic'), 'claude-sonnet-4-5', layout(5000, [block(5000, 'system'), block(5200, 'user')]));
    assert.deepEqual([reuse.tokens, reuse.bound], [0, 'no-marker']);
  });
  it('Anthropic reuses up to the last marker before the difference', () => {
    const blocks = [block(2000, 'system', { endsMessage: false, marker }), block(5000, 'system', { marker }), block(5200, 'user', { marker })];
    assert.equal(tokens('anthropic', layout(5100, blocks), 'claude-sonnet-4-5'), 5000);
    assert.equal(tokens('anthropic', layout(4999, blocks), 'claude-sonnet-4-5'), 2000);
    assert.equal(tokens('anthropic', layout(5200, blocks), 'claude-sonnet-4-5'), 5200);
  });
  it('Anthropic drops a marker under the minimum of the model', () => {
    const blocks = [block(2000, 'system', { marker }), block(5200, 'user')];
    const of = (model: string) => reusable(rule('anthropic'), model, layout(5000, blocks));
    assert.equal(of('claude-opus-4-8').tokens, 2000);
    assert.deepEqual([of('claude-haiku-4-5-20251001').tokens, of('claude-haiku-4-5-20251001').bound], [0, 'minimum']);
  });
  it('Anthropic refuses a fifth marker', () => {
    const blocks = [1, 2, 3, 4, 5].map((n) => block(2000 * n, 'user', { marker }));
    assert.equal(reusable(rule('anthropic'), 'claude-sonnet-5', layout(9000, blocks)).bound, 'too-many-markers');
  });
  it('Anthropic looks back 20 blocks from a marker, the marked one counted', () => {
    const conversation = (added: number) => {
      const blocks = Array.from({ length: 3 + added }, (_, i) => block(2000 + 100 * i, i % 2 === 0 ? 'user' : 'assistant'));
      const last = blocks.length - 1;
      return layout(2200, blocks.map((b, i) => (i === last ? { ...b, marker } : b)), { written: [2200] });
    };
    assert.equal(tokens('anthropic', conversation(19), 'claude-sonnet-5'), 2200);
    assert.equal(tokens('anthropic', conversation(20), 'claude-sonnet-5'), 0);
  });
  it('Anthropic with one automatic marker reuses the turn before', () => {
    const blocks = [block(2000, 'system'), block(2100, 'user'), block(2200, 'assistant'), block(2300, 'user')];
    assert.equal(tokens('anthropic', layout(2190, blocks, { automatic: true, written: [2100] }), 'claude-sonnet-5'), 2100);
  });
  it('Anthropic assumes a marker at the last message end only where the host sets it by itself', () => {
    const of = (hostMarks: boolean) => reusable(rule('anthropic'), 'claude-sonnet-5', layout(5100, [block(5000, 'system'), block(5200, 'user')], { hostMarks }));
    assert.deepEqual([of(true).tokens, of(true).bound], [5000, 'marker-assumed']);
    assert.deepEqual([of(false).tokens, of(false).bound], [0, 'no-marker']);
    assert.equal(tokens('anthropic', layout(5100, [block(5200, 'user')], { hostMarks: true }), 'claude-sonnet-5'), 0);
  });
  it('Bedrock has its own minimums', () => {
    const blocks = [block(1010, 'system', { marker }), block(5200, 'user')];
    assert.equal(tokens('bedrock', layout(5000, blocks), 'amazon.nova-pro-v1:0'), 1010);
    assert.equal(tokens('bedrock', layout(5000, blocks), 'us.anthropic.claude-sonnet-4-5-20250929-v1:0'), 0);
  });
  it('Qwen is implicit from 256 on without a marker, explicit with one, never both', () => {
    assert.equal(tokens('qwen', one(300, 4000)), 300);
    assert.equal(tokens('qwen', layout(3000, [block(2000, 'system', { marker }), block(4000, 'user')])), 2000);
    assert.equal(tokens('qwen', layout(3000, [block(500, 'system', { marker }), block(4000, 'user')])), 0);
  });
});

describe('cache rules: units', () => {
  const pair = (earlier: number) => one(6400, 6600, { earlier, written: [6590] });
  it('DeepSeek misses A+C after A+B and hits A with A+D', () => {
    assert.equal(reusable(rule('deepseek'), 'deepseek-chat', pair(1)).tokens, 0);
    assert.equal(reusable(rule('deepseek'), 'deepseek-chat', pair(2)).tokens, 6400);
  });
  it('DeepSeek serves a conversation from the end of the request before', () => {
    const blocks = [block(1000, 'system'), block(1280, 'user'), block(1400, 'assistant'), block(1500, 'user')];
    assert.equal(tokens('deepseek', layout(1399, blocks, { earlier: 1, written: [1280] })), 1280);
  });
  it('DeepSeek floors to its units', () => {
    assert.equal(tokens('deepseek', one(6400 + 63, 9000)), 6400);
    assert.equal(tokens('deepseek', one(63, 9000)), 0);
  });
});

describe('cache rules: properties', () => {
  const layouts = fc
    .record({
      sizes: fc.array(fc.record({ size: fc.integer({ min: 0, max: 3000 }), role: fc.constantFrom('system', 'user', 'assistant', 'tool'), ends: fc.boolean(), marked: fc.boolean() }), { minLength: 1, maxLength: 30 }),
      share: fc.double({ min: 0, max: 1, noNaN: true }),
      hostMarks: fc.boolean(),
      automatic: fc.boolean(),
      earlier: fc.integer({ min: 0, max: 3 }),
    })
    .map(({ sizes, share, hostMarks, automatic, earlier }): Layout => {
      let at = 0;
      const blocks = sizes.map((s, i) => block((at += s.size), s.role as LayoutBlock['role'], { endsMessage: s.ends || i === sizes.length - 1, marker: s.marked ? marker : null }));
      return { total: at, common: Math.floor(at * share), blocks, hostMarks, automatic, earlier };
    });
  it('reusable ≤ common ≤ total, for every rule', () => {
    fc.assert(
      fc.property(layouts, fc.constantFrom(...ids), (l, id) => {
        const reuse = reusable(rule(id), null, l);
        assert.ok(reuse.tokens >= 0 && reuse.tokens <= l.common && l.common <= l.total, `${id} ${JSON.stringify(reuse)}`);
        assert.ok(reuse.why.length > 0);
      }),
    );
  });
  it('a later first difference never lowers what is reusable', () => {
    fc.assert(
      fc.property(layouts, fc.constantFrom(...ids), fc.double({ min: 0, max: 1, noNaN: true }), (l, id, share) => {
        // A wholly identical request computes its last token again, so it is compared apart.
        const later = Math.min(l.total - 1, l.common + Math.floor((l.total - l.common) * share));
        fc.pre(later >= l.common);
        assert.ok(tokens(id, { ...l, common: later }) >= tokens(id, l));
      }),
    );
  });
});

describe('cache rules: choice', () => {
  const choose = (target: Parameters<typeof ruleFor>[0]) => ruleFor(target, book).rule.id;
  it('by hand, then server, host, dialect, model', () => {
    assert.equal(choose({ cache: 'deepseek', server: 'vLLM 0.11' }), 'deepseek');
    assert.equal(choose({ cache: 'auto', server: 'vLLM 0.11', url: 'https://api.openai.com/v1' }), 'vllm');
    assert.equal(choose({ server: 'llama.cpp b7000' }), 'llamacpp');
    assert.equal(choose({ url: 'https://api.openai.com/v1', model: 'gpt-4o-mini' }), 'openai');
    assert.equal(choose({ url: 'https://api.openai.com/v1', model: 'gpt-5-2025-08-07' }), 'openai');
    assert.equal(choose({ url: 'https://api.openai.com/v1', model: 'gpt-5.6' }), 'openai-5.6');
    assert.equal(choose({ url: 'https://api.openai.com/v1', model: 'gpt-6' }), 'openai-5.6');
    assert.equal(choose({ url: 'https://my.openai.azure.com/', model: 'gpt-4o' }), 'azure');
    assert.equal(choose({ url: 'https://bedrock-runtime.us-east-1.amazonaws.com', model: 'x' }), 'bedrock');
    assert.equal(choose({ dialect: 'ollama', url: 'http://localhost:11434' }), 'ollama');
    assert.equal(choose({ model: 'claude-sonnet-5' }), 'anthropic');
    assert.equal(choose({ dialect: 'openai-chat', url: 'http://localhost:8000/v1', model: 'gpt-oss-20b' }), 'vllm');
    assert.equal(ruleFor({}, book).how, 'assumed');
  });
  it('an unknown model is told', () => {
    assert.equal(ruleFor({ cache: 'anthropic', model: 'claude-sonnet-5' }, book).modelKnown, true);
    assert.equal(ruleFor({ cache: 'anthropic', model: 'llama-9' }, book).modelKnown, false);
    assert.equal(ruleFor({ cache: 'anthropic' }, book).modelKnown, false);
    assert.equal(ruleFor({ cache: 'vllm' }, book).modelKnown, true);
    assert.equal(knowsModel(rule('azure'), 'gpt-5.6'), false);
  });
  it('OpenRouter follows the upstream of the model under its own id', () => {
    const choice = ruleFor({ url: 'https://openrouter.ai/api/v1', model: 'anthropic/claude-sonnet-4.5' }, book);
    assert.deepEqual([choice.rule.id, choice.rule.family, choice.modelKnown], ['openrouter', 'breakpoints', true]);
    assert.equal(ruleFor({ cache: 'openrouter', model: 'openai/gpt-4o' }, book).rule.family, 'longest-prefix');
    assert.equal(ruleFor({ cache: 'openrouter', model: 'openai/gpt-5.6' }, book).rule.family, 'breakpoints');
  });
  it('Anthropic minimums follow the model in any spelling', () => {
    const of = (model: string) => minimumOf(rule('anthropic'), model).tokens;
    assert.deepEqual(['claude-opus-5', 'anthropic/claude-sonnet-5.5', 'claude-sonnet-5', 'claude-opus-4-8', 'claude-sonnet-4-20250514', 'claude-opus-4-1', 'claude-opus-4-7', 'claude-3-5-haiku-latest', 'claude-opus-4.6', 'claude-haiku-4-5'].map(of), [512, 512, 1024, 1024, 1024, 1024, 2048, 2048, 4096, 4096]);
  });
  it('prices', () => {
    assert.equal(readFactor(rule('openai'), 'gpt-4.1-mini'), 0.25);
    assert.equal(readFactor(rule('anthropic'), 'claude-sonnet-5-5'), 0.05);
    assert.equal(readFactor(rule('vllm'), null), null);
    assert.equal(writeFactor(rule('anthropic'), null), 1.25);
    assert.equal(writeFactor(rule('anthropic'), '1h'), 2);
    assert.equal(writeFactor(rule('openai'), null), 1);
  });
});

describe('cache rules: age and overrides', () => {
  it('is stale after 180 days of the clock passed in', () => {
    const r = { ...rule('vllm'), asOf: '2026-06-01' };
    assert.deepEqual([ageOf(r, '2026-11-28').days, ageOf(r, '2026-11-28').stale], [180, false]);
    assert.equal(ageOf(r, '2026-11-29').stale, true);
    assert.equal(ageOf(r, '2026-11-29').text, 'rule as of 2026-06-01');
    assert.equal(ageOf(rule('tgi'), '2026-11-30').stale, true);
  });
  it('merges overrides deeply and dates them', () => {
    const own = loadRules({ vllm: { granularity: { tokens: 32 } } }, '2027-03-01');
    const vllm = own.rules.get('vllm');
    assert.ok(vllm);
    assert.equal(blockOf(vllm, null).tokens, 32);
    assert.equal(blockOf(vllm, 'qwen3.5').tokens, 528);
    assert.deepEqual([vllm.asOf, vllm.source], ['2027-03-01', ['your settings']]);
    assert.equal(reusable(vllm, null, one(3125, 4000)).tokens, 3104);
    assert.equal(own.rules.get('sglang')?.asOf, rule('sglang').asOf);
  });
  it('takes a new rule that is whole and names what is wrong with others', () => {
    const own = loadRules(
      {
        house: { name: 'House gateway', family: 'longest-prefix', confidence: 'first-party', granularity: { tokens: 8 }, order: ['tools', 'system', 'messages'], usage: [], notes: '' },
        half: { name: 'Half' },
        openai: { minimum: { tokens: 'many' } },
        anthropic: { models: '(' },
        groq: 3,
      },
      '2026-11-30',
    );
    assert.equal(own.rules.get('house')?.granularity.tokens, 8);
    assert.equal(own.problems.length, 4);
    assert.match(own.problems.join('\n'), /"openai".*minimum\.tokens/);
    assert.equal(own.rules.get('openai')?.minimum.tokens, 1024);
    assert.deepEqual(loadRules('x').problems.length, 1);
  });
});

describe('cache rules: what a file is written for', () => {
  const of = (text: string, name: string, target: RuleTarget = {}) => {
    const { rule: chosen, how } = ruleForFile(target, promptFileOf(text, name, {}), book);
    return [chosen.id, how];
  };
  const message = [{ role: 'user', content: 'Hi' }];
  const rows: readonly (readonly [string, object, readonly [string, string]])[] = [
    ['Anthropic by its model', { model: 'claude-sonnet-5', system: 'x', messages: message }, ['anthropic', 'model']],
    ['Anthropic by its shape', { system: 'x', messages: message }, ['anthropic', 'request']],
    ['Gemini by its shape', { contents: [{ role: 'user', parts: [{ text: 'Hi' }] }] }, ['gemini', 'request']],
    ['Bedrock by its shape', { messages: [{ role: 'user', content: [{ text: 'Hi' }] }], inferenceConfig: {} }, ['bedrock', 'request']],
    ['OpenAI by an older model', { model: 'gpt-4o', messages: message }, ['openai', 'model']],
    ['OpenAI by a newer model', { model: 'gpt-5.6', input: 'Hi' }, ['openai-5.6', 'model']],
    ['nothing by a model of nobody', { model: 'llama-3.1-8b', messages: message }, ['vllm', 'assumed']],
  ];
  before(async () => await prepare(['r.json']));
  for (const [name, body, expected] of rows) it(name, () => assert.deepEqual(of(JSON.stringify(body), 'r.json'), expected));
  it('an endpoint decides before the file', () => {
    const anthropic = JSON.stringify({ model: 'claude-sonnet-5', system: 'x', messages: message });
    assert.deepEqual(of(anthropic, 'r.json', { url: 'http://127.0.0.1:8000/v1', model: 'tiny' }), ['vllm', 'assumed']);
    assert.deepEqual(of(anthropic, 'r.json', { cache: 'sglang' }), ['sglang', 'chosen']);
  });
});
