/** Dotprompt (`*.prompt`: YAML front matter, Handlebars body) and stand-alone template files (Handlebars, Mustache, Jinja2, Nunjucks, Liquid). */
import { Located } from '../located';
import type { FormatId, Span } from '../prompt';
import { markRoles, parseTemplate, partsByRole, promptOf, variableOf, type FormatInput, type InnerLanguage, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { templateContext } from './template';
import { frontMatter, readYaml, record } from './yaml';

const messageTag = /<message\s+role\s*=\s*["'](\w+)["'][^>]*>/gi;
const roleTag = /<(system|user|assistant)>|<\/(?:system|user|assistant)>/gi;

/** Parses a Dotprompt file. `{{history}}` inserts the conversation; the text before any role mark is the user's. */
export function parseDotprompt(input: FormatInput): ParsedFormat {
  const { text } = input;
  const front = frontMatter(text);
  const header = front === null ? null : readYaml(text, front.start, front.end);
  const settings = record(header?.data);
  const body = front?.body ?? (text.startsWith('\ufeff') ? 1 : 0);
  const context = templateContext(input.path, input.readFile);
  const place = { start: body, end: text.length };
  const spans = parseTemplate(Located.slice(text, body), 'handlebars', context);
  const inputSettings = record(settings['input']);
  const defaults = record(inputSettings['default']);
  const variables = [
    ...Object.entries(defaults).map(([name, value]) => variableOf(name, { default: value })),
    variableOf('history', { messages: true }),
  ];
  return {
    format: 'dotprompt',
    language: 'handlebars',
    host: 'Genkit / Dotprompt (Handlebars)',
    substituted: true,
    prompts: [
      promptOf(place, partsByRole(spans, 'user', place), {
        macros: context.macros,
        variables,
        samples: Object.keys(defaults).length === 0 ? [] : [defaults],
        model: typeof settings['model'] === 'string' ? settings['model'] : null,
      }),
    ],
    problems: [...(header?.problems ?? []), ...context.problems],
    dependencies: [...context.dependencies],
  };
}

/** A `.prompt` file of Continue: settings, a line `---`, then `<system>` and a Handlebars body. */
export function parseContinuePrompt(input: FormatInput): ParsedFormat {
  const front = frontMatter(input.text);
  const preamble = front === null ? /^---[ \t]*\r?\n/m.exec(input.text) : null;
  const body = front?.body ?? (preamble === null ? 0 : preamble.index + preamble[0].length);
  return { ...template(input, 'handlebars', 'handlebars', 'Continue (Handlebars)', body, 'user', roleTag) };
}

const hosts: Readonly<Record<string, string>> = {
  handlebars: 'Handlebars (the application that loads this file)',
  mustache: 'Mustache (the application that loads this file)',
  jinja: 'Jinja2 (the application that loads this file)',
  nunjucks: 'Nunjucks (the application that loads this file)',
  liquid: 'Liquid (the application that loads this file)',
};

/** A stand-alone template file; front matter is not sent. Without roles the whole text is one system message. */
export function parseTemplateFile(input: FormatInput, language: 'handlebars' | 'mustache' | 'jinja' | 'nunjucks' | 'liquid'): ParsedFormat {
  const body = frontMatter(input.text)?.body ?? (input.text.startsWith('\ufeff') ? 1 : 0);
  return template(input, language, language, hosts[language]!, body, 'system', messageTag);
}

/** Text with `{{names}}` in a folder of templates, in a language nobody names: plain replacement, as far as can be told. */
export function parseLooseTemplate(input: FormatInput): ParsedFormat {
  const body = frontMatter(input.text)?.body ?? (input.text.startsWith('\ufeff') ? 1 : 0);
  return { ...template(input, 'mustache', 'double-brace', 'probably the application that loads this file (it stands in a folder of templates)', body, 'system', null), guessed: true };
}

/** A template the host applies to the whole conversation (`chat_template.jinja`, or `located` inside another file). */
export function parseChatTemplate(input: FormatInput, located?: Located): ParsedFormat {
  const parsed = template(input, 'chat-template', 'jinja', 'inference server chat template engine', input.text.startsWith('\ufeff') ? 1 : 0, 'system', null, located);
  return { ...parsed, prompts: parsed.prompts.map((p) => ({ ...p, chatTemplate: true })) };
}

function template(input: FormatInput, format: FormatId, language: InnerLanguage, host: string, body: number, first: 'system' | 'user', roles: RegExp | null, located = Located.slice(input.text, body)): ParsedFormat {
  const context = { ...templateContext(input.path, input.readFile), trimsBlocks: format === 'chat-template' };
  const place = { start: located.at(0), end: located.endAt(located.text.length) };
  const spans = parseTemplate(located, language, context);
  const marked: Span[] = roles === null ? spans : markRoles(spans, roles, (m) => (m[1] === undefined ? 'user' : roleOf(m[1])));
  return {
    format,
    language,
    host,
    substituted: true,
    prompts: [promptOf(place, partsByRole(marked, first, place), { macros: context.macros })],
    problems: context.problems,
    dependencies: [...context.dependencies],
  };
}
