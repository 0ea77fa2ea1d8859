/** What a server or provider can reuse of a prompt: dated rules as data, the choice of one, and its arithmetic. */
import * as v from 'valibot';
import shipped from './cacheRules.json';
import type { RequestApi, Role, Slot } from './prompt';

const perModel = <const T extends v.ObjectEntries>(entries: T) => v.optional(v.array(v.object({ match: v.string(), ...entries })), []);
const tokenRule = v.object({
  tokens: v.pipe(v.number(), v.integer(), v.minValue(0)),
  about: v.optional(v.boolean(), false),
  models: perModel({ tokens: v.pipe(v.number(), v.integer(), v.minValue(0)), about: v.optional(v.boolean(), false) }),
});
const factor = v.pipe(v.number(), v.minValue(0));
const ruleSchema = v.object({
  id: v.pipe(v.string(), v.regex(/^[a-z0-9.-]+$/)),
  name: v.string(),
  family: v.picklist(['longest-prefix', 'breakpoints', 'units']),
  asOf: v.pipe(v.string(), v.isoDate()),
  source: v.pipe(v.array(v.string()), v.minLength(1)),
  confidence: v.picklist(['first-party', 'third-party', 'unverified']),
  models: v.optional(v.string()),
  minimum: v.optional(tokenRule, { tokens: 0 }),
  granularity: v.optional(tokenRule, { tokens: 1 }),
  recomputesLast: v.optional(v.boolean(), false),
  breakpoints: v.optional(
    v.object({
      implicit: v.picklist(['none', 'message-ends', 'longest-prefix']),
      implicitLookback: v.optional(v.number()),
      implicitMinimum: v.optional(v.number()),
      marker: v.string(),
      max: v.number(),
      tooMany: v.picklist(['refused', 'ignored']),
      lookback: v.number(),
    }),
  ),
  order: v.array(v.picklist(['tools', 'system', 'messages'])),
  ttl: v.optional(v.array(v.object({ name: v.string(), seconds: v.number() })), []),
  price: v.optional(
    v.object({
      write: v.record(v.string(), factor),
      read: factor,
      implicitRead: v.optional(factor),
      models: perModel({ read: factor }),
    }),
  ),
  hidden: v.optional(v.string()),
  usage: v.array(v.string()),
  tell: v.optional(v.string()),
  cold: v.optional(v.object({ field: v.optional(v.string()), header: v.optional(v.string()) })),
  upstream: perModel({ rule: v.string() }),
  notes: v.string(),
});

/**
 * One dated cache rule. Tokens are whole numbers; price factors multiply the price of an uncached input token; `ttl` in seconds, the
 * default first; `models` is a pattern over the normalised model id (see `normaliseModel`), absent when the rule holds for any model.
 */
export type CacheRule = v.InferOutput<typeof ruleSchema>;

/** The rules in force, by id, and what was wrong with the user's overrides in words. */
export interface RuleBook {
  readonly rules: ReadonlyMap<string, CacheRule>;
  readonly problems: readonly string[];
}

const isRecord = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value);

function merged(base: unknown, over: unknown): unknown {
  if (!isRecord(base) || !isRecord(over)) return over;
  const out: Record<string, unknown> = { ...base };
  for (const [key, value] of Object.entries(over)) {
    if (value === null) Reflect.deleteProperty(out, key);
    else out[key] = key in base ? merged(base[key], value) : value;
  }
  return out;
}

function checkPatterns(rule: CacheRule): string | null {
  const patterns = [rule.models, ...[rule.minimum.models, rule.granularity.models, rule.price?.models ?? [], rule.upstream].flat().map((m) => m.match)];
  for (const pattern of patterns) {
    if (pattern === undefined) continue;
    try {
      new RegExp(pattern);
    } catch {
      return `"${pattern}" is not a regular expression`;
    }
  }
  return null;
}

function readRule(raw: unknown): CacheRule | string {
  const parsed = v.safeParse(ruleSchema, raw);
  if (!parsed.success) {
    const issue = parsed.issues[0];
    return `${v.getDotPath(issue) ?? 'rule'}: ${issue.message}`;
  }
  return checkPatterns(parsed.output) ?? parsed.output;
}

/** The rule as written in the user's settings: it counts as checked today unless it says otherwise, and names its source. */
function overridden(base: unknown, over: Record<string, unknown>, today: string): unknown {
  return merged(base, { asOf: today, source: ['your settings'], ...over });
}

