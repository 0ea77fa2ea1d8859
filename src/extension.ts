import type * as vscode from 'vscode';

/** Starts the extension. */
export function activate(context: vscode.ExtensionContext): void {
  void context;
}
