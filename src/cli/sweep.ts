import { sweep, type SweepResult } from '../probe/index';
import { outOf } from '../report/format';
import { parse, wholeNumber, type Command } from './command';
import { experimentArgs, numberList, positive, runExperiment, scenarioOptions, scenarioUsage, workloadOf, workloadOptions, workloadUsage } from './scenario';
import { alignedTable, bar, number } from './scenarioText';

/** Seconds a sweep of the demo may take. */
const demoSeconds = 34;

/** `first-token sweep`: how many users at once before the SLO breaks. */
export const sweepCommand: Command = {
  summary: 'Raise the concurrency until the SLO breaks, and find the knee',
  usage: `first-token sweep [FILE] [OPTIONS]

  --steps LIST         concurrencies to climb, as in 1,8,32 (default 1, 2, 4 …)
  --most N             never more at once (256)
  --within SECONDS     begin no step that would end later (no limit; ${demoSeconds} with --demo)
  --tolerance SHARE    enclose the knee this closely (0.125)

${workloadUsage}

${scenarioUsage}`,
  async run(context) {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, ...workloadOptions, steps: { type: 'string' }, most: { type: 'string' }, within: { type: 'string' }, tolerance: { type: 'string' } }, { most: 1, what: 'one prompt file' });
    const list = numberList(values, 'steps');
    const most = wholeNumber('--most', values.most, { min: 1, max: 1000 }) ?? 256;
    const within = positive(values, 'within') ?? (values.demo ? demoSeconds : undefined);
    const promptFile = positionals[0] ?? null;
    return runExperiment<SweepResult>({
      values,
      promptFile,
      maxTokens: 128,
      scenario: async (job) => sweep({ workload: await workloadOf(values, job, promptFile, context.cwd), list, most, within: within === undefined ? null : within * 1000, tolerance: positive(values, 'tolerance') ?? 0.125 }),
      table: sweepTable,
      missed: ({ knee, steps }) => knee === null && steps.some(({ verdict }) => verdict === 'missed'),
    }, context);
  },
};

function sweepTable({ steps, knee, ended }: SweepResult): string {
  const most = Math.max(0, ...steps.map((step) => step.throughput.tokensPerSecond ?? 0));
  const head = ['at once', 'requests', 'tokens/s', 'per user/s', 'goodput/s', 'TTFT p50', 'TTFT p95', 'good', 'SLO', ''];
  const rows = steps.map((step) => [
    String(step.concurrency),
    String(step.requests),
    number(step.throughput.tokensPerSecond),
    number(step.perUser?.p50),
    number(step.goodput?.perSecond),
    number(step.summary.ttft?.p50),
    number(step.summary.ttft?.p95),
    step.attainment === null ? '' : outOf(step.attainment.good, step.attainment.due),
    step.verdict ?? (step.clientBottleneck === null ? '' : 'no verdict'),
    `${bar(step.throughput.tokensPerSecond, most, 20)}${step.concurrency === knee?.concurrency ? ' ◄ knee' : ''}`,
  ]);
  return `${alignedTable([head, ...rows])}\n\nEnded: ${ended}.`;
}
