// The extension as the tests see it, and answers for its dialogs.
import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { Dialogs } from '../../src/editor/dialogs';
import type { EditorApi, TestParts } from '../../src/editor/editor';

export const root = path.resolve(__dirname, '../../..');

export function extension(): vscode.Extension<EditorApi> {
  const found = vscode.extensions.getExtension<EditorApi>('first-token.first-token');
  assert.ok(found, 'the extension is installed');
  return found;
}

/** Each test file is a bundle of its own, so what they share lives with the process. */
const shared = globalThis as { firstTokenParts?: TestParts };

/** The parts behind the editor; activates the extension on first use. */
export async function parts(): Promise<TestParts> {
  if (shared.firstTokenParts) return shared.firstTokenParts;
  const api = await extension().activate();
  assert.ok(api.parts, 'parts are handed out in test mode');
  return (shared.firstTokenParts = api.parts);
}

/** After a second activation: the parts of the new one. */
export function use(replacement: TestParts): void {
  shared.firstTokenParts = replacement;
}

export interface Said {
  readonly kind: string;
  readonly message: string;
  readonly choices: readonly string[];
}

/** Replaces dialogs for one test; what is not answered fails the test. Returns what was said. */
export async function answering(answers: Partial<Dialogs>): Promise<Said[]> {
  const said: Said[] = [];
  const unexpected = (name: string) => (question: unknown) => Promise.reject(new Error(`Unexpected ${name}: ${JSON.stringify(question)}`));
  const { dialogs } = await parts();
  Object.assign(dialogs, {
    confirm: unexpected('confirmation'),
    pick: unexpected('pick'),
    input: unexpected('input'),
    save: unexpected('save'),
    open: unexpected('open'),
    ...answers,
    choose: (kind: string, message: string, ...choices: string[]) => {
      said.push({ kind, message, choices });
      return answers.choose ? answers.choose(kind as 'info', message, ...choices) : Promise.resolve(undefined);
    },
  } satisfies Partial<Dialogs>);
  return said;
}

export const config = () => vscode.workspace.getConfiguration('firstToken');

/** Sets a user setting and waits until the extension has read it. */
export async function setUser(name: string, value: unknown): Promise<void> {
  await config().update(name, value, vscode.ConfigurationTarget.Global);
}

/** Writes a file of the workspace and opens it. */
export async function openFile(name: string, text: string): Promise<vscode.TextDocument> {
  const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
  assert.ok(folder);
  const uri = vscode.Uri.joinPath(folder, name);
  await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
  const document = await vscode.workspace.openTextDocument(uri);
  await vscode.window.showTextDocument(document);
  // A file that an earlier test had open shows its old text until the editor has seen the change.
  await until(() => document.getText() === text, `the new text of ${name}`);
  return document;
}

export async function until(condition: () => boolean | Promise<boolean>, what: string, limit = 30_000): Promise<void> {
  const begun = process.hrtime.bigint();
  while (!(await condition())) {
    assert.ok(Number(process.hrtime.bigint() - begun) / 1e6 < limit, `${what} within ${limit / 1000} s`);
    await new Promise((resolve) => setTimeout(resolve, 20));
  }
}
