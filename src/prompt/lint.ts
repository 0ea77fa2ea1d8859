/** What a prompt file loses of its prefix cache, as findings: the result of `first-token lint` and the source of the editor's diagnostics. */
import { hiddenDateWords, type HiddenDate } from './chatTemplate';
import type { Severity } from './findingCodes';
import { fileAsText, maximumLength, parsePromptFile } from './parse';
import { analysePrefix, type ChangingPlace, type PrefixReport } from './prefix';
import type { FormatId, Judgement, Piece, Pragma, PromptFile, Scope, Volatility } from './prompt';
import { loadRules, ruleFor, type CacheRule, type RuleBook, type RuleChoice, type RuleTarget } from './rules';
import { renderForProbe } from './samples';
import { fileFindings, requestFindings, structureFindings } from './structure';
import { bytesCounter, type SentTokens, type TokenCounter, type TokenCountSource } from './tokens';
import { isVolatile, unroll } from './volatility';

/** How a file is judged. */
export interface LintOptions {
  readonly scope?: Scope;
  /** A cache rule or the id of a shipped one; by default that of vLLM. An unknown id counts as the default. */
  readonly rule?: CacheRule | string;
  /** The model in use, for minimums; by default the one the file names. */
  readonly model?: string | null;
  /** Class of variables by name (`firstToken.prefix.variables`). */
  readonly variables?: Readonly<Record<string, string>>;
  /** Static tokens that must stand behind a changing place before it is reported; 256 by default. */
  readonly minLostTokens?: number;
  readonly counter?: TokenCounter;
  /** The whole request of each prompt, as its server renders and counts it with the sample values; absent or null where nobody counted it. */
  readonly sent?: readonly (SentTokens | null)[];
  /** A date or time that the server's chat template writes before everything. */
  readonly hiddenDate?: HiddenDate | null;
  /** Reads a file beside it: text, or null. */
  readonly readFile?: (path: string) => string | null;
  /** Use this format instead of finding it out. */
  readonly format?: FormatId;
  /** Today, for the age of the rule: a date or its ISO form. */
  readonly today?: string | Date;
}

/** One finding. Offsets in UTF-16 units here; `lintFile` gives UTF-8 bytes. */
export interface Finding {
  readonly code: string;
  readonly severity: Severity;
  readonly start: number;
  readonly end: number;
  /** Line from 1. */
  readonly line: number;
  /** The place as written. */
  readonly text: string;
  readonly class: Volatility;
  readonly evidence: Judgement['evidence'] | 'grammar' | 'structure';
  /** Static tokens behind the place that are computed again because of it. */
  readonly lostTokens: number;
  readonly message: string;
}

/** The stable JSON of one file: offsets in UTF-8 bytes, lines from 1. */
export interface LintResult {
  readonly file: string;
  readonly format: FormatId;
  readonly host: string;
  readonly rule: string;
  readonly scope: Scope;
  readonly tokens: { readonly total: number; readonly commonPrefix: number; readonly reusable: number; readonly source: TokenCountSource };
  readonly firstVolatile: { readonly offset: number; readonly line: number; readonly text: string; readonly class: Volatility } | null;
  readonly findings: readonly Finding[];
}

/** One prompt of a file with its analysis. */
export interface AnalysedPrompt {
  readonly index: number;
  readonly pieces: readonly Piece[];
  readonly report: PrefixReport;
}

/** A whole file analysed: what lenses, hovers, diagnostics and fixes are made of. Offsets in UTF-16 units. */
export interface AnalysedFile {
  readonly file: PromptFile;
  readonly rule: CacheRule;
  readonly scope: Scope;
  readonly prompts: readonly AnalysedPrompt[];
  readonly findings: readonly Finding[];
}

/** The shipped rule of that id, or the one used when nobody chose one (vLLM). */
export function ruleNamed(id = 'vllm'): CacheRule {
  return shipped().get(id) ?? shipped().get('vllm')!;
}

let rulesOnce: ReadonlyMap<string, CacheRule> | null = null;
const shipped = (): ReadonlyMap<string, CacheRule> => (rulesOnce ??= loadRules().rules);

/** Ids of the shipped rules, in their order. */
export function ruleIds(): string[] {
  return [...shipped().keys()];
}

