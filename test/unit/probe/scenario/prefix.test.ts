import assert from 'node:assert/strict';
import { defaultProbeSettings, PlanError } from '../../../../src/probe/plan';
import { prefixProof } from '../../../../src/probe/scenario/prefix';
import { sloPresets } from '../../../../src/report/goodput';
import { makeSample } from '../../report/makeSample';
import type { Sample } from '../../../../src/report/sample';
import type { StepRun } from '../../../../src/probe/scenario/scenario';
import { virtualWorld } from '../../simulator/virtualWorld';
import { plan, prove, rowOf, targetOf, type Server } from './proofs';

const vllm: Server = { flags: '', api: 'openai-chat', server: 'vllm', rule: 'vllm' };

/** The simulator's cache keeps whole blocks of 16 whatever it looks like. */
const simulatedBlock = 16;
const tellers: readonly Server[] = [
  vllm,
  { flags: '--face llamacpp', api: 'openai-chat', server: 'llamacpp', rule: 'llamacpp' },
  { flags: '--face sglang', api: 'openai-chat', server: 'sglang', rule: 'sglang' },
  { flags: '--face ollama', api: 'ollama', server: 'ollama', rule: 'ollama' },
  { flags: '--face openai', api: 'openai-chat', server: 'openai', rule: 'groq' },
];

