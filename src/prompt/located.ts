/** Text together with where each of its characters stands in a source: strings out of JSON, YAML and code keep exact offsets. */
import type { LiteralSpan } from './prompt';

/** Pairs `[index in text, source offset]`, ascending; between two pairs both advance alike. */
export type OffsetMap = readonly (readonly [number, number])[];

/** A piece of text whose every index has an offset in the source file (UTF-16 units both). */
export class Located {
  readonly text: string;
  private readonly map: OffsetMap;
  private readonly tail: number;
  private readonly exact: boolean;

  /** `map` must begin at index 0 unless `text` is empty; `tail` is the source offset behind the last character; `exact`: each character stands as such in the source. */
  constructor(text: string, map: OffsetMap, tail: number, exact = false) {
    this.text = text;
    this.map = map;
    this.tail = tail;
    this.exact = exact;
  }

  /** The text of a source region as it stands. */
  static slice(source: string, start = 0, end = source.length): Located {
    return new Located(source.slice(start, end), [[0, start]], end, true);
  }

  /** The source offset of index `i` (0 … length; behind the end gives the end). */
  at(i: number): number {
    if (i >= this.text.length) return this.tail;
    const pair = this.map[this.pairBefore(i)];
    return pair === undefined ? this.tail : pair[1] + (i - pair[0]);
  }

  /** The source offset just behind the character before index `i`. */
  endAt(i: number): number {
    if (i >= this.text.length) return this.tail;
    return i <= 0 ? this.at(0) : this.at(i - 1) + (this.isPlain(i - 1) ? 1 : this.at(i) - this.at(i - 1));
  }

  /** The part from `from` to `to`. */
  part(from: number, to: number): Located {
    if (from >= to) return new Located('', [], this.at(from));
    const pairs: [number, number][] = [[0, this.at(from)]];
    for (let k = this.pairBefore(from) + 1; k < this.map.length; k += 1) {
      const pair = this.map[k]!;
      if (pair[0] >= to) break;
      if (pair[0] > from) pairs.push([pair[0] - from, pair[1]]);
    }
    return new Located(this.text.slice(from, to), pairs, this.endAt(to), this.exact);
  }

  /** The part as a literal span. */
  literal(from = 0, to = this.text.length): LiteralSpan {
    const cut = this.part(from, to);
    const start = this.at(from);
    const end = Math.max(start, this.endAt(to));
    return this.exact && cut.map.length <= 1 && end - start === cut.text.length
      ? { kind: 'literal', start, end, text: cut.text }
      : { kind: 'literal', start, end, text: cut.text, map: cut.map };
  }

  private isPlain(i: number): boolean {
    const next = this.pairBefore(i) + 1;
    return this.map[next]?.[0] !== i + 1;
  }

  private pairBefore(i: number): number {
    let low = 0;
    let high = this.map.length - 1;
    while (low < high) {
      const middle = (low + high + 1) >> 1;
      if (this.map[middle]![0] <= i) low = middle;
      else high = middle - 1;
    }
    return low;
  }
}

/** Collects text and its offsets piece by piece. */
export class LocatedBuilder {
  private readonly pieces: string[] = [];
  private readonly pairs: [number, number][] = [];
  private length = 0;
  private next = -1;
  private exact = true;

  /** Appends text whose characters stand one behind the other from `offset`. */
  add(text: string, offset: number): void {
    if (text.length === 0) return;
    if (offset !== this.next) this.pairs.push([this.length, offset]);
    this.pieces.push(text);
    this.length += text.length;
    this.next = offset + text.length;
  }

  /** Appends text that is written in another way (an escape) from `offset`, `width` source units wide. */
  addEscaped(text: string, offset: number, width: number): void {
    this.add(text, offset);
    this.exact = false;
    if (text.length !== width) this.next = -1;
  }

  /** The whole; `tail` is the source offset behind it. */
  done(tail: number): Located {
    return new Located(this.pieces.join(''), this.pairs, tail, this.exact);
  }
}

const simpleEscapes: Readonly<Record<string, string>> = { n: '\n', t: '\t', r: '\r', b: '\b', f: '\f', v: '\v', '0': '\0', a: '\x07', e: '\x1b' };

