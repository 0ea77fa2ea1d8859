/**
 * The report as a file. JSON Lines, so that a killed process loses at most the requests in flight: line 1 is the report as it began
 * (no samples), then a line a sample as it completes, and at the end the final report, again without samples. A single JSON report is
 * read too. Sample lines keep the run's own clock; reading counts them from the first measured start.
 */
import * as v from 'valibot';
import { buildReport, windowStart } from './buildReport';
import type { Report } from './report';
import { shiftSample, type Sample } from './sample';

const schemaName = 'first-token/report@1';

/** Why a text is not a report that can be shown; `message` says what to do. */
export interface ReportProblem {
  readonly problem: 'other-version' | 'truncated' | 'damaged' | 'not-a-report';
  readonly message: string;
  /** The version found, for `other-version`. */
  readonly found?: string;
}

/** Tells a problem from a report. */
export function isReportProblem(result: Report | ReportProblem): result is ReportProblem {
  return 'problem' in result;
}

/** First line of a report file: the report before its first sample, with a line break. */
export function serialiseHeader(report: Report): string {
  return `${JSON.stringify({ ...report, samples: [] })}\n`;
}

/** One sample, with the stamps of whatever clock the run uses, as a line. */
export function serialiseSample(sample: Sample): string {
  return `${JSON.stringify(sample)}\n`;
}

/** Last line of a report file: the final report; its samples are the lines above. */
export function serialiseFinal(report: Report): string {
  return serialiseHeader(report);
}

/**
 * Reads a report: a single JSON object or JSON Lines. A run that was killed opens with the samples it had (caveat `stopped`,
 * `interrupted`); a last line that is cut off is dropped. Never throws.
 */
export function parseReport(text: string): Report | ReportProblem {
  const content = text.replace(/^\uFEFF/, '').trim();
  if (content === '') return problem('not-a-report', 'The file is empty. Choose a report saved by First Token.');
  const whole = tryJson(content);
  if (whole !== undefined) return single(whole);
  return lines(content.split(/\r?\n/));
}

function single(json: unknown): Report | ReportProblem {
  const version = checkVersion(json);
  if (version !== null) return version;
  const report = v.safeParse(reportShape(), json);
  if (!report.success) return damaged(report.issues);
  // A header with nothing behind it: the run died before its first sample.
  return isRunning(report.output) ? interrupted(report.output, []) : report.output;
}

function lines(all: readonly string[]): Report | ReportProblem {
  const filled = all.filter((line) => line.trim() !== '');
  const head = tryJson(filled[0]!);
  if (head === undefined) {
    return filled.slice(0, 20).join('').slice(0, 4096).includes('first-token/report@')
      ? problem('truncated', 'The report breaks off before its end, so nothing in it can be read. Save it again, or open another copy.')
      : problem('not-a-report', 'This is not a report of First Token: its first line is not JSON.');
  }
  const version = checkVersion(head);
  if (version !== null) return version;
  const header = v.safeParse(reportShape(), head);
  if (!header.success) return damaged(header.issues);
  const samples: Sample[] = [];
  let final: Report | null = null;
  for (let i = 1; i < filled.length; i += 1) {
    const json = tryJson(filled[i]!);
    if (json === undefined && i === filled.length - 1) break;
    if (json === undefined) return problem('damaged', `Line ${i + 1} of the report is not JSON. Delete that line to open the rest.`);
    const isReport = typeof json === 'object' && json !== null && 'schema' in json;
    const line = v.safeParse(isReport ? reportShape() : sampleShape(), json);
    if (!line.success) return damaged(line.issues, i + 1);
    if (isReport) final = line.output as Report;
    else samples.push(line.output as Sample);
  }
  return final === null ? interrupted(header.output, samples) : { ...final, samples: fromWindowStart(shownOf(final, samples)) };
}

/** A scenario writes the samples of all its steps; its report is of some of them. */
function shownOf({ scenario }: Report, samples: readonly Sample[]): readonly Sample[] {
  const shown = scenario?.shown ?? null;
  return shown === null ? samples : samples.filter((s) => shown.includes(String(s.labels['step'])));
}

