// The panel with 100 requests × 2,000 tokens in headless Chromium: first paint, frames while panning and zooming, and 1,000 requests × 2,000 tokens.
// Budgets: first paint ≤ 300 ms, 60 frames a second. Frames are counted as work per frame too, since a headless, shared machine may not reach 60 at all:
// the same page without work gives the rate to compare with.
import { buildPanel, findChromium, finished, launch, loadReport, makeSamples, openPanel, reportOf } from '../ui/panelHarness.mjs';

if (findChromium() === null) {
  console.log('  skipped: no Chromium (set CHROMIUM, or install Debian’s chromium)');
  process.exit(0);
}

const bundle = await buildPanel();
const bytes = Object.values(bundle.metafile.outputs)[0].bytes;
const reports = await loadReport();
const browser = await launch();
let over = 0;

function figure(name, value, unit, budget, within) {
  if (!within) over += 1;
  console.log(`  ${name.padEnd(58)} ${value.toFixed(value < 10 ? 1 : 0).padStart(6)} ${unit}   ${budget}${within ? '' : '   OVER'}`);
}

figure('bundle, minified', bytes / 1000, 'kB', 'budget 220', bytes <= 220_000);
for (const [requests, isBudget] of [[100, true], [1000, false]]) {
  const panel = await openPanel(browser, bundle, { width: 1200, height: 1000 });
  const report = reportOf(reports, makeSamples({ requests, tokens: 2000, concurrency: 16, reasoning: 0, failAt: 8 }));
  await panel.page.evaluate((message) => { window.big = window.packing.packMessage(message); }, finished(report));
  const paint = await panel.page.evaluate(firstPaint);
  const idle = await panel.page.evaluate(frames, { seconds: 1, work: false });
  const busy = await panel.page.evaluate(frames, { seconds: 2, work: true });
  const name = `${requests} × 2,000`;
  figure(`${name}: message to first paint`, paint.painted, 'ms', isBudget ? 'budget 300' : '', !isBudget || paint.painted <= 300);
  figure(`${name}: message to everything drawn`, paint.whole, 'ms', '', true);
  figure(`${name}: work per frame, pan and zoom, median`, busy.median, 'ms', isBudget ? 'budget 16.7' : '', !isBudget || busy.median <= 16.7);
  figure(`${name}: work per frame, p95`, busy.p95, 'ms', '', true);
  figure(`${name}: frames a second, pan and zoom`, busy.rate, '/s', `an idle page here: ${idle.rate.toFixed(0)}`, !isBudget || busy.rate >= 0.9 * Math.min(60, idle.rate));
  await panel.close();
}
await browser.close();
process.exitCode = over > 0 ? 1 : 0;

/** Runs in the page: from the message to the frame in which the time line has its first pixels, and to the frame in which the last section has its text. */
async function firstPaint() {
  const frame = () => new Promise((resolve) => requestAnimationFrame(resolve));
  const begin = performance.now();
  window.postMessage(window.big, '*');
  let painted = null;
  for (;;) {
    await frame();
    const canvas = document.querySelector('.plot canvas');
    const drawn = canvas.width > 400 && canvas.getContext('2d').getImageData(130, 20, 200, 40).data.some((value) => value > 0);
    if (drawn) painted ??= performance.now() - begin;
    if (drawn && document.querySelector('.facts dd') && document.querySelector('.percentiles tbody tr')) break;
  }
  await frame();
  return { painted, whole: performance.now() - begin };
}

/** Runs in the page: a wheel event that zooms or pans in each frame, and the time its handler took. */
async function frames({ seconds, work }) {
  const canvas = document.querySelector('.plot canvas');
  const box = canvas.getBoundingClientRect();
  const took = [];
  const begin = performance.now();
  let count = 0;
  while (performance.now() - begin < seconds * 1000) {
    await new Promise((resolve) => requestAnimationFrame(resolve));
    count += 1;
    if (!work) continue;
    const zoom = count % 2 === 0;
    const start = performance.now();
    canvas.dispatchEvent(new WheelEvent('wheel', { bubbles: true, cancelable: true, clientX: box.x + 600, clientY: box.y + 100, deltaY: zoom ? (count % 80 < 40 ? -30 : 30) : 0, deltaX: zoom ? 0 : (count % 80 < 40 ? 20 : -20) }));
    took.push(performance.now() - start);
  }
  took.sort((a, b) => a - b);
  return { rate: count / ((performance.now() - begin) / 1000), median: took[took.length >> 1] ?? 0, p95: took[Math.floor(took.length * 0.95)] ?? 0 };
}
