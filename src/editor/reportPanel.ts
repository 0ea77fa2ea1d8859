import * as vscode from 'vscode';
import type { FromWebview, ToWebview } from '../report/messages';
import { packMessage } from '../report/packing';
import type { Report } from '../report/report';
import { answerView, frameView, type EvidenceStore } from './evidence';
import { panelType } from './manifest';
import type { Loaded, ReportStore } from './reportStore';
import type { Run, RunChange, Runs } from './runs';
import { webviewPage } from './webviewPage';

/** What the panel asks of the rest of the editor; everything it does itself is show. */
export interface PanelActions {
  stop(): void;
  runAgain(report: Report): void;
  compare(report: Report): void;
  exportReport(report: Report, format: 'json' | 'csv' | 'markdown'): void;
  openReport(): void;
  showLog(): void;
  openSettings(setting: string): void;
  spotCheck(): void;
  saveTape(reportId: string, sampleId: string): void;
  failed(message: string): void;
  canRunAgain(report: Report): boolean;
}

/** The report panels of the window. */
export interface ReportPanels {
  /** Shows the run in progress (or the last one) in the panel that is there, else in a new one beside the editor. */
  showRun(): void;
  showReport(loaded: Loaded): void;
  showCompare(a: Report, b: Report): void;
  /** True while a panel with the current run is visible. */
  readonly showsRun: boolean;
  readonly onDidChangeVisibility: vscode.Event<void>;
  /** The report in the panel that was active last. */
  readonly activeReport: Report | null;
  dispose(): void;
}

type Content =
  | { readonly kind: 'nothing' }
  | { readonly kind: 'run'; readonly run: Run }
  | { readonly kind: 'loaded'; readonly loaded: Loaded }
  | { readonly kind: 'compare'; readonly a: Report; readonly b: Report };

interface Panel {
  readonly webview: vscode.WebviewPanel;
  content: Content;
  ready: boolean;
}

