import assert from 'node:assert/strict';
import { spawnSync } from 'node:child_process';
import fc from 'fast-check';
import { curlCommand, keyPlaceholder } from '../../../src/editor/curl';

const request = (url: string, headers: Record<string, string>, body: string) => ({ method: 'POST' as const, url, headers, body });

/** The arguments a POSIX shell makes of a command. */
function words(command: string, env: Record<string, string> = {}): string[] {
  const script = `curl() { printf '%s\\0' "$@"; }\n${command}`;
  const { stdout, status } = spawnSync('sh', ['-c', script], { env: { ...env, PATH: process.env['PATH'] ?? '' }, encoding: 'utf8' });
  assert.equal(status, 0, command);
  return stdout.split('\0').slice(0, -1);
}

describe('curl commands', () => {
  it('hold a variable for the key and for headers that could be one', () => {
    const command = curlCommand(request('https://h/v1/chat/completions', { 'content-type': 'application/json', authorization: `Bearer ${keyPlaceholder}`, 'x-team': 'blue-secret' }, '{}'));
    assert.ok(!command.includes('blue-secret'));
    assert.deepEqual(words(command, { FIRST_TOKEN_API_KEY: 'k', X_TEAM: 'blue' }), ['--no-buffer', 'https://h/v1/chat/completions', '-H', 'content-type: application/json', '-H', 'authorization: Bearer k', '-H', 'x-team: blue', '--data-raw', '{}']);
  });

  it('keep query keys out', () => {
    const command = curlCommand(request(`https://h/v1/models/m:streamGenerateContent?alt=sse&key=AIzaSecret`, {}, '{}'));
    assert.ok(!command.includes('AIzaSecret'));
    assert.equal(words(command, { KEY: 'q' })[1], 'https://h/v1/models/m:streamGenerateContent?alt=sse&key=q');
  });

  it('carry any body through the shell unchanged', function () {
    this.timeout(60_000);
    fc.assert(
      fc.property(fc.string({ unit: 'grapheme', maxLength: 60 }).filter((text) => !text.includes('\0')), (body) => {
        assert.equal(words(curlCommand(request('https://h/v1', {}, body))).at(-1), body);
      }),
      { numRuns: 60 },
    );
  });
});
