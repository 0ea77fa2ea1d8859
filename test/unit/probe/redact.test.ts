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

  it('finds the secrets of a request', () => {
    assert.deepEqual(secretsOf('https://h/v1?key=abc-secret&alt=sse&api-version=2024-10-21', { 'content-type': 'application/json', Authorization: 'Bearer x', 'x-team': 'blue' }), ['abc-secret', 'Bearer x', 'blue']);
  });
});
