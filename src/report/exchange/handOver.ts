/**
 * A plan as the command or file of a tool made for load beyond one machine. Only options that the tool documents are used: each list
 * below names where. No key is written: keys stand in environment variables. A comment says what the tool will count differently.
 */
import { noteOn, type Tool } from '../definitions';
import type { Slo } from '../report';

/** Tools a plan can be handed over to. */
export type HandOverTool = 'vllm' | 'sglang' | 'guidellm' | 'aiperf' | 'k6';

/** What is to be sent, in numbers that every tool understands. Tokens are estimates where no tokenizer was asked. */
export interface HandOverPlan {
  /** The API as `firstToken.endpoints` names it, `auto` already resolved. */
  readonly api: string;
  /** One request as it would be sent: URL, headers whose values are not secret, and the JSON body. */
  readonly request: { readonly url: string; readonly headers: Readonly<Record<string, string>>; readonly body: string };
  readonly model: string | null;
  /** The environment variable that holds the key; null = none is sent. */
  readonly keyVariable: string | null;
  /** How the key is sent: a header and what stands before the key in it. */
  readonly keyHeader: { readonly name: string; readonly prefix: string } | null;
  /** Names of the endpoint's own headers that are left out because their values may be secret. */
  readonly withheldHeaders: readonly string[];
  /** Extra body fields of the endpoint. */
  readonly body: Readonly<Record<string, unknown>>;
  readonly requests: number;
  readonly warmup: number;
  readonly load: { readonly kind: 'closed'; readonly concurrency: number } | { readonly kind: 'rate'; readonly perSecond: number; readonly arrivals: 'poisson' | 'constant' };
  /** Tokens of the whole prompt, the shared prefix included. */
  readonly promptTokens: number;
  /** The server will count otherwise: its own vocabulary, and the chat template on top. */
  readonly about?: boolean;
  readonly prefixTokens: number;
  readonly outputTokens: number;
  /** Every answer is to have exactly `outputTokens`. */
  readonly fixedLength: boolean;
  /** The prompt repeats, so it is served from the prefix cache from the second request on. */
  readonly repeats: boolean;
  readonly slo: Slo;
  readonly seed: number;
  readonly insecure: boolean;
}

/** A plan in a tool's own form. */
export interface HandOver {
  readonly tool: HandOverTool;
  /** `sh` is a command for a POSIX shell, `js` a script for k6. */
  readonly language: 'sh' | 'js';
  readonly fileName: string;
  readonly text: string;
}

/** The plan cannot be said to this tool; the message says which can. */
export class HandOverError extends Error {
  override readonly name = 'HandOverError';
}

interface Documented {
  readonly name: Tool | 'k6';
  readonly source: string;
  /** As of which state of the source. */
  readonly asOf: string;
  readonly options: readonly string[];
}

