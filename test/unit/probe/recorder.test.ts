import assert from 'node:assert/strict';
import http from 'node:http';
import type net from 'node:net';
import { now } from '../../../src/probe/clock';
import type { Timeouts } from '../../../src/probe/network';
import type { RecordRequest } from '../../../src/probe/recording';
import type { Tape } from '../../../src/probe/tape';
import { closeRecorders, recorderScript, startRecorder } from './builtRecorder';
import { listen, serve, serveRaw, stopServers, until } from './testServer';

const patient: Timeouts = { firstToken: 15_000, stall: 15_000, total: 15_000 };
const never = new AbortController().signal;
let shots = 0;

function shot(url: string, more: Partial<RecordRequest> = {}): RecordRequest {
  shots += 1;
  return { id: `shot-${shots}`, request: { method: 'POST', url, headers: { 'content-type': 'application/json', authorization: 'Bearer planted-key-123' }, body: '{"a":1}' }, timeouts: patient, ...more };
}

function textOf(tape: Tape): string {
  return new TextDecoder().decode(tape.bytes);
}

function reads(tape: Tape): string[] {
  return Array.from(tape.ends, (end, k) => new TextDecoder().decode(tape.bytes.subarray(tape.ends[k - 1] ?? 0, end)));
}

function assertOrder(tape: Tape): void {
  const { start, dns, connected, secured, written, sent, headers, bodyEnd } = tape.phases;
  const stamps = [start, dns, connected, secured, written, sent, headers, ...tape.stamps, bodyEnd].filter((t): t is number => t !== null);
  stamps.forEach((t, k) => assert.ok(k === 0 || t >= stamps[k - 1]!, `stamp ${k} of ${JSON.stringify(tape.phases)} is out of order`));
}

/** Writes each piece after the one before has surely been read: the next is sent when the client asks for it. */
function pieces(response: http.ServerResponse, list: readonly string[], pause = 30): void {
  list.forEach((piece, k) => setTimeout(() => (k === list.length - 1 ? response.end(piece) : response.write(piece)), k * pause));
}

