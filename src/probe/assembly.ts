/** A tape and its decoded stream become a Sample: plain numbers, counted from the run's origin, with no text and no secret in it. */
import type { Milliseconds, Outcome, Sample } from '../report/sample';
import type { Decoded } from './decode';
import type { Redact } from './redact';
import type { Tape } from './tape';

/** What the schedule knows about a request. */
export interface Attempted {
  readonly id: string;
  readonly role: Sample['role'];
  /** Stamp of the clock. */
  readonly due: Milliseconds;
  readonly labels: Sample['labels'];
}

const rawLimit = 2000;
/** Longest word of a server that is kept (a finish reason, the name of a timing), and most timings. */
const wordLimit = 100;
const mostTimings = 50;

/** Assembles a sample with stamps counted from `origin`. */
export function assembleSample(attempted: Attempted, tape: Tape, decoded: Decoded, outcome: Outcome, origin: Milliseconds, redact: Redact): Sample {
  const at = (t: Milliseconds | null | undefined): Milliseconds | null => (t === null || t === undefined ? null : t - origin);
  const { phases } = tape;
  const { arrivals } = decoded;
  return {
    id: attempted.id,
    role: attempted.role,
    due: attempted.due - origin,
    start: phases.start - origin,
    written: at(phases.written),
    sent: at(phases.sent),
    headers: at(phases.headers),
    firstFrame: at(decoded.firstFrame),
    firstToken: at(arrivals[0]?.t),
    firstVisible: at(arrivals.find((arrival) => arrival.kind === 'text')?.t),
    last: at(arrivals.at(-1)?.t),
    end: at(decoded.end ?? phases.bodyEnd),
    connection: { reused: tape.reused, dns: at(phases.dns), connected: at(phases.connected), secured: at(phases.secured), alpn: tape.alpn },
    ...tokensOf(decoded),
    reasoningTokens: decoded.reasoningTokens,
    promptTokens: decoded.promptTokens,
    cachedTokens: decoded.cachedTokens,
    outcome: redactOutcome(outcome, redact),
    finish: decoded.finish === null ? null : word(decoded.finish, redact),
    deltas: arrivals.map((arrival) => [arrival.t - origin, arrival.kind, arrival.tokens] as const),
    visibleChars: arrivals.map((arrival) => (arrival.kind === 'text' ? Array.from(arrival.text).length : 0)),
    reads: decoded.reads,
    maxDeltasPerRead: decoded.maxDeltasPerRead,
    bytes: decoded.bytes,
    serverTimings: decoded.serverTimings.slice(0, mostTimings).map((timing) => ({ ...timing, name: word(timing.name, redact) })),
    flags: [...decoded.flags, ...wireFlags(tape)],
    labels: attempted.labels,
  };
}

/** N by the best source; where the server told nothing, the number of deltas: at least so many (the last source in the list of sample.ts). */
function tokensOf(decoded: Decoded): Pick<Sample, 'outputTokens' | 'streamTokens' | 'n1'> {
  const { outputTokens, streamTokens, n1, arrivals } = decoded;
  if (outputTokens.count !== null || arrivals.length === 0) return { outputTokens, streamTokens, n1 };
  return { outputTokens: { count: arrivals.length, source: 'deltas' }, streamTokens: arrivals.length, n1: 1 };
}

/** A server's own word, without secrets and bounded. */
function word(text: string, redact: Redact): string {
  return redact(text).slice(0, wordLimit);
}

const codings = new Set(['gzip', 'x-gzip', 'deflate', 'br', 'zstd', 'compress', 'x-compress']);

/** The compression of the body, `unknown` when it is not a registered one, null when there is none. A compressed stream can hold tokens back; the caveat on delivery reads it. */
export function contentEncoding(tape: Tape): string | null {
  const value = tape.headers.find(([name]) => name.toLowerCase() === 'content-encoding')?.[1].trim().toLowerCase();
  if (value === undefined || value === '' || value === 'identity') return null;
  return codings.has(value) ? value : 'unknown';
}

/** What the wire itself shows: a connection the server had closed, a compressed stream. */
function wireFlags(tape: Tape): string[] {
  const encoding = contentEncoding(tape);
  return [...(tape.redispatched ? ['connection-closed-by-server'] : []), ...(encoding === null ? [] : [`content-encoding:${encoding}`])];
}

function redactOutcome(outcome: Outcome, redact: Redact): Outcome {
  return {
    ...outcome,
    ...(outcome.message === undefined ? {} : { message: redact(outcome.message).slice(0, rawLimit) }),
    ...(outcome.raw === undefined ? {} : { raw: redact(outcome.raw).slice(0, rawLimit) }),
  };
}
