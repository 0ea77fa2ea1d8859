/** Every experiment by its name; a new one is a file and a line here. */
export { sweep, type SweepOptions, type SweepResult, type SweepStep } from './sweep';
export { rate, type RateOptions, type RateResult, type RateStep } from './rate';
export type { ArrivalKind } from './arrivals';
