/** The front door of the engine: a job goes in, events come out. Loaded on first use, by the editor and by the terminal. */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { performance, type EventLoopUtilization } from 'node:perf_hooks';
import type { ChatPrompt } from '../prompt/prompt';
import { clientBottleneck, type ClientLoad } from '../report/capacity';
import type { LiveRow } from '../report/messages';
import { buildReport, type EndpointSummary, type Environment, type Report, type ReportInput, type ServerView, type Slo } from '../report/report';
import { shiftSample, type Milliseconds, type Sample } from '../report/sample';
import { percentile, sorted } from '../report/statistics';
import { now } from './clock';
import type { Decoded } from './decode';
import { createAnswerCheck, type AnswerCheck } from './answerCheck';
import { detect, type Detection } from './detect';
import { dialects } from './dialect/index';
import { lacksUserMessage, noUserMessage } from './dialect/request';
import type { CacheDiagnosis, DialectId } from './dialect/dialect';
import { displayUrl, originOf, type Endpoint } from './endpoint';
import { createGet, createPost } from './get';
import type { EndpointMemory } from './memory';
import type { NetworkOptions, Timeouts } from './network';
import { checkRequest, checkSettings, PlanError, planProbe, summarisePlan, timeoutsFor, type ProbePlan, type ProbeSettings, type Target } from './plan';
import { openRecorder, type Recorder } from './recording';
import { createRedactor, secretsOf, type Redact } from './redact';
import { writeBehind, type ReportSink } from './reportSink';
import { run, type RunResult, type RunSeams, type RunStep, type Stopped, type Wait } from './run';
import { bodyOf } from './requestBody';
import { SharedBudget } from './scenario/budget';
import { keepRecorders, type KeptRecorders } from './scenario/keptRecorders';
import type { PlannedProof, ProofWanted } from './scenario/prefixPrediction';
import type { Scenario, Step, StepRun } from './scenario/scenario';
import { cachedTokensBetween, parseScrape, watchServer, type Scrape } from './serverMetrics';
import type { Tape } from './tape';
import type { CountingParts, EndpointAccess } from './tokenCounting';

export { createDecoder, decode, frameAt, type Arrival, type Decoded, type Decoder } from './decode';
export { detect, type Detection } from './detect';
export { askFor, dialectOf, dialects } from './dialect/index';
export type { DialectId } from './dialect/dialect';
export { apis, displayUrl, endpointFromUrl, environmentNames, isLoopback, originOf, parseEndpoints, resolveEnvironment, urlProblem, type Endpoint, type EndpointProblem } from './endpoint';
export { createGet } from './get';
export { experiments, settingsFor, type Effort, type Experiment, type ExperimentName } from './experiments';
export { handOverPlan } from './handOver';
export { createMemory, type EndpointMemory, type Remembered } from './memory';
export { defaultNetwork, defaultTimeouts, type NetworkOptions, type Timeouts } from './network';
export { defaultProbeSettings, estimate, PlanError, planProbe, readProbeSettings, type Estimate, type ProbePlan, type ProbeSettings, type Shot, type Target } from './plan';
export { openRecorder, type Recorder } from './recording';
export { createRedactor, secretsOf } from './redact';
export { createReportFile, type ReportSink } from './reportSink';
export { run, type RunSeams, type RunStep } from './run';
export type { Scenario, ScenarioResult } from './scenario/scenario';
export * from './scenario/index';
export { fixedPrompt, fromRows, parseLengths, readRows, shareGpt, synthetic, trace, type Workload } from './workload';
export { parseTape, serialiseTape } from './tapeFile';
export { reportOfTape } from './tapeReport';
export type { Tape } from './tape';
export type { EndpointAccess, EndpointCounts, EndpointTokens, TokenDesk } from './tokenCounting';

/** Limits from `firstToken.network.timeouts`; the endpoint's own come first. */
export interface JobTimeouts {
  readonly connect?: Milliseconds | null | undefined;
  readonly firstToken?: Milliseconds | null | undefined;
  readonly stall?: Milliseconds | null | undefined;
  readonly total?: Milliseconds | null | undefined;
}

