/** The three places where a serving policy decides: who may enter, who is next, and what one iteration does. */
import type { EngineEvent, EngineRequest, Load, Ms, Refusal, Sequence } from '../engine';

/** What a batching policy may see and do when an iteration is about to start. */
export interface BatchView {
  readonly now: Ms;
  readonly waiting: number;
  /** When the longest-waiting request arrived, ms. Null when nothing waits. */
  oldestArrival(): Ms | null;
  readonly running: readonly Sequence[];
  readonly maxRunning: number;
  /** Seats the next waiting request: its blocks are taken and its cached prefix is found. Null when no request, seat or memory is left. */
  admit(): Sequence | null;
}

/** `tokens` of the sequence's known tokens are computed in this iteration; `emits` is how many new ones that yields when it reaches the end (1 unless speculation gives more). */
export interface WorkItem {
  readonly sequence: Sequence;
  readonly tokens: number;
  readonly emits?: number;
  /** Tokens computed beyond the known ones (drafts to verify); they cost time only. */
  readonly drafts?: number;
}

/** One iteration: its work and, where the policy sets the time itself, its duration in ms or an extra cost. `whole`: every answer is complete after it. */
export interface Iteration {
  readonly work: readonly WorkItem[];
  readonly duration?: Ms;
  readonly extra?: Ms;
  readonly whole?: boolean;
}

/** Decides what each iteration computes. `idleUntil` asks to be called again at that time (or at the next arrival). */
export interface BatchingPolicy {
  readonly name: string;
  /** `token`: every token is sent when its iteration ends. `batch`: nothing is sent before the whole batch has ended. */
  readonly release: 'token' | 'batch';
  plan(view: BatchView): Iteration | { readonly idleUntil: Ms };
}

/** Decides who is next. Implementations keep a preempted request (an old arrival) before younger ones of its kind. */
export interface QueueDiscipline {
  readonly name: string;
  readonly size: number;
  push(sequence: Sequence): void;
  /** The next one, left in place. */
  peek(): Sequence | null;
  remove(sequence: Sequence): void;
  /** Called with what a sequence was served: prompt tokens computed and output tokens generated. */
  served(sequence: Sequence, promptTokens: number, outputTokens: number): void;
  values(): Iterable<Sequence>;
}

/** Decides who may enter at all. */
export interface Admission {
  readonly name: string;
  /** Null lets the request in. */
  check(request: EngineRequest, load: Load, now: Ms): Refusal | null;
  /** Sees every event of admitted requests. */
  observe?(event: EngineEvent): void;
}

/** First come, first served; the base of the other disciplines. */
export class ArrivalOrder implements QueueDiscipline {
  readonly name: string = 'first-come';
  readonly #queue: Sequence[] = [];

  get size(): number {
    return this.#queue.length;
  }

  push(sequence: Sequence): void {
    let at = this.#queue.length;
    while (at > 0 && comesBefore(sequence, this.#queue[at - 1]!)) at -= 1;
    this.#queue.splice(at, 0, sequence);
  }

  peek(): Sequence | null {
    return this.#queue[0] ?? null;
  }

  remove(sequence: Sequence): void {
    const at = this.#queue.indexOf(sequence);
    if (at >= 0) this.#queue.splice(at, 1);
  }

  served(): void {
    // The order of arrival does not depend on service.
  }

  values(): Iterable<Sequence> {
    return this.#queue;
  }
}

/** True when `a` arrived before `b`; equal times keep the order of submission. */
export function comesBefore(a: Sequence, b: Sequence): boolean {
  return a.arrivedAt < b.arrivedAt || (a.arrivedAt === b.arrivedAt && a.order < b.order);
}

/** Tokens of the sequence that are known but not computed: the rest of its prefill, or 1 while it decodes. */
export function pending(sequence: Sequence): number {
  return sequence.request.prompt.length + sequence.generated - sequence.computed;
}

/** True once all output tokens have been generated. */
export function isComplete(sequence: Sequence): boolean {
  return sequence.generated >= sequence.request.output.length;
}
