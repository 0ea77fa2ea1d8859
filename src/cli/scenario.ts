/** What the commands that run an experiment share: where to send, what to send, the SLO, the budget, and following it to its result. */
import path from 'node:path';
import { fixedPrompt, fromRows, measureScenario, parseLengths, readRows, shareGpt, synthetic, trace, type ProbeJob, type RunEvent, type Scenario, type ScenarioResult, type Workload } from '../probe/index';
import type { Report, Slo } from '../report/report';
import { caveatSentence, ms, waitWords } from '../report/format';
import { wrap } from '../report/terminalReport';
import { exitCode, oneOf, UsageError, wholeNumber, type CommandContext } from './command';
import { followRun, sayWhereReportIs, type Followed } from './following';
import { besideOf, largestPrompt, readTextInput } from './input';
import { note, print, progressLine, stopHint } from './output';
import { createJob } from './probe';
import { paragraphs } from './scenarioText';
import { resolveTarget, targetOptions, targetUsage } from './target';

/** Flags of every experiment. */
export const scenarioOptions = {
  ...targetOptions,
  lab: { type: 'string' },
  'max-tokens': { type: 'string' },
  warmup: { type: 'string' },
  cache: { type: 'string' },
  objective: { type: 'string' },
  'slo-ttft': { type: 'string' },
  'slo-tpot': { type: 'string' },
  'slo-total': { type: 'string' },
  attainment: { type: 'string' },
  'max-requests': { type: 'string' },
  'max-total-tokens': { type: 'string' },
  'max-cost': { type: 'string' },
  json: { type: 'boolean' },
  save: { type: 'string' },
} as const;

/** What the usage texts say about them. */
export const scenarioUsage = `${targetUsage}

  --lab "FLAGS"        with --demo: flags of the simulated server, as in --lab "--policy timed"

  --max-tokens N       length of an answer (128); exact where the server allows it (ignore_eos, min_tokens)
  --warmup N           requests before the measured ones (1)
  --cache cold|as-is   cold (default) makes prompts new to the prefix cache
  --objective chat|batch
  --slo-ttft MS, --slo-tpot MS, --slo-total MS, --attainment SHARE   over firstToken.slo
  --max-requests N, --max-total-tokens N, --max-cost X   the budget of the whole experiment
  --json               the result as JSON on stdout, nothing else
  --save REPORT        where to write the report (always written; default: the state folder, see first-token show)

Ctrl-C stops and keeps what was measured. Exit code: 0 ok, 1 SLO missed, 2 wrong usage, 3 no request succeeded.`;

/** Flags that say what to send. */
export const workloadOptions = {
  data: { type: 'string' },
  'prompt-tokens': { type: 'string' },
  'output-tokens': { type: 'string' },
  'prefix-tokens': { type: 'string' },
  turns: { type: 'string' },
  sharegpt: { type: 'string' },
  trace: { type: 'string' },
  'trace-speed': { type: 'string' },
  seed: { type: 'string' },
} as const;

/** What the usage texts say about them. */
export const workloadUsage = `What to send (default: a built-in short prompt):
  FILE                       a prompt file
  --data FILE.csv|.jsonl     values for the prompt file's variables, a row a request
  --prompt-tokens L          made-up prompts of L tokens: N, lognormal:MEAN:SIGMA or file:PATH
  --output-tokens L          answers of L tokens, in the same forms
  --prefix-tokens K          the first K tokens are the same in all made-up prompts
  --turns N                  made-up conversations of N turns
  --sharegpt FILE            questions of conversations in the form of ShareGPT
  --trace FILE               a trace in the form of Mooncake's, replayed by its timestamps (rate only); --trace-speed X
  --seed N                   other made-up texts and arrivals (1)`;

/** Values of those flags as parsed. */
export interface ScenarioValues {
  readonly [flag: string]: string | boolean | string[] | undefined;
}

const text = (values: ScenarioValues, flag: string): string | undefined => {
  const value = values[flag];
  return typeof value === 'string' ? value : undefined;
};

/** A number above 0, or a UsageError naming the flag. */
export function positive(values: ScenarioValues, flag: string): number | undefined {
  const given = text(values, flag);
  if (given === undefined) return undefined;
  const value = Number(given);
  if (given.trim() === '' || !Number.isFinite(value) || value <= 0) throw new UsageError(`--${flag} takes a number above 0; got "${given}".`);
  return value;
}

/** Rising numbers separated by commas, or a UsageError naming the flag. */
export function numberList(values: ScenarioValues, flag: string): number[] | null {
  const given = text(values, flag);
  if (given === undefined) return null;
  const list = given.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  if (list.some((n) => !Number.isFinite(n) || n <= 0)) throw new UsageError(`--${flag} takes numbers above 0 separated by commas, as in 1,4,16; got "${given}".`);
  return list;
}

/** The seed of a run. */
export function seedIn(values: ScenarioValues): number {
  return wholeNumber('--seed', text(values, 'seed'), { min: 0, max: 2 ** 31 }) ?? 1;
}

