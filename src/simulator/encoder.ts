/** The encoder beside the language model: whole batches in, vectors, scores or labels out. */
import { stepTime } from './formula';
import type { Hardware } from './model';
import { seededRandom, seedOf } from './seededRandom';

/** Numbers in an embedding. */
export const dimensions = 128;

/** Duration of encoding inputs of `lengths` tokens as one batch, ms. Padded: every input costs as much as the longest. */
export function encodeTime(hardware: Hardware, lengths: readonly number[], padded: boolean): number {
  const longest = Math.max(0, ...lengths);
  return stepTime(hardware, lengths.map((length) => ({ tokens: padded ? longest : length, context: 0 })));
}

/** When batches that come one after the other are done: each waits for those before it. */
export class EncoderQueue {
  #busyUntil = -Infinity;

  /** The time at which a batch that arrives at `now` and takes `cost` ms is done. */
  enqueue(now: number, cost: number): number {
    this.#busyUntil = Math.max(this.#busyUntil, now) + cost;
    return this.#busyUntil;
  }
}

/**
 * A unit vector for a text: the sum of a fixed random direction per token, so texts that share words are near each other.
 * Fewer than 16 bits round each number to that precision, as a quantised server's answer differs slightly from the full one's.
 */
export function embed(tokens: readonly number[], bits: number): number[] {
  const sum = new Array<number>(dimensions).fill(0);
  for (const token of tokens) {
    const random = seededRandom(seedOf([token]));
    for (let i = 0; i < dimensions; i++) sum[i]! += random() - 0.5;
  }
  const length = Math.hypot(...sum) || 1;
  const step = bits >= 16 ? 0 : 2 ** -(bits - 1);
  return sum.map((value) => (step === 0 ? value / length : Math.round(value / length / step) * step));
}

/** Scalar product; for unit vectors the cosine. */
export function dot(a: readonly number[], b: readonly number[]): number {
  return a.reduce((sum, value, i) => sum + value * b[i]!, 0);
}

/** Probabilities of `labels` classes for a text. */
export function classify(tokens: readonly number[], labels: number, bits: number): number[] {
  const vector = embed(tokens, bits);
  const scores = Array.from({ length: labels }, (_, label) => Math.exp(6 * dot(vector, embed([label + 1], 16))));
  const total = scores.reduce((sum, score) => sum + score, 0);
  return scores.map((score) => score / total);
}
