import assert from 'node:assert/strict';
import fc from 'fast-check';
import { analysePrefix, lossOf, placeSentence, scopesSentence, textsToCount, type PrefixOptions, type PrefixReport } from '../../../src/prompt/prefix';
import { percentOf } from '../../../src/prompt/percent';
import { loadRules } from '../../../src/prompt/rules';
import { applyEdits, markerFixes } from '../../../src/prompt/fixes';
import { bytesCounter } from '../../../src/prompt/tokens';
import { o200kCounter } from '../../../src/prompt/tokenizer';
import { analysed } from './analysed';
import { build, wordCounter, words, type Built } from './pieces';

const book = loadRules();
const rule = (id: string) => {
  const found = book.rules.get(id);
  assert.ok(found);
  return found;
};
const analyse = (built: Built, options: Partial<PrefixOptions> & { readonly id?: string } = {}): PrefixReport =>
  analysePrefix(built.prompt, { rule: rule(options.id ?? 'vllm'), model: null, scope: 'user', counter: wordCounter, format: 'jinja', today: '2026-11-30', pieces: built.pieces, text: built.text, ...options });

describe('prefix: one changing value', () => {
  const built = build([{ role: 'system', text: `${words(3126)} {{current_time:minute}} ${words(874)}` }]);
  it('counts common and reusable tokens and says where they end', () => {
    const report = analyse(built);
    assert.deepEqual([report.total, report.common, report.reuse.tokens, report.reuse.bound], [4000, 3126, 3120, 'block']);
    assert.equal(report.end?.text, '{{current_time:minute}}');
    assert.equal(report.sentence, 'Cache: up to 3,120 of 4,000 tokens (78 %) on vLLM · ends at line 1: {{current_time:minute}}');
  });
  it('cuts back the word that runs into the value', () => {
    assert.equal(analyse(build([{ role: 'system', text: `${words(100)}-{{id:request}} x` }])).common, 100);
    assert.equal(analyse(build([{ role: 'system', text: `${words(99)} tail{{id:request}} x` }])).common, 99);
  });
  it('does not cut at a message border', () => {
    const report = analyse(build([{ role: 'system', text: words(320) }, { role: 'user', text: '{{question:request}}' }]));
    assert.deepEqual([report.total, report.common, report.reuse.tokens], [320, 320, 320]);
  });
  it('counts the static text behind as lost, whatever changes later', () => {
    const report = analyse(build([{ role: 'system', text: `a {{now:minute}} ${words(300)} {{id:request}} ${words(50)}` }, { role: 'user', text: `${words(20)} {{question:request}}` }]));
    assert.deepEqual(
      report.places.map((p) => [p.text, p.lostTokens, p.matters]),
      [
        ['{{now:minute}}', 370, true],
        ['{{id:request}}', 70, false],
        ['{{question:request}}', 0, false],
      ],
    );
    assert.equal(analyse(build([{ role: 'user', text: `{{id:request}} ${words(256)}` }])).places[0]?.matters, true);
    assert.equal(analyse(build([{ role: 'user', text: `{{id:request}} ${words(255)}` }])).places[0]?.matters, false);
    assert.equal(analyse(build([{ role: 'user', text: `{{id:request}} ${words(255)}` }]), { minLostTokens: 255 }).places[0]?.matters, true);
  });
});

describe('prefix: nothing changes', () => {
  it('is quiet', () => {
    const report = analyse(build([{ role: 'user', text: words(4000) }]), { format: 'markdown' });
    assert.deepEqual([report.sentence, report.allStatic, report.common, report.reuse.tokens], ['4,000 tokens, all static', true, 4000, 3984]);
    assert.equal(report.end, null);
  });
  it('says about with an estimate', () => {
    assert.equal(analyse(build([{ role: 'user', text: 'abcd'.repeat(10) }]), { counter: bytesCounter }).sentence, 'about 10 tokens, all static');
  });
  it('names the unknown values that must stay', () => {
    const report = analyse(build([{ role: 'system', text: `${words(100)} {{tone:unknown}} ${words(60)}` }]));
    assert.equal(report.end, null);
    assert.deepEqual(report.whileKept, ['tone']);
    assert.equal(report.sentence, 'Cache: up to about 144 of 160 tokens (90 %) on vLLM · while `tone` keeps its value');
  });
});

