/**
 * The proof of what the prefix cache serves: a cold request, the same once more, and the prompt as a later request would send it, in pairs
 * one after the other. Predicted and served tokens stand side by side and are never mixed; latencies only support them.
 */
import { digits, ms, outcomeSentence, type Surface } from '../../report/format';
import { prefillPace } from '../../report/prefill';
import type { Milliseconds, Outcome, Sample } from '../../report/sample';
import { completed, ttft } from '../../report/sample';
import { bootstrapDifference, median, orderStatisticInterval, samplesNeeded, sorted } from '../../report/statistics';
import type { ChatPrompt } from '../../prompt/prompt';
import type { CacheDiagnosis } from '../dialect/dialect';
import { askFor } from '../dialect/index';
import { createNonce, PlanError, saltedBeside, type ProbeSettings, type Shot } from '../plan';
import type { PlannedProof, PrefixPrediction } from './prefixPrediction';
import { stepPlan, type Scenario, type ScenarioContext, type ScenarioResult, type StepRun, type Steps } from './scenario';

/** What to prove, and how. */
export interface ProofOptions {
  readonly planned: PlannedProof;
  /** Send the same prefix so often and tell which attempts hit: a router without affinity misses. 0 = not. */
  readonly affinity: number;
  /** Seconds to wait before a repeat, each with a prefix of its own; empty = expiry is not probed. */
  readonly expiry: readonly number[];
  /** Where its sentences are read first; default: a terminal. */
  readonly where?: Surface;
}

/** What served tokens are told by. */
export type ServedFrom = 'usage' | 'metrics';

/** One kind of request over all pairs. */
export interface PrefixRow {
  readonly kind: 'cold' | 'warm' | 'changed';
  /** Answers that came, and requests that failed. */
  readonly n: number;
  readonly failed: number;
  /** Median prompt tokens as the server counts them. */
  readonly promptTokens: number | null;
  readonly predicted: PrefixPrediction | null;
  readonly served: { readonly p50: number; readonly min: number; readonly max: number; readonly n: number; readonly from: ServedFrom } | null;
  readonly ttft: { readonly p50: Milliseconds; readonly low: Milliseconds | null; readonly high: Milliseconds | null } | null;
  /** Served against predicted. */
  readonly state: 'yes' | 'less' | 'more' | 'unknown';
}

/** What a provider said of one kind of request when it was asked to compare it with the request before: its most frequent answer. */
export interface ProviderSays {
  readonly state: CacheDiagnosis['state'];
  readonly reason: string | null;
  /** Median of the prompt tokens behind the change, as the provider estimates them; null = not told. */
  readonly missedTokens: number | null;
  /** Answers with this reason, of all that came. */
  readonly n: number;
  readonly of: number;
}

/** `first-token/prefix@1`. */
export interface PrefixResult extends ScenarioResult {
  readonly schema: 'first-token/prefix@1';
  readonly verdict: string;
  readonly rule: { readonly id: string; readonly name: string; readonly asOf: string };
  readonly block: number;
  readonly change: string;
  readonly countedBy: PlannedProof['countedBy'];
  /** Where the nonce went that makes a request cold. */
  readonly salt: 'beside' | 'first-bytes';
  readonly pairs: number;
  readonly rows: readonly PrefixRow[];
  /** TTFT of cold minus warm requests at the median, with its 95 % interval; without bounds where there are too few pairs for one. */
  readonly gain: { readonly ms: Milliseconds; readonly low: Milliseconds | null; readonly high: Milliseconds | null } | null;
  /** Cached of all prompt tokens of warm and changed requests. */
  readonly hitRate: { readonly cached: number; readonly prompt: number } | null;
  /** Prompt tokens per second of the cold requests, cached ones left out; null where they have too few to compute to tell. */
  readonly prefillRate: number | null;
  /** Cold requests that were served from the cache all the same, and the most tokens of one. */
  readonly coldHits: { readonly hits: number; readonly of: number; readonly most: number } | null;
  /** Breakpoints in the request as it was sent. */
  readonly markers: number;
  /** What of the file could not be sent, in sentences. */
  readonly notes: readonly string[];
  /** The provider's own diagnostics; null where it has none or gave none. Evidence of their own: never part of predicted or served. */
  readonly diagnosis: { readonly warm: ProviderSays | null; readonly changed: ProviderSays | null } | null;
  /** Why nothing was proven: how the first request failed, and what to do; null when one was answered. */
  readonly failure: string | null;
  /** How the first request that failed did, in words; null when none did. */
  readonly firstFailure: string | null;
  /** Repeats whose first request was not answered; they stand in no row. */
  readonly orphans: number;
  /** What was asked for and not looked for, since nothing of this prompt is kept. */
  readonly skipped: readonly ('affinity' | 'expiry')[];
  readonly affinity: { readonly attempts: readonly (number | null)[]; readonly hits: number; readonly of: number } | null;
  readonly expiry: readonly { readonly seconds: number; readonly cached: number | null; readonly ttft: Milliseconds | null }[] | null;
}

