import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { networkOf, readerPaceOf, sloOf } from '../../../src/cli/environment';
import { keyFor } from '../../../src/cli/keys';
import { readWorkspaceSettings } from '../../../src/cli/settings';
import { sloPresets } from '../../../src/report/goodput';
import { temporaryFolder } from './terminal';

/** JSON as somebody may have written it, numbers beyond all bounds included. */
const settings = (text: string): Record<string, unknown> => JSON.parse(text) as Record<string, unknown>;
const refuses = (act: () => unknown, message: RegExp): void => {
  assert.throws(act, (error: Error) => ['PlanError', 'UsageError'].includes(error.name) && message.test(error.message));
};

describe('settings in a terminal', () => {
  it('an SLO: null leaves a limit out, anything that is none is named', () => {
    assert.deepEqual(sloOf({}, 'chat'), sloPresets.chat);
    assert.equal(sloOf(settings('{"slo":{"ttft":null,"valid":null}}'), 'chat').ttft, undefined);
    assert.equal(sloOf(settings('{"slo":{"ttft":7}}'), 'chat').ttft, 7);
    for (const value of ['1e999', '-1', '0', '"500"', '[]', '{}', 'true']) refuses(() => sloOf(settings(`{"slo":{"ttft":${value}}}`), 'chat'), /firstToken\.slo\.ttft/);
    for (const value of ['"1"', '[]', '{}']) refuses(() => sloOf(settings(`{"slo":{"attainment":${value}}}`), 'chat'), /firstToken\.slo\.attainment/);
    refuses(() => sloOf(settings('{"slo":{"tfft":1}}'), 'chat'), /no property "tfft"/);
    for (const value of ['5', '[]', '"x"']) refuses(() => sloOf(settings(`{"slo":${value}}`), 'chat'), /must be an object/);
  });

  it('a network', () => {
    assert.deepEqual(networkOf(settings('{"network":{"timeouts":{"total":null,"stall":5}}}'), {}).timeouts, { total: null, stall: 5 });
    assert.equal(networkOf(settings('{"network":{"proxy":"none"}}'), {}).network.proxy, 'none');
    assert.deepEqual(networkOf(settings('{"network":{"proxy":"proxy.test:3128"}}'), {}).network.proxy, { url: 'proxy.test:3128', authorization: null });
    for (const value of ['1e999', '1e12', '0', '-5', '"abc"', '{}']) refuses(() => networkOf(settings(`{"network":{"timeouts":{"firstToken":${value}}}}`), {}), /timeouts\.firstToken/);
    for (const value of ['5', '[]', '"x"']) refuses(() => networkOf(settings(`{"network":{"timeouts":${value}}}`), {}), /timeouts must be an object/);
    refuses(() => networkOf(settings('{"network":{"timeouts":{"first":5}}}'), {}), /no property "first"/);
    for (const value of ['5', '"socks5://h:9"', '"not a url"']) refuses(() => networkOf(settings(`{"network":{"proxy":${value}}}`), {}), /firstToken\.network\.proxy/);
    refuses(() => networkOf(settings('{"network":{"http2":"yes"}}'), {}), /http2 must be true or false/);
    refuses(() => networkOf(settings('{"network":{"porxy":"env"}}'), {}), /no property "porxy"/);
  });

  it('a pace', () => {
    assert.equal(readerPaceOf({}), 120);
    assert.equal(readerPaceOf({ readerPace: 50 }), 50);
    for (const value of ['0', '-5', '1e999', '"120"', '[]']) refuses(() => readerPaceOf(settings(`{"readerPace":${value}}`)), /firstToken\.readerPace/);
  });

  it('a key: what a file adds is cut off, what no header can carry is refused without showing it', () => {
    const target = { origin: 'http://h', typedUrl: true, loopback: false };
    assert.equal(keyFor(target, { FIRST_TOKEN_API_KEY: 'abc\r\n' }).key, 'abc');
    assert.equal(keyFor(target, { FIRST_TOKEN_API_KEY: '\n' }).key, null);
    assert.equal(keyFor(target, { FIRST_TOKEN_API_KEY: 'ké"y\\' }).key, 'ké"y\\');
    for (const key of ['secret\r\nx-evil: 1', 'secret\u0001', 'secret鍵']) {
      refuses(() => keyFor(target, { FIRST_TOKEN_API_KEY: key }), /^FIRST_TOKEN_API_KEY holds a character/);
      assert.throws(() => keyFor(target, { FIRST_TOKEN_API_KEY: key }), (error: Error) => !error.message.includes('secret'));
    }
  });

  it('a settings file with a byte order mark, comments only, or nothing in it', () => {
    const folder = temporaryFolder();
    mkdirSync(path.join(folder.path, '.vscode'));
    const read = (text: string) => {
      writeFileSync(path.join(folder.path, '.vscode', 'settings.json'), text);
      return readWorkspaceSettings(folder.path).values;
    };
    for (const text of ['', '\uFEFF{}', '// later', 'null', '[]', '5', '{"__proto__": {"firstToken.probe": 1}}']) assert.deepEqual(read(text), {}, text);
    assert.deepEqual(read('\uFEFF{"firstToken.readerPace": 5}'), { readerPace: 5 });
    refuses(() => read('{'), /line 1 is not valid JSON/);
    folder.dispose();
  });
});
