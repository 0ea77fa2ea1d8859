/** The command line of a simulated server: read, checked and explained. */
import { readFileSync } from 'node:fs';
import { faceNames } from './face';
import { faultHelp, parseFaults, type Fault } from './faults';
import { gpus, hardware, models } from './model';
import type { AutoscaleRule, RouterName, SimulatorSettings, Tenant } from './settings';

/** A mistake in the arguments; the message names the flag and what it takes. */
export class ArgumentError extends Error {}

interface Flag {
  /** What follows the flag; '' for a switch. */
  readonly takes: string;
  readonly help: string;
}

const flags: Readonly<Record<string, Flag>> = {
  port: { takes: 'P', help: 'port on this machine (a free one)' },
  host: { takes: 'H', help: '127.0.0.1, ::1 or localhost (127.0.0.1)' },
  face: { takes: 'NAME', help: `which server to look like: ${faceNames.join(', ')} (vllm); anthropic, bedrock and openai with a model from gpt-5.6 on cache at breakpoints only` },
  model: { takes: 'M', help: `${models.map(({ name }) => name).join(', ')} (llama-3.1-8b)` },
  gpu: { takes: 'G', help: `${gpus.map(({ name }) => name).join(', ')} (h200)` },
  tp: { takes: 'N', help: 'GPUs the model is split over (1)' },
  'weight-bits': { takes: 'N', help: 'bits per weight (16)' },
  'kv-bits': { takes: 'N', help: 'bits per key and value (16)' },
  efficiency: { takes: 'B:C', help: 'share of bandwidth and of FLOP/s that is reached (1:0.5)' },
  'step-overhead': { takes: 'MS', help: 'added to every iteration (0)' },
  'served-model': { takes: 'NAME', help: "the model's name in requests (the preset's)" },
  'max-running': { takes: 'N', help: 'sequences computed at a time (16)' },
  'max-context': { takes: 'N', help: "longest prompt plus answer, tokens (the model's)" },
  'kv-blocks': { takes: 'N', help: 'KV blocks of 16 tokens (what fits beside the weights)' },
  'no-prefix-cache': { takes: '', help: 'never reuse blocks' },
  policy: { takes: 'NAME', help: 'continuous, request-level or timed (continuous)' },
  'chunked-prefill': { takes: 'N', help: 'at most N tokens an iteration, prompts in chunks' },
  gather: { takes: 'MS', help: 'request-level: an idle server collects for so long (5)' },
  'batch-size': { takes: 'N', help: 'timed: start with so many requests (8)' },
  'batch-timeout': { takes: 'MS', help: 'timed: or so long after the first (100)' },
  'batch-cost': { takes: 'MS', help: 'timed, request-level: every batch takes this long' },
  speculative: { takes: 'K:P', help: 'K drafted tokens a step, each accepted with chance P' },
  split: { takes: 'P:D[:GB/S]', help: 'P replicas prefill, D decode, linked by so many GB/s (50)' },
  queue: { takes: 'N', help: 'at most N requests wait; more get 429' },
  shed: { takes: 'MS', help: 'refuse with 503 when the wait would be longer' },
  tenants: { takes: 'FILE', help: 'JSON: [{ name, keys, weight, priority, tokensPerSecond, burst }]' },
  fair: { takes: '', help: "serve tenants by weight (least served first)" },
  priority: { takes: '', help: 'serve by priority class' },
  replicas: { takes: 'N', help: 'replicas behind a router (1)' },
  router: { takes: 'NAME', help: 'round-robin, least-queue or prefix-affinity (round-robin)' },
  spill: { takes: 'N', help: 'prefix-affinity: give way at N more requests than the least loaded (8)' },
  autoscale: { takes: 'MIN:MAX:SIGNAL:LIMIT', help: 'SIGNAL queue (per replica) or ttft (ms)' },
  'slow-start': { takes: 'MS', help: 'until a new replica serves (time to load the weights)' },
  fault: { takes: 'FAULT', help: 'may be given several times; see below' },
  reasoning: { takes: 'N[:STYLE]', help: 'N tokens of reasoning first; STYLE field, think or hidden (field)' },
  seed: { takes: 'S', help: 'other answers and other chances (1)' },
  'api-key': { takes: 'K', help: 'requests without this key get 401' },
  speed: { takes: 'X', help: 'run X times faster than real time (1)' },
  'stream-interval': { takes: 'N', help: 'tokens per frame after the first (1)' },
  'no-cached-tokens': { takes: '', help: 'do not report cached tokens in usage' },
  'no-padding': { takes: '', help: 'encode batches without padding them to their longest input' },
  'headers-at': { takes: 'WHEN', help: 'accept or slot: when the response head is sent (accept)' },
  'keep-alive': { takes: 'MS', help: 'close idle connections after (65000)' },
};