/** One request and what the server served of it. */
interface Told {
  readonly sample: Sample;
  readonly cached: number | null;
  readonly from: ServedFrom;
  readonly diagnosis: CacheDiagnosis | null;
}

type Kind = PrefixRow['kind'];

// The rule's words and the lens group digits with commas: one style in a paragraph.
const commas = new Intl.NumberFormat('en-US', { maximumFractionDigits: 0 });
const count = (n: number): string => commas.format(n);
const counted = (n: number, noun: string): string => `${count(n)} ${noun}${Math.round(n) === 1 ? '' : 's'}`;
const outOf = (part: number, whole: number): string => `${count(part)} of ${count(whole)}`;
const rate = (x: number): string => count(Number(x.toPrecision(3)));
/** An answer's length does not matter here; a few tokens show that it began. */
const answerTokens = 8;
/** A hit this small on a cold request is the chat template before the nonce. */
const templateTokens = 32;

/** Cold, warm and changed requests of one prompt file, pair by pair. */
export function prefixProof(options: ProofOptions): Scenario<PrefixResult> {
  return { name: 'prefix', requests: proofRequests({ ...options, pairs: options.planned.pairs.length }), steps: (context) => proving(options, context) };
}

function* proving(options: ProofOptions, context: ScenarioContext): Steps<PrefixResult> {
  checkProof({ ...options, pairs: options.planned.pairs.length }, context.settings);
  const { planned } = options;
  const { first, second } = planned;
  const tokens = Math.min(context.settings.maxTokens ?? answerTokens, answerTokens);
  const shot = (id: string, prompt: ChatPrompt, nonce: string, labels: Shot['labels'], more: Partial<Shot> = {}): Shot => ({ id, role: 'measured', target: 0, dueAt: null, prompt, maxTokens: tokens, nonce, labels, ...more });
  const told: Record<Kind, Told[]> = { cold: [], warm: [], changed: [] };
  const failed: Record<Kind, number> = { cold: 0, warm: 0, changed: 0 };
  const failures: Outcome[] = [];
  /** Pairs of which a request was answered, so that there is something to hit. */
  const written = new Set<unknown>();
  /** Repeats of a request that was not answered: they are the first of their prefix, whatever they were meant to be. */
  const orphans: Sample[] = [];
  const skipped: PrefixResult['skipped'][number][] = [];
  const found: Pick<PrefixResult, 'affinity' | 'expiry' | 'skipped'> & { affinity: PrefixResult['affinity']; expiry: PrefixResult['expiry'] } = { affinity: null, expiry: null, skipped };
  const result = () => summarise(options, context, told, failed, failures, { ...found, orphans: orphans.length });
  const answered = () => kinds.some((kind) => told[kind].length > 0);
  const take = (run: StepRun): void => {
    failures.push(...run.samples.flatMap((sample) => (sample.role === 'negotiation' || sample.outcome.kind === 'cancelled' || completed(sample) ? [] : [sample.outcome])));
    const measured = run.samples.filter(({ role }) => role === 'measured');
    const alone = measured.length === 1 ? run.counted : null;
    for (const sample of measured) {
      const kind = String(sample.labels['kind']) as Kind;
      const pair = sample.labels['pair'];
      if (!completed(sample)) failed[kind] += 1;
      else if (kind !== 'cold' && !written.has(pair)) orphans.push(sample);
      else told[kind].push({ ...tell(sample, alone ?? null), diagnosis: run.told?.get(sample.id)?.diagnosis ?? null });
      if (completed(sample)) written.add(pair);
    }
  };
  const finish = () => ({ result: result(), shown: null });

  const warmUp = yield { name: 'warm-up', plan: stepPlan(context, 'prefix', { shots: [shot('warmup', first, createNonce(), {}, { role: 'warmup' })], concurrency: 1 }), soFar: null, shown: null };
  take(warmUp);
  // What does not pass by itself would fail every pair the same way.
  if (warmUp.stopped || failures.some(lasting)) return finish();
  for (const [i, pair] of planned.pairs.entries()) {
    // Where the answers do not tell what was cached, the server's counters do, as long as each request is alone between two readings.
    const silent = i === 0 || told.cold.some(({ sample }) => sample.cachedTokens === null);
    const asked = diagnoses(context.target);
    const shots = kinds.map((kind) => shot(`${i + 1}-${kind}`, kind === 'changed' ? second : first, pair.nonce, { kind, pair: i + 1 }));
    const steps = silent || asked ? shots.map((one) => [one]) : [shots];
    let before: string | null = null;
    for (const [k, list] of steps.entries()) {
      // A provider compares with an answer it gave, so its id must have come back first.
      const sent: Shot[] = asked ? list.map((one) => ({ ...one, compareWith: before })) : list;
      const run: StepRun = yield { name: `pair-${i + 1}${steps.length > 1 ? `-${k + 1}` : ''}`, plan: stepPlan(context, 'prefix', { shots: sent, concurrency: 1 }), countsCached: silent, soFar: i === 0 ? null : result(), shown: null };
      take(run);
      if (run.stopped || (!answered() && failures.length > kinds.length)) return finish();
      before = run.samples.flatMap((sample) => (completed(sample) ? (run.told?.get(sample.id)?.id ?? []) : [])).at(-1) ?? before;
    }
  }
  const kept = keptOf(result().rows);
  // A miss may be the router's doing, which is what affinity is asked for: skipped only where no hit was to be expected either.
  const wanted = { affinity: options.affinity > 0, expiry: options.expiry.length > 0 };
  if (wanted.affinity && kept === 'nothing, as predicted') skipped.push('affinity');
  if (wanted.expiry && kept !== 'some') skipped.push('expiry');
  if (wanted.affinity && !skipped.includes('affinity')) {
    const nonce = createNonce();
    const run = yield { name: 'affinity', plan: stepPlan(context, 'prefix', { shots: Array.from({ length: options.affinity }, (_, i) => shot(`affinity-${i + 1}`, first, nonce, { kind: 'affinity', attempt: i + 1 })), concurrency: 1 }), soFar: result(), shown: null };
    found.affinity = affinityOf(run.samples);
    if (run.stopped) return finish();
  }
  if (wanted.expiry && !skipped.includes('expiry')) {
    const nonces = options.expiry.map(() => createNonce());
    const write = yield { name: 'expiry-write', plan: stepPlan(context, 'prefix', { shots: options.expiry.map((seconds, i) => shot(`expiry-write-${seconds}`, first, nonces[i]!, { kind: 'expiry-write', seconds })), concurrency: 1 }), soFar: result(), shown: null };
    if (write.stopped) return finish();
    const read = yield { name: 'expiry-read', waits: true, plan: stepPlan(context, 'prefix', { shots: options.expiry.map((seconds, i) => shot(`expiry-read-${seconds}`, first, nonces[i]!, { kind: 'expiry-read', seconds }, { dueAt: seconds * 1000 })), concurrency: 1 }), soFar: result(), shown: null };
    found.expiry = read.samples.filter(completed).map((sample) => ({ seconds: Number(sample.labels['seconds']), cached: sample.cachedTokens, ttft: ttft(sample) }));
  }
  return finish();
}

