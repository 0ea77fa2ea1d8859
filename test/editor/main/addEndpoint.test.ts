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
    const steps: string[] = [];
    const said = await answering({
      input: (options) => {
        const { prompt, value, step, totalSteps } = options;
        steps.push(`${step}/${totalSteps}`);
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
    assert.deepEqual(steps, ['1/3', '2/4', '4/4'], 'the key is one step more, the model the third');
    assert.ok(picks[0]?.includes('llama-3.1-8b'), 'models of the server are offered');
    assert.match(said.at(-1)?.message ?? '', /lab answered: first token after [\d.]+ ms/);
    assert.equal(said.at(-1)?.kind, 'info');
    assert.equal(await secrets.get(simulator.url), 'sk-lab-1234567');
    assert.deepEqual(config().inspect('endpoints')?.globalValue, [{ name: 'lab', url: `${simulator.url}/v1`, model: 'llama-3.1-8b' }]);
    await until(() => endpoints.selected()?.endpoint.name === 'lab', 'it is selected');
    assert.ok(!JSON.stringify(config().get('endpoints')).includes('sk-lab'), 'the key is not in the settings');
  });

  it('takes a URL without a scheme, asks in steps without a hole, names a server once, and offers what to do next', async () => {
    const claude = await startSimulator({ script: path.join(root, 'dist/simulator.js'), args: ['--face', 'anthropic'] });
    const { endpoints } = await parts();
    const host = claude.url.replace('http://', '');
    const steps: string[] = [];
    const descriptions: string[] = [];
    try {
      const said = await answering({
        input: async (options) => {
          const { prompt, step, totalSteps, title } = options;
          steps.push(`${title?.startsWith('Add Endpoint')} ${step}/${totalSteps}`);
          if (!/URL/.test(prompt ?? '')) return 'claude lab';
          const told = await options.validateInput?.(host);
          assert.ok(told && typeof told === 'object' && told.message.includes(`http://${host}`), 'how it is read is shown');
          assert.equal(told.severity, vscode.InputBoxValidationSeverity.Info);
          return host;
        },
        pick: async (items, options) => {
          const all = await items;
          steps.push(options.title ?? '');
          descriptions.push(...all.map(({ description }) => description ?? ''));
          return all.find(({ label }) => label === 'llama-3.1-8b') ?? all.find(({ label }) => label.includes('Send a test request'));
        },
      });
      await vscode.commands.executeCommand('firstToken.addEndpoint');
      assert.deepEqual(steps.slice(0, 3), ['true 1/3', 'Add Endpoint (2/3)', 'true 3/3']);
      assert.ok(descriptions.includes('detected: anthropic'), descriptions.join(' | '));
      assert.ok(said.at(-1)?.choices.includes('Spot-check'), JSON.stringify(said.at(-1)));
      assert.equal(endpoints.selected()?.endpoint.url, claude.url);
    } finally {
      await claude.stop();
    }
  });

  it('writes nothing when it is left half-way', async () => {
    const before = config().inspect('endpoints')?.globalValue;
    const said = await answering({ input: () => Promise.resolve(undefined) });
    await vscode.commands.executeCommand('firstToken.addEndpoint');
    assert.deepEqual(config().inspect('endpoints')?.globalValue, before);
    assert.deepEqual(said, []);
  });
});
