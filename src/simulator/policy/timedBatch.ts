import type { BatchingPolicy } from './policy';
import { closedBatches, type ClosedBatch } from './requestLevel';

/** Timed batching: an idle server waits for a full batch or for the timeout, whichever is first, then works as request-level batching does. */
export function timedBatch(rule: ClosedBatch): BatchingPolicy {
  return closedBatches('timed', rule);
}