/** The help text of the flags, without the command they follow. */
export const simulatorUsage: string = [
  ...Object.entries(flags).map(([name, { takes, help }]) => `  ${`--${name} ${takes}`.trimEnd().padEnd(32)} ${help}`),
  '',
  'Faults:',
  ...faultHelp().map((line) => `  ${line}`),
].join('\n');

type Given = ReadonlyMap<string, readonly string[]>;

/** Reads the flags of a simulated server. Throws `ArgumentError` with a message that says which flag to change and how. */
export function parseSimulatorArgs(args: readonly string[]): SimulatorSettings {
  const given = collect(args);
  const count = (name: string, least = 1): number | null => countOf(given, name, least);
  const preset = hardwareOf(given);
  const settings: SimulatorSettings = {
    host: oneOf(given, 'host', ['127.0.0.1', '::1', 'localhost']) ?? '127.0.0.1',
    port: port(given),
    face: oneOf(given, 'face', faceNames) ?? 'vllm',
    hardware: preset,
    servedModel: text(given, 'served-model') ?? preset.model.name,
    maxContext: Math.min(count('max-context', 16) ?? Infinity, preset.model.maxContext),
    maxRunning: count('max-running') ?? 16,
    kvBlocks: count('kv-blocks'),
    prefixCaching: !given.has('no-prefix-cache'),
    policy: oneOf(given, 'policy', ['continuous', 'request-level', 'timed']) ?? 'continuous',
    chunkedPrefill: count('chunked-prefill'),
    gather: amount(given, 'gather') ?? 5,
    batchSize: count('batch-size') ?? 8,
    batchTimeout: amount(given, 'batch-timeout') ?? 100,
    batchCost: amount(given, 'batch-cost'),
    speculative: speculative(given),
    split: split(given),
    queueLimit: count('queue', 0),
    shedAbove: amount(given, 'shed'),
    tenants: tenants(given),
    discipline: given.has('fair') ? 'fair' : given.has('priority') ? 'priority' : 'first-come',
    replicas: count('replicas') ?? 1,
    router: oneOf<RouterName>(given, 'router', ['round-robin', 'least-queue', 'prefix-affinity']) ?? 'round-robin',
    spill: count('spill', 0) ?? 8,
    autoscale: autoscale(given),
    slowStart: amount(given, 'slow-start'),
    faults: faults(given),
    deadReplica: null,
    ...reasoning(given),
    seed: count('seed', 0) ?? 1,
    apiKey: text(given, 'api-key'),
    speed: amount(given, 'speed') ?? 1,
    streamInterval: count('stream-interval') ?? 1,
    reportsCached: !given.has('no-cached-tokens'),
    paddedBatches: !given.has('no-padding'),
    headersAt: oneOf(given, 'headers-at', ['accept', 'slot']) ?? 'accept',
    keepAlive: amount(given, 'keep-alive') ?? 65_000,
  };
  const dead = settings.faults.find((fault) => fault.kind === 'dead');
  const checked = dead?.kind === 'dead' ? { ...settings, deadReplica: dead.replica } : settings;
  refuseContradictions(checked, given);
  return checked;
}

function collect(args: readonly string[]): Given {
  const given = new Map<string, string[]>();
  for (let i = 0; i < args.length; i++) {
    const [head = '', ...inline] = args[i]!.split('=');
    const name = head.replace(/^--/, '');
    const flag = Object.hasOwn(flags, name) && head.startsWith('--') ? flags[name] : undefined;
    if (!flag) throw new ArgumentError(`${head} is not an option of the simulator. Options: ${Object.keys(flags).map((known) => `--${known}`).join(' ')}.`);
    let value = inline.length > 0 ? inline.join('=') : undefined;
    if (flag.takes !== '' && value === undefined) value = args[++i];
    if (flag.takes !== '' && (value === undefined || value.startsWith('--'))) throw new ArgumentError(`--${name} needs a value: --${name} ${flag.takes} (${flag.help}).`);
    if (given.has(name) && name !== 'fault') throw new ArgumentError(`--${name} was given twice.`);
    given.set(name, [...(given.get(name) ?? []), value ?? '']);
  }
  return given;
}

function wrong(name: string, value: string, wanted: string): ArgumentError {
  return new ArgumentError(`--${name} ${value}: ${wanted} is expected.`);
}

function text(given: Given, name: string): string | null {
  return given.get(name)?.[0] ?? null;
}

