import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import { startSimulator } from '../../../src/simulator/start';
import { call } from './client';

const root = path.join(__dirname, '..', '..', '..');

function alive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return true;
  } catch {
    return false;
  }
}

async function gone(pid: number): Promise<boolean> {
  for (let i = 0; i < 100 && alive(pid); i++) await new Promise((resolve) => setTimeout(resolve, 50));
  return !alive(pid);
}

describe('start', () => {
  let folder: string;
  let script: string;

  before(async () => {
    folder = mkdtempSync(path.join(tmpdir(), 'simulator-'));
    script = path.join(folder, 'simulator.js');
    await build({ entryPoints: [path.join(root, 'src/simulator/server.ts')], bundle: true, platform: 'node', format: 'cjs', outfile: script, logLevel: 'error' });
  });

  after(() => {
    rmSync(folder, { recursive: true });
  });

  it('starts, answers, stops, and leaves no process', async () => {
    const simulator = await startSimulator({ script, args: ['--served-model', 'mine'] });
    assert.match(simulator.url, /^http:\/\/127\.0\.0\.1:\d+$/);
    assert.match((await call(simulator.url, '/v1/models')).text, /"mine"/);
    await simulator.stop();
    assert.equal(alive(simulator.pid), false);
    await simulator.stop();
  });

  it('stops at once although streams are open', async () => {
    const simulator = await startSimulator({ script });
    const open = call(simulator.url, '/v1/chat/completions', { body: { messages: [{ role: 'user', content: 'x' }], stream: true, max_tokens: 5000, ignore_eos: true } });
    await new Promise((resolve) => setTimeout(resolve, 150));
    await simulator.stop();
    assert.equal(alive(simulator.pid), false);
    assert.equal((await open).whole, false);
  });

  it('passes on why it cannot start: wrong flags, a taken port, a file that is no server', async () => {
    await assert.rejects(startSimulator({ script, args: ['--gpu', 'abacus'] }), /--gpu abacus is not known/);
    const first = await startSimulator({ script });
    await assert.rejects(startSimulator({ script, port: Number(new URL(first.url).port) }), /EADDRINUSE/);
    await first.stop();
    await assert.rejects(startSimulator({ script: path.join(folder, 'missing.js') }), /missing\.js/);
  });

  it('gives up on a process that never gets ready, and ends it', async () => {
    const silent = path.join(folder, 'silent.js');
    writeFileSync(silent, 'process.stderr.write("pid " + process.pid); setInterval(() => {}, 1000);');
    const problem = await startSimulator({ script: silent, patience: 700 }).then(
      () => assert.fail('it started'),
      (error: unknown) => (error as Error).message,
    );
    assert.match(problem, /did not start within 0\.7 s/);
    assert.ok(await gone(Number(/pid (\d+)/.exec(problem)![1])));
  });

  it('dies with its parent, even when the parent is killed', async () => {
    const parent = path.join(folder, 'parent.js');
    writeFileSync(
      parent,
      `const child = require('node:child_process').spawn(process.execPath, [${JSON.stringify(script)}], { stdio: ['pipe', 'pipe', 'inherit'] });
       child.stdout.once('data', (line) => process.stdout.write(String(line)));`,
    );
    const process_ = spawn(process.execPath, [parent], { stdio: ['ignore', 'pipe', 'inherit'] });
    const line = await new Promise<string>((resolve) => process_.stdout.once('data', (part: Buffer) => resolve(part.toString())));
    const { pid } = JSON.parse(line) as { pid: number };
    assert.ok(alive(pid));
    process_.kill('SIGKILL');
    assert.ok(await gone(pid));
  });
});
