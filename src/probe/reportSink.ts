/** The report on disk while a run goes on: every sample is a line, flushed before the next, so a killed process loses only what was in flight. */
import { mkdirSync, readFileSync, rmSync, statSync, writeFileSync } from 'node:fs';
import { open } from 'node:fs/promises';
import os from 'node:os';
import path from 'node:path';
import { serialiseFinal, serialiseHeader, serialiseSample, type Report } from '../report/report';
import type { Sample } from '../report/sample';

/** Where a run writes its report. Calls come one after the other. */
export interface ReportSink {
  begin(header: Report): Promise<void>;
  sample(sample: Sample): Promise<void>;
  /** Several samples in one write; where it is missing they go one by one. */
  samples?(samples: readonly Sample[]): Promise<void>;
  end(report: Report): Promise<void>;
}

/**
 * A sink that writes a file, readable by its owner only. Rejects with the system's error when it cannot be written. With `alone` a second
 * run that would write the same file is refused for as long as the first one goes on: a file `….lock` beside it says so.
 */
export function createReportFile(file: string, alone = false): ReportSink {
  let unlock: () => void = () => undefined;
  const write = async (flags: 'w' | 'a', line: string): Promise<void> => {
    const handle = await open(file, flags, 0o600);
    try {
      await handle.appendFile(line);
      await handle.datasync().catch(exceptForDevices);
    } finally {
      await handle.close();
    }
  };
  return {
    async begin(header) {
      makeFolder(path.dirname(file));
      if (alone) unlock = lock(file);
      await write('w', serialiseHeader(header));
    },
    sample: (sample) => write('a', serialiseSample(sample)),
    samples: (samples) => write('a', samples.map(serialiseSample).join('')),
    end: (report) => write('a', serialiseFinal(report)).finally(() => {
      unlock();
    }),
  };
}

/** A folder and what is missing above it. Not by mkdir's own `recursive`, which never returns where a file system takes no folder (/proc). Throws the system's error. */
export function makeFolder(folder: string, mode?: number): void {
  const make = (): void => {
    mkdirSync(folder, { mode });
  };
  try {
    make();
  } catch (error) {
    const { code } = error as NodeJS.ErrnoException;
    if (code === 'ENOENT' && path.dirname(folder) !== folder) {
      makeFolder(path.dirname(folder), mode);
      make();
    } else if (!(statSync(folder, { throwIfNoEntry: false })?.isDirectory() ?? false)) throw error;
  }
}

/** Keeps a file to this process until the lock is given back, or the process ends. A lock that a dead process of this machine left counts for nothing. Throws when another run holds it. */
function lock(file: string): () => void {
  if (!(statSync(file, { throwIfNoEntry: false })?.isFile() ?? true)) return () => undefined;
  const name = `${file}.lock`;
  const own = `${process.pid} ${os.hostname()}\n`;
  const holder = holderOf(name);
  if (holder === null) rmSync(name, { force: true });
  try {
    writeFileSync(name, own, { flag: 'wx', mode: 0o600 });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EEXIST') throw error;
    throw new Error(`another run${holder === null ? '' : ` (process ${holder})`} is writing it (if none is, delete ${name})`);
  }
  const unlock = (): void => {
    process.off('exit', unlock);
    rmSync(name, { force: true });
  };
  process.once('exit', unlock);
  return unlock;
}

/** Who holds a lock, by process id and machine; null for a process of this machine that is gone, and for no lock. */
function holderOf(name: string): string | null {
  let held: string;
  try {
    held = readFileSync(name, 'utf8').trim();
  } catch {
    return null;
  }
  const [pid, host] = held.split(' ');
  if (host !== os.hostname()) return held === '' ? 'unknown' : held;
  try {
    process.kill(Number(pid), 0);
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'EPERM') return null;
  }
  return pid ?? null;
}

/** What is no file on a disk (/dev/null, a pipe) cannot be flushed to one. */
function exceptForDevices(error: NodeJS.ErrnoException): void {
  if (error.code !== 'EINVAL' && error.code !== 'ENOTSUP') throw error;
}

/** A sink that takes samples at once and writes them behind the caller's back, many in one write; `end` waits for all of them. Rejects there with the first error. */
export function writeBehind(sink: ReportSink): ReportSink {
  let waiting: Sample[] = [];
  let writing: Promise<void> | null = null;
  const flush = async (): Promise<void> => {
    while (waiting.length > 0) {
      const batch = waiting;
      waiting = [];
      if (sink.samples) await sink.samples(batch);
      else for (const sample of batch) await sink.sample(sample);
    }
    writing = null;
  };
  return {
    begin: (header) => sink.begin(header),
    sample: (sample) => {
      waiting.push(sample);
      writing ??= flush();
      writing.catch(() => undefined);
      return Promise.resolve();
    },
    async end(report) {
      await writing;
      await sink.end(report);
    },
  };
}
