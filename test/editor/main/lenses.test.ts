import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { hashOf } from '../../../src/editor/promptResults';
import { openFile, parts, setUser, config, until } from '../extensionUnderTest';

async function lensTitles(document: vscode.TextDocument): Promise<string[]> {
  const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri, 100);
  return lenses.flatMap(({ command }) => (['firstToken.probePrompt', 'firstToken.stop', 'firstToken.openReport'].includes(command?.command ?? '') ? [command!.title] : []));
}

const result = (textHash: string) => ({ reportId: 'r1', at: new Date().toISOString(), textHash, endpoint: 'h200', lens: 'TTFT 212 ms (p99 410) · 31 tok/s · meets SLO', status: 'h200: 212 ms · 31 tok/s', sentence: 'Meets the chat SLO.' });

describe('lenses', () => {
  it('stand above prompt files and nothing else', async () => {
    await parts();
    for (const name of ['a.prompt.md', 'b.prompt', 'c.prompty', 'd.prompt.yml']) {
      assert.deepEqual(await lensTitles(await openFile(name, 'Say hello.')), ['$(play) Probe'], name);
    }
    assert.deepEqual(await lensTitles(await openFile('readme.md', 'Say hello.')), []);
  });

  it('stand on files that hold a prompt by content, whatever their name, and on no other', async () => {
    await parts();
    const request = JSON.stringify({ model: 'm', messages: [{ role: 'system', content: 'Answer politely. '.repeat(30) }, { role: 'user', content: 'Hello' }] });
    const holding: readonly (readonly [string, string])[] = [
      ['ordinary/chat.json', request],
      ['ordinary/triage.jinja2', 'You triage tickets. {{ ticket }}'],
      ['ordinary/bot.py', `def build(q):\n    return f"""You are a bot. {q}\n${'Answer politely. '.repeat(100)}"""\n`],
    ];
    for (const [name, text] of holding) {
      const document = await openFile(name, text);
      await until(async () => (await lensTitles(document)).includes('$(play) Probe'), `the lens of ${name}`);
      assert.ok((await (await parts()).prefix.documents.ready(document))?.prompts[0], name);
    }
    const others: readonly (readonly [string, string])[] = [
      ['ordinary/history.json', JSON.stringify({ title: 'x', messages: [{ role: 'user', content: 'Hello' }] })],
      ['ordinary/nginx.conf.j2', 'server { listen {{ port }}; }'],
      ['ordinary/main.py', 'print("You are here")\n'],
      ['ordinary/guide.md', 'When you are a newcomer, read this.'],
    ];
    for (const [name, text] of others) assert.deepEqual(await lensTitles(await openFile(name, text)), [], name);
  });

  it('keep their lens while a request is half-typed', async () => {
    await parts();
    const document = await openFile('ordinary/typed.json', JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] }));
    assert.ok((await lensTitles(document)).includes('$(play) Probe'));
    const edit = new vscode.WorkspaceEdit();
    edit.delete(document.uri, new vscode.Range(document.positionAt(document.getText().length - 1), document.positionAt(document.getText().length)));
    assert.ok(await vscode.workspace.applyEdit(edit));
    assert.ok((await lensTitles(document)).includes('$(play) Probe'));
    await vscode.commands.executeCommand('workbench.action.files.revert');
  });

  it('follow firstToken.promptFiles and firstToken.lens', async () => {
    await parts();
    const document = await openFile('plain.txt', 'Say hello.');
    await setUser('promptFiles', ['**/*.txt']);
    try {
      assert.deepEqual(await lensTitles(document), ['$(play) Probe']);
      await setUser('lens', { probe: false });
      assert.deepEqual(await lensTitles(document), []);
    } finally {
      await config().update('promptFiles', undefined, vscode.ConfigurationTarget.Global);
      await config().update('lens', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('show the last result, and say when it is stale', async () => {
    const { results } = await parts();
    const text = 'Say hello twice.';
    const document = await openFile('result.prompt.md', text);
    await results.set(document.uri.toString(), result(hashOf(text)));
    assert.equal((await lensTitles(document))[1], 'TTFT 212 ms (p99 410) · 31 tok/s · meets SLO');
    const edit = new vscode.WorkspaceEdit();
    edit.insert(document.uri, new vscode.Position(0, 0), 'Please. ');
    await vscode.workspace.applyEdit(edit);
    assert.match((await lensTitles(document))[1] ?? '', /meets SLO · stale: measured .*, edited since$/);
  });

  it('move with a renamed file', async () => {
    const { results } = await parts();
    const text = 'Say goodbye.';
    const document = await openFile('before.prompt.md', text);
    await results.set(document.uri.toString(), result(hashOf(text)));
    const renamed = vscode.Uri.joinPath(document.uri, '../after.prompt.md');
    const edit = new vscode.WorkspaceEdit();
    edit.renameFile(document.uri, renamed, { overwrite: true });
    assert.ok(await vscode.workspace.applyEdit(edit));
    const moved = await vscode.workspace.openTextDocument(renamed);
    assert.match((await lensTitles(moved))[1] ?? '', /212 ms/);
  });
});
