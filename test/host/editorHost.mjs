#!/usr/bin/env node
// An executable that takes VS Code's own command-line flags and runs them in VS Code's server with a headless browser, so that
// @vscode/test-electron's runTests({ vscodeExecutablePath }) works on a machine without a display or without VS Code's download.
// Environment: FIRST_TOKEN_EDITOR (minimum | newest), FIRST_TOKEN_EDITOR_TIMEOUT (ms), FIRST_TOKEN_EDITOR_LOG=1 prints the server's log.
import { existsSync, mkdtempSync, readFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { format } from 'node:util';
import { launchBrowser } from './browser.mjs';
import { removeFolder, startServer, workbenchUrl } from './editorServer.mjs';

const flags = parse(process.argv.slice(2));
const limit = Number(process.env.FIRST_TOKEN_EDITOR_TIMEOUT ?? 300_000);
const verbose = process.env.FIRST_TOKEN_EDITOR_LOG === '1';
/** Missing native parts and the unreachable gallery; harmless here. */
const noise = /bindings file|ripgrep|system error occurred|native-watchdog|open-vsx|vsda|Service Worker|INFO|\[uncaught exception\].*Canceled|ChatSessionStore|Creating a socket|connection token|builtin extensions/i;
const before = [];
let begun = false;
const closers = [];
let closing = false;

for (const signal of ['SIGINT', 'SIGTERM', 'SIGHUP']) process.once(signal, () => void finish(130));
setTimeout(() => {
  console.error(`The editor did not finish within ${limit / 1000} s (FIRST_TOKEN_EDITOR_TIMEOUT).`);
  void finish(124);
}, limit).unref();

try {
  const code = await run();
  await finish(code);
} catch (error) {
  console.error(error instanceof Error ? error.stack : error);
  await finish(1);
}

async function run() {
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'first-token-editor-'));
  closers.push(() => removeFolder(temporary));
  const userSettings = flags['user-data-dir'] && path.join(flags['user-data-dir'], 'User', 'settings.json');
  const server = await startServer({
    editor: process.env.FIRST_TOKEN_EDITOR ?? 'minimum',
    dataFolder: temporary,
    settings: userSettings && existsSync(userSettings) ? JSON.parse(readFileSync(userSettings, 'utf8')) : {},
    trusted: 'disable-workspace-trust' in flags,
    vsix: flags['install-extension'],
    log: verbose ? (text) => process.stderr.write(text) : undefined,
  });
  closers.push(() => server.stop());
  const browser = await launchBrowser();
  closers.push(() => browser.close());
  const page = await (await browser.newContext({ viewport: { width: 1280, height: 800 } })).newPage();

  const result = new Promise((resolve, reject) => {
    page.on('crash', () => reject(new Error('The browser page crashed')));
    page.on('close', () => reject(new Error('The browser page was closed')));
    void page.exposeFunction('codeAutomationExit', (code) => resolve(code));
  });
  result.catch(() => undefined);
  await page.exposeFunction('codeAutomationLog', print);
  await page.goto(
    workbenchUrl(server, {
      folder: flags.workspace,
      extensionDevelopmentPath: flags.extensionDevelopmentPath,
      extensionTestsPath: flags.extensionTestsPath,
    }),
  );
  return await result;
}

/** Prints what the tests say. Before their begin mark the workbench speaks; that is kept, and shown only if the tests never begin. */
function print(type, args) {
  const text = format(...args);
  if (!begun) {
    begun = text.includes('[tests begin]');
    before.push(text);
    if (verbose) process.stderr.write(`${text}\n`);
    return;
  }
  if (!verbose && noise.test(text)) return;
  const stream = type === 'error' || type === 'warn' ? process.stderr : process.stdout;
  stream.write(`${text}\n`);
}

async function finish(code) {
  if (closing) return;
  closing = true;
  if (code !== 0 && !begun) process.stderr.write(`The tests did not begin. The editor said:\n${before.slice(-30).join('\n')}\n`);
  for (const close of closers.reverse()) await Promise.resolve(close()).catch(() => undefined);
  process.exit(code);
}

/** `--name=value`, `--name value` for the two-word flags VS Code has, `--name`, and the workspace. */
function parse(args) {
  const result = { workspace: null };
  for (const arg of args) {
    if (!arg.startsWith('--')) {
      result.workspace ??= path.resolve(arg);
      continue;
    }
    const [name, ...value] = arg.slice(2).split('=');
    result[name] = value.length > 0 ? value.join('=') : '';
  }
  for (const name of ['extensionDevelopmentPath', 'extensionTestsPath', 'user-data-dir', 'extensions-dir']) {
    if (result[name]) result[name] = path.resolve(result[name]);
  }
  return result;
}
