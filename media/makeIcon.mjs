// Draws icon.png from icon.svg with a browser: `node media/makeIcon.mjs`.
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { launchBrowser } from '../test/host/browser.mjs';

const folder = import.meta.dirname;
const browser = await launchBrowser();
const page = await browser.newPage({ viewport: { width: 256, height: 256 } });
await page.setContent(`<style>body{margin:0}svg{display:block}</style>${readFileSync(path.join(folder, 'icon.svg'), 'utf8')}`);
await page.screenshot({ path: path.join(folder, 'icon.png'), omitBackground: true });
await browser.close();
