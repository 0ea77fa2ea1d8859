/** `firstToken.endpoints`: what an endpoint is, read from settings that anybody may have written. */
import * as v from 'valibot';
import type { Milliseconds } from '../report/sample';
import type { DialectId } from './dialect/dialect';
import { isLoopbackHost, splitUrl } from './network';

/** One entry of `firstToken.endpoints`, checked and with its defaults. */
export interface Endpoint {
  readonly name: string;
  /** An origin, …/v1 or the full path; `unix:/path/to.sock:/v1` for a Unix socket. */
  readonly url: string;
  readonly model: string | null;
  readonly api: 'auto' | DialectId;
  readonly cache: string;
  /** May hold `${env:NAME}` until `resolveEnvironment` has been asked. */
  readonly headers: Readonly<Record<string, string>>;
  readonly body: Readonly<Record<string, unknown>>;
  readonly metricsUrl: string | null;
  readonly tls: { readonly insecure: boolean; /** Path of a PEM file, or the PEM text itself. */ readonly caFile: string | null };
  /** Absent = as in `firstToken.network`; null = no limit. */
  readonly timeouts: { readonly connect?: Milliseconds | null; readonly firstToken?: Milliseconds | null; readonly stall?: Milliseconds | null; readonly total?: Milliseconds | null };
  readonly price: { readonly currency: string; readonly inputPerMillion: number | null; readonly cachedInputPerMillion: number | null; readonly outputPerMillion: number | null } | null;
  readonly gpu: { readonly name: string; readonly pricePerHour: number | null; readonly count: number; readonly currency: string } | null;
}

/** What is wrong with an entry, and where: `[0].url`. */
export interface EndpointProblem {
  readonly path: string;
  readonly message: string;
}

/** Every dialect id, `auto` first, as `api` takes them. */
export const apis = ['auto', 'openai-chat', 'openai-completions', 'openai-responses', 'azure', 'anthropic', 'gemini', 'ollama', 'llamacpp', 'tgi', 'sglang', 'triton', 'cohere', 'bedrock'] as const satisfies readonly ('auto' | DialectId)[];

const text = (what: string) => v.pipe(v.string(`${what} must be text`), v.trim(), v.minLength(1, `${what} is empty`));
const amount = v.nullish(v.pipe(v.number('must be a number'), v.minValue(0, 'must not be negative')), null);
const limit = v.optional(v.nullable(v.pipe(v.number('must be a number of ms, or null for no limit'), v.minValue(1, 'must be at least 1 ms'), v.maxValue(86_400_000, 'must be at most a day (86400000 ms), or null for no limit'))));
const record = <T extends v.GenericSchema>(values: T, message: string) => v.record(v.string(), values, message);

const urlSchema = v.pipe(
  text('The URL'),
  v.rawCheck(({ dataset, addIssue }) => {
    const message = dataset.typed ? urlProblem(dataset.value) : null;
    if (message !== null) addIssue({ message });
  }),
);

const schema = v.strictObject(
  {
    name: text('The name'),
    url: urlSchema,
    model: v.nullish(v.string('The model must be text'), null),
    api: v.optional(v.picklist(apis, (issue) => `${JSON.stringify(issue.input)} is not an API: use one of ${apis.join(', ')}`), 'auto'),
    cache: v.optional(v.string('must be text: "auto" or the name of a cache rule'), 'auto'),
    headers: v.optional(record(v.string('a header’s value must be text'), 'must be an object of header names and values'), {}),
    body: v.optional(record(v.unknown(), 'must be an object of request fields'), {}),
    metricsUrl: v.nullish(urlSchema, null),
    tls: v.optional(v.strictObject({ insecure: v.optional(v.boolean('must be true or false'), false), caFile: v.nullish(v.string('must be the path of a PEM file'), null) }, unknownKey('tls')), {}),
    timeouts: v.optional(v.strictObject({ connect: limit, firstToken: limit, stall: limit, total: limit }, unknownKey('timeouts')), {}),
    price: v.nullish(v.strictObject({ currency: v.optional(v.string(), 'USD'), inputPerMillion: amount, cachedInputPerMillion: amount, outputPerMillion: amount }, unknownKey('price')), null),
    gpu: v.nullish(v.strictObject({ name: text('The name'), pricePerHour: amount, count: v.optional(v.pipe(v.number('must be a number'), v.minValue(1, 'must be at least 1')), 1), currency: v.optional(v.string(), 'USD') }, unknownKey('gpu')), null),
  },
  unknownKey('an endpoint'),
);

function unknownKey(where: string): (issue: v.BaseIssue<unknown>) => string {
  return (issue) => (issue.expected === 'never' ? `is not a property of ${where}: check its spelling` : issue.expected === 'Object' ? `must be an object` : 'is missing');
}

/** Why a URL cannot be probed, or null. */
export function urlProblem(url: string): string | null {
  if (!/^(https?|unix):/i.test(url)) {
    const scheme = /^[a-z][a-z0-9+.-]*:\/\//i.exec(url)?.[0];
    return scheme ? `"${withoutQuery(url)}" starts with ${scheme} — use http:// or https://` : `"${withoutQuery(url)}" has no scheme: write ${isLocal(url) ? 'http' : 'https'}://${withoutQuery(url)}`;
  }
  try {
    const { target } = splitUrl(url);
    if (target.username !== '' || target.password !== '') return 'the URL holds a user name or password: store it as the endpoint’s key instead';
    return null;
  } catch {
    return `"${withoutQuery(url)}" is not a URL`;
  }
}

