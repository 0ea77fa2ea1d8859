/** The sweep: how many users at once, before the SLO breaks or nothing more is gained. */
import { knee } from '../../report/capacity';
import { answersToProve } from '../../report/goodput';
import { count, counted, digits, ms, outOf, pace } from '../../report/format';
import type { Slo } from '../../report/report';
import type { Milliseconds, Sample } from '../../report/sample';
import { createNonce, PlanError } from '../plan';
import { inConversations, shotsOf, type ShotSource, type Workload } from '../workload';
import { bracket, nextToTry, passes, type Tried } from './kneeSearch';
import { loadResult, strain, type LoadResult } from './loadStep';
import { checkOpenFiles } from './openFiles';
import { stepPlan, type Scenario, type ScenarioContext, type ScenarioResult, type Step, type StepRun, type Steps } from './scenario';

/** What to sweep over. */
export interface SweepOptions {
  readonly workload: Workload;
  /** Concurrencies to climb, rising; null = 1, 2, 4 … */
  readonly list: readonly number[] | null;
  /** Never more at once. */
  readonly most: number;
  /** No step is begun that would end later; null = no limit. */
  readonly within: Milliseconds | null;
  /** The knee is enclosed to this share of itself. */
  readonly tolerance: number;
}

/** One concurrency. */
export interface SweepStep extends LoadResult {
  readonly concurrency: number;
}

/** Best concurrency for one aim. */
export interface BestFor {
  readonly concurrency: number;
  readonly why: string;
}

/** `first-token/sweep@1`. */
export interface SweepResult extends ScenarioResult {
  readonly schema: 'first-token/sweep@1';
  readonly steps: readonly SweepStep[];
  readonly knee: SweepStep | null;
  readonly best: { readonly chat: BestFor | null; readonly batch: BestFor | null };
  /** Why the search ended. */
  readonly ended: string;
}

/** Requests of a step: at least 20, and five a slot. */
export function requestsAt(concurrency: number): number {
  return Math.max(20, 5 * concurrency);
}

/** Throughput that grows by less than this share when the concurrency doubles has reached its end. */
const worthIt = 0.05;
/** Sockets one recorder thread should carry. */
const perRecorder = 512;

interface Measured extends Tried {
  readonly step: SweepStep;
  /** Kept while the verdict may need more answers. */
  readonly samples: readonly Sample[];
  readonly name: string;
}

/** Concurrency 1, 2, 4 … (or a list) until the SLO breaks, the budget is used up or throughput no longer grows; then closer to the knee. */
export function sweep(options: SweepOptions): Scenario<SweepResult> {
  return { name: 'sweep', steps: (context) => sweeping(options, context) };
}

function* sweeping(options: SweepOptions, context: ScenarioContext): Steps<SweepResult> {
  check(options, context.slo);
  const { slo, settings } = context;
  const source: ShotSource = { workload: options.workload, runNonce: createNonce(), maxTokens: settings.maxTokens };
  const measured: Measured[] = [];
  let sent = 0;
  let ended = 'the knee is enclosed';
  let recorders = settings.recorders;
  const result = (): SweepResult => summarise(measured, slo, ended);
  for (let load = first(options); load !== null; ) {
    const concurrency = load;
    const name = `c${concurrency}${measured.some((m) => m.load === concurrency) ? `-${measured.length}` : ''}`;
    const wanted = wantedAt(measured, concurrency, slo);
    const step = makeStep({ context, source, name, concurrency, count: wanted, from: sent, warmup: measured.length === 0 ? settings.warmup : 0, recorders, soFar: measured.length === 0 ? null : result(), shown: shownOf(measured, slo) });
    const run = yield step;
    sent += step.plan.shots.length;
    if (run.samples.some((s) => s.role === 'measured')) measured.push(read(run, measured, concurrency, name, context));
    if (run.stopped) {
      ended = run.stopped.detail;
      break;
    }
    const last = measured.at(-1)!;
    if (last.step.clientBottleneck !== null) {
      // One more thread may carry what one could not; if it does not help, the verdict stays refused.
      const busy = run.client.loopUse !== null && run.client.loopUse > 0.8 && recorders < 4;
      if (busy) recorders += 1;
      if (!passes(last, slo)) {
        // It may have been a moment's trouble: once more, then believe it.
        if (measured.filter((m) => m.load === concurrency).length < 2 || busy) continue;
        ended = 'this machine could not send more';
        break;
      }
    }
    const [next, why] = afterwards(measured, options, slo);
    if (next === null) {
      ended = why;
      break;
    }
    if (options.within !== null && run.elapsed + expectedTime(measured, next) > options.within) {
      ended = `another step would have taken longer than the time limit of ${ms(options.within)} (--within)`;
      break;
    }
    load = next;
  }
  return { result: result(), shown: shownOf(measured, slo) };
}

