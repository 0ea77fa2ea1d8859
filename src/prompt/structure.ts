/** Findings about the shape of a prompt rather than its variables: bytes, blocks, markers, tools. None of them is ever a warning. */
import type { Piece, Place, Prompt, PromptFile } from './prompt';
import type { PrefixReport } from './prefix';
import { compareRequests, placeOfPath, requestsIn } from './requestDiff';
import { minimumOf } from './rules';
import type { TokenCounter } from './tokens';

/** Stable codes, each with a page of its own in the documentation. */
export type StructureCode =
  | 'byte-order-mark'
  | 'mixed-line-ends'
  | 'trailing-space'
  | 'unicode-form'
  | 'image-before-text'
  | 'marker-after-dynamic'
  | 'too-many-markers'
  | 'ttl-order'
  | 'look-back'
  | 'no-marker'
  | 'under-minimum'
  | 'variable-in-static-message'
  | 'unsorted-tools'
  | 'key-order';

/** One finding at its place in the file (UTF-16 units). `information`: tokens are lost; `hint`: it splits caches only where writers differ. */
export interface StructureFinding extends Place {
  readonly code: StructureCode;
  readonly severity: 'information' | 'hint';
  readonly message: string;
  /** Tokens lost because of it, 0 where that cannot be told. */
  readonly lostTokens: number;
}

const grouped = new Intl.NumberFormat('en-US');
const finding = (code: StructureCode, severity: StructureFinding['severity'], place: Place, message: string, lostTokens = 0): StructureFinding => ({ code, severity, start: place.start, end: place.end, message, lostTokens });

function lineEnds(text: string): StructureFinding[] {
  const ends = { '\r\n': 0, '\n': 0, '\r': 0 };
  const first: Partial<Record<keyof typeof ends, number>> = {};
  for (const match of text.matchAll(/\r\n|\r|\n/g)) {
    const end = match[0] as keyof typeof ends;
    ends[end] += 1;
    first[end] ??= match.index;
  }
  const used = (Object.keys(ends) as (keyof typeof ends)[]).filter((end) => ends[end] > 0).sort((a, b) => ends[a] - ends[b]);
  const rare = used[0];
  if (rare === undefined || used.length < 2) return [];
  const at = first[rare] ?? 0;
  const names = { '\r\n': 'CRLF', '\n': 'LF', '\r': 'CR' };
  return [finding('mixed-line-ends', 'hint', { start: at, end: at + rare.length }, `The file mixes line ends (${used.map((end) => `${ends[end]} ${names[end]}`).join(', ')}): a tool that changes them makes another prefix. Use one kind.`)];
}

/** Findings about the file's bytes, once a file. */
export function fileFindings(file: PromptFile): readonly StructureFinding[] {
  const bom = file.text.startsWith('\ufeff') ? [finding('byte-order-mark', 'hint', { start: 0, end: 1 }, 'The file begins with a byte order mark. Where it is sent, the prompt differs from its first byte on from one without it: save the file without it.')] : [];
  return [...bom, ...lineEnds(file.text)];
}

/** Offset in the file of an index of a static piece's text. */
function offsetIn(piece: Piece, index: number): number {
  if (piece.foreign) return piece.start;
  const pair = piece.map?.findLast(([from]) => from <= index);
  return pair === undefined ? piece.start + index : pair[1] + (index - pair[0]);
}

const spaceMatters = new Set<PromptFile['format']>(['prompty', 'dotprompt', 'handlebars', 'mustache', 'jinja', 'nunjucks', 'liquid', 'semantic-kernel', 'baml', 'chat-template']);

const beyondAscii = /[^\x00-\x7f]/;

function textFindings(file: PromptFile, pieces: readonly Piece[], report: PrefixReport): StructureFinding[] {
  const found: StructureFinding[] = [];
  const statics = pieces.filter((piece) => piece.kind === 'static' && !piece.foreign);
  if (spaceMatters.has(file.format) && !report.allStatic) {
    const matches = statics.filter((piece) => piece.span.kind !== 'expression' && /[ \t]\r?\n/.test(piece.text)).flatMap((piece) => [...piece.text.matchAll(/(?<![ \t])[ \t]+(?=\r?\n)/g)].map((m) => ({ piece, at: m.index, length: m[0].length })));
    const [first] = matches;
    if (first !== undefined) {
      const start = offsetIn(first.piece, first.at);
      const lines = matches.length === 1 ? 'One line ends' : `${matches.length} lines end`;
      found.push(finding('trailing-space', 'hint', { start, end: start + first.length }, `${lines} in spaces: an editor that strips them makes another prefix.`));
    }
  }
  for (const piece of statics) {
    if (!beyondAscii.test(piece.text)) continue;
    const composed = piece.text.normalize('NFC');
    if (composed === piece.text) continue;
    let at = 0;
    while (piece.text[at] === composed[at]) at += 1;
    const start = offsetIn(piece, at);
    found.push(finding('unicode-form', 'hint', { start, end: start + 1 }, 'Some characters are written in decomposed form (NFD): the same text in composed form (NFC), as most keyboards give it, is another prefix.'));
    break;
  }
  return found;
}

