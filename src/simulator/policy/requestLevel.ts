import type { BatchingPolicy, BatchView, Iteration } from './policy';
import { isComplete, pending } from './policy';

/**
 * Request-level (static) batching: an idle server takes what waits, up to its seats, and computes until the longest answer is
 * complete; only then are all answers sent and the next batch taken. With `cost`, a batch takes that many ms whatever is in it.
 */
export function requestLevel(cost: number | null = null): BatchingPolicy {
  return { name: 'request-level', release: 'batch', plan: (view) => planBatch(view, cost) };
}

/** One iteration of a batch that is closed once it has started. Shared with the timed batcher. */
export function planBatch(view: BatchView, cost: number | null): Iteration {
  const batch = view.running.length > 0 ? [...view.running] : seatAll(view);
  const work = batch.filter((sequence) => !isComplete(sequence)).map((sequence) => ({ sequence, tokens: pending(sequence) }));
  return cost === null ? { work } : { work, duration: cost, whole: true };
}

function seatAll(view: BatchView): BatchView['running'] {
  const seated: BatchView['running'][number][] = [];
  for (let next = view.admit(); next; next = view.admit()) seated.push(next);
  return seated;
}