/** Registers the panel's serializer and follows the runs. */
export function createReportPanels(parts: { readonly extensionUri: vscode.Uri; readonly runs: Runs; readonly store: ReportStore; readonly evidence: EvidenceStore; readonly actions: PanelActions }): ReportPanels {
  const panels: Panel[] = [];
  const visibility = new vscode.EventEmitter<void>();
  const { runs, evidence, actions, store } = parts;

  function adopt(webview: vscode.WebviewPanel, content: Content): Panel {
    const panel: Panel = { webview, content, ready: false };
    panels.push(panel);
    webview.iconPath = { light: vscode.Uri.joinPath(parts.extensionUri, 'media', 'view-light.svg'), dark: vscode.Uri.joinPath(parts.extensionUri, 'media', 'view-dark.svg') };
    webview.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(parts.extensionUri, 'dist'), vscode.Uri.joinPath(parts.extensionUri, 'media')] };
    webview.webview.onDidReceiveMessage((message: FromWebview) => void receive(panel, message));
    webview.onDidDispose(() => {
      panels.splice(panels.indexOf(panel), 1);
      visibility.fire();
    });
    webview.onDidChangeViewState(() => {
      // A hidden webview's page is destroyed and its messages are dropped; it says `ready` again when it is back.
      if (!webview.visible) panel.ready = false;
      visibility.fire();
    });
    webview.webview.html = webviewPage(webview.webview, parts.extensionUri, { title: 'First Token', root: 'panel', script: 'webview.js', styles: ['webview.css'] });
    retitle(panel);
    visibility.fire();
    return panel;
  }

  function open(content: Content, reuse: (panel: Panel) => boolean): void {
    const there = panels.find(reuse);
    if (!there) {
      const beside = vscode.window.activeTextEditor ? vscode.ViewColumn.Beside : vscode.ViewColumn.Active;
      adopt(vscode.window.createWebviewPanel(panelType, vscode.l10n.t('First Token'), { viewColumn: beside, preserveFocus: true }, { enableScripts: true }), content);
      return;
    }
    there.content = content;
    retitle(there);
    if (there.webview.visible) return sync(there);
    // A panel behind the prompt in its own column would cover it.
    const column = vscode.window.activeTextEditor?.viewColumn;
    there.webview.reveal(column !== undefined && there.webview.viewColumn === column ? vscode.ViewColumn.Beside : undefined, true);
  }

  function post(panel: Panel, message: ToWebview): void {
    if (panel.ready) void panel.webview.webview.postMessage(packMessage(message));
  }

  /** Sends everything the panel's page needs to show its content from nothing. */
  function sync(panel: Panel): void {
    const { content } = panel;
    switch (content.kind) {
      case 'nothing':
        return post(panel, { type: 'problem', problem: { kind: 'no-run' } });
      case 'compare':
        return post(panel, { type: 'compare', a: content.a, b: content.b });
      case 'loaded':
        if ('problem' in content.loaded) return post(panel, { type: 'problem', problem: content.loaded.problem });
        if ('foreign' in content.loaded) return post(panel, { type: 'foreign', report: content.loaded.foreign });
        return postReport(panel, content.loaded.report, stoppedBy(content.loaded.report));
      case 'run':
        if (content.run.ended) return postReport(panel, withSamples(content.run), content.run.stopped);
        post(panel, { type: 'begin', report: { ...content.run.report, samples: [] }, total: content.run.total });
        post(panel, { type: 'samples', samples: content.run.samples, report: content.run.report });
        return postLive(panel, content.run, [...content.run.live.values()]);
      default:
        return content satisfies never;
    }
  }

  function postReport(panel: Panel, report: Report, stopped: Run['stopped']): void {
    const textKept = evidence.has(report.id) || report.texts !== undefined;
    post(panel, { type: 'report', report, live: false, stopped, canRunAgain: actions.canRunAgain(report), textKept });
  }

  function postLive(panel: Panel, { done, total, elapsed, eta, wait }: Run, rows: Extract<ToWebview, { type: 'live' }>['rows']): void {
    post(panel, { type: 'live', rows, done, total, elapsed, eta, wait });
  }

  function follow(change: RunChange): void {
    if (change.type === 'begin') {
      for (const panel of panels) {
        if (panel.content.kind !== 'run') continue;
        panel.content = { kind: 'run', run: change.run };
        retitle(panel);
        sync(panel);
      }
      return;
    }
    for (const panel of panels) {
      if (panel.content.kind !== 'run' || panel.content.run !== change.run) continue;
      if (change.type === 'live') postLive(panel, change.run, change.rows);
      else if (change.type === 'sample') post(panel, { type: 'samples', samples: [change.sample], report: { ...change.run.report, samples: [] }, done: change.run.done, total: change.run.total });
      else sync(panel);
    }
  }

  async function receive(panel: Panel, message: FromWebview): Promise<void> {
    const report = reportOf(panel.content);
    switch (message.type) {
      case 'ready':
        panel.ready = true;
        if (panel.content.kind === 'nothing' && message.reportId) await restore(panel, message.reportId, message.comparedWith ?? null);
        return sync(panel);
      case 'stop':
        return actions.stop();
      case 'runAgain':
        return report ? actions.runAgain(report) : actions.spotCheck();
      case 'compare':
        return report ? actions.compare(report) : undefined;
      case 'export':
        return report ? actions.exportReport(report, message.format) : undefined;
      case 'openReport':
        return actions.openReport();
      case 'showLog':
        return actions.showLog();
      case 'openSettings':
        return actions.openSettings(message.setting);
      case 'spotCheck':
        return actions.spotCheck();
      case 'wantFrame': {
        const owner = ownerOf(panel.content, message.sampleId);
        return post(panel, { type: 'frame', view: frameView(owner && evidence.get(owner.id, message.sampleId), message.sampleId, message.deltaIndex) });
      }
      case 'wantAnswer': {
        const owner = ownerOf(panel.content, message.sampleId);
        return post(panel, { type: 'answer', view: owner ? answerView(evidence.get(owner.id, message.sampleId), owner, message.sampleId) : { sampleId: message.sampleId, pieces: null } });
      }
      case 'saveTape':
        return report ? actions.saveTape(report.id, message.sampleId) : undefined;
      case 'copy':
        await vscode.env.clipboard.writeText(message.text);
        return;
      case 'failed':
        return actions.failed(message.message);
      default:
        return message satisfies never;
    }
  }

  async function restore(panel: Panel, reportId: string, comparedWith: string | null): Promise<void> {
    const first = await contentOf(reportId);
    const second = comparedWith === null ? null : await contentOf(comparedWith);
    const [a, b] = [first && reportOf(first), second && reportOf(second)];
    // Of a comparison whose other half was deleted the rest is shown.
    const content = a && b ? { kind: 'compare' as const, a, b } : (first ?? second);
    if (content) panel.content = content;
    retitle(panel);
  }

  /** A report of this window or of the store as something to show; null when it is gone. */
  async function contentOf(reportId: string): Promise<Content | null> {
    const run = runs.current ?? runs.last;
    if (run?.report.id === reportId) return { kind: 'run', run };
    const loaded = await store.load(reportId);
    return loaded && { kind: 'loaded', loaded };
  }

  const serializer = vscode.window.registerWebviewPanelSerializer(panelType, {
    deserializeWebviewPanel(webview) {
      adopt(webview, { kind: 'nothing' });
      return Promise.resolve();
    },
  });
  const following = runs.onChange(follow);

  return {
    showRun() {
      const run = runs.current ?? runs.last;
      const content: Content = run ? { kind: 'run', run } : { kind: 'nothing' };
      open(content, (panel) => panel.content.kind !== 'compare');
    },
    showReport(loaded) {
      open({ kind: 'loaded', loaded }, (panel) => panel.content.kind !== 'compare' && !(panel.content.kind === 'run' && !panel.content.run.ended));
    },
    showCompare(a, b) {
      open({ kind: 'compare', a, b }, (panel) => panel.content.kind === 'compare');
    },
    get showsRun() {
      return panels.some(({ content, webview }) => content.kind === 'run' && webview.visible);
    },
    onDidChangeVisibility: visibility.event,
    get activeReport() {
      const panel = panels.find(({ webview }) => webview.active) ?? panels.find(({ webview }) => webview.visible);
      return panel ? reportOf(panel.content) : null;
    },
    dispose() {
      following.dispose();
      serializer.dispose();
      visibility.dispose();
    },
  };
}

