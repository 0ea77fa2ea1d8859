/** The terminal's composition root: picks the command, turns known failures into one line and an exit code. */
import { exitCode, UsageError, type Command } from './cli/command';
import { decodeCommand } from './cli/decode';
import { encoderCommand } from './cli/encoder';
import { lintCommand } from './cli/lint';
import { handOverCommand } from './cli/handOver';
import { batchingCommand, fairnessCommand, interferenceCommand, overloadCommand } from './cli/detectors';
import { helpWidth, layOut } from './cli/help';
import { guardStdout, note, print, stdoutFailure } from './cli/output';
import { probeCommand } from './cli/probe';
import { proveCommand } from './cli/prove';
import { rateCommand } from './cli/rate';
import { showCommand } from './cli/show';
import { simulateCommand } from './cli/simulate';
import { sweepCommand } from './cli/sweep';
import { version } from '../package.json';

const commands: Readonly<Record<string, Command>> = {
  probe: probeCommand,
  sweep: sweepCommand,
  rate: rateCommand,
  batching: batchingCommand,
  interference: interferenceCommand,
  fairness: fairnessCommand,
  overload: overloadCommand,
  encoder: encoderCommand,
  prove: proveCommand,
  lint: lintCommand,
  show: showCommand,
  decode: decodeCommand,
  'hand-over': handOverCommand,
  simulate: simulateCommand,
};

function help(): string {
  const width = Math.max(...Object.keys(commands).map((name) => name.length));
  return [
    'first-token: see every token of an LLM answer arrive, and what the prefix cache can reuse.',
    '',
    ...Object.entries(commands).map(([name, command]) => `  ${name.padEnd(width)}  ${command.summary}`),
    '',
    'first-token COMMAND --help tells more. Try: first-token probe --demo',
    '',
  ].join('\n');
}

async function main(args: readonly string[]): Promise<number> {
  const [name, ...rest] = args[0] === 'help' && args.length > 1 ? [...args.slice(1, 2), '--help'] : args;
  if (name === undefined || name === '--help' || name === '-h' || name === 'help') {
    await print(layOut(help(), helpWidth(process.stdout)));
    return name === undefined ? exitCode.usage : exitCode.ok;
  }
  if (name === '--version' || name === '-v') {
    await print(`${version}\n`);
    return exitCode.ok;
  }
  const command = Object.hasOwn(commands, name) ? commands[name] : undefined;
  if (!command) throw new UsageError(`There is no command "${name}". There are: ${Object.keys(commands).join(', ')}.`);
  if (rest.includes('--help') || rest.includes('-h')) {
    await print(layOut(`${command.summary}\n\n${command.usage}\n`, helpWidth(process.stdout)));
    return exitCode.ok;
  }
  const stop = new AbortController();
  const interrupt = (signal: NodeJS.Signals): void => {
    if (!stop.signal.aborted) {
      stop.abort();
      return;
    }
    // By the signal itself: a normal exit waits for what blocks, a named pipe that nobody writes to for instance.
    process.removeAllListeners(signal);
    process.kill(process.pid, signal);
  };
  process.on('SIGINT', interrupt);
  process.on('SIGTERM', interrupt);
  return command.run({ args: rest, dist: __dirname, cwd: currentFolder(), env: process.env, signal: stop.signal });
}

function currentFolder(): string {
  try {
    return process.cwd();
  } catch {
    throw new UsageError('The current folder does not exist any more: change into another one.');
  }
}

function fail(error: unknown): void {
  const known = error instanceof UsageError || (error instanceof Error && (error.name === 'PlanError' || error.name === 'UsageError'));
  note(known ? error.message : `first-token failed in a way it should not: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  process.exitCode = exitCode.usage;
}

guardStdout();
// Node would end with code 1, which says that the SLO was missed.
process.on('uncaughtException', (error) => {
  fail(error);
  process.exit();
});
main(process.argv.slice(2)).then(
  (code) => {
    // Not process.exit: it would cut off what stdout has not taken yet.
    process.exitCode = code;
    const failure = stdoutFailure();
    if (failure !== null) fail(new UsageError(`The output could not be written: ${failure}.`));
  },
  fail,
);
