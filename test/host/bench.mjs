// What `npm run bench` runs: every test/bench/*.mjs in turn (or those named on the command line); each prints its figures as ratios within its own run.
import { readdirSync } from 'node:fs';
import path from 'node:path';
import { build, ensureInstalled, root, show } from './install.mjs';

ensureInstalled();
build('--production');
const folder = path.join(root, 'test', 'bench');
const wanted = process.argv.slice(2);
const scripts = readdirSync(folder).filter((name) => name.endsWith('.mjs') && (wanted.length === 0 || wanted.includes(path.basename(name, '.mjs'))));
if (scripts.length === 0) {
  console.error(`No such bench. There are: ${readdirSync(folder).filter((n) => n.endsWith('.mjs')).map((n) => path.basename(n, '.mjs')).join(', ')}`);
  process.exit(2);
}
let worst = 0;
for (const script of scripts) {
  console.log(`\n${path.basename(script, '.mjs')}`);
  worst = Math.max(worst, show(process.execPath, [path.join(folder, script)]));
}
process.exit(worst);
