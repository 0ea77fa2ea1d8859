/** Load at a rate: requests come when they are due, whatever is still being answered. What rate can the server sustain under the SLO? */
import { knee, queueGrowth, type QueueGrowth } from '../../report/capacity';
import { answersToProve } from '../../report/goodput';
import { count, counted, digits, ms, outOf } from '../../report/format';
import type { Slo, Summary } from '../../report/report';
import { completed, total, ttft, type Milliseconds, type Sample } from '../../report/sample';
import { percentile, sorted, summarise } from '../../report/statistics';
import { createNonce, PlanError, type Shot } from '../plan';
import { shotsOf, type ShotSource, type Workload } from '../workload';
import { arrivalTimes, type ArrivalKind } from './arrivals';
import { bracket, nextToTry, type Tried } from './kneeSearch';
import { loadResult, strain, type LoadResult } from './loadStep';
import { checkOpenFiles } from './openFiles';
import { stepPlan, type Scenario, type ScenarioContext, type ScenarioResult, type Step, type StepRun, type Steps } from './scenario';

/** How requests come. */
export interface RateOptions {
  readonly workload: Workload;
  readonly arrivals: ArrivalKind;
  readonly seed: number;
  /** Rates to climb, per second, rising; null = doubling from what one user at a time gets. One rate alone is only measured, not searched around. */
  readonly list: readonly number[] | null;
  /** Never faster, per second. */
  readonly most: number;
  /** Length of a step. A step has at least 20 requests however slow its rate. */
  readonly duration: Milliseconds;
  /** No step is begun that would end later; null = no limit. */
  readonly within: Milliseconds | null;
  readonly tolerance: number;
  /** No more in flight at once; what it holds back starts late, and latencies from `due` say so. */
  readonly mostInFlight: number;
}

/** One rate. */
export interface RateStep extends LoadResult {
  /** Asked for, per second. */
  readonly rate: number;
  /** Requests that were started, per second of the schedule. */
  readonly started: number;
  /** The latencies of `summary`, counted from when the schedule wanted the request to start. */
  readonly fromDue: { readonly ttft: Summary | null; readonly total: Summary | null };
  readonly queue: QueueGrowth | null;
  /** How late requests started, ms. */
  readonly late: { readonly p50: Milliseconds; readonly p99: Milliseconds; readonly max: Milliseconds } | null;
}

/** `first-token/rate@1`. */
export interface RateResult extends ScenarioResult {
  readonly schema: 'first-token/rate@1';
  readonly arrivals: ArrivalKind | 'trace';
  readonly seed: number;
  readonly steps: readonly RateStep[];
  /** The largest rate that keeps the SLO with a queue that does not grow. */
  readonly knee: RateStep | null;
  readonly ended: string;
}

interface Measured extends Tried {
  readonly step: RateStep;
  readonly name: string;
}

const leastRequests = 20;
const mostRequests = 100_000;

/** Rates up to where the SLO breaks or the queue grows, then closer to the sustainable rate; or a trace by its own times. */
export function rate(options: RateOptions): Scenario<RateResult> {
  return { name: 'rate', atRate: true, steps: (context) => (options.workload.timed ? replaying(options, context) : searching(options, context)) };
}

