// The product as users get it: the VSIX in a real workbench, driven by keyboard; pictures for the README come out of it.
import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { openWorkbench, root } from './workbench.mjs';

const require = createRequire(import.meta.url);
const { isReportProblem, parseReport } = require('../../src/report/report.ts');
const { percentileRows } = require('../../src/report/table.ts');
const { startSimulator } = require('../../src/simulator/start.ts');

const pictures = path.join(root, 'media/screenshots');
/** Pictures go into the checkout only when asked for (FIRST_TOKEN_PICTURES=1), on one editor only, so that a test run leaves it as it was. */
const editor = process.env.FIRST_TOKEN_EDITOR ?? 'minimum';
const takesPictures = editor === 'minimum' && process.env.FIRST_TOKEN_PICTURES === '1';
const vsce = path.join(root, 'node_modules/@vscode/vsce/vsce');

/** Runs vsce; its output, or an error with it. */
function runVsce(...args) {
  const { status, stdout, stderr } = spawnSync(process.execPath, [vsce, ...args], { cwd: root, encoding: 'utf8' });
  assert.equal(status, 0, `vsce ${args[0]}: ${stdout}\n${stderr}`);
  return stdout;
}

/** A server like a small deployment: 13 ms a token, reasoning first, and now and then a stall. */
const server = ['--step-overhead', '10', '--reasoning', '24', '--fault', 'share:0.15:stall:40:420', '--seed', '7'];
const prompt = `You are the support assistant of a small boat yard. Answer in a friendly tone, in at most five sentences,
and only from the handbook below. If the handbook does not say, tell the customer to call us.

${Array.from({ length: 24 }, (_, line) => `Handbook ${line + 1}: the mast is stepped before the boom is rigged, and the shrouds are tightened by hand first.`).join('\n')}

Customer: how do I rig the boom?
`;

