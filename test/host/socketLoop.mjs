// What the benches measure the recorder against: a bare loop over sockets in a thread of its own that only takes the clock, and what both
// sides need to be compared: stamped frames, errors of stamps, processes of their own, the recorder built into a folder.
import { fork } from 'node:child_process';
import net from 'node:net';
import { createRequire } from 'node:module';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const self = fileURLToPath(import.meta.url);
const root = path.resolve(path.dirname(self), '..', '..');

/** The clock of every process and thread of this machine, in ms. */
export const now = () => Number(process.hrtime.bigint()) / 1e6;

/** A frame that says when it was sent: made just before the write. */
export const frame = () => `data: {"choices":[{"index":0,"delta":{"content":" token"}}],"sent":${now()}}\n\n`;

/** Frames of the reads: arrival − sent for each frame that a read completed. */
export function errorsOf(stamps, ends, bytes) {
  const errors = [];
  let at = 0;
  stamps.forEach((stamp, k) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + at, ends[k] - at).toString();
    for (const match of text.matchAll(/"sent":([\d.]+)\}/g)) errors.push(stamp - Number(match[1]));
    at = ends[k];
  });
  return errors;
}

/** The bare loop on a port. `receive` opens `streams` sockets, writes `ask` to each and gives [stamp, bytes] of every read when all are closed. */
export function startBareLoop(port) {
  const worker = new Worker(self, { workerData: { bareLoop: port } });
  return {
    receive: (streams, ask) =>
      new Promise((resolve, reject) => {
        worker.once('message', resolve).once('error', reject);
        worker.postMessage({ streams, ask });
      }),
    end: () => worker.postMessage(null),
  };
}

/** In the worker, as the recorder does: per read take the clock and keep the buffer. */
function bareLoop(port) {
  parentPort.on('message', (task) => {
    if (task === null) return parentPort.close();
    let open = task.streams;
    const reads = [];
    for (let k = 0; k < task.streams; k++) {
      const socket = net.connect({ host: '127.0.0.1', port });
      socket.setNoDelay(true).write(task.ask);
      socket.on('readable', () => {
        const stamp = now();
        for (let chunk = socket.read(); chunk !== null; chunk = socket.read()) reads.push([stamp, chunk]);
      });
      socket.on('close', () => {
        if (--open === 0) parentPort.postMessage(reads);
      });
    }
  });
}
if (!isMainThread && workerData?.bareLoop !== undefined) bareLoop(workerData.bareLoop);

/** Builds the recorder and its host side into a folder, for {@link openBuiltRecorder} in another process. */
export async function buildRecorder(folder) {
  // Here only: neither receivers nor the loop's thread should carry it.
  const { build } = await import('esbuild');
  const options = { bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' };
  await build({ ...options, entryPoints: [path.join(root, 'src/probe/recorder.ts')], outfile: path.join(folder, 'recorder.js') });
  await build({ ...options, stdin: { contents: "export { openRecorder } from './src/probe/recording'; export { defaultNetwork } from './src/probe/network';", resolveDir: root, loader: 'ts' }, outfile: path.join(folder, 'recording.cjs') });
}

/** The built recorder. `receive` sends `streams` requests to a URL at once and gives their tapes. */
export async function openBuiltRecorder(folder) {
  const { openRecorder, defaultNetwork } = createRequire(import.meta.url)(path.join(folder, 'recording.cjs'));
  const recorder = await openRecorder({ script: path.join(folder, 'recorder.js'), network: { ...defaultNetwork, proxy: 'none' }, canary: false });
  const timeouts = { firstToken: null, stall: null, total: null };
  return {
    receive: (streams, url) => {
      const request = { method: 'POST', url, headers: {}, body: '{}' };
      return Promise.all(Array.from({ length: streams }, (_, k) => recorder.record({ id: `${k}`, request, timeouts }, null, new AbortController().signal)));
    },
    end: () => recorder.close(),
  };
}

/** Runs a script as a process of its own and gives the one message it sends. */
export function resultOf(script, args, options = {}) {
  return new Promise((resolve, reject) => {
    const child = fork(script, args.map(String), options);
    let result;
    child.once('message', (message) => (result = message));
    child.once('close', () => (result ? resolve(result) : reject(new Error('A receiver ended without a result'))));
  });
}

/** The middle of some numbers. */
export const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
