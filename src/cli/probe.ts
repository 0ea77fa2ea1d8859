import path from 'node:path';
import type { ChatPrompt } from '../prompt/prompt';
import { createMemory, createRedactor, createReportFile, defaultProbeSettings, probe, readProbeSettings, secretsOf, type ProbeJob, type RunEvent } from '../probe/index';
import type { Report } from '../report/report';
import { ms } from '../report/format';
import { renderReport } from '../report/terminalReport';
import { exitCode, oneOf, parse, UsageError, wholeNumber, type Command, type CommandContext } from './command';
import { networkOf, readerPaceOf, sloOf, terminalEnvironment } from './environment';
import { followRun, sayWhereReportIs } from './following';
import { besideOf, largestPrompt, readInput } from './input';
import { inColour, note, print, printable, progressLine, stopHint } from './output';
import { nextReportFile, refuseOverwriting } from './reports';
import { resolveTarget, targetOptions, targetUsage, type CliTarget } from './target';

/** What is sent when no file is named: short, and open-ended enough for some hundred tokens. */
export const builtInPrompt: ChatPrompt = {
  messages: [{ role: 'user', text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }],
  tools: [],
};

const options = {
  ...targetOptions,
  n: { type: 'string', short: 'n' },
  c: { type: 'string', short: 'c' },
  'max-tokens': { type: 'string' },
  warmup: { type: 'string' },
  cache: { type: 'string' },
  objective: { type: 'string' },
  json: { type: 'boolean' },
  save: { type: 'string' },
  text: { type: 'boolean' },
  fault: { type: 'string', multiple: true },
} as const;

/** `first-token probe`: streams a prompt, prints every token's place in time and the percentile table. */
export const probeCommand: Command = {
  summary: 'Stream a prompt at an endpoint and see every token arrive',
  usage: `first-token probe [FILE] [OPTIONS]

  FILE                 a prompt file (default: a built-in short prompt)
${targetUsage}

  -n N                 measured requests (20)
  -c N                 requests at a time (1)
  --max-tokens N       longest answer (128)
  --warmup N           requests before the measured ones (1)
  --cache cold|as-is   cold makes every prompt new to the prefix cache (as-is)
  --objective chat|batch
  --text               print the answers too
  --json               the report as JSON on stdout, nothing else
  --save REPORT        where to write the report (always written; default: the state folder, see first-token show)
  --fault FAULT        with --demo: make the simulated server fail, see first-token simulate --help

Exit code: 0 ok, 1 SLO missed, 2 wrong usage, 3 no request succeeded.`,
  async run(context) {
    const { values, positionals } = parse(context.args, options, { most: 1, what: 'one prompt file' });
    if (values.fault && !values.demo) throw new UsageError('--fault is for the simulated server: use it with --demo.');
    const target = await resolveTarget(values, context, (values.fault ?? []).flatMap((fault) => ['--fault', fault]));
    try {
      const given = { requests: wholeNumber('-n', values.n, { min: 1, max: 100_000 }), concurrency: wholeNumber('-c', values.c, { min: 1, max: 1000 }), warmup: wholeNumber('--warmup', values.warmup, { min: 0, max: 1000 }), maxTokens: wholeNumber('--max-tokens', values['max-tokens'], { min: 1, max: 1_000_000 }), cache: oneOf('--cache', values.cache, ['cold', 'as-is'] as const) };
      const job = await createJob(context, target, positionals[0] ?? null, Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)), oneOf('--objective', values.objective, ['chat', 'batch'] as const), values.save);
      return await follow(job.job, job.file, context, { json: values.json === true, text: values.text === true });
    } finally {
      await target.stop();
    }
  },
};

