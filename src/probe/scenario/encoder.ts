/** Encoders: time and throughput against batch size, the cost of padding, and whether two endpoints agree on the same inputs. */
import type { ChatPrompt } from '../../prompt/prompt';
import { count, digits, ms, outOf } from '../../report/format';
import { completed, type Milliseconds, type Sample } from '../../report/sample';
import { percentile, sorted } from '../../report/statistics';
import type { EncoderApi } from '../dialect/dialect';
import type { Endpoint } from '../endpoint';
import { PlanError, type Shot, type Target } from '../plan';
import { fillerText } from '../workload';
import { middle, oneShot, took, tooFewAnswers, type Detected } from './detector';
import { encoderDialect, type Encoded } from './encoderDialect';
import { stepPlan, type Scenario, type ScenarioContext, type StepRun, type Steps } from './scenario';

/** One input of an agreement test. */
export interface EncoderInput {
  readonly text: string;
  /** For `rerank`: what the text is ranked for. */
  readonly query: string | null;
  /** A group to tell apart: a language, a length, a customer. */
  readonly slice: string | null;
}

/** What to send. */
export interface EncoderOptions {
  readonly api: EncoderApi;
  /** Inputs a request, rising. */
  readonly sizes: readonly number[];
  /** Tokens an input. */
  readonly inputTokens: number;
  readonly repeats: number;
  readonly seed: number;
  /** Another endpoint that should give the same, and the inputs to ask both. */
  readonly compare: { readonly endpoint: Endpoint; readonly key: string | null; readonly inputs: readonly EncoderInput[] } | null;
}

/** Whether a batch costs as if every input were as long as its longest. */
export type EncoderVerdict = 'padded' | 'unpadded' | 'unclear';

/** One batch size. */
export interface EncoderSize {
  readonly batch: number;
  readonly latencyMs: Milliseconds;
  readonly latencyP95Ms: Milliseconds;
  readonly itemsPerSecond: number;
}

/** Agreement over a set of inputs: cosines of vectors, equal labels, or differences of scores. */
export interface Agreement {
  readonly slice: string | null;
  readonly inputs: number;
  readonly cosineMean: number | null;
  readonly cosineMin: number | null;
  /** Inputs whose cosine is at least 0.99. */
  readonly near: number | null;
  readonly sameLabel: number | null;
  readonly scoreDifferenceMax: number | null;
}

/** What the verdict rests on. */
export interface EncoderEvidence {
  readonly bestBatch: number | null;
  readonly bestItemsPerSecond: number | null;
  readonly singleMs: Milliseconds | null;
  /** A batch of equal inputs, and one of mixed inputs with as many tokens in all. */
  readonly equalMs: Milliseconds | null;
  readonly mixedMs: Milliseconds | null;
  /** mixed / equal, and what it would be if every input were padded to the longest. */
  readonly paddingCost: number | null;
  readonly paddingCostIfPadded: number;
  readonly sizes: readonly EncoderSize[];
  readonly agreement: { readonly overall: Agreement; readonly slices: readonly Agreement[] } | null;
  readonly reason: string | null;
}

/** `first-token/encoder@1`. */
export type EncoderResult = Detected<EncoderVerdict, EncoderEvidence> & { readonly schema: 'first-token/encoder@1'; readonly api: EncoderApi };

const paddingBatch = 16;
/** In the mixed batch every fourth input is long, the others are short: the mean is as in the equal batch. */
const longTimes = 3;
const shortTimes = 1 / 3;
const inputsPerRequest = 16;

/** Batch sizes one by one, then equal and mixed batches in turn, then the inputs of the comparison at both endpoints. */
export function encoder(options: EncoderOptions): Scenario<EncoderResult> {
  return { name: 'encoder', target: (target) => ({ ...target, dialect: encoderDialect(options.api) }), steps: (context) => detecting(options, context) };
}

type MutableEvidence = { -readonly [K in keyof EncoderEvidence]: EncoderEvidence[K] };

