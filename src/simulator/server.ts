/** The simulator's own process: reads its arguments, prints one line when it is ready, and ends with whoever started it. */
import { ArgumentError, parseSimulatorArgs } from './arguments';
import { openSimulator } from './serving';

async function main(): Promise<void> {
  const simulator = await openSimulator(parseSimulatorArgs(process.argv.slice(2)));
  const end = (): void => void simulator.close().finally(() => process.exit(0));
  process.on('SIGTERM', end);
  process.on('SIGINT', end);
  // The parent holds the other end of stdin: when the parent goes, for whatever reason, so does the simulator.
  process.stdin.on('end', end).on('error', end).resume();
  process.stdout.on('error', end);
  process.stdout.write(`${JSON.stringify({ ready: true, url: simulator.url, pid: process.pid })}\n`);
}

main().catch((error: unknown) => {
  const known = error instanceof ArgumentError || (error as NodeJS.ErrnoException).code !== undefined;
  process.stderr.write(`${known ? (error as Error).message : ((error as Error).stack ?? String(error))}\n`);
  process.exit(error instanceof ArgumentError ? 2 : 1);
});
