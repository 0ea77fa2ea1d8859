import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { createMemory, createReportFile, defaultNetwork, defaultProbeSettings, endpointFromUrl, measureScenario, PlanError, type ProbeJob, type ProbeSettings, type RunEvent, type Scenario } from '../../../../src/probe/index';
import { batching } from '../../../../src/probe/scenario/batching';
import { encoder, type EncoderInput } from '../../../../src/probe/scenario/encoder';
import { sweep, type SweepResult } from '../../../../src/probe/scenario/sweep';
import { fixedPrompt } from '../../../../src/probe/workload';
import { prefixProof } from '../../../../src/probe/scenario/prefix';
import { waitWords } from '../../../../src/report/format';
import { virtualWorld } from '../../simulator/virtualWorld';
import { plan, type Server } from './proofs';
import { sloPresets } from '../../../../src/report/goodput';
import { isReportProblem, parseReport, type Report } from '../../../../src/report/report';
import { checkStamps } from '../../../../src/report/sample';
import { recorderScript } from '../builtRecorder';
import { simulated, stopSimulated } from './builtSimulator';

const prompt = { messages: [{ role: 'user' as const, text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }], tools: [] };

async function jobFor(url: string, settings: Partial<ProbeSettings> = {}, more: Partial<ProbeJob> = {}): Promise<ProbeJob> {
  return {
    endpoint: endpointFromUrl(url), key: null, prompt, promptName: 'built-in', settings: { ...defaultProbeSettings, maxTokens: 16, cache: 'cold', ...settings }, slo: sloPresets.chat, objective: 'chat', readerPace: 120,
    network: { ...defaultNetwork, proxy: 'none' }, environment: { product: 'test', node: 'v20', platform: 'linux', editor: null, remote: null }, recorderScript: await recorderScript(), reportFile: null, memory: createMemory(), unrendered: [], keepText: false, ...more,
  };
}

async function follow<R>(job: ProbeJob, scenario: Scenario<R>, onEvent: (event: RunEvent) => void = () => undefined, signal = new AbortController().signal): Promise<{ report: Report; result: R; events: RunEvent[] }> {
  const events: RunEvent[] = [];
  for await (const event of measureScenario(job, scenario, signal)) {
    events.push(event);
    onEvent(event);
  }
  const last = events.at(-1);
  assert.ok(last?.type === 'end');
  const { report } = last;
  return { report, result: report.scenario!.result as R, events };
}

const climbing = (list: readonly number[]) => sweep({ workload: fixedPrompt(prompt, 'built-in'), list, most: 64, within: null, tolerance: 5 });

