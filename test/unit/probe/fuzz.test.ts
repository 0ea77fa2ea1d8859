import assert from 'node:assert/strict';
import { createDecoder } from '../../../src/probe/decode';
import { dialects } from '../../../src/probe/dialect';
import type { DialectId } from '../../../src/probe/dialect/dialect';
import { decodeReads, eventStreamMessage, ownStreams, sse } from './streams';

/** A small seeded generator (mulberry32), so that a failure can be repeated by its number. */
function seeded(seed: number): (below: number) => number {
  let state = seed;
  return (below) => {
    state = (state + 0x6d2b79f5) | 0;
    let t = Math.imul(state ^ (state >>> 15), 1 | state);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) % below;
  };
}

const dictionary = ['{', '}', '[', ']', '"', '\\', ':', ',', '\n', '\n\n', '\r', '\r\n', 'data:', 'data: ', 'event: error\n', 'null', '1e999', '-1', '[DONE]', '<think>', '</think>', '\u0000', '<html>', 'error: ', '{"choices":null}', '{"choices":[null]}', '[]', '"\\ud800"'];

function mutate(bytes: Buffer, random: (below: number) => number): Buffer {
  let out = bytes;
  for (let round = 1 + random(4); round > 0; round--) {
    const at = random(out.length + 1);
    const to = Math.min(out.length, at + 1 + random(40));
    const piece = out.subarray(at, to);
    const before = out.subarray(0, at);
    switch (random(6)) {
      case 0:
        out = Buffer.concat([before, out.subarray(to)]);
        break;
      case 1:
        out = Buffer.concat([before, piece, piece, out.subarray(to)]);
        break;
      case 2:
        out = Buffer.concat([before, Buffer.from(dictionary[random(dictionary.length)]!), out.subarray(at)]);
        break;
      case 3:
        out = Buffer.concat([before, Buffer.from([random(256)]), out.subarray(Math.min(out.length, at + 1))]);
        break;
      case 4:
        out = Buffer.from(before);
        break;
      default:
        out = Buffer.concat([out.subarray(to), before, piece]);
    }
    if (out.length === 0) return Buffer.from('\n');
  }
  return out;
}

function run(id: DialectId, bytes: Buffer, random: (below: number) => number): ReturnType<ReturnType<typeof createDecoder>['result']> {
  const decoder = createDecoder(dialects[id], { status: random(8) === 0 ? null : 200, headers: [] });
  for (let from = 0; from < bytes.length; ) {
    const to = Math.min(bytes.length, from + 1 + random(200));
    decoder.push(from, bytes.subarray(from, to));
    from = to;
  }
  decoder.end(bytes.length, random(4) === 0 ? 'cut' : 'clean');
  return decoder.result();
}

const outcomes = new Set(['ok', 'not-streaming', 'status', 'stream-error', 'truncated', 'malformed', 'empty']);

/** The error of each API, as a frame that stands for itself. */
function errorFrame(id: DialectId, name: string): Buffer {
  if (id === 'bedrock') return eventStreamMessage('modelStreamErrorException', { message: 'Broke' }, 'exception');
  if (name.endsWith('.ndjson')) return Buffer.from('{"error":"Broke"}\n');
  if (name.endsWith('.json')) return Buffer.from('{"error":{"message":"Broke"}}\n,\n');
  return Buffer.from(id === 'anthropic' ? 'event: error\ndata: {"type":"error","error":{"message":"Broke"}}\n\n' : sse({ error: { message: 'Broke' } }));
}

/** Offsets at which a frame can stand. */
function borders(id: DialectId, name: string, bytes: Buffer): number[] {
  const text = bytes.toString('latin1');
  const found: number[] = [];
  if (id === 'bedrock') for (let at = 0; at < bytes.length; at += bytes.readUInt32BE(at)) found.push(at);
  else if (name.endsWith('.json')) for (const match of text.matchAll(/\n,\n/g)) found.push(match.index + 3);
  else for (const match of text.matchAll(name.endsWith('.ndjson') ? /\n/g : /\r?\n\r?\n/g)) found.push(match.index + match[0].length);
  return found;
}

describe('decode: fuzz', () => {
  it('5,000 mutated streams give an outcome, and a count that is never negative', () => {
    for (let seed = 0; seed < 5000; seed++) {
      const random = seeded(seed);
      const { id, bytes } = ownStreams[random(ownStreams.length)]!;
      // A few under another API's reader.
      const reader = random(10) === 0 ? ownStreams[random(ownStreams.length)]!.id : id;
      const decoded = run(reader, mutate(bytes, random), random);
      assert.ok(outcomes.has(decoded.outcome.kind), `seed ${seed}: ${decoded.outcome.kind}`);
      for (const { t, tokens, read } of decoded.arrivals) assert.ok((tokens === null || tokens >= 0) && t >= 0 && read < decoded.reads, `seed ${seed}`);
      if (decoded.outcome.kind === 'ok') assert.ok(decoded.arrivals.length > 0, `seed ${seed}`);
      if (decoded.outputTokens.source !== null && decoded.n1 !== null) assert.equal(decoded.arrivals.reduce((sum, arrival) => sum + (arrival.tokens ?? 0), 0), decoded.streamTokens, `seed ${seed}`);
    }
  });

  it('5,000 streams with an error frame among mutated ones are never a success', () => {
    for (let seed = 5000; seed < 10_000; seed++) {
      const random = seeded(seed);
      const { id, name, bytes } = ownStreams[random(ownStreams.length)]!;
      const places = borders(id, name, bytes);
      const at = places[random(places.length)]!;
      const before = random(2) === 0 || at === 0 ? bytes.subarray(0, at) : mutate(bytes.subarray(0, at), random);
      const after = random(2) === 0 || at === bytes.length ? bytes.subarray(at) : mutate(bytes.subarray(at), random);
      const separator = id === 'bedrock' || name.endsWith('.json') || before.length === 0 ? '' : '\n\n';
      const decoded = run(id, Buffer.concat([before, Buffer.from(separator), errorFrame(id, name), after]), random);
      assert.ok(decoded.outcome.kind !== 'ok' && decoded.outcome.kind !== 'not-streaming', `seed ${seed}: ${name} was a success`);
    }
  });

  it('a stream that breaks off is cut off wherever it breaks, until it has ended', () => {
    for (const { id, name, bytes } of ownStreams) {
      let ended = false;
      for (let size = 0; size <= bytes.length; size += 1) {
        const { kind } = decodeReads(id, [bytes.subarray(0, size)], 'cut').outcome;
        ended ||= kind === 'ok';
        assert.equal(kind, ended ? 'ok' : 'truncated', `${name} cut at ${size} of ${bytes.length}`);
      }
    }
  });
});
