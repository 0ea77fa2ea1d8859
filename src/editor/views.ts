import * as vscode from 'vscode';
import { displayUrl } from '../probe/endpoint';
import { ms, verdictShort } from '../report/format';
import type { ChoosableEndpoint, Endpoints } from './endpoints';
import { commandIds, viewIds } from './manifest';
import type { ReportStore, StoredReport } from './reportStore';
import { since } from './promptResults';

/** The two trees of the side bar: endpoints and reports. Empty ones show the welcome text of package.json. */
export function registerViews(parts: { readonly endpoints: Endpoints; readonly store: () => ReportStore }): { refreshReports(): void; dispose(): void } {
  const endpointsChanged = new vscode.EventEmitter<void>();
  const reportsChanged = new vscode.EventEmitter<void>();
  const endpointTree: vscode.TreeDataProvider<ChoosableEndpoint> = {
    onDidChangeTreeData: endpointsChanged.event,
    getChildren: (parent) => (parent ? [] : [...parts.endpoints.all()]),
    getTreeItem: (choice) => endpointItem(choice, parts.endpoints.selected()),
  };
  const reportTree: vscode.TreeDataProvider<StoredReport> = {
    onDidChangeTreeData: reportsChanged.event,
    getChildren: async (parent) => (parent ? [] : [...(await parts.store().list())]),
    getTreeItem: reportItem,
  };
  const registrations = [
    vscode.window.registerTreeDataProvider(viewIds.endpoints, endpointTree),
    vscode.window.registerTreeDataProvider(viewIds.reports, reportTree),
    parts.endpoints.onDidChange(() => endpointsChanged.fire()),
    endpointsChanged,
    reportsChanged,
  ];
  return { refreshReports: () => reportsChanged.fire(), dispose: () => void vscode.Disposable.from(...registrations).dispose() };
}

function endpointItem({ endpoint, from }: ChoosableEndpoint, selected: ChoosableEndpoint | null): vscode.TreeItem {
  const chosen = endpoint.name === selected?.endpoint.name;
  const item = new vscode.TreeItem(endpoint.name);
  item.id = endpoint.name;
  item.description = [endpoint.model, chosen ? vscode.l10n.t('selected') : null].filter(Boolean).join(' · ');
  item.iconPath = new vscode.ThemeIcon(from === 'demo' ? 'beaker' : chosen ? 'pass-filled' : 'globe');
  item.contextValue = from === 'demo' ? 'endpointDemo' : 'endpoint';
  const origin = { user: vscode.l10n.t('user settings'), workspace: vscode.l10n.t('workspace settings'), demo: vscode.l10n.t('demo, on this machine') }[from];
  item.tooltip = `${displayUrl(endpoint.url)}\n${endpoint.api} · ${origin}`;
  item.command = { command: commandIds.selectEndpoint, title: vscode.l10n.t('Select'), arguments: [endpoint.name] };
  return item;
}

function reportItem(report: StoredReport): vscode.TreeItem {
  const item = new vscode.TreeItem(`${report.endpoint} · ${report.prompt}`);
  item.id = report.id;
  item.description = [report.ttft === null ? null : ms(report.ttft), report.partial ? vscode.l10n.t('not finished') : null, since(report.createdAt)].filter(Boolean).join(' · ');
  const icon = { met: ['testing-passed-icon', 'testing.iconPassed'], missed: ['testing-failed-icon', 'testing.iconFailed'], unclear: ['question', 'testing.iconQueued'], none: ['circle-outline', 'testing.iconSkipped'] }[report.verdict ?? 'none'];
  item.iconPath = new vscode.ThemeIcon(icon[0]!, new vscode.ThemeColor(icon[1]!));
  item.contextValue = 'report';
  item.tooltip = [vscode.l10n.t('{0} requests', report.requests), verdictShort(report.verdict), new Date(report.createdAt).toLocaleString()].filter(Boolean).join('\n');
  item.command = { command: commandIds.openReport, title: vscode.l10n.t('Open'), arguments: [report.id] };
  return item;
}
