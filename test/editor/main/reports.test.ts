import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import * as path from 'node:path';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';

const folder = () => vscode.workspace.workspaceFolders![0]!.uri;
const labels = () => vscode.window.tabGroups.all.flatMap(({ tabs }) => tabs.map(({ label }) => label));

describe('reports', () => {
  let simulator: StartedSimulator;
  const ids: string[] = [];
  before(async () => {
    const { handlers, runs, endpoints } = await parts();
    await answering({});
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js') });
    await setUser('probe', { requests: 2, warmup: 0, maxTokens: 12 });
    await setUser('endpoints', [{ name: 'one', url: simulator.url }, { name: 'two', url: `${simulator.url}/v1` }]);
    await until(() => endpoints.all().length === 2, 'endpoints');
    for (const name of ['one', 'two']) {
      await handlers.spotCheck(name);
      ids.push(runs.last!.report.id);
    }
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
  });
  after(async () => {
    await simulator.stop();
    for (const name of ['probe', 'endpoints']) await config().update(name, undefined, vscode.ConfigurationTarget.Global);
  });

  it('open by id, from the list, and from a file', async () => {
    const { store } = await parts();
    await vscode.commands.executeCommand('firstToken.openReport', ids[0]);
    await until(() => labels().includes('First Token: one'), 'the first report');
    await answering({ pick: async (items) => (await items).find(({ label }) => label.startsWith('two')) });
    await vscode.commands.executeCommand('firstToken.openReport');
    await until(() => labels().includes('First Token: two'), 'the second report');
    const [, first] = await store.list();
    await vscode.commands.executeCommand('firstToken.openReport', vscode.Uri.file(first!.file));
    await until(() => labels().includes('First Token: one'), 'the first report again');
  });

  it('say what is wrong with a damaged file and another version, in the panel', async () => {
    const { panels } = await parts();
    await answering({});
    for (const text of ['', 'no report', '{"schema":"first-token/report@9"}', '{"schema":"first-token/report@1","id":']) {
      const uri = vscode.Uri.joinPath(folder(), 'broken.first-token.jsonl');
      await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
      await vscode.commands.executeCommand('firstToken.openReport', uri);
      await until(() => labels().includes('First Token') && panels.activeReport === null, 'a panel that says so');
      await vscode.commands.executeCommand('firstToken.openReport', ids[0]);
      await until(() => panels.activeReport?.id === ids[0], 'the good report again');
    }
  });

  it('open beside results of other tools, which are not compared', async () => {
    const { panels } = await parts();
    await answering({});
    for (const [name, title] of [['vllm.synthetic.json', 'vllm bench serve: result'], ['guidellm.synthetic.csv', 'GuideLLM: result']] as const) {
      await vscode.commands.executeCommand('firstToken.openReport', vscode.Uri.file(path.join(root, 'test/fixtures/foreign', name)));
      await until(() => labels().includes(title), title);
      assert.equal(panels.activeReport, null);
    }
  });

  it('are compared in a panel of their own', async () => {
    await answering({});
    await vscode.commands.executeCommand('firstToken.compareReports', { id: ids[0] }, ids.map((id) => ({ id })));
    await until(() => labels().includes('one and two'), 'the comparison');
  });

  it('export as JSON, CSV and Markdown', async () => {
    const written: Record<string, string> = {};
    for (const format of ['json', 'csv', 'markdown']) {
      const target = vscode.Uri.joinPath(folder(), `exported.${format}`);
      await answering({ save: () => Promise.resolve(target) });
      await vscode.commands.executeCommand('firstToken.exportReport', ids[0], format);
      written[format] = new TextDecoder().decode(await vscode.workspace.fs.readFile(target));
    }
    assert.equal((JSON.parse(written['json']!) as { id: string }).id, ids[0]);
    assert.equal(written['csv']!.trim().split('\r\n').length, 1 + 9, 'a head and nine requests');
    assert.match(written['markdown']!, /\| /);
  });

  it('are deleted from the view', async () => {
    const { store } = await parts();
    await answering({});
    await vscode.commands.executeCommand('firstToken.deleteReport', { id: ids[0] });
    assert.ok((await store.list()).every(({ id }) => id !== ids[0]));
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.openReport', ids[0]);
    assert.match(said[0]?.message ?? '', /no longer there/);
  });
});

describe('prompts that cannot be sent', () => {
  before(async () => {
    await setUser('endpoints', [{ name: 'nowhere', url: 'http://127.0.0.1:9/v1', model: 'm' }]);
    await until(async () => (await parts()).endpoints.all().length === 1, 'the endpoint');
  });
  after(() => config().update('endpoints', undefined, vscode.ConfigurationTarget.Global));

  const cases: readonly [name: string, text: string, says: RegExp][] = [
    ['empty.prompt.md', '  \n', /empty\.prompt\.md is empty/],
    ['huge.prompt.md', 'All work and no play. '.repeat(480_000), /10\.6 MB of text.*[Ss]elect/],
  ];
  for (const [name, text, says] of cases) {
    it(name, async () => {
      const { runs } = await parts();
      const last = runs.last;
      const uri = vscode.Uri.joinPath(folder(), name);
      await vscode.workspace.fs.writeFile(uri, new TextEncoder().encode(text));
      const said = await answering({});
      await vscode.commands.executeCommand('firstToken.probePrompt', uri);
      assert.match(said[0]?.message ?? '', says);
      assert.equal(runs.last, last, 'nothing was sent');
    });
  }

  it('binary', async () => {
    const uri = vscode.Uri.joinPath(folder(), 'binary.prompt');
    await vscode.workspace.fs.writeFile(uri, new Uint8Array([137, 80, 78, 71, 0, 0, 1, 2]));
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.probePrompt', uri);
    assert.match(said[0]?.message ?? '', /binary\.prompt (is not text|cannot be read as text)/);
  });

  it('a file that is gone', async () => {
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.probePrompt', vscode.Uri.joinPath(folder(), 'gone.prompt.md'));
    assert.match(said[0]?.message ?? '', /gone\.prompt\.md cannot be read/);
  });

  it('an endpoint where nothing listens ends with failures that say so', async () => {
    const { handlers, runs } = await parts();
    await answering({});
    await openFile('there.prompt.md', 'Hello');
    await handlers.spotCheck('nowhere');
    assert.deepEqual(Object.keys(runs.last?.report.outcomes ?? {}), ['connect']);
  });
});
