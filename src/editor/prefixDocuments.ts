import * as path from 'node:path';
import * as vscode from 'vscode';
import type { EndpointCounts } from '../probe/index';
import type { Log } from './log';
import type { FileView, JudgeBy, SourceText } from './prefixMessages';
import type { PrefixWorker } from './prefixWorker';

/** The analyses of open prompt files. A view is only handed out for the very version of the document it was made of. */
export interface PrefixDocuments {
  /** The view of the document as it stands now, or null while there is none. */
  current(document: vscode.TextDocument): FileView | null;
  /** The view of the document as it stands now, once it is there; null when the document was closed, is no prompt file, or cannot be analysed. */
  ready(document: vscode.TextDocument): Promise<FileView | null>;
  readonly onDidChange: vscode.Event<vscode.TextDocument>;
  readonly onDidForget: vscode.Event<vscode.TextDocument>;
  /** What files are judged by has changed: rule, scope, endpoint, settings. */
  refresh(): void;
  dispose(): void;
}

/** Quiet time after a keystroke before the text is read. */
const pause = 120;
/** Quiet time after the last edit before the endpoint is asked to count. */
const countingPause = 1000;
/** Above that the text is not even copied to the thread. */
const largest = 5_000_000;
/** A document that made the thread fail is asked about this often. */
const mostFailures = 2;

interface Tracked {
  readonly document: vscode.TextDocument;
  view: { readonly version: number; readonly generation: number; readonly value: FileView | null } | null;
  busy: boolean;
  edited: number;
  /** It was edited since it is followed. */
  touched: boolean;
  /** Ends the counting at the endpoint that is planned or under way. */
  counting: AbortController | null;
  failures: { version: number; count: number };
}

/** What following documents needs from the rest. */
export interface DocumentParts {
  readonly worker: PrefixWorker;
  readonly log: Log;
  readonly judge: () => JudgeBy;
  readonly wanted: (document: vscode.TextDocument) => boolean;
  /** Counts at the selected endpoint, or null where it does not. */
  readonly count: (source: SourceText, judge: JudgeBy, signal: AbortSignal) => Promise<EndpointCounts | null>;
}