/**
 * The rule of an endpoint; where none is known, that of what the file is written for: the model it names, then the API of its request.
 * vLLM's when nothing tells.
 */
export function ruleForFile(target: RuleTarget, file: PromptFile | null, book: RuleBook): RuleChoice {
  const model = target.model ?? file?.prompts[0]?.model ?? null;
  const choice = ruleFor({ ...target, model }, book);
  if (choice.how !== 'assumed' || (file?.format !== 'request-json' && file?.format !== 'request-jsonl') || (target.url ?? null) !== null) return choice;
  return ruleFor({ ...target, model, api: renderForProbe(file, {}, 0).prompt.own?.api ?? null }, book);
}

/** Analyses a parsed file. Pure and total: never throws. */
export function analyseFile(file: PromptFile, options: LintOptions = {}): AnalysedFile {
  const rule = typeof options.rule === 'object' ? options.rule : ruleNamed(options.rule);
  try {
    return analyse(file, rule, options);
  } catch (error) {
    return analyse(fileAsText(file, error), rule, options);
  }
}

function analyse(file: PromptFile, rule: CacheRule, options: LintOptions): AnalysedFile {
  const today = options.today instanceof Date ? options.today.toISOString().slice(0, 10) : options.today;
  const scope = options.scope ?? 'user';
  const lines = new Lines(file.text);
  const prompts = file.prompts.map((prompt, index): AnalysedPrompt => {
    const pieces = unroll(file, prompt, options.variables === undefined ? {} : { variables: options.variables });
    const report = analysePrefix(prompt, {
      rule,
      model: options.model ?? prompt.model,
      scope,
      counter: options.counter ?? bytesCounter,
      pieces,
      text: file.text,
      format: file.format,
      minLostTokens: options.minLostTokens ?? 256,
      sent: options.sent?.[index] ?? null,
      today: today ?? rule.asOf,
    });
    return { index, pieces, report };
  });
  const found = [
    ...prompts.flatMap((p) => promptFindings(file, p, scope, options.minLostTokens ?? 256)),
    ...(maybeCue.test(file.text) ? prompts.flatMap((p) => renderedDates(file, p.pieces, lines)) : []),
    ...(maybeId.test(file.text) ? prompts.flatMap((p) => renderedIds(file, p.pieces, lines)) : []),
    ...file.problems.map((p) => syntaxFinding(file, p, lines)),
    ...structural(file, prompts, options, lines),
    ...hiddenDateFinding(file, prompts, options.hiddenDate ?? null, lines),
  ];
  return { file, rule, scope, prompts, findings: applyPragmas(found, file.pragmas).sort((a, b) => a.start - b.start) };
}

function promptFindings(file: PromptFile, prompt: AnalysedPrompt, scope: Scope, least: number): Finding[] {
  const { report, pieces } = prompt;
  const found: Finding[] = [];
  const first = new Map<string, { finding: Finding; lines: number[] }>();
  let unknownShown = false;
  for (const place of report.places) {
    const piece = pieces[place.piece];
    if (piece === undefined || place.kind === 'history' || place.kind === 'variant' || place.lostTokens < least) continue;
    if (place.kind !== 'loop' && isVolatile(piece.loop, scope)) continue;
    const { volatility } = place.judgement;
    if (!place.changes && (volatility !== 'unknown' || unknownShown)) continue;
    if (volatility === 'unknown') unknownShown = true;
    const finding = placeFinding(file, place);
    const key = `${finding.code} ${place.judgement.name}`;
    const before = first.get(key);
    if (before === undefined) first.set(key, { finding, lines: [] });
    else before.lines.push(place.line);
  }
  for (const { finding, lines } of first.values()) found.push(lines.length === 0 ? finding : { ...finding, message: `${finding.message} It stands again at line ${[...new Set(lines)].slice(0, 5).join(', ')}.` });
  return [...found, ...variantFinding(report, least)];
}

function placeFinding(file: PromptFile, place: ChangingPlace): Finding {
  const { judgement } = place;
  const sure = file.guessed !== true && (judgement.strength === 'certain' || judgement.strength === 'strong');
  const severity: Severity = sure && isVolatile(judgement.volatility, 'user') ? 'warning' : 'information';
  return {
    code: codeOf(judgement, file),
    severity,
    start: place.start,
    end: place.end,
    line: place.line,
    text: file.text.slice(place.start, place.end),
    class: judgement.volatility,
    evidence: judgement.evidence,
    lostTokens: place.lostTokens,
    message: messageOf(place),
  };
}

