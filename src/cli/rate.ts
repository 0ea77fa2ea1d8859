import { rate, type RateResult } from '../probe/index';
import { outOf } from '../report/format';
import { oneOf, parse, wholeNumber, type Command } from './command';
import { experimentArgs, numberList, positive, runExperiment, scenarioOptions, scenarioUsage, seedIn, workloadOf, workloadOptions, workloadUsage } from './scenario';
import { alignedTable, number } from './scenarioText';

/** `first-token rate`: open loop, and the rate that can be sustained. */
export const rateCommand: Command = {
  summary: 'Send at a rate, whatever is still running, and find the rate that can be sustained',
  usage: `first-token rate [FILE] [OPTIONS]

  --rates LIST         requests per second to climb, as in 1,2,4; one alone is only measured (default: doubling)
  --arrivals KIND      constant, or poisson: independent users (poisson)
  --duration SECONDS   length of a step, at least 20 requests (5)
  --most RATE          never faster (1000)
  --within SECONDS     begin no step that would end later (no limit)
  --tolerance SHARE    enclose the sustainable rate this closely (0.1)
  --most-in-flight N   no more at once; what it holds back starts late, and the rows from due say so (1000)

${workloadUsage}

${scenarioUsage}`,
  async run(context) {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, ...workloadOptions, rates: { type: 'string' }, arrivals: { type: 'string' }, duration: { type: 'string' }, most: { type: 'string' }, within: { type: 'string' }, tolerance: { type: 'string' }, 'most-in-flight': { type: 'string' } }, { most: 1, what: 'one prompt file' });
    const within = positive(values, 'within');
    const options = {
      arrivals: oneOf('--arrivals', values.arrivals, ['constant', 'poisson'] as const) ?? 'poisson',
      seed: seedIn(values),
      list: numberList(values, 'rates'),
      most: positive(values, 'most') ?? 1000,
      duration: (positive(values, 'duration') ?? 5) * 1000,
      within: within === undefined ? null : within * 1000,
      tolerance: positive(values, 'tolerance') ?? 0.1,
      mostInFlight: wholeNumber('--most-in-flight', values['most-in-flight'], { min: 1, max: 4096 }) ?? 1000,
    };
    const promptFile = positionals[0] ?? null;
    return runExperiment<RateResult>({
      values,
      promptFile,
      maxTokens: 128,
      scenario: async (job) => rate({ ...options, workload: await workloadOf(values, job, promptFile, context.cwd) }),
      table: rateTable,
      missed: ({ knee, steps }) => knee === null && steps.some(({ verdict }) => verdict === 'missed'),
    }, context);
  },
};

function rateTable({ steps, knee, ended, arrivals }: RateResult): string {
  const head = ['per second', 'requests', 'tokens/s', 'goodput/s', 'TTFT p50', 'p99', 'from due p50', 'p99', 'late p99', 'queue +ms/s', 'good', 'SLO', ''];
  const rows = steps.map((step) => [
    number(step.rate),
    String(step.requests),
    number(step.throughput.tokensPerSecond),
    number(step.goodput?.perSecond),
    number(step.summary.ttft?.p50),
    number(step.summary.ttft?.p99),
    number(step.fromDue.ttft?.p50),
    number(step.fromDue.ttft?.p99),
    number(step.late?.p99),
    step.queue?.growing ? number(step.queue.perSecond) : '',
    step.attainment === null ? '' : outOf(step.attainment.good, step.attainment.due),
    step.verdict ?? (step.clientBottleneck === null ? '' : 'no verdict'),
    step.rate === knee?.rate ? '◄ sustainable' : '',
  ]);
  return `${alignedTable([head, ...rows])}\n\n${arrivals} arrivals. Ended: ${ended}.`;
}
