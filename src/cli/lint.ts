import { readFileSync } from 'node:fs';
import path from 'node:path';
import { parseEndpoints } from '../probe/endpoint';
import type { AnalysedFile, CacheRule, HiddenDate, LintResult, PromptFile, RuleBook, SentTokens, TokenCounter } from '../prompt/index';
import type * as promptPart from '../prompt/index';
import { createMemory, reachEndpoint } from '../probe/index';
import { endpointTokens, type EndpointTokens } from '../probe/tokenCounting';
import { exitCode, oneOf, parse, UsageError, type Command, type CommandContext } from './command';
import { sentRequests } from '../prompt/sentRequests';
import { networkOf } from './environment';
import { largestInput, readInput, readPlainFile } from './input';
import { note, print } from './output';
import { readWorkspaceSettings } from './settings';
import { aboutUnnamed, searchPrompts } from './promptSearch';
import { resolveTarget, targetOptions } from './target';
import { pathToFileURL } from 'node:url';
import { version } from '../../package.json';

const scopes = ['conversation', 'user', 'everyone'] as const;

/** `first-token lint`: how much of each prompt file a prefix cache can reuse and what breaks it; exit code 1 when there is a warning. */
export const lintCommand: Command = {
  summary: 'What breaks the prefix cache in prompt files, for people and for CI',
  usage: `first-token lint FILES… [--rule RULE] [--model MODEL] [--scope conversation|user|everyone] [--endpoint NAME|URL] [--json | --sarif]

  FILES      prompt files, or folders to search for them: by name (firstToken.promptFiles), and request bodies and templates by content
  --rule     the cache to judge by: vllm, sglang, llamacpp, tensorrt-llm, tgi, ollama, openai (before GPT-5.6), openai-5.6, azure, anthropic,
             bedrock, gemini, deepseek, xai, groq, mistral, fireworks, together, kimi, qwen, openrouter, minimax. By default that of the
             --endpoint; without one that of the model or the API that the file itself names, else of the first of firstToken.endpoints, else vllm
  --model    the model, where minimums differ by model
  --scope    who should share the prefix (default from firstToken.prefix, else user)
  --json     one JSON array, one object a file in argument order
  --sarif    SARIF 2.1.0, for code scanning

Tokens are estimated with OpenAI's o200k vocabulary, or counted with the tokenizer.json of firstToken.prefix.tokenizer. With an endpoint they
are counted there (vLLM, SGLang, llama.cpp, TGI, Anthropic, OpenAI, Gemini), which sends it the text; --json tells who counted. Where it
tells (vLLM, llama.cpp, Anthropic) they are those of the request as it is sent, chat template and sample values included.
  --endpoint NAME|URL, --api A, --demo, --allow-env NAME, --insecure   as for probe

Exit code: 0 no warning, 1 a warning, 2 a file could not be read, no prompt file was found, or the arguments are wrong.`,
  async run(context) {
    const { args, cwd } = context;
    const { values, positionals } = parse(args, { ...targetOptions, rule: { type: 'string' }, scope: { type: 'string' }, json: { type: 'boolean' }, sarif: { type: 'boolean' } }, { most: 100_000, least: 1, what: 'the files to lint' });
    const prompt = await import('../prompt/index');
    const settings = readWorkspaceSettings(cwd);
    const prefix = (settings.values['prefix'] ?? {}) as PrefixSettings;
    const today = new Date();
    const book = prompt.loadRules(prefix.rules ?? {}, today.toISOString().slice(0, 10));
    if (values.rule !== undefined && !book.rules.has(values.rule)) throw new UsageError(`--rule takes ${[...book.rules.keys()].join(', ')}; got "${values.rule}".`);
    for (const problem of book.problems) note(`firstToken.prefix.rules: ${problem}`);
    const scope = oneOf('--scope', values.scope, scopes) ?? oneOf(`firstToken.prefix.scope in ${settings.file}`, prefix.scope, scopes) ?? 'user';

    const { files, unnamed } = searchPrompts(positionals, cwd, settings.values['promptFiles']);
    await prompt.prepare(files.map((f) => f.shown));
    const left = aboutUnnamed(unnamed);
    if (files.length === 0) note(`No prompt file in ${positionals.join(', ')}, so nothing was linted.${left === null ? ' Name the files, or add a pattern to firstToken.promptFiles in .vscode/settings.json.' : ''}`);
    const readFile = (file: string): string | null => readPlainFile(path.resolve(cwd, file));
    const asked = values.endpoint !== undefined || values.demo === true ? await openEndpoint(values, context) : null;
    let unreadable = 0;
    const results: { readonly result: LintResult; readonly analysed: AnalysedFile; readonly why: string }[] = [];
    try {
      const judge = judging(prompt, book, { rule: values.rule, model: values.model }, asked, settings.values['endpoints']);
      const counterFor = countersOf(prompt, cwd, prefix);
      const hiddenDate = hiddenDateOf(prompt, cwd, prefix, readFile);
      for (const { shown, absolute } of files) {
        let bytes: Buffer;
        try {
          bytes = await readInput(absolute, largestInput, shown);
        } catch (error) {
          note((error as Error).message);
          unreadable += 1;
          continue;
        }
        const file = prompt.promptFileOf(bytes, shown, { readFile });
        const { rule, model, why } = judge(file);
        const counter = await counterFor(rule);
        const options = {
          rule,
          model,
          scope,
          hiddenDate: hiddenDate(shown, asked?.rendered ?? null, today),
          variables: prefix.variables ?? {},
          ...(prefix.minLostTokens === undefined ? {} : { minLostTokens: prefix.minLostTokens }),
          today,
        };
        const counts = asked === null || file.prompts.length === 0 ? null : await asked.count(prompt, (by) => prompt.analyseFile(file, { ...options, counter: by }), counter, today);
        const analysed = prompt.analyseFile(file, { ...options, counter: counts?.counter ?? counter, sent: counts?.sent ?? [] });
        results.push({ result: prompt.lintResult(analysed, shown), analysed, why });
      }
    } finally {
      await asked?.close();
    }
    const all = results.map(({ result }) => result);
    if (values.json) await print(`${JSON.stringify(all, null, 2)}\n`);
    else if (values.sarif) await print(`${JSON.stringify(sarif(all, cwd), null, 2)}\n`);
    else if (results.length > 0) await print(`${results.map(({ result, analysed, why }) => inWords(result, analysed, why, prompt.placeholdersIn)).join('\n')}\n${results.length > 1 ? `\n${sum(all)}\n` : ''}`);
    if (left !== null) note(left);
    if (unreadable > 0 || files.length === 0) return exitCode.usage;
    return all.some((r) => r.findings.some((f) => f.severity === 'warning')) ? 1 : exitCode.ok;
  },
};

