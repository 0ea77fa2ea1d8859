/** The requests that an endpoint counts for a prompt file: what is sent, and what a later request would send. */
import type * as promptPart from './index';
import type { AnalysedFile, ChatPrompt } from './index';
import { anotherEnd, proofPair } from './proofPair';

/** One prompt of a file as its request is sent, and as a later one would send it; null where nothing in it changes or nobody can render the change. */
export interface SentRequest {
  readonly prompt: ChatPrompt;
  readonly later: ChatPrompt | null;
}

/** Of a batch only so many are counted as sent. */
const mostRequests = 16;

/** The requests of the first prompts of an analysed file, the same that a proof would send. `clock` in epoch milliseconds. */
export function sentRequests(prompt: typeof promptPart, analysed: AnalysedFile, clock: number): readonly SentRequest[] {
  return analysed.prompts.slice(0, mostRequests).map(({ index, report }): SentRequest => {
    if (report.sameVariant.end === null) return { prompt: prompt.renderForProbe(analysed.file, {}, clock, index).prompt, later: null };
    const { first, second, change } = proofPair(prompt, analysed, clock, index);
    return { prompt: first, later: first.own !== undefined || change === anotherEnd ? null : second };
  });
}
