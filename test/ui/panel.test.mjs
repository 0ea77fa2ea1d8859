// The panel alone, driven as a user would: pointer, keyboard, screen reader's view, every theme and width. Needs Chromium; skipped by name without.
import axe from 'axe-core';
import assert from 'node:assert/strict';
import { answerQuestions, buildPanel, findChromium, finished, frameOf, launch, loadReport, makeFailures, makeSamples, openPanel, reportOf } from './panelHarness.mjs';
import { themes } from './themes.mjs';

const browserPath = findChromium();

describe(`panel${browserPath ? '' : ' (skipped: no Chromium; set CHROMIUM or install Debian’s chromium)'}`, function () {
  this.timeout(60_000);
  let browser;
  let bundle;
  let reports;
  let panel;

  before(async function () {
    if (!browserPath) this.skip();
    [browser, bundle, reports] = await Promise.all([launch(), buildPanel(), loadReport()]);
  });
  afterEach(async () => {
    const problems = panel?.problems ?? [];
    await panel?.close();
    panel = undefined;
    assert.deepEqual(problems, [], 'errors or blocked resources in the page');
  });
  after(() => browser?.close());

  async function show({ samples = makeSamples(), page = {}, extra = {}, over } = {}) {
    panel = await openPanel(browser, bundle, page);
    const report = reportOf(reports, samples, { over });
    await panel.post(finished(report, extra));
    await panel.settle();
    await answerQuestions(panel, report.samples);
    return report;
  }

  /** Where a time of a request lies on the screen, from the axis the chart shows (its whole span). */
  async function pointOf(report, sample, t, end = 8000) {
    const box = await panel.page.locator('.plot canvas').boundingBox();
    const row = report.samples.findIndex((candidate) => candidate.id === sample.id);
    const left = box.x + 112;
    return { x: left + ((t - sample.start) / end) * (box.x + box.width - 8 - left), y: box.y + 2 + row * 20 + 10 };
  }

  const reading = () => panel.page.locator('.reading').textContent();
  const last = async (type) => (await panel.posted()).filter((message) => message.type === type).at(-1);

  it('says it is ready with the report it showed before, and restores the choice and the zoom', async () => {
    const samples = makeSamples();
    const state = { reportId: 'r1', selection: { sampleId: 's4', deltaIndex: 5 }, zoom: { from: 500, to: 1500 }, axis: 'request', sort: 'total' };
    await show({ samples, page: { state } });
    assert.deepEqual((await panel.posted())[0], { type: 'ready', reportId: 'r1' });
    assert.match(await reading(), /^Request 3 · /);
    assert.deepEqual((await panel.kept()).zoom, state.zoom);
    assert.equal(await panel.page.locator('.timeline select').inputValue(), 'total');
    assert.deepEqual(await last('wantFrame'), { type: 'wantFrame', sampleId: 's4', deltaIndex: 5 });
  });

  it('remembers the two reports of a comparison, and asks for them when it is back', async () => {
    panel = await openPanel(browser, bundle, {});
    const [a, b] = ['a', 'b'].map((id, i) => reportOf(reports, makeSamples({ seed: i + 3 }), { id }));
    await panel.post({ type: 'compare', a, b });
    await panel.settle();
    const state = await panel.kept();
    assert.deepEqual([state.reportId, state.comparedWith], ['a', 'b']);
    await panel.close();
    panel = await openPanel(browser, bundle, { state });
    assert.deepEqual((await panel.posted())[0], { type: 'ready', reportId: 'a', comparedWith: 'b' });
    await panel.post(finished(a));
    await panel.settle();
    assert.deepEqual([(await panel.kept()).reportId, (await panel.kept()).comparedWith], ['a', null]);
  });

  it('forgets a state that makes no sense', async () => {
    await show({ page: { state: { comparedWith: {}, reportId: 7, selection: { sampleId: 3 }, zoom: { from: 9, to: 1 }, axis: 'x', sort: 'y' } } });
    assert.deepEqual((await panel.posted())[0], { type: 'ready', reportId: null });
    assert.match(await reading(), /^Request 1 · /);
  });

  it('shows the numbers of the report in the table, to the digit', async () => {
    const report = await show();
    const rows = await panel.page.locator('table.percentiles tbody tr.metric').evaluateAll((trs) => trs.map((tr) => [tr.querySelector('th').textContent, ...[...tr.querySelectorAll('td > span:first-child')].slice(0, 7).map((cell) => cell.textContent)]));
    const first = rows.find(([name]) => name.includes('TTFT'));
    const plain = (text) => Number(text.replace(/\u202F/g, ''));
    const { p50, p90, p95, p99, mean, min, max } = report.summary.ttft;
    assert.deepEqual(first.slice(1).map(plain), [p50, p90, p95, p99, mean, min, max].map((value) => Number(value.toPrecision(3))));
    assert.equal(rows.length, Object.values(report.summary).filter(Boolean).length);
  });

  it('paints all ticks of a kind in one colour, also on a screen whose pixels are no whole ones of the page', async () => {
    for (const scale of [1, 1.1, 1.25, 1.5, 2]) {
      const report = await show({ page: { theme: 'light', scale, width: 1001 } });
      const row = report.samples.findIndex(({ id }) => id === 's4');
      const strengths = await panel.page.evaluate((at) => {
        const canvas = document.querySelector('.plot canvas');
        const { data } = canvas.getContext('2d').getImageData(0, Math.round(at * devicePixelRatio), canvas.width, 1);
        const found = new Set();
        // Of the answer's blue only: every pixel of it is whole.
        for (let i = 0; i < data.length; i += 4) if (data[i] < 8 && data[i + 2] > 190 && data[i + 3] > 0) found.add(data[i + 3]);
        return [...found];
      }, 2 + row * 20 + 10);
      assert.deepEqual(strengths, [255], `at ${scale}`);
      await panel.close();
    }
    panel = undefined;
  });

  it('keeps no empty place for dots under a rate that has a row of its own', async () => {
    await show({ samples: makeSamples({ reasoning: 0 }), page: { width: 380 } });
    const gap = await panel.page.evaluate(() => {
      const bottom = Math.max(...[...document.querySelectorAll('.key-number :is(dt, span, dd.below)')].filter((part) => part.textContent.trim() !== '' && part.checkVisibility()).map((part) => part.getBoundingClientRect().bottom));
      return [...document.querySelectorAll('h2')].find((title) => title.textContent === 'Time line').getBoundingClientRect().top - bottom;
    });
    assert.ok(gap < 45, `${gap} px`);
  });

  it('reads a gap under the pointer, and opens its frame on a click', async () => {
    const report = await show();
    const stalled = report.samples.find((sample) => sample.id === 's4');
    const end = stalled.deltas.findIndex(([t], i) => i > 0 && t - stalled.deltas[i - 1][0] > 600);
    const middle = await pointOf(report, stalled, (stalled.deltas[end][0] + stalled.deltas[end - 1][0]) / 2);
    await panel.page.mouse.move(middle.x, middle.y);
    assert.match(await reading(), new RegExp(`^Request 3 · gap of 6\\d\\d ms before delta ${end + 1}`));
    await panel.page.mouse.click(middle.x, middle.y);
    assert.deepEqual(await last('wantFrame'), { type: 'wantFrame', sampleId: 's4', deltaIndex: end });
    await panel.post(frameOf(stalled, end));
    await panel.settle();
    await answerQuestions(panel, report.samples);
    assert.match(await panel.page.locator('.frame.current').textContent(), new RegExp(`frame ${end + 2}`));
    assert.match(await panel.page.evaluate(() => [...CSS.highlights.get('current-token')][0].toString()), /\S/);
  });

  it('links a word to its tick and frame, and a frame to its word', async () => {
    const report = await show();
    await panel.page.locator('.answer-text').scrollIntoViewIfNeeded();
    await panel.page.locator('.piece.text').first().waitFor();
    const spot = await panel.page.evaluate(() => {
      const range = new Range();
      const node = document.querySelector('.piece.text').firstChild;
      range.setStart(node, 1);
      range.setEnd(node, 2);
      const { x, y, width, height } = range.getBoundingClientRect();
      return { x: x + width / 2, y: y + height / 2 };
    });
    await panel.page.mouse.click(spot.x, spot.y);
    const asked = await last('wantFrame');
    assert.equal(asked.deltaIndex, 24, 'the first word behind 24 thoughts');
    await answerQuestions(panel, report.samples);
    await panel.page.getByRole('button', { name: 'frame 27' }).click();
    assert.equal((await last('wantFrame')).deltaIndex, 25);
    assert.match(await reading(), /delta 26 of/);
  });

  it('works by keyboard: between requests and tokens, to the frame and back, zoom and reset', async () => {
    const report = await show();
    const { keyboard } = panel.page;
    await panel.page.locator('.stage').focus();
    await keyboard.press('ArrowDown');
    assert.match(await reading(), /^Request 2/);
    await keyboard.press('Home');
    await keyboard.press('ArrowRight');
    assert.match(await reading(), /^Request 2 · .* delta 2 of/);
    await keyboard.press('Control+ArrowRight');
    assert.ok(Number(/gap ([\d.]+) ms/.exec(await reading())[1]) > report.summary.chunkGap.p99, await reading());
    await answerQuestions(panel, report.samples);
    await keyboard.press('Enter');
    assert.equal(await panel.page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Raw frames');
    await keyboard.press('Escape');
    assert.ok(await panel.page.evaluate(() => document.activeElement.classList.contains('stage')));
    await keyboard.press('+');
    assert.ok((await panel.kept()).zoom);
    await keyboard.press('0');
    assert.equal((await panel.kept()).zoom, null);
  });

  it('zooms with the wheel around the pointer, pans by dragging, resets by double click', async () => {
    const report = await show();
    const { mouse } = panel.page;
    const at = await pointOf(report, report.samples[4], report.samples[4].start + 2000);
    await mouse.move(at.x, at.y);
    await mouse.wheel(0, -600);
    await panel.settle();
    const zoomed = (await panel.kept()).zoom;
    assert.ok(Math.abs((2000 - zoomed.from) / (zoomed.to - zoomed.from) - 0.25) < 0.03, JSON.stringify(zoomed));
    await mouse.down();
    await mouse.move(at.x - 100, at.y, { steps: 4 });
    await mouse.up();
    const panned = (await panel.kept()).zoom;
    assert.ok(panned.from > zoomed.from && Math.abs(panned.to - panned.from - (zoomed.to - zoomed.from)) < 1);
    await mouse.dblclick(at.x, at.y);
    assert.equal((await panel.kept()).zoom, null);
  });

  it('lets the page scroll over a time line that is zoomed out', async () => {
    await show();
    const box = await panel.page.locator('.plot').boundingBox();
    await panel.page.mouse.move(box.x + 400, box.y + 60);
    await panel.page.mouse.wheel(0, 300);
    await panel.settle();
    assert.ok((await panel.page.evaluate(() => window.scrollY)) > 100);
  });

  it('sorts rows and switches the axis', async () => {
    const report = await show();
    await panel.page.locator('.timeline select').selectOption('ttft');
    await panel.page.locator('.timeline summary').first().click();
    await panel.settle();
    const measured = report.samples.filter((sample) => sample.role === 'measured');
    const order = [...measured].sort((a, b) => a.firstToken - a.start - (b.firstToken - b.start)).map((sample) => String(measured.indexOf(sample) + 1));
    const shown = await panel.page.locator('.timeline .alternative tbody th').allTextContents();
    assert.deepEqual(shown.slice(2), order);
    await panel.page.getByRole('button', { name: /Since the run/ }).click();
    assert.equal((await panel.kept()).axis, 'run');
    assert.equal(await panel.page.getByRole('button', { name: /Since the run/ }).getAttribute('aria-pressed'), 'true');
  });

  it('shows what a model wrote as text, whatever it wrote', async () => {
    const report = await show();
    const evil = '<img src=x onerror="window.owned=1"></script><script>window.owned=1</script>[link](command:evil)';
    const sample = report.samples[2];
    await panel.post({ type: 'answer', view: { sampleId: sample.id, pieces: sample.deltas.map(([, kind]) => ({ kind, text: evil })) } });
    await panel.post({ type: 'frame', view: { sampleId: sample.id, deltaIndex: 0, frames: [{ index: 0, t: 1, gap: null, read: 0, raw: `data: ${evil}`, text: evil, current: true, delta: 0 }] } });
    await panel.settle();
    assert.match(await panel.page.locator('.answer-text').textContent(), /<img src=x/);
    assert.equal(await panel.page.locator('.answer-text img, .answer-text script, .answer-text a').count(), 0);
    assert.equal(await panel.page.evaluate(() => window.owned), undefined);
  });

  it('follows a run: connecting, waiting with a clock, streaming, stop', async () => {
    panel = await openPanel(browser, bundle);
    const sentence = () => panel.page.locator('.verdict-sentence').textContent();
    const row = (t) => ({ id: 's0', role: 'measured', start: 0, headers: 9, t, kinds: t.map(() => 'text'), tokens: t.map(() => 1), text: t.map((at) => `at${at} `) });
    await panel.post({ type: 'begin', report: reportOf(reports, []), total: 8 });
    await panel.settle();
    assert.match(await sentence(), /^Connecting to h200/);
    await panel.post({ type: 'live', rows: [row([])], done: 0, total: 8, elapsed: 300, eta: null });
    await panel.settle();
    assert.match(await sentence(), /^Waiting for the first token/);
    const clock = () => panel.page.locator('.verdict-detail').textContent();
    const before = await clock();
    await panel.page.waitForFunction((text) => document.querySelector('.verdict-detail').textContent !== text, before);
    await panel.post({ type: 'live', rows: [row([400, 430])], done: 0, total: 8, elapsed: 440, eta: 2000 });
    await panel.settle();
    assert.match(await sentence(), /^Streaming from h200/);
    assert.match(await clock(), /0 of 8 · .* · about 2\.0 s left/);
    assert.equal(await panel.page.locator('.answer-text').textContent(), 'at400 at430 ');
    await panel.page.getByRole('button', { name: 'Stop' }).click();
    assert.deepEqual(await last('stop'), { type: 'stop' });
  });

  it('draws at most ten times a second, however fast messages come', async () => {
    panel = await openPanel(browser, bundle);
    await panel.post({ type: 'begin', report: reportOf(reports, []), total: 1 });
    await panel.settle();
    const draws = await panel.page.evaluate(async () => {
      let count = 0;
      new MutationObserver((changes) => { count += changes.length > 0 ? 1 : 0; }).observe(document.querySelector('.reading').parentElement, { subtree: true, childList: true, characterData: true, attributes: true });
      for (let i = 0; i < 100; i += 1) {
        window.postMessage({ type: 'live', rows: [{ id: 's', role: 'measured', start: 0, headers: 1, t: [i * 10], kinds: ['text'], tokens: [1], text: ['x'] }], done: 0, total: 1, elapsed: 10 * i, eta: null }, '*');
        await new Promise((resolve) => setTimeout(resolve, 10));
      }
      return count;
    });
    // 100 messages in a second or more (a busy machine's timers are late); each drawing may report its changes in two batches.
    assert.ok(draws <= 40, `${draws} batches of changes for 100 messages`);
  });

  it('says what failed when everything did, with the error as it came and a retry', async () => {
    await show({ samples: makeFailures(8) });
    assert.match(await panel.page.locator('.verdict-sentence').textContent(), /HTTP 401/);
    assert.match(await panel.page.locator('.failure-detail').textContent(), /invalid_api_key/);
    await panel.page.getByRole('button', { name: 'Retry' }).click();
    assert.deepEqual(await last('runAgain'), { type: 'runAgain' });
    assert.ok(await panel.page.locator('.numbers').isHidden());
  });

  it('tells a problem with one thing to do', async () => {
    panel = await openPanel(browser, bundle);
    await panel.post({ type: 'problem', problem: { kind: 'no-run' } });
    await panel.settle();
    await panel.page.getByRole('button', { name: 'Spot-check endpoint' }).click();
    assert.deepEqual(await last('spotCheck'), { type: 'spotCheck' });
    await panel.post({ type: 'problem', problem: { kind: 'other-version', found: 'first-token/report@9', path: '/a/b.jsonl' } });
    await panel.settle();
    assert.match(await panel.page.locator('.state').textContent(), /first-token\/report@9.*\/a\/b\.jsonl/);
  });

  it('exports from a menu by keyboard', async () => {
    await show();
    await panel.page.getByRole('button', { name: 'Export' }).focus();
    await panel.page.keyboard.press('Enter');
    await panel.page.keyboard.press('ArrowDown');
    await panel.page.keyboard.press('Enter');
    assert.deepEqual(await last('export'), { type: 'export', format: 'csv' });
    assert.equal(await panel.page.evaluate(() => document.activeElement.getAttribute('aria-label')), 'Export');
  });

  it('shows a definition on focus', async () => {
    await show();
    await panel.page.locator('.term', { hasText: 'TPOT' }).focus();
    assert.match(await panel.page.locator('#definition').textContent(), /divided by/);
    await panel.page.keyboard.press('Escape');
    assert.ok(await panel.page.locator('#definition').isHidden());
  });

  it('takes the colours of another theme at once', async () => {
    await show({ page: { theme: 'dark' } });
    const pixels = () => panel.page.locator('.plot canvas').screenshot();
    const dark = await pixels();
    await panel.page.evaluate(({ bodyClass, variables }) => {
      for (const [name, value] of Object.entries(variables)) document.documentElement.style.setProperty(`--vscode-${name}`, value);
      document.body.className = bodyClass;
    }, themes.light);
    await panel.settle();
    assert.ok(!dark.equals(await pixels()));
    assert.equal(await panel.page.evaluate(() => getComputedStyle(document.body).backgroundColor), 'rgb(255, 255, 255)');
  });

  it('fits a column of 380 px and puts table and distributions side by side from 1,100', async () => {
    await show({ page: { width: 380 } });
    assert.ok(await panel.page.evaluate(() => document.documentElement.scrollWidth <= 380));
    const tops = () => panel.page.evaluate(() => ['table.percentiles', '.distribution'].map((selector) => document.querySelector(selector).getBoundingClientRect().top));
    const [table, distribution] = await tops();
    assert.ok(distribution > table + 100);
    for (const width of [1100, 1400]) {
      await panel.page.setViewportSize({ width, height: 900 });
      await panel.settle();
      const [left, right] = await tops();
      assert.ok(Math.abs(left - right) < 60);
      assert.ok(await panel.page.evaluate(() => document.documentElement.scrollWidth <= window.innerWidth));
    }
  });

  it('moves nothing with reduced motion', async () => {
    panel = await openPanel(browser, bundle, { reducedMotion: 'reduce' });
    await panel.post({ type: 'begin', report: reportOf(reports, []), total: 8 });
    await panel.settle();
    assert.equal(await panel.page.evaluate(() => document.getAnimations().length), 0);
  });

  it('compares two reports, with both time lines', async () => {
    panel = await openPanel(browser, bundle);
    const a = reportOf(reports, makeSamples({ seed: 3, requests: 30, failAt: -1 }), { id: 'a' });
    const b = reportOf(reports, makeSamples({ seed: 9, requests: 30, failAt: -1, pace: 27 }), { id: 'b' });
    await panel.post({ type: 'compare', a, b });
    await panel.settle();
    const pace = panel.page.locator('tr', { has: panel.page.getByRole('rowheader', { name: 'Pace (TPOT)' }) });
    assert.match(await pace.textContent(), /B is .* faster/);
    assert.equal(await panel.page.locator('.stage:visible').count(), 2);
  });

  it('keeps a thousand requests usable: rows scroll, a minimap shows where', async () => {
    const report = await show({ samples: makeSamples({ requests: 1000, tokens: 100, concurrency: 32 }) });
    assert.ok(await panel.page.locator('.minimap').isVisible());
    const milliseconds = await panel.page.evaluate(async () => {
      const stage = document.querySelector('.stage');
      stage.focus();
      const begin = performance.now();
      for (let i = 0; i < 20; i += 1) stage.dispatchEvent(new KeyboardEvent('keydown', { key: 'PageDown', bubbles: true }));
      await new Promise((resolve) => requestAnimationFrame(resolve));
      return (performance.now() - begin) / 20;
    });
    assert.match(await reading(), /^Request 201/);
    assert.equal(report.samples.length, 1002);
    assert.ok(milliseconds < 150, `${milliseconds.toFixed(0)} ms a key`);
  });

  for (const [theme, width] of [['dark', 1000], ['light', 1000], ['contrast', 1000], ['contrastLight', 1000], ['dark', 380]]) {
    it(`has nothing serious for assistive technology (${theme}, ${width} px)`, async () => {
      await show({ page: { theme, width } });
      await panel.page.locator('summary').first().click();
      await assertAccessible();
    });
  }

  it('has nothing serious for assistive technology while running, failed and compared', async () => {
    await show({ samples: makeFailures(4) });
    await assertAccessible();
    await panel.post({ type: 'begin', report: reportOf(reports, [], { id: 'r2' }), total: 8 });
    await panel.settle();
    await assertAccessible();
    const report = reportOf(reports, makeSamples(), { id: 'a' });
    await panel.post({ type: 'compare', a: report, b: report });
    await panel.settle();
    await assertAccessible();
  });

  async function assertAccessible() {
    await panel.page.evaluate(axe.source);
    const { violations } = await panel.page.evaluate(() => window.axe.run(document, { resultTypes: ['violations'] }));
    const serious = violations.filter((violation) => ['serious', 'critical'].includes(violation.impact));
    assert.deepEqual(serious.map((violation) => `${violation.id}: ${violation.nodes.map((node) => node.target.join(' ')).slice(0, 4).join(' | ')} ${violation.nodes[0].failureSummary}`), []);
  }
});
