import { createParser, type ParseError } from 'eventsource-parser';
import type { DeltaKind, Milliseconds, Outcome, ServerTiming, TokenSource } from '../report/sample';
import type { CacheDiagnosis, Dialect, Frame, FrameReader, FrameSink, FrameTokenSource, GrowthIsToken, HeaderList, Usage } from './dialect/dialect';
import { parseJson } from './dialect/json';
import { lineFramer, maxFrame, messageFramer, valueFramer, type Framer } from './framing';
import { headerTimings } from './headerTimings';
import { InlineThinking, type OpenArrival } from './inlineThinking';
import { errorInFrame, excerpt, messageIn, messageOfBody, refusedField, retryAfter, titleOf } from './serverError';
import type { Tape, TapeEnding } from './tape';
import { TokenCounts } from './tokenCounts';

/** One delta: a frame that carried generated content, or whose token count grew. One frame is at most one delta. */
export interface Arrival {
  /** Absolute stamp of the read that holds the frame's last byte. */
  readonly t: Milliseconds;
  /** Index of that read, from 0. */
  readonly read: number;
  /** Index of the frame, from 0. */
  readonly frame: number;
  /** Where one frame carries several kinds: text before tool before reasoning. */
  readonly kind: DeltaKind;
  /** The text of `kind` (a tool call's arguments); joined over all arrivals it is the answer. Empty for other choices than the first. */
  readonly text: string;
  /** k: tokens in this delta; null = unknown. Provisional until `result()` has seen whether they add up. */
  readonly tokens: number | null;
  /** Content of another kind in the same frame. */
  readonly beside?: { readonly kind: DeltaKind; readonly text: string };
  /** Index of the choice when it is not the first (n > 1). */
  readonly choice?: number;
}

/** What one stream says, whole. Stamps as given to `push`. */
export interface Decoded {
  readonly text: string;
  readonly reasoning: string;
  readonly toolCalls: readonly { readonly name: string; readonly arguments: string }[];
  readonly finish: string | null;
  /** N, all output tokens; null/null where the server tells nothing (tokenizers and the number of deltas are the caller's fallbacks). */
  readonly outputTokens: { readonly count: number | null; readonly source: TokenSource | null };
  /** N_stream: N without reasoning that never appeared in the stream; null = unknown. */
  readonly streamTokens: number | null;
  readonly reasoningTokens: number | null;
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly arrivals: readonly Arrival[];
  /** SSE events, lines, array elements or binary messages, end marks included, comments not. */
  readonly frames: number;
  readonly comments: number;
  readonly firstFrame: Milliseconds | null;
  /** The terminal marker, or a clean end of the body where that is a proper end; null = there was none. */
  readonly end: Milliseconds | null;
  /** Tokens of the first delta; null = unknown. */
  readonly n1: number | null;
  readonly reads: number;
  readonly maxDeltasPerRead: number;
  readonly bytes: number;
  readonly serverTimings: readonly ServerTiming[];
  readonly flags: readonly string[];
  /** The provider's id of the answer, where the dialect knows one to ask about later; else null. */
  readonly answerId: string | null;
  /** What the provider says of its cache, compared with the request it was asked to compare with; null = it says nothing. */
  readonly diagnosis: CacheDiagnosis | null;
  /** What status and stream alone say; `outcomeOf` adds how the exchange ended on the wire. */
  readonly outcome: Outcome;
}

/** Status and headers of the response; status null = not known (a file). */
export interface ResponseHead {
  readonly status: number | null;
  readonly headers: HeaderList;
}

/** One stream in the making. Feed every read with its stamp, then `end` once; `result` may be asked at any time. */
export interface Decoder {
  /** Takes one read; gives the arrivals it completed. Their kind, text and tokens may change until `result` after `end`. */
  push(stamp: Milliseconds, bytes: Uint8Array): readonly Arrival[];
  /** The body ended: `clean` as HTTP says it should, or `cut`. */
  end(stamp: Milliseconds, closed: 'clean' | 'cut'): readonly Arrival[];
  result(): Decoded;
  /** The dialect's end marker has come. Costs nothing, unlike `result`. */
  readonly ended: boolean;
}

/** One frame as it came, for people. */
export interface RawFrame {
  readonly index: number;
  readonly t: Milliseconds;
  readonly read: number;
  readonly event: string;
  readonly raw: string;
}

/** A fresh decoder for one response. `onFrame` sees every frame before it is read. */
export function createDecoder(dialect: Dialect, head: ResponseHead, onFrame?: (frame: RawFrame) => void): Decoder {
  return new StreamDecoder(dialect, head, onFrame);
}

