import type { Caveat } from './caveats';
import type { Milliseconds, OutcomeKind, Sample } from './sample';

export { buildReport, type ReportInput } from './buildReport';
export { isReportProblem, parseReport, serialiseFinal, serialiseHeader, serialiseSample, type ReportProblem } from './reportFile';

/** Percentiles with an interval. A bound is null where n is too small for it. */
export interface Interval {
  readonly p50: readonly [number | null, number | null];
  readonly p90: readonly [number | null, number | null];
  readonly p95: readonly [number | null, number | null];
  readonly p99: readonly [number | null, number | null];
}

/** One metric over a run: all values in `unit`. */
export interface Summary {
  readonly n: number;
  readonly mean: number;
  readonly min: number;
  readonly p50: number;
  readonly p90: number;
  readonly p95: number;
  readonly p99: number;
  readonly max: number;
  readonly ci95: Interval;
  readonly unit: 'ms';
}

/** The metrics that get a summary, in the order of the table. */
export type MetricName = 'ttft' | 'firstVisible' | 'firstFrame' | 'chunkGap' | 'itl' | 'tpot' | 'total' | 'readerStall';

/** Limits; absent = not judged. All ms but `valid` and `attainment`. */
export interface Slo {
  readonly ttft?: Milliseconds;
  readonly firstVisible?: Milliseconds;
  readonly tpot?: Milliseconds;
  readonly gapP99?: Milliseconds;
  readonly total?: Milliseconds;
  /** The answer must match: a JSON schema or a regular expression. */
  readonly valid?: { readonly schema: unknown } | { readonly pattern: string };
  /** Share of due requests that must be good, 0–1. */
  readonly attainment: number;
}

/** `met` / `missed` / `unclear`: where the Wilson interval of attainment lies against `slo.attainment`. */
export type Verdict = 'met' | 'missed' | 'unclear';

/** What was asked for; no key, no header values, no prompt text. */
export interface PlanSummary {
  readonly scenario: string;
  readonly requests: number;
  readonly concurrency: number;
  readonly warmup: number;
  readonly maxTokens: number | null;
  readonly cache: 'as-is' | 'cold';
  readonly objective: 'chat' | 'batch';
  readonly slo: Slo;
  readonly readerPace: Milliseconds;
  /** Name of the prompt file or `built-in`; its size, never its text. */
  readonly prompt: { readonly name: string; readonly characters: number; readonly sha256: string };
  readonly [extra: string]: unknown;
}

/** The endpoint as measured; no key, no header values, no query. */
export interface EndpointSummary {
  readonly name: string;
  readonly origin: string;
  readonly path: string;
  readonly model: string | null;
  readonly api: string;
  /** Detected server and version, null when unknown. */
  readonly server: string | null;
  readonly tlsVerified: boolean;
  readonly alpn: string | null;
  readonly refusedFields: readonly string[];
  readonly price: { readonly currency: string; readonly inputPerMillion: number | null; readonly cachedInputPerMillion: number | null; readonly outputPerMillion: number | null } | null;
  readonly gpu: { readonly name: string; readonly pricePerHour: number | null; readonly count: number; readonly currency?: string } | null;
}

/** Where it was measured from. */
export interface Environment {
  readonly product: string;
  readonly node: string;
  readonly platform: string;
  readonly editor: string | null;
  /** SSH, WSL, container …: the machine the probe ran from; null when local. */
  readonly remote: string | null;
}

/** Numbers of the server's own metrics, each with its own definition. */
export interface ServerView {
  readonly source: string;
  readonly server: string | null;
  readonly gauges: readonly { readonly name: string; readonly label: string; readonly points: readonly (readonly [t: Milliseconds, value: number])[] }[];
  readonly counters: readonly { readonly name: string; readonly label: string; readonly difference: number | null }[];
  /** A percentile is a number where it lies between two bounds, else the bound in words (`≤ 50`, `> 80000`). */
  readonly histograms: readonly { readonly name: string; readonly label: string; readonly unit: 'ms'; readonly n: number; readonly mean: number | null; readonly p50: number | string | null; readonly p90: number | string | null; readonly p99: number | string | null }[];
  /** Prefix-cache hit rate over the run from the counters, 0–1; null when not told. */
  readonly prefixCacheHitRate: number | null;
  readonly notes: readonly string[];
}

/** TTFT rows split by cache state (metrics.md): by cached tokens where told, else first and repeat. */
export interface ColdWarm {
  readonly by: 'cached-tokens' | 'repeat';
  readonly cold: Summary | null;
  readonly warm: Summary | null;
}

/** Latencies measured from `due`, when the schedule wanted the request to start; beside those from `start` when requests come at a rate. */
export interface FromDue {
  readonly ttft: Summary | null;
  readonly firstVisible: Summary | null;
  readonly total: Summary | null;
}

/**
 * What a run taught: versioned, JSON-safe, shown, saved and compared. No secrets; no prompt or answer text unless `texts` is present.
 * Times in ms, stamps from the window's start, null = none.
 */
export interface Report {
  readonly schema: 'first-token/report@1';
  readonly id: string;
  readonly createdAt: string;
  readonly environment: Environment;
  readonly endpoint: EndpointSummary;
  readonly plan: PlanSummary;
  /** `start` is 0 by definition; `absolute` is the wall clock of the start (ISO), for people. */
  readonly window: { readonly start: 0; readonly end: Milliseconds; readonly absolute: string };
  readonly summary: Readonly<Record<MetricName, Summary | null>>;
  /** Only for runs at a rate. */
  readonly fromDue?: FromDue;
  readonly coldWarm: ColdWarm | null;
  readonly throughput: {
    readonly tokensPerSecond: number | null;
    readonly requestsPerSecond: number | null;
    /** Tokens per unit of currency, from `gpu.pricePerHour` or the token prices. */
    readonly tokensPerCost: { readonly value: number; readonly currency: string; readonly from: 'gpu' | 'price' } | null;
    readonly source: string | null;
  };
  readonly perUser: { readonly p50: number; readonly p99: number } | null;
  readonly goodput: { readonly perSecond: number; readonly perMinute: number } | null;
  readonly attainment: { readonly good: number; readonly due: number; readonly share: number; readonly ci95: readonly [number, number] } | null;
  readonly verdict: Verdict | null;
  readonly outcomes: Readonly<Partial<Record<OutcomeKind, number>>>;
  readonly cache: { readonly promptTokens: number | null; readonly cachedTokens: number | null; readonly hits: number; readonly unknown: number; readonly hint: string | null };
  /** Prompt tokens per second, cached ones left out, of the answers that had enough to compute (`prefill.ts`); null without one. */
  readonly prefillRate: { readonly p50: number; readonly n: number } | null;
  readonly caveats: readonly Caveat[];
  /** Error of the run's own stamps from the canary. Null when no canary frame was seen. */
  readonly clockError: { readonly p50: Milliseconds; readonly p99: Milliseconds; readonly max: Milliseconds; readonly n: number } | null;
  readonly serverView: ServerView | null;
  readonly samples: readonly Sample[];
  /** Only with `firstToken.reports.keepText`: answer text by sample id, and when it must be deleted. */
  readonly texts?: { readonly expires: string; readonly answers: Readonly<Record<string, { readonly text: string; readonly reasoning: string }>> };
  /** Scenario results (sweep, rate …), under the scenario's name. The report is of the steps in `shown` (label `step` of the samples); absent or null = of all. */
  readonly scenario?: { readonly name: string; readonly result: unknown; readonly shown?: readonly string[] | null };
}