function* searching(options: RateOptions, context: ScenarioContext): Steps<RateResult> {
  check(options, context.slo);
  const { slo, settings } = context;
  const source: ShotSource = { workload: options.workload, runNonce: createNonce(), maxTokens: settings.maxTokens };
  const measured: Measured[] = [];
  let ended = 'the sustainable rate is enclosed';
  let sent = 0;
  const result = (): RateResult => resultOf(measured, options, slo, ended);
  let load = options.list?.[0] ?? null;
  if (load === null) {
    // What one user at a time gets is a rate that surely can be sustained.
    const alone = shotsOf(source, 'alone', 5, { labels: { rate: 0 } });
    const run = yield { name: 'alone', plan: stepPlan(context, 'rate', { shots: [...shotsOf(source, 'alone', settings.warmup, { role: 'warmup' }), ...alone], concurrency: 1 }), soFar: null, shown: null };
    sent += alone.length;
    load = Math.min(options.most, serviceRate(run) ?? 1);
    if (run.stopped) return { result: resultOf([], options, slo, run.stopped.detail), shown: null };
  }
  const firstRate = load;
  const limits = { first: firstRate, most: options.most, tolerance: options.tolerance, whole: false, list: options.list };
  for (let next: number | null = load; next !== null; ) {
    const rateNow: number = next;
    const name = `r${digits(rateNow).replace(/\s/g, '')}-${measured.length + 1}`;
    const step = makeStep(options, context, source, { name, rate: rateNow, from: sent, soFar: measured.length === 0 ? null : result(), shown: shownOf(measured) });
    const run = yield step;
    sent += step.plan.shots.length;
    if (run.samples.some((s) => s.role === 'measured')) measured.push(read(run, rateNow, name, context));
    if (run.stopped) {
      ended = run.stopped.detail;
      break;
    }
    if (measured.at(-1)!.step.clientBottleneck !== null && bracket(measured, slo).broken !== null) {
      // It may have been a moment's trouble: once more, then believe it.
      if (measured.filter((m) => m.load === rateNow).length < 2 && options.list?.length !== 1) continue;
      ended = 'this machine could not send more';
      break;
    }
    if (options.list?.length === 1) {
      ended = 'the one rate asked for was measured';
      break;
    }
    next = nextToTry(measured, slo, limits) ?? unproved(measured, slo);
    if (next === null && bracket(measured, slo).broken === null) ended = `the largest rate asked for was reached (${options.list === null ? '--most' : '--rates'})`;
    if (next !== null && options.within !== null && run.elapsed + (requestsAt(next, options) / next) * 1000 > options.within) {
      ended = `another step would have taken longer than the time limit of ${ms(options.within)} (--within)`;
      break;
    }
  }
  return { result: result(), shown: shownOf(measured) };
}

/** The trace as it was recorded: one step, judged as it is. */
function* replaying(options: RateOptions, context: ScenarioContext): Steps<RateResult> {
  check(options, context.slo);
  const { workload } = options;
  const source: ShotSource = { workload, runNonce: createNonce(), maxTokens: context.settings.maxTokens };
  const shots = shotsOf(source, 'trace', workload.length ?? 0, { dueAt: (_, item) => item.at ?? 0 });
  const span = shots.at(-1)?.dueAt ?? 0;
  const warm = shotsOf(source, 'trace', context.settings.warmup, { role: 'warmup' });
  const run = yield { name: 'trace', plan: stepPlan(context, 'rate', { shots: [...warm, ...shots], concurrency: 1, mostInFlight: options.mostInFlight }), soFar: null, shown: null };
  const measured = run.samples.some((s) => s.role === 'measured') ? [read(run, span > 0 ? (shots.length * 1000) / span : shots.length, 'trace', context)] : [];
  return { result: resultOf(measured, options, context.slo, run.stopped?.detail ?? 'the trace was replayed to its end'), shown: null };
}

function check({ list, most, duration, workload, mostInFlight }: RateOptions, slo: Slo): void {
  if (!(most > 0) || most > 10_000) throw new PlanError(`--most must be a rate from 0 to 10000 per second; it is ${most}.`);
  const wrong = list?.find((value, i) => !(value > 0) || value > 10_000 || (i > 0 && value <= list[i - 1]!));
  if (wrong !== undefined) throw new PlanError(`--rates must be rising numbers above 0 and up to 10000 per second, as in 1,2,4; ${wrong} is not.`);
  const requests = Math.max(most, ...(list ?? [])) * (duration / 1000);
  if (list !== null && requests > mostRequests) throw new PlanError(`A step of ${count(requests)} requests is more than ${count(mostRequests)}: lower --rates or --duration.`);
  if (workload.turns > 1) throw new PlanError('Conversations wait for their answers, so they cannot come at a rate: use first-token sweep --turns N.');
  if (answersToProve(slo) === null) throw new PlanError('No number of answers proves an attainment of 1: set firstToken.slo.attainment to 0.99 or less.', 'firstToken.slo');
  checkOpenFiles(Math.min(mostInFlight, requests));
}

