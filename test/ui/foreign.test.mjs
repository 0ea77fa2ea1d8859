// Results of other tools in the panel. Needs Chromium; skipped by name without.
import axe from 'axe-core';
import assert from 'node:assert/strict';
import { build } from 'esbuild';
import { readdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { buildPanel, findChromium, launch, openPanel } from './panelHarness.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const folder = path.join(root, 'test/fixtures/foreign');
const browserPath = findChromium();

describe(`results of other tools${browserPath ? '' : ' (skipped: no Chromium; set CHROMIUM or install Debian’s chromium)'}`, function () {
  this.timeout(60_000);
  let browser;
  let bundle;
  let readForeign;

  before(async function () {
    if (!browserPath) this.skip();
    const outfile = path.join(os.tmpdir(), `first-token-foreign-${process.pid}.cjs`);
    await build({ entryPoints: [path.join(root, 'src/report/exchange/foreign.ts')], bundle: true, platform: 'node', format: 'cjs', outfile, logLevel: 'warning' });
    ({ readForeign } = createRequire(import.meta.url)(outfile));
    [browser, bundle] = await Promise.all([launch(), buildPanel()]);
  });
  after(() => browser?.close());

  for (const file of readdirSync(folder).filter((name) => name.includes('synthetic'))) {
    it(`show each number of ${file} beside the tool’s own definition`, async () => {
      const report = readForeign(readFileSync(path.join(folder, file), 'utf8'));
      const panel = await openPanel(browser, bundle, { width: 380 });
      await panel.post({ type: 'foreign', report });
      await panel.settle();
      assert.match(await panel.page.getByRole('status').first().textContent(), new RegExp(`^A result of ${report.tool}`));
      assert.equal(await panel.page.locator('table:has(th.defined) thead th:first-child').first().textContent(), `${report.tool}, ms`);
      for (const run of report.runs) for (const { name, definition } of run.metrics) assert.ok((await panel.page.locator('th.defined').allTextContents()).includes(`${name}${definition}`), name);
      assert.equal(await panel.page.evaluate(() => document.documentElement.scrollWidth <= document.documentElement.clientWidth), true);
      await panel.page.evaluate(axe.source);
      const { violations } = await panel.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
      assert.deepEqual(violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => node.html).join(' ')}`), []);
      assert.deepEqual(panel.problems, []);
      await panel.close();
    });
  }
});