/** The tape decoded: `createDecoder` fed read by read, and how the exchange ended taken into the outcome. */
export function decode(tape: Tape, dialect: Dialect): Decoded {
  const decoder = createDecoder(dialect, tape);
  feed(decoder, tape);
  const decoded = decoder.result();
  return { ...decoded, outcome: outcomeOf(tape.ending, decoded) };
}

/** All frames of a tape as they came, in order. */
export function frameAt(tape: Tape, dialect: Dialect): readonly RawFrame[] {
  const frames: RawFrame[] = [];
  feed(createDecoder(dialect, tape, (frame) => frames.push(frame)), tape);
  return frames;
}

function feed(decoder: Decoder, tape: Tape): void {
  let from = 0;
  tape.ends.forEach((to, read) => {
    decoder.push(tape.stamps[read]!, tape.bytes.subarray(from, to));
    from = to;
  });
  decoder.end(tape.phases.bodyEnd ?? tape.stamps.at(-1) ?? tape.phases.start, tape.ending.kind === 'complete' ? 'clean' : 'cut');
}

/** The outcome of a request: how the exchange ended on the wire, unless the stream itself had already ended or failed. */
export function outcomeOf(ending: TapeEnding, decoded: Decoded): Outcome {
  const said = decoded.outcome;
  switch (ending.kind) {
    case 'complete':
      return said;
    case 'closed':
      return said.kind === 'truncated' ? { ...said, message: [said.message, ending.message].filter((m) => m !== undefined && m !== '').join(' ') } : said;
    case 'dns':
    case 'connect':
    case 'tls':
      return { kind: ending.kind, message: ending.message };
    case 'timeout-first-token':
    case 'timeout-stall':
    case 'timeout-total':
    case 'cancelled':
      if (decoded.end !== null || said.kind === 'status' || said.kind === 'stream-error' || said.kind === 'malformed') return said;
      return ending.kind === 'cancelled' ? { kind: 'cancelled' } : { kind: ending.kind, message: `Nothing more came within the limit of ${ending.limit} ms.` };
  }
}

/** Bounds of what is kept of a body that is no stream. */
const maxErrorBody = 256 * 1024;
const maxStray = 1024 * 1024;

/** Cuts SSE text by the parser; whole lines only are fed, so that every line that is no SSE field is reported. */
function eventFramer(events: { event(data: string, event: string, unterminated: boolean): void; comment(): void; stray(line: string): void; cut(): void; overflow(): void }): Framer {
  let pending: string[] = [];
  let size = 0;
  let ended = false;
  let dead = false;
  const parser = createParser({
    maxBufferSize: maxFrame,
    onEvent: (message) => events.event(message.data, message.event ?? '', ended),
    onComment: () => events.comment(),
    onError: (error: ParseError) => {
      if (error.type === 'unknown-field') events.stray(error.line ?? '');
      else if (error.type === 'max-buffer-size-exceeded') {
        dead = true;
        events.overflow();
      }
    },
  });
  const feedParser = (text: string): void => {
    if (!dead) parser.feed(text);
  };
  return {
    push(text) {
      const lines = endOfLastLine(text);
      if (lines > 0) {
        const head = lines === text.length ? text : text.slice(0, lines);
        if (size === 0) feedParser(head);
        else {
          pending.push(head);
          const joined = pending.join('');
          pending = [];
          size = 0;
          feedParser(joined);
        }
      }
      if (lines === text.length) return;
      pending.push(lines === 0 ? text : text.slice(lines));
      size += text.length - lines;
      if (size > maxFrame) events.overflow();
    },
    end() {
      if (size > 0) {
        // The line itself is cut off; the event in it, if any, comes with the blank line below.
        ended = true;
        const line = pending.join('');
        if (isBegunField(line)) events.cut();
        feedParser(`${line}\n`);
      }
      ended = true;
      feedParser('\n\n');
    },
  };
}

/** Whether a last line without its line break began an event that never came: part of a field's name, `data:` without content, any other field. */
function isBegunField(line: string): boolean {
  const colon = line.indexOf(':');
  if (colon < 0) return eventFields.some((field) => field.startsWith(line));
  const field = line.slice(0, colon);
  return eventFields.includes(field) && (field !== 'data' || line.slice(colon + 1).trim() === '');
}

function endOfLastLine(text: string): number {
  for (let at = text.length - 1; at >= 0; at--) {
    const code = text.charCodeAt(at);
    if (code === 10 || code === 13) return at + 1;
  }
  return 0;
}

