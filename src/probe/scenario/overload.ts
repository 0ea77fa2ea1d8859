/** Beyond capacity on purpose: does the server bound its queue or let everyone wait, and how soon is it well again? */
import type { ChatPrompt } from '../../prompt/prompt';
import { queueGrowth } from '../../report/capacity';
import { count, digits, ms, outOf } from '../../report/format';
import { completed, ttft, type Milliseconds, type Sample } from '../../report/sample';
import { median } from '../../report/statistics';
import { PlanError } from '../plan';
import { firstOf, labelled, middle, oneShot, took, tooFewAnswers, type Detected } from './detector';
import { loadResult, percentileOf } from './loadStep';
import { checkOpenFiles } from './openFiles';
import { stepPlan, type Scenario, type ScenarioContext, type Steps } from './scenario';

/** What to send. */
export interface OverloadOptions {
  readonly prompt: ChatPrompt;
  readonly maxTokens: number;
  /** Requests in flight to find the capacity with. */
  readonly concurrency: number;
  /** The burst's rate as a multiple of the capacity, and how long it lasts. */
  readonly factor: number;
  readonly duration: Milliseconds;
  /** Most requests of the burst. */
  readonly mostRequests: number;
}

/** `bounded`: what does not fit is refused soon; `unbounded`: everyone waits longer and longer; `absorbed`: the burst was no overload; `failing`: answers break. */
export type OverloadVerdict = 'bounded' | 'unbounded' | 'absorbed' | 'failing' | 'unclear';

/** What the verdict rests on. */
export interface OverloadEvidence {
  readonly capacityPerSecond: number | null;
  readonly burstPerSecond: number | null;
  readonly burstRequests: number;
  readonly answered: number;
  /** Refused with 429 or 503, how soon, and with which Retry-After (medians). */
  readonly refused: number;
  readonly refusedAfterMs: Milliseconds | null;
  readonly retryAfterMs: Milliseconds | null;
  readonly otherFailures: number;
  readonly ttftBeforeMs: Milliseconds | null;
  /** Of the answered requests of the burst. */
  readonly ttftMs: Milliseconds | null;
  readonly ttftP99Ms: Milliseconds | null;
  /** Wait gained per second of the burst by those who were answered; null = not growing. */
  readonly waitGrowthPerSecondMs: number | null;
  /** From the burst's end until a request is served as before; null = not while it was watched. */
  readonly recoveryMs: Milliseconds | null;
  readonly watchedMs: Milliseconds | null;
  readonly reason: string | null;
}

/** `first-token/overload@1`. */
export type OverloadResult = Detected<OverloadVerdict, OverloadEvidence> & { readonly schema: 'first-token/overload@1' };

/** Requests one by one, then the capacity, then a burst beyond it with single requests after it. */
export function overload(options: OverloadOptions): Scenario<OverloadResult> {
  return { name: 'overload', steps: (context) => detecting(options, context) };
}

const nothing: OverloadEvidence = { capacityPerSecond: null, burstPerSecond: null, burstRequests: 0, answered: 0, refused: 0, refusedAfterMs: null, retryAfterMs: null, otherFailures: 0, ttftBeforeMs: null, ttftMs: null, ttftP99Ms: null, waitGrowthPerSecondMs: null, recoveryMs: null, watchedMs: null, reason: null };

