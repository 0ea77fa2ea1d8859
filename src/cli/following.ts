/** A run followed to its end, in one way for every command: a report file that could not be written never costs the result. */
import type { RunEvent } from '../probe/index';
import type { Report } from '../report/report';
import { note, stdoutClosed } from './output';

/** What a run left: its report, null when it ended without one, and why the file does not hold all of it. */
export interface Followed {
  readonly report: Report | null;
  readonly unwritten: string | null;
}

/** Hands every event to `seen`, waits for it, and gives what is left at the end. Throws what the run throws before it has a report. */
export async function followRun(events: AsyncIterable<RunEvent>, seen: (event: RunEvent) => void | Promise<void>): Promise<Followed> {
  let report: Report | null = null;
  try {
    for await (const event of events) {
      await seen(event);
      if (event.type === 'end') report = event.report;
    }
  } catch (error) {
    // A report file that could not be written to its end is told after the report, which is whole.
    if (!report) throw error;
    return { report, unwritten: (error as Error).message };
  }
  return { report, unwritten: null };
}

/** After the result: where the report is, or why it is not there. With `quiet` only when the result itself went nowhere. */
export function sayWhereReportIs({ unwritten }: Followed, file: string | null, quiet: boolean): void {
  if (unwritten !== null) note(unwritten);
  else if (file !== null && (!quiet || stdoutClosed())) note(`${stdoutClosed() ? 'The output was closed; the' : 'The'} report is in ${file}`);
}
