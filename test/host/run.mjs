// What `npm test` runs: installs what is missing, builds, then lint, types, unit, editor and UI tests; ends with one line of counts.
// FIRST_TOKEN_TIERS=unit,lint limits it; FIRST_TOKEN_EDITORS=all adds the newest VS Code; FIRST_TOKEN_STRICT=1 fails when anything was skipped.
import { spawnSync } from 'node:child_process';
import { existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build, ensureInstalled, root } from './install.mjs';

ensureInstalled();

const temporary = mkdtempSync(path.join(os.tmpdir(), 'first-token-test-'));
const results = path.join(temporary, 'results.jsonl');
const bin = (name) => path.join(root, 'node_modules', ...name);
const only = process.env.FIRST_TOKEN_TIERS?.split(',');
const tally = [];

function tier(name, command, args, env = {}) {
  if (only && !only.includes(name)) return;
  console.log(`\n${name}`);
  const started = process.hrtime.bigint();
  const before = readTally().length;
  const { status, error } = spawnSync(command, args, {
    cwd: root,
    stdio: 'inherit',
    env: { ...process.env, FIRST_TOKEN_RESULTS: results, FIRST_TOKEN_TIER: name, ...env },
  });
  const told = readTally().slice(before);
  const failed = told.reduce((sum, t) => sum + t.failed, 0);
  const code = status ?? 1;
  if (told.length > 0) tally.push(...told);
  // A tier that tells no counts (lint, types) is one check; one that counted but ended badly has one failure more than it told.
  if (told.length === 0) tally.push({ tier: name, passed: code === 0 ? 1 : 0, failed: code === 0 ? 0 : 1, skipped: [] });
  else if (code !== 0 && failed === 0) tally.push({ tier: name, passed: 0, failed: 1, skipped: [] });
  if (told.some((t) => t.passed + t.failed === 0 && t.skipped.length === 0)) tally.push({ tier: `${name}: no test found`, passed: 0, failed: 1, skipped: [] });
  if (code !== 0) console.log(`  ${name} failed${error ? `: ${error.message}` : ` (exit ${code})`}`);
  const seconds = Number(process.hrtime.bigint() - started) / 1e9;
  console.log(`  ${name} took ${seconds.toFixed(0)} s`);
}

function readTally() {
  if (!existsSync(results)) return [];
  return readFileSync(results, 'utf8').split('\n').filter(Boolean).map((line) => JSON.parse(line));
}

const node = process.execPath;
try {
  if (!only || only.some((t) => !['lint', 'types'].includes(t))) build();
  tier('lint', node, [bin(['eslint', 'bin', 'eslint.js']), '.', '--max-warnings=0', '--cache', '--cache-location', path.join(root, 'node_modules', '.cache', 'eslint')]);
  tier('types', node, [bin(['typescript', 'bin', 'tsc']), '--noEmit', '-p', 'tsconfig.json']);
  tier('types of the webview', node, [bin(['typescript', 'bin', 'tsc']), '--noEmit', '-p', 'webview/tsconfig.json']);
  tier('types of the webview tests', node, [bin(['typescript', 'bin', 'tsc']), '--noEmit', '-p', 'test/unit/webview/tsconfig.json']);
  // A test that failed may leave a server running, which would keep the run from ending.
  tier('unit', node, [bin(['mocha', 'bin', 'mocha.js']), 'test/unit/**/*.test.ts', '--reporter', 'test/host/reporter.cjs', '--exit']);
  for (const [name, script] of [['editor', 'test/editor/run.mjs'], ['ui', 'test/ui/run.mjs']]) {
    if (existsSync(path.join(root, script))) tier(name, node, [script]);
  }
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
