/** Starts the simulator as a process of its own, and makes sure that it ends. */
import { spawn, type ChildProcess } from 'node:child_process';

/** What to start. `args` are the flags of `parseSimulatorArgs`; check them with it beforehand for a message in one's own process. */
export interface StartOptions {
  /** Path of the built server, `dist/simulator.js`. */
  readonly script: string;
  readonly port?: number;
  readonly args?: readonly string[];
  /** Ms to wait for the server to listen; 15,000 unless given. */
  readonly patience?: number;
}

/** A running simulator. `stop` resolves when its process has ended. */
export interface StartedSimulator {
  readonly url: string;
  readonly pid: number;
  /** Resolves when the process has ended, for whatever reason. */
  readonly ended: Promise<void>;
  stop(): Promise<void>;
}

/** Ms between asking the process to end and ending it. */
const grace = 2000;

/** Starts a simulator and waits until it listens. Rejects with what it printed when it cannot start in time; no process is left then. */
export async function startSimulator(options: StartOptions): Promise<StartedSimulator> {
  const port = options.port === undefined ? [] : ['--port', String(options.port)];
  const child = spawn(process.execPath, [options.script, ...port, ...(options.args ?? [])], {
    stdio: ['pipe', 'pipe', 'pipe'],
    env: { ...process.env, ELECTRON_RUN_AS_NODE: '1' },
  });
  const ended = new Promise<void>((resolve) => {
    child.once('exit', () => resolve());
    child.once('error', () => resolve());
  });
  const killWithUs = (): void => void child.kill('SIGKILL');
  process.once('exit', killWithUs);
  void ended.then(() => process.removeListener('exit', killWithUs));
  const stop = (): Promise<void> => stopChild(child, ended);
  try {
    const url = await readyUrl(child, options.patience ?? 15_000);
    return { url, pid: child.pid!, ended, stop };
  } catch (error) {
    await stop();
    throw error;
  }
}

async function stopChild(child: ChildProcess, ended: Promise<void>): Promise<void> {
  child.stdin?.on('error', () => undefined).end();
  child.kill('SIGTERM');
  const timer = setTimeout(() => child.kill('SIGKILL'), grace);
  await ended;
  clearTimeout(timer);
}

function readyUrl(child: ChildProcess, patience: number): Promise<string> {
  return new Promise((resolve, reject) => {
    let out = '';
    let err = '';
    const timer = setTimeout(() => reject(new Error(`The simulator did not start within ${patience / 1000} s.${err === '' ? '' : ` It said: ${err.trim()}`}`)), patience);
    const settle = (act: () => void): void => {
      clearTimeout(timer);
      act();
    };
    child.stderr!.on('data', (part: Buffer) => (err = (err + part.toString()).slice(-4000)));
    child.stdout!.on('data', (part: Buffer) => {
      out += part.toString();
      const line = out.indexOf('\n');
      if (line >= 0) settle(() => resolve((JSON.parse(out.slice(0, line)) as { url: string }).url));
    });
    child.once('error', (error) => settle(() => reject(new Error(`The simulator could not be started: ${error.message}`))));
    child.once('close', (code) => settle(() => reject(new Error(err.trim() === '' ? `The simulator ended with code ${code} before it was ready.` : err.trim()))));
  });
}
