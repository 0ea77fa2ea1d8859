/** What the detectors share: a verdict with its evidence, and how a single request is read whether or not it streamed. */
import type { ChatPrompt } from '../../prompt/prompt';
import { completed, lastStamp, type Milliseconds, type Sample } from '../../report/sample';
import { median } from '../../report/statistics';
import { createNonce, type Shot } from '../plan';
import type { ScenarioResult } from './scenario';

/** A verdict and what it rests on. Times in ms; null = could not be measured. */
export interface Detected<Verdict extends string, Evidence> extends ScenarioResult {
  readonly verdict: Verdict;
  readonly evidence: Evidence;
  /** Why the experiment ended before its last request; null when it did not. */
  readonly stopped: string | null;
}

/** When the last token came; for an answer that was not streamed, its end. */
export function endOf(s: Sample): Milliseconds {
  return s.last ?? s.end ?? lastStamp(s);
}

/** When the first token came; for an answer that was not streamed, its end. */
export function firstOf(s: Sample): Milliseconds {
  return s.firstToken ?? endOf(s);
}

/** From start to the last token. */
export function took(s: Sample): Milliseconds {
  return endOf(s) - s.start;
}

/** Samples that were answered and have this label. */
export function labelled(samples: readonly Sample[], label: string, value: string | number): Sample[] {
  return samples.filter((s) => s.role === 'measured' && completed(s) && s.labels[label] === value);
}

/** Median of a number over samples; null of none. */
export function middle(samples: readonly Sample[], number: (s: Sample) => number): number | null {
  return median(samples.map(number));
}

/** One request of a detector. */
export function oneShot(id: string, prompt: ChatPrompt, maxTokens: number, more: Partial<Pick<Shot, 'dueAt' | 'labels' | 'lane' | 'target' | 'role'>> = {}): Shot {
  return { id, role: 'measured', target: 0, dueAt: null, prompt, maxTokens, nonce: createNonce(), labels: {}, ...more };
}

/** The share of requests that were answered, in words, when it is too small to judge by; null when it is enough. */
export function tooFewAnswers(samples: readonly Sample[]): string | null {
  const measured = samples.filter((s) => s.role === 'measured');
  const answered = measured.filter(completed);
  if (measured.length > 0 && answered.length * 2 > measured.length) return null;
  const failed = measured.find((s) => !completed(s));
  return `${answered.length} of ${measured.length} requests were answered${failed === undefined ? '' : `; one failed with: ${failed.outcome.message ?? failed.outcome.kind}`}`;
}
