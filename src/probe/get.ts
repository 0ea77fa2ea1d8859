/** One small GET through a recorder, so that proxies, certificates and sockets are the same as in the measurement. */
import type { Answer, Get } from './detect';
import type { Milliseconds } from '../report/sample';
import type { Recorder } from './recording';
import type { Redact } from './redact';

let asked = 0;

/** A `Get` that gives up after `limit` ms. Throws an Error in plain words, redacted. */
export function createGet(recorder: Recorder, headers: Readonly<Record<string, string>>, redact: Redact, signal: AbortSignal, limit: Milliseconds = 3000): Get {
  return async (url): Promise<Answer> => {
    const id = `get-${(asked += 1)}`;
    const tape = await recorder.record({ id, request: { method: 'GET', url, headers: { accept: 'application/json, text/plain, */*', ...headers }, body: '' }, timeouts: { firstToken: limit, stall: limit, total: limit } }, null, signal);
    if (tape.status !== null && (tape.ending.kind === 'complete' || tape.bytes.length > 0)) return { status: tape.status, headers: tape.headers, text: new TextDecoder().decode(tape.bytes) };
    if ('message' in tape.ending) throw new Error(redact(tape.ending.message));
    throw new Error(tape.ending.kind === 'cancelled' ? 'Cancelled.' : `No answer within ${limit} ms.`);
  };
}
