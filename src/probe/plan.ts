/** Everything is checked and decided before the first byte: settings and a prompt become an explicit list of shots. */
import { createHash, randomBytes } from 'node:crypto';
import { editText } from '../prompt/editText';
import type { ChatPrompt } from '../prompt/prompt';
import type { PlanSummary, Slo } from '../report/report';
import type { Milliseconds } from '../report/sample';
import { defaultBreaker, type BreakerSettings } from './breaker';
import type { Dialect } from './dialect/dialect';
import { list, object } from './dialect/json';
import { environmentNames, urlProblem, type Endpoint } from './endpoint';
import type { EndpointMemory } from './memory';
import { defaultTimeouts, type NetworkOptions, type Timeouts } from './network';

/** A plan that cannot be carried out; the message names the setting or flag to change. */
export class PlanError extends Error {
  override readonly name = 'PlanError';
  /** The setting to open, e.g. `firstToken.probe`. */
  readonly setting: string | null;
  constructor(message: string, setting: string | null = null) {
    super(message);
    this.setting = setting;
  }
}

/** Limits of a run; null = none. Checked before the start and enforced while it runs. */
export interface BudgetLimits {
  /** Requests, warm-up and retries included. */
  readonly requests: number | null;
  /** Output tokens. */
  readonly outputTokens: number | null;
  /** In the currency of the endpoint's price. */
  readonly cost: number | null;
}

/** Sending again after a time-out, 429 or 5xx. Each is a new sample; off by default. */
export interface RetrySettings {
  /** Most retries of one shot. */
  readonly attempts: number;
  /** The wait before the first retry; it doubles, and is jittered between half and whole. Retry-After wins when longer. */
  readonly wait: Milliseconds;
  /** Retries in the whole run, as a share of its requests. */
  readonly share: number;
  /** Send again only what was refused for load (429, or 503 with Retry-After): an endpoint that fails is not asked ten times. */
  readonly refusalsOnly?: boolean;
}

/** `firstToken.probe`, checked. */
export interface ProbeSettings {
  readonly requests: number;
  readonly concurrency: number;
  /** Requests before the measured ones, at the same concurrency; outside every statistic. */
  readonly warmup: number;
  readonly maxTokens: number | null;
  readonly cache: 'as-is' | 'cold';
  readonly budget: BudgetLimits;
  readonly breaker: BreakerSettings | null;
  readonly retry: RetrySettings | null;
  /** Recorder threads, used in turn. One carries some thousand reads a second. */
  readonly recorders: number;
}

/** What a probe sends when the settings say nothing. */
export const defaultProbeSettings: ProbeSettings = {
  requests: 20,
  concurrency: 1,
  warmup: 1,
  maxTokens: 256,
  cache: 'as-is',
  budget: { requests: null, outputTokens: null, cost: null },
  breaker: defaultBreaker,
  retry: null,
  recorders: 1,
};

/** Reads `firstToken.probe` over the defaults. Throws a PlanError that names the property. */
export function readProbeSettings(json: unknown, base: ProbeSettings = defaultProbeSettings): ProbeSettings {
  if (json === undefined || json === null) return base;
  if (typeof json !== 'object' || Array.isArray(json)) throw new PlanError('firstToken.probe must be an object such as { "requests": 20, "concurrency": 1 }.', 'firstToken.probe');
  const given = json as Record<string, unknown>;
  const known = ['requests', 'concurrency', 'warmup', 'maxTokens', 'cache', 'maxRequests', 'maxTotalTokens', 'maxCost', 'breaker', 'retry', 'recorders'];
  const unknown = Object.keys(given).find((name) => !known.includes(name));
  if (unknown !== undefined) throw new PlanError(`firstToken.probe has no property "${unknown}". Its properties are ${known.join(', ')}.`, 'firstToken.probe');
  const read = (name: string, fallback: unknown): unknown => (given[name] === undefined ? fallback : given[name]);
  const settings = {
    requests: read('requests', base.requests),
    concurrency: read('concurrency', base.concurrency),
    warmup: read('warmup', base.warmup),
    maxTokens: read('maxTokens', base.maxTokens),
    cache: read('cache', base.cache),
    budget: { requests: read('maxRequests', base.budget.requests), outputTokens: read('maxTotalTokens', base.budget.outputTokens), cost: read('maxCost', base.budget.cost) },
    breaker: readPart('breaker', given['breaker'], base.breaker, defaultBreaker),
    retry: readPart('retry', given['retry'], base.retry, defaultRetry),
    recorders: read('recorders', base.recorders),
  } as ProbeSettings;
  checkSettings(settings);
  return settings;
}

