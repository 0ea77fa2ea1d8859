import path from 'node:path';
import { exitCode, UsageError, type Command } from './command';
import { note, print } from './output';
import { ArgumentError, parseSimulatorArgs, simulatorUsage } from '../simulator/arguments';
import { startSimulator } from '../simulator/start';

/** `first-token simulate`: an inference server on loopback whose truth is known. */
export const simulateCommand: Command = {
  summary: 'Run the simulated inference server on loopback (demo, lab and test double)',
  usage: `first-token simulate [OPTIONS]

${simulatorUsage}`,
  async run({ args, dist, signal }) {
    try {
      parseSimulatorArgs(args);
    } catch (error) {
      throw error instanceof ArgumentError ? new UsageError(error.message) : error;
    }
    const simulator = await startSimulator({ script: path.join(dist, 'simulator.js'), args: [...args] });
    await print(`${simulator.url}\n`);
    note('Ctrl-C ends it. Try: first-token probe --endpoint ' + simulator.url);
    await Promise.race([
      simulator.ended,
      new Promise<void>((resolve) => {
        signal.addEventListener('abort', () => {
          resolve();
        }, { once: true });
      }),
    ]);
    await simulator.stop();
    return exitCode.ok;
  },
};
