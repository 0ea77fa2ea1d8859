import { encoder, readRows, type EncoderInput, type EncoderResult } from '../probe/index';
import { digits, outOf } from '../report/format';
import { oneOf, parse, UsageError, wholeNumber, type Command, type CommandContext } from './command';
import { usageWithout } from './help';
import { readTextInput } from './input';
import { note } from './output';
import { experimentArgs, numberList, runExperiment, scenarioOptions, scenarioUsage, type ScenarioValues } from './scenario';
import { alignedTable, number } from './scenarioText';
import { resolveTarget, type CliTarget } from './target';

const kinds = ['embeddings', 'pooling', 'rerank', 'classify'] as const;

/** Flags of the other experiments that mean nothing here: an encoder writes no tokens, and its API is named by --api-kind. */
const unused = ['api', 'max-tokens', 'cache', 'objective', 'slo-ttft', 'slo-tpot', 'slo-total', 'attainment', 'max-total-tokens'] as const;
const encoderOptions = Object.fromEntries(Object.entries(scenarioOptions).filter(([flag]) => !(unused as readonly string[]).includes(flag))) as Omit<typeof scenarioOptions, (typeof unused)[number]>;
const encoderUsage = usageWithout(scenarioUsage.replace(' --max-total-tokens N,', ''), unused.map((flag) => `--${flag}`)).replace(' 1 SLO missed,', '');

/** `first-token encoder`: batch size, padding, and agreement of two endpoints. */
export const encoderCommand: Command = {
  summary: 'Embeddings, pooling, reranking, classification: batch size, padding, agreement of two endpoints',
  usage: `first-token encoder [OPTIONS]

  Verdict: padded, unpadded or unclear.

  --api-kind KIND      ${kinds.join(', ')} (embeddings)
  --sizes LIST         inputs a request (1,2,4,8,16,32,64)
  --input-tokens N     tokens an input (160)
  --repeats N          requests of each size (5)
  --compare NAME|URL   another endpoint that should give the same, and
  --inputs FILE        the inputs to ask both: a text a line, or .csv/.jsonl with text and, optionally, slice and query

${encoderUsage}`,
  async run(context) {
    const { values } = parse(experimentArgs(context.args), { ...encoderOptions, 'api-kind': { type: 'string' }, sizes: { type: 'string' }, 'input-tokens': { type: 'string' }, repeats: { type: 'string' }, compare: { type: 'string' }, inputs: { type: 'string' } }, { most: 0, what: 'options only' });
    const api = oneOf('--api-kind', values['api-kind'], kinds) ?? 'embeddings';
    if ((values.compare === undefined) !== (values.inputs === undefined)) throw new UsageError('--compare and --inputs go together: the other endpoint, and what to ask both.');
    const options = {
      api,
      sizes: numberList(values, 'sizes') ?? [1, 2, 4, 8, 16, 32, 64],
      inputTokens: wholeNumber('--input-tokens', values['input-tokens'], { min: 1, max: 100_000 }) ?? 160,
      repeats: wholeNumber('--repeats', values.repeats, { min: 1, max: 1000 }) ?? 5,
      seed: 1,
    };
    const other = values.compare === undefined ? null : await otherEndpoint(values, values.compare, context);
    const inputs = values.inputs === undefined ? [] : await inputsOf(values.inputs, context.cwd);
    return runExperiment<EncoderResult>({
      values,
      promptFile: null,
      maxTokens: 1,
      scenario: () => encoder({ ...options, compare: other === null ? null : { endpoint: other.endpoint, key: other.key, inputs } }),
      table: encoderTable,
    }, context);
  },
};

/** The endpoint to compare with, found like the first; its demo would be another server. */
async function otherEndpoint(values: ScenarioValues, endpoint: string, context: CommandContext): Promise<CliTarget> {
  const allowed = values['allow-env'];
  return resolveTarget({ endpoint, ...(Array.isArray(allowed) ? { 'allow-env': allowed } : {}), insecure: values['insecure'] === true }, context);
}

async function inputsOf(file: string, cwd: string): Promise<EncoderInput[]> {
  const text = await readTextInput(cwd, '--inputs', file);
  if (!/\.(csv|jsonl|ndjson)$/i.test(file)) {
    const lines = text.split(/\r?\n/).filter((line) => line.trim() !== '');
    if (lines.length === 0) throw new UsageError(`--inputs ${file} holds no text.`);
    return lines.map((line) => ({ text: line, query: null, slice: null }));
  }
  const field = (value: unknown): string | null => (typeof value === 'string' && value !== '' ? value : null);
  return readRows(file, text).map((row, i) => {
    const own = field(row['text']) ?? field(row['document']) ?? field(row['input']);
    if (own === null) throw new UsageError(`--inputs ${file} row ${i + 1} has no "text"; its columns are ${Object.keys(row).join(', ')}.`);
    return { text: own, query: field(row['query']), slice: field(row['slice']) };
  });
}

function encoderTable({ verdict, evidence }: EncoderResult): string {
  const sizes = alignedTable([['batch', 'ms p50', 'ms p95', 'inputs/s', ''], ...evidence.sizes.map((at) => [String(at.batch), digits(at.latencyMs), digits(at.latencyP95Ms), digits(at.itemsPerSecond), at.batch === evidence.bestBatch ? '◄' : ''])]);
  const agreement = evidence.agreement;
  if (agreement !== null && agreement.slices.length === 0) note('The inputs name no slices, so agreement is told overall only.');
  const rows = agreement === null ? '' : `\n\n${alignedTable([['slice', 'inputs', 'cosine mean', 'least', 'same label', 'score ±', ''], ...[agreement.overall, ...agreement.slices].map((a) => [a.slice ?? 'all', String(a.inputs), number(a.cosineMean), number(a.cosineMin), a.sameLabel === null ? '' : outOf(a.sameLabel, a.inputs), a.scoreDifferenceMax === null ? '' : digits(a.scoreDifferenceMax), ''])])}`;
  return `Verdict: ${verdict}\n\n${sizes}${rows}`;
}
