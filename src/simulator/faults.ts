/** Everything that goes wrong with real servers, on purpose: chosen for all requests by `--fault NAME[:ARG…]`, or for one by the header `x-fault`. */

/** How a refusal says when to come back. */
export type RetryForm = { readonly form: 'seconds' | 'ms' | 'date' | 'reset'; readonly value: number } | null;

/** One fault. `after` counts tokens that are sent well before it happens; times in ms. */
export type Fault =
  | { readonly kind: 'status'; readonly status: number; readonly retry: RetryForm }
  | { readonly kind: 'html'; readonly status: number }
  | { readonly kind: 'json' }
  | { readonly kind: 'error-frame'; readonly after: number }
  | { readonly kind: 'cut'; readonly after: number }
  | { readonly kind: 'truncate'; readonly after: number }
  | { readonly kind: 'stall'; readonly after: number; readonly ms: number }
  | { readonly kind: 'hang' }
  | { readonly kind: 'empty' }
  | { readonly kind: 'huge'; readonly bytes: number }
  | { readonly kind: 'bad-utf8'; readonly after: number }
  | { readonly kind: 'refuse'; readonly field: string; readonly status: number }
  | { readonly kind: 'slow-first'; readonly ms: number }
  | { readonly kind: 'jitter'; readonly ms: number }
  | { readonly kind: 'malformed'; readonly after: number }
  | { readonly kind: 'buffer'; readonly ms: number }
  | { readonly kind: 'gzip' }
  | { readonly kind: 'comments'; readonly ms: number }
  | { readonly kind: 'dead'; readonly replica: number }
  | { readonly kind: 'share'; readonly probability: number; readonly fault: Fault };

interface FaultEntry {
  readonly form: string;
  readonly help: string;
  read(args: readonly string[]): Fault | null;
}

/** A number of at least `least`; `fallback` when absent; NaN when it is not one (the caller refuses then). */
function number(text: string | undefined, fallback: number, least = 0): number {
  if (text === undefined || text === '') return fallback;
  const value = Number(text);
  return Number.isFinite(value) && value >= least ? value : NaN;
}

/** Null when one of the fault's numbers could not be read. */
function checked<T extends Fault>(fault: T): T | null {
  return Object.values(fault).some((value) => Number.isNaN(value)) ? null : fault;
}

const entries: Readonly<Record<Fault['kind'], FaultEntry>> = {
  status: {
    form: 'status:CODE[:RETRY]',
    help: 'answer with this status; RETRY is seconds, 500ms, date3 or reset3',
    read: ([code, retry]) => {
      const status = number(code, NaN, 400);
      const form = readRetry(retry);
      return form === undefined || !Number.isInteger(status) || status > 599 ? null : { kind: 'status', status, retry: form };
    },
  },
  html: { form: 'html[:CODE]', help: 'an HTML page instead of a stream (200 unless given)', read: ([code]) => checked({ kind: 'html', status: number(code, 200, 200) }) },
  json: { form: 'json', help: 'one JSON body although a stream was asked for', read: () => ({ kind: 'json' }) },
  'error-frame': { form: 'error-frame[:N]', help: 'an error inside the stream after N tokens (3)', read: ([n]) => checked({ kind: 'error-frame', after: number(n, 3) }) },
  cut: { form: 'cut[:N]', help: 'the connection breaks after N tokens (3)', read: ([n]) => checked({ kind: 'cut', after: number(n, 3) }) },
  truncate: { form: 'truncate[:N]', help: 'a clean end without end mark after N tokens (3)', read: ([n]) => checked({ kind: 'truncate', after: number(n, 3) }) },
  stall: { form: 'stall[:N[:MS]]', help: 'after N tokens (3) nothing for MS (for ever)', read: ([n, ms]) => checked({ kind: 'stall', after: number(n, 3), ms: number(ms, Infinity) }) },
  hang: { form: 'hang', help: 'no answer at all', read: () => ({ kind: 'hang' }) },
  empty: { form: 'empty', help: 'a stream that ends well and holds no token', read: () => ({ kind: 'empty' }) },
  huge: { form: 'huge[:BYTES]', help: 'the first token is one frame of BYTES (8000000)', read: ([bytes]) => checked({ kind: 'huge', bytes: number(bytes, 8_000_000, 1) }) },
  'bad-utf8': { form: 'bad-utf8[:N]', help: 'bytes that are not UTF-8 after N tokens (3)', read: ([n]) => checked({ kind: 'bad-utf8', after: number(n, 3) }) },
  refuse: {
    form: 'refuse:FIELD[:CODE]',
    help: 'refuse requests that have this body field (400, or 422), naming it',
    read: ([field, code]) => (field === undefined || field === '' ? null : checked({ kind: 'refuse', field, status: number(code, 400, 400) })),
  },
  'slow-first': { form: 'slow-first:MS', help: 'the first token comes MS late', read: ([ms]) => checked({ kind: 'slow-first', ms: number(ms, NaN) }) },
  jitter: { form: 'jitter:MS', help: 'every frame is delayed by up to MS, in order', read: ([ms]) => checked({ kind: 'jitter', ms: number(ms, NaN) }) },
  malformed: { form: 'malformed[:N]', help: 'a frame of broken JSON after N tokens (3)', read: ([n]) => checked({ kind: 'malformed', after: number(n, 3) }) },
  buffer: { form: 'buffer:MS', help: 'frames are held and released together every MS, as a buffering proxy does', read: ([ms]) => checked({ kind: 'buffer', ms: number(ms, NaN, 1) }) },
  gzip: { form: 'gzip', help: 'the stream is compressed and comes whole at its end', read: () => ({ kind: 'gzip' }) },
  comments: { form: 'comments[:MS]', help: 'SSE comments every MS (100) until the first token', read: ([ms]) => checked({ kind: 'comments', ms: number(ms, 100, 1) }) },
  dead: { form: 'dead:REPLICA', help: 'this replica (0 is the first) breaks every connection; only with --fault', read: ([replica]) => checked({ kind: 'dead', replica: number(replica, 0) }) },
  share: {
    form: 'share:P:FAULT',
    help: 'only a share P of the requests gets FAULT',
    read: ([p, ...rest]) => {
      const probability = number(p, NaN);
      const fault = parseFault(rest.join(':'));
      return fault && probability <= 1 ? { kind: 'share', probability, fault } : null;
    },
  },
};

