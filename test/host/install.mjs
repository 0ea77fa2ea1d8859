// Installs the npm packages when they are missing or older than the lock file. Plain Node, so that it runs before anything is installed.
import { spawnSync } from 'node:child_process';
import { createHash } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';

export const root = path.resolve(import.meta.dirname, '../..');
const npm = process.platform === 'win32' ? 'npm.cmd' : 'npm';

/** Runs a command with its output shown; returns the exit code. */
export function show(command, args, options = {}) {
  const result = spawnSync(command, args, { cwd: root, stdio: 'inherit', shell: process.platform === 'win32', ...options });
  if (result.error) console.error(`${command}: ${result.error.message}`);
  return result.status ?? 1;
}

/** Makes sure that node_modules matches package-lock.json. Exits with a clear message when npm fails. */
export function ensureInstalled() {
  const [major, minor] = process.versions.node.split('.').map(Number);
  if (major < 20 || (major === 20 && minor < 18)) {
    console.error(`First Token needs Node 20.18 or newer; this is ${process.version}.`);
    process.exit(2);
  }
  const lock = path.join(root, 'package-lock.json');
  const stamp = path.join(root, 'node_modules', '.installed');
  const wanted = createHash('sha256').update(readFileSync(lock)).digest('hex');
  if (existsSync(stamp) && readFileSync(stamp, 'utf8') === wanted) return;
  console.log('Installing packages (about half a minute the first time) …');
  const code = show(npm, ['ci', '--no-audit', '--no-fund', '--loglevel=error', '--progress=true']);
  if (code !== 0) {
    console.error('npm ci failed: check the network or your npm registry settings, then run the same command again.');
    process.exit(code);
  }
  writeFileSync(stamp, wanted);
}

/** Builds dist/. Exits when the build fails. */
export function build(...flags) {
  const code = show(process.execPath, ['esbuild.mjs', ...flags]);
  if (code !== 0) process.exit(code);
}
