// Runs inside VS Code's extension host: mocha over the bundled test files beside this one, found by glob.
import { readdirSync } from 'node:fs';
import path from 'node:path';

/** What VS Code calls; rejects when a test failed. FIRST_TOKEN_GREP selects tests. */
export async function run(): Promise<void> {
  const { default: Mocha } = await import('mocha');
  const suite = process.env['FIRST_TOKEN_SUITE'] ?? 'main';
  // With a tally the reporter of all tiers; by hand the list.
  const reporter = process.env['FIRST_TOKEN_RESULTS'] ? path.join(__dirname, '../../test/host/reporter.cjs') : 'spec';
  const mocha = new Mocha({ ui: 'bdd', color: false, timeout: 60_000, forbidOnly: true, reporter });
  if (process.env['FIRST_TOKEN_GREP']) mocha.grep(process.env['FIRST_TOKEN_GREP']);
  const folder = path.join(__dirname, suite);
  const files = readdirSync(folder).filter((file) => file.endsWith('.test.js'));
  if (files.length === 0) throw new Error(`No test file in ${folder}`);
  for (const file of files) mocha.addFile(path.join(folder, file));
  console.log('[tests begin]');
  const { failures, passes } = await new Promise<{ failures: number; passes: number }>((resolve) => {
    const runner = mocha.run((failures) => {
      resolve({ failures, passes: runner.stats?.passes ?? 0 });
    });
  });
  if (failures > 0) throw new Error(`${failures} test(s) failed`);
  if (passes === 0) throw new Error('No test ran');
}
