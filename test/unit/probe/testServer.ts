/** Small servers for the tests of the recorder: HTTP/1.1 over TCP, TLS or a Unix socket, and raw TCP for what HTTP servers refuse to do. */
import { execFileSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';

const stops: (() => Promise<void>)[] = [];

/** Stops every server a test started; for `afterEach`. */
export async function stopServers(): Promise<void> {
  await Promise.all(stops.splice(0).map((stop) => stop()));
}

/** Listens on a free loopback port (or where told) and stops after the test, open connections included. */
export async function listen(server: net.Server, where: net.ListenOptions = { host: '127.0.0.1', port: 0 }): Promise<number> {
  const sockets = new Set<net.Socket>();
  server.on('connection', (socket: net.Socket) => {
    sockets.add(socket);
    socket.on('error', () => undefined).once('close', () => sockets.delete(socket));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject).listen(where, resolve);
  });
  stops.push(
    () =>
      new Promise((resolve) => {
        server.close(() => {
          resolve();
        });
        for (const socket of sockets) socket.destroy();
      }),
  );
  const address = server.address();
  return address !== null && typeof address === 'object' ? address.port : 0;
}

/** An HTTP server; gives its base URL. */
export async function serve(handler: http.RequestListener, options: http.ServerOptions = {}): Promise<string> {
  return `http://127.0.0.1:${await listen(http.createServer(options, handler))}`;
}

/** A raw TCP server; gives its base URL. */
export async function serveRaw(handler: (socket: net.Socket) => void): Promise<string> {
  return `http://127.0.0.1:${await listen(net.createServer(handler))}`;
}

/** A key and a self-signed certificate for localhost and 127.0.0.1, made now; null where there is no openssl. */
export function selfSigned(): { key: string; cert: string } | null {
  const folder = mkdtempSync(path.join(tmpdir(), 'first-token-cert-'));
  try {
    const file = (name: string): string => path.join(folder, name);
    const args = ['req', '-x509', '-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes', '-days', '2', '-subj', '/CN=localhost', '-addext', 'subjectAltName=DNS:localhost,DNS:tls.test,IP:127.0.0.1', '-keyout', file('key.pem'), '-out', file('cert.pem')];
    execFileSync('openssl', args, { stdio: 'ignore' });
    return { key: readFileSync(file('key.pem'), 'utf8'), cert: readFileSync(file('cert.pem'), 'utf8') };
  } catch {
    return null;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

/** Resolves when `done` becomes true, looked at between events; rejects after a generous bound. */
export async function until(done: () => boolean, what: string): Promise<void> {
  for (let left = 1000; !done(); left -= 1) {
    if (left === 0) throw new Error(`This never happened: ${what}`);
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
}
