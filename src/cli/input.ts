import { createReadStream } from 'node:fs';
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