function* detecting(options: EncoderOptions, context: ScenarioContext): Steps<EncoderResult> {
  const { api, sizes, inputTokens, repeats, compare } = options;
  if (sizes.some((size) => !Number.isInteger(size) || size < 1 || size > 10_000)) throw new PlanError(`--sizes takes whole numbers from 1 to 10000; got ${sizes.join(',')}.`);
  const evidence: MutableEvidence = { bestBatch: null, bestItemsPerSecond: null, singleMs: null, equalMs: null, mixedMs: null, paddingCost: null, paddingCostIfPadded: longTimes, sizes: [], agreement: null, reason: null };
  const end = (stopped: string | null = null) => ({ result: resultOf(api, { ...evidence }, stopped), shown: null });
  const plan = (shots: readonly Shot[], targets: readonly Target[] = [context.target]) => stepPlan(context, 'encoder', { shots, targets, concurrency: 1, fixedLength: false });
  let made = options.seed * 100_003;
  const batch = (lengths: readonly number[]): ChatPrompt => prompt(api, fillerText(8, options.seed), lengths.map((length) => fillerText(length, (made += 1))));
  const shot = (id: string, lengths: readonly number[], labels: Shot['labels']): Shot => ({ ...oneShot(id, batch(lengths), 1, { labels }), nonce: null, maxTokens: null });

  for (const size of sizes) {
    const equal = Array.from({ length: size }, () => inputTokens);
    const warm = size === sizes[0] ? Array.from({ length: context.settings.warmup }, (_, i) => ({ ...shot(`warm-${i}`, equal, {}), role: 'warmup' as const })) : [];
    const run = yield { name: `batch-${size}`, plan: plan([...warm, ...Array.from({ length: repeats }, (_, i) => shot(`b${size}-${i}`, equal, { batch: size }))]), soFar: evidence.sizes.length === 0 ? null : end().result, shown: null };
    readSize(evidence, run.samples, size);
    evidence.reason ??= tooFewAnswers(run.samples);
    if (run.stopped || evidence.sizes.length === 0) return end(run.stopped?.detail ?? null);
  }

  const mean = Math.max(12, inputTokens);
  const mixed = Array.from({ length: paddingBatch }, (_, i) => Math.round(mean * (i % 4 === 0 ? longTimes : shortTimes)));
  const equal = Array.from({ length: paddingBatch }, () => Math.round(mixed.reduce((sum, n) => sum + n, 0) / paddingBatch));
  const padding = yield { name: 'padding', plan: plan(Array.from({ length: 2 * repeats }, (_, i) => shot(`padding-${i}`, i % 2 === 0 ? equal : mixed, { kind: i % 2 === 0 ? 'equal' : 'mixed' }))), soFar: end().result, shown: null };
  const timeOf = (kind: string): Milliseconds | null => middle(padding.samples.filter((s) => completed(s) && s.labels['kind'] === kind), took);
  evidence.equalMs = timeOf('equal');
  evidence.mixedMs = timeOf('mixed');
  if (evidence.equalMs !== null && evidence.mixedMs !== null && evidence.equalMs > 0) evidence.paddingCost = evidence.mixedMs / evidence.equalMs;
  if (padding.stopped || compare === null) return end(padding.stopped?.detail ?? null);

  const other: Target = { ...context.target, endpoint: compare.endpoint, key: compare.key, model: compare.endpoint.model ?? context.target.model };
  const groups = grouped(compare.inputs);
  const shots = groups.flatMap((inputs, g) => [0, 1].map((target): Shot => ({ ...oneShot(`${target === 0 ? 'a' : 'b'}-${g}`, prompt(api, inputs[0]!.query ?? '', inputs.map(({ text }) => text)), 1, { target, labels: { group: g, endpoint: target === 0 ? 'a' : 'b' } }), nonce: null, maxTokens: null })));
  const both = yield { name: 'agreement', plan: plan(shots, [context.target, other]), keepText: true, soFar: end().result, shown: null };
  evidence.agreement = agreementOf(groups, both);
  if (evidence.agreement === null) evidence.reason ??= tooFewAnswers(both.samples) ?? 'the two endpoints answered in forms that cannot be compared';
  return end(both.stopped?.detail ?? null);
}