const defaultRetry: RetrySettings = { attempts: 2, wait: 1000, share: 0.1 };

/** A part that can be switched off (null, false), on (true) or set in part over its defaults. */
function readPart<Part extends object>(name: string, json: unknown, base: Part | null, defaults: Part): Part | null {
  if (json === undefined) return base;
  if (json === null || json === false) return null;
  if (json === true) return defaults;
  if (typeof json !== 'object' || Array.isArray(json)) throw new PlanError(`firstToken.probe.${name} must be an object, true or false; it is ${JSON.stringify(json)}.`, 'firstToken.probe');
  const unknown = Object.keys(json).find((key) => !Object.hasOwn(defaults, key));
  if (unknown !== undefined) throw new PlanError(`firstToken.probe.${name} has no property "${unknown}". Its properties are ${Object.keys(defaults).join(', ')}.`, 'firstToken.probe');
  return { ...defaults, ...json };
}

function whole(name: string, flag: string, value: unknown, min: number, max: number): void {
  if (typeof value !== 'number' || !Number.isInteger(value) || value < min || value > max) {
    throw new PlanError(`firstToken.probe.${name} (${flag}) must be a whole number from ${min} to ${max}; it is ${JSON.stringify(value)}.`, 'firstToken.probe');
  }
}

function positiveOrNull(name: string, value: unknown): void {
  if (value !== null && (typeof value !== 'number' || !(value > 0 && value < Infinity))) throw new PlanError(`firstToken.probe.${name} must be a number above 0, or null for no limit; it is ${JSON.stringify(value)}.`, 'firstToken.probe');
}

/** Throws a PlanError for the first setting that is not of its type or out of range. */
export function checkSettings(settings: ProbeSettings): void {
  whole('requests', '-n', settings.requests, 1, 100_000);
  whole('concurrency', '-c', settings.concurrency, 1, 1000);
  whole('warmup', '--warmup', settings.warmup, 0, 1000);
  if (settings.maxTokens !== null) whole('maxTokens', '--max-tokens', settings.maxTokens, 1, 1_000_000);
  if (settings.cache !== 'as-is' && settings.cache !== 'cold') throw new PlanError(`firstToken.probe.cache (--cache) must be "as-is" or "cold"; it is ${JSON.stringify(settings.cache)}.`, 'firstToken.probe');
  positiveOrNull('maxRequests', settings.budget.requests);
  positiveOrNull('maxTotalTokens', settings.budget.outputTokens);
  positiveOrNull('maxCost', settings.budget.cost);
  whole('recorders', 'recorders', settings.recorders, 1, 16);
  if (settings.breaker) {
    whole('breaker.consecutive', 'breaker', settings.breaker.consecutive, 1, 100_000);
    whole('breaker.window', 'breaker', settings.breaker.window, 1, 100_000);
    positiveOrNull('breaker.share', settings.breaker.share);
  }
  if (settings.retry) {
    whole('retry.attempts', 'retry', settings.retry.attempts, 0, 10);
    positiveOrNull('retry.wait', settings.retry.wait);
    if (typeof settings.retry.share !== 'number' || !(settings.retry.share >= 0 && settings.retry.share < Infinity)) throw new PlanError(`firstToken.probe.retry.share must be a number from 0; it is ${JSON.stringify(settings.retry.share)}.`, 'firstToken.probe');
  }
}

/** Headers that say how a message travels: set by hand they contradict what is sent. */
const connectionHeaders = new Set(['content-length', 'transfer-encoding', 'expect', 'upgrade', 'keep-alive', 'te', 'trailer']);

/** Throws a PlanError for an endpoint or prompt that cannot be sent, and for variables left in headers. */
export function checkRequest(endpoint: Endpoint, prompt: ChatPrompt, promptName: string): void {
  const problem = urlProblem(endpoint.url);
  if (problem !== null) throw new PlanError(`The endpoint "${endpoint.name}" cannot be probed: ${problem} (firstToken.endpoints, --endpoint).`, 'firstToken.endpoints');
  const [variable] = environmentNames(endpoint);
  if (variable !== undefined) throw new PlanError(`A header of "${endpoint.name}" asks for the environment variable ${variable}. Allow it with --allow-env ${variable}, or write the endpoint to your user settings.`, 'firstToken.endpoints');
  for (const [name, value] of Object.entries(endpoint.headers)) {
    if (!/^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/.test(name) || /[^\u0009\u0020-\u007e\u0080-\u00ff]/.test(value)) throw new PlanError(`The header "${name}" of "${endpoint.name}" holds characters that HTTP does not allow.`, 'firstToken.endpoints');
    if (connectionHeaders.has(name.toLowerCase())) throw new PlanError(`The header "${name}" of "${endpoint.name}" belongs to the connection, which First Token looks after itself: leave it out.`, 'firstToken.endpoints');
  }
  if (!prompt.messages.some((message) => message.text.trim() !== '')) throw new PlanError(`The prompt "${promptName}" is empty: write something to send.`);
}

