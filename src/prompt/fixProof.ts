/** Whether a fix does what it says: the edited text is parsed as the same file and compared with what was there before. */
import { Located } from './located';
import { parseEdited } from './parse';
import type { Part, Place, Prompt, PromptFile, Span, Volatility } from './prompt';
import { unroll } from './volatility';

/** What has to be true of the file after an edit; numbers are indices into the prompts of a file and the parts of a prompt. */
export type Claim =
  /** What stood at `unit` is sent at the end of part `to`, a substitution still as one; everything else is sent as before. */
  | { readonly kind: 'moved'; readonly prompt: number; readonly from: number; readonly to: number; readonly unit: Place }
  /** The expression at `at` changes no more often than `most`; everything else is sent as before. */
  | { readonly kind: 'coarser'; readonly prompt: number; readonly at: number; readonly most: Volatility }
  /** There is one part more, none is empty, and the same is sent. */
  | { readonly kind: 'split'; readonly prompt: number }
  /** A pragma is heeded, on that line (from 1) or for the file; the same is sent, but for the comment itself where `sent` is true. */
  | { readonly kind: 'silenced'; readonly line: number | null; readonly sent: boolean }
  /** The file can be read as before. */
  | { readonly kind: 'readable' };

/** True when the claim holds for `text`, the file's text after the edit, and the file can be read as well as before. */
export function holds(file: PromptFile, text: string, claim: Claim): boolean {
  const before = baseline(file);
  const after = parseEdited(file, text);
  if (before === null || after?.format !== before.format || after.language !== before.language) return false;
  if (after.problems.length > before.problems.length || (isJson(file.text) && !isJson(text))) return false;
  if (after.prompts.length !== before.prompts.length) return false;
  switch (claim.kind) {
    case 'readable':
      return true;
    case 'silenced': {
      const { line, sent } = claim;
      const heeded = after.pragmas.some((p) => (line === null ? p.pragma === 'off' : p.pragma === 'ignore-line' && p.line <= line && line <= p.last));
      return heeded && after.pragmas.length > before.pragmas.length && (sent || before.prompts.every((prompt, i) => same(sentBy(before, prompt), sentBy(after, after.prompts[i]!))));
    }
    default: {
      const { prompt } = claim;
      const others = before.prompts.every((one, i) => i === prompt || same(sentBy(before, one), sentBy(after, after.prompts[i]!)));
      return others && changedAsClaimed(before, after, claim);
    }
  }
}

function changedAsClaimed(before: PromptFile, after: PromptFile, claim: Extract<Claim, { readonly prompt: number }>): boolean {
  const [old, now] = [before.prompts[claim.prompt], after.prompts[claim.prompt]];
  if (old === undefined || now === undefined) return false;
  const sent = sentBy(after, now);
  switch (claim.kind) {
    case 'split':
      return sent.length === old.parts.length + 1 && sent.every((text) => text !== '') && sent.join('') === sentBy(before, old).join('');
    case 'coarser': {
      const order: readonly Volatility[] = ['constant', 'deploy', 'session', 'day', 'minute', 'request'];
      const piece = unroll(after, now).find(({ kind, start, foreign }) => kind === 'value' && start === claim.at && !foreign);
      const class_ = piece === undefined ? -1 : order.indexOf(piece.judgement.volatility);
      return class_ >= 0 && class_ <= order.indexOf(claim.most) && same(sentBy(before, old, claim.at), sentBy(after, now, claim.at));
    }
    case 'moved': {
      const [part, to] = [old.parts[claim.from], old.parts[claim.to]];
      if (part === undefined || to === undefined || !sameRoles(old.parts, now.parts)) return false;
      const cut = sentAround(before, part, claim.unit);
      if (cut === null) return false;
      const rest = cut.before + cut.behind;
      const expected = old.parts.map((one, i) => {
        const own = i === claim.from ? rest : written(before, one.spans);
        return i === claim.to ? own + cut.unit : own;
      });
      return same(expected, sent);
    }
  }
}

const baselines = new WeakMap<PromptFile, PromptFile>();

/** The file read as an edited text is, once. */
function baseline(file: PromptFile): PromptFile | null {
  // Only in code more is looked at in an edited text.
  if (file.format !== 'python' && file.format !== 'javascript') return file;
  const known = baselines.get(file) ?? parseEdited(file, file.text);
  if (known !== null) baselines.set(file, known);
  return known;
}

function isJson(text: string): boolean {
  if (!/^\ufeff?\s*[[{]/.test(text)) return false;
  try {
    JSON.parse(text.replace(/^\ufeff/, ''));
    return true;
  } catch {
    return false;
  }
}

const same = (a: readonly string[], b: readonly string[]) => a.length === b.length && a.every((text, i) => text === b[i]);
const sameRoles = (a: readonly Part[], b: readonly Part[]) => same(a.map(({ role }) => role), b.map(({ role }) => role));
const squeeze = (text: string) => text.replace(/\s+/g, '');

/** What each part sends, white space left out: text as text, anything else as its source between marks that no text holds. `hidden`: an expression whose source does not count. */
function sentBy(file: PromptFile, prompt: Prompt, hidden?: number): string[] {
  return prompt.parts.map(({ spans }) => written(file, spans, hidden));
}

function written(file: PromptFile, spans: readonly Span[], hidden?: number): string {
  const live = (source: string) => `\u0001${squeeze(source)}\u0002`;
  return spans
    .map((span): string => {
      switch (span.kind) {
        case 'literal':
        case 'raw':
          return squeeze(span.text);
        case 'comment':
        case 'role-mark':
          return '';
        case 'control':
          return span.branches.map((branch) => live(file.text.slice(branch.tag.start, branch.tag.end)) + written(file, branch.spans, hidden)).join('');
        case 'include': {
          const local = span.spans?.filter((inner) => inner.kind === 'control' && inner.local === true) ?? [];
          return live(span.source) + written(file, local, hidden);
        }
        default:
          return span.start === hidden ? live('') : live(file.text.slice(span.start, span.end));
      }
    })
    .join('');
}

/** What a part sends before, in and behind a stretch of the file; null when it cuts through something that is no text. */
function sentAround(file: PromptFile, part: Part, unit: Place): { readonly before: string; readonly unit: string; readonly behind: string } | null {
  const out = { before: '', unit: '', behind: '' };
  for (const span of part.spans) {
    if (span.end <= unit.start) out.before += written(file, [span]);
    else if (span.start >= unit.end) out.behind += written(file, [span]);
    else if (span.start >= unit.start && span.end <= unit.end) out.unit += written(file, [span]);
    else if (span.kind !== 'literal') return null;
    else {
      const located = new Located(span.text, span.map ?? [[0, span.start]], span.end);
      const index = (offset: number) => firstAt(located, offset);
      out.before += squeeze(span.text.slice(0, index(unit.start)));
      out.unit += squeeze(span.text.slice(index(unit.start), index(unit.end)));
      out.behind += squeeze(span.text.slice(index(unit.end)));
    }
  }
  return out;
}

/** The first index whose source stands at or behind an offset. */
function firstAt(located: Located, offset: number): number {
  let [low, high] = [0, located.text.length];
  while (low < high) {
    const middle = (low + high) >> 1;
    if (located.at(middle) < offset) low = middle + 1;
    else high = middle;
  }
  return low;
}
