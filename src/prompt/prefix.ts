/** Where a prompt's reusable prefix ends, what can be taken from the cache under a rule, and what each changing place costs. */
import { percentOf } from './percent';
import type { FormatId, Judgement, Piece, Prompt, Scope, Span, Volatility } from './prompt';
import { ageOf, knowsModel, minimumOf, readFactor, reusable, type CacheRule, type Layout, type LayoutBlock, type Reuse } from './rules';
import { sureHead, type SentTokens, type TokenCounter, type TokenCountSource } from './tokens';
import { isVolatile } from './volatility';

/** One place whose value is not known to stay the same. Offsets in UTF-16 units of the file, end exclusive; `line` from 1. */
export interface ChangingPlace {
  readonly start: number;
  readonly end: number;
  readonly line: number;
  /** The place as written, at most 80 characters. */
  readonly text: string;
  /** `variant`: a condition, which multiplies the prefixes and breaks none; `history`: the conversation itself, which only grows. */
  readonly kind: 'value' | 'loop' | 'variant' | 'media' | 'history';
  readonly judgement: Judgement;
  /** True when it differs between the requests of the scope. */
  readonly changes: boolean;
  /** Static tokens behind it in the same or a later slot that every request computes again because of it; 0 for a variant or history. */
  readonly lostTokens: number;
  /** True when `changes` and at least `minLostTokens` are lost. */
  readonly matters: boolean;
  /** Index of the piece. */
  readonly piece: number;
}

/** The numbers for one scope. Tokens are those of the request as sent where its server counted it, else of the text in the file without values. */
export interface PrefixNumbers {
  readonly total: number;
  /** Tokens before the first place that changes, cut back to a sure token border. */
  readonly common: number;
  readonly reuse: Reuse;
  /** The first place that changes, or null when none does. */
  readonly end: ChangingPlace | null;
}

/** What is known about the cache use of one prompt under one rule. */
export interface PrefixReport extends PrefixNumbers {
  readonly rule: CacheRule;
  readonly model: string | null;
  readonly modelKnown: boolean;
  readonly scope: Scope;
  readonly source: TokenCountSource;
  /** False when tokens are estimated. */
  readonly exact: boolean;
  /** Numbers for requests that take the same branches of every condition; the same as above when no condition comes first. */
  readonly sameVariant: PrefixNumbers;
  /** Number of different prefixes that the conditions before the end of `sameVariant` make (at most 1,000,000). */
  readonly variants: number;
  readonly scopes: Readonly<Record<Scope, PrefixNumbers>>;
  /** Every place that is not known to be constant or fixed per deployment, in render order. */
  readonly places: readonly ChangingPlace[];
  /** Names before the end about which nothing is known: the prefix holds while they keep their values. */
  readonly whileKept: readonly string[];
  /** Names before the end whose values are sent but not in the numbers, as their length is not known: the reason for an "about". */
  readonly uncounted: readonly string[];
  readonly qualifiers: {
    readonly upTo: boolean;
    readonly about: boolean;
    readonly hidden: string | null;
    /** True when tools were counted as the file writes them: every server writes them into the prompt in its own way. */
    readonly toolsAsWritten: boolean;
    /** Tokens of the text in the file, where the request as it is sent was counted (its tokens are then the numbers); null where it was not. */
    readonly textTokens: number | null;
  };
  /** True when nothing in the prompt is ever replaced. */
  readonly allStatic: boolean;
  /** Why a prompt in which nothing changes is not cached as it stands, in words; null when it is, or when the rest of the request decides. */
  readonly uncached: string | null;
  /** Tokens that a cache marker behind the static block could make reusable where none is set: in the file, or by the application that sends it; null otherwise. */
  readonly withMarker: number | null;
  /** Of a format without markers under a rule that wants one: the reuse if the application that sends it set one where a message ends; null otherwise. */
  readonly assumed: Reuse | null;
  /** True when the rule is older than 180 days or does not know the model: raises no warning by itself. */
  readonly ruleUnsure: boolean;
  readonly layout: Layout;
  /** The lens at the top of the file. */
  readonly sentence: string;
}

