import type { Milliseconds } from '../report/sample';

/** The one clock of every stamp: monotonic, the same origin in every thread and process of a host. */
export function now(): Milliseconds {
  return Number(process.hrtime.bigint()) / 1e6;
}
