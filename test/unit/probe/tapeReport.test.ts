import assert from 'node:assert/strict';
import { parseTape, serialiseTape } from '../../../src/probe/tapeFile';
import { reportOfTape } from '../../../src/probe/tapeReport';
import type { Tape } from '../../../src/probe/tape';
import { ttft } from '../../../src/report/sample';

function tapeOf(frames: readonly string[], ending: Tape['ending'] = { kind: 'complete' }): Tape {
  const parts = frames.map((frame) => Buffer.from(frame));
  let end = 0;
  return {
    id: '3',
    stamps: Float64Array.from(parts, (_, i) => 5000 + 100 + i * 10),
    ends: Uint32Array.from(parts, (part) => (end += part.length)),
    bytes: Buffer.concat(parts),
    phases: { start: 5000, dns: null, connected: null, secured: null, written: 5000.1, sent: 5000.2, headers: 5040, bodyEnd: 5200 },
    status: 200,
    headers: [['content-type', 'text/event-stream']],
    reused: true,
    alpn: null,
    ending,
  };
}

const chunk = (content: string): string => `data: {"choices":[{"index":0,"delta":{"content":"${content}"}}]}\n\n`;
const environment = { product: 'test', node: '', platform: '', editor: null, remote: null };

describe('a saved tape as a report', () => {
  it('has the stamps of the tape, counted from its start, and the text behind them', () => {
    const saved = parseTape(serialiseTape(tapeOf([chunk('one'), chunk(' two'), 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n']), 'openai-chat', []));
    assert.ok(typeof saved !== 'string');
    const { report, decoded } = reportOfTape(saved, 'bug.tape.json', environment);
    const [sample] = report.samples;
    assert.equal(decoded.text, 'one two');
    assert.equal(report.outcomes.ok, 1);
    assert.equal(report.endpoint.name, 'bug.tape.json');
    assert.equal(ttft(sample!), 100);
    assert.deepEqual(sample!.deltas.map(([t]) => t), [100, 110]);
    assert.equal(sample!.headers, 40);
  });

  it('keeps a failure a failure', () => {
    const saved = parseTape(serialiseTape(tapeOf([chunk('one')], { kind: 'closed', message: 'reset' }), 'openai-chat', []));
    assert.ok(typeof saved !== 'string');
    assert.deepEqual(reportOfTape(saved, 'x', environment).report.outcomes, { truncated: 1 });
  });
});
