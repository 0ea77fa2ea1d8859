import type { Flavour, Tally } from './face';

/** OpenAI's `usage`, with the details the flavour reports. */
export function openaiUsage(tally: Tally, flavour: Flavour, details = true): Record<string, unknown> {
  const { promptTokens, outputTokens, reasoningTokens } = tally;
  const usage: Record<string, unknown> = { prompt_tokens: promptTokens, total_tokens: promptTokens + outputTokens, completion_tokens: outputTokens };
  if (!details) return usage;
  usage.prompt_tokens_details = flavour.cachedTokens ? { cached_tokens: tally.cachedTokens } : null;
  if (reasoningTokens > 0) usage.completion_tokens_details = { reasoning_tokens: reasoningTokens };
  return usage;
}