/** How a quoted string is written. */
export type StringSyntax = 'json' | 'python' | 'python-raw' | 'javascript' | 'yaml-double' | 'yaml-single';

/** Decodes the inside of a quoted string (`start` … `end` exclude the quotes) and keeps the offset of each character. */
export function decodeString(source: string, start: number, end: number, syntax: StringSyntax): Located {
  const out = new LocatedBuilder();
  let i = start;
  while (i < end) {
    const stop = nextSpecial(source, i, end, syntax);
    out.add(source.slice(i, stop), i);
    if (stop >= end) break;
    i = stop + decodeOne(source, stop, end, syntax, out);
  }
  return out.done(end);
}

function nextSpecial(source: string, from: number, end: number, syntax: StringSyntax): number {
  if (syntax === 'python-raw') return end;
  for (let i = from; i < end; i += 1) {
    const c = source[i]!;
    if (syntax === 'yaml-single' ? c === "'" || c === '\n' : c === '\\' || (c === '\n' && syntax === 'yaml-double')) return i;
  }
  return end;
}

/** Decodes the special thing at `i` into `out`; returns its width. */
function decodeOne(source: string, i: number, end: number, syntax: StringSyntax, out: LocatedBuilder): number {
  const c = source[i]!;
  if (c === "'") {
    out.addEscaped("'", i, source[i + 1] === "'" ? 2 : 1);
    return source[i + 1] === "'" ? 2 : 1;
  }
  if (c === '\n') return foldLines(source, i, end, out);
  const next = source[i + 1] ?? '';
  if (next === '\n') {
    const indent = syntax === 'yaml-double' ? /^[ \t]*/.exec(source.slice(i + 2, end))![0].length : 0;
    return Math.min(end - i, 2 + indent);
  }
  if (next === '\r' && source[i + 2] === '\n') return Math.min(end - i, 3);
  const hex = /^\\(?:x([0-9a-fA-F]{2})|u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8})|u\{([0-9a-fA-F]{1,6})\})/.exec(source.slice(i, Math.min(end, i + 12)));
  if (hex !== null) {
    const code = parseInt(hex[1] ?? hex[2] ?? hex[3] ?? hex[4] ?? '0', 16);
    out.addEscaped(code <= 0x10ffff ? String.fromCodePoint(code) : '\ufffd', i, hex[0].length);
    return hex[0].length;
  }
  const simple = simpleEscapes[next];
  if (i + 1 >= end) {
    out.add(c, i);
    return 1;
  }
  if (simple !== undefined) out.addEscaped(simple, i, 2);
  else if (syntax === 'python') out.add(c + next, i);
  else out.addEscaped(next, i, 2);
  return 2;
}

/** A YAML flow scalar over several lines: one break becomes a space, n breaks become n − 1 newlines. */
function foldLines(source: string, i: number, end: number, out: LocatedBuilder): number {
  const run = /^(?:\r?\n[ \t]*)+/.exec(source.slice(i, end))![0];
  const breaks = run.split('\n').length - 1;
  out.addEscaped(breaks === 1 ? ' ' : '\n'.repeat(breaks - 1), i, run.length);
  return run.length;
}

/**
 * Lines up a value with the source it was read from when only white space, folding and quoting differ (YAML scalars).
 * `from` is where the first character may stand.
 */
export function alignValue(value: string, source: string, from: number, end: number): Located {
  const out = new LocatedBuilder();
  let j = from;
  for (const c of value) {
    const isBreak = c === '\n' || c === ' ';
    while (j < end && source[j] !== c[0] && isSpace(source[j]!) && !(c === ' ' && source[j] === '\n') && !(isBreak && source.startsWith('\r\n', j))) j += 1;
    if (j >= end) j = Math.max(from, end - 1);
    // One character of the value for the two of the line end, so that what stands before it ends before it.
    if (isBreak && source.startsWith('\r\n', j) && j + 1 < end) {
      out.addEscaped(c, j, 2);
      j += 2;
      continue;
    }
    const matches = source.startsWith(c, j);
    if (matches) out.add(c, j);
    else out.addEscaped(c, j, c.length + 1);
    j = Math.min(end, j + (matches ? c.length : 1));
  }
  return out.done(Math.min(end, j));
}

function isSpace(c: string): boolean {
  return c === ' ' || c === '\t' || c === '\n' || c === '\r';
}
