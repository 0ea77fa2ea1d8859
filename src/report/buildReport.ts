/** Samples → report: windows, summaries, rates and verdict, as defined once in `sample.ts`, `statistics.ts` and `goodput.ts`. */
import { detectDelivery, findCaveats, isWarm, type Caveat, type CaveatInput } from './caveats';
import { attainment, verdict } from './goodput';
import { prefillPace } from './prefill';
import { isProof } from './proof';
import type { ColdWarm, EndpointSummary, Environment, FromDue, PlanSummary, Report, ServerView, Summary } from './report';
import { chunkGaps, completed, firstFrame, firstVisible, itl, lastStamp, readerStall, shiftSample, total, tpot, ttft, type Milliseconds, type OutcomeKind, type Sample, type TokenSource } from './sample';
import { percentile, sorted, summarise, summarisePooled } from './statistics';

/** Everything a report is made from. */
export interface ReportInput {
  readonly id: string;
  /** ISO wall clock. */
  readonly createdAt: string;
  readonly environment: Environment;
  readonly endpoint: EndpointSummary;
  readonly plan: PlanSummary;
  /** Samples of every role in any order, all with stamps of one clock; the report's are counted from the first measured start. */
  readonly samples: readonly Sample[];
  /** One instant on both clocks, to tell people when the window began; without it `createdAt` is said. */
  readonly wall?: { readonly monotonic: Milliseconds; readonly epoch: Milliseconds };
  /** Errors of the canary's frames (ms), as measured; empty = not measured. */
  readonly clockErrors: readonly Milliseconds[];
  readonly serverView?: ServerView | null;
  readonly unrendered?: readonly string[];
  readonly stopped?: CaveatInput['stopped'];
  readonly clientBottleneck?: string | null;
  /** Caveats only the caller can know; put in front. */
  readonly extraCaveats?: readonly Caveat[];
  readonly texts?: Report['texts'];
  readonly scenario?: Report['scenario'];
  /** False leaves `samples` empty in the result (they travel on their own); default true. */
  readonly withSamples?: boolean;
}

/**
 * What a run taught, so far or in the end. Pure: the same input gives the same report. Sorting all gaps makes it O(T log T) in the tokens
 * of the run, so during a run call it a few times a second, not once a token.
 */
export function buildReport(input: ReportInput): Report {
  const { plan, endpoint } = input;
  const origin = windowStart(input.samples);
  const samples = input.samples.map((s) => shiftSample(s, -origin)).sort((a, b) => a.start - b.start);
  const measured = samples.filter((s) => s.role === 'measured');
  const done = measured.filter(completed);
  const end = windowEnd(measured);
  const delivery = detectDelivery(samples, endpoint);
  const summary = summaries(done, plan, delivery?.itlMeaningless === true);
  // A proof is of tokens: the SLO is not asked, and a busy machine moves none of them.
  const proof = isProof(plan);
  const reached = proof ? null : attainment(measured, plan.slo);
  const bottleneck = proof || unanswered(measured) ? null : (input.clientBottleneck ?? null);
  const clockError = clockSummary(input.clockErrors);
  const caveats = [
    ...(input.extraCaveats ?? []),
    ...findCaveats({ samples, plan, endpoint, summary, clockError, delivery, unrendered: input.unrendered ?? [], stopped: input.stopped ?? null, clientBottleneck: bottleneck }),
  ];
  const fromDue = plan['rate'] === undefined ? undefined : fromSchedule(done);
  return {
    schema: 'first-token/report@1',
    id: input.id,
    createdAt: input.createdAt,
    environment: input.environment,
    endpoint,
    plan,
    window: { start: 0, end, absolute: absoluteStart(input, origin) },
    summary,
    ...(fromDue === undefined ? {} : { fromDue }),
    coldWarm: coldWarm(samples, plan),
    throughput: throughput(done, end, endpoint),
    perUser: perUser(summary.tpot),
    goodput: reached === null || end <= 0 ? null : { perSecond: (reached.good / end) * 1000, perMinute: (reached.good / end) * 60_000 },
    attainment: reached,
    // A client that could not keep up has measured itself.
    verdict: bottleneck === null ? verdict(reached, plan.slo) : null,
    outcomes: countOutcomes(measured),
    cache: cacheFacts(done, endpoint),
    prefillRate: prefillPace(done),
    caveats,
    clockError,
    serverView: input.serverView ?? null,
    samples: input.withSamples === false ? [] : samples,
    ...(input.texts === undefined ? {} : { texts: input.texts }),
    ...(input.scenario === undefined ? {} : { scenario: input.scenario }),
  };
}

