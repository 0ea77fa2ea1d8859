import { createBrotliDecompress, createGunzip, createInflate } from 'node:zlib';
import type { Milliseconds } from '../report/sample';
import { object } from './dialect/json';
import type { Tape, TapeEnding } from './tape';

/** One line of a socket recording: what one read brought, or what happened to the socket. Stamps are ms since the request was written. */
type Line = { readonly t: Milliseconds; readonly bytes: Buffer } | { readonly t: Milliseconds; readonly event: string };

/**
 * Reads a timed socket recording (JSON Lines: `t`, `n`, and `b` as text or `x` as latin-1, or `t` and `event`) into a tape: head and
 * body taken apart, chunked framing removed, `content-encoding` undone read by read. Null when the text is no such recording.
 * Rejects when a compressed body is damaged beyond reading.
 */
export async function readSocketRecording(text: string): Promise<Tape | null> {
  const lines = parseLines(text);
  if (lines === null) return null;
  const response = new ResponseReader();
  for (const line of lines) if ('bytes' in line) response.read(line.t, line.bytes);
  const events = lines.filter((line) => 'event' in line);
  const closed = events.at(-1);
  const closedAt = closed?.t ?? lines.at(-1)?.t ?? 0;
  const { status, headers, headersAt } = response;
  const whole = response.wholeAt ?? (response.endsAtClose && events.some((e) => e.event === 'close') && !events.some((e) => /error|abort|reset/i.test(e.event)) ? closedAt : null);
  const reads = await decompressed(response.reads, headers);
  return {
    id: 'recording',
    stamps: Float64Array.from(reads, (read) => read.t),
    ends: Uint32Array.from(accumulate(reads.map((read) => read.bytes.length))),
    bytes: Buffer.concat(reads.map((read) => read.bytes)),
    phases: { start: 0, dns: null, connected: null, secured: null, written: 0, sent: 0, headers: headersAt, bodyEnd: whole ?? closedAt },
    status,
    headers,
    reused: false,
    alpn: null,
    ending: whole !== null ? { kind: 'complete' } : endingOf(events.map((e) => e.event), status),
  };
}

function endingOf(events: readonly string[], status: number | null): TapeEnding {
  if (events.some((event) => /client abort/i.test(event))) return { kind: 'cancelled' };
  const failure = events.find((event) => /error|ECONN|refused|reset|EPIPE/i.test(event));
  if (status === null && failure !== undefined && /refused|ECONNREFUSED/i.test(failure)) return { kind: 'connect', message: failure };
  return { kind: 'closed', message: failure ?? 'The connection closed before the body was complete.' };
}

function parseLines(text: string): Line[] | null {
  const lines: Line[] = [];
  for (const raw of text.split('\n')) {
    if (raw.trim() === '') continue;
    let json;
    try {
      json = object(JSON.parse(raw));
    } catch {
      return null;
    }
    const t = json?.['t'];
    if (json === null || typeof t !== 'number' || !(Math.abs(t) < 1e15)) return null;
    const { b, x, event } = json;
    if (typeof event === 'string') lines.push({ t, event });
    else if (typeof b === 'string') lines.push({ t, bytes: Buffer.from(b, 'utf8') });
    else if (typeof x === 'string') lines.push({ t, bytes: Buffer.from(x, 'latin1') });
    else return null;
  }
  return lines.length === 0 ? null : lines;
}

function accumulate(lengths: readonly number[]): number[] {
  let sum = 0;
  return lengths.map((length) => (sum += length));
}

interface BodyRead {
  readonly t: Milliseconds;
  readonly bytes: Buffer;
}

/** No head is larger, and no body that a person would decode. */
const mostHead = 1 << 20;
const mostBody = 500_000_000;

/** HTTP/1.1 response bytes → status, headers and body bytes by read. What comes after the body, or after framing that is none, is ignored. */
class ResponseReader {
  status: number | null = null;
  headers: [string, string][] = [];
  headersAt: Milliseconds | null = null;
  /** Stamp of the read that completed the body, null while it is not. */
  wholeAt: Milliseconds | null = null;
  readonly reads: BodyRead[] = [];

  #broken = false;
  #head = Buffer.alloc(0);
  #left: number | 'chunked' | 'close' = 'close';
  #chunk: { phase: 'size' | 'data' | 'data-end' | 'trailer'; left: number; line: string } = { phase: 'size', left: 0, line: '' };

  get endsAtClose(): boolean {
    return this.headersAt !== null && this.#left === 'close';
  }

