import type { FrameTokenSource, GrowthIsToken } from './dialect/dialect';

/** The columns of counts a stream can carry, best first (the list in the definitions); running counts and counts of a frame are told apart. */
const columns: readonly { readonly source: FrameTokenSource; readonly from: 'frame' | 'running' | 'running-visible' }[] = [
  { source: 'token_ids', from: 'frame' },
  { source: 'server-count', from: 'frame' },
  { source: 'server-count', from: 'running' },
  { source: 'usage-difference', from: 'running' },
  { source: 'usage-difference', from: 'running-visible' },
  { source: 'logprobs', from: 'frame' },
  { source: 'one-per-event', from: 'frame' },
];
const runningColumn = { 'server-count': 2, 'usage-difference': 3 } as const;
type RunningSource = 'server-count' | 'usage-difference';
const visibleColumn = 4;
const unknown = -1;

interface Column {
  /** How many deltas have a count, and their sum. */
  covered: number;
  sum: number;
  broken: boolean;
  /** Counts by delta; unused for the first column of a stream, whose counts are in the deltas themselves. */
  readonly values: number[];
}

/** Which source tells k for every delta, and the counts if they are not already in the deltas. */
export interface CountedBy {
  readonly source: FrameTokenSource;
  readonly sum: number;
  readonly values: readonly number[] | null;
}

/**
 * Tokens per delta from everything a stream says about them. Each source has a column; at the end the best one that covers
 * every delta and adds up to N_stream wins, and where none does, no k is known.
 */
export class TokenCounts {
  readonly #columns: (Column | undefined)[] = new Array<Column | undefined>(columns.length).fill(undefined);
  readonly #frame: number[] = new Array<number>(columns.length).fill(unknown);
  #dirty = false;
  #growth: GrowthIsToken = 'no';
  readonly #previous: Partial<Record<RunningSource, { total: number; reasoning: number }>> = {};
  #first = -1;
  #deltas = 0;
  #decreased = false;

  /** Tokens generated in the frame in hand. */
  inFrame(count: number, source: FrameTokenSource): void {
    const column = columns.findIndex((c) => c.source === source && c.from === 'frame');
    if (column < 0) return;
    this.#frame[column] = (this.#frame[column] === unknown ? 0 : this.#frame[column]!) + count;
    this.#dirty = true;
  }

  /** Output tokens so far, as the frame in hand says. */
  running(total: number, source: RunningSource, growth: GrowthIsToken, reasoning = 0): void {
    const previous = this.#previous[source];
    this.#previous[source] = { total, reasoning };
    if (previous !== undefined && total < previous.total) {
      this.#decreased = true;
      return;
    }
    const grown = total - (previous?.total ?? 0);
    // A first count that comes after deltas, or in a frame that ends the answer, is a total and tells nothing about this frame.
    const first = previous === undefined && (growth === 'if-continuous' || this.#deltas > 0);
    this.#growth = growth === 'no' || first ? 'no' : 'yes';
    this.#frame[runningColumn[source]] = grown;
    if (source === 'usage-difference' && (reasoning > 0 || this.#columns[visibleColumn] !== undefined)) {
      this.#frame[visibleColumn] = grown - (reasoning - (previous?.reasoning ?? 0));
    }
    this.#dirty = true;
  }

  /** Tokens that make a frame without content a delta of its own; 0 = it is none. `reasoningSeen`: reasoning is part of the stream. */
  tokensWithoutContent(reasoningSeen: boolean): number {
    if (!this.#dirty) return 0;
    let most = 0;
    columns.forEach(({ from }, at) => {
      const value = this.#frame[at]!;
      if (from === 'frame') most = Math.max(most, value);
    });
    if (this.#growth === 'yes') {
      const visible = this.#frame[visibleColumn]!;
      const usage = visible !== unknown && !reasoningSeen ? visible : this.#frame[runningColumn['usage-difference']]!;
      most = Math.max(most, usage, this.#frame[runningColumn['server-count']]!);
    }
    return Math.max(0, most);
  }

  /** The frame in hand is delta number `index`; gives its k by the stream's first source, for the live view. */
  commit(index: number): number | null {
    this.#deltas++;
    let own: number | null = null;
    if (this.#dirty) {
      for (let at = 0; at < columns.length; at++) {
        const value = this.#frame[at]!;
        if (value === unknown) continue;
        if (this.#first < 0) this.#first = at;
        const column = (this.#columns[at] ??= { covered: 0, sum: 0, broken: false, values: [] });
        if (value < 0) column.broken = true;
        column.covered++;
        column.sum += value;
        if (at === this.#first) own = Math.max(0, value);
        else column.values[index] = value;
      }
    }
    return own;
  }

  /** Forgets the frame in hand; call it after every frame. */
  next(): void {
    if (!this.#dirty) return;
    this.#frame.fill(unknown);
    this.#growth = 'no';
    this.#dirty = false;
  }

  /** The server's running count went down somewhere. */
  get decreased(): boolean {
    return this.#decreased;
  }

  /** The best source that covers all `deltas` and adds up to `streamTokens` (any sum where that is null); null when none does. */
  best(deltas: number, streamTokens: number | null): CountedBy | null {
    for (let at = 0; at < columns.length; at++) {
      const column = this.#columns[at];
      if (column === undefined || deltas === 0 || column.covered !== deltas || column.broken) continue;
      if (columns[at]!.from !== 'frame' && this.#decreased) continue;
      if (streamTokens !== null && column.sum !== streamTokens) continue;
      if (column.sum < 1) continue;
      return { source: columns[at]!.source, sum: column.sum, values: at === this.#first ? null : column.values };
    }
    return null;
  }

  /** Some source did count deltas (more than the one a final total may fall on), so `best` being null is a contradiction. */
  contradicts(deltas: number): boolean {
    return this.#columns.some((column) => column !== undefined && column.covered > 1 && column.covered === deltas);
  }
}
