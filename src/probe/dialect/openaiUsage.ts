import type { FrameSink, GrowthIsToken, Usage } from './dialect';
import { at, count, object } from './json';

/**
 * A `usage` object of OpenAI and its look-alikes, normalised. Cached tokens go by many names. xAI's `completion_tokens` excludes
 * reasoning, which shows in the total: prompt + completion + reasoning; then `output` is the sum. Null when it is no usage object.
 */
export function openaiUsage(value: unknown, flag: (flag: string) => void): Usage | null {
  const usage = object(value);
  if (usage === null) return null;
  const prompt = count(usage['prompt_tokens']) ?? count(usage['input_tokens']);
  const completion = count(usage['completion_tokens']) ?? count(usage['output_tokens']);
  if (prompt === undefined && completion === undefined) return null;
  const total = count(usage['total_tokens']);
  const details = object(usage['completion_tokens_details']) ?? object(usage['output_tokens_details']);
  const reasoning = count(details?.['reasoning_tokens']) ?? count(usage['reasoning_tokens']);
  let output = completion;
  if (prompt !== undefined && completion !== undefined && total !== undefined) {
    if (reasoning !== undefined && reasoning > 0 && total === prompt + completion + reasoning) {
      output = completion + reasoning;
      flag('completion-excludes-reasoning');
    } else if (total !== prompt + completion && total > 0) flag('total-does-not-add-up');
  }
  return { prompt, output, reasoning, cached: cachedTokens(usage), cacheWrite: count(at(usage, 'prompt_tokens_details', 'cache_write_tokens')) };
}

function cachedTokens(usage: Readonly<Record<string, unknown>>): number | undefined {
  return (
    count(at(usage, 'prompt_tokens_details', 'cached_tokens')) ??
    count(at(usage, 'input_tokens_details', 'cached_tokens')) ??
    count(usage['prompt_cache_hit_tokens']) ??
    count(usage['cached_tokens']) ??
    count(usage['cache_read_input_tokens'])
  );
}

/** Tells the sink of a usage object: as the last usage and, unless `growth` is null, as the running count of its frame. False when it is none. */
export function tellUsage(sink: FrameSink, value: unknown, growth: GrowthIsToken | null): boolean {
  const usage = openaiUsage(value, (flag) => sink.flag(flag));
  if (usage === null) return false;
  sink.usage(usage);
  if (usage.output !== undefined && growth !== null) sink.running(usage.output, 'usage-difference', growth, usage.reasoning);
  return true;
}

const coverage = { prompt_ms: 'prefill', predicted_ms: 'decode' } as const;

/** llama.cpp's `timings`: prompt total = `cache_n` + `prompt_n`, the exact running count `predicted_n`, and durations in ms. */
export function tellTimings(sink: FrameSink, value: unknown, growth: GrowthIsToken): boolean {
  const timings = object(value);
  const predicted = count(timings?.['predicted_n']);
  if (timings === null || predicted === undefined) return false;
  const cached = count(timings['cache_n']);
  const evaluated = count(timings['prompt_n']);
  sink.usage({ prompt: evaluated === undefined ? undefined : evaluated + (cached ?? 0), output: predicted, cached }, 'server-count');
  sink.running(predicted, 'server-count', growth);
  // With timings in every frame the durations are those so far; the frame that ends the answer has the last.
  if (growth !== 'yes') {
    for (const name of ['prompt_ms', 'predicted_ms'] as const) {
      const ms = count(timings[name]);
      if (ms !== undefined) sink.timing({ name: `timings.${name}`, ms, covers: coverage[name] });
    }
  }
  return true;
}