  read(t: Milliseconds, bytes: Buffer): void {
    let rest: Buffer | null = bytes;
    while (this.headersAt === null) {
      if (rest === null || this.#broken) return;
      rest = this.#readHead(t, rest);
    }
    if (rest === null || this.wholeAt !== null || this.#broken) return;
    const body = this.#left === 'chunked' ? this.#unchunk(t, rest) : this.#take(t, rest);
    if (body.length > 0) this.reads.push({ t, bytes: body });
  }

  /** The bytes behind the head, or null when the head is not complete. Interim (1xx) heads are passed over. */
  #readHead(t: Milliseconds, bytes: Buffer): Buffer | null {
    this.#head = Buffer.concat([this.#head, bytes]);
    const end = this.#head.indexOf('\r\n\r\n');
    this.#broken = end < 0 && this.#head.length > mostHead;
    if (end < 0) return null;
    const lines = this.#head.toString('latin1', 0, end).split('\r\n');
    const rest = this.#head.subarray(end + 4);
    this.#head = Buffer.alloc(0);
    const status = Number(/^HTTP\/\d(?:\.\d)? (\d{3})/.exec(lines[0]!)?.[1] ?? 0);
    if (status >= 100 && status < 200) return rest;
    this.status = status;
    this.headers = lines.slice(1).map((line) => [line.slice(0, line.indexOf(':')).trim(), line.slice(line.indexOf(':') + 1).trim()]);
    this.headersAt = t;
    const get = (name: string): string | undefined => this.headers.find(([key]) => key.toLowerCase() === name)?.[1];
    if (/chunked/i.test(get('transfer-encoding') ?? '')) this.#left = 'chunked';
    else if (/^\d+$/.test(get('content-length') ?? '')) this.#left = Number(get('content-length'));
    if (status === 204 || status === 304) this.#left = 0;
    if (this.#left === 0) this.wholeAt = t;
    return rest;
  }

  #take(t: Milliseconds, bytes: Buffer): Buffer {
    if (typeof this.#left !== 'number') return bytes;
    const body = bytes.subarray(0, this.#left);
    this.#left -= body.length;
    if (this.#left === 0) this.wholeAt = t;
    return body;
  }

  #unchunk(t: Milliseconds, bytes: Buffer): Buffer {
    const parts: Buffer[] = [];
    const chunk = this.#chunk;
    let at = 0;
    while (at < bytes.length && this.wholeAt === null && !this.#broken) {
      if (chunk.phase === 'data') {
        const part = bytes.subarray(at, at + chunk.left);
        parts.push(part);
        at += part.length;
        chunk.left -= part.length;
        if (chunk.left === 0) chunk.phase = 'data-end';
        continue;
      }
      const char = String.fromCharCode(bytes[at++]!);
      if (char !== '\n') {
        chunk.line += char;
        continue;
      }
      const line = chunk.line.replace(/\r$/, '');
      chunk.line = '';
      if (chunk.phase === 'data-end') chunk.phase = 'size';
      else if (chunk.phase === 'trailer') {
        if (line === '') this.wholeAt = t;
      } else {
        // A size, and extensions behind it (RFC 9112 §7.1).
        const size = /^([0-9a-f]{1,12})\s*(?:;.*)?$/i.exec(line)?.[1];
        this.#broken = size === undefined;
        chunk.left = parseInt(size ?? '0', 16);
        chunk.phase = chunk.left === 0 ? 'trailer' : 'data';
      }
    }
    return Buffer.concat(parts);
  }
}

/** Undoes `content-encoding`: each read gives what it completed, under its own stamp. */
async function decompressed(reads: readonly BodyRead[], headers: readonly (readonly [string, string])[]): Promise<readonly BodyRead[]> {
  const encoding = headers.find(([name]) => name.toLowerCase() === 'content-encoding')?.[1].toLowerCase() ?? 'identity';
  const stream = encoding === 'gzip' || encoding === 'x-gzip' ? createGunzip() : encoding === 'deflate' ? createInflate() : encoding === 'br' ? createBrotliDecompress() : null;
  if (stream === null) return reads;
  const plain: BodyRead[] = [];
  let output: Buffer[] = [];
  let size = 0;
  let failure: Error | null = null;
  stream.on('data', (piece: Buffer) => {
    size += piece.length;
    if (size <= mostBody) output.push(piece);
    else stream.destroy(new Error('The body is too large.'));
  });
  stream.on('error', (error) => (failure = error));
  for (const { t, bytes } of reads) {
    await new Promise<void>((resolve) => {
      stream.write(bytes, () => resolve());
    });
    // The decompressor hands its output over in the event loop's next turn at the latest.
    await new Promise<void>((resolve) => setImmediate(resolve));
    if (failure !== null) break;
    if (output.length > 0) plain.push({ t, bytes: Buffer.concat(output) });
    output = [];
  }
  stream.destroy();
  return plain;
}
