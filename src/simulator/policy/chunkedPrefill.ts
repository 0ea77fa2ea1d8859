import type { BatchingPolicy, BatchView, Iteration, WorkItem } from './policy';
import { pending } from './policy';

/**
 * Continuous batching with at most `budget` tokens an iteration: running sequences take one each first, prompts share the rest
 * in chunks, so a long prompt cannot hold up the others for longer than one chunk takes (Agrawal et al., "Sarathi-Serve", OSDI 2024).
 */
export function chunkedPrefill(budget: number): BatchingPolicy {
  return { name: `chunked-prefill ${budget}`, release: 'token', plan: (view) => plan(view, budget) };
}

function plan(view: BatchView, budget: number): Iteration {
  const work: WorkItem[] = [];
  let left = budget;
  const take = (sequence: WorkItem['sequence']): void => {
    const tokens = Math.min(pending(sequence), left);
    if (tokens > 0) work.push({ sequence, tokens });
    left -= tokens;
  };
  for (const sequence of view.running) if (pending(sequence) === 1) take(sequence);
  for (const sequence of view.running) if (pending(sequence) > 1) take(sequence);
  while (left > 0) {
    const next = view.admit();
    if (!next) break;
    take(next);
  }
  return { work };
}