function readRetry(text: string | undefined): RetryForm | undefined {
  if (text === undefined || text === '') return null;
  const match = /^(date|reset)?(\d+(?:\.\d+)?)(ms)?$/.exec(text);
  if (!match) return undefined;
  const form = match[3] === 'ms' ? 'ms' : ((match[1] as 'date' | 'reset' | undefined) ?? 'seconds');
  return { form, value: Number(match[2]) };
}

/** Reads one fault. Null when the name or an argument is not known. */
export function parseFault(text: string): Fault | null {
  const [name = '', ...args] = text.trim().split(':');
  return Object.hasOwn(entries, name) ? entries[name as Fault['kind']].read(args) : null;
}

/** Reads a comma-separated list, as in the header `x-fault`. Throws naming the part that is wrong. */
export function parseFaults(text: string): Fault[] {
  return text
    .split(',')
    .filter((part) => part.trim() !== '')
    .map((part) => {
      const fault = parseFault(part);
      if (!fault) throw new Error(`Fault "${part.trim()}" is not known. Known: ${Object.values(entries).map(({ form }) => form).join(', ')}.`);
      return fault;
    });
}

/** One line per fault for the usage text. */
export function faultHelp(): string[] {
  return Object.values(entries).map(({ form, help }) => `${form.padEnd(22)} ${help}`);
}

/** Picks the faults that one request meets: `share` is decided here. */
export function drawFaults(faults: readonly Fault[], random: () => number): Fault[] {
  return faults.flatMap((fault) => (fault.kind !== 'share' ? [fault] : random() < fault.probability ? drawFaults([fault.fault], random) : []));
}

/** The first fault of a kind. */
export function findFault<K extends Fault['kind']>(faults: readonly Fault[], kind: K): Extract<Fault, { kind: K }> | null {
  return (faults.find((fault) => fault.kind === kind) as Extract<Fault, { kind: K }> | undefined) ?? null;
}

/** Headers of a refusal that asks to wait, in the form the fault names. */
export function retryAfterHeaders(retry: RetryForm, wallClock: number): Record<string, string> {
  if (!retry) return {};
  if (retry.form === 'ms') return { 'retry-after': String(Math.ceil(retry.value / 1000)), 'retry-after-ms': String(retry.value) };
  if (retry.form === 'date') return { 'retry-after': new Date(wallClock + retry.value * 1000).toUTCString() };
  if (retry.form === 'reset') return { 'x-ratelimit-reset-requests': `${retry.value}s` };
  return { 'retry-after': String(retry.value) };
}

/** True when the body holds the field; `a.b` looks inside. */
export function hasField(body: unknown, field: string): boolean {
  let value: unknown = body;
  for (const name of field.split('.')) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return false;
    value = (value as Record<string, unknown>)[name];
  }
  return true;
}
