// Runs the tests that drive the workbench with the packaged extension: `node test/ui/run.mjs [--grep TEXT]`. Needs dist/ built.
// FIRST_TOKEN_EDITORS=all runs them on the newest editor too.
import Mocha from 'mocha';
import { readdirSync } from 'node:fs';
import path from 'node:path';
import 'tsx/cjs';
import { editors } from '../host/editorServer.mjs';

const at = process.argv.indexOf('--grep');
const reporter = process.env.FIRST_TOKEN_RESULTS ? path.join(import.meta.dirname, '../host/reporter.cjs') : 'spec';
const names = process.env.FIRST_TOKEN_EDITORS === 'all' ? Object.keys(editors) : ['minimum'];
let failed = 0;
for (const editor of names) {
  process.env.FIRST_TOKEN_EDITOR = editor;
  console.log(`\n# Workbench ${editors[editor].vscode} with the packaged extension`);
  // Pages driven alone need no editor, and a sweep is the same in each: once is enough.
  const files = readdirSync(import.meta.dirname).filter((name) => name.endsWith('.test.mjs') && (editor === names[0] || !['panel.test.mjs', 'lab.test.mjs', 'foreign.test.mjs', 'sweep.test.mjs'].includes(name)));
  if (files.length === 0) throw new Error('No UI test found');
  for (const file of files) {
    // A workbench in a browser on a busy machine now and then loses a key or a click: a file that failed gets a fresh one, once, and says so.
    if ((await runFile(file, editor, 'first')) === 0) continue;
    console.log(`  ${file} failed: once more, in a fresh workbench`);
    const again = await runFile(file, editor, 'second');
    if (again === 0) console.log(`  ${file} passed only at the second try`);
    failed += again;
  }
}

/** Runs one file; the number of failures. */
async function runFile(file, editor, attempt) {
  process.env.FIRST_TOKEN_TRY = attempt;
  const mocha = new Mocha({ timeout: 120_000, forbidOnly: true, reporter, cleanReferencesAfterRun: true });
  if (at > 0) mocha.grep(process.argv[at + 1]);
  mocha.addFile(path.join(import.meta.dirname, file));
  await mocha.loadFilesAsync({ esmDecorator: (url) => `${url}?editor=${editor}&try=${attempt}` });
  return await new Promise((resolve) => mocha.run(resolve));
}
process.exit(failed > 0 ? 1 : 0);
