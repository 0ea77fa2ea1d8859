import assert from 'node:assert/strict';
import { defaultProbeSettings, PlanError } from '../../../../src/probe/plan';
import { prefixProof } from '../../../../src/probe/scenario/prefix';
import { sloPresets } from '../../../../src/report/goodput';
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
    const { result } = await prove(vllm, 'support-fixed.prompty', { pairs: 5 });
    const [cold, warm] = [rowOf(result, 'cold'), rowOf(result, 'warm')];
    assert.ok(cold.ttft && warm.ttft && result.gain && result.prefillRate !== null);
    assert.ok(cold.ttft.p50 > warm.ttft.p50);
    assert.ok(result.gain.low > 0);
    const saved = (1000 * warm.served!.p50) / result.prefillRate;
    assert.ok(Math.abs(result.gain.ms - saved) < 0.35 * saved, `${result.gain.ms} ms gained, ${saved} ms of prefill`);
    assert.match(result.verdict, /^As predicted: /);
    assert.deepEqual(result.hitRate, { cached: 5 * (warm.served!.p50 + rowOf(result, 'changed').served!.p50), prompt: 5 * (warm.promptTokens! + rowOf(result, 'changed').promptTokens!) });
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