/** Every option that is ever written, by tool, and where it is documented. */
export const documentedOptions = {
  vllm: {
    name: 'vllm bench serve',
    source: 'https://docs.vllm.ai/en/latest/cli/bench/serve.html (vllm/benchmarks/serve.py, vllm/benchmarks/datasets)',
    asOf: 'vLLM 009e6d4',
    options: ['--backend', '--base-url', '--endpoint', '--model', '--dataset-name', '--random-input-len', '--random-output-len', '--random-prefix-len', '--random-range-ratio', '--num-prompts', '--num-warmups', '--max-concurrency', '--request-rate', '--burstiness', '--ignore-eos', '--extra-body', '--goodput', '--percentile-metrics', '--metric-percentiles', '--seed', '--insecure', '--save-result', '--save-detailed', '--result-filename'],
  },
  sglang: {
    name: 'SGLang bench_serving',
    source: 'https://docs.sglang.ai/developer_guide/bench_serving.html (python/sglang/bench_serving.py)',
    asOf: 'SGLang 0033168',
    options: ['--backend', '--base-url', '--model', '--dataset-name', '--random-input-len', '--random-output-len', '--random-range-ratio', '--gsp-num-groups', '--gsp-prompts-per-group', '--gsp-system-prompt-len', '--gsp-question-len', '--gsp-output-len', '--num-prompts', '--warmup-requests', '--max-concurrency', '--request-rate', '--disable-ignore-eos', '--extra-request-body', '--seed', '--output-file', '--output-details'],
  },
  guidellm: {
    name: 'GuideLLM',
    source: 'https://github.com/vllm-project/guidellm/blob/main/docs/getting-started/benchmark.md, docs/guides/backends.md, docs/guides/datasets.md, docs/guides/outputs.md',
    asOf: 'GuideLLM 0.7 (ee7a774)',
    options: ['--backend', '--data', '--profile', '--constraint', '--seed', '--output'],
  },
  aiperf: {
    name: 'AIPerf',
    source: 'https://docs.nvidia.com/aiperf/reference/command-line-options (docs/cli-options.md)',
    asOf: 'AIPerf a2bec4d',
    options: ['--model', '--url', '--custom-endpoint', '--endpoint-type', '--streaming', '--api-key', '--extra-inputs', '--synthetic-input-tokens-mean', '--synthetic-input-tokens-stddev', '--output-tokens-mean', '--output-tokens-stddev', '--num-prefix-prompts', '--prefix-prompt-length', '--request-count', '--warmup-request-count', '--concurrency', '--request-rate', '--request-rate-mode', '--goodput', '--random-seed', '--output-artifact-dir'],
  },
  k6: {
    name: 'k6',
    source: 'https://grafana.com/docs/k6/latest/using-k6/scenarios/executors/shared-iterations/, …/constant-arrival-rate/, https://grafana.com/docs/k6/latest/using-k6/thresholds/',
    asOf: 'k6 2.3',
    options: ['executor', 'vus', 'iterations', 'maxDuration', 'rate', 'timeUnit', 'duration', 'preAllocatedVUs', 'maxVUs', 'scenarios', 'thresholds', 'insecureSkipTLSVerify'],
  },
} as const satisfies Readonly<Record<HandOverTool, Documented>>;

type OptionOf<T extends HandOverTool> = (typeof documentedOptions)[T]['options'][number];

/** The tools in the order they are offered. */
export const handOverTools = Object.keys(documentedOptions) as readonly HandOverTool[];

/** The plan for one tool. Throws a HandOverError for a plan the tool cannot carry out. */
export function handOver(plan: HandOverPlan, tool: HandOverTool): HandOver {
  switch (tool) {
    case 'vllm':
      return vllm(plan);
    case 'sglang':
      return sglang(plan);
    case 'guidellm':
      return guidellm(plan);
    case 'aiperf':
      return aiperf(plan);
    case 'k6':
      return k6(plan);
  }
}

/** Where an OpenAI-like API is: what stands before `/v1/…`, and the path from there. */
interface Place {
  readonly base: string;
  readonly path: string;
  readonly chat: boolean;
}

function placeOf({ api, request }: HandOverPlan, tool: HandOverTool): Place {
  const url = new URL(request.url);
  const match = /^(.*?)(\/v1\/(?:chat\/)?completions|\/(?:chat\/)?completions)$/.exec(url.pathname);
  if ((api !== 'openai-chat' && api !== 'openai-completions') || !match) {
    throw new HandOverError(`${documentedOptions[tool].name} speaks the OpenAI API; this plan is for ${api} at ${url.pathname}. Hand it over to k6, which sends the request as it is, or give the endpoint api "openai-chat" if the server speaks that too.`);
  }
  return { base: `${url.origin}${match[1]!}`, path: match[2]!, chat: match[2]!.endsWith('/chat/completions') };
}

/** One option with what follows it, quoted for a POSIX shell; a switch has no value. */
type Argument<T extends HandOverTool> = readonly [option: OptionOf<T>, ...values: readonly string[]];

function command<T extends HandOverTool>(tool: T, plan: HandOverPlan, program: string, args: readonly Argument<T>[], notes: readonly string[], exports: readonly string[] = []): HandOver {
  const { name, source, asOf } = documentedOptions[tool];
  const lines = [
    ...[`The plan of First Token for ${name}, for a POSIX shell.`, `Options as documented in ${source}; ${asOf}.`, ...shared(plan, tool), ...notes].map((note) => `# ${note}`),
    ...exports,
    [program, ...args.map((argument) => argument.join(' '))].join(' \\\n  '),
  ];
  return { tool, language: 'sh', fileName: `${tool}-benchmark.sh`, text: `${lines.join('\n')}\n` };
}