const kinds = ['cold', 'warm', 'changed'] as const;

/** Whether every further request would fail the same way. */
function lasting({ kind, status = 0 }: Outcome): boolean {
  return kind === 'connect' || kind === 'dns' || kind === 'tls' || (kind === 'status' && status >= 400 && status < 500 && status !== 408 && status !== 429);
}

/** Whether the server keeps anything of this prompt, as far as repeats told; a server that tells nothing may keep some. */
function keptOf(rows: readonly PrefixRow[]): 'some' | 'nothing' | 'nothing, as predicted' {
  const repeats = rows.filter(({ kind }) => kind !== 'cold');
  const served = repeats.flatMap((row) => row.served?.max ?? []);
  if (served.length === 0 || Math.max(...served) > templateTokens) return 'some';
  return repeats.every(({ predicted }) => predicted !== null && predicted.tokens <= templateTokens) ? 'nothing, as predicted' : 'nothing';
}

/** Requests of a proof: a warm-up, three a pair, the repeats for affinity, and two for each wait. */
function proofRequests({ pairs, affinity, expiry }: Pick<ProofOptions, 'affinity' | 'expiry'> & { readonly pairs: number }): number {
  return 1 + 3 * pairs + affinity + 2 * expiry.length;
}

/** Throws a PlanError for a proof that makes no sense or needs more requests than the budget allows. */
export function checkProof(options: Parameters<typeof proofRequests>[0], { budget }: Pick<ProbeSettings, 'budget'>): void {
  const { pairs, affinity, expiry } = options;
  if (pairs < 1 || pairs > 1000) throw new PlanError(`--pairs must be from 1 to 1000; it is ${pairs}.`);
  if (!Number.isInteger(affinity) || affinity < 0 || affinity > 1000) throw new PlanError(`--affinity must be a whole number up to 1000; it is ${affinity}.`);
  const wrong = expiry.find((seconds) => !(seconds > 0 && seconds <= 86_400));
  if (wrong !== undefined) throw new PlanError(`--expiry takes seconds up to 86400, as in 60,300,600; ${wrong} is not.`);
  const requests = proofRequests(options);
  if (budget.requests !== null && requests > budget.requests) {
    throw new PlanError(`This proof sends ${counted(requests, 'request')} (a warm-up and three for each of ${counted(pairs, 'pair')}${affinity + expiry.length > 0 ? ', and those for affinity and expiry' : ''}), over the limit of ${count(budget.requests)}: lower --pairs, or raise the limit (--max-requests, firstToken.probe.maxRequests).`, 'firstToken.probe');
  }
}