function mediaFindings(prompt: Prompt, pieces: readonly Piece[], counter: TokenCounter): StructureFinding[] {
  const found: StructureFinding[] = [];
  const seen = new Set<number | null>();
  for (const [i, image] of pieces.entries()) {
    if (image.kind !== 'media') continue;
    const message = prompt.parts[image.part]?.message ?? null;
    if (seen.has(message)) continue;
    seen.add(message);
    let tokens = 0;
    for (let k = i + 1; k < pieces.length; k += 1) {
      const piece = pieces[k];
      if (piece === undefined || (prompt.parts[piece.part]?.message ?? null) !== message) break;
      if (piece.kind === 'static' && piece.text.trim() !== '') tokens += counter.count(piece.text);
    }
    if (tokens === 0) continue;
    found.push(finding('image-before-text', 'information', image, `An image stands before ${grouped.format(tokens)} static tokens of the same message: another image makes them another prefix. Put the text first.`, tokens));
  }
  return found;
}

function markerFindings(prompt: Prompt, pieces: readonly Piece[], report: PrefixReport): StructureFinding[] {
  const found: StructureFinding[] = [];
  const marks = pieces.flatMap((piece, index) => (piece.kind === 'mark' && piece.span.kind === 'cache-mark' ? [{ piece, index, ttl: piece.span.ttl }] : []));
  const end = report.sameVariant.end?.piece ?? Infinity;
  const late = marks.filter((mark) => mark.index > end);
  const [first] = late;
  if (first !== undefined && report.sameVariant.end !== null) {
    const lost = late.length === marks.length ? report.sameVariant.common : 0;
    found.push(finding('marker-after-dynamic', 'information', first.piece, `This cache marker stands after ${report.sameVariant.end.text} (line ${report.sameVariant.end.line}), which changes: what it caches is not found again. Put a marker before it.`, lost));
  }
  const { breakpoints } = report.rule;
  const max = breakpoints?.max ?? 4;
  const surplus = marks[max];
  if (surplus !== undefined) found.push(finding('too-many-markers', 'information', surplus.piece, `${marks.length} cache markers, but ${report.rule.name} allows ${max}${breakpoints?.tooMany === 'refused' ? ' and refuses the request' : ''}. Remove ${marks.length - max}.`));
  const short = marks.findIndex((mark) => mark.ttl !== '1h');
  const hour = short < 0 ? undefined : marks.find((mark, i) => i > short && mark.ttl === '1h');
  if (hour !== undefined) found.push(finding('ttl-order', 'information', hour.piece, 'A marker of one hour stands after one of five minutes: longer ones must come first.'));
  return [...found, ...lookBack(prompt, marks, report)];
}

function lookBack(prompt: Prompt, marks: readonly { readonly piece: Piece }[], report: PrefixReport): StructureFinding[] {
  const reach = report.rule.breakpoints?.lookback;
  if (reach === undefined || marks.length === 0) return [];
  const last = prompt.parts.length - 1;
  const stops = [...marks.map((mark) => mark.piece.part), last];
  for (let i = 0; i + 1 < stops.length; i += 1) {
    const between = (stops[i + 1] ?? 0) - (stops[i] ?? 0);
    if (between < reach) continue;
    const place = marks[Math.min(i + 1, marks.length - 1)]?.piece;
    if (place === undefined) continue;
    const where = i + 1 < marks.length ? 'between this cache marker and the one before it' : 'after the last cache marker';
    return [finding('look-back', 'information', place, `${between} blocks lie ${where}; ${report.rule.name} looks back ${reach} blocks from a marker. Set one at least every ${reach - 1} blocks.`)];
  }
  return [];
}

