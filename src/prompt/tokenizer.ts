/** Tokenizers that run here: a bundle of its own, loaded on first use because of its size. */
import { Tokenizer } from '@huggingface/tokenizers';
import { countTokens, encode } from 'gpt-tokenizer/encoding/o200k_base';
import type { ChatPrompt } from './prompt';
import type { TokenCounter } from './tokens';

/** Special tokens written in a prompt are text there: `<|endoftext|>` in a file must neither throw nor count as one. */
const asText = { disallowedSpecial: new Set<string>() };

/** OpenAI's o200k vocabulary: exact for OpenAI models since GPT-4o, an estimate for all others (about 15–20 % low for Claude). */
export function o200kCounter(exact: boolean): TokenCounter {
  return { source: 'o200k', exact, countsByLine: true, count: (text) => countTokens(text, asText), encode: (text) => encode(text, asText) };
}

/**
 * A model's own tokenizer from the texts of its `tokenizer.json` and, where there is one, `tokenizer_config.json`.
 * Throws an `Error` that says what is wrong when the file is not a tokenizer.
 */
export function tokenizerFromJson(tokenizerJson: string, configJson: string | null): TokenCounter {
  const read = (name: string, text: string): Record<string, unknown> => {
    try {
      const value: unknown = JSON.parse(text);
      if (typeof value === 'object' && value !== null && !Array.isArray(value)) return value as Record<string, unknown>;
    } catch {
      // Reported below, as for any other content that is not an object.
    }
    throw new Error(`${name} is not a JSON object.`);
  };
  const tokenizer = read('tokenizer.json', tokenizerJson);
  if (typeof tokenizer['model'] !== 'object') throw new Error('tokenizer.json has no "model": it is not a Hugging Face tokenizer.');
  const inner = new Tokenizer(tokenizer, configJson === null ? {} : read('tokenizer_config.json', configJson));
  const ids = (text: string) => inner.encode(text, { add_special_tokens: false }).ids;
  return { source: 'tokenizer.json', exact: true, count: (text) => (text === '' ? 0 : ids(text).length), encode: ids };
}

/** Tokens of the texts and tools of a prompt, at least 1: what its server adds by its chat template is not in it. */
export function countedTokens(prompt: ChatPrompt, counter: TokenCounter): number {
  const texts = [...prompt.messages.map(({ text }) => text), ...prompt.tools.map((tool) => JSON.stringify(tool))];
  return Math.max(1, texts.reduce((sum, text) => sum + counter.count(text), 0));
}
