// A real llama.cpp server with a tiny model, from the npm registry: built once into a cache outside the checkout, then started per test.
// `node test/host/llama/server.mjs` builds it and prints the folder; `… --run [PORT] [llama-server flags]` also starts it and stays.
import { execFileSync, spawn, spawnSync } from 'node:child_process';
import { copyFileSync, existsSync, mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync } from 'node:fs';
import net from 'node:net';
import os from 'node:os';
import path from 'node:path';
import { writeModel } from './model.mjs';

// Later releases may not install without their GPU builds; this one carries source and libraries of the same tree.
const version = '3.21.1';
const here = import.meta.dirname;
const cacheRoot = path.join(process.env.XDG_CACHE_HOME || path.join(os.homedir(), '.cache'), 'first-token');

/** Why the server cannot be had on this machine, or null. */
export function llamaServerProblem() {
  if (process.platform !== 'linux' || process.arch !== 'x64') return `a real llama.cpp server is only set up for Linux on x64, this is ${process.platform} on ${process.arch}`;
  if (existsSync(path.join(folder(), 'llama-server'))) return null;
  const missing = ['git', 'cmake', 'make', 'g++'].filter((tool) => spawnSync(tool, ['--version'], { stdio: 'ignore' }).error);
  return missing.length > 0 ? `building llama.cpp's server needs ${missing.join(', ')}` : null;
}

function folder() {
  return path.join(cacheRoot, `llama-server-${version}`);
}

function run(command, args, cwd) {
  try {
    execFileSync(command, args, { cwd, stdio: ['ignore', 'ignore', 'pipe'], maxBuffer: 1 << 26 });
  } catch (error) {
    throw new Error(`${command} ${args[0]} failed: ${String(error.stderr ?? error.message).slice(-2000)}`);
  }
}

/** Builds the server and the models where they are missing (three minutes on two cores) and returns their folder. */
export async function ensureLlamaServer(log = console.log) {
  const target = folder();
  if (!existsSync(path.join(target, 'llama-server'))) {
    mkdirSync(cacheRoot, { recursive: true });
    const work = mkdtempSync(path.join(cacheRoot, 'llama-build-'));
    try {
      log('Fetching llama.cpp (45 MB) …');
      run(process.platform === 'win32' ? 'npm.cmd' : 'npm', ['pack', '--silent', `node-llama-cpp@${version}`, `@node-llama-cpp/linux-x64@${version}`], work);
      for (const [name, into] of [[`node-llama-cpp-${version}.tgz`, 'tree'], [`node-llama-cpp-linux-x64-${version}.tgz`, 'prebuilt']]) {
        mkdirSync(path.join(work, into));
        run('tar', ['xzf', name, '-C', into], work);
      }
      run('git', ['clone', '-q', path.join('tree', 'package', 'llama', 'gitRelease.bundle'), 'source'], work);
      log("Building llama.cpp's server (two to four minutes, once) …");
      const libraries = path.join(work, 'prebuilt', 'package', 'bins', 'linux-x64');
      run('cmake', ['-S', here, '-B', 'build', '-D', `SOURCE=${path.join(work, 'source')}`, '-D', `PREBUILT=${libraries}`], work);
      run('make', ['-C', 'build', '-j', String(Math.max(2, os.availableParallelism())), 'llama-server'], work);
      const ready = path.join(work, 'ready');
      mkdirSync(ready);
      copyFileSync(path.join(work, 'build', 'llama-server'), path.join(ready, 'llama-server'));
      for (const name of readdirSync(libraries)) if (name.endsWith('.so')) copyFileSync(path.join(libraries, name), path.join(ready, name));
      rmSync(target, { recursive: true, force: true });
      renameSync(ready, target);
    } finally {
      rmSync(work, { recursive: true, force: true });
    }
  }
  for (const [name, options] of [['tiny.gguf', {}], ['think.gguf', { think: true }], ['junk.gguf', { junk: true }]]) {
    if (!existsSync(path.join(target, name))) await writeModel(path.join(target, name), options);
  }
  return target;
}

function freePort() {
  return new Promise((resolve, reject) => {
    const server = net.createServer().once('error', reject).listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/**
 * Starts the server on a free loopback port and waits until it is healthy. `model`: tiny, think or junk; `flags`: more llama-server flags.
 * One thread, because two spinning threads on two busy cores collapse.
 */
export async function startLlamaServer({ model = 'tiny', flags = [], port } = {}) {
  const target = await ensureLlamaServer();
  const chosen = port ?? (await freePort());
  const args = ['--host', '127.0.0.1', '--port', String(chosen), '-m', path.join(target, `${model}.gguf`), '-t', '1', '--parallel', '4', '-c', '16384', '--metrics', '--slots', '--props', '--no-webui', ...flags];
  const child = spawn(path.join(target, 'llama-server'), args, { cwd: target, stdio: ['ignore', 'pipe', 'pipe'], env: { ...process.env, LD_LIBRARY_PATH: target } });
  let log = '';
  for (const stream of [child.stdout, child.stderr]) stream.on('data', (chunk) => { log = (log + chunk).slice(-20000); });
  let exited = null;
  const gone = new Promise((resolve) => child.once('exit', (code, signal) => { exited = signal ?? code; resolve(); }));
  const kill = () => child.kill('SIGKILL');
  process.once('exit', kill);
  const url = `http://127.0.0.1:${chosen}`;
  const until = process.hrtime.bigint() + 60_000_000_000n;
  for (;;) {
    if (exited !== null) throw new Error(`llama-server ended (${exited}) before it was ready:\n${log.slice(-3000)}`);
    if (process.hrtime.bigint() > until) { kill(); throw new Error(`llama-server was not ready after 60 s:\n${log.slice(-3000)}`); }
    try {
      if ((await fetch(`${url}/health`)).ok) break;
    } catch { /* not listening yet */ }
    await new Promise((resolve) => setTimeout(resolve, 50));
  }
  return {
    url,
    process: child,
    log: () => log,
    async stop() {
      process.removeListener('exit', kill);
      if (exited === null) child.kill('SIGKILL');
      await gone;
    },
  };
}

if (process.argv[1] === import.meta.filename) {
  const problem = llamaServerProblem();
  if (problem) {
    console.error(problem);
    process.exit(1);
  }
  console.log(await ensureLlamaServer());
  const at = process.argv.indexOf('--run');
  if (at > 0) {
    const [port, ...flags] = process.argv.slice(at + 1);
    const server = await startLlamaServer({ flags, ...(port ? { port: Number(port) } : {}) });
    console.log(`llama-server on ${server.url}; Ctrl-C ends it`);
  }
}