function sizeFindings(prompt: Prompt, pieces: readonly Piece[], report: PrefixReport, threshold: number): StructureFinding[] {
  const { common, end } = report.sameVariant;
  // Where a format has no markers, the best that the application can do is judged.
  const reuse = report.assumed ?? report.sameVariant.reuse;
  const minimum = minimumOf(report.rule, report.model);
  const marked = pieces.some((piece) => piece.kind === 'mark');
  const place = pieces.find((piece) => piece.kind === 'mark') ?? end ?? { start: prompt.start, end: prompt.start };
  if (reuse.bound === 'minimum' && marked && common >= minimum.tokens) {
    return [finding('under-minimum', 'hint', place, `On ${report.rule.name} ${reuse.why}: nothing is cached. Set the marker behind more static text.`, common)];
  }
  if (reuse.bound === 'minimum' && (marked || (!report.allStatic && common >= threshold))) {
    return [finding('under-minimum', 'hint', place, `The static part has ${grouped.format(common)} tokens, under the minimum of ${minimum.about ? 'about ' : ''}${grouped.format(minimum.tokens)} on ${report.rule.name}: it is not cached.`, common)];
  }
  const shut = common - reuse.tokens;
  if (end !== null && report.rule.family === 'breakpoints' && !marked && common >= minimum.tokens && shut >= threshold && (reuse.bound === 'no-message-end' || reuse.bound === 'message-end' || reuse.bound === 'marker-assumed')) {
    return [finding('variable-in-static-message', 'information', end, `${grouped.format(shut)} static tokens before ${end.text} stand in the same message, and ${report.rule.name} reuses only whole messages. End the message before it.`, shut)];
  }
  return [];
}

/** Once a file: a batch of requests is written by one program. */
function missingMarker({ file, prompt, report, minLostTokens }: StructureInput): StructureFinding[] {
  const tokens = report.withMarker ?? 0;
  if (prompt !== file.prompts[0] || tokens < Math.max(1, minLostTokens ?? 256)) return [];
  const part = prompt.parts[0];
  const start = part?.start ?? prompt.start;
  const name = report.rule.breakpoints?.marker ?? '';
  return [finding('no-marker', 'information', { start, end: Math.min(start + 1, prompt.end) }, report.assumed === null ? `${report.rule.name} caches nothing without a ${name} marker. One behind the static block makes up to ${grouped.format(tokens)} tokens reusable.` : `As this file is sent, ${report.rule.name} caches nothing: it wants a ${name} marker, and a file of this kind has none. If the application that sends it sets one, up to ${grouped.format(tokens)} tokens are reusable.`, tokens)];
}

function toolFindings(file: PromptFile, prompt: Prompt): StructureFinding[] {
  return prompt.parts.flatMap((part) => {
    const names = part.toolNames;
    const at = names.findIndex((name, i) => i > 0 && name < (names[i - 1] ?? ''));
    if (part.slot !== 'tools' || at < 0) return [];
    const name = names[at] ?? '';
    const offset = file.text.indexOf(`"${name}"`, part.start);
    const place = offset >= part.start && offset < part.end ? { start: offset, end: offset + name.length + 2 } : part;
    return [finding('unsorted-tools', 'hint', place, `The tools are not in order of their names (${name} after ${names[at - 1] ?? ''}). Where the list is put together at run time, sort it: another order is another prefix from the first tool on.`)];
  });
}

/** What `structureFindings` needs. */
export interface StructureInput {
  readonly file: PromptFile;
  readonly prompt: Prompt;
  readonly pieces: readonly Piece[];
  readonly report: PrefixReport;
  readonly counter: TokenCounter;
  readonly minLostTokens?: number;
}

/** Findings about one prompt of a file (those of the file's bytes come from `fileFindings`, those between requests from `requestFindings`). */
export function structureFindings(input: StructureInput): readonly StructureFinding[] {
  const { file, prompt, pieces, report, counter } = input;
  return [
    ...textFindings(file, pieces, report),
    ...mediaFindings(prompt, pieces, counter),
    ...markerFindings(prompt, pieces, report),
    ...sizeFindings(prompt, pieces, report, input.minLostTokens ?? 256),
    ...missingMarker(input),
    ...toolFindings(file, prompt),
  ];
}

/** Findings between successive requests of one file (JSON lists, batches, logs): the same tools in another order, the same values with other key order. */
export function requestFindings(file: PromptFile, known: { readonly report: PrefixReport; readonly counter: TokenCounter }): readonly StructureFinding[] {
  if (file.format !== 'request-json' && file.format !== 'request-jsonl') return [];
  const requests = requestsIn(file.text);
  const found: StructureFinding[] = [];
  for (let i = 1; i < requests.length; i += 1) {
    const [a, b] = [requests[i - 1], requests[i]];
    if (a === undefined || b === undefined) continue;
    const { difference, total, common } = compareRequests(a.body, b.body, { rule: known.report.rule, model: known.report.model, counter: known.counter });
    if (difference?.kind !== 'key-order' && difference?.kind !== 'tool-order') continue;
    const place = placeOfPath(file.text, b, difference.path);
    const lost = total - common;
    const what = difference.kind === 'key-order' ? 'JSON keys stand in another order than in the request before' : 'tools stand in another order than in the request before';
    found.push(finding(difference.kind === 'key-order' ? 'key-order' : 'unsorted-tools', 'information', place, `The ${what} (${a.name}): ${grouped.format(lost)} tokens from here on are computed again. Sort them where the request is built.`, lost));
  }
  return found;
}
