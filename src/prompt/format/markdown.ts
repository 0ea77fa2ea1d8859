/** Markdown that is sent as it stands (VS Code prompts, instructions, agents, skills; AGENTS.md), and what Claude Code expands in its own. */
import { Located } from '../located';
import type { ExpressionSpan, FormatId, Span } from '../prompt';
import { promptOf, type FormatInput, type ParsedFormat } from './format';
import { findInclude, insideInclude, templateContext, type TemplateContext } from './template';
import { frontMatter, readYaml, record } from './yaml';

/** Parses plain Markdown or text: one literal; front matter is not sent. */
export function parseLiteral(input: FormatInput, format: 'markdown' | 'text', host: string): ParsedFormat {
  const front = format === 'markdown' ? frontMatter(input.text) : null;
  const body = front?.body ?? (input.text.startsWith('\ufeff') ? 1 : 0);
  const spans: Span[] = [...(front === null ? [] : [comment(input.text, 0, front.body)]), ...literal(input.text, body, input.text.length)];
  return single(input, format, host, false, spans, templateContext(input.path, input.readFile));
}

/** Parses a Claude Code command or skill: `$ARGUMENTS`, `$1` (in a file that tells of no arguments: in commands, outside of code), `` !`command` `` and ```` ```! ```` blocks are expanded when it is loaded. */
export function parseClaudeCommand(input: FormatInput): ParsedFormat {
  const front = frontMatter(input.text);
  const settings = front === null ? {} : record(readYaml(input.text, front.start, front.end).data);
  const body = front?.body ?? 0;
  const positional = 'argument-hint' in settings || 'arguments' in settings || input.text.includes('$ARGUMENTS');
  const command = /(?:^|\/)\.claude\/commands\//.test(input.path);
  const code = positional || !command ? [] : [...input.text.matchAll(/^(`{3,}(?!`)|~{3,}(?!~))[^]*?^\1[^\n]*$|`[^`\n]*`/gm)].map((m) => [m.index, m.index + m[0].length] as const);
  const isArgument = (at: number) => positional || (command && !code.some(([from, to]) => from < at && at < to));
  const spans: Span[] = front === null ? [] : [comment(input.text, 0, front.body)];
  const pattern = /^```!\s*\n[^]*?^```[ \t]*$|(?<![`\w!])!`([^`\s][^`\n]*)`|\$ARGUMENTS(?:\[\d+\])?|\$(\d)(?!\d|[.,]\d)/gm;
  pattern.lastIndex = body;
  let from = body;
  for (let match = pattern.exec(input.text); match !== null; match = pattern.exec(input.text)) {
    if (match[2] !== undefined && !isArgument(match.index)) continue;
    spans.push(...literal(input.text, from, match.index));
    from = pattern.lastIndex;
    const line = match[1] ?? (match[0].startsWith('```') ? match[0].slice(4, -3).trim() : null);
    spans.push(expansion(input.text, match.index, from, line));
  }
  spans.push(...literal(input.text, from, input.text.length));
  return single(input, 'claude-markdown', 'Claude Code (expands $ARGUMENTS and runs !`commands` at load)', true, spans, templateContext(input.path, input.readFile));
}

/** Parses CLAUDE.md: HTML comments are not sent, `@path` on its own word imports a file. */
export function parseClaudeMemory(input: FormatInput): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  return single(input, 'markdown', 'Claude Code: plain Markdown, sent as it stands', false, memorySpans(input.text, context), context);
}

function memorySpans(text: string, context: TemplateContext): Span[] {
  const spans: Span[] = [];
  const pattern = /```[^]*?(?:```|$)|`[^`\n]*`|<!--[^]*?(?:-->|$)|(?<=^|\s)@([\w./~-]*[\w-])/g;
  let from = text.startsWith('\ufeff') ? 1 : 0;
  for (const match of text.matchAll(pattern)) {
    const place = { start: match.index, end: match.index + match[0].length };
    if (match[0].startsWith('<!--')) {
      spans.push(...literal(text, from, place.start), comment(text, place.start, place.end));
      from = place.end;
    } else if (match[1] !== undefined && context.stack.length <= 5) {
      const found = findInclude([match[1]], context);
      if (found === null) continue;
      spans.push(...literal(text, from, place.start));
      spans.push({ kind: 'include', ...place, source: match[0], target: match[1], references: [], path: found.path, spans: memorySpans(found.text, insideInclude(context, found.path)) });
      from = place.end;
    }
  }
  spans.push(...literal(text, from, text.length));
  return spans;
}

function expansion(text: string, start: number, end: number, command: string | null): ExpressionSpan {
  const source = text.slice(start, end);
  const references = command === null ? [{ path: 'arguments', call: false, strings: [] }] : [{ path: 'subprocess.run', label: command, call: true, strings: [] }];
  return { kind: 'expression', start, end, source, name: command ?? source, references, filters: [], clockFormat: null, constant: null, literals: [], macro: null, output: true };
}

function literal(text: string, start: number, end: number): Span[] {
  return end > start ? [Located.slice(text, start, end).literal()] : [];
}

function comment(text: string, start: number, end: number): Span {
  return { kind: 'comment', start, end, text: text.slice(start, end) };
}

function single(input: FormatInput, format: FormatId, host: string, substituted: boolean, spans: readonly Span[], context: TemplateContext): ParsedFormat {
  const place = { start: 0, end: input.text.length };
  const part = { ...place, slot: 'messages' as const, role: 'user' as const, message: 0, block: 0, spans, toolNames: [] };
  return { format, language: null, host, substituted, prompts: [promptOf(place, [part], { macros: {} })], problems: context.problems, dependencies: [...context.dependencies] };
}