/** A run's report with its samples, as it is saved. */
export function withSamples(run: Run): Report {
  return { ...run.report, samples: run.samples };
}

/** Who ended a saved run before its last request; an interrupted one says so in its caveats only. */
function stoppedBy(report: Report): Run['stopped'] {
  const stopped = report.caveats.find((caveat) => caveat.kind === 'stopped');
  return stopped?.kind === 'stopped' && stopped.by !== 'interrupted' ? stopped.by : null;
}

function reportOf(content: Content): Report | null {
  if (content.kind === 'run') return withSamples(content.run);
  if (content.kind === 'compare') return content.a;
  return content.kind === 'loaded' && 'report' in content.loaded ? content.loaded.report : null;
}

/** The report a sample belongs to; a comparison shows two. */
function ownerOf(content: Content, sampleId: string): Report | null {
  if (content.kind === 'compare' && !content.a.samples.some(({ id }) => id === sampleId)) return content.b;
  return reportOf(content);
}

function retitle(panel: Panel): void {
  const report = reportOf(panel.content);
  if (panel.content.kind === 'compare') panel.webview.title = vscode.l10n.t('{0} and {1}', panel.content.a.endpoint.name, panel.content.b.endpoint.name);
  else if (panel.content.kind === 'loaded' && 'foreign' in panel.content.loaded) panel.webview.title = vscode.l10n.t('{0}: result', panel.content.loaded.foreign.tool);
  else panel.webview.title = report ? vscode.l10n.t('First Token: {0}', report.endpoint.name) : vscode.l10n.t('First Token');
}