describe('prefix: nothing changes, but the rule wants a marker or a minimum', () => {
  const request = (tokens: number, more: Record<string, unknown> = {}) => JSON.stringify({ model: 'claude-sonnet-5', system: words(tokens), messages: [{ role: 'user', content: words(50) }], ...more });
  const marked = (tokens: number, after: number) => request(0, { system: [{ type: 'text', text: words(tokens), cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content: words(after) }] });
  const baml = `function F() -> string {\n client C\n prompt #"\n{{ _.role("system") }}\n${words(1500)}\n{{ _.role("user") }}\nGo on.\n"#\n}\n`;
  const rows: readonly (readonly [string, string, string, string])[] = [
    ['r.json', 'anthropic', request(1500), '1,550 tokens, all static, but nothing is cached on Anthropic without a cache_control marker: add one (up to 1,500 tokens)'],
    ['r.json', 'anthropic', request(500), '550 tokens, all static, but under the minimum of about 1,024 on Anthropic: not cached'],
    ['r.json', 'anthropic', marked(1500, 50), '1,550 tokens, all static · up to 1,500 cached on Anthropic'],
    ['r.json', 'anthropic', marked(500, 50), '550 tokens, all static, but not cached on Anthropic: the cache_control marker comes before the minimum of 1,024 tokens'],
    ['r.json', 'anthropic', request(1500, { cache_control: { type: 'ephemeral' } }), '1,550 tokens, all static · up to 1,550 cached on Anthropic'],
    ['r.json', 'bedrock', request(1500), '1,550 tokens, all static, but nothing is cached on AWS Bedrock without a cachePoint marker: add one (up to 1,500 tokens)'],
    ['r.json', 'qwen', request(1500), '1,550 tokens, all static'],
    ['r.json', 'openai', request(500), '550 tokens, all static, but under the minimum of 1,024 on OpenAI (before GPT-5.6): not cached'],
    ['r.json', 'vllm', request(1500), '1,550 tokens, all static'],
    ['f.baml', 'anthropic', baml, '1,502 tokens, all static, but nothing is cached on Anthropic without a cache_control marker: add one (up to 1,500 tokens)'],
    ['a.prompty', 'anthropic', `---\nname: x\n---\nsystem:\n${words(1500)}\n`, '1,500 tokens, all static, but nothing is cached on Anthropic without a cache_control marker: up to 1,500 tokens if the application that sends it sets one'],
    ['a.txt', 'anthropic', words(1500), '1,500 tokens, all static, but nothing is cached on Anthropic without a cache_control marker: up to 1,500 tokens if the application that sends it sets one'],
    ['a.txt', 'anthropic', words(500), '500 tokens, all static'],
    ['SKILL.md', 'anthropic', words(1500), '1,500 tokens, all static'],
    ['CLAUDE.md', 'anthropic', words(100), '100 tokens, all static'],
  ];
  for (const [file, id, text, sentence] of rows) it(`${file} on ${id}: ${sentence}`, () => assert.equal(analysed(text, file, id, { model: null }).report.sentence, sentence));

  it('a template says what its application could do about it, or why a marker would not help', () => {
    const template = (system: string) => `---\nname: x\n---\nsystem:\n${system}\nuser:\n{{question}}\n`;
    const of = (text: string, name: string) => analysed(text, name, 'anthropic', { model: null }).report;
    const report = of(template(words(1500)), 'a.prompty');
    assert.equal(report.sentence, 'Cache: nothing of about 1,500 tokens + hidden tokens on Anthropic · ends at line 7: {{question}} · no cache_control marker, so nothing is cached (up to 1,500 if the application that sends it sets one)');
    assert.deepEqual([report.reuse.tokens, report.common], [0, 1500]);
    assert.match(of(template(words(900)), 'a.prompty').sentence, /· the last message end before the first difference is at 900 tokens, under the minimum of 1,024$/);
    assert.match(of(`${words(1500)} {{ question }}`, 'x_prompt.jinja').sentence, /· no message ends before the first difference, so no cache_control marker can stand there$/);
  });

  it('the same in a template whose marker is missing says what one would give', () => {
    const text = baml.replace('F()', 'F(question: string)').replace('Go on.', '{{ question }}');
    assert.equal(analysed(text, 'f.baml', 'anthropic', { model: null }).report.sentence, 'Cache: nothing of about 1,500 tokens + hidden tokens on Anthropic · ends at line 7: {{ question }} · no cache_control marker, so nothing is cached (up to 1,500 with one)');
  });
  it('the quick fix gives what the lens said', () => {
    for (const [file, id, text] of [['r.json', 'anthropic', request(1500)], ['r.json', 'anthropic', JSON.stringify({ model: 'claude-sonnet-5', messages: [{ role: 'user', content: words(1500) }] })], ['f.baml', 'anthropic', baml]] as const) {
      const before = analysed(text, file, id, { model: null });
      const [fix] = markerFixes(before);
      assert.ok(fix !== undefined && 'edits' in fix, file);
      const after = analysed(applyEdits(text, fix.edits), file, id, { model: null });
      assert.deepEqual([after.report.sameVariant.reuse.tokens, after.report.uncached], [before.report.withMarker, null]);
    }
  });
});