/** Everything a probe needs to know. Nothing else is read: no settings, no environment but the proxies'. */
export interface ProbeJob {
  /** Placeholders in headers are resolved already. */
  readonly endpoint: Endpoint;
  readonly key: string | null;
  readonly prompt: ChatPrompt;
  /** Name of the prompt file, or `built-in`. */
  readonly promptName: string;
  readonly settings: ProbeSettings;
  readonly slo: Slo;
  readonly objective: 'chat' | 'batch';
  readonly readerPace: Milliseconds;
  readonly network: NetworkOptions;
  readonly timeouts?: JobTimeouts;
  readonly environment: Environment;
  /** Path of the built recorder (dist/recorder.js). */
  readonly recorderScript: string;
  readonly reportFile: ReportSink | null;
  readonly memory: EndpointMemory;
  /** Template variables that are sent as they stand. */
  readonly unrendered: readonly string[];
  readonly keepText: boolean;
  /** Days until kept text must be deleted; default 7. */
  readonly keepTextDays?: number;
  /** Ask the endpoint what it is, when that is not remembered; default true. Without it `api: "auto"` means openai-chat. */
  readonly detect?: boolean;
}

/** What happens while a probe runs. Stamps are ms from the window's start. */
export type RunEvent =
  | { readonly type: 'begin'; readonly report: Report; readonly total: number; readonly detection: Detection | null }
  | { readonly type: 'live'; readonly rows: readonly LiveRow[]; readonly done: number; readonly total: number; readonly elapsed: Milliseconds; readonly eta: Milliseconds | null; /** An experiment waits on purpose before its next request. */ readonly wait?: Wait | null }
  /** `report` is the report so far, a fraction of a second old at most, its `samples` left empty. `total`: requests of all steps as far as they are known; absent = as told before. */
  | { readonly type: 'sample'; readonly sample: Sample; readonly decoded: Decoded; readonly tape: Tape; readonly report: Report; readonly total?: number }
  /** The whole report, samples included. */
  | { readonly type: 'end'; readonly report: Report; readonly stopped: Stopped['by'] | null };

const nothingRun: RunResult = { origin: 0, stopped: null, clockErrors: [], used: { requests: 0, outputTokens: 0, cost: 0 } };
const reportPeriod: Milliseconds = 250;
const metricsPeriod: Milliseconds = 1000;
const day = 86_400_000;

/**
 * Probes an endpoint: plan, recorder, decode, samples, report. A job that cannot be carried out throws a PlanError at once or before
 * the first measured byte; everything that happens to a request afterwards is a sample. Aborting closes all sockets and still ends
 * with the report of what was measured.
 */
export function probe(job: ProbeJob, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  checkSettings(job.settings);
  checkRequest(job.endpoint, job.prompt, job.promptName);
  checkSlo(job.slo);
  return probing(job, targetNetwork(job), signal);
}

async function* probing(job: ProbeJob, network: NetworkOptions, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  // Detection and the server's metrics have a thread of their own, so that they cannot move a stamp.
  const side = await openRecorder({ script: job.recorderScript, network, canary: false });
  try {
    const detection = await findOut(job, side, signal);
    const target = resolve(job, network, detection);
    const plan = planProbe(target, job.prompt, job.settings);
    yield* measure(job, plan, target, detection, side, signal);
  } finally {
    await side.close();
  }
}

