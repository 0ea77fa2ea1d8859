/** What happened in virtual time as a report: exact stamps, exact counts, no network and no clock error. Pure. */
import { sloPresets } from '../report/goodput';
import { buildReport, type Report } from '../report/report';
import type { Delta, Outcome, Sample } from '../report/sample';
import type { VirtualResult } from '../simulator/virtual';

/** A run of the lab under a name. Latencies count from each arrival; the response head is the moment a request got its seat. */
export function labReport(name: string, results: readonly VirtualResult[], version: string): Report {
  const samples = results.map(sampleOf);
  return buildReport({
    id: `lab-${name}`,
    createdAt: new Date(0).toISOString(),
    environment: { product: `First Token ${version}`, node: process.version, platform: process.platform, editor: null, remote: null },
    endpoint: { name, origin: 'virtual time', path: '', model: null, api: 'openai-chat', server: 'simulator', tlsVerified: true, alpn: null, refusedFields: [], price: null, gpu: null },
    plan: { scenario: 'lab', requests: results.length, concurrency: 1, warmup: 0, maxTokens: null, cache: 'as-is', objective: 'chat', slo: sloPresets.chat, readerPace: 120, prompt: { name: 'made up', characters: 0, sha256: '' } },
    samples,
    clockErrors: [],
  });
}

function sampleOf(result: VirtualResult): Sample {
  const { arrival, firstToken, last, scheduled } = result;
  const deltas = result.emissions.map(([at, count]): Delta => [at, 'text', count]);
  return {
    id: result.id,
    role: 'measured',
    due: arrival,
    start: arrival,
    written: arrival,
    sent: arrival,
    headers: result.outcome === 'refused' ? arrival : scheduled,
    firstFrame: firstToken,
    firstToken,
    firstVisible: firstToken,
    last,
    end: last ?? arrival,
    connection: { reused: true, dns: null, connected: null, secured: null, alpn: null },
    outputTokens: { count: result.outputTokens, source: 'token_ids' },
    streamTokens: result.outputTokens,
    reasoningTokens: null,
    n1: deltas[0]?.[2] ?? null,
    promptTokens: result.promptTokens,
    cachedTokens: result.cachedTokens,
    outcome: outcomeOf(result),
    finish: result.outcome === 'ok' ? 'length' : null,
    deltas,
    visibleChars: deltas.map((delta) => 4 * (delta[2] ?? 1)),
    reads: deltas.length,
    maxDeltasPerRead: deltas.length === 0 ? 0 : 1,
    bytes: 0,
    serverTimings: [],
    flags: [],
    labels: { ...(result.tenant === '' ? {} : { tenant: result.tenant }), ...(result.replica === null ? {} : { replica: result.replica }) },
  };
}

function outcomeOf({ outcome, refusal }: VirtualResult): Outcome {
  if (refusal !== null) return { kind: 'status', status: refusal.status, message: refusal.message, ...(refusal.retryAfter === null ? {} : { retryAfter: refusal.retryAfter * 1000 }) };
  if (outcome === 'ok') return { kind: 'ok' };
  return outcome === 'lost' ? { kind: 'truncated', message: 'The replica is dead.' } : { kind: 'cancelled' };
}