/** Whether the provider can be asked what broke its cache, as far as it has not refused. */
function diagnoses({ dialect, endpoint, server, memory }: ScenarioContext['target']): boolean {
  const ask = askFor(dialect, { url: endpoint.url, server, refused: new Set(memory.recall(endpoint.url).refused), fixedLength: false, diagnosing: true });
  return dialect.optional.some(({ field, when }) => when === 'diagnosing' && ask.has(field));
}

/** Cached tokens as the answer tells them, else by the server's counters when they counted just this request. */
function tell(sample: Sample, counters: StepRun['counted'] | null): Omit<Told, 'diagnosis'> {
  if (sample.cachedTokens !== null) return { sample, cached: sample.cachedTokens, from: 'usage' };
  const own = counters && (sample.promptTokens === null ? counters.asked > 0 : Math.abs(counters.asked - sample.promptTokens) <= 1);
  return { sample, cached: own ? counters.cached : null, from: 'metrics' };
}

function affinityOf(samples: readonly Sample[]): PrefixResult['affinity'] {
  const attempts = samples.map((sample) => (completed(sample) ? sample.cachedTokens : null));
  const repeats = attempts.slice(1).filter((cached) => cached !== null);
  return { attempts, hits: repeats.filter((cached) => cached > templateTokens).length, of: repeats.length };
}