function codeOf(judgement: Judgement, file: PromptFile): string {
  if (judgement.volatility === 'unknown') return 'unknown-value';
  if (judgement.volatility === 'session') return 'user-value';
  if (judgement.volatility === 'day' || judgement.volatility === 'minute') return 'clock';
  if (judgement.reason.includes('runs a command') || (file.format === 'claude-markdown' && judgement.evidence === 'call')) return 'command';
  return /new value at each call|new each time/.test(judgement.reason) ? 'random' : 'request-value';
}

const grouped = new Intl.NumberFormat('en-US');

const rates: Readonly<Record<Volatility, string>> = {
  constant: 'never changes',
  deploy: 'changes with a deployment',
  session: 'differs from user to user',
  day: 'changes every day',
  minute: 'changes every minute or faster',
  request: 'changes with each request',
  unknown: 'may change',
};

function messageOf(place: ChangingPlace): string {
  const { judgement, lostTokens } = place;
  if (judgement.volatility === 'unknown') return `The ${grouped.format(lostTokens)} static tokens behind this place are reusable only while \`${judgement.name}\` keeps its value. Mark the variable in firstToken.prefix.variables when you know.`;
  const among = { session: 'for each user', day: 'each day', minute: 'each minute' }[judgement.volatility as string] ?? 'for each request';
  return `${judgement.reason} It ${rates[judgement.volatility]}, so the ${grouped.format(lostTokens)} static tokens behind it are computed again ${among}. Move it behind the static text.`;
}

/** The first condition that multiplies prefixes, when enough static text stands behind it. */
function variantFinding(report: PrefixReport, least: number): Finding[] {
  const place = report.places.find((p) => p.kind === 'variant' && p.changes);
  if (place === undefined || report.variants < 2 || report.total - report.common < least) return [];
  return [
    {
      code: 'variants',
      severity: 'information',
      start: place.start,
      end: place.end,
      line: place.line,
      text: place.text,
      class: place.judgement.volatility,
      evidence: place.judgement.evidence,
      lostTokens: 0,
      message: `Conditions make ${grouped.format(report.variants)} different prefixes from here on; each is cached on its own.`,
    },
  ];
}

/** What the server's chat template does to every prompt: told once a file, at its beginning, and never a warning, as the file cannot help it. */
function hiddenDateFinding(file: PromptFile, prompts: readonly AnalysedPrompt[], hidden: HiddenDate | null, lines: Lines): Finding[] {
  const start = file.prompts[0]?.start;
  if (hidden === null || start === undefined) return [];
  const words = hiddenDateWords(hidden);
  return [
    {
      code: 'hidden-date',
      severity: 'information',
      start,
      end: start,
      line: lines.at(start),
      text: '',
      class: hidden.volatility,
      evidence: 'grammar',
      lostTokens: prompts.reduce((total, { report }) => total + report.sameVariant.total, 0),
      message: `${words.charAt(0).toUpperCase()}${words.slice(1)}. Start the server with another chat template, or set the date that it takes (date_string) yourself.`,
    },
  ];
}

function syntaxFinding(file: PromptFile, problem: PromptFile['problems'][number], lines: Lines): Finding {
  return { code: 'syntax', severity: 'information', start: problem.start, end: problem.end, line: lines.at(problem.start), text: file.text.slice(problem.start, Math.min(problem.end, problem.start + 120)), class: 'unknown', evidence: 'grammar', lostTokens: 0, message: problem.message };
}

