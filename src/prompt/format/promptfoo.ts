/** promptfoo: prompts written in the configuration, and prompt files that a configuration lists (Nunjucks over text or chat arrays). */
import { Located } from '../located';
import type { Part, Prompt, Span } from '../prompt';
import { parseTemplate, partsByRole, promptOf, variableOf, type FormatInput, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { folderOf, joinPath, templateContext, type ReadFile, type TemplateContext } from './template';
import { list, readYaml, record } from './yaml';
import { messageParts, readSettings } from './yamlPrompts';

const configNames = ['promptfooconfig.yaml', 'promptfooconfig.yml', 'promptfooconfig.json'];
const host = 'promptfoo (Nunjucks)';

/** Parses a configuration: each prompt written in place is one; listed files are prompts of their own. */
export function parsePromptfooConfig(input: FormatInput): ParsedFormat {
  const settings = readSettings(input);
  const data = record(settings.data);
  const samples = sampleSets(data);
  const context = templateContext(input.path, input.readFile);
  const prompts: Prompt[] = [];
  const entries = Array.isArray(data['prompts']) ? data['prompts'] : typeof data['prompts'] === 'string' ? [data['prompts']] : [];
  entries.forEach((entry, i) => {
    const at: (string | number)[] = Array.isArray(data['prompts']) ? ['prompts', i] : ['prompts'];
    const path = typeof entry === 'string' ? at : typeof record(entry)['raw'] === 'string' ? [...at, 'raw'] : null;
    const located = path === null ? null : settings.text(...path);
    if (located === null || isFileReference(located.text)) return;
    const place = { start: located.at(0), end: located.endAt(located.text.length) };
    const spans = chatMarks(parseTemplate(located, 'nunjucks', context), located);
    prompts.push(promptOf(place, partsByRole(spans, 'user', place), { macros: context.macros, samples, variables: variablesOf(data), name: `prompt ${String(i + 1)}` }));
  });
  return { format: 'promptfoo', language: 'nunjucks', host, substituted: prompts.length > 0, prompts, problems: [...settings.problems, ...context.problems], dependencies: [...context.dependencies] };
}

/** What a configuration says about a file: its samples, or null when none lists it. */
export interface PromptfooUse {
  readonly samples: readonly Readonly<Record<string, unknown>>[];
  readonly variables?: Prompt['variables'];
  readonly config: string;
}

/** Looks for a configuration in the file's folder and three above that lists the file. */
export function promptfooUse(path: string, readFile: ReadFile): PromptfooUse | null {
  let folder = folderOf(path);
  for (let level = 0; level < 4; level += 1) {
    for (const name of configNames) {
      const config = joinPath(folder, name);
      const text = readFile(config);
      if (text === null || text.length > 500_000) continue;
      const data = record(readYaml(text).data);
      const entries = Array.isArray(data['prompts']) ? data['prompts'] : [data['prompts']];
      const listed = entries.flatMap((e) => (typeof e === 'string' ? [e] : [record(e)['id'], record(e)['file'], record(e)['path']].filter((x) => typeof x === 'string')));
      if (listed.some((entry) => matches(entry, folder, path))) return { samples: sampleSets(data), variables: variablesOf(data), config };
    }
    if (folder === '' || folder === '/') break;
    folder = folderOf(folder);
  }
  return null;
}

/** A prompt file that a configuration lists: text with `---` between prompts, or a chat array in JSON or YAML. */
export function parsePromptfooFile(input: FormatInput, use: PromptfooUse): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  const start = input.text.startsWith('\ufeff') ? 1 : 0;
  const messages = chatParts(input, context);
  if (messages !== null) {
    const prompt = promptOf({ start, end: input.text.length }, messages, { macros: context.macros, samples: use.samples, variables: use.variables ?? [] });
    return { format: 'promptfoo', language: 'nunjucks', host, substituted: true, prompts: [prompt], problems: context.problems, dependencies: [...context.dependencies, use.config] };
  }
  const chat = /\.(?:json|ya?ml)$/i.test(input.path) || /^\s*\[\s*\{/.test(input.text);
  const pieces = chat ? [[start, input.text.length] as const] : splitPrompts(input.text, start);
  const prompts = pieces.map(([from, to], i) => {
    const place = { start: from, end: to };
    const spans = chatMarks(parseTemplate(Located.slice(input.text, from, to), 'nunjucks', context), Located.slice(input.text, from, to));
    const parts: Part[] = partsByRole(spans, 'user', place);
    return promptOf(place, parts, { macros: context.macros, samples: use.samples, variables: use.variables ?? [], name: pieces.length > 1 ? `prompt ${String(i + 1)}` : null });
  });
  return { format: 'promptfoo', language: 'nunjucks', host, substituted: true, prompts, problems: context.problems, dependencies: [...context.dependencies, use.config] };
}

/** The messages of a chat array that can be read before its templates are filled in; null when tags stand around them, or it is none. */
function chatParts(input: FormatInput, context: TemplateContext): Part[] | null {
  if (!/\.(?:json|ya?ml)$/i.test(input.path)) return null;
  const settings = readSettings(input);
  const messages = list(settings.data);
  const plain = messages.length > 0 && messages.every((message) => typeof record(message)['role'] === 'string' && typeof record(message)['content'] === 'string' && roleOf(record(message)['role'] as string) !== null);
  return plain && settings.problems.length === 0 ? messageParts(settings, messages, [], (located) => parseTemplate(located, 'nunjucks', context)) : null;
}

function splitPrompts(text: string, start: number): (readonly [number, number])[] {
  const pieces: (readonly [number, number])[] = [];
  let from = start;
  for (const match of text.matchAll(/^---[ \t]*\r?$\n?/gm)) {
    if (text.slice(from, match.index).trim() !== '') pieces.push([from, match.index]);
    from = match.index + match[0].length;
  }
  if (text.slice(from).trim() !== '' || pieces.length === 0) pieces.push([from, text.length]);
  return pieces;
}

/** In a chat array the role keys begin messages; the JSON or YAML around them is not text. For arrays with tags around their messages. */
function chatMarks(spans: readonly Span[], located: Located): Span[] {
  if (!/^\s*(?:\[\s*\{|-\s+role\s*:)/.test(located.text)) return [...spans];
  return spans.flatMap((given, index): Span[] => {
    if (given.kind !== 'literal') return [given];
    const tail = index === spans.length - 1 ? /(?:"\s*\})?\s*\]\s*$/.exec(given.text) : null;
    const span = tail === null ? given : cut(given, 0, tail.index);
    const out: Span[] = [];
    let from = 0;
    for (const match of span.text.matchAll(/(?:"\s*\}\s*)?[[,\-\s]*\{?\s*"?role"?\s*:\s*"?(\w+)"?\s*,?\s*"?content"?\s*:\s*(?:"|[|>]-?\s*\n)?/g)) {
      const role = roleOf(match[1]);
      if (role === null) continue;
      if (match.index > from) out.push(cut(span, from, match.index));
      from = match.index + match[0].length;
      out.push({ kind: 'role-mark', start: cut(span, match.index, from).start, end: cut(span, match.index, from).end, role });
    }
    if (from < span.text.length) out.push(cut(span, from, span.text.length));
    return out;
  });
}

function cut(span: Extract<Span, { kind: 'literal' }>, from: number, to: number): Extract<Span, { kind: 'literal' }> {
  const located = new Located(span.text, span.map ?? [[0, span.start]], span.end);
  return located.literal(from, to);
}

function isFileReference(text: string): boolean {
  return !text.includes('\n') && !text.includes('{{') && (/^file:\/\//.test(text) || /\.(?:txt|json|jsonl|ya?ml|md|py|js|ts|mjs|cjs|csv|j2)(?::\w+)?$/.test(text) || /^(?:exec|langfuse|portkey|helicone):/.test(text) || text.includes('*'));
}

function matches(entry: string, folder: string, path: string): boolean {
  const target = entry.replace(/^file:\/\//, '').replace(/(\.(?:py|js|ts|mjs|cjs)):\w+$/, '$1');
  if (target.includes('\n') || target.length > 500) return false;
  const full = joinPath(folder, target);
  if (!target.includes('*')) return full === joinPath('', path) || full === path;
  const pattern = full.replace(/[.+^${}()|[\]\\]/g, '\\$&').replace(/\*\*\/?/g, '\u0000').replace(/\*/g, '[^/]*').replace(/\u0000/g, '.*');
  return new RegExp(`^${pattern}$`).test(path);
}

function sampleSets(data: Readonly<Record<string, unknown>>): Readonly<Record<string, unknown>>[] {
  const base = record(record(data['defaultTest'])['vars']);
  const tests = list(data['tests']).map((t) => ({ ...base, ...record(record(t)['vars']) }));
  const scenarios = list(data['scenarios']).flatMap((s) => list(record(s)['config']).map((c) => ({ ...base, ...record(record(c)['vars']) })));
  const sets = [...tests, ...scenarios].filter((s) => Object.keys(s).length > 0);
  return sets.length > 0 ? sets : Object.keys(base).length > 0 ? [base] : [];
}

/** What `defaultTest` gives; `shared` when no test gives another value and it is no template itself. */
function variablesOf(data: Readonly<Record<string, unknown>>): Prompt['variables'] {
  const samples = sampleSets(data);
  return Object.entries(record(record(data['defaultTest'])['vars'])).map(([name, value]) => {
    const text = JSON.stringify(value) ?? '';
    const shared = !Array.isArray(value) && !/\{\{|\{%|^"file:/.test(text) && samples.every((s) => JSON.stringify(s[name]) === text);
    return variableOf(name, { default: value, ...(shared ? { shared } : {}) });
  });
}
