import * as vscode from 'vscode';
import type { FromLab, ToLab } from '../report/messages';
import { packMessage } from '../report/packing';
import { askLab, type LabAnswer } from './labThread';
import { labPanelType } from './manifest';
import { webviewPage } from './webviewPage';

/** The lab page: one panel of the window. */
export interface Lab {
  open(): void;
  /** The last answer of the lab's thread, for tests; null before the first. */
  readonly last: LabAnswer | null;
  dispose(): void;
}

/** What the lab page asks of the rest of the editor. */
export interface LabParts {
  readonly extensionUri: vscode.Uri;
  /** Path of the built thread (dist/lab.js). */
  readonly script: string;
  readonly version: string;
  /** Starts the demo endpoint with these flags in place of the one that runs; resolves with its URL. */
  readonly serve: (flags: readonly string[]) => Promise<string>;
  readonly failed: (message: string) => void;
  /** Tells the user about an error of `serve`. */
  readonly guarded: (work: () => Promise<unknown>) => Promise<void>;
}

/** Registers the page's serializer. Simulations run in a thread of their own, one at a time; a new question ends the one before. */
export function createLab(parts: LabParts): Lab {
  let panel: vscode.WebviewPanel | null = null;
  let running = new AbortController();
  let last: LabAnswer | null = null;

  function adopt(webview: vscode.WebviewPanel): void {
    panel = webview;
    webview.iconPath = { light: vscode.Uri.joinPath(parts.extensionUri, 'media', 'view-light.svg'), dark: vscode.Uri.joinPath(parts.extensionUri, 'media', 'view-dark.svg') };
    webview.webview.options = { enableScripts: true, localResourceRoots: [vscode.Uri.joinPath(parts.extensionUri, 'dist')] };
    webview.webview.onDidReceiveMessage((message: FromLab) => void parts.guarded(() => receive(webview, message)));
    webview.onDidDispose(() => {
      running.abort();
      if (panel === webview) panel = null;
    });
    webview.webview.html = webviewPage(webview.webview, parts.extensionUri, { title: 'First Token: Lab', root: 'lab', script: 'labPage.js', styles: ['webview.css', 'labPage.css'] });
  }

  function post({ webview }: vscode.WebviewPanel, message: ToLab): void {
    void webview.postMessage(message.type === 'compare' ? packMessage(message) : message);
  }

  async function ask(question: Pick<Extract<FromLab, { type: 'labRun' }>, 'load'> & { readonly a: readonly string[] | null; readonly b: readonly string[] | null }): Promise<LabAnswer | null> {
    running.abort();
    running = new AbortController();
    try {
      return await askLab(parts.script, { ...question, version: parts.version }, running.signal);
    } catch (error) {
      // The next question has taken its place.
      if (error instanceof Error && error.name === 'Cancelled') return null;
      throw error;
    }
  }

  async function receive(webview: vscode.WebviewPanel, message: FromLab): Promise<void> {
    switch (message.type) {
      case 'labReady': {
        const answer = await askLab(parts.script, { a: null, b: null, load: nothing, version: parts.version }, new AbortController().signal);
        if (answer.kind === 'options') post(webview, { type: 'labOptions', models: answer.models, gpus: answer.gpus });
        return;
      }
      case 'labRun': {
        post(webview, { type: 'labRunning' });
        const answer = await ask(message);
        if (answer === null) return;
        last = answer;
        if (answer.kind === 'result') post(webview, { type: 'compare', a: answer.a, b: answer.b });
        if (answer.kind === 'problem') post(webview, { type: 'labProblem', side: answer.side, message: answer.message });
        return;
      }
      case 'labServe': {
        // Asked in virtual time first: what is wrong with the settings belongs beside them.
        const tried = await askLab(parts.script, { a: message.flags, b: [], load: nothing, version: parts.version }, new AbortController().signal);
        if (tried.kind === 'problem') return post(webview, { type: 'labProblem', side: message.side, message: tried.message });
        const url = await parts.serve(message.flags);
        return post(webview, { type: 'labServes', side: message.side, url });
      }
      case 'copy':
        await vscode.env.clipboard.writeText(message.text);
        return;
      case 'failed':
        return parts.failed(message.message);
      default:
        return message satisfies never;
    }
  }

  const serializer = vscode.window.registerWebviewPanelSerializer(labPanelType, {
    deserializeWebviewPanel(webview) {
      adopt(webview);
      return Promise.resolve();
    },
  });

  return {
    open() {
      if (panel) panel.reveal();
      else adopt(vscode.window.createWebviewPanel(labPanelType, vscode.l10n.t('First Token: Lab'), vscode.ViewColumn.Active, { enableScripts: true }));
    },
    get last() {
      return last;
    },
    dispose() {
      running.abort();
      serializer.dispose();
    },
  };
}

const nothing = { arrivals: { kind: 'users', users: 1 }, requests: 1, promptTokens: 1, outputTokens: 1, lengths: 'equal', longPromptTokens: 0, sharedTokens: 0, groups: 1, tenants: 'one', seed: 1 } as const;