/** The limits that the flags give, to lay over the settings'. */
export function sloFlags(values: ScenarioValues): Partial<Slo> {
  const attainment = positive(values, 'attainment');
  const limits = { ttft: positive(values, 'slo-ttft'), tpot: positive(values, 'slo-tpot'), total: positive(values, 'slo-total'), attainment };
  return Object.fromEntries(Object.entries(limits).filter(([, value]) => value !== undefined));
}

/** The workload the flags ask for. Throws a UsageError or PlanError that names the flag. */
export async function workloadOf(values: ScenarioValues, job: Pick<ProbeJob, 'prompt' | 'promptName'>, promptFile: string | null, cwd: string): Promise<Workload> {
  const cold = values['cache'] !== 'as-is';
  const sources = ['data', 'sharegpt', 'trace'].filter((flag) => values[flag] !== undefined);
  const madeUp = ['prompt-tokens', 'prefix-tokens', 'turns'].filter((flag) => values[flag] !== undefined);
  if (sources.length + Math.min(1, madeUp.length) > 1) throw new UsageError(`--${[...sources, ...madeUp].join(' and --')} cannot be combined: choose one thing to send.`);
  if (promptFile !== null && (madeUp.length > 0 || sources.some((flag) => flag !== 'data'))) throw new UsageError(`${promptFile} and --${[...sources, ...madeUp].join(', --')} cannot be combined: choose one thing to send.`);
  const salted = (workload: Workload): Workload => (cold ? workload : { ...workload, salt: 'none' });
  const data = text(values, 'data');
  if (data !== undefined) return salted(await rowsOf(data, promptFile, cwd));
  const sharegpt = text(values, 'sharegpt');
  if (sharegpt !== undefined) return salted(shareGpt(sharegpt, await readTextInput(cwd, '--sharegpt', sharegpt)));
  const traceFile = text(values, 'trace');
  if (traceFile !== undefined) return salted(trace(traceFile, await readTextInput(cwd, '--trace', traceFile), positive(values, 'trace-speed') ?? 1));
  const lengths = async (flag: string) => {
    const given = text(values, flag);
    if (given === undefined) return null;
    const file = given.startsWith('file:') ? given.slice('file:'.length) : '';
    const held = file === '' ? '' : await readTextInput(cwd, `--${flag}`, file);
    return parseLengths(`--${flag}`, given, () => held);
  };
  const outputTokens = await lengths('output-tokens');
  if (madeUp.length > 0) {
    return salted(synthetic({
      prefixTokens: wholeNumber('--prefix-tokens', text(values, 'prefix-tokens'), { min: 0, max: 1_000_000 }) ?? 0,
      promptTokens: (await lengths('prompt-tokens')) ?? (() => 64),
      outputTokens,
      turns: wholeNumber('--turns', text(values, 'turns'), { min: 1, max: 1000 }) ?? 1,
      seed: seedIn(values),
    }));
  }
  const fixed = fixedPrompt(job.prompt, job.promptName);
  if (outputTokens === null) return salted(fixed);
  const drawn = synthetic({ prefixTokens: 0, promptTokens: () => 1, outputTokens, turns: 1, seed: seedIn(values) });
  return salted({ ...fixed, item: (index) => ({ ...fixed.item(index), maxTokens: drawn.item(index).maxTokens }) });
}

async function rowsOf(data: string, promptFile: string | null, cwd: string): Promise<Workload> {
  if (promptFile === null) throw new UsageError('--data fills in the variables of a prompt file: name the file too.');
  const rows = readRows(data, await readTextInput(cwd, '--data', data));
  const source = await readTextInput(cwd, 'The prompt file', promptFile, largestPrompt);
  const { prepare, renderFile } = await import('../prompt/index');
  await prepare([promptFile]);
  return fromRows(path.basename(promptFile), data, rows, (row) => renderFile(source, path.resolve(cwd, promptFile), besideOf(cwd, promptFile), row));
}

/** An experiment as a command sees it. */
export interface Experiment<Result extends ScenarioResult> {
  readonly values: ScenarioValues;
  readonly promptFile: string | null;
  /** Default length of an answer. */
  readonly maxTokens: number;
  /** The simulated server's flags for `--demo` unless `--lab` gives others. */
  readonly lab?: readonly string[];
  readonly scenario: (job: ProbeJob) => Promise<Scenario<Result>> | Scenario<Result>;
  /** The table over the sentences. */
  readonly table: (result: Result) => string;
  /** 1 when the result says that the SLO is missed. */
  readonly missed?: (result: Result) => boolean;
}

/** The arguments of an experiment, ready to be parsed: the value of `--lab` begins with a dash, which only an equals sign makes a value. */
export function experimentArgs(args: readonly string[]): string[] {
  const all: string[] = [];
  for (let i = 0; i < args.length; i += 1) {
    const next = args[i + 1];
    if (args[i] === '--lab' && next !== undefined) {
      all.push(`--lab=${next}`);
      i += 1;
    } else all.push(args[i]!);
  }
  return all;
}