/** Whether nothing was answered for reasons that are not this machine's: a busy one makes requests slow, it does not make a server refuse them. */
function unanswered(measured: readonly Sample[]): boolean {
  return measured.length > 0 && measured.every(({ outcome: { kind } }) => kind !== 'ok' && kind !== 'not-streaming' && kind !== 'invalid' && !kind.startsWith('timeout-'));
}

/** The first measured start; before there is one, the first start at all; 0 for no samples. */
export function windowStart(samples: readonly Sample[]): Milliseconds {
  const measured = samples.filter((s) => s.role === 'measured');
  const starts = (measured.length > 0 ? measured : samples).map((s) => s.start);
  return starts.reduce((first, start) => Math.min(first, start), starts[0] ?? 0);
}

/** The last measured end. Requests the user cancelled end it only when there is no other: they were not waited for. */
function windowEnd(measured: readonly Sample[]): Milliseconds {
  const waited = measured.filter((s) => s.outcome.kind !== 'cancelled');
  return (waited.length > 0 ? waited : measured).reduce((end, s) => Math.max(end, lastStamp(s)), 0);
}

function absoluteStart({ wall, createdAt }: ReportInput, origin: Milliseconds): string {
  return wall === undefined ? createdAt : new Date(wall.epoch + (origin - wall.monotonic)).toISOString();
}

/** Values of a per-request metric, those that are none left out. */
export function present(samples: readonly Sample[], metric: (s: Sample) => number | null): number[] {
  return samples.map(metric).filter((value) => value !== null);
}

function summaries(done: readonly Sample[], plan: PlanSummary, itlMeaningless: boolean): Report['summary'] {
  return {
    ttft: summarise(present(done, ttft)),
    firstVisible: summarise(present(done, firstVisible)),
    firstFrame: summarise(present(done, firstFrame)),
    chunkGap: summarisePooled(done.map(chunkGaps)),
    itl: itlMeaningless ? null : summarisePooled(done.map((s) => itl(s) ?? [])),
    tpot: summarise(present(done, tpot)),
    total: summarise(present(done, total)),
    readerStall: summarise(present(done, (s) => readerStall(s, plan.readerPace)?.ms ?? null)),
  };
}

/** The same latencies from `due` instead of `start`, so that a stalled client or server cannot hide behind requests it never sent. */
function fromSchedule(done: readonly Sample[]): FromDue {
  const late = (metric: (s: Sample) => number | null) => summarise(present(done, (s) => addNullable(metric(s), s.start - s.due)));
  return { ttft: late(ttft), firstVisible: late(firstVisible), total: late(total) };
}

function addNullable(value: number | null, by: number): number | null {
  return value === null ? null : value + by;
}

/** TTFT split by what the server says was cached; where it does not say for every answer, into the first request of each prompt and its repeats. */
function coldWarm(samples: readonly Sample[], plan: PlanSummary): ColdWarm | null {
  const streamed = samples.filter((s) => s.role === 'measured' && completed(s) && s.firstToken !== null);
  if (streamed.length === 0) return null;
  const told = streamed.every((s) => s.cachedTokens !== null);
  const repeated = repeats(samples, plan);
  const warm = (s: Sample): boolean => (told ? isWarm(s) === true : repeated.has(s.id));
  return {
    by: told ? 'cached-tokens' : 'repeat',
    cold: summarise(present(streamed.filter((s) => !warm(s)), ttft)),
    warm: summarise(present(streamed.filter(warm), ttft)),
  };
}

/** Ids of the requests whose prompt had been sent before in this run, warm-up included; salted ones repeat nothing. */
function repeats(samples: readonly Sample[], plan: PlanSummary): ReadonlySet<string> {
  const seen = new Set<string | number>();
  const ids = new Set<string>();
  if (plan.cache === 'cold') return ids;
  for (const s of samples) {
    const prompt = s.labels['prompt'] ?? '';
    if (seen.has(prompt)) ids.add(s.id);
    // A request that failed before a token left nothing behind to reuse.
    if (s.firstToken !== null || completed(s)) seen.add(prompt);
  }
  return ids;
}

/** Sources of token counts, best first. */
const sourceOrder: readonly TokenSource[] = ['token_ids', 'server-count', 'usage-difference', 'logprobs', 'one-per-event', 'final-usage', 'endpoint-tokenizer', 'local-tokenizer', 'deltas'];

/** The worst source among the answers: a sum is no better than its weakest part. */
function worstSource(done: readonly Sample[]): TokenSource | null {
  const ranks = done.map((s) => (s.outputTokens.source === null ? -1 : sourceOrder.indexOf(s.outputTokens.source)));
  return sourceOrder[Math.max(-1, ...ranks)] ?? null;
}