async function* measure(job: ProbeJob, plan: ProbePlan, target: Target, detection: Detection | null, side: Recorder, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  const record = new RunRecord(job, target, plan.scenario);
  await record.begin();
  yield { type: 'begin', report: record.report([], false), total: plan.shots.length, detection };
  const metrics = watchMetrics(job, target, detection, side);
  const kept = keepRecorders(seams(job.recorderScript));
  const ownLoop = performance.eventLoopUtilization();
  const running = run(plan, kept.seams, signal);
  try {
    for (;;) {
      const { done, value } = await running.next();
      if (done) {
        record.clientBottleneck = clientBottleneck(clientLoad(value, record.samples, loopUse(ownLoop, kept)), record.samples, job.slo);
        record.finish(value.clockErrors, value.stopped, value.origin, await metrics?.stop());
        break;
      }
      if (value.type === 'live') {
        yield value;
        continue;
      }
      const sample = record.checked(value.sample, value.decoded);
      await record.add(sample, value.decoded);
      yield { type: 'sample', sample, decoded: value.decoded, tape: value.tape, report: record.recent() };
    }
  } finally {
    // Reached early when the consumer goes away: the run is ended too.
    await running.return(nothingRun);
    await kept.close();
    await metrics?.stop();
  }
  const report = record.report(record.samples, true);
  const problem = await record.end({ ...report, samples: [] });
  yield { type: 'end', report, stopped: record.stopped?.by ?? null };
  if (problem) throw problem;
}

/**
 * Carries out a scenario: its plans one after the other over connections that stay open, with one budget for all of them. Yields what a
 * probe yields, on one time line, and ends with a report that holds the scenario's result; a scenario that was stopped ends with what it
 * had. Throws as `probe` does.
 */
export function measureScenario<Result>(job: ProbeJob, scenario: Scenario<Result>, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  checkSettings(job.settings);
  checkRequest(job.endpoint, job.prompt, job.promptName);
  checkSlo(job.slo);
  const reportFile = job.reportFile && writeBehind(job.reportFile);
  return measuringScenario({ ...job, reportFile }, scenario, targetNetwork(job), signal);
}

async function* measuringScenario<Result>(job: ProbeJob, scenario: Scenario<Result>, network: NetworkOptions, signal: AbortSignal): AsyncGenerator<RunEvent, void> {
  const side = await openRecorder({ script: job.recorderScript, network, canary: false });
  const kept = keepRecorders(seams(job.recorderScript));
  try {
    const detection = await findOut(job, side, signal);
    const found = resolve(job, network, detection);
    const target = scenario.target?.(found) ?? found;
    const steps = scenario.steps({ target, settings: job.settings, slo: job.slo, objective: job.objective, maxModelLen: detection?.maxModelLen ?? null });
    let next = steps.next();
    const record = new RunRecord(job, target, scenario.name, scenario.atRate ? { rate: null } : {});
    const budget = new SharedBudget(job.settings.budget);
    if (!next.done) budget.allow(next.value.plan);
    await record.begin();
    yield { type: 'begin', report: record.report([], false), total: scenario.requests ?? (next.done ? 0 : next.value.plan.shots.length), detection };
    const metrics = watchMetrics(job, target, detection, side);
    const course = new ScenarioCourse(record, budget, kept, job.slo, scenario.requests ?? null);
    try {
      while (!next.done) {
        record.scenario = { name: scenario.name, result: next.value.soFar, shown: next.value.shown };
        const before = next.value.countsCached ? await scrape(job, target, detection, side) : null;
        const ran = yield* course.carryOut(next.value, signal);
        const after = before === null ? null : await scrape(job, target, detection, side);
        next = steps.next(before === null || after === null ? ran : { ...ran, counted: cachedTokensBetween(before, after) });
      }
      record.scenario = { name: scenario.name, result: next.value.result, shown: next.value.shown };
      course.show(next.value.shown);
      record.finish(course.clockErrors, course.stopped, course.origin ?? now(), await metrics?.stop());
    } finally {
      await metrics?.stop();
    }
    const report = record.report(record.samples, true);
    const problem = await record.end({ ...report, samples: [] });
    yield { type: 'end', report, stopped: record.stopped?.by ?? null };
    if (problem) throw problem;
  } finally {
    await kept.close();
    await side.close();
  }
}

/** The steps of a scenario on one time line. */
class ScenarioCourse {
  readonly clockErrors: Milliseconds[] = [];
  stopped: Stopped | null = null;
  /** Stamp of the clock at the first measured start. */
  origin: Milliseconds | null = null;
  readonly #record: RunRecord;
  readonly #budget: SharedBudget;
  readonly #kept: KeptRecorders;
  readonly #began = now();
  readonly #samples = new Map<string, Sample[]>();
  readonly #clients = new Map<string, ClientLoad>();
  readonly #slo: Slo;
  readonly #requests: number | null;
  /** Answered in the steps before, of those that count. */
  #before = 0;
  #done = 0;

