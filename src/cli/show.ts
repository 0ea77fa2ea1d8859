import path from 'node:path';
import { renderForeign } from '../report/exchange/foreignTerminal';
import type { Report } from '../report/report';
import { renderReport, wrap } from '../report/terminalReport';
import { exitCode, parse, UsageError, type Command } from './command';
import { inColour, print } from './output';
import { lastReportFile, readReportOrForeign } from './reports';

/** `first-token show`: a saved report, as the probe printed it. */
export const showCommand: Command = {
  summary: 'Print a saved report (the last one when no file is named)',
  usage: `first-token show [REPORT] [--json]

  REPORT   a file saved by --save or by the editor; a run that was killed opens with the requests it had
  --json   the report as one JSON object

Results of vllm bench serve, SGLang bench_serving, GuideLLM, AIPerf and LLMPerf are shown too, under their own names.`,
  async run({ args, env }) {
    const { values, positionals } = parse(args, { json: { type: 'boolean' } }, { most: 1, what: 'one report file' });
    const file = positionals[0] ?? lastReportFile(env);
    if (file === null) throw new UsageError('There is no report yet. Try: first-token probe --demo');
    const report = await readReportOrForeign(file);
    if (report.schema === 'first-token/foreign@1') {
      await print(values.json ? `${JSON.stringify(report)}\n` : renderForeign(report, process.stdout.columns || 100));
      return exitCode.ok;
    }
    if (values.json) {
      await print(`${JSON.stringify(report)}\n`);
      return exitCode.ok;
    }
    const width = process.stdout.columns || 100;
    const colour = inColour(env);
    await print(`${wrap(headOf(file, report), width).join('\n')}\n\n${renderReport(report, { width, colour })}`, colour);
    return exitCode.ok;
  },
};

/** Which report it is: its file, what was run where, and when. */
function headOf(file: string, { createdAt, plan, endpoint }: Report): string {
  return `${path.basename(file)}: ${plan.scenario} at ${endpoint.name}${endpoint.model === null ? '' : `, model ${endpoint.model}`}, ${createdAt.replace('T', ' ').replace(/(\.\d+)?Z$/, ' UTC')}`;
}
