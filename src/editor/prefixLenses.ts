import * as vscode from 'vscode';
import { commandIds } from './manifest';
import type { PrefixDocuments } from './prefixDocuments';
import type { FileView, PromptView } from './prefixMessages';
import type { PrefixProofs } from './prefixProofs';
import { isPromptFile } from './promptLenses';
import type { Settings } from './settings';

/** How long the lenses of a version may be waited for, so that those of the one before do not vanish and come back. */
const patience = 1500;

/** What lenses and the line are made of. */
interface Parts {
  readonly settings: () => Settings;
  readonly documents: PrefixDocuments;
  readonly proofs: PrefixProofs;
}

/** The lenses of the prefix cache: at the top what can be reused, at each breaker what it costs. */
export function createPrefixLenses({ settings, documents, proofs }: Parts): { readonly provider: vscode.CodeLensProvider; refresh(): void; dispose(): void } {
  const changed = new vscode.EventEmitter<void>();
  const shown = new WeakSet<vscode.TextDocument>();
  const provider: vscode.CodeLensProvider = {
    onDidChangeCodeLenses: changed.event,
    async provideCodeLenses(document, token) {
      if (!settings().lens.cache || !isPromptFile(document, settings())) return [];
      const { version } = document;
      const view = documents.current(document) ?? (shown.has(document) ? await within(documents.ready(document), patience, token) : (void documents.ready(document), null));
      if (!view || document.version !== version) return [];
      shown.add(document);
      return [...topLenses(document, view), ...breakerLenses(document, view)];
    },
  };

  function topLenses(document: vscode.TextDocument, view: FileView): vscode.CodeLens[] {
    const proof = proofs.of(document);
    return view.prompts.flatMap((one) => {
      const at = view.prompts.length === 1 ? new vscode.Range(0, 0, 0, 0) : lineStart(document, one.start);
      const lens = (title: string, command: string, args: unknown[], tooltip?: string) => new vscode.CodeLens(at, { title, command, arguments: args, ...(tooltip === undefined ? {} : { tooltip }) });
      const sentence = lens(one.sentence, commandIds.goToBreaker, [document.uri, one.index], tooltipOf(one, view));
      if (!one.provable) return [sentence];
      const prove = one.index === 0 && vscode.workspace.isTrusted ? [...(proof ? [lens(proof.lens, commandIds.openReport, [proof.reportId], proof.tooltip)] : []), lens(proof ? vscode.l10n.t('Prove again') : vscode.l10n.t('Prove'), commandIds.prove, [document.uri], vscode.l10n.t('Send it cold, warm and changed, and see what the server served from its cache'))] : [];
      const rule = one.index === 0 ? [lens(vscode.l10n.t('Rule: {0}', view.rule.name), commandIds.selectCacheRule, [], vscode.l10n.t('{0}, as of {1}: {2}', view.rule.name, view.rule.asOf, view.rule.why))] : [];
      return [sentence, ...prove, ...rule];
    });
  }

  function breakerLenses(document: vscode.TextDocument, view: FileView): vscode.CodeLens[] {
    if (!settings().lens.breakers) return [];
    return view.lenses.map(({ at, title }) => new vscode.CodeLens(lineStart(document, at), { title, command: commandIds.goToBreaker, arguments: [document.uri, 0, at], tooltip: vscode.l10n.t('Quick fixes: Ctrl+. on the marked text') }));
  }

  const selector = ['file', 'untitled', 'vscode-remote', 'vscode-vfs'].map((scheme) => ({ scheme }));
  const line = showLine({ settings, documents });
  const registrations = [vscode.languages.registerCodeLensProvider(selector, provider), documents.onDidChange(() => changed.fire()), changed, line];
  return {
    provider,
    refresh: () => {
      changed.fire();
      line.refresh();
    },
    dispose: () => void vscode.Disposable.from(...registrations).dispose(),
  };
}

function lineStart(document: vscode.TextDocument, offset: number): vscode.Range {
  const { line } = document.positionAt(offset);
  return new vscode.Range(line, 0, line, 0);
}

function tooltipOf(one: PromptView, view: FileView): string {
  const { rule } = view;
  return [...one.details, vscode.l10n.t('Rule {0} ({1}), as of {2}: {3}', rule.name, rule.why, rule.asOf, rule.source.join('; '))].join('\n');
}

/** Null when it does not come in time or nobody waits any more. */
async function within<T>(work: Promise<T>, ms: number, token: vscode.CancellationToken): Promise<T | null> {
  return await new Promise((resolve) => {
    const timer = setTimeout(() => end(null), ms);
    const cancelled = token.onCancellationRequested(() => end(null));
    const end = (value: T | null) => {
      clearTimeout(timer);
      cancelled.dispose();
      resolve(value);
    };
    work.then(end, () => end(null));
  });
}

/** The thin line above the place where the reusable prefix ends, and the mark on the place itself. */
function showLine({ settings, documents }: Omit<Parts, 'proofs'>): { refresh(): void; dispose(): void } {
  const color = new vscode.ThemeColor('firstToken.prefixEnd');
  const line = vscode.window.createTextEditorDecorationType({ isWholeLine: true, borderColor: color, borderStyle: 'solid', borderWidth: '1px 0 0 0', overviewRulerColor: color, overviewRulerLane: vscode.OverviewRulerLane.Center });
  const mark = vscode.window.createTextEditorDecorationType({ borderColor: color, borderStyle: 'solid', borderWidth: '0 0 0 2px' });

  function draw(editor: vscode.TextEditor): void {
    const view = documents.current(editor.document);
    // Between an edit and its analysis VS Code moves the old line along with the text; a wrong one is worse than none.
    const ends = view === null || !settings().lens.line || !settings().lens.cache ? [] : view.prompts.flatMap((one) => (one.ends === null ? [] : [one.ends]));
    editor.setDecorations(line, ends.map(({ start }) => lineStart(editor.document, start)));
    editor.setDecorations(mark, ends.map(({ start, end }) => new vscode.Range(editor.document.positionAt(start), editor.document.positionAt(Math.max(end, start + 1)))));
  }

  const drawAll = () => vscode.window.visibleTextEditors.forEach(draw);
  const registrations = [
    line,
    mark,
    documents.onDidChange((document) => vscode.window.visibleTextEditors.filter((editor) => editor.document === document).forEach(draw)),
    vscode.window.onDidChangeVisibleTextEditors(drawAll),
  ];
  return { refresh: drawAll, dispose: () => void vscode.Disposable.from(...registrations).dispose() };
}