/** Splits `--lab` as a shell would, quotes included. */
function labFlags(values: ScenarioValues, own: readonly string[]): string[] {
  const given = text(values, 'lab');
  if (given === undefined) return [...own];
  if (values['demo'] !== true) throw new UsageError('--lab is for the simulated server: use it with --demo.');
  return [...given.matchAll(/"([^"]*)"|'([^']*)'|(\S+)/g)].map((match) => match[1] ?? match[2] ?? match[3]!);
}

/** Settings over the flags, and the job of a terminal run with the SLO of the flags. `stop` ends the demo server. */
export async function scenarioJob(values: ScenarioValues, context: CommandContext, promptFile: string | null, maxTokens: number, lab: readonly string[] = []): Promise<{ readonly job: ProbeJob; readonly file: string | null; readonly stop: () => Promise<void> }> {
  const target = await resolveTarget(values, context, labFlags(values, lab));
  try {
    const given = {
      maxTokens: wholeNumber('--max-tokens', text(values, 'max-tokens'), { min: 1, max: 1_000_000 }) ?? (settingOf(target.settings, 'maxTokens') === undefined ? maxTokens : undefined),
      warmup: wholeNumber('--warmup', text(values, 'warmup'), { min: 0, max: 1000 }),
      cache: oneOf('--cache', text(values, 'cache'), ['cold', 'as-is'] as const) ?? 'cold',
      maxRequests: wholeNumber('--max-requests', text(values, 'max-requests'), { min: 1, max: 10_000_000 }),
      maxTotalTokens: wholeNumber('--max-total-tokens', text(values, 'max-total-tokens'), { min: 1, max: 1e12 }),
      maxCost: positive(values, 'max-cost'),
    };
    const flags = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined));
    const { job, file } = await createJob(context, target, promptFile, flags, oneOf('--objective', text(values, 'objective'), ['chat', 'batch'] as const), text(values, 'save'));
    return { job: { ...job, slo: { ...job.slo, ...sloFlags(values) } }, file, stop: () => target.stop() };
  } catch (error) {
    await target.stop();
    throw error;
  }
}

function settingOf(settings: Readonly<Record<string, unknown>>, name: string): unknown {
  const probe = settings['probe'];
  return probe !== null && typeof probe === 'object' ? (probe as Record<string, unknown>)[name] : undefined;
}

/** Runs an experiment to its end, prints its result and gives the exit code. */
export async function runExperiment<Result extends ScenarioResult>(experiment: Experiment<Result>, context: CommandContext): Promise<number> {
  const { values, promptFile, maxTokens, lab } = experiment;
  const json = values['json'] === true;
  const { job, file, stop } = await scenarioJob(values, context, promptFile, maxTokens, lab);
  try {
    const scenario = await experiment.scenario(job);
    const followed = await follow(job, scenario, context, json);
    const { report } = followed;
    if (report === null) return exitCode.noneSucceeded;
    const result = report.scenario?.result as Result;
    if (json) await print(`${JSON.stringify(result)}\n`);
    else await print(shown(experiment.table(result), result, report));
    sayWhereReportIs(followed, file, json);
    const succeeded = (report.outcomes.ok ?? 0) + (report.outcomes['not-streaming'] ?? 0) > 0;
    if (!succeeded) return exitCode.noneSucceeded;
    return experiment.missed?.(result) ? exitCode.sloMissed : exitCode.ok;
  } finally {
    await stop();
  }
}

function shown(table: string, result: ScenarioResult, report: Report): string {
  const width = Math.min(120, process.stdout.columns || 100);
  const told = new Set(['client-bottleneck', 'late-start', 'stopped', 'failures-left-out', 'clock-error']);
  const caveats = report.caveats.filter(({ kind }) => told.has(kind)).map((caveat) => wrap(`! ${caveatSentence(caveat)}`, width).join('\n'));
  return `${[table, paragraphs(result.sentences, width), caveats.join('\n')].filter((block) => block !== '').join('\n\n')}\n`;
}

async function follow<Result extends ScenarioResult>(job: ProbeJob, scenario: Scenario<Result>, context: CommandContext, quiet: boolean): Promise<Followed> {
  const progress = progressLine();
  let step = '';
  return followRun(measureScenario(job, scenario, context.signal), (event) => {
    if (event.type === 'begin' && event.detection && event.detection.evidence.length > 0 && !quiet) note(event.detection.evidence.join(' '));
    if (event.type === 'sample') step = String(event.sample.labels['step'] ?? step);
    if (event.type === 'live') progress.show(liveLine(scenario.name, step, event), stopHint);
  }).finally(progress.clear);
}

function liveLine(name: string, step: string, event: Extract<RunEvent, { type: 'live' }>): string {
  if (event.wait) return `${name}: ${event.done} of ${event.total} answered; ${waitWords(event.wait)}`;
  return `${name} ${step}: ${event.done}/${event.total} answered, ${event.rows.length} streaming${event.eta === null ? '' : `, about ${ms(event.eta)} left in this step`}`;
}