type Part = 'text' | 'reasoning' | 'tool';

class StreamDecoder implements Decoder, FrameSink {
  readonly #dialect: Dialect;
  readonly #head: ResponseHead;
  readonly #onFrame: ((frame: RawFrame) => void) | undefined;
  readonly #reader: FrameReader;
  readonly #utf8 = new TextDecoder();

  #framer: Framer | null = null;
  #binary: { push(bytes: Uint8Array): void; leftOver(): boolean } | null = null;
  #mode: 'undecided' | 'stream' | 'array' | 'html' | 'status' | 'dead' = 'undecided';
  #blank = '';
  /** The first value of a body that starts like one JSON answer, until a second shows it is a stream. */
  #held: { data: string; t: Milliseconds; read: number; unterminated: boolean } | null = null;
  #values = 0;
  readonly #body: string[] = [];
  #bodySize = 0;
  readonly #stray: string[] = [];
  #straySize = 0;
  #lastTwo: readonly number[] = [];

  #reads = 0;
  #bytes = 0;
  #lastRead: Milliseconds = 0;
  #frames = 0;
  #marks = 0;
  /** Frames that the end of the body cut in two: 0 or 1. */
  #cut = 0;
  #comments = 0;
  #firstFrame: Milliseconds | null = null;
  #known = 0;
  #unterminatedLoss = false;
  #end: Milliseconds | null = null;
  #closed: { at: Milliseconds; clean: boolean } | null = null;

  readonly #arrivals: OpenArrival[] = [];
  #inRead = 0;
  #maxInRead = 0;
  readonly #thinking: InlineThinking;
  readonly #counts = new TokenCounts();
  readonly #tools = new Map<string | number, { name: string; arguments: string[]; whole: string }>();
  readonly #flags = new Set<string>();
  readonly #timings = new Map<string, ServerTiming>();
  readonly #usage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  readonly #countedUsage: { -readonly [K in keyof Usage]: Usage[K] } = {};
  #reasoningSeen = false;
  #finish: string | null = null;
  #answerId: string | null = null;
  #diagnosis: CacheDiagnosis | null = null;
  #whole = false;
  #error: { message: string; raw: string } | null = null;
  #malformed: { message: string; raw: string } | null = null;

  // The frame in hand.
  #raw = '';
  #part: Record<Part, string> = { text: '', reasoning: '', tool: '' };
  #hasTool = false;
  #otherChoice = 0;
  #otherKind: Part = 'text';

  constructor(dialect: Dialect, head: ResponseHead, onFrame?: (frame: RawFrame) => void) {
    this.#dialect = dialect;
    this.#head = head;
    this.#onFrame = onFrame;
    this.#thinking = new InlineThinking(this.#arrivals, (how) => this.#flags.add(how));
    this.#reader = dialect.reader(this, { headers: head.headers });
    for (const timing of headerTimings(head.headers)) this.timing(timing);
    if (head.status !== null && head.status >= 300) this.#mode = 'status';
  }