function throughput(done: readonly Sample[], window: Milliseconds, endpoint: EndpointSummary): Report['throughput'] {
  const counts = present(done, (s) => s.outputTokens.count);
  // One unknown count would make the sum too small without a sign.
  const tokens = counts.length === done.length && done.length > 0 ? counts.reduce((sum, n) => sum + n, 0) : null;
  return {
    tokensPerSecond: tokens === null || window <= 0 ? null : (tokens / window) * 1000,
    requestsPerSecond: done.length === 0 || window <= 0 ? null : (done.length / window) * 1000,
    tokensPerCost: tokens === null ? null : tokensPerCost(tokens, done, window, endpoint),
    source: tokens === null ? null : worstSource(done),
  };
}

/** Σ N / (window in hours × price per hour × number of GPUs), or Σ N / what the tokens cost by the price list. */
function tokensPerCost(tokens: number, done: readonly Sample[], window: Milliseconds, { gpu, price }: EndpointSummary): Report['throughput']['tokensPerCost'] {
  if (gpu !== null && gpu.pricePerHour !== null && gpu.pricePerHour > 0 && window > 0) {
    return rateOf(tokens / ((window / 3_600_000) * gpu.pricePerHour * Math.max(1, gpu.count)), gpu.currency ?? price?.currency ?? 'USD', 'gpu');
  }
  if (price === null || price.outputPerMillion === null) return null;
  let cost = (tokens * price.outputPerMillion) / 1e6;
  if (price.inputPerMillion !== null) {
    for (const s of done) {
      if (s.promptTokens === null) return null;
      const cached = Math.min(s.promptTokens, s.cachedTokens ?? 0);
      cost += ((s.promptTokens - cached) * price.inputPerMillion + cached * (price.cachedInputPerMillion ?? price.inputPerMillion)) / 1e6;
    }
  }
  return cost > 0 ? rateOf(tokens / cost, price.currency, 'price') : null;
}

/** A price so small that the rate is beyond any number tells nothing. */
function rateOf(value: number, currency: string, from: 'gpu' | 'price'): Report['throughput']['tokensPerCost'] {
  return Number.isFinite(value) ? { value, currency, from } : null;
}

/** Tokens per second one user sees: 1000 / TPOT. `p99` is that of the slowest hundredth, so it is the smaller one. */
function perUser(row: Summary | null): Report['perUser'] {
  return row === null || row.p50 <= 0 || row.p99 <= 0 ? null : { p50: 1000 / row.p50, p99: 1000 / row.p99 };
}

function countOutcomes(measured: readonly Sample[]): Report['outcomes'] {
  const counts: Partial<Record<OutcomeKind, number>> = {};
  for (const s of measured) counts[s.outcome.kind] = (counts[s.outcome.kind] ?? 0) + 1;
  return counts;
}

/** What makes each server tell how many prompt tokens it took from its cache. */
const cacheHints: readonly { readonly server: RegExp; readonly hint: string }[] = [
  { server: /vllm/i, hint: 'Start vLLM with --enable-prompt-tokens-details to have it say how many prompt tokens were cached.' },
  { server: /sglang/i, hint: 'Start SGLang with --enable-cache-report to have it say how many prompt tokens were cached.' },
  { server: /ollama/i, hint: 'Ollama does not say how many prompt tokens were cached: compare the TTFT of the first request and of its repeats.' },
  { server: /tgi|text-generation-inference/i, hint: 'TGI does not say how many prompt tokens were cached: compare the TTFT of the first request and of its repeats.' },
];

function cacheFacts(done: readonly Sample[], endpoint: EndpointSummary): Report['cache'] {
  const sum = (values: readonly number[]): number | null => (values.length === 0 ? null : values.reduce((all, n) => all + n, 0));
  const unknown = done.filter((s) => s.cachedTokens === null).length;
  return {
    promptTokens: sum(present(done, (s) => s.promptTokens)),
    cachedTokens: sum(present(done, (s) => s.cachedTokens)),
    hits: done.filter((s) => (s.cachedTokens ?? 0) > 0).length,
    unknown,
    hint: unknown === 0 ? null : (cacheHints.find(({ server }) => server.test(endpoint.server ?? endpoint.api))?.hint ?? null),
  };
}

function clockSummary(errors: readonly Milliseconds[]): Report['clockError'] {
  // A frame can only arrive after it was sent; what little lies below 0 is the rounding of two clock readings.
  const order = sorted(errors.map((error) => Math.max(0, error)));
  return order.length === 0 ? null : { p50: percentile(order, 0.5), p99: percentile(order, 0.99), max: order[order.length - 1]!, n: order.length };
}