/** Findings about bytes, blocks, markers and tools. Strings in code are judged by their text alone: the bytes of the file are not sent. */
function structural(file: PromptFile, prompts: readonly AnalysedPrompt[], options: LintOptions, lines: Lines): Finding[] {
  const counter = options.counter ?? bytesCounter;
  const code = file.format === 'python' || file.format === 'javascript';
  const first = prompts[0];
  const found = [
    ...(first === undefined || code ? [] : fileFindings(file)),
    ...prompts.flatMap(({ index, pieces, report }) => {
      const prompt = file.prompts[index];
      return prompt === undefined ? [] : structureFindings({ file, prompt, pieces, report, counter, minLostTokens: options.minLostTokens ?? 256 });
    }),
    ...(first === undefined ? [] : requestFindings(file, { report: first.report, counter })),
  ];
  return found.map((f) => ({ code: f.code, severity: f.severity, start: f.start, end: f.end, line: lines.at(f.start), text: file.text.slice(f.start, Math.min(f.end, f.start + 120)), class: 'deploy', evidence: 'structure', lostTokens: f.lostTokens, message: f.message }));
}

const cue =
  /\b(?:today(?:['’]s date)?|(?:the )?current (?:date(?: and time)?|time|datetime)|current_?date(?:_?time)?|the date)\b(?:\s+is|\s*[:=])\s*(?:\w+,?\s+){0,2}?(?:\d{4}-\d{2}-\d{2}|\d{1,2}[/.]\d{1,2}[/.]\d{2,4}|(?:\d{1,2}(?:st|nd|rd|th)?\s+)?(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*\.?,?\s+(?:\d{1,2}(?:st|nd|rd|th)?,?\s+)?\d{4})/gi;

/** A quick look at the whole file that lets nearly all of them pass without the search above. */
const maybeCue = /(?:today|current[_ ]?(?:date|time)|the date)[^\n]{0,40}\d/i;

/** A literal date behind a cue phrase, unless the line says that it is an example. */
function renderedDates(file: PromptFile, pieces: readonly Piece[], lines: Lines): Finding[] {
  return renderedLiterals(cue, { code: 'rendered-date', class: 'day', message: 'This literal date looks like the output of a template. If the text is rendered each day, the cached prefix ends here.' }, file, pieces, lines);
}

const idCue = /^[ \t>*-]*(?:session|conversation|chat|thread|request|trace|correlation|run)[ _-]?id["'`*]*\s*[:=]\s*["'`*]*[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}\b/gim;
const maybeId = /id["'`*]*\s*[:=]\s*["'`*]*[0-9a-f]{8}-/i;

/** A literal id on a line that names one, outside of code fences. */
function renderedIds(file: PromptFile, pieces: readonly Piece[], lines: Lines): Finding[] {
  return renderedLiterals(idCue, { code: 'rendered-id', class: 'session', message: 'This literal id looks like the output of a template. If each session or request has its own, the cached prefix ends here.' }, file, pieces, lines).filter((f) => (file.text.slice(0, f.start).match(/^[ \t]*(?:```|~~~)/gm)?.length ?? 0) % 2 === 0);
}

function renderedLiterals(pattern: RegExp, told: Pick<Finding, 'code' | 'class' | 'message'>, file: PromptFile, pieces: readonly Piece[], lines: Lines): Finding[] {
  return pieces.flatMap((piece) => {
    if (piece.kind !== 'static' || piece.foreign || piece.text.length > 1_000_000) return [];
    return [...piece.text.matchAll(pattern)].flatMap((match): Finding[] => {
      const begin = piece.text.lastIndexOf('\n', match.index) + 1;
      const stop = piece.text.indexOf('\n', match.index);
      const line = piece.text.slice(begin, stop < 0 ? undefined : stop);
      if (/\bexample|\be\.g\.|such as|for instance|format:|cut-?off/i.test(line)) return [];
      const start = placeIn(piece, match.index);
      const end = Math.max(start, Math.min(piece.end, placeIn(piece, match.index + match[0].length - 1) + 1));
      return [{ code: told.code, severity: 'hint', start, end, line: lines.at(start), text: file.text.slice(start, end), class: told.class, evidence: 'rendered', lostTokens: 0, message: told.message }];
    });
  });
}

function placeIn(piece: Piece, index: number): number {
  let at = piece.start + index;
  for (const [i, offset] of piece.map ?? []) {
    if (i > index) break;
    at = offset + (index - i);
  }
  return Math.max(piece.start, Math.min(at, piece.end));
}

function applyPragmas(findings: readonly Finding[], pragmas: readonly Pragma[]): Finding[] {
  if (pragmas.some((p) => p.pragma === 'off')) return [];
  return findings.filter(
    (f) =>
      !pragmas.some(
        (p) => (p.pragma === 'ignore' && p.code === f.code) || (p.pragma === 'ignore-line' && p.line <= f.line && f.line <= p.last && (p.code === null || p.code === f.code)),
      ),
  );
}

/** Line numbers of offsets. */
class Lines {
  private readonly starts: number[] = [0];
  constructor(text: string) {
    for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) this.starts.push(i + 1);
  }
  at(offset: number): number {
    let low = 0;
    let high = this.starts.length;
    while (high - low > 1) {
      const middle = (low + high) >> 1;
      if (this.starts[middle]! <= offset) low = middle;
      else high = middle;
    }
    return low + 1;
  }
}

/**
 * Lints one file, given as text or as its bytes (UTF-8, or UTF-16 with a byte order mark). A file that is no prompt file gives a result
 * without tokens and findings. Never throws.
 */
export function lintFile(content: string | Uint8Array, path: string, options: LintOptions = {}): LintResult {
  return lintResult(analyseFile(promptFileOf(content, path, options), options), path);
}

/** The file as it is linted: parsed, or without prompts where it is no prompt file. Never throws. */
export function promptFileOf(content: string | Uint8Array, path: string, { readFile, format }: Pick<LintOptions, 'readFile' | 'format'>): PromptFile {
  const text = typeof content === 'string' ? content : decode(content);
  const parse = { ...(readFile === undefined ? {} : { readFile }), ...(format === undefined ? {} : { format }) };
  return parsePromptFile(text, path, parse) ?? notAPrompt(text, path);
}

function notAPrompt(text: string, path: string): PromptFile {
  return { path, format: 'text', language: null, host: 'nobody: no prompt was found in this file', substituted: false, text, prompts: [], problems: [], pragmas: [], dependencies: [] };
}

/** The text of a file's bytes; the byte order mark stays, broken sequences become U+FFFD. */
export function decode(bytes: Uint8Array): string {
  const wide = bytes[0] === 0xff && bytes[1] === 0xfe ? 'utf-16le' : bytes[0] === 0xfe && bytes[1] === 0xff ? 'utf-16be' : 'utf-8';
  return new TextDecoder(wide, { ignoreBOM: true }).decode(bytes);
}

/** The stable JSON of an analysed file. Tokens are the sums over its prompts: as sent where the server counted the requests, else of the text. */
export function lintResult(analysed: AnalysedFile, path: string): LintResult {
  const { file, prompts, rule, scope } = analysed;
  const bytes = byteOffsets(file.text);
  const sum = (of: (report: PrefixReport) => number): number => prompts.reduce((total, p) => total + of(p.report), 0);
  const end = prompts.map((p) => p.report.end).find((e) => e !== null) ?? null;
  return {
    file: path,
    format: file.format,
    host: file.host,
    rule: rule.id,
    scope,
    tokens: { total: sum((r) => r.total), commonPrefix: sum((r) => r.common), reusable: sum((r) => r.reuse.tokens), source: prompts[0]?.report.source ?? 'bytes/4' },
    firstVolatile: end === null ? null : { offset: bytes(end.start), line: end.line, text: file.text.slice(end.start, end.end), class: end.judgement.volatility },
    findings: analysed.findings.map((f) => ({ ...f, start: bytes(f.start), end: bytes(f.end) })),
  };
}

/** Turns UTF-16 offsets into UTF-8 byte offsets. */
export function byteOffsets(text: string): (offset: number) => number {
  const step = 1024;
  const marks: number[] = [0];
  let bytes = 0;
  const width = (i: number): number => {
    const c = text.charCodeAt(i);
    return c < 0x80 ? 1 : c < 0x800 ? 2 : c >= 0xd800 && c <= 0xdfff ? 2 : 3;
  };
  for (let i = 0; i < text.length && i < maximumLength + 1; i += 1) {
    if (i > 0 && i % step === 0) marks.push(bytes);
    bytes += width(i);
  }
  return (offset) => {
    const block = Math.min(Math.floor(Math.min(offset, text.length) / step), marks.length - 1);
    let at = marks[block]!;
    for (let i = block * step; i < offset && i < text.length; i += 1) at += width(i);
    return at;
  };
}

