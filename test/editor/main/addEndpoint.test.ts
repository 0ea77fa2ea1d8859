import assert from 'node:assert/strict';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { answering, config, parts, root, until } from '../extensionUnderTest';

describe('Add Endpoint', () => {
  let simulator: StartedSimulator;
  before(async () => {
    simulator = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--api-key', 'sk-lab-1234567', '--face', 'vllm'] });
  });
  after(async () => {
    await simulator.stop();
    await (await parts()).secrets.remove(simulator.url);
    await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
  });

  it('asks for URL, key and model, writes user settings, and sends a test request', async () => {
    const { secrets, endpoints } = await parts();
    const inputs: string[] = [];
    const picks: string[][] = [];
    const said = await answering({
      input: (options) => {
        const { prompt, value } = options;
        inputs.push(prompt ?? '');
        if (!/key/.test(prompt ?? '')) assert.ok(options.validateInput?.(''), 'an empty answer is refused');
        if (/URL/.test(prompt ?? '')) return Promise.resolve(`${simulator.url}/v1`);
        if (/key/.test(prompt ?? '')) return Promise.resolve('sk-lab-1234567');
        assert.ok(value, 'a name is suggested');
        return Promise.resolve('lab');
      },
      pick: async (items) => {
        const all = await items;
        picks.push(all.map(({ label }) => label));
        return all.find(({ label }) => label === 'llama-3.1-8b') ?? all.find(({ label }) => label.includes('Send a test request'));
      },
    });
    await vscode.commands.executeCommand('firstToken.addEndpoint');
    assert.equal(inputs.length, 3, inputs.join(' | '));
    assert.ok(picks[0]?.includes('llama-3.1-8b'), 'models of the server are offered');
    assert.match(said.at(-1)?.message ?? '', /lab answered: first token after [\d.]+ ms/);
    assert.equal(said.at(-1)?.kind, 'info');
    assert.equal(await secrets.get(simulator.url), 'sk-lab-1234567');
    assert.deepEqual(config().inspect('endpoints')?.globalValue, [{ name: 'lab', url: `${simulator.url}/v1`, model: 'llama-3.1-8b' }]);
    await until(() => endpoints.selected()?.endpoint.name === 'lab', 'it is selected');
    assert.ok(!JSON.stringify(config().get('endpoints')).includes('sk-lab'), 'the key is not in the settings');
  });

  it('writes nothing when it is left half-way', async () => {
    const before = config().inspect('endpoints')?.globalValue;
    const said = await answering({ input: () => Promise.resolve(undefined) });
    await vscode.commands.executeCommand('firstToken.addEndpoint');
    assert.deepEqual(config().inspect('endpoints')?.globalValue, before);
    assert.deepEqual(said, []);
  });
});