describe('a scenario on a real socket', () => {
  let folder: string;
  beforeEach(() => {
    folder = mkdtempSync(path.join(tmpdir(), 'first-token-scenario-'));
  });
  afterEach(async () => {
    await stopSimulated();
    rmSync(folder, { recursive: true, force: true });
  });

  it('counts a proof’s progress over all its steps, and tells how long it waits on purpose', async function () {
    this.timeout(60_000);
    const { url } = await simulated();
    const server: Server = { flags: '', api: 'openai-chat', server: 'vllm', rule: 'vllm' };
    const planned = await plan(server, virtualWorld([]), 'support-fixed.prompty', 1);
    const { events, result } = await follow(await jobFor(url), prefixProof({ planned, affinity: 0, expiry: [2] }));
    assert.equal(result.expiry?.length, 1);
    const counted = events.flatMap((event) => (event.type === 'begin' || event.type === 'live' || event.type === 'sample' ? [event.total] : []));
    assert.deepEqual([...new Set(counted)], [6], 'a warm-up, a pair, and two for the wait');
    const live = events.filter((event) => event.type === 'live');
    assert.ok(live.every(({ done, total }) => done <= total));
    const waits = live.flatMap(({ wait, done }) => (wait ? [{ ...wait, done }] : []));
    assert.ok(waits.length >= 2, 'several in two seconds');
    assert.ok(waits.every(({ whole, left, done }) => whole === 2000 && left > 0 && left <= whole && done === 5));
    assert.ok(waits.every(({ left }, i) => i === 0 || left < waits[i - 1]!.left));
    assert.match(waitWords(waits[0]!), /^waits 2 s, then repeats; [12] s left$/);
  });

  it('counts what it sent over all steps where nobody knows them before', async function () {
    this.timeout(60_000);
    const { url } = await simulated();
    const { events } = await follow<SweepResult>(await jobFor(url), climbing([1, 4]));
    let done = 0;
    for (const event of events) {
      if (event.type === 'sample' && event.sample.role !== 'negotiation') done += 1;
      if (event.type === 'sample') assert.ok((event.total ?? 0) >= done, `${done} of ${event.total}`);
      if (event.type === 'live') assert.ok(event.done <= event.total && event.total >= done);
    }
    assert.ok(done > 5);
  });

  it('yields what a probe yields on one time line, over warm connections, and writes a report that can be read back', async function () {
    this.timeout(60_000);
    const { url } = await simulated();
    const file = path.join(folder, 'sweep.first-token.jsonl');
    const { report, result, events } = await follow<SweepResult>(await jobFor(url, {}, { reportFile: createReportFile(file) }), climbing([1, 4]));
    assert.deepEqual(result.steps.map((step) => step.concurrency), [1, 4]);
    const samples = events.flatMap((event) => (event.type === 'sample' ? [event.sample] : []));
    assert.equal(new Set(samples.map((s) => s.id)).size, samples.length);
    assert.ok(samples.every((s) => checkStamps(s) === null));
    const starts = (step: string): number[] => samples.filter((s) => s.labels['step'] === step && s.role === 'measured').map((s) => s.start);
    assert.equal(Math.min(...starts('c1')), 0);
    assert.ok(Math.min(...starts('c4')) > Math.max(...starts('c1')));
    assert.ok(samples.filter((s) => s.connection.reused).length >= samples.length - 1, 'connections were warm');
    assert.ok(samples.filter((s) => s.role === 'measured').every((s) => s.outputTokens.count === 16), 'answers had the length asked for');
    assert.equal(report.plan.scenario, 'sweep');
    const saved = parseReport(readFileSync(file, 'utf8'));
    assert.ok(!isReportProblem(saved));
    assert.deepEqual(new Set(saved.samples.map((s) => s.labels['step'])), new Set(report.scenario?.shown));
    assert.equal(saved.samples.length, report.samples.length);
    assert.ok(readFileSync(file, 'utf8').trim().split('\n').length === samples.length + 2, 'every sample is in the file');
    assert.deepEqual(saved.scenario, JSON.parse(JSON.stringify(report.scenario)));
  });

  it('keeps the steps when it is cancelled on the way up', async function () {
    this.timeout(60_000);
    const { url } = await simulated();
    const stop = new AbortController();
    const { report, result } = await follow<SweepResult>(await jobFor(url), climbing([1, 2, 4, 8]), (event) => {
      if (event.type === 'sample' && event.sample.labels['step'] === 'c4') stop.abort();
    }, stop.signal);
    assert.deepEqual(result.steps.map((step) => step.concurrency), [1, 2, 4]);
    assert.equal(result.steps[0]!.requests, 20);
    assert.match(result.ended, /stopped by you/);
    assert.ok(report.caveats.some((caveat) => caveat.kind === 'stopped'));
  });

  it('keeps what was measured when the endpoint dies', async function () {
    this.timeout(60_000);
    const simulator = await simulated();
    const dying: Promise<void>[] = [];
    const { result, report } = await follow<SweepResult>(await jobFor(simulator.url), climbing([1, 2, 4, 8, 16]), (event) => {
      if (dying.length === 0 && event.type === 'sample' && event.sample.labels['step'] === 'c4') dying.push(simulator.stop());
    });
    await Promise.all(dying);
    assert.deepEqual(result.steps.slice(0, 2).map((step) => step.concurrency), [1, 2]);
    assert.equal(result.steps[0]!.attainment!.good, 20);
    assert.match(result.ended, /in a row failed|of the last/);
    assert.equal(report.caveats.find((caveat) => caveat.kind === 'stopped')?.kind, 'stopped');
  });

  it('holds one budget over all steps, and says when not even the first fits', async function () {
    this.timeout(60_000);
    const { url } = await simulated();
    const settings = { budget: { requests: 45, outputTokens: null, cost: null } };
    const { result } = await follow<SweepResult>(await jobFor(url, settings), climbing([1, 2, 4, 8]));
    assert.deepEqual(result.steps.map((step) => step.concurrency), [1, 2]);
    assert.match(result.ended, /needs up to 20 requests, 4 of 45 are left \(firstToken\.probe\.maxRequests\)/);
    await assert.rejects(async () => follow(await jobFor(url, { budget: { requests: 5, outputTokens: null, cost: null } }), climbing([1])), (error) => error instanceof PlanError && error.message.includes('too small for one step'));
  });

  it('tells the kinds of batching apart', async function () {
    this.timeout(120_000);
    for (const [flags, verdict] of [['', 'continuous'], ['--policy request-level', 'request-level'], ['--policy timed --batch-timeout 40', 'timed']] as const) {
      const { url } = await simulated(flags);
      const { result } = await follow(await jobFor(url), batching({ prompt, short: 8, long: 64, trials: 3 }));
      assert.equal(result.verdict, verdict, JSON.stringify(result.evidence));
    }
  });

  it('measures an encoder: padding, and how two endpoints agree', async function () {
    this.timeout(120_000);
    const [full, rounded] = await Promise.all([simulated(), simulated('--weight-bits 4 --no-padding')]);
    const inputs: EncoderInput[] = ['the cat sat', 'a dog ran far', 'rain in spring', 'stars at night'].map((text, i) => ({ text, query: null, slice: i < 2 ? 'animals' : 'weather' }));
    const options = { api: 'embeddings' as const, sizes: [1, 8], inputTokens: 160, repeats: 3, seed: 1 };
    const { result, report } = await follow(await jobFor(full.url), encoder({ ...options, compare: { endpoint: endpointFromUrl(rounded.url), key: null, inputs } }));
    assert.equal(result.verdict, 'padded', JSON.stringify(result.evidence));
    assert.equal(report.endpoint.path, '/v1/embeddings');
    const { overall, slices } = result.evidence.agreement!;
    assert.equal(overall.inputs, 4);
    assert.ok(overall.cosineMean! < 0.9999 && overall.cosineMean! > 0.8, `cosine ${overall.cosineMean}`);
    assert.deepEqual(slices.map((slice) => [slice.slice, slice.inputs]), [['animals', 2], ['weather', 2]]);
    const same = await follow(await jobFor(rounded.url), encoder({ ...options, api: 'classify', compare: { endpoint: endpointFromUrl(rounded.url), key: null, inputs } }));
    assert.equal(same.result.verdict, 'unpadded', JSON.stringify(same.result.evidence));
    assert.equal(same.result.evidence.agreement!.overall.sameLabel, 4);
  });
});
