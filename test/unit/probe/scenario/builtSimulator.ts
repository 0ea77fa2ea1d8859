/** Builds the simulator once per test process into a temporary folder, and starts simulated servers that are ended after each test. */
import { build } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { startSimulator, type StartedSimulator } from '../../../../src/simulator/start';

let built: Promise<string> | null = null;
const started: StartedSimulator[] = [];

function script(): Promise<string> {
  built ??= (async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'first-token-simulator-'));
    process.once('exit', () => {
      rmSync(folder, { recursive: true, force: true });
    });
    const root = path.join(__dirname, '..', '..', '..', '..');
    await build({ entryPoints: [path.join(root, 'src/simulator/server.ts')], outfile: path.join(folder, 'simulator.js'), bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'silent' });
    return path.join(folder, 'simulator.js');
  })();
  return built;
}

/** A simulated server with these flags. */
export async function simulated(flags = ''): Promise<StartedSimulator> {
  const simulator = await startSimulator({ script: await script(), args: flags.split(' ').filter((flag) => flag !== '') });
  started.push(simulator);
  return simulator;
}

/** Ends every server a test started; for `afterEach`. */
export async function stopSimulated(): Promise<void> {
  await Promise.all(started.splice(0).map((simulator) => simulator.stop()));
}
