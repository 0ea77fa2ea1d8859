/** Several tenants share a server, one of them heavy: do the others still get what they get alone? */
import type { ChatPrompt } from '../../prompt/prompt';
import { count, ms, outOf } from '../../report/format';
import { attainment, verdict, type Attainment } from '../../report/goodput';
import type { Slo } from '../../report/report';
import { lastStamp, tpot, ttft, type Milliseconds, type Sample } from '../../report/sample';
import { PlanError, type Lane, type Shot, type Target } from '../plan';
import { oneShot, type Detected } from './detector';
import { percentileOf } from './loadStep';
import { stepPlan, type Scenario, type ScenarioContext, type Steps } from './scenario';

/** Someone who shares the server, as requests tell: by a key, by headers, by fields of the body. */
export interface TenantLoad {
  readonly name: string;
  /** Null = the endpoint's own. */
  readonly key: string | null;
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  /** Heavy tenants keep `concurrency` requests in flight for as long as the others are measured; light ones send `requests`, one each `every` ms. */
  readonly heavy: boolean;
  readonly concurrency: number;
  readonly requests: number;
  readonly every: Milliseconds | null;
  readonly maxTokens: number;
}

/** What to send. */
export interface FairnessOptions {
  readonly prompt: ChatPrompt;
  readonly tenants: readonly TenantLoad[];
}

/** `isolated`: light tenants keep the SLO beside heavy ones; `not-isolated`: they do not. */
export type FairnessVerdict = 'isolated' | 'not-isolated' | 'unclear';

/** One tenant, alone and together with the others. */
export interface TenantResult {
  readonly name: string;
  readonly heavy: boolean;
  readonly requests: number;
  /** Median and p95 of TTFT, median of TPOT; null = no answer. `Alone` only for light tenants. */
  readonly ttftAloneMs: Milliseconds | null;
  readonly ttftMs: Milliseconds | null;
  readonly ttftP95Ms: Milliseconds | null;
  readonly tpotAloneMs: Milliseconds | null;
  readonly tpotMs: Milliseconds | null;
  /** Median time from the first to the last token. */
  readonly decodeMs: Milliseconds | null;
  readonly attainmentAlone: Attainment | null;
  readonly attainment: Attainment | null;
  /** Output tokens that arrived while all sent, and their share of everyone's. */
  readonly tokens: number;
  readonly tokenShare: number | null;
  /** Refused with 429, the median of Retry-After. */
  readonly refused: number;
  readonly retryAfterMs: Milliseconds | null;
}

/** What the verdict rests on. */
export interface FairnessEvidence {
  readonly worstLightTenant: string | null;
  readonly lightTtftAloneMs: Milliseconds | null;
  readonly lightTtftP95Ms: Milliseconds | null;
  readonly lightTokenShare: number | null;
  readonly heavyTtftMs: Milliseconds | null;
  readonly heavyRefused: number;
  /** Heavy tenants had to wait or were refused: without that the test shows nothing. */
  readonly heavyFilledTheServer: boolean;
  readonly tenants: readonly TenantResult[];
  readonly reason: string | null;
}

/** `first-token/fairness@1`. */
export type FairnessResult = Detected<FairnessVerdict, FairnessEvidence> & { readonly schema: 'first-token/fairness@1' };

/** Light tenants alone, then beside the heavy ones. */
export function fairness(options: FairnessOptions): Scenario<FairnessResult> {
  return { name: 'fairness', steps: (context) => detecting(options, context) };
}

function* detecting({ prompt, tenants }: FairnessOptions, context: ScenarioContext): Steps<FairnessResult> {
  const light = tenants.filter((tenant) => !tenant.heavy);
  if (light.length === 0 || light.length === tenants.length) throw new PlanError('Fairness needs at least one light and one heavy tenant: mark the heavy ones with "heavy": true (--tenants).');
  const targets = tenants.map((tenant) => targetOf(context.target, tenant));
  const plan = (shots: readonly Shot[], lanes: Readonly<Record<string, Lane>>, concurrency: number) =>
    // Refusals are part of the answer, so nothing breaks off; who is told to wait waits.
    stepPlan(context, 'fairness', { targets, shots, lanes, concurrency, breaker: null, retry: { attempts: 10, wait: 200, share: 10, refusalsOnly: true } });
  const finish = (results: readonly TenantResult[], slo: Slo, stopped: string | null, ready: boolean) => ({ result: resultOf(results, slo, stopped, ready), shown: null });

  const warm = Array.from({ length: context.settings.warmup }, (_, i) => oneShot(`warm-${i}`, prompt, 8, { role: 'warmup' }));
  const alone = yield { name: 'alone', plan: plan([...warm, ...tenants.flatMap((tenant, t) => (tenant.heavy ? [] : shotsOf(prompt, tenant, t, 'alone', 0, Math.min(tenant.requests, 12))))], lanesOf(tenants, 'alone'), 1), soFar: null, shown: null };
  const results = (samples: readonly Sample[]): TenantResult[] => tenants.map((tenant) => read(tenant, alone.samples, samples, context.slo));
  if (alone.stopped) return finish(results([]), context.slo, alone.stopped.detail, false);
  const settle = 2 * Math.max(100, ...light.map((tenant) => percentileOf(alone.samples.filter((s) => s.labels['tenant'] === tenant.name), (s) => lastStamp(s) - s.start, 0.5) ?? 0));
  const together = yield {
    name: 'together',
    plan: plan(tenants.flatMap((tenant, t) => shotsOf(prompt, tenant, t, 'together', settle, tenant.requests)), lanesOf(tenants, 'together'), tenants.reduce((sum, tenant) => sum + tenant.concurrency, 0)),
    soFar: finish(results([]), context.slo, null, false).result,
    shown: null,
  };
  return finish(results(together.samples), context.slo, together.stopped?.detail ?? null, true);
}

