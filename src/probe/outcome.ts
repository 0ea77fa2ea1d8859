/** What a request came to: the decoded stream, the ending on the wire and the limits combined, whatever raced with what. */
import type { Milliseconds, Outcome } from '../report/sample';
import { contentEncoding } from './assembly';
import type { Decoded } from './decode';
import type { Timeouts } from './network';
import type { Tape } from './tape';

/**
 * The outcome of a tape. A function of the stamps and the stream alone: a token that came after the first-token limit is a time-out
 * even when the timer that enforces it fired late, and a limit that fired after the end marker changes nothing.
 */
export function judge(tape: Tape, decoded: Decoded, timeouts: Timeouts): Outcome {
  const said = decoded.outcome;
  if (tape.ending.kind === 'dns' || tape.ending.kind === 'connect' || tape.ending.kind === 'tls') return { kind: tape.ending.kind, message: tape.ending.message };
  const encoding = contentEncoding(tape);
  if (encoding !== null && (said.kind === 'malformed' || said.kind === 'truncated' || said.kind === 'empty')) {
    return { kind: 'malformed', message: `The body is compressed (${encoding}) although the request asked for none: a proxy or gateway in between does that. Switch compression off for event streams there.` };
  }
  if (said.kind === 'status' || said.kind === 'stream-error' || said.kind === 'malformed') return said;
  const finished = said.kind === 'ok' || said.kind === 'not-streaming' || said.kind === 'empty';
  if (!finished && tape.ending.kind === 'cancelled') return { kind: 'cancelled' };
  const late = brokenLimit(tape, decoded, timeouts);
  if (late) return late;
  if (!finished && tape.ending.kind === 'closed') return { ...said, message: said.message ?? tape.ending.message };
  return said;
}

function brokenLimit(tape: Tape, decoded: Decoded, { firstToken, stall, total }: Timeouts): Outcome | null {
  const { start } = tape.phases;
  const first = decoded.arrivals[0]?.t ?? null;
  const ended = decoded.end !== null;
  if (firstToken !== null && (first !== null ? first - start > firstToken : tape.ending.kind === 'timeout-first-token')) {
    return { kind: 'timeout-first-token', message: `No token within ${firstToken} ms` };
  }
  if (stall !== null && ((!ended && tape.ending.kind === 'timeout-stall') || (first !== null && longestSilence(tape, first, decoded.end) > stall))) {
    return { kind: 'timeout-stall', message: `Nothing arrived for ${stall} ms after the stream had begun` };
  }
  if (total !== null && ((!ended && tape.ending.kind === 'timeout-total') || (decoded.end ?? 0) - start > total)) {
    return { kind: 'timeout-total', message: `Not complete after ${total} ms` };
  }
  return null;
}

/** Longest time between two reads from the first token to the end marker. */
function longestSilence(tape: Tape, from: Milliseconds, until: Milliseconds | null): Milliseconds {
  let longest = 0;
  let before = from;
  for (const stamp of tape.stamps) {
    if (stamp < from) continue;
    if (until !== null && stamp > until) break;
    longest = Math.max(longest, stamp - before);
    before = stamp;
  }
  return longest;
}
