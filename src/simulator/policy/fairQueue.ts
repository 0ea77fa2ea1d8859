import type { Sequence } from '../engine';
import { ArrivalOrder, type QueueDiscipline } from './policy';

/** An output token counts for this many prompt tokens, for it costs a share of a whole step. */
const outputCost = 2;

interface Lane {
  readonly waiting: ArrivalOrder;
  /** Service received, divided by the tenant's weight. */
  served: number;
}

/**
 * Weighted fair queuing over tokens: the waiting tenant that was served least, relative to its weight, is next. A tenant that comes
 * back after a pause starts level with the least served of the others, so it cannot save up its turn
 * (Virtual Token Counter: Sheng et al., "Fairness in Serving Large Language Models", OSDI 2024).
 */
export class FairQueue implements QueueDiscipline {
  readonly name = 'fair';
  readonly #weights: ReadonlyMap<string, number>;
  readonly #lanes = new Map<string, Lane>();

  /** `weights` by tenant name; others weigh 1. */
  constructor(weights: ReadonlyMap<string, number>) {
    this.#weights = weights;
  }

  get size(): number {
    let size = 0;
    for (const lane of this.#lanes.values()) size += lane.waiting.size;
    return size;
  }

  push(sequence: Sequence): void {
    const lane = this.#lane(sequence.request.tenant);
    if (lane.waiting.size === 0) lane.served = Math.max(lane.served, this.#leastServed());
    lane.waiting.push(sequence);
  }

  peek(): Sequence | null {
    let best: Lane | null = null;
    for (const lane of this.#lanes.values()) if (lane.waiting.size > 0 && (best === null || lane.served < best.served)) best = lane;
    return best?.waiting.peek() ?? null;
  }

  remove(sequence: Sequence): void {
    this.#lane(sequence.request.tenant).waiting.remove(sequence);
  }

  served({ request }: Sequence, promptTokens: number, outputTokens: number): void {
    this.#lane(request.tenant).served += (promptTokens + outputCost * outputTokens) / (this.#weights.get(request.tenant) ?? 1);
  }

  *values(): Iterable<Sequence> {
    for (const lane of this.#lanes.values()) yield* lane.waiting.values();
  }

  #lane(tenant: string): Lane {
    const found = this.#lanes.get(tenant);
    if (found) return found;
    const lane: Lane = { waiting: new ArrivalOrder(), served: 0 };
    this.#lanes.set(tenant, lane);
    return lane;
  }

  /** Level of the least served tenant that waits; 0 when none does. */
  #leastServed(): number {
    let least = Infinity;
    for (const lane of this.#lanes.values()) if (lane.waiting.size > 0) least = Math.min(least, lane.served);
    return least === Infinity ? 0 : least;
  }
}
