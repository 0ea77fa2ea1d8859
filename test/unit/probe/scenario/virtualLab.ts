/** Runs scenarios in virtual time: their plans go to the simulator's engine without a clock or a socket, and come back as samples. */
import { createMemory } from '../../../../src/probe/memory';
import { dialects } from '../../../../src/probe/dialect/index';
import { endpointFromUrl, type Endpoint } from '../../../../src/probe/endpoint';
import { defaultNetwork, defaultTimeouts } from '../../../../src/probe/network';
import { defaultProbeSettings, type ProbePlan, type ProbeSettings, type Shot, type Target } from '../../../../src/probe/plan';
import type { Stopped } from '../../../../src/probe/run';
import type { Finished, Scenario, ScenarioContext, Step, StepRun } from '../../../../src/probe/scenario/scenario';
import { sloPresets } from '../../../../src/report/goodput';
import { lastStamp, shiftSample, type Delta, type Sample } from '../../../../src/report/sample';
import type { Slo } from '../../../../src/report/report';
import { parseSimulatorArgs } from '../../../../src/simulator/arguments';
import { assemble } from '../../../../src/simulator/assemble';
import type { Tenant } from '../../../../src/simulator/settings';
import { tokenize } from '../../../../src/simulator/splitter';
import { runVirtual, type VirtualArrival, type VirtualResult } from '../../../../src/simulator/virtual';

export interface LabOptions {
  readonly slo?: Slo;
  readonly settings?: Partial<ProbeSettings>;
  readonly endpoint?: Partial<Endpoint>;
  readonly tenants?: readonly Tenant[];
  readonly objective?: 'chat' | 'batch';
  readonly maxModelLen?: number;
  /** Changes what a step gave, or stops it; called with the number of steps before. */
  readonly after?: (run: StepRun, index: number, step: Step<unknown>) => StepRun;
}

export interface LabRun<Result> {
  readonly result: Result;
  readonly steps: readonly Step<Result>[];
  readonly runs: readonly StepRun[];
  readonly finished: Finished<Result>;
}

/** A target no byte is sent to. */
export function labTarget(endpoint: Partial<Endpoint> = {}): Target {
  return { endpoint: { ...endpointFromUrl('http://127.0.0.1:9/v1'), ...endpoint }, dialect: dialects['openai-chat'], model: 'm', server: 'vllm', key: null, timeouts: defaultTimeouts, network: defaultNetwork, memory: createMemory() };
}

/** Carries a scenario out against a simulated server with these flags. */
export function inLab<Result>(scenario: Scenario<Result>, flags: string, options: LabOptions = {}): LabRun<Result> {
  const context: ScenarioContext = {
    target: labTarget(options.endpoint),
    settings: { ...defaultProbeSettings, maxTokens: 128, ...options.settings },
    slo: options.slo ?? sloPresets.chat,
    objective: options.objective ?? 'chat',
    maxModelLen: options.maxModelLen ?? null,
  };
  const settings = { ...parseSimulatorArgs(flags.split(' ').filter((flag) => flag !== '')), ...(options.tenants ? { tenants: options.tenants } : {}) };
  const course = scenario.steps(context);
  const steps: Step<Result>[] = [];
  const runs: StepRun[] = [];
  let elapsed = 0;
  let next = course.next();
  while (!next.done) {
    const step = next.value;
    const samples = carryOut(step.plan, assemble(settings));
    elapsed += samples.reduce((end, s) => Math.max(end, lastStamp(s)), 0);
    const ran: StepRun = { samples, stopped: null, client: { loopUse: 0.1, clockErrorP99: 0.2, lateP99: 0 }, texts: new Map(), elapsed };
    const told = options.after?.(ran, runs.length, step) ?? ran;
    steps.push(step);
    runs.push(told);
    next = course.next(told);
  }
  return { result: next.value.result, steps, runs, finished: next.value };
}

/** A plan in virtual time: schedule, slots and lanes as `run` has them. */
function carryOut(plan: ProbePlan, backend: ReturnType<typeof assemble>): Sample[] {
  const warm = phase(plan, plan.shots.filter((shot) => shot.role === 'warmup'), backend, 0);
  const from = warm.reduce((end, s) => Math.max(end, lastStamp(s)), 0);
  const measured = phase(plan, plan.shots.filter((shot) => shot.role === 'measured'), backend, from);
  return [...warm, ...measured].map((s) => shiftSample(s, -from));
}

