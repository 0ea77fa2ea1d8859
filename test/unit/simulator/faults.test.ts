/* eslint-disable @typescript-eslint/no-unsafe-member-access -- the bodies are read as a plain client reads them */
import assert from 'node:assert/strict';
import { gunzipSync } from 'node:zlib';
import { drawFaults, parseFault, parseFaults } from '../../../src/simulator/faults';
import { seededRandom } from '../../../src/simulator/seededRandom';
import { call, clock, sseEvents, sseJson, withSimulator, type Answer } from './client';

const body = { messages: [{ role: 'user', content: 'Hi' }], stream: true, max_tokens: 12, stream_options: { include_usage: true } };

describe('faults on the wire', () => {
  const met = (fault: string, check: (answer: Answer) => void | Promise<void>, more: object = {}): Promise<void> =>
    withSimulator('', async (url) => check(await call(url, '/v1/chat/completions', { body: { ...body, ...more }, headers: { 'x-fault': fault } })));
  const contents = (answer: Answer): string[] => sseJson(answer.text).flatMap((c) => (c.choices?.[0]?.delta?.content ? [c.choices[0].delta.content as string] : []));

  it('status, with Retry-After in each of its forms', async () => {
    await met('status:503', ({ status, text, headers }) => {
      assert.equal(status, 503);
      assert.ok(JSON.parse(text).error.message);
      assert.equal(headers['retry-after'], undefined);
    });
    await met('status:429:7', ({ status, headers }) => assert.deepEqual([status, headers['retry-after']], [429, '7']));
    await met('status:429:1500ms', ({ headers }) => assert.deepEqual([headers['retry-after'], headers['retry-after-ms']], ['2', '1500']));
    await met('status:429:date30', ({ headers }) => {
      const wait = (Date.parse(headers['retry-after']!) - Date.now()) / 1000;
      assert.ok(wait > 25 && wait <= 30, String(wait));
    });
    await met('status:429:reset3', ({ headers }) => assert.equal(headers['x-ratelimit-reset-requests'], '3s'));
  });

  it('html', () =>
    met('html', ({ status, headers, text }) => {
      assert.equal(status, 200);
      assert.match(headers['content-type']!, /text\/html/);
      assert.match(text, /<title>/);
    }));

  it('json instead of a stream', () =>
    met('json', ({ headers, text }) => {
      assert.equal(headers['content-type'], 'application/json');
      assert.equal(JSON.parse(text).usage.completion_tokens, 12);
    }));

  it('error-frame: inside a 200, after so many tokens', () =>
    met('error-frame:5', (answer) => {
      assert.equal(answer.status, 200);
      assert.equal(contents(answer).length, 5);
      const events = sseEvents(answer.text);
      assert.ok(JSON.parse(events.at(-2)!.data).error.message);
      assert.equal(events.at(-1)!.data, '[DONE]');
    }));

  it('cut: the connection breaks; truncate: a clean end without an end mark', async () => {
    await met('cut:4', (answer) => {
      assert.equal(answer.whole, false);
      assert.equal(contents(answer).length, 4);
    });
    await met('truncate:4', (answer) => {
      assert.equal(answer.whole, true);
      assert.equal(contents(answer).length, 4);
      assert.ok(!answer.text.includes('[DONE]'));
    });
  });

  it('stall: a pause in the middle', () =>
    met('stall:6:300', (answer) => {
      assert.equal(contents(answer).length, 12);
      const gaps = answer.stamps.slice(1).map((at, i) => at - answer.stamps[i]!);
      assert.ok(Math.max(...gaps) > 200);
      assert.ok(answer.text.includes('[DONE]'));
    }));

  it('stall for ever and hang leave the client waiting, and free its seat when it goes', () =>
    withSimulator('--max-running 1', async (url) => {
      for (const fault of ['stall:2', 'hang', 'stall:0']) {
        await assert.rejects(call(url, '/v1/chat/completions', { body, headers: { 'x-fault': fault }, leaveAfter: 250 }), /left/);
      }
      assert.equal((await call(url, '/v1/chat/completions', { body })).status, 200);
    }));

  it('empty: ends well and holds no token', () =>
    met('empty', (answer) => {
      assert.deepEqual(contents(answer), []);
      assert.equal(sseEvents(answer.text).at(-1)!.data, '[DONE]');
      assert.equal(sseJson(answer.text).at(-1).usage.completion_tokens, 0);
    }));

  it('huge: one frame of megabytes', () => met('huge:3000000', (answer) => assert.ok(contents(answer)[0]!.length === 3_000_000 && contents(answer).length === 12)));

  it('bad-utf8: bytes that no decoder takes', () =>
    met('bad-utf8:3', ({ body: bytes }) => {
      assert.throws(() => new TextDecoder('utf-8', { fatal: true }).decode(bytes));
      assert.ok(bytes.includes(Buffer.of(0xff, 0xfe, 0x80)));
    }));

  it('refuse: 400 or 422 that names the field, only when it is there', async () => {
    await met('refuse:stream_options', ({ status, text }) => {
      assert.equal(status, 400);
      assert.equal(JSON.parse(text).error.param, 'stream_options');
    });
    await met('refuse:stream_options.include_usage:422', ({ status }) => assert.equal(status, 422));
    await met('refuse:ignore_eos', ({ status }) => assert.equal(status, 200));
  });

  it('slow-first: the head and the role are early, the token is late', () =>
    met('slow-first:300', (answer) => {
      const gaps = answer.stamps.slice(1).map((at, i) => at - answer.stamps[i]!);
      assert.ok(gaps[0]! > 200, String(gaps[0]));
      assert.equal(contents(answer).length, 12);
    }));

  it('jitter: late and still in order', () =>
    met('jitter:20', (answer) => {
      assert.equal(contents(answer).length, 12);
      assert.ok(answer.text.includes('[DONE]'));
    }));

  it('malformed: one frame of broken JSON', () =>
    met('malformed:2', (answer) => {
      const broken = sseEvents(answer.text).filter(({ data }) => {
        try {
          return data !== '[DONE]' && JSON.parse(data) === undefined;
        } catch {
          return true;
        }
      });
      assert.equal(broken.length, 1);
    }));

  it('buffer: frames come in blocks', () =>
    met(
      'buffer:100',
      (answer) => {
        const blocks = answer.stamps.filter((at, i) => i === 0 || at - answer.stamps[i - 1]! > 50).length;
        assert.ok(blocks >= 2 && blocks <= 5, `${blocks} blocks`);
        assert.equal(contents(answer).length, 64);
      },
      { max_tokens: 64, ignore_eos: true },
    ));

  it('gzip: compressed, whole, at the end', () =>
    met('gzip', ({ headers, body: bytes }) => {
      assert.equal(headers['content-encoding'], 'gzip');
      assert.ok(gunzipSync(bytes).toString().endsWith('data: [DONE]\n\n'));
    }));

  it('comments: the first byte is not the first token', () =>
    withSimulator('--max-running 1', async (url) => {
      const [, second] = await Promise.all([
        call(url, '/v1/chat/completions', { body: { ...body, max_tokens: 100, ignore_eos: true } }),
        call(url, '/v1/chat/completions', { body, headers: { 'x-fault': 'comments:20' } }),
      ]);
      assert.match(second.text, /^(: still working\n\n)+data: /);
    }));

  it('share: some requests meet it, the same ones for the same seed', () => {
    const random = seededRandom(3);
    const hits = Array.from({ length: 1000 }, () => drawFaults(parseFaults('share:0.2:status:500'), random).length).reduce((a, b) => a + b);
    assert.ok(hits > 150 && hits < 250, String(hits));
  });

  it('applies to every request with --fault, and a dead replica breaks connections', async () => {
    await withSimulator('--fault status:429:3', async (url) => assert.equal((await call(url, '/v1/chat/completions', { body })).status, 429));
    await withSimulator('--replicas 2 --fault dead:1', async (url) => {
      const first = await call(url, '/v1/chat/completions', { body });
      assert.equal(first.status, 200);
      const second = await call(url, '/v1/chat/completions', { body }).catch(() => null);
      assert.ok(second === null || !second.whole);
    });
  });

  it('whole answers break as well', () =>
    withSimulator('', async (url) => {
      const ask = (fault: string): Promise<Answer> => call(url, '/v1/chat/completions', { body: { messages: body.messages, max_tokens: 4 }, headers: { 'x-fault': fault } });
      await assert.rejects(ask('cut'));
      const broken = await ask('malformed:0');
      assert.throws(() => JSON.parse(broken.text) as unknown);
      const before = clock();
      await ask('slow-first:200');
      assert.ok(clock() - before >= 190);
    }));

  it('an unknown fault is refused by name', async () => {
    await met('explode', ({ status, text }) => {
      assert.equal(status, 400);
      assert.match(text, /explode/);
    });
    for (const bad of ['', 'status', 'status:abc', 'status:200', 'status:429:soon', 'jitter', 'share:2:cut', 'share:0.5:nothing', 'cut:-1']) assert.equal(parseFault(bad), null, bad);
  });
});
