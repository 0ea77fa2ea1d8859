/** Quick fixes for changing places and structure findings: plain text edits with a title and a preview. Nothing here is applied on save. */
import { findNodeAtLocation, getNodeValue, parseTree, type Node } from 'jsonc-parser';
import { holds, type Claim } from './fixProof';
import type { ChangingPlace, PrefixReport } from './prefix';
import type { FormatId, Part, Piece, Place, Prompt, PromptFile, Span, Volatility } from './prompt';
import { formatClass } from './vocabulary';

/** Replaces `[start, end)` of the file (UTF-16 units) by `text`. Edits of one fix never overlap. */
export interface TextEdit extends Place {
  readonly text: string;
}

/** What a fix does, for grouping and tests. */
export type FixKind = 'move-behind' | 'move-to-user' | 'coarsen' | 'split' | 'marker' | 'sort-tools' | 'classify' | 'ignore';

/** A fix that edits the file, or one that changes a setting. */
export type Fix =
  | { readonly kind: FixKind; readonly title: string; /** Removed and added lines, each behind `− ` or `+ `. */ readonly preview: string; readonly edits: readonly TextEdit[] }
  | { readonly kind: 'classify'; readonly title: string; readonly preview: string; readonly setting: { readonly key: 'firstToken.prefix.variables'; readonly name: string; readonly value: Volatility } };

/** The text after a fix's edits. */
export function applyEdits(text: string, edits: readonly TextEdit[]): string {
  let out = '';
  let at = 0;
  for (const edit of [...edits].sort((a, b) => a.start - b.start || a.end - b.end)) {
    out += text.slice(at, edit.start) + edit.text;
    at = edit.end;
  }
  return out + text.slice(at);
}

function previewOf(text: string, edits: readonly TextEdit[]): string {
  const shown = (sign: string, part: string) =>
    part.trim() === ''
      ? []
      : part
          .replace(/^\r?\n|\r?\n$/g, '')
          .split(/\r?\n/)
          .map((line) => `${sign} ${line}`);
  return edits.flatMap((edit) => [...shown('−', text.slice(edit.start, edit.end)), ...shown('+', edit.text)]).join('\n');
}

/** An edit that keeps what it replaces, as insertions before and behind it: a preview then shows what comes, not the whole text struck out. */
function insertionsOf(text: string, edit: TextEdit): readonly TextEdit[] {
  const old = text.slice(edit.start, edit.end);
  const at = old === '' ? -1 : edit.text.indexOf(old);
  if (at < 0) return [edit];
  return [
    { start: edit.start, end: edit.start, text: edit.text.slice(0, at) },
    { start: edit.end, end: edit.end, text: edit.text.slice(at + old.length) },
  ].filter(({ text: added }) => added !== '');
}

/** The fix, with the file's own line ends; none when the edited file would not be what the claim says. */
function editFix(kind: FixKind, title: string, file: PromptFile, given: readonly TextEdit[], claim: Claim | null): Fix[] {
  const { text } = file;
  const ended = /\r\n/.test(text) && !/(?:^|[^\r])\n/.test(text) ? given.map((edit) => ({ ...edit, text: edit.text.replace(/\r?\n/g, '\r\n') })) : given;
  const edits = ended.flatMap((edit) => insertionsOf(text, edit));
  return claim !== null && !proved(file, edits, claim) ? [] : [{ kind, title, preview: previewOf(text, edits), edits }];
}

const proofs = new WeakMap<PromptFile, Map<string, boolean>>();

/** Whether the claim holds, found out once: an editor asks for the fixes with every move of the cursor. */
function proved(file: PromptFile, edits: readonly TextEdit[], claim: Claim): boolean {
  const known = proofs.get(file) ?? new Map<string, boolean>();
  proofs.set(file, known);
  const key = JSON.stringify([edits, claim]);
  const result = known.get(key) ?? holds(file, applyEdits(file.text, edits), claim);
  known.set(key, result);
  return result;
}

/** What fixes are made for. */
export interface FixContext {
  readonly file: PromptFile;
  readonly prompt: Prompt;
  readonly pieces: readonly Piece[];
  readonly report: PrefixReport;
}

const isContent = (span: Span) => span.kind === 'literal' || span.kind === 'raw' || span.kind === 'expression' || span.kind === 'control' || span.kind === 'include' || span.kind === 'media';

/** Where the source of a literal's index stands. */
function sourceAt(span: Extract<Span, { kind: 'literal' | 'raw' }>, index: number): number {
  const pair = span.map?.findLast(([from]) => from <= index);
  return pair === undefined ? span.start + index : pair[1] + (index - pair[0]);
}