  push(stamp: Milliseconds, bytes: Uint8Array): readonly Arrival[] {
    if (bytes.length === 0) return [];
    const before = this.#arrivals.length;
    this.#lastRead = stamp;
    this.#bytes += bytes.length;
    this.#inRead = 0;
    if (this.#mode === 'undecided' && this.#reads === 0 && this.#dialect.framing === 'aws-eventstream' && bytes[0] === 0) this.#readBinary();
    this.#reads++;
    if (this.#binary !== null) this.#binary.push(bytes);
    else this.#text(this.#utf8.decode(bytes, { stream: true }), bytes);
    return this.#whole ? [] : this.#arrivals.slice(before);
  }

  end(stamp: Milliseconds, closed: 'clean' | 'cut'): readonly Arrival[] {
    if (this.#closed !== null) return [];
    const before = this.#arrivals.length;
    if (this.#binary === null) {
      const rest = this.#utf8.decode();
      if (rest !== '') {
        if (closed === 'clean') this.#flags.add('not-utf8');
        this.#text(rest, null);
      }
      this.#framer?.end();
    } else if (this.#binary.leftOver()) this.#unterminatedLoss = true;
    this.#settleHeld();
    this.#settleStray();
    this.#thinking.end();
    this.#closed = { at: stamp, clean: closed === 'clean' };
    return this.#whole ? [] : this.#arrivals.slice(before);
  }

  // ---- bytes and text

  #text(text: string, bytes: Uint8Array | null): void {
    if (bytes !== null) this.#checkUtf8(text, bytes);
    if (text === '') return;
    switch (this.#mode) {
      case 'undecided':
        this.#sniff(text);
        break;
      case 'stream':
      case 'array':
        this.#framer!.push(text);
        break;
      case 'html':
      case 'status':
        this.#keepBody(text);
        break;
      case 'dead':
        break;
    }
  }

  /** A replacement character that was not sent as one stands for bytes that are no UTF-8. */
  #checkUtf8(text: string, bytes: Uint8Array): void {
    if (text.includes('\uFFFD') && !this.#flags.has('not-utf8')) {
      const latin1 = Buffer.concat([Uint8Array.from(this.#lastTwo), bytes]).toString('latin1');
      if (occurrences(text, '\uFFFD') > occurrences(latin1, '\xEF\xBF\xBD')) this.#flags.add('not-utf8');
    }
    const size = bytes.length;
    this.#lastTwo = size >= 2 ? [bytes[size - 2]!, bytes[size - 1]!] : [...this.#lastTwo.slice(-1), bytes[0]!];
  }

  /** What the body is shows in its first character, whatever was announced. */
  #sniff(text: string): void {
    const all = this.#blank + text;
    const at = all.search(/\S/);
    if (at < 0) {
      this.#blank = all.slice(-16);
      return;
    }
    const first = all.charAt(at);
    this.#mode = 'stream';
    if (first === '<') this.#mode = 'html';
    else if (first === '[' && this.#dialect.framing !== 'sse') {
      this.#mode = 'array';
      this.#framer = this.#valueFramer(true);
    } else if (first === '{' || first === '[') this.#framer = this.#dialect.framing === 'ndjson' ? this.#lineFramer() : this.#valueFramer(false);
    else this.#framer = this.#eventFramer();
    this.#blank = '';
    if (this.#framer === null) this.#keepBody(all);
    else this.#framer.push(all);
  }

  #eventFramer(): Framer {
    return eventFramer({
      event: (data, event, unterminated) => this.#frame({ data, event }, unterminated),
      comment: () => {
        this.#comments++;
      },
      stray: (line) => this.#keepStray(line),
      cut: () => this.#lost(),
      overflow: () => this.#overflow(),
    });
  }

  #lineFramer(): Framer {
    return lineFramer((line, unterminated) => this.#line(line, unterminated), () => this.#overflow());
  }

  #valueFramer(inArray: boolean): Framer {
    return valueFramer(inArray, {
      value: (data, unterminated, json) => {
        if (inArray) this.#frame({ data, event: '' }, unterminated, this.#lastRead, this.#reads - 1, json);
        else this.#value(data, unterminated);
      },
      closed: () => this.terminal(),
      junk: () => this.malformed('There is text between the JSON values.'),
      overflow: () => this.#overflow(),
    });
  }

  #overflow(): void {
    this.malformed(`One frame is larger than ${maxFrame / (1024 * 1024)} MB.`);
    this.#mode = 'dead';
    this.#framer = null;
  }

  #keepBody(text: string): void {
    if (this.#bodySize >= maxErrorBody) return;
    this.#body.push(text.slice(0, maxErrorBody - this.#bodySize));
    this.#bodySize += text.length;
  }

  #keepStray(line: string): void {
    if (this.#straySize >= maxStray) return;
    this.#stray.push(line.slice(0, maxStray - this.#straySize));
    this.#straySize += line.length + 1;
  }

  #readBinary(): void {
    this.#mode = 'stream';
    this.#binary = messageFramer(
      (message) => {
        this.#frame({ data: message.payload, event: message.headers[':event-type'] ?? message.headers[':exception-type'] ?? '', messageType: message.headers[':message-type'] ?? 'event' }, false);
      },
      (broken) => this.malformed(broken),
    );
  }

  // ---- frames