/** What `analysePrefix` needs beside the prompt. */
export interface PrefixOptions {
  readonly rule: CacheRule;
  readonly model: string | null;
  readonly scope: Scope;
  readonly counter: TokenCounter;
  /** The prompt unrolled, in render order. */
  readonly pieces: readonly Piece[];
  /** The whole text of the file. */
  readonly text: string;
  readonly format: FormatId;
  /** Static tokens behind a place from which on it matters; 256 by default. */
  readonly minLostTokens?: number;
  /** The whole request with its sample values, as its server renders and counts it. */
  readonly sent?: SentTokens | null;
  /** ISO date, for the age of the rule. */
  readonly today: string;
}

const markable: ReadonlySet<FormatId> = new Set<FormatId>(['request-json', 'request-jsonl', 'baml']);
const hostWritesMore: ReadonlySet<FormatId> = new Set<FormatId>(['markdown', 'claude-markdown']);
/** Files that hold only a part of what is sent: whether all of it reaches a minimum cannot be told from them. */
const fragments: ReadonlySet<FormatId> = new Set<FormatId>([...hostWritesMore, 'text', 'python', 'javascript']);

interface Counted {
  readonly pieces: readonly Piece[];
  /** Index of each piece in the list that was given. */
  readonly origin: readonly number[];
  /** Tokens of the static run that begins at a piece; 0 elsewhere. */
  readonly tokens: Float64Array;
  /** Index of the first piece of the static run that ends just before a piece, or -1. */
  readonly runBefore: Int32Array;
  readonly runText: ReadonlyMap<number, string>;
  /** Branch with the most tokens, by the place of the condition. */
  readonly largest: ReadonlyMap<number, number>;
}

const isSilent = (piece: Piece) => piece.kind === 'point' && !piece.variant && !(piece.span.kind === 'control' && piece.span.control === 'loop');
const sameBranches = (a: Piece, b: Piece) => a.branches.length === b.branches.length && a.branches.every((step, i) => step.control === b.branches[i]?.control && step.branch === b.branches[i].branch);

/** Joins neighbouring static pieces into runs, so that a comment or a `set` between two texts does not move a token border. */
function countRuns(pieces: readonly Piece[], origin: readonly number[], counter: TokenCounter): Counted {
  const tokens = new Float64Array(pieces.length);
  const runBefore = new Int32Array(pieces.length).fill(-1);
  const runText = new Map<number, string>();
  let begin = -1;
  let last = -1;
  let texts: string[] = [];
  const close = () => {
    if (begin < 0) return;
    const text = texts.length === 1 ? (texts[0] ?? '') : texts.join('');
    tokens[begin] = counter.count(text);
    runText.set(begin, text);
  };
  pieces.forEach((piece, i) => {
    const first = begin < 0 ? undefined : pieces[begin];
    const continues = first !== undefined && first.part === piece.part && sameBranches(first, piece) && first.loop === piece.loop;
    runBefore[i] = pieces[last]?.part === piece.part ? last : -1;
    if (piece.kind === 'static') {
      if (!continues) {
        close();
        begin = i;
        texts = [];
      }
      last = begin;
      texts.push(piece.text);
      return;
    }
    if (piece.kind !== 'point') last = -1;
    if (!(continues && isSilent(piece)) && piece.kind !== 'mark') {
      close();
      begin = -1;
      texts = [];
    }
  });
  close();
  return { pieces, origin, tokens, runBefore, runText, largest: largestBranches(pieces, tokens) };
}

function largestBranches(pieces: readonly Piece[], tokens: Float64Array): ReadonlyMap<number, number> {
  const weights = new Map<number, Map<number, number>>();
  pieces.forEach((piece, i) => {
    for (const step of piece.branches) {
      const branches = weights.get(step.control) ?? new Map<number, number>();
      branches.set(step.branch, (branches.get(step.branch) ?? 0) + (tokens[i] ?? 0));
      weights.set(step.control, branches);
    }
  });
  const largest = new Map<number, number>();
  for (const [control, branches] of weights) {
    const [best] = [...branches].reduce((a, b) => (b[1] > a[1] ? b : a));
    largest.set(control, best);
  }
  return largest;
}

type Path = (piece: Piece) => boolean;

/** One way through the conditions: the branches around `through`, and the largest branch of every other. */
function pathThrough(counted: Counted, through: Piece | undefined): Path {
  const forced = new Map(through?.branches.map((step) => [step.control, step.branch]));
  return (piece) => piece.branches.every((step) => (forced.get(step.control) ?? counted.largest.get(step.control)) === step.branch);
}

