// One recorder under load, against a bare socket loop that only takes the clock: 1,000 streams × 10 frames a second (processor time per
// frame, error of a stamp, lost frames, memory per stream), then the frame rate at which each first uses 80 % of a core. Sender and
// receivers are processes of their own. Medians of interleaved pairs, as ratios within this run; ends with 1 when one is over.
// PAIRS, SECONDS and STREAMS in the environment make it shorter or longer.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildRecorder, errorsOf, frame, median, now, openBuiltRecorder, resultOf, startBareLoop } from '../host/socketLoop.mjs';

const self = fileURLToPath(import.meta.url);
const pairs = Number(process.env.PAIRS ?? 3);
const seconds = Number(process.env.SECONDS ?? 5);
const streams = Number(process.env.STREAMS ?? 1000);
const fullCore = 0.8;

const [role, ...args] = process.argv.slice(2);
if (role === 'sender') sender();
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

async function bareReceiver(port, count, frames, period) {
  const loop = startBareLoop(Number(port));
  const receive = (wanted) => loop.receive(Number(count), `${wanted} ${period}`);
  await receive(3);
  await measured(async () => (await receive(frames)).map(([stamp, bytes]) => ({ stamps: [stamp], ends: [bytes.length], bytes })), { streams: Number(count), frames: Number(frames) });
  loop.end();
}

async function recorderReceiver(port, count, frames, period, folder) {
  const recorder = await openBuiltRecorder(folder);
  const receive = (wanted) => recorder.receive(Number(count), `http://127.0.0.1:${port}/?frames=${wanted}&period=${period}`);
  await receive(3);
  await measured(() => receive(frames), { streams: Number(count), frames: Number(frames) });
  await recorder.end();
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
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-bench-'));
  await buildRecorder(folder);
  const server = fork(self, ['sender']);
  const ports = await new Promise((resolve) => server.once('message', resolve));
  const receive = (...child) => resultOf(self, child, { execArgv: ['--expose-gc'] });
  const bare = (count, perSecond, lasting) => receive('bare', ports.plain, count, Math.round(perSecond * lasting), 1000 / perSecond);
  const recorder = (count, perSecond, lasting) => receive('recorder', ports.http, count, Math.round(perSecond * lasting), 1000 / perSecond, folder);
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
