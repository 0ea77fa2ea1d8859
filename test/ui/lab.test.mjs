// The lab page alone, driven as a user would. Needs Chromium; skipped by name without.
import axe from 'axe-core';
import assert from 'node:assert/strict';
import { answerLab, labScenes, loadLab } from './labScenes.mjs';
import { buildPanel, findChromium, launch, openPanel } from './panelHarness.mjs';
import { themes } from './themes.mjs';

const browserPath = findChromium();

describe(`lab page${browserPath ? '' : ' (skipped: no Chromium; set CHROMIUM or install Debian’s chromium)'}`, function () {
  this.timeout(60_000);
  let browser;
  let bundle;
  let lab;
  let panel;

  before(async function () {
    if (!browserPath) this.skip();
    [browser, bundle, lab] = await Promise.all([launch(), buildPanel('lab'), loadLab()]);
  });
  afterEach(async () => {
    const problems = panel?.problems ?? [];
    await panel?.close();
    panel = undefined;
    assert.deepEqual(problems, [], 'errors or blocked resources in the page');
  });
  after(() => browser?.close());

  const open = async (page = {}) => {
    panel = await openPanel(browser, bundle, page);
    await answerLab(panel, lab);
  };
  const last = async (type) => (await panel.posted()).filter((message) => message.type === type).at(-1);

  it('runs the first lesson at once and says the difference', async () => {
    await open();
    assert.deepEqual((await last('labRun')).a, ['--policy', 'request-level']);
    assert.match(await panel.page.locator('.verdict-sentence').textContent(), /^B is better: first token/);
    assert.equal(await panel.page.locator('.timeline').count(), 2);
  });

  it('runs each lesson when it is chosen, and my own settings when I ask', async () => {
    await open();
    for (const { id, title } of lab.lessons) {
      await panel.page.getByLabel('Compare').selectOption(id);
      await answerLab(panel, lab);
      assert.match(await panel.page.locator('.verdict-sentence').textContent(), /instead of/, title);
    }
    await panel.page.getByRole('group', { name: 'Server A' }).getByLabel('Policy').selectOption('timed');
    assert.equal(await panel.page.getByLabel('Compare').inputValue(), 'own');
    await panel.page.getByRole('group', { name: 'Server A' }).getByLabel('Batch', { exact: true }).fill('4');
    await panel.page.keyboard.press('Enter');
    assert.deepEqual((await last('labRun')).a.slice(0, 4), ['--policy', 'timed', '--batch-size', '4']);
  });

  it('is worked by keyboard alone, from the choice to the time line', async () => {
    await open();
    await panel.page.getByLabel('Compare').focus();
    await panel.page.keyboard.press('ArrowDown');
    await answerLab(panel, lab);
    assert.equal(await panel.page.getByLabel('Compare').inputValue(), lab.lessons[1].id);
    await panel.page.locator('.stage').nth(1).focus();
    await panel.page.keyboard.press('ArrowDown');
    await panel.settle();
    assert.match(await panel.page.locator('.reading').nth(1).textContent(), /^Request 2 · /);
  });

  it('says beside a server what is wrong with it, and hides what belongs to other settings', async () => {
    panel = await openPanel(browser, bundle, {});
    await labScenes.problem.play(panel, lab);
    assert.match(await panel.page.getByRole('group', { name: 'Server A' }).getByRole('alert').textContent(), /does not fit/);
    assert.equal(await panel.page.locator('.verdict-sentence').isVisible(), false);
  });

  it('hands the flags over: copied, and to the demo endpoint', async () => {
    await open();
    await panel.page.getByRole('button', { name: 'Copy the command (A)' }).click();
    assert.deepEqual(await last('copy'), { type: 'copy', text: 'first-token simulate --policy request-level' });
    await panel.page.getByRole('button', { name: 'Start it as the demo endpoint, in real time (A)' }).click();
    assert.deepEqual(await last('labServe'), { type: 'labServe', side: 'A', flags: ['--policy', 'request-level'] });
    await panel.post({ type: 'labServes', side: 'A', url: 'http://127.0.0.1:7' });
    await panel.settle();
    assert.match(await panel.page.getByRole('group', { name: 'Server A' }).textContent(), /demo endpoint at http:\/\/127\.0\.0\.1:7/);
  });

  it('keeps its settings over a reload and forgets a state that makes no sense', async () => {
    await open();
    await panel.page.getByLabel('Compare').selectOption('fair');
    const state = await panel.kept();
    await panel.close();
    await open({ state });
    assert.equal(await panel.page.getByLabel('Compare').inputValue(), 'fair');
    assert.equal((await last('labRun')).load.tenants, 'heavy-light');
    await panel.close();
    await open({ state: { lesson: 'fair', a: 3, b: null, load: {} } });
    assert.equal(await panel.page.getByLabel('Compare').inputValue(), lab.lessons[0].id);
  });

  for (const theme of Object.keys(themes)) {
    it(`has no accessibility violation (${theme})`, async () => {
      await open({ theme, width: 900 });
      await panel.page.evaluate(axe.source);
      const { violations } = await panel.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`), []);
    });
  }

  it('fits a narrow column without scrolling sideways', async () => {
    await open({ width: 380 });
    assert.equal(await panel.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true);
  });
});
