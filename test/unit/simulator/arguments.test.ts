import assert from 'node:assert/strict';
import { ArgumentError, parseSimulatorArgs, parseTenants, simulatorUsage } from '../../../src/simulator/arguments';
import { encodeTime } from '../../../src/simulator/encoder';
import { kneeOfSeats, stepTime } from '../../../src/simulator/formula';
import { gpus, hardware, kvBytesPerToken, models } from '../../../src/simulator/model';

describe('arguments', () => {
  it('no arguments: the demo', () => {
    const settings = parseSimulatorArgs([]);
    assert.equal(settings.hardware.model.name, 'llama-3.1-8b');
    assert.equal(settings.hardware.gpu.name, 'h200');
    assert.deepEqual([settings.maxRunning, settings.policy, settings.port, settings.host], [16, 'continuous', 0, '127.0.0.1']);
  });

  it('reads flags with a space or an equals sign', () => {
    const settings = parseSimulatorArgs(['--policy=timed', '--batch-size', '4', '--fault', 'cut:3', '--fault', 'share:0.1:status:429:2', '--reasoning', '20:think', '--face=ollama']);
    assert.deepEqual([settings.policy, settings.batchSize, settings.faults.length, settings.reasoningTokens, settings.reasoningStyle, settings.face], ['timed', 4, 2, 20, 'think', 'ollama']);
  });

  const refused: readonly [string, RegExp][] = [
    ['--polcy timed', /--polcy is not an option/],
    ['policy timed', /policy is not an option/],
    ['--policy sometimes', /--policy sometimes: one of continuous, request-level, timed/],
    ['--policy', /--policy needs a value/],
    ['--port --face', /--port needs a value/],
    ['--port 70000', /port from 0 to 65535/],
    ['--host 0.0.0.0', /--host 0.0.0.0: one of 127.0.0.1/],
    ['--model gpt-5', /--model gpt-5 is not known. Known: llama-3.1-8b/],
    ['--gpu h900', /--gpu h900 is not known/],
    ['--model llama-3.1-70b --gpu l4', /does not fit on 1 × l4: use --tp/],
    ['--max-running 0', /--max-running 0: a whole number of at least 1/],
    ['--max-running 2.5', /whole number/],
    ['--speed 0', /--speed 0: a number above 0/],
    ['--fault explode', /--fault: Fault "explode" is not known. Known: status:CODE/],
    ['--fault dead:3 --replicas 2', /only 2 replicas/],
    ['--speculative 0:0.5', /K a whole number of at least 1/],
    ['--speculative 3', /K:P/],
    ['--split 1', /P:D/],
    ['--autoscale 3:1:queue:4', /1 ≤ MIN ≤ MAX/],
    ['--reasoning many', /N:hidden/],
    ['--tenants /no/such/file.json', /cannot be read/],
    ['--seed 1 --seed 2', /given twice/],
    ['--policy timed --chunked-prefill 512', /--chunked-prefill needs --policy continuous/],
    ['--batch-size 4', /--batch-size needs --policy timed/],
    ['--batch-cost 100', /--batch-cost needs/],
    ['--fair --priority', /cannot be combined/],
    ['--split 1:1 --replicas 2', /cannot be combined/],
    ['--efficiency 2:1', /shares above 0/],
  ];
  for (const [line, pattern] of refused) {
    it(`refuses ${line}`, () => {
      assert.throws(() => parseSimulatorArgs(line.split(' ')), (error: unknown) => error instanceof ArgumentError && pattern.test(error.message));
    });
  }

  it('reads tenants and says which one is wrong', () => {
    assert.deepEqual(parseTenants('[{"name":"a","keys":["k"],"weight":3},{"name":"b","tokensPerSecond":100}]'), [
      { name: 'a', keys: ['k'], weight: 3, priority: 0, quota: null },
      { name: 'b', keys: [], weight: 1, priority: 0, quota: { tokensPerSecond: 100, burst: 100 } },
    ]);
    for (const [text, pattern] of [['{', /not JSON/], ['[]', /list of tenants/], ['[{}]', /tenant 1 needs a name/], ['[{"name":"a","weight":-1}]', /tenant 1 \(a\): weight/], ['[{"name":"a","keys":"k"}]', /keys must be a list/]] as const) {
      assert.throws(() => parseTenants(text), pattern);
    }
  });

  it('explains every flag and fault', () => {
    for (const name of ['--policy', '--chunked-prefill', '--tenants', '--router', '--fault', 'share:P:FAULT', 'stall[:N[:MS]]']) assert.ok(simulatorUsage.includes(name), name);
  });
});

describe('presets and formulas', () => {
  it('every preset has a source, and KV bytes follow from its shape', () => {
    for (const preset of [...models, ...gpus]) assert.ok(preset.source.length > 10);
    assert.equal(kvBytesPerToken(hardware()), 131_072);
    assert.equal(kvBytesPerToken(hardware({ kvBits: 8 })), 65_536);
  });

  it('a mixture of experts reads only the experts that were chosen: few for one token, nearly all for many', () => {
    const moe = hardware({ model: 'qwen3-30b-a3b' });
    const all = ((30.5e9 * 2) / 4.8e12) * 1000;
    const one = stepTime(moe, [{ tokens: 1, context: 0 }]);
    const many = stepTime(moe, Array.from({ length: 128 }, () => ({ tokens: 1, context: 0 })));
    // One token: its 3.3 of 30.5 billion parameters.
    assert.ok(Math.abs(one - all * (3.3 / 30.5)) < 0.02 * one, `${one}`);
    assert.ok(many > 0.95 * all && many < 1.02 * all, `${many} of ${all}`);
  });

  it('the knee of the demo is near 34 streams', () => {
    assert.ok(Math.abs(kneeOfSeats(16, 128, 3.42, 500) - 34.3) < 0.1);
  });

  it('padding: a mixed batch costs as much as its longest input times its size', () => {
    const gpu = hardware({ gpu: 'l4', weightBits: 8 });
    const mixed = [16, 16, 16, 512];
    assert.equal(encodeTime(gpu, mixed, true), encodeTime(gpu, [512, 512, 512, 512], true));
    // By operations: 2,048 padded against 560 real tokens.
    const ratio = encodeTime(gpu, mixed, true) / encodeTime(gpu, mixed, false);
    assert.ok(ratio > 3.3 && ratio < 2048 / 560 + 0.2, String(ratio));
  });
});
