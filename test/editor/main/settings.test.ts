import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { answering, config, parts, setUser, until } from '../extensionUnderTest';

const names = ['slo', 'objective', 'probe', 'readerPace', 'endpoints', 'lens', 'network', 'reports'];

describe('settings', () => {
  afterEach(async () => {
    for (const name of names) {
      await config().update(name, undefined, vscode.ConfigurationTarget.Global);
      await config().update(name, undefined, vscode.ConfigurationTarget.Workspace).then(undefined, () => undefined);
    }
  });

  it('has the defaults of package.json', async () => {
    const { settings } = await parts();
    const { slo, probe, lens, problems } = settings();
    assert.deepEqual(problems, []);
    assert.deepEqual(slo, { ttft: 500, tpot: 30, attainment: 0.95 });
    assert.equal(probe.requests, 20);
    assert.deepEqual(lens, { probe: true, result: true, cache: true, breakers: true, line: true });
  });

  it('lays a partial object over the defaults; null leaves a limit out', async () => {
    const { settings } = await parts();
    await setUser('slo', { tpot: null, gapP99: 200 });
    await until(() => settings().slo.gapP99 === 200, 'the new limit');
    assert.deepEqual(settings().slo, { ttft: 500, gapP99: 200, attainment: 0.95 });
  });

  it('names the setting that is wrong, keeps its default and uses the rest', async () => {
    const { settings } = await parts();
    const said = await answering({});
    await setUser('readerPace', 'fast');
    await until(() => settings().problems.length > 0, 'a problem');
    assert.equal(settings().readerPace, 120);
    assert.match(said.at(-1)?.message ?? '', /firstToken\.readerPace/);
    assert.deepEqual(said.at(-1)?.choices, ['Open Settings']);
  });

  it('leaves a broken endpoint out, says which, and keeps the others', async () => {
    const { settings, endpoints } = await parts();
    const said = await answering({});
    await setUser('endpoints', [{ name: 'good', url: 'http://127.0.0.1:9/v1' }, { name: 'bad', url: 'ftp://nowhere' }, 'nonsense']);
    await until(() => settings().endpoints.length === 1, 'one endpoint');
    assert.equal(endpoints.selected()?.endpoint.name, 'good');
    assert.match(said.at(-1)?.message ?? '', /firstToken\.endpoints\[1\]\.url/);
  });

  it('shows user and workspace endpoints together, and lets only user settings leave certificates unverified', async () => {
    const { settings } = await parts();
    await answering({});
    await setUser('endpoints', [{ name: 'mine', url: 'https://mine.example/v1', tls: { insecure: true } }]);
    await config().update('endpoints', [{ name: 'theirs', url: 'https://theirs.example/v1', tls: { insecure: true } }], vscode.ConfigurationTarget.Workspace);
    await until(() => settings().endpoints.length === 2, 'two endpoints');
    assert.deepEqual(
      settings().endpoints.map(({ endpoint, from }) => [endpoint.name, from, endpoint.tls.insecure]),
      [
        ['mine', 'user', true],
        ['theirs', 'workspace', false],
      ],
    );
    assert.match(settings().problems[0]?.message ?? '', /tls\.insecure of "theirs"/);
  });
});
