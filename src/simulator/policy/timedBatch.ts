import type { BatchingPolicy } from './policy';
import { planBatch } from './requestLevel';

/** When a timed batch starts: with `size` requests or `timeout` ms after the first of them arrived. `cost` as for request-level batches. */
export interface TimedBatch {
  readonly size: number;
  readonly timeout: number;
  readonly cost: number | null;
}

/** Timed batching: an idle server waits for a full batch or for the timeout, whichever is first, then works as request-level batching does. */
export function timedBatch({ size, timeout, cost }: TimedBatch): BatchingPolicy {
  return {
    name: 'timed',
    release: 'batch',
    plan: (view) => {
      if (view.running.length > 0) return planBatch(view, cost, size);
      const oldest = view.oldestArrival();
      if (oldest === null) return { work: [] };
      const startAt = oldest + timeout;
      if (view.waiting < Math.min(size, view.maxRunning) && view.now < startAt) return { idleUntil: startAt };
      return planBatch(view, cost, size);
    },
  };
}
