import { renderForeign } from '../report/exchange/foreignTerminal';
import { renderReport } from '../report/terminalReport';
import { exitCode, parse, UsageError, type Command } from './command';
import { inColour, print } from './output';
import { lastReportFile, readReportOrForeign } from './reports';

/** `first-token show`: a saved report, as the probe printed it. */
export const showCommand: Command = {
  summary: 'Print a saved report (the last one when no file is named)',
  usage: `first-token show [REPORT] [--json]

  REPORT   a file saved by --save or by the editor; a run that was killed opens with the requests it had
           Results of vllm bench serve, SGLang bench_serving, GuideLLM, AIPerf and LLMPerf are shown too, under their own names
  --json   the report as one JSON object`,
  async run({ args, env }) {
    const { values, positionals } = parse(args, { json: { type: 'boolean' } }, { most: 1, what: 'one report file' });
    const file = positionals[0] ?? lastReportFile(env);
    if (file === null) throw new UsageError('There is no report yet. Try: first-token probe --demo');
    const report = await readReportOrForeign(file);
    if (report.schema === 'first-token/foreign@1') {
      await print(values.json ? `${JSON.stringify(report)}\n` : renderForeign(report, process.stdout.columns || 100));
      return exitCode.ok;
    }
    const colour = !values.json && inColour(env);
    await print(values.json ? `${JSON.stringify(report)}\n` : renderReport(report, { width: process.stdout.columns || 100, colour }), colour);
    return exitCode.ok;
  },
};
