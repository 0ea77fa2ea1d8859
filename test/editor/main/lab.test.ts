import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';

const labels = () => vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ label }) => label));

describe('the lab page', () => {
  after(async () => {
    await (await parts()).demo.stop();
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });

  it('opens, runs its first lesson in a thread, and is one page', async () => {
    const { lab } = await parts();
    await vscode.commands.executeCommand('firstToken.openLab');
    await until(() => labels().includes('First Token: Lab'), 'the page');
    await until(() => lab.last?.kind === 'result', 'the first lesson');
    const { last } = lab;
    assert.ok(last?.kind === 'result' && last.a.samples.length > 0 && last.b.samples.length === last.a.samples.length);
    await vscode.commands.executeCommand('firstToken.openLab');
    assert.equal(labels().filter((label) => label === 'First Token: Lab').length, 1);
  });

  it('puts the demo endpoint in the place of one with other settings', async () => {
    const { demo } = await parts();
    const first = await demo.start();
    const second = await demo.startWith(['--policy', 'request-level']);
    assert.notEqual(first.url, second.url);
    assert.equal(demo.endpoint?.url, second.url);
    assert.equal((await fetch(`${second.url}/health`)).status, 200);
    await assert.rejects(fetch(`${first.url}/health`));
  });
});

describe('handing over', () => {
  let simulator: StartedSimulator;
  before(async () => {
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js') });
    await setUser('endpoints', [{ name: 'handed', url: simulator.url, model: 'org/model-8b', headers: { 'x-team': 'not-for-others' } }]);
    const { endpoints } = await parts();
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'handed'), 'the endpoint');
    await endpoints.select('handed');
  });
  after(async () => {
    await simulator.stop();
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });

  it('opens the plan of the prompt in front as a command, without a secret', async () => {
    const said = await answering({ pick: async (items) => (await items).find(({ label }) => label === 'vllm bench serve') });
    await openFile('handed.prompt.md', 'Name three rivers.');
    await vscode.commands.executeCommand('firstToken.handOver');
    const text = vscode.window.activeTextEditor?.document.getText() ?? '';
    assert.match(text, /^vllm bench serve \\$/m);
    assert.match(text, new RegExp(`--base-url ${simulator.url}`));
    assert.ok(!text.includes('not-for-others') && text.includes('x-team'));
    assert.match(said[0]?.message ?? '', /Nothing was sent/);
  });

  it('takes the tool as an argument', async () => {
    await answering({});
    await openFile('handed.prompt.md', 'Name three rivers.');
    await vscode.commands.executeCommand('firstToken.handOver', 'k6');
    assert.match(vscode.window.activeTextEditor?.document.getText() ?? '', /Name three rivers\./);
  });
});
