// What the panel is looked at with: each theme, width and state, by name.
import { answerQuestions, finished, makeFailures, makeSamples, reportOf } from './panelHarness.mjs';

async function showRun(panel, reports, { click = true, samples = makeSamples() } = {}) {
  const report = reportOf(reports, samples);
  await panel.post(finished(report));
  await panel.settle();
  await answerQuestions(panel, report.samples);
  if (click) await clickStall(panel, report);
  return report;
}

/** Chooses the token behind the longest gap by keyboard, as a user would find it. */
async function clickStall(panel, report) {
  const row = report.samples.findIndex((sample) => sample.id === 's4');
  await panel.page.locator('.stage').focus();
  await panel.page.keyboard.press('Home');
  for (let i = 0; i < report.samples.length && i < 60; i += 1) {
    const selected = (await panel.kept())?.selection?.sampleId;
    if (selected === report.samples[row]?.id) break;
    await panel.page.keyboard.press('ArrowDown');
  }
  await panel.page.keyboard.press('Home');
  await panel.page.keyboard.press('Control+ArrowRight');
  await answerQuestions(panel, report.samples);
}

const run = { play: (panel, reports) => showRun(panel, reports) };

export const scenes = {
  dark: { page: { theme: 'dark', width: 1000 }, ...run },
  light: { page: { theme: 'light', width: 1000 }, ...run },
  contrast: { page: { theme: 'contrast', width: 1000 }, ...run },
  'contrast-light': { page: { theme: 'contrastLight', width: 1000 }, ...run },
  narrow: { page: { theme: 'dark', width: 380 }, ...run },
  wide: { page: { theme: 'dark', width: 1400 }, ...run },
  'no-run': { page: { width: 900, height: 600 }, play: (panel) => panel.post({ type: 'problem', problem: { kind: 'no-run' } }) },
  'other-version': { page: { width: 900, height: 600 }, play: (panel) => panel.post({ type: 'problem', problem: { kind: 'other-version', found: 'first-token/report@2', path: '/home/me/reports/2026-11-30.first-token.jsonl' } }) },
  damaged: { page: { width: 900, height: 600 }, play: (panel) => panel.post({ type: 'problem', problem: { kind: 'damaged', detail: 'Line 14 is not JSON: unexpected end of input.', path: '/home/me/reports/2026-11-30.first-token.jsonl' } }) },
  connecting: { page: { width: 900 }, play: (panel, reports) => begin(panel, reports) },
  waiting: { page: { width: 900 }, play: async (panel, reports) => { await begin(panel, reports); await live(panel, 180); } },
  streaming: { page: { width: 900 }, play: async (panel, reports) => { await begin(panel, reports); for (const elapsed of [180, 900, 1800, 2600]) await live(panel, elapsed, reports); } },
  'stopped-user': { page: { width: 900 }, play: (panel, reports) => panel.post(finished(reportOf(reports, makeSamples({ requests: 5, failAt: -1 })), { stopped: 'user' })) },
  'stopped-breaker': { page: { width: 900 }, play: (panel, reports) => panel.post(finished(reportOf(reports, makeFailures(3)), { stopped: 'breaker' })) },
  'all-failed': { page: { width: 900 }, play: (panel, reports) => panel.post(finished(reportOf(reports, makeFailures(8)))) },
  'text-not-kept': { page: { width: 900 }, play: async (panel, reports) => {
    const report = reportOf(reports, makeSamples());
    await panel.post(finished(report, { textKept: false }));
    await panel.settle();
    await panel.post({ type: 'answer', view: { sampleId: report.samples[2].id, pieces: null } });
  } },
  batch: { page: { width: 1000 }, play: (panel, reports) => panel.post(finished(reportOf(reports, makeSamples({ requests: 40, failAt: -1 }), { objective: 'batch' }))) },
  many: { page: { width: 1200 }, full: false, play: (panel, reports) => showRun(panel, reports, { click: false, samples: makeSamples({ requests: 300, tokens: 220, concurrency: 16 }) }) },
  compare: { page: { width: 1000 }, play: (panel, reports) => panel.post({ type: 'compare', a: reportOf(reports, makeSamples({ seed: 3, requests: 30, failAt: -1 }), { id: 'a' }), b: reportOf(reports, makeSamples({ seed: 9, requests: 30, failAt: -1, pace: 27 }), { id: 'b' }) }) },
  'server-view': { page: { width: 1000 }, play: async (panel, reports) => {
    await showRun(panel, reports, { click: false, samples: makeSamples({ requests: 12 }) });
    await panel.post(finished(reportOf(reports, makeSamples({ requests: 12 }), { over: { serverView: serverView() } })));
    await panel.page.getByRole('button', { name: /Since the run/ }).click();
  } },
  sweep: { page: { width: 1000 }, play: (panel, reports) => panel.post(finished(reportOf(reports, makeSamples({ requests: 40, failAt: -1 }), { over: { scenario: { name: 'sweep', result: sweepResult() } } }))) },
};

