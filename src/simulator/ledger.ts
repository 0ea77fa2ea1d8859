/** What the server counts about itself, and Prometheus' text format for it. */

/** A cumulative histogram with fixed bounds, in seconds where it counts time. */
export class Histogram {
  readonly bounds: readonly number[];
  readonly #counts: number[];
  #sum = 0;
  #total = 0;

  constructor(bounds: readonly number[]) {
    this.bounds = bounds;
    this.#counts = bounds.map(() => 0);
  }

  observe(value: number): void {
    this.#sum += value;
    this.#total += 1;
    const bucket = this.bounds.findIndex((bound) => value <= bound);
    if (bucket >= 0) this.#counts[bucket]! += 1;
  }

  get sum(): number {
    return this.#sum;
  }

  get total(): number {
    return this.#total;
  }

  /** Observations at or below each bound, ending with all of them. */
  cumulative(): { readonly bound: string; readonly count: number }[] {
    let running = 0;
    const rows = this.bounds.map((bound, i) => ({ bound: String(bound), count: (running += this.#counts[i]!) }));
    return [...rows, { bound: '+Inf', count: this.#total }];
  }
}

const firstTokenBounds = [0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1, 2.5, 5, 7.5, 10, 20, 40, 80];
const gapBounds = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1, 2.5, 5];
const latencyBounds = [0.1, 0.3, 0.5, 0.8, 1, 1.5, 2, 2.5, 5, 10, 15, 20, 30, 40, 50, 60, 120];

/** Running totals of one server since it started. */
export class Ledger {
  readonly firstToken = new Histogram(firstTokenBounds);
  readonly gap = new Histogram(gapBounds);
  readonly endToEnd = new Histogram(latencyBounds);
  readonly queue = new Histogram(latencyBounds);
  readonly prefill = new Histogram(latencyBounds);
  readonly decode = new Histogram(latencyBounds);
  promptTokens = 0;
  generatedTokens = 0;
  cachedTokens = 0;
  readonly finished = new Map<string, number>();
  readonly refused = new Map<number, number>();

  finish(reason: string): void {
    this.finished.set(reason, (this.finished.get(reason) ?? 0) + 1);
  }

  refuse(status: number): void {
    this.refused.set(status, (this.refused.get(status) ?? 0) + 1);
  }

  /** Answers that ended well. */
  get successes(): number {
    return [...this.finished.values()].reduce((sum, n) => sum + n, 0);
  }
}

/** One metric family: samples as label sets with a value, or a histogram. */
export interface Family {
  readonly name: string;
  readonly help: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly samples: readonly { readonly labels: Readonly<Record<string, string>>; readonly value: number | Histogram }[];
}

/** Prometheus' text exposition format, version 0.0.4. */
export function exposition(families: readonly Family[]): string {
  return families.map((family) => `# HELP ${family.name} ${family.help}\n# TYPE ${family.name} ${family.type}\n${family.samples.map((sample) => sampleLines(family.name, sample)).join('')}`).join('');
}

function sampleLines(name: string, { labels, value }: Family['samples'][number]): string {
  if (typeof value === 'number') return `${name}${labelText(labels)} ${value}\n`;
  const buckets = value.cumulative().map(({ bound, count }) => `${name}_bucket${labelText({ ...labels, le: bound })} ${count}\n`);
  return `${buckets.join('')}${name}_sum${labelText(labels)} ${value.sum}\n${name}_count${labelText(labels)} ${value.total}\n`;
}

function labelText(labels: Readonly<Record<string, string>>): string {
  const pairs = Object.entries(labels).map(([key, value]) => `${key}="${value.replace(/[\\"\n]/g, (c) => (c === '\n' ? '\\n' : `\\${c}`))}"`);
  return pairs.length === 0 ? '' : `{${pairs.join(',')}}`;
}
