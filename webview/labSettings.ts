import type { LabLoad } from '../src/report/messages';

/** What can be chosen for one of the two servers. Numbers as they stand in the form; 0 = off where it says so. */
export interface LabChoice {
  readonly policy: 'continuous' | 'chunked' | 'request-level' | 'timed' | 'speculative' | 'split';
  readonly maxRunning: number;
  /** Tokens an iteration may hold (chunked). */
  readonly chunk: number;
  /** Timed batches: start with so many, or so long after the first; every batch takes `batchCost` ms (0 = the model's own time). */
  readonly batchSize: number;
  readonly batchTimeout: number;
  readonly batchCost: number;
  /** Speculative: drafted tokens a step and the chance that each is accepted. */
  readonly drafts: number;
  readonly acceptance: number;
  /** Split: replicas that prefill and that decode. */
  readonly prefillReplicas: number;
  readonly decodeReplicas: number;
  /** Requests that may wait; 0 = no bound. */
  readonly queue: number;
  readonly order: 'first-come' | 'fair';
  readonly prefixCache: boolean;
  readonly replicas: number;
  readonly router: 'round-robin' | 'least-queue' | 'prefix-affinity';
  readonly spill: number;
  readonly model: string;
  readonly gpu: string;
  readonly tensorParallel: number;
  readonly weightBits: number;
  readonly kvBits: number;
}

/** The demo endpoint: an 8B model on an H200, continuous batching. */
export const usualChoice: LabChoice = {
  policy: 'continuous', maxRunning: 16, chunk: 512, batchSize: 8, batchTimeout: 100, batchCost: 0, drafts: 3, acceptance: 0.7, prefillReplicas: 1, decodeReplicas: 1,
  queue: 0, order: 'first-come', prefixCache: true, replicas: 1, router: 'round-robin', spill: 8, model: 'llama-3.1-8b', gpu: 'h200', tensorParallel: 1, weightBits: 16, kvBits: 16,
};

/** Forty users, short prompts, answers of 128 tokens. */
export const usualLoad: LabLoad = { arrivals: { kind: 'users', users: 40 }, requests: 160, promptTokens: 60, outputTokens: 128, lengths: 'equal', longPromptTokens: 0, sharedTokens: 0, groups: 1, tenants: 'one', seed: 1 };

/** The choice as flags of `first-token simulate`; what is at its usual value is left out. */
export function flagsOf(choice: LabChoice): string[] {
  const flags: string[] = [];
  const put = (name: string, value: string | number): void => void flags.push(`--${name}`, String(value));
  const unusual = (name: string, value: string | number, usual: string | number): void => {
    if (value !== usual) put(name, value);
  };
  if (choice.policy === 'request-level' || choice.policy === 'timed') put('policy', choice.policy);
  if (choice.policy === 'chunked') put('chunked-prefill', choice.chunk);
  if (choice.policy === 'timed') {
    put('batch-size', choice.batchSize);
    put('batch-timeout', choice.batchTimeout);
  }
  if ((choice.policy === 'timed' || choice.policy === 'request-level') && choice.batchCost > 0) put('batch-cost', choice.batchCost);
  if (choice.policy === 'speculative') put('speculative', `${choice.drafts}:${choice.acceptance}`);
  if (choice.policy === 'split') put('split', `${choice.prefillReplicas}:${choice.decodeReplicas}`);
  unusual('max-running', choice.maxRunning, 16);
  if (choice.queue > 0) put('queue', choice.queue);
  if (choice.order === 'fair') flags.push('--fair');
  if (!choice.prefixCache) flags.push('--no-prefix-cache');
  if (choice.replicas > 1 && choice.policy !== 'split') {
    put('replicas', choice.replicas);
    unusual('router', choice.router, 'round-robin');
    if (choice.router === 'prefix-affinity') unusual('spill', choice.spill, 8);
  }
  unusual('model', choice.model, usualChoice.model);
  unusual('gpu', choice.gpu, usualChoice.gpu);
  unusual('tp', choice.tensorParallel, 1);
  unusual('weight-bits', choice.weightBits, 16);
  unusual('kv-bits', choice.kvBits, 16);
  return flags;
}

/** A comparison worth seeing. */
export interface LabLesson {
  readonly id: string;
  readonly title: string;
  /** What to look for. */
  readonly look: string;
  readonly a: Partial<LabChoice>;
  readonly b: Partial<LabChoice>;
  readonly load: Partial<LabLoad>;
}

