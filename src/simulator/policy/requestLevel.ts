import type { BatchingPolicy, BatchView, Iteration } from './policy';
import { isComplete, pending } from './policy';

/**
 * Request-level (static) batching: an idle server gathers what arrives within `gather` ms, up to its seats, and computes until the
 * longest answer is complete; only then are all answers sent and the next batch taken. With `cost`, a batch takes that many ms
 * whatever is in it.
 */
export function requestLevel({ gather, cost }: { readonly gather: number; readonly cost: number | null }): BatchingPolicy {
  return closedBatches('request-level', { size: Infinity, timeout: gather, cost });
}

/** When a closed batch starts: with `size` requests, or `timeout` ms after the first of them arrived; `cost` replaces the model's own time. */
export interface ClosedBatch {
  readonly size: number;
  readonly timeout: number;
  readonly cost: number | null;
}

/** Batches that nobody can join once they have started, and whose answers are sent together. Shared with the timed batcher. */
export function closedBatches(name: string, rule: ClosedBatch): BatchingPolicy {
  return { name, release: 'batch', plan: (view) => plan(view, rule) };
}

function plan(view: BatchView, { size, timeout, cost }: ClosedBatch): Iteration | { readonly idleUntil: number } {
  if (view.running.length === 0) {
    const oldest = view.oldestArrival();
    if (oldest === null) return { work: [] };
    if (view.waiting < Math.min(size, view.maxRunning) && view.now < oldest + timeout) return { idleUntil: oldest + timeout };
  }
  const batch = view.running.length > 0 ? [...view.running] : seat(view, size);
  const work = batch.filter((sequence) => !isComplete(sequence)).map((sequence) => ({ sequence, tokens: pending(sequence) }));
  return cost === null ? { work } : { work, duration: cost, whole: true };
}

function seat(view: BatchView, size: number): BatchView['running'] {
  const seated: BatchView['running'][number][] = [];
  while (seated.length < size) {
    const next = view.admit();
    if (!next) break;
    seated.push(next);
  }
  return seated;
}