function* detecting(options: OverloadOptions, context: ScenarioContext): Steps<OverloadResult> {
  const { prompt, maxTokens, concurrency, factor, duration, mostRequests } = options;
  if (!(factor > 1)) throw new PlanError(`--factor must be above 1, or there is no overload; it is ${factor}.`);
  checkOpenFiles(Math.max(concurrency, mostRequests));
  const plan = (more: Parameters<typeof stepPlan>[2]) => stepPlan(context, 'overload', { breaker: null, ...more });
  const end = (verdict: OverloadVerdict, evidence: OverloadEvidence, stopped: string | null = null) => ({ result: resultOf(verdict, evidence, stopped), shown: null });

  const warm = Array.from({ length: context.settings.warmup }, (_, i) => oneShot(`warm-${i}`, prompt, maxTokens, { role: 'warmup' }));
  const before = yield { name: 'before', plan: plan({ shots: [...warm, ...Array.from({ length: 6 }, (_, i) => oneShot(`before-${i}`, prompt, maxTokens, { labels: { kind: 'before' } }))], concurrency: 1 }), soFar: null, shown: null };
  const base = middle(labelled(before.samples, 'kind', 'before'), (s) => firstOf(s) - s.start);
  const alone = middle(labelled(before.samples, 'kind', 'before'), took);
  const failed = tooFewAnswers(before.samples);
  if (failed !== null || base === null || alone === null || before.stopped) return end('unclear', { ...nothing, reason: failed }, before.stopped?.detail ?? null);

  const filling = (name: string, slots: number, requests: number) => ({ name, plan: plan({ shots: Array.from({ length: requests }, (_, i) => oneShot(`${name}-${i}`, prompt, maxTokens, { labels: { kind: 'capacity' } })), concurrency: slots }), soFar: null, shown: null });
  let slots = concurrency;
  let full = yield filling('capacity', slots, 3 * concurrency);
  if (!full.stopped && full.samples.filter(isRefusal).length > 0.1 * full.samples.length) {
    // Refused requests were over at once and kept nothing busy: as many as were taken at first fill the server without refusals.
    slots = Math.max(1, [...full.samples].sort((a, b) => a.start - b.start).slice(0, concurrency).filter(completed).length);
    full = yield filling('capacity-2', slots, Math.max(20, 5 * slots));
  }
  const capacity = loadResult(full, context.slo, slots, context.target).throughput.requestsPerSecond;
  const known = { ...nothing, ttftBeforeMs: base, capacityPerSecond: capacity };
  if (capacity === null || full.stopped) return end('unclear', { ...known, reason: tooFewAnswers(full.samples) }, full.stopped?.detail ?? null);

  const burstRate = factor * capacity;
  const requests = Math.min(mostRequests, Math.ceil((burstRate * duration) / 1000));
  const burstEnd = (requests / burstRate) * 1000;
  // What came too much takes (factor − 1) × the burst to drain, where it is kept.
  const watched = 1.5 * (factor - 1) * burstEnd + 4 * alone + 500;
  const every = Math.max(watched / 60, 2 * base, 20);
  const shots = [
    ...Array.from({ length: requests }, (_, i) => oneShot(`burst-${i}`, prompt, maxTokens, { dueAt: (i * 1000) / burstRate, labels: { kind: 'burst' } })),
    ...Array.from({ length: Math.ceil(watched / every) }, (_, i) => oneShot(`after-${i}`, prompt, Math.min(maxTokens, 8), { dueAt: burstEnd + (i + 1) * every, labels: { kind: 'after' } })),
  ];
  const burst = yield { name: 'burst', plan: plan({ shots, concurrency: Math.min(256, requests) }), soFar: end('unclear', known).result, shown: null };
  const evidence = read(known, burst.samples, base, { burstRate, burstEnd, watched });
  if (burst.stopped && evidence.burstRequests < requests / 2) return end('unclear', evidence, burst.stopped.detail);
  return end(judge(evidence, base, alone), evidence, burst.stopped?.detail ?? null);
}

function isRefusal(s: Sample): boolean {
  return s.outcome.kind === 'status' && (s.outcome.status === 429 || s.outcome.status === 503);
}

function read(known: OverloadEvidence, samples: readonly Sample[], base: Milliseconds, { burstRate, burstEnd, watched }: { readonly burstRate: number; readonly burstEnd: Milliseconds; readonly watched: Milliseconds }): OverloadEvidence {
  const due = samples.filter((s) => s.labels['kind'] === 'burst' && s.outcome.kind !== 'cancelled');
  const answered = due.filter(completed);
  const refusals = due.filter(isRefusal);
  const growth = queueGrowth(answered);
  const origin = Math.min(...due.map((s) => s.due));
  return {
    ...known,
    burstPerSecond: burstRate,
    burstRequests: due.length,
    answered: answered.length,
    refused: refusals.length,
    refusedAfterMs: median(refusals.map((s) => (s.headers ?? s.end ?? s.start) - s.start)),
    retryAfterMs: median(refusals.flatMap((s) => s.outcome.retryAfter ?? [])),
    otherFailures: due.length - answered.length - refusals.length,
    ttftMs: percentileOf(answered, (s) => firstOf(s) - s.start, 0.5),
    ttftP99Ms: percentileOf(answered, (s) => firstOf(s) - s.start, 0.99),
    waitGrowthPerSecondMs: growth?.growing === true ? growth.perSecond : null,
    recoveryMs: recovery(samples.filter((s) => s.labels['kind'] === 'after'), origin + burstEnd, base),
    watchedMs: watched,
  };
}

