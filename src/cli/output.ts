/** Writing to the terminal: a closed pipe never loses a result or throws. */

let closed = false;

/** Makes a closed stdout (`| head`) harmless: later writes are dropped and `stdoutClosed()` tells. */
export function guardStdout(): void {
  process.stdout.on('error', (error: NodeJS.ErrnoException) => {
    if (error.code === 'EPIPE') closed = true;
    else throw error;
  });
  process.stderr.on('error', () => undefined);
}

/** True when the reader of stdout has gone away. */
export function stdoutClosed(): boolean {
  return closed;
}

/** Writes to stdout and waits until it is handed over, so that nothing is cut off at exit. */
export async function print(text: string): Promise<void> {
  if (closed) return;
  await new Promise<void>((resolve) => {
    process.stdout.write(text, () => {
      resolve();
    });
  });
}

/** One line to stderr. */
export function note(text: string): void {
  process.stderr.write(`${text}\n`);
}

/** A progress line on a TTY: rewritten in place, silent elsewhere. */
export function progressLine(stream: NodeJS.WriteStream = process.stderr): { readonly show: (text: string) => void; readonly clear: () => void } {
  const shown = stream.isTTY;
  return {
    show: (text) => {
      if (shown) stream.write(`\r\x1b[K${text.slice(0, Math.max(20, stream.columns || 80) - 1)}`);
    },
    clear: () => {
      if (shown) stream.write('\r\x1b[K');
    },
  };
}
