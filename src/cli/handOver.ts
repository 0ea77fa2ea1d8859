import { writeFileSync } from 'node:fs';
import path from 'node:path';
import { dialects, isLoopback } from '../probe/index';
import { handOverPlan } from '../probe/handOver';
import { readProbeSettings } from '../probe/plan';
import { handOver, HandOverError, handOverTools, type HandOverPlan } from '../report/exchange/handOver';
import { exitCode, oneOf, parse, UsageError, wholeNumber, type Command } from './command';
import { sloOf } from './environment';
import { note, print } from './output';
import { readPrompt } from './probe';
import { positive, sloFlags } from './scenario';
import { resolveTarget, targetOptions, targetUsage } from './target';

/** `first-token hand-over`: the plan of a probe as the command of a tool made for load from many machines. */
export const handOverCommand: Command = {
  summary: 'Turn the plan into the command of vllm bench serve, SGLang, GuideLLM, AIPerf or k6',
  usage: `first-token hand-over --tool ${handOverTools.join('|')} [FILE] [OPTIONS]

  --tool NAME          ${handOverTools.join(', ')}
  --rate X             requests per second instead of -c at a time; --arrivals poisson|constant (poisson)
  --prompt-tokens N    length of the made-up prompts (default: the size of FILE or of the built-in prompt, about, by OpenAI's o200k vocabulary)
  --prefix-tokens K    the first K tokens are the same in all
  --fixed-length       answers of exactly --max-tokens tokens (ignore_eos, min_tokens)
  --seed N             (1)
  --out FILE           write it there instead of to stdout

  -n N, -c N, --max-tokens N, --warmup N, --cache cold|as-is, --objective chat|batch   as in first-token probe
  --slo-ttft MS, --slo-tpot MS, --slo-total MS, --attainment SHARE   over firstToken.slo

${targetUsage}

Nothing is sent. The key is never written: it stands as $FIRST_TOKEN_API_KEY. With --api auto the API is taken from the URL's path, else openai-chat.`,
  async run(context) {
    const { values, positionals } = parse(context.args, options, { most: 1, what: 'one prompt file' });
    const tool = oneOf('--tool', values.tool, handOverTools);
    if (tool === undefined) throw new UsageError(`Say for which tool: --tool ${handOverTools.join('|')}.`);
    if (values.demo) throw new UsageError('The demo endpoint ends with this command, so nothing could be sent to it: run first-token simulate and give its address with --endpoint.');
    const target = await resolveTarget(values, context);
    const rate = positive(values, 'rate');
    if (rate !== undefined && values.c !== undefined) throw new UsageError('--rate and -c cannot be combined: requests come at a rate, or so many at a time.');
    if (rate === undefined && values.arrivals !== undefined) throw new UsageError('--arrivals needs --rate.');
    const { settings, endpoint } = target;
    const objective = oneOf('--objective', values.objective ?? (settings['objective'] as string | undefined), ['chat', 'batch'] as const) ?? 'chat';
    const given = {
      requests: wholeNumber('-n', values.n, { min: 1, max: 100_000 }),
      concurrency: wholeNumber('-c', values.c, { min: 1, max: 1000 }),
      warmup: wholeNumber('--warmup', values.warmup, { min: 0, max: 1000 }),
      maxTokens: wholeNumber('--max-tokens', values['max-tokens'], { min: 1, max: 1_000_000 }),
      cache: oneOf('--cache', values.cache, ['cold', 'as-is'] as const),
    };
    const fromFile = settings['probe'];
    const probeSettings = readProbeSettings({ maxTokens: 128, ...(fromFile !== null && typeof fromFile === 'object' ? fromFile : {}), ...Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) });
    const { prompt, unrendered } = await readPrompt(positionals[0] ?? null, context.cwd);
    if (unrendered.length > 0) note(`Handed over as written, as there is no value for it: ${unrendered.join(', ')}.`);
    const givenTokens = wholeNumber('--prompt-tokens', values['prompt-tokens'], { min: 1, max: 10_000_000 });
    const { countedTokens, o200kCounter } = await import('../prompt/tokenizer');
    const promptTokens = givenTokens ?? countedTokens(prompt, o200kCounter(false));
    const load: HandOverPlan['load'] = rate === undefined ? { kind: 'closed', concurrency: probeSettings.concurrency } : { kind: 'rate', perSecond: rate, arrivals: oneOf('--arrivals', values.arrivals, ['poisson', 'constant'] as const) ?? 'poisson' };
    const prefixTokens = wholeNumber('--prefix-tokens', values['prefix-tokens'], { min: 0, max: 10_000_000 });
    const plan = handOverPlan({
      dialect: dialects[endpoint.api === 'auto' ? apiOfPath(endpoint.url) : endpoint.api],
      endpoint,
      keyVariable: target.key === null && isLoopback(endpoint) ? null : 'FIRST_TOKEN_API_KEY',
      prompt,
      settings: probeSettings,
      slo: { ...sloOf(settings, objective), ...sloFlags(values) },
      load,
      promptTokens,
      counted: givenTokens === undefined,
      ...(prefixTokens === undefined ? {} : { prefixTokens }),
      fixedLength: values['fixed-length'] === true,
      seed: wholeNumber('--seed', values.seed, { min: 0, max: 2 ** 31 }) ?? 1,
    });
    const made = handedOver(plan, tool);
    if (values.out === undefined) await print(made.text);
    else {
      try {
        writeFileSync(path.resolve(context.cwd, values.out), made.text);
      } catch (error) {
        throw new UsageError(`--out ${values.out} cannot be written: ${(error as Error).message}.`);
      }
      note(`Written to ${values.out}.`);
    }
    return exitCode.ok;
  },
};

