/** Picks the format of a prompt file, by name and by content, and parses it. Never throws: what cannot be read becomes a problem at its place. */
import { parseBaml } from './format/baml';
import type { requestPrompt } from './requestPrompt';
import type { parseCode } from './format/code';
import { parseChatTemplate, parseContinuePrompt, parseDotprompt, parseLooseTemplate, parseTemplateFile } from './format/dotprompt';
import type { FormatInput, ParsedFormat } from './format/format';
import { parseClaudeCommand, parseClaudeMemory, parseLiteral } from './format/markdown';
import { parsePoml } from './format/poml';
import { parsePromptfooConfig, parsePromptfooFile, promptfooUse } from './format/promptfoo';
import { parsePrompty } from './format/prompty';
import { isRequest, parseRequestJson, parseRequestJsonl } from './format/requestJson';
import type { ReadFile } from './format/template';
import { frontMatter, list, readYaml, record } from './format/yaml';
import { parseGithubModels, parseLangchain, readSettings, parseSemanticKernelText, parseSemanticKernelYaml } from './format/yamlPrompts';
import { findPragmas } from './pragma';
import type { FormatId, PromptFile } from './prompt';

/** Files above this many UTF-16 units are not analysed. */
export const maximumLength = 5_000_000;

/** How a file is parsed. */
export interface ParseOptions {
  /** Reads a file beside it (includes, configurations): text, or null when there is none. */
  readonly readFile?: ReadFile;
  /** Use this format instead of finding it out. */
  readonly format?: FormatId;
  /** Report syntax errors of code, which its own tools report, as problems. */
  readonly codeErrors?: boolean;
}

/** Parses a prompt file. Null when the file is no prompt file by its name and content. */
export function parsePromptFile(text: string, path: string, options: ParseOptions = {}): PromptFile | null {
  const clean = path.replace(/\\/g, '/');
  const input: FormatInput = { path: clean, text, readFile: guard(options.readFile), ...(options.codeErrors === true ? { codeErrors: true } : {}) };
  if (text.length > maximumLength || isBinary(text)) return refuse(input, text.length > maximumLength ? 'The file is larger than 5 MB and is not analysed.' : 'The file is not text and is not analysed.');
  const parser = options.format === undefined ? detected(input) : byFormat(options.format, input);
  if (parser === null) return null;
  const file = finish(input, attempt(parser, input));
  howParsed.set(file, options);
  return file;
}

const howParsed = new WeakMap<PromptFile, ParseOptions>();

/** Parses another text as the same file, in the way that `file` was; syntax errors of code count as problems here. Null when that text is no prompt file. */
export function parseEdited(file: PromptFile, text: string): PromptFile | null {
  return parsePromptFile(text, file.path, { ...(howParsed.get(file) ?? { format: file.format }), codeErrors: true });
}

function finish(input: FormatInput, parsed: ParsedFormat): PromptFile {
  const length = input.text.length;
  const problems = parsed.problems.map((p) => ({ ...p, start: clamp(p.start, length), end: clamp(Math.max(p.start, p.end), length) }));
  const file = { path: input.path, text: input.text, ...parsed, problems };
  return { ...file, pragmas: findPragmas(file) };
}

function clamp(offset: number, length: number): number {
  return Math.max(0, Math.min(offset, length));
}

/** A defect of ours in one file must not take the others along: the file is then one literal with a problem. */
function attempt(parser: Parser, input: FormatInput): ParsedFormat {
  try {
    return parser(input);
  } catch (error) {
    return asText(input, error);
  }
}

/** `detect`, which reads the file for some formats, with the same care. */
function detected(input: FormatInput): Parser | null {
  try {
    return detect(input);
  } catch (error) {
    return (i) => asText(i, error);
  }
}

function asText(input: FormatInput, error: unknown): ParsedFormat {
  const message = `This file could not be read: ${error instanceof Error ? error.message : String(error)}`;
  return { ...parseLiteral(input, 'text', 'unknown'), problems: [{ start: 0, end: Math.min(1, input.text.length), message }] };
}

/** The file as one literal with a problem at its head: for a file whose analysis failed. */
export function fileAsText({ path, text }: PromptFile, error: unknown): PromptFile {
  const input: FormatInput = { path, text, readFile: () => null };
  return finish(input, asText(input, error));
}

function refuse(input: FormatInput, message: string): PromptFile {
  return { path: input.path, format: 'text', language: null, host: 'nobody', substituted: false, text: input.text, prompts: [], problems: [{ start: 0, end: Math.min(1, input.text.length), message }], pragmas: [], dependencies: [] };
}

function isBinary(text: string): boolean {
  return text.slice(0, 8000).includes('\0');
}

