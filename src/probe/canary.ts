/**
 * The canary: a loopback stream whose sender runs in a thread of its own and stamps each frame just before the write. The recorder's
 * event loop reads it for as long as the run lasts; arrival − send stamp is the run's own measuring error.
 */
import { createServer as createHttpServer } from 'node:http';
import { connect, createServer, type AddressInfo, type Socket } from 'node:net';
import { parentPort, Worker } from 'node:worker_threads';
import type { Milliseconds } from '../report/sample';
import { now } from './clock';
import type { ThreadData } from './recorderMessages';

const period: Milliseconds = 10;
const frameBytes = 8;

/** A running canary. */
export interface Canary {
  /** A loopback HTTP URL that streams a few chunks: something to rehearse on before the first measured request. */
  readonly rehearsalUrl: string;
  /** Arrival − send stamp of every frame that arrived at or after `since`, in ms. */
  errors(since: Milliseconds): Milliseconds[];
  close(): Promise<void>;
}

interface Ports {
  readonly stream: number;
  readonly http: number;
}

/** The sender's thread: one frame (its stamp, a float64) each 10 ms to whoever connects, and a short HTTP stream. Reports its ports to the parent. */
export function runCanarySender(): void {
  const server = createServer((socket) => {
    socket.setNoDelay(true);
    const frame = Buffer.alloc(frameBytes);
    const timer = setInterval(() => {
      const copy = Buffer.from(frame);
      copy.writeDoubleLE(now());
      socket.write(copy);
    }, period);
    socket.on('error', () => undefined).on('close', () => {
      clearInterval(timer);
    });
  });
  const rehearsal = createHttpServer((_request, response) => {
    response.write('data: 1\n\n');
    setImmediate(() => response.write('data: 2\n\n', () => response.end('data: [DONE]\n\n')));
  });
  server.listen(0, '127.0.0.1', () => {
    rehearsal.listen(0, '127.0.0.1', () => {
      parentPort?.postMessage({ stream: (server.address() as AddressInfo).port, http: (rehearsal.address() as AddressInfo).port } satisfies Ports);
    });
  });
}

/** Starts the sender's thread and reads its stream in the calling thread. Rejects when loopback cannot be used. */
export async function openCanary(script: string): Promise<Canary> {
  const sender = new Worker(script, { workerData: { role: 'canary' } satisfies ThreadData });
  const ports = await new Promise<Ports>((resolve, reject) => {
    sender.once('message', resolve).once('error', reject).once('exit', () => {
      reject(new Error('The canary ended'));
    });
  });
  sender.on('error', () => undefined).unref();
  const arrivals: Milliseconds[] = [];
  const errors: Milliseconds[] = [];
  const socket = await connected(ports.stream);
  let rest: Buffer = Buffer.alloc(0);
  let stamp = 0;
  socket.prependListener('readable', () => {
    stamp = now();
  });
  socket.on('readable', () => {
    for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) {
      const bytes = rest.length > 0 ? Buffer.concat([rest, chunk]) : chunk;
      let at = 0;
      for (; at + frameBytes <= bytes.length; at += frameBytes) {
        arrivals.push(stamp);
        errors.push(stamp - bytes.readDoubleLE(at));
      }
      rest = bytes.subarray(at);
    }
  });
  return {
    rehearsalUrl: `http://127.0.0.1:${ports.http}/`,
    errors: (since) => errors.slice(firstAtOrAfter(arrivals, since)),
    async close() {
      socket.destroy();
      await sender.terminate();
    },
  };
}

function connected(port: number): Promise<Socket> {
  return new Promise((resolve, reject) => {
    const socket = connect({ host: '127.0.0.1', port }, () => {
      resolve(socket);
    });
    socket.setNoDelay(true).on('error', reject);
  });
}

function firstAtOrAfter(ascending: readonly number[], value: number): number {
  const at = ascending.findIndex((t) => t >= value);
  return at < 0 ? ascending.length : at;
}