describe('recorder', () => {
  before(recorderScript);
  afterEach(async () => {
    await closeRecorders();
    await stopServers();
  });

  it('stamps the phases of a new connection and of a reused one', async () => {
    const seen: { body: string; encoding: string | undefined; auth: string | undefined; socket: net.Socket }[] = [];
    const url = await serve((request, response) => {
      let body = '';
      request.on('data', (chunk: Buffer) => (body += chunk.toString())).on('end', () => {
        seen.push({ body, encoding: request.headers['accept-encoding'], auth: request.headers.authorization, socket: request.socket });
        response.writeHead(200, { 'content-type': 'text/event-stream', 'set-cookie': 'session=1' });
        pieces(response, ['data: 1\n\n', 'data: 2\n\n']);
      });
    });
    const recorder = await startRecorder();
    const before = now();
    const first = await recorder.record(shot(url.replace('127.0.0.1', 'localhost')), null, never);
    const second = await recorder.record(shot(url.replace('127.0.0.1', 'localhost')), null, never);
    assert.equal(textOf(first), 'data: 1\n\ndata: 2\n\n');
    assert.equal(first.status, 200);
    assert.deepEqual(first.ending, { kind: 'complete' });
    assert.equal(first.reused, false);
    assert.ok(first.phases.dns !== null && first.phases.connected !== null && first.phases.secured === null);
    assert.equal(second.reused, true);
    assert.deepEqual([second.phases.dns, second.phases.connected, second.phases.secured], [null, null, null]);
    assertOrder(first);
    assertOrder(second);
    assert.ok(first.phases.start >= before, 'one clock in both threads');
    assert.ok(second.phases.bodyEnd! <= now(), 'one clock in both threads');
    assert.equal(seen[0]!.socket, seen[1]!.socket, 'the connection was reused');
    assert.deepEqual([seen[0]!.body, seen[0]!.encoding, seen[0]!.auth], ['{"a":1}', 'identity', 'Bearer planted-key-123']);
    assert.ok(first.headers.some(([name, value]) => name === 'content-type' && value === 'text/event-stream'));
    assert.ok(!first.headers.some(([name]) => name === 'set-cookie'), 'cookies are not recorded');
    assert.ok(!JSON.stringify([first, second]).includes('planted-key'), 'the request is not recorded');
  });

  it('gives all chunks of one socket read one stamp, and each read its own', async () => {
    const url = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ntransfer-encoding: chunked\r\n\r\n5\r\nabcde\r\n3\r\nfgh\r\n2\r\nij\r\n');
        setTimeout(() => socket.write('4\r\nk'), 60);
        setTimeout(() => socket.write('lmn\r\n1\r\no\r\n0\r\n\r\n'), 120);
      });
    });
    const tape = await (await startRecorder()).record(shot(url), null, never);
    assert.deepEqual(reads(tape), ['abcdefghij', 'k', 'lmno']);
    assert.equal(tape.phases.headers, tape.stamps[0], 'head and first bytes came in one read');
    assert.equal(tape.phases.bodyEnd, tape.stamps[2]);
    assert.deepEqual(tape.ending, { kind: 'complete' });
    assertOrder(tape);
  });

  it('hands over parts that join to the tape', async () => {
    const url = await serve((_request, response) => {
      pieces(response, Array.from({ length: 12 }, (_, k) => `piece ${k}\n`), 60);
    });
    const parts: string[] = [];
    const stamps: number[] = [];
    const ends: number[] = [];
    const tape = await (await startRecorder()).record(
      shot(url),
      (part) => {
        parts.push(new TextDecoder().decode(part.bytes));
        stamps.push(...part.stamps);
        ends.push(...part.ends);
        if (part.stamps.length > 0) assert.equal(part.status, 200);
      },
      never,
    );
    assert.ok(parts.length >= 2, `${parts.length} parts`);
    assert.equal(parts.join(''), textOf(tape));
    assert.deepEqual(stamps, [...tape.stamps]);
    assert.deepEqual(ends, [...tape.ends]);
  });

  it('tells of a request that waits for its answer', async () => {
    let answer: () => void = () => undefined;
    const url = await serve((_request, response) => {
      answer = () => response.end('ok');
    });
    const seen: (number | null)[] = [];
    const tape = await (await startRecorder()).record(
      shot(url),
      (part) => {
        seen.push(part.status);
        if (part.status === null && part.phases.written !== null) answer();
      },
      never,
    );
    assert.deepEqual([seen[0], seen.at(-1), textOf(tape)], [null, 200, 'ok']);
  });

  it('keeps what came before a reset in the middle of the body', async () => {
    const url = await serveRaw((socket) => {
      socket.once('data', () => {
        socket.write('HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n5\r\nhello\r\n');
        setTimeout(() => socket.resetAndDestroy(), 50);
      });
    });
    const tape = await (await startRecorder()).record(shot(url), null, never);
    assert.equal(textOf(tape), 'hello');
    assert.equal(tape.ending.kind, 'closed');
    assert.match('message' in tape.ending ? tape.ending.message : '', /reset/);
    assertOrder(tape);
  });

  it('tells a clean end by close from a cut one', async () => {
    const body = 'HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\n';
    const byClose = await serveRaw((socket) => socket.once('data', () => socket.end(`${body}connection: close\r\n\r\nwhole`)));
    const cut = await serveRaw((socket) => socket.once('data', () => socket.end(`${body}content-length: 99\r\n\r\npart`)));
    const recorder = await startRecorder();
    const whole = await recorder.record(shot(byClose), null, never);
    assert.deepEqual([textOf(whole), whole.ending.kind], ['whole', 'complete']);
    const part = await recorder.record(shot(cut), null, never);
    assert.deepEqual([textOf(part), part.ending.kind], ['part', 'closed']);
  });

  it('does not fail a request because the server closed the idle connection', async () => {
    const sockets: net.Socket[] = [];
    const url = await serve((request, response) => {
      sockets.push(request.socket);
      response.end('ok');
    });
    const recorder = await startRecorder();
    await recorder.record(shot(url), null, never);
    sockets[0]!.end();
    await until(() => sockets[0]!.destroyed, 'the server closed its socket');
    const tape = await recorder.record(shot(url), null, never);
    assert.deepEqual([tape.status, tape.ending.kind, tape.reused], [200, 'complete', false]);
    assert.ok(tape.phases.connected !== null, 'the phases of the new connection are shown');
  });

  it('sends again on a fresh connection when the server closes on the very request, and says so', async () => {
    let requests = 0;
    const url = await serveRaw((socket) => {
      let served = 0;
      socket.on('data', () => {
        requests += 1;
        served += 1;
        if (served === 2) socket.destroy();
        else socket.write('HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok');
      });
    });
    const recorder = await startRecorder();
    const first = await recorder.record(shot(url), null, never);
    const second = await recorder.record(shot(url), null, never);
    assert.equal(first.redispatched, false);
    assert.deepEqual([second.status, second.redispatched, second.reused, textOf(second)], [200, true, false, 'ok']);
    assert.equal(requests, 3);
    assertOrder(second);
  });

  it('does not send again when a fresh connection is closed without an answer', async () => {
    let requests = 0;
    const url = await serveRaw((socket) =>
      socket.once('data', () => {
        requests += 1;
        socket.destroy();
      }),
    );
    const tape = await (await startRecorder()).record(shot(url), null, never);
    assert.equal(tape.ending.kind, 'closed');
    assert.equal(tape.status, null);
    assert.equal(requests, 1);
  });

  it('uses connections that were opened ahead', async () => {
    let connections = 0;
    const server = http.createServer((_request, response) => setTimeout(() => response.end('ok'), 50));
    server.on('connection', () => (connections += 1));
    const url = `http://127.0.0.1:${await listen(server)}`;
    const recorder = await startRecorder();
    await recorder.warm(url, 3);
    await until(() => connections === 3, 'three connections');
    await recorder.warm(url, 3);
    const tapes = await Promise.all([1, 2, 3].map(() => recorder.record(shot(url), null, never)));
    assert.deepEqual(tapes.map((tape) => [tape.reused, tape.ending.kind]), [1, 2, 3].map(() => [true, 'complete']));
    assert.equal(connections, 3);
  });

  it('replaces a connection opened ahead that the server has closed', async () => {
    const sockets: net.Socket[] = [];
    const server = http.createServer((_request, response) => response.end('ok'));
    server.on('connection', (socket) => sockets.push(socket));
    const url = `http://127.0.0.1:${await listen(server)}`;
    const recorder = await startRecorder();
    await recorder.warm(url, 1);
    await until(() => sockets.length === 1, 'the connection');
    sockets[0]!.destroy();
    await until(() => sockets[0]!.destroyed, 'its end');
    const tape = await recorder.record(shot(url), null, never);
    assert.deepEqual([tape.status, tape.ending.kind], [200, 'complete']);
  });

  it('does not follow redirects and keeps the body of a failure', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/old') response.writeHead(307, { location: '/new' }).end('moved');
      else response.writeHead(429, { 'retry-after': '7' }).end('{"error":"slow down"}');
    });
    const recorder = await startRecorder();
    const moved = await recorder.record(shot(`${url}/old`), null, never);
    assert.deepEqual([moved.status, textOf(moved)], [307, 'moved']);
    const limited = await recorder.record(shot(`${url}/new`), null, never);
    assert.deepEqual([limited.status, textOf(limited)], [429, '{"error":"slow down"}']);
    assert.ok(limited.headers.some(([name, value]) => name === 'retry-after' && value === '7'));
  });

  it('cuts off a body that does not end', async function () {
    this.timeout(60_000);
    const piece = Buffer.alloc(1 << 20, 'x');
    const url = await serve((_request, response) => {
      const pour = (): void => {
        while (!response.destroyed && response.write(piece));
      };
      response.on('drain', pour).on('error', () => undefined);
      pour();
    });
    const recorder = await startRecorder();
    const tape = await recorder.record(shot(url, { timeouts: { firstToken: null, stall: null, total: null } }), null, never);
    assert.deepEqual(tape.ending, { kind: 'closed', message: 'The answer was cut off at 128 MB.' });
    assert.ok(tape.bytes.length > 128 << 20 && tape.bytes.length < 130 << 20, String(tape.bytes.length));
    assert.equal(tape.ends.at(-1), tape.bytes.length);
  });

  it('tells answers that HTTP forbids there in words', async () => {
    const answers: [string, RegExp][] = [
      ['HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n', /100 Continue, which nobody asked for/],
      ['HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n', /answered 101/],
      ['HTTP/1.1 000 Nothing\r\ncontent-length: 0\r\n\r\n', /not valid HTTP\/1\.1/],
      ['220 mail ready\r\n', /HTTP\/1\.1/],
    ];
    for (const [answer, message] of answers) {
      const url = await serveRaw((socket) => socket.on('data', () => socket.write(answer)));
      const { ending } = await (await startRecorder()).record(shot(url), null, never);
      assert.equal(ending.kind, 'closed');
      assert.match('message' in ending ? ending.message : '', message);
    }
  });

  it('sends a GET without a body', async () => {
    const url = await serve((request, response) => response.end(`${request.method} ${request.url} ${request.headers['content-length'] ?? 'none'}`));
    const tape = await (await startRecorder()).record({ ...shot(url), request: { method: 'GET', url: `${url}/v1/models?a=1`, headers: {}, body: '' } }, null, never);
    assert.equal(textOf(tape), 'GET /v1/models?a=1 none');
    assert.ok(tape.phases.written !== null && tape.phases.sent !== null);
  });

  describe('limits', () => {
    it('ends a request whose first token does not come, pings or not', async () => {
      let closed = false;
      const url = await serve((request, response) => {
        request.socket.on('close', () => (closed = true));
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        const timer = setInterval(() => response.write(': ping\n\n'), 20);
        response.on('close', () => {
          clearInterval(timer);
        });
      });
      const tape = await (await startRecorder()).record(shot(url, { timeouts: { ...patient, firstToken: 300 }, progress: { firstToken: () => null, ended: () => false } }), null, never);
      assert.deepEqual(tape.ending, { kind: 'timeout-first-token', limit: 300 });
      assert.ok(tape.bytes.length > 0);
      await until(() => closed, 'the socket was closed');
    });

    it('lets a request go on when its first token came in time', async () => {
      const url = await serve((_request, response) => {
        response.write('token');
        setTimeout(() => response.end('!'), 500);
      });
      const recorder = await startRecorder();
      const tape = await recorder.record(shot(url, { timeouts: { ...patient, firstToken: 200 } }), null, never);
      assert.equal(textOf(tape), 'token!');
      assert.equal(tape.ending.kind, 'complete');
      const silent = await serve(() => undefined);
      assert.deepEqual((await recorder.record(shot(silent, { timeouts: { ...patient, firstToken: 100 } }), null, never)).ending, { kind: 'timeout-first-token', limit: 100 });
    });

    it('ends a stream that stalls, but not one that has not begun', async () => {
      const url = await serve((_request, response) => {
        setTimeout(() => response.write('one'), 400);
      });
      const tape = await (await startRecorder()).record(shot(url, { timeouts: { ...patient, stall: 150 } }), null, never);
      assert.deepEqual(tape.ending, { kind: 'timeout-stall', limit: 150 });
      assert.equal(textOf(tape), 'one');
    });

    it('counts a stall only from the first token on when a decoder watches', async () => {
      let token: number | null = null;
      const url = await serve((_request, response) => {
        response.write('role');
        setTimeout(() => response.write('token'), 600);
      });
      const tape = await (await startRecorder()).record(
        shot(url, { timeouts: { ...patient, stall: 200 }, progress: { firstToken: () => token, ended: () => false } }),
        (part) => {
          if (new TextDecoder().decode(part.bytes).includes('token')) token = part.stamps.at(-1)!;
        },
        never,
      );
      assert.equal(textOf(tape), 'roletoken');
      assert.equal(tape.ending.kind, 'timeout-stall');
    });

    it('ends a request that takes too long in all', async () => {
      const url = await serve((_request, response) => {
        const timer = setInterval(() => response.write('.'), 20);
        response.on('close', () => {
          clearInterval(timer);
        });
      });
      const tape = await (await startRecorder()).record(shot(url, { timeouts: { ...patient, total: 300 } }), null, never);
      assert.deepEqual(tape.ending, { kind: 'timeout-total', limit: 300 });
      assert.ok(tape.stamps.length > 3);
    });

    it('closes a stream that goes on with pings after its end mark', async () => {
      const url = await serve((_request, response) => {
        response.write('data: [DONE]\n\n');
        const pings = setInterval(() => response.write(': ping\n\n'), 100);
        response.on('close', () => clearInterval(pings));
      });
      const before = now();
      const tape = await (await startRecorder()).record(shot(url, { timeouts: { firstToken: null, stall: null, total: 10_000 }, progress: { firstToken: () => null, ended: () => true } }), () => undefined, never);
      assert.equal(tape.ending.kind, 'closed');
      assert.ok(now() - before < 8000, 'long before the limit of the whole request');
    });

    it('closes a stream that was left open after its end mark', async () => {
      let closed = false;
      const url = await serve((request, response) => {
        request.socket.on('close', () => (closed = true));
        response.write('data: [DONE]\n\n');
      });
      const tape = await (await startRecorder()).record(shot(url, { progress: { firstToken: () => null, ended: () => true } }), null, never);
      assert.equal(tape.ending.kind, 'closed');
      assert.equal(textOf(tape), 'data: [DONE]\n\n');
      await until(() => closed, 'the socket was closed');
    });
  });

  describe('cancelling closes the socket at once', () => {
    async function cancelWhen(handler: http.RequestListener, ready: (events: { connected: boolean; parts: number }) => boolean, abortFirst = false): Promise<Tape> {
      const events = { connected: false, parts: 0, closed: 0, open: 0 };
      const server = http.createServer(handler);
      server.on('connection', (socket) => {
        events.connected = true;
        events.open += 1;
        socket.on('close', () => (events.closed += 1));
      });
        const url = `http://127.0.0.1:${await listen(server)}`;
      const recorder = await startRecorder();
      const abort = new AbortController();
      if (abortFirst) abort.abort();
      const recording = recorder.record(shot(url), () => (events.parts += 1), abort.signal);
      await until(() => ready(events), 'the stage to cancel at');
      abort.abort();
      const tape = await recording;
      await until(() => events.closed === events.open, 'the server saw its sockets close');
      assert.deepEqual(tape.ending, { kind: 'cancelled' });
      return tape;
    }

    it('before it began', async () => {
      const tape = await cancelWhen(
        () => assert.fail('a request was sent'),
        () => true,
        true,
      );
      assert.equal(tape.phases.written, null);
    });

    it('before the head of the answer', async () => {
      let asked = false;
      const tape = await cancelWhen(
        () => (asked = true),
        () => asked,
      );
      assert.ok(tape.phases.written !== null && tape.phases.headers === null);
    });

    it('between the head and the body', async () => {
      let sent = false;
      const tape = await cancelWhen(
        (_request, response) => {
          response.flushHeaders();
          setTimeout(() => (sent = true), 100);
        },
        () => sent,
      );
      assert.equal(tape.status, 200);
      assert.equal(tape.bytes.length, 0);
    });

    it('in the middle of the body, which is kept', async () => {
      const tape = await cancelWhen(
        (_request, response) => response.write('some'),
        (events) => events.parts > 0,
      );
      assert.equal(textOf(tape), 'some');
      assertOrder(tape);
    });

    it('while it connects', async () => {
      // A listening socket with a full backlog that nobody accepts from would need privileges; a name that hangs in DNS would too.
      // A TLS server that never answers the handshake is a connection that never gets ready.
      let open = 0;
      const url = await serveRaw((socket) => {
        open += 1;
        socket.on('close', () => (open -= 1)).resume();
      });
      const recorder = await startRecorder();
      const abort = new AbortController();
      const recording = recorder.record(shot(url.replace('http:', 'https:')), null, abort.signal);
      await until(() => open === 1, 'the connection');
      abort.abort();
      assert.deepEqual((await recording).ending, { kind: 'cancelled' });
      await until(() => open === 0, 'its end');
    });

    it('closing the recorder ends everything it had in flight', async () => {
      let open = 0;
      const url = await serve((request, response) => {
        open += 1;
        request.socket.on('close', () => (open -= 1));
        response.write('x');
      });
      const recorder = await startRecorder();
      const recordings = [1, 2, 3].map(() => recorder.record(shot(url), null, never));
      await until(() => open === 3, 'three requests');
      await recorder.close();
      for (const tape of await Promise.all(recordings)) assert.equal(tape.ending.kind, 'cancelled');
      await until(() => open === 0, 'all sockets closed');
    });
  });

  it('measures its own error with the canary, from a given moment on', async () => {
    const recorder = await startRecorder();
    await new Promise((resolve) => setTimeout(resolve, 300));
    const errors = await recorder.clockErrors(0);
    assert.ok(errors.length >= 5, `${errors.length} frames`);
    assert.ok(errors.every((error) => error >= 0 && error < 1000), 'a stamp is never before its frame was sent');
    assert.equal((await recorder.clockErrors(now() + 60_000)).length, 0);
  });

  it('tells a request that cannot be sent instead of throwing', async () => {
    const recorder = await startRecorder();
    const bad = await recorder.record(shot('ftp://127.0.0.1/'), null, never);
    assert.equal(bad.ending.kind, 'connect');
    const header = await recorder.record({ ...shot('http://127.0.0.1:9/'), request: { method: 'POST', url: 'http://127.0.0.1:9/', headers: { authorization: 'Bearer planted\nkey' }, body: '' } }, null, never);
    assert.equal(header.ending.kind, 'closed');
    assert.ok(!JSON.stringify(header).includes('planted'));
  });
});
