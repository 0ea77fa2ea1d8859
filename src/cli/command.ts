import { parseArgs, type ParseArgsConfig } from 'node:util';

/** Exit codes of the terminal tool: part of its interface. */
export const exitCode = { ok: 0, sloMissed: 1, usage: 2, noneSucceeded: 3 } as const;

/** The user asked for something that cannot be done as said; ends with exit code 2 and this message. */
export class UsageError extends Error {
  override readonly name = 'UsageError';
}

/** What a command gets: its own arguments and the world it runs in. */
export interface CommandContext {
  readonly args: readonly string[];
  /** Folder of the built files (worker, simulator). */
  readonly dist: string;
  readonly cwd: string;
  readonly env: NodeJS.ProcessEnv;
  /** Aborted by the first Ctrl-C; a second one ends the process. */
  readonly signal: AbortSignal;
}

/** A command of the terminal tool. */
export interface Command {
  readonly summary: string;
  readonly usage: string;
  run(context: CommandContext): Promise<number>;
}

type Options = NonNullable<ParseArgsConfig['options']>;

/** Parses the arguments of a command; an unknown flag or a missing value is a UsageError that names it. */
export function parse<T extends Options>(args: readonly string[], options: T, positionals: { readonly most: number; readonly least?: number; readonly what: string }) {
  let parsed;
  try {
    parsed = parseArgs({ args: [...args], options, allowPositionals: true, strict: true });
  } catch (error) {
    const said = (error as Error).message.replace(/\. To specify a positional.*$/s, '.');
    throw new UsageError(said.startsWith('Unknown option') ? `${said} --help tells which there are.` : said);
  }
  if (parsed.positionals.length > positionals.most) {
    throw new UsageError(`Too many arguments: expected ${positionals.what}, got ${parsed.positionals.map((p) => `"${p}"`).join(', ')}.`);
  }
  if (parsed.positionals.length < (positionals.least ?? 0)) throw new UsageError(`Name ${positionals.what}.`);
  return parsed;
}

/** A whole number in range, or a UsageError naming the flag. */
export function wholeNumber(flag: string, text: string | undefined, range: { readonly min: number; readonly max: number }): number | undefined {
  if (text === undefined) return undefined;
  const value = Number(text);
  if (!Number.isInteger(value) || value < range.min || value > range.max) {
    throw new UsageError(`${flag} takes a whole number from ${range.min} to ${range.max}; got "${text}".`);
  }
  return value;
}

/** One of the given words, or a UsageError naming the flag. */
export function oneOf<T extends string>(flag: string, text: string | undefined, words: readonly T[]): T | undefined {
  if (text === undefined) return undefined;
  if (!(words as readonly string[]).includes(text)) throw new UsageError(`${flag} takes ${words.join(', ')}; got "${text}".`);
  return text as T;
}