/** What is to be known whatever the tool. */
function shared(plan: HandOverPlan, tool: HandOverTool): string[] {
  const { name } = documentedOptions[tool];
  const different = name === 'k6' ? 'k6 counts differently: it does not read event streams, so http_req_waiting ends with the response head (not the first token), http_req_duration with the last byte; there is no TTFT and no TPOT.' : `${name} counts differently: ${noteOn(name)}`;
  return [
    different,
    ...(tool === 'k6' ? [] : [`The prompts are made up, ${plan.about === true ? 'about ' : ''}${plan.promptTokens} tokens each${plan.prefixTokens > 0 ? `, of which the first ${plan.prefixTokens} are the same in all` : ''}: the same size as the plan's, not the same text.`]),
    ...(plan.repeats && plan.prefixTokens === 0 && tool !== 'k6' ? ['The plan repeats one prompt, which the prefix cache serves from the second request on; made-up prompts are all cold. Share a prefix (--prefix-tokens) to see warm ones.'] : []),
    ...(plan.withheldHeaders.length > 0 ? [`Not handed over, as the values may be secret: the headers ${plan.withheldHeaders.join(', ')}.`] : []),
    ...(plan.slo.valid === undefined ? [] : ['The check of the answers (slo.valid) is not handed over.']),
  ];
}

const modelNote = 'No model was named: the tool takes the first that the server lists, and its tokenizer.';

function vllm(plan: HandOverPlan): HandOver {
  const { base, path, chat } = placeOf(plan, 'vllm');
  const { ttft, tpot, total } = plan.slo;
  const goodput = [...(ttft === undefined ? [] : [`ttft:${ttft}`]), ...(tpot === undefined ? [] : [`tpot:${tpot}`]), ...(total === undefined ? [] : [`e2el:${total}`])];
  const extra = { ...plan.body, ...(plan.fixedLength ? { min_tokens: plan.outputTokens } : {}) };
  const args: Argument<'vllm'>[] = [
    ['--backend', chat ? 'openai-chat' : 'openai'],
    ['--base-url', single(base)],
    ['--endpoint', single(path)],
    ...(plan.model === null ? [] : [['--model', single(plan.model)] as const]),
    ['--dataset-name', 'random'],
    ['--random-input-len', String(Math.max(1, plan.promptTokens - plan.prefixTokens))],
    ['--random-output-len', String(plan.outputTokens)],
    ...(plan.prefixTokens > 0 ? [['--random-prefix-len', String(plan.prefixTokens)] as const] : []),
    ['--random-range-ratio', '0'],
    ['--num-prompts', String(plan.requests)],
    ...(plan.warmup > 0 ? [['--num-warmups', String(plan.warmup)] as const] : []),
    ...(plan.load.kind === 'closed' ? [['--max-concurrency', String(plan.load.concurrency)] as const] : [['--request-rate', String(plan.load.perSecond)] as const]),
    ...(plan.fixedLength ? [['--ignore-eos'] as const] : []),
    ...(Object.keys(extra).length > 0 ? [['--extra-body', single(JSON.stringify(extra))] as const] : []),
    ...(goodput.length > 0 ? [['--goodput', ...goodput] as const] : []),
    ['--percentile-metrics', 'ttft,tpot,itl,e2el'],
    ['--metric-percentiles', '50,90,95,99'],
    ['--seed', String(plan.seed)],
    ...(plan.insecure ? [['--insecure'] as const] : []),
    ['--save-result'],
    ['--save-detailed'],
    ['--result-filename', 'vllm-benchmark.json'],
  ];
  const constant = plan.load.kind === 'rate' && plan.load.arrivals === 'constant';
  const notes = [...(plan.model === null ? [modelNote] : []), ...(constant ? ['The plan has constant arrivals; this tool draws them from a Poisson process (or, with --burstiness above 1, more evenly).'] : []), ...(goodput.length > 0 ? [`Its goodput is in answers per second; the share that must be good (${plan.slo.attainment}) is not judged.`] : [])];
  return command('vllm', plan, 'vllm bench serve', args, notes, openAiKey(plan));
}