describe('a proof of the prefix cache', () => {
  for (const server of tellers) {
    for (const file of ['support-fixed.prompty', 'support.prompty', 'summary.prompt.yml', 'support.prompt.md']) {
      it(`${server.rule}, ${file}: served is what was predicted, within one block where the server counts, within a tenth where the text is counted`, async () => {
        const { result, planned } = await prove(server, file);
        for (const kind of ['warm', 'changed'] as const) {
          const { predicted, served, promptTokens, state } = rowOf(result, kind);
          assert.ok(predicted && served && promptTokens !== null, kind);
          const apart = Math.abs(predicted.tokens - served.p50);
          assert.ok(apart <= (predicted.exact ? simulatedBlock : Math.max(32, 0.1 * promptTokens)), `${kind}: predicted ${predicted.tokens}, served ${served.p50}`);
          if (server.rule === 'vllm') assert.equal(predicted.tokens, served.p50, kind);
          if (server.rule === 'vllm' || server.rule === 'llamacpp') assert.equal(planned.countedBy, 'server');
          // A rule of single tokens is a block too generous here.
          if (predicted.exact && result.block === 1) continue;
          assert.equal(state, 'yes', kind);
        }
        assert.equal(rowOf(result, 'cold').served?.max, 0, 'cold is cold');
        assert.equal(result.coldHits?.hits, 0);
      });
    }
  }

  it('begins sooner warm than cold, by about the prefill of what was cached', async () => {
    const { result } = await prove(vllm, 'support-fixed.prompty', { pairs: 6 });
    const [cold, warm] = [rowOf(result, 'cold'), rowOf(result, 'warm')];
    assert.ok(cold.ttft && warm.ttft && result.gain && result.prefillRate !== null);
    assert.ok(cold.ttft.p50 > warm.ttft.p50);
    assert.ok(result.gain.low !== null && result.gain.low > 0);
    const saved = (1000 * warm.served!.p50) / result.prefillRate;
    assert.ok(Math.abs(result.gain.ms - saved) < 0.35 * saved, `${result.gain.ms} ms gained, ${saved} ms of prefill`);
    assert.match(result.verdict, /^As predicted: /);
    assert.deepEqual(result.hitRate, { cached: 6 * (warm.served!.p50 + rowOf(result, 'changed').served!.p50), prompt: 6 * (warm.promptTokens! + rowOf(result, 'changed').promptTokens!) });
  });

  it('takes the server’s counters where the answers do not tell', async () => {
    const { result } = await prove({ ...vllm, flags: '--no-cached-tokens' }, 'support-fixed.prompty');
    const warm = rowOf(result, 'warm');
    assert.equal(warm.served?.from, 'metrics');
    assert.equal(warm.served.p50, warm.predicted?.tokens);
    assert.ok(result.sentences.some((sentence) => sentence.includes('only while nobody else uses the server')));
  });

  it('says that nothing is told when there are no counters either', async () => {
    const { result } = await prove({ flags: '--face tgi --no-cached-tokens', api: 'openai-chat', server: 'tgi', rule: 'tgi' }, 'support-fixed.prompty');
    assert.equal(rowOf(result, 'warm').served, null);
    assert.match(result.verdict, /^Nothing was proven/);
    assert.ok(result.gain && result.gain.ms > 0, 'the latencies still speak');
  });

  it('finds out when cold requests hit the cache all the same', async () => {
    const { result } = await prove(vllm, 'support-fixed.prompty', { ignoreNonce: true });
    assert.ok(result.coldHits && result.coldHits.hits >= 2 && result.coldHits.most > 300);
    assert.ok(result.sentences.some((sentence) => sentence.includes('made cold hit the cache all the same')));
  });

  it('finds a router without affinity, and one with', async () => {
    const apart = (await prove({ ...vllm, flags: '--replicas 3' }, 'support-fixed.prompty', { affinity: 6 })).result;
    assert.equal(apart.affinity?.of, 5);
    assert.ok(apart.affinity.hits < 5);
    assert.match(apart.verdict, /^Less than/);
    const together = (await prove({ ...vllm, flags: '--replicas 3 --router prefix-affinity' }, 'support-fixed.prompty', { affinity: 6 })).result;
    assert.deepEqual([together.affinity?.hits, together.affinity?.of], [5, 5]);
  });

  it('waits as long as it is told before it looks whether an entry has expired', async () => {
    const { result, samples } = await prove(vllm, 'support-fixed.prompty', { pairs: 1, expiry: [30, 600] });
    assert.deepEqual(result.expiry?.map(({ seconds }) => seconds), [30, 600]);
    assert.ok(result.expiry.every(({ cached }) => (cached ?? 0) > 300), 'the simulator evicts, but does not expire');
    const reads = samples.filter(({ labels }) => labels['kind'] === 'expiry-read');
    assert.ok(reads[1]!.start - reads[0]!.start >= 569_000);
  });

  it('prints no interval under six pairs', async () => {
    const { result } = await prove(vllm, 'support-fixed.prompty', { pairs: 1 });
    assert.deepEqual([result.gain?.low, result.gain?.high], [null, null]);
    assert.ok(result.sentences.some((sentence) => sentence.includes('1 pair, n too small for an interval')));
    assert.ok(result.sentences.every((sentence) => !sentence.includes('95 %')));
    assert.deepEqual((await prove(vllm, 'support-fixed.prompty', { pairs: 5 })).result.gain?.low, null);
  });

  it('neither waits for an expiry nor repeats for affinity where nothing is kept, and says so', async () => {
    const unmarked = { name: 'unmarked.json', text: JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 64, system: 'Rule. '.repeat(900), messages: [{ role: 'user', content: 'Hello' }] }) };
    const claude: Server = { flags: '--face anthropic --served-model claude-sonnet-4-5', api: 'anthropic', server: 'anthropic', rule: 'anthropic', model: 'claude-sonnet-4-5' };
    const { result, samples } = await prove(claude, unmarked, { pairs: 1, affinity: 6, expiry: [600] });
    assert.equal(rowOf(result, 'warm').served?.max, 0);
    assert.deepEqual(result.skipped, ['affinity', 'expiry']);
    assert.equal(samples.length, 4, 'the warm-up and one pair');
    assert.ok(result.sentences.some((sentence) => /^Affinity: not tried/.test(sentence)));
    assert.ok(result.sentences.some((sentence) => /^Expiry: not waited for/.test(sentence)));
    // A miss against the rule may be the router's: affinity is what finds that out, and a wait would find nothing.
    const routed = (await prove({ ...vllm, flags: '--replicas 3' }, 'support-fixed.prompty', { pairs: 1, affinity: 6, expiry: [600] })).result;
    if ((rowOf(routed, 'warm').served?.max ?? 0) + (rowOf(routed, 'changed').served?.max ?? 0) === 0) assert.deepEqual(routed.skipped, ['expiry']);
    assert.ok(routed.affinity);
  });

  it('sends a user message where the API wants one and the file has none, and says so', async () => {
    const claude: Server = { flags: '--face anthropic --served-model claude-sonnet-4-5', api: 'anthropic', server: 'anthropic', rule: 'anthropic', model: 'claude-sonnet-4-5' };
    const file = (roles: string) => ({ name: 'triage.prompty', text: `---\nname: triage\n---\nsystem:\n${'Sort the mail. '.repeat(40)}\n${roles}` });
    const users = (sent: readonly string[]) => sent.map((body) => (JSON.parse(body) as { messages: { role: string; content: unknown }[] }).messages.filter(({ role }) => role === 'user').length);
    const alone = await prove(claude, file(''), { pairs: 1 });
    assert.equal(alone.result.failure, null);
    assert.deepEqual([...new Set(users(alone.sent))], [1]);
    const added = alone.sent.filter((body) => body.includes('(no user message in this file)'));
    assert.equal(added.length, 3, 'warm-up, cold and warm; the later request brings a message of its own');
    assert.ok(alone.result.sentences.some((sentence) => sentence.startsWith('The file has no user message')));
    const asked = await prove(claude, file('user:\nWhich one?'), { pairs: 1 });
    assert.ok(asked.sent.every((body) => !body.includes('no user message')));
    assert.deepEqual(asked.planned.notes.filter((note) => note.includes('no user message')), []);
    assert.ok((await prove(vllm, file(''), { pairs: 1 })).sent.every((body) => !body.includes('no user message')), 'an API that takes a system message alone gets it alone');
  });

  it('stops at the first failure that will not pass, with the failure in words and nothing else', async () => {
    const world = virtualWorld([]);
    const planned = await plan(vllm, world, 'support.prompt.md', 6);
    const context = { target: targetOf(vllm), settings: defaultProbeSettings, slo: sloPresets.chat, objective: 'chat' as const, maxModelLen: null };
    const failing = (outcome: Sample['outcome']): StepRun => ({ samples: [makeSample({ role: 'warmup', outcome, deltas: [] })], stopped: null, client: { loopUse: null, clockErrorP99: null, lateP99: null }, texts: new Map(), elapsed: 0 });
    for (const outcome of [{ kind: 'connect', message: 'Nothing listens on localhost:9' }, { kind: 'status', status: 400, message: 'messages: a list that is not empty is expected' }] as const) {
      const steps = prefixProof({ planned, affinity: 0, expiry: [] }).steps(context);
      steps.next();
      const ended = steps.next(failing(outcome));
      assert.ok(ended.done, 'no pair is sent');
      const { verdict, sentences } = ended.value.result;
      assert.ok(verdict.startsWith('Nothing was proven. ') && verdict.includes(outcome.message), verdict);
      assert.ok(sentences.every((sentence) => !/percentile|machine/.test(sentence)));
    }
    const steps = prefixProof({ planned, affinity: 0, expiry: [] }).steps(context);
    steps.next();
    let next = steps.next(failing({ kind: 'timeout-first-token' }));
    assert.ok(!next.done, 'what may pass by itself is tried once more');
    let sent = 0;
    while (!next.done && sent < 20) {
      sent += next.value.plan.shots.length;
      next = steps.next({ ...failing({ kind: 'timeout-first-token' }), samples: next.value.plan.shots.map(({ labels }) => makeSample({ labels, outcome: { kind: 'timeout-first-token' }, deltas: [] })) });
    }
    assert.equal(sent, 3, 'one pair without an answer is enough');
  });

  it('leaves out a repeat whose first request failed: it had nothing to hit', async () => {
    const planned = await plan(vllm, virtualWorld([]), 'support-fixed.prompty', 2);
    const context = { target: targetOf(vllm), settings: defaultProbeSettings, slo: sloPresets.chat, objective: 'chat' as const, maxModelLen: null };
    const steps = prefixProof({ planned, affinity: 0, expiry: [] }).steps(context);
    const answered = (cachedTokens: number, labels: Sample['labels']): Sample => makeSample({ labels, promptTokens: 300, cachedTokens });
    let next = steps.next();
    while (!next.done) {
      const samples = next.value.plan.shots.map(({ labels, role }) => {
        if (role === 'warmup') return makeSample({ role });
        const refused = labels['pair'] === 1 && labels['kind'] === 'cold';
        if (refused) return makeSample({ labels, outcome: { kind: 'status', status: 429, message: 'too many requests' }, deltas: [] });
        // The warm request of the first pair is the first of its prefix; the later one finds what it left.
        return answered(labels['kind'] === 'cold' || (labels['pair'] === 1 && labels['kind'] === 'warm') ? 0 : 288, labels);
      });
      next = steps.next({ samples, stopped: null, client: { loopUse: null, clockErrorP99: null, lateP99: null }, texts: new Map(), elapsed: 0 });
    }
    const { result } = next.value;
    assert.deepEqual([rowOf(result, 'cold').n, rowOf(result, 'warm').n, rowOf(result, 'changed').n, result.orphans], [1, 1, 2, 1]);
    assert.equal(rowOf(result, 'warm').served?.min, 288, 'not a miss of the server');
    assert.ok(result.sentences.some((sentence) => /^1 request of 6 failed and stand in no row: .*too many requests/.test(sentence)), result.sentences.join('\n'));
    assert.ok(result.sentences.some((sentence) => /^1 repeat had nothing to hit/.test(sentence)));
  });

  it('groups the digits of its sentences in one way', async () => {
    const { result } = await prove(vllm, { name: 'long.txt', text: `${'Read the rules before you answer. '.repeat(400)} {{question}}` }, { pairs: 1 });
    const text = [result.verdict, ...result.sentences].join(' ');
    assert.match(text, /\d,\d{3} = \d+ × 16/);
    assert.doesNotMatch(text, /\d\u202F\d/);
  });

  it('tells beforehand how many requests all its steps are', async () => {
    const planned = await plan(vllm, virtualWorld([]), 'support.prompt.md', 1);
    assert.equal(prefixProof({ planned, affinity: 0, expiry: [60] }).requests, 6);
    assert.equal(prefixProof({ planned, affinity: 10, expiry: [] }).requests, 14);
  });

  it('ends early with what it has, and refuses what makes no sense', async () => {
    const world = virtualWorld([]);
    const planned = await plan(vllm, world, 'support.prompt.md', 2);
    const context = { target: targetOf(vllm), settings: defaultProbeSettings, slo: sloPresets.chat, objective: 'chat' as const, maxModelLen: null };
    const steps = prefixProof({ planned, affinity: 0, expiry: [] }).steps(context);
    steps.next();
    const ended = steps.next({ samples: [], stopped: { by: 'user', detail: 'stopped by you' }, client: { loopUse: null, clockErrorP99: null, lateP99: null }, texts: new Map(), elapsed: 0 });
    assert.ok(ended.done);
    assert.match(ended.value.result.verdict, /^Nothing was proven: no repeat/);
    assert.throws(() => prefixProof({ planned, affinity: 0.5, expiry: [] }).steps(context).next(), PlanError);
    assert.throws(() => prefixProof({ planned, affinity: 0, expiry: [-1] }).steps(context).next(), PlanError);
  });
});