/** The job of a terminal run: settings of the folder, then the flags. `file` is where the report goes, null when nowhere. */
export async function createJob(context: CommandContext, target: CliTarget, promptFile: string | null, flags: Readonly<Record<string, unknown>>, objectiveFlag: 'chat' | 'batch' | undefined, save: string | undefined): Promise<{ readonly job: ProbeJob; readonly file: string | null }> {
  const { settings } = target;
  const objective = objectiveFlag ?? oneOf('firstToken.objective', settings['objective'] as string | undefined, ['chat', 'batch'] as const) ?? 'chat';
  const probeSettings = readProbeSettings(flags, readProbeSettings(settings['probe'], { ...defaultProbeSettings, maxTokens: 128 }));
  const { prompt, name, unrendered } = await readPrompt(promptFile, context.cwd);
  const file = save === undefined ? nextReportFile(context.env, new Date()) : path.resolve(context.cwd, save);
  if (save !== undefined && file !== null) refuseOverwriting(file, '--save');
  if (file === null) note('The report will not be kept: the state folder cannot be written. --save FILE says where else to write it.');
  const { network, timeouts } = networkOf(settings, context.env);
  return {
    file,
    job: {
      endpoint: target.endpoint,
      key: target.key,
      prompt,
      promptName: name,
      settings: probeSettings,
      slo: sloOf(settings, objective),
      objective,
      readerPace: readerPaceOf(settings),
      network,
      timeouts,
      environment: terminalEnvironment(context.env),
      recorderScript: path.join(context.dist, 'recorder.js'),
      reportFile: file === null ? null : createReportFile(file, save !== undefined),
      memory: createMemory(),
      unrendered,
      keepText: false,
    },
  };
}

/** The prompt of a file, rendered with its own samples; the built-in one without a file. Throws a UsageError for what cannot be read. */
export async function readPrompt(file: string | null, cwd: string): Promise<{ readonly prompt: ChatPrompt; readonly name: string; readonly unrendered: readonly string[] }> {
  if (file === null) return { prompt: builtInPrompt, name: 'built-in', unrendered: [] };
  const bytes = await readInput(path.resolve(cwd, file), largestPrompt, `The prompt file ${file}`);
  if (bytes.subarray(0, 8000).includes(0)) throw new UsageError(`${file} is a binary file: give a text file with the prompt.`);
  const { prepare, renderFile } = await import('../prompt/index');
  await prepare([file]);
  const { prompt, unrendered, asWritten } = renderFile(bytes.toString('utf8'), path.resolve(cwd, file), besideOf(cwd, file));
  return { prompt, name: path.basename(file), unrendered: [...unrendered, ...asWritten] };
}

/** Runs a job to its end, with progress on stderr; prints the report and gives the exit code. */
async function follow(job: ProbeJob, file: string | null, context: CommandContext, output: { readonly json: boolean; readonly text: boolean }): Promise<number> {
  const progress = progressLine();
  const redact = createRedactor([job.key, ...secretsOf(job.endpoint.url, job.endpoint.headers)]);
  const followed = await followRun(probe(job, context.signal), async (event) => {
    tell(event, progress);
    if (event.type === 'begin' && event.detection && !output.json) {
      progress.clear();
      if (event.detection.evidence.length > 0) note(event.detection.evidence.join(' '));
    }
    if (event.type === 'sample' && output.text && !output.json) {
      progress.clear();
      await print(printable(redact(`#${event.sample.id}\n${event.decoded.reasoning === '' ? '' : `${event.decoded.reasoning}\n---\n`}${event.decoded.text}\n\n`)));
    }
  }).finally(progress.clear);
  const { report } = followed;
  if (!report) return exitCode.noneSucceeded;
  if (output.json) await print(`${JSON.stringify(report)}\n`);
  else await print(renderReport(report, { width: process.stdout.columns || 100, colour: inColour(context.env) }), inColour(context.env));
  sayWhereReportIs(followed, file, output.json);
  return verdictCode(report);
}

/** 3 when nothing succeeded, 1 when the SLO was missed, else 0. */
export function verdictCode(report: Report): number {
  const succeeded = (report.outcomes.ok ?? 0) + (report.outcomes['not-streaming'] ?? 0);
  if (succeeded === 0) return exitCode.noneSucceeded;
  return report.verdict === 'missed' ? exitCode.sloMissed : exitCode.ok;
}

function tell(event: RunEvent, { show }: Pick<ReturnType<typeof progressLine>, 'show'>): void {
  if (event.type === 'begin') show(`Sending ${event.total} requests to ${event.report.endpoint.name} …`);
  if (event.type !== 'live') return;
  const tokens = event.rows.reduce((sum, row) => sum + row.t.length, 0);
  show(`${event.done}/${event.total}  ${event.rows.length} streaming, ${tokens} tokens just now${event.eta === null ? '' : `, about ${ms(event.eta)} left`}`, stopHint);
}
