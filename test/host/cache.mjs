// What tests and `npm start` need but a checkout should not hold: editors and browsers from the npm registry, installed once into the user's cache.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

/** Where installed things live: `$XDG_CACHE_HOME/first-token`, else `~/.cache/first-token`. */
export const cacheFolder = path.join(process.env.XDG_CACHE_HOME ?? path.join(os.homedir(), '.cache'), 'first-token');

/**
 * Installs npm packages once into a cache folder of their own and returns that folder. `inside` are folders in it that need their own
 * `npm install`. Installed beside and renamed at the end, so that a broken or a second installation never leaves half a folder.
 */
export async function installed(name, packages, { inside = [], note = '' } = {}) {
  const folder = path.join(cacheFolder, name);
  if (existsSync(path.join(folder, 'complete'))) return folder;
  const building = `${folder}.${process.pid}`;
  rmSync(building, { recursive: true, force: true });
  mkdirSync(building, { recursive: true });
  writeFileSync(path.join(building, 'package.json'), '{ "private": true }\n');
  process.stderr.write(`Installing ${packages.join(', ')} into ${folder}${note ? ` (${note})` : ''} …\n`);
  const begun = process.hrtime.bigint();
  await npm(['install', ...packages], building);
  for (const sub of inside) await npm(['install'], path.join(building, sub));
  writeFileSync(path.join(building, 'complete'), '');
  rmSync(folder, { recursive: true, force: true });
  try {
    renameSync(building, folder);
  } catch (error) {
    rmSync(building, { recursive: true, force: true });
    if (!existsSync(path.join(folder, 'complete'))) throw error;
  }
  process.stderr.write(`  installed in ${Math.round(Number(process.hrtime.bigint() - begun) / 1e9)} s\n`);
  return folder;
}

/** Runs npm quietly; its output is shown only when it fails. */
function npm(args, cwd) {
  const child = spawn('npm', [...args, '--omit=dev', '--ignore-scripts', '--no-audit', '--no-fund', '--loglevel=error'], {
    cwd,
    stdio: ['ignore', 'pipe', 'pipe'],
    shell: process.platform === 'win32',
  });
  let output = '';
  child.stdout.on('data', (data) => (output += data));
  child.stderr.on('data', (data) => (output += data));
  return new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', (code) => {
      if (code === 0) resolve();
      else reject(new Error(`npm ${args.join(' ')} failed with code ${code} in ${cwd}. Is the npm registry reachable?\n${output}`));
    });
  });
}
