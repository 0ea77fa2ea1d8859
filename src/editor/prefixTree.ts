import * as vscode from 'vscode';
import { percentOf } from '../prompt/percent';
import { outOf } from '../report/format';
import { viewIds } from './manifest';
import type { JudgeBy, ScannedFile } from './prefixMessages';
import { worstFirst } from './prefixView';
import type { PrefixWorker } from './prefixWorker';
import type { Settings } from './settings';

/** Prompt files of the workspace with the share that can be cached, worst first. Filled when the user asks for it. */
export interface PrefixTree {
  /** Searches the folders anew; resolves with the files found. A second call while one runs waits for it. */
  scan(): Promise<readonly ScannedFile[]>;
  stop(): void;
  readonly files: readonly ScannedFile[];
  dispose(): void;
}

const most = 5000;

/** As the lenses write it. */
const count = (tokens: number) => tokens.toLocaleString('en-US');

/** The view and its search, which runs in the analysis thread. */
export function createPrefixTree(parts: { readonly settings: () => Settings; readonly worker: PrefixWorker; readonly judge: () => JudgeBy; readonly scanning: (on: boolean) => void }): PrefixTree {
  const changed = new vscode.EventEmitter<void>();
  let files: readonly ScannedFile[] = [];
  let running: { readonly work: Promise<readonly ScannedFile[]>; readonly abort: AbortController } | null = null;
  const tree: vscode.TreeDataProvider<ScannedFile> = {
    onDidChangeTreeData: changed.event,
    getChildren: (parent) => (parent ? [] : [...files]),
    getTreeItem: treeItem,
  };
  const view = vscode.window.createTreeView(viewIds.prompts, { treeDataProvider: tree, showCollapseAll: false });

  async function scan(abort: AbortController): Promise<readonly ScannedFile[]> {
    const roots = (vscode.workspace.workspaceFolders ?? []).filter(({ uri }) => uri.scheme === 'file').map(({ uri }) => uri.fsPath);
    const found: ScannedFile[] = [];
    parts.scanning(true);
    try {
      return await vscode.window.withProgress({ location: { viewId: viewIds.prompts } }, async () => {
        const { complete } = await parts.worker.ask(
          { type: 'scan', roots, globs: parts.settings().promptFiles, most, judge: parts.judge() },
          {
            signal: abort.signal,
            onFiles: (batch) => {
              found.push(...batch);
              show(found, null);
            },
          },
        );
        show(found, complete ? null : abort.signal.aborted ? vscode.l10n.t('Stopped: not all files were looked at.') : vscode.l10n.t('The first {0} prompt files.', count(most)));
        return files;
      });
    } finally {
      parts.scanning(false);
    }
  }

  function show(found: readonly ScannedFile[], message: string | null): void {
    files = [...found].sort(worstFirst);
    view.message = message ?? (files.length === 0 ? vscode.l10n.t('No prompt file was found (firstToken.promptFiles).') : '');
    const warned = files.filter(({ warnings }) => warnings > 0).length;
    view.badge = warned === 0 ? undefined : { value: warned, tooltip: vscode.l10n.t('{0} with a warning', outOf(warned, files.length)) };
    changed.fire();
  }

  return {
    scan() {
      if (running) return running.work;
      const abort = new AbortController();
      const work = scan(abort).finally(() => (running = null));
      running = { work, abort };
      return work;
    },
    stop: () => running?.abort.abort(),
    get files() {
      return files;
    },
    dispose() {
      running?.abort.abort();
      vscode.Disposable.from(view, changed).dispose();
    },
  };
}

function treeItem(file: ScannedFile): vscode.TreeItem {
  const uri = vscode.Uri.file(file.path);
  const item = new vscode.TreeItem(uri);
  item.id = file.path;
  const tokens = file.about ? vscode.l10n.t('about {0}', count(file.tokens)) : count(file.tokens);
  const share = percentOf(file.reusable, file.tokens);
  item.description = file.allStatic ? vscode.l10n.t('{0} tokens, all static', tokens) : vscode.l10n.t('{0} of {1} tokens', share, tokens);
  item.tooltip = [vscode.workspace.asRelativePath(uri), ...file.sentences, file.warnings === 0 ? '' : vscode.l10n.t('{0} warnings', file.warnings)].filter((line) => line !== '').join('\n');
  const icons = { warning: new vscode.ThemeIcon('warning', new vscode.ThemeColor('list.warningForeground')), information: new vscode.ThemeIcon('info'), hint: new vscode.ThemeIcon('lightbulb') };
  item.iconPath = file.severity === null ? new vscode.ThemeIcon('pass') : icons[file.severity];
  item.command = { command: 'vscode.open', title: vscode.l10n.t('Open'), arguments: [uri] };
  return item;
}
