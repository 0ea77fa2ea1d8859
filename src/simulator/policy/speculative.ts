import { seededRandom, seedOf } from '../seededRandom';
import type { BatchingPolicy, BatchView, Iteration, WorkItem } from './policy';
import { pending } from './policy';

/**
 * Continuous batching with speculation: each step verifies `drafts` drafted tokens, accepted one after the other with chance
 * `acceptance` until the first miss, so it yields (1 − p^(k+1)) / (1 − p) tokens on average (Leviathan et al., ICML 2023).
 * Drafts come from looking up n-grams and cost nothing to make; verifying them costs their computation.
 */
export function speculative({ drafts, acceptance, seed }: { readonly drafts: number; readonly acceptance: number; readonly seed: number }): BatchingPolicy {
  const work = (sequence: WorkItem['sequence']): WorkItem => {
    const tokens = pending(sequence);
    if (tokens > 1 || sequence.generated === 0) return { sequence, tokens };
    const random = seededRandom(seedOf([seed, sequence.order, sequence.generated]));
    let emits = 1;
    while (emits <= drafts && random() < acceptance) emits += 1;
    return { sequence, tokens, emits, drafts };
  };
  const plan = (view: BatchView): Iteration => {
    const items = view.running.map(work);
    for (let next = view.admit(); next; next = view.admit()) items.push(work(next));
    return { work: items };
  };
  return { name: `speculative ${drafts}:${acceptance}`, release: 'token', plan };
}
