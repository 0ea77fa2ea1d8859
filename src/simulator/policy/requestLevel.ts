import type { BatchingPolicy, BatchView, Iteration } from './policy';
import { isComplete, pending } from './policy';

/**
 * Request-level (static) batching: an idle server takes what waits, up to its seats, and computes until the longest answer is
 * complete; only then are all answers sent and the next batch taken. With `cost`, a batch takes that many ms whatever is in it.
 */
export function requestLevel(cost: number | null = null): BatchingPolicy {
  return { name: 'request-level', release: 'batch', plan: (view) => planBatch(view, cost, Infinity) };
}

/** One iteration of a batch that is closed once it has started, with at most `size` requests. Shared with the timed batcher. */
export function planBatch(view: BatchView, cost: number | null, size: number): Iteration {
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
