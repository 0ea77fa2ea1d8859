// Runs the in-editor tests: `node test/editor/run.mjs [--editor minimum|newest]… [--suite NAME] [--grep TEXT]`. Needs dist/ built.
// Without --editor: the minimum, and the newest too when FIRST_TOKEN_EDITORS=all.
// Desktop VS Code where it can be downloaded and shown, else VS Code's server in a headless browser (editorHost.mjs).
import { runTests } from '@vscode/test-electron';
import { build } from 'esbuild';
import { spawn } from 'node:child_process';
import { mkdirSync, mkdtempSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { editors } from '../host/editorServer.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const browserHost = path.join(root, 'test/host/editorHost.mjs');

/** A suite is a folder of test/editor. `trusted: false` starts VS Code in Restricted Mode; `folder: false` without a workspace. */
const suites = [
  { name: 'main', trusted: true, folder: true },
  { name: 'noFolder', trusted: true, folder: false },
  {
    name: 'restricted',
    trusted: false,
    folder: true,
    settings: {
      'firstToken.endpoints': [{ name: 'theirs', url: 'https://theirs.example/v1' }],
      'firstToken.network': { proxy: 'http://theirs.example:8080' },
      'firstToken.probe': { requests: 9999 },
    },
  },
].filter(({ name }) => testFiles(name).length > 0);

/** Bundles and runs all suites on one editor of editorServer.mjs, to the end; throws when a test failed. */
export async function runEditorTests({ editor = 'minimum', grep = '', only = null } = {}) {
  await bundle();
  const failures = [];
  const desktop = await desktopExecutable(editors[editor].vscode);
  for (const suite of suites.filter(({ name }) => !only || only === name)) {
    console.log(`\n# Inside VS Code ${editors[editor].vscode}, ${suite.name} (${desktop ? 'desktop' : 'browser host'})`);
    try {
      await runSuite(suite, editor, desktop, grep, 'first');
    } catch {
      // A browser host on a busy machine now and then loses a beat: a suite that failed gets a fresh one, once, and says so.
      console.log(`  ${suite.name} failed: once more, in a fresh window`);
      await runSuite(suite, editor, desktop, grep, 'second').then(
        () => console.log(`  ${suite.name} passed only at the second try`),
        (error) => failures.push(`${suite.name}: ${error.message}`),
      );
    }
  }
  if (failures.length > 0) throw new Error(failures.join('\n'));
}

async function runSuite(suite, editor, desktop, grep, attempt) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-tests-'));
  const workspace = path.join(folder, 'workspace');
  mkdirSync(path.join(workspace, '.vscode'), { recursive: true });
  // The server's environment reaches the extension host in the browser; on the desktop test-electron's does. Both get the same.
  const env = { FIRST_TOKEN_SUITE: suite.name, FIRST_TOKEN_GREP: grep, FIRST_TOKEN_EDITOR: editor, FIRST_TOKEN_TRY: attempt };
  const settings = path.join(folder, 'user-data', 'User');
  mkdirSync(settings, { recursive: true });
  writeFileSync(path.join(settings, 'settings.json'), JSON.stringify({ 'security.workspace.trust.startupPrompt': 'never', 'security.workspace.trust.banner': 'never' }));
  if (suite.settings) writeFileSync(path.join(workspace, '.vscode/settings.json'), JSON.stringify(suite.settings));
  try {
    if (!suite.trusted) return await runUntrusted(desktop ?? browserHost, suite.folder ? workspace : null, folder, env);
    await runTests({
      vscodeExecutablePath: desktop ?? browserHost,
      extensionDevelopmentPath: root,
      extensionTestsPath: path.join(root, 'out/test/index.js'),
      launchArgs: [...(suite.folder ? [workspace] : []), `--user-data-dir=${path.join(folder, 'user-data')}`, `--extensions-dir=${path.join(folder, 'extensions')}`],
      extensionTestsEnv: env,
    });
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 3 });
  }
}

/** As runTests does it, without the flag that switches workspace trust off. */
async function runUntrusted(executable, workspace, folder, env) {
  const args = [
    ...(workspace ? [workspace] : []),
    ...['--no-sandbox', '--disable-gpu-sandbox', '--disable-updates', '--skip-welcome', '--skip-release-notes', '--no-cached-data'],
    `--extensionTestsPath=${path.join(root, 'out/test/index.js')}`,
    `--extensionDevelopmentPath=${root}`,
    `--user-data-dir=${path.join(folder, 'user-data')}`,
    `--extensions-dir=${path.join(folder, 'extensions')}`,
  ];
  const child = spawn(executable, args, { env: { ...process.env, ...env }, stdio: 'inherit' });
  const code = await new Promise((resolve, reject) => {
    child.on('error', reject);
    child.on('close', resolve);
  });
  if (code !== 0) throw new Error(`Test run failed with code ${code}`);
}

/** VS Code for the desktop, or null: FIRST_TOKEN_EDITOR_HOST (browser | desktop) decides, else whether there is a display and a download. */
async function desktopExecutable(version) {
  const wanted = process.env.FIRST_TOKEN_EDITOR_HOST ?? 'auto';
  const display = process.platform !== 'linux' || process.env.DISPLAY || process.env.WAYLAND_DISPLAY;
  if (wanted === 'browser' || (wanted === 'auto' && !display)) return null;
  try {
    const { downloadAndUnzipVSCode } = await import('@vscode/test-electron');
    return await downloadAndUnzipVSCode({ version, timeout: 30_000 });
  } catch (error) {
    if (wanted === 'desktop') throw error;
    console.log(`VS Code ${version} could not be downloaded (${error.message}); using the browser host.`);
    return null;
  }
}

function testFiles(suite) {
  try {
    return readdirSync(path.join(root, 'test/editor', suite)).filter((file) => file.endsWith('.test.ts'));
  } catch {
    return [];
  }
}

async function bundle() {
  const out = path.join(root, 'out/test');
  rmSync(out, { recursive: true, force: true });
  await build({
    entryPoints: [
      { in: path.join(root, 'test/editor/index.ts'), out: 'index' },
      ...suites.flatMap(({ name }) => testFiles(name).map((file) => ({ in: path.join(root, 'test/editor', name, file), out: `${name}/${file.slice(0, -3)}` }))),
    ],
    outdir: out,
    bundle: true,
    platform: 'node',
    format: 'cjs',
    target: 'node20',
    external: ['vscode', 'mocha'],
    sourcemap: 'inline',
    logLevel: 'warning',
  });
}

if (import.meta.url === pathToFileURL(process.argv[1]).href) {
  const values = (flag) => process.argv.flatMap((arg, index) => (arg === flag ? [process.argv[index + 1]] : []));
  const wanted = values('--editor');
  for (const editor of wanted.length > 0 ? wanted : process.env.FIRST_TOKEN_EDITORS === 'all' ? Object.keys(editors) : ['minimum']) {
    try {
      await runEditorTests({ editor, grep: values('--grep')[0] ?? '', only: values('--suite')[0] ?? null });
    } catch (error) {
      console.error(error.message);
      process.exitCode = 1;
    }
  }
}
