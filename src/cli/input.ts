import { createReadStream, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { UsageError } from './command';

/** Largest file that is read whole: a string cannot be much longer. */
export const largestInput = 500_000_000;

/**
 * Reads a file, a pipe or a device to its end, without blocking Ctrl-C. Throws a UsageError naming it when it cannot be read or has more than `limit` bytes.
 */
export async function readInput(file: string, limit = largestInput, what = file): Promise<Buffer> {
  const parts: Buffer[] = [];
  let size = 0;
  try {
    for await (const part of createReadStream(file, { highWaterMark: 1 << 20 }) as AsyncIterable<Buffer>) {
      size += part.length;
      if (size > limit) break;
      parts.push(part);
    }
  } catch (error) {
    throw new UsageError(`${what} cannot be read: ${(error as Error).message}.`);
  }
  if (size > limit) throw new UsageError(`${what} has more than ${limit / 1e6} MB. Give a smaller file.`);
  return Buffer.concat(parts);
}

/** Largest prompt file, and largest file of one that it includes. */
export const largestPrompt = 5_000_000;

/** Text of a data file that a flag names, without blocking Ctrl-C. Throws a UsageError naming flag and file. */
export async function readTextInput(cwd: string, flag: string, file: string, limit = largestInput): Promise<string> {
  return (await readInput(path.resolve(cwd, file), limit, `${flag} ${file}`)).toString('utf8');
}

/** A plain file of at most `limit` bytes, at once; null for everything else, a pipe or a device too, which could keep the tool waiting for ever. */
export function readPlainFile(file: string, limit = largestPrompt): string | null {
  try {
    const found = statSync(file);
    return found.isFile() && found.size <= limit ? readFileSync(file, 'utf8') : null;
  } catch {
    return null;
  }
}

/** Reads what a prompt file includes, from the folder it lies in. */
export function besideOf(cwd: string, promptFile: string): (name: string) => string | null {
  return (name) => readPlainFile(path.resolve(cwd, path.dirname(promptFile), name));
}
