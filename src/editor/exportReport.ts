import * as vscode from 'vscode';
import type { Report } from '../report/report';
import { answered, type Dialogs } from './dialogs';

/** Formats a report can be exported to. */
export type ExportFormat = 'json' | 'csv' | 'markdown';

const formats = {
  json: { label: 'JSON', extension: 'json', detail: 'everything: samples, every arrival' },
  csv: { label: 'CSV', extension: 'csv', detail: 'a line a request' },
  markdown: { label: 'Markdown', extension: 'md', detail: 'the tables, to paste into an issue' },
} as const;

/** Asks where to, writes the report, and offers to open it. `write` turns a report into text. */
export async function exportReport(report: Report, wanted: ExportFormat | null, dialogs: Dialogs, write: (report: Report, format: ExportFormat) => Promise<string>): Promise<vscode.Uri> {
  const format = wanted ?? (await chooseFormat(dialogs));
  const { extension } = formats[format];
  const name = `${report.endpoint.name}-${report.createdAt.slice(0, 16)}`.replaceAll(/[^\w.-]+/g, '-');
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  const target = await answered(
    dialogs.save({ title: vscode.l10n.t('Export Report'), filters: { [formats[format].label]: [extension] }, ...(folder ? { defaultUri: vscode.Uri.joinPath(folder, `${name}.${extension}`) } : {}) }),
  );
  await vscode.workspace.fs.writeFile(target, new TextEncoder().encode(await write(report, format)));
  const open = vscode.l10n.t('Open');
  void dialogs.choose('info', vscode.l10n.t('Exported to {0}.', vscode.workspace.asRelativePath(target)), open).then((answer) => (answer === open ? vscode.window.showTextDocument(target) : undefined));
  return target;
}

async function chooseFormat(dialogs: Dialogs): Promise<ExportFormat> {
  const items = (Object.keys(formats) as ExportFormat[]).map((format) => ({ format, label: formats[format].label, description: vscode.l10n.t(formats[format].detail) }));
  return (await answered(dialogs.pick(items, { title: vscode.l10n.t('Export Report'), placeHolder: vscode.l10n.t('Format') }))).format;
}
