import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { commandIds } from '../../../src/editor/manifest';
import { extension, parts } from '../extensionUnderTest';

describe('activation', () => {
  it('activates and loads nothing heavy', async () => {
    await parts();
    assert.ok(extension().isActive);
    assert.equal(Object.keys(require.cache).filter((file) => /dist[\\/](probe|prompt|tokenizer|recorder)\.js$/.test(file)).length, 0);
  });

  it('registers every command of the manifest', async () => {
    await parts();
    const registered = new Set(await vscode.commands.getCommands(true));
    assert.deepEqual(
      Object.values(commandIds).filter((id) => !registered.has(id)),
      [],
    );
  });
});
