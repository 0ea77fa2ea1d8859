/** One tape as a file, for bug reports and fixtures: JSON with the bytes in Base64, without secrets. The request is not in it. */
import * as v from 'valibot';
import { dialects } from './dialect/index';
import type { DialectId } from './dialect/dialect';
import { apis } from './endpoint';
import { secretForms } from './redact';
import type { Tape } from './tape';
import { bytesWithoutSecrets } from './tapeSecrets';

const schemaName = 'first-token/tape@1';

/** A tape as read from a file. */
export interface SavedTape {
  readonly api: DialectId;
  readonly tape: Tape;
}

/** Response headers that may hold a secret or say who asked. */
const droppedHeaders = /^(set-cookie2?|cookie|authorization|proxy-.*|www-authenticate|.*(api-?key|token|secret|session|account|organization|project|user).*)$/i;

/**
 * Writes a tape. Headers that may hold secrets are dropped, queries cut off, and each secret is overwritten in place by as many
 * asterisks, so that offsets stay, also where the answer gives it in pieces. `secrets`: the key, header values and query values of the
 * request. Throws an Error in plain words when one cannot be taken out.
 */
export function serialiseTape(tape: Tape, api: DialectId, secrets: readonly string[]): string {
  const forms = secretForms(secrets);
  const clean = (text: string): string => forms.reduce((left, secret) => left.replaceAll(secret, '*'.repeat(secret.length)), text);
  const ending = 'message' in tape.ending ? { ...tape.ending, message: clean(tape.ending.message) } : tape.ending;
  return `${JSON.stringify({
    schema: schemaName,
    api,
    id: tape.id,
    status: tape.status,
    headers: tape.headers.filter(([name]) => !droppedHeaders.test(name) || /ratelimit/i.test(name)).map(([name, value]) => [name, clean(value.replace(/\?[^\s"]*/g, ''))]),
    phases: tape.phases,
    reused: tape.reused,
    ...(tape.redispatched === undefined ? {} : { redispatched: tape.redispatched }),
    alpn: tape.alpn,
    ending,
    stamps: Array.from(tape.stamps),
    ends: Array.from(tape.ends),
    bytes: Buffer.from(bytesWithoutSecrets(tape, dialects[api], forms)).toString('base64'),
  })}\n`;
}

/** Stamps beyond it have no millisecond left, and their differences no end. */
const furthest = 1e15;
const number = v.pipe(v.number(), v.minValue(-furthest), v.maxValue(furthest));
const stamp = v.nullable(number);
const shape = v.object({
  schema: v.literal(schemaName),
  api: v.picklist(apis.filter((api): api is DialectId => api !== 'auto')),
  id: v.string(),
  status: stamp,
  headers: v.array(v.tuple([v.string(), v.string()])),
  phases: v.object({ start: number, dns: stamp, connected: stamp, secured: stamp, written: stamp, sent: stamp, headers: stamp, bodyEnd: stamp }),
  reused: v.boolean(),
  redispatched: v.exactOptional(v.boolean()),
  alpn: v.nullable(v.string()),
  ending: v.variant('kind', [
    v.object({ kind: v.picklist(['complete', 'cancelled']) }),
    v.object({ kind: v.picklist(['closed', 'dns', 'connect', 'tls']), message: v.string() }),
    v.object({ kind: v.picklist(['timeout-first-token', 'timeout-stall', 'timeout-total']), limit: number }),
  ]),
  stamps: v.array(number),
  ends: v.array(number),
  bytes: v.string(),
});

/** Reads a tape file; a string says in plain words why it is none. Never throws. */
export function parseTape(text: string): SavedTape | string {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    return 'This is not a tape: it is not JSON.';
  }
  const found = (json as { schema?: unknown } | null)?.schema;
  if (typeof found === 'string' && found.startsWith('first-token/tape@') && found !== schemaName) return `This tape is of version ${found.slice(17)}; this First Token reads version 1.`;
  const read = v.safeParse(shape, json);
  if (!read.success) return `This is not a tape of First Token: ${read.issues[0].message} (${v.getDotPath(read.issues[0]) ?? 'top'}).`;
  const { api, stamps, ends, bytes, id, status, headers, phases, reused, redispatched, alpn, ending } = read.output;
  const body = new Uint8Array(Buffer.from(bytes, 'base64'));
  if (stamps.length !== ends.length || (ends.at(-1) ?? 0) !== body.length || ends.some((end, k) => end < (ends[k - 1] ?? 0)) || stamps.some((t, k) => t < (stamps[k - 1] ?? t))) return 'This tape is damaged: its reads do not add up to its bytes.';
  return { api, tape: { id, status, headers, phases, reused, ...(redispatched === undefined ? {} : { redispatched }), alpn, ending, stamps: Float64Array.from(stamps), ends: Uint32Array.from(ends), bytes: body } };
}
