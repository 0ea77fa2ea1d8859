import assert from 'node:assert/strict';
import { createRedactor, secretsOf } from '../../../src/probe/redact';

describe('redaction', () => {
  it('takes out the key in every form a server may echo it', () => {
    const redact = createRedactor(['Bearer sk+planted/key=', null, undefined]);
    const text = `key sk+planted/key= url ${encodeURIComponent('sk+planted/key=')} basic ${Buffer.from('sk+planted/key=').toString('base64')} end`;
    assert.ok(!/planted|c2srcGxhbnRlZ/.test(redact(text)), redact(text));
    assert.match(redact(text), /^key \[redacted\] url \[redacted\].* end$/);
  });

  it('leaves text alone without secrets, and is not fooled by short ones', () => {
    assert.equal(createRedactor(['', 'true', null])('it is true'), 'it is true');
  });

  it('knows a short key as a word of its own', () => {
    const redact = createRedactor(['abcd']);
    assert.equal(redact('wrong key: abcd (abcde, xabcd)'), 'wrong key: [redacted] (abcde, xabcd)');
  });

  it('knows the key as JSON writes it, and takes what is no text for none', () => {
    const redact = createRedactor(['pass/"word"\\1', '\ud800\ud800\ud800\ud800']);
    for (const echoed of [JSON.stringify('pass/"word"\\1'), 'pass\\/\\"word\\"\\\\1']) assert.doesNotMatch(redact(echoed), /word/);
  });

  it('takes out the beginning of a key that a cut left', () => {
    const redact = createRedactor(['sk-planted-key']);
    assert.equal(redact('your key is sk-plan…'), 'your key is [redacted]…');
    assert.equal(redact('it is sk-planted'), 'it is sk-planted', 'whole texts end where they end');
  });

  it('finds the secrets of a request', () => {
    assert.deepEqual(secretsOf('https://h/v1?key=abc-secret&alt=sse&api-version=2024-10-21', { 'content-type': 'application/json', Authorization: 'Bearer x', 'x-team': 'blue' }), ['abc-secret', 'Bearer x', 'blue']);
  });
});
