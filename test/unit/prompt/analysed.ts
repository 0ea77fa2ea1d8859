/** Text of a prompt file → everything the lens knows, with the real parsers and a counter of one token a word. */
import assert from 'node:assert/strict';
import { parsePromptFile } from '../../../src/prompt/parse';
import { analysePrefix, type PrefixOptions, type PrefixReport } from '../../../src/prompt/prefix';
import type { Piece, Prompt, PromptFile } from '../../../src/prompt/prompt';
import { loadRules, type CacheRule } from '../../../src/prompt/rules';
import { unroll, type VolatilityOptions } from '../../../src/prompt/volatility';
import { wordCounter } from './pieces';

const book = loadRules();

export const ruleNamed = (id: string): CacheRule => {
  const rule = book.rules.get(id);
  assert.ok(rule, `rule ${id}`);
  return rule;
};

export interface Analysed {
  readonly file: PromptFile;
  readonly prompt: Prompt;
  readonly pieces: readonly Piece[];
  readonly report: PrefixReport;
}

export function analysed(text: string, path: string, id = 'vllm', more: Partial<PrefixOptions> & { readonly volatility?: VolatilityOptions; readonly index?: number } = {}): Analysed {
  const file = parsePromptFile(text, path);
  assert.ok(file, `${path} is a prompt file`);
  const prompt = file.prompts[more.index ?? 0];
  assert.ok(prompt, `${path} has a prompt`);
  const pieces = unroll(file, prompt, more.volatility);
  const report = analysePrefix(prompt, { rule: ruleNamed(id), model: prompt.model, scope: 'user', counter: wordCounter, format: file.format, today: '2026-11-30', pieces, text, ...more });
  return { file, prompt, pieces, report };
}
