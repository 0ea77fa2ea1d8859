import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { parts } from '../extensionUnderTest';

// The first file of its suite: no prompt file has been opened in this window yet.
describe('the analysis thread', () => {
  it('is not started before the first prompt file is opened', async () => {
    const { prefix } = await parts();
    await vscode.window.showTextDocument(await vscode.workspace.openTextDocument({ content: 'Just a note.', language: 'plaintext' }));
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.equal(prefix.worker.started, false);
  });
});
