// What `npm test` runs: installs what is missing, builds, then lint, types, unit, editor and UI tests; ends with one line of counts.
// FIRST_TOKEN_TIERS=unit,lint limits it; FIRST_TOKEN_EDITORS=all adds the newest VS Code; FIRST_TOKEN_STRICT=1 fails when anything was skipped.
import { spawn } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build, ensureInstalled, root } from './install.mjs';

ensureInstalled();

const temporary = mkdtempSync(path.join(os.tmpdir(), 'first-token-test-'));
const bin = (name) => path.join(root, 'node_modules', ...name);
const only = process.env.FIRST_TOKEN_TIERS?.split(',');
const tally = [];

/**
 * Runs one tier: `part` names a share of it that runs beside others, whose output then comes in one piece at its end. A tier that tells no
 * counts (lint, types) is one check; one that counted but ended badly has one failure more than it told.
 */
async function tier(name, args, part = null) {
  if (only && !only.includes(name)) return;
  const title = part === null ? name : `${name}: ${part}`;
  const results = path.join(temporary, `${tally.length}-${title.replaceAll(/\W/g, '-')}.jsonl`);
  if (part === null) console.log(`\n${title}`);
  const started = process.hrtime.bigint();
  const child = spawn(process.execPath, args, {
    cwd: root,
    stdio: ['inherit', part === null ? 'inherit' : 'pipe', part === null ? 'inherit' : 'pipe'],
    env: { ...process.env, FIRST_TOKEN_RESULTS: results, FIRST_TOKEN_TIER: name },
  });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) stream?.on('data', (data) => (output += String(data)));
  const code = await new Promise((resolve) => {
    child.once('error', (error) => resolve((output += error.message) && 1));
    child.once('close', (status) => resolve(status ?? 1));
  });
  if (part !== null) process.stdout.write(`\n${title}\n${output}`);
  const told = existsSync(results) ? readFileSync(results, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line)) : [];
  const failed = told.reduce((sum, t) => sum + t.failed, 0);
  tally.push(...told);
  if (told.length === 0) tally.push({ tier: title, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: [] });
  else if (code !== 0 && failed === 0) tally.push({ tier: title, passed: 0, failed: 1, skipped: [] });
  if (told.some((t) => t.passed + t.failed === 0 && t.skipped.length === 0)) tally.push({ tier: `${title}: no test found`, passed: 0, failed: 1, skipped: [] });
  if (code !== 0) console.log(`  ${title} failed (exit ${code})`);
  console.log(`  ${title} took ${(Number(process.hrtime.bigint() - started) / 1e9).toFixed(0)} s`);
}

// A test that failed may leave a server running, which would keep the run from ending.
const mocha = (...args) => [bin(['mocha', 'bin', 'mocha.js']), ...args, '--reporter', 'test/host/reporter.cjs', '--exit'];
const tsc = (project) => [bin(['typescript', 'bin', 'tsc']), '--noEmit', '-p', project];
try {
  if (!only || only.some((t) => !['lint', 'types'].includes(t))) build();
  await Promise.all([
    tier('lint', [bin(['eslint', 'bin', 'eslint.js']), '.', '--max-warnings=0', '--cache', '--cache-location', path.join(root, 'node_modules', '.cache', 'eslint')], 'of all files'),
    (async () => {
      await tier('types', tsc('tsconfig.json'), 'of sources and tests');
      await tier('types', tsc('webview/tsconfig.json'), 'of the webview');
      await tier('types', tsc('test/unit/webview/tsconfig.json'), 'of the webview tests');
    })(),
  ]);
  await tier('unit', mocha('test/unit/**/*.test.ts'));
  await tier('editor', ['test/editor/run.mjs']);
  await tier('ui', ['test/ui/run.mjs']);
} finally {
  rmSync(temporary, { recursive: true, force: true });
}

const sum = (key) => tally.reduce((total, t) => total + t[key], 0);
const skipped = tally.flatMap((t) => t.skipped);
const strict = process.env.FIRST_TOKEN_STRICT === '1';
console.log('');
for (const title of skipped) console.log(`skipped: ${title}`);
if (strict && skipped.length > 0) console.log('FIRST_TOKEN_STRICT=1: a skipped test is a failure here');
const failed = sum('failed');
console.log(`${sum('passed')} passed, ${failed} failed${skipped.length ? `, ${skipped.length} skipped` : ''}`);
process.exit(failed > 0 || (strict && skipped.length > 0) ? 1 : 0);
