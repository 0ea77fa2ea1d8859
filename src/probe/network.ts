/** How connections are made: plain data that crosses to the recorder's thread, and the choice of a proxy for a URL. */
import type { Milliseconds } from '../report/sample';

/** Limits of one request in ms; null = no limit. */
export interface Timeouts {
  /** From `start` to the first token. Comments, pings and role frames do not satisfy it. */
  readonly firstToken: Milliseconds | null;
  /** Between two reads once a token has arrived. */
  readonly stall: Milliseconds | null;
  /** From `start` to the end. */
  readonly total: Milliseconds | null;
}

/** Limits when the settings name none. */
export const defaultTimeouts: Timeouts = { firstToken: 120_000, stall: 60_000, total: 600_000 };

/** How to reach a server. Certificates as PEM text, never paths: the recorder opens no file of the user's. */
export interface NetworkOptions {
  /** `env`: HTTP(S)_PROXY and NO_PROXY, lower case first. An explicit proxy still honours `noProxy`. */
  readonly proxy: 'env' | 'none' | { readonly url: string; readonly authorization: string | null };
  /** Hosts that are never proxied, in the form of NO_PROXY; null = the environment's. Loopback is never proxied. */
  readonly noProxy: string | null;
  /** Trusted beside the built-in certificate authorities. */
  readonly ca: readonly string[];
  /** Trust the operating system's certificate store too, where this Node can read it. */
  readonly systemCertificates: boolean;
  /** Do not verify certificates. Per endpoint; shown with every report. */
  readonly insecure: boolean;
  /** Offer HTTP/2. What the server chose is in `tape.alpn`. */
  readonly http2: boolean;
  /** Connect to this Unix socket or named pipe instead of the URL's host. */
  readonly socketPath: string | null;
  /** Until a connection stands; null = no limit but the request's own. */
  readonly connectTimeout: Milliseconds | null;
}

/** Direct or by the environment's proxies, HTTP/1.1, verified certificates. */
export const defaultNetwork: NetworkOptions = {
  proxy: 'env',
  noProxy: null,
  ca: [],
  systemCertificates: true,
  insecure: false,
  http2: false,
  socketPath: null,
  connectTimeout: 10_000,
};

/** A proxy to go through: its URL without credentials, and the value of Proxy-Authorization. */
export interface Proxy {
  readonly url: string;
  readonly authorization: string | null;
}

type Variables = Readonly<Record<string, string | undefined>>;

/** A request URL taken apart: `unix:/path/to.sock:/v1/x` names a socket and a path, everything else is http or https. Throws a TypeError on another scheme. */
export function splitUrl(url: string): { readonly target: URL; readonly socketPath: string | null } {
  const unix = /^unix:(?:\/\/)?(\/[^:]*)(?::(\/.*))?$/.exec(url);
  if (unix) return { target: new URL(`http://localhost${unix[2] ?? '/'}`), socketPath: unix[1]! };
  const target = new URL(url);
  if (target.protocol !== 'http:' && target.protocol !== 'https:') throw new TypeError(`"${target.protocol}" is not a scheme to probe: use http:, https: or unix:`);
  return { target, socketPath: null };
}

/** Whether a host is this machine: localhost, 127.0.0.0/8, ::1 (with or without brackets). */
export function isLoopbackHost(host: string): boolean {
  const bare = host.toLowerCase().replace(/^\[|\]$/g, '').replace(/\.$/, '');
  return bare === 'localhost' || bare.endsWith('.localhost') || bare === '::1' || /^127(\.\d{1,3}){3}$/.test(bare) || /^::ffff:(127\.|7f)/.test(bare);
}

/** The proxy for a URL, or null for a direct connection. Throws a TypeError on a proxy URL that is not http or https. */
export function proxyFor(target: URL, network: Pick<NetworkOptions, 'proxy' | 'noProxy'>, env: Variables): Proxy | null {
  if (network.proxy === 'none' || isLoopbackHost(target.hostname)) return null;
  if (isExempt(target, network.noProxy ?? env['no_proxy'] ?? env['NO_PROXY'] ?? '')) return null;
  if (network.proxy !== 'env') return parseProxy(network.proxy.url, network.proxy.authorization);
  const plain = env['http_proxy'] ?? env['HTTP_PROXY'];
  const url = target.protocol === 'https:' ? (env['https_proxy'] ?? env['HTTPS_PROXY'] ?? env['all_proxy'] ?? env['ALL_PROXY']) : (plain ?? env['all_proxy'] ?? env['ALL_PROXY']);
  return url ? parseProxy(url, null) : null;
}

function parseProxy(text: string, authorization: string | null): Proxy {
  const url = new URL(/^[a-z][a-z0-9+.-]*:\/\//i.test(text) ? text : `http://${text}`);
  if (url.protocol !== 'http:' && url.protocol !== 'https:') throw new TypeError(`The proxy's scheme "${url.protocol}" is not supported: use an http: or https: proxy (firstToken.network.proxy, HTTPS_PROXY)`);
  const basic = url.username === '' ? null : `Basic ${Buffer.from(`${decodeURIComponent(url.username)}:${decodeURIComponent(url.password)}`).toString('base64')}`;
  return { url: url.origin, authorization: authorization ?? basic };
}

function isExempt(target: URL, list: string): boolean {
  const host = target.hostname.replace(/^\[|\]$/g, '').toLowerCase();
  const port = target.port || (target.protocol === 'https:' ? '443' : '80');
  return list.split(/[\s,]+/).some((entry) => {
    if (entry === '') return false;
    if (entry === '*') return true;
    const parts = /^(.*?)(?::(\d+))?$/.exec(/^[^[]*:.*:/.test(entry) ? `[${entry}]` : entry)!;
    if (parts[2] !== undefined && parts[2] !== port) return false;
    const name = parts[1]!.replace(/^\[|\]$/g, '').replace(/^\*?\./, '').toLowerCase();
    return host === name || host.endsWith(`.${name}`);
  });
}