function oneOf<T extends string>(given: Given, name: string, known: readonly T[]): T | null {
  const value = text(given, name);
  if (value === null) return null;
  const found = known.find((entry) => entry === value);
  if (found === undefined) throw wrong(name, value, `one of ${known.join(', ')}`);
  return found;
}

function countOf(given: Given, name: string, least: number): number | null {
  const value = text(given, name);
  if (value === null) return null;
  if (!/^\d+$/.test(value) || Number(value) < least || Number(value) > 1e9) throw wrong(name, value, `a whole number of at least ${least}`);
  return Number(value);
}

/** A number above 0. */
function amount(given: Given, name: string): number | null {
  const value = text(given, name);
  if (value === null) return null;
  const number = Number(value);
  if (value.trim() === '' || !Number.isFinite(number) || number <= 0) throw wrong(name, value, 'a number above 0');
  return number;
}

function port(given: Given): number {
  const number = countOf(given, 'port', 0) ?? 0;
  if (number > 65_535) throw wrong('port', String(number), 'a port from 0 to 65535');
  return number;
}

function hardwareOf(given: Given): SimulatorSettings['hardware'] {
  const shares = numbers(given, 'efficiency', 2, 2);
  if (shares?.some((share) => share <= 0 || share > 1)) throw wrong('efficiency', text(given, 'efficiency')!, 'two shares above 0 and up to 1, as in 0.8:0.5');
  try {
    return hardware({
      ...withValue('model', text(given, 'model')),
      ...withValue('gpu', text(given, 'gpu')),
      ...withValue('tensorParallel', countOf(given, 'tp', 1)),
      ...withValue('weightBits', countOf(given, 'weight-bits', 1)),
      ...withValue('kvBits', countOf(given, 'kv-bits', 1)),
      ...withValue('stepOverhead', amount(given, 'step-overhead')),
      ...withValue('efficiency', shares ? { bandwidth: shares[0]!, compute: shares[1]! } : null),
    });
  } catch (error) {
    throw new ArgumentError((error as Error).message);
  }
}

function withValue<K extends string, V>(key: K, value: V | null): Partial<Record<K, V>> {
  return value === null ? {} : ({ [key]: value } as Record<K, V>);
}

/** Numbers separated by colons. */
function numbers(given: Given, name: string, least: number, most: number): number[] | null {
  const value = text(given, name);
  if (value === null) return null;
  const parts = value.split(':').map((part) => (part.trim() === '' ? NaN : Number(part)));
  if (parts.length < least || parts.length > most || parts.some((part) => !Number.isFinite(part))) throw wrong(name, value, flags[name]!.takes);
  return parts;
}

function speculative(given: Given): SimulatorSettings['speculative'] {
  const parts = numbers(given, 'speculative', 2, 2);
  if (!parts) return null;
  const [drafts, acceptance] = parts as [number, number];
  if (!Number.isInteger(drafts) || drafts < 1 || acceptance < 0 || acceptance > 1) throw wrong('speculative', text(given, 'speculative')!, 'K:P with K a whole number of at least 1 and P from 0 to 1');
  return { drafts, acceptance };
}

function split(given: Given): SimulatorSettings['split'] {
  const parts = numbers(given, 'split', 2, 3);
  if (!parts) return null;
  const [prefill, decode, link = 50] = parts as [number, number, number?];
  if (!Number.isInteger(prefill) || !Number.isInteger(decode) || prefill < 1 || decode < 1 || link <= 0) throw wrong('split', text(given, 'split')!, 'P:D with at least one replica each, and a bandwidth above 0');
  return { prefill, decode, linkBandwidth: link * 1e9 };
}

function autoscale(given: Given): AutoscaleRule | null {
  const value = text(given, 'autoscale');
  if (value === null) return null;
  const match = /^(\d+):(\d+):(queue|ttft):(\d+(?:\.\d+)?)$/.exec(value);
  const [min, max, limit] = [Number(match?.[1]), Number(match?.[2]), Number(match?.[4])];
  if (!match || min < 1 || max < min) throw wrong('autoscale', value, 'MIN:MAX:queue:LIMIT or MIN:MAX:ttft:LIMIT with 1 ≤ MIN ≤ MAX');
  return { min, max, signal: match[3] as AutoscaleRule['signal'], limit };
}

function faults(given: Given): Fault[] {
  try {
    return (given.get('fault') ?? []).flatMap((value) => parseFaults(value));
  } catch (error) {
    throw new ArgumentError(`--fault: ${(error as Error).message}`);
  }
}