/** `firstToken.prefix` as far as linting reads it. */
interface PrefixSettings {
  readonly scope?: string;
  readonly variables?: Record<string, string>;
  readonly minLostTokens?: number;
  readonly rules?: unknown;
  readonly tokenizer?: string;
  readonly chatTemplate?: string;
}

type PromptPart = typeof promptPart;

/** A rule, the model it is asked about, and why this one, where nobody chose it. */
interface Judging {
  readonly rule: CacheRule;
  readonly model: string | null;
  readonly why: string;
}

/** The rule of each file: the one asked for, that of the endpoint, that of what the file is written for, or that of the endpoint in the settings. */
function judging(prompt: PromptPart, book: RuleBook, given: { readonly rule: string | undefined; readonly model: string | undefined }, asked: AskedEndpoint | null, endpoints: unknown): (file: PromptFile) => Judging {
  const model = given.model ?? asked?.target.model ?? null;
  if (given.rule !== undefined || asked !== null) {
    const { rule } = prompt.ruleFor({ ...asked?.target, model, cache: given.rule ?? asked?.cache ?? null }, book);
    return () => ({ rule, model, why: '' });
  }
  const [configured] = parseEndpoints(endpoints).endpoints;
  return (file) => {
    const own = prompt.ruleForFile({ model }, file, book);
    if (own.how !== 'assumed') return { rule: own.rule, model, why: own.how === 'request' ? 'the API of its request' : given.model === undefined ? 'the model it names' : 'the --model' };
    if (configured === undefined) return { rule: own.rule, model, why: 'assumed' };
    const { url, api, cache, model: its } = configured;
    return { rule: prompt.ruleFor({ url, dialect: api, cache, model: model ?? its }, book).rule, model: model ?? its, why: `the endpoint ${configured.name} of your settings` };
  };
}

