/** The small template languages: Semantic Kernel's own, plain `{{name}}` replacement, and Python format strings (`{name}`). */
import { readExpression, readHelper } from '../expression';
import type { Located } from '../located';
import type { Span } from '../prompt';
import { scan } from './scanner';
import { expressionSpan, rawSpan, report, textSpan, type TemplateContext } from './template';

/** Semantic Kernel: `{{$x}}` is a variable, `{{name}}` and `{{plugin.name $x}}` are calls, `{{'text'}}` is text. */
export function parseSemanticKernel(located: Located, context: TemplateContext): Span[] {
  const spans: Span[] = [];
  for (const token of scan(located.text, 'semantic-kernel')) {
    if (token.type === 'text') textSpan(located, token, undefined, undefined, spans);
    else if (token.type === 'raw') {
      if (token.unclosed === true) report(context, located, token, 'This tag is never closed; it is read as text.');
      spans.push(rawSpan(located, token));
    } else {
      const inner = located.text.slice(token.inner.start, token.inner.end).trim();
      if (inner === '' || !/^[$"'\w]/.test(inner)) {
        spans.push(located.literal(token.start, token.end));
        continue;
      }
      const parts = readHelper(inner);
      const variable = inner.startsWith('$');
      const references = parts.references.map((r, i) => (i === 0 && !variable && parts.constant === null ? { ...r, call: true } : r));
      spans.push(expressionSpan(located, token, inner, { ...parts, references, plain: variable ? parts.plain : null }));
    }
  }
  return spans;
}

/** Plain replacement of `{{name}}` (GitHub Models): anything else between braces is text. */
export function parseDoubleBraces(located: Located): Span[] {
  return replaceMatches(located, /\{\{\s*([A-Za-z_][\w.-]*)\s*\}\}/g);
}

/**
 * A Python format string: `{name}`, `{name.attr!r:fmt}`; `{{` and `}}` are braces; `{"a": 1}` is text. `positional`: `{}` and `{0}`
 * are places too, as `str.format` has them; their `name` is empty or the number.
 */
export function parseFormatString(located: Located, positional = false): Span[] {
  const spans: Span[] = [];
  const pattern = positional
    ? /\{\{|\}\}|\{((?:[A-Za-z_]\w*|\d*)(?:\.\w+|\[[^\]{}]*\])*)(?:![rsa])?(?::[^{}]*)?\}/g
    : /\{\{|\}\}|\{([A-Za-z_]\w*(?:\.\w+|\[[^\]{}]*\])*)(?:![rsa])?(?::[^{}]*)?\}/g;
  let from = 0;
  for (const match of located.text.matchAll(pattern)) {
    if (match.index > from) spans.push(located.literal(from, match.index));
    from = match.index + match[0].length;
    if (match[1] === undefined) spans.push({ kind: 'literal', start: located.at(match.index), end: located.endAt(from), text: match[0][0]!, map: [[0, located.at(match.index)]] });
    else if (/^\d*(?:[.[]|$)/.test(match[1])) {
      const parts = withFormat(match[0], 'value');
      spans.push({ ...expressionSpan(located, { start: match.index, end: from }, match[0], { ...parts, plain: /^\d*/.exec(match[1])![0] }), references: [{ path: match[0], call: false, strings: parts.filterStrings }] });
    } else spans.push(expressionSpan(located, { start: match.index, end: from }, match[1], withFormat(match[0], match[1])));
  }
  if (from < located.text.length) spans.push(located.literal(from, located.text.length));
  return spans;
}

function withFormat(source: string, name: string): ReturnType<typeof readExpression> {
  const parts = readExpression(name);
  const format = /:([^}]*)\}$/.exec(source)?.[1];
  return format?.includes('%') === true ? { ...parts, filterStrings: [format] } : parts;
}

/** The text of Python's `string.Template`: `$name`, `${name}`; `$$` is one dollar. */
export function parseDollars(located: Located): Span[] {
  return replaceMatches(located, /(?<!\$)\$(?:([A-Za-z_]\w*)|\{([A-Za-z_]\w*)\})/g);
}

/** Text where each match of `pattern` (group 1 or 2 its name) is one plain variable. */
export function replaceMatches(located: Located, pattern: RegExp): Span[] {
  const spans: Span[] = [];
  let from = 0;
  for (const match of located.text.matchAll(pattern)) {
    if (match.index > from) spans.push(located.literal(from, match.index));
    from = match.index + match[0].length;
    spans.push(expressionSpan(located, { start: match.index, end: from }, match[1] ?? match[2]!, readExpression(match[1] ?? match[2]!)));
  }
  if (from < located.text.length) spans.push(located.literal(from, located.text.length));
  return spans;
}
