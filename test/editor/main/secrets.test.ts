import assert from 'node:assert/strict';
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import * as vscode from 'vscode';
import { answering, config, parts, setUser, until } from '../extensionUnderTest';

/** A server that remembers what it was sent and answers 401. */
async function listener(): Promise<{ origin: string; seen: IncomingMessage[]; close(): void }> {
  const seen: IncomingMessage[] = [];
  const server = createServer((request, response) => {
    seen.push(request);
    request.resume();
    response.writeHead(401, { 'content-type': 'application/json' }).end('{"error":{"message":"no key"}}');
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return { origin: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, seen, close: () => server.close() };
}

const key = 'sk-test-canary-0123456789';
const names = (requests: readonly IncomingMessage[]) => requests.map(({ headers }) => JSON.stringify(headers)).join('\n');

describe('keys', () => {
  let mine: Awaited<ReturnType<typeof listener>>;
  let hostile: Awaited<ReturnType<typeof listener>>;
  before(async () => {
    mine = await listener();
    hostile = await listener();
    process.env['FIRST_TOKEN_TEST_SECRET'] = 'environment-canary-42';
    await setUser('probe', { requests: 1, warmup: 0 });
    await setUser('endpoints', [{ name: 'lab', url: `${mine.origin}/v1`, model: 'm', api: 'openai-chat' }]);
  });
  after(async () => {
    mine.close();
    hostile.close();
    const { secrets } = await parts();
    await secrets.remove(mine.origin);
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Workspace);
    await config().update('probe', undefined, vscode.ConfigurationTarget.Global);
  });

  it('are set and removed by command, for the origin', async () => {
    const { secrets, endpoints } = await parts();
    await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'lab'), 'the endpoint');
    await answering({ input: () => Promise.resolve(key) });
    await vscode.commands.executeCommand('firstToken.setKey', 'lab');
    assert.equal(await secrets.get(mine.origin), key);
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.removeKey', 'lab');
    assert.equal(await secrets.get(mine.origin), null);
    assert.match(said[0]?.message ?? '', /is removed/);
    await secrets.set(mine.origin, key);
  });

  it('go to their own origin', async () => {
    const { handlers, runs } = await parts();
    await answering({});
    await handlers.spotCheck('lab');
    assert.ok(names(mine.seen).includes(`Bearer ${key}`));
    assert.deepEqual(Object.keys(runs.last?.report.outcomes ?? {}), ['status']);
    assert.equal(runs.last?.stopped, 'breaker');
    assert.ok(!JSON.stringify(runs.last.report).includes(key), 'not in the report');
  });

  it('do not go to the URL a repository puts in their place, nor does the environment', async () => {
    const { handlers, settings } = await parts();
    const said = await answering({});
    await config().update('endpoints', [{ name: 'lab', url: `${hostile.origin}/v1`, model: 'm', api: 'openai-chat' }], vscode.ConfigurationTarget.Workspace);
    await until(() => settings().endpoints.some(({ from }) => from === 'workspace'), 'the endpoint of the workspace');
    await handlers.spotCheck('lab');
    assert.ok(hostile.seen.length > 0);
    assert.ok(!names(hostile.seen).includes(key));
    const before = hostile.seen.length;
    await config().update('endpoints', [{ name: 'lab', url: `${hostile.origin}/v1`, model: 'm', api: 'openai-chat', headers: { 'x-leak': '${env:FIRST_TOKEN_TEST_SECRET}' } }], vscode.ConfigurationTarget.Workspace);
    await until(() => settings().endpoints.some(({ endpoint }) => endpoint.headers['x-leak'] !== undefined), 'the header');
    await vscode.commands.executeCommand('firstToken.spotCheck', 'lab');
    assert.equal(hostile.seen.length, before, 'nothing was sent');
    assert.match(said.at(-1)?.message ?? '', /FIRST_TOKEN_TEST_SECRET.*user settings/s);
  });

  it('never stand in the log or a copied curl command', async () => {
    const { log } = await parts();
    await answering({});
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Workspace);
    await until(async () => (await parts()).endpoints.all().every(({ from }) => from !== 'workspace'), 'the user setting');
    log.info(`key ${key} in a line`);
    await vscode.commands.executeCommand('firstToken.copyAsCurl', 'lab');
    const copied = await vscode.env.clipboard.readText();
    assert.ok(copied.includes('$FIRST_TOKEN_API_KEY') && copied.includes(`${mine.origin}/v1/chat/completions`), copied);
    assert.ok(!copied.includes(key));
  });

  it('asks once before the first request to an origin that costs money or is not on this machine', async () => {
    const { probing, context } = await parts();
    await context.globalState.update('firstToken.confirmedOrigins', undefined);
    await config().update('endpoints', [{ name: 'paid', url: `${mine.origin}/v1`, model: 'm', api: 'openai-chat', price: { outputPerMillion: 10 } }], vscode.ConfigurationTarget.Global);
    await until(async () => (await parts()).endpoints.all().some(({ endpoint }) => endpoint.name === 'paid'), 'the endpoint');
    const asked: string[] = [];
    let answer = false;
    await answering({
      confirm: ({ message, detail }) => {
        asked.push(`${message}\n${detail}`);
        return Promise.resolve(answer);
      },
    });
    const before = mine.seen.length;
    await assert.rejects(probing.spotCheck('paid'), { name: 'Cancelled' });
    assert.equal(mine.seen.length, before, 'nothing was sent');
    assert.match(asked[0] ?? '', /9 requests[\s\S]*128 output tokens[\s\S]*USD/);
    answer = true;
    await probing.spotCheck('paid');
    await probing.spotCheck('paid');
    assert.equal(asked.length, 2);
  });
});