/** A place to send to, resolved: the dialect is known and the headers hold their values. */
export interface Target {
  readonly endpoint: Endpoint;
  readonly dialect: Dialect;
  readonly model: string | null;
  /** Detected server, null when unknown. */
  readonly server: string | null;
  readonly key: string | null;
  readonly timeouts: Timeouts;
  readonly network: NetworkOptions;
  readonly memory: EndpointMemory;
}

/** One request to send. */
export interface Shot {
  readonly id: string;
  readonly role: 'warmup' | 'measured';
  /** Index in `plan.targets`. */
  readonly target: number;
  /** When to send it, in ms from the start of the measured phase, whatever else is running; null = when a slot is free. */
  readonly dueAt: Milliseconds | null;
  readonly prompt: ChatPrompt;
  readonly maxTokens: number | null;
  /** Makes the prompt new to every prefix cache; null = send it as it is. */
  readonly nonce: string | null;
  readonly labels: Readonly<Record<string, string | number>>;
  /**
   * Ask the provider to compare the request with the one that this answer id belongs to, and to say what broke the cache; null = only
   * remember this one for a later comparison. Absent: not asked.
   */
  readonly compareWith?: string | null;
  /** Name of the lane of `plan.lanes` whose slots it waits for; absent = the plan's own slots. */
  readonly lane?: string;
}

/** Slots of their own beside those of the plan: a tenant, a kind of request. A background lane sends nothing more once everything else has been answered. */
export interface Lane {
  readonly concurrency: number;
  readonly background?: boolean;
}

/** What a run will do. */
export interface ProbePlan {
  readonly scenario: string;
  readonly targets: readonly Target[];
  readonly shots: readonly Shot[];
  readonly concurrency: number;
  readonly budget: BudgetLimits;
  readonly breaker: BreakerSettings | null;
  readonly retry: RetrySettings | null;
  readonly recorders: number;
  /** Ask for answers of exactly `maxTokens` tokens where the server can. */
  readonly fixedLength?: boolean;
  readonly lanes?: Readonly<Record<string, Lane>>;
  /** A schedule keeps no more than this in flight; what it holds back starts late and says so. Default 4096. */
  readonly mostInFlight?: number;
}

/** A fresh nonce: 16 hex digits, so that every salted prompt is equally long. */
export function createNonce(): string {
  return randomBytes(8).toString('hex');
}

/** The plan of a plain probe: warm-ups, then the measured requests, of one prompt at one target. Throws a PlanError. */
export function planProbe(target: Target, prompt: ChatPrompt, settings: ProbeSettings): ProbePlan {
  checkSettings(settings);
  const shot = (role: Shot['role'], index: number): Shot => ({
    id: role === 'warmup' ? `warmup-${index + 1}` : `${index + 1}`,
    role,
    target: 0,
    dueAt: null,
    prompt,
    maxTokens: settings.maxTokens,
    nonce: settings.cache === 'cold' ? createNonce() : null,
    labels: {},
  });
  const plan: ProbePlan = {
    scenario: 'probe',
    targets: [target],
    shots: [...Array.from({ length: settings.warmup }, (_, i) => shot('warmup', i)), ...Array.from({ length: settings.requests }, (_, i) => shot('measured', i))],
    concurrency: settings.concurrency,
    budget: settings.budget,
    breaker: settings.breaker,
    retry: settings.retry,
    recorders: settings.recorders,
  };
  checkBudget(plan);
  return plan;
}

/** What a plan will use at most, to be shown before it starts. Prompt tokens are a rough guess (4 bytes a token). */
export interface Estimate {
  readonly requests: number;
  readonly promptTokens: number;
  /** Null when an answer's length is not limited. */
  readonly outputTokens: number | null;
  /** Null without a price or without a limit. */
  readonly cost: { readonly value: number; readonly currency: string } | null;
}