function placeKind(piece: Piece): ChangingPlace['kind'] | null {
  const inConversation = piece.history && piece.judgement.volatility !== 'day' && piece.judgement.volatility !== 'minute';
  if (inConversation) return piece.loop === 'constant' && piece.branches.length === 0 && !piece.variant ? 'history' : null;
  if (piece.kind === 'value') return piece.span.kind === 'expression' && !piece.span.output ? null : 'value';
  if (piece.kind === 'media') return 'media';
  if (piece.kind !== 'point') return null;
  return piece.variant ? 'variant' : isSilent(piece) ? null : 'loop';
}

let lastLines: { readonly text: string; readonly starts: readonly number[] } = { text: '', starts: [0] };

/** Starts of the lines; those of the last text are kept, as a batch of requests asks for the same text once a request. */
function startsOfLines(text: string): readonly number[] {
  if (lastLines.text === text) return lastLines.starts;
  const starts = [0];
  if (text.includes('\r')) for (const match of text.matchAll(/\r\n|\r|\n/g)) starts.push(match.index + match[0].length);
  else for (let i = text.indexOf('\n'); i >= 0; i = text.indexOf('\n', i + 1)) starts.push(i + 1);
  lastLines = { text, starts };
  return starts;
}

/** Line from 1 of an offset, given the ascending starts of all lines. */
function lineAt(starts: readonly number[], offset: number): number {
  let low = 0;
  let high = starts.length;
  while (high - low > 1) {
    const middle = (low + high) >> 1;
    if ((starts[middle] ?? 0) <= offset) low = middle;
    else high = middle;
  }
  return low + 1;
}

const shown = (source: string) => shortened(/[^\S ]|  /.test(source) ? source.replace(/\s+/g, ' ') : source, 80);
const shortened = (text: string, most: number) => (text.length > most ? `${text.slice(0, most - 1)}…` : text);

interface Level {
  control: number;
  branch: number;
  /** Static tokens behind the whole condition within the branch around it. */
  behind: number;
  /** Static tokens behind the piece within this branch. */
  inside: number;
}

/**
 * Static tokens behind each piece: the text after it on a path through it (the branches it stands in, the largest branch of every other
 * condition), without the bodies of loops that change themselves. The text around the messages of a conversation counts once in all its
 * branches: messages of every role follow each other. One pass from the end: pieces × depth of conditions.
 */
function tailsOf({ pieces, tokens, largest }: Counted, scope: Scope): Float64Array {
  const tails = new Float64Array(pieces.length);
  const levels: Level[] = [];
  let outside = 0;
  let conversation = 0;
  for (let i = pieces.length - 1; i >= 0; i -= 1) {
    const piece = pieces[i];
    if (piece === undefined) continue;
    const { branches } = piece;
    let behind = 0;
    let around = outside;
    branches.forEach(({ control, branch }, depth) => {
      const level = levels[depth];
      if (level?.control !== control) {
        levels.length = depth;
        levels.push({ control, branch, behind: around, inside: 0 });
      } else if (level.branch !== branch) {
        levels.length = depth + 1;
        level.branch = branch;
        level.inside = 0;
      }
      const current = levels[depth];
      behind += current?.behind ?? 0;
      around = current?.inside ?? 0;
    });
    levels.length = branches.length;
    tails[i] = conversation + behind + around;
    const own = !piece.history && isVolatile(piece.loop, scope) ? 0 : (tokens[i] ?? 0);
    if (piece.history) conversation += own;
    else {
      let depth = branches.length;
      for (; depth > 0; depth -= 1) {
        const level = levels[depth - 1];
        const step = branches[depth - 1];
        if (level !== undefined) level.inside += own;
        if (step === undefined || largest.get(step.control) !== step.branch) break;
      }
      if (depth === 0) outside += own;
    }
  }
  return tails;
}

