import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answering, config, parts, setUser } from '../extensionUnderTest';

describe('without a folder', () => {
  it('has none', () => {
    assert.equal(vscode.workspace.workspaceFolders, undefined);
  });

  it('keeps reports in global storage', async () => {
    const { store, context } = await parts();
    assert.equal(store.folder, path.join(context.globalStorageUri.fsPath, 'reports'));
  });

  it('probes the demo and an unsaved file', async () => {
    const { runs, store, handlers, demo } = await parts();
    await answering({});
    await setUser('probe', { requests: 2, maxTokens: 16 });
    try {
      await handlers.tryDemo();
      assert.equal(runs.last?.report.outcomes.ok, 8);
      const document = await vscode.workspace.openTextDocument({ content: 'Name a river.' });
      await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
      assert.match(runs.last.report.plan.prompt.name, /^Untitled/);
      assert.equal((await store.list()).length, 2);
    } finally {
      await config().update('probe', undefined, vscode.ConfigurationTarget.Global);
      await demo.stop();
    }
  });

  it('says what to do without an endpoint, and without a document', async () => {
    const said = await answering({});
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    await vscode.commands.executeCommand('firstToken.spotCheck');
    await vscode.commands.executeCommand('firstToken.probePrompt');
    assert.match(said[0]?.message ?? '', /no endpoint yet.*demo/);
    assert.deepEqual(said[0]?.choices, ['Add Endpoint', 'Try the Demo']);
    assert.match(said[1]?.message ?? '', /No prompt is open/);
  });
});