function sglang(plan: HandOverPlan): HandOver {
  const { base, path, chat } = placeOf(plan, 'sglang');
  if (!path.startsWith('/v1/')) throw new HandOverError(`SGLang bench_serving always asks /v1/…; this endpoint is at ${path}. Hand the plan over to vllm, aiperf or k6.`);
  const extra = { ...plan.body, ...(plan.fixedLength ? { ignore_eos: true, min_tokens: plan.outputTokens } : {}) };
  const lengths: Argument<'sglang'>[] = plan.prefixTokens > 0
    ? [['--dataset-name', 'generated-shared-prefix'], ['--gsp-num-groups', '1'], ['--gsp-prompts-per-group', String(plan.requests)], ['--gsp-system-prompt-len', String(plan.prefixTokens)], ['--gsp-question-len', String(Math.max(1, plan.promptTokens - plan.prefixTokens))], ['--gsp-output-len', String(plan.outputTokens)]]
    : [['--dataset-name', 'random-ids'], ['--random-input-len', String(plan.promptTokens)], ['--random-output-len', String(plan.outputTokens)], ['--random-range-ratio', '1']];
  const args: Argument<'sglang'>[] = [
    ['--backend', chat ? 'sglang-oai-chat' : 'sglang-oai'],
    ['--base-url', single(base)],
    ...(plan.model === null ? [] : [['--model', single(plan.model)] as const]),
    ...lengths,
    ['--num-prompts', String(plan.requests)],
    ['--warmup-requests', String(plan.warmup)],
    ...(plan.load.kind === 'closed' ? [['--max-concurrency', String(plan.load.concurrency)] as const] : [['--request-rate', String(plan.load.perSecond)] as const]),
    ...(plan.fixedLength ? [] : [['--disable-ignore-eos'] as const]),
    ...(Object.keys(extra).length > 0 ? [['--extra-request-body', single(JSON.stringify(extra))] as const] : []),
    ['--seed', String(plan.seed)],
    ['--output-file', 'sglang-benchmark.jsonl'],
    ['--output-details'],
  ];
  const constant = plan.load.kind === 'rate' && plan.load.arrivals === 'constant';
  const notes = [...(plan.model === null ? [modelNote] : []), ...(constant ? ['The plan has constant arrivals; this tool draws them from a Poisson process.'] : []), 'This tool does not judge an SLO: compare its percentiles with the limits yourself, or open its file in First Token.'];
  return command('sglang', plan, 'python3 -m sglang.bench_serving', args, notes, openAiKey(plan));
}

function guidellm(plan: HandOverPlan): HandOver {
  const { base, path, chat } = placeOf(plan, 'guidellm');
  const format = chat ? '/v1/chat/completions' : '/v1/completions';
  const extra = { ...plan.body, ...(plan.fixedLength ? { ignore_eos: true, min_tokens: plan.outputTokens } : {}) };
  const backend = {
    kind: 'openai_http',
    target: base,
    ...(plan.model === null ? {} : { model: plan.model }),
    request_format: format,
    ...(path === format ? {} : { api_routes: { [format]: path } }),
    ...(plan.keyVariable === null ? {} : { api_key: keyMark }),
    verify: !plan.insecure,
    ...(Object.keys(extra).length > 0 ? { extras: { body: extra } } : {}),
  };
  const { load } = plan;
  const profile = load.kind === 'closed' ? `kind=concurrent,streams=${load.concurrency}` : `kind=${load.arrivals},rate=${load.perSecond}`;
  const args: Argument<'guidellm'>[] = [
    ['--backend', withKey(JSON.stringify(backend), plan.keyVariable)],
    ['--data', `kind=synthetic_text,prompt_tokens=${Math.max(1, plan.promptTokens - plan.prefixTokens)},output_tokens=${plan.outputTokens}${plan.prefixTokens > 0 ? `,prefix_tokens=${plan.prefixTokens},prefix_count=1` : ''}`],
    ['--profile', profile],
    ['--constraint', `kind=max_requests,count=${plan.requests + plan.warmup}`],
    ['--seed', `kind=static,value=${plan.seed}`],
    ['--output', 'kind=json,path=guidellm-benchmark.json'],
  ];
  const notes = [...(plan.model === null ? [modelNote] : []), ...(plan.warmup > 0 ? [`Its ${plan.warmup} warm-up request${plan.warmup === 1 ? ' is' : 's are'} among the measured ones.`] : []), 'This tool does not judge an SLO: open its file in First Token and compare.'];
  return command('guidellm', plan, 'guidellm run', args, notes);
}