function findPlaces(counted: Counted, options: PrefixOptions): readonly ChangingPlace[] {
  const starts = startsOfLines(options.text);
  const tails = tailsOf(counted, options.scope);
  const threshold = options.minLostTokens ?? 256;
  const places: ChangingPlace[] = [];
  counted.pieces.forEach((piece, i) => {
    if (piece.kind === 'static' || piece.kind === 'mark') return;
    const kind = placeKind(piece);
    const { volatility } = piece.judgement;
    if (kind === null || volatility === 'constant' || volatility === 'deploy') return;
    const changes = isVolatile(volatility, options.scope);
    const lostTokens = kind === 'variant' || kind === 'history' ? 0 : (tails[i] ?? 0);
    const text = shown(options.text.slice(piece.start, Math.min(piece.end, piece.start + 1000)));
    places.push({ start: piece.start, end: piece.end, line: lineAt(starts, piece.start), text, kind, judgement: piece.judgement, changes, lostTokens, matters: changes && lostTokens >= threshold, piece: i });
  });
  return places;
}

function blocksOf(counted: Counted, prompt: Prompt, path: Path, breaker: number): { readonly blocks: readonly LayoutBlock[]; readonly total: number } {
  let total = 0;
  const ends = new Map<number, number>();
  const marks = new Map<number, { readonly ttl: string | null }>();
  counted.pieces.forEach((piece, i) => {
    if (!path(piece) && !piece.history) return;
    total += counted.tokens[i] ?? 0;
    // The changing value itself has a length of at least one token, which keeps what ends with it behind the common prefix.
    ends.set(piece.part, total + (breaker >= 0 && i >= breaker ? 1 : 0));
    if (piece.kind === 'mark' && piece.span.kind === 'cache-mark') marks.set(piece.part, { ttl: piece.span.ttl });
  });
  const order = [...ends.keys()];
  const blocks = order.flatMap((index, i): LayoutBlock[] => {
    const part = prompt.parts[index];
    if (part === undefined) return [];
    const next = prompt.parts[order[i + 1] ?? -1];
    const endsMessage = next === undefined || next.slot !== part.slot || next.message !== part.message;
    return [{ at: ends.get(index) ?? 0, slot: part.slot, role: part.role, endsMessage, marker: marks.get(index) ?? null }];
  });
  return { blocks, total };
}

/** Tokens before a piece on a path; the text just before it is cut back to a sure border unless a message begins there. */
function commonBefore(counted: Counted, path: Path, breaker: number, counter: TokenCounter): number {
  let common = 0;
  for (let i = 0; i < breaker; i += 1) {
    const piece = counted.pieces[i];
    if (piece !== undefined && path(piece)) common += counted.tokens[i] ?? 0;
  }
  const run = counted.runBefore[breaker] ?? -1;
  const first = counted.pieces[run];
  if (first === undefined || !path(first)) return common;
  return common - (counted.tokens[run] ?? 0) + counter.count(sureHead(counted.runText.get(run) ?? ''));
}

/** A prompt whose reusable prefix ends at a place, or nowhere, in tokens of its text. */
interface Laid {
  readonly end: ChangingPlace | null;
  readonly breaker: number;
  readonly total: number;
  readonly common: number;
  readonly blocks: readonly LayoutBlock[];
}

interface Measured extends PrefixNumbers {
  readonly layout: Layout;
  readonly breaker: number;
}

function layOut(counted: Counted, prompt: Prompt, end: ChangingPlace | null, counter: TokenCounter): Laid {
  const breaker = end?.piece ?? -1;
  const path = pathThrough(counted, counted.pieces[breaker]);
  const { blocks, total } = blocksOf(counted, prompt, path, breaker);
  return { end, breaker, total, common: breaker < 0 ? total : Math.min(total, commonBefore(counted, path, breaker, counter)), blocks };
}

/** Turns tokens of the text into those of the request as sent: exact where its server counted, in proportion to the text in between. */
function asSent(laid: Laid, sent: SentTokens): (tokens: number) => number {
  const marked = laid.blocks.filter(({ marker }) => marker !== null).map(({ at }) => at);
  const known: (readonly [text: number, sent: number])[] = [[0, 0], ...(sent.marks?.length === marked.length ? marked.map((at, i) => [at, sent.marks?.[i] ?? 0] as const) : [])];
  if (laid.end !== null && sent.common !== null) known.push([laid.common, sent.common]);
  known.sort((a, b) => a[0] - b[0] || a[1] - b[1]);
  known.push([laid.total, sent.total]);
  return (tokens) => {
    const after = known.findIndex(([text]) => text >= tokens);
    const [to, toSent] = known[after] ?? [laid.total, sent.total];
    const [from, fromSent] = known[after - 1] ?? [0, 0];
    const at = tokens >= to ? toSent + Math.max(0, tokens - to) : fromSent + Math.round(((tokens - from) / Math.max(1, to - from)) * (toSent - fromSent));
    return Math.max(0, at);
  };
}

