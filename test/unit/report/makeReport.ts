import { buildReport, type Report, type ReportInput } from '../../../src/report/report';
import type { EndpointSummary, PlanSummary } from '../../../src/report/report';
import type { Sample } from '../../../src/report/sample';

export const endpoint: EndpointSummary = {
  name: 'h200', origin: 'http://127.0.0.1:8000', path: '/v1/chat/completions', model: 'demo-8b', api: 'openai-chat', server: 'vLLM 0.9.1',
  tlsVerified: true, alpn: null, refusedFields: [], price: null, gpu: null,
};

export const plan: PlanSummary = {
  scenario: 'probe', requests: 20, concurrency: 1, warmup: 1, maxTokens: 128, cache: 'as-is', objective: 'chat',
  slo: { ttft: 500, tpot: 30, attainment: 0.95 }, readerPace: 120, prompt: { name: 'built-in', characters: 400, sha256: 'ab' },
};

/** A report of these samples with the plan and endpoint above. */
export function makeReport(samples: readonly Sample[], more: Partial<Omit<ReportInput, 'samples' | 'plan' | 'endpoint'>> & { readonly plan?: Partial<PlanSummary>; readonly endpoint?: Partial<EndpointSummary> } = {}): Report {
  return buildReport({
    id: 'r1',
    createdAt: '2026-01-02T03:04:05.000Z',
    environment: { product: 'first-token 0.1.0', node: 'v20', platform: 'linux', editor: null, remote: null },
    clockErrors: [],
    ...more,
    samples,
    plan: { ...plan, ...more.plan },
    endpoint: { ...endpoint, ...more.endpoint },
  });
}