describe('prefix: a request as its server counted it', () => {
  const changing = `---\nname: x\n---\nsystem:\n${words(400)}\nuser:\n{{question}}\n`;
  it('its tokens are the numbers, up to the place that changes', () => {
    const { report } = analysed(changing, 'a.prompty', 'vllm', { sent: { total: 430, common: 417, marks: null } });
    assert.equal(report.sentence, 'Cache: up to 416 of 430 tokens (97 %) on vLLM · ends at line 7: {{question}}');
    assert.deepEqual([report.total, report.common, report.reuse.tokens, report.qualifiers.textTokens], [430, 417, 416, 400]);
  });
  it('without token ids the text is scaled, and never more than was sent', () => {
    const { report } = analysed(changing, 'a.prompty', 'llamacpp', { sent: { total: 430, common: null, marks: null } });
    assert.ok(report.common >= 400 && report.common <= 430 && report.reuse.tokens <= report.common, String(report.common));
  });
  it('of a prompt in which nothing changes all is common', () => {
    const { report } = analysed(`---\nname: x\n---\nsystem:\n${words(400)}\n`, 'a.prompty', 'vllm', { sent: { total: 417, common: null, marks: null } });
    assert.equal(report.sentence, '400 tokens + 17 hidden, all static');
    assert.deepEqual([report.total, report.reuse.tokens], [417, 416]);
  });
  it('tools that the server writes shorter than the file are not added up', () => {
    const body = JSON.stringify({ model: 'llama', tools: [{ type: 'function', function: { name: 'find', description: words(900), parameters: {} } }], messages: [{ role: 'user', content: words(300) }] });
    const guessed = analysed(body, 'r.json', 'vllm').report;
    assert.match(guessed.sentence, /^about 1,2\d\d tokens, all static$/, 'nobody knows how a server writes them');
    assert.equal(analysed(body, 'r.json', 'vllm', { sent: { total: 1190, common: null, marks: null } }).report.sentence, '1,190 tokens, all static');
  });
  it('markers are where the provider counted them', () => {
    const body = JSON.stringify({ model: 'claude-sonnet-5', system: [{ type: 'text', text: words(1015), cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content: words(20) }] });
    const of = (more: object) => analysed(body, 'r.json', 'anthropic', more).report;
    assert.match(of({}).sentence, /under the minimum|before the minimum/);
    const { sentence, reuse, common } = of({ sent: { total: 1052, common: null, marks: [1030] } });
    assert.equal(sentence, '1,035 tokens + 17 hidden, all static · up to 1,030 cached on Anthropic');
    assert.deepEqual([reuse.tokens, common], [1030, 1052]);
  });
  it('is never more than it was, whatever a server says', () => {
    const counts = fc.nat({ max: 3000 });
    fc.assert(
      fc.property(counts, fc.option(counts), fc.constantFrom('vllm', 'llamacpp', 'openai-5.6', 'deepseek', 'anthropic'), (total, common, id) => {
        const { report } = analysed(changing, 'a.prompty', id, { sent: { total, common, marks: null } });
        for (const one of [report, report.sameVariant, ...Object.values(report.scopes)]) assert.ok(one.reuse.tokens >= 0 && one.reuse.tokens <= one.common && one.common <= one.total, JSON.stringify([one.total, one.common, one.reuse]));
      }),
    );
  });
});

describe('prefix: scopes', () => {
  const built = build([{ role: 'system', text: `${words(1000)} . {{user_name:session}} ${words(600)} . {{date:day}} ${words(400)}` }]);
  it('a session value breaks only sharing between users', () => {
    const report = analyse(built);
    assert.equal(report.scopes.everyone.common, 1001);
    assert.equal(report.scopes.user.common, 1602);
    assert.equal(report.scopes.conversation.common, 1602);
    assert.equal(report.end?.text, '{{date:day}}');
    assert.equal(analyse(built, { scope: 'everyone' }).end?.text, '{{user_name:session}}');
    assert.equal(scopesSentence(report), '992 of 2,002 tokens shared by all users; 1,600 within one user.');
    assert.equal(report.places[0]?.changes, false);
  });
});

