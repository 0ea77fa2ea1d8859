import { parseJson } from './dialect/json';

/**
 * Cutting a body into frames, for every framing but SSE (which is in `decode.ts`). Each framer takes the decoded text or the bytes
 * of one read, in any cuts, calls back once a frame is complete, and does work linear in its input.
 */
export interface Framer {
  push(text: string): void;
  /** The body ended; what is left over is handed out as unterminated. */
  end(): void;
}

/** Most characters one frame may hold before the stream counts as malformed. */
export const maxFrame = 64 * 1024 * 1024;

/** One JSON value a line, split at LF only; blank lines are skipped, CR before LF is JSON white space. */
export function lineFramer(onLine: (line: string, unterminated: boolean) => void, onOverflow: () => void): Framer {
  let pending: string[] = [];
  let size = 0;
  const emit = (line: string, unterminated: boolean): void => {
    if (line.trim() !== '') onLine(line, unterminated);
  };
  return {
    push(text) {
      let start = 0;
      for (let at = text.indexOf('\n'); at >= 0; at = text.indexOf('\n', start)) {
        const tail = text.slice(start, at);
        start = at + 1;
        if (size === 0) emit(tail, false);
        else {
          pending.push(tail);
          const line = pending.join('');
          pending = [];
          size = 0;
          emit(line, false);
        }
      }
      if (start === text.length) return;
      pending.push(start === 0 ? text : text.slice(start));
      size += text.length - start;
      if (size > maxFrame) onOverflow();
    },
    end() {
      if (size > 0) emit(pending.join(''), true);
      pending = [];
      size = 0;
    },
  };
}

/** What a value framer calls. */
export interface ValueEvents {
  /** One value; `parsed` where finding its end took parsing it. */
  value(json: string, unterminated: boolean, parsed?: unknown): void;
  /** The closing bracket of the array around the values. */
  closed(): void;
  /** A character between values that belongs to no JSON. */
  junk(): void;
  overflow(): void;
}

const quote = 34, backslash = 92, open = 123, close = 125, openList = 91, closeList = 93;
const isSpace = (code: number): boolean => code === 32 || code === 10 || code === 13 || code === 9;

/**
 * JSON objects or lists one after another (`inArray: false`), or the objects of one array that arrives over time (`inArray: true`):
 * cut by brace depth outside strings. Values between the objects are not expected and count as junk.
 */
export function valueFramer(inArray: boolean, events: ValueEvents): Framer {
  const base = inArray ? 1 : 0;
  let depth = 0;
  let inString = false;
  let escaped = false;
  let pending: string[] = [];
  let size = 0;
  let over = false;
  let printed = inArray;

  /**
   * An element of a pretty-printed array, all in one read: it ends at the first brace at a line's start, unless it does not parse up
   * to there. An object that parses is the whole element, since no object is the beginning of another. Saves the scan below.
   */
  const atOnce = (text: string, start: number): number => {
    const end = text.indexOf('\n}', start) + 2;
    if (end < 2) return -1;
    const piece = text.slice(start, end);
    const parsed = parseJson(piece);
    if (parsed === undefined) {
      printed = false;
      return -1;
    }
    events.value(piece, false, parsed);
    return end;
  };

  const between = (code: number): void => {
    if (isSpace(code) || code === 44) return;
    if (inArray && code === openList && depth === 0 && !over) depth = 1;
    else if (inArray && code === closeList && depth === 1) {
      depth = 0;
      over = true;
      events.closed();
    } else events.junk();
  };

  const take = (tail: string): void => {
    if (size === 0) {
      events.value(tail, false);
      return;
    }
    pending.push(tail);
    const value = pending.join('');
    pending = [];
    size = 0;
    events.value(value, false);
  };

  return {
    push(text) {
      const length = text.length;
      let start = depth > base ? 0 : -1;
      let at = 0;
      while (at < length) {
        if (depth > base) {
          // The bulk of the work: the state is in local variables while a value lasts.
          let level = depth;
          let quoted = inString;
          let skip = escaped;
          while (at < length) {
            const code = text.charCodeAt(at++);
            if (quoted) {
              if (skip) skip = false;
              else if (code === quote) quoted = false;
              else if (code === backslash) skip = true;
            } else if (code === quote) quoted = true;
            else if (code === open || code === openList) level++;
            else if ((code === close || code === closeList) && --level === base) break;
          }
          depth = level;
          inString = quoted;
          escaped = skip;
          if (level > base) break;
          const tail = text.slice(start, at);
          start = -1;
          take(tail);
          continue;
        }
        const code = text.charCodeAt(at);
        const end = printed && code === open && depth === base && !over ? atOnce(text, at) : -1;
        if (end >= 0) {
          at = end;
          continue;
        }
        if (depth === base && !over && (code === open || (code === openList && !inArray))) {
          start = at;
          depth++;
        } else between(code);
        at++;
      }
      if (start < 0) return;
      pending.push(start === 0 ? text : text.slice(start));
      size += length - start;
      if (size > maxFrame) events.overflow();
    },
    end() {
      if (size > 0) events.value(pending.join(''), true);
      pending = [];
      size = 0;
    },
  };
}

/** One message of a binary AWS event stream (`application/vnd.amazon.eventstream`). */
export interface BinaryMessage {
  readonly headers: Readonly<Record<string, string>>;
  /** UTF-8 text; event streams of models carry JSON. */
  readonly payload: string;
}