  constructor(record: RunRecord, budget: SharedBudget, kept: KeptRecorders, slo: Slo, requests: number | null) {
    this.#slo = slo;
    this.#requests = requests;
    this.#record = record;
    this.#budget = budget;
    this.#kept = kept;
  }

  /** Makes the report of these steps' samples; null = all. The others leave the memory. */
  show(names: readonly string[] | null): void {
    if (names !== null) for (const name of this.#samples.keys()) if (!names.includes(name)) this.#samples.delete(name);
    this.#record.samples = [...this.#samples.values()].flat();
    const reasons = [...this.#samples].map(([name, samples]) => {
      const client = this.#clients.get(name);
      return client === undefined ? null : clientBottleneck(client, samples, this.#slo);
    });
    this.#record.clientBottleneck = reasons.find((reason) => reason !== null) ?? null;
  }

  async *carryOut(step: Step<unknown>, signal: AbortSignal): AsyncGenerator<RunEvent, StepRun> {
    this.show(step.shown);
    const allowed = this.#budget.allow(step.plan);
    const nothing = (stopped: Stopped): StepRun => {
      this.stopped ??= stopped;
      return { samples: [], stopped, client: { loopUse: null, clockErrorP99: null, lateP99: null }, texts: new Map(), elapsed: now() - this.#began };
    };
    if (signal.aborted) return nothing({ by: 'user', detail: 'stopped by you' });
    if ('by' in allowed) return nothing(allowed);
    this.#kept.loopUse();
    const ownLoop: EventLoopUtilization = performance.eventLoopUtilization();
    const own: Sample[] = [];
    this.#before = this.#done;
    const texts = new Map<string, string>();
    const told = new Map<string, { readonly id: string | null; readonly diagnosis: CacheDiagnosis | null }>();
    const running = run(allowed, this.#kept.seams, signal);
    try {
      for (;;) {
        const { done, value } = await running.next();
        if (done) {
          const ran = { ...this.#ran(value, own, texts, ownLoop), told };
          this.#clients.set(step.name, ran.client);
          return ran;
        }
        if (value.type === 'live') {
          yield this.#live(value, step);
          continue;
        }
        const { decoded, tape, shot } = value;
        const sample = this.#record.checked(value.sample, decoded);
        own.push(sample);
        if (step.keepText) texts.set(sample.id, decoded.text);
        if (shot.compareWith !== undefined) told.set(sample.id, { id: decoded.answerId, diagnosis: decoded.diagnosis });
        const placed = { ...this.#placed(sample, tape.phases.start - sample.start), labels: { step: step.name, ...sample.labels } };
        this.#keep(step.name, placed);
        await this.#record.add(placed, decoded);
        if (sample.role !== 'negotiation') this.#done += 1;
        yield { type: 'sample', sample: placed, decoded, tape, report: this.#record.recent(), total: this.#total(allowed.shots.length) };
      }
    } finally {
      await running.return(nothingRun);
    }
  }

  #keep(name: string, sample: Sample): void {
    const kept = this.#samples.get(name);
    if (kept) kept.push(sample);
    else this.#samples.set(name, [sample]);
  }

  #placed(sample: Sample, origin: Milliseconds): Sample {
    if (sample.role === 'measured') this.origin ??= origin;
    return shiftSample(sample, origin - (this.origin ?? origin));
  }

  /** Of all steps; where they are not known, of those that have begun. */
  #total(step: number): number {
    return Math.max(this.#requests ?? 0, this.#done, this.#requests === null ? this.#before + step : 0);
  }

  #live({ rows, origin, done, total, eta, wait, ...rest }: Extract<RunStep, { type: 'live' }>, { waits }: Step<unknown>): RunEvent {
    const by = origin - (this.origin ?? origin);
    return { ...rest, done: this.#before + done, total: this.#total(total), eta: waits ? null : eta, ...(waits ? { wait } : {}), rows: rows.map((row) => ({ ...row, start: row.start + by, headers: row.headers === null ? null : row.headers + by, t: row.t.map((t) => t + by) })) };
  }

  #ran(result: RunResult, samples: readonly Sample[], texts: ReadonlyMap<string, string>, ownLoop: EventLoopUtilization): StepRun {
    this.#budget.spend(result.used);
    this.stopped ??= result.stopped;
    this.clockErrors.push(...result.clockErrors);
    const client = clientLoad(result, samples, loopUse(ownLoop, this.#kept));
    return { samples, stopped: result.stopped, client, texts, elapsed: now() - this.#began };
  }
}

/** What this machine measured of itself while it ran. `samples` as they come out of a run. */
function clientLoad(result: RunResult, samples: readonly Sample[], loop: number): ClientLoad {
  const p99 = (values: readonly number[]): number | null => (values.length === 0 ? null : percentile(sorted(values), 0.99));
  const late = samples.filter((s) => s.role === 'measured' && s.outcome.kind !== 'cancelled').map((s) => s.start - s.due);
  return { loopUse: loop, clockErrorP99: p99(result.clockErrors), lateP99: p99(late) };
}

/** Share of time (0–1) that the busiest loop was busy: this thread's since `own`, or a recorder's. */
function loopUse(own: EventLoopUtilization, kept: KeptRecorders): number {
  return Math.max(performance.eventLoopUtilization(own).utilization, kept.loopUse() ?? 0);
}

/** What has been measured so far, in memory and on disk. */
class RunRecord {
  samples: Sample[] = [];
  stopped: Stopped | null = null;
  scenario: Report['scenario'];
  clientBottleneck: string | null = null;
  readonly #job: ProbeJob;
  readonly #target: Target;
  readonly #id = randomUUID();
  readonly #createdAt = new Date();
  readonly #plan: Report['plan'];
  readonly #more: Readonly<Record<string, unknown>>;
  readonly #answers: { [id: string]: { text: string; reasoning: string } } = {};
  readonly #check: AnswerCheck | null;
  readonly #path: string;
  readonly #redact: Redact;
  #alpn: string | null = null;
  #clockErrors: readonly Milliseconds[] = [];
  #wall: NonNullable<ReportInput['wall']> | null = null;
  #serverView: ServerView | null = null;
  #recent: { at: Milliseconds; pause: Milliseconds; report: Report } | null = null;
  #problem: Error | null = null;

  constructor(job: ProbeJob, target: Target, scenario: string, more: Readonly<Record<string, unknown>> = {}) {
    this.#job = job;
    this.#target = target;
    this.#more = more;
    this.#plan = summarisePlan(scenario, job.settings, job.prompt, job.promptName, { slo: job.slo, objective: job.objective, readerPace: job.readerPace });
    this.#check = createAnswerCheck(job.slo.valid);
    const { url } = target.dialect.request({ url: target.endpoint.url, model: target.model, prompt: job.prompt, maxTokens: job.settings.maxTokens, ask: new Set(), body: {}, headers: {}, key: null });
    this.#path = displayUrl(url).slice(originOf(url).length) || '/';
    this.#redact = createRedactor([target.key, ...secretsOf(target.endpoint.url, target.endpoint.headers)]);
  }

  async begin(): Promise<void> {
    try {
      await this.#job.reportFile?.begin(this.report([], false));
    } catch (error) {
      throw new PlanError(`The report cannot be written: ${(error as Error).message}. Choose another place (--save), or free some space.`);
    }
  }

  /** An answer that came but fails its check has the outcome `invalid`: it enters no latency and counts against the SLO. */
  checked(sample: Sample, decoded: Decoded): Sample {
    if (!this.#check || (sample.outcome.kind !== 'ok' && sample.outcome.kind !== 'not-streaming')) return sample;
    const why = this.#check(decoded.text);
    return why === null ? sample : { ...sample, outcome: { kind: 'invalid', message: why } };
  }

  async add(sample: Sample, decoded: Decoded): Promise<void> {
    this.samples.push(sample);
    this.#alpn ??= sample.connection.alpn;
    if (this.#job.keepText) this.#answers[sample.id] = { text: this.#redact(decoded.text), reasoning: this.#redact(decoded.reasoning) };
    await this.#write(() => this.#job.reportFile?.sample(sample));
  }

  /** A full disk must not cost the measurement: it goes on in memory, and the problem is told at the end. */
  async #write(write: () => Promise<void> | undefined): Promise<void> {
    if (this.#problem) return;
    try {
      await write();
    } catch (error) {
      this.#problem = new Error(`The report file could not be written to its end: ${(error as Error).message}. The report on screen is complete; save it elsewhere.`);
    }
  }

  finish(clockErrors: readonly Milliseconds[], stopped: Stopped | null, origin: Milliseconds, view: ServerView | null | undefined): void {
    this.#clockErrors = clockErrors;
    this.stopped = stopped;
    this.#wall = { monotonic: 0, epoch: Date.now() - (now() - origin) };
    if (view) this.#serverView = { ...view, gauges: view.gauges.map((gauge) => ({ ...gauge, points: gauge.points.map(([t, value]) => [t - origin, value] as const) })) };
  }

  async end(report: Report): Promise<Error | null> {
    await this.#write(() => this.#job.reportFile?.end(report));
    return this.#problem;
  }

  /** The report so far without samples, rebuilt a few times a second at most: building it sorts every gap of the run. */
  recent(): Report {
    const t = now();
    if (!this.#recent || t - this.#recent.at > this.#recent.pause) {
      const report = this.report(this.samples, false);
      const took = now() - t;
      this.#recent = { at: t, pause: Math.max(reportPeriod, 20 * took), report };
    }
    return this.#recent.report;
  }

  report(samples: readonly Sample[], whole: boolean): Report {
    const { environment, unrendered, keepText, keepTextDays } = this.#job;
    return buildReport({
      id: this.#id,
      createdAt: this.#createdAt.toISOString(),
      environment,
      endpoint: this.#endpoint(),
      plan: { ...this.#plan, ...this.#more },
      samples,
      clockErrors: this.#clockErrors,
      serverView: this.#serverView,
      unrendered,
      stopped: this.stopped,
      withSamples: whole,
      clientBottleneck: this.clientBottleneck,
      // A proof says so itself.
      extraCaveats: this.#plan.scenario !== 'prefix' && lacksUserMessage(this.#target.dialect.id, this.#job.prompt) ? [{ kind: 'user-message-added', text: noUserMessage }] : [],
      ...(this.scenario ? { scenario: this.scenario } : {}),
      ...(this.#wall ? { wall: this.#wall } : {}),
      ...(keepText && whole ? { texts: { expires: new Date(this.#createdAt.getTime() + (keepTextDays ?? 7) * day).toISOString(), answers: this.#answers } } : {}),
    });
  }

  #endpoint(): EndpointSummary {
    const { endpoint, dialect, model, server, network, memory } = this.#target;
    return {
      name: endpoint.name,
      origin: originOf(endpoint.url),
      path: this.#path,
      model,
      api: dialect.id,
      server,
      tlsVerified: !network.insecure,
      alpn: this.#alpn,
      refusedFields: memory.recall(endpoint.url).refused,
      price: endpoint.price,
      gpu: endpoint.gpu,
    };
  }
}

async function findOut(job: EndpointAccess, side: Recorder, signal: AbortSignal): Promise<Detection | null> {
  const { endpoint, memory } = job;
  const remembered = memory.recall(endpoint.url).detection;
  if (remembered && (endpoint.model !== null || remembered.models.length > 0)) return remembered;
  if (job.detect === false || signal.aborted) return null;
  const headers = headersForGet(job);
  const found = await detect(endpoint.url, createGet(side, headers, createRedactor([job.key, ...secretsOf(endpoint.url, headers)]), signal));
  // Of all secrets only the key: the value of a header may well be the name of the model.
  const redact = createRedactor([job.key]);
  const detection: Detection = { ...found, version: found.version === null ? null : redact(found.version), models: found.models.map(redact), evidence: found.evidence.map(redact) };
  if (detection.unreachable === null) memory.detected(endpoint.url, detection);
  return detection;
}

/** The endpoint's headers and key as its API carries them, without those of a body. */
function headersForGet({ endpoint, key }: Pick<ProbeJob, 'endpoint' | 'key'>, dialect: Target['dialect'] = dialects[endpoint.api === 'auto' ? 'openai-chat' : endpoint.api]): Record<string, string> {
  const { headers } = dialect.request({ url: endpoint.url, model: endpoint.model ?? 'none', prompt: { messages: [], tools: [] }, maxTokens: null, ask: new Set(), body: {}, headers: endpoint.headers, key });
  return Object.fromEntries(Object.entries(headers).filter(([name]) => !['content-type', 'content-length', 'accept'].includes(name.toLowerCase())));
}

const needsModel = new Set<DialectId>(['openai-responses', 'anthropic', 'gemini', 'ollama', 'cohere', 'bedrock']);

function resolve(job: EndpointAccess, network: NetworkOptions, detection: Detection | null): Target {
  const { endpoint, key, memory } = job;
  const api = endpoint.api === 'auto' ? (detection?.api ?? 'openai-chat') : endpoint.api;
  const model = endpoint.model ?? detection?.models[0] ?? null;
  // Where a key is missing the models cannot be listed either: the requests go out and tell that.
  if (model === null && detection?.unreachable === null && !detection.needsKey && needsModel.has(api)) {
    throw new PlanError(`No model is named and "${endpoint.name}" lists none: set "model" of the endpoint (firstToken.endpoints, --model).`, 'firstToken.endpoints');
  }
  return { endpoint, dialect: dialects[api], model, server: detection?.server ?? null, key, timeouts: timeoutsFor(endpoint, withoutUndefined(job.timeouts)), network, memory };
}

function withoutUndefined(timeouts: JobTimeouts = {}): Partial<Timeouts> {
  const { firstToken, stall, total } = timeouts;
  return { ...(firstToken === undefined ? {} : { firstToken }), ...(stall === undefined ? {} : { stall }), ...(total === undefined ? {} : { total }) };
}

/** The job's network with what the endpoint says itself: certificates and the limit for connecting. */
function targetNetwork({ endpoint, network, timeouts }: EndpointAccess): NetworkOptions {
  const connect = [endpoint.timeouts.connect, timeouts?.connect, network.connectTimeout].find((limit) => limit !== undefined) ?? null;
  return { ...network, insecure: network.insecure || endpoint.tls.insecure, ca: [...network.ca, ...readCa(endpoint)], connectTimeout: connect };
}

function readCa({ name, tls }: Endpoint): string[] {
  if (tls.caFile === null) return [];
  if (tls.caFile.includes('-----BEGIN CERTIFICATE-----')) return [tls.caFile];
  try {
    const text = readFileSync(tls.caFile, 'utf8');
    if (text.includes('-----BEGIN CERTIFICATE-----')) return [text];
  } catch (error) {
    throw new PlanError(`The file in tls.caFile of "${name}" cannot be read: ${(error as Error).message}.`, 'firstToken.endpoints');
  }
  throw new PlanError(`The file in tls.caFile of "${name}" holds no certificate: give a PEM file with -----BEGIN CERTIFICATE-----.`, 'firstToken.endpoints');
}

function checkSlo(slo: Slo): void {
  for (const name of ['ttft', 'firstVisible', 'tpot', 'gapP99', 'total'] as const) {
    const value = slo[name];
    if (value !== undefined && !(typeof value === 'number' && value > 0 && value < Infinity)) throw new PlanError(`firstToken.slo.${name} (--slo-${name}) must be a number of ms above 0; it is ${JSON.stringify(value)}.`, 'firstToken.slo');
  }
  if (!(slo.attainment >= 0 && slo.attainment <= 1)) throw new PlanError(`firstToken.slo.attainment must be from 0 to 1; it is ${JSON.stringify(slo.attainment)}.`, 'firstToken.slo');
  createAnswerCheck(slo.valid);
}

function metricsPage(job: ProbeJob, target: Target, detection: Detection | null, side: Recorder): { readonly url: string; readonly read: () => Promise<string | null> } | null {
  const url = job.endpoint.metricsUrl ?? detection?.metricsUrl ?? null;
  if (url === null) return null;
  // The key goes to its own origin only.
  const headers = originOf(url) === originOf(job.endpoint.url) ? headersForGet(job) : {};
  const get = createGet(side, headers, createRedactor([target.key]), new AbortController().signal);
  const read = async (): Promise<string | null> => {
    const answer = await get(url);
    return answer.status === 200 ? answer.text : null;
  };
  return { url, read };
}

function watchMetrics(job: ProbeJob, target: Target, detection: Detection | null, side: Recorder): ReturnType<typeof watchServer> | null {
  const page = metricsPage(job, target, detection, side);
  return page === null ? null : watchServer({ source: displayUrl(page.url), read: page.read, now, every: metricsPeriod });
}

/** The server's metrics now, or null where there are none. */
async function scrape(job: ProbeJob, target: Target, detection: Detection | null, side: Recorder): Promise<Scrape | null> {
  const text = await metricsPage(job, target, detection, side)?.read().catch(() => null);
  return text === null || text === undefined ? null : parseScrape(text);
}

/**
 * Finds out what a proof needs before it starts: the endpoint, and what its cache rule predicts for each pair, in the server's own tokens
 * where it counts them for others. Throws as `probe` does.
 */
export async function prepareProof(job: ProbeJob, wanted: ProofWanted, signal: AbortSignal): Promise<PlannedProof> {
  checkRequest(job.endpoint, job.prompt, job.promptName);
  const network = targetNetwork(job);
  const side = await openRecorder({ script: job.recorderScript, network, canary: false });
  try {
    const detection = await findOut(job, side, signal);
    const target = resolve(job, network, detection);
    const headers = headersForGet(job);
    const { planProof } = await import('./scenario/prefixPrediction');
    const post = createPost(side, headers, createRedactor([job.key, ...secretsOf(job.endpoint.url, headers)]), signal);
    return await planProof(target, wanted, { post, bodyOf: (prompt) => bodyOf(target, prompt) });
  } finally {
    await side.close();
  }
}

/**
 * Reaches an endpoint to have it count (see `endpointTokens`), found out first where it is not remembered; each question is given up after `limit` ms. To be closed.
 * Throws a PlanError or an Error in plain words when the endpoint cannot be asked.
 */
export async function reachEndpoint(access: EndpointAccess, signal: AbortSignal, limit: Milliseconds = 3000): Promise<CountingParts> {
  const network = targetNetwork(access);
  const side = await openRecorder({ script: access.recorderScript, network, canary: false });
  try {
    const detection = await findOut(access, side, signal);
    if (detection !== null && detection.unreachable !== null) throw new Error(detection.unreachable);
    const target = resolve(access, network, detection);
    const headers = headersForGet(access, target.dialect);
    const post = createPost(side, headers, createRedactor([access.key, ...secretsOf(access.endpoint.url, headers)]), signal, limit);
    const { tokensOf } = await import('./scenario/prefixPrediction');
    const body = (prompt: ChatPrompt) => bodyOf(target, prompt);
    return { target, post, bodyOf: body, tokensOf: (prompt) => tokensOf(target, body(prompt), post), close: () => side.close() };
  } catch (error) {
    await side.close();
    throw error;
  }
}

/** The real world behind the seams of a run. */
export function seams(recorderScript: string): RunSeams {
  return {
    open: (target) => openRecorder({ script: recorderScript, network: target.network }),
    now,
    sleep: (ms, signal) =>
      new Promise((resolve) => {
        const end = (): void => {
          clearTimeout(timer);
          signal.removeEventListener('abort', end);
          resolve();
        };
        const timer = setTimeout(end, ms);
        if (signal.aborted) end();
        else signal.addEventListener('abort', end, { once: true });
      }),
  };
}
