/**
 * What a scenario is: a generator that asks for one plan after the other and reads the samples each gave. It has no clock and no socket,
 * so the same file runs on a real endpoint and in virtual time.
 */
import type { ClientLoad } from '../../report/capacity';
import type { Slo } from '../../report/report';
import type { Milliseconds, Sample } from '../../report/sample';
import type { CacheDiagnosis } from '../dialect/dialect';
import type { ProbePlan, ProbeSettings, Target } from '../plan';
import type { Stopped } from '../run';

/** One plan to carry out. */
export interface Step<Result> {
  /** Unique in the scenario; also the label `step` of its samples. */
  readonly name: string;
  readonly plan: ProbePlan;
  /** Hand the text of the answers to the scenario. */
  readonly keepText?: boolean;
  /** Read the server's metrics before and after it, to tell cached prompt tokens where the answers do not. */
  readonly countsCached?: boolean;
  /** Its schedule is a wait that somebody watches: time left is told. */
  readonly waits?: boolean;
  /** What is known so far, for whoever watches; null at first. */
  readonly soFar: Result | null;
  /** The steps whose samples the report is made from if this one is the last; null = all. Samples of others are dropped from memory. */
  readonly shown: readonly string[] | null;
}

/** What a plan gave. Stamps are ms from its first measured start. */
export interface StepRun {
  readonly samples: readonly Sample[];
  /** Why it ended early: nothing more will be carried out, so the scenario must come to its end. */
  readonly stopped: Stopped | null;
  readonly client: ClientLoad;
  /** Answers by sample id, where the step asked for them. */
  readonly texts: ReadonlyMap<string, string>;
  /** The provider's ids of the answers, and what it says of its cache, by sample id: of shots that asked for it (`compareWith`). */
  readonly told?: ReadonlyMap<string, { readonly id: string | null; readonly diagnosis: CacheDiagnosis | null }>;
  /** Since the scenario began. */
  readonly elapsed: Milliseconds;
  /** Prompt tokens asked and served from the cache during the step by the server's own counters, whoever asked; absent or null = not told. */
  readonly counted?: { readonly cached: number; readonly asked: number } | null;
}

/** What a scenario found, and the steps its report is made from. */
export interface Finished<Result> {
  readonly result: Result;
  readonly shown: readonly string[] | null;
}

/** Where a scenario runs. */
export interface ScenarioContext {
  readonly target: Target;
  readonly settings: ProbeSettings;
  readonly slo: Slo;
  readonly objective: 'chat' | 'batch';
  /** Longest prompt plus answer in tokens; null = not told. */
  readonly maxModelLen: number | null;
}

/** The steps of a scenario: plans out, samples in, a result at the end. Throws a PlanError for what cannot be asked. */
export type Steps<Result> = Generator<Step<Result>, Finished<Result>, StepRun>;

/** An experiment by name. */
export interface Scenario<Result> {
  readonly name: string;
  /** Requests come at a rate: the report then tells latencies from `due` too. */
  readonly atRate?: boolean;
  /** Requests of all its steps, where they are known before: the whole that progress is counted of. */
  readonly requests?: number;
  /** Another API at the same place. */
  readonly target?: (target: Target) => Target;
  steps(context: ScenarioContext): Steps<Result>;
}

/** What every result has: its version and what it means in plain sentences. */
export interface ScenarioResult {
  readonly schema: string;
  readonly sentences: readonly string[];
}

/** A plan with the settings of the run and these shots. */
export function stepPlan(context: ScenarioContext, scenario: string, more: Pick<ProbePlan, 'shots'> & Partial<ProbePlan>): ProbePlan {
  const { settings, target } = context;
  return { scenario, targets: [target], concurrency: settings.concurrency, budget: settings.budget, breaker: settings.breaker, retry: null, recorders: settings.recorders, fixedLength: true, ...more };
}
