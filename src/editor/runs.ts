import type { Log } from './log';
import type { EvidenceStore } from './evidence';
import type { ReportStore } from './reportStore';
import type { LiveRow } from '../report/messages';
import type { Report } from '../report/report';
import type { Sample } from '../report/sample';
import type * as engineModule from '../probe/index';
import type { DialectId, ProbeJob, RunEvent, Scenario } from '../probe/index';
import type { ReportSink } from '../probe/reportSink';
import { Failure } from './failure';

/** The engine as the editor uses it: loaded on first use. */
export type Engine = typeof engineModule;

/** A run that was asked for: the engine's job, and where its prompt came from. */
export interface RunRequest {
  readonly job: Omit<ProbeJob, 'reportFile'>;
  readonly endpointName: string;
  readonly promptName: string;
  /** The document, for its lens; null for the built-in prompt. `text` tells whether it has been edited since. */
  readonly source: { readonly uri: string; readonly textHash: string } | null;
  /** For an experiment: makes it once the run has begun. Absent for a plain probe. */
  readonly scenario?: (engine: Engine, job: ProbeJob, signal: AbortSignal) => Promise<Scenario<unknown>>;
}

/** A run while it lasts, and after. Fields change; `Runs.onDidChange` says when. */
export interface Run {
  readonly request: RunRequest;
  readonly report: Report;
  readonly samples: readonly Sample[];
  readonly done: number;
  readonly total: number;
  /** ms since the start. */
  readonly elapsed: number;
  /** ms to go, or null when unknown. */
  readonly eta: number | null;
  /** An experiment waits on purpose: how long in all and how much of it is left, ms; null otherwise. */
  readonly wait: { readonly whole: number; readonly left: number } | null;
  /** Requests in flight, everything that arrived of them so far. */
  readonly live: ReadonlyMap<string, LiveRow>;
  readonly stopped: 'user' | 'breaker' | 'budget' | null;
  readonly ended: boolean;
}

/** What just happened to the run. */
export type RunChange =
  /** Asked for; the engine looks at the endpoint first. */
  | { readonly type: 'starting'; readonly run: null }
  | { readonly type: 'begin'; readonly run: Run }
  | { readonly type: 'live'; readonly run: Run; readonly rows: readonly LiveRow[] }
  | { readonly type: 'sample'; readonly run: Run; readonly sample: Sample }
  | { readonly type: 'end'; readonly run: Run }
  | { readonly type: 'failed'; readonly run: Run | null };

/** One probe at a time. */
export interface Runs {
  /** The run in progress, or null. */
  readonly current: Run | null;
  /** What was asked for and has not begun. */
  readonly starting: RunRequest | null;
  /** The last run that ended in this window, for Run Again. */
  readonly last: Run | null;
  /** Runs a probe to its end; resolves with the report, also when it was stopped. Rejects with a Failure while another one runs. */
  start(request: RunRequest): Promise<Report>;
  /** Stops the run in progress and waits until its report is written. */
  stop(): Promise<void>;
  /** Resolves when no run is in progress. */
  idle(): Promise<void>;
  /** Resolves when nothing is about to begin: there is a run in progress, or none. */
  begun(): Promise<void>;
  /** A saved tape as a report of its one request, with its frames to look at; null when the text is no tape. */
  readonly openTape: (text: string, name: string) => Promise<Report | null>;
  onChange(listener: (change: RunChange) => void): { dispose(): void };
  dispose(): void;
}

interface MutableRun extends Run {
  report: Report;
  samples: Sample[];
  done: number;
  total: number;
  elapsed: number;
  eta: number | null;
  wait: Run['wait'];
  live: Map<string, LiveRow>;
  stopped: Run['stopped'];
  ended: boolean;
}

