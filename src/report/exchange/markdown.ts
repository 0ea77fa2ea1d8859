/** A report for an issue or a chat: verdict, table, facts and caveats as Markdown. Text from servers and names is escaped. */
import { diagnose } from '../diagnosis';
import { caveatSentence, verdictMarks, verdictSentence } from '../format';
import { count } from '../numbers';
import type { Report } from '../report';
import { percentileRows, reportFacts, tableColumns } from '../table';

/** The report as GitHub-flavoured Markdown. */
export function toMarkdown(report: Report): string {
  const reason = diagnose(report.samples);
  const blocks = [
    `### First Token: ${text(`${report.endpoint.name}, ${report.endpoint.model ?? 'model not told'}`)}`,
    `**${report.verdict === null ? '' : `${verdictMarks[report.verdict]} `}${text(verdictSentence(report))}**`,
    reason === null ? '' : text(reason.sentence),
    table(report),
    reportFacts(report).map((fact) => `- ${fact.label}: ${text(fact.text)}`).join('\n'),
    report.caveats.length === 0 ? '' : `Read with care:\n${report.caveats.map((caveat) => `- ${text(caveatSentence(caveat))}`).join('\n')}`,
  ];
  return `${blocks.filter((block) => block !== '').join('\n\n')}\n`;
}

function table(report: Report): string {
  const rows = percentileRows(report);
  if (rows.length === 0) return '';
  const header = ['ms', 'n', ...tableColumns, 'SLO'];
  const lines = rows.map((row) => {
    const name = `${row.kind === 'metric' ? '' : '– '}${row.label}${row.mark === '' ? '' : ` ${row.mark}`}`;
    const cells = row.cells.map((cell) => (cell.interval === null ? cell.text : `${cell.text} <sub>${cell.interval}</sub>`));
    return [name, count(row.n), ...cells, row.slo === null ? '' : `${row.slo.mark} ${row.slo.text}`];
  });
  return [header, header.map((_, i) => (i === 0 || i === header.length - 1 ? ':--' : '--:')), ...lines].map((cells) => `| ${cells.join(' | ')} |`).join('\n');
}

/** Nothing in a text can start markup, a link, a mention or a line of its own. */
function text(value: string): string {
  return value
    .replace(/[\t\r\n\v\f]+/g, ' ')
    .replace(/[\\`*_{}[\]<>#|~]/g, '\\$&')
    .replace(/@(?=\w)/g, '@\u200B')
    .replace(/:\/\//g, ':\\/\\/');
}