/** The tokenizer of the settings, else OpenAI's vocabulary: exact for its own models, an estimate for all others. */
function countersOf(prompt: PromptPart, cwd: string, prefix: PrefixSettings): (rule: CacheRule) => Promise<TokenCounter> {
  let own: Promise<TokenCounter | null> | null = null;
  let vocabulary: TokenCounter | null = null;
  const load = async (): Promise<TokenCounter | null> => {
    if (prefix.tokenizer === undefined || prefix.tokenizer === '') return null;
    try {
      const { tokenizerFromJson } = await import('../prompt/tokenizer');
      return prompt.remembering(tokenizerFromJson(readFileSync(path.resolve(cwd, prefix.tokenizer), 'utf8'), null));
    } catch (error) {
      note(`firstToken.prefix.tokenizer: ${(error as Error).message} Tokens are estimated.`);
      return null;
    }
  };
  return async (rule) => {
    const counter = await (own ??= load());
    if (counter !== null) return counter;
    const { o200kCounter } = await import('../prompt/tokenizer');
    vocabulary ??= prompt.remembering(o200kCounter(true));
    return { ...vocabulary, exact: openaiRules.has(rule.id) };
  };
}

const openaiRules = new Set(['openai', 'openai-5.6', 'azure']);

/** Finds the date that a chat template writes: that of the settings, one beside the file, or what the endpoint rendered. */
function hiddenDateOf(prompt: PromptPart, cwd: string, { chatTemplate = '' }: PrefixSettings, readFile: (file: string) => string | null): (file: string, rendered: string | null, today: Date) => HiddenDate | null {
  const known = new Map<string, HiddenDate | null>();
  return (file, rendered, today) => {
    const place = chatTemplate === '' ? path.join(path.dirname(file), 'chat_template.jinja') : path.resolve(cwd, chatTemplate);
    const template = readFile(place);
    if (template === null) return rendered === null ? null : prompt.findWrittenDate(rendered, today.getTime());
    const before = known.get(place);
    if (before !== undefined) return before;
    const found = prompt.findHiddenClock(template);
    if (found !== null && 'problem' in found) note(`${place}: ${found.problem}`);
    const date = found === null || 'problem' in found ? null : found;
    known.set(place, date);
    return date;
  };
}

/** An endpoint that counts for the linter. */
interface AskedEndpoint {
  readonly target: { readonly server: string | null; readonly dialect: string; readonly url: string; readonly model: string | null };
  /** The rule that its settings name. */
  readonly cache: string;
  /** A short conversation through its chat template. */
  readonly rendered: string | null;
  /** Counts all texts of a file and its requests as sent; null when it cannot, which is said once. */
  count(prompt: PromptPart, analyse: (by: TokenCounter) => AnalysedFile, otherwise: TokenCounter, today: Date): Promise<{ readonly counter: TokenCounter; readonly sent: readonly (SentTokens | null)[] } | null>;
  close(): Promise<void>;
}

/** Exact counts change which branch is the longest, and so which texts are counted; that settles at once. */
const mostRounds = 4;

