// What `npm start` shows: the demo probe in the panel, and behind it the walkthrough with its steps ticked.
import assert from 'node:assert/strict';
import { openWorkbench } from './workbench.mjs';

describe('what npm start opens', () => {
  let workbench;

  before(async () => {
    workbench = await openWorkbench({ editor: process.env.FIRST_TOKEN_EDITOR ?? 'minimum', env: { FIRST_TOKEN_TRY_DEMO: '1' } });
  });
  after(async () => {
    await workbench?.close();
  });

  it('has the report in front and every step of the walkthrough done', async () => {
    const { page } = workbench;
    const frame = await workbench.panel('#panel', 60_000);
    await frame.locator('.verdict-sentence', { hasText: 'chat SLO' }).waitFor({ timeout: 60_000 });
    await page.locator('.tab', { hasText: /Walkthrough|Welcome/ }).first().click();
    await page.locator('.getting-started-step').first().waitFor();
    const steps = () => page.locator('.getting-started-step').evaluateAll((all) => all.map((step) => [step.getAttribute('data-step-id').split('#').at(-1), step.querySelector('.codicon').classList.contains('complete')]));
    for (let k = 0; k < 20 && (await steps()).some(([, done]) => !done); k += 1) await page.waitForTimeout(500);
    assert.deepEqual(await steps(), [['demo', true], ['probe', true], ['read', true]]);
  });
});
