/** The HTTP side of a simulated server: a loopback listener around a desk in real time. */
import { createServer, type IncomingMessage, type Server, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { assemble } from './assemble';
import type { Wire } from './delivery';
import { Desk } from './desk';
import { RealTime } from './realTime';
import type { SimulatorSettings } from './settings';

/** A server that listens. `close` ends every connection. */
export interface Simulator {
  readonly url: string;
  close(): Promise<void>;
}

const maxBody = 64 * 1024 * 1024;

/** Opens a simulated server on this machine. Rejects when the port is taken. */
export async function openSimulator(settings: SimulatorSettings): Promise<Simulator> {
  const engine = new RealTime(assemble(settings), settings.speed);
  const desk = new Desk(settings, engine);
  const server = createServer({ keepAliveTimeout: settings.keepAlive, noDelay: true }, (request, response) => void serve(desk, request, response));
  const sockets = new Set<Socket>();
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.on('close', () => sockets.delete(socket));
  });
  await listen(server, settings);
  const { port } = server.address() as AddressInfo;
  return {
    url: `http://${settings.host.includes(':') ? `[${settings.host}]` : settings.host}:${port}`,
    close: async () => {
      engine.stop();
      for (const socket of sockets) socket.destroy();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

function listen(server: Server, { host, port }: SimulatorSettings): Promise<void> {
  return new Promise((resolve, reject) => {
    server.once('error', reject);
    server.listen({ host, port, backlog: 4096 }, resolve);
  });
}

async function serve(desk: Desk, request: IncomingMessage, response: ServerResponse): Promise<void> {
  response.on('error', () => undefined);
  const wire = new HttpWire(response);
  const text = await readBody(request).catch(() => null);
  if (text === null) desk.refuse(wire, { status: 413, code: 'too_large', message: `The body is larger than ${maxBody} bytes.` });
  else await desk.handle({ method: request.method ?? 'GET', target: request.url ?? '/', headers: request.headers, text }, wire);
}

/** The body as text. Rejects when it is too large or breaks off. */
async function readBody(request: IncomingMessage): Promise<string> {
  const parts: Buffer[] = [];
  let size = 0;
  for await (const part of request as AsyncIterable<Buffer>) {
    size += part.length;
    if (size > maxBody) throw new Error('too large');
    parts.push(part);
  }
  return Buffer.concat(parts).toString('utf8');
}

class HttpWire implements Wire {
  readonly #response: ServerResponse;

  constructor(response: ServerResponse) {
    this.#response = response;
  }

  get open(): boolean {
    return this.#response.headersSent;
  }

  head(headers: Readonly<Record<string, string>>): void {
    if (this.#response.destroyed) return;
    this.#response.writeHead(200, headers);
    this.#response.flushHeaders();
  }

  write(bytes: string | Uint8Array): void {
    if (!this.#response.destroyed) this.#response.write(bytes);
  }

  flush(): void {
    // Node corks a response until the next tick; uncorking sends the frames now, when their stamps were taken.
    this.#response.socket?.uncork();
  }

  end(bytes?: Uint8Array): void {
    if (!this.#response.destroyed) this.#response.end(bytes);
  }

  cut(): void {
    this.#response.socket?.destroy();
  }

  whole(status: number, headers: Readonly<Record<string, string>>, body: string | Uint8Array): void {
    if (this.#response.headersSent || this.#response.destroyed) return;
    this.#response.writeHead(status, { ...headers, 'content-length': Buffer.byteLength(body) });
    this.#response.end(body);
  }

  onGone(act: () => void): void {
    this.#response.on('close', act);
  }
}