/** Adds up a plan. */
export function estimate(plan: Pick<ProbePlan, 'shots' | 'targets'>): Estimate {
  let promptTokens = 0;
  let outputTokens: number | null = 0;
  let cost: number | null = 0;
  for (const shot of plan.shots) {
    const prompt = Math.ceil(shot.prompt.messages.reduce((sum, message) => sum + Buffer.byteLength(message.text), 0) / 4);
    const price = plan.targets[shot.target]!.endpoint.price;
    promptTokens += prompt;
    outputTokens = outputTokens === null || shot.maxTokens === null ? null : outputTokens + shot.maxTokens;
    cost = cost === null || price === null || shot.maxTokens === null ? null : cost + prompt * (price.inputPerMillion ?? 0) + shot.maxTokens * (price.outputPerMillion ?? 0);
  }
  const currency = plan.targets.find((target) => target.endpoint.price)?.endpoint.price?.currency;
  return { requests: plan.shots.length, promptTokens, outputTokens, cost: cost === null || currency === undefined ? null : { value: cost / 1e6, currency } };
}

/** Throws a PlanError when a plan is over its own request limit, or its target has no price to keep a cost limit by. */
export function checkBudget(plan: ProbePlan): void {
  const { requests, cost } = plan.budget;
  if (requests !== null && plan.shots.length > requests) {
    throw new PlanError(`The plan has ${plan.shots.length} requests (warm-up included), over the limit of ${requests}: lower firstToken.probe.requests (-n) or raise firstToken.probe.maxRequests.`, 'firstToken.probe');
  }
  const unpriced = plan.targets.find((target) => target.endpoint.price === null);
  if (cost !== null && unpriced) throw new PlanError(`firstToken.probe.maxCost is set, but the endpoint "${unpriced.endpoint.name}" has no price: add "price" to it in firstToken.endpoints.`, 'firstToken.endpoints');
}

/**
 * The prompt with the nonce as the very first bytes of the first message, and of the first tool's description (some servers render tools
 * first), so that no cached prefix fits. Markers stay where they are.
 */
export function salted(prompt: ChatPrompt, nonce: string): ChatPrompt {
  const [first, ...rest] = prompt.messages;
  if (first === undefined) return prompt;
  const edited = editText(first, 'first', (text) => `${nonce}\n${text}`) ?? { ...first, text: `${nonce}\n${first.text}`, parts: [{ text: `${nonce}\n` }, ...(first.parts ?? [])] };
  return { ...prompt, messages: [edited, ...rest], tools: prompt.tools.map((tool, i) => (i === 0 ? saltedTool(tool, nonce) : tool)) };
}

/** True when the nonce goes beside the prompt (`cache_salt`) and leaves its tokens alone. */
export function saltedBeside({ server, dialect }: Pick<Target, 'server' | 'dialect'>): boolean {
  return server === 'vllm' && dialect.id.startsWith('openai-');
}

/** A tool whose description begins with the nonce; one that has none (a tool of the server's own) stays as it is. */
function saltedTool(tool: unknown, nonce: string): unknown {
  const fields = object(tool);
  if (fields === null) return tool;
  if (typeof fields['description'] === 'string') return { ...fields, description: `${nonce} ${fields['description']}` };
  for (const name of ['function', 'toolSpec']) {
    if (object(fields[name]) !== null) return { ...fields, [name]: saltedTool(fields[name], nonce) };
  }
  for (const name of ['functionDeclarations', 'function_declarations']) {
    const [head, ...others] = list(fields[name]);
    if (head !== undefined) return { ...fields, [name]: [saltedTool(head, nonce), ...others] };
  }
  return tool;
}

/** Endpoint's limits over the network settings' over the defaults. */
export function timeoutsFor(endpoint: Endpoint, network: Partial<Timeouts> = {}): Timeouts {
  const pick = (name: keyof Timeouts): Milliseconds | null => {
    const own = endpoint.timeouts[name];
    if (own !== undefined) return own;
    return network[name] !== undefined ? network[name] : defaultTimeouts[name];
  };
  return { firstToken: pick('firstToken'), stall: pick('stall'), total: pick('total') };
}

/** The plan as a report tells it: no key, no header, no prompt text. */
export function summarisePlan(scenario: string, settings: ProbeSettings, prompt: ChatPrompt, promptName: string, judged: { readonly slo: Slo; readonly objective: 'chat' | 'batch'; readonly readerPace: Milliseconds }): PlanSummary {
  const all = prompt.messages.map((message) => message.text).join('\n');
  return {
    scenario,
    requests: settings.requests,
    concurrency: settings.concurrency,
    warmup: settings.warmup,
    maxTokens: settings.maxTokens,
    cache: settings.cache,
    ...judged,
    prompt: { name: promptName, characters: all.length, sha256: createHash('sha256').update(JSON.stringify(prompt)).digest('hex') },
  };
}