describe('prefix: conditions and loops', () => {
  it('a condition makes variants and breaks none', () => {
    const built = build([{ role: 'system', text: `${words(64)} . [if plan:request]${words(30, 'a')}[else]${words(50, 'b')}[end] ${words(500)} . {{now:minute}} x` }]);
    const report = analyse(built);
    assert.equal(report.variants, 2);
    assert.deepEqual([report.common, report.reuse.tokens, report.end?.kind], [65, 64, 'variant']);
    assert.equal(report.sameVariant.common, 64 + 1 + 50 + 500 + 1);
    assert.equal(report.sameVariant.end?.text, '{{now:minute}}');
    assert.equal(report.places.find((p) => p.kind === 'variant')?.lostTokens, 0);
    assert.equal(report.sentence, 'Cache: up to 608 of 617 tokens (99 %) on vLLM · 2 variants · ends at line 1: {{now:minute}}');
  });
  it('a condition without else is one more variant, a deployment flag is none, and they multiply', () => {
    const of = (text: string) => analyse(build([{ role: 'system', text }])).variants;
    assert.equal(of('[if a:request]x[end]'), 2);
    assert.equal(of('[if a:request]x[end] [if b:unknown]y[else]z[end]'), 4);
    assert.equal(of('[if a:deploy]x[end]'), 1);
    assert.equal(of('[if a:session]x[end]'), 1);
    assert.equal(of('plain'), 1);
  });
  it('goes through the branch that holds the first change', () => {
    const built = build([{ role: 'system', text: `${words(10)} . [if debug:deploy]b0 . {{now:minute}} b1[else]${words(100, 'a')}[end] ${words(300)}` }]);
    const report = analyse(built);
    assert.deepEqual([report.total, report.common, report.end?.text], [10 + 1 + 3 + 300, 13, '{{now:minute}}']);
    assert.equal(report.places[0]?.lostTokens, 301);
  });
  it('a loop over changing items breaks at its tag, and its body is not counted as lost', () => {
    const report = analyse(build([{ role: 'system', text: `${words(32)} . [for d:request]${words(400, 'b')}[end] ${words(300)}` }]));
    assert.deepEqual([report.end?.kind, report.common, report.end?.lostTokens], ['loop', 33, 300]);
  });
  it('the conversation itself is no loss', () => {
    const report = analyse(build([{ role: 'user', text: `{{history:request}} ${words(500)}` }]));
    assert.deepEqual([report.places[0]?.kind, report.places[0]?.lostTokens, report.places[0]?.matters], ['history', 0, false]);
  });
});

describe('prefix: rules of each family on the same prompt', () => {
  const oneMessage = build([{ role: 'user', text: `${words(5000)} . {{question:request}}` }]);
  const split = build([{ role: 'system', text: words(5000) }, { role: 'user', text: '{{question:request}}' }]);
  const tokens = (built: Built, id: string, more: Partial<PrefixOptions> = {}) => analyse(built, { id, ...more }).reuse.tokens;
  it('a static block before a variable in the same message', () => {
    assert.deepEqual(['vllm', 'sglang', 'openai', 'openai-5.6', 'anthropic', 'deepseek'].map((id) => tokens(oneMessage, id)), [4992, 5001, 4992, 0, 0, 4992]);
    assert.match(analyse(oneMessage, { id: 'openai-5.6' }).sentence, /^Cache: nothing of 5,001 tokens \+ hidden tokens on OpenAI \(GPT-5\.6 and later\) · ends at line 1: \{\{question:request\}\} · no message ends before the first difference/);
  });
  it('the same block as a message of its own', () => {
    assert.deepEqual(['vllm', 'sglang', 'openai', 'openai-5.6', 'anthropic', 'deepseek'].map((id) => tokens(split, id)), [4992, 5000, 4992, 5000, 0, 4992]);
    assert.equal(analyse(split, { id: 'anthropic' }).withMarker, 5000, 'no template writes a marker, but the application that sends it may');
    assert.equal(tokens(split, 'anthropic', { format: 'claude-markdown' }), 5000, 'an assistant sets its markers by itself');
  });
  it('markers count where the format has them', () => {
    const marked = build([{ role: 'system', text: `${words(2000)}[mark]` }, { role: 'user', text: `${words(100)} {{question:request}}` }]);
    assert.equal(tokens(marked, 'anthropic', { format: 'baml', model: 'claude-sonnet-5' }), 2000);
    assert.equal(tokens(split, 'anthropic', { format: 'baml' }), 0);
  });
  it('a changing value that ends the request is not part of the prefix', () => {
    assert.equal(tokens(build([{ role: 'user', text: words(5000) }, { role: 'user', text: '{{q:request}}' }]), 'openai-5.6'), 5000);
    assert.equal(tokens(build([{ role: 'user', text: '{{q:request}}' }]), 'openai-5.6'), 0);
  });
  it('puts parts in the order of the rule', () => {
    const built = build([{ role: 'system', text: `${words(100)} . {{now:minute}}` }, { role: 'system', slot: 'tools', text: words(2000) }]);
    assert.equal(analyse(built).common, 2101);
    assert.equal(analyse(built, { id: 'gemini' }).common, 101);
    assert.equal(built.pieces[analyse(built).end?.piece ?? -1]?.kind, 'value');
  });
  it('tells an old rule and an unknown model', () => {
    assert.match(analyse(split, { id: 'tgi' }).sentence, /rule as of 2024-12-31$/);
    const unknown = analyse(split, { id: 'anthropic', model: 'llama-9' });
    assert.match(unknown.sentence, /rule as of 2026-10-07, which does not name llama-9$/);
    assert.deepEqual([unknown.ruleUnsure, analyse(split).ruleUnsure, analyse(split, { today: '2027-08-01' }).ruleUnsure], [true, false, true]);
  });
});

