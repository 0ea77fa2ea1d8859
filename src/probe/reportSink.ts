/** The report on disk while a run goes on: every sample is a line, flushed before the next, so a killed process loses only what was in flight. */
import { mkdir, open } from 'node:fs/promises';
import path from 'node:path';
import { serialiseFinal, serialiseHeader, serialiseSample, type Report } from '../report/report';
import type { Sample } from '../report/sample';

/** Where a run writes its report. Calls come one after the other. */
export interface ReportSink {
  begin(header: Report): Promise<void>;
  sample(sample: Sample): Promise<void>;
  end(report: Report): Promise<void>;
}

/** A sink that writes a file, readable by its owner only. Rejects with the system's error when it cannot be written. */
export function createReportFile(file: string): ReportSink {
  const write = async (flags: 'w' | 'a', line: string): Promise<void> => {
    const handle = await open(file, flags, 0o600);
    try {
      await handle.appendFile(line);
      await handle.datasync();
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
    end: (report) => write('a', serialiseFinal(report)),
  };
}