function check({ list, most, workload }: SweepOptions, slo: Slo): void {
  if (workload.timed) throw new PlanError('A trace has times of its own, so it cannot be swept over concurrency: use first-token rate --trace FILE.');
  if (!Number.isInteger(most) || most < 1 || most > 1000) throw new PlanError(`--most must be a whole number from 1 to 1000; it is ${most}.`);
  const wrong = list?.find((load, i) => !Number.isInteger(load) || load < 1 || load > 1000 || (i > 0 && load <= list[i - 1]!));
  if (wrong !== undefined) throw new PlanError(`--steps must be rising whole numbers from 1 to 1000, as in 1,4,16; ${wrong} is not.`);
  if (answersToProve(slo) === null) throw new PlanError('No number of answers proves an attainment of 1: set firstToken.slo.attainment to 0.99 or less.', 'firstToken.slo');
  checkOpenFiles(Math.max(most, ...(list ?? [])));
}

function first({ list }: SweepOptions): number {
  return list?.[0] ?? 1;
}

/** Requests for a load; one that is tried again gets as many as its verdict needs. */
function wantedAt(measured: readonly Measured[], concurrency: number, slo: Slo): number {
  const before = measured.findLast((m) => m.load === concurrency);
  if (before === undefined || before.step.clientBottleneck !== null) return requestsAt(concurrency);
  return Math.max(requestsAt(concurrency), Math.ceil(1.2 * (answersToProve(slo) ?? 0)) - before.step.requests);
}

interface StepInput {
  readonly context: ScenarioContext;
  readonly source: ShotSource;
  readonly name: string;
  readonly concurrency: number;
  readonly count: number;
  readonly from: number;
  readonly warmup: number;
  readonly recorders: number;
  readonly soFar: SweepResult | null;
  readonly shown: readonly string[] | null;
}

function makeStep({ context, source, name, concurrency, count: requests, from, warmup, recorders, soFar, shown }: StepInput): Step<SweepResult> {
  const { turns } = source.workload;
  const labels = { concurrency };
  const shots = shotsOf(source, name, requests, { from: from + warmup, labels });
  const placed = turns > 1 ? inConversations(shots, concurrency, turns) : { shots };
  const warm = shotsOf(source, name, warmup, { from, role: 'warmup', labels });
  return { name, plan: stepPlan(context, 'sweep', { ...placed, shots: [...warm, ...placed.shots], concurrency, recorders: Math.max(recorders, Math.ceil(concurrency / perRecorder)) }), soFar, shown };
}

/** Reads a step; samples of an earlier run at the same concurrency count too. */
function read(run: StepRun, measured: readonly Measured[], concurrency: number, name: string, context: ScenarioContext): Measured {
  const { slo, target } = context;
  const result = loadResult(run, slo, concurrency, target);
  const own = run.samples.filter((s) => s.role === 'measured');
  const before = measured.findLast((m) => m.load === concurrency && m.step.clientBottleneck === null);
  const samples = before === undefined ? own : [...before.samples, ...own];
  const pooled = before === undefined ? result : { ...loadResult({ ...run, samples }, slo, null, target), throughput: result.throughput, goodput: result.goodput };
  const step: SweepStep = { concurrency, ...pooled, clientBottleneck: result.clientBottleneck, verdict: result.clientBottleneck === null ? pooled.verdict : null };
  return { load: concurrency, verdict: step.verdict, attainment: step.attainment, strain: strain(samples, slo), output: step.throughput.tokensPerSecond ?? step.throughput.requestsPerSecond, step, samples: step.verdict === 'unclear' ? samples : [], name };
}