function reasoning(given: Given): Pick<SimulatorSettings, 'reasoningTokens' | 'reasoningStyle'> {
  const value = text(given, 'reasoning');
  if (value === null) return { reasoningTokens: 0, reasoningStyle: 'field' };
  const match = /^(\d+)(?::(field|think|hidden))?$/.exec(value);
  if (!match) throw wrong('reasoning', value, 'N, N:field, N:think or N:hidden');
  return { reasoningTokens: Number(match[1]), reasoningStyle: (match[2] as SimulatorSettings['reasoningStyle'] | undefined) ?? 'field' };
}

function tenants(given: Given): Tenant[] {
  const file = text(given, 'tenants');
  if (file === null) return [];
  let content: string;
  try {
    content = readFileSync(file, 'utf8');
  } catch {
    throw new ArgumentError(`--tenants ${file}: the file cannot be read.`);
  }
  return parseTenants(content, file);
}

/** Reads a tenants file: a list, or an object with the list under `tenants`. Throws `ArgumentError`. */
export function parseTenants(content: string, file = 'tenants'): Tenant[] {
  let json: unknown;
  try {
    json = JSON.parse(content);
  } catch {
    throw new ArgumentError(`--tenants ${file}: this is not JSON.`);
  }
  const list = Array.isArray(json) ? (json as unknown[]) : (json as { tenants?: unknown } | null)?.tenants;
  if (!Array.isArray(list) || list.length === 0) throw new ArgumentError(`--tenants ${file}: a list of tenants is expected, as in [{ "name": "a", "keys": ["key-a"], "weight": 2 }].`);
  return list.map((entry, index) => tenant(entry, `--tenants ${file}: tenant ${index + 1}`));
}

function tenant(entry: unknown, where: string): Tenant {
  if (typeof entry !== 'object' || entry === null) throw new ArgumentError(`${where} is not an object.`);
  const fields = entry as Record<string, unknown>;
  if (typeof fields.name !== 'string' || fields.name === '') throw new ArgumentError(`${where} needs a name.`);
  const positive = (name: string, fallback: number): number => {
    const value = fields[name] ?? fallback;
    if (typeof value === 'number' && Number.isFinite(value) && value > 0) return value;
    throw new ArgumentError(`${where} (${String(fields.name)}): ${name} must be a number above 0.`);
  };
  const keys: unknown = fields.keys ?? [];
  if (!Array.isArray(keys) || keys.some((key) => typeof key !== 'string')) throw new ArgumentError(`${where} (${fields.name}): keys must be a list of strings.`);
  const rate = fields.tokensPerSecond === undefined ? null : positive('tokensPerSecond', 1);
  const quota = rate === null ? null : { tokensPerSecond: rate, burst: positive('burst', rate) };
  const priority = fields.priority ?? 0;
  if (typeof priority !== 'number' || !Number.isInteger(priority)) throw new ArgumentError(`${where} (${fields.name}): priority must be a whole number.`);
  return { name: fields.name, keys: keys as string[], weight: positive('weight', 1), priority, quota };
}

function refuseContradictions(settings: SimulatorSettings, given: Given): void {
  const both = (a: string, b: string, why: string): void => {
    if (given.has(a) && given.has(b)) throw new ArgumentError(`--${a} and --${b} cannot be combined: ${why}.`);
  };
  both('fair', 'priority', 'there is one order of service');
  both('split', 'replicas', '--split already says how many replicas there are');
  both('split', 'autoscale', 'the two pools have a fixed size');
  both('split', 'speculative', 'speculation is simulated on undivided replicas only');
  both('autoscale', 'replicas', '--autoscale says how many there are at least and at most');
  both('chunked-prefill', 'speculative', 'choose one of them');
  if (settings.policy !== 'continuous') {
    for (const name of ['chunked-prefill', 'speculative', 'split']) {
      if (given.has(name)) throw new ArgumentError(`--${name} needs --policy continuous.`);
    }
  } else if (given.has('batch-cost')) throw new ArgumentError('--batch-cost needs --policy request-level or timed.');
  if (given.has('gather') && settings.policy !== 'request-level') throw new ArgumentError('--gather needs --policy request-level.');
  for (const name of ['batch-size', 'batch-timeout']) {
    if (given.has(name) && settings.policy !== 'timed') throw new ArgumentError(`--${name} needs --policy timed.`);
  }
  if (settings.deadReplica !== null && settings.deadReplica >= Math.max(settings.replicas, settings.autoscale?.min ?? 1)) {
    throw new ArgumentError(`--fault dead:${settings.deadReplica}: there are only ${settings.replicas} replicas (counted from 0).`);
  }
}
