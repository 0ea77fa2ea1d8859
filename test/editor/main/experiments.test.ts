import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';

describe('experiments from the palette', () => {
  let simulator: StartedSimulator;
  before(async () => {
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js') });
    await setUser('endpoints', [{ name: 'lab', url: simulator.url, price: { currency: 'EUR', inputPerMillion: 1, outputPerMillion: 10 } }]);
    const { endpoints } = await parts();
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'lab'), 'the endpoint');
    await endpoints.select('lab');
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });
  after(async () => {
    await simulator.stop();
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });

  it('say their budget and price before they send, and send nothing when it is not agreed to', async () => {
    const { runs } = await parts();
    const before = runs.last?.report.id;
    let shown: readonly vscode.QuickPickItem[] = [];
    await answering({
      pick: async (items) => {
        shown = await items;
        return undefined;
      },
    });
    await vscode.commands.executeCommand('firstToken.sweep');
    assert.match(shown[0]?.description ?? '', /^at most 1.500 requests, 192.000 output tokens, at most 1\.9 EUR$/);
    assert.equal(runs.last?.report.id, before);
  });

  for (const name of ['batching', 'encoder']) {
    it(`run to their result in the panel: ${name}`, async () => {
      const { runs } = await parts();
      await answering({ pick: async (items) => (await items)[0], confirm: () => Promise.resolve(true) });
      await vscode.commands.executeCommand(`firstToken.${name}`);
      const report = runs.last?.report;
      assert.equal(report?.scenario?.name, name);
      const result = report.scenario.result as { schema: string; verdict: string; sentences: readonly string[] };
      assert.equal(result.schema, `first-token/${name}@1`);
      assert.ok(result.sentences.length > 0);
      assert.ok(vscode.window.tabGroups.all.some(({ tabs }) => tabs.some(({ label }) => label === 'First Token: lab')), 'the panel is open');
    });
  }

  it('send the prompt in front when it is a prompt file', async () => {
    const { runs } = await parts();
    await openFile('load.prompt.md', 'Name three rivers and tell where each begins.');
    await answering({ pick: async (items) => (await items)[0], confirm: () => Promise.resolve(true) });
    await vscode.commands.executeCommand('firstToken.batching');
    assert.equal(runs.last?.report.plan.prompt.name, 'load.prompt.md');
  });
});
