import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { answering, openFile, parts } from '../extensionUnderTest';

describe('prompt files in Restricted Mode', () => {
  it('have their lens, but nothing is proven and git is not run', async () => {
    const { prefix } = await parts();
    const said = await answering({});
    const document = await openFile('restricted.prompty', `---\nname: x\n---\nsystem:\nIt is {{current_time}}.\n${'Always answer politely.\n'.repeat(100)}\nuser:\n{{question}}\n`);
    const view = await prefix.documents.ready(document);
    assert.match(view?.prompts[0]?.sentence ?? '', /ends at line 5/);
    assert.equal(view?.source, 'o200k', 'no endpoint is asked to count');
    const lenses = (await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token)) ?? [];
    assert.ok(lenses.length > 0 && !lenses.some(({ command }) => command?.command === 'firstToken.prove'));
    await vscode.commands.executeCommand('firstToken.prove', document.uri);
    await vscode.commands.executeCommand('firstToken.sinceLastCommit', document.uri);
    assert.deepEqual(said.map(({ message }) => /Restricted Mode/.test(message)), [true, true]);
  });
});
