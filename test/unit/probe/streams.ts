import * as fs from 'node:fs';
import * as path from 'node:path';
import { crc32 } from 'node:zlib';
import { createDecoder, type Decoded, type ResponseHead } from '../../../src/probe/decode';
import { dialects } from '../../../src/probe/dialect';
import type { DialectId } from '../../../src/probe/dialect/dialect';

export const ok: ResponseHead = { status: 200, headers: [['content-type', 'text/event-stream']] };

/** Server-sent events from JSON payloads; strings go as they are. */
export function sse(...frames: readonly unknown[]): string {
  return frames.map((frame) => (typeof frame === 'string' ? frame : `data: ${JSON.stringify(frame)}\n\n`)).join('');
}

export const done = 'data: [DONE]\n\n';

/** A chat chunk. */
export function chunk(delta: object, finish: string | null = null, more: object = {}): object {
  return { object: 'chat.completion.chunk', choices: [{ index: 0, delta, finish_reason: finish }], ...more };
}

/** A usage frame of its own. */
export function usageChunk(usage: object): object {
  return { object: 'chat.completion.chunk', choices: [], usage };
}

/** Decodes reads; read k has stamp k + 1, the end comes one later. */
export function decodeReads(id: DialectId, reads: readonly Uint8Array[], closed: 'clean' | 'cut' = 'clean', head: ResponseHead = ok): Decoded {
  const decoder = createDecoder(dialects[id], head);
  reads.forEach((read, at) => decoder.push(at + 1, read));
  decoder.end(reads.length + 1, closed);
  return decoder.result();
}

/** Decodes a text that came in one read, or in one read a piece. */
export function decodeText(id: DialectId, text: string | readonly string[], closed: 'clean' | 'cut' = 'clean', head: ResponseHead = ok): Decoded {
  return decodeReads(id, (typeof text === 'string' ? [text] : text).map((piece) => Buffer.from(piece, 'utf8')), closed, head);
}

const folder = path.join(__dirname, '..', '..', 'fixtures', 'streams');

/** The bytes of an own stream. */
export function fixture(name: string): Buffer {
  return fs.readFileSync(path.join(folder, name));
}

/** One binary message of an AWS event stream. */
export function eventStreamMessage(type: string, payload: object, messageType = 'event'): Buffer {
  const header = (name: string, value: string): Buffer => {
    const size = Buffer.alloc(2);
    size.writeUInt16BE(Buffer.byteLength(value));
    return Buffer.concat([Buffer.from([Buffer.byteLength(name)]), Buffer.from(name), Buffer.from([7]), size, Buffer.from(value)]);
  };
  const headers = Buffer.concat([header(messageType === 'event' ? ':event-type' : ':exception-type', type), header(':content-type', 'application/json'), header(':message-type', messageType)]);
  const body = Buffer.from(JSON.stringify(payload));
  const message = Buffer.alloc(16 + headers.length + body.length);
  message.writeUInt32BE(message.length, 0);
  message.writeUInt32BE(headers.length, 4);
  message.writeUInt32BE(crc32(message.subarray(0, 8)), 8);
  headers.copy(message, 12);
  body.copy(message, 12 + headers.length);
  message.writeUInt32BE(crc32(message.subarray(0, message.length - 4)), message.length - 4);
  return message;
}

/** A whole Converse stream with text, reasoning and a tool call. */
export function bedrockStream(): Buffer {
  return Buffer.concat([
    eventStreamMessage('messageStart', { role: 'assistant', p: 'abc' }),
    eventStreamMessage('contentBlockDelta', { contentBlockIndex: 0, delta: { text: '' } }),
    eventStreamMessage('contentBlockDelta', { contentBlockIndex: 0, delta: { reasoningContent: { text: 'Hm' } } }),
    eventStreamMessage('contentBlockDelta', { contentBlockIndex: 1, delta: { text: 'Grüß' } }),
    eventStreamMessage('contentBlockStop', { contentBlockIndex: 1 }),
    eventStreamMessage('contentBlockStart', { contentBlockIndex: 2, start: { toolUse: { name: 'go', toolUseId: 't' } } }),
    eventStreamMessage('contentBlockDelta', { contentBlockIndex: 2, delta: { toolUse: { input: '{"a":1}' } } }),
    eventStreamMessage('messageStop', { stopReason: 'tool_use' }),
    eventStreamMessage('metadata', { usage: { inputTokens: 5, outputTokens: 9, cacheReadInputTokens: 4 }, metrics: { latencyMs: 300 } }),
  ]);
}