/** The comparisons the page offers, one a claim of the documentation's lab page. */
export const lessons: readonly LabLesson[] = [
  {
    id: 'batching', title: 'Request-level or continuous batching', look: 'In A, short answers end together with the longest of their batch and nothing streams. In B each ends when it is done, and the next request takes its seat at the next step.',
    a: { policy: 'request-level' }, b: { policy: 'continuous' }, load: { arrivals: { kind: 'users', users: 24 }, requests: 72, lengths: 'mixed', outputTokens: 64 },
  },
  {
    id: 'timed', title: 'Timed batches of 1 or of 8, each 100 ms', look: 'Throughput is the batch divided by 0.1 s, latency the wait plus 100 ms: A makes 10 answers a second, B 80.',
    a: { policy: 'timed', batchSize: 1, batchTimeout: 50, batchCost: 100 }, b: { policy: 'timed', batchSize: 8, batchTimeout: 50, batchCost: 100 }, load: { arrivals: { kind: 'users', users: 16 }, requests: 80, outputTokens: 1 },
  },
  {
    id: 'seats', title: 'Four or 64 sequences at a time', look: 'More seats raise the tokens per second of all and slow each one: a step reads the weights once, but the keys and values of everyone.',
    a: { maxRunning: 4 }, b: { maxRunning: 64 }, load: { arrivals: { kind: 'users', users: 64 }, requests: 320, promptTokens: 200, outputTokens: 256, lengths: 'spread' },
  },
  {
    id: 'chunked', title: 'Whole or chunked prefill', look: 'In A every long prompt holds everybody’s next token back; in B the same prompt comes in pieces, so the gaps stay short and the long prompt’s own first token comes later.',
    a: { policy: 'continuous' }, b: { policy: 'chunked', chunk: 256 }, load: { arrivals: { kind: 'rate', perSecond: 8 }, requests: 100, longPromptTokens: 12_000 },
  },
  {
    id: 'bandwidth', title: 'Weights in 16 or in 8 bits', look: 'A decode step lasts as long as its bytes take to read: half the bytes of the weights, about half the time per token.',
    a: { weightBits: 16 }, b: { weightBits: 8 }, load: { arrivals: { kind: 'users', users: 4 }, requests: 24 },
  },
  {
    id: 'gpu', title: 'An H200 or an A100', look: 'Bandwidth 4.8 against 2.04 TB/s: the time per token changes by their ratio, 2.35.',
    a: { gpu: 'h200' }, b: { gpu: 'a100' }, load: { arrivals: { kind: 'users', users: 8 }, requests: 32 },
  },
  {
    id: 'prefix', title: 'With or without a prefix cache', look: 'The first request pays for the shared head; behind it A computes only the tail of each prompt.',
    a: { prefixCache: true }, b: { prefixCache: false }, load: { arrivals: { kind: 'users', users: 8 }, requests: 40, promptTokens: 4000, sharedTokens: 3900, outputTokens: 32 },
  },
  {
    id: 'router', title: 'Round robin or prefix affinity over four replicas', look: 'Affinity sends each head to where its cache is, so more prompt tokens are served from it; round robin computes every head on every replica. The price is balance: look at the busiest replica, and let it spill over sooner.',
    a: { replicas: 4, router: 'round-robin' }, b: { replicas: 4, router: 'prefix-affinity' }, load: { arrivals: { kind: 'rate', perSecond: 30 }, requests: 160, promptTokens: 4000, sharedTokens: 3800, groups: 12, outputTokens: 64 },
  },
  {
    id: 'fair', title: 'First come or fair queuing, next to a heavy tenant', look: 'One tenant sends nine of ten requests. In A the light one waits in the same queue; in B it is served by its share and keeps its first token.',
    a: { order: 'first-come', maxRunning: 8 }, b: { order: 'fair', maxRunning: 8 }, load: { arrivals: { kind: 'rate', perSecond: 40 }, requests: 200, tenants: 'heavy-light', outputTokens: 128 },
  },
  {
    id: 'queue', title: 'Unbounded or bounded queue under overload', look: 'A accepts everything and lets the first token grow without end; B refuses at once what it could not serve in time, and those it takes are quick.',
    a: { queue: 0 }, b: { queue: 8 }, load: { arrivals: { kind: 'rate', perSecond: 60 }, requests: 240 },
  },
  {
    id: 'speculative', title: 'Without or with speculative decoding', look: 'Several tokens a step when drafts are accepted: the time per token falls, and frames hold several tokens.',
    a: { policy: 'continuous' }, b: { policy: 'speculative', drafts: 3, acceptance: 0.7 }, load: { arrivals: { kind: 'users', users: 4 }, requests: 24 },
  },
  {
    id: 'split', title: 'Two whole replicas, or one for prefill and one for decode', look: 'Apart, long prompts no longer interrupt anybody’s tokens; the keys and values must travel once, and each pool can run full while the other idles.',
    a: { replicas: 2, router: 'least-queue' }, b: { policy: 'split', prefillReplicas: 1, decodeReplicas: 1 }, load: { arrivals: { kind: 'rate', perSecond: 15 }, requests: 90, longPromptTokens: 12_000 },
  },
];
