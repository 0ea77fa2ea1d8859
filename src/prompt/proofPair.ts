/** Two requests of one prompt file whose difference is what the lens says changes: the input of a proof. */
import { editText } from './editText';
import type * as promptPart from './index';
import type { CountedEnds } from './requestDiff';
import type { AnalysedFile, CacheRule, ChatPrompt, TokenCounter } from './index';

/** What a proof sends: the prompt as it is, and as a later request would send it. */
export interface ProofPair {
  readonly first: ChatPrompt;
  readonly second: ChatPrompt;
  /** What differs, in words. */
  readonly change: string;
  /** True when both are requests as the file holds them. */
  readonly captured: boolean;
  /** Variables without a value, sent as they are written. */
  readonly unrendered: readonly string[];
}

const later = 86_400_000 + 3_660_000;
const otherNonce = '11111111-1111-4111-8111-111111111111';

/**
 * Renders a prompt of an analysed file twice: with its own samples at `clock` (epoch ms), and a day, an hour and a minute later with
 * other values of the variables that change in the scope. When nothing in it changes, the second ends in another sentence. A file of
 * several requests proves the next one after the first.
 */
export function proofPair(prompt: typeof promptPart, analysed: AnalysedFile, clock: number, index = 0): ProofPair {
  const { file } = analysed;
  const { prompt: first, unrendered } = prompt.renderForProbe(file, {}, clock, index);
  const source = file.prompts[index];
  const report = analysed.prompts[index]?.report;
  if (first.own !== undefined) return { first, ...nextRequest(prompt, analysed, first, index), unrendered };
  if (source === undefined || report === undefined) return { first, second: withAnotherEnd(first), change: anotherEnd, captured: false, unrendered };
  const samples = prompt.sampleInputs(source);
  const names = new Set<string>();
  let values: Readonly<Record<string, unknown>> = samples;
  for (const place of report.places) {
    if (!place.changes || place.kind === 'variant' || place.judgement.evidence === 'call') continue;
    const path = place.judgement.name.replace(/^\$/, '');
    if (path === '' || names.has(path)) continue;
    names.add(path);
    values = changed(values, path);
  }
  const rendered = prompt.renderPrompt(file, source, { values, clock: clock + later, nonce: otherNonce });
  const second = { ...rendered.chat, tools: first.tools };
  if (second.messages.length === 0 || sameText(first, second)) return { first, second: withAnotherEnd(first), change: anotherEnd, captured: false, unrendered };
  const listed = [...names];
  const change = listed.length === 0 ? 'the clock is a day later' : `other values of ${listed.slice(0, 3).join(', ')}${listed.length > 3 ? ` and ${listed.length - 3} more` : ''}, and a day later`;
  return { first, second, change, captured: false, unrendered };
}

/** The change of a pair in which nothing of the file changes. */
export const anotherEnd = 'nothing in the file changes, so the last message got another end';

function withAnotherEnd(prompt: ChatPrompt): ChatPrompt {
  const last = prompt.messages.at(-1);
  if (last === undefined) return prompt;
  const sentence = 'Answer in one sentence.';
  const edited = last.role === 'user' ? editText(last, 'last', (text) => `${text}\n${sentence}`) : null;
  return { ...prompt, messages: edited === null ? [...prompt.messages, { role: 'user', text: sentence }] : [...prompt.messages.slice(0, -1), edited] };
}

/** The request after this one in its file, if there is another. */
function nextRequest(prompt: typeof promptPart, { file }: AnalysedFile, first: ChatPrompt, index: number): Pick<ProofPair, 'second' | 'change' | 'captured'> {
  const next = file.prompts[index + 1];
  const second = next === undefined ? null : prompt.renderForProbe(file, {}, 0, index + 1).prompt;
  if (second === null || second.own?.api !== first.own?.api || sameText(first, second)) return { second: withAnotherEnd(first), change: anotherEnd, captured: false };
  return { second, captured: true, change: `the next request of the file${next?.name ? `, ${next.name}` : ''}` };
}

const sameText = (a: ChatPrompt, b: ChatPrompt) => JSON.stringify([a.messages, a.tools]) === JSON.stringify([b.messages, b.tools]);

/** The values with another one at a dotted path, both as one key and nested, since hosts look it up either way. */
function changed(values: Readonly<Record<string, unknown>>, path: string): Record<string, unknown> {
  if (Object.hasOwn(values, path) || !path.includes('.')) return { ...values, [path]: another(values[path]) };
  const [head = '', ...rest] = path.split('.');
  const inner = values[head];
  const below = typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as Record<string, unknown>) : {};
  return { ...values, [head]: changed(below, rest.join('.')) };
}

/** Another value of the same kind: dates and numbers get other digits, other texts another beginning. */
function another(value: unknown): unknown {
  if (typeof value === 'number') return value + 1;
  if (typeof value === 'boolean') return !value;
  if (typeof value === 'string' && /\d/.test(value)) return value.replace(/\d/g, (digit) => String((Number(digit) + 1) % 10));
  if (typeof value === 'string') return `Another ${value}`;
  if (Array.isArray(value)) return [...(value as unknown[]), ...(value as unknown[]).slice(0, 1)].reverse();
  return value === undefined || value === null ? 'another value' : value;
}

/** What a rule predicts, for a proof: tokens in common become tokens reused. */
export interface RuleArithmetic {
  readonly id: string;
  readonly name: string;
  readonly asOf: string;
  readonly block: number;
  readonly tell: string | null;
  /** Null for rules that ask where messages and markers stand. */
  readonly ofTokens: ((total: number, common: number) => { readonly tokens: number; readonly why: string }) | null;
  /** `ends`: where the blocks of both end in the provider's own tokens, as far as it counted them. */
  readonly ofBodies: (first: Readonly<Record<string, unknown>>, second: Readonly<Record<string, unknown>>, ends?: readonly [CountedEnds, CountedEnds]) => { readonly tokens: number; readonly why: string; readonly total: number; readonly common: number };
}

/** The arithmetic of one rule for a model. */
export function ruleArithmetic(prompt: typeof promptPart, rule: CacheRule, model: string | null, counter: TokenCounter): RuleArithmetic {
  return {
    id: rule.id,
    name: rule.name,
    asOf: rule.asOf,
    block: prompt.blockOf(rule, model).tokens,
    tell: rule.tell ?? null,
    ofTokens:
      rule.family === 'longest-prefix'
        ? (total, common) => {
            const { tokens, why } = prompt.reusable(rule, model, { total, common, blocks: [], automatic: false });
            return { tokens, why };
          }
        : null,
    ofBodies: (first, second, ends) => {
      const { total, common, reuse } = prompt.compareRequests(first, second, { rule, model, counter, ...(ends ? { ends } : {}) });
      return { tokens: reuse.tokens, why: reuse.why, total, common };
    },
  };
}
