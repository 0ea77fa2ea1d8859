/** When requests of an open loop are due. */
import type { Milliseconds } from '../../report/sample';
import { generator } from '../../report/statistics';

/** `constant`: evenly spaced; `poisson`: independent users, gaps exponentially distributed. */
export type ArrivalKind = 'constant' | 'poisson';

/** `count` arrival times from 0 on at `rate` per second, ms, rising. The same seed gives the same times. */
export function arrivalTimes(kind: ArrivalKind, rate: number, count: number, seed: number): Milliseconds[] {
  if (kind === 'constant') return Array.from({ length: count }, (_, i) => (i * 1000) / rate);
  const random = generator(seed);
  let at = 0;
  return Array.from({ length: count }, (_, i) => (at += i === 0 ? 0 : (-Math.log(1 - random()) * 1000) / rate));
}
