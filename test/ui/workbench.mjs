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
export async function openWorkbench({ editor = 'minimum', vsix = null, folder = null, settings = {}, viewport = { width: 1280, height: 900 }, openFile = null, env = {} } = {}) {
  const data = mkdtempSync(path.join(os.tmpdir(), 'first-token-ui-'));
  const workspace = folder ?? path.join(data, 'workspace');
  mkdirSync(workspace, { recursive: true });
  const server = await startServer({ editor, dataFolder: path.join(data, 'server'), vsix, settings, env });
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
    /** What a content security policy refused. */
    this.refused = [];
    page.on('console', (message) => {
      if (/content security policy/i.test(message.text())) this.refused.push(message.text());
    });
  }

  /** Runs a command of the palette by its title. */
  async command(title) {
    // The palette offers a command only when its extension is known; a fresh profile may need a moment.
    for (let attempt = 0; ; attempt += 1) {
      await this.#open('F1');
      const row = await this.#type(`>${title}`, title);
      if (row) {
        await this.page.keyboard.press('Enter');
        return;
      }
      await this.page.keyboard.press('Escape');
      if (attempt >= 10) throw new Error(`The palette does not offer "${title}"`);
    }
  }

  /** Chooses the first entry with this text in the quick pick that is open. */
  async answer(text) {
    // What is open at first may still be the question before, which takes the text with it when it closes.
    for (let attempt = 0; attempt < 5; attempt += 1) {
      await this.page.locator('.quick-input-widget').waitFor({ state: 'visible' });
      if (await this.#type(text, text)) {
        await this.page.keyboard.press('Enter');
        return;
      }
    }
    throw new Error(`There is no "${text}" to choose`);
  }

  /** Fills the input box that asks for this, and accepts. */
  async enter(prompt, text) {
    const box = this.page.locator('.quick-input-widget', { hasText: prompt });
    await box.waitFor({ state: 'visible', timeout: 20_000 });
    await box.locator('input.input').fill(text);
    await this.page.keyboard.press('Enter');
  }

  /** Opens a file at the top of the workspace from the explorer (going to a file by name needs a search tool this host lacks). */
  async openFile(name) {
    await this.command('View: Show Explorer');
    const row = this.page.locator('.explorer-folders-view .monaco-list-row', { hasText: name }).first();
    await row.click();
    await this.page.keyboard.press('Enter');
    await this.page.locator('.tab', { hasText: name }).first().waitFor();
  }

  /** Presses a key until the quick input is there. */
  async #open(key) {
    const input = this.page.locator('.quick-input-widget input.input');
    for (let attempt = 0; attempt < 10; attempt += 1) {
      await this.page.keyboard.press(key);
      if (await input.waitFor({ state: 'visible', timeout: 3000 }).then(() => true, () => false)) return;
    }
    throw new Error(`${key} opens nothing`);
  }

  /** Types into the quick input; true when its first entry then has this text. */
  async #type(text, expected) {
    const input = this.page.locator('.quick-input-widget input.input');
    // What the last command did may take the focus, which closes the input.
    if (!(await input.fill(text, { timeout: 3000 }).then(() => true, () => false))) return false;
    const first = this.page.locator('.quick-input-list .monaco-list-row').first().filter({ hasText: expected });
    return await first.waitFor({ state: 'visible', timeout: 5000 }).then(() => true, () => false);
  }

  /** The frame of the visible report panel; a webview is two frames deep. `selector`: something that must be in it, and shown. */
  async panel(selector = '#panel', limit = 30_000) {
    let found = null;
    const shown = (wanted) => {
      const element = document.querySelector(wanted);
      return document.getElementById('panel') !== null && element !== null && element.checkVisibility() && document.documentElement.clientWidth > 0;
    };
    await until(
      async () => {
        for (const frame of this.page.frames()) {
          if (await frame.evaluate(shown, selector).catch(() => false)) found = frame;
        }
        return found !== null;
      },
      limit,
      `A report panel with ${selector}`,
    );
    return found;
  }

  /** Leaves the report panel alone in the editor area, without the side bar. */
  async onlyPanel() {
    await this.command('View: Close Other Editors in Group').catch(() => undefined);
    await this.command('View: Maximize Editor Group and Hide Side Bars');
  }

  /** From dark to light and back. */
  async toggleTheme() {
    await this.command('Preferences: Toggle between Light/Dark Themes');
  }

  /** Reloads the page once the workbench has written down what it shows, which it does every few seconds: `shown` are texts of that state. */
  async reload(...shown) {
    await until(async () => await this.page.evaluate(isWrittenDown, shown), 60_000, `A saved state with ${shown.join(' and ')}`);
    await this.page.reload();
    await this.page.waitForSelector('.monaco-workbench .part.statusbar', { timeout: 60_000 });
  }

  async screenshot(file) {
    mkdirSync(path.dirname(file), { recursive: true });
    await this.page.screenshot({ path: file });
  }
}

/** Runs in the page: whether a value in the workbench's databases holds all these texts. */
async function isWrittenDown(texts) {
  const answer = (request) => new Promise((resolve, reject) => {
    request.onsuccess = () => resolve(request.result);
    request.onerror = () => reject(request.error);
  });
  for (const { name } of await indexedDB.databases()) {
    const database = await answer(indexedDB.open(name));
    try {
      for (const store of database.objectStoreNames) {
        const values = await answer(database.transaction(store).objectStore(store).getAll());
        if (values.some((value) => typeof value === 'string' && texts.every((text) => value.includes(text)))) return true;
      }
    } finally {
      database.close();
    }
  }
  return false;
}
