/**
 * The times of a transformer on a GPU, as pure formulas (ms). The engine runs on `stepTime`; the closed forms are what one writes on paper.
 * Roofline: an iteration lasts as long as the slower of reading its bytes and computing its operations
 * (Williams et al., 2009; applied to decoding in Pope et al., "Efficiently Scaling Transformer Inference", 2022).
 */
import { kvBytesPerToken, weightBytes, type Hardware } from './model';

/** One sequence's share of an iteration: `tokens` new ones after `context` tokens whose keys and values exist already. */
export interface Work {
  readonly tokens: number;
  readonly context: number;
}

/** Duration of one iteration over `work`, ms; 0 for no work. */
export function stepTime(hardware: Hardware, work: readonly Work[]): number {
  let tokens = 0;
  let kvTokens = 0;
  let attended = 0;
  for (const item of work) {
    tokens += item.tokens;
    kvTokens += item.context + item.tokens;
    attended += item.tokens * (item.context + (item.tokens + 1) / 2);
  }
  if (tokens === 0) return 0;
  return Math.max(readTime(hardware, tokens, kvTokens), computeTime(hardware, tokens, attended)) + hardware.stepOverhead;
}

/** Time to read the weights that `tokens` tokens touch and the keys and values of `kvTokens` tokens, ms. */
export function readTime(hardware: Hardware, tokens: number, kvTokens: number): number {
  const bytes = weightBytes(hardware) * weightShare(hardware, tokens) + kvTokens * kvBytesPerToken(hardware);
  return (bytes / (hardware.gpu.bandwidth * hardware.tensorParallel * hardware.efficiency.bandwidth)) * 1000;
}

/** Time of 2 operations per active parameter and token, and 4 × layers × heads × head dim per attended pair, ms. */
export function computeTime(hardware: Hardware, tokens: number, attendedPairs: number): number {
  const { activeParameters, layers, heads, headDim } = hardware.model;
  const operations = 2 * activeParameters * tokens + 4 * layers * heads * headDim * attendedPairs;
  return (operations / (hardware.gpu.flops * hardware.tensorParallel * hardware.efficiency.compute)) * 1000;
}

/**
 * Share of the weights an iteration over `tokens` tokens reads: all of them in a dense model; with experts, the shared part and
 * the experts that at least one token was routed to, 1 − (1 − used/total)^tokens.
 */
function weightShare({ model }: Hardware, tokens: number): number {
  if (!model.experts) return 1;
  const { total, used } = model.experts;
  const expertShare = (1 - model.activeParameters / model.parameters) / (1 - used / total);
  return 1 - expertShare + expertShare * (1 - (1 - used / total) ** tokens);
}

/** First token of a lone request: its prefill is one iteration over the prompt tokens that are not cached, ms. */
export function loneTtft(hardware: Hardware, promptTokens: number, cachedTokens = 0): number {
  return stepTime(hardware, [{ tokens: promptTokens - cachedTokens, context: cachedTokens }]);
}

/** Mean time per output token when `batch` sequences of the same length decode together, ms; the middle of the answer stands for all of it. */
export function batchTpot(hardware: Hardware, batch: number, promptTokens: number, outputTokens: number): number {
  const context = promptTokens + (outputTokens - 1) / 2;
  return stepTime(hardware, Array.from({ length: batch }, () => ({ tokens: 1, context })));
}

/** Time to move the keys and values of `tokens` tokens over a link of `bytesPerSecond`, ms. */
export function kvTransferTime(hardware: Hardware, tokens: number, bytesPerSecond: number): number {
  return ((tokens * kvBytesPerToken(hardware)) / bytesPerSecond) * 1000;
}

/**
 * Concurrency at which a closed loop's wait for one of `seats` slots reaches `limit` ms, when each answer holds a slot for
 * `outputTokens × step` ms: seats × (1 + limit / (outputTokens × step)).
 */
export function kneeOfSeats(seats: number, outputTokens: number, step: number, limit: number): number {
  return seats * (1 + limit / (outputTokens * step));
}