/**
 * The shipped rules, changed by the user's: `overrides` maps rule ids to the fields to change (deep; lists are replaced, `null` removes);
 * a new id needs a whole rule. A wrong override is left out and named in `problems`. `today` is an ISO date.
 */
export function loadRules(overrides: unknown = {}, today = '1970-01-01'): RuleBook {
  const rules = new Map<string, CacheRule>();
  const raw = new Map<string, unknown>();
  for (const entry of shipped.rules as readonly { readonly id: string }[]) {
    const rule = readRule(entry);
    if (typeof rule === 'string') throw new Error(`cacheRules.json: ${entry.id}: ${rule}`);
    rules.set(rule.id, rule);
    raw.set(rule.id, entry);
  }
  const problems: string[] = [];
  if (!isRecord(overrides)) return { rules, problems: ['The cache rules in your settings must be an object of rule id → changed fields.'] };
  for (const [id, over] of Object.entries(overrides)) {
    const rule = isRecord(over) ? readRule(overridden({ id, ...(raw.get(id) ?? {}) }, over, today)) : 'must be an object';
    if (typeof rule === 'string') problems.push(`Cache rule "${id}" in your settings is ignored: ${rule}.`);
    else rules.set(id, rule);
  }
  return { rules, problems };
}

/** A model id as the patterns see it: lower case, without its owner (`anthropic/`), dots as dashes. */
export function normaliseModel(model: string): string {
  return model.toLowerCase().replace(/^.*\//, '').replaceAll('.', '-');
}

interface PerModel<T> {
  readonly models: readonly (T & { readonly match: string })[];
}
function ofModel<T>(entry: PerModel<T>, model: string | null): (T & { readonly match: string }) | undefined {
  if (model === null) return undefined;
  const name = normaliseModel(model);
  return entry.models.find((m) => new RegExp(m.match).test(name));
}

/** Fewest tokens that are cached at all under the rule for a model, and whether sources differ about it. */
export function minimumOf(rule: CacheRule, model: string | null): { readonly tokens: number; readonly about: boolean } {
  const own = ofModel(rule.minimum, model);
  return { tokens: own?.tokens ?? rule.minimum.tokens, about: rule.minimum.about || (own?.about ?? false) };
}

/** Tokens of one cache block under the rule for a model (1 when any length is reused), and whether that is sure. */
export function blockOf(rule: CacheRule, model: string | null): { readonly tokens: number; readonly about: boolean } {
  const own = ofModel(rule.granularity, model);
  return { tokens: Math.max(1, own?.tokens ?? rule.granularity.tokens), about: own?.about ?? rule.granularity.about };
}

/** Price of a cached input token relative to an uncached one, or null where it is not known or costs nothing by the token. */
export function readFactor(rule: CacheRule, model: string | null): number | null {
  if (rule.price === undefined) return null;
  return ofModel(rule.price, model)?.read ?? rule.price.read;
}

/** Price of writing a token into the cache relative to an uncached one, for a time to live or the default; 1 where writing is free. */
export function writeFactor(rule: CacheRule, ttl: string | null): number {
  const write = rule.price?.write ?? {};
  return write[ttl ?? rule.ttl[0]?.name ?? ''] ?? Object.values(write)[0] ?? 1;
}

/** False when the rule names its models and this is none of them (or none is given): the numbers are then a guess. */
export function knowsModel(rule: CacheRule, model: string | null): boolean {
  if (rule.models === undefined) return true;
  return model !== null && new RegExp(rule.models).test(normaliseModel(model));
}

/** Days after which a rule is called old. */
export const staleAfterDays = 180;

/** Age of a rule on a day (ISO date): whether it is older than 180 days, and the words for it. A stale rule raises no warning by itself. */
export function ageOf(rule: CacheRule, today: string): { readonly days: number; readonly stale: boolean; readonly text: string } {
  const days = Math.floor((Date.parse(today) - Date.parse(rule.asOf)) / 86_400_000);
  return { days, stale: days > staleAfterDays, text: `rule as of ${rule.asOf}` };
}

/** What is known about the endpoint whose rule is looked for; every field may be null or absent. */
export interface RuleTarget {
  /** The endpoint's `cache` setting or `--rule`: a rule id or `auto`. */
  readonly cache?: string | null;
  /** The server as detected, with or without version. */
  readonly server?: string | null;
  /** Dialect id. */
  readonly dialect?: string | null;
  readonly url?: string | null;
  readonly model?: string | null;
  /** The API that the request in the file is written for: asked last, and only where there is no endpoint. */
  readonly api?: RequestApi | null;
}

/** The rule chosen for an endpoint, and why that one. */
export interface RuleChoice {
  readonly rule: CacheRule;
  readonly how: 'chosen' | 'server' | 'host' | 'dialect' | 'model' | 'request' | 'assumed';
  readonly modelKnown: boolean;
}

const openaiGeneration = 'openai*';
const hosts: readonly (readonly [RegExp, string])[] = [
  [/(^|\.)api\.openai\.com$/, openaiGeneration],
  [/\.(openai\.azure|cognitiveservices\.azure|services\.ai\.azure)\.com$/, 'azure'],
  [/(^|\.)anthropic\.com$/, 'anthropic'],
  [/^bedrock.*\.amazonaws\.com$/, 'bedrock'],
  [/(^|\.)(generativelanguage|aiplatform)\.googleapis\.com$|-aiplatform\.googleapis\.com$/, 'gemini'],
  [/(^|\.)deepseek\.com$/, 'deepseek'],
  [/(^|\.)x\.ai$/, 'xai'],
  [/(^|\.)groq\.com$/, 'groq'],
  [/(^|\.)mistral\.ai$/, 'mistral'],
  [/(^|\.)fireworks\.ai$/, 'fireworks'],
  [/(^|\.)together\.(xyz|ai)$/, 'together'],
  [/(^|\.)(moonshot\.(ai|cn)|kimi\.com)$/, 'kimi'],
  [/(^|\.)aliyuncs\.com$/, 'qwen'],
  [/(^|\.)openrouter\.ai$/, 'openrouter'],
  [/(^|\.)minimax(i?)\.(io|chat|com)$/, 'minimax'],
];
const servers: readonly (readonly [RegExp, string])[] = [
  [/vllm/, 'vllm'],
  [/sglang/, 'sglang'],
  [/llama[-._ ]?cpp|llama-server/, 'llamacpp'],
  [/tensorrt|trt-?llm|triton/, 'tensorrt-llm'],
  [/\btgi\b|text-generation-inference/, 'tgi'],
  [/ollama/, 'ollama'],
];
const dialects: Readonly<Record<string, string>> = {
  anthropic: 'anthropic',
  azure: 'azure',
  bedrock: 'bedrock',
  gemini: 'gemini',
  ollama: 'ollama',
  llamacpp: 'llamacpp',
  tgi: 'tgi',
  sglang: 'sglang',
  triton: 'tensorrt-llm',
};
const models: readonly (readonly [RegExp, string])[] = [
  [/^claude/, 'anthropic'],
  [/^(us|eu|apac|global)-anthropic|^anthropic-claude|^amazon-nova/, 'bedrock'],
  [/^gemini/, 'gemini'],
  [/^(chatgpt-)?(gpt-[4-9]|o[134]($|-))/, openaiGeneration],
  [/^grok/, 'xai'],
  [/^deepseek-(chat|reasoner)/, 'deepseek'],
];

function hostOf(url: string | null | undefined): string | null {
  if (url === null || url === undefined || !URL.canParse(url)) return null;
  return new URL(url).hostname.toLowerCase();
}

function lookUp(table: readonly (readonly [RegExp, string])[], value: string | null | undefined): string | null {
  if (value === null || value === undefined) return null;
  return table.find(([pattern]) => pattern.test(value.toLowerCase()))?.[1] ?? null;
}

function nameRule(target: RuleTarget, book: RuleBook): { readonly id: string; readonly how: RuleChoice['how'] } {
  if (target.cache !== null && target.cache !== undefined && target.cache !== 'auto' && book.rules.has(target.cache)) return { id: target.cache, how: 'chosen' };
  const model = target.model === null || target.model === undefined ? null : normaliseModel(target.model);
  const found = (id: string | null, how: RuleChoice['how']) => (id === null ? null : { id, how });
  return (
    found(lookUp(servers, target.server), 'server') ??
    found(lookUp(hosts, hostOf(target.url)), 'host') ??
    found(dialects[target.dialect ?? ''] ?? null, 'dialect') ??
    (hostOf(target.url) === null ? (found(lookUp(models, model), 'model') ?? found(dialects[target.api ?? ''] ?? null, 'request')) : null) ?? { id: 'vllm', how: 'assumed' }
  );
}

/** The upstream rule of a router, under the router's own id and name. */
function throughUpstream(rule: CacheRule, model: string | null, book: RuleBook): CacheRule {
  const id = model === null ? undefined : rule.upstream.find((u) => new RegExp(u.match).test(model.toLowerCase()))?.rule;
  const upstream = id === undefined ? undefined : book.rules.get(id);
  if (upstream === undefined) return rule;
  return { ...upstream, id: rule.id, name: `${rule.name} (${upstream.name})`, usage: rule.usage, notes: `${rule.notes} ${upstream.notes}` };
}

/**
 * The rule of an endpoint: the one picked by hand, else by detected server, host, dialect, and by the model or the shape of the file's
 * request only when there is no endpoint; vLLM's when nothing tells. OpenAI's follows the model's generation (an unnamed model counts as the newest).
 */
export function ruleFor(target: RuleTarget, book: RuleBook): RuleChoice {
  const { id, how } = nameRule(target, book);
  const model = target.model ?? null;
  const older = book.rules.get('openai');
  const generation = older !== undefined && model !== null && knowsModel(older, model) ? 'openai' : 'openai-5.6';
  const named = book.rules.get(id === openaiGeneration ? generation : id);
  if (named === undefined) throw new Error(`No cache rule "${id}".`);
  const rule = throughUpstream(named, model, book);
  return { rule, how, modelKnown: knowsModel(rule, model) };
}

/** One content block of the request in render order. */
export interface LayoutBlock {
  /** Tokens from the request's first up to the end of this block. */
  readonly at: number;
  readonly slot: Slot;
  readonly role: Role;
  /** True for the last block of a message, or of the tool list. */
  readonly endsMessage: boolean;
  /** The cache marker on this block, or null. */
  readonly marker: { readonly ttl: string | null } | null;
}

/** A request as the rules see it: where its blocks end, in tokens. */
export interface Layout {
  readonly total: number;
  /** Tokens before the first place that differs from an earlier request; `total` when nothing differs. */
  readonly common: number;
  readonly blocks: readonly LayoutBlock[];
  /** True when whoever sends it sets markers by itself where messages end: then the markers in here are not all. */
  readonly hostMarks?: boolean;
  /** True when one top-level marker asks for an automatic one on the last block. */
  readonly automatic: boolean;
  /** True when only explicit markers count (`prompt_cache_options.mode: "explicit"`). */
  readonly explicitOnly?: boolean;
  /** Token positions where the earlier request wrote an entry; absent: the same ones as this request. */
  readonly written?: readonly number[];
  /** How many earlier requests shared `common`; absent: many. Rules with units serve it only after the second. */
  readonly earlier?: number;
}

/** What decided the number. */
export type Bound = 'none' | 'last-token' | 'block' | 'minimum' | 'marker' | 'no-marker' | 'marker-assumed' | 'too-many-markers' | 'message-end' | 'no-message-end' | 'unit' | 'no-unit';

/** Tokens that the server can take from its cache, as an upper bound, with the reason in words. */
export interface Reuse {
  readonly tokens: number;
  readonly bound: Bound;
  readonly why: string;
  /** True when the rule's own numbers are not sure. */
  readonly about: boolean;
}

const grouped = new Intl.NumberFormat('en-US');
const count = (tokens: number) => `${grouped.format(tokens)} token${tokens === 1 ? '' : 's'}`;

function longestPrefix(rule: CacheRule, model: string | null, layout: Layout, minimum: number): Omit<Reuse, 'about'> {
  const identical = layout.common >= layout.total;
  const usable = identical && rule.recomputesLast ? Math.max(0, layout.total - 1) : Math.min(layout.common, layout.total);
  const block = blockOf(rule, model).tokens;
  const tokens = Math.floor(usable / block) * block;
  if (tokens < minimum) return { tokens: 0, bound: 'minimum', why: `${count(usable)} in common, under the minimum of ${grouped.format(minimum)}` };
  if (tokens < usable) return { tokens, bound: 'block', why: `${count(usable)} in common, rounded down to whole blocks of ${grouped.format(block)}` };
  if (usable < layout.common) return { tokens, bound: 'last-token', why: 'everything is the same; the last token is always computed again' };
  return { tokens, bound: 'none', why: 'the longest common prefix' };
}

/** Best of the positions that an earlier request wrote, that are still the same, and that a marker at or after them looks back to. */
function markedHit(layout: Layout, marks: readonly number[], lookback: number): number {
  const written = layout.written ?? marks.map((index) => layout.blocks[index]?.at ?? 0);
  let best = 0;
  for (const at of written) {
    if (at > layout.common || at <= best) continue;
    const index = layout.blocks.findIndex((b) => b.at >= at);
    if (marks.some((mark) => mark >= index && mark - index < lookback)) best = at;
  }
  return best;
}

/**
 * Where OpenAI places breakpoints by itself: the end of a user message, of the last of consecutive tool outputs, and of the initial
 * system group. Indices into `blocks`, ascending.
 */
export function eligibleEnds(blocks: readonly LayoutBlock[]): readonly number[] {
  const ends = blocks.map((b, i) => ({ ...b, i })).filter((b) => b.endsMessage);
  let initial = true;
  return ends
    .filter((end, i) => {
      const next = ends[i + 1];
      const leading = end.role === 'system' || end.role === 'developer';
      if (leading) {
        const nextLeads = next?.role === 'system' || next?.role === 'developer';
        return initial && !nextLeads && end.slot !== 'tools';
      }
      if (end.slot !== 'tools') initial = false;
      return end.role === 'user' || (end.role === 'tool' && end.slot !== 'tools' && next?.role !== 'tool');
    })
    .map((end) => end.i);
}

function implicitHit(layout: Layout, lookback: number): number {
  const ends = eligibleEnds(layout.blocks);
  const first = ends.find((i) => layout.blocks[i]?.role === 'system' || layout.blocks[i]?.role === 'developer');
  const looked = ends.filter((index, i) => index === first || ends.length - 1 - i <= lookback);
  const readable = looked.map((i) => layout.blocks[i]?.at ?? 0).filter((at) => at <= layout.common);
  const written = layout.written;
  return Math.max(0, ...(written === undefined ? readable : readable.filter((at) => written.includes(at))));
}

type Breakpoints = NonNullable<CacheRule['breakpoints']>;

function markersOf(layout: Layout): readonly number[] {
  const explicit = layout.blocks.flatMap((b, i) => (b.marker === null ? [] : [i]));
  const last = layout.blocks.length - 1;
  return layout.automatic && last >= 0 && !explicit.includes(last) ? [...explicit, last] : explicit;
}

function atMarkers(points: Breakpoints, layout: Layout, minimum: number): Omit<Reuse, 'about'> {
  const marks = markersOf(layout);
  if (points.tooMany === 'refused' && marks.length > points.max) return { tokens: 0, bound: 'too-many-markers', why: `${marks.length} cache markers, more than the ${points.max} allowed: the request is refused` };
  const big = marks.filter((i) => (layout.blocks[i]?.at ?? 0) >= minimum);
  const tokens = markedHit({ ...layout, ...(layout.written ? { written: layout.written.filter((at) => at >= minimum) } : {}) }, big, points.lookback);
  if (tokens > 0) return { tokens, bound: 'marker', why: `the last ${points.marker} marker before the first difference` };
  const small = marks.find((i) => (layout.blocks[i]?.at ?? 0) <= layout.common);
  if (small !== undefined && big.length < marks.length) return { tokens: 0, bound: 'minimum', why: `the ${points.marker} marker comes before the minimum of ${count(minimum)}` };
  return { tokens: 0, bound: 'no-marker', why: marks.length === 0 ? `no ${points.marker} marker, so nothing is cached` : `every ${points.marker} marker comes after the first difference` };
}

function atMessageEnds(points: Breakpoints, layout: Layout, minimum: number): Omit<Reuse, 'about'> {
  const tokens = implicitHit(layout, points.implicitLookback ?? Infinity);
  if (tokens === 0) return { tokens: 0, bound: 'no-message-end', why: 'no message ends before the first difference, and there is no fall-back to the longest prefix' };
  if (tokens < minimum) return { tokens: 0, bound: 'minimum', why: `the last message end before the first difference is at ${count(tokens)}, under the minimum of ${grouped.format(minimum)}` };
  return { tokens, bound: 'message-end', why: 'the last message end before the first difference, once an earlier request has ended or set a marker there' };
}

/** Whoever sends a prompt without markers may set one where a message ends: the best that can be done. */
function atAssumedMarker(points: Breakpoints, layout: Layout, minimum: number): Omit<Reuse, 'about'> {
  const tokens = Math.max(0, ...layout.blocks.filter((b) => b.endsMessage && b.at <= layout.common).map((b) => b.at));
  if (tokens === 0) return { tokens, bound: 'no-message-end', why: `no message ends before the first difference, so no ${points.marker} marker can stand there` };
  if (tokens < minimum) return { tokens: 0, bound: 'minimum', why: `the last message end before the first difference is at ${count(tokens)}, under the minimum of ${grouped.format(minimum)}` };
  return { tokens, bound: 'marker-assumed', why: `if whoever sends it sets a ${points.marker} marker at the last message end before the first difference` };
}

function breakpoints(rule: CacheRule, model: string | null, layout: Layout, points: Breakpoints): Omit<Reuse, 'about'> {
  const minimum = minimumOf(rule, model).tokens;
  const marked = markersOf(layout).length > 0;
  const explicit = atMarkers(points, layout, minimum);
  if (points.implicit === 'message-ends' && layout.explicitOnly !== true && explicit.bound !== 'too-many-markers') {
    const implicit = atMessageEnds(points, layout, minimum);
    return implicit.tokens > explicit.tokens || !marked ? implicit : explicit;
  }
  if (points.implicit === 'longest-prefix' && !marked) return longestPrefix(rule, model, layout, points.implicitMinimum ?? minimum);
  if (!marked && layout.hostMarks === true) return atAssumedMarker(points, layout, minimum);
  return explicit;
}

function units(rule: CacheRule, model: string | null, layout: Layout): Omit<Reuse, 'about'> {
  const block = blockOf(rule, model).tokens;
  const ends = layout.blocks.filter((b) => b.endsMessage && b.slot === 'messages' && (b.role === 'user' || b.role === 'assistant')).map((b) => b.at);
  const requestEnds = layout.written ?? [...ends, layout.total];
  const ended = Math.max(0, ...requestEnds.filter((at) => at <= layout.common));
  const steady = (layout.earlier ?? Infinity) >= 2;
  const unit = steady ? Math.max(ended, Math.min(layout.common, layout.total)) : ended;
  const tokens = Math.floor(unit / block) * block;
  const minimum = minimumOf(rule, model).tokens;
  if (tokens === 0 || tokens < minimum) return { tokens: 0, bound: 'no-unit', why: steady ? `${count(unit)} in common are less than one unit of ${grouped.format(block)}` : 'no saved unit matches in full yet: the shared prefix becomes one with the second request' };
  return { tokens, bound: 'unit', why: ended >= unit ? 'an earlier request ended here' : 'from the third request on: the first two reveal the shared prefix, which is then saved as a unit' };
}

/**
 * Tokens of a request that the rule lets a server take from its cache (an upper bound: entries also expire and are evicted).
 * Longest prefix: `floor(n / block) * block`, with n−1 for a wholly identical request where the last token is computed again; breakpoints:
 * the last marker or eligible message end before the difference; units: the last whole unit. Less than the minimum is 0.
 */
export function reusable(rule: CacheRule, model: string | null, layout: Layout): Reuse {
  const minimum = minimumOf(rule, model);
  const reuse = choose(rule, model, layout, minimum.tokens);
  const block = blockOf(rule, model);
  const nearMinimum = minimum.about && layout.common < 2 * Math.max(minimum.tokens, rule.minimum.tokens);
  const about = rule.confidence !== 'first-party' || nearMinimum || (rule.family !== 'breakpoints' && block.about);
  return { ...reuse, about };
}

function choose(rule: CacheRule, model: string | null, layout: Layout, minimum: number): Omit<Reuse, 'about'> {
  switch (rule.family) {
    case 'units':
      return units(rule, model, layout);
    case 'breakpoints':
      return rule.breakpoints === undefined ? longestPrefix(rule, model, layout, minimum) : breakpoints(rule, model, layout, rule.breakpoints);
    case 'longest-prefix': {
      const passive = longestPrefix(rule, model, layout, minimum);
      if (rule.breakpoints === undefined || markersOf(layout).length === 0) return passive;
      const marked = atMarkers(rule.breakpoints, layout, minimum);
      return marked.tokens > passive.tokens ? marked : passive;
    }
  }
}
