// Opens the product in an editor: desktop VS Code (or a sibling) where there is one, else VS Code's server for a browser. Ctrl-C ends it.
import { spawn, spawnSync } from 'node:child_process';
import { cpSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { root } from './install.mjs';

const desktops = ['code', 'codium', 'cursor', 'code-insiders'];

/** A desktop editor that can show a window here, or null. */
function desktop() {
  if (process.platform === 'linux' && !process.env.DISPLAY && !process.env.WAYLAND_DISPLAY) return null;
  return desktops.find((name) => !spawnSync(name, ['--version'], { stdio: 'ignore', shell: process.platform === 'win32' }).error) ?? null;
}

/** Opens a copy of the sample workspace with the demo probe running in the panel. Resolves when it was closed or interrupted. */
export async function openEditor() {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-start-'));
  const workspace = path.join(folder, 'sample prompts');
  cpSync(path.join(root, 'test', 'fixtures', 'workspace'), workspace, { recursive: true });
  const interrupted = new Promise((resolve) => process.once('SIGINT', resolve).once('SIGTERM', resolve));
  // Read by the extension under development only: it runs the demo as soon as it starts, so that the panel is filled.
  const env = { ...process.env, FIRST_TOKEN_TRY_DEMO: '1' };
  try {
    const name = desktop();
    if (name !== null) {
      console.log(`Opening ${name} on the sample prompts, with the demo probe running …`);
      const child = spawn(name, ['--new-window', '--wait', `--extensionDevelopmentPath=${root}`, `--user-data-dir=${path.join(folder, 'user')}`, `--extensions-dir=${path.join(folder, 'extensions')}`, '--skip-welcome', '--skip-release-notes', '--disable-workspace-trust', workspace], { stdio: 'inherit', env, shell: process.platform === 'win32' });
      await Promise.race([new Promise((resolve) => child.once('exit', resolve)), interrupted]);
      child.kill();
      return;
    }
    const { startServer, workbenchUrl } = await import('./editorServer.mjs');
    console.log('No desktop VS Code here, so VS Code’s own server for the browser is used (installed once into the cache, about 300 MB) …');
    // Opening JSON starts the built-in npm extension, which shows an error without the ripgrep that is not installed here: JSON with comments does not.
    const settings = { 'files.associations': { '*.json': 'jsonc' } };
    const server = await startServer({ editor: 'minimum', dataFolder: path.join(folder, 'server'), settings, env: { FIRST_TOKEN_TRY_DEMO: '1' } });
    console.log(`\nOpen this address in a browser; the panel opens with the demo probe running:\n\n${workbenchUrl(server, { folder: workspace, extensionDevelopmentPath: root, openFile: path.join(workspace, 'support.prompty') })}\n\nCtrl-C ends it.`);
    await interrupted;
    await server.stop();
  } finally {
    rmSync(folder, { recursive: true, force: true, maxRetries: 5 });
  }
}
