/** What an edit of a prompt file does to its cache: how much can be reused before and after, and what is computed again once. Pure. */
import type { AnalysedFile, AnalysedPrompt, TokenCounter } from '../prompt/index';
import { count } from '../report/format';
import type { PromptPart } from './prefixView';

/** Tokens of all prompts of the file together. */
export interface EditOutcome {
  /** Tokens of the edited text, and how many of them stand before its first change. */
  readonly total: number;
  readonly kept: number;
  /** Tokens that a repeated request could reuse before and can reuse now, under the rule in force. */
  readonly before: number;
  readonly after: number;
  /** Of those reusable before, the ones that the edit makes the server compute once more. */
  readonly lost: number;
  /** Line of the first change from 1; null when what is sent is the same. */
  readonly line: number | null;
}

const reusableOf = ({ report }: AnalysedPrompt) => (report.allStatic && report.uncached === null ? report.total : report.sameVariant.reuse.tokens);

/** Compares two analyses of a file, prompt by prompt: by name where they have one, else by their place in the file. */
export function editOutcome(prompt: PromptPart, old: AnalysedFile | null, fresh: AnalysedFile, counter: TokenCounter): EditOutcome {
  const outcome = { total: 0, kept: 0, before: 0, after: 0, lost: 0 };
  let first: number | null = null;
  for (const one of fresh.prompts) {
    const now = fresh.file.prompts[one.index];
    if (now === undefined) continue;
    const named = now.name === null ? -1 : (old?.file.prompts.findIndex(({ name }) => name === now.name) ?? -1);
    const was = old?.prompts[named >= 0 ? named : one.index];
    const source = was === undefined ? undefined : old?.file.prompts[was.index];
    const before = was === undefined || source === undefined ? { prompt: { ...now, parts: [] }, pieces: [] } : { prompt: source, pieces: was.pieces };
    const { kept, invalidated, place } = prompt.editCost(before, { prompt: now, pieces: one.pieces }, counter);
    const reusable = was === undefined ? 0 : reusableOf(was);
    outcome.total += kept + invalidated;
    outcome.kept += kept;
    outcome.before += reusable;
    outcome.after += reusableOf(one);
    if (place === null) continue;
    outcome.lost += Math.max(0, reusable - kept);
    first = first === null ? place.start : Math.min(first, place.start);
  }
  return { ...outcome, line: first === null ? null : fresh.file.text.slice(0, first).split('\n').length };
}

/** The outcome in a sentence without its full stop. */
export function editWords({ total, before, after, lost, line }: EditOutcome, rule: string): string {
  if (line === null) return 'what is sent has not changed';
  const change = before === after ? `${count(after)} of ${count(total)} tokens reusable on ${rule}, as before` : `${count(before)} → ${count(after)} of ${count(total)} tokens reusable on ${rule}`;
  if (lost > 0) return `${change}; ${count(lost)} that were reusable are computed again once, from line ${line} on`;
  return before === 0 ? `${change}; nothing was reusable before, so the edit costs nothing` : `${change}; all that was reusable still is`;
}
