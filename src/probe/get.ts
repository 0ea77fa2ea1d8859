/** One small request through a recorder, so that proxies, certificates and sockets are the same as in the measurement. */
import type { Answer, Get } from './detect';
import type { WireRequest } from './dialect/dialect';
import type { Milliseconds } from '../report/sample';
import type { Recorder } from './recording';
import type { Redact } from './redact';

let asked = 0;
/** A longer answer is none to a small request. */
const mostBytes = 16_000_000;

/** A `Get` that gives up after `limit` ms. Throws an Error in plain words, redacted. */
export function createGet(recorder: Recorder, headers: Readonly<Record<string, string>>, redact: Redact, signal: AbortSignal, limit: Milliseconds = 3000): Get {
  return async (url) => await ask({ method: 'GET', url, headers: { accept: 'application/json, text/plain, */*', ...headers }, body: '' }, recorder, redact, signal, limit);
}

/** Posts a JSON body and gives the answer, whatever its status; gives up after `limit` ms. Throws an Error in plain words, redacted. */
export function createPost(recorder: Recorder, headers: Readonly<Record<string, string>>, redact: Redact, signal: AbortSignal, limit: Milliseconds = 10_000): (url: string, body: unknown) => Promise<Answer> {
  return async (url, body) => await ask({ method: 'POST', url, headers: { accept: 'application/json', 'content-type': 'application/json', ...headers }, body: JSON.stringify(body) }, recorder, redact, signal, limit);
}

async function ask(request: WireRequest, recorder: Recorder, redact: Redact, signal: AbortSignal, limit: Milliseconds): Promise<Answer> {
  const id = `get-${(asked += 1)}`;
  const tape = await recorder.record({ id, request, timeouts: { firstToken: limit, stall: limit, total: limit } }, null, signal);
  if (tape.bytes.length > mostBytes) throw new Error(`The answer has more than ${mostBytes / 1e6} MB.`);
  if (tape.status !== null && (tape.ending.kind === 'complete' || tape.bytes.length > 0)) return { status: tape.status, headers: tape.headers, text: new TextDecoder().decode(tape.bytes) };
  if ('message' in tape.ending) throw new Error(redact(tape.ending.message));
  throw new Error(tape.ending.kind === 'cancelled' ? 'Cancelled.' : `No answer within ${limit} ms.`);
}
