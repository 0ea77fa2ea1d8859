import type { EngineEvent, Ms } from '../engine';
import { queueAhead } from './boundedQueue';
import type { Admission } from './policy';

/** Weight of the latest answer in the mean service time. */
const forgetting = 0.1;

/** Refuses with 503 when the expected wait (requests ahead × mean service time / seats) is above `limit` ms; Retry-After is the excess. */
export function shedding(limit: Ms): Admission {
  const scheduled = new Map<string, Ms>();
  let serviceTime: Ms | null = null;
  return {
    name: `shed ${limit}`,
    check: (_request, load) => {
      if (serviceTime === null || load.waiting < load.seats - load.running) return null;
      const wait = ((queueAhead(load) + 1) * serviceTime) / load.seats;
      if (wait <= limit) return null;
      return { status: 503, code: 'overloaded', message: `The server is overloaded: the wait would be about ${Math.round(wait)} ms.`, retryAfter: (wait - limit) / 1000 };
    },
    observe: (event: EngineEvent) => {
      if (event.type === 'scheduled') scheduled.set(event.id, event.at);
      if (event.type === 'lost') scheduled.delete(event.id);
      if (event.type !== 'tokens' || !event.last) return;
      const took = event.at - (scheduled.get(event.id) ?? event.at);
      scheduled.delete(event.id);
      serviceTime = serviceTime === null ? took : serviceTime + forgetting * (took - serviceTime);
    },
  };
}
