import assert from 'node:assert/strict';
import type { LiveRow } from '../../../src/report/messages';
import { buildReport, type Report } from '../../../src/report/report';
import type { Sample } from '../../../src/report/sample';
import { applyMessage, createState, pieceOf, type PanelState, type Run } from '../../../webview/state';

const plan: Report['plan'] = { scenario: 'probe', requests: 2, concurrency: 1, warmup: 0, maxTokens: null, cache: 'as-is', objective: 'chat', slo: { ttft: 500, attainment: 0.95 }, readerPace: 120, prompt: { name: 'built-in', characters: 9, sha256: '' } };
const endpoint: Report['endpoint'] = { name: 'e', origin: 'http://127.0.0.1:1', path: '/', model: null, api: 'openai-chat', server: null, tlsVerified: true, alpn: null, refusedFields: [], price: null, gpu: null };

function report(id: string, samples: readonly Sample[] = []): Report {
  return buildReport({ id, createdAt: '2026-01-01T00:00:00.000Z', environment: { product: 'p', node: 'v20', platform: 'linux', editor: null, remote: null }, endpoint, plan, samples, clockErrors: [] });
}

function sample(id: string, start: number, offsets: readonly number[], outcome: Sample['outcome'] = { kind: 'ok' }): Sample {
  const t = offsets.map((offset) => start + offset);
  const [first, last] = [t[0] ?? null, t.at(-1) ?? null];
  return {
    id, role: 'measured', due: start, start, written: start, sent: start, headers: start + 1, firstFrame: first, firstToken: first, firstVisible: first, last, end: last,
    connection: { reused: true, dns: null, connected: null, secured: null, alpn: null }, outputTokens: { count: t.length, source: 'one-per-event' }, streamTokens: t.length, reasoningTokens: null, n1: 1, promptTokens: null, cachedTokens: null,
    outcome, finish: 'stop', deltas: t.map((at) => [at, 'text', 1] as const), visibleChars: t.map(() => 2), reads: t.length, maxDeltasPerRead: 1, bytes: 10, serverTimings: [], flags: [], labels: {},
  };
}

function live(id: string, start: number, offsets: readonly number[]): LiveRow {
  return { id, role: 'measured', start, headers: start + 1, t: offsets.map((offset) => start + offset), kinds: offsets.map(() => 'text'), tokens: offsets.map(() => 1), text: offsets.map((offset) => `t${offset} `) };
}

function runOf(state: PanelState): Run {
  assert.equal(state.view.kind, 'run');
  return (state.view as { run: Run }).run;
}

function framed(state: PanelState): string | undefined {
  return state.frame?.sampleId;
}

function begun(): PanelState {
  const state = createState();
  applyMessage(state, { type: 'begin', report: report('r'), total: 2 });
  return state;
}