/** Requests per second of a user who sends one after the other. */
function serviceRate(run: StepRun): number | null {
  const times = run.samples.filter((s) => s.role === 'measured' && completed(s)).map(total).filter((t) => t !== null && t > 0);
  return times.length === 0 ? null : 1000 / percentile(sorted(times as number[]), 0.5);
}

function requestsAt(rateNow: number, { duration }: RateOptions): number {
  return Math.min(mostRequests, Math.max(leastRequests, Math.ceil((rateNow * duration) / 1000)));
}

function makeStep(options: RateOptions, context: ScenarioContext, source: ShotSource, at: { readonly name: string; readonly rate: number; readonly from: number; readonly soFar: RateResult | null; readonly shown: readonly string[] | null }): Step<RateResult> {
  const requests = requestsAt(at.rate, options);
  const times = arrivalTimes(options.arrivals, at.rate, requests, options.seed);
  const shots: Shot[] = shotsOf(source, at.name, requests, { from: at.from, dueAt: (i) => times[i]!, labels: { rate: at.rate } });
  const expected = Math.min(options.mostInFlight, Math.max(8, Math.ceil(at.rate)));
  return { name: at.name, plan: stepPlan(context, 'rate', { shots, concurrency: expected, mostInFlight: options.mostInFlight }), soFar: at.soFar, shown: at.shown };
}

function read(run: StepRun, asked: number, name: string, context: ScenarioContext): Measured {
  const { slo, target } = context;
  const samples = run.samples.filter((s) => s.role === 'measured');
  const result = loadResult(run, slo, null, target);
  const queue = queueGrowth(samples);
  const order = sorted(samples.map((s) => s.start - s.due));
  const starts = samples.map((s) => s.start);
  const span = Math.max(...starts) - Math.min(...starts);
  const step: RateStep = {
    rate: asked,
    started: span > 0 ? ((samples.length - 1) * 1000) / span : asked,
    ...result,
    fromDue: { ttft: fromDue(samples, ttft), total: fromDue(samples, total) },
    queue,
    late: order.length === 0 ? null : { p50: percentile(order, 0.5), p99: percentile(order, 0.99), max: order[order.length - 1]! },
  };
  // A queue that grows breaks every SLO in the end, whatever this step still shows.
  const unstable = queue?.growing === true;
  const verdict = unstable && step.verdict !== null ? 'missed' : step.verdict;
  return { load: asked, verdict, attainment: step.attainment, strain: strain(samples, slo), output: step.throughput.requestsPerSecond, unstable, step: { ...step, verdict }, name };
}

/** A latency counted from `due`. */
function fromDue(samples: readonly Sample[], metric: (s: Sample) => Milliseconds | null): Summary | null {
  return summarise(samples.filter(completed).flatMap((s) => {
    const value = metric(s);
    return value === null ? [] : [value + (s.start - s.due)];
  }));
}

/** The largest rate that looked good but is not proved, once more; null when there is none or it was tried twice. */
function unproved(measured: readonly Measured[], slo: Slo): number | null {
  const { kept } = bracket(measured, slo);
  if (kept === null || kept.verdict === 'met') return null;
  return measured.filter((m) => m.load === kept.load).length < 2 ? kept.load : null;
}

function shownOf(measured: readonly Measured[]): string[] | null {
  const best = knee(measured) ?? measured.at(-1);
  return best === undefined ? null : [measured.findLast((m) => m.load === best.load)!.name];
}

