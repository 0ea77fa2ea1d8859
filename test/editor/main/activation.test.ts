import assert from 'node:assert/strict';
import * as vscode from 'vscode';

describe('activation', () => {
  it('activates', async () => {
    const extension = vscode.extensions.getExtension('first-token.first-token');
    assert.ok(extension);
    await extension.activate();
    assert.ok(extension.isActive);
  });
});