/** A header is a report that never got a window. */
function isRunning(report: Report): boolean {
  return report.samples.length === 0 && report.window.end === 0 && report.verdict === null && Object.keys(report.outcomes).length === 0;
}

function fromWindowStart(samples: readonly Sample[]): Sample[] {
  const origin = windowStart(samples);
  return samples.map((s) => shiftSample(s, -origin)).sort((a, b) => a.start - b.start);
}

function interrupted(header: Report, samples: readonly Sample[]): Report {
  const names = header.caveats.flatMap((c) => (c.kind === 'unrendered-variables' ? c.names : []));
  const report = buildReport({
    ...header,
    samples,
    clockErrors: [],
    unrendered: names,
    stopped: { by: 'interrupted', detail: `${samples.filter((s) => s.role === 'measured').length} of ${header.plan.requests} requests were written before it ended` },
  });
  return { ...report, window: { ...report.window, absolute: header.window.absolute } };
}

function tryJson(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return undefined;
  }
}

function problem(kind: Exclude<ReportProblem['problem'], 'other-version'>, message: string): ReportProblem {
  return { problem: kind, message };
}

function checkVersion(json: unknown): ReportProblem | null {
  const found: unknown = typeof json === 'object' && json !== null ? (json as { schema?: unknown }).schema : undefined;
  if (found === schemaName) return null;
  if (typeof found === 'string' && found.startsWith('first-token/report@')) {
    return { problem: 'other-version', found, message: `This report is of version ${found.slice(found.indexOf('@') + 1).slice(0, 40)}; this First Token reads version 1. Open it with the First Token that wrote it, or update.` };
  }
  if (typeof found === 'string' && found.startsWith('first-token/')) return problem('not-a-report', `This is a ${found.slice(0, 60)} file, not a report.`);
  return problem('not-a-report', 'This is JSON, but not a report of First Token: it has no schema "first-token/report@1".');
}

function damaged(issues: readonly v.BaseIssue<unknown>[], line?: number): ReportProblem {
  const [issue] = issues;
  const path = issue === undefined ? null : v.getDotPath(issue);
  const where = [line === undefined ? null : `line ${line}`, path].filter(Boolean).join(', ').slice(0, 200);
  return problem('damaged', `The report is damaged${where === '' ? '' : ` at ${where}`}: ${(issue?.message ?? 'unexpected content').slice(0, 200)}. Open another copy, or run the probe again.`);
}

/** Built on first use: nobody who only writes reports pays for them. */
function once<T>(make: () => T): () => T {
  let made: T | undefined;
  return () => (made ??= make());
}

const number = () => v.pipe(v.number(), v.finite());
const nullable = <T extends v.GenericSchema>(schema: T) => v.nullable(schema);
const text = () => v.string();
const deltaKinds = ['text', 'reasoning', 'tool', 'token'];

/** A hand-written check: a report holds hundreds of thousands of deltas. */
function isDeltas(value: unknown): value is Sample['deltas'] {
  return Array.isArray(value) && value.every((d: unknown) => Array.isArray(d) && d.length === 3 && Number.isFinite(d[0]) && deltaKinds.includes(d[1] as string) && (d[2] === null || Number.isFinite(d[2])));
}

function isNumbers(value: unknown): value is number[] {
  return Array.isArray(value) && value.every((n) => Number.isFinite(n));
}

const outcomeKinds = ['ok', 'not-streaming', 'dns', 'connect', 'tls', 'status', 'timeout-first-token', 'timeout-stall', 'timeout-total', 'stream-error', 'truncated', 'malformed', 'empty', 'invalid', 'cancelled'] as const;
const tokenSources = ['token_ids', 'server-count', 'usage-difference', 'logprobs', 'one-per-event', 'final-usage', 'endpoint-tokenizer', 'local-tokenizer', 'deltas'] as const;

