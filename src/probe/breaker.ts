/** Stops a run whose endpoint fails, so that a broken server is not asked thousands of times. */
import type { Outcome } from '../report/sample';

/** When to stop: so many failures in a row, or more than a share of the last few. */
export interface BreakerSettings {
  readonly consecutive: number;
  readonly window: number;
  readonly share: number;
}

/** 5 in a row, or over half of the last 20. */
export const defaultBreaker: BreakerSettings = { consecutive: 5, window: 20, share: 0.5 };

/** Whether an outcome speaks against the endpoint. An answer that failed its check or came unstreamed was still answered. */
export function isFailure(outcome: Outcome): boolean {
  return !['ok', 'not-streaming', 'invalid', 'cancelled'].includes(outcome.kind);
}

/** A breaker for one run: tell it each outcome; it says why to stop, or null. */
export function createBreaker(settings: BreakerSettings): (outcome: Outcome) => string | null {
  let inARow = 0;
  const recent: boolean[] = [];
  return (outcome) => {
    if (outcome.kind === 'cancelled') return null;
    const failed = isFailure(outcome);
    inARow = failed ? inARow + 1 : 0;
    recent.push(failed);
    if (recent.length > settings.window) recent.shift();
    if (inARow >= settings.consecutive) return `${inARow} requests in a row failed`;
    const failures = recent.filter(Boolean).length;
    return failures > settings.window * settings.share ? `${failures} of the last ${recent.length} requests failed` : null;
  };
}