function targetOf(target: Target, { key, headers, body }: TenantLoad): Target {
  return { ...target, key: key ?? target.key, endpoint: { ...target.endpoint, headers: { ...target.endpoint.headers, ...headers }, body: { ...target.endpoint.body, ...body } } };
}

/** Heavy requests wait for their lane; light ones come at their own pace, after the heavy ones have filled the server. */
function shotsOf(prompt: ChatPrompt, tenant: TenantLoad, target: number, step: string, settle: Milliseconds, requests: number): Shot[] {
  const labels = { tenant: tenant.name };
  const id = (i: number): string => `${step}-${tenant.name}-${i}`;
  if (tenant.heavy || tenant.every === null) return Array.from({ length: requests }, (_, i) => oneShot(id(i), prompt, tenant.maxTokens, { target, labels, lane: tenant.name }));
  return Array.from({ length: requests }, (_, i) => oneShot(id(i), prompt, tenant.maxTokens, { target, labels, dueAt: settle + i * tenant.every! }));
}

function lanesOf(tenants: readonly TenantLoad[], step: 'alone' | 'together'): Record<string, Lane> {
  return Object.fromEntries(tenants.map((tenant) => [tenant.name, { concurrency: step === 'alone' && tenant.heavy ? 1 : tenant.concurrency, background: tenant.heavy }]));
}

function read(tenant: TenantLoad, aloneSamples: readonly Sample[], togetherSamples: readonly Sample[], slo: Slo): TenantResult {
  const own = (samples: readonly Sample[]): Sample[] => samples.filter((s) => s.role === 'measured' && s.labels['tenant'] === tenant.name);
  const [alone, together] = [own(aloneSamples), own(togetherSamples)];
  const [from, to] = sharedSpan(togetherSamples);
  const tokens = together.reduce((sum, s) => sum + tokensIn(s, from, to), 0);
  const everyone = togetherSamples.filter((s) => s.role === 'measured').reduce((sum, s) => sum + tokensIn(s, from, to), 0);
  const refusals = together.filter((s) => s.outcome.kind === 'status' && s.outcome.status === 429);
  const waits = refusals.flatMap((s) => s.outcome.retryAfter ?? []).sort((a, b) => a - b);
  return {
    name: tenant.name,
    heavy: tenant.heavy,
    requests: together.length,
    ttftAloneMs: percentileOf(alone, ttft, 0.5),
    ttftMs: percentileOf(together, ttft, 0.5),
    ttftP95Ms: percentileOf(together, ttft, 0.95),
    tpotAloneMs: percentileOf(alone, tpot, 0.5),
    tpotMs: percentileOf(together, tpot, 0.5),
    decodeMs: percentileOf(together, (s) => (s.firstToken === null || s.last === null ? null : s.last - s.firstToken), 0.5),
    attainmentAlone: attainment(alone, slo),
    attainment: attainment(together, slo),
    tokens,
    tokenShare: everyone === 0 ? null : tokens / everyone,
    refused: refusals.length,
    retryAfterMs: waits[Math.floor(waits.length / 2)] ?? null,
  };
}

/** From when every tenant had begun to when the first had ended: only then they compete. */
function sharedSpan(samples: readonly Sample[]): readonly [Milliseconds, Milliseconds] {
  const measured = samples.filter((s) => s.role === 'measured');
  const tenants = [...new Set(measured.map((s) => s.labels['tenant']))].map((name) => measured.filter((s) => s.labels['tenant'] === name));
  if (tenants.length === 0) return [0, 0];
  return [Math.max(...tenants.map((all) => Math.min(...all.map((s) => s.start)))), Math.min(...tenants.map((all) => Math.max(...all.map(lastStamp))))];
}

