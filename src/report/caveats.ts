import { isDue } from './goodput';
import { isProof } from './proof';
import type { EndpointSummary, PlanSummary, Report, Summary } from './report';
import { arrivedAtOnce, checkStamps, chunkGaps, completed, headersTime, itlOrReason, ttft, type Milliseconds, type NoItl, type OutcomeKind, type Sample, type TokenSource } from './sample';
import { median, percentile, samplesNeeded, sorted } from './statistics';

/** Reasons to distrust a run, with the numbers in them. `format.ts` turns one into a sentence with a consequence and a next step. */
export type Caveat =
  | { readonly kind: 'too-few-samples'; readonly metric: string; readonly percentile: number; readonly n: number; readonly needed: number }
  | { readonly kind: 'cold-first'; readonly first: Milliseconds; readonly rest: Milliseconds }
  | { readonly kind: 'cache-hits'; readonly requests: number; readonly of: number; readonly cachedTokens: number | null; readonly promptTokens: number | null; readonly evidence: 'cached-tokens' | 'bimodal-ttft' }
  | { readonly kind: 'cold-not-cold'; readonly requests: number; readonly of: number; readonly cachedTokens: number }
  | { readonly kind: 'several-tokens-per-frame'; readonly median: number; readonly max: number }
  | { readonly kind: 'many-frames-per-read'; readonly requests: number; readonly of: number; readonly max: number }
  | { readonly kind: 'one-read'; readonly requests: number; readonly of: number }
  | { readonly kind: 'delivery'; readonly cause: 'server-batches' | 'buffering-proxy' | 'content-filter' | 'compression'; readonly evidence: string; readonly itlMeaningless: boolean }
  | { readonly kind: 'late-start'; readonly requests: number; readonly of: number; readonly p99: Milliseconds; readonly max: Milliseconds }
  | { readonly kind: 'late-write'; readonly requests: number; readonly of: number; readonly max: Milliseconds }
  | { readonly kind: 'clock-error'; readonly metric: string; readonly error: Milliseconds; readonly value: Milliseconds; readonly percentile?: number }
  | { readonly kind: 'failures-left-out'; readonly failed: number; readonly of: number; readonly kinds: Readonly<Partial<Record<OutcomeKind, number>>> }
  | { readonly kind: 'tokens-estimated'; readonly source: string }
  | { readonly kind: 'itl-unavailable'; readonly reason: string }
  | { readonly kind: 'hidden-reasoning'; readonly tokens: number; readonly requests: number }
  | { readonly kind: 'contradicting-usage'; readonly what: string; readonly requests: number }
  | { readonly kind: 'connection-not-reused'; readonly requests: number; readonly of: number }
  | { readonly kind: 'unrendered-variables'; readonly names: readonly string[] }
  | { readonly kind: 'user-message-added'; readonly text: string }
  | { readonly kind: 'h2-stamps' }
  | { readonly kind: 'field-refused'; readonly field: string }
  | { readonly kind: 'tls-not-verified'; readonly origin: string }
  | { readonly kind: 'stopped'; readonly by: 'user' | 'breaker' | 'budget' | 'interrupted'; readonly detail: string }
  | { readonly kind: 'stamp-order'; readonly what: string; readonly requests: number }
  | { readonly kind: 'client-bottleneck'; readonly detail: string };

/** What caveats are found from: every sample of the run (stamps in any one origin) and what the report says so far. */
export interface CaveatInput {
  readonly samples: readonly Sample[];
  readonly plan: PlanSummary;
  readonly endpoint: EndpointSummary;
  readonly summary: Report['summary'];
  readonly clockError: Report['clockError'];
  /** Template variables that were sent as they stand. */
  readonly unrendered?: readonly string[];
  readonly stopped?: { readonly by: 'user' | 'breaker' | 'budget' | 'interrupted'; readonly detail: string } | null;
  /** Numbers that show the client was the limit; the caller measures its own event loop. */
  readonly clientBottleneck?: string | null;
  /** What {@link detectDelivery} said, where it was asked before. */
  readonly delivery?: ReturnType<typeof detectDelivery>;
}

