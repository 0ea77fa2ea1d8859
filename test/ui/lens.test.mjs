// The prefix-cache lens in a real workbench, by keyboard: see it, fix it with a preview, prove it. The README's picture of it comes out of here.
import assert from 'node:assert/strict';
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { openWorkbench, root } from './workbench.mjs';

const require = createRequire(import.meta.url);
const { startSimulator } = require('../../src/simulator/start.ts');

const editor = process.env.FIRST_TOKEN_EDITOR ?? 'minimum';
const takesPictures = editor === 'minimum' && process.env.FIRST_TOKEN_PICTURES === '1';

describe('the prefix-cache lens in the workbench', function () {
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'first-token-lens-'));
  const workspace = path.join(temporary, 'workspace');
  let workbench;
  let simulator;

  before(async () => {
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--step-overhead', '4'] });
    cpSync(path.join(root, 'test/fixtures/workspace'), workspace, { recursive: true });
    rmSync(path.join(workspace, '.vscode'), { recursive: true, force: true });
    workbench = await openWorkbench({
      editor,
      folder: workspace,
      viewport: { width: 1280, height: 900 },
      settings: {
        'firstToken.endpoints': [{ name: 'h200', url: `${simulator.url}/v1`, model: 'llama-3.1-8b' }],
        // Cold, because a warm answer does not tell what a prompt token costs.
        'firstToken.probe': { requests: 5, maxTokens: 16, cache: 'cold' },
        // The last run's numbers would push the cache lens out of the picture.
        'firstToken.lens': { result: false },
        'workbench.colorTheme': 'Default Dark Modern',
        'editor.minimap.enabled': false,
        'window.title': 'First Token',
        'workbench.tips.enabled': false,
      },
    });
  });

  after(async () => {
    await workbench?.close();
    await simulator?.stop();
    rmSync(temporary, { recursive: true, force: true });
  });

  afterEach(async function () {
    if (this.currentTest.state === 'failed') await workbench.screenshot(path.join(os.tmpdir(), `first-token-lens-${this.currentTest.title.split(' ', 1)[0]}.png`));
  });

  const lens = (text) => workbench.page.locator('.codelens-decoration', { hasText: text }).first();

  it('says where the reusable prefix of a template ends, with a line and a warning there', async () => {
    const { page } = workbench;
    await workbench.command('First Token: Select Endpoint');
    await workbench.answer('h200');
    await workbench.openFile('support.prompty');
    await lens('Cache: nothing of').waitFor({ timeout: 30_000 });
    await lens('computed again').waitFor();
    // The endpoint's own count takes the place of the estimate.
    await lens('nothing of 424 tokens on vLLM').waitFor({ timeout: 30_000 });
    const shown = (await page.locator('.codelens-decoration').allInnerTexts()).map((text) => text.replaceAll('\u00a0', ' ')).join('\n');
    assert.match(shown, /ends at line 10: \{\{current_time\}\}/);
    assert.match(shown, /Cache: nothing of 424 tokens on vLLM/);
    assert.match(shown, /Prove/);
    assert.match(shown, /Rule: vLLM/);
    await page.locator('.squiggly-warning').first().waitFor();
  });

  it('probes once, so that the breaker has its milliseconds; then it is a picture', async () => {
    const { page } = workbench;
    await workbench.command('First Token: Probe Prompt');
    await lens('per request').waitFor({ timeout: 90_000 });
    await page.locator('.tab', { hasText: 'support.prompty' }).first().click();
    await workbench.command('View: Maximize Editor Group and Hide Side Bars');
    await workbench.command('View: Focus Problems');
    await workbench.command('First Token: Go to the End of the Reusable Prefix');
    await page.waitForTimeout(800);
    if (takesPictures) await workbench.screenshot(path.join(root, 'media/screenshots/lens-dark.png'));
  });

  it('fixes it by keyboard: the quick fix shows what it moves before it does', async () => {
    const { page } = workbench;
    await workbench.command('First Token: Go to the End of the Reusable Prefix');
    const row = page.locator('.action-widget .monaco-list-row', { hasText: 'Move the line behind the static text' });
    // The palette gives the focus back a moment after it has closed.
    for (let attempt = 0; attempt < 10; attempt += 1) {
      await page.keyboard.press('Control+.');
      if (await row.waitFor({ timeout: 3000 }).then(() => true, () => false)) break;
      await page.keyboard.press('Escape');
    }
    await page.keyboard.press('Enter');
    await page.locator('.pane-header, .composite.title', { hasText: /refactor preview/i }).first().waitFor({ timeout: 15_000 });
    const rows = page.locator('.bulk-edit-panel .monaco-list-row');
    await rows.nth(1).waitFor();
    // Newer editors draw boxes of their own.
    const boxes = rows.locator('input[type="checkbox"], [role="checkbox"]');
    if ((process.env.FIRST_TOKEN_EDITOR ?? 'minimum') === 'minimum') assert.ok((await boxes.count()) > 0);
    for (const box of await boxes.all()) assert.ok(await box.isChecked(), 'no row is left unticked');
    await page.keyboard.press('Control+Enter');
    await lens('Cache: up to').waitFor({ timeout: 30_000 });
    await workbench.command('First Token: Go to the End of the Reusable Prefix');
    await page.waitForTimeout(500);
    await page.keyboard.press('Control+s');
    await page.locator('.tab.dirty').first().waitFor({ state: 'detached' });
    const saved = readFileSync(path.join(workspace, 'support.prompty'), 'utf8');
    assert.ok(saved.indexOf('{{current_time}}') > saved.indexOf('they are not sent by mail'), saved);
  });

  it('proves it by keyboard: served stands beside predicted', async () => {
    const { page } = workbench;
    // The panel opens beside the file, which fills the window since the picture.
    await workbench.command('View: Toggle Maximize Editor Group');
    await workbench.command('First Token: Prove Prefix Cache');
    const frame = await workbench.panel('.said-beside', 60_000);
    // The verdict of the panel is the proof's: no SLO, no goodput, cold and warm apart.
    await frame.locator('.verdict.met .verdict-sentence', { hasText: 'As predicted' }).waitFor({ timeout: 60_000 });
    await frame.locator('table.figures', { hasText: 'a later request' }).first().waitFor();
    const table = await frame.locator('.said-beside .scroll').first().evaluate((box) => ({ room: box.clientWidth, wide: box.scrollWidth }));
    assert.ok(table.wide <= table.room, `no column is cut beside an editor: ${JSON.stringify(table)}`);
    const above = async (upper, lower) => (await frame.locator(upper).first().boundingBox()).y < (await frame.locator(lower).first().boundingBox()).y;
    assert.ok(await above('.verdict-sentence', '.said-beside') && await above('.said-beside', '.percentiles') && await above('.percentiles', '.sentences:not(.first-said)'));
    assert.deepEqual(await frame.locator('table.percentiles tbody th').allInnerTexts(), ['TTFT, cold', 'TTFT, the same again', 'TTFT, a later request']);
    assert.doesNotMatch(await frame.locator('#panel').innerText(), /SLO|[Gg]oodput|This machine was the limit/);
    if (process.env.FIRST_TOKEN_SHOT) await workbench.screenshot(path.join(os.tmpdir(), 'first-token-proof.png'));
    await page.locator('.tab', { hasText: 'support.prompty' }).first().click();
    await page.waitForTimeout(500);
    await page.keyboard.press('Control+Home');
    await lens('Served:').waitFor({ timeout: 30_000 });
  });
});
