import * as vscode from 'vscode';
import { Cancelled } from './failure';

/** Everything that asks the user and waits. One object, so that tests can answer (modal dialogs throw inside a test). */
export interface Dialogs {
  /** A modal question; false when it is dismissed. */
  confirm(question: { readonly message: string; readonly detail: string; readonly action: string }): Promise<boolean>;
  /** A notification with buttons; undefined when it is dismissed. */
  choose(kind: 'info' | 'warning' | 'error', message: string, ...choices: string[]): Promise<string | undefined>;
  pick<T extends vscode.QuickPickItem>(items: readonly T[] | Promise<readonly T[]>, options: vscode.QuickPickOptions): Promise<T | undefined>;
  input(options: vscode.InputBoxOptions & { readonly step?: number; readonly totalSteps?: number }): Promise<string | undefined>;
  save(options: vscode.SaveDialogOptions): Promise<vscode.Uri | undefined>;
  open(options: vscode.OpenDialogOptions): Promise<vscode.Uri | undefined>;
}

/** The editor's own dialogs. */
export const editorDialogs: Dialogs = {
  async confirm({ message, detail, action }) {
    return (await vscode.window.showWarningMessage(message, { modal: true, detail }, action)) === action;
  },
  async choose(kind, message, ...choices) {
    const show = { info: vscode.window.showInformationMessage, warning: vscode.window.showWarningMessage, error: vscode.window.showErrorMessage }[kind];
    return await show(message, ...choices);
  },
  async pick(items, options) {
    return await vscode.window.showQuickPick(items, options);
  },
  async input({ step, totalSteps, title, ...options }) {
    const steps = step !== undefined && totalSteps !== undefined ? ` (${step}/${totalSteps})` : '';
    return await vscode.window.showInputBox({ ignoreFocusOut: true, ...options, ...(title === undefined ? {} : { title: title + steps }) });
  },
  async save(options) {
    return await vscode.window.showSaveDialog(options);
  },
  async open(options) {
    return (await vscode.window.showOpenDialog({ canSelectMany: false, ...options }))?.[0];
  },
};

/** The answer of a dialog, or `Cancelled` when there was none. */
export async function answered<T>(answer: Promise<T | undefined>): Promise<T> {
  const value = await answer;
  if (value === undefined) throw new Cancelled();
  return value;
}
