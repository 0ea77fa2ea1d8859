import assert from 'node:assert/strict';
import fc from 'fast-check';
import { decode } from '../../../src/probe/decode';
import { dialects } from '../../../src/probe/dialect/index';
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

  describe('with a secret that the model gives in pieces', () => {
    const secret = 'sk-planted-789';
    const saved = (body: string, api: Parameters<typeof serialiseTape>[1]) => {
      const before = tape(body);
      const after = parseTape(serialiseTape(before, api, [`Bearer ${secret}`]));
      assert.ok(typeof after !== 'string');
      assert.equal(after.tape.bytes.length, before.bytes.length);
      assert.deepEqual(after.tape.ends, before.ends);
      return { before: decode(before, dialects[api]), after: decode(after.tape, dialects[api]), bytes: new TextDecoder().decode(after.tape.bytes) };
    };

    it('overwrites the pieces in their frames, however it is cut', () => {
      const frame = (kind: string, text: string): string => {
        const delta = kind === 'tool' ? { tool_calls: [{ index: 0, function: { name: 'f', arguments: text } }] } : { [kind]: text };
        return `data: ${JSON.stringify({ choices: [{ delta, logprobs: { content: [{ token: text, bytes: [...encode(text)] }] }, token_ids: [4711] }] })}\n\n`;
      };
      fc.assert(
        fc.property(fc.constantFrom('content', 'reasoning', 'tool'), fc.array(fc.nat({ max: secret.length }), { maxLength: 8 }), (kind, cuts) => {
          const at = [0, ...cuts, secret.length].sort((a, b) => a - b);
          const pieces = at.slice(1).map((to, k) => secret.slice(at[k], to)).filter((piece) => piece !== '');
          const body = ['The key is ', ...pieces, ' as you know'].map((piece) => frame(kind, piece)).join('') + 'data: [DONE]\n\n';
          const { before, after, bytes } = saved(body, 'openai-chat');
          const said = ({ text, reasoning, toolCalls }: typeof before): string => text + reasoning + (toolCalls[0]?.arguments ?? '');
          assert.equal(said(after), said(before).replace(secret, '*'.repeat(secret.length)));
          assert.deepEqual(after.arrivals.map(({ t, kind, tokens }) => [t, kind, tokens]), before.arrivals.map(({ t, kind, tokens }) => [t, kind, tokens]));
          assert.equal(after.outcome.kind, before.outcome.kind);
          for (const piece of pieces.filter(({ length }) => length > 3)) assert.ok(!bytes.includes(piece) && !bytes.includes([...encode(piece)].join(',')));
        }),
      );
    });

    it('overwrites escapes and other framings', () => {
      const line = (content: string): string => `${JSON.stringify({ message: { role: 'assistant', content }, done: false })}\n`;
      const { after } = saved(`${line('a ')}${line(secret.slice(0, 5)).replace('sk', '\\u0073k')}${line(secret.slice(5))}{"done":true,"done_reason":"stop"}\n`, 'ollama');
      assert.match(after.text, /^a \*+$/);
      assert.equal(after.outcome.kind, 'ok');
    });

    it('is refused where they cannot be found', () => {
      const halves = (text: string): string => `data: ${JSON.stringify({ choices: [{ delta: { content: text } }] }).replace('{"delta"', '{\ndata: "delta"')}\n\n`;
      assert.throws(() => saved(`${halves(secret.slice(0, 5))}${halves(secret.slice(5))}data: [DONE]\n\n`, 'openai-chat'), /repeats a key/);
    });
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