const hostIn = (url: string): string => /^(\[[^\]]*\]|[^:/?#]*)/.exec(url)?.[1] ?? '';

function isLocal(url: string): boolean {
  return isNearby(hostIn(url)) || /^[^/]*:\d+/.test(url);
}

/** Whether a host is this machine or on its own network, by its name or address. */
function isNearby(host: string): boolean {
  return isLoopbackHost(host) || /^(10\.|192\.168\.|169\.254\.|172\.(1[6-9]|2\d|3[01])\.)[\d.]+$/.test(host) || /^\[f[cde]/i.test(host) || /\.(local|lan|internal|home\.arpa)$/i.test(host) || /^[\w-]*[a-z][\w-]*$/i.test(host);
}

/** What a person typed as a URL: without a scheme it is http on this machine and its own network, https anywhere else. */
export function withScheme(typed: string): string {
  const url = typed.trim();
  if (url === '' || url.startsWith('/') || /^[a-z][a-z0-9+.-]*:(?!\d)/i.test(url)) return url;
  return `${isNearby(hostIn(url)) ? 'http' : 'https'}://${url}`;
}

function withoutQuery(url: string): string {
  return url.replace(/[?#].*$/s, '').replace(/\/\/[^/@]*@/, '//');
}

/** Reads the setting. An entry with a problem is left out; the others are used. Never throws. */
export function parseEndpoints(json: unknown): { readonly endpoints: readonly Endpoint[]; readonly problems: readonly EndpointProblem[] } {
  if (json === undefined || json === null) return { endpoints: [], problems: [] };
  if (!Array.isArray(json)) return { endpoints: [], problems: [{ path: '', message: 'firstToken.endpoints must be a list of endpoints' }] };
  const endpoints: Endpoint[] = [];
  const problems: EndpointProblem[] = [];
  json.forEach((entry: unknown, index) => {
    const result = v.safeParse(schema, entry);
    if (!result.success) {
      problems.push(...result.issues.map((issue) => ({ path: pathOf(index, issue), message: issue.message })));
    } else if (endpoints.some((endpoint) => endpoint.name === result.output.name)) {
      problems.push({ path: `[${index}].name`, message: `there is already an endpoint named "${result.output.name}": give each its own name` });
    } else {
      endpoints.push(withDefaults(result.output));
    }
  });
  return { endpoints, problems };
}

/** An endpoint from a bare URL, as typed on a command line. Check it with `urlProblem` first. */
export function endpointFromUrl(url: string, more: Partial<Endpoint> = {}): Endpoint {
  return { ...withDefaults(v.parse(schema, { name: displayUrl(url), url })), ...more };
}

function withDefaults(entry: v.InferOutput<typeof schema>): Endpoint {
  const { connect, firstToken, stall, total } = entry.timeouts;
  return {
    ...entry,
    timeouts: { ...(connect === undefined ? {} : { connect }), ...(firstToken === undefined ? {} : { firstToken }), ...(stall === undefined ? {} : { stall }), ...(total === undefined ? {} : { total }) },
  };
}

function pathOf(index: number, issue: v.BaseIssue<unknown>): string {
  const inner = (issue.path ?? []).map((item) => (typeof item.key === 'number' ? `[${item.key}]` : `.${String(item.key)}`)).join('');
  return `[${index}]${inner}`;
}

/** Where a key belongs: scheme, host and port, or `unix:` and the socket's path. Throws a TypeError for a URL that cannot be probed. */
export function originOf(url: string): string {
  const { target, socketPath } = splitUrl(url);
  return socketPath === null ? target.origin : `unix:${socketPath}`;
}

/** Origin and path without query or credentials: for people, reports and what is remembered about an endpoint. */
export function displayUrl(url: string): string {
  const { target } = splitUrl(url);
  return `${originOf(url)}${target.pathname === '/' ? '' : target.pathname}`;
}

/** Whether requests stay on this machine. */
export function isLoopback(endpoint: Pick<Endpoint, 'url'>): boolean {
  const { target, socketPath } = splitUrl(endpoint.url);
  return socketPath !== null || isLoopbackHost(target.hostname);
}

const placeholder = /\$\{env:([A-Za-z_][A-Za-z0-9_]*)\}/g;

/** Names of the environment variables an endpoint's headers ask for. */
export function environmentNames(endpoint: Pick<Endpoint, 'headers'>): string[] {
  return [...new Set(Object.values(endpoint.headers).flatMap((value) => [...value.matchAll(placeholder)].map((match) => match[1]!)))];
}

/**
 * Puts environment variables into headers, only those that `allow` gives a value for: who may read the environment is decided by the
 * caller, never by the settings. Headers with a name that was not given are left out and named in `withheld`.
 */
export function resolveEnvironment(endpoint: Endpoint, allow: (name: string) => string | null): { readonly endpoint: Endpoint; readonly withheld: readonly string[] } {
  const withheld = new Set<string>();
  const headers: Record<string, string> = {};
  for (const [name, value] of Object.entries(endpoint.headers)) {
    let complete = true;
    const resolved = value.replace(placeholder, (_match, variable: string) => {
      const given = allow(variable);
      if (given !== null) return given;
      withheld.add(variable);
      complete = false;
      return '';
    });
    if (complete) headers[name] = resolved;
  }
  return { endpoint: { ...endpoint, headers }, withheld: [...withheld] };
}
