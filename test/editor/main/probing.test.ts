import assert from 'node:assert/strict';
import { readFileSync, readdirSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { isReportProblem, parseReport, type Report } from '../../../src/report/report';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';

const reportFiles = (folder: string) => readdirSync(folder).filter((name) => name.endsWith('.first-token.jsonl'));

function read(folder: string, id: string): Report {
  const name = reportFiles(folder).find((candidate) => candidate.includes(id));
  assert.ok(name, `a file of report ${id}`);
  const report = parseReport(readFileSync(path.join(folder, name), 'utf8'));
  assert.ok(!isReportProblem(report));
  return report;
}

describe('probing the simulator', () => {
  let slow: StartedSimulator;
  before(async () => {
    slow = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--step-overhead', '40'] });
    await setUser('probe', { requests: 3, warmup: 1, maxTokens: 24 });
  });
  after(async () => {
    await slow.stop();
    await (await parts()).demo.stop();
    for (const name of ['probe', 'endpoints']) await config().update(name, undefined, vscode.ConfigurationTarget.Global);
  });

  it('Try the Demo: starts it, spot-checks it, shows the panel, writes the report', async () => {
    const { handlers, runs, store, demo, endpoints, results } = await parts();
    await answering({});
    await handlers.tryDemo();
    const report = runs.last?.report;
    assert.ok(report && demo.endpoint);
    assert.equal(endpoints.selected()?.endpoint.name, 'demo');
    assert.equal(report.plan.requests, 8);
    assert.equal(report.outcomes.ok, 8);
    assert.ok(report.summary.ttft);
    assert.deepEqual(read(store.folder, report.id).summary, report.summary);
    assert.ok(vscode.window.tabGroups.all.some(({ tabs }) => tabs.some(({ label }) => label === 'First Token: demo')), 'the panel is open');
    await until(() => results.ofEndpoint('demo') !== null, 'the status bar has the result');
    assert.equal((await store.list())[0]?.id, report.id);
    assert.ok(!readFileSync(path.join(store.folder, reportFiles(store.folder)[0]!), 'utf8').includes('sailing'), 'no prompt text in the report');
  });

  it('probes a prompt file by its command, and the lens then has its numbers', async () => {
    const { runs, results } = await parts();
    await answering({});
    const document = await openFile('probe.prompt.md', 'Name three rivers.');
    await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
    assert.equal(runs.last?.report.plan.prompt.name, 'probe.prompt.md');
    assert.equal(runs.last.report.outcomes.ok, 3);
    await until(() => results.ofDocument(document.uri.toString())?.reportId === runs.last?.report.id, 'the lens has the result');
  });

  it('asks once for what a template leaves open, remembers it, and asks again when told to', async () => {
    const { runs } = await parts();
    const asked: string[] = [];
    const fill = () => answering({ pick: async (items) => (await items)[0], input: ({ prompt }) => (asked.push(prompt ?? ''), Promise.resolve('rivers of the north')) });
    await fill();
    const document = await openFile('open.prompt.jinja', 'Name three {{ topic }}.');
    await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
    assert.equal(asked.length, 1);
    assert.match(asked[0]!, /topic/);
    assert.equal(runs.last?.report.plan.prompt.characters, 'Name three rivers of the north.'.length);
    assert.ok(!runs.last.report.caveats.some(({ kind }) => kind === 'unrendered-variables'));
    await answering({});
    await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
    assert.equal(runs.last.report.plan.prompt.characters, 'Name three rivers of the north.'.length);
    await vscode.commands.executeCommand('firstToken.forgetInputs');
    await answering({ pick: async (items) => (await items)[1] });
    await vscode.commands.executeCommand('firstToken.probePrompt', document.uri);
    assert.ok(runs.last.report.caveats.some((caveat) => caveat.kind === 'unrendered-variables' && caveat.names.includes('topic')));
  });

  it('probes the selection when there is one', async () => {
    const { runs } = await parts();
    await answering({});
    await openFile('selection.prompt.md', 'Name three rivers.\nAnd lakes.');
    const editor = vscode.window.activeTextEditor;
    assert.ok(editor);
    editor.selection = new vscode.Selection(0, 0, 0, 18);
    await vscode.commands.executeCommand('firstToken.probePrompt');
    assert.equal(runs.last?.report.plan.prompt.name, 'selection.prompt.md (selection)');
    assert.equal(runs.last.report.plan.prompt.characters, 18);
  });

  it('goes on when the panel is closed; Stop ends it and keeps what was measured', async () => {
    const { runs, handlers, store, endpoints } = await parts();
    await answering({});
    await setUser('endpoints', [{ name: 'slow', url: slow.url }]);
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'slow'), 'the endpoint');
    await endpoints.select('slow');
    await setUser('probe', { requests: 500, warmup: 0, maxTokens: 24 });
    const running = handlers.spotCheck('slow');
    await until(() => (runs.current?.done ?? 0) >= 1, 'a first answer');
    await vscode.commands.executeCommand('workbench.action.closeAllEditors');
    const done = runs.current?.done ?? 0;
    await until(() => (runs.current?.done ?? 0) > done, 'another answer without a panel');
    await vscode.commands.executeCommand('firstToken.stop');
    await running;
    assert.equal(runs.current, null);
    assert.equal(runs.last?.stopped, 'user');
    const kept = read(store.folder, runs.last.report.id);
    assert.ok((kept.outcomes.ok ?? 0) >= 1);
    assert.ok(kept.caveats.some(({ kind }) => kind === 'stopped'));
  });

  it('refuses a second run with a choice: leave it, wait for it, or stop it', async () => {
    const { runs, handlers } = await parts();
    let answer = 'dismissed';
    const said = await answering({ choose: (_kind, _message, ...choices) => Promise.resolve(choices.find((choice) => choice === answer)) });
    const first = handlers.spotCheck('slow');
    await until(() => runs.current !== null, 'the first run');
    const id = runs.current?.report.id;
    await vscode.commands.executeCommand('firstToken.spotCheck', 'slow');
    assert.match(said[0]?.message ?? '', /A probe of slow is running/);
    assert.equal(runs.current?.report.id, id, 'left alone');
    answer = 'Stop It and Start';
    const second = handlers.spotCheck('slow');
    await first;
    await until(() => runs.current !== null && runs.current.report.id !== id, 'the second run');
    await runs.stop();
    await second;
  });

  it('says what to do when the endpoint dies mid-run', async () => {
    const { runs, handlers } = await parts();
    await answering({});
    const dying = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--step-overhead', '40'] });
    await setUser('endpoints', [{ name: 'dying', url: dying.url }]);
    await until(async () => (await parts()).endpoints.all().some(({ endpoint }) => endpoint.name === 'dying'), 'the endpoint');
    const running = handlers.spotCheck('dying');
    await until(() => (runs.current?.done ?? 0) >= 1, 'a first answer');
    await dying.stop();
    await running;
    assert.ok((runs.last?.report.outcomes.connect ?? 0) + (runs.last?.report.outcomes.truncated ?? 0) >= 1);
    assert.equal(runs.last?.ended, true);
  });
});

describe('an endpoint that takes its time', () => {
  it('can be stopped before it has said anything, and a second run waits its turn', async () => {
    const { runs, handlers, endpoints } = await parts();
    const server = createServer(() => undefined);
    await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
    await setUser('endpoints', [{ name: 'silent', url: `http://127.0.0.1:${(server.address() as AddressInfo).port}` }]);
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'silent'), 'the endpoint');
    const said = await answering({});
    const last = runs.last?.report.id;
    const running = handlers.spotCheck('silent');
    await until(() => runs.starting !== null, 'the look at the endpoint');
    const second = vscode.commands.executeCommand('firstToken.spotCheck', 'silent');
    await until(() => said.length === 1, 'the question about the second run');
    assert.match(said[0]?.message ?? '', /A probe of silent is running/);
    await vscode.commands.executeCommand('firstToken.stop');
    await Promise.all([running, second]);
    assert.equal(runs.current, null);
    assert.notEqual(runs.last?.report.id, last);
    assert.equal(runs.last?.stopped, 'user');
    server.closeAllConnections();
    server.close();
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
  });
});