/** A proxy that releases what it collected writes it in several pieces; reads closer than this (ms) are one burst. */
const burstGap: Milliseconds = 2;

/** A cached prompt counts as warm from this share of its tokens: a few tokens of a chat template always match and move nothing. */
const warmShare = 0.1;
/** A first request is slow above this ratio to the median of the rest, and by at least this many ms. */
const coldRatio = 1.5;
const coldDifference = 20;
/** Two groups of TTFT are told apart from a tail when the slower group starts this far above the faster one. */
const groupRatio = 1.5;
/** A request started late, in ms after its slot or its time; the written head may follow `start` by 1 ms (metrics.md). */
const lateStart = 10;
const lateWrite = 1;
/** Measured clock error above this share of a metric is a caveat. */
const clockShare = 0.05;
/** Deltas with two tokens or more are normal up to this share: the two halves of a character, an end token. */
const severalShare = 0.1;
/** Tokens per frame of a stream whose per-frame counts are unknown: N / deltas from here on. */
const severalRatio = 1.3;
/** Frames in one read from here on, where that leaves a tenth of the gaps at 0; two or three come together whenever a token is faster than the network. */
const manyFrames = 4;
const zeroGapShare = 0.1;
/** So many frames in one read are told of in any case. */
const veryManyFrames = 10;

/** The tokens served from the cache are enough to make this a warm request. Null when the server does not say. */
export function isWarm(s: Sample): boolean | null {
  if (s.cachedTokens === null) return null;
  return s.cachedTokens > 0 && (s.promptTokens === null || s.cachedTokens >= warmShare * s.promptTokens);
}

/** Every reason to distrust the run, most consequential first. */
export function findCaveats(input: CaveatInput): Caveat[] {
  const measured = input.samples.filter((s) => s.role === 'measured');
  const done = measured.filter(completed);
  const streamed = done.filter((s) => s.firstToken !== null);
  if (isProof(input.plan)) return [...stops(input), ...proofCaveats(input, done)];
  const cause = input.delivery === undefined ? detectDelivery(input.samples, input.endpoint) : input.delivery;
  return [
    ...stops(input),
    ...failures(measured),
    ...cacheStates(input, done, streamed),
    ...coldFirst(input, streamed),
    ...deliveryCaveats(cause, streamed),
    ...tokenCounts(cause, streamed),
    ...schedule(measured),
    ...clock(input),
    ...connections(input, done),
    ...sampleSize(input),
  ];
}

/** A proof tells of failures and cold hits itself, and nothing of it rests on gaps, pace or percentiles: what is left is about the request and the wait for its first token. */
function proofCaveats(input: CaveatInput, done: readonly Sample[]): Caveat[] {
  return [...clock(input).filter((caveat) => caveat.kind === 'clock-error' && caveat.metric === 'ttft' && caveat.percentile === 50), ...connections(input, done)];
}

function stops({ stopped, clientBottleneck, unrendered }: CaveatInput): Caveat[] {
  const found: Caveat[] = [];
  if (stopped) found.push({ kind: 'stopped', by: stopped.by, detail: stopped.detail });
  if (clientBottleneck) found.push({ kind: 'client-bottleneck', detail: clientBottleneck });
  if (unrendered && unrendered.length > 0) found.push({ kind: 'unrendered-variables', names: [...unrendered] });
  return found;
}

function failures(measured: readonly Sample[]): Caveat[] {
  const due = measured.filter(isDue);
  const failed = due.filter((s) => !completed(s));
  if (failed.length === 0) return [];
  const kinds: Partial<Record<OutcomeKind, number>> = {};
  for (const s of failed) kinds[s.outcome.kind] = (kinds[s.outcome.kind] ?? 0) + 1;
  return [{ kind: 'failures-left-out', failed: failed.length, of: due.length, kinds }];
}

