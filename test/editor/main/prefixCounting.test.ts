import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as path from 'node:path';
import * as vscode from 'vscode';
import type { FileView } from '../../../src/editor/prefixMessages';
import type { PrefixResult } from '../../../src/probe/index';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';

const sample = (name: string) => readFileSync(path.join(root, 'test/fixtures/workspace', name), 'utf8');

/** A server that looks like vLLM (or like Anthropic's API), counts characters as tokens, and writes down what it is asked. */
function countingServer(answers: { broken?: boolean; provider?: boolean } = {}) {
  const asked: { path: string; text: string; whole: boolean }[] = [];
  const server: Server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString())).on('end', () => {
      const { url = '' } = request;
      const reply = (value: unknown, status = 200) => response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(value));
      if (url === '/v1/models' && answers.provider === true) return reply({ data: [{ type: 'model', id: 'claude-x' }], has_more: false });
      if (url === '/v1/models') return reply({ object: 'list', data: [{ id: 'tiny', owned_by: 'vllm' }] });
      if (request.method === 'GET') return reply({}, 404);
      const { prompt, messages } = JSON.parse(body) as { prompt?: string; messages?: { content: string | { text: string }[] }[] };
      const text = prompt ?? (messages ?? []).map(({ content }) => (typeof content === 'string' ? content : content.map((block) => block.text).join(''))).join('');
      asked.push({ path: url, text, whole: prompt === undefined });
      if (answers.broken === true) return reply({ error: 'no' }, 500);
      if (url === '/v1/messages/count_tokens') return reply({ input_tokens: text.length + 7 });
      if (url === '/tokenize') return reply({ count: text.length, tokens: [...Array.from({ length: prompt === undefined ? 10 : 0 }, () => 1), ...Array.from({ length: text.length }, (_, i) => text.charCodeAt(i))] });
      return reply({ prompt: '<|start|>' });
    });
  });
  return {
    asked,
    answers,
    /** Texts alone, not whole requests. */
    texts: () => asked.filter(({ path: at, whole }) => at === '/tokenize' && !whole).map(({ text }) => text),
    async listen(): Promise<string> {
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      return `http://127.0.0.1:${(server.address() as AddressInfo).port}/v1`;
    },
    close: () => new Promise((resolve) => server.close(resolve)),
  };
}

async function viewOf(document: vscode.TextDocument): Promise<FileView> {
  const { prefix } = await parts();
  const view = await prefix.documents.ready(document);
  assert.ok(view?.prompts[0], `${document.uri.path} holds a prompt`);
  return view;
}

async function counted(document: vscode.TextDocument): Promise<FileView> {
  await until(async () => (await viewOf(document)).source === 'endpoint', 'the endpoint’s count');
  return await viewOf(document);
}

