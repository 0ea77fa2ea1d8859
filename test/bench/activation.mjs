// Activation in a real extension host: how long our code takes to load and to activate, median of 9, against the budget of 30 ms.
// The bundle is loaded afresh each time; the parts of the last activation are disposed of before the next.
import { runTests } from '@vscode/test-electron';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

const budget = 30;
const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-bench-'));
const result = path.join(folder, 'result.json');

/** Runs inside the extension host, as text, so that it needs no build. */
async function inside(vscode, fs, file, clock) {
  const extension = vscode.extensions.getExtension('first-token.first-token');
  const { parts } = await extension.activate();
  const { context } = parts;
  const script = require.resolve(`${extension.extensionPath}/dist/extension.js`);
  const figures = { load: [], activate: [] };
  for (let round = 0; round < 9; round += 1) {
    for (const subscription of context.subscriptions.splice(0).reverse()) await subscription.dispose();
    delete require.cache[script];
    const begun = clock();
    const module = require(script);
    const loaded = clock();
    module.activate(context);
    figures.load.push(loaded - begun);
    figures.activate.push(clock() - loaded);
  }
  fs.writeFileSync(file, JSON.stringify(figures));
}

const tests = path.join(folder, 'activation.cjs');
writeFileSync(tests, `${inside.toString()}\nexports.run = () => { console.log('[tests begin]'); return inside(require('vscode'), require('node:fs'), ${JSON.stringify(result)}, () => Number(process.hrtime.bigint()) / 1e6); };\n`);
mkdirSync(path.join(folder, 'workspace'));
try {
  await runTests({
    vscodeExecutablePath: path.join(root, 'test/host/editorHost.mjs'),
    extensionDevelopmentPath: root,
    extensionTestsPath: tests,
    launchArgs: [path.join(folder, 'workspace'), `--user-data-dir=${path.join(folder, 'user')}`, `--extensions-dir=${path.join(folder, 'extensions')}`],
  });
  const figures = JSON.parse(readFileSync(result, 'utf8'));
  const median = (values) => [...values].sort((a, b) => a - b)[Math.floor(values.length / 2)];
  const [load, activate] = [median(figures.load), median(figures.activate)];
  const sum = load + activate;
  console.log(`load ${load.toFixed(1)} ms + activate ${activate.toFixed(1)} ms = ${sum.toFixed(1)} ms of ${budget} ms${sum > budget ? '  OVER' : ''}`);
  process.exitCode = sum > budget ? 1 : 0;
} finally {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
}