function cacheStates({ plan, samples }: CaveatInput, done: readonly Sample[], streamed: readonly Sample[]): Caveat[] {
  const warm = done.filter((s) => isWarm(s) === true);
  if (warm.length > 0) {
    const cachedTokens = Math.round(median(warm.map((s) => s.cachedTokens ?? 0)) ?? 0);
    if (plan.cache === 'cold') return [{ kind: 'cold-not-cold', requests: warm.length, of: done.length, cachedTokens }];
    const told = warm.flatMap((s) => (s.promptTokens === null ? [] : [s.promptTokens]));
    const prompt = median(told);
    return [{ kind: 'cache-hits', requests: warm.length, of: done.length, cachedTokens, promptTokens: prompt === null ? null : Math.round(prompt), evidence: 'cached-tokens' }];
  }
  const unknown = done.length > 0 && done.every((s) => s.cachedTokens === null);
  const prompts = new Set(samples.map((s) => s.labels['prompt'] ?? ''));
  if (!unknown || plan.cache === 'cold' || prompts.size > 1) return [];
  const fast = fasterGroup(streamed);
  return fast === null ? [] : [{ kind: 'cache-hits', requests: fast, of: streamed.length, cachedTokens: null, promptTokens: null, evidence: 'bimodal-ttft' }];
}

/** Size of the faster of two clear groups of TTFT whose difference is not the wait for the response head; null when there is one group. */
function fasterGroup(streamed: readonly Sample[]): number | null {
  const groups = twoGroups(streamed.map((s) => ttft(s) ?? 0));
  if (groups === null) return null;
  const withoutQueue = streamed.map((s) => (ttft(s) ?? 0) - (headersTime(s) ?? 0));
  const computing = twoGroups(withoutQueue);
  const middles = [median(groups.low) ?? 0, median(groups.high) ?? 0] as const;
  const apart = middles[1] - middles[0];
  // Where the head came late for the slow group, they queued: what is left after it must still differ by half.
  const left = computing === null ? 0 : (median(computing.high) ?? 0) - (median(computing.low) ?? 0);
  return left >= apart / 2 ? groups.low.length : null;
}

/**
 * Splits values into two groups where the variance between them (of the logarithms) is largest (Otsu). Null unless both groups hold at
 * least two values and a tenth of them, the split explains 80 % of the variance, and a clear space lies between.
 */
export function twoGroups(values: readonly number[]): { readonly low: readonly number[]; readonly high: readonly number[] } | null {
  const order = [...sorted(values)].filter((v) => v > 0);
  const n = order.length;
  const least = Math.max(2, Math.ceil(n / 10));
  if (n < 6) return null;
  const logs = order.map(Math.log);
  const mean = logs.reduce((sum, x) => sum + x, 0) / n;
  const all = logs.reduce((sum, x) => sum + (x - mean) ** 2, 0);
  let best = { at: 0, between: 0 };
  let sum = 0;
  for (let i = 1; i < n; i += 1) {
    sum += logs[i - 1]!;
    const between = (sum - i * mean) ** 2 * (1 / i + 1 / (n - i));
    if (i >= least && n - i >= least && between > best.between) best = { at: i, between };
  }
  if (best.at === 0 || best.between < 0.8 * all || order[best.at]! < groupRatio * order[best.at - 1]!) return null;
  return { low: order.slice(0, best.at), high: order.slice(best.at) };
}

function coldFirst({ plan }: CaveatInput, streamed: readonly Sample[]): Caveat[] {
  if (plan.warmup > 0 || streamed.length < 4) return [];
  const [firstSample, ...others] = [...streamed].sort((a, b) => a.start - b.start);
  const first = ttft(firstSample!) ?? 0;
  const rest = median(others.map((s) => ttft(s) ?? 0)) ?? 0;
  return first > coldRatio * rest && first - rest > coldDifference ? [{ kind: 'cold-first', first, rest }] : [];
}

