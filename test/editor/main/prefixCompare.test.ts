import assert from 'node:assert/strict';
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { reportItem } from '../../../src/editor/views';
import { startSimulator } from '../../../src/simulator/start';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';

const sample = (name: string) => readFileSync(path.join(root, 'test/fixtures/workspace', name), 'utf8');
const rules = 'Always answer politely and briefly, in the language of the question.\n'.repeat(60);

/** Answers each pick with the first item whose label matches the next pattern. */
function picking(...patterns: RegExp[]) {
  return (items: unknown) => {
    const pattern = patterns.shift();
    const found = (items as { label: string }[]).find(({ label }) => pattern?.test(label));
    assert.ok(found, `${String(pattern)} among ${(items as { label: string }[]).map(({ label }) => label).join(' | ')}`);
    return Promise.resolve(found as never);
  };
}

const activeTab = () => vscode.window.tabGroups.activeTabGroup.activeTab;

describe('comparing prompts', () => {
  it('renders a file at two times and opens both at the first difference', async () => {
    const { prefix } = await parts();
    const document = await openFile('clock_prompt.jinja', `${rules}It is {{ now().strftime('%H:%M') }}.\n{{ question }}`);
    await answering({ pick: picking(/an hour later/) });
    const { difference } = await prefix.compare.renders(document);
    assert.equal(difference?.line, 62, 'one line with the role, 60 of rules');
    assert.ok(difference.sameTokens > 500);
    assert.ok(activeTab()?.input instanceof vscode.TabInputTextDiff);
    assert.match(activeTab()?.label ?? '', /clock_prompt\.jinja: first difference at line 62/);
    await until(() => vscode.window.activeTextEditor?.selection.active.line === 61, 'the difference is revealed');
  });

  it('renders with another value of a variable, and says when nothing differs', async () => {
    const { prefix } = await parts();
    const document = await openFile('value.prompty', sample('support.prompty'));
    await answering({ pick: picking(/another value of question/i), input: () => Promise.resolve('Why?') });
    assert.ok((await prefix.compare.renders(document)).difference);
    const said = await answering({ pick: picking(/another value of question/i), input: ({ value }) => Promise.resolve(value) });
    assert.equal((await prefix.compare.renders(document)).difference, null);
    assert.match(said[0]?.message ?? '', /no difference in \d+ tokens/);
  });

  it('lets a variable that holds the time follow the clock, although the sample pins it', async () => {
    const { prefix } = await parts();
    const document = await openFile('pinned.prompty', sample('support.prompty'));
    const said = await answering({ pick: picking(/an hour later/) });
    assert.equal((await prefix.compare.renders(document)).difference?.line, 2);
    assert.match(said[0]?.message ?? '', /current_time follows the clock/);
  });

  it('offers no times where no clock is, and says when nothing can differ', async () => {
    const { prefix } = await parts();
    const plain = await openFile('plain.prompty', sample('support.prompty').replace('It is {{current_time}}.\n', ''));
    const labels: string[] = [];
    await answering({ pick: (items: unknown) => (labels.push(...(items as { label: string }[]).map(({ label }) => label)), Promise.resolve((items as never[])[0])) });
    await prefix.compare.renders(plain).catch(() => null);
    assert.ok(labels.length > 0 && labels.every((label) => !/later|tomorrow/.test(label)), labels.join(' | '));
    const still = await openFile('still.prompt.md', sample('support.prompt.md'));
    await answering({});
    await assert.rejects(prefix.compare.renders(still), /Nothing in this prompt changes/);
  });

  it('compares two requests of a batch, and tells tool order from text', async () => {
    const { prefix } = await parts();
    const line = (id: string, names: string[], question: string) => JSON.stringify({ custom_id: id, body: { model: 'llama', tools: names.map((name) => ({ type: 'function', function: { name } })), messages: [{ role: 'system', content: rules }, { role: 'user', content: question }] } });
    const document = await openFile('batch.jsonl', [line('a', ['x', 'y'], 'One?'), line('b', ['x', 'y'], 'Two?'), line('c', ['y', 'x'], 'One?')].join('\n'));
    await answering({ pick: picking(/^a$/, /^b$/) });
    const text = await prefix.compare.requests(document);
    assert.match(text.words[0] ?? '', /the text differs at messages\.1/);
    assert.match(text.words[1] ?? '', /tokens reusable on vLLM/);
    await answering({ pick: picking(/^a$/, /^c$/) });
    assert.match((await prefix.compare.requests(document)).words[0] ?? '', /only the order of the tools differs at tools\.0/);
  });

  it('compares a request with one of another file', async () => {
    const { prefix } = await parts();
    const other = await openFile('other-request.json', sample('request.prompt.json').replace('smallest cog', 'largest cog'));
    const document = await openFile('one-request.json', sample('request.prompt.json'));
    await answering({ open: () => Promise.resolve(other.uri) });
    const compared = await prefix.compare.requests(document);
    assert.match(compared.words[0] ?? '', /the text differs at messages\.0\.content/);
    const said = await answering({});
    await openFile('none.json', '{"a": 1}');
    await vscode.commands.executeCommand('firstToken.compareRequests');
    assert.match(said[0]?.message ?? '', /No request was found/);
  });

  it('says what the edit since the last commit costs', async () => {
    const { prefix } = await parts();
    const folder = path.join(vscode.workspace.workspaceFolders![0]!.uri.fsPath, 'repository');
    mkdirSync(folder, { recursive: true });
    const git = (...args: string[]) => execFileSync('git', ['-c', 'user.name=t', '-c', 'user.email=t@example.com', ...args], { cwd: folder });
    git('init', '-q');
    writeFileSync(path.join(folder, 'rules.prompty'), sample('support-fixed.prompty'));
    git('add', '.');
    git('commit', '-q', '-m', 'first');
    const document = await openFile('repository/rules.prompty', sample('support-fixed.prompty').replace('Gift cards', 'Vouchers'));
    await answering({});
    const cost = await prefix.compare.sinceLastCommit(document);
    assert.ok(cost.line !== null && document.lineAt(cost.line - 1).text.includes('Vouchers'), `line ${cost.line}`);
    assert.ok(cost.kept > 100 && cost.lost > 10 && cost.lost <= cost.before, JSON.stringify(cost));
    assert.match(activeTab()?.label ?? '', /since HEAD: .* that were reusable are computed again once, from line \d+ on/);
    writeFileSync(path.join(folder, 'slow.prompty'), sample('support.prompty'));
    git('add', '.');
    git('commit', '-q', '-m', 'second');
    const mended = await openFile('repository/slow.prompty', sample('support.prompty').replace('It is {{current_time}}.\n', '').replace('user:\n', 'user:\nIt is {{current_time}}. '));
    const told = await answering({});
    assert.equal((await prefix.compare.sinceLastCommit(mended)).lost, 0);
    assert.match(told[0]?.message ?? '', /: 0 → \d+ of \d+ tokens reusable on vLLM; nothing was reusable before, so the edit costs nothing\.$/);
    const fresh = await openFile('repository/new.prompty', 'x');
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.sinceLastCommit', fresh.uri);
    assert.match(said[0]?.message ?? '', /does not hold new\.prompty/);
  });
});