function guard(readFile: ReadFile | undefined): ReadFile {
  return (path) => {
    try {
      const text = readFile?.(path) ?? null;
      return text === null || text.length > maximumLength || isBinary(text) ? null : text;
    } catch {
      return null;
    }
  };
}

type Parser = (input: FormatInput) => ParsedFormat;

const isCode = /\.(?:pyi?|[cm]?[jt]sx?)$/i;
let codeReader: typeof parseCode | null = null;

/** Gives the reader of code files, for bundles that hold it themselves. */
export function useCodeReader(reader: typeof parseCode): void {
  codeReader = reader;
}

let requestReader: typeof requestPrompt | null = null;

/** The reader of request bodies as they are sent; null before `prepare` was called. */
export function loadedRequestReader(): typeof requestPrompt | null {
  return requestReader;
}

/**
 * Loads what is needed beside the formats: the reader of request bodies, and the grammars of Python and JavaScript for such files, which
 * few workspaces have; without them these are no prompt files, and requests are sent as plain texts.
 */
export async function prepare(paths: readonly string[]): Promise<void> {
  requestReader ??= (await import('./requestPrompt')).requestPrompt;
  if (codeReader === null && paths.some((path) => isCode.test(path))) codeReader = (await import('./format/code')).parseCode;
}

const literalHost = 'nobody: plain Markdown, sent as it stands';

function byFormat(format: FormatId, input: FormatInput): Parser {
  switch (format) {
    case 'prompty':
      return parsePrompty;
    case 'dotprompt':
      return parseDotprompt;
    case 'handlebars':
    case 'mustache':
    case 'jinja':
    case 'nunjucks':
    case 'liquid':
      return (i) => parseTemplateFile(i, format);
    case 'chat-template':
      return parseChatTemplate;
    case 'github-models':
      return parseGithubModels;
    case 'promptfoo':
      return (i) => (isPromptfooConfig(i) ? parsePromptfooConfig(i) : parsePromptfooFile(i, promptfooUse(i.path, i.readFile) ?? { samples: [], config: '' }));
    case 'semantic-kernel':
      return /\.(?:ya?ml|json)$/i.test(input.path) ? parseSemanticKernelYaml : parseSemanticKernelText;
    case 'langchain':
      return parseLangchain;
    case 'poml':
      return parsePoml;
    case 'baml':
      return parseBaml;
    case 'request-json':
      return parseRequestJson;
    case 'request-jsonl':
      return parseRequestJsonl;
    case 'markdown':
      return (i) => parseLiteral(i, 'markdown', literalHost);
    case 'claude-markdown':
      return parseClaudeCommand;
    case 'python':
    case 'javascript':
      return codeReader === null ? (i) => parseLiteral(i, 'text', 'unknown') : (i) => codeReader!(i, format, false);
    case 'text':
      return (i) => parseLiteral(i, 'text', 'nobody: plain text, sent as it stands');
  }
}

/** Finds the grammar by name first, by content where a name is shared; null for files that are no prompts. */
function detect(input: FormatInput): Parser | null {
  const name = input.path.slice(input.path.lastIndexOf('/') + 1).toLowerCase();
  if (/\.prompty$/.test(name)) return parsePrompty;
  if (/\.baml$/.test(name)) return parseBaml;
  if (/\.poml$/.test(name)) return parsePoml;
  if (name === 'skprompt.txt' || /\.skprompt(?:\.txt)?$/.test(name)) return parseSemanticKernelText;
  if (/\.(?:j2|jinja|jinja2)$/.test(name)) return isChatTemplate(name, input.text) ? parseChatTemplate : (i) => parseTemplateFile(i, 'jinja');
  if (/\.(?:hbs|handlebars)$/.test(name)) return (i) => parseTemplateFile(i, 'handlebars');
  if (/\.mustache$/.test(name)) return (i) => parseTemplateFile(i, hasHandlebars(input.text) ? 'handlebars' : 'mustache');
  if (/\.(?:njk|nunjucks)$/.test(name)) return (i) => parseTemplateFile(i, 'nunjucks');
  if (/\.liquid$/.test(name)) return (i) => parseTemplateFile(i, 'liquid');
  if (/\.prompt$/.test(name)) return promptExtension(input.text);
  if (/\.(?:promptl|glass)$/.test(name)) return (i) => parseLiteral(i, 'text', 'unknown: its template language is not known here, so it is read as text');
  if (/\.mdx?$/.test(name) || /\.chatmode$/.test(name)) return markdown(input, name);
  if (/\.ya?ml$/.test(name)) return settings(input);
  if (/\.jsonl$|\.ndjson$/.test(name)) return jsonl(input);
  if (/\.jsonc?$/.test(name)) return json(input, name);
  if (/\.pyi?$/.test(name)) return code(input, 'python');
  if (/\.[cm]?[jt]sx?$/.test(name)) return code(input, 'javascript');
  if (/\.(?:txt|text|tmpl|template|tpl)$/.test(name) || !name.includes('.')) return plain(input);
  return null;
}