/** When, after the burst, a request was served as before and all that came after it too. */
function recovery(after: readonly Sample[], burstEnd: Milliseconds, base: Milliseconds): Milliseconds | null {
  const well = (s: Sample): boolean => completed(s) && (ttft(s) ?? took(s)) <= 2 * base + 20;
  const order = [...after].sort((a, b) => a.due - b.due);
  const lastBad = order.findLastIndex((s) => !well(s));
  const first = order[lastBad + 1];
  return first === undefined ? null : Math.max(0, first.due - burstEnd);
}

function judge(e: OverloadEvidence, base: Milliseconds, alone: Milliseconds): OverloadVerdict {
  if (e.otherFailures > 0.1 * e.burstRequests) return 'failing';
  if (e.refused >= 0.05 * e.burstRequests) return 'bounded';
  if (e.waitGrowthPerSecondMs !== null || (e.ttftP99Ms ?? 0) > 3 * base + alone) return 'unbounded';
  return e.answered === 0 ? 'unclear' : 'absorbed';
}

function resultOf(verdict: OverloadVerdict, evidence: OverloadEvidence, stopped: string | null): OverloadResult {
  return { schema: 'first-token/overload@1', verdict, evidence, stopped, sentences: sentences(verdict, evidence, stopped) };
}

function sentences(verdict: OverloadVerdict, e: OverloadEvidence, stopped: string | null): string[] {
  if (verdict === 'unclear' || e.burstPerSecond === null || e.capacityPerSecond === null) return [`What an overload does is unclear${e.reason === null ? '' : `: ${e.reason}`}.`, stopped === null ? 'Run it again on a quiet server.' : `The experiment was stopped (${stopped}).`];
  const burst = `${count(e.burstRequests)} requests at ${digits(e.burstPerSecond)}/s, where ${digits(e.capacityPerSecond)}/s are served`;
  const waits = e.ttftMs === null || e.ttftP99Ms === null ? 'nothing was answered' : `those answered waited ${ms(e.ttftMs)} (p50) and ${ms(e.ttftP99Ms)} (p99) for the first token, ${ms(e.ttftBeforeMs ?? 0)} before`;
  const well = e.recoveryMs === null ? `It was not itself again within ${ms(e.watchedMs ?? 0)} of the burst’s end.` : `It served as before ${ms(e.recoveryMs)} after the burst’s end.`;
  switch (verdict) {
    case 'bounded':
      return [`The queue is bounded: of ${burst}, ${count(e.refused)} were refused after ${ms(e.refusedAfterMs ?? 0)}${e.retryAfterMs === null ? ', without Retry-After' : `, with Retry-After ${ms(e.retryAfterMs)}`}, and ${waits}.`, well];
    case 'unbounded':
      return [`The queue is not bounded: of ${burst}, ${outOf(e.answered, e.burstRequests)} were answered, and ${waits}${e.waitGrowthPerSecondMs === null ? '' : `, ${ms(e.waitGrowthPerSecondMs)} more with every second`}.`, `${well} A bound on waiting requests with a quick 429 or 503 would let clients turn elsewhere.`];
    case 'absorbed':
      return [`The burst was no overload: of ${burst}, ${outOf(e.answered, e.burstRequests)} were answered, and ${waits}.`, `${well} Raise --factor or --duration to go beyond.`];
    case 'failing':
      return [`Answers break under overload: of ${burst}, ${count(e.otherFailures)} failed otherwise than by a refusal.`, `${well} Look at the outcomes and the server’s log.`];
  }
}