function latestSteps(measured: readonly Measured[]): RateStep[] {
  return [...new Map(measured.map((m) => [m.load, m.step])).values()].sort((a, b) => a.rate - b.rate);
}

function resultOf(measured: readonly Measured[], options: RateOptions, slo: Slo, ended: string): RateResult {
  const steps = latestSteps(measured);
  const best = knee(measured)?.step ?? null;
  const { kept: keptLoad } = bracket(measured, slo);
  const kept = steps.find((step) => step.rate === keptLoad?.load) ?? null;
  return { schema: 'first-token/rate@1', arrivals: options.workload.timed ? 'trace' : options.arrivals, seed: options.seed, steps, knee: best, sentences: sentences(steps, best, kept, slo), ended };
}

function perSecond(value: number): string {
  return `${digits(value)} requests/s`;
}

function sentences(steps: readonly RateStep[], best: RateStep | null, kept: RateStep | null, slo: Slo): string[] {
  const all: string[] = [];
  const [only] = steps;
  if (only === undefined) return ['Nothing was measured.'];
  const held = (best ?? kept)?.rate ?? 0;
  const broken = steps.find((step) => step.rate > held && step.verdict !== 'met');
  if (best !== null) {
    all.push(`${perSecond(best.rate)} can be sustained under the SLO: ${outOf(best.attainment?.good ?? 0, best.attainment?.due ?? 0)} answers were good${best.goodput === null ? '' : `, goodput is ${digits(best.goodput.perSecond)} answers/s`}${best.fromDue.ttft === null ? '' : `, and the first token came ${ms(best.fromDue.ttft.p50)} (p50) and ${ms(best.fromDue.ttft.p95)} (p95) after it was due`}.`);
  } else if (kept !== null) {
    const blocked = kept.clientBottleneck !== null;
    all.push(`Up to ${perSecond(kept.rate)} the answers kept the SLO, but that is not proved: ${blocked ? `this machine was the limit, not the server (${kept.clientBottleneck})` : `${outOf(kept.attainment?.good ?? 0, kept.attainment?.due ?? 0)} good answers are too few`}. Run again ${blocked ? 'on a quieter machine' : 'for longer'}.`);
  } else {
    all.push(`No rate is shown to be sustainable under the SLO: at ${perSecond(only.rate)}, ${outOf(only.attainment?.good ?? 0, only.attainment?.due ?? 0)} answers were good. Raise the limits (firstToken.slo), shorten the answers, or add capacity.`);
  }
  if (broken !== undefined) all.push(whyBroken(broken, slo));
  else if (best !== null) all.push('No rate that was tried broke the SLO: the server can take more.');
  const late = steps.find((step) => step.late !== null && step.late.p99 > 10);
  if (late !== undefined) all.push(`At ${perSecond(late.rate)} this machine started requests late (p99 ${ms(late.late!.p99)}, at most ${ms(late.late!.max)}): read the rows from due, which contain that wait${late.clientBottleneck === null ? '' : '; that rate gets no verdict'}.`);
  return all;
}

function whyBroken(step: RateStep, slo: Slo): string {
  const reached = step.attainment;
  const good = reached === null ? 'nothing was answered' : `${outOf(reached.good, reached.due)} answers were good`;
  if (step.clientBottleneck !== null) return `At ${perSecond(step.rate)} this machine was the limit (${step.clientBottleneck}), so that rate has no verdict.`;
  if (step.queue?.growing === true) {
    return `At ${perSecond(step.rate)} requests come faster than they are served: the wait grows by ${ms(step.queue.perSecond)} every second, ${good}, and a longer test would look worse.`;
  }
  return `At ${perSecond(step.rate)} ${good}${step.summary.ttft === null || slo.ttft === undefined ? '' : `, with a TTFT of ${ms(step.summary.ttft.p95)} (p95) where ${ms(slo.ttft)} is allowed`} (${counted(step.requests, 'request')}).`;
}