/** Where the text of a part ends in the file, white space at the end left out; null when it has none. */
function contentEnd(part: Part): number | null {
  for (const span of [...part.spans].reverse()) {
    if (!isContent(span)) continue;
    if (span.kind !== 'literal' && span.kind !== 'raw') return span.end;
    const length = span.text.trimEnd().length;
    if (length > 0) return sourceAt(span, length - 1) + 1;
  }
  return null;
}

/** The spans around an offset that follow each other without a gap and are all wanted, so that no border of a string lies between them. */
function run(part: Part, at: number, wanted: (span: Span) => boolean): readonly Span[] {
  const { spans } = part;
  const index = spans.findIndex((span) => span.start <= at && at < span.end);
  const follows = (left: number) => spans[left] !== undefined && spans[left + 1] !== undefined && spans[left].end === spans[left + 1]?.start && wanted(spans[left]) && wanted(spans[left + 1]!);
  if (spans[index] === undefined || !wanted(spans[index])) return [];
  let [from, to] = [index, index];
  while (follows(from - 1)) from -= 1;
  while (follows(to)) to += 1;
  return spans.slice(from, to + 1);
}

/** The stretch of plain text and expressions around a place that can be cut anywhere: no control tags, marks, comments or ends of a string in it. */
function freeStretch(part: Part, at: number): Place | null {
  const spans = run(part, at, ({ kind }) => kind === 'literal' || kind === 'expression');
  const [first, last] = [spans[0], spans.at(-1)];
  return first === undefined || last === undefined ? null : { start: first.start, end: last.end };
}

const isCode = (file: PromptFile) => file.format === 'python' || file.format === 'javascript';

