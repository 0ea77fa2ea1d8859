// A sweep from the palette in a real workbench: the chart with its knee, and what it says in two sentences. The README's picture of it comes out of here.
import assert from 'node:assert/strict';
import path from 'node:path';
import { openWorkbench, root } from './workbench.mjs';

const takesPictures = process.env.FIRST_TOKEN_PICTURES === '1';

describe('a sweep from the palette', function () {
  this.timeout(180_000);
  let workbench;
  before(async () => {
    // A loose first-token limit keeps a busy machine's own delays out of the verdict.
    workbench = await openWorkbench({ settings: { 'firstToken.slo': { ttft: 500, tpot: 60 }, 'workbench.colorTheme': 'Default Dark Modern', 'window.title': 'First Token' } });
  });
  after(async () => {
    await workbench?.close();
  });

  it('finds out how many users the demo endpoint serves, and says what to choose', async () => {
    await workbench.command('First Token: Start Demo Endpoint');
    await workbench.command('First Token: Sweep');
    await workbench.answer('Quick');
    const frame = await workbench.panel('#scenario-title', 100_000);
    await frame.locator('.sentences p', { hasText: 'For batch' }).waitFor({ timeout: 100_000 });
    await frame.getByRole('button', { name: 'Run again' }).waitFor({ timeout: 100_000 });
    const rows = await frame.locator('section[aria-labelledby="scenario-title"] table tbody tr').count();
    assert.ok(rows >= 4, `${rows} steps`);
    await workbench.onlyPanel();
    await workbench.page.waitForTimeout(800);
    if (takesPictures) await workbench.screenshot(path.join(root, 'media/screenshots/sweep-dark.png'));
  });
});
