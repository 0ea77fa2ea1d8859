import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { commandIds } from '../../../src/editor/manifest';
import { openFile, parts, root } from '../extensionUnderTest';
import { otherFiles, sampleFiles } from '../sampleFiles';

const text = (name: string) => readFileSync(path.join(root, 'test/fixtures/workspace', name), 'utf8');

describe('the sample workspace in the editor', () => {
  before(async () => {
    const folder = vscode.workspace.workspaceFolders?.[0]?.uri;
    assert.ok(folder);
    // Files read each other: partials, configurations.
    for (const name of [...sampleFiles.map(({ file }) => file), ...otherFiles]) await vscode.workspace.fs.writeFile(vscode.Uri.joinPath(folder, 'sample', name), new TextEncoder().encode(text(name)));
    const { endpoints } = await parts();
    assert.deepEqual(endpoints.all(), [], 'no endpoint is selected, so the model or vLLM gives the rule');
  });

  for (const { file, format, lens, breaks } of sampleFiles) {
    it(`${file}: ${lens.join(' / ')}`, async () => {
      const { prefix } = await parts();
      const document = await openFile(`sample/${file}`, text(file));
      const view = await prefix.documents.ready(document);
      assert.equal(view?.format, format);
      const shown = (await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token)) ?? [];
      const titles = shown.map(({ command, range }) => ({ title: command?.title ?? '', line: range.start.line + 1, command: command?.command }));
      const top = titles.filter(({ title, command }) => command === commandIds.goToBreaker && (title.startsWith('Cache: ') || title.includes(', all static')));
      assert.deepEqual(top.map(({ title }) => title.replace(/\babout | · the chat template writes .*$/g, '')), lens);
      if (lens.length === 1) assert.equal(top[0]?.line, 1);
      const places = titles.filter(({ title }) => title.endsWith(' are computed again'));
      assert.deepEqual(places.map(({ line, title }) => [line, title.slice(0, title.indexOf(' changes '))]), breaks);
      const warnings = vscode.languages.getDiagnostics(document.uri).filter(({ source, severity }) => source === 'First Token' && severity === vscode.DiagnosticSeverity.Warning);
      assert.deepEqual(warnings.map(({ range }) => [range.start.line + 1, document.getText(range)]), breaks);
      assert.equal(titles.some(({ title }) => title === 'Prove'), lens.some((one) => !one.endsWith('all static')), 'what is all static needs no proof');
    });
  }

  it('adds a marker to the request that has none', async () => {
    const { prefix } = await parts();
    const file = 'prompts/requests/anthropic-unmarked.json';
    const document = await openFile(`sample/${file}`, text(file));
    await prefix.documents.ready(document);
    const [found] = vscode.languages.getDiagnostics(document.uri).filter(({ code }) => typeof code === 'object' && code.value === 'no-marker');
    assert.ok(found);
    const actions = await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, found.range);
    const fix = actions.find(({ title }) => title === 'Add a cache_control marker after the static block');
    assert.ok(fix?.edit, actions.map(({ title }) => title).join('\n'));
    assert.equal(fix.kind?.value, vscode.CodeActionKind.QuickFix.value);
    assert.ok(await vscode.workspace.applyEdit(fix.edit));
    const view = await prefix.documents.ready(document);
    assert.match(view?.prompts[0]?.sentence ?? '', /tokens, all static · up to 1,042 cached on Anthropic$/);
  });
});