async function insert(document: vscode.TextDocument, after: string, text: string): Promise<void> {
  const edit = new vscode.WorkspaceEdit();
  edit.insert(document.uri, document.positionAt(document.getText().indexOf(after) + after.length), text);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

describe('tokens counted by the endpoint', () => {
  let server: ReturnType<typeof countingServer>;
  let name = 0;

  async function use(more: Record<string, unknown> = {}): Promise<void> {
    const { endpoints } = await parts();
    const url = await server.listen();
    const called = `counting ${(name += 1)}`;
    await setUser('endpoints', [{ name: called, url, ...more }]);
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === called), 'the endpoint');
    await endpoints.select(called);
  }

  beforeEach(() => {
    server = countingServer();
  });
  afterEach(async () => {
    for (const setting of ['endpoints', 'prefix']) await config().update(setting, undefined, vscode.ConfigurationTarget.Global);
    await server.close();
  });

  it('take the place of the estimate in the lens, and the hover names who counted', async () => {
    const document = await openFile('counting.prompty', sample('support-fixed.prompty'));
    const before = await viewOf(document);
    assert.deepEqual([before.source, before.exact], ['o200k', false]);
    assert.match(before.prompts[0]!.sentence, /up to about \d+ of \d+ tokens/);
    assert.match(before.prompts[0]!.details.join('\n'), /o200k estimate/);
    await use();
    const view = await counted(document);
    assert.equal(view.exact, true);
    assert.match(view.prompts[0]!.sentence, /^Cache: up to [\d,]+ of [\d,]+ tokens \(\d+ %\) on vLLM · ends at line 3\d/);
    assert.match(view.prompts[0]!.details.join('\n'), /Tokens: counted by the endpoint \(vllm \/tokenize\)\.\nAs it is sent: [\d,]+ tokens, \d+ more than the text of the file/);
    assert.ok(view.prompts[0]!.total > 3 * before.prompts[0]!.total, 'a token a character');
    const { prefix } = await parts();
    const lenses = await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token);
    assert.equal(lenses?.[0]?.command?.title, view.prompts[0]!.sentence);
  });

  it('come a while after the last edit: texts in between are never asked for, known ones not again', async () => {
    await use();
    const document = await openFile('typing-counted.prompty', sample('support-fixed.prompty'));
    await counted(document);
    const first = server.texts().length;
    assert.ok(first > 0);
    for (const word of ['Be', ' very', ' brief', ' today', '.']) {
      await insert(document, 'system:\n', word);
      const view = await viewOf(document);
      assert.deepEqual([view.source, view.exact], ['o200k', false], 'the estimate stands at once');
    }
    const view = await counted(document);
    const later = server.texts().slice(first);
    assert.ok(later.some((text) => text.includes('. today brief veryBe')), 'the text as it stands is counted');
    assert.ok(later.every((text) => !text.includes('today') || text.includes('. today brief veryBe')), 'none of the steps is');
    const ids = (texts: readonly string[]) => texts.filter((text, i) => texts.indexOf(text) !== i);
    assert.deepEqual(ids(server.texts()), [], 'each text once');
    await vscode.commands.executeCommand('undo');
    await vscode.commands.executeCommand('redo');
    const again = server.texts().length;
    assert.equal((await counted(document)).prompts[0]!.total, view.prompts[0]!.total);
    assert.equal(server.texts().length, again, 'a text that was counted is known');
  });

  it('stay an estimate when the endpoint fails, which is then left in peace', async () => {
    server.answers.broken = true;
    await use();
    const document = await openFile('failing.prompty', sample('support-fixed.prompty'));
    await viewOf(document);
    await until(() => server.asked.length > 0, 'the first question');
    await insert(document, 'system:\n', 'More. ');
    const other = await openFile('failing-too.prompty', sample('support.prompty'));
    await viewOf(other);
    await new Promise((resolve) => setTimeout(resolve, 1500));
    assert.equal(server.asked.length, 1);
    assert.equal((await viewOf(document)).source, 'o200k');
  });

  it('are not asked for with "local"', async () => {
    await setUser('prefix', { tokens: 'local' });
    await until(async () => (await parts()).settings().prefix.tokens === 'local', 'the setting');
    await use();
    const document = await openFile('local.prompty', sample('support-fixed.prompty'));
    await viewOf(document);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.deepEqual(server.asked, []);
    await setUser('prefix', { tokens: 'auto' });
    await counted(document);
  });

  it('are not asked of an address that the user has not allowed requests to', async () => {
    await use({ price: { currency: 'EUR', inputPerMillion: 1 } });
    const { endpoints } = await parts();
    assert.equal(endpoints.selected()?.endpoint.price?.inputPerMillion, 1, 'a priced endpoint is asked about first, even on loopback');
    const document = await openFile('priced.prompty', sample('support-fixed.prompty'));
    await viewOf(document);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.deepEqual(server.asked, []);
    assert.equal((await viewOf(document)).source, 'o200k');
  });

  it('are asked of a provider’s API only with "endpoint"', async () => {
    server.answers.provider = true;
    await use({ api: 'anthropic', model: 'claude-x' });
    const document = await openFile('provider.prompty', sample('support-fixed.prompty'));
    await viewOf(document);
    await new Promise((resolve) => setTimeout(resolve, 500));
    assert.deepEqual(server.asked, []);
    await setUser('prefix', { tokens: 'endpoint' });
    assert.match((await counted(document)).prompts[0]!.details.join('\n'), /counted by the endpoint \(anthropic \/v1\/messages\/count_tokens\)/);
  });

  it('agree with what a proof reports, on the demo endpoint', async function () {
    this.timeout(60_000);
    const { handlers, demo, endpoints } = await parts();
    await answering({});
    await demo.start();
    try {
      await endpoints.select('demo');
      const document = await openFile('agreed.prompty', sample('support-fixed.prompty'));
      const view = await counted(document);
      const [, sent] = /As it is sent: ([\d,]+) tokens/.exec(view.prompts[0]!.details.join('\n')) ?? [];
      const report = (await handlers.prove(document.uri)) as { scenario?: { result: unknown } };
      const { rows } = report.scenario?.result as PrefixResult;
      assert.equal(rows.find(({ kind }) => kind === 'cold')?.promptTokens, Number(sent?.replace(',', '')));
      const changed = rows.find(({ kind }) => kind === 'changed');
      assert.deepEqual([changed?.predicted?.tokens, changed?.served?.p50], [view.prompts[0]!.reusable, view.prompts[0]!.reusable], 'the lens says what is predicted and served');
    } finally {
      await demo.stop();
    }
  });
});
