/**
 * Lines in a comment of the file that change what is reported:
 * `first-token: off`, `first-token: ignore CODE`, `first-token: ignore-line [CODE]`, `first-token: NAME=constant`. `ignore-line` holds for its
 * line and the next; above a string of code or a YAML block, in which no comment can stand, for the whole of it.
 */
import type { Pragma, PromptFile, Span, Volatility } from './prompt';

const classes: ReadonlySet<string> = new Set<Volatility>(['constant', 'deploy', 'session', 'day', 'minute', 'request', 'unknown']);

/** Finds pragmas in the comments of the format, in front matter, and in the comments of code and data formats. */
export function findPragmas(file: Omit<PromptFile, 'pragmas'>): Pragma[] {
  if (!file.text.includes('first-token:')) return [];
  const regions: { start: number; end: number }[] = [];
  for (const prompt of file.prompts) for (const part of prompt.parts) collect(part.spans, regions);
  const first = file.prompts[0];
  const body = first?.start ?? 0;
  if (body > 0) regions.push({ start: 0, end: body });
  const line = lineComments[file.format];
  if (line !== undefined) for (const match of file.text.matchAll(line)) regions.push({ start: match.index, end: match.index + match[0].length });
  const found = new Map<number, Pragma>();
  for (const region of regions) for (const pragma of inRegion(file, region)) found.set(pragma.start, pragma);
  return [...found.values()].sort((a, b) => a.start - b.start);
}

const lineComments: Partial<Record<PromptFile['format'], RegExp>> = {
  python: /#[^\n]*/g,
  javascript: /\/\/[^\n]*|\/\*[^]*?\*\//g,
  baml: /\/\/[^\n]*/g,
  'github-models': /(?:^|\s)#[^\n]*/g,
  promptfoo: /(?:^|\s)#[^\n]*|\{#[^]*?#\}/g,
  'semantic-kernel': /(?:^|\s)#[^\n]*/g,
  langchain: /(?:^|\s)#[^\n]*/g,
  markdown: /<!--[^]*?-->/g,
  'claude-markdown': /<!--[^]*?-->/g,
  poml: /<!--[^]*?-->/g,
};

function collect(spans: readonly Span[], regions: { start: number; end: number }[]): void {
  for (const span of spans) {
    if (span.kind === 'comment') regions.push({ start: span.start, end: span.end });
    else if (span.kind === 'control') for (const branch of span.branches) collect(branch.spans, regions);
    // The blocks of this file stand inside the parent that it extends.
    else if (span.kind === 'include') collectLocal(span.spans ?? [], regions);
  }
}

function collectLocal(spans: readonly Span[], regions: { start: number; end: number }[]): void {
  for (const span of spans) {
    if (span.kind === 'control' && span.local === true) collect([span], regions);
    else if (span.kind === 'control') for (const branch of span.branches) collectLocal(branch.spans, regions);
    else if (span.kind === 'include') collectLocal(span.spans ?? [], regions);
  }
}

const withoutComments: ReadonlySet<PromptFile['format']> = new Set<PromptFile['format']>(['python', 'javascript', 'github-models', 'promptfoo', 'semantic-kernel', 'langchain']);

/** The last line an `ignore-line` at an offset holds for. */
function lastLine(file: Omit<PromptFile, 'pragmas'>, offset: number, line: number): number {
  if (!withoutComments.has(file.format)) return line + 1;
  const newline = file.text.indexOf('\n', offset);
  if (newline < 0) return line + 1;
  for (const { parts } of file.prompts) {
    const follows = ({ start }: Span) => start > newline && start < newline + 2000 && /^\s*[^\n]*$/.test(file.text.slice(newline + 1, start));
    const part = parts.find(({ spans }) => spans[0] !== undefined && follows(spans[0]));
    if (part !== undefined) return Math.max(line + 1, lineOf(file.text, (part.spans.at(-1)?.end ?? part.end) - 1));
  }
  return line + 1;
}

function inRegion(file: Omit<PromptFile, 'pragmas'>, region: { start: number; end: number }): Pragma[] {
  const { text } = file;
  const out: Pragma[] = [];
  const source = text.slice(region.start, region.end);
  for (const match of source.matchAll(/first-token:[ \t]*([^\n]*)/g)) {
    const start = region.start + match.index;
    const place = { start, end: start + match[0].length };
    const words = match[1]!.replace(/(?:--\}\}|-->|#\}|\*\/|\}\}|%\}).*$/, '').split(/[\s,;]+/).filter((w) => w !== '');
    const [command, argument] = words;
    if (command === 'off') out.push({ ...place, pragma: 'off' });
    else if (command === 'ignore' && argument !== undefined) out.push({ ...place, pragma: 'ignore', code: argument });
    else if (command === 'ignore-line') {
      const line = lineOf(text, start);
      out.push({ ...place, pragma: 'ignore-line', line, last: lastLine(file, start, line), code: argument ?? null });
    }
    else {for (const [i, word] of words.entries()) {
      const pair = /^([^=]+)=(\w+)$/.exec(word);
      if (pair !== null && classes.has(pair[2]!)) out.push({ start: place.start + i, end: place.end, pragma: 'variable', name: pair[1]!, volatility: pair[2] as Volatility });
    }}
  }
  return out;
}

function lineOf(text: string, offset: number): number {
  let line = 1;
  for (let i = text.indexOf('\n'); i >= 0 && i < offset; i = text.indexOf('\n', i + 1)) line += 1;
  return line;
}
