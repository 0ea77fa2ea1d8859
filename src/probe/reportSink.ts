/** The report on disk while a run goes on: every sample is a line, flushed before the next, so a killed process loses only what was in flight. */
import { mkdir, open, type FileHandle } from 'node:fs/promises';
import path from 'node:path';
import { serialiseFinal, serialiseHeader, serialiseSample, type Report } from '../report/report';
import type { Sample } from '../report/sample';

/** Where a run writes its report. */
export interface ReportSink {
  begin(header: Report): Promise<void>;
  sample(sample: Sample): Promise<void>;
  end(report: Report): Promise<void>;
}

/** A sink that writes a file, readable by its owner only. Rejects with the system's error when it cannot be written. */
export function createReportFile(file: string): ReportSink {
  let handle: FileHandle | null = null;
  const append = async (line: string): Promise<void> => {
    if (!handle) throw new Error('The report file is not open');
    await handle.appendFile(line);
    await handle.datasync();
  };
  return {
    async begin(header) {
      await mkdir(path.dirname(file), { recursive: true });
      handle = await open(file, 'w', 0o600);
      await append(serialiseHeader(header));
    },
    sample: (sample) => append(serialiseSample(sample)),
    async end(report) {
      await append(serialiseFinal(report));
      await handle?.close();
      handle = null;
    },
  };
}