function aiperf(plan: HandOverPlan): HandOver {
  const { base, path, chat } = placeOf(plan, 'aiperf');
  const { ttft, tpot, total } = plan.slo;
  const goodput = [...(ttft === undefined ? [] : [`time_to_first_token:${ttft}`]), ...(tpot === undefined ? [] : [`inter_token_latency:${tpot}`]), ...(total === undefined ? [] : [`request_latency:${total}`])];
  const extra = { ...plan.body, ...(plan.fixedLength ? { ignore_eos: true, min_tokens: plan.outputTokens } : {}) };
  const { load } = plan;
  const args: Argument<'aiperf'>[] = [
    ['--model', plan.model === null ? '"$MODEL"' : single(plan.model)],
    ['--url', single(base)],
    ...(path === (chat ? '/v1/chat/completions' : '/v1/completions') ? [] : [['--custom-endpoint', single(path)] as const]),
    ['--endpoint-type', chat ? 'chat' : 'completions'],
    ['--streaming'],
    ...(plan.keyVariable === null ? [] : [['--api-key', `"$${plan.keyVariable}"`] as const]),
    ...(Object.keys(extra).length > 0 ? [['--extra-inputs', single(JSON.stringify(extra))] as const] : []),
    ['--synthetic-input-tokens-mean', String(Math.max(1, plan.promptTokens - plan.prefixTokens))],
    ['--synthetic-input-tokens-stddev', '0'],
    ['--output-tokens-mean', String(plan.outputTokens)],
    ['--output-tokens-stddev', '0'],
    ...(plan.prefixTokens > 0 ? [['--num-prefix-prompts', '1'] as const, ['--prefix-prompt-length', String(plan.prefixTokens)] as const] : []),
    ['--request-count', String(plan.requests)],
    ...(plan.warmup > 0 ? [['--warmup-request-count', String(plan.warmup)] as const] : []),
    ...(load.kind === 'closed' ? [['--concurrency', String(load.concurrency)] as const] : [['--request-rate', String(load.perSecond)] as const, ['--request-rate-mode', load.arrivals] as const]),
    ...(goodput.length > 0 ? [['--goodput', `'${goodput.join(' ')}'`] as const] : []),
    ['--random-seed', String(plan.seed)],
    ['--output-artifact-dir', 'aiperf-benchmark'],
  ];
  const notes = [
    ...(plan.model === null ? ['No model was named: put its name into MODEL; the tool also takes its tokenizer by that name.'] : []),
    ...(tpot === undefined ? [] : ['The limit on TPOT is handed over as inter_token_latency, which is this tool’s name for the mean per answer.']),
    ...(goodput.length > 0 ? [`Its goodput is in answers per second; the share that must be good (${plan.slo.attainment}) is not judged.`] : []),
    ...(plan.insecure ? ['Certificates are checked here: this tool documents no option against it.'] : []),
  ];
  return command('aiperf', plan, 'aiperf profile', args, notes);
}