function summarise(options: ProofOptions, context: ScenarioContext, told: Readonly<Record<Kind, readonly Told[]>>, failed: Readonly<Record<Kind, number>>, failures: readonly Outcome[], found: Pick<PrefixResult, 'affinity' | 'expiry' | 'skipped' | 'orphans'>): PrefixResult {
  const { planned } = options;
  const { rule, change } = planned;
  const firstFailure = failures[0] === undefined ? null : outcomeSentence(failures[0], options.where);
  const [pair] = planned.pairs;
  const rows = kinds.map((kind) => rowOf(kind, told[kind], failed[kind], pair === undefined || kind === 'cold' ? null : pair[kind], { block: rule.block, counted: planned.countedBy === 'provider' }));
  const waits = (kind: Kind) => told[kind].flatMap(({ sample }) => ttft(sample) ?? []);
  // Resampling fewer than bound a median cannot see its spread either: one pair would give an interval of no width.
  const bounded = Math.min(waits('warm').length, waits('cold').length) >= samplesNeeded(0.5);
  const gained = bootstrapDifference(waits('warm'), waits('cold'), 0.5, 1);
  const repeats = [...told.warm, ...told.changed].filter(({ cached, sample }) => cached !== null && sample.promptTokens !== null);
  const cold = told.cold.filter(({ cached }) => cached !== null);
  const numbers: Omit<PrefixResult, 'sentences' | 'verdict'> = {
    schema: 'first-token/prefix@1',
    rule: { id: rule.id, name: rule.name, asOf: rule.asOf },
    block: rule.block,
    change,
    countedBy: planned.countedBy,
    salt: saltedBeside(context.target) ? 'beside' : 'first-bytes',
    pairs: told.cold.length,
    rows,
    gain: gained === null ? null : { ms: gained.difference, low: bounded ? gained.ci95[0] : null, high: bounded ? gained.ci95[1] : null },
    hitRate: repeats.length === 0 ? null : { cached: sum(repeats.map(({ cached }) => cached ?? 0)), prompt: sum(repeats.map(({ sample }) => sample.promptTokens ?? 0)) },
    prefillRate: prefillPace(told.cold.map(({ sample }) => sample))?.p50 ?? null,
    coldHits: cold.length === 0 ? null : { hits: cold.filter(({ cached }) => (cached ?? 0) > templateTokens).length, of: cold.length, most: Math.max(...cold.map(({ cached }) => cached ?? 0)) },
    markers: planned.markers,
    notes: planned.notes,
    diagnosis: diagnosisOf(told),
    failure: firstFailure === null || kinds.some((kind) => told[kind].length > 0) ? null : firstFailure,
    firstFailure,
    ...found,
    skipped: [...found.skipped],
  };
  return { ...numbers, verdict: verdictOf(numbers), sentences: sentencesOf(numbers, options) };
}

/** Null when nothing was told of either. */
function diagnosisOf(told: Readonly<Record<Kind, readonly Told[]>>): PrefixResult['diagnosis'] {
  const [warm, changed] = [saysOf(told.warm), saysOf(told.changed)];
  return warm === null && changed === null ? null : { warm, changed };
}

function saysOf(told: readonly Told[]): ProviderSays | null {
  const all = told.flatMap(({ diagnosis }) => diagnosis ?? []);
  const named = (one: CacheDiagnosis): string => `${one.state} ${one.reason ?? ''}`;
  const often = [...all].sort((a, b) => all.filter((one) => named(one) === named(b)).length - all.filter((one) => named(one) === named(a)).length)[0];
  if (often === undefined) return null;
  const same = all.filter((one) => named(one) === named(often));
  return { state: often.state, reason: often.reason, missedTokens: median(same.flatMap(({ missedTokens }) => missedTokens ?? [])), n: same.length, of: all.length };
}

const sum = (values: readonly number[]) => values.reduce((total, value) => total + value, 0);

