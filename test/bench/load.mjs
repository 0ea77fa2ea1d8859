// One recorder under load, against a bare socket loop that only takes the clock: 1,000 streams × 10 frames a second (processor time per
// frame, error of a stamp, lost frames, memory per stream), then the frame rate at which each first uses 80 % of a core. Sender and
// receivers are processes of their own. Medians of interleaved pairs, as ratios within this run; ends with 1 when one is over.
// PAIRS, SECONDS and STREAMS in the environment make it shorter or longer.
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
const pairs = Number(process.env.PAIRS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const streams = Number(process.env.STREAMS ?? 1000);
const fullCore = 0.8;

const [role, ...args] = process.argv.slice(2);
if (!isMainThread) bareLoop(workerData);
else if (role === 'sender') sender();
else if (role === 'bare') await bareReceiver(...args);
else if (role === 'recorder') await recorderReceiver(...args);
else await main();

/** One wheel for all streams: each gets its frames `period` ms apart, spread evenly, every frame stamped just before its write. */
function sender() {
  const open = new Set();
  let phase = 0;
  const add = (write, end, frames, period) => {
    phase = (phase + 0.618034) % 1;
    open.add({ write, end, left: frames, period, due: now() + 50 + phase * period });
  };
  const turn = () => {
    const t = now();
    for (const one of open) {
      if (one.due > t) continue;
      one.write(frame());
      one.due += one.period;
      if (--one.left > 0) continue;
      open.delete(one);
      one.end();
    }
    setTimeout(turn, 1);
  };
  turn();
  const plain = net.createServer((socket) => {
    socket.setNoDelay(true);
    socket.on('error', () => undefined).once('data', (wanted) => add((f) => socket.write(f), () => socket.end(), ...String(wanted).split(' ').map(Number)));
  });
  const server = http.createServer((request, response) => {
    const wanted = new URL(request.url, 'http://x').searchParams;
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.flushHeaders();
    add((f) => response.write(f), () => response.end(), Number(wanted.get('frames')), Number(wanted.get('period')));
  });
  const many = { port: 0, host: '127.0.0.1', backlog: 4096 };
  plain.listen(many, () => server.listen(many, () => process.send({ plain: plain.address().port, http: server.address().port })));
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
      socket.setNoDelay(true).write(`${task.frames} ${task.period}`);
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

async function bareReceiver(port, count, frames, period) {
  const worker = new Worker(self, { workerData: { port: Number(port) } });
  const receive = (task) =>
    new Promise((resolve, reject) => {
      worker.once('message', resolve).once('error', reject);
      worker.postMessage(task);
    });
  const task = { streams: Number(count), frames: Number(frames), period: Number(period) };
  await receive({ ...task, frames: 3 });
  await measured(async () => (await receive(task)).map(([stamp, bytes]) => ({ stamps: [stamp], ends: [bytes.length], bytes })), task);
  worker.postMessage(null);
}

async function recorderReceiver(port, count, frames, period, folder) {
  const { openRecorder, defaultNetwork } = createRequire(import.meta.url)(path.join(folder, 'recording.cjs'));
  const recorder = await openRecorder({ script: path.join(folder, 'recorder.js'), network: { ...defaultNetwork, proxy: 'none' }, canary: false });
  const limits = { firstToken: null, stall: null, total: null };
  const record = (wanted) => {
    const request = { method: 'POST', url: `http://127.0.0.1:${port}/?frames=${wanted}&period=${period}`, headers: {}, body: '{}' };
    return Promise.all(Array.from({ length: Number(count) }, (_, k) => recorder.record({ id: `${k}`, request, timeouts: limits }, null, new AbortController().signal)));
  };
  await record(3);
  await measured(() => record(frames), { streams: Number(count), frames: Number(frames) });
  await recorder.close();
}

/** Runs it and tells the parent what it cost; memory is the most seen above what there was before. */
async function measured(receive, { streams: count, frames }) {
  globalThis.gc?.();
  const memory = process.memoryUsage().rss;
  let most = 0;
  const watch = setInterval(() => (most = Math.max(most, process.memoryUsage().rss - memory)), 100);
  const [before, from] = [process.cpuUsage(), now()];
  const parts = await receive();
  const [{ user, system }, lasted] = [process.cpuUsage(before), now() - from];
  clearInterval(watch);
  const errors = parts.flatMap((part) => errorsOf(part.stamps, part.ends, part.bytes)).sort((a, b) => a - b);
  const at = (p) => errors[Math.min(errors.length - 1, Math.floor(p * errors.length))];
  process.send({ p50: at(0.5), p90: at(0.9), p99: at(0.99), frames: errors.length, lost: count * frames - errors.length, cpu: (user + system) / errors.length, core: (user + system) / 1000 / lasted, rate: (errors.length * 1000) / lasted, memory: most / count / 1000 });
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
      const receiver = fork(self, child.map(String), { execArgv: ['--expose-gc'] });
      let result;
      receiver.once('message', (message) => (result = message));
      receiver.once('close', () => (result ? resolve(result) : reject(new Error('A receiver ended without a result'))));
    });
  const bare = (count, perSecond, lasting) => receive('bare', ports.plain, count, Math.round(perSecond * lasting), 1000 / perSecond);
  const recorder = (count, perSecond, lasting) => receive('recorder', ports.http, count, Math.round(perSecond * lasting), 1000 / perSecond, folder);
  const median = (values) => values.toSorted((a, b) => a - b)[Math.floor(values.length / 2)];
  let over = 0;
  const line = (what, ours, theirs, unit, ratio, budget) => {
    const within = budget === null || ratio <= budget;
    if (!within) over += 1;
    console.log(`  ${what.padEnd(34)} ${ours.toFixed(2).padStart(8)} / ${theirs.toFixed(2).padStart(8)} ${unit.padEnd(3)} ${ratio.toFixed(2).padStart(6)} ×${budget === null ? '' : `  budget ${budget}${within ? '' : '   OVER'}`}`);
  };
  try {
    const runs = { bare: [], recorder: [] };
    for (let pair = 0; pair < pairs; pair++) {
      runs.bare.push(await bare(streams, 10, seconds));
      runs.recorder.push(await recorder(streams, 10, seconds));
    }
    console.log(`  ${streams} streams × 10 frames/s, recorder / bare loop`);
    for (const [what, unit, budget] of [['cpu', 'µs', 2], ['p50', 'ms', null], ['p90', 'ms', 2], ['p99', 'ms', null], ['memory', 'kB', null]]) {
      const name = what === 'cpu' ? 'processor time a frame' : what === 'memory' ? 'memory a stream' : `error of a stamp, ${what}`;
      line(name, median(runs.recorder.map((r) => r[what])), median(runs.bare.map((r) => r[what])), unit, median(runs.recorder.map((r, k) => r[what] / runs.bare[k][what])), budget);
    }
    const lost = runs.recorder.reduce((sum, r) => sum + r.lost, 0);
    if (lost !== 0) over += 1;
    console.log(`  frames lost                        ${lost} of ${runs.recorder.reduce((sum, r) => sum + r.lost + r.frames, 0)}${lost === 0 ? '' : '   OVER'}`);
    const [ours, theirs] = [await fullAt(recorder), await fullAt(bare)];
    const said = ({ rate, full }) => `${full ? '' : 'above '}${Math.round(rate)}`;
    console.log(`  frames/s at ${fullCore * 100} % of a core: recorder ${said(ours)}, bare loop ${said(theirs)}`);
  } finally {
    server.kill();
    rmSync(folder, { recursive: true, force: true });
  }
  process.exit(over > 0 ? 1 : 0);
}

/** Doubles the rate of 200 streams until a core is as good as full; between the last two rates a straight line. `full` false: the sender gave up first. */
async function fullAt(receive) {
  let before = { rate: 0, core: 0 };
  for (let perSecond = 10; perSecond <= 320; perSecond *= 2) {
    const { core, rate } = await receive(200, perSecond, 2);
    if (rate < 0.7 * 200 * perSecond) return { rate: Math.max(rate, before.rate), full: false };
    if (core >= fullCore) return { rate: before.rate + ((fullCore - before.core) / (core - before.core)) * (rate - before.rate), full: true };
    before = { rate, core };
  }
  return { rate: before.rate, full: false };
}
