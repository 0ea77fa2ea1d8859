import assert from 'node:assert/strict';
import http from 'node:http';
import http2 from 'node:http2';
import https from 'node:https';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import type { NetworkOptions } from '../../../src/probe/network';
import type { Tape } from '../../../src/probe/tape';
import { closeRecorders, recorderScript, startRecorder } from './builtRecorder';
import { listen, selfSigned, serve, stopServers, until } from './testServer';

const timeouts = { firstToken: 15_000, stall: 15_000, total: 15_000 };
const never = new AbortController().signal;
const planted = 'planted-key-456';

async function fetchTape(url: string, network: Partial<NetworkOptions> = {}): Promise<Tape> {
  const recorder = await startRecorder(network);
  return recorder.record({ id: url, request: { method: 'POST', url, headers: { authorization: `Bearer ${planted}` }, body: '{}' }, timeouts }, null, never);
}

function failure(tape: Tape): { kind: string; message: string } {
  assert.ok(!JSON.stringify(tape).includes(planted));
  return { kind: tape.ending.kind, message: 'message' in tape.ending ? tape.ending.message : '' };
}

/** A proxy that tunnels and forwards everything to one port, whatever host was asked for. */
async function proxyTo(port: number, credentials: string | null = null): Promise<{ url: string; asked: string[] }> {
  const asked: string[] = [];
  const admits = (header: string | undefined): boolean => credentials === null || header === `Basic ${Buffer.from(credentials).toString('base64')}`;
  const server = http.createServer((request, response) => {
    asked.push(`${request.method} ${request.url}`);
    if (!admits(request.headers['proxy-authorization'])) return void response.writeHead(407).end();
    const onward = http.request({ port, host: '127.0.0.1', path: new URL(request.url!).pathname, method: request.method, headers: { host: request.headers.host } }, (answer) => {
      response.writeHead(answer.statusCode!, answer.headers);
      answer.pipe(response);
    });
    request.pipe(onward);
  });
  server.on('connect', (request: http.IncomingMessage, socket: net.Socket) => {
    asked.push(`CONNECT ${request.url}`);
    if (!admits(request.headers['proxy-authorization'])) return void socket.end('HTTP/1.1 407 Proxy Authentication Required\r\n\r\n');
    const onward = net.connect(port, '127.0.0.1', () => {
      socket.write('HTTP/1.1 200 Connection Established\r\n\r\n');
      onward.pipe(socket).pipe(onward);
    });
    onward.on('error', () => socket.destroy()).on('close', () => socket.destroy());
    socket.on('close', () => onward.destroy());
  });
  return { url: `http://127.0.0.1:${await listen(server)}`, asked };
}

