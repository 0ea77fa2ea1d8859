import type { Flavour, Tally } from './face';

/** OpenAI's `usage`, with the details the flavour reports. `written`: tokens added to a cache that charges for writes. */
export function openaiUsage(tally: Tally, flavour: Flavour, details = true, written: number | null = null): Record<string, unknown> {
  const { promptTokens, outputTokens, reasoningTokens } = tally;
  const usage: Record<string, unknown> = { prompt_tokens: promptTokens, total_tokens: promptTokens + outputTokens, completion_tokens: outputTokens };
  if (!details) return usage;
  usage.prompt_tokens_details = flavour.cachedTokens ? { cached_tokens: tally.cachedTokens, ...(written === null ? {} : { cache_write_tokens: written }) } : null;
  if (reasoningTokens > 0) usage.completion_tokens_details = { reasoning_tokens: reasoningTokens };
  return usage;
}
