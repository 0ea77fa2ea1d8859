import assert from 'node:assert/strict';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as vscode from 'vscode';
import { answering, config, openFile, parts, setUser, until } from '../extensionUnderTest';

// The workspace of this suite brings settings of its own: an endpoint, a proxy, and a probe of many requests (see run.mjs).
describe('Restricted Mode', () => {
  it('is on', () => {
    assert.equal(vscode.workspace.isTrusted, false);
  });

  it('ignores endpoints and network settings of the folder', async () => {
    const { settings } = await parts();
    await answering({});
    assert.deepEqual(settings().endpoints, []);
    assert.equal(settings().network.proxy, 'vscode');
    assert.equal(settings().probe.requests, 20);
  });

  it('sends no request, not even to an endpoint of the user', async () => {
    const { settings, runs, prefix } = await parts();
    let requests = 0;
    const server = createServer((_request, response) => {
      requests += 1;
      response.end();
    });
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    const said = await answering({});
    await setUser('endpoints', [{ name: 'mine', url }]);
    try {
      await until(() => settings().endpoints.length === 1, 'the endpoint');
      const document = await openFile('a.prompt.md', 'Say hello.');
      // In a trusted folder its tokens would be counted there now.
      assert.ok(await prefix.documents.ready(document));
      await new Promise((resolve) => setTimeout(resolve, 500));
      await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
      await vscode.commands.executeCommand('firstToken.spotCheck', 'mine');
      await vscode.commands.executeCommand('firstToken.tryDemo');
      assert.equal(requests, 0);
      assert.equal(runs.last, null);
      assert.deepEqual(
        said.map(({ message }) => /Restricted Mode/.test(message)),
        [true, true, true],
      );
    } finally {
      await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
      server.close();
    }
  });

  it('still shows lenses and opens reports', async () => {
    const { panels } = await parts();
    const document = await openFile('b.prompt.md', 'Say hello.');
    const lenses = await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri);
    assert.ok(lenses.length >= 1);
    panels.showReport({ problem: { kind: 'damaged', detail: 'nothing in it', path: '/tmp/x' } });
    await until(() => vscode.window.tabGroups.all.some(({ tabs }) => tabs.some(({ label }) => label === 'First Token')), 'the panel');
  });
});