/** Opens the endpoint of the flags. One that does not answer is said, and estimates take its place. */
async function openEndpoint(values: Parameters<typeof resolveTarget>[0], context: CommandContext): Promise<AskedEndpoint> {
  const found = await resolveTarget(values, context);
  const { endpoint, key } = found;
  let open: EndpointTokens | null = null;
  const givenUp = (error: unknown): void => {
    note(`${endpoint.name} did not count tokens, so they are estimated: ${error instanceof Error ? error.message : String(error)}`);
    const closing = open;
    open = null;
    void closing?.close();
  };
  const { network, timeouts } = networkOf(found.settings, context.env);
  const target = { server: null, dialect: endpoint.api === 'auto' ? 'openai-chat' : endpoint.api, url: endpoint.url, model: endpoint.model };
  let rendered: string | null = null;
  try {
    open = endpointTokens(await reachEndpoint({ endpoint, key, network, timeouts, recorderScript: path.join(context.dist, 'recorder.js'), memory: createMemory() }, context.signal, 10_000));
    rendered = await open.rendered();
  } catch (error) {
    givenUp(error);
  }
  const tokens = open;
  if (tokens !== null && tokens.endpoint === null) note(`${endpoint.name}${tokens.server === null ? '' : ` (${tokens.server})`} does not count tokens for others, so they are estimated.`);
  return {
    target: tokens === null ? target : { server: tokens.server, dialect: tokens.dialect, url: tokens.url, model: tokens.model },
    cache: endpoint.cache,
    rendered,
    async count(prompt, analyse, otherwise, today) {
      if (open === null || open.endpoint === null) return null;
      const known = new Map<string, number>();
      try {
        for (let round = 0; round < mostRounds; round += 1) {
          const { counter, missing } = prompt.countedAtEndpoint(known, otherwise);
          const analysed = analyse(counter);
          if (missing.size === 0) return { counter, sent: await sentOf(open, sentRequests(prompt, analysed, today.getTime()), analysed.prompts.length) };
          const counts: ReadonlyMap<string, number> | null = await open.count([...missing]);
          if (counts === null) throw new Error('its answer is no token count.');
          for (const [text, count] of counts) known.set(text, count);
        }
      } catch (error) {
        givenUp(error);
      }
      return null;
    },
    async close() {
      await open?.close();
      await found.stop();
    },
  };
}

/** Every request as it is sent, or none: a sum of both kinds would be right for neither. */
async function sentOf(open: EndpointTokens, requests: ReturnType<typeof sentRequests>, prompts: number): Promise<readonly (SentTokens | null)[]> {
  if (requests.length < prompts) return [];
  const sent: SentTokens[] = [];
  for (const request of requests) {
    const one = await open.sent(request);
    if (one === null) return [];
    sent.push(one);
  }
  return sent;
}

const n = (value: number): string => value.toLocaleString('en-US');

/** More lines than that about one file are not read. */
const mostPrompts = 50;

function inWords(result: LintResult, { file, prompts }: AnalysedFile, why: string, placeholders: typeof promptPart.placeholdersIn): string {
  const name = `${result.file} (${result.format})`;
  const written = [...new Set(file.prompts.flatMap((prompt) => placeholders(file, prompt)))];
  const findings = [
    ...result.findings.map((f) => `  ${result.file}:${f.line}  ${f.severity}  ${f.message}  [${f.code}]`),
    ...(written.length === 0 ? [] : [`  sent as written, as this format has no variables: ${written.slice(0, 10).join(', ')}`]),
  ];
  const on = `reusable on ${result.rule} ${scopeWords[result.scope]}${why === '' ? '' : ` (rule: ${why})`}`;
  const [first] = prompts;
  if (first === undefined) return [`${name}: no prompt in it`, ...findings].join('\n');
  if (prompts.length === 1) return [`${name}: ${amount(first.report)} ${on}${besides(first.report)}`, ...findings].join('\n');
  const sum = (of: 'total' | 'reusable'): number => prompts.reduce((all, { report: { sameVariant } }) => all + (of === 'total' ? sameVariant.total : sameVariant.reuse.tokens), 0);
  const about = prompts.some(({ report }) => isAbout(report)) ? 'about ' : '';
  const lines = lineStarts(file.text);
  const each = prompts.slice(0, mostPrompts).map(({ index, report }) => `  ${result.file}:${lines(file.prompts[index]?.start ?? 0)}  ${file.prompts[index]?.name ?? `prompt ${index + 1}`}: ${amount(report)} reusable${besides(report)}`);
  const more = prompts.length > mostPrompts ? [`  … and ${n(prompts.length - mostPrompts)} prompts more`] : [];
  return [`${name}: ${n(prompts.length)} prompts, together ${n(sum('reusable'))} of ${about}${n(sum('total'))} tokens ${on}`, ...each, ...more, ...findings].join('\n');
}

