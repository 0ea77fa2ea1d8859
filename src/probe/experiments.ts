/** The experiments as the editor offers them: what each asks, how much it may send, and how it is made from a job. */
import type { ProbeJob } from './index';
import type { ProbeSettings } from './plan';
import { batching, encoder, fairness, interference, overload, rate, sweep, type TenantLoad } from './scenario/index';
import type { Scenario, ScenarioResult } from './scenario/scenario';
import { fixedPrompt, type Workload } from './workload';

/** Names as in the terminal. */
export type ExperimentName = 'sweep' | 'rate' | 'batching' | 'interference' | 'fairness' | 'overload' | 'encoder';

/** How much an experiment may send: its budget, enforced while it runs. */
export interface Effort {
  readonly label: string;
  readonly detail: string;
  /** Most requests, warm-up included. */
  readonly requests: number;
  /** Most output tokens of one answer. */
  readonly maxTokens: number;
  make(job: Pick<ProbeJob, 'prompt' | 'promptName'>): Scenario<ScenarioResult>;
}

/** An experiment and its efforts, the smallest first. */
export interface Experiment {
  readonly title: string;
  /** What it finds out. */
  readonly question: string;
  readonly efforts: readonly Effort[];
}

type Sent = Parameters<Effort['make']>[0];

const workload = ({ prompt, promptName }: Sent): Workload => fixedPrompt(prompt, promptName);
const seconds = (n: number): number => n * 1000;

/** A light tenant and a heavy one, told apart by the field `user`. */
function tenants(heavyAtOnce: number): TenantLoad[] {
  const tenant = (name: string, more: Pick<TenantLoad, 'heavy' | 'concurrency' | 'requests' | 'every' | 'maxTokens'>): TenantLoad => ({ name, key: null, headers: {}, body: { user: name }, ...more });
  return [tenant('light', { heavy: false, concurrency: 1, requests: 24, every: 150, maxTokens: 32 }), tenant('heavy', { heavy: true, concurrency: heavyAtOnce, requests: heavyAtOnce * 20, every: null, maxTokens: 64 })];
}

const sweepEffort = (label: string, most: number, within: number, requests: number): Effort => ({
  label, detail: `up to ${most} at once, ${within} s`, requests, maxTokens: 128,
  make: (sent) => sweep({ workload: workload(sent), list: null, most, within: seconds(within), tolerance: 0.125 }),
});

const rateEffort = (label: string, duration: number, within: number, requests: number): Effort => ({
  label, detail: `Poisson arrivals, ${duration} s a step, ${within} s`, requests, maxTokens: 128,
  make: (sent) => rate({ workload: workload(sent), arrivals: 'poisson', seed: 1, list: null, most: 1000, duration: seconds(duration), within: seconds(within), tolerance: 0.125, mostInFlight: 512 }),
});

/** Every experiment of the palette. */
export const experiments: Readonly<Record<ExperimentName, Experiment>> = {
  sweep: {
    title: 'Sweep', question: 'How many users at once before the SLO breaks?',
    efforts: [sweepEffort('Quick', 64, 40, 1500), sweepEffort('Thorough', 256, 120, 8000)],
  },
  rate: {
    title: 'Rate', question: 'Which rate of requests can be sustained under the SLO?',
    efforts: [rateEffort('Quick', 5, 40, 1500), rateEffort('Thorough', 15, 180, 8000)],
  },
  batching: {
    title: 'Batching', question: 'Is it request-level or continuous?',
    efforts: [3, 10].map((trials, i) => ({ label: i === 0 ? 'Quick' : 'Thorough', detail: `${trials} meetings of a short and a long answer`, requests: 120 + 3 * trials, maxTokens: 64, make: ({ prompt }: Sent) => batching({ prompt, short: 8, long: 64, trials }) })),
  },
  interference: {
    title: 'Interference', question: 'What does a long prompt cost everyone else?',
    efforts: [
      { label: 'Quick', detail: 'prompts of 512 to 4 096 tokens', requests: 60, maxTokens: 256, make: ({ prompt }) => interference({ prompt, lengths: [512, 1024, 2048, 4096], streams: 2, streamTokens: 256, repeats: 2, seed: 1 }) },
      { label: 'Thorough', detail: 'prompts of 512 to 16 384 tokens', requests: 120, maxTokens: 256, make: ({ prompt }) => interference({ prompt, lengths: [512, 1024, 2048, 4096, 8192, 16_384], streams: 2, streamTokens: 256, repeats: 4, seed: 1 }) },
    ],
  },
  fairness: {
    title: 'Fairness', question: 'Do light tenants keep their SLO beside a heavy one?',
    efforts: [32, 64].map((heavy, i) => ({ label: i === 0 ? 'Quick' : 'Thorough', detail: `a heavy tenant with ${heavy} at once; tenants differ by the field “user”`, requests: 100 + 20 * heavy, maxTokens: 64, make: ({ prompt }: Sent) => fairness({ prompt, tenants: tenants(heavy) }) })),
  },
  overload: {
    title: 'Overload', question: 'Beyond capacity: is the queue bounded, and how soon is the server well again?',
    efforts: [[24, 300], [48, 600]].map(([concurrency, most], i) => ({ label: i === 0 ? 'Quick' : 'Thorough', detail: `three times the capacity for 2 s, a burst of at most ${most!}`, requests: 400 + 2 * most!, maxTokens: 64, make: ({ prompt }: Sent) => overload({ prompt, maxTokens: 64, concurrency: concurrency!, factor: 3, duration: seconds(2), mostRequests: most! }) })),
  },
  encoder: {
    title: 'Encoder', question: '/v1/embeddings: which batch size, and what does padding cost?',
    efforts: [[32, 3], [128, 8]].map(([most, repeats], i) => ({ label: i === 0 ? 'Quick' : 'Thorough', detail: `batches of 1 to ${most!}`, requests: 40 * repeats!, maxTokens: 1, make: () => encoder({ api: 'embeddings', sizes: [1, 2, 4, 8, 16, 32, 64, 128].filter((size) => size <= most!), inputTokens: 160, repeats: repeats!, seed: 1, compare: null }) })),
  },
};

/** The settings of a run with that effort: new to the prefix cache, one warm-up, and the effort as a budget where the user's own is not smaller. */
export function settingsFor({ requests, maxTokens }: Effort, settings: ProbeSettings): ProbeSettings {
  const least = (own: number | null, ours: number): number => (own === null ? ours : Math.min(own, ours));
  return { ...settings, requests, concurrency: 1, warmup: 1, maxTokens, cache: 'cold', budget: { ...settings.budget, requests: least(settings.budget.requests, requests), outputTokens: least(settings.budget.outputTokens, requests * maxTokens) } };
}