function phase(plan: ProbePlan, shots: readonly Shot[], backend: ReturnType<typeof assemble>, from: number): Sample[] {
  const byId = new Map(shots.map((shot) => [shot.id, shot]));
  const queues = new Map<string, Shot[]>();
  for (const shot of shots) if (shot.dueAt === null) queues.set(shot.lane ?? '', [...(queues.get(shot.lane ?? '') ?? []), shot]);
  const arrivalOf = (shot: Shot, at: number): VirtualArrival => {
    const prompt = shot.prompt.messages.flatMap(({ text }) => [2, ...tokenize(text), 3]);
    const target = plan.targets[shot.target]!;
    return { at, id: shot.id, promptTokens: prompt.length, prompt, outputTokens: shot.maxTokens ?? 128, salt: shot.nonce ?? '', tenant: tenantOf(target) };
  };
  const isBackground = (lane: string): boolean => plan.lanes?.[lane]?.background === true;
  let foreground = shots.filter((shot) => shot.dueAt !== null || !isBackground(shot.lane ?? '')).length;
  const arrivals = shots.filter((shot) => shot.dueAt !== null).map((shot) => arrivalOf(shot, from + shot.dueAt!));
  for (const [lane, queue] of queues) for (const shot of queue.splice(0, plan.lanes?.[lane]?.concurrency ?? plan.concurrency)) arrivals.push(arrivalOf(shot, from));
  const results = runVirtual(backend, arrivals, {
    onDone: (result, now) => {
      const shot = byId.get(result.id)!;
      const lane = shot.lane ?? '';
      if (shot.dueAt !== null || !isBackground(lane)) foreground -= 1;
      if (shot.dueAt !== null || (isBackground(lane) && foreground === 0)) return [];
      const next = queues.get(lane)?.shift();
      return next ? [arrivalOf(next, now)] : [];
    },
  });
  return results.map((result) => sampleOf(result, byId.get(result.id)!));
}

function tenantOf({ endpoint, key }: Target): string {
  const user = endpoint.body['user'];
  return endpoint.headers['x-tenant'] ?? (typeof user === 'string' ? user : (key ?? ''));
}

function sampleOf(result: VirtualResult, shot: Shot): Sample {
  const { arrival, emissions } = result;
  const deltas = emissions.map(([t, n]): Delta => [t, 'text', n]);
  const refused = result.outcome === 'refused';
  return {
    id: shot.id, role: shot.role, due: arrival, start: arrival, written: arrival, sent: arrival, headers: refused ? arrival + 0.5 : (result.firstToken ?? arrival), firstFrame: result.firstToken, firstToken: result.firstToken, firstVisible: result.firstToken, last: result.last, end: result.last ?? arrival + 0.5,
    connection: { reused: true, dns: null, connected: null, secured: null, alpn: null },
    outputTokens: { count: result.outputTokens, source: 'token_ids' }, streamTokens: result.outputTokens, reasoningTokens: 0, n1: emissions[0]?.[1] ?? null, promptTokens: result.promptTokens, cachedTokens: result.cachedTokens,
    outcome: result.outcome === 'ok' ? { kind: 'ok' } : refused ? { kind: 'status', status: result.refusal!.status, message: result.refusal!.message, ...(result.refusal!.retryAfter === null ? {} : { retryAfter: result.refusal!.retryAfter * 1000 }) } : { kind: 'truncated' },
    finish: 'length', deltas, visibleChars: deltas.map(() => 4), reads: new Set(emissions.map(([t]) => t)).size, maxDeltasPerRead: 1, bytes: 100, serverTimings: [], flags: [], labels: shot.labels,
  };
}

/** A step that was stopped after `share` of its samples. */
export function cutShort(run: StepRun, share: number, stopped: Stopped): StepRun {
  const measured = run.samples.filter((s) => s.role === 'measured');
  return { ...run, samples: measured.slice(0, Math.floor(measured.length * share)), stopped };
}
