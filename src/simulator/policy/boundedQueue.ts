import type { Load } from '../engine';
import type { Admission } from './policy';

/** Requests that wait although every seat is taken; those that will be seated by the next iteration do not count. */
export function queueAhead(load: Load): number {
  return Math.max(0, load.waiting - Math.max(0, load.seats - load.running));
}

/** Refuses with 429 when `limit` requests wait already. */
export function boundedQueue(limit: number): Admission {
  return {
    name: `queue ${limit}`,
    check: (_request, load) => {
      const free = load.waiting < Math.max(0, load.seats - load.running);
      if (free || queueAhead(load) < limit) return null;
      return { status: 429, code: 'queue_full', message: `The queue is full: ${queueAhead(load)} requests wait.`, retryAfter: 1 };
    },
  };
}