describe('prefix: costs and words', () => {
  it('never rounds to all or to nothing', () => {
    assert.deepEqual([[912, 913], [913, 913], [1, 5000], [0, 5000], [0, 0], [500, 1000]].map(([part = 0, whole = 0]) => percentOf(part, whole)), ['99 %', '100 %', '<1 %', '0 %', '100 %', '50 %']);
  });

  const place = analyse(build([{ role: 'system', text: `{{current_time:minute}} ${words(880)}` }])).places[0];
  it('ms from the prefill rate, money from the price', () => {
    assert.ok(place);
    const loss = lossOf(880, { prefillRate: 8000, price: { currency: 'USD', inputPerMillion: 3, cachedInputPerMillion: null }, rule: rule('anthropic'), model: null });
    assert.equal(loss.ms, 110);
    assert.ok(Math.abs((loss.money?.value ?? 0) - (880 * 2.7) / 1e6) < 1e-12);
    assert.equal(placeSentence(place, loss), '{{current_time:minute}} changes every minute or faster: 880 static tokens behind it are computed again (about 110 ms, 0.0024 USD per request)');
    assert.equal(placeSentence(place, { ms: null, money: null }), '{{current_time:minute}} changes every minute or faster: 880 static tokens behind it are computed again');
  });
  it('unknown prices stay unknown', () => {
    assert.deepEqual(lossOf(10, { prefillRate: null, price: { currency: 'USD', inputPerMillion: 3, cachedInputPerMillion: null }, rule: rule('vllm'), model: null }), { ms: null, money: null });
    assert.equal(lossOf(1e6, { prefillRate: null, price: { currency: 'USD', inputPerMillion: 3, cachedInputPerMillion: 1 }, rule: rule('vllm'), model: null }).money?.value, 2);
  });
  it('lists the texts to count beforehand', () => {
    const built = build([{ role: 'system', text: `one two three {{now:minute}} four` }]);
    assert.deepEqual(textsToCount(built.prompt, { rule: rule('vllm'), model: null, scope: 'user', pieces: built.pieces, text: built.text, format: 'jinja', today: '2026-11-30' }), ['one two three ', ' four', 'one two three']);
  });
});