const options = {
  ...targetOptions,
  tool: { type: 'string' },
  n: { type: 'string', short: 'n' },
  c: { type: 'string', short: 'c' },
  'max-tokens': { type: 'string' },
  warmup: { type: 'string' },
  cache: { type: 'string' },
  objective: { type: 'string' },
  rate: { type: 'string' },
  arrivals: { type: 'string' },
  'prompt-tokens': { type: 'string' },
  'prefix-tokens': { type: 'string' },
  'fixed-length': { type: 'boolean' },
  seed: { type: 'string' },
  out: { type: 'string' },
  'slo-ttft': { type: 'string' },
  'slo-tpot': { type: 'string' },
  'slo-total': { type: 'string' },
  attainment: { type: 'string' },
} as const;

/** The API a full path names; openai-chat for an origin or a base. */
function apiOfPath(url: string): keyof typeof dialects {
  const paths: readonly (readonly [RegExp, keyof typeof dialects])[] = [
    [/\/openai\/deployments\//, 'azure'],
    [/\/chat\/completions\/?$/, 'openai-chat'],
    [/\/completions\/?$/, 'openai-completions'],
    [/\/responses\/?$/, 'openai-responses'],
    [/\/messages\/?$/, 'anthropic'],
    [/\/api\/chat\/?$/, 'ollama'],
    [/\/v2\/chat\/?$/, 'cohere'],
    [/\/completion\/?$/, 'llamacpp'],
    [/:(?:stream)?[gG]enerateContent$/, 'gemini'],
  ];
  const { pathname } = new URL(url.replace(/^unix:[^:]*:?/, 'http://unix'));
  return paths.find(([pattern]) => pattern.test(pathname))?.[1] ?? 'openai-chat';
}

function handedOver(plan: HandOverPlan, tool: Parameters<typeof handOver>[1]): ReturnType<typeof handOver> {
  try {
    return handOver(plan, tool);
  } catch (error) {
    throw error instanceof HandOverError ? new UsageError(error.message) : error;
  }
}