function tokensIn(s: Sample, from: Milliseconds, to: Milliseconds): number {
  return s.deltas.reduce((sum, [t, , tokens]) => sum + (t >= from && t <= to ? (tokens ?? 1) : 0), 0);
}

function resultOf(tenants: readonly TenantResult[], slo: Slo, stopped: string | null, ready: boolean): FairnessResult {
  const [light, heavy] = [tenants.filter((t) => !t.heavy), tenants.filter((t) => t.heavy)];
  const shortfall = (t: TenantResult): number => (t.attainment === null ? 0 : 1 - t.attainment.share);
  const worst = light.reduce<TenantResult | null>((bad, t) => (bad === null || shortfall(t) > shortfall(bad) || (shortfall(t) === shortfall(bad) && (t.ttftP95Ms ?? 0) > (bad.ttftP95Ms ?? 0)) ? t : bad), null);
  const lightAlone = worst?.ttftAloneMs ?? null;
  const heavyTtft = heavy.map((t) => t.ttftMs).find((t) => t !== null) ?? null;
  const heavyTook = heavy.map((t) => t.decodeMs).find((t) => t !== null) ?? 0;
  const heavyRefused = heavy.reduce((sum, t) => sum + t.refused, 0);
  const filled = heavyRefused > 0 || (heavyTtft !== null && lightAlone !== null && heavyTtft > Math.max(3 * lightAlone + 20, 0.2 * heavyTook));
  const base: FairnessEvidence = { worstLightTenant: worst?.name ?? null, lightTtftAloneMs: lightAlone, lightTtftP95Ms: worst?.ttftP95Ms ?? null, lightTokenShare: worst?.tokenShare ?? null, heavyTtftMs: heavyTtft, heavyRefused, heavyFilledTheServer: filled, tenants, reason: null };
  const [found, reason] = ready ? judge(base, light, slo) : (['unclear', stopped] as const);
  const evidence = { ...base, reason };
  return { schema: 'first-token/fairness@1', verdict: found, evidence, stopped, sentences: sentences(found, evidence, worst, heavy) };
}

function judge(base: FairnessEvidence, light: readonly TenantResult[], slo: Slo): readonly [FairnessVerdict, string | null] {
  if (light.some((t) => t.attainment === null || t.attainmentAlone === null)) return ['unclear', 'not every light tenant was answered'];
  const bad = light.filter((t) => t.attainmentAlone!.share < slo.attainment);
  if (bad.length > 0) return ['unclear', `${bad.map((t) => t.name).join(', ')} misses the SLO even alone: raise its limits (firstToken.slo)`];
  if (light.some((t) => verdict(t.attainment, slo) === 'missed')) return ['not-isolated', null];
  const near = light.filter((t) => t.attainment!.share < slo.attainment);
  if (near.length > 0) return ['unclear', `${near.map((t) => `${t.name} had ${outOf(t.attainment!.good, t.attainment!.due)} good answers`).join(', ')}, too few to say: raise its requests (--tenants)`];
  return base.heavyFilledTheServer ? ['isolated', null] : ['unclear', 'the heavy tenants did not fill the server: raise their concurrency (--heavy, --tenants)'];
}

function sentences(found: FairnessVerdict, e: FairnessEvidence, worst: TenantResult | null, heavy: readonly TenantResult[]): string[] {
  const t = (value: Milliseconds | null): string => (value === null ? 'none' : ms(value));
  if (found === 'unclear' || worst === null) return [`Whether tenants are isolated is unclear${e.reason === null ? '' : `: ${e.reason}`}.`, 'Run it again when that is changed.'];
  const share = heavy.map((tenant) => `${tenant.name} got ${tenant.tokenShare === null ? 'none' : Math.round(tenant.tokenShare * 100)} of 100 tokens${tenant.refused > 0 ? ` and was refused ${count(tenant.refused)} times (429${tenant.retryAfterMs === null ? ', without Retry-After' : `, Retry-After ${ms(tenant.retryAfterMs)}`})` : ''}`).join('; ');
  const seen = `${worst.name}’s first token came after ${t(worst.ttftMs)} (p50) and ${t(worst.ttftP95Ms)} (p95), alone after ${t(worst.ttftAloneMs)}; ${outOf(worst.attainment?.good ?? 0, worst.attainment?.due ?? 0)} answers were good`;
  return found === 'isolated'
    ? [`Tenants are isolated: beside a heavy tenant, ${seen}.`, `${share}.`]
    : [`Tenants are not isolated: beside a heavy tenant, ${seen}.`, `${share}. Fair queuing, quotas or priorities per tenant would protect the others.`];
}