function promptExtension(text: string): Parser {
  if (/^---[ \t]*\r?$/m.test(text) && /<(?:system|user|assistant)>/.test(text) && frontMatter(text) === null) return parseContinuePrompt;
  if (frontMatter(text) !== null && /<system>/.test(text) && !/\{\{\s*role\b/.test(text)) return parseContinuePrompt;
  if (/\{%-?\s*(?:if|for|set|include|macro|block|extends)\b/.test(text) && !/\{\{[#>/]|\{\{\s*role\b/.test(text) && frontMatter(text) === null) return (i) => parseTemplateFile(i, 'jinja');
  return parseDotprompt;
}

function isChatTemplate(name: string, text: string): boolean {
  if (/chat_?template/.test(name)) return true;
  return /\bfor\s+\w+\s+in\s+(?:loop_)?messages\b/.test(text) && /add_generation_prompt|bos_token|eos_token|raise_exception|<\|[\w]+\|>/.test(text);
}

function hasHandlebars(text: string): boolean {
  return /\{\{~|~\}\}|\{\{\s*else\b|\{\{#(?:if|each|unless|with)\s|\{\{[\w./-]+\s+[\w"'./-]+[^}]*\}\}|\{\{!--/.test(text);
}

const literalNames = /^(?:skill|agents|claude|gemini|copilot-instructions|readme|changelog|contributing|license|security|code_of_conduct)(?:\.local)?\.mdx?$|\.(?:prompt|instructions|agent|chatmode|skill)\.mdx?$/;

function markdown(input: FormatInput, name: string): Parser {
  const front = frontMatter(input.text);
  const keys = front === null ? {} : record(readYaml(input.text, front.start, front.end).data);
  const inClaude = /(?:^|\/)\.claude\/(?:commands|skills|agents)\//.test(input.path);
  const claudeKeys = ['argument-hint', 'allowed-tools', 'disable-model-invocation', 'user-invocable', 'hide-from-slash-command-tool'].some((k) => k in keys);
  if ((inClaude && !/\/agents\//.test(input.path)) || (claudeKeys && !/\.(?:prompt|instructions|agent|chatmode)\.mdx?$/.test(name))) return parseClaudeCommand;
  if (/^claude(?:\.local)?\.md$/.test(name)) return parseClaudeMemory;
  if (!literalNames.test(name)) {
    const use = promptfooUse(input.path, input.readFile);
    if (use !== null) return (i) => parsePromptfooFile(i, use);
    const language = sniffTemplate(input.text.slice(front?.body ?? 0));
    if (language !== null) return (i) => parseTemplateFile(i, language);
    if (looksExpanded(input)) return parseLooseTemplate;
  }
  return (i) => parseLiteral(i, 'markdown', literalHost);
}

/**
 * A template language that text surely is written in: paired block tags, or a partial, outside code fences and code spans.
 * Single `{{x}}` or `{x}` prove nothing.
 */
export function sniffTemplate(text: string): 'jinja' | 'handlebars' | null {
  const bare = withoutCode(text);
  const jinja = /\{%[-+]?\s*(if|for|block|macro|set|filter|with)\b[^%]*%\}[^]*?\{%[-+]?\s*end\1\s*[-+]?%\}/.test(bare) || /\{%[-+]?\s*(?:extends|include)\s+["'][^"']+["']/.test(bare);
  const handlebars = /\{\{~?#(if|each|unless|with)\s[^}]*\}\}[^]*?\{\{~?\/\1\s*~?\}\}/.test(bare) || /\{\{~?>\s*[\w./"'-]+[^}]*\}\}/.test(bare);
  if (jinja === handlebars) return null;
  return jinja ? 'jinja' : 'handlebars';
}

/** The text without code fences and code spans. */
export function withoutCode(text: string): string {
  return text.replace(/^(`{3,}(?!`)|~{3,}(?!~))[^]*?^\1[^\n]*$/gm, '').replace(/`[^`\n]*`/g, '');
}

/** `{{compound_names}}` outside code in a folder of templates or prompts: the language is unknown, but somebody fills them in. */
function looksExpanded(input: FormatInput): boolean {
  if (!/(?:^|\/)(?:[\w-]*(?:prompt|template)s?|handlebars|hbs|mustache|jinja2?)\/(?:[^/]+\/)?[^/]+$/i.test(input.path)) return false;
  return /\{\{\s*[a-z]\w*(?:[._]\w+)+\s*\}\}/.test(withoutCode(input.text));
}

function settings(input: FormatInput): Parser | null {
  if (isPromptfooConfig(input)) return parsePromptfooConfig;
  const { data, problems } = readYaml(input.text);
  if (data === null && problems.length > 0 && /\.prompt\.ya?ml$/i.test(input.path)) return (i) => ({ ...parseLiteral(i, 'text', 'nobody: the YAML could not be read'), problems });
  const root = record(data);
  const variables = list(root['input_variables']);
  if ('_type' in root && ('template' in root || 'template_path' in root || 'example_prompt' in root || 'messages' in root || 'prefix' in root)) return parseLangchain;
  if (typeof root['template'] === 'string' && ('template_format' in root || 'execution_settings' in root || variables.some((v) => typeof v === 'object'))) {
    return variables.some((v) => typeof v === 'string') ? parseLangchain : parseSemanticKernelYaml;
  }
  if (typeof root['template'] === 'string' && variables.length > 0) return parseLangchain;
  const messages = list(root['messages']);
  if (messages.length > 0 && messages.every((m) => typeof record(m)['role'] === 'string')) return parseGithubModels;
  const use = promptfooUse(input.path, input.readFile);
  return use === null ? null : (i) => parsePromptfooFile(i, use);
}

function isPromptfooConfig(input: FormatInput): boolean {
  if (/(?:^|\/)promptfooconfig[\w.-]*\.(?:ya?ml|json)$/i.test(input.path)) return true;
  if (!/\.ya?ml$/i.test(input.path)) return false;
  return /^prompts\s*:/m.test(input.text) && /^(?:providers|targets)\s*:/m.test(input.text);
}

function json(input: FormatInput, name: string): Parser | null {
  if (/^promptfooconfig/.test(name)) return parsePromptfooConfig;
  let data: unknown;
  try {
    data = JSON.parse(input.text.replace(/^\ufeff/, ''));
  } catch {
    // Tags around the messages of a chat array leave no JSON before they are filled in.
    const listed = promptfooUse(input.path, input.readFile);
    if (listed !== null) return (i) => parsePromptfooFile(i, listed);
    return /"messages"\s*:|"contents"\s*:/.test(input.text.slice(0, 5000)) && /"role"\s*:/.test(input.text.slice(0, 20_000)) ? parseRequestJson : null;
  }
  const root = record(data);
  if (typeof root['chat_template'] === 'string') return parseTokenizerConfig;
  const use = promptfooUse(input.path, input.readFile);
  if (use !== null) return (i) => parsePromptfooFile(i, use);
  if (root['lc'] === 1 || ('_type' in root && ('template' in root || 'template_path' in root || 'messages' in root || 'example_prompt' in root || 'prompt' in root)) || (Array.isArray(root['input_variables']) && 'template' in root)) return parseLangchain;
  return isRequest(data) ? parseRequestJson : null;
}

/** The chat template inside a `tokenizer_config.json`. */
function parseTokenizerConfig(input: FormatInput): ParsedFormat {
  return parseChatTemplate(input, readSettings(input).text('chat_template') ?? undefined);
}

function jsonl(input: FormatInput): Parser | null {
  const first = input.text.replace(/^\ufeff/, '').split('\n').find((line) => line.trim() !== '');
  try {
    return first !== undefined && isRequest(JSON.parse(first)) ? parseRequestJsonl : null;
  } catch {
    return /"messages"|"body"|"contents"/.test(first ?? '') ? parseRequestJsonl : null;
  }
}

function code(input: FormatInput, language: 'python' | 'javascript'): Parser | null {
  if (codeReader === null || !/prompt|system|instruct|persona|message|\byou(?:['’]re| are)\b|\byour (?:task|job|role|goal|purpose)\b|\bact as\b/i.test(input.text)) return null;
  const use = /prompt/i.test(input.path) ? promptfooUse(input.path, input.readFile) : null;
  const parsed = codeReader(input, language, use !== null);
  return parsed.prompts.length === 0 ? null : () => parsed;
}

function plain(input: FormatInput): Parser {
  const use = promptfooUse(input.path, input.readFile);
  if (use !== null) return (i) => parsePromptfooFile(i, use);
  const language = sniffTemplate(input.text);
  if (language !== null) return (i) => parseTemplateFile(i, language);
  if (looksExpanded(input)) return parseLooseTemplate;
  return (i) => parseLiteral(i, 'text', 'nobody: plain text, sent as it stands');
}
