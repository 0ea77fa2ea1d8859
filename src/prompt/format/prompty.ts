/** Prompty (`*.prompty`, both front matter versions): Jinja2 or Mustache under role lines, `{% extends %}`, threads. */
import { Located } from '../located';
import type { Part, Prompt, Variable } from '../prompt';
import { markRoles, parseTemplate, languageNamed, partsByRole, promptOf, variableOf, type FormatInput, type InnerLanguage, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { folderOf, joinPath, templateContext, type ReadFile } from './template';
import { frontMatter, list, readYaml, record } from './yaml';

const roleLine = /^(?:[ \t]*#)?[ \t]*(system|user|assistant|developer|function|tool)[ \t]*(?:\[[^\]\n]*\])?[ \t]*:[ \t]*(?:\r?\n|$)/gim;

/** Parses a Prompty file. */
export function parsePrompty(input: FormatInput): ParsedFormat {
  const { text } = input;
  const front = frontMatter(text);
  const header = front === null ? null : readYaml(text, front.start, front.end);
  const settings = record(header?.data);
  const body = front?.body ?? (text.startsWith('\ufeff') ? 1 : 0);
  const language = templateLanguage(settings);
  const context = templateContext(input.path, input.readFile);
  const place = { start: body, end: text.length };
  const spans = parseTemplate(Located.slice(text, body), language, context);
  const marked = markRoles(spans, roleLine, (m) => roleOf(m[1]));
  const parts: Part[] = partsByRole(marked, 'system', place);
  const variables = promptyVariables(settings);
  const model = record(settings['model']);
  const configuration = record(model['configuration']);
  const prompt: Prompt = promptOf(place, parts, {
    macros: context.macros,
    variables,
    samples: sampleSets(settings, variables, input),
    model: text_(model['id']) ?? text_(configuration['azure_deployment']) ?? text_(configuration['model']) ?? text_(record(model['connection'])['azure_deployment']),
    name: text_(settings['name']),
  });
  return {
    format: 'prompty',
    language,
    host: `Prompty runtime (${language === 'mustache' ? 'Mustache' : 'Jinja2'})`,
    substituted: true,
    prompts: [prompt],
    problems: [...(header?.problems ?? []), ...context.problems],
    dependencies: [...context.dependencies],
  };
}

function templateLanguage(settings: Readonly<Record<string, unknown>>): InnerLanguage {
  const template = settings['template'];
  const format = record(template)['format'];
  return languageNamed(template) ?? languageNamed(format) ?? languageNamed(record(format)['kind']) ?? languageNamed(record(template)['type']) ?? 'jinja';
}

/** Inputs as a list (v2) or a map (v1), with defaults and samples; `kind: thread` inserts messages. */
export function promptyVariables(settings: Readonly<Record<string, unknown>>): Variable[] {
  const inputs = settings['inputs'];
  if (Array.isArray(inputs)) return inputs.map(record).flatMap((i) => (typeof i['name'] === 'string' ? [fromEntry(i['name'], i)] : []));
  const map = record(inputs);
  const properties = 'properties' in map ? record(map['properties']) : map;
  return Object.entries(properties).map(([name, value]) => fromEntry(name, record(value)));
}

function fromEntry(name: string, entry: Readonly<Record<string, unknown>>): Variable {
  const sample = entry['sample'] ?? entry['example'];
  return variableOf(name, {
    ...(entry['default'] === undefined ? {} : { default: entry['default'] }),
    ...(sample === undefined ? {} : { sample }),
    messages: entry['kind'] === 'thread',
  });
}

function sampleSets(settings: Readonly<Record<string, unknown>>, variables: readonly Variable[], input: FormatInput): Readonly<Record<string, unknown>>[] {
  const defaults = Object.fromEntries(variables.filter((v) => v.default !== undefined || v.sample !== undefined).map((v) => [v.name, v.sample ?? v.default]));
  const sample = fileOr(settings['sample'], input.path, input.readFile);
  const inline = record(sample);
  const all = { ...defaults, ...inline };
  return Object.keys(all).length === 0 ? list(sample).map(record) : [all];
}

/** A value given in place, or read from `${file:x.json}` or `x.json`. */
function fileOr(value: unknown, path: string, readFile: ReadFile): unknown {
  const name = typeof value === 'string' ? (/^\$\{file:([^}]+)\}$/.exec(value)?.[1] ?? (value.endsWith('.json') ? value : null)) : null;
  if (name === null) return value;
  const text = readFile(joinPath(folderOf(path), name));
  if (text === null) return null;
  try {
    return JSON.parse(text) as unknown;
  } catch {
    return null;
  }
}

function text_(value: unknown): string | null {
  return typeof value === 'string' ? value : null;
}