/** The numbers of a laid-out prompt under the rule; `fit`: into tokens as sent; `counted`: all of them. */
function measure(laid: Laid, { rule, model, format }: PrefixOptions, fit: (tokens: number) => number, counted: number | null = null): Measured {
  const { end, breaker } = laid;
  const total = counted ?? fit(laid.total);
  const common = breaker < 0 ? total : Math.min(total, fit(laid.common));
  const layout: Layout = { total: total + (breaker < 0 ? 0 : 1), common, blocks: laid.blocks.map((block) => ({ ...block, at: fit(block.at) })), hostMarks: hostWritesMore.has(format), automatic: false };
  return { total, common, reuse: reusable(rule, model, layout), end, layout, breaker };
}

function append<K>(groups: Map<K, Piece[]>, key: K, piece: Piece) {
  const group = groups.get(key);
  if (group === undefined) groups.set(key, [piece]);
  else group.push(piece);
}

/** Different ways through the conditions before a piece: branches of one condition add up, conditions in a row multiply. */
function countVariants(pieces: readonly Piece[], before: number, scope: Scope): number {
  const multiplies = (piece: Piece) => piece.judgement.volatility === 'unknown' || isVolatile(piece.judgement.volatility, scope);
  const points = pieces.slice(0, before < 0 ? pieces.length : before).filter((piece) => piece.variant && piece.kind === 'point');
  const inside = (depth: number, list: readonly Piece[]): number => {
    const conditions = new Map<Span, Piece[]>();
    const nested = new Map<string, Piece[]>();
    for (const point of list) {
      const step = point.branches[depth];
      if (step === undefined) append(conditions, point.span, point);
      else append(nested, `${step.control} ${step.branch}`, point);
    }
    let product = 1;
    for (const [span, tests] of conditions) {
      if (span.kind !== 'control') continue;
      const branches = span.branches.map((_, b) => inside(depth + 1, nested.get(`${span.start} ${b}`) ?? []));
      const ways = branches.reduce((sum, n) => sum + n, span.exhaustive ? 0 : 1);
      product = Math.min(1_000_000, product * (tests.some(multiplies) ? ways : Math.max(...branches, 1)));
    }
    return product;
  };
  return inside(0, points);
}

const grouped = new Intl.NumberFormat('en-US');

function whileKept(places: readonly ChangingPlace[], end: number): readonly string[] {
  const unknown = places.filter((p) => p.judgement.volatility === 'unknown' && p.kind !== 'variant' && (end < 0 || p.piece < end));
  return [...new Set(unknown.map((p) => p.judgement.name))];
}