function rowOf(kind: Kind, told: readonly Told[], failed: number, predicted: PrefixPrediction | null, by: CountedHow): PrefixRow {
  const { block } = by;
  const cached = told.flatMap(({ cached: tokens }) => tokens ?? []);
  const waits = sorted(told.flatMap(({ sample }) => ttft(sample) ?? []));
  const p50 = median(waits);
  const [low, high] = orderStatisticInterval(waits, 0.5);
  const promptTokens = median(told.flatMap(({ sample }) => sample.promptTokens ?? []));
  const row: Omit<PrefixRow, 'state'> = {
    kind,
    n: told.length,
    failed,
    promptTokens,
    predicted: predicted === null || promptTokens === null ? predicted : scaled(predicted, promptTokens, block),
    served: cached.length === 0 ? null : { p50: median(cached) ?? 0, min: Math.min(...cached), max: Math.max(...cached), n: cached.length, from: told.find(({ cached: tokens }) => tokens !== null)?.from ?? 'usage' },
    ttft: p50 === null ? null : { p50, low, high },
  };
  return { ...row, state: asPredicted(row, by) };
}

/** A count that is not the server's own, brought to the prompt tokens that it reports: another vocabulary cuts all of the text about as much finer. */
function scaled(prediction: PrefixPrediction, promptTokens: number, block: number): PrefixPrediction {
  const { total, common, tokens } = prediction;
  if (total === 0 || Math.abs(total - promptTokens) <= 1) return prediction;
  const factor = promptTokens / total;
  const most = common >= total ? promptTokens - 1 : promptTokens;
  const whole = (n: number) => Math.floor(Math.min(most, Math.round(n * factor)) / block) * block;
  return { total: promptTokens, common: Math.min(promptTokens, Math.round(common * factor)), tokens: tokens === 0 ? 0 : whole(tokens), why: prediction.why, exact: false };
}

/** The size of a cache block, and whether the provider counted what the rule is about, its template aside. */
interface CountedHow {
  readonly block: number;
  readonly counted: boolean;
}

/** Whether served is what was predicted: within one block, and within a tenth of the prompt where nobody but the text was asked. */
function asPredicted(row: Omit<PrefixRow, 'state'>, { block, counted: byProvider }: CountedHow): PrefixRow['state'] {
  if (row.predicted === null || row.served === null) return 'unknown';
  const slack = Math.max(block, row.predicted.exact ? 1 : Math.max(templateTokens, byProvider ? 0 : 0.1 * row.predicted.total));
  const apart = row.served.p50 - row.predicted.tokens;
  return Math.abs(apart) <= slack ? 'yes' : apart < 0 ? 'less' : 'more';
}

function verdictOf({ rows, rule, failure }: Omit<PrefixResult, 'sentences' | 'verdict'>): string {
  if (failure !== null) return `Nothing was proven. ${failure}`;
  const warm = rows.find(({ kind }) => kind === 'warm');
  const changed = rows.find(({ kind }) => kind === 'changed');
  if (warm === undefined || changed === undefined || warm.n + changed.n === 0) return 'Nothing was proven: no repeat was answered.';
  if (warm.served === null && changed.served === null) return `Nothing was proven: the server does not say what it served from its cache.`;
  const states = [warm, changed].map(({ state }) => state);
  const numbers = `the server took ${servedText(changed)} of a later request from its cache, and ${servedText(warm)} of the same one`;
  if (states.includes('less')) return `Less than the rule of ${rule.name} lets expect: ${numbers}.`;
  if (states.includes('more')) return `More than the rule of ${rule.name} lets expect: ${numbers}.`;
  return states.every((state) => state === 'yes') ? `As predicted: ${numbers}.` : `${numbers.charAt(0).toUpperCase()}${numbers.slice(1)}.`;
}

function servedText({ served, predicted, promptTokens }: PrefixRow): string {
  const of = promptTokens === null ? '' : ` of ${count(promptTokens)}`;
  return `${served === null ? 'an unknown number' : count(served.p50)}${of} tokens${predicted === null ? '' : ` (predicted ${predicted.exact ? '' : 'about '}${count(predicted.tokens)})`}`;
}