/** How the frames of one stream came, from its deltas. */
interface Arrival {
  /** Frames per burst of reads. */
  readonly framesPerBurst: number;
  /** Median silence between bursts; null with fewer than two. */
  readonly betweenBursts: Milliseconds | null;
  /** Median time from a burst's first read to its last. */
  readonly burstSpan: Milliseconds;
  /** N_stream per delta; null when N is only a count of deltas or unknown. */
  readonly tokensPerFrame: number | null;
}

function arrival(s: Sample): Arrival {
  const bursts: { from: Milliseconds; to: Milliseconds }[] = [];
  for (const [t] of s.deltas) {
    const burst = bursts.at(-1);
    if (burst && t - burst.to <= burstGap) burst.to = t;
    else bursts.push({ from: t, to: t });
  }
  const counted = s.outputTokens.source !== 'deltas' && s.streamTokens !== null;
  return {
    framesPerBurst: s.deltas.length / bursts.length,
    betweenBursts: median(bursts.slice(1).map((burst, i) => burst.from - bursts[i]!.to)),
    burstSpan: median(bursts.map((burst) => burst.to - burst.from)) ?? 0,
    tokensPerFrame: counted ? s.streamTokens / s.deltas.length : null,
  };
}

/** The likely cause when frames do not arrive as they are generated, and whether ITL then means nothing; null when delivery looks plain. */
export function detectDelivery(samples: readonly Sample[], endpoint: EndpointSummary): Extract<Caveat, { kind: 'delivery' }> | null {
  const streamed = samples.filter((s) => s.role === 'measured' && completed(s) && s.deltas.length > 0 && ((s.streamTokens ?? s.deltas.length) > 1));
  if (streamed.length === 0) return null;
  const found = (cause: Extract<Caveat, { kind: 'delivery' }>['cause'], evidence: string, itlMeaningless: boolean) => ({ kind: 'delivery', cause, evidence, itlMeaningless }) as const;
  const arrivals = streamed.map(arrival);
  const framesPerBurst = median(arrivals.map((a) => a.framesPerBurst)) ?? 1;
  const betweenBursts = median(arrivals.flatMap((a) => (a.betweenBursts === null ? [] : [a.betweenBursts])));
  const burstSpan = median(arrivals.map((a) => a.burstSpan)) ?? 0;
  const tokensPerFrame = median(arrivals.flatMap((a) => (a.tokensPerFrame === null ? [] : [a.tokensPerFrame])));
  const atOnce = streamed.filter(arrivedAtOnce).length;
  const whole = atOnce * 2 >= streamed.length;
  const filtered = endpoint.api === 'azure' || streamed.some((s) => s.flags.some((flag) => flag.startsWith('content-filter')));
  const encoding = streamed.flatMap((s) => s.flags).find((flag) => flag.startsWith('content-encoding'));
  const round = (x: number): number => Math.round(x * 10) / 10;

  if (encoding !== undefined) return found('compression', `the stream came with ${encoding.replace(':', ' ')}, ${round(framesPerBurst)} frames a read`, whole || framesPerBurst >= 1.5);
  if (whole) {
    const frames = median(streamed.filter(arrivedAtOnce).map((s) => s.deltas.length)) ?? 1;
    if (frames <= 1) return found(filtered ? 'content-filter' : 'server-batches', `the whole answer came in one frame in ${atOnce} of ${streamed.length} requests`, true);
    return found(filtered ? 'content-filter' : 'buffering-proxy', `the whole answer, ${Math.round(frames)} frames, came in one read in ${atOnce} of ${streamed.length} requests`, true);
  }
  if (tokensPerFrame !== null && tokensPerFrame >= 2) {
    const known = streamed.every((s) => Array.isArray(itlOrReason(s)));
    return found(filtered ? 'content-filter' : 'server-batches', `${round(tokensPerFrame)} tokens a frame`, !known);
  }
  // Below 20 ms of silence, tokens that come together are as likely our own reading; a burst as long as a tenth of it, a fast server that paused.
  if (framesPerBurst >= 3 && betweenBursts !== null && betweenBursts >= 20 && burstSpan <= betweenBursts / 10) {
    return found(filtered ? 'content-filter' : 'buffering-proxy', `${round(framesPerBurst)} frames at once, then ${Math.round(betweenBursts)} ms of nothing`, true);
  }
  return null;
}

