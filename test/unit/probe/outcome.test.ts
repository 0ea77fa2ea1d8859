import assert from 'node:assert/strict';
import { decode } from '../../../src/probe/decode';
import { dialects } from '../../../src/probe/dialect/index';
import type { Timeouts } from '../../../src/probe/network';
import { judge } from '../../../src/probe/outcome';
import type { Tape, TapeEnding } from '../../../src/probe/tape';
import type { OutcomeKind } from '../../../src/report/sample';

const limits: Timeouts = { firstToken: 100, stall: 50, total: 1000 };
const role = 'data: {"choices":[{"delta":{"role":"assistant","content":""}}]}\n\n';
const token = 'data: {"choices":[{"delta":{"content":"a"}}]}\n\n';
const stop = 'data: {"choices":[{"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n';
const error = 'data: {"error":{"message":"out of memory"}}\n\n';

/** A tape of reads `[t, text]`, from a request that started at 0. */
function outcome(reads: readonly (readonly [number, string])[], ending: TapeEnding, status: number | null = 200, headers: Tape['headers'] = [['content-type', 'text/event-stream']]): OutcomeKind {
  const bytes = new TextEncoder().encode(reads.map(([, text]) => text).join(''));
  let at = 0;
  const tape: Tape = {
    id: '1',
    stamps: Float64Array.from(reads, ([t]) => t),
    ends: Uint32Array.from(reads, ([, text]) => (at += Buffer.byteLength(text))),
    bytes,
    phases: { start: 0, dns: null, connected: null, secured: null, written: 0, sent: 0, headers: status === null ? null : 1, bodyEnd: status === null ? null : (reads.at(-1)?.[0] ?? 1) },
    status,
    headers,
    reused: true,
    alpn: null,
    ending,
  };
  return judge(tape, decode(tape, dialects['openai-chat']), limits).kind;
}

const complete: TapeEnding = { kind: 'complete' };
const closed: TapeEnding = { kind: 'closed', message: 'reset' };
const cancelled: TapeEnding = { kind: 'cancelled' };

describe('the outcome of a request', () => {
  it('is what the stream says when nothing else happened', () => {
    assert.equal(outcome([[10, role], [20, token], [30, stop]], complete), 'ok');
    assert.equal(outcome([[10, role], [20, token]], complete), 'truncated');
    assert.equal(outcome([[10, role], [20, token]], closed), 'truncated');
    assert.equal(outcome([[10, role], [20, token], [30, error]], closed), 'stream-error');
    assert.equal(outcome([[10, '{"error":{"message":"no"}}']], complete, 401), 'status');
  });

  it('is the connection’s failure when there was no connection', () => {
    for (const kind of ['dns', 'connect', 'tls'] as const) assert.equal(outcome([], { kind, message: 'x' }, null), kind);
  });

  it('is a time-out when the first token came late or not, whenever the timer fired', () => {
    assert.equal(outcome([[10, role]], { kind: 'timeout-first-token', limit: 100 }), 'timeout-first-token');
    assert.equal(outcome([], { kind: 'timeout-first-token', limit: 100 }, null), 'timeout-first-token');
    assert.equal(outcome([[10, role], [101, token], [110, stop]], complete), 'timeout-first-token');
    assert.equal(outcome([[10, role], [100, token], [110, stop]], complete), 'ok');
  });

  it('is a stall by the stamps, only between first token and end mark', () => {
    assert.equal(outcome([[10, token], [20, token]], { kind: 'timeout-stall', limit: 50 }), 'timeout-stall');
    assert.equal(outcome([[10, token], [70, token], [80, stop]], complete), 'timeout-stall');
    assert.equal(outcome([[10, role], [90, token], [100, stop]], complete), 'ok', 'before the first token it is no stall');
    assert.equal(outcome([[10, token], [20, stop]], { kind: 'timeout-stall', limit: 50 }), 'ok', 'after the end mark neither');
  });

  it('is a time-out of the whole by the end mark', () => {
    const tokens = Array.from({ length: 30 }, (_, k): readonly [number, string] => [40 * (k + 1), token]);
    assert.equal(outcome([...tokens, [1201, stop]], complete), 'timeout-total');
    assert.equal(outcome(tokens.slice(0, 20), { kind: 'timeout-total', limit: 1000 }), 'timeout-total');
  });

  it('is cancelled only when it was not over', () => {
    assert.equal(outcome([[10, role], [20, token]], cancelled), 'cancelled');
    assert.equal(outcome([], cancelled, null), 'cancelled');
    assert.equal(outcome([[10, role], [20, token], [30, stop]], cancelled), 'ok');
  });

  it('names compression that nobody asked for', () => {
    const gzip = [['content-encoding', 'gzip']] as const;
    assert.equal(outcome([[10, '\u001f\u008b\b\u0000']], complete, 200, gzip), 'malformed');
    assert.equal(outcome([[10, role], [20, token], [30, stop]], complete, 200, [['content-encoding', 'identity']]), 'ok');
  });

  it('stays what the server said when a limit passed afterwards', () => {
    assert.equal(outcome([[10, role], [20, token], [30, error]], { kind: 'timeout-stall', limit: 50 }), 'stream-error');
    assert.equal(outcome([[500, '{"error":{"message":"no"}}']], { kind: 'timeout-stall', limit: 50 }, 500), 'status');
  });
});
