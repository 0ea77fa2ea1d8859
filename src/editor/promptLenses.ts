import * as vscode from 'vscode';
import { couldBePrompt, largestLook, looksLikePrompt } from '../prompt/looksLikePrompt';
import { promptPaths } from '../prompt/globs';
import { commandIds } from './manifest';
import { hashOf, since, type PromptResults } from './promptResults';
import type { Runs } from './runs';
import type { Settings } from './settings';

/** Above that, a lens would make typing wait for a hash of the text. */
const largest = 2_000_000;

/** The lenses above prompt files: the button, and the last run's numbers. */
export function createPromptLenses(parts: { readonly settings: () => Settings; readonly results: PromptResults; readonly runs: Runs; readonly endpointName: () => string | null; /** Code without a prompt in it gets no lens. */ readonly withoutPrompt?: (document: vscode.TextDocument) => boolean }): { refresh(): void; readonly provider: vscode.CodeLensProvider; dispose(): void } {
  const changed = new vscode.EventEmitter<void>();
  const provider: vscode.CodeLensProvider = {
    onDidChangeCodeLenses: changed.event,
    provideCodeLenses(document) {
      const { lens } = parts.settings();
      if (!isPromptFile(document, parts.settings()) || parts.withoutPrompt?.(document)) return [];
      const top = new vscode.Range(0, 0, 0, 0);
      const lenses: vscode.CodeLens[] = [];
      if (lens.probe) lenses.push(new vscode.CodeLens(top, probeLens(document)));
      const result = lens.result ? resultLens(document) : null;
      if (result) lenses.push(new vscode.CodeLens(top, result));
      return lenses;
    },
  };

  function probeLens(document: vscode.TextDocument): vscode.Command {
    const run = parts.runs.current;
    if (run?.request.source?.uri === document.uri.toString()) {
      return { title: vscode.l10n.t('$(debug-stop) Stop · {0}/{1}', run.done, run.total) + (run.wait === null ? '' : ` · ${vscode.l10n.t('waits {0} s', Math.round(run.wait.whole / 1000))}`), command: commandIds.stop };
    }
    return { title: vscode.l10n.t('$(play) Probe'), command: commandIds.probePrompt, arguments: [document.uri] };
  }

  function resultLens(document: vscode.TextDocument): vscode.Command | null {
    const result = parts.results.ofDocument(document.uri.toString());
    if (!result) return null;
    const stale = staleness(document, result.textHash, result.endpoint, result.at);
    return { title: stale ? `${result.lens} · ${stale}` : result.lens, command: commandIds.openReport, arguments: [result.reportId], tooltip: result.sentence };
  }

  /** In words, because a lens has no colour of its own: why the numbers are not of this text and endpoint, and since when. */
  function staleness(document: vscode.TextDocument, textHash: string, endpoint: string, at: string): string | null {
    if (document.getText().length <= largest && hashOf(document.getText()) !== textHash) return vscode.l10n.t('stale: measured {0}, edited since', since(at));
    const chosen = parts.endpointName();
    if (chosen !== null && chosen !== endpoint) return vscode.l10n.t('stale: measured {0} on {1}', since(at), endpoint);
    return null;
  }

  const registration = vscode.languages.registerCodeLensProvider([{ scheme: 'file' }, { scheme: 'untitled' }, { scheme: 'vscode-remote' }, { scheme: 'vscode-vfs' }], provider);
  let shown = '';
  const following = parts.runs.onChange(({ type, run }) => {
    const now = `${type === 'live' ? '' : type} ${run?.done ?? ''} ${run?.total ?? ''} ${run?.wait?.whole ?? ''}`;
    if (now === shown) return;
    shown = now;
    changed.fire();
  });
  return {
    provider,
    refresh: () => changed.fire(),
    dispose: () => {
      registration.dispose();
      following.dispose();
      changed.dispose();
    },
  };
}

let named: { readonly globs: readonly string[]; readonly matches: (path: string) => boolean } | null = null;
const looked = new WeakMap<vscode.TextDocument, { readonly version: number; readonly holds: boolean }>();
/** Above that, a file without a prompt is not looked into at each edit, only as it was opened. */
const largestEdited = 200_000;

/** Whether a document is one of `firstToken.promptFiles`, or holds a prompt by its content. Code may still turn out to hold none. */
export function isPromptFile(document: vscode.TextDocument, { promptFiles }: Pick<Settings, 'promptFiles'>): boolean {
  if (named?.globs !== promptFiles) named = { globs: promptFiles, matches: promptPaths(promptFiles) };
  const { uri } = document;
  const path = uri.scheme === 'file' ? uri.fsPath : uri.path;
  return named.matches(path) || (couldBePrompt(path) !== null && holdsPrompt(document, path));
}

function holdsPrompt(document: vscode.TextDocument, path: string): boolean {
  const { version } = document;
  const before = looked.get(document);
  // What was a prompt once is followed while it is half-typed.
  if (before && (before.holds || before.version === version)) return before.holds;
  const length = document.offsetAt(new vscode.Position(document.lineCount, 0));
  const holds = length <= (before ? largestEdited : largestLook) && looksLikePrompt(document.getText(), path) !== null;
  looked.set(document, { version, holds });
  return holds;
}