function deliveryCaveats(cause: ReturnType<typeof detectDelivery>, streamed: readonly Sample[]): Caveat[] {
  const found: Caveat[] = [];
  if (cause !== null) found.push(cause);
  const atOnce = streamed.filter(arrivedAtOnce);
  if (atOnce.length > 0) found.push({ kind: 'one-read', requests: atOnce.length, of: streamed.length });
  const crowded = streamed.filter((s) => !arrivedAtOnce(s) && isCrowded(s));
  if (crowded.length > 0) found.push({ kind: 'many-frames-per-read', requests: crowded.length, of: streamed.length, max: Math.max(...crowded.map((s) => s.maxDeltasPerRead)) });
  const several = severalTokens(streamed);
  if (several !== null) found.push(several);
  return found;
}

function isCrowded(s: Sample): boolean {
  if (s.maxDeltasPerRead < manyFrames) return false;
  const gaps = chunkGaps(s);
  return s.maxDeltasPerRead >= veryManyFrames || gaps.filter((gap) => gap === 0).length >= zeroGapShare * gaps.length;
}

function severalTokens(streamed: readonly Sample[]): Caveat | null {
  const known = streamed.flatMap((s) => s.deltas.map((delta) => delta[2])).filter((k) => k !== null);
  if (known.length > 0) {
    const share = known.filter((k) => k >= 2).length / known.length;
    return share > severalShare ? { kind: 'several-tokens-per-frame', median: median(known) ?? 1, max: known.reduce((most, k) => Math.max(most, k), 1) } : null;
  }
  const ratios = streamed.flatMap((s) => arrival(s).tokensPerFrame ?? []);
  const middle = median(ratios);
  return middle !== null && middle >= severalRatio ? { kind: 'several-tokens-per-frame', median: middle, max: Math.max(...ratios) } : null;
}

/** Token counts that are not the server's own, worst first. */
const estimates: readonly TokenSource[] = ['deltas', 'local-tokenizer'];
const noItlReasons: Readonly<Record<Exclude<NoItl, 'no-second-delta' | 'one-read'>, string>> = {
  'tokens-unknown': 'the server does not say how many tokens a frame holds',
  'counts-disagree': 'the tokens of the frames do not add up to the total',
};

function tokenCounts(cause: ReturnType<typeof detectDelivery>, streamed: readonly Sample[]): Caveat[] {
  const found: Caveat[] = [];
  const estimate = estimates.find((source) => streamed.some((s) => s.outputTokens.source === source));
  if (estimate !== undefined) found.push({ kind: 'tokens-estimated', source: estimate });
  // A single frame has no gap, and what came in one read has a caveat of its own.
  const told = streamed.filter((s) => itlOrReason(s) !== 'one-read');
  const reasons = told.map(itlOrReason).filter((r) => typeof r === 'string').filter((r) => r !== 'no-second-delta' && r !== 'one-read');
  if (cause?.itlMeaningless === true && reasons.length < told.length) {
    found.push({ kind: 'itl-unavailable', reason: 'the frames did not arrive as they were generated' });
  } else if (reasons.length > 0) {
    const counts = new Map<keyof typeof noItlReasons, number>();
    for (const reason of reasons) counts.set(reason, (counts.get(reason) ?? 0) + 1);
    const [most] = [...counts].sort((a, b) => b[1] - a[1])[0]!;
    found.push({ kind: 'itl-unavailable', reason: `${noItlReasons[most]} (${counts.get(most) ?? 0} of ${streamed.length} requests)` });
  }
  const hidden = streamed.map((s) => (s.outputTokens.count ?? 0) - (s.streamTokens ?? s.outputTokens.count ?? 0)).filter((k) => k > 0);
  if (hidden.length > 0) found.push({ kind: 'hidden-reasoning', tokens: Math.round(median(hidden) ?? 0), requests: hidden.length });
  const untold = streamed.filter((s) => s.flags.includes('hidden-reasoning-unknown')).length;
  // 0 tokens: some, but the server does not say how many.
  if (hidden.length === 0 && untold > 0) found.push({ kind: 'hidden-reasoning', tokens: 0, requests: untold });
  const contradictions = new Map<string, number>();
  for (const flag of streamed.flatMap((s) => [...new Set(s.flags)])) {
    if (/[<>]|not-add-up|decreased|contradict|mismatch/.test(flag)) contradictions.set(flag, (contradictions.get(flag) ?? 0) + 1);
  }
  for (const [what, requests] of contradictions) found.push({ kind: 'contradicting-usage', what, requests });
  return found;
}

