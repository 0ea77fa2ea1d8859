/** The report on disk while a run goes on: every sample is a line, flushed before the next, so a killed process loses only what was in flight. */
import { mkdir, open } from 'node:fs/promises';
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

/** A sink that writes a file, readable by its owner only. Rejects with the system's error when it cannot be written. */
export function createReportFile(file: string): ReportSink {
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
      await mkdir(path.dirname(file), { recursive: true });
      await write('w', serialiseHeader(header));
    },
    sample: (sample) => write('a', serialiseSample(sample)),
    samples: (samples) => write('a', samples.map(serialiseSample).join('')),
    end: (report) => write('a', serialiseFinal(report)),
  };
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
