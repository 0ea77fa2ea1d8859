import assert from 'node:assert/strict';
import { createLog, redact } from '../../../src/editor/log';

describe('the log', () => {
  it('takes out known secrets and what looks like one', () => {
    const clean = redact(
      ['key hunter2-secret', 'Authorization: Bearer abc.def-123', '"x-api-key": "qwertyuiop"', 'https://u:pass@host/v1?key=AIza123&alt=sse', 'sk-proj-abcdefghijklmnop'].join('\n'),
      ['hunter2-secret'],
    );
    for (const secret of ['hunter2-secret', 'abc.def-123', 'qwertyuiop', 'pass@', 'AIza123', 'abcdefghijklmnop']) assert.ok(!clean.includes(secret), `${secret} in ${clean}`);
    assert.ok(clean.includes('alt=sse') && clean.includes('host/v1'));
  });

  it('leaves plain words alone', () => {
    const text = 'Probe of h200 with a.prompt.md: 21 requests. firstToken.endpoints[1].url: no scheme. Set the key: First Token: Set API Key.';
    assert.equal(redact(text, []), text);
  });

  it('hides a secret from the moment it is known', () => {
    const lines: string[] = [];
    const write = (text: string) => void lines.push(text);
    const log = createLog({ info: write, warn: write, error: write, show: () => undefined } as never);
    log.hide('canary-key-1');
    log.error('failed with canary-key-1');
    assert.deepEqual(lines, ['failed with …']);
  });
});