/** The next concurrency and, when there is none, why. */
function afterwards(measured: readonly Measured[], options: SweepOptions, slo: Slo): readonly [number | null, string] {
  const { kept, broken } = bracket(measured, slo);
  if (broken === null && options.list === null && saturated(measured)) return [null, 'throughput no longer grows'];
  const next = nextToTry(measured, slo, { first: first(options), most: options.most, tolerance: options.tolerance, whole: true, list: options.list });
  if (next !== null) return [next, ''];
  // The largest that looked good must be shown to be: few answers prove nothing.
  const unproved = kept !== null && kept.verdict !== 'met' ? kept : null;
  const again = unproved === null ? 0 : measured.filter((m) => m.load === unproved.load).length;
  if (unproved !== null && again < 3) return [unproved.load, ''];
  return [null, broken === null ? `the largest concurrency asked for was reached (${options.list === null ? '--most' : '--steps'})` : 'the knee is enclosed'];
}

/** Without a limit to break, more is worth trying only while it brings more. */
function saturated(measured: readonly Measured[]): boolean {
  const rates = measured.map((m) => m.output);
  const [before, last] = rates.slice(-2);
  return rates.length >= 3 && measured.at(-1)!.strain === null && before !== undefined && before !== null && last !== undefined && last !== null && last < before * (1 + worthIt);
}

/** From the pace of the step before: requests / (requests per second). */
function expectedTime(measured: readonly Measured[], next: number): Milliseconds {
  const rate = measured.at(-1)!.step.throughput.requestsPerSecond ?? 0;
  return rate > 0 ? (requestsAt(next) / rate) * 1000 : 0;
}

/** Latest step of each concurrency, rising. */
function latestSteps(measured: readonly Measured[]): Measured[] {
  return [...new Map(measured.map((m) => [m.load, m])).values()].sort((a, b) => a.load - b.load);
}

/** The report is made of the knee's samples; without a knee, of the last step's. */
function shownOf(measured: readonly Measured[], slo: Slo): string[] | null {
  const best = knee(measured) ?? bracket(measured, slo).kept ?? measured.at(-1);
  return best === undefined ? null : measured.filter((m) => m.load === best.load).map((m) => m.name);
}

function summarise(measured: readonly Measured[], slo: Slo, ended: string): SweepResult {
  const steps = latestSteps(measured).map((m) => m.step);
  const best = knee(latestSteps(measured))?.step ?? null;
  const batch = forBatch(steps);
  const { broken, kept: keptLoad } = bracket(measured, slo);
  const kept = steps.find((step) => step.concurrency === keptLoad?.load) ?? null;
  const chatBest: BestFor | null = best === null ? null : { concurrency: best.concurrency, why: 'the largest concurrency that keeps the SLO' };
  const batchBest: BestFor | null = batch === null ? null : { concurrency: batch.concurrency, why: batch.throughput.tokensPerCost === null ? 'the most tokens per second' : 'the most tokens per cost' };
  return { schema: 'first-token/sweep@1', steps, knee: best, best: { chat: chatBest, batch: batchBest }, sentences: sentences({ steps, chat: best, kept, batch, slo, unbroken: broken === null }), ended };
}

/** The least concurrency whose throughput is within 2 % of the most. */
function forBatch(steps: readonly SweepStep[]): SweepStep | null {
  const rate = (step: SweepStep): number => step.throughput.tokensPerSecond ?? step.throughput.requestsPerSecond ?? 0;
  const most = Math.max(0, ...steps.map(rate));
  return most === 0 ? null : (steps.find((step) => rate(step) >= 0.98 * most) ?? null);
}