describe('prefix: properties', () => {
  const classes = fc.constantFrom('constant', 'deploy', 'session', 'day', 'minute', 'request', 'unknown');
  const chunk = fc.oneof(
    fc.string({ maxLength: 40 }).map((s) => s.replace(/[[\]{}]/g, '')),
    classes.map((c) => `{{x:${c}}}`),
    fc.tuple(classes, classes).map(([a, b]) => `[if c:${a}]yes {{y:${b}}}[else]no way[end]`),
    fc.constant('[mark]'),
    fc.tuple(classes, fc.integer({ min: 1, max: 60 })).map(([c, n]) => `[for d:${c}]${words(n)}[end]`),
  );
  const prompts = fc.array(fc.record({ role: fc.constantFrom('system' as const, 'user' as const, 'assistant' as const), text: fc.array(chunk, { maxLength: 8 }).map((c) => c.join(' ')) }), { minLength: 1, maxLength: 4 });
  const options = fc.record({ id: fc.constantFrom(...book.rules.keys()), scope: fc.constantFrom('conversation' as const, 'user' as const, 'everyone' as const), format: fc.constantFrom('jinja' as const, 'baml' as const) });
  it('reusable ≤ common ≤ total, lost ≤ total, in every scope', () => {
    fc.assert(
      fc.property(prompts, options, (parts, more) => {
        const report = analyse(build(parts), { ...more, counter: o200kCounter(true) });
        for (const n of [report, report.sameVariant, ...Object.values(report.scopes)]) assert.ok(n.reuse.tokens >= 0 && n.reuse.tokens <= n.common && n.common <= n.total, JSON.stringify([n.total, n.common, n.reuse]));
        assert.ok(report.common <= report.sameVariant.common || report.end?.kind === 'variant' || report.sameVariant.end !== report.end);
        const rank = (end: typeof report.end) => (end === null ? Infinity : report.places.findIndex((p) => p.piece === end.piece));
        assert.ok(rank(report.scopes.everyone.end) <= rank(report.scopes.user.end));
      }),
    );
  });
  it('what is lost behind a place is the static text of one path through the conditions', () => {
    const { text } = fc.letrec<{ text: string; item: string }>((tie) => ({
      item: fc.oneof({ depthSize: 'small' }, fc.integer({ min: 1, max: 9 }).map((n) => words(n)), fc.constant('{{now:minute}}'), fc.tuple(tie('text'), tie('text')).map(([a, b]) => `[if c:request] ${a} [else] ${b} [end]`), tie('text').map((a) => `[if d:unknown] ${a} [end]`)),
      text: fc.array(tie('item'), { minLength: 1, maxLength: 4 }).map((items) => items.join(' ')),
    }));
    let nested = 0;
    fc.assert(
      fc.property(fc.array(text, { minLength: 1, maxLength: 3 }), (texts) => {
        const built = build(texts.map((one) => ({ role: 'user' as const, text: one })));
        const size = built.pieces.map((piece) => (piece.kind === 'static' ? wordCounter.count(piece.text) : 0));
        const sums = new Map<number, Map<number, number>>();
        built.pieces.forEach((piece, i) => {
          for (const { control, branch } of piece.branches) {
            const of = sums.get(control) ?? new Map<number, number>();
            sums.set(control, of.set(branch, (of.get(branch) ?? 0) + size[i]!));
          }
        });
        const largest = (control: number) => [...sums.get(control)!].reduce((a, b) => (b[1] > a[1] ? b : a))[0];
        for (const place of analyse(built).places.filter(({ kind }) => kind === 'value')) {
          const own = new Map(built.pieces[place.piece]!.branches.map((step) => [step.control, step.branch]));
          if (own.size > 1) nested += 1;
          const walked = built.pieces.reduce((sum, piece, i) => sum + (i > place.piece && piece.branches.every(({ control, branch }) => (own.get(control) ?? largest(control)) === branch) ? size[i]! : 0), 0);
          assert.equal(place.lostTokens, walked, texts.join(' | '));
        }
      }),
      { numRuns: 300 },
    );
    assert.ok(nested > 20, `${nested} places in nested conditions`);
  });
  it('moving a changing value later never lowers the common prefix', () => {
    fc.assert(
      fc.property(fc.array(fc.string({ minLength: 1, maxLength: 20 }).map((s) => s.replace(/[[\]{}]/g, 'x')), { minLength: 2, maxLength: 12 }), fc.nat(), fc.nat(), (texts, a, b) => {
        const [early, late] = [a % texts.length, b % texts.length].sort((x, y) => x - y) as [number, number];
        const at = (index: number) => build([{ role: 'system', text: [...texts.slice(0, index), '{{now:minute}}', ...texts.slice(index)].join('\n') }]);
        for (const counter of [wordCounter, o200kCounter(true)]) assert.ok(analyse(at(late), { counter }).common >= analyse(at(early), { counter }).common);
      }),
    );
  });
  it('is linear enough for a megabyte with thousands of values', () => {
    const built = build([{ role: 'system', text: Array.from({ length: 5000 }, (_, i) => `${words(25)} {{v${i}:${i % 2 === 0 ? 'request' : 'unknown'}}}\n`).join('') }]);
    const report = analyse(built, { counter: bytesCounter });
    assert.equal(report.places.length, 5000);
  }).timeout(2000);
});