/** Follows the visible prompt files and those asked about: analysed with estimated tokens at once, and again when the endpoint has counted. */
export function createPrefixDocuments(parts: DocumentParts): PrefixDocuments {
  const changed = new vscode.EventEmitter<vscode.TextDocument>();
  const forgotten = new vscode.EventEmitter<vscode.TextDocument>();
  const tracked = new Map<vscode.TextDocument, Tracked>();
  let generation = 0;
  let disposed = false;

  const isCurrent = (one: Tracked) => one.view?.version === one.document.version && one.view.generation === generation;

  function track(document: vscode.TextDocument): Tracked | null {
    const known = tracked.get(document);
    if (known) return known;
    if (document.isClosed || !parts.wanted(document)) return null;
    const fresh: Tracked = { document, view: null, busy: false, edited: 0, touched: false, counting: null, failures: { version: -1, count: 0 } };
    tracked.set(document, fresh);
    return fresh;
  }

  function forget(document: vscode.TextDocument): void {
    tracked.get(document)?.counting?.abort();
    if (!tracked.delete(document)) return;
    forgotten.fire(document);
  }

  /** Analyses until the view is that of the text as it stands; edits meanwhile only make it go round again. */
  async function work(one: Tracked): Promise<void> {
    if (one.busy || disposed) return;
    one.busy = true;
    try {
      while (!disposed && !one.document.isClosed && tracked.has(one.document) && !isCurrent(one)) {
        const { version } = one.document;
        const now = generation;
        if (one.edited > 0) {
          one.edited = 0;
          await new Promise((resolve) => setTimeout(resolve, pause));
          if (one.document.version !== version) continue;
        }
        const value = await analyse(one, version);
        if (one.document.version !== version || now !== generation) continue;
        one.view = { version, generation: now, value };
        changed.fire(one.document);
        if (value !== null && value.prompts.length > 0) countLater(one, version, now);
      }
    } finally {
      one.busy = false;
    }
  }

  function countLater(one: Tracked, version: number, of: number): void {
    one.counting?.abort();
    const abort = new AbortController();
    one.counting = abort;
    const { signal } = abort;
    const stale = () => disposed || signal.aborted || one.document.isClosed || one.document.version !== version || generation !== of;
    const count = async () => {
      if (stale()) return;
      const counted = await parts.count(sourceOf(one.document), parts.judge(), signal);
      if (counted === null || stale()) return;
      const value = await analyse(one, version, counted);
      if (value === null || stale()) return;
      one.view = { version, generation: of, value };
      changed.fire(one.document);
    };
    const timer = setTimeout(() => void count().catch((error: unknown) => parts.log.info(`Counting ${one.document.uri.toString()}: ${String(error)}`)), one.touched ? countingPause : 0);
    signal.addEventListener('abort', () => clearTimeout(timer), { once: true });
  }

  async function analyse(one: Tracked, version: number, counted: EndpointCounts | null = null): Promise<FileView | null> {
    const { document } = one;
    if (lengthOf(document) > largest) return tooLarge;
    if (one.failures.version === version && one.failures.count >= mostFailures) return null;
    try {
      return await parts.worker.ask({ type: 'analyse', source: sourceOf(document), version, judge: parts.judge(), counted });
    } catch (error) {
      if (disposed) return null;
      one.failures = { version, count: one.failures.version === version ? one.failures.count + 1 : 1 };
      parts.log.error(`Analysis of ${document.uri.toString()}: ${error instanceof Error ? error.message : String(error)}`);
      return one.failures.count >= mostFailures ? null : await analyse(one, version, counted);
    }
  }

  const follow = (document: vscode.TextDocument) => {
    const one = track(document);
    if (one) void work(one);
  };

  const subscriptions = [
    changed,
    forgotten,
    vscode.window.onDidChangeVisibleTextEditors((editors) => editors.forEach(({ document }) => follow(document))),
    vscode.workspace.onDidChangeTextDocument(({ document, contentChanges }) => {
      const one = tracked.get(document);
      if (!one || contentChanges.length === 0) return;
      one.edited += 1;
      one.touched = true;
      one.counting?.abort();
      void work(one);
    }),
    vscode.workspace.onDidCloseTextDocument(forget),
    // A file that others include has been written: their views hold its old text.
    vscode.workspace.onDidSaveTextDocument(({ uri }) => {
      const saved = uri.fsPath.replaceAll(path.sep, '/');
      for (const one of tracked.values()) {
        if (one.document.uri.toString() === uri.toString() || one.view?.value?.dependencies.some((name) => path.posix.resolve(path.posix.dirname(one.document.uri.path), name) === saved) !== true) continue;
        one.view = null;
        void work(one);
      }
    }),
  ];
  // After the composition root is done, so that activation does not wait.
  setImmediate(() => {
    if (!disposed) vscode.window.visibleTextEditors.forEach(({ document }) => follow(document));
  });

  return {
    current: (document) => {
      const one = tracked.get(document);
      return one && isCurrent(one) ? one.view!.value : null;
    },
    async ready(document) {
      for (;;) {
        const one = track(document);
        if (!one || disposed) return null;
        if (isCurrent(one)) return one.view!.value;
        void work(one);
        await new Promise<void>((resolve) => {
          const listeners = [changed.event((other) => (other === document ? done() : undefined)), forgotten.event((other) => (other === document ? done() : undefined))];
          const done = () => {
            vscode.Disposable.from(...listeners).dispose();
            resolve();
          };
        });
        if (document.isClosed) return null;
      }
    },
    onDidChange: changed.event,
    onDidForget: forgotten.event,
    refresh() {
      generation += 1;
      for (const one of [...tracked.values()]) {
        if (!parts.wanted(one.document)) forget(one.document);
        else void work(one);
      }
      vscode.window.visibleTextEditors.forEach(({ document }) => follow(document));
    },
    dispose() {
      disposed = true;
      vscode.Disposable.from(...subscriptions).dispose();
      for (const { counting } of tracked.values()) counting?.abort();
      tracked.clear();
    },
  };
}

/** Characters, without making a string of them. */
function lengthOf(document: vscode.TextDocument): number {
  return document.offsetAt(new vscode.Position(document.lineCount, 0));
}

const message = 'The file is larger than 5 MB and is not analysed.';
const tooLarge: FileView = {
  format: 'text',
  host: '',
  off: false,
  rule: { id: '', name: '', asOf: '', source: [], notes: '', why: '' },
  source: 'bytes/4',
  exact: false,
  prompts: [],
  lenses: [],
  hovers: [],
  findings: [{ code: 'syntax', severity: 'information', start: 0, end: 1, line: 1, text: '', class: 'unknown', evidence: 'grammar', lostTokens: 0, message }],
  dependencies: [],
  problems: [],
};

/** A document as the analysis thread takes it: its text as it stands, and where files beside it may be read. */
export function sourceOf(document: vscode.TextDocument, text = document.getText()): SourceText {
  const { uri } = document;
  const onDisk = uri.scheme === 'file';
  const folder = vscode.workspace.getWorkspaceFolder(uri)?.uri.fsPath ?? null;
  return { uri: uri.toString(), path: onDisk ? uri.fsPath : uri.path, root: onDisk ? (folder ?? path.dirname(uri.fsPath)) : null, text };
}
