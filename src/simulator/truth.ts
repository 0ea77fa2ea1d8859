/** What the simulator itself knows about each answer: when it was asked, scheduled and sent, by the clock a probe on the same machine uses. */
import type { Ms } from './engine';

/** One request as the sender saw it. Times are `process.hrtime` ms; null = has not happened. */
export interface Truth {
  readonly id: string;
  readonly api: string;
  replica: number | null;
  /** The whole request had been read. */
  readonly arrival: Ms;
  scheduled: Ms | null;
  promptTokens: number;
  cachedTokens: number | null;
  /** Tokens generated, those never sent included. */
  outputTokens: number;
  reasoningTokens: number;
  /** `[stamp just before the write, tokens in the frame]`, in the order of the wire; frames without a token have 0. */
  readonly frames: [Ms, number][];
  end: Ms | null;
  status: number;
  /** `ok`, `cancelled` or the name of the fault that was played. */
  outcome: string;
}

/** Frames kept over all requests; the oldest requests go first. */
const maxFrames = 2_000_000;

/** The latest requests by id. */
export class TruthStore {
  readonly #records = new Map<string, Truth>();
  #frames = 0;

  add(record: Truth): void {
    this.#records.set(record.id, record);
  }

  find(id: string): Truth | null {
    return this.#records.get(id) ?? this.#records.get(id.replace(/^[a-z]+[-_]/, '')) ?? null;
  }

  /** Notes one frame and makes room by forgetting the oldest finished requests. */
  frame(record: Truth, stamp: Ms, tokens: number): void {
    record.frames.push([stamp, tokens]);
    this.#frames += 1;
    if (this.#frames > maxFrames) this.#forget();
  }

  #forget(): void {
    for (const [id, record] of this.#records) {
      if (record.end === null) continue;
      this.#records.delete(id);
      this.#frames -= record.frames.length;
      if (this.#frames < maxFrames * 0.9) return;
    }
  }
}