/** How the string of code around an offset of a part opens: its prefix and its quotes; null when none does. */
function opening(file: PromptFile, part: Part, at: number): { readonly prefix: string; readonly quotes: string } | null {
  const start = run(part, at, () => true)[0]?.start;
  const found = start === undefined ? null : /([A-Za-z]*)("""|'''|["'`])$/.exec(file.text.slice(Math.max(0, start - 8), start));
  return found === null ? null : { prefix: found[1]!.toLowerCase(), quotes: found[2]! };
}

/** How lines are broken where a part is written: real line breaks, `\n` inside a string, or not at all. */
type Breaks = 'lines' | 'escaped' | 'none';

/** `at` tells which of several strings of code is meant. */
function breaksOf(file: PromptFile, part: Part, at: number): Breaks {
  const { text } = file;
  if (isCode(file)) {
    const string = opening(file, part, at);
    return string === null ? 'none' : string.quotes.length === 3 || string.quotes === '`' ? 'lines' : string.prefix.includes('r') ? 'none' : 'escaped';
  }
  const sources = part.spans.filter(isContent).map((span) => ({ start: span.start, source: span.kind === 'literal' ? text.slice(span.start, span.end) : '' }));
  if (sources.some(({ source }) => /[\r\n]/.test(source))) return 'lines';
  if (sources.some(({ source }) => source.includes('\\n')) && sources.some(({ start: at }) => isQuoted(text, at))) return 'escaped';
  const scalar = /\.(?:ya?ml|json)$/i.test(file.path) || jsonMarkers.has(file.format);
  return scalar || sources.some(({ start: at }) => isQuoted(text, at)) ? 'none' : 'lines';
}

/** True when the text at an offset stands inside a quoted string that begins on its line. */
function isQuoted(text: string, offset: number): boolean {
  const line = text.slice(text.lastIndexOf('\n', offset - 1) + 1, offset);
  return /(?:^|[:[,]|-)\s*(?:"[^"]*|'[^']*)$/.test(line);
}

interface Unit extends Place {
  /** What is written at the new place. */
  readonly text: string;
  readonly whole: 'line' | 'sentence' | 'value';
}

const longestLine = 240;

/** The smallest part of the text that can be moved with the place: its line, else its sentence, else the value alone. */
function unitAround(file: PromptFile, part: Part, place: Place): Unit | null {
  const { text } = file;
  const stretch = freeStretch(part, place.start);
  if (stretch === null || place.end > stretch.end) return null;
  const breaks = breaksOf(file, part, place.start);
  const line = breaks === 'none' ? stretch : lineIn(text, stretch, place, breaks);
  const whole = text.slice(line.start, line.end);
  const alone = line.start <= stretch.start && line.end >= stretch.end;
  if (breaks !== 'none' && !alone && whole.length <= longestLine) return { ...withBreak(text, stretch, line, breaks), text: whole.trim(), whole: 'line' };
  const sentence = sentenceIn(text, line, place);
  const said = text.slice(sentence.start, sentence.end);
  if (sentence.start <= stretch.start && sentence.end >= stretch.end) return null;
  return { start: sentence.start, end: sentence.end + (/^[ \t]+/.exec(text.slice(sentence.end, line.end))?.[0].length ?? 0), text: said.trim(), whole: said.trim() === text.slice(place.start, place.end) ? 'value' : 'sentence' };
}

function lineIn(text: string, stretch: Place, place: Place, breaks: Breaks): Place {
  const mark = breaks === 'escaped' ? '\\n' : '\n';
  const before = text.lastIndexOf(mark, place.start - 1);
  const after = text.indexOf(mark, place.end);
  const start = Math.max(stretch.start, before < 0 ? 0 : before + mark.length);
  const end = Math.min(stretch.end, after < 0 ? text.length : after);
  return { start, end: text[end - 1] === '\r' ? end - 1 : end };
}

/** The line with one of its line breaks and its indentation, so that no empty line is left. */
function withBreak(text: string, stretch: Place, line: Place, breaks: Breaks): Place {
  if (breaks === 'escaped') return text.startsWith('\\n', line.end) && line.end < stretch.end ? { start: line.start, end: line.end + 2 } : line;
  const indent = /[ \t]*$/.exec(text.slice(0, line.start))?.[0].length ?? 0;
  const atStart = line.start - indent === 0 || text[line.start - indent - 1] === '\n';
  const lineBreak = /^\r?\n/.exec(text.slice(line.end))?.[0].length ?? 0;
  return { start: atStart ? line.start - indent : line.start, end: line.end + lineBreak };
}

function sentenceIn(text: string, line: Place, place: Place): Place {
  const before = [...text.slice(line.start, place.start).matchAll(/[.!?]["')\]]*[ \t]+/g)].at(-1);
  const after = /[.!?]["')\]]*(?=\s|$)/.exec(text.slice(place.end, line.end));
  return { start: before === undefined ? line.start : line.start + before.index + before[0].length, end: after === null ? line.end : place.end + after.index + after[0].length };
}

/** The edit that writes a unit behind the text of a part, in the way that part breaks its lines; null when its quotes forbid it. */
function writeAtEnd(file: PromptFile, part: Part, unit: Unit, from: Part): TextEdit | null {
  const at = contentEnd(part);
  if (at === null) return null;
  const breaks = breaksOf(file, part, at - 1);
  const there = isCode(file) ? opening(file, part, at - 1) : null;
  const here = isCode(file) ? opening(file, from, unit.start) : null;
  if (isCode(file) && (there === null || here === null)) return null;
  if (there?.quotes !== here?.quotes && there !== null && unit.text.includes(there.quotes[0]!)) return null;
  if ((part !== from || there?.quotes !== here?.quotes) && breaks !== breaksOf(file, from, unit.start) && /["'\\]/.test(unit.text)) return null;
  if (breaks !== 'lines' && /[\r\n]/.test(unit.text)) return null;
  if (unit.whole !== 'line' && part === from) return { start: at, end: at, text: ` ${unit.text}` };
  const indent = /^[ \t]*/.exec(file.text.slice(file.text.lastIndexOf('\n', at - 1) + 1, at))?.[0] ?? '';
  const separator = breaks === 'lines' ? `\n${indent}` : breaks === 'escaped' ? '\\n' : ' ';
  return { start: at, end: at, text: `${separator}${unit.text}` };
}

const movable = (piece: Piece) => piece.kind === 'value' && !piece.foreign && piece.branches.length === 0 && piece.loop === 'constant' && piece.span.kind === 'expression';

function moveFixes(place: ChangingPlace, piece: Piece, { file, prompt, pieces }: FixContext): Fix[] {
  const part = prompt.parts[piece.part];
  if (part === undefined || !movable(piece)) return [];
  const unit = unitAround(file, part, place);
  if (unit === null) return [];
  const what = unit.whole === 'line' ? 'line' : unit.whole === 'sentence' ? 'sentence' : 'value';
  const cut: TextEdit = { start: unit.start, end: unit.end, text: '' };
  const moved = (to: number): Claim => ({ kind: 'moved', prompt: file.prompts.indexOf(prompt), from: piece.part, to, unit });
  const fixes: Fix[] = [];
  const own = writeAtEnd(file, part, unit, part);
  const behind = pieces.some((p) => p.part === piece.part && p.kind === 'static' && p.end > unit.end && (p.foreign || file.text.slice(Math.max(p.start, unit.end), p.end).trim() !== ''));
  if (own !== null && behind && own.start >= unit.end) fixes.push(...editFix('move-behind', `Move the ${what} behind the static text`, file, [cut, own], moved(piece.part)));
  const user = prompt.parts.findLast((p) => p.slot === 'messages' && p.role === 'user' && contentEnd(p) !== null);
  if (user !== undefined && user !== part && prompt.parts.indexOf(user) > piece.part) {
    const there = writeAtEnd(file, user, unit, part);
    if (there !== null) fixes.push(...editFix('move-to-user', `Move the ${what} into the last user message`, file, [cut, there], moved(prompt.parts.indexOf(user))));
  }
  return fixes;
}

/** A date format without its time of day, or null when nothing sensible is left. */
export function coarsenFormat(format: string): string | null {
  if (formatClass(format) !== 'minute') return null;
  if (format.includes('%')) return coarsenDirectives(format);
  const coarse = format
    .replace(/([Hhkmsa])\s*'[^']*'\s*$/, '$1')
    .replace(/(?:\s*'T'|[\sT,:.-])*(?:HH?|hh?|kk?|mm|ss?|S+|tt|aa?|A|Z+|z+|XXX?|xxx?)(?![A-Za-z])/g, '')
    .replace(/^[\s,:.-]+|[\s,:.-]+$/g, '');
  return coarse === '' ? 'yyyy-MM-dd' : formatClass(coarse) === 'day' ? coarse : null;
}

const isTime = (token: string | undefined) => token !== undefined && /^%[-_#]?[HIklMSfLpPXTRrsQNzZ]$/.test(token);
const isDirective = (token: string | undefined) => token !== undefined && /^%[-_#]?[A-Za-z]$/.test(token);

/** A `strftime` format: the directives for the time of day go, and the text that belongs to them. */
function coarsenDirectives(format: string): string | null {
  const tokens = format.replace(/%[-_#]?c/g, '%x').match(/%[-_#]?[A-Za-z]|(?:(?!%[-_#]?[A-Za-z])[^])+/g) ?? [];
  const kept: string[] = [];
  for (const [i, token] of tokens.entries()) {
    const [before, behind] = [tokens[i - 1], tokens[i + 1]];
    if (isDirective(token)) kept.push(...(isTime(token) ? [] : [token]));
    else if (isTime(before)) {
      // Words between the time and the date could belong to either.
      if (isDirective(behind) && !isTime(behind) && /\p{L}/u.test(token)) return null;
      if (isDirective(behind) && !isTime(behind) && kept.some((one) => isDirective(one))) kept.push(token);
    } else if (isTime(behind) && isDirective(before)) kept.push(/^[^\s,T:.-]*/.exec(token)![0]);
    else kept.push(token);
  }
  if (!kept.some((token) => isDirective(token))) return '%Y-%m-%d';
  const coarse = kept.join('').trim();
  return formatClass(coarse) === 'day' ? coarse : null;
}

/** Clock calls without a format that give a text, and how the same language writes the date alone. */
const coarser: readonly (readonly [RegExp, string])[] = [
  [/\btime\.(?:now|utcnow|Now|UtcNow)\b/, 'time.Date'],
  [/\bCURRENT_(?:DATETIME|TIME)\b/, 'CURRENT_DATE'],
  [/\bnew Date\(\)\.toISOString\(\)(?!\.slice)/, 'new Date().toISOString().slice(0, 10)'],
  [/\bnew Date\(\)\.toLocale(?:Time)?String\((?![^)]*(?:hour|minute|second|timeStyle))/, 'new Date().toLocaleDateString('],
  [/\b((?:datetime\.)?datetime\.(?:utcnow|now)\([^()]*\))\.isoformat\(\)/, '$1.date().isoformat()'],
];

/** A clock object alone in its substitution (nothing computes with it, no filter or format takes it), which Python and Jinja turn into text by `strftime`. */
const clockAlone = /^(\{\{?[-+~]?\s*|)(str\(\s*)?((?:(?:datetime\.)?datetime\.)?(?:utcnow|now)\([^()]*\))(\s*\))?(\s*[-+~]?\}\}?|)$/;

/** The texts that may stand for a clock expression without its time of day, best first. */
function coarserSources(source: string, piece: Piece, file: PromptFile, part: Part | undefined): readonly string[] {
  if (piece.span.kind !== 'expression') return [];
  const replaced = (format: string, at: number) => {
    const coarse = coarsenFormat(format);
    return coarse === null || at < 0 ? [] : [source.slice(0, at) + coarse + source.slice(at + format.length)];
  };
  const { clockFormat } = piece.span;
  if (clockFormat !== null) return replaced(clockFormat, source.indexOf(clockFormat));
  // The format behind the colon of an f-string's replacement.
  const spec = file.format !== 'python' ? undefined : piece.span.references.flatMap(({ strings }) => strings).find((text) => text !== '' && source.endsWith(`:${text}}`));
  if (spec !== undefined) return replaced(spec, source.length - 1 - spec.length);
  const rule = coarser.find(([pattern]) => pattern.test(source));
  if (rule !== undefined) return [source.replace(rule[0], rule[1])];
  const alone = file.format === 'python' || (file.language === 'jinja' && file.format !== 'baml') ? clockAlone.exec(source) : null;
  if (alone === null || (alone[2] === undefined) !== (alone[4] === undefined)) return [];
  const quotes = part === undefined ? undefined : opening(file, part, piece.start)?.quotes[0];
  const usable = isCode(file) ? (quotes === "'" ? ['"'] : ["'"]) : ["'", '"'];
  return usable.map((quote) => `${alone[1] ?? ''}${alone[3] ?? ''}.strftime(${quote}%Y-%m-%d${quote})${alone[5] ?? ''}`);
}

function coarsenFix(place: ChangingPlace, piece: Piece, { file, prompt }: FixContext): Fix[] {
  if (place.judgement.volatility !== 'minute' || piece.foreign || piece.span.kind !== 'expression') return [];
  const source = file.text.slice(place.start, place.end);
  const claim: Claim = { kind: 'coarser', prompt: file.prompts.indexOf(prompt), at: place.start, most: 'day' };
  const title = 'Use the date without the time of day';
  for (const text of coarserSources(source, piece, file, prompt.parts[piece.part])) {
    const changed = narrowed(source, text);
    const fix = editFix('coarsen', title, file, [{ start: place.start + changed.start, end: place.start + changed.end, text: changed.text }], claim);
    if (fix.length > 0) return fix;
  }
  return [];
}

/** The stretch in which two texts differ, as an edit of the first. */
function narrowed(from: string, to: string): TextEdit {
  const shorter = Math.min(from.length, to.length);
  let start = 0;
  while (start < shorter && from[start] === to[start]) start += 1;
  let tail = 0;
  while (tail < shorter - start && from[from.length - 1 - tail] === to[to.length - 1 - tail]) tail += 1;
  return { start, end: from.length - tail, text: to.slice(start, to.length - tail) };
}

/** How each format begins a message of a role at the start of a line; null where it cannot. */
function roleLine(file: PromptFile, part: Part, role: string, indent: string): string | null {
  switch (file.format) {
    case 'prompty':
      return `${role}:\n`;
    case 'dotprompt':
      return `{{role "${role === 'assistant' ? 'model' : role}"}}\n`;
    case 'baml':
      return `${indent}{{ _.role("${role}") }}\n`;
    case 'semantic-kernel':
      return file.text.slice(part.start, part.end).startsWith('<message') ? `</message>\n<message role="${role}">\n` : null;
    case 'github-models': {
      const item = /^([ \t]*)-[ \t]/.exec(file.text.slice(file.text.lastIndexOf('\n', part.start) + 1))?.[1];
      return item === undefined || breaksOf(file, part, part.start) !== 'lines' ? null : `${item}- role: ${role}\n${item}  content: |\n`;
    }
    default:
      return null;
  }
}

function splitFix(place: ChangingPlace, piece: Piece, { file, prompt, report, pieces }: FixContext): Fix[] {
  const part = prompt.parts[piece.part];
  if (part === undefined || report.rule.family !== 'breakpoints' || piece.foreign || piece.branches.length > 0 || piece.loop !== 'constant') return [];
  if (report.sameVariant.end?.start !== place.start) return [];
  const stretch = freeStretch(part, place.start);
  if (stretch === null || breaksOf(file, part, place.start) !== 'lines') return [];
  const line = lineIn(file.text, stretch, place, 'lines');
  const at = file.text.lastIndexOf('\n', line.start - 1) + 1;
  const before = pieces.some((p) => p.part === piece.part && p.kind === 'static' && p.start < at && p.text.trim() !== '');
  if (!before || file.text.slice(at, line.start).trim() !== '') return [];
  // OpenAI places its breakpoint at the end of all leading system messages together, so the rest has to be a user message there.
  const role = part.slot === 'system' && report.rule.breakpoints?.implicit === 'message-ends' ? 'user' : part.role;
  const marked = roleLine(file, part, role, file.text.slice(at, line.start));
  return marked === null ? [] : editFix('split', `End the message before this line; the rest becomes a ${role} message`, file, [{ start: at, end: at, text: marked }], { kind: 'split', prompt: file.prompts.indexOf(prompt) });
}

/** Fixes for one changing place, best first. Moving text can change what it means: show the preview. */
export function placeFixes(place: ChangingPlace, context: FixContext, code: string | null): readonly Fix[] {
  const piece = context.pieces[place.piece];
  if (piece === undefined) return [];
  const worth = place.changes && place.lostTokens > 0;
  return [
    ...(worth ? moveFixes(place, piece, context) : []),
    ...coarsenFix(place, piece, context),
    ...splitFix(place, piece, context),
    ...classifyFixes(place),
    ...ignoreFixes(context.file, place, code),
  ];
}

function classifyFixes(place: ChangingPlace): Fix[] {
  const { name, evidence } = place.judgement;
  if (name === '' || evidence === 'pragma' || evidence === 'setting' || place.judgement.strength === 'certain') return [];
  return (['constant', 'session'] as const)
    .filter((value) => value !== place.judgement.volatility)
    .map((value) => ({ kind: 'classify' as const, title: `Mark ${name} as ${value === 'constant' ? 'constant' : 'the same within a session'} (settings)`, preview: `+ "firstToken.prefix.variables": { "${name}": "${value}" }`, setting: { key: 'firstToken.prefix.variables' as const, name, value } }));
}

interface CommentStyle {
  /** A comment that sends nothing, right behind an expression. */
  readonly inline: ((text: string) => string) | null;
  /** A comment line for the whole file, and where it goes. */
  readonly line: (text: string) => string;
  readonly top: (text: string) => number;
  /** True in YAML, where a comment may follow a value or the header of a block. */
  readonly behind?: boolean;
  /** True when the inline comment is text to its host and is sent. */
  readonly sent?: boolean;
}

const start = (text: string) => (text.startsWith('\ufeff') ? 1 : 0);
const afterFence = (text: string) => /^\ufeff?---[ \t]*\r?\n/.exec(text)?.[0].length ?? start(text);
const hash = (text: string) => `# ${text}\n`;
const html = (text: string) => `<!-- ${text} -->`;
const jinja: CommentStyle = { inline: (text) => `{# ${text} #}`, line: (text) => `{# ${text} -#}\n`, top: start };
const handlebars: CommentStyle = { inline: (text) => `{{! ${text} }}`, line: (text) => `{{! ${text} }}\n`, top: start };
const hashTop: CommentStyle = { inline: null, line: hash, top: start, behind: true };
const frontMatter = (text: string) => afterFence(text) > start(text);

/** Comments by format; null where a file of that kind has none. */
function commentStyle(file: PromptFile): CommentStyle | null {
  switch (file.format) {
    case 'prompty':
      if (!frontMatter(file.text)) return file.language === 'mustache' ? handlebars : jinja;
      return { inline: file.language === 'mustache' ? handlebars.inline : jinja.inline, line: hash, top: afterFence };
    case 'dotprompt':
      return frontMatter(file.text) ? { inline: handlebars.inline, line: hash, top: afterFence } : handlebars;
    case 'handlebars':
    case 'mustache':
      return handlebars;
    case 'jinja':
    case 'chat-template':
    case 'nunjucks':
      return jinja;
    case 'liquid': {
      const comment = (text: string) => `{% comment %} ${text} {% endcomment %}`;
      return { inline: comment, line: comment, top: start };
    }
    case 'github-models':
      return hashTop;
    case 'promptfoo':
      return /\.ya?ml$/i.test(file.path) ? hashTop : jinja;
    case 'semantic-kernel':
    case 'langchain':
      return /\.ya?ml$/i.test(file.path) ? hashTop : null;
    case 'baml':
      return { inline: jinja.inline, line: (text) => `// ${text}\n`, top: start };
    case 'markdown':
    case 'claude-markdown': {
      const stripped = /claude(?:\.local)?\.md$/i.test(file.path);
      if (frontMatter(file.text)) return { inline: html, sent: !stripped, line: hash, top: afterFence };
      // CLAUDE.md loses its comments on loading; a command or skill would send them, but not its front matter.
      const fenced = file.format === 'claude-markdown' && !stripped;
      return { inline: html, sent: !stripped, line: fenced ? (text) => `---\n# ${text}\n---\n` : (text) => `${html(text)}\n`, top: start };
    }
    case 'poml':
      return { inline: html, line: (text) => `${html(text)}\n`, top: start };
    case 'python':
      return { inline: null, line: hash, top: (text) => /^#!.*\r?\n/.exec(text)?.[0].length ?? start(text) };
    case 'javascript':
      return { inline: null, line: (text) => `// ${text}\n`, top: (text) => /^#!.*\r?\n/.exec(text)?.[0].length ?? start(text) };
    case 'request-json':
    case 'request-jsonl':
    case 'text':
      return null;
  }
}

/** A comment behind the place, or where none can stand inside a string or block: at its head. */
function ignoreHere(file: PromptFile, place: Place, style: CommentStyle, pragma: string): TextEdit | null {
  const { text } = file;
  if (style.inline !== null) return { start: place.end, end: place.end, text: style.inline(pragma) };
  const spans = file.prompts.flatMap(({ parts }) => parts).find((part) => (part.spans[0]?.start ?? Infinity) <= place.start && place.end <= (part.spans.at(-1)?.end ?? 0))?.spans;
  const [from, to] = [spans?.[0]?.start, spans?.at(-1)?.end];
  if (from === undefined || to === undefined) return null;
  const lineStart = text.lastIndexOf('\n', from - 1) + 1;
  const lineEnd = (offset: number) => {
    const end = text.indexOf('\n', offset);
    return end < 0 ? text.length : text[end - 1] === '\r' ? end - 1 : end;
  };
  if (style.behind) {
    const header = /[|>][-+\d]*[ \t]*\r?\n\s*$/.exec(text.slice(0, from));
    const single = !/[\r\n]/.test(text.slice(from, to).trimEnd());
    const at = header !== null ? lineEnd(header.index) : single ? lineEnd(from) : null;
    // On one line a value may be followed by more of a flow list or map, where a comment would swallow it.
    if (at !== null && (header !== null || /^["']?[ \t]*$/.test(text.slice(Math.min(to, at), at)))) return { start: at, end: at, text: ` # ${pragma}` };
  }
  const indent = /^[ \t]*/.exec(text.slice(lineStart))?.[0] ?? '';
  return { start: lineStart, end: lineStart, text: `${indent}${style.line(pragma)}` };
}

/** Fixes that silence a finding by a pragma in the file's own comments: here, this code in the file, everything in the file. */
export function ignoreFixes(file: PromptFile, place: Place, code: string | null): readonly Fix[] {
  const style = commentStyle(file);
  if (style === null) return [];
  const top = style.top(file.text);
  const sent = style.sent === true;
  const atTop = (title: string, pragma: string, claim: Claim | null) => editFix('ignore', title, file, [{ start: top, end: top, text: style.line(pragma) }], claim);
  const edit = ignoreHere(file, place, style, `first-token: ignore-line${code === null ? '' : ` ${code}`}`);
  const line = (edit === null || edit.start > place.start ? 0 : edit.text.split('\n').length - 1) + file.text.slice(0, place.start).split('\n').length;
  const here = edit === null ? [] : editFix('ignore', sent ? 'Ignore here (the comment is sent with the prompt)' : 'Ignore here', file, [edit], { kind: 'silenced', line, sent });
  const whole = atTop('Ignore this file', 'first-token: off', { kind: 'silenced', line: null, sent });
  // A comment at the same place: where the one is heeded the other is.
  const rule = code === null || whole.length === 0 ? [] : atTop(`Ignore ${code} in this file`, `first-token: ignore ${code}`, null);
  return [...here, ...rule, ...whole];
}

type Marker = 'cache_control' | 'prompt_cache_breakpoint' | 'cachePoint';
const markerValue: Readonly<Record<Marker, string>> = { cache_control: '{"type": "ephemeral"}', prompt_cache_breakpoint: '{"mode": "explicit"}', cachePoint: '{"type": "default"}' };

/** Writes a marker on one JSON block: a string becomes a list of one text block, an object gets one more key. */
function markJson(file: PromptFile, part: Part, marker: Marker): TextEdit | null {
  const source = file.text.slice(part.start, part.end);
  const node = parseTree(source);
  if (node === undefined) return null;
  if (marker === 'cachePoint') return node.type === 'object' ? { start: part.end, end: part.end, text: `, {"cachePoint": ${markerValue.cachePoint}}` } : null;
  if (node.type === 'string') {
    const type = /"input"\s*:/.test(file.text) && !/"messages"\s*:/.test(file.text) ? 'input_text' : 'text';
    return { start: part.start, end: part.end, text: `[{"type": "${type}", "text": ${source}, "${marker}": ${markerValue[marker]}}]` };
  }
  const object = node.type === 'array' ? node.children?.at(-1) : node;
  const last = object?.type === 'object' ? object.children?.at(-1) : undefined;
  if (last === undefined) return null;
  const at = part.start + last.offset + last.length;
  return { start: at, end: at, text: `, "${marker}": ${markerValue[marker]}` };
}

/** The last part before the first changing place that ends a static block, and could carry a marker. */
function staticPart(context: FixContext, can: (part: Part) => boolean): Part | null {
  const { prompt, pieces, report } = context;
  const end = report.sameVariant.end;
  const broken = end === null ? Infinity : (pieces[end.piece]?.part ?? Infinity);
  // With nothing known to change, what follows the system text is the part that differs between requests.
  const candidates = prompt.parts.filter((part, i) => i < broken && can(part));
  const stable = end === null ? candidates.filter((part) => part.slot !== 'messages') : candidates;
  return stable.at(-1) ?? (report.withMarker === null ? undefined : candidates.at(-1)) ?? null;
}

const jsonMarkers = new Set<FormatId>(['request-json', 'request-jsonl']);

/** A cache marker behind the static block, in formats that have one (raw requests, BAML) and under rules that read one. */
export function markerFixes(context: FixContext): readonly Fix[] {
  const { file, pieces, report } = context;
  const marker = report.rule.breakpoints?.marker as Marker | undefined;
  if (marker === undefined || !(marker in markerValue) || pieces.some((piece) => piece.kind === 'mark')) return [];
  const title = `Add a ${marker} marker after the static block`;
  if (jsonMarkers.has(file.format)) {
    const atInstructions = (part: Part) => marker === 'prompt_cache_breakpoint' && (part.slot === 'tools' || /"instructions"\s*:\s*$/.test(file.text.slice(0, part.start)));
    const part = staticPart(context, (p) => !atInstructions(p));
    const edit = part === null ? null : markJson(file, part, marker);
    return edit === null ? [] : editFix('marker', title, file, [edit], { kind: 'readable' });
  }
  if (file.format !== 'baml' || marker !== 'cache_control') return [];
  const role = /_\.role\(\s*(["'])\w+\1\s*(?=\))/;
  const part = staticPart(context, (p) => p.spans.some((s) => s.kind === 'role-mark' && role.test(file.text.slice(s.start, s.end))));
  const mark = part?.spans.find((s) => s.kind === 'role-mark');
  const found = mark === undefined ? null : role.exec(file.text.slice(mark.start, mark.end));
  if (mark === undefined || found === null) return [];
  const at = mark.start + found.index + found[0].length;
  return editFix('marker', `${title} (the client needs allowed_role_metadata ["cache_control"])`, file, [{ start: at, end: at, text: `, cache_control=${markerValue.cache_control}` }], { kind: 'readable' });
}

function toolName(node: Node): string | null {
  for (const path of [['name'], ['function', 'name'], ['toolSpec', 'name']]) {
    const value = findNodeAtLocation(node, path);
    if (value?.type === 'string') return getNodeValue(value) as string;
  }
  return null;
}

/** Sorts the tools of a raw request by name; none when they are sorted, unnamed, or one of them carries a marker. */
export function sortToolsFix(context: FixContext): readonly Fix[] {
  const { file, prompt } = context;
  const part = prompt.parts.find((p) => p.slot === 'tools');
  if (part === undefined || !jsonMarkers.has(file.format)) return [];
  const source = file.text.slice(part.start, part.end);
  const nodes = parseTree(source)?.children ?? [];
  const tools = nodes.map((node) => ({ name: toolName(node), text: source.slice(node.offset, node.offset + node.length), node }));
  if (tools.some((tool) => tool.name === null || tool.text.includes('"cache_control"'))) return [];
  const sorted = [...tools].sort((a, b) => ((a.name ?? '') < (b.name ?? '') ? -1 : 1));
  const edits = tools.flatMap((tool, i) => {
    const text = sorted[i]?.text ?? tool.text;
    return text === tool.text ? [] : [{ start: part.start + tool.node.offset, end: part.start + tool.node.offset + tool.node.length, text }];
  });
  return edits.length === 0 ? [] : editFix('sort-tools', 'Sort the tools by name', file, edits, { kind: 'readable' });
}