function sentencesOf(result: Omit<PrefixResult, 'sentences' | 'verdict'>, { planned, where }: ProofOptions): string[] {
  const { rule } = planned;
  const editor = where === 'editor';
  if (result.failure !== null) return [...result.notes, 'No request was answered, so it was stopped at once and says nothing about the cache.'];
  const { rows, gain, hitRate, block, coldHits, affinity, expiry } = result;
  const row = (kind: Kind) => rows.find((one) => one.kind === kind);
  const changed = row('changed')?.predicted;
  const told = rows.find(({ served }) => served !== null)?.served?.from;
  const out: string[] = [...result.notes];
  if (changed) {
    const by = planned.captured ? 'level 3: two requests of the file compared' : 'level 2: two renders compared';
    const how = changed.exact ? 'counted by the server’s own tokenizer, chat template included' : planned.countedBy === 'provider' ? 'counted by the provider, which leaves a few tokens of its own template unclear' : 'counted from the text and scaled to the prompt tokens the server reports, so it is right to about a tenth';
    out.push(`Predicted by the rule of ${rule.name} (as of ${rule.asOf}; evidence ${by}), ${how}. A later request (${result.change}): ${changed.why.includes('in common') ? '' : `${counted(changed.common, 'token')} in common, `}${changed.why}.`);
    if (block > 1 && changed.common > 0) out.push(`${rule.name} keeps whole blocks of ${block} tokens: ${count(changed.common)} = ${count(Math.floor(changed.common / block))} × ${block} + ${count(changed.common % block)}. The last token of a prompt is always computed again.`);
  }
  if (told === 'usage') out.push('Served is what the server’s own answers tell (evidence level 4). TTFT is level 5: noisy, so it only supports the rest.');
  if (told === 'metrics') out.push('Served comes from the server’s counters before and after each request (evidence level 4), since the answers do not tell; it holds only while nobody else uses the server.');
  if (told === undefined && row('cold')?.n) out.push(`The answers do not say how many prompt tokens were cached${rule.tell === null ? '' : `: ${rule.tell}`}. Only the latencies below speak, and they are noisy (evidence level 5).`);
  if (result.diagnosis !== null) out.push(diagnosisSentence(result.diagnosis));
  if (gain !== null) out.push(gainSentence(gain, Math.min(row('cold')?.n ?? 0, row('warm')?.n ?? 0)));
  if (hitRate !== null && hitRate.prompt > 0) out.push(`Repeats and later requests took ${outOf(hitRate.cached, hitRate.prompt)} prompt tokens from the cache.`);
  if (result.prefillRate !== null) out.push(`Prefill without cached tokens: ${result.prefillRate < 1000 ? digits(result.prefillRate) : rate(result.prefillRate)} tokens/s (cold requests, fixed costs included).`);
  const states = rows.map(({ state }) => state);
  if (states.includes('less')) out.push(`Less than predicted: another replica answered (${editor ? 'Prove Affinity or Expiry of the Prefix Cache' : 'try --affinity'}), the blocks were evicted, or something changes that stands before the prompt (a date in the chat template, other tools).`);
  if (states.includes('more')) out.push(`More than predicted: the server follows another rule (firstToken.endpoints › cache${editor ? '' : ', --rule'}), or its own system prompt comes first.`);
  if (coldHits !== null && coldHits.hits > 0) out.push(`${outOf(coldHits.hits, coldHits.of)} requests that were made cold hit the cache all the same (up to ${counted(coldHits.most, 'token')}): what makes a request new is ignored, so their TTFT is not a cold one.`);
  const expected = (row('warm')?.predicted?.tokens ?? 0) > templateTokens;
  if (affinity !== null) out.push(affinitySentence(affinity));
  if (expiry !== null && expiry.length > 0) out.push(expirySentence(expiry));
  for (const what of result.skipped) out.push(skippedSentence(what, expected, editor));
  const lost = rows.reduce((total, { failed }) => total + failed, 0);
  if (lost > 0) out.push(`${counted(lost, 'request')} of ${count(3 * planned.pairs.length)} failed and stand in no row${result.firstFailure === null ? '.' : `: ${result.firstFailure}`}`);
  if (result.orphans > 0) out.push(`${counted(result.orphans, 'repeat')} had nothing to hit, since the first request of the pair failed, and ${result.orphans === 1 ? 'stands' : 'stand'} in no row either.`);
  return out;
}