/** The controller. `loadEngine` is called at the first run. */
export function createRuns(parts: { readonly loadEngine: () => Promise<Engine>; readonly store: ReportStore; readonly evidence: EvidenceStore; readonly log: Log }): Runs {
  const listeners = new Set<(change: RunChange) => void>();
  const tell = (change: RunChange) => {
    for (const listener of listeners) listener(change);
  };
  let current: MutableRun | null = null;
  let last: MutableRun | null = null;
  let starting: RunRequest | null = null;
  let busy: Promise<unknown> | null = null;
  let abort = new AbortController();

  async function run(request: RunRequest, signal: AbortSignal): Promise<Report> {
    const engine = await parts.loadEngine();
    const reportFile = lateFile(engine, (report) => parts.store.fileFor(report));
    let state: MutableRun | null = null;
    try {
      const job = { ...request.job, reportFile };
      const events = request.scenario ? engine.measureScenario(job, await request.scenario(engine, job, signal), signal) : engine.probe(job, signal);
      for await (const event of events) {
        state = apply(state, event, request);
        current = state;
        starting = null;
        if (event.type === 'begin') parts.log.info(`Probe of ${request.endpointName} with ${request.promptName}: ${event.total} requests.`);
        if (event.type === 'sample') remember(engine, event, request);
        tellOf(state, event);
      }
    } finally {
      current = null;
      starting = null;
      if (state) {
        last = state;
        state.ended = true;
      }
      parts.store.changed();
    }
    if (!state) throw new Failure('The run ended before it began. The log has details.', 'showLog');
    parts.log.info(`Probe ended: ${state.done} of ${state.total} requests${state.stopped ? `, stopped by ${state.stopped}` : ''}.`);
    return state.report;
  }

  function tellOf(state: MutableRun, event: RunEvent): void {
    switch (event.type) {
      case 'begin':
        return tell({ type: 'begin', run: state });
      case 'live':
        return tell({ type: 'live', run: state, rows: event.rows });
      case 'sample':
        return tell({ type: 'sample', run: state, sample: event.sample });
      case 'end':
        state.ended = true;
        last = state;
        current = null;
        return tell({ type: 'end', run: state });
    }
  }

  function remember(engine: Engine, event: Extract<RunEvent, { type: 'sample' }>, { job }: RunRequest): void {
    const secrets = [job.key ?? '', ...engine.secretsOf(job.endpoint.url, job.endpoint.headers)];
    keep(engine, event, secrets);
  }

  function keep(engine: Engine, { decoded, tape, sample, report }: Pick<Extract<RunEvent, { type: 'sample' }>, 'decoded' | 'tape' | 'sample' | 'report'>, secrets: readonly string[]): void {
    const api = report.endpoint.api as DialectId;
    const redact = engine.createRedactor(secrets);
    parts.evidence.put(report.id, sample.id, {
      pieces: decoded.arrivals.map(({ kind, text }) => ({ kind, text })),
      places: decoded.arrivals.map(({ read, frame }) => ({ read, frame })),
      frames: () => engine.frameAt(tape, engine.dialects[api]).map(({ index, t, read, raw }) => ({ index, t: t - tape.phases.start, read, raw: redact(raw) })),
      bytes: tape.bytes.byteLength,
      tapeFile: () => engine.serialiseTape(tape, api, secrets),
    });
  }

  return {
    get current() {
      return current;
    },
    get starting() {
      return starting;
    },
    get last() {
      return last;
    },
    async start(request) {
      if (busy) throw new Failure('A probe is running already. Stop it first, or wait for its end.');
      abort = new AbortController();
      starting = request;
      tell({ type: 'starting', run: null });
      const running = run(request, abort.signal);
      busy = running;
      try {
        return await running;
      } catch (error) {
        tell({ type: 'failed', run: last });
        throw error;
      } finally {
        busy = null;
      }
    },
    openTape: async (text, name) => {
      const engine = await parts.loadEngine();
      const saved = engine.parseTape(text);
      if (typeof saved === 'string') return null;
      const { report, decoded } = engine.reportOfTape(saved, name, { product: 'First Token', node: process.version, platform: `${process.platform} ${process.arch}`, editor: null, remote: null });
      keep(engine, { decoded, tape: saved.tape, sample: report.samples[0]!, report }, []);
      return report;
    },
    async stop() {
      abort.abort();
      await busy?.catch(() => undefined);
    },
    async idle() {
      await busy?.catch(() => undefined);
    },
    begun: () =>
      new Promise((resolve) => {
        if (!starting) return resolve();
        const look = () => {
          if (starting) return;
          listeners.delete(look);
          resolve();
        };
        listeners.add(look);
      }),
    onChange(listener) {
      listeners.add(listener);
      return { dispose: () => listeners.delete(listener) };
    },
    dispose() {
      abort.abort();
      listeners.clear();
    },
  };
}

/** A sink whose path is known when the report has its id. */
function lateFile(engine: Engine, fileFor: (report: Report) => Promise<string>): ReportSink {
  let file: ReportSink | null = null;
  return {
    async begin(header) {
      file = engine.createReportFile(await fileFor(header));
      await file.begin(header);
    },
    async sample(sample) {
      await file?.sample(sample);
    },
    async end(report) {
      await file?.end(report);
    },
  };
}

function apply(before: MutableRun | null, event: RunEvent, request: RunRequest): MutableRun {
  if (event.type === 'begin') {
    return { request, report: event.report, samples: [], done: 0, total: event.total, elapsed: 0, eta: null, wait: null, live: new Map(), stopped: null, ended: false };
  }
  const run = before!;
  switch (event.type) {
    case 'live':
      for (const row of event.rows) run.live.set(row.id, merged(run.live.get(row.id), row));
      run.done = event.done;
      run.total = event.total;
      run.elapsed = event.elapsed;
      run.eta = event.eta;
      run.wait = event.wait ?? null;
      return run;
    case 'sample':
      run.samples.push(event.sample);
      run.live.delete(event.sample.id);
      run.report = event.report;
      run.done = run.samples.filter(({ role }) => role !== 'negotiation').length;
      run.total = Math.max(event.total ?? run.total, run.done);
      run.wait = null;
      return run;
    case 'end':
      run.report = event.report;
      run.stopped = event.stopped;
      run.live.clear();
      return run;
  }
}

/** A row with what came before, so that a panel opened mid-run sees the whole of it. */
function merged(before: LiveRow | undefined, row: LiveRow): LiveRow {
  if (!before) return row;
  return { ...row, headers: row.headers ?? before.headers, t: [...before.t, ...row.t], kinds: [...before.kinds, ...row.kinds], tokens: [...before.tokens, ...row.tokens], text: [...before.text, ...row.text] };
}