function schedule(measured: readonly Sample[]): Caveat[] {
  const found: Caveat[] = [];
  const lateness = measured.map((s) => s.start - s.due);
  const late = lateness.filter((ms) => ms > lateStart).length;
  if (late > 0) {
    const order = sorted(lateness);
    found.push({ kind: 'late-start', requests: late, of: measured.length, p99: percentile(order, 0.99), max: order[order.length - 1]! });
  }
  // On a new connection the head waits for the connection, which is shown as a phase of its own.
  const writes = measured.flatMap((s) => (s.written === null ? [] : [s.written - Math.max(s.start, s.connection.connected ?? s.start, s.connection.secured ?? s.start)]));
  const slow = writes.filter((ms) => ms > lateWrite);
  if (slow.length > 0) found.push({ kind: 'late-write', requests: slow.length, of: writes.length, max: Math.max(...slow) });
  const broken = measured.flatMap((s) => checkStamps(s) ?? []);
  if (broken.length > 0) found.push({ kind: 'stamp-order', what: broken[0]!, requests: broken.length });
  return found;
}

/** The metrics that are one span or one gap: the error of a stamp enters them whole. */
const clockMetrics = ['ttft', 'chunkGap'] as const;

function clock({ clockError, summary }: CaveatInput): Caveat[] {
  if (clockError === null) return [];
  return clockMetrics.flatMap((metric) => {
    const row: Summary | null = summary[metric];
    if (row === null) return [];
    const worst = ([[50, clockError.p50, row.p50], [99, clockError.p99, row.p99]] as const)
      .filter(([, error, value]) => value > 0 && error > clockShare * value)
      .sort((a, b) => b[1] / b[2] - a[1] / a[2])[0];
    return worst === undefined ? [] : [{ kind: 'clock-error' as const, metric, percentile: worst[0], error: worst[1], value: worst[2] }];
  });
}

function connections({ plan, endpoint, samples }: CaveatInput, done: readonly Sample[]): Caveat[] {
  const found: Caveat[] = [];
  const fresh = done.filter((s) => !s.connection.reused).length;
  // Without a warm-up each slot has to open its connection once.
  if (fresh > (plan.warmup > 0 ? 0 : plan.concurrency)) found.push({ kind: 'connection-not-reused', requests: fresh, of: done.length });
  if (samples.some((s) => s.connection.alpn === 'h2')) found.push({ kind: 'h2-stamps' });
  for (const field of endpoint.refusedFields) found.push({ kind: 'field-refused', field });
  if (!endpoint.tlsVerified && endpoint.origin.startsWith('https:')) found.push({ kind: 'tls-not-verified', origin: endpoint.origin });
  return found;
}

/** One caveat for the run, on the metric people read first and the lowest percentile that has no interval. The table says it cell by cell. */
function sampleSize({ summary }: CaveatInput): Caveat[] {
  const metric = summary.ttft === null ? 'total' : 'ttft';
  const n = summary[metric]?.n ?? 0;
  const lacking = n === 0 ? undefined : [50, 90, 95, 99].find((p) => n < samplesNeeded(p / 100));
  return lacking === undefined ? [] : [{ kind: 'too-few-samples', metric, percentile: lacking, n, needed: samplesNeeded(lacking / 100) }];
}
