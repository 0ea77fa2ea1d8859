/** The commands that find out how a server behaves: each ends with a verdict, its evidence and two sentences. */
import * as v from 'valibot';
import { batching, fairness, interference, overload, type BatchingResult, type FairnessResult, type InterferenceResult, type OverloadResult, type TenantLoad } from '../probe/index';
import { count, digits, outOf } from '../report/format';
import { parse, UsageError, wholeNumber, type Command, type CommandContext } from './command';
import { largestPrompt, readTextInput } from './input';
import { experimentArgs, numberList, positive, runExperiment, scenarioOptions, scenarioUsage, type ScenarioValues } from './scenario';
import { alignedTable, number } from './scenarioText';

/** Evidence as two columns: what is a number, a word or a yes; lists have a table of their own. */
function evidenceTable(verdict: string, evidence: Readonly<Record<string, unknown>>): string {
  const rows = Object.entries(evidence).flatMap(([name, value]): string[][] => {
    const words = name.replace(/Ms$/, '').replace(/([a-z])([A-Z])/g, '$1 $2').toLowerCase();
    const unit = name.endsWith('Ms') ? ' ms' : '';
    if (value === null) return [];
    if (typeof value === 'number') return [[words, `${digits(value)}${unit}`]];
    if (typeof value === 'boolean') return [[words, value ? 'yes' : 'no']];
    return typeof value === 'string' ? [[words, value]] : [];
  });
  return `Verdict: ${verdict}\n\n${rows.map(([name, value]) => `  ${name!.padEnd(Math.max(...rows.map(([words]) => words!.length)))}  ${value!}`).join('\n')}`;
}

const trialFlags = { short: { type: 'string' }, long: { type: 'string' }, trials: { type: 'string' } } as const;

/** `first-token batching`: request-level, timed or continuous. */
export const batchingCommand: Command = {
  summary: 'Does the server batch requests or iterations? Works where nothing streams, too',
  usage: `first-token batching [FILE] [OPTIONS]

  Verdict: continuous, request-level, timed (with its period) or unclear.

  --short N      tokens of the short answer (8)
  --long N       tokens of the long answer (64)
  --trials N     how often the three meet (3)

${scenarioUsage}`,
  run: (context) => {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, ...trialFlags }, { most: 1, what: 'one prompt file' });
    const short = wholeNumber('--short', values.short, { min: 1, max: 10_000 }) ?? 8;
    const long = wholeNumber('--long', values.long, { min: 4, max: 100_000 }) ?? 64;
    const trials = wholeNumber('--trials', values.trials, { min: 1, max: 100 }) ?? 3;
    if (long < 4 * short) throw new UsageError(`--long (${long}) must be at least four times --short (${short}), or there is nothing to wait for.`);
    return runExperiment<BatchingResult>({ values, promptFile: positionals[0] ?? null, maxTokens: long, scenario: (job) => batching({ prompt: job.prompt, short, long, trials }), table: (r) => evidenceTable(r.verdict, { ...r.evidence }) }, context);
  },
};

/** `first-token interference`: what a long prompt costs everyone else. */
export const interferenceCommand: Command = {
  summary: 'What does a long prompt cost everyone else? Is prefill chunked?',
  usage: `first-token interference [FILE] [OPTIONS]

  Verdict: chunked, whole-prompt, isolated or unclear.

  --lengths LIST       lengths of the long prompts in tokens (512,1024,2048,4096,8192)
  --streams N          answers whose gaps are watched (2)
  --stream-tokens N    tokens of each (256)
  --repeats N          how often each length comes (3)

${scenarioUsage}`,
  run: (context) => {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, lengths: { type: 'string' }, streams: { type: 'string' }, 'stream-tokens': { type: 'string' }, repeats: { type: 'string' } }, { most: 1, what: 'one prompt file' });
    const lengths = (numberList(values, 'lengths') ?? [512, 1024, 2048, 4096, 8192]).map(Math.round).sort((a, b) => a - b);
    if (lengths.some((length) => length > 1_000_000)) throw new UsageError('--lengths takes at most 1000000 tokens a prompt.');
    const streams = wholeNumber('--streams', values.streams, { min: 1, max: 100 }) ?? 2;
    const streamTokens = wholeNumber('--stream-tokens', values['stream-tokens'], { min: 16, max: 100_000 }) ?? 256;
    const repeats = wholeNumber('--repeats', values.repeats, { min: 1, max: 100 }) ?? 3;
    return runExperiment<InterferenceResult>({
      values,
      promptFile: positionals[0] ?? null,
      maxTokens: streamTokens,
      scenario: (job) => interference({ prompt: job.prompt, lengths, streams, streamTokens, repeats, seed: 1 }),
      table: ({ verdict, evidence }) => `${evidenceTable(verdict, { ...evidence })}\n\n${alignedTable([['prompt tokens', 'TTFT ms', 'longest gap ms', 'lost ms', ''], ...evidence.byLength.map((at) => [count(at.promptTokens), digits(at.ttftMs), digits(at.spikeMs), digits(at.lostMs), ''])])}`,
    }, context);
  },
};

const tenantSchema = v.pipe(
  v.array(
    v.strictObject({
      name: v.pipe(v.string(), v.minLength(1)),
      keyEnv: v.optional(v.string()),
      user: v.optional(v.string()),
      headers: v.optional(v.record(v.string(), v.string()), {}),
      body: v.optional(v.record(v.string(), v.unknown()), {}),
      heavy: v.optional(v.boolean(), false),
      concurrency: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(1000))),
      requests: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1), v.maxValue(100_000))),
      every: v.optional(v.pipe(v.number(), v.minValue(1))),
      maxTokens: v.optional(v.pipe(v.number(), v.integer(), v.minValue(1))),
    }),
  ),
  v.minLength(2),
);