function prompt(api: EncoderApi, query: string, texts: readonly string[]): ChatPrompt {
  const messages = (api === 'rerank' ? [query, ...texts] : texts).map((text) => ({ role: 'user' as const, text }));
  return { messages, tools: [] };
}

function readSize(evidence: MutableEvidence, samples: readonly Sample[], size: number): void {
  const times = sorted(samples.filter((s) => s.role === 'measured' && completed(s)).map(took));
  if (times.length === 0) return;
  const latency = percentile(times, 0.5);
  evidence.sizes = [...evidence.sizes, { batch: size, latencyMs: latency, latencyP95Ms: percentile(times, 0.95), itemsPerSecond: (size * 1000) / latency }];
  if (size === 1) evidence.singleMs = latency;
  // The least batch within a twentieth of the most: beyond it a request only waits longer.
  const most = Math.max(...evidence.sizes.map((at) => at.itemsPerSecond));
  const best = evidence.sizes.find((at) => at.itemsPerSecond >= 0.95 * most)!;
  evidence.bestBatch = best.batch;
  evidence.bestItemsPerSecond = best.itemsPerSecond;
}

/** Inputs in requests; for a reranker those of one query go together. */
function grouped(inputs: readonly EncoderInput[]): (readonly EncoderInput[])[] {
  const byQuery = new Map<string, EncoderInput[]>();
  for (const input of inputs) byQuery.set(input.query ?? '', [...(byQuery.get(input.query ?? '') ?? []), input]);
  return [...byQuery.values()].flatMap((all) => Array.from({ length: Math.ceil(all.length / inputsPerRequest) }, (_, g) => all.slice(g * inputsPerRequest, (g + 1) * inputsPerRequest)));
}

interface Compared {
  readonly slice: string | null;
  readonly cosine: number | null;
  readonly same: boolean | null;
  readonly difference: number | null;
}

function agreementOf(groups: readonly (readonly EncoderInput[])[], run: StepRun): EncoderEvidence['agreement'] {
  const all = groups.flatMap((inputs, g): Compared[] => {
    const [a, b] = ['a', 'b'].map((side) => encodedOf(run.texts.get(`${side}-${g}`)));
    if (!a || !b) return [];
    return inputs.flatMap((input, i): Compared[] => {
      const compared = compare(a, b, i);
      return compared === null ? [] : [{ slice: input.slice, ...compared }];
    });
  });
  if (all.length === 0) return null;
  const slices = [...new Set(all.map(({ slice }) => slice))].filter((slice) => slice !== null);
  return { overall: summarise(null, all), slices: slices.map((slice) => summarise(slice, all.filter((one) => one.slice === slice))) };
}

function encodedOf(text: string | undefined): Encoded | null {
  try {
    return text === undefined ? null : (JSON.parse(text) as Encoded);
  } catch {
    return null;
  }
}

function compare(a: Encoded, b: Encoded, i: number): Omit<Compared, 'slice'> | null {
  const [va, vb] = [a.vectors?.[i], b.vectors?.[i]];
  if (va !== undefined && vb !== undefined) return va.length === vb.length ? { cosine: cosine(va, vb), same: null, difference: null } : null;
  const [la, lb] = [a.labels?.[i], b.labels?.[i]];
  if (la !== undefined && lb !== undefined) return { cosine: null, same: la === lb, difference: null };
  const [sa, sb] = [a.scores?.[i], b.scores?.[i]];
  return sa !== undefined && sb !== undefined ? { cosine: null, same: null, difference: Math.abs(sa - sb) } : null;
}

/** a·b / (|a||b|); 0 when one of them is all zeros. */
export function cosine(a: readonly number[], b: readonly number[]): number {
  const dot = (x: readonly number[], y: readonly number[]): number => x.reduce((sum, value, i) => sum + value * y[i]!, 0);
  const lengths = Math.sqrt(dot(a, a) * dot(b, b));
  return lengths === 0 ? 0 : dot(a, b) / lengths;
}

