import path from 'node:path';
import { checkProof, prefixProof, prepareProof, type PrefixResult, type ProbeJob, type ProofSubject, type ProofTarget } from '../probe/index';
import { proofPair, ruleArithmetic } from '../prompt/proofPair';
import { interval } from '../report/format';
import { proofKinds } from '../report/proof';
import { oneOf, parse, UsageError, wholeNumber, type Command, type CommandContext } from './command';
import { besideOf, largestPrompt, readInput } from './input';
import { experimentArgs, numberList, runExperiment, scenarioOptions, scenarioUsage } from './scenario';
import { alignedTable, number } from './scenarioText';
import { readWorkspaceSettings } from './settings';

const scopes = ['conversation', 'user', 'everyone'] as const;

/** `first-token prove`: what the prefix cache really serves of a prompt file, beside what its rule predicts. */
export const proveCommand: Command = {
  summary: 'Prove what the prefix cache serves of a prompt file: predicted and served tokens, cold and warm',
  usage: `first-token prove FILE [OPTIONS]

  FILE                 a prompt file; it is sent cold, once more, and as a later request would send it
  --pairs N            how often (6, the least that gives the median an interval)
  --rule RULE          the cache to predict by: vllm, sglang, llamacpp, openai … (default: that of the endpoint)
  --scope SCOPE        conversation, user or everyone: what counts as changing (firstToken.prefix.scope, else user)
  --affinity N         then send one prefix N times and tell which attempts hit (a router without affinity misses)
  --expiry LIST        then wait so many seconds before a repeat, each with a prefix of its own, as in 60,300,600

${scenarioUsage}`,
  async run(context) {
    const { values, positionals } = parse(experimentArgs(context.args), { ...scenarioOptions, pairs: { type: 'string' }, rule: { type: 'string' }, scope: { type: 'string' }, affinity: { type: 'string' }, expiry: { type: 'string' } }, { most: 1, least: 1, what: 'the prompt file to prove' });
    const file = positionals[0]!;
    const pairs = wholeNumber('--pairs', values.pairs, { min: 1, max: 1000 }) ?? 6;
    const affinity = wholeNumber('--affinity', values.affinity, { min: 2, max: 1000 }) ?? 0;
    const expiry = numberList(values, 'expiry') ?? [];
    const subject = await subjectOf(file, context, { rule: values.rule, scope: oneOf('--scope', values.scope, scopes) });
    return runExperiment<PrefixResult>({
      values,
      promptFile: file,
      maxTokens: 8,
      scenario: async (job) => {
        // Before anything is sent, the server's tokenizer included.
        checkProof({ pairs, affinity, expiry }, job.settings);
        return prefixProof({ planned: await prepareProof(job, { pairs, subject: subject(job) }, context.signal), affinity, expiry });
      },
      table: proofTable,
    }, context);
  },
};

/** Renders and judges the file once the endpoint is known. */
async function subjectOf(file: string, { cwd }: CommandContext, given: { readonly rule: string | undefined; readonly scope: (typeof scopes)[number] | undefined }): Promise<(job: ProbeJob) => (target: ProofTarget) => Promise<ProofSubject>> {
  const prompt = await import('../prompt/index');
  if (given.rule !== undefined && !prompt.ruleIds().includes(given.rule)) throw new UsageError(`--rule takes ${prompt.ruleIds().join(', ')}; got "${given.rule}".`);
  const prefix = (readWorkspaceSettings(cwd).values['prefix'] ?? {}) as { readonly scope?: (typeof scopes)[number]; readonly variables?: Record<string, string>; readonly rules?: unknown };
  const full = path.resolve(cwd, file);
  await prompt.prepare([file]);
  const text = prompt.decode(await readInput(full, largestPrompt, `The prompt file ${file}`));
  const parsed = prompt.parsePromptFile(text, full, { readFile: besideOf(cwd, file) });
  if (parsed === null || parsed.prompts.length === 0) throw new UsageError(`${file} holds no prompt: name a prompt file, or lint it to see why (first-token lint ${file}).`);
  return (job) => async ({ server, dialect, url, model }) => {
    const today = new Date();
    const { rule } = prompt.ruleFor({ cache: given.rule ?? job.endpoint.cache, server, dialect, url, model }, prompt.loadRules(prefix.rules ?? {}, today.toISOString().slice(0, 10)));
    const { o200kCounter } = await import('../prompt/tokenizer');
    const counter = prompt.remembering(o200kCounter(rule.id.startsWith('openai') || rule.id === 'azure'));
    const analysed = prompt.analyseFile(parsed, { rule, model, scope: given.scope ?? prefix.scope ?? 'user', variables: prefix.variables ?? {}, counter, today });
    return { ...proofPair(prompt, analysed, today.getTime()), rule: ruleArithmetic(prompt, rule, model, counter) };
  };
}

function proofTable({ rows, verdict, failure }: PrefixResult): string {
  if (failure !== null) return verdict;
  const head = ['', 'answers', 'prompt tokens', 'predicted', 'served', 'from', 'TTFT p50 ms', '95 % interval', ''];
  const tokens = (value: number | null) => (value === null ? '–' : Math.round(value).toLocaleString('en-US'));
  const body = rows.map((row) => [
    proofKinds[row.kind],
    String(row.n),
    tokens(row.promptTokens),
    row.predicted === null ? (row.kind === 'cold' ? '0' : '') : `${row.predicted.exact ? '' : '≈'}${tokens(row.predicted.tokens)}`,
    row.served === null ? 'not told' : row.served.min === row.served.max ? tokens(row.served.p50) : `${tokens(row.served.p50)} (${tokens(row.served.min)}–${tokens(row.served.max)})`,
    row.served === null ? '' : row.served.from === 'usage' ? 'answers' : 'counters',
    number(row.ttft?.p50),
    row.ttft === null ? '' : interval([row.ttft.low, row.ttft.high]),
    { yes: '✓ as predicted', less: '✗ less', more: '✗ more', unknown: '' }[row.state],
  ]);
  return `${verdict}\n\n${alignedTable([head, ...body])}`;
}
