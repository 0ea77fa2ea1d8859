// A live workbench to drive by keyboard: VS Code's server and a headless browser, with the packaged extension or the checkout.
import { mkdirSync, mkdtempSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { launchBrowser } from '../host/browser.mjs';
import { removeFolder, startServer, until, workbenchUrl } from '../host/editorServer.mjs';

export const root = path.resolve(import.meta.dirname, '../..');

/**
 * Opens a workbench on `folder` (made when null). `vsix` installs a package, else the checkout is loaded as an extension under
 * development. Close it at the end.
 */
export async function openWorkbench({ editor = 'minimum', vsix = null, folder = null, settings = {}, viewport = { width: 1280, height: 900 }, openFile = null } = {}) {
  const data = mkdtempSync(path.join(os.tmpdir(), 'first-token-ui-'));
  const workspace = folder ?? path.join(data, 'workspace');
  mkdirSync(workspace, { recursive: true });
  const server = await startServer({ editor, dataFolder: path.join(data, 'server'), vsix, settings });
  const browser = await launchBrowser();
  const context = await browser.newContext({ viewport, permissions: ['clipboard-read', 'clipboard-write'] });
  const page = await context.newPage();
  await page.goto(workbenchUrl(server, { folder: workspace, extensionDevelopmentPath: vsix ? null : root, openFile: openFile && path.join(workspace, openFile) }));
  await page.waitForSelector('.monaco-workbench .part.statusbar', { timeout: 60_000 });
  return new Workbench({ page, workspace, data, stop: async () => {
    await browser.close();
    await server.stop();
    removeFolder(data);
  } });
}

/** What a user does with hands and eyes. */
export class Workbench {
  constructor({ page, workspace, data, stop }) {
    this.page = page;
    this.workspace = workspace;
    /** Everything the server keeps; reports are somewhere below. */
    this.data = data;
    this.close = stop;
  }

  /** Runs a command of the palette by its title. */
  async command(title) {
    const { page } = this;
    // The palette offers a command only when its extension is known; a fresh profile may need a moment.
    for (let attempt = 0; ; attempt += 1) {
      await page.keyboard.press('F1');
      const input = page.locator('.quick-input-widget input.input');
      await input.waitFor({ state: 'visible' });
      await input.fill(`>${title}`);
      const row = page.locator('.quick-input-list .monaco-list-row').filter({ hasText: title }).first();
      try {
        await row.waitFor({ state: 'visible', timeout: 5000 });
        await page.keyboard.press('Enter');
        return;
      } catch (error) {
        await page.keyboard.press('Escape');
        if (attempt >= 10) throw new Error(`The palette does not offer "${title}"`, { cause: error });
      }
    }
  }

  /** Types into the open quick pick or input box and accepts. */
  async answer(text) {
    const input = this.page.locator('.quick-input-widget input.input');
    await input.waitFor({ state: 'visible' });
    await input.fill(text);
    await this.page.waitForTimeout(300);
    await this.page.keyboard.press('Enter');
  }

  /** The frame of the report panel; a webview is two frames deep. */
  async panel(limit = 30_000) {
    let found = null;
    await until(
      async () => {
        for (const frame of this.page.frames()) {
          if (await frame.evaluate(() => document.getElementById('panel') !== null).catch(() => false)) found = frame;
        }
        return found !== null;
      },
      limit,
      'A report panel',
    );
    return found;
  }

  async theme(name) {
    await this.command('Preferences: Color Theme');
    await this.answer(name);
  }

  async screenshot(file) {
    mkdirSync(path.dirname(file), { recursive: true });
    await this.page.screenshot({ path: file });
  }
}
