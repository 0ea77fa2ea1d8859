// The recorder against a bare socket loop that only takes the clock: error of a stamp (arrival − the sender's own stamp) and processor time
// per read, for 16 and 64 streams × 100 frames a second; and the recorder again while its host thread is blocked 10 ms of every 20.
// Sender and receivers are processes of their own. Medians of interleaved pairs, as ratios within this run; ends with 1 when one is over.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { isMainThread, parentPort, Worker, workerData } from 'node:worker_threads';

const self = fileURLToPath(import.meta.url);
const now = () => Number(process.hrtime.bigint()) / 1e6;
const frame = () => `data: {"choices":[{"index":0,"delta":{"content":" token"}}],"sent":${now()}}\n\n`;
const period = 10;
const pairs = Number(process.env.PAIRS ?? 7);
const seconds = Number(process.env.SECONDS ?? 4);
/** Unmeasured at first, until everything is compiled. */
const warmUp = 1;

const [role, ...args] = process.argv.slice(2);
if (!isMainThread) bareLoop(workerData);
else if (role === 'sender') sender();
else if (role === 'bare') await bareReceiver(...args);
else if (role === 'recorder') await recorderReceiver(...args);
else await main();

/** Each stream: a frame every 10 ms for so many seconds, stamped just before the write. */
function stream(write, end, lasting) {
  const until = now() + lasting * 1000;
  const timer = setInterval(() => {
    if (now() < until) return write(frame());
    clearInterval(timer);
    end();
  }, period);
}

function sender() {
  const plain = net.createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => undefined).once('data', (lasting) => stream((f) => socket.write(f), () => socket.end(), Number(lasting)));
  });
  const server = http.createServer((request, response) => {
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    stream((f) => response.write(f), () => response.end(), Number(new URL(request.url, 'http://x').searchParams.get('for')));
  });
  plain.listen(0, '127.0.0.1', () => server.listen(0, '127.0.0.1', () => process.send({ plain: plain.address().port, http: server.address().port })));
}

/** Frames of the reads: arrival − sent for each frame that a read completed. */
function errorsOf(stamps, ends, bytes) {
  const errors = [];
  let at = 0;
  stamps.forEach((stamp, k) => {
    const text = Buffer.from(bytes.buffer, bytes.byteOffset + at, ends[k] - at).toString();
    for (const match of text.matchAll(/"sent":([\d.]+)\}/g)) errors.push(stamp - Number(match[1]));
    at = ends[k];
  });
  return errors;
}

/** In a worker, as the recorder: per read take the clock and keep the buffer. */
function bareLoop({ port }) {
  parentPort.on('message', (task) => {
    if (task === null) return parentPort.close();
    let open = task.streams;
    const reads = [];
    for (let k = 0; k < task.streams; k++) {
      const socket = net.connect({ host: '127.0.0.1', port });
      socket.setNoDelay(true).write(String(task.lasting));
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

async function bareReceiver(port, streams, lasting) {
  const worker = new Worker(self, { workerData: { port: Number(port) } });
  const receive = (task) =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
      worker.postMessage(task);
    });
  await receive({ streams: Number(streams), lasting: warmUp });
  const before = process.cpuUsage();
  const reads = await receive({ streams: Number(streams), lasting: Number(lasting) });
  const cpu = process.cpuUsage(before);
  worker.postMessage(null);
  const errors = reads.flatMap(([stamp, bytes]) => errorsOf([stamp], [bytes.length], bytes));
  report(errors, reads.length, cpu);
}

async function recorderReceiver(port, streams, lasting, folder, blocked) {
  const { openRecorder, defaultNetwork } = createRequire(import.meta.url)(path.join(folder, 'recording.cjs'));
  const recorder = await openRecorder({ script: path.join(folder, 'recorder.js'), network: { ...defaultNetwork, proxy: 'none' }, canary: false });
  const limits = { firstToken: null, stall: null, total: null };
  const record = (lasting) => {
    const request = { method: 'POST', url: `http://127.0.0.1:${port}/?for=${lasting}`, headers: {}, body: '{}' };
    return Promise.all(Array.from({ length: Number(streams) }, (_, k) => recorder.record({ id: `${k}`, request, timeouts: limits }, null, new AbortController().signal)));
  };
  await record(warmUp);
  const block = blocked === 'blocked' ? setInterval(() => {
    for (const until = now() + 10; now() < until; );
  }, 20) : undefined;
  const before = process.cpuUsage();
  const tapes = await record(lasting);
  const cpu = process.cpuUsage(before);
  clearInterval(block);
  report(tapes.flatMap((tape) => errorsOf(tape.stamps, tape.ends, tape.bytes)), tapes.reduce((sum, tape) => sum + tape.stamps.length, 0), cpu);
  await recorder.close();
}

function report(errors, reads, { user, system }) {
  errors.sort((a, b) => a - b);
  const at = (p) => errors[Math.min(errors.length - 1, Math.floor(p * errors.length))];
  process.send({ p50: at(0.5), p90: at(0.9), p99: at(0.99), frames: errors.length, cpu: (user + system) / reads });
}

async function main() {
  const { build } = await import('esbuild');
  const root = path.join(path.dirname(self), '..', '..');
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-bench-'));
  const options = { bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'error' };
  await build({ ...options, entryPoints: [path.join(root, 'src/probe/recorder.ts')], outfile: path.join(folder, 'recorder.js') });
  await build({ ...options, stdin: { contents: "export { openRecorder } from './src/probe/recording'; export { defaultNetwork } from './src/probe/network';", resolveDir: root, loader: 'ts' }, outfile: path.join(folder, 'recording.cjs') });
  const server = fork(self, ['sender']);
  const ports = await new Promise((resolve) => server.once('message', resolve));
  const receive = (...child) =>
    new Promise((resolve, reject) => {
      const receiver = fork(self, child.map(String));
      let result;
      receiver.once('message', (message) => (result = message));
      receiver.once('close', () => (result ? resolve(result) : reject(new Error('A receiver ended without a result'))));
    });
  const bare = (streams) => receive('bare', ports.plain, streams, seconds);
  const recorder = (streams, blocked = 'free') => receive('recorder', ports.http, streams, seconds, folder, blocked);
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  let over = 0;
  const compare = (title, ours, theirs, budgets) => {
    for (const [what, budget] of Object.entries(budgets)) {
      const ratio = median(ours.map((one, k) => one[what] / theirs[k][what]));
      const within = ratio <= budget;
      if (!within) over += 1;
      const unit = what === 'cpu' ? 'µs' : 'ms';
      console.log(`  ${title.padEnd(44)} ${what.padEnd(4)} ${median(ours.map((o) => o[what])).toFixed(2).padStart(7)} / ${median(theirs.map((t) => t[what])).toFixed(2).padStart(6)} ${unit}  ${ratio.toFixed(2)} ×  budget ${budget}${within ? '' : '   OVER'}`);
    }
  };
  try {
    for (const streams of [16, 64]) {
      const runs = { bare: [], free: [], blocked: [] };
      for (let pair = 0; pair < pairs; pair++) {
        runs.bare.push(await bare(streams));
        runs.free.push(await recorder(streams));
        runs.blocked.push(await recorder(streams, 'blocked'));
      }
      compare(`${streams} streams: recorder / bare loop`, runs.free, runs.bare, { p50: 1.5, p90: 1.5, p99: 2, cpu: 2 });
      compare(`${streams} streams: host blocked / host free`, runs.blocked, runs.free, { p50: 1.5, p90: 1.5 });
    }
  } finally {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
  process.exit(over > 0 ? 1 : 0);
}
