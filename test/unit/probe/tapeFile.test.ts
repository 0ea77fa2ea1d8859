import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { Tape } from '../../../src/probe/tape';
import { parseTape, serialiseTape } from '../../../src/probe/tapeFile';

const encode = (text: string): Uint8Array<ArrayBuffer> => new Uint8Array(new TextEncoder().encode(text));

function tape(body: string, more: Partial<Tape> = {}): Tape {
  const bytes = encode(body);
  return {
    id: '1',
    stamps: Float64Array.of(10.25, 20.5),
    ends: Uint32Array.of(Math.floor(bytes.length / 2), bytes.length),
    bytes,
    phases: { start: 1, dns: null, connected: null, secured: null, written: 2, sent: 3, headers: 4, bodyEnd: 21 },
    status: 200,
    headers: [['content-type', 'text/event-stream']],
    reused: true,
    alpn: null,
    ending: { kind: 'complete' },
    ...more,
  };
}

describe('a tape as a file', () => {
  it('comes back as it was', () => {
    fc.assert(
      fc.property(fc.string(), fc.constantFrom<Tape['ending']>({ kind: 'complete' }, { kind: 'closed', message: 'cut' }, { kind: 'timeout-stall', limit: 5 }, { kind: 'cancelled' }), (body, ending) => {
        const before = tape(body, { ending, redispatched: false });
        assert.deepEqual(parseTape(serialiseTape(before, 'ollama', [])), { api: 'ollama', tape: before });
      }),
    );
  });

  it('holds no secret, and keeps its offsets', () => {
    const secret = 'planted-secret-789';
    const before = tape(`data: {"error":"key ${secret} refused"}\n\n`, {
      headers: [
        ['set-cookie', `a=${secret}`],
        ['x-api-key-id', 'k1'],
        ['openai-organization', 'org-me'],
        ['x-ratelimit-remaining-tokens', '7'],
        ['location', `https://h/x?key=${secret}`],
        ['x-echo', secret],
      ],
      ending: { kind: 'closed', message: `lost ${secret}` },
    });
    const text = serialiseTape(before, 'openai-chat', [`Bearer ${secret}`]);
    const after = parseTape(text);
    assert.ok(typeof after !== 'string');
    assert.ok(!text.includes(secret) && !new TextDecoder().decode(after.tape.bytes).includes(secret));
    assert.equal(after.tape.bytes.length, before.bytes.length);
    assert.deepEqual(after.tape.ends, before.ends);
    assert.deepEqual(after.tape.headers, [['x-ratelimit-remaining-tokens', '7'], ['location', 'https://h/x'], ['x-echo', '*'.repeat(secret.length)]]);
    assert.ok(new TextDecoder().decode(before.bytes).includes(secret), 'the tape in memory is left alone');
  });

  it('says what is wrong with one', () => {
    assert.match(JSON.stringify(parseTape('not json')), /not JSON/);
    assert.match(JSON.stringify(parseTape('{"schema":"first-token/tape@9"}')), /version 9/);
    assert.match(JSON.stringify(parseTape('{}')), /not a tape/);
    const broken = JSON.parse(serialiseTape(tape('abc'), 'openai-chat', [])) as { ends: number[] };
    broken.ends = [1];
    assert.match(JSON.stringify(parseTape(JSON.stringify(broken))), /damaged/);
    const absurd = serialiseTape(tape('abc'), 'openai-chat', []);
    for (const start of ['1e999', '-1e300', '"0"', 'null']) assert.equal(typeof parseTape(absurd.replace(/"start":[^,]+/, `"start":${start}`)), 'string', start);
    fc.assert(fc.property(fc.json(), (text) => typeof parseTape(text) === 'string'));
  });
});
