import type { BatchingPolicy, BatchView, Iteration, WorkItem } from './policy';
import { pending } from './policy';

/**
 * Continuous batching: after every iteration finished sequences leave and waiting ones take their seats; a new prompt is
 * computed whole, in the same iteration as the others' next tokens (Yu et al., "Orca", OSDI 2022).
 */
export function continuous(): BatchingPolicy {
  return { name: 'continuous', release: 'token', plan };
}

function plan(view: BatchView): Iteration {
  const work: WorkItem[] = view.running.map((sequence) => ({ sequence, tokens: pending(sequence) }));
  for (let next = view.admit(); next; next = view.admit()) work.push({ sequence: next, tokens: pending(next) });
  return { work };
}
