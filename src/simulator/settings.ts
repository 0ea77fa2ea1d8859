/** Everything a simulated server can be, checked once. */
import type { ReasoningStyle } from './answer';
import type { Fault } from './faults';
import type { Hardware } from './model';

/** Someone who shares the server, recognised by key, by the header `x-tenant` or by the body's `user`. */
export interface Tenant {
  readonly name: string;
  readonly keys: readonly string[];
  /** Share under fair queuing, relative to the others. */
  readonly weight: number;
  /** Class under priority queuing; lower goes first. */
  readonly priority: number;
  /** Token bucket: tokens (prompt and answer) per second and how many may be saved up. Null: no quota. */
  readonly quota: { readonly tokensPerSecond: number; readonly burst: number } | null;
}

/** How a fleet grows: replicas between `min` and `max`, one more when the signal passes its limit. */
export interface AutoscaleRule {
  readonly min: number;
  readonly max: number;
  /** `queue`: waiting requests per replica; `ttft`: mean ms of the last requests. */
  readonly signal: 'queue' | 'ttft';
  readonly limit: number;
}

/** How a router picks a replica. */
export type RouterName = 'round-robin' | 'least-queue' | 'prefix-affinity';

/** What the engine behind the server is made of. */
export interface BackendSettings {
  readonly hardware: Hardware;
  readonly policy: 'continuous' | 'request-level' | 'timed';
  readonly maxRunning: number;
  readonly kvBlocks: number | null;
  readonly prefixCaching: boolean;
  /** Tokens an iteration may hold. Null: prompts are computed whole. */
  readonly chunkedPrefill: number | null;
  /** Ms an idle request-level server collects requests before it starts. */
  readonly gather: number;
  readonly batchSize: number;
  readonly batchTimeout: number;
  /** Fixed ms per batch instead of the model's own time (request-level and timed). */
  readonly batchCost: number | null;
  /** Drafted tokens per step and the chance that each is accepted. */
  readonly speculative: { readonly drafts: number; readonly acceptance: number } | null;
  /** Replicas that only prefill and that only decode, and the link between them in bytes per second. */
  readonly split: { readonly prefill: number; readonly decode: number; readonly linkBandwidth: number } | null;
  /** Requests that may wait. Null: no bound. */
  readonly queueLimit: number | null;
  /** Refuse when the expected wait passes this many ms. Null: never. */
  readonly shedAbove: number | null;
  readonly tenants: readonly Tenant[];
  readonly discipline: 'first-come' | 'priority' | 'fair';
  readonly replicas: number;
  readonly router: RouterName;
  /** Prefix affinity gives way when the favourite has so many more requests than the least loaded one. */
  readonly spill: number;
  readonly autoscale: AutoscaleRule | null;
  /** Ms until a new replica serves. Null: the time to load the weights. */
  readonly slowStart: number | null;
  readonly deadReplica: number | null;
  readonly seed: number;
}

/** One simulated server. */
export interface SimulatorSettings extends BackendSettings {
  readonly host: string;
  /** 0: any free port. */
  readonly port: number;
  readonly face: string;
  readonly servedModel: string;
  readonly maxContext: number;
  readonly reasoningTokens: number;
  readonly reasoningStyle: ReasoningStyle;
  readonly faults: readonly Fault[];
  /** Null: every request is welcome. */
  readonly apiKey: string | null;
  readonly speed: number;
  /** Tokens per frame after the first (vLLM's `--stream-interval`). */
  readonly streamInterval: number;
  /** Usage tells cached prompt tokens. */
  readonly reportsCached: boolean;
  /** The encoder pads a batch to its longest input. */
  readonly paddedBatches: boolean;
  /** When the response head is sent: on acceptance, or when the request gets its seat. */
  readonly headersAt: 'accept' | 'slot';
  /** Idle connections are closed after so many ms. */
  readonly keepAlive: number;
}
