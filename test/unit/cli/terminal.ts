/** Runs the built terminal tool as a user would, with a state folder of its own. */
import { spawn, type ChildProcess } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';

export const root = path.resolve(__dirname, '../../..');
export const dist = path.join(root, 'dist');
const cli = path.join(dist, 'cli.js');

/** What a finished command left. */
export interface Ended {
  readonly code: number | null;
  readonly stdout: string;
  readonly stderr: string;
}

/** A folder that is deleted by `dispose`. */
export function temporaryFolder(): { readonly path: string; dispose(): void } {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-cli-'));
  return {
    path: folder,
    dispose: () => {
      rmSync(folder, { recursive: true, force: true });
    },
  };
}

/** Starts the tool; `started` gives the process, `ended` its output. */
export function terminal(args: readonly string[], options: { readonly cwd: string; readonly env?: NodeJS.ProcessEnv }): { readonly child: ChildProcess; readonly ended: Promise<Ended> } {
  if (!existsSync(cli)) throw new Error('dist/cli.js is missing: run npm run build first');
  const child = spawn(process.execPath, [cli, ...args], { cwd: options.cwd, env: { PATH: process.env['PATH'], HOME: options.cwd, XDG_STATE_HOME: path.join(options.cwd, 'state'), ...options.env } });
  let stdout = '';
  let stderr = '';
  child.stdout.on('data', (part: Buffer) => (stdout += part.toString()));
  child.stderr.on('data', (part: Buffer) => (stderr += part.toString()));
  const ended = new Promise<Ended>((resolve) => {
    child.once('close', (code) => {
      resolve({ code, stdout, stderr });
    });
  });
  return { child, ended };
}
