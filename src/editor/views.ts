import * as vscode from 'vscode';
import { displayUrl } from '../probe/endpoint';
import { ms, verdictShort } from '../report/format';
import type { ChoosableEndpoint, Endpoints } from './endpoints';
import { commandIds, viewIds } from './manifest';
import { reportLabel } from './reportPicker';
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

/** How a report stands in the view: a proof as a proof. */
export function reportItem(report: StoredReport): vscode.TreeItem {
  const { proof } = report;
  const item = new vscode.TreeItem(reportLabel(report));
  item.id = report.id;
  item.description = [proof ? report.endpoint : report.ttft === null ? null : ms(report.ttft), report.partial ? vscode.l10n.t('not finished') : null, since(report.createdAt)].filter(Boolean).join(' · ');
  const looks = proof ? { yes: 'met', less: 'missed', failed: 'missed', more: 'unclear', unknown: 'none' }[proof.state] : (report.verdict ?? 'none');
  const icon = { met: ['testing-passed-icon', 'testing.iconPassed'], missed: ['testing-failed-icon', 'testing.iconFailed'], unclear: ['question', 'testing.iconQueued'], none: ['circle-outline', 'testing.iconSkipped'] }[looks];
  item.iconPath = new vscode.ThemeIcon(icon![0]!, new vscode.ThemeColor(icon![1]!));
  item.contextValue = 'report';
  item.tooltip = tooltipOf(report);
  item.command = { command: commandIds.openReport, title: vscode.l10n.t('Open'), arguments: [report.id] };
  return item;
}

/** Kind, endpoint, prompt and time; what it came to where the label does not say it. */
function tooltipOf({ scenario, proof, endpoint, prompt, requests, verdict, createdAt }: StoredReport): string {
  const kind = proof ? vscode.l10n.t('Proof of the prefix cache') : scenario === 'probe' ? vscode.l10n.t('Probe') : scenario.charAt(0).toUpperCase() + scenario.slice(1);
  return [kind, endpoint, prompt, proof ? null : vscode.l10n.t('{0} requests', requests), proof ? null : verdictShort(verdict), new Date(createdAt).toLocaleString()].filter(Boolean).join('\n');
}