function summarise(slice: string | null, all: readonly Compared[]): Agreement {
  const cosines = all.flatMap((one) => one.cosine ?? []);
  const labels = all.flatMap((one) => one.same ?? []);
  const differences = all.flatMap((one) => one.difference ?? []);
  return {
    slice,
    inputs: all.length,
    cosineMean: cosines.length === 0 ? null : cosines.reduce((sum, c) => sum + c, 0) / cosines.length,
    cosineMin: cosines.length === 0 ? null : Math.min(...cosines),
    near: cosines.length === 0 ? null : cosines.filter((c) => c >= 0.99).length,
    sameLabel: labels.length === 0 ? null : labels.filter(Boolean).length,
    scoreDifferenceMax: differences.length === 0 ? null : Math.max(...differences),
  };
}

function resultOf(api: EncoderApi, evidence: EncoderEvidence, stopped: string | null): EncoderResult {
  const extra = evidence.paddingCost === null ? null : (evidence.paddingCost - 1) / (evidence.paddingCostIfPadded - 1);
  const verdict = extra === null ? 'unclear' : extra >= 0.5 ? 'padded' : extra <= 0.25 ? 'unpadded' : 'unclear';
  return { schema: 'first-token/encoder@1', api, verdict, evidence, stopped, sentences: sentences(api, verdict, evidence, stopped) };
}

function sentences(api: EncoderApi, verdict: EncoderVerdict, e: EncoderEvidence, stopped: string | null): string[] {
  if (e.bestBatch === null) return [`/${api} could not be measured${e.reason === null ? '' : `: ${e.reason.replace(/\.$/, '')}`}.`, stopped === null ? 'Check that the endpoint serves this API (--api-kind).' : `The experiment was stopped (${stopped}).`];
  const [first, best] = [e.sizes[0]!, e.sizes.find((at) => at.batch === e.bestBatch)!];
  const all = [`A batch of ${count(best.batch)} is enough: ${digits(best.itemsPerSecond)} inputs/s at ${ms(best.latencyMs)} a request, where ${count(first.batch)} at a time gives ${digits(first.itemsPerSecond)} inputs/s at ${ms(first.latencyMs)}.`];
  const cost = e.paddingCost === null ? '' : `mixed lengths take ${digits(e.paddingCost)} times as long as equal ones with as many tokens (${digits(e.paddingCostIfPadded)} times if all were padded to the longest)`;
  if (verdict === 'padded') all.push(`Batches are padded: ${cost}. Sort inputs by length before batching.`);
  else if (verdict === 'unpadded') all.push(`Batches are not padded: ${cost}.`);
  else if (cost !== '') all.push(`Whether batches are padded is unclear: ${cost}. Try longer inputs (--input-tokens).`);
  if (e.agreement !== null) all.push(agreementSentence(e.agreement));
  else if (e.reason !== null) all.push(`Agreement could not be measured: ${e.reason}.`);
  return all;
}

function agreementSentence({ overall, slices }: NonNullable<EncoderEvidence['agreement']>): string {
  const words = (a: Agreement): string => {
    if (a.sameLabel !== null) return `${outOf(a.sameLabel, a.inputs)} labels are the same`;
    if (a.scoreDifferenceMax !== null) return `scores differ by at most ${digits(a.scoreDifferenceMax)} over ${count(a.inputs)} inputs`;
    return `cosines are ${(a.cosineMean ?? 0).toFixed(4)} in the mean and ${(a.cosineMin ?? 0).toFixed(4)} at least, ${outOf(a.near ?? 0, a.inputs)} above 0.99`;
  };
  const badness = (a: Agreement): number => (a.sameLabel !== null ? 1 - a.sameLabel / a.inputs : (a.scoreDifferenceMax ?? 1 - (a.cosineMin ?? 1)));
  const worst = slices.reduce<Agreement | null>((bad, a) => (bad === null || badness(a) > badness(bad) ? a : bad), null);
  return `The two endpoints: ${words(overall)}${worst === null ? '' : `; least alike in the slice ${worst.slice ?? ''}, where ${words(worst)}`}.`;
}