/** Every own stream with its dialect. */
export const ownStreams: readonly { readonly name: string; readonly id: DialectId; readonly bytes: Buffer }[] = [
  ...(
    [
      ['openaiChat.sse', 'openai-chat'],
      ['openaiCompletions.sse', 'openai-completions'],
      ['openaiResponses.sse', 'openai-responses'],
      ['azure.sse', 'azure'],
      ['anthropic.sse', 'anthropic'],
      ['gemini.sse', 'gemini'],
      ['gemini.json', 'gemini'],
      ['ollamaChat.ndjson', 'ollama'],
      ['ollamaGenerate.ndjson', 'ollama'],
      ['llamacpp.sse', 'llamacpp'],
      ['tgi.sse', 'tgi'],
      ['sglang.sse', 'sglang'],
      ['triton.sse', 'triton'],
      ['cohere.sse', 'cohere'],
      ['vllmTokenIds.sse', 'openai-chat'],
      ['vllmContinuousUsage.sse', 'openai-chat'],
    ] as const
  ).map(([name, id]) => ({ name, id, bytes: fixture(name) })),
  { name: 'Converse stream', id: 'bedrock' as const, bytes: bedrockStream() },
];

/** What must not depend on how the bytes were cut: everything but stamps and reads. */
export function invariant(decoded: Decoded): object {
  const timeless = { t: 0, read: 0 };
  return {
    ...decoded,
    firstFrame: decoded.firstFrame === null,
    end: decoded.end === null,
    reads: 0,
    maxDeltasPerRead: 0,
    arrivals: decoded.arrivals.map((arrival) => ({ ...arrival, ...timeless })),
  };
}

/** Read schedules under which a stream must say the same: whole, a frame a read, several, one byte, cut inside characters and line ends. */
export function schedules(bytes: Uint8Array): Readonly<Record<string, readonly Uint8Array[]>> {
  const buffer = Buffer.from(bytes);
  const frames = cutAt(buffer, frameEnds(buffer));
  const several: Buffer[] = [];
  for (let at = 0; at < frames.length; at += 3) several.push(Buffer.concat(frames.slice(at, at + 3)));
  const inside: number[] = [];
  for (let at = 1; at < buffer.length; at++) {
    const byte = buffer[at]!;
    if ((byte & 0xc0) === 0x80 || (byte === 10 && buffer[at - 1] === 13) || (byte === 10 && at % 2 === 1)) inside.push(at);
  }
  return {
    whole: [buffer],
    'an event a read': frames,
    'several events a read': several,
    'one byte a read': Array.from(buffer, (_, at) => buffer.subarray(at, at + 1)),
    'cut inside characters and line ends': cutAt(buffer, inside),
  };
}

function frameEnds(buffer: Buffer): number[] {
  const ends: number[] = [];
  for (let at = 1; at < buffer.length; at++) {
    if (buffer[at - 1] !== 10) continue;
    if (buffer[at] === 10) ends.push(at + 1);
    else if (buffer[at] === 13 && buffer[at + 1] === 10) ends.push(at + 2);
    else if (buffer[at] === 123 || buffer[at] === 44) ends.push(at);
  }
  return [...new Set(ends)];
}

export function cutAt(buffer: Buffer, cuts: readonly number[]): Buffer[] {
  const pieces: Buffer[] = [];
  let from = 0;
  for (const to of [...cuts, buffer.length]) {
    if (to > from) pieces.push(buffer.subarray(from, to));
    from = Math.max(from, to);
  }
  return pieces;
}
