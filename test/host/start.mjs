// What `npm start` runs: installs and builds what is missing, then shows the main job on the demo endpoint. `npm start -- --terminal` without an editor.
import path from 'node:path';
import { build, ensureInstalled, root, show } from './install.mjs';

ensureInstalled();
console.log('Building …');
build();
if (process.argv.includes('--terminal')) {
  console.log('Probing the demo endpoint: a simulated server with an 8B model on one H200.\n');
  process.exit(show(process.execPath, [path.join(root, 'dist', 'cli.js'), 'probe', '--demo', '-n', '20', '-c', '2']));
}
const { openEditor } = await import('./openEditor.mjs');
await openEditor();