type Report = AnalysedFile['prompts'][number]['report'];

const isAbout = ({ exact, qualifiers }: Report): boolean => !exact || qualifiers.toolsAsWritten;

const amount = (report: Report): string => `${n(report.sameVariant.reuse.tokens)} of ${isAbout(report) ? 'about ' : ''}${n(report.sameVariant.total)} tokens`;

/** What one prompt's number does not say by itself: where the common prefix ends otherwise, its variants, a marker that is missing. */
function besides({ sameVariant: { common, reuse }, variants, withMarker, qualifiers: { textTokens } }: Report): string {
  const marker = withMarker === null || withMarker === 0 ? '' : `, up to ${n(withMarker)} with a cache marker`;
  const prefix = common === reuse.tokens ? '' : `, common prefix ${n(common)}`;
  return `${prefix}${marker}${variants > 1 ? `, ${n(variants)} variants` : ''}${textTokens === null ? '' : `; counted as sent, the text of the file has ${n(textTokens)}`}`;
}

/** Line from 1 of an offset. */
function lineStarts(text: string): (offset: number) => number {
  let line = 1;
  let at = 0;
  return (offset) => {
    if (offset < at) [line, at] = [1, 0];
    for (let next = text.indexOf('\n', at); next >= 0 && next < offset; next = text.indexOf('\n', at)) [line, at] = [line + 1, next + 1];
    return line;
  };
}

const scopeWords = { conversation: 'within a conversation', user: 'for the same user', everyone: 'for everyone' } as const;

/** How many files were read and what was found in them. */
function sum(results: readonly LintResult[]): string {
  const of = (severity: LintResult['findings'][number]['severity']): number => results.reduce((total, { findings }) => total + findings.filter((f) => f.severity === severity).length, 0);
  const many = (n: number, word: string): string => `${n} ${word}${n === 1 ? '' : 's'}`;
  return `${many(results.length, 'file')}, ${many(of('warning'), 'warning')}, ${of('information')} information, ${many(of('hint'), 'hint')}`;
}

/** SARIF 2.1.0 (OASIS), with byte offsets as regions of bytes and lines from 1. */
function sarif(results: readonly LintResult[], cwd: string): unknown {
  const level = { warning: 'warning', information: 'note', hint: 'note' } as const;
  const codes = [...new Set(results.flatMap((r) => r.findings.map((f) => f.code)))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'First Token', version, rules: codes.map((id) => ({ id })) } },
        originalUriBaseIds: { FOLDER: { uri: `${pathToFileURL(cwd).href}/` } },
        results: results.flatMap((r) =>
          r.findings.map((f) => ({
            ruleId: f.code,
            level: level[f.severity],
            message: { text: f.message },
            locations: [
              {
                physicalLocation: {
                  artifactLocation: path.isAbsolute(r.file) ? { uri: pathToFileURL(r.file).href } : { uri: r.file.split(path.sep).map(encodeURIComponent).join('/'), uriBaseId: 'FOLDER' },
                  region: { startLine: f.line, byteOffset: f.start, byteLength: f.end - f.start },
                },
              },
            ],
          })),
        ),
      },
    ],
  };
}