/** Tenants of a file: keys are named by the environment variable that holds them, never written into it. */
async function tenantsOf(values: ScenarioValues, { cwd, env }: CommandContext, heavyAtOnce: number): Promise<TenantLoad[]> {
  const file = values['tenants'];
  const whole = (name: string, heavy: boolean, more: Partial<TenantLoad> = {}): TenantLoad => ({
    name, key: null, headers: {}, body: { user: name }, heavy, concurrency: heavy ? heavyAtOnce : 1, requests: heavy ? heavyAtOnce * 20 : 24, every: heavy ? null : 150, maxTokens: heavy ? 64 : 32, ...more,
  });
  if (typeof file !== 'string') return [whole('light', false), whole('heavy', true)];
  const held = await readTextInput(cwd, '--tenants', file, largestPrompt);
  let json: unknown;
  try {
    json = JSON.parse(held);
  } catch (error) {
    throw new UsageError(`--tenants ${file} cannot be read: ${(error as Error).message}.`);
  }
  const read = v.safeParse(tenantSchema, json);
  if (!read.success) throw new UsageError(`--tenants ${file}: ${v.getDotPath(read.issues[0]) ?? 'the list'}: ${read.issues[0].message}. A list of at least two is expected, as in [{ "name": "light" }, { "name": "heavy", "heavy": true, "concurrency": 48 }].`);
  return read.output.map(({ keyEnv, user, name, heavy, headers, body, ...more }) => {
    const key = keyEnv === undefined ? null : env[keyEnv];
    if (key === undefined || key === '') throw new UsageError(`--tenants ${file}: the environment variable ${keyEnv ?? ''} of tenant ${name} is not set.`);
    const given = Object.fromEntries(Object.entries(more).filter(([, value]) => value !== undefined));
    const named = user ?? (keyEnv === undefined && Object.keys(headers).length === 0 ? name : undefined);
    return { ...whole(name, heavy), ...given, key, headers, body: { ...(named === undefined ? {} : { user: named }), ...body } };
  });
}

/** `first-token fairness`: do tenants disturb each other? */
export const fairnessCommand: Command = {
  summary: 'Do light tenants keep their SLO beside a heavy one?',
  usage: `first-token fairness [FILE] [OPTIONS]

  Verdict: isolated, not-isolated or unclear.

  --heavy N         requests the heavy tenant keeps in flight (64)
  --tenants FILE    JSON: [{ "name", "heavy", "concurrency", "requests", "every" (ms), "maxTokens", "user", "headers", "keyEnv" }]; without user, headers or keyEnv the name goes into the field "user". keyEnv names an environment variable with the key.

${scenarioUsage}`,
  run: async (context) => {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, heavy: { type: 'string' }, tenants: { type: 'string' } }, { most: 1, what: 'one prompt file' });
    const tenants = await tenantsOf(values, context, wholeNumber('--heavy', values.heavy, { min: 2, max: 1000 }) ?? 64);
    return runExperiment<FairnessResult>({
      values,
      promptFile: positionals[0] ?? null,
      maxTokens: 128,
      scenario: (job) => fairness({ prompt: job.prompt, tenants }),
      table: ({ verdict, evidence }) => `${evidenceTable(verdict, { ...evidence })}\n\n${alignedTable([
        ['tenant', 'TTFT alone', 'TTFT p50', 'p95', 'TPOT alone', 'TPOT', 'good', 'tokens', 'refused', ''],
        ...evidence.tenants.map((t) => [t.name, number(t.ttftAloneMs), number(t.ttftMs), number(t.ttftP95Ms), number(t.tpotAloneMs), number(t.tpotMs), t.attainment === null ? '' : outOf(t.attainment.good, t.attainment.due), count(t.tokens), count(t.refused), t.heavy ? 'heavy' : '']),
      ])}`,
      missed: ({ verdict }) => verdict === 'not-isolated',
    }, context);
  },
};

/** `first-token overload`: what happens beyond capacity. */
export const overloadCommand: Command = {
  summary: 'Beyond capacity on purpose: is the queue bounded, and how soon is the server well again?',
  usage: `first-token overload [FILE] [OPTIONS]

  Verdict: bounded, unbounded, absorbed, failing or unclear.

  --concurrency N      requests in flight to find the capacity with (48)
  --factor X           the burst's rate as a multiple of the capacity (3)
  --duration SECONDS   how long it lasts (2)
  --most-requests N    of the burst (600)

${scenarioUsage}`,
  run: (context) => {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, concurrency: { type: 'string' }, factor: { type: 'string' }, duration: { type: 'string' }, 'most-requests': { type: 'string' } }, { most: 1, what: 'one prompt file' });
    const numbers = {
      concurrency: wholeNumber('--concurrency', values.concurrency, { min: 2, max: 1000 }) ?? 48,
      factor: positive(values, 'factor') ?? 3,
      duration: (positive(values, 'duration') ?? 2) * 1000,
      mostRequests: wholeNumber('--most-requests', values['most-requests'], { min: 10, max: 20_000 }) ?? 600,
    };
    return runExperiment<OverloadResult>({ values, promptFile: positionals[0] ?? null, maxTokens: 64, scenario: (job) => overload({ prompt: job.prompt, maxTokens: job.settings.maxTokens ?? 64, ...numbers }), table: (r) => evidenceTable(r.verdict, { ...r.evidence }) }, context);
  },
};
