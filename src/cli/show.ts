import { renderReport } from '../report/terminalReport';
import { exitCode, parse, UsageError, type Command } from './command';
import { print } from './output';
import { lastReportFile, readReport } from './reports';

/** `first-token show`: a saved report, as the probe printed it. */
export const showCommand: Command = {
  summary: 'Print a saved report (the last one when no file is named)',
  usage: `first-token show [REPORT] [--json]

  REPORT   a file saved by --save or by the editor; a run that was killed opens with the requests it had
  --json   the report as one JSON object`,
  async run({ args, env }) {
    const { values, positionals } = parse(args, { json: { type: 'boolean' } }, { most: 1, what: 'one report file' });
    const file = positionals[0] ?? lastReportFile(env);
    if (file === null) throw new UsageError('There is no report yet. Try: first-token probe --demo');
    const report = readReport(file);
    await print(values.json ? `${JSON.stringify(report)}\n` : renderReport(report, { width: process.stdout.columns || 100, colour: process.stdout.isTTY && !env['NO_COLOR'] }));
    return exitCode.ok;
  },
};