describe('the state of the panel', () => {
  it('follows a run from its first row to its report, keeping streamed text', () => {
    const state = begun();
    applyMessage(state, { type: 'live', rows: [live('a', 0, [100, 130])], done: 0, total: 2, elapsed: 140, eta: null });
    applyMessage(state, { type: 'live', rows: [live('a', 0, [160])], done: 0, total: 2, elapsed: 170, eta: 300 });
    assert.deepEqual(state.selection, { sampleId: 'a', deltaIndex: null });
    const a = sample('a', 0, [100, 130, 160]);
    applyMessage(state, { type: 'samples', samples: [a], report: { ...report('r', [a]), samples: [] } });
    const run = runOf(state);
    const track = run.tracks.get('a');
    assert.ok(track);
    assert.equal(track.sample, a);
    assert.equal(pieceOf(state, track, 2), 't160 ');
    assert.equal(run.report.samples.length, 1);
    const b = sample('b', 200, [90]);
    applyMessage(state, { type: 'report', report: report('r', [a, b]), live: false, stopped: null, canRunAgain: true, textKept: true });
    assert.deepEqual([...runOf(state).tracks.keys()], ['a', 'b']);
    assert.deepEqual([runOf(state).live, runOf(state).done], [false, 2]);
    const finished = runOf(state).tracks.get('a');
    assert.ok(finished);
    assert.equal(pieceOf(state, finished, 0), 't100 ');
  });

  it('drops rows that never became a sample when the run ends', () => {
    const state = begun();
    applyMessage(state, { type: 'live', rows: [live('a', 0, [100]), live('b', 0, [])], done: 0, total: 2, elapsed: 140, eta: null });
    applyMessage(state, { type: 'report', report: report('r', [sample('a', 0, [100])]), live: false, stopped: 'user', canRunAgain: true, textKept: true });
    assert.deepEqual([...runOf(state).tracks.keys()], ['a']);
  });

  it('does not let a late live row grow a finished request', () => {
    const state = begun();
    const a = sample('a', 0, [100]);
    applyMessage(state, { type: 'samples', samples: [a], report: report('r', [a]) });
    applyMessage(state, { type: 'live', rows: [live('a', 0, [130])], done: 1, total: 2, elapsed: 140, eta: null });
    assert.equal(runOf(state).tracks.get('a')?.count, 1);
  });

  it('counts over all steps with each answer, and knows what is waited for', () => {
    const state = createState();
    applyMessage(state, { type: 'begin', report: report('r'), total: 6 });
    const { view } = state;
    assert.ok(view.kind === 'run');
    applyMessage(state, { type: 'samples', samples: [sample('s1', 0, [10])], report: report('r'), done: 5, total: 6 });
    assert.deepEqual([view.run.done, view.run.total], [5, 6]);
    applyMessage(state, { type: 'live', rows: [], done: 5, total: 6, elapsed: 100, eta: null, wait: { whole: 60_000, left: 42_000 } });
    assert.deepEqual(view.run.wait, { whole: 60_000, left: 42_000 });
    applyMessage(state, { type: 'samples', samples: [sample('s2', 20, [30])], report: report('r'), done: 6, total: 6 });
    assert.equal(view.run.wait, null);
  });

  it('replaces a sample that is sent twice', () => {
    const state = begun();
    for (const offsets of [[100], [100, 120]]) applyMessage(state, { type: 'samples', samples: [sample('a', 0, offsets)], report: report('r') });
    assert.equal(runOf(state).report.samples.length, 1);
    assert.equal(runOf(state).tracks.get('a')?.count, 2);
  });

  it('keeps a restored selection of the same run, and forgets it with another', () => {
    const state = createState('r', { sampleId: 'b', deltaIndex: 0 });
    const samples = [sample('a', 0, [100]), sample('b', 10, [100])];
    applyMessage(state, { type: 'report', report: report('r', samples), live: false, stopped: null, canRunAgain: true, textKept: true });
    assert.deepEqual(state.selection, { sampleId: 'b', deltaIndex: 0 });
    applyMessage(state, { type: 'answer', view: { sampleId: 'b', pieces: null } });
    applyMessage(state, { type: 'report', report: report('other', [sample('a', 0, [100])]), live: false, stopped: null, canRunAgain: true, textKept: true });
    assert.deepEqual(state.selection, { sampleId: 'a', deltaIndex: null });
    assert.equal(state.answers.size, 0);
  });

  it('does not take a selection of one report for that of another', () => {
    const state = createState('before', { sampleId: 'b', deltaIndex: 0 });
    applyMessage(state, { type: 'report', report: report('r', [sample('a', 0, [100]), sample('b', 10, [100])]), live: false, stopped: null, canRunAgain: true, textKept: true });
    assert.deepEqual(state.selection, { sampleId: 'a', deltaIndex: null });
  });

  it('takes frames only of the chosen request and bounds the answers it keeps', () => {
    const state = begun();
    applyMessage(state, { type: 'live', rows: [live('a', 0, [100])], done: 0, total: 2, elapsed: 140, eta: null });
    applyMessage(state, { type: 'frame', view: { sampleId: 'z', deltaIndex: 0, frames: null } });
    assert.equal(framed(state), undefined);
    applyMessage(state, { type: 'frame', view: { sampleId: 'a', deltaIndex: 0, frames: null } });
    assert.equal(framed(state), 'a');
    for (let i = 0; i < 100; i += 1) applyMessage(state, { type: 'answer', view: { sampleId: `s${i}`, pieces: [] } });
    assert.ok(state.answers.size <= 40);
    assert.ok(state.answers.has('s99'));
  });

  it('shows a result of another tool in place of a run', () => {
    const state = createState();
    applyMessage(state, { type: 'foreign', report: { schema: 'first-token/foreign@1', tool: 'AIPerf', version: null, runs: [] } });
    assert.equal(state.view.kind, 'foreign');
  });

  it('ignores samples and live rows without a run', () => {
    const state = createState();
    applyMessage(state, { type: 'live', rows: [live('a', 0, [100])], done: 0, total: 2, elapsed: 1, eta: null });
    applyMessage(state, { type: 'samples', samples: [sample('a', 0, [100])], report: report('r') });
    assert.equal(state.view.kind, 'waiting');
    applyMessage(state, { type: 'problem', problem: { kind: 'no-run' } });
    assert.equal(state.view.kind, 'problem');
  });
});