async function begin(panel, reports) {
  await panel.post({ type: 'begin', report: reportOf(reports, []), total: 12 });
  await panel.settle();
}

async function live(panel, elapsed, reports) {
  const samples = makeSamples({ failAt: -1, requests: 12, tokens: 40 }).filter((sample) => sample.role === 'measured');
  const finishedSamples = samples.filter((sample) => sample.end <= elapsed);
  const rows = samples.filter((sample) => sample.start <= elapsed && sample.end > elapsed).map((sample) => {
    const deltas = sample.deltas.filter(([t]) => t <= elapsed);
    const known = panel.known ??= {};
    const fresh = deltas.slice(known[sample.id] ?? 0);
    known[sample.id] = deltas.length;
    return { id: sample.id, role: sample.role, start: sample.start, headers: sample.headers <= elapsed ? sample.headers : null, t: fresh.map(([t]) => t), kinds: fresh.map(([, kind]) => kind), tokens: fresh.map(([, , k]) => k), text: fresh.map((_, i) => `word${i} `) };
  });
  await panel.post({ type: 'live', rows, done: finishedSamples.length, total: 12, elapsed, eta: finishedSamples.length > 0 ? 5200 - elapsed : null });
  if (reports && finishedSamples.length > 0) await panel.post({ type: 'samples', samples: finishedSamples, report: { ...reportOf(reports, finishedSamples), samples: [], verdict: null } });
  await panel.settle();
}

function serverView() {
  const points = (f) => Array.from({ length: 60 }, (_, i) => [i * 280, f(i)]);
  return {
    source: 'http://127.0.0.1:8000/metrics', server: 'vLLM 0.11.2',
    gauges: [{ name: 'vllm:num_requests_running', label: 'running', points: points((i) => Math.min(4, 1 + (i % 7))) }, { name: 'vllm:kv_cache_usage_perc', label: 'KV cache use', points: points((i) => 0.1 + 0.005 * i) }],
    counters: [{ name: 'vllm:prompt_tokens_total', label: 'prompt tokens', difference: 23040 }, { name: 'vllm:generation_tokens_total', label: 'output tokens', difference: 2210 }],
    histograms: [{ name: 'vllm:time_to_first_token_seconds', label: 'time to first token', unit: 'ms', n: 12, mean: 231.4, p50: 220, p90: 400, p99: '≥ 500' }, { name: 'vllm:inter_token_latency_seconds', label: 'inter-token latency', unit: 'ms', n: 2190, mean: 31.2, p50: 30, p90: 38, p99: 75 }],
    prefixCacheHitRate: 0.165, notes: ['Percentiles are interpolated within the server’s own buckets.'],
  };
}

function sweepResult() {
  const steps = [1, 2, 4, 8, 16, 24, 32, 40, 48, 64].map((concurrency) => {
    const tpot = 3.4 + 0.05 * concurrency;
    const over = Math.max(0, concurrency - 34) / 30;
    const throughput = Math.min(concurrency, 16) * (1000 / (3.4 + 0.05 * Math.min(concurrency, 16)));
    return { concurrency, throughput, perUser: Math.min(1000 / tpot, throughput / concurrency), goodput: (throughput / 128) * (1 - Math.min(1, over)), attainment: { good: Math.round(100 * (1 - Math.min(1, over))), due: 100, share: 1 - Math.min(1, over), ci95: [0.9, 1] }, verdict: over === 0 ? 'met' : 'missed', summary: {} };
  });
  return { schema: 'first-token/sweep@1', steps, knee: { concurrency: 32 } };
}