describe('the packaged extension', function () {
  const temporary = mkdtempSync(path.join(os.tmpdir(), 'first-token-vsix-'));
  const vsix = path.join(temporary, 'first-token.vsix');
  let workbench;
  let simulator;
  let slower;

  before(async () => {
    runVsce('package', '--no-dependencies', '--allow-missing-repository', '--no-rewrite-relative-links', '--skip-license', '--out', vsix);
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: server });
    slower = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: [...server, '--gpu', 'a100'] });
    const workspace = path.join(temporary, 'workspace');
    mkdirSync(workspace);
    writeFileSync(path.join(workspace, 'support.prompt.md'), prompt);
    workbench = await openWorkbench({
      editor,
      vsix,
      folder: workspace,
      settings: {
        'firstToken.probe': { requests: 12, maxTokens: 96 },
        'workbench.colorTheme': 'Default Dark Modern',
        'editor.minimap.enabled': false,
        'window.title': 'First Token',
      },
    });
  });

  after(async () => {
    await workbench?.close();
    await simulator?.stop();
    await slower?.stop();
    rmSync(temporary, { recursive: true, force: true });
  });

  /** The stored reports, newest first. */
  function reports() {
    const names = readdirSync(workbench.data, { recursive: true, encoding: 'utf8' }).filter((name) => name.endsWith('.first-token.jsonl'));
    return names
      .map((name) => parseReport(readFileSync(path.join(workbench.data, name), 'utf8')))
      .filter((report) => !isReportProblem(report))
      .sort((a, b) => b.createdAt.localeCompare(a.createdAt));
  }

  const text = (frame, selector) => frame.locator(selector).allInnerTexts();
  /** Waits until the panel shows the end of a run of this prompt. */
  async function ended(frame, promptName) {
    const verdict = frame.locator('section.verdict', { hasText: promptName });
    await verdict.waitFor({ timeout: 60_000 }).catch(async (error) => {
      throw new Error(`${error.message}\nThe panel shows: ${(await frame.locator('#panel').innerText({ timeout: 1000 }).catch(String)).slice(0, 400)}`);
    });
    await frame.getByRole('button', { name: 'Compare…' }).waitFor({ state: 'visible' });
  }

  it('holds the listed files and no others', () => {
    const listed = runVsce('ls', '--no-dependencies').trim().split('\n').sort();
    assert.deepEqual(listed, readFileSync(path.join(root, 'test/ui/vsix-files.txt'), 'utf8').trim().split('\n').sort());
  });

  it('takes two clicks from the side bar to the first verdict', async () => {
    const { page } = workbench;
    const begun = process.hrtime.bigint();
    await page.locator('.activitybar [aria-label^="First Token"]').first().click();
    await page.locator('.welcome-view').getByRole('button', { name: 'Try the Demo' }).click();
    const frame = await workbench.panel();
    await ended(frame, 'built-in');
    await frame.locator('.verdict-sentence', { hasText: 'chat SLO' }).waitFor();
    const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
    console.log(`      first verdict after ${seconds.toFixed(1)} s`);
  });

  /** Adds an endpoint and waits until it is the selected one. */
  async function addEndpoint(url, name) {
    await workbench.command('First Token: Add Endpoint…');
    await workbench.enter('URL of the endpoint', `${url}/v1`);
    await workbench.answer('llama-3.1-8b');
    await workbench.enter('A name for it', name);
    await workbench.answer('Done');
    await workbench.page.locator('.statusbar', { hasText: name }).waitFor({ timeout: 10_000 });
  }

  it('probes the prompt on a slower server first, to compare with later', async () => {
    await addEndpoint(slower.url, 'a100');
    await workbench.openFile('support.prompt.md');
    await workbench.command('First Token: Probe Prompt');
    await workbench.page.locator('.tab', { hasText: 'First Token: a100' }).first().waitFor({ timeout: 30_000 });
    await ended(await workbench.panel(), 'support.prompt.md');
  });

  it('adds an endpoint by keyboard: URL, model from its list, name', async () => {
    await addEndpoint(simulator.url, 'h200');
  });

  it('probes a prompt by keyboard; the table says what the report file says', async () => {
    const { page } = workbench;
    await workbench.openFile('support.prompt.md');
    const before = reports().length;
    await workbench.command('First Token: Probe Prompt');
    await page.locator('.tab', { hasText: 'First Token: h200' }).first().waitFor({ timeout: 30_000 });
    const frame = await workbench.panel();
    await ended(frame, 'support.prompt.md');
    const all = reports();
    assert.equal(all.length, before + 1);
    const [report] = all;
    assert.equal(report.plan.prompt.name, 'support.prompt.md');
    const shown = await frame.locator('table.percentiles tbody tr').evaluateAll((rows) => rows.map((row) => [...row.querySelectorAll('th, td')].map((cell) => cell.querySelector('span:not(.interval):not(.sr-only)')?.textContent ?? cell.textContent)));
    const expected = percentileRows(report).map((row) => ({ label: row.label, cells: row.cells.map((cell) => row.mark + cell.text), n: row.n }));
    assert.equal(shown.length, expected.length);
    for (const [index, { label, cells }] of expected.entries()) {
      assert.ok(shown[index][0].includes(label), `${shown[index][0]} is ${label}`);
      assert.deepEqual(shown[index].slice(1, 1 + cells.length), cells, label);
    }
    const p50 = Number(shown[0][1].replaceAll(/[^\d.]/g, ''));
    assert.ok(Math.abs(p50 - report.summary.ttft.p50) <= 0.005 * p50 + 0.005, `${p50} is ${report.summary.ttft.p50}`);
  });

  it('shows the text and the raw frame behind a tick and behind a gap', async () => {
    const frame = await workbench.panel();
    await frame.locator('.stage').first().focus();
    await workbench.page.keyboard.press('ArrowRight');
    await workbench.page.keyboard.press('Control+ArrowRight');
    const current = frame.locator('.frames .frame.current pre');
    await current.waitFor({ timeout: 10_000 });
    assert.match(await current.innerText(), /"choices"/);
    const spoken = (await text(frame, '.reading')).join('');
    assert.match(spoken, /ms/);
    const { x, y, width } = await frame.locator('.stage canvas').first().boundingBox();
    await workbench.page.mouse.click(x + width * 0.5, y + 40);
    await current.waitFor();
    assert.match(await current.innerText(), /data: |choices/);
  });

  it('is a picture in dark and in light', async () => {
    const frame = await workbench.panel();
    if (takesPictures) await workbench.screenshot(path.join(pictures, 'editor-dark.png'));
    await workbench.onlyPanel();
    await workbench.page.setViewportSize({ width: 1280, height: 1240 });
    for (const theme of ['dark', 'light']) {
      if (theme === 'light') await workbench.toggleTheme();
      await frame.locator(`body.vscode-${theme}`).waitFor({ state: 'attached' });
      await frame.evaluate(() => globalThis.scrollTo(0, 0));
      await workbench.page.waitForTimeout(500);
      if (takesPictures) await workbench.screenshot(path.join(pictures, `panel-${theme}.png`));
    }
    await workbench.toggleTheme();
    await workbench.page.setViewportSize({ width: 1280, height: 900 });
  });

  it('compares two reports', async () => {
    await workbench.command('First Token: Compare Reports…');
    await workbench.answer('a100');
    const frame = await workbench.panel('.compare-heads');
    await frame.locator('.compare-sentence').waitFor({ timeout: 15_000 });
    // One prompt on two servers: what differs is the server's doing.
    const heads = await text(frame, '.compare-heads > div');
    assert.deepEqual(heads.map((head) => head.includes('support.prompt.md')), [true, true], heads.join(' '));
    assert.match(heads.join(' '), /h200.*a100/s);
    const pace = await frame.locator('section.first table tbody tr', { hasText: 'TPOT' }).first().innerText();
    assert.match(pace, /A is [\d.]+ ms faster/);
    assert.ok((await frame.locator('section.first table tbody tr').count()) > 0);
    if (takesPictures) await workbench.screenshot(path.join(pictures, 'compare-dark.png'));
    await workbench.page.locator('.tab', { hasText: 'First Token: h200' }).first().click();
  });

  it('fits a narrow column', async () => {
    await workbench.page.setViewportSize({ width: 720, height: 900 });
    const frame = await workbench.panel();
    await workbench.page.waitForTimeout(500);
    const { content, column } = await frame.evaluate(() => ({ content: document.documentElement.scrollWidth, column: document.documentElement.clientWidth }));
    assert.ok(column < 720, `${column} px`);
    assert.ok(content <= column + 1, `content of ${content} px in a column of ${column} px`);
    if (takesPictures) await workbench.screenshot(path.join(pictures, 'panel-narrow.png'));
    await workbench.page.setViewportSize({ width: 1280, height: 900 });
  });

  it('has nothing serious for axe to find', async () => {
    const frame = await workbench.panel();
    await frame.evaluate(readFileSync(require.resolve('axe-core/axe.min.js'), 'utf8'));
    const { violations } = await frame.evaluate(() => globalThis.axe.run(document, { resultTypes: ['violations'] }));
    const serious = violations.filter(({ impact }) => impact === 'serious' || impact === 'critical');
    assert.deepEqual(serious.map(({ id, nodes }) => `${id}: ${nodes.map(({ html }) => html).join(' ').slice(0, 300)}`), []);
  });

  it('asks for nothing that its content security policy refuses', () => {
    assert.deepEqual(workbench.refused, []);
  });

  it('comes back after a reload, and says that the text is gone', async () => {
    const frame = await workbench.panel();
    const before = await text(frame, '.verdict-sentence');
    await workbench.reload(reports()[0].id, 'h200 and a100');
    // Which tab was in front may have been written down before it changed.
    await workbench.page.locator('.tab', { hasText: 'First Token: h200' }).first().click();
    const restored = await workbench.panel();
    await ended(restored, 'support.prompt.md');
    assert.deepEqual(await text(restored, '.verdict-sentence'), before);
    await restored.locator('.answer-text', { hasText: 'not kept' }).waitFor({ timeout: 10_000 });
    await workbench.page.locator('.tab', { hasText: 'h200 and a100' }).first().click();
    const compared = await workbench.panel('.compare-heads');
    await compared.locator('.compare-sentence').waitFor({ timeout: 15_000 });
  });
});