function rateWords(step: SweepStep): string {
  const { tokensPerSecond, tokensPerCost, requestsPerSecond } = step.throughput;
  const rate = tokensPerSecond === null ? `${digits(requestsPerSecond ?? 0)} answers/s` : pace(tokensPerSecond);
  return tokensPerCost === null ? rate : `${rate}, ${count(tokensPerCost.value)} tokens per ${tokensPerCost.currency}`;
}

interface Findings {
  readonly steps: readonly SweepStep[];
  readonly chat: SweepStep | null;
  /** The most that looked good, proved or not. */
  readonly kept: SweepStep | null;
  readonly batch: SweepStep | null;
  readonly slo: Slo;
  /** No concurrency that was tried broke the SLO. */
  readonly unbroken: boolean;
}

function sentences({ steps, chat, kept, batch, slo, unbroken }: Findings): string[] {
  const blocked = steps.filter((step) => step.clientBottleneck !== null);
  const all: string[] = [];
  if (chat !== null) {
    const { attainment: reached, perUser, goodput } = chat;
    const given = batch === null ? null : costOfChat(chat, batch);
    all.push(`For chat, ${unbroken ? `${count(chat.concurrency)} at once, the most that was tried, still keeps the SLO` : `serve at most ${count(chat.concurrency)} at once`}: ${reached === null ? '' : `${outOf(reached.good, reached.due)} answers were good, `}${perUser === null ? '' : `each user gets ${pace(perUser.p50)}, `}${goodput === null ? '' : `goodput is ${digits(goodput.perSecond)} answers/s`}${given === null ? '' : `; ${given}`}.`);
  } else if (kept !== null) {
    all.push(`Up to ${count(kept.concurrency)} at once the answers kept the SLO, but that is not proved: ${kept.clientBottleneck === null ? `${outOf(kept.attainment?.good ?? 0, kept.attainment?.due ?? 0)} good answers are too few` : 'this machine was the limit, not the server'}. Run again ${kept.clientBottleneck === null ? 'with more requests or more time' : 'on a quieter machine'}.`);
  } else {
    const least = steps[0];
    all.push(least === undefined ? 'Nothing was measured.' : `No concurrency is shown to keep the SLO: at ${count(least.concurrency)} at once ${least.attainment === null ? 'nothing was answered' : `${outOf(least.attainment.good, least.attainment.due)} answers did`}${least.summary.ttft === null ? '' : `, with a TTFT of ${ms(least.summary.ttft.p50)} (p50)`}. Raise the limits (firstToken.slo), shorten the prompt, or add capacity.`);
  }
  if (batch !== null) all.push(`For batch, ${count(batch.concurrency)} at once is enough: ${rateWords(batch)}${costOfBatch(batch, chat, slo)}.`);
  if (blocked.length > 0) all.push(`At ${blocked.map((step) => count(step.concurrency)).join(', ')} at once this machine was the limit (${blocked[0]!.clientBottleneck}), so ${blocked.length === 1 ? 'that step has' : 'those steps have'} no verdict.`);
  return all;
}

/** What keeping to the chat's concurrency gives away. */
function costOfChat(chat: SweepStep, batch: SweepStep): string {
  const [own, most] = [chat.throughput.tokensPerSecond, batch.throughput.tokensPerSecond];
  if (batch.concurrency <= chat.concurrency || own === null || most === null || most <= own * 1.02) return 'that gives away no throughput';
  return `that gives away ${digits(((most - own) / most) * 100)} in 100 tokens of the batch throughput`;
}

/** What the batch's concurrency does to a chat. */
function costOfBatch(batch: SweepStep, chat: SweepStep | null, slo: Slo): string {
  const { attainment: reached, summary } = batch;
  if (reached === null) return '';
  if (chat !== null && batch.concurrency <= chat.concurrency) return ', and more than that only adds waiting';
  const wait = summary.ttft === null ? '' : `, with a TTFT of ${ms(summary.ttft.p95)} (p95)${slo.ttft === undefined ? '' : ` where ${ms(slo.ttft)} is allowed`}`;
  return `, but only ${outOf(reached.good, reached.due)} answers would keep the chat SLO${wait} (${counted(batch.concurrency, 'user')})`;
}