describe('the tree of prompt files', () => {
  it('lists them worst first, and can be stopped', async () => {
    const { prefix } = await parts();
    await openFile('tree/bad.prompty', sample('support.prompty'));
    await openFile('tree/good.prompty', sample('support-fixed.prompty'));
    await openFile('tree/node_modules/skipped.prompty', sample('support.prompty'));
    await openFile('tree/plain.txt', 'no prompt');
    const files = await prefix.tree.scan();
    const names = files.map((file) => path.basename(file.path));
    assert.ok(names.indexOf('bad.prompty') >= 0 && names.indexOf('bad.prompty') < names.indexOf('good.prompty'), names.join(' '));
    assert.ok(!names.includes('skipped.prompty') && !names.includes('plain.txt'));
    assert.ok((files.find((file) => file.path.endsWith('bad.prompty'))?.warnings ?? 0) > 0);
    const stopped = prefix.tree.scan();
    prefix.tree.stop();
    await stopped;
  });
});

describe('proving', () => {
  it('sends the file cold, warm and changed; the lens then says served beside predicted', async () => {
    const { handlers, runs, prefix, endpoints, store } = await parts();
    const simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js') });
    try {
      await answering({});
      await setUser('endpoints', [{ name: 'proof', url: simulator.url }]);
      await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'proof'), 'the endpoint');
      await endpoints.select('proof');
      const document = await openFile('prove.prompty', sample('support-fixed.prompty'));
      await prefix.documents.ready(document);
      await handlers.prove(document.uri);
      const result = runs.last?.report.scenario?.result as { verdict: string; rows: { kind: string; served: { p50: number } | null; predicted: { tokens: number; exact: boolean } | null }[] };
      assert.match(result.verdict, /^As predicted: /);
      const changed = result.rows.find(({ kind }) => kind === 'changed');
      assert.ok(changed?.served && changed.predicted?.exact);
      assert.ok(Math.abs(changed.served.p50 - changed.predicted.tokens) <= 16);
      await until(() => prefix.proofs.of(document) !== null, 'the proof is remembered');
      assert.match(prefix.proofs.of(document)?.lens ?? '', /^Served: 3\d\d of 4\d\d tokens on proof, predicted 3\d\d$/);
      assert.ok((prefix.proofs.prefillRate('proof') ?? 0) > 1000, 'the prefill rate prices the breakers from now on');
      await prefix.documents.ready(document);
      const edit = new vscode.WorkspaceEdit();
      edit.insert(document.uri, document.positionAt(document.getText().length), '.');
      await vscode.workspace.applyEdit(edit);
      assert.match(prefix.proofs.of(document)?.lens ?? '', /edited since$/);
      await prefix.documents.ready(document);
      const titles = async () => (await vscode.commands.executeCommand<vscode.CodeLens[]>('vscode.executeCodeLensProvider', document.uri, 20)).map(({ command }) => command?.title ?? '');
      await until(async () => (await titles()).includes('Prove again'), 'an edited file can be proven again from its lens');
      const item = reportItem((await store.list())[0]!);
      assert.match(item.label as string, /^Proof · prove\.prompty · 3\d\d of 4\d\d served$/);
      assert.match(item.tooltip as string, /^Proof of the prefix cache\nproof\nprove\.prompty\n/);
      assert.doesNotMatch(`${item.description as string} ${item.tooltip as string}`, /SLO|verdict|\d ms/);
    } finally {
      await simulator.stop();
      await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('sends a request file as it is written, and tells what the provider says broke the cache', async () => {
    const { runs, prefix, endpoints } = await parts();
    const simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--face', 'anthropic', '--served-model', 'claude-sonnet-4-5'] });
    try {
      await answering({});
      await setUser('endpoints', [{ name: 'claude', url: simulator.url }]);
      await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'claude'), 'the endpoint');
      await endpoints.select('claude');
      const rules = Array.from({ length: 120 }, (_, i) => `Rule ${i}: answer in plain words and name the source.`).join('\n');
      const request = (first: string) => JSON.stringify({ params: { model: 'claude-sonnet-4-5', max_tokens: 300, system: [{ type: 'text', text: rules, cache_control: { type: 'ephemeral' } }], messages: [{ role: 'user', content: first }] } });
      const document = await openFile('marked.jsonl', `${request('Why?')}\n${request('How?')}`);
      await vscode.commands.executeCommand('firstToken.prove', document.uri);
      const result = runs.last?.report.scenario?.result as { markers: number; countedBy: string; diagnosis: { changed: { reason: string } | null } | null; rows: { served: { p50: number } | null; predicted: { tokens: number } | null; state: string }[] };
      assert.deepEqual([result.markers, result.countedBy, result.diagnosis?.changed?.reason], [1, 'provider', 'messages_changed']);
      for (const { served, predicted, state } of result.rows.slice(1)) assert.ok(state === 'yes' && served && predicted && served.p50 > 1024 && Math.abs(served.p50 - predicted.tokens) <= 16, `${served?.p50} ${predicted?.tokens}`);
      await until(() => prefix.proofs.of(document) !== null, 'the proof is remembered');
      assert.match(prefix.proofs.of(document)?.lens ?? '', /^Served: .* tokens on claude, predicted about /);
      assert.match(prefix.proofs.of(document)?.tooltip ?? '', /own cache diagnostics say .* The later request: the messages changed \(messages_changed\)/);
    } finally {
      await simulator.stop();
      await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('affinity and expiry are asked for apart, say what they send, and can be stopped while they wait', async () => {
    const { runs, prefix, endpoints } = await parts();
    const simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js') });
    try {
      await setUser('endpoints', [{ name: 'proof', url: simulator.url }]);
      await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'proof'), 'the endpoint');
      await endpoints.select('proof');
      const document = await openFile('more.prompty', sample('support-fixed.prompty'));
      await prefix.documents.ready(document);
      const shown: string[] = [];
      const pick = (label: string) => ({
        async pick<T extends vscode.QuickPickItem>(items: readonly T[] | Promise<readonly T[]>): Promise<T | undefined> {
          const all = await items;
          shown.push(...all.map((item) => `${item.label}: ${item.description ?? ''}`));
          return all.find((item) => item.label === label);
        },
      });
      await answering(pick('Affinity'));
      await vscode.commands.executeCommand('firstToken.proveMore', document.uri);
      assert.deepEqual(shown.slice(0, 2), ['Affinity: 14 requests', 'Expiry after 1, 5 and 10 minutes: 10 requests, about 10 minutes']);
      type Result = { affinity: { hits: number; of: number } | null; expiry: unknown[] | null; sentences: string[] };
      const affinity = runs.last?.report.scenario?.result as Result;
      assert.deepEqual([affinity.affinity?.hits, affinity.affinity?.of, affinity.expiry], [9, 9, null]);
      assert.ok(affinity.sentences.some((sentence) => sentence.startsWith('Affinity: 9 of 9 repeats of one prefix hit')));
      await answering({ ...pick('Expiry after Other Waits…'), input: () => Promise.resolve('1') });
      await vscode.commands.executeCommand('firstToken.proveMore', document.uri);
      assert.equal((runs.last?.report.scenario?.result as Result).expiry?.length, 1);
      await answering(pick('Expiry after 1, 5 and 10 minutes'));
      const waiting = vscode.commands.executeCommand('firstToken.proveMore', document.uri);
      await until(() => runs.current !== null && runs.current.done >= 7, 'the entries are written and wait');
      await vscode.commands.executeCommand('firstToken.stop');
      await waiting;
      assert.equal(runs.current, null);
      await answering({ pick: () => Promise.resolve(undefined) });
      const before = runs.last?.report.id;
      await vscode.commands.executeCommand('firstToken.proveMore', document.uri);
      assert.equal(runs.last?.report.id, before, 'nothing chosen, nothing sent');
    } finally {
      await simulator.stop();
      await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    }
  });
});