function k6(plan: HandOverPlan): HandOver {
  const { load, slo, keyHeader } = plan;
  const headers = Object.entries(plan.request.headers).map(([name, value]) => `  ${JSON.stringify(name)}: ${JSON.stringify(value)},`);
  if (keyHeader !== null && plan.keyVariable !== null) headers.push(`  ${JSON.stringify(keyHeader.name)}: ${JSON.stringify(keyHeader.prefix)} + __ENV.${plan.keyVariable},`);
  const iterations = plan.requests;
  const seconds = load.kind === 'rate' ? Math.max(1, Math.ceil(iterations / load.perSecond)) : 0;
  const [rate, unit] = load.kind === 'rate' ? wholeRate(load.perSecond) : [0, ''];
  const scenario = load.kind === 'closed'
    ? [`executor: 'shared-iterations'`, `vus: ${Math.min(load.concurrency, iterations)}`, `iterations: ${iterations}`, `maxDuration: '1h'`]
    : [`executor: 'constant-arrival-rate'`, `rate: ${rate}`, `timeUnit: '${unit}'`, `duration: '${seconds}s'`, `preAllocatedVUs: ${Math.max(8, Math.ceil(load.perSecond * 2))}`, `maxVUs: ${Math.max(64, Math.ceil(load.perSecond * 60))}`];
  const percent = Number((slo.attainment * 100).toPrecision(6));
  const thresholds = [`http_req_failed: ['rate<=${Number((1 - slo.attainment).toPrecision(6))}']`, ...(slo.total === undefined ? [] : [`http_req_duration: ['p(${percent})<=${slo.total}']`])];
  const notes = [
    `The plan of First Token for k6: k6 run${plan.keyVariable === null ? '' : ` -e ${plan.keyVariable}="$${plan.keyVariable}"`} FILE`,
    `Options as documented in ${documentedOptions.k6.source}; ${documentedOptions.k6.asOf}.`,
    ...shared(plan, 'k6'),
    ...(load.kind === 'rate' && load.arrivals === 'poisson' ? ['The plan has Poisson arrivals; this executor spaces them evenly.'] : []),
    ...(slo.ttft === undefined && slo.tpot === undefined && slo.firstVisible === undefined && slo.gapP99 === undefined ? [] : ['Limits on first token and pace cannot be judged here and are left out; the limit on the total latency is a threshold if the plan has one.']),
    ...(plan.model === null && plan.api.startsWith('openai') ? ['No model was named: add "model" to the body if the server asks for it.'] : []),
    ...(plan.warmup > 0 ? ['There is no warm-up.'] : []),
    ...(plan.repeats ? [] : ['The plan sends a new prompt with every request; this sends one prompt again and again, so the prefix cache serves it from the second request on.']),
  ];
  const lines = [
    ...notes.map((note) => `// ${note}`),
    `import http from 'k6/http';`,
    `import { check } from 'k6';`,
    ``,
    `export const options = {`,
    ...(plan.insecure ? [`  insecureSkipTLSVerify: true,`] : []),
    `  scenarios: { plan: { ${scenario.join(', ')} } },`,
    `  thresholds: { ${thresholds.join(', ')} },`,
    `};`,
    ``,
    `const headers = {`,
    ...headers,
    `};`,
    `const body = ${scriptString(plan.request.body)};`,
    ``,
    `export default function () {`,
    `  const answer = http.post(${scriptString(plan.request.url)}, body, { headers, timeout: '600s' });`,
    `  check(answer, { 'status is 200': (a) => a.status === 200 });`,
    `}`,
  ];
  return { tool: 'k6', language: 'js', fileName: 'k6-benchmark.js', text: `${lines.join('\n')}\n` };
}

/** A rate as whole iterations per unit of time, as k6 wants it: 2.5/s is 5 every 2 s. */
function wholeRate(perSecond: number): readonly [rate: number, unit: string] {
  for (const seconds of [1, 2, 4, 5, 10, 20, 60, 100]) {
    const rate = perSecond * seconds;
    if (rate >= 1 && Math.abs(rate - Math.round(rate)) < 1e-9) return [Math.round(rate), `${seconds}s`];
  }
  return [Math.max(1, Math.round(perSecond * 1000)), '1000s'];
}

/** vLLM and SGLang take the key from this variable. */
function openAiKey({ keyVariable }: HandOverPlan): string[] {
  return keyVariable === null || keyVariable === 'OPENAI_API_KEY' ? [] : [`export OPENAI_API_KEY="$${keyVariable}"`];
}

function single(text: string): string {
  return /^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`;
}

const keyMark = '\u0000key\u0000';

/** A quoted text with the key's variable where the mark stands, outside the quotes' reach. */
function withKey(json: string, variable: string | null): string {
  const mark = JSON.stringify(keyMark).slice(1, -1);
  if (variable === null || !json.includes(mark)) return single(json);
  const [before, after] = json.split(mark) as [string, string];
  const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;
  return `${quoted(before)}"$${variable}"${quoted(after)}`;
}

/** A text as a JavaScript literal that also survives inside a script element. */
function scriptString(text: string): string {
  return JSON.stringify(text).replaceAll('<', '\\u003c').replaceAll('\u2028', '\\u2028').replaceAll('\u2029', '\\u2029');
}
