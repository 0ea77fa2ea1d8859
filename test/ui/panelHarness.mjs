// Opens the panel alone in headless Chromium: the real bundle under the real content policy, a stub in place of the editor, and seeded runs.
// Run directly it writes screenshots of every theme, width and state to a folder:  node test/ui/panelHarness.mjs [folder] [name…]
import { build } from 'esbuild';
import { chromium } from 'playwright-core';
import { existsSync, mkdirSync, readFileSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { leanChart } from '../../webview/leanChart.mjs';
import { makeFailures, makeSamples, pieceAt } from './panelSamples.mjs';
import { rootStyle, themes } from './themes.mjs';

const root = path.resolve(import.meta.dirname, '../..');
const origin = 'http://panel.invalid';
const policy = (nonce) => `default-src 'none'; script-src 'nonce-${nonce}'; style-src ${origin}; font-src ${origin}; img-src data: blob:`;

/** Chromium to drive: the variable CHROMIUM, else where Debian puts it; null when there is none. */
export function findChromium() {
  return [process.env.CHROMIUM, '/usr/bin/chromium', '/usr/bin/chromium-browser', '/usr/bin/google-chrome'].find((candidate) => candidate && existsSync(candidate)) ?? null;
}

export function launch() {
  return chromium.launch({ executablePath: findChromium() ?? undefined, args: ['--no-sandbox', '--disable-gpu', '--no-first-run', '--disable-background-networking'] });
}

/** A page's script, as it ships: the panel's, or the lab's. */
export async function buildPanel(name = 'panel') {
  const { entry, styles } = { panel: { entry: 'webview/main.ts', styles: ['panel'] }, lab: { entry: 'webview/lab.ts', styles: ['panel', 'lab'] } }[name];
  const { outputFiles, metafile } = await build({ entryPoints: [path.join(root, entry)], bundle: true, minify: true, platform: 'browser', format: 'iife', target: 'chrome132', plugins: [leanChart], write: false, metafile: true, outdir: root, logLevel: 'warning' });
  const { outputFiles: packing } = await build({ entryPoints: [path.join(root, 'src/report/packing.ts')], bundle: true, format: 'iife', globalName: 'packing', write: false, logLevel: 'warning' });
  return { packing: packing[0].text, script: outputFiles[0].text, css: styles.map((style) => readFileSync(path.join(root, `webview/${style}.css`), 'utf8')).join('\n'), metafile, name };
}

/** `buildReport` and `packMessage` from the sources, so that a synthetic run has the numbers the product would give it. */
export async function loadReport() {
  const outfile = path.join(os.tmpdir(), `first-token-report-${process.pid}.cjs`);
  await build({ stdin: { contents: `export * from './report'; export * from './packing';`, resolveDir: path.join(root, 'src/report'), loader: 'ts' }, bundle: true, platform: 'node', format: 'cjs', outfile, logLevel: 'warning' });
  return createRequire(import.meta.url)(outfile);
}

/** Opens a page with the panel in it; `post` sends a message as the editor would, `posted` holds what the panel sent. */
export async function openPanel(browser, bundle, { theme = 'dark', width = 900, height = 900, state = null, scale = 1, reducedMotion = 'no-preference' } = {}) {
  const context = await browser.newContext({ viewport: { width, height }, deviceScaleFactor: scale, reducedMotion });
  const page = await context.newPage();
  const problems = [];
  page.on('pageerror', (error) => problems.push(String(error)));
  page.on('console', (message) => { if (message.type() === 'error') problems.push(message.text()); });
  const { bodyClass } = themes[theme];
  const stub = `window.posted = []; window.kept = ${JSON.stringify(state)}; let taken = false;
    window.acquireVsCodeApi = () => { if (taken) throw new Error('acquired twice'); taken = true; return { postMessage: (m) => window.posted.push(structuredClone(m)), getState: () => window.kept, setState: (s) => { window.kept = structuredClone(s); } }; };`;
  const html = `<!DOCTYPE html><html lang="en"><head><meta charset="utf-8"><title>First Token</title><link rel="stylesheet" href="/webview.css"></head>
    <body class="${bodyClass}"><main id="${bundle.name}"></main><script nonce="n">${stub}</script><script nonce="n" src="/webview.js"></script></body></html>`;
  await page.route(`${origin}/**`, (route) => {
    const name = new URL(route.request().url()).pathname;
    if (name === '/webview.js') return route.fulfill({ contentType: 'text/javascript', body: bundle.script });
    if (name === '/webview.css') return route.fulfill({ contentType: 'text/css', body: bundle.css });
    if (name === '/theme.css') return route.fulfill({ contentType: 'text/css', body: '' });
    return route.fulfill({ contentType: 'text/html', body: html, headers: { 'content-security-policy': policy('n') } });
  });
  // VS Code sets the variables on the root element before any script of the page runs.
  await page.addInitScript((style) => {
    const apply = () => { for (const part of style.split('; --').join(';\n--').split('\n')) { const at = part.indexOf(':'); document.documentElement.style.setProperty(part.slice(0, at).trim(), part.slice(at + 1).replace(/;$/, '').trim()); } };
    if (document.documentElement) apply();
    else new MutationObserver((_, observer) => { if (document.documentElement) { observer.disconnect(); apply(); } }).observe(document, { childList: true });
  }, rootStyle(themes[theme]));
  // What the editor does on its side before it posts.
  await page.addInitScript(`${bundle.packing}; window.packing = packing;`);
  await page.goto(`${origin}/`);
  await page.waitForFunction(() => window.posted?.some((message) => /^(labR|r)eady$/.test(message.type)));
  return {
    page, problems, close: () => context.close(),
    post: (message) => page.evaluate((m) => window.postMessage(window.packing.packMessage(m), '*'), message),
    posted: () => page.evaluate(() => window.posted),
    kept: () => page.evaluate(() => window.kept),
    // Waited for in the page: when the machine is busy its timers are late together with the panel's.
    settle: () => page.evaluate(async () => {
      await new Promise((resolve) => setTimeout(resolve, 250));
      for (let i = 0; i < 3; i += 1) await new Promise((resolve) => requestAnimationFrame(resolve));
    }),
  };
}

const slo = { ttft: 500, tpot: 34, attainment: 0.95 };
const endpoint = { name: 'h200', origin: 'http://127.0.0.1:8000', path: '/v1/chat/completions', model: 'llama-3.1-8b-instruct', api: 'openai-chat', server: 'vLLM 0.11.2', tlsVerified: true, alpn: 'http/1.1', refusedFields: [], price: null, gpu: { name: 'H200', pricePerHour: 3.2, count: 1 } };
const environment = { product: 'first-token 0.1.0', node: 'v20.19.0', platform: 'linux x64', editor: 'VS Code 1.100.3', remote: null };

/** A report over `samples`, as the product would build it. */
export function reportOf(reports, samples, { objective = 'chat', id = 'r1', over = {} } = {}) {
  const measured = samples.filter((sample) => sample.role === 'measured').length;
  const plan = { scenario: 'probe', requests: measured, concurrency: 4, warmup: samples.length - measured, maxTokens: 256, cache: 'as-is', objective, slo, readerPace: 120, prompt: { name: 'support.prompt.md', characters: 7421, sha256: 'ab'.repeat(32) } };
  return reports.buildReport({ id, createdAt: '2026-11-30T09:12:44.000Z', environment, endpoint, plan, samples, clockErrors: Array.from({ length: 400 }, (_, i) => 0.2 + (i % 40) / 20), ...over });
}

/** The message that shows a finished report. */
export const finished = (report, extra = {}) => ({ type: 'report', report, live: false, stopped: null, canRunAgain: true, textKept: true, ...extra });

/** Text of a sample's deltas, as the editor answers `wantAnswer`. */
export function answerOf(sample) {
  return { type: 'answer', view: { sampleId: sample.id, pieces: sample.deltas.map(([, kind], i) => ({ kind, text: pieceAt(i, sample.reasoningTokens ?? 0) })) } };
}

/** Frames around a delta, as the editor answers `wantFrame`. */
export function frameOf(sample, deltaIndex) {
  const frames = [];
  for (let d = Math.max(0, deltaIndex - 3); d <= Math.min(sample.deltas.length - 1, deltaIndex + 3); d += 1) {
    const [t, kind] = sample.deltas[d];
    const text = pieceAt(d, sample.reasoningTokens ?? 0);
    const raw = `data: ${JSON.stringify({ id: 'chatcmpl-7', object: 'chat.completion.chunk', choices: [{ index: 0, delta: { [kind === 'reasoning' ? 'reasoning_content' : 'content']: text } }] })}`;
    frames.push({ index: d + 1, t: t - sample.start, gap: d > 0 ? t - sample.deltas[d - 1][0] : null, read: d + 1, raw, text, current: d === deltaIndex, delta: d });
  }
  return { type: 'frame', view: { sampleId: sample.id, deltaIndex, frames } };
}

/** Answers the panel's questions about text and frames as the editor does. */
export async function answerQuestions(panel, samples) {
  for (const message of await panel.posted()) {
    const sample = samples.find((candidate) => candidate.id === message.sampleId);
    if (message.type === 'wantAnswer' && sample) await panel.post(answerOf(sample));
    if (message.type === 'wantFrame' && sample) await panel.post(frameOf(sample, message.deltaIndex));
  }
  await panel.settle();
}

export { makeFailures, makeSamples };

async function main(folder, only) {
  mkdirSync(folder, { recursive: true });
  const { scenes } = await import('./panelScenes.mjs');
  const bundle = await buildPanel();
  const reports = await loadReport();
  const browser = await launch();
  let bad = 0;
  for (const [name, scene] of Object.entries(scenes)) {
    if (only.length > 0 && !only.some((part) => name.includes(part))) continue;
    const panel = await openPanel(browser, bundle, scene.page);
    await scene.play(panel, reports);
    await panel.settle();
    await panel.page.screenshot({ path: path.join(folder, `panel-${name}.png`), fullPage: scene.full ?? true });
    if (panel.problems.length > 0) { bad += 1; console.error(name, panel.problems); }
    else console.log(name);
    await panel.close();
  }
  await browser.close();
  process.exitCode = bad > 0 ? 1 : 0;
}

if (process.argv[1] === import.meta.filename) void main(process.argv[2] ?? os.tmpdir(), process.argv.slice(3));
