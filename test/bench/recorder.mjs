// The recorder against a bare socket loop that only takes the clock: error of a stamp (arrival − the sender's own stamp) and processor time
// per read, for 16 and 64 streams × 100 frames a second; and the recorder again while its host thread is blocked 10 ms of every 20.
// Sender and receivers are processes of their own. Medians of interleaved pairs, as ratios within this run; ends with 1 when one is over.
import { fork } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { buildRecorder, errorsOf, frame, median, now, openBuiltRecorder, resultOf, startBareLoop } from '../host/socketLoop.mjs';

const self = fileURLToPath(import.meta.url);
const period = 10;
const pairs = Number(process.env.PAIRS ?? 7);
const seconds = Number(process.env.SECONDS ?? 4);
/** Unmeasured at first, until everything is compiled. */
const warmUp = 1;

const [role, ...args] = process.argv.slice(2);
if (role === 'sender') sender();
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

async function bareReceiver(port, streams, lasting) {
  const loop = startBareLoop(Number(port));
  const receive = (time) => loop.receive(Number(streams), String(time));
  await receive(warmUp);
  const before = process.cpuUsage();
  const reads = await receive(lasting);
  const cpu = process.cpuUsage(before);
  loop.end();
  const errors = reads.flatMap(([stamp, bytes]) => errorsOf([stamp], [bytes.length], bytes));
  report(errors, reads.length, cpu);
}

async function recorderReceiver(port, streams, lasting, folder, blocked) {
  const recorder = await openBuiltRecorder(folder);
  const receive = (time) => recorder.receive(Number(streams), `http://127.0.0.1:${port}/?for=${time}`);
  await receive(warmUp);
  const block = blocked === 'blocked' ? setInterval(() => {
    for (const until = now() + 10; now() < until; );
  }, 20) : undefined;
  const before = process.cpuUsage();
  const tapes = await receive(lasting);
  const cpu = process.cpuUsage(before);
  clearInterval(block);
  report(tapes.flatMap((tape) => errorsOf(tape.stamps, tape.ends, tape.bytes)), tapes.reduce((sum, tape) => sum + tape.stamps.length, 0), cpu);
  await recorder.end();
}

function report(errors, reads, { user, system }) {
  errors.sort((a, b) => a - b);
  const at = (p) => errors[Math.min(errors.length - 1, Math.floor(p * errors.length))];
  process.send({ p50: at(0.5), p90: at(0.9), p99: at(0.99), frames: errors.length, cpu: (user + system) / reads });
}

async function main() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-bench-'));
  await buildRecorder(folder);
  const server = fork(self, ['sender']);
  const ports = await new Promise((resolve) => server.once('message', resolve));
  const receive = (...child) => resultOf(self, child);
  const bare = (streams) => receive('bare', ports.plain, streams, seconds);
  const recorder = (streams, blocked = 'free') => receive('recorder', ports.http, streams, seconds, folder, blocked);
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
