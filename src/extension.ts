import type * as vscode from 'vscode';
import { startEditor, type EditorApi } from './editor/editor';

/** Starts the extension. */
export function activate(context: vscode.ExtensionContext): EditorApi {
  return startEditor(context);
}

/** Everything is in `context.subscriptions`; a run in progress stops with it. */
export function deactivate(): void {
  // Nothing is left to do.
}