/** What the provider says, in its own words and apart from everything else. */
function diagnosisSentence({ warm, changed }: NonNullable<PrefixResult['diagnosis']>): string {
  const parts = [...(changed === null ? [] : [`the later request: ${providerWords(changed)}`]), ...(warm === null ? [] : [`the same one again: ${providerWords(warm)}`])];
  return `What the provider’s own cache diagnostics say (level 4 too, but apart from served: they compare what was sent, whether or not the cache was hit). ${parts.map((part) => `${part.charAt(0).toUpperCase()}${part.slice(1)}.`).join(' ')}`;
}

/** A provider's answer in words. */
function providerWords({ state, reason, missedTokens, n, of }: ProviderSays): string {
  const often = n === of ? '' : ` (${n} of ${of} answers)`;
  if (state === 'same') return `nothing broke the prefix${often}`;
  if (state === 'not-found') return `the earlier request is no longer known${often}`;
  if (state === 'unknown') return `no comparison${reason === null ? '' : `, ${reason}`}${often}`;
  const what = reason === null ? 'something changed' : reason.endsWith('_changed') ? `the ${reason.slice(0, -'_changed'.length).replaceAll('_', ' ')} changed (${reason})` : `${reason.replaceAll('_', ' ')} (${reason})`;
  return `${what}${missedTokens === null ? '' : `, with about ${counted(missedTokens, 'token')} behind it`}${often}`;
}

function gainSentence(gain: NonNullable<PrefixResult['gain']>, n: number): string {
  const { low, high } = gain;
  const pairs = low === null || high === null ? `${counted(n, 'pair')}, n too small for an interval` : `95 % between ${ms(low)} and ${ms(high)}, ${counted(n, 'pair')}`;
  return `The same prompt once more begins ${ms(Math.abs(gain.ms))} ${gain.ms >= 0 ? 'sooner' : 'later'} than cold (${pairs})${low === null || low > 0 ? '' : '; with so few pairs, or so short a prompt, that may be chance'}.`;
}

/** Why affinity or expiry was not looked for. */
function skippedSentence(what: 'affinity' | 'expiry', expected: boolean, editor: boolean): string {
  if (what === 'affinity') return 'Affinity: not tried. Nothing of this prompt is kept in the cache, so a repeat has nothing to hit.';
  return `Expiry: not waited for. The repeats before found nothing in the cache, so nothing can expire${expected ? `; the rule lets a hit expect, so look first whether another replica answered (${editor ? 'Affinity' : '--affinity'})` : ''}.`;
}

function affinitySentence({ attempts, hits, of }: NonNullable<PrefixResult['affinity']>): string {
  if (of === 0) return 'Affinity: the server does not say what it served from its cache.';
  const list = attempts.map((cached, i) => `${i + 1}: ${cached === null ? '?' : count(cached)}`).join(', ');
  const meaning = hits === of ? 'every repeat found its prefix' : 'some repeats went to a replica that had not seen the prefix: route by prefix or session';
  return `Affinity: ${outOf(hits, of)} repeats of one prefix hit, ${meaning} (cached tokens by attempt: ${list}).`;
}

function expirySentence(expiry: NonNullable<PrefixResult['expiry']>): string {
  const list = expiry.map(({ seconds, cached }) => `${digits(seconds)} s: ${cached === null ? 'not told' : counted(cached, 'token')}`).join(', ');
  if (expiry.every(({ cached }) => cached === null)) return `Expiry: the answers do not say what was cached; TTFT after a wait of ${expiry.map(({ seconds, ttft: wait }) => `${digits(seconds)} s: ${wait === null ? 'none' : ms(wait)}`).join(', ')}.`;
  const gone = expiry.find(({ cached }) => cached !== null && cached <= templateTokens);
  return `Expiry, cached after a wait of ${list}. ${gone === undefined ? 'Nothing had expired.' : `After ${digits(gone.seconds)} s the prefix was gone.`}`;
}
