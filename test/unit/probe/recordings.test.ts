import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { gzipSync } from 'node:zlib';
import { decodeRecording, UnreadableFile } from '../../../src/probe/decodeFile';
import { serialiseTape } from '../../../src/probe/tapeFile';
import { readSocketRecording } from '../../../src/probe/socketRecording';
import type { DialectId } from '../../../src/probe/dialect/dialect';
import { corpusFolder, readRows } from './corpusFiles';
import { chunk, done, sse, usageChunk } from './streams';

interface Row {
  readonly file: string;
  readonly api: DialectId | 'other';
  readonly status: number;
  readonly streaming: boolean;
  readonly headersAt: number | null;
  readonly firstToken: number | null;
  readonly firstVisible: number | null;
  readonly last: number | null;
  readonly end: number | null;
  readonly gaps: readonly number[];
  readonly text: string | null;
  readonly reasoning: string | null;
  readonly finish: string | null;
  readonly frames: number;
  readonly comments: number;
  readonly deltas: { readonly text: number; readonly reasoning: number; readonly tool: number };
  readonly outputTokens: number | null;
  readonly promptTokens: number | null;
  readonly cachedTokens: number | null;
  readonly outcome: string;
  readonly errorMessage: string | null;
}

/** Where the outcome is named otherwise than in the reference, on purpose. */
function outcomeOf(row: Row): string {
  if (row.outcome !== 'ok' || row.streaming) return row.outcome;
  // An answer in one JSON body is `not-streaming` here, and a body of no bytes holds no token.
  return row.text === null || row.text === '' ? 'empty' : 'not-streaming';
}

describe('socket recordings of real servers', () => {
  const folder = corpusFolder('recordings');
  if (folder === null) {
    it('decode as the independent reading says (skipped: the recordings are not beside this checkout)');
    return;
  }
  for (const row of readRows<Row>(path.join(folder, 'EXPECTED.jsonl'))) {
    // Metrics, tokenizers, embeddings: no answer of a model, nothing to decode.
    if (row.api === 'other') continue;
    const api = row.api;
    it(`${row.file} as ${api}`, async () => {
      const got = await decodeRecording(fs.readFileSync(path.join(folder, row.file)), api, true);
      const near = (name: string, value: number | null | undefined, wanted: number | null): void => {
        if (wanted === null || value === null || value === undefined) assert.equal(value ?? null, wanted, name);
        else assert.ok(Math.abs(value - wanted) <= 0.0015, `${name}: ${value}, not ${wanted}`);
      };
      near('headers', got.headers, row.headersAt);
      near('firstToken', got.firstToken, row.firstToken);
      near('firstVisible', got.firstVisible, row.firstVisible);
      near('last', got.last, row.last);
      near('end', got.end, row.end);
      assert.equal(got.gaps?.length, row.gaps.length, 'gaps');
      got.gaps?.forEach((gap, at) => near(`gap ${at}`, gap, row.gaps[at]!));
      assert.equal(got.text, row.text ?? '');
      assert.equal(got.reasoning, row.reasoning ?? '');
      assert.equal(got.finish, row.finish);
      assert.equal(got.frames, row.frames);
      assert.equal(got.comments, row.comments);
      const { text, reasoning, tool } = got.arrivals;
      assert.deepEqual({ text, reasoning, tool }, row.deltas);
      assert.equal(got.outputTokens.count, row.outputTokens);
      assert.equal(got.promptTokens, row.promptTokens);
      assert.equal(got.cachedTokens, row.cachedTokens);
      assert.equal(got.outcome.kind, outcomeOf(row), got.outcome.message);
      if (row.errorMessage !== null) {
        // Of an HTML page the title is told, not the markup.
        const title = /<title>([^<]*)/.exec(row.errorMessage)?.[1];
        assert.equal(got.outcome.message, title ?? row.errorMessage);
      }
    });
  }
});

