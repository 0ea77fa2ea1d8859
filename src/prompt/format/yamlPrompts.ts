/** Prompts inside YAML or JSON settings: GitHub Models, Semantic Kernel YAML and `skprompt.txt`, LangChain. */
import { findNodeAtLocation, getNodeValue, parseTree, type Node as JsonNode } from 'jsonc-parser';
import { decodeString, Located } from '../located';
import type { Part, Problem, Span, Variable } from '../prompt';
import { languageNamed, markRoles, parseTemplate, partsByRole, promptOf, slotOf, variableOf, type FormatInput, type InnerLanguage, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { findInclude, folderOf, insideInclude, joinPath, templateContext } from './template';
import { list, readYaml, record, yamlAt, yamlPlace, yamlText } from './yaml';

/** A settings file read as data, with access to the places of its strings. */
export interface Settings {
  readonly data: unknown;
  readonly problems: readonly Problem[];
  /** The text of the string at a path of keys, or null. */
  text(...path: readonly (string | number)[]): Located | null;
  /** The place of the value at a path. */
  place(...path: readonly (string | number)[]): { start: number; end: number };
}

/** Reads YAML (or JSON, by extension) with places. */
export function readSettings(input: FormatInput): Settings {
  if (/\.jsonc?$/i.test(input.path)) {
    const errors: { error: number; offset: number; length: number }[] = [];
    const root = parseTree(input.text, errors, { allowTrailingComma: true });
    return {
      data: root === undefined ? null : (getNodeValue(root) as unknown),
      problems: errors.slice(0, 1).map((e) => ({ start: e.offset, end: e.offset + Math.max(1, e.length), message: 'JSON: this cannot be read.' })),
      text: (...path) => jsonText(input.text, root === undefined ? undefined : findNodeAtLocation(root, [...path])),
      place: (...path) => jsonPlace(root === undefined ? undefined : findNodeAtLocation(root, [...path])),
    };
  }
  const region = readYaml(input.text);
  return {
    data: region.data,
    problems: region.problems,
    text: (...path) => yamlText(region, yamlAt(region, ...path)),
    place: (...path) => yamlPlace(region, yamlAt(region, ...path)),
  };
}

/** The text of a JSON string node with its places, or null. */
export function jsonText(source: string, node: JsonNode | undefined): Located | null {
  if (node?.type !== 'string') return null;
  const closed = node.length >= 2 && source[node.offset + node.length - 1] === '"';
  return decodeString(source, node.offset + 1, node.offset + node.length - (closed ? 1 : 0), 'json');
}

function jsonPlace(node: JsonNode | undefined): { start: number; end: number } {
  return node === undefined ? { start: 0, end: 0 } : { start: node.offset, end: node.offset + node.length };
}

/** GitHub Models `*.prompt.yml`: messages with plain `{{name}}`, samples from `testData`. */
export function parseGithubModels(input: FormatInput): ParsedFormat {
  const settings = readSettings(input);
  const data = record(settings.data);
  const parts = messageParts(settings, data['messages'], ['messages'], (located) => parseTemplate(located, 'double-brace', templateContext(input.path, input.readFile)));
  const samples = list(data['testData']).map(record);
  return {
    format: 'github-models',
    language: 'double-brace',
    host: 'GitHub Models (plain {{name}} replacement in messages)',
    substituted: true,
    prompts: [promptOf({ start: 0, end: input.text.length }, parts, { macros: {}, samples, model: text(data['model']), name: text(data['name']) })],
    problems: settings.problems,
    dependencies: [],
  };
}

/** One part for each `{role, content}` of a list in a settings file. */
export function messageParts(settings: Settings, messages: unknown, path: readonly (string | number)[], parse: (located: Located) => Span[]): Part[] {
  return list(messages).flatMap((message, index): Part[] => {
    const role = roleOf(text(record(message)['role']) ?? undefined) ?? 'user';
    const located = settings.text(...path, index, 'content');
    const spans = located === null ? [] : parse(located);
    const place = settings.place(...path, index);
    return [{ ...place, slot: slotOf(role), role, message: index, block: 0, spans, toolNames: [] }];
  });
}

const messageTag = /<message\s+role\s*=\s*["'](\w+)["'][^>]*>|<\/message>/gi;

/** Semantic Kernel YAML: `template`, `template_format`, `input_variables` with defaults. */
export function parseSemanticKernelYaml(input: FormatInput): ParsedFormat {
  const settings = readSettings(input);
  const data = record(settings.data);
  const language = languageNamed(data['template_format']) ?? 'semantic-kernel';
  const located = settings.text('template') ?? new Located('', [], 0);
  return semanticKernel(input, located, language, kernelVariables(data), settings.problems, text(data['name']));
}

/** Semantic Kernel `skprompt.txt` with the `config.json` beside it. */
export function parseSemanticKernelText(input: FormatInput): ParsedFormat {
  const configuration = input.readFile(joinPath(folderOf(input.path), 'config.json'));
  let data: Readonly<Record<string, unknown>> = {};
  try {
    data = configuration === null ? {} : record(JSON.parse(configuration));
  } catch {
    data = {};
  }
  const language = languageNamed(data['template_format']) ?? 'semantic-kernel';
  const start = input.text.startsWith('\ufeff') ? 1 : 0;
  const parsed = semanticKernel(input, Located.slice(input.text, start), language, kernelVariables(data), [], null);
  return { ...parsed, dependencies: [...parsed.dependencies, joinPath(folderOf(input.path), 'config.json')] };
}

function semanticKernel(input: FormatInput, located: Located, language: InnerLanguage, variables: readonly Variable[], problems: readonly Problem[], name: string | null): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  const spans = markRoles(parseTemplate(located, language, context), messageTag, (m) => (m[1] === undefined ? 'user' : roleOf(m[1])));
  const place = { start: located.at(0), end: located.endAt(located.text.length) };
  return {
    format: 'semantic-kernel',
    language,
    host: `Semantic Kernel (${language})`,
    substituted: true,
    prompts: [promptOf(place, partsByRole(spans, 'user', place), { macros: context.macros, variables, samples: defaultsOf(variables), name })],
    problems: [...problems, ...context.problems],
    dependencies: [...context.dependencies],
  };
}

function kernelVariables(data: Readonly<Record<string, unknown>>): Variable[] {
  const old = list(record(data['input'])['parameters']).map((p) => ({ ...record(p), default: record(p)['defaultValue'] }));
  return [...list(data['input_variables']).map(record), ...old].flatMap((entry) => {
    const name = text(record(entry)['name']);
    const given = record(entry)['default'];
    return name === null ? [] : [variableOf(name, given === undefined || given === '' ? {} : { default: given })];
  });
}

function defaultsOf(variables: readonly Variable[]): Readonly<Record<string, unknown>>[] {
  const given = variables.filter((v) => v.default !== undefined);
  return given.length === 0 ? [] : [Object.fromEntries(given.map((v) => [v.name, v.default]))];
}

/** LangChain prompts: `prompt`, `few_shot`, chat messages, and the serialised constructor form (`lc: 1`). */
export function parseLangchain(input: FormatInput): ParsedFormat {
  const settings = readSettings(input);
  const context = templateContext(input.path, input.readFile);
  const parts: Part[] = [];
  const variables: Variable[] = [];
  const languages = new Set<string>();
  const text_ = (value: unknown, path: readonly (string | number)[], language: InnerLanguage, role: Part['role'], message: number | null = null): void => {
    const located = settings.text(...path);
    if (located === null || typeof value !== 'string') return;
    languages.add(language);
    const spans = parseTemplate(located, language, context);
    parts.push({ start: located.at(0), end: located.endAt(located.text.length), slot: slotOf(role), role, message: message ?? parts.length, block: message === null ? 0 : parts.length - message, spans, toolNames: [] });
  };
  const file = (target: string, path: readonly (string | number)[], language: InnerLanguage, role: Part['role'], message: number | null = null): void => {
    const place = settings.place(...path);
    const found = findInclude([target], context);
    languages.add(language);
    const spans = found === null ? null : parseTemplate(Located.slice(found.text), language, insideInclude(context, found.path));
    const include: Span = { kind: 'include', ...place, source: target, target, references: [], path: found?.path ?? null, spans };
    parts.push({ ...place, slot: slotOf(role), role, message: message ?? parts.length, block: message === null ? 0 : parts.length - message, spans: [include], toolNames: [] });
  };
  const walk = (value: unknown, path: readonly (string | number)[], role: Part['role'], inherited: InnerLanguage): void => {
    const node = record(value);
    const kwargs = record(node['kwargs']);
    if ('lc' in node && 'kwargs' in node) {
      walk(kwargs, [...path, 'kwargs'], langchainRole(list(node['id']).at(-1)) ?? role, inherited);
      return;
    }
    const language = languageNamed(node['template_format']) ?? inherited;
    for (const [name, fixed] of Object.entries(record(node['partial_variables']))) variables.push(variableOf(name, { default: fixed, fixed: true }));
    if (node['_type'] === 'few_shot' || 'example_prompt' in node) fewShot(node, path, role, language);
    else if (typeof node['template'] === 'string') text_(node['template'], [...path, 'template'], language, role);
    else if (typeof node['template_path'] === 'string') file(node['template_path'], [...path, 'template_path'], language, role);
    else if ('prompt' in node) walk(node['prompt'], [...path, 'prompt'], role, language);
    else if ('content' in node && 'role' in node) text_(node['content'], [...path, 'content'], language, roleOf(text(node['role']) ?? undefined) ?? role);
    else if (Array.isArray(node['messages'])) node['messages'].forEach((m, i) => { walk(m, [...path, 'messages', i], 'user', language); });
  };
  const fewShot = (node: Readonly<Record<string, unknown>>, path: readonly (string | number)[], role: Part['role'], language: InnerLanguage): void => {
    const message = parts.length;
    if (typeof node['prefix_path'] === 'string') file(node['prefix_path'], [...path, 'prefix_path'], language, role, message);
    else text_(node['prefix'], [...path, 'prefix'], language, role, message);
    const example = record(node['example_prompt']);
    const located = settings.text(...path, 'example_prompt', 'template');
    if (located !== null && 'template' in example) {
      const spans = parseTemplate(located, languageNamed(example['template_format']) ?? language, context);
      const place = { start: located.at(0), end: located.endAt(located.text.length) };
      const loop: Span = {
        kind: 'control',
        control: 'loop',
        ...place,
        tag: { start: place.start, end: place.start },
        source: '',
        binds: ['*'],
        name: 'examples',
        references: 'example_selector' in node ? [{ path: 'selected_examples', call: false, strings: [] }] : [{ path: 'examples', call: false, strings: [] }],
        constant: null,
        branches: [{ tag: { start: place.start, end: place.start }, references: [], spans }],
        exhaustive: false,
      };
      parts.push({ ...place, slot: slotOf(role), role, message, block: parts.length - message, spans: [loop], toolNames: [] });
    }
    if (typeof node['suffix_path'] === 'string') file(node['suffix_path'], [...path, 'suffix_path'], language, role, message);
    else text_(node['suffix'], [...path, 'suffix'], language, role, message);
  };
  walk(settings.data, [], 'user', 'f-string');
  return {
    format: 'langchain',
    language: [...languages][0] ?? 'f-string',
    host: 'LangChain load_prompt',
    substituted: true,
    prompts: [promptOf({ start: 0, end: input.text.length }, parts, { macros: context.macros, variables, samples: defaultsOf(variables), name: text(record(settings.data)['name']) })],
    problems: [...settings.problems, ...context.problems],
    dependencies: [...context.dependencies],
  };
}

function langchainRole(id: unknown): Part['role'] | null {
  const name = typeof id === 'string' ? id : '';
  return name.startsWith('System') ? 'system' : name.startsWith('Human') ? 'user' : name.startsWith('AI') ? 'assistant' : null;
}

function text(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
