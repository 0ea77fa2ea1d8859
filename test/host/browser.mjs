// A browser to drive: the system's Chrome or Chromium, else a headless one from the npm registry.
import { existsSync } from 'node:fs';
import { createRequire } from 'node:module';
import path from 'node:path';
import { pathToFileURL } from 'node:url';
import { installed } from './cache.mjs';

const systemNames = ['google-chrome', 'google-chrome-stable', 'chromium', 'chromium-browser', 'chrome', 'microsoft-edge'];
const systemPaths = [
  '/Applications/Google Chrome.app/Contents/MacOS/Google Chrome',
  '/Applications/Chromium.app/Contents/MacOS/Chromium',
  'C:\\Program Files\\Google\\Chrome\\Application\\chrome.exe',
  'C:\\Program Files (x86)\\Microsoft\\Edge\\Application\\msedge.exe',
];

/** The first browser found on this machine, or null. `FIRST_TOKEN_BROWSER` names one; `none` skips the search. */
export function systemBrowser() {
  if (process.env.FIRST_TOKEN_BROWSER === 'none') return null;
  if (process.env.FIRST_TOKEN_BROWSER) return process.env.FIRST_TOKEN_BROWSER;
  const folders = (process.env.PATH ?? '').split(path.delimiter);
  const onPath = systemNames.flatMap((name) => folders.map((folder) => path.join(folder, name)));
  return [...onPath, ...systemPaths].find((file) => existsSync(file)) ?? null;
}

/** Starts a headless browser through playwright-core; the caller closes it. */
export async function launchBrowser(options = {}) {
  const { chromium } = await import('playwright-core');
  const sandbox = process.getuid?.() === 0 ? ['--no-sandbox'] : [];
  const found = systemBrowser();
  if (found) return chromium.launch({ executablePath: found, headless: true, ...options, args: [...sandbox, ...(options.args ?? [])] });
  const folder = await installed('browser-137', ['@sparticuz/chromium@137.0.1'], { note: 'about 74 MB; no Chrome or Chromium found' });
  const entry = createRequire(path.join(folder, 'package.json')).resolve('@sparticuz/chromium');
  const { default: packaged } = await import(pathToFileURL(entry).href);
  packaged.setGraphicsMode = false;
  const executablePath = await packaged.executablePath();
  return chromium.launch({ executablePath, headless: true, ...options, args: ['--headless=shell', '--no-zygote', '--disable-gpu', ...sandbox, ...(options.args ?? [])] });
}