describe('a socket recording', () => {
  const body = sse(chunk({ role: 'assistant', content: '' }), chunk({ content: 'Hé' }), chunk({ content: 'llo' }), chunk({}, 'stop'), usageChunk({ prompt_tokens: 3, completion_tokens: 2, total_tokens: 5 }), done);
  const head = (more: string): string => `HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\n${more}\r\n\r\n`;
  const line = (t: number, bytes: Buffer): string => JSON.stringify({ t, n: bytes.length, x: bytes.toString('latin1') });
  const close = (t: number): string => JSON.stringify({ t, event: 'close' });

  it('has the stamp of a frame at its last byte when the head, a chunk size and a character are cut', async () => {
    const bytes = Buffer.from(body);
    const wire = Buffer.concat([Buffer.from(`HTTP/1.1 100 Continue\r\n\r\n${head('transfer-encoding: chunked')}${bytes.length.toString(16)};x=1\r\n`), bytes, Buffer.from('\r\n0\r\nx-trailer: 1\r\n\r\n')]);
    const cuts = [10, 40, wire.indexOf(';x') - 1, wire.indexOf('é') + 1, wire.indexOf('llo'), wire.length - 3, wire.length];
    const text = cuts.map((cut, at) => line(at + 1, wire.subarray(cuts[at - 1] ?? 0, cut))).join('\n');
    const got = await decodeRecording(`${text}\n${close(99)}\n`, 'openai-chat', true);
    assert.deepEqual([got.text, got.outcome.kind, got.headers, got.firstToken, got.last, got.end], ['Héllo', 'ok', 3, 5, 6, 6]);
  });

  it('undoes gzip read by read', async () => {
    const packed = gzipSync(body);
    const half = Math.floor(packed.length / 2);
    const text = [line(1, Buffer.from(head(`content-encoding: gzip\r\ncontent-length: ${packed.length}`))), line(2, packed.subarray(0, half)), line(9, packed.subarray(half)), close(20)].join('\n');
    const got = await decodeRecording(text, 'auto', true);
    assert.deepEqual([got.text, got.outcome.kind, got.outputTokens.count], ['Héllo', 'ok', 2]);
  });

  it('ended by the close of the connection is whole, cut short of its length is not', async () => {
    const whole = [line(1, Buffer.from(head('connection: close') + body)), close(5)].join('\n');
    assert.equal((await decodeRecording(whole, 'auto', true)).outcome.kind, 'ok');
    const short = [line(1, Buffer.from(head('content-length: 9999') + body.slice(0, 300))), close(5)].join('\n');
    assert.equal((await decodeRecording(short, 'auto', true)).outcome.kind, 'truncated');
    const aborted = [line(1, Buffer.from(head('content-length: 9999') + body.slice(0, 300))), JSON.stringify({ t: 3, event: 'client abort' }), close(5)].join('\n');
    assert.equal((await decodeRecording(aborted, 'auto', true)).outcome.kind, 'cancelled');
  });

  it('with framing that is none ends where that shows', async () => {
    const of = async (more: string, rest: string) => decodeRecording([line(1, Buffer.from(head(more))), line(2, Buffer.from(rest)), close(5)].join('\n'), 'openai-chat', true);
    const piece = sse(chunk({ content: 'a' }));
    const chunked = `${piece.length.toString(16)}\r\n${piece}\r\n`;
    for (const size of ['-5', 'ZZ', '', '0x10', 'ffffffffffffffffffff', '1g5']) {
      const { text, outcome } = await of('transfer-encoding: chunked', `${chunked}${size}\r\n${piece}`);
      assert.deepEqual([text, outcome.kind], ['a', 'truncated'], size);
    }
    for (const length of ['-5', 'x', '1e3', '1.5']) assert.equal((await of(`content-length: ${length}`, body)).text, 'Héllo', length);
    for (const t of ['1e999', '-1e300', '"1"', 'null']) await assert.rejects(decodeRecording(`{"t":${t},"n":1,"x":"a"}\n`, 'auto', true), /no socket recording/);
    const endless = Array.from({ length: 3000 }, (_, k) => line(k, Buffer.alloc(1000, 'x'))).join('\n');
    assert.equal((await decodeRecording(endless, 'auto', true)).outcome.kind, 'truncated');
  });

  it('saved as a tape decodes to the same', async () => {
    const text = [line(1, Buffer.from(head('connection: close'))), line(4, Buffer.from(body)), close(5)].join('\n');
    const tape = await readSocketRecording(text);
    assert.ok(tape !== null);
    assert.deepEqual(await decodeRecording(serialiseTape(tape, 'openai-chat', []), 'auto', false), await decodeRecording(text, 'openai-chat', true));
  });

  it('is told from other files', async () => {
    await assert.rejects(decodeRecording(body, 'openai-chat', true), UnreadableFile);
    await assert.rejects(decodeRecording('{"schema":"first-token/tape@9"}', 'auto', false), UnreadableFile);
    assert.equal((await decodeRecording(body, 'auto', false)).text, 'Héllo');
  });
});