const sampleShape = once(() => {
  const stamp = nullable(number());
  return v.object({
    id: text(),
    role: v.picklist(['measured', 'warmup', 'negotiation']),
    due: number(),
    start: number(),
    written: stamp,
    sent: stamp,
    headers: stamp,
    firstFrame: stamp,
    firstToken: stamp,
    firstVisible: stamp,
    last: stamp,
    end: stamp,
    connection: v.object({ reused: v.boolean(), dns: stamp, connected: stamp, secured: stamp, alpn: nullable(text()) }),
    outputTokens: v.object({ count: stamp, source: nullable(v.picklist(tokenSources)) }),
    streamTokens: stamp,
    reasoningTokens: stamp,
    n1: stamp,
    promptTokens: stamp,
    cachedTokens: stamp,
    outcome: v.object({
      kind: v.picklist(outcomeKinds),
      message: v.exactOptional(text()),
      status: v.exactOptional(number()),
      retryAfter: v.exactOptional(number()),
      raw: v.exactOptional(text()),
      refusedField: v.exactOptional(text()),
    }),
    finish: nullable(text()),
    deltas: v.custom<Sample['deltas']>(isDeltas, 'Invalid deltas: expected [ms, kind, tokens or null]'),
    visibleChars: v.custom<number[]>(isNumbers, 'Invalid visibleChars: expected numbers'),
    reads: number(),
    maxDeltasPerRead: number(),
    bytes: number(),
    serverTimings: v.array(v.object({ name: text(), ms: number(), covers: v.picklist(['queue', 'prefill', 'decode', 'ttft', 'total', 'load', 'other']) })),
    flags: v.array(text()),
    labels: v.record(text(), v.union([text(), v.number()])),
  });
});

const caveatShape = once(() => {
  const k = <K extends string, E extends v.ObjectEntries>(kind: K, entries: E) => v.object({ kind: v.literal(kind), ...entries });
  const requests = { requests: number(), of: number() };
  return v.variant('kind', [
    k('too-few-samples', { metric: text(), percentile: number(), n: number(), needed: number() }),
    k('cold-first', { first: number(), rest: number() }),
    k('cache-hits', { ...requests, cachedTokens: nullable(number()), promptTokens: nullable(number()), evidence: v.picklist(['cached-tokens', 'bimodal-ttft']) }),
    k('cold-not-cold', { ...requests, cachedTokens: number() }),
    k('several-tokens-per-frame', { median: number(), max: number() }),
    k('many-frames-per-read', { ...requests, max: number() }),
    k('one-read', requests),
    k('delivery', { cause: v.picklist(['server-batches', 'buffering-proxy', 'content-filter', 'compression']), evidence: text(), itlMeaningless: v.boolean() }),
    k('late-start', { ...requests, p99: number(), max: number() }),
    k('late-write', { ...requests, max: number() }),
    k('clock-error', { metric: text(), error: number(), value: number(), percentile: v.exactOptional(number()) }),
    k('failures-left-out', { failed: number(), of: number(), kinds: v.record(v.picklist(outcomeKinds), number()) }),
    k('tokens-estimated', { source: text() }),
    k('itl-unavailable', { reason: text() }),
    k('hidden-reasoning', { tokens: number(), requests: number() }),
    k('contradicting-usage', { what: text(), requests: number() }),
    k('connection-not-reused', requests),
    k('unrendered-variables', { names: v.array(text()) }),
    k('user-message-added', { text: text() }),
    k('h2-stamps', {}),
    k('field-refused', { field: text() }),
    k('tls-not-verified', { origin: text() }),
    k('stopped', { by: v.picklist(['user', 'breaker', 'budget', 'interrupted']), detail: text() }),
    k('stamp-order', { what: text(), requests: number() }),
    k('client-bottleneck', { detail: text() }),
  ]);
});

const summaryShape = once(() => {
  const bounds = v.tuple([nullable(number()), nullable(number())]);
  return nullable(
    v.object({ n: number(), mean: number(), min: number(), p50: number(), p90: number(), p95: number(), p99: number(), max: number(), ci95: v.object({ p50: bounds, p90: bounds, p95: bounds, p99: bounds }), unit: v.literal('ms') }),
  );
});

