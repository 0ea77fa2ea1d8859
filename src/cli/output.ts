/** Writing to the terminal: a closed pipe or a full disk never loses a result, and nobody's words steer the terminal. */

let closed = false;
let failure: string | null = null;

/** Makes a stdout that takes nothing more harmless (`| head`, a full disk): later writes are dropped, `stdoutClosed()` and `stdoutFailure()` tell. */
export function guardStdout(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    closed = true;
    if (error.code !== 'EPIPE') failure ??= error.message;
  });
  process.stderr.on('error', () => undefined);
}

/** True when stdout takes nothing more: its reader has gone away, or it could not be written. */
export function stdoutClosed(): boolean {
  return closed;
}

/** Why stdout could not be written, in the system's words; null for a reader that has gone away, and when all is well. */
export function stdoutFailure(): string | null {
  return failure;
}

/** Control characters (but line break and tab) and overrides of the text direction. */
const controls = /[\u0000-\u0008\u000B-\u001F\u007F-\u009F\u061C\u200E\u200F\u2028-\u202E\u2066-\u2069]/g;
const controlsButColours = new RegExp(`(?!\\u001B\\[(?:[012]|3[1-6])m)${controls.source}`, 'g');

function escaped(character: string): string {
  return `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;
}

/** Somebody else's words as plain text: what could steer a terminal is written as an escape, CR LF as LF. */
export function printable(text: string): string {
  return text.replace(/\r\n?/g, '\n').replace(controls, escaped);
}

/** Writes to stdout and waits until it is handed over, so that nothing is cut off at exit. Control characters come out as \uXXXX, which JSON reads as what they were; `coloured` lets the colours of a drawn report through. */
export async function print(text: string, coloured = false): Promise<void> {
  if (closed) return;
  await new Promise<void>((resolve) => {
    process.stdout.write(text.replace(coloured ? controlsButColours : controls, escaped), () => {
      resolve();
    });
  });
}

/** One line to stderr. */
export function note(text: string): void {
  process.stderr.write(`${printable(text)}\n`);
}

/** What a progress line ends with where there is room. */
export const stopHint = '  (Ctrl-C stops and keeps what was measured)';

/** A progress line on a TTY: rewritten in place, silent elsewhere. `hint` is left out whole where it does not fit; a line that is too long ends in …. */
export function progressLine(stream: NodeJS.WriteStream = process.stderr): { readonly show: (text: string, hint?: string) => void; readonly clear: () => void } {
  const shown = stream.isTTY && process.env['TERM'] !== 'dumb';
  return {
    show: (text, hint = '') => {
      if (!shown) return;
      const room = Math.max(20, stream.columns || 80) - 1;
      const line = printable(text);
      const whole = line.length + hint.length <= room ? line + hint : line;
      stream.write(`\r\x1b[K${whole.length <= room ? whole : `${whole.slice(0, room - 1)}…`}`);
    },
    clear: () => {
      if (shown) stream.write('\r\x1b[K');
    },
  };
}

/** Whether reports are coloured: on a terminal that can, unless NO_COLOR asks for none. */
export function inColour(env: NodeJS.ProcessEnv): boolean {
  return process.stdout.isTTY && !env['NO_COLOR'] && env['TERM'] !== 'dumb';
}