const prelude = 12;
const trailer = 4;
/** The largest message AWS sends is 16 MiB of payload and 128 KiB of headers. */
const maxMessage = 17 * 1024 * 1024;

/**
 * Cuts an AWS event stream: 4 bytes total length, 4 bytes header length, 4 bytes CRC of those eight, headers, payload, 4 bytes CRC of all before.
 * A wrong checksum or length is reported once and ends the reading.
 */
export function messageFramer(onMessage: (message: BinaryMessage) => void, onBroken: (message: string) => void): { push(bytes: Uint8Array): void; leftOver(): boolean } {
  let pending: Uint8Array[] = [];
  let size = 0;
  let needed = prelude;
  let broken = false;
  // Messages of one kind have the same headers, byte for byte.
  let lastBlock = Buffer.alloc(0);
  let lastHeaders: BinaryMessage['headers'] = {};
  const fail = (message: string): void => {
    broken = true;
    onBroken(message);
  };
  const take = (bytes: Buffer, start: number, total: number): boolean => {
    if (bytes.readUInt32BE(start + total - trailer) !== checksum(bytes, start, start + total - trailer)) {
      fail('An event-stream message has a wrong checksum.');
      return false;
    }
    const headerLength = bytes.readUInt32BE(start + 4);
    if (headerLength > total - prelude - trailer) {
      fail('An event-stream message has impossible lengths.');
      return false;
    }
    const payloadStart = start + prelude + headerLength;
    if (!same(bytes, start + prelude, payloadStart, lastBlock)) {
      lastBlock = Buffer.from(bytes.subarray(start + prelude, payloadStart));
      lastHeaders = readHeaders(lastBlock);
    }
    onMessage({ headers: lastHeaders, payload: bytes.toString('utf8', payloadStart, start + total - trailer) });
    return true;
  };
  return {
    push(chunk) {
      if (broken) return;
      pending.push(chunk);
      size += chunk.length;
      if (size < needed) return;
      const joined = pending.length === 1 ? chunk : join(pending, size);
      const bytes = Buffer.from(joined.buffer, joined.byteOffset, joined.byteLength);
      let start = 0;
      for (;;) {
        needed = prelude;
        if (size - start < needed) break;
        const total = bytes.readUInt32BE(start);
        if (bytes.readUInt32BE(start + 8) !== checksum(bytes, start, start + 8) || total < prelude + trailer || total > maxMessage) {
          fail('The body is not an AWS event stream, or it is damaged.');
          return;
        }
        needed = total;
        if (size - start < needed) break;
        if (!take(bytes, start, total)) return;
        start += total;
      }
      pending = start < size ? [bytes.subarray(start)] : [];
      size -= start;
    },
    leftOver: () => size > 0,
  };
}

function same(bytes: Uint8Array, start: number, end: number, other: Uint8Array): boolean {
  if (end - start !== other.length) return false;
  for (let at = start; at < end; at++) if (bytes[at] !== other[at - start]) return false;
  return true;
}

/** Tables for the CRC-32 of eight bytes at a time, one after another; for messages of a few hundred bytes that is faster than a view and a call into zlib. */
const crcTable = ((): Uint32Array => {
  const table = new Uint32Array(8 * 256);
  for (let index = 0; index < 256; index++) {
    let value = index;
    for (let bit = 0; bit < 8; bit++) value = value & 1 ? (value >>> 1) ^ 0xedb88320 : value >>> 1;
    table[index] = value;
  }
  for (let index = 256; index < table.length; index++) table[index] = (table[index - 256]! >>> 8) ^ table[table[index - 256]! & 255]!;
  return table;
})();

/** CRC-32 (as zlib's) of the bytes from `start` to `end`. */
function checksum(bytes: Uint8Array, start: number, end: number): number {
  const table = crcTable;
  let value = -1;
  let at = start;
  for (; at + 8 <= end; at += 8) {
    value ^= bytes[at]! | (bytes[at + 1]! << 8) | (bytes[at + 2]! << 16) | (bytes[at + 3]! << 24);
    value =
      table[1792 + (value & 255)]! ^ table[1536 + ((value >>> 8) & 255)]! ^ table[1280 + ((value >>> 16) & 255)]! ^ table[1024 + (value >>> 24)]! ^
      table[768 + bytes[at + 4]!]! ^ table[512 + bytes[at + 5]!]! ^ table[256 + bytes[at + 6]!]! ^ table[bytes[at + 7]!]!;
  }
  for (; at < end; at++) value = table[(value ^ bytes[at]!) & 255]! ^ (value >>> 8);
  return ~value >>> 0;
}

function join(parts: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Bytes of a header value by its type; strings and byte arrays carry their own length. */
const valueSizes: readonly (number | null)[] = [0, 0, 1, 2, 4, 8, null, null, 8, 16];

function readHeaders(bytes: Buffer): Record<string, string> {
  const headers: Record<string, string> = {};
  let at = 0;
  while (at < bytes.length) {
    const nameEnd = at + 1 + bytes[at]!;
    if (nameEnd >= bytes.length) break;
    const name = bytes.toString('utf8', at + 1, nameEnd);
    const type = bytes[nameEnd]!;
    let size = valueSizes[type];
    at = nameEnd + 1;
    if (size === undefined) break;
    if (size === null) {
      if (at + 2 > bytes.length) break;
      size = bytes.readUInt16BE(at);
      at += 2;
    }
    if (type === 7) headers[name] = bytes.toString('utf8', at, at + size);
    at += size;
  }
  return headers;
}