function sayWhere(report: Omit<PrefixReport, 'sentence'>): string {
  const { end } = report.sameVariant;
  if (end !== null) return ` · ends at line ${end.line}: ${shortened(end.text, 40)}`;
  if (report.whileKept.length === 0) return '';
  const more = report.whileKept.length - 2;
  return ` · while ${report.whileKept.slice(0, 2).map((name) => `\`${shortened(name, 40)}\``).join(', ')}${more > 0 ? ` and ${more} more` : ''} ${report.whileKept.length === 1 ? 'keeps its value' : 'keep their values'}`;
}

function sayRule(report: Omit<PrefixReport, 'sentence'>, today: string): string {
  const age = ageOf(report.rule, today);
  if (!report.modelKnown && report.model !== null) return ` · ${age.text}, which does not name ${report.model}`;
  return age.stale ? ` · ${age.text}` : '';
}

/** Bounds that the end of the prefix explains by itself. */
const plainBounds: ReadonlySet<Reuse['bound']> = new Set<Reuse['bound']>(['none', 'block', 'last-token']);

/** `4,000 tokens + 10 hidden`; where the text is longer than what is sent, what is sent. */
function sayTotal({ sameVariant: { total }, qualifiers: { textTokens } }: Omit<PrefixReport, 'sentence'>): string {
  const text = textTokens === null ? total : Math.min(textTokens, total);
  return `${grouped.format(text)} token${text === 1 ? '' : 's'}${textTokens === null || total <= text ? '' : ` + ${grouped.format(total - text)} hidden`}`;
}

/** The lens of a prompt in which nothing is replaced: quiet, but for what the cache does not do by itself. */
function sayStatic(report: Omit<PrefixReport, 'sentence'>, today: string): string {
  const { rule, uncached, sameVariant: { reuse } } = report;
  const all = `${!report.exact || report.qualifiers.toolsAsWritten ? 'about ' : ''}${sayTotal(report)}, all static`;
  if (uncached !== null) return `${all}, ${uncached}${sayRule(report, today)}`;
  return reuse.bound === 'marker' ? `${all} · up to ${grouped.format(reuse.tokens)} cached on ${rule.name}${sayRule(report, today)}` : all;
}

/** The lens: what can be reused, of how much, under which rule, and where it ends; the reason last, as narrow windows cut it off. */
function say(report: Omit<PrefixReport, 'sentence'>, today: string): string {
  if (report.allStatic) return sayStatic(report, today);
  const about = report.source === 'bytes/4' || report.qualifiers.about ? 'about ' : '';
  const { reuse, total } = report.sameVariant;
  const hidden = report.qualifiers.textTokens === null && report.qualifiers.hidden !== null ? ' + hidden tokens' : '';
  const variants = report.variants > 1 ? ` · ${report.variants >= 1_000_000 ? 'very many' : grouped.format(report.variants)} variants` : '';
  const share = total === 0 ? '' : ` (${percentOf(reuse.tokens, total)})`;
  const amount = reuse.tokens === 0 ? `nothing of ${about}${grouped.format(total)} tokens` : `${report.qualifiers.upTo ? 'up to ' : ''}${about}${grouped.format(reuse.tokens)} of ${grouped.format(total)} tokens${share}`;
  const why = reuse.tokens === 0 && total > 0 && !(plainBounds.has(reuse.bound) && report.sameVariant.end !== null) ? ` · ${whyNothing(report)}` : '';
  return `Cache: ${amount}${hidden} on ${report.rule.name}${variants}${sayWhere(report)}${why}${sayRule(report, today)}`;
}

/** Why nothing is reused, and what a marker would change about it. */
function whyNothing({ assumed, withMarker, sameVariant: { reuse } }: Omit<PrefixReport, 'sentence'>): string {
  if (assumed !== null && assumed.tokens === 0) return assumed.why;
  if (withMarker === null || withMarker === 0) return reuse.why;
  return `${reuse.why} (up to ${grouped.format(withMarker)} ${assumed === null ? 'with one' : 'if the application that sends it sets one'})`;
}

/** Tokens up to the block that a marker would stand on: with nothing known to change, what follows the system text differs between requests. */
function withMarker(rule: CacheRule, model: string | null, layout: Layout, end: ChangingPlace | null): number {
  const same = layout.blocks.filter((block) => block.at <= layout.common);
  const stable = end === null && same.some((block) => block.slot !== 'messages') ? same.filter((block) => block.slot !== 'messages') : same;
  const at = Math.max(0, ...stable.map((block) => block.at));
  return at < minimumOf(rule, model).tokens ? 0 : at;
}

/** What the sender of a wholly static prompt has to know: that a marker is missing or the text too short. */
function whyUncached({ rule, model, reuse, marker, assumed, marked, format }: { readonly rule: CacheRule; readonly model: string | null; readonly reuse: Reuse; readonly marker: number | null; readonly assumed: Reuse | null; readonly marked: boolean; readonly format: FormatId }): string | null {
  const minimum = minimumOf(rule, model);
  const short = `but under the minimum of ${minimum.about ? 'about ' : ''}${grouped.format(minimum.tokens)} on ${rule.name}: not cached`;
  const nothing = `but nothing is cached on ${rule.name} without a ${rule.breakpoints?.marker ?? ''} marker`;
  switch (reuse.bound) {
    case 'no-marker':
      if (marker !== null && marker > 0) return assumed === null ? `${nothing}: add one (up to ${grouped.format(marker)} tokens)` : `${nothing}: up to ${grouped.format(marker)} tokens if the application that sends it sets one`;
      return fragments.has(format) ? null : short;
    case 'minimum':
      return marked ? `but not cached on ${rule.name}: ${reuse.why}` : fragments.has(format) ? null : short;
    case 'too-many-markers':
      return `but ${reuse.why}`;
    default:
      return null;
  }
}

function hiddenTokens(options: PrefixOptions): string | null {
  if (hostWritesMore.has(options.format)) return 'the host’s own system prompt and tools come first';
  return options.rule.hidden ?? null;
}

/**
 * Everything the lens, the hover and the findings need about one prompt under one rule and scope. Pure; pieces are put in the rule's
 * render order first. Linear in the pieces.
 */
export function analysePrefix(prompt: Prompt, options: PrefixOptions): PrefixReport {
  const rank = (piece: Piece) => options.rule.order.indexOf(prompt.parts[piece.part]?.slot ?? 'messages');
  const origin = options.pieces.map((_, i) => i).sort((a, b) => rank(options.pieces[a]!) - rank(options.pieces[b]!) || a - b);
  const counted = countRuns(origin.map((i) => options.pieces[i]!), origin, options.counter);
  const places = findPlaces(counted, options);
  const endIn = (scope: Scope, acrossVariants: boolean) => places.find((place) => isVolatile(place.judgement.volatility, scope) && !(acrossVariants && place.kind === 'variant')) ?? null;
  const sent = options.sent ?? null;
  const text = layOut(counted, prompt, endIn(options.scope, true), options.counter);
  const fit = sent === null ? (tokens: number) => tokens : asSent(text, sent);
  const known = new Map<ChangingPlace | null, Measured>([[text.end, measure(text, options, fit, sent?.total ?? null)]]);
  const of = (scope: Scope, acrossVariants: boolean) => {
    const end = endIn(scope, acrossVariants);
    const before = known.get(end);
    if (before !== undefined) return before;
    const measured = measure(layOut(counted, prompt, end, options.counter), options, fit);
    known.set(end, measured);
    return measured;
  };
  // No class changes within a user's requests but not within a conversation, so both share their numbers.
  const scopes = { user: of('user', false), everyone: of('everyone', false) };
  const main = options.scope === 'everyone' ? scopes.everyone : scopes.user;
  const same = of(options.scope, true);
  const kept = whileKept(places, same.breaker);
  const modelKnown = knowsModel(options.rule, options.model);
  const marked = counted.pieces.some((piece) => piece.kind === 'mark');
  const wanting = !marked && same.reuse.bound === 'no-marker';
  const assumed = wanting && !markable.has(options.format) ? reusable(options.rule, options.model, { ...same.layout, hostMarks: true }) : null;
  const marker = assumed?.tokens ?? (wanting ? withMarker(options.rule, options.model, same.layout, same.end) : null);
  const toolsAsWritten = sent === null && prompt.parts.some((part, i) => part.slot === 'tools' && counted.pieces.some((piece, k) => piece.part === i && (counted.tokens[k] ?? 0) > 0));
  const allStatic = counted.pieces.every((piece) => piece.kind === 'static' || piece.kind === 'mark' || isSilent(piece));
  const before = counted.pieces.filter((p, i) => p.kind === 'value' && (same.breaker < 0 || i < same.breaker) && p.text === '' && p.judgement.volatility !== 'constant');
  const uncounted = [...new Set(before.map((p) => p.judgement.name))];
  const whole: Omit<PrefixReport, 'sentence'> = {
    ...numbers(main, origin),
    rule: options.rule,
    model: options.model,
    modelKnown,
    scope: options.scope,
    source: options.counter.source,
    exact: options.counter.exact,
    sameVariant: numbers(same, origin),
    variants: countVariants(counted.pieces, same.breaker, options.scope),
    scopes: { conversation: numbers(scopes.user, origin), user: numbers(scopes.user, origin), everyone: numbers(scopes.everyone, origin) },
    places: places.map((place) => withOrigin(place, origin)),
    whileKept: kept,
    uncounted,
    qualifiers: { upTo: !(same.end === null && kept.length === 0 && options.counter.exact && !toolsAsWritten), about: !options.counter.exact || same.reuse.about || uncounted.length > 0 || toolsAsWritten, hidden: hiddenTokens(options), toolsAsWritten, textTokens: sent === null ? null : text.total },
    allStatic,
    uncached: allStatic && same.total > 0 ? whyUncached({ rule: options.rule, model: options.model, reuse: same.reuse, marker, assumed, marked, format: options.format }) : null,
    withMarker: marker,
    assumed,
    ruleUnsure: !modelKnown || ageOf(options.rule, options.today).stale,
    layout: main.layout,
  };
  return { ...whole, sentence: say(whole, options.today) };
}

const withOrigin = (place: ChangingPlace, origin: readonly number[]): ChangingPlace => ({ ...place, piece: origin[place.piece] ?? place.piece });

function numbers(measured: Measured, origin: readonly number[]): PrefixNumbers {
  const { total, common, reuse, end } = measured;
  return { total, common, reuse, end: end === null ? null : withOrigin(end, origin) };
}

/** Texts that `analysePrefix` will count, for a counter that has to ask an endpoint first. */
export function textsToCount(prompt: Prompt, options: Omit<PrefixOptions, 'counter'>): readonly string[] {
  const asked = new Set<string>();
  const counter: TokenCounter = { source: 'endpoint', exact: true, count: (text) => (asked.add(text), 0) };
  analysePrefix(prompt, { ...options, counter });
  return [...asked];
}

/** Price per million tokens as in the endpoint's settings; `cachedInputPerMillion` null: from the rule's factor. */
export interface InputPrice {
  readonly currency: string;
  readonly inputPerMillion: number | null;
  readonly cachedInputPerMillion: number | null;
}

/** What tokens cost that are computed though they could have been reused. */
export interface Loss {
  /** Prefill milliseconds, tokens over the rate; null without a measured rate. */
  readonly ms: number | null;
  /** tokens × (price − cached price); null when a price is unknown. */
  readonly money: { readonly value: number; readonly currency: string } | null;
}

/** Cost per request of tokens lost, from the last measured prefill rate (tokens per second) and the price. */
export function lossOf(tokens: number, known: { readonly prefillRate: number | null; readonly price: InputPrice | null; readonly rule: CacheRule; readonly model: string | null }): Loss {
  const { prefillRate, price } = known;
  const ms = prefillRate !== null && prefillRate > 0 ? (1000 * tokens) / prefillRate : null;
  if (price === null || price.inputPerMillion === null) return { ms, money: null };
  const factor = readFactor(known.rule, known.model);
  const cached = price.cachedInputPerMillion ?? (factor === null ? null : price.inputPerMillion * factor);
  if (cached === null) return { ms, money: null };
  return { ms, money: { value: (tokens * Math.max(0, price.inputPerMillion - cached)) / 1e6, currency: price.currency } };
}

const howOften: Readonly<Record<Volatility, string>> = {
  constant: 'is constant',
  deploy: 'changes with a deployment',
  session: 'differs by user or session',
  day: 'changes every day',
  minute: 'changes every minute or faster',
  request: 'changes with each request',
  unknown: 'may change',
};

/** The lens at a changing place: how often it changes, the static tokens lost behind it, and what they cost per request. */
export function placeSentence(place: ChangingPlace, loss: Loss): string {
  const often = howOften[place.judgement.volatility];
  if (place.kind === 'variant') return `${place.text} ${often}: each branch is a prefix of its own`;
  if (place.kind === 'history') return `${place.text} grows with the conversation`;
  const money = loss.money === null ? null : `${loss.money.value < 0.01 ? loss.money.value.toPrecision(2) : loss.money.value.toFixed(2)} ${loss.money.currency}`;
  const ms = loss.ms === null ? null : `about ${loss.ms < 10 ? loss.ms.toFixed(1) : grouped.format(Math.round(loss.ms))} ms`;
  const cost = [ms, money].filter((part) => part !== null).join(', ');
  const behind = `${grouped.format(place.lostTokens)} static token${place.lostTokens === 1 ? '' : 's'} behind it`;
  if (!place.changes) return `${place.text} ${often}: ${behind} ${place.lostTokens === 1 ? 'is' : 'are'} shared while it keeps its value`;
  return `${place.text} ${often}: ${behind} ${place.lostTokens === 1 ? 'is' : 'are'} computed again${cost === '' ? '' : ` (${cost} per request)`}`;
}

/** Hover text: how much is shared by whom, where the scopes differ; null when they do not. */
export function scopesSentence(report: PrefixReport): string | null {
  const { everyone, user } = report.scopes;
  if (everyone.reuse.tokens === user.reuse.tokens) return null;
  return `${grouped.format(everyone.reuse.tokens)} of ${grouped.format(everyone.total)} tokens shared by all users; ${grouped.format(user.reuse.tokens)} within one user.`;
}