  /** A line of NDJSON; what is no JSON may be a piece of a pretty-printed body and is judged at the end. */
  #line(line: string, unterminated: boolean): void {
    if (line.trimStart().startsWith('{')) this.#frame({ data: line, event: '' }, unterminated);
    else this.#keepStray(line);
  }

  /** One of several JSON values in a row: the first alone may be a whole answer. */
  #value(data: string, unterminated: boolean): void {
    this.#values++;
    if (this.#values === 1) {
      this.#held = { data, t: this.#lastRead, read: this.#reads - 1, unterminated };
      return;
    }
    if (this.#held !== null) {
      const { t, read } = this.#held;
      const first = this.#held.data;
      this.#held = null;
      this.#frame({ data: first, event: '' }, false, t, read);
    }
    this.#frame({ data, event: '' }, unterminated);
  }

  #frame(frame: Frame, unterminated: boolean, t = this.#lastRead, read = this.#reads - 1, known?: unknown): void {
    const { data } = frame;
    const blank = data.length < 16 ? data.trim() : data;
    const mark = blank === '' || blank === '[DONE]';
    const json = mark ? undefined : (known ?? parseJson(data));
    if (!mark && json === undefined && this.#dialect.framing === 'ndjson' && frame.event === '') {
      if (unterminated) this.#lost();
      else this.#keepStray(data);
      return;
    }
    const index = this.#frames++;
    this.#firstFrame ??= t;
    this.#onFrame?.({ index, t, read, event: frame.event, raw: data });
    if (unterminated) this.#flags.add('unterminated-last-event');
    if (mark) {
      this.#marks++;
      if (blank !== '') this.#end ??= t;
      return;
    }
    this.#raw = data;
    if (json === undefined) this.#unreadable(frame, index, unterminated);
    else this.#read(frame, json);
    this.#arrive(t, read, index);
    this.#counts.next();
    this.#raw = '';
  }

  #read(frame: Frame, json: unknown): void {
    const error = errorInFrame(json, frame.event);
    if (error !== null) this.error(error);
    const known = this.#reader.read(frame, json);
    if (known || error !== null) this.#known++;
    // What an error frame counts was generated before it.
    if (error !== null) this.#counts.next();
  }

  #unreadable(frame: Frame, index: number, unterminated: boolean): void {
    if (frame.event === 'error') this.error(messageOfBody(frame.data) ?? 'The server sent an error event.');
    else if (unterminated) {
      this.#cut = 1;
      this.#lost();
    } else if (frame.data.trimStart().startsWith('<')) this.malformed(`Frame ${index + 1} is HTML: ${titleOf(frame.data) ?? 'without a title'}.`);
    else this.malformed(`Frame ${index + 1} is not JSON.`);
  }

  #lost(): void {
    this.#unterminatedLoss = true;
    this.#flags.add('unterminated-last-event');
  }

  /** Makes the frame in hand a delta if it carried anything. */
  #arrive(t: Milliseconds, read: number, frame: number): void {
    const part = this.#part;
    if (part.reasoning !== '') {
      this.#reasoningSeen = true;
      this.#thinking.separate();
    }
    let tag = false;
    if (part.text !== '' && !this.#thinking.plain(part.text)) {
      const split = this.#thinking.split(part.text);
      part.text = split.text;
      part.reasoning += split.reasoning;
      tag = split.tag;
      if (tag || split.reasoning !== '') this.#reasoningSeen = true;
    }
    const kind = this.#kind(tag);
    if (kind !== null) {
      const tokens = this.#counts.commit(this.#arrivals.length);
      const arrival: OpenArrival = { t, read, frame, kind, text: kind === 'token' ? '' : part[kind], tokens };
      if (this.#otherChoice > 0 && part.text === '' && part.reasoning === '' && !this.#hasTool) arrival.choice = this.#otherChoice;
      if (kind !== 'reasoning' && part.reasoning !== '') arrival.beside = { kind: 'reasoning', text: part.reasoning };
      else if (kind === 'text' && this.#hasTool) arrival.beside = { kind: 'tool', text: part.tool };
      this.#arrivals.push(arrival);
      if (!this.#whole && ++this.#inRead > this.#maxInRead) this.#maxInRead = this.#inRead;
      part.text = part.reasoning = part.tool = '';
    }
    this.#hasTool = false;
    this.#otherChoice = 0;
  }

  /** What the frame in hand is a delta of; null = of nothing. */
  #kind(tag: boolean): DeltaKind | null {
    const part = this.#part;
    if (part.text !== '') return 'text';
    if (this.#hasTool) return 'tool';
    if (part.reasoning !== '' || tag) return 'reasoning';
    if (this.#otherChoice > 0) return this.#otherKind;
    return this.#counts.tokensWithoutContent(this.#reasoningSeen) >= 1 ? 'token' : null;
  }

  // ---- the end

  /** A body that was one JSON value. */
  #settleHeld(): void {
    const held = this.#held;
    this.#held = null;
    if (held === null) return;
    const json = parseJson(held.data);
    if (json === undefined) {
      this.#raw = held.data;
      if (held.unterminated) this.#lost();
      else this.malformed('The body is not JSON.');
      return;
    }
    this.#wholeBody(json, held.data);
  }

  #wholeBody(json: unknown, raw: string): void {
    this.#raw = raw;
    const error = errorInFrame(json, '');
    if (error !== null) {
      this.error(error);
      return;
    }
    this.#whole = true;
    if (this.#reader.whole(json)) {
      this.#known++;
      this.#arrive(this.#lastRead, this.#reads - 1, 0);
      this.#counts.next();
      return;
    }
    this.#whole = false;
    const message = messageIn(json);
    if (message === null) this.malformed('The body is JSON, but not an answer of this API.');
    else this.error(message);
  }

  /** Lines that were no frames: `error:` fields, bare JSON (an error, or a pretty-printed answer), or text of somebody in between. */
  #settleStray(): void {
    if (this.#stray.length === 0) return;
    const rest: string[] = [];
    for (const line of this.#stray) {
      this.#raw = line;
      const field = /^error\s*:\s*(\S.*)$/is.exec(line);
      const alone = errorInFrame(parseJson(line), '');
      if (field !== null) this.error(messageOfBody(field[1]!) ?? 'The server sent an error field.');
      else if (alone !== null) this.error(alone);
      else rest.push(line);
    }
    if (rest.length === 0) return;
    const text = rest.join('\n');
    this.#raw = text;
    const json = parseJson(text);
    if (json !== undefined && this.#frames === 0) this.#wholeBody(json, text);
    else if (json !== undefined) this.#bareJson(json, text);
    else {
      const found = this.#bareValues(text);
      if (!found || this.#dialect.framing === 'ndjson') this.#strayText(text);
    }
  }

  /** Bare JSON values with other lines among them; false when there is none. */
  #bareValues(text: string): boolean {
    let found = false;
    const framer = valueFramer(false, {
      value: (data, unterminated) => {
        const json = unterminated ? undefined : parseJson(data);
        if (json === undefined) return;
        found = true;
        this.#bareJson(json, data);
      },
      closed: () => undefined,
      junk: () => undefined,
      overflow: () => undefined,
    });
    framer.push(text);
    framer.end();
    return found;
  }

  #strayText(text: string): void {
    this.#flags.add('stray-text');
    const title = titleOf(text);
    if (this.#dialect.framing === 'ndjson' || title !== null) this.malformed(title === null ? 'A line is not JSON.' : `An HTML page came inside the stream: ${title}.`);
  }

  #bareJson(json: unknown, raw: string): void {
    this.#raw = raw;
    const message = errorInFrame(json, '') ?? messageIn(json);
    if (message !== null) this.error(message);
    else this.#flags.add('stray-text');
  }

  get ended(): boolean {
    return this.#end !== null;
  }

  result(): Decoded {
    const { output, source, streamTokens, reasoning } = this.#tokensTold();
    const best = this.#counts.best(this.#arrivals.length, streamTokens);
    const arrivals = this.#whole ? [] : this.#counted(best);
    const flags = new Set(this.#flags);
    if (best === null && this.#counts.contradicts(this.#arrivals.length)) flags.add('token-counts-do-not-add-up');
    if (this.#counts.decreased) flags.add('usage-decreased');
    const cached = this.#told('cached');
    const prompt = this.#told('prompt');
    if (cached !== null && prompt !== null && cached > prompt) flags.add('cached>prompt');
    if (reasoning !== null && output !== null && reasoning > output) flags.add('reasoning>completion');
    if (output !== null && streamTokens !== null && streamTokens < output) flags.add('hidden-reasoning');
    if (this.#known > 0 && this.#known + this.#marks + this.#cut < this.#frames) flags.add('unknown-frames');
    return {
      text: this.#join('text'),
      reasoning: this.#join('reasoning'),
      toolCalls: [...this.#tools.values()].map((call) => ({ name: call.name, arguments: call.arguments.length > 0 ? call.arguments.join('') : call.whole })),
      finish: this.#finish,
      outputTokens: best === null ? { count: output, source } : { count: output ?? best.sum, source: best.source },
      streamTokens: streamTokens ?? (output === null && best !== null ? best.sum : null),
      reasoningTokens: reasoning,
      promptTokens: prompt,
      cachedTokens: cached !== null && prompt !== null ? Math.min(cached, prompt) : cached,
      arrivals,
      frames: this.#whole ? 0 : this.#frames,
      comments: this.#comments,
      firstFrame: this.#whole ? null : this.#firstFrame,
      end: this.#endStamp(),
      n1: best === null ? null : (arrivals[0]?.tokens ?? null),
      reads: this.#reads,
      maxDeltasPerRead: this.#maxInRead,
      bytes: this.#bytes,
      serverTimings: [...this.#timings.values()],
      flags: [...flags],
      answerId: this.#answerId,
      diagnosis: this.#diagnosis,
      outcome: this.#outcome(),
    };
  }

  #told(field: keyof Usage): number | null {
    return this.#usage[field] ?? this.#countedUsage[field] ?? null;
  }

  /** N, its source, N_stream and the reasoning in it, as the server told. */
  #tokensTold(): { output: number | null; source: TokenSource | null; streamTokens: number | null; reasoning: number | null } {
    const output = this.#told('output');
    const reasoning = this.#told('reasoning');
    const source = output === null ? null : this.#usage.output === undefined ? 'server-count' : 'final-usage';
    if (output === null || this.#flags.has('hidden-reasoning-unknown')) return { output, source, streamTokens: null, reasoning };
    const hidden = this.#reasoningSeen || this.#whole || reasoning === null ? 0 : Math.min(reasoning, output);
    return { output, source, streamTokens: output - hidden, reasoning };
  }

  #counted(best: { values: readonly number[] | null } | null): readonly Arrival[] {
    if (best?.values === null) return this.#arrivals.slice();
    if (best === null && this.#arrivals.every((arrival) => arrival.tokens === null)) return this.#arrivals.slice();
    return this.#arrivals.map((arrival, at) => ({ ...arrival, tokens: best?.values?.[at] ?? null }));
  }

  #join(kind: 'text' | 'reasoning'): string {
    const pieces: string[] = [];
    for (const arrival of this.#arrivals) {
      if (arrival.kind === kind) pieces.push(arrival.text);
      if (arrival.beside?.kind === kind) pieces.push(arrival.beside.text);
    }
    return pieces.join('');
  }

  get #complete(): boolean {
    if (this.#end !== null) return true;
    if (this.#closed === null) return false;
    if (this.#whole) return true;
    return this.#closed.clean && this.#mode !== 'array' && (this.#mode === 'status' || this.#bytes === 0 || (this.#reader.endsAtClose && !this.#unterminatedLoss));
  }

  #endStamp(): Milliseconds | null {
    if (this.#end !== null) return this.#end;
    return this.#complete && this.#error === null && this.#malformed === null ? this.#closed!.at : null;
  }

  #outcome(): Outcome {
    if (this.#mode === 'status') return this.#statusOutcome();
    if (this.#error !== null) return this.#errorOutcome(this.#error);
    if (this.#mode === 'html') return this.#htmlOutcome();
    if (this.#malformed !== null) return { kind: 'malformed', ...this.#malformed };
    if (this.#frames === 0 && !this.#whole) return this.#outcomeWithoutFrames();
    const whole = this.#frames - this.#marks - this.#cut;
    if (!this.#whole && this.#known === 0 && whole > 0) {
      return { kind: 'malformed', message: `None of the ${whole} frames is what ${this.#dialect.id} sends. Check the endpoint's \`api\` setting (--api).` };
    }
    if (!this.#complete) return { kind: 'truncated', message: this.#unterminatedLoss ? 'The body ended inside a frame.' : 'The body ended without the end mark of this API.' };
    if (!this.#arrivals.some((arrival) => arrival.kind !== 'token' || arrival.choice !== undefined)) {
      return { kind: 'empty', message: this.#finish === null ? 'The answer ended without any token.' : `The answer ended without any token (finish reason: ${this.#finish}).` };
    }
    return this.#whole ? { kind: 'not-streaming', message: 'One JSON body came instead of a stream.' } : { kind: 'ok' };
  }

  #statusOutcome(): Outcome {
    const status = this.#head.status!;
    const body = this.#body.join('');
    const wait = retryAfter(this.#head.headers, body);
    const refused = refusedField(status, body, this.#dialect.optional);
    const location = this.#head.headers.find(([name]) => name.toLowerCase() === 'location')?.[1];
    const message = messageOfBody(body) ?? (location === undefined ? undefined : `The server redirects to ${location.replace(/\?.*$/, '')}.`);
    return {
      kind: 'status',
      status,
      ...(message === undefined ? {} : { message }),
      ...(wait === undefined ? {} : { retryAfter: wait }),
      ...(refused === undefined ? {} : { refusedField: refused }),
      ...(body === '' ? {} : { raw: excerpt(body) }),
    };
  }

  /** An error object that is all there is, and no status known: the body of a refused request, read from a file. */
  #errorOutcome(error: { message: string; raw: string }): Outcome {
    const alone = this.#head.status === null && this.#frames === 0 && this.#comments === 0;
    return { kind: alone ? 'status' : 'stream-error', ...error };
  }

  #htmlOutcome(): Outcome {
    const body = this.#body.join('');
    const title = titleOf(body);
    return { kind: 'malformed', message: title === null ? 'An HTML page came instead of a stream.' : `An HTML page came instead of a stream: ${title}`, raw: excerpt(body) };
  }

  #outcomeWithoutFrames(): Outcome {
    const beginning = this.#stray.length === 1 && eventFields.some((field) => field.startsWith(this.#stray[0]!));
    if (beginning) return { kind: 'truncated', message: 'The body ended inside its first line.' };
    if (this.#stray.length > 0) return { kind: 'malformed', message: `The body is no stream: ${messageOfBody(this.#stray.join('\n')) ?? ''}`, raw: excerpt(this.#stray.join('\n')) };
    const begun = (this.#mode === 'stream' || this.#mode === 'array') && this.#end === null;
    if (this.#unterminatedLoss || begun || this.#closed?.clean !== true) return { kind: 'truncated', message: 'The body ended before the first frame.' };
    return { kind: 'empty', message: 'The body is empty.' };
  }

  // ---- the sink

  delta(kind: 'text' | 'reasoning', text: string, choice = 0): void {
    if (text === '') return;
    if (choice > 0) {
      this.#otherChoice = choice;
      this.#otherKind = kind;
      this.flag('several-choices');
    } else this.#part[kind] += text;
  }

  tool(key: string | number, name: string, args: string): void {
    if (name === '' && args === '') return;
    const call = this.#call(key);
    call.name += name;
    if (args !== '') {
      call.arguments.push(args);
      this.#part.tool += args;
    }
    this.#hasTool = true;
  }

  toolFrame(key: string | number, name: string, args: string): void {
    const call = this.#call(key);
    if (call.name === '') call.name = name;
    if (args !== '') call.whole = args;
  }

  #call(key: string | number): { name: string; arguments: string[]; whole: string } {
    let call = this.#tools.get(key);
    if (call === undefined) this.#tools.set(key, (call = { name: '', arguments: [], whole: '' }));
    return call;
  }

  tokens(count: number, source: FrameTokenSource): void {
    if (isCount(count)) this.#counts.inFrame(count, source);
  }

  running(outputTokens: number, source: 'usage-difference' | 'server-count', growth: GrowthIsToken, reasoningTokens?: number): void {
    if (isCount(outputTokens)) this.#counts.running(outputTokens, source, growth, reasoningTokens);
  }

  usage(usage: Usage, from?: 'server-count'): void {
    const last = from === undefined ? this.#usage : this.#countedUsage;
    for (const name of ['prompt', 'output', 'reasoning', 'cached', 'cacheWrite'] as const) {
      const told = usage[name];
      if (told !== undefined && isCount(told)) last[name] = told;
    }
  }

  timing(timing: ServerTiming): void {
    if (Number.isFinite(timing.ms)) this.#timings.set(timing.name, timing);
  }

  finish(reason: string): void {
    this.#finish = reason;
  }

  answerId(id: string): void {
    this.#answerId = id;
  }

  diagnosis(diagnosis: CacheDiagnosis): void {
    this.#diagnosis = diagnosis;
  }

  terminal(): void {
    this.#end ??= this.#lastRead;
  }

  whole(): void {
    this.#whole = true;
  }

  error(message: string): void {
    this.#error ??= { message, raw: excerpt(this.#raw) };
  }

  malformed(message: string): void {
    this.#malformed ??= { message, raw: excerpt(this.#raw) };
  }

  flag(flag: string): void {
    this.#flags.add(flag);
  }
}

/** Fields of an event stream; a body cut inside the first of them is still one. */
const eventFields = ['data', 'event', 'id', 'retry'];

/** More tokens than any request has. */
const mostTokens = 1e9;

/** Whether a server's number can be a count of tokens: whole, and not absurd. What is none counts as not told. */
function isCount(told: number): boolean {
  return Number.isInteger(told) && told >= 0 && told <= mostTokens;
}

function occurrences(text: string, piece: string): number {
  let found = 0;
  for (let at = text.indexOf(piece); at >= 0; at = text.indexOf(piece, at + piece.length)) found++;
  return found;
}