const planShape = once(() =>
  v.looseObject({
    scenario: text(),
    requests: number(),
    concurrency: number(),
    warmup: number(),
    maxTokens: nullable(number()),
    cache: v.picklist(['as-is', 'cold']),
    objective: v.picklist(['chat', 'batch']),
    slo: v.object({
      ttft: v.exactOptional(number()),
      firstVisible: v.exactOptional(number()),
      tpot: v.exactOptional(number()),
      gapP99: v.exactOptional(number()),
      total: v.exactOptional(number()),
      valid: v.exactOptional(v.union([v.object({ schema: v.unknown() }), v.object({ pattern: text() })])),
      attainment: number(),
    }),
    readerPace: number(),
    prompt: v.object({ name: text(), characters: number(), sha256: text() }),
  }),
);

const endpointShape = once(() =>
  v.object({
    name: text(),
    origin: text(),
    path: text(),
    model: nullable(text()),
    api: text(),
    server: nullable(text()),
    tlsVerified: v.boolean(),
    alpn: nullable(text()),
    refusedFields: v.array(text()),
    price: nullable(v.object({ currency: text(), inputPerMillion: nullable(number()), cachedInputPerMillion: nullable(number()), outputPerMillion: nullable(number()) })),
    gpu: nullable(v.object({ name: text(), pricePerHour: nullable(number()), count: number(), currency: v.exactOptional(text()) })),
  }),
);

const serverViewShape = once(() => {
  const quantile = nullable(v.union([number(), text()]));
  const named = { name: text(), label: text() };
  return nullable(
    v.object({
      source: text(),
      server: nullable(text()),
      gauges: v.array(v.object({ ...named, points: v.array(v.tuple([number(), number()])) })),
      counters: v.array(v.object({ ...named, difference: nullable(number()) })),
      histograms: v.array(v.object({ ...named, unit: v.literal('ms'), n: number(), mean: nullable(number()), p50: quantile, p90: quantile, p99: quantile })),
      prefixCacheHitRate: nullable(number()),
      notes: v.array(text()),
    }),
  );
});

/** Mirrors `Report` field by field: a change there that is not made here fails to compile below. */
const reportShape = once(() => {
  const summary = summaryShape();
  const rows = { ttft: summary, firstVisible: summary, firstFrame: summary, chunkGap: summary, itl: summary, tpot: summary, total: summary, readerStall: summary };
  return v.object({
    schema: v.literal(schemaName),
    id: text(),
    createdAt: text(),
    environment: v.object({ product: text(), node: text(), platform: text(), editor: nullable(text()), remote: nullable(text()) }),
    endpoint: endpointShape(),
    plan: planShape(),
    window: v.object({ start: v.literal(0), end: number(), absolute: text() }),
    summary: v.object(rows),
    fromDue: v.exactOptional(v.object({ ttft: summary, firstVisible: summary, total: summary })),
    coldWarm: nullable(v.object({ by: v.picklist(['cached-tokens', 'repeat']), cold: summary, warm: summary })),
    throughput: v.object({
      tokensPerSecond: nullable(number()),
      requestsPerSecond: nullable(number()),
      tokensPerCost: nullable(v.object({ value: number(), currency: text(), from: v.picklist(['gpu', 'price']) })),
      source: nullable(text()),
    }),
    perUser: nullable(v.object({ p50: number(), p99: number() })),
    goodput: nullable(v.object({ perSecond: number(), perMinute: number() })),
    attainment: nullable(v.object({ good: number(), due: number(), share: number(), ci95: v.tuple([number(), number()]) })),
    verdict: nullable(v.picklist(['met', 'missed', 'unclear'])),
    outcomes: v.record(v.picklist(outcomeKinds), number()),
    cache: v.object({ promptTokens: nullable(number()), cachedTokens: nullable(number()), hits: number(), unknown: number(), hint: nullable(text()) }),
    prefillRate: nullable(v.object({ p50: number(), n: number() })),
    caveats: v.array(caveatShape()),
    clockError: nullable(v.object({ p50: number(), p99: number(), max: number(), n: number() })),
    serverView: serverViewShape(),
    samples: v.array(sampleShape()),
    texts: v.exactOptional(v.object({ expires: text(), answers: v.record(text(), v.object({ text: text(), reasoning: text() })) })),
    scenario: v.exactOptional(v.object({ name: text(), result: v.unknown(), shown: v.exactOptional(v.nullable(v.array(text()))) })),
  }) satisfies v.GenericSchema<unknown, Report>;
});
