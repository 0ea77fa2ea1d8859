/** Builds the recorder once per test process into a temporary folder, and opens recorders that are closed after each test. */
import { build } from 'esbuild';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { defaultNetwork, type NetworkOptions } from '../../../src/probe/network';
import { openRecorder, type Recorder } from '../../../src/probe/recording';

let built: Promise<string> | null = null;

/** Path of the built recorder. */
export function recorderScript(): Promise<string> {
  built ??= (async () => {
    const folder = mkdtempSync(path.join(tmpdir(), 'first-token-recorder-'));
    process.once('exit', () => {
      rmSync(folder, { recursive: true, force: true });
    });
    const root = path.join(__dirname, '..', '..', '..');
    await build({ entryPoints: [path.join(root, 'src/probe/recorder.ts')], outfile: path.join(folder, 'recorder.js'), bundle: true, platform: 'node', format: 'cjs', target: 'node20', logLevel: 'silent' });
    return path.join(folder, 'recorder.js');
  })();
  return built;
}

const open: Recorder[] = [];

/** A recorder with these network options beside the defaults; no proxy unless asked. */
export async function startRecorder(network: Partial<NetworkOptions> = {}): Promise<Recorder> {
  const recorder = await openRecorder({ script: await recorderScript(), network: { ...defaultNetwork, proxy: 'none', ...network } });
  open.push(recorder);
  return recorder;
}

/** Closes every recorder a test opened; for `afterEach`. */
export async function closeRecorders(): Promise<void> {
  await Promise.all(open.splice(0).map((recorder) => recorder.close()));
}
