import { readFileSync } from 'node:fs';
import * as vscode from 'vscode';
import { commandIds } from './manifest';
import type { PrefixDocuments } from './prefixDocuments';
import type { FixView } from './prefixMessages';
import type { PrefixWorker } from './prefixWorker';
import { isPromptFile } from './promptLenses';
import type { Settings } from './settings';

/** What findings are shown with. */
interface Parts {
  readonly settings: () => Settings;
  readonly documents: PrefixDocuments;
  readonly worker: PrefixWorker;
  /** docs/findings.md of the extension. */
  readonly findingsPage: vscode.Uri;
}

const severities = { warning: vscode.DiagnosticSeverity.Warning, information: vscode.DiagnosticSeverity.Information, hint: vscode.DiagnosticSeverity.Hint } as const;
const selector = ['file', 'untitled', 'vscode-remote', 'vscode-vfs'].map((scheme) => ({ scheme }));

/** Findings as diagnostics, hovers on changing places, and quick fixes. */
export function createPrefixDiagnostics(parts: Parts): { readonly collection: vscode.DiagnosticCollection; readonly hovers: vscode.HoverProvider; readonly actions: vscode.CodeActionProvider; dispose(): void } {
  const { documents } = parts;
  const collection = vscode.languages.createDiagnosticCollection('firstToken');
  const hovers: vscode.HoverProvider = {
    async provideHover(document, position) {
      if (!isPromptFile(document, parts.settings())) return null;
      const view = await documents.ready(document);
      const offset = document.offsetAt(position);
      const found = view?.hovers.find(({ start, end }) => start <= offset && offset <= end);
      if (!found) return null;
      const text = new vscode.MarkdownString(found.lines.join('\n\n'));
      return new vscode.Hover(text, new vscode.Range(document.positionAt(found.start), document.positionAt(found.end)));
    },
  };
  const actions: vscode.CodeActionProvider = {
    async provideCodeActions(document, range, context) {
      if (!isPromptFile(document, parts.settings())) return [];
      const view = await documents.ready(document);
      const { version } = document;
      if (!view || view.prompts.length === 0) return [];
      const fixes = await parts.worker.ask({ type: 'fixes', uri: document.uri.toString(), version, start: document.offsetAt(range.start), end: document.offsetAt(range.end) }).catch(() => null);
      if (fixes === null || document.version !== version) return [];
      const mine = context.diagnostics.filter(({ source }) => source === sourceName);
      return fixes.map((fix) => codeAction(document, fix, mine));
    },
  };
  const registrations = [
    collection,
    documents.onDidChange((document) => publish(collection, document, parts)),
    documents.onDidForget(({ uri }) => collection.delete(uri)),
    vscode.languages.registerHoverProvider(selector, hovers),
    vscode.languages.registerCodeActionsProvider(selector, actions, { providedCodeActionKinds: [vscode.CodeActionKind.QuickFix, vscode.CodeActionKind.RefactorRewrite] }),
  ];
  return { collection, hovers, actions, dispose: () => void vscode.Disposable.from(...registrations).dispose() };
}

const sourceName = 'First Token';

function publish(collection: vscode.DiagnosticCollection, document: vscode.TextDocument, { documents, findingsPage }: Parts): void {
  const view = documents.current(document);
  if (!view) return collection.delete(document.uri);
  collection.set(
    document.uri,
    view.findings.map((finding) => {
      const range = new vscode.Range(document.positionAt(finding.start), document.positionAt(Math.max(finding.end, finding.start + 1)));
      const diagnostic = new vscode.Diagnostic(range, finding.message, severities[finding.severity]);
      diagnostic.source = sourceName;
      diagnostic.code = { value: finding.code, target: sectionOf(findingsPage, finding.code) };
      return diagnostic;
    }),
  );
}

let headings: ReadonlyMap<string, number> | null = null;

/** The section of a code on the findings page: a place that the editor opens, as the page has no address of its own. */
export function sectionOf(page: vscode.Uri, code: string): vscode.Uri {
  headings ??= readHeadings(page);
  const line = headings.get(code);
  return line === undefined ? page : page.with({ fragment: `L${line}` });
}

function readHeadings(page: vscode.Uri): ReadonlyMap<string, number> {
  try {
    return new Map(readFileSync(page.fsPath, 'utf8').split('\n').flatMap((line, i) => (line.startsWith('## ') ? [[line.slice(3).trim(), i + 1] as const] : [])));
  } catch {
    return new Map();
  }
}

/** Fixes that move or rewrite text may change what it means: VS Code then shows them before they are applied. */
const harmless: ReadonlySet<string> = new Set(['ignore', 'classify']);

function codeAction(document: vscode.TextDocument, fix: FixView, diagnostics: readonly vscode.Diagnostic[]): vscode.CodeAction {
  const about = diagnostics.filter(({ code }) => fix.code !== null && typeof code === 'object' && code.value === fix.code);
  const action = new vscode.CodeAction(fix.title, about.length > 0 ? vscode.CodeActionKind.QuickFix : vscode.CodeActionKind.RefactorRewrite);
  action.diagnostics = [...about];
  if (fix.setting) {
    action.command = { title: fix.title, command: commandIds.classifyVariable, arguments: [fix.setting.name, fix.setting.value] };
    return action;
  }
  action.edit = fixEdit(document, fix);
  return action;
}

/**
 * The edit of a fix. One that rewrites text opens the refactor preview with all its rows checked: VS Code opens it for an edit that needs
 * confirmation and unchecks just that one. So what asks for it is a deletion of a file that is not there, which is given no row.
 */
export function fixEdit(document: vscode.TextDocument, fix: FixView): vscode.WorkspaceEdit {
  const edit = new vscode.WorkspaceEdit();
  const edits = fix.edits ?? [];
  if (edits.length > 0 && !harmless.has(fix.kind)) edit.deleteFile(document.uri.with({ path: `${document.uri.path}.no-such-file` }), { ignoreIfNotExists: true }, { needsConfirmation: true, label: fix.title });
  for (const { start, end, text } of edits) edit.replace(document.uri, new vscode.Range(document.positionAt(start), document.positionAt(end)), text);
  return edit;
}