describe('connections', () => {
  before(recorderScript);
  afterEach(async () => {
    await closeRecorders();
    await stopServers();
  });

  it('tell a refused connection', async () => {
    const free = net.createServer();
    await new Promise<void>((resolve) => free.listen(0, '127.0.0.1', resolve));
    const { port } = free.address() as net.AddressInfo;
    await new Promise((resolve) => free.close(resolve));
    const { kind, message } = failure(await fetchTape(`http://127.0.0.1:${port}/v1?key=secret-query`));
    assert.equal(kind, 'connect');
    assert.match(message, new RegExp(`127\\.0\\.0\\.1:${port} refused the connection.*ECONNREFUSED`));
    assert.ok(!message.includes('secret-query'));
  });

  it('tell a name that does not resolve', async () => {
    const { kind, message } = failure(await fetchTape('http://no-such-host.invalid/v1'));
    assert.equal(kind, 'dns');
    assert.match(message, /no-such-host\.invalid could not be resolved/);
  });

  it('tell a socket path that does not exist', async () => {
    const { kind, message } = failure(await fetchTape('unix:/no/such/socket:/v1'));
    assert.equal(kind, 'connect');
    assert.match(message, /\/no\/such\/socket does not exist/);
  });

  it('tell a connection that never gets ready', async () => {
    const port = await listen(net.createServer(() => undefined));
    const { kind, message } = failure(await fetchTape(`https://127.0.0.1:${port}/`, { connectTimeout: 200 }));
    assert.equal(kind, 'tls');
    assert.match(message, /took the connection, but did not answer the TLS handshake within 200 ms/);
  });

  it('are not waited for without end when they are opened ahead', async () => {
    const port = await listen(net.createServer(() => undefined));
    const recorder = await startRecorder({ connectTimeout: null });
    await recorder.warm(`https://127.0.0.1:${port}/`, 2);
  });

  it('tell a server that speaks plain HTTP where TLS was asked for', async () => {
    const url = await serve((_request, response) => response.end('x'));
    const { kind, message } = failure(await fetchTape(url.replace('http:', 'https:')));
    assert.equal(kind, 'tls');
    assert.match(message, /write http:/);
  });

  it('go over a Unix socket', async function () {
    if (process.platform === 'win32') return this.skip();
    const file = path.join(tmpdir(), `first-token-${process.pid}.sock`);
    await listen(http.createServer((request, response) => response.end(`${request.url} ${request.headers.host}`)), { path: file });
    const tape = await fetchTape(`unix:${file}:/v1/x?y=1`);
    assert.equal(new TextDecoder().decode(tape.bytes), '/v1/x?y=1 localhost');
    assert.equal(tape.phases.dns, null);
    const other = await fetchTape('http://somewhere.invalid/v1', { socketPath: file });
    assert.equal(new TextDecoder().decode(other.bytes), '/v1 somewhere.invalid');
  });

  it('go to IPv6 literals', async function () {
    let port;
    try {
      port = await listen(http.createServer((request, response) => response.end(request.headers.host)), { host: '::1', port: 0 });
    } catch {
      return this.skip();
    }
    const tape = await fetchTape(`http://[::1]:${port}/`);
    assert.equal(new TextDecoder().decode(tape.bytes), `[::1]:${port}`);
  });

  describe('through a proxy', () => {
    it('send plain HTTP in absolute form, with credentials', async () => {
      const target = await serve((request, response) => response.end(`${request.url} ${request.headers.host} ${request.headers['proxy-authorization'] ?? 'no credentials'}`));
      const proxy = await proxyTo(Number(new URL(target).port), 'user:pass word');
      const tape = await fetchTape('http://api.example/v1/chat', { proxy: { url: proxy.url.replace('://', '://user:pass%20word@'), authorization: null } });
      assert.equal(new TextDecoder().decode(tape.bytes), '/v1/chat api.example no credentials');
      assert.deepEqual(proxy.asked, ['POST http://api.example/v1/chat']);
    });

    it('tunnel HTTPS, and tell a proxy that wants credentials or does not answer', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      const port = await listen(https.createServer(pair, (request, response) => response.end(`secret ${request.url}`)));
      const proxy = await proxyTo(port, 'user:pass');
      const open = await fetchTape('https://tls.test/v1', { proxy: { url: proxy.url, authorization: `Basic ${Buffer.from('user:pass').toString('base64')}` }, ca: [pair.cert] });
      assert.equal(new TextDecoder().decode(open.bytes), 'secret /v1');
      assert.ok(open.phases.connected !== null && open.phases.secured !== null && open.phases.secured >= open.phases.connected);
      assert.deepEqual(proxy.asked, ['CONNECT tls.test:443']);
      const shut = failure(await fetchTape('https://tls.test/v1', { proxy: { url: proxy.url, authorization: null } }));
      assert.equal(shut.kind, 'connect');
      assert.match(shut.message, /answered 407.*user name and password/);
      const gone = failure(await fetchTape('https://tls.test/v1', { proxy: { url: 'http://127.0.0.1:1', authorization: null } }));
      assert.equal(gone.kind, 'connect');
      assert.match(gone.message, /The proxy http:\/\/127\.0\.0\.1:1 refused/);
    });

    it('never for loopback', async () => {
      const target = await serve((_request, response) => response.end('direct'));
      const tape = await fetchTape(target, { proxy: { url: 'http://127.0.0.1:1', authorization: null } });
      assert.equal(new TextDecoder().decode(tape.bytes), 'direct');
    });
  });

  describe('over TLS', () => {
    it('trust no unknown certificate, the given authority, or everything when told to', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      const port = await listen(https.createServer(pair, (_request, response) => response.end('ok')));
      const url = `https://localhost:${port}/`;
      const unknown = failure(await fetchTape(url));
      assert.equal(unknown.kind, 'tls');
      assert.match(unknown.message, /not signed by an authority this machine trusts/);
      const trusted = await fetchTape(url, { ca: [pair.cert] });
      assert.equal(trusted.status, 200);
      const { connected, secured, written } = trusted.phases;
      assert.ok(connected! <= secured! && secured! <= written!);
      assert.equal((await fetchTape(url, { insecure: true })).status, 200);
    });

    it('tell a certificate for another name', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      const port = await listen(https.createServer(pair, (_request, response) => response.end('ok')), { host: '127.0.0.2', port: 0 });
      const { kind, message } = failure(await fetchTape(`https://127.0.0.2:${port}/`, { ca: [pair.cert] }));
      assert.equal(kind, 'tls');
      assert.match(message, /another name/);
    });

    it('speak HTTP/2 when asked, record it, and share one connection', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      let sessions = 0;
      const server = http2.createSecureServer({ ...pair, allowHTTP1: true });
      server.on('session', () => (sessions += 1));
      server.on('request', (request, response) => {
        response.writeHead(200, { 'content-type': 'text/event-stream' });
        response.write('data: 1\n\n');
        setTimeout(() => response.end(`data: ${request.httpVersion}\n\n`), 100);
      });
      const url = `https://localhost:${await listen(server)}/`;
      const recorder = await startRecorder({ ca: [pair.cert], http2: true });
      await recorder.warm(url, 4);
      const shot = (id: string) => recorder.record({ id, request: { method: 'POST', url, headers: {}, body: '{}' }, timeouts }, null, never);
      const tapes = await Promise.all(['a', 'b', 'c'].map(shot));
      for (const tape of tapes) {
        assert.equal(new TextDecoder().decode(tape.bytes), 'data: 1\n\ndata: 2.0\n\n');
        assert.deepEqual([tape.alpn, tape.reused, tape.stamps.length, tape.ending.kind], ['h2', true, 2, 'complete']);
      }
      assert.equal(sessions, 1);
      assert.equal((await fetchTape(url, { ca: [pair.cert] })).alpn, 'http/1.1');
    });

    it('send again when an HTTP/2 server drops the connection with the request, not when it resets the stream', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      let streams = 0;
      const server = http2.createSecureServer(pair);
      server.on('stream', (stream, headers) => {
        stream.on('error', () => undefined);
        streams += 1;
        if (headers[':path'] === '/reset') stream.close(http2.constants.NGHTTP2_INTERNAL_ERROR);
        else if (streams === 2) stream.session!.destroy();
        else stream.end('ok');
      });
      const url = `https://localhost:${await listen(server)}`;
      const recorder = await startRecorder({ ca: [pair.cert], http2: true });
      const shot = (id: string, path: string) => recorder.record({ id, request: { method: 'POST', url: url + path, headers: {}, body: '{}' }, timeouts }, null, never);
      assert.equal((await shot('1', '/')).status, 200);
      const second = await shot('2', '/');
      assert.deepEqual([second.status, second.redispatched], [200, true]);
      const reset = await shot('3', '/reset');
      assert.deepEqual([reset.status, reset.ending.kind, reset.redispatched], [null, 'closed', false]);
      assert.equal(streams, 4);
    });

    it('close an HTTP/2 stream when cancelled', async function () {
      const pair = selfSigned();
      if (!pair) return this.skip();
      let closed = false;
      const server = http2.createSecureServer(pair);
      server.on('stream', (stream) => {
        stream.on('close', () => (closed = true)).on('error', () => undefined);
        stream.respond({ ':status': 200 });
        stream.write('some');
      });
      const url = `https://localhost:${await listen(server)}/`;
      const recorder = await startRecorder({ ca: [pair.cert], http2: true });
      const abort = new AbortController();
      const recording = recorder.record({ id: 'x', request: { method: 'POST', url, headers: {}, body: '{}' }, timeouts }, () => {
        abort.abort();
      }, abort.signal);
      const tape = await recording;
      assert.deepEqual(tape.ending, { kind: 'cancelled' });
      assert.equal(new TextDecoder().decode(tape.bytes), 'some');
      await until(() => closed, 'the stream was closed');
    });
  });
});
