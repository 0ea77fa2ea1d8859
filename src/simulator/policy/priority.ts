import type { Sequence } from '../engine';
import { ArrivalOrder } from './policy';

/** Serves the lowest priority number first, and within a class in order of arrival. */
export class PriorityOrder extends ArrivalOrder {
  override readonly name = 'priority';

  override peek(): Sequence | null {
    let best: Sequence | null = null;
    for (const sequence of this.values()) if (best === null || sequence.request.priority < best.request.priority) best = sequence;
    return best;
  }
}
