// What `npm run package` runs: a production build and the VSIX, first-token-VERSION.vsix in the project folder (or --out FILE).
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { build, ensureInstalled, root, show } from './install.mjs';

ensureInstalled();
build('--production');
const { version } = JSON.parse(readFileSync(path.join(root, 'package.json'), 'utf8'));
const at = process.argv.indexOf('--out');
const out = at > 0 ? path.resolve(process.argv[at + 1]) : path.join(root, `first-token-${version}.vsix`);
const vsce = path.join(root, 'node_modules', '@vscode', 'vsce', 'vsce');
const code = show(process.execPath, [vsce, 'package', '--no-dependencies', '--allow-missing-repository', '--no-rewrite-relative-links', '--skip-license', '--out', out]);
if (code === 0) console.log(`Install it with: code --install-extension ${path.basename(out)}`);
process.exit(code);
