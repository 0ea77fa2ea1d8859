import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type * as extensionModule from '../../../src/extension';
import { answering, extension, parts, use } from '../extensionUnderTest';

describe('life', () => {
  it('deactivates and activates again', async () => {
    const { context } = await parts();
    // eslint-disable-next-line @typescript-eslint/no-require-imports -- the very module that VS Code has loaded
    const module = require(path.join(extension().extensionPath, 'dist/extension.js')) as typeof extensionModule;
    module.deactivate();
    for (const subscription of context.subscriptions.splice(0).reverse()) await subscription.dispose();
    const commands = await vscode.commands.getCommands(true);
    assert.ok(!commands.includes('firstToken.stop'), 'commands are gone');
    const api = module.activate(context);
    assert.ok(api.parts);
    use(api.parts);
    assert.ok((await vscode.commands.getCommands(true)).includes('firstToken.stop'));
    await answering({});
  });
});
