/**
 * Connections: the only user of undici. One undici client per connection, so that a request never queues behind another and the
 * stamps of its connection are its own. The clock is taken once per socket read; every callback of that read shares the stamp.
 */
import { subscribe, unsubscribe } from 'node:diagnostics_channel';
import { readFileSync } from 'node:fs';
import { connect as connectTcp, isIP, type Socket } from 'node:net';
import * as tls from 'node:tls';
import { Client, type Dispatcher } from 'undici';
import type { Milliseconds } from '../report/sample';
import { now } from './clock';
import type { WireRequest } from './dialect/dialect';
import { proxyFor, splitUrl, type NetworkOptions, type Proxy } from './network';

/** What a request is told about the connection it was written to. Stamps are null on a connection that was open before. */
export interface LinkInfo {
  readonly reused: boolean;
  /** The server had closed the first connection before any response byte, and the request was sent again on a fresh one. */
  readonly redispatched: boolean;
  readonly alpn: string | null;
  readonly dns: Milliseconds | null;
  readonly connected: Milliseconds | null;
  readonly secured: Milliseconds | null;
}

/** Why an exchange failed, in plain words that hold no header, no query and no key. */
export interface WireFailure {
  readonly kind: 'dns' | 'connect' | 'tls' | 'closed';
  readonly message: string;
}

/** What happens to one request, in order. `read` numbers the socket reads of the connection: equal numbers are one read. */
export interface ExchangeEvents {
  opened(info: LinkInfo): void;
  written(t: Milliseconds): void;
  sent(t: Milliseconds): void;
  head(t: Milliseconds, status: number, headers: readonly (readonly [string, string])[]): void;
  data(t: Milliseconds, read: number, chunk: Uint8Array): void;
  ended(t: Milliseconds): void;
  failed(t: Milliseconds, failure: WireFailure): void;
}

/** A request on its way. `abort` closes its socket (HTTP/2: its stream) at once; `failed` follows in the same tick. */
export interface Exchange {
  abort(): void;
}

/** Every connection of one recorder. */
export interface Connections {
  send(request: WireRequest, events: ExchangeEvents): Exchange;
  /** Opens connections until `count` stand ready for the URL (one is enough for HTTP/2), for three seconds at most. Failures, and a server that does not answer, are left for the first request to report. */
  warm(url: string, count: number): Promise<void>;
  close(): Promise<void>;
}

const idleTimeout = 120_000;
const streamsPerLink = 100;
/** Connections that take longer to open go on opening; the first requests do not wait for them and say what is wrong. */
const longestWarm: Milliseconds = 3000;

/** Opens a set of connections that share network options; `env` names the proxies where the options say so. */
export function openConnections(network: NetworkOptions, env: Readonly<Record<string, string | undefined>> = process.env): Connections {
  const links = new Map<string, Link[]>();
  const attempts = new WeakMap<object, Attempt>();
  let dispatching: Attempt | null = null;
  let secureContext: tls.SecureContext | undefined;

  // The channels are global to the process: a request counts only if it was created inside our own dispatch call.
  const onCreate = (message: unknown): void => {
    if (!dispatching) return;
    attempts.set((message as { request: object }).request, dispatching);
    dispatching = null;
  };
  const onHeaders = (message: unknown): void => {
    attempts.get((message as { request: object }).request)?.onWritten(now());
  };
  const onBodySent = (message: unknown): void => {
    attempts.get((message as { request: object }).request)?.onSent(now());
  };
  subscribe('undici:request:create', onCreate);
  subscribe('undici:client:sendHeaders', onHeaders);
  subscribe('undici:request:bodySent', onBodySent);

  const context = (): tls.SecureContext => (secureContext ??= tls.createSecureContext({ ca: trusted(network) }));

  const create = (target: URL, socketPath: string | null): Link => {
    const key = `${target.origin} ${socketPath ?? ''}`;
    const list = links.get(key) ?? [];
    links.set(key, list);
    const link = new Link({ target, socketPath, proxy: socketPath === null ? proxyFor(target, network, env) : null, network, context }, () => {
      const at = list.indexOf(link);
      if (at >= 0) list.splice(at, 1);
    });
    list.push(link);
    return link;
  };
  const usable = (target: URL, socketPath: string | null): Link | undefined => links.get(`${target.origin} ${socketPath ?? ''}`)?.findLast((link) => link.usable);

  return {
    send(request, events) {
      const { target, socketPath } = splitUrl(request.url);
      const path = socketPath ?? network.socketPath;
      const attempt = new Attempt(request, target, events, {
        link: (fresh) => (fresh ? undefined : usable(target, path)) ?? create(target, path),
        dispatch: (link, options, handler) => {
          dispatching = attempt;
          link.client.dispatch(options, handler);
          dispatching = null;
        },
      });
      attempt.start(false);
      return attempt;
    },
    async warm(url, count) {
      const { target, socketPath } = splitUrl(url);
      const path = socketPath ?? network.socketPath;
      const ready = (): number => {
        const open = links.get(`${target.origin} ${path ?? ''}`)?.filter((link) => link.usable) ?? [];
        return open.some((link) => link.alpn === 'h2') ? count : open.length;
      };
      const open = async (): Promise<void> => {
        if (ready() < count && network.http2) await create(target, path).prepare();
        await Promise.all(Array.from({ length: count - ready() }, () => create(target, path).prepare()));
      };
      let timer: NodeJS.Timeout | undefined;
      const enough = new Promise<void>((resolve) => {
        timer = setTimeout(resolve, longestWarm);
      });
      await Promise.race([open(), enough]);
      clearTimeout(timer);
    },
    async close() {
      unsubscribe('undici:request:create', onCreate);
      unsubscribe('undici:client:sendHeaders', onHeaders);
      unsubscribe('undici:request:bodySent', onBodySent);
      await Promise.all([...links.values()].flat().map((link) => link.destroy()));
    },
  };
}

/** The certificate authorities to trust, or undefined for Node's own list. */
function trusted(network: NetworkOptions): string[] | undefined {
  const read = (tls as { getCACertificates?: (kind: 'default' | 'system') => string[] }).getCACertificates;
  const system = network.systemCertificates && read ? read('system') : [];
  if (network.ca.length === 0 && system.length === 0) return undefined;
  // An explicit list replaces Node's own, NODE_EXTRA_CA_CERTS included, so both are added back.
  const extra = process.env['NODE_EXTRA_CA_CERTS'];
  const builtIn = read ? read('default') : [...tls.rootCertificates, ...(extra ? [readFileSync(extra, 'utf8')] : [])];
  return [...builtIn, ...system, ...network.ca];
}

interface Route {
  readonly target: URL;
  readonly socketPath: string | null;
  readonly proxy: Proxy | null;
  readonly network: NetworkOptions;
  context(): tls.SecureContext;
}

/** A failure to open a connection, already classified. */
class ConnectFailure extends Error {
  readonly failure: WireFailure;
  constructor(failure: WireFailure) {
    super(failure.message);
    this.failure = failure;
  }
}

/** One connection and its undici client. The client may open a second socket when the server closed the first before it was used. */
class Link {
  readonly client: Client;
  readonly route: Route;
  /** Stamp and number of the latest socket read. */
  stamp: Milliseconds = 0;
  read = 0;
  dns: Milliseconds | null = null;
  connected: Milliseconds | null = null;
  secured: Milliseconds | null = null;
  alpn: string | null = null;
  inflight = 0;
  /** No request has been written to the present socket, and it was opened for one. */
  fresh = true;
  #socket: Socket | null = null;
  /** The sockets under it: TCP under TLS, the proxy's under both. Destroying a TLS socket amid its handshake leaves them open. */
  #under: Socket[] = [];
  #prepared: Socket | null = null;
  #stage: 'dns' | 'connect' | 'proxy' | 'tls' = 'dns';
  #destroyed = false;
  readonly #retired: () => void;

  constructor(route: Route, retired: () => void) {
    this.route = route;
    this.#retired = retired;
    this.client = new Client(route.target.origin, {
      allowH2: route.network.http2,
      pipelining: 1,
      headersTimeout: 0,
      bodyTimeout: 0,
      keepAliveTimeout: idleTimeout,
      keepAliveMaxTimeout: idleTimeout,
      keepAliveTimeoutThreshold: 1000,
      maxHeaderSize: 65_536,
      connect: (_options, callback) => {
        void this.#take().then(
          (socket) => {
            callback(null, socket);
          },
          (error: unknown) => {
            callback(error instanceof Error ? error : new Error(String(error)), null);
          },
        );
      },
    });
    this.client.on('disconnect', () => {
      if (this.inflight === 0) void this.destroy();
    });
  }

  /** Whether a request may be given to it without waiting for another. */
  get usable(): boolean {
    if (this.#destroyed || !this.#socket || this.#socket.destroyed) return false;
    return this.alpn === 'h2' ? this.inflight < streamsPerLink : this.inflight === 0;
  }

  /** Absolute form where a proxy carries plain HTTP, else path and query. */
  get absolute(): boolean {
    return this.route.proxy !== null && this.route.target.protocol === 'http:';
  }

  /** Opens the socket ahead of the first request. */
  async prepare(): Promise<void> {
    this.inflight += 1;
    try {
      const socket = await this.#open();
      this.fresh = false;
      this.#prepared = socket;
      // Anything to read on a connection without a request is its end, or nothing we asked for.
      if (this.alpn !== 'h2') socket.once('readable', () => socket === this.#prepared && socket.destroy());
      socket.once('close', () => {
        if (this.#prepared === socket) void this.destroy();
      });
    } catch {
      void this.destroy();
    } finally {
      this.inflight -= 1;
    }
  }

  destroy(): Promise<void> {
    if (!this.#destroyed) {
      this.#destroyed = true;
      this.#retired();
      this.#socket?.destroy();
      for (const socket of this.#under) socket.destroy();
    }
    return this.client.destroy(null);
  }

  async #take(): Promise<Socket> {
    const prepared = this.#prepared;
    this.#prepared = null;
    const socket = prepared && !prepared.destroyed ? prepared : await this.#open();
    if (this.alpn === 'h2') {
      this.client.pipelining = streamsPerLink;
    } else {
      socket.removeAllListeners('readable');
      socket.prependListener('readable', () => {
        this.stamp = now();
        // The end of the stream is announced as readable too, with nothing to read.
        if (socket.readableLength > 0) this.read += 1;
      });
      socket.prependListener('end', () => {
        this.stamp = now();
      });
    }
    return socket;
  }

  async #open(): Promise<Socket> {
    this.dns = this.connected = this.secured = this.alpn = null;
    this.fresh = true;
    const { connectTimeout } = this.route.network;
    let late = false;
    const expire = (): void => {
      late = true;
      this.#socket?.destroy(new Error('timeout'));
      for (const socket of this.#under) socket.destroy();
    };
    const timer = connectTimeout === null ? undefined : setTimeout(expire, connectTimeout);
    try {
      return await this.#connect();
    } catch (error) {
      if (error instanceof ConnectFailure) throw error;
      throw new ConnectFailure(late ? this.#lateFailure(connectTimeout) : this.#classify(error));
    } finally {
      clearTimeout(timer);
    }
  }

  async #connect(): Promise<Socket> {
    const { target, socketPath, proxy } = this.route;
    const via = proxy ? new URL(proxy.url) : null;
    const first = via ?? target;
    this.#stage = 'dns';
    this.#under = [];
    let socket = await this.#tcp(first, socketPath);
    if (via?.protocol === 'https:') socket = await this.#secure(socket, via, false);
    if (via && target.protocol === 'https:') await this.#tunnel(socket, proxy!);
    this.connected = now();
    if (target.protocol === 'https:') {
      const secured = await this.#secure(socket, target, this.route.network.http2);
      this.secured = now();
      this.alpn = secured.alpnProtocol || null;
      socket = secured;
    }
    return socket;
  }

  #tcp(url: URL, path: string | null): Promise<Socket> {
    const host = url.hostname.replace(/^\[|\]$/g, '');
    if (path !== null || isIP(host)) this.#stage = 'connect';
    const port = Number(url.port || (url.protocol === 'https:' ? 443 : 80));
    const socket = path === null ? connectTcp({ host, port, autoSelectFamily: true }) : connectTcp({ path });
    socket.once('lookup', (error) => {
      if (error) return;
      this.dns = now();
      this.#stage = 'connect';
    });
    socket.setNoDelay(true).setKeepAlive(true, 60_000);
    return this.#ready(socket, 'connect');
  }

  #secure(socket: Socket, url: URL, http2: boolean): Promise<tls.TLSSocket> {
    this.#stage = 'tls';
    const host = url.hostname.replace(/^\[|\]$/g, '');
    const secured = tls.connect({
      socket,
      host,
      ...(isIP(host) ? {} : { servername: host }),
      secureContext: this.route.context(),
      rejectUnauthorized: !this.route.network.insecure,
      ALPNProtocols: http2 ? ['h2', 'http/1.1'] : ['http/1.1'],
    });
    return this.#ready(secured, 'secureConnect');
  }

  #ready<S extends Socket>(socket: S, event: 'connect' | 'secureConnect'): Promise<S> {
    this.#under.push(socket);
    this.#socket = socket;
    return new Promise((resolve, reject) => {
      socket.once(event, () => {
        resolve(socket);
      });
      // Stays attached: an error before undici listens, or after it let go, must not end the thread.
      socket.on('error', reject);
      socket.once('close', () => {
        reject(Object.assign(new Error('closed'), { code: 'ECONNRESET' }));
      });
    });
  }

  /** Asks a proxy for a tunnel to the target: CONNECT, RFC 9110 §9.3.6. */
  #tunnel(socket: Socket, proxy: Proxy): Promise<void> {
    this.#stage = 'proxy';
    const { target } = this.route;
    const authority = `${target.hostname}:${target.port || '443'}`;
    const lines = [`CONNECT ${authority} HTTP/1.1`, `Host: ${authority}`, ...(proxy.authorization === null ? [] : [`Proxy-Authorization: ${proxy.authorization}`])];
    socket.write(`${lines.join('\r\n')}\r\n\r\n`);
    return new Promise((resolve, reject) => {
      let head = Buffer.alloc(0);
      const finish = (failure: string | null): void => {
        socket.off('readable', read).off('close', closed);
        if (failure === null) resolve();
        else reject(new ConnectFailure({ kind: 'connect', message: failure }));
      };
      const closed = (): void => {
        finish(`The proxy ${proxy.url} closed the connection when asked for ${authority}.`);
      };
      const read = (): void => {
        for (let chunk = socket.read() as Buffer | null; chunk; chunk = socket.read() as Buffer | null) head = Buffer.concat([head, chunk]);
        const end = head.indexOf('\r\n\r\n');
        if (end < 0) return;
        const status = /^HTTP\/1\.[01] (\d{3})/.exec(head.toString('latin1', 0, end))?.[1] ?? 'no HTTP status';
        if (head.length > end + 4) socket.unshift(head.subarray(end + 4));
        const hint = status === '407' ? ' It asks for a user name and password: put them in the proxy’s URL.' : '';
        finish(status.startsWith('2') ? null : `The proxy ${proxy.url} answered ${status} when asked for ${authority}.${hint}`);
        if (!status.startsWith('2')) socket.destroy();
      };
      socket.on('readable', read).once('close', closed);
    });
  }

  #where(): string {
    const { target, socketPath, proxy } = this.route;
    if (socketPath !== null) return `The socket ${socketPath}`;
    return proxy ? `The proxy ${proxy.url}` : target.host;
  }

  #lateFailure(limit: Milliseconds | null): WireFailure {
    if (this.#stage !== 'tls') return { kind: 'connect', message: `${this.#where()} did not answer within ${limit} ms.` };
    return { kind: 'tls', message: `${this.#where()} took the connection, but did not answer the TLS handshake within ${limit} ms: is it an http: server, or overloaded?` };
  }

  #classify(error: unknown): WireFailure {
    const { code = '', message = '' } = error as { code?: string; message?: string };
    const words = (error as { errors?: { message?: string }[] }).errors?.map((e) => e.message).join('; ') || message;
    const where = this.#where();
    if (this.#stage === 'tls') return { kind: 'tls', message: tlsMessage(code, words, where) };
    if (this.#stage === 'dns') return { kind: 'dns', message: `The name of ${where} could not be resolved (${code || words}). Check the endpoint’s url, the network and the proxy settings.` };
    const plain: Record<string, string> = {
      ECONNREFUSED: `${where} refused the connection: nothing listens there (ECONNREFUSED). Check the port, and that the server is running.`,
      ENOENT: `${where} does not exist (ENOENT). Check the path, and that the server is running.`,
      ECONNRESET: `${where} closed the connection before it was ready (ECONNRESET).`,
      ETIMEDOUT: `${where} did not answer (ETIMEDOUT). Check the address and any firewall.`,
      EHOSTUNREACH: `There is no route to ${where} (EHOSTUNREACH). Check the network or VPN.`,
      ENETUNREACH: `The network of ${where} cannot be reached (ENETUNREACH). Check the network or VPN.`,
    };
    return { kind: 'connect', message: plain[code] ?? `No connection to ${where}: ${words || code}.` };
  }
}

function tlsMessage(code: string, words: string, where: string): string {
  const trust = 'If you trust this server, give its certificate authority in the endpoint’s tls.caFile (or switch checking off: tls.insecure, --insecure).';
  if (/SELF_SIGNED|UNABLE_TO_GET_ISSUER|UNABLE_TO_VERIFY/.test(code)) return `The certificate of ${where} is not signed by an authority this machine trusts (${code}). ${trust}`;
  if (code === 'CERT_HAS_EXPIRED') return `The certificate of ${where} has expired (${code}).`;
  if (code === 'ERR_TLS_CERT_ALTNAME_INVALID') return `The certificate of ${where} is for another name (${code}). Check the host in the endpoint’s url.`;
  if (code === 'ECONNRESET') return `${where} closed the connection during the TLS handshake (ECONNRESET).`;
  if (/EPROTO|ERR_SSL/.test(code)) return `${where} does not speak TLS there (${code}). If it serves plain HTTP, write http: in the endpoint’s url.`;
  return `No secure connection to ${where}: ${words} (${code || 'TLS'}). ${trust}`;
}

interface Owner {
  link(fresh: boolean): Link;
  dispatch(link: Link, options: Dispatcher.DispatchOptions, handler: Dispatcher.DispatchHandler): void;
}

/** One request, over as many connections as it takes to find one the server has not closed. */
class Attempt implements Exchange {
  readonly #request: WireRequest;
  readonly #target: URL;
  readonly #events: ExchangeEvents;
  readonly #owner: Owner;
  #link: Link | null = null;
  #controller: Dispatcher.DispatchController | null = null;
  #tries = 0;
  #readsBefore = 0;
  #reused = false;
  #redispatched = false;
  #answered = false;
  #aborted = false;
  #done = false;

  constructor(request: WireRequest, target: URL, events: ExchangeEvents, owner: Owner) {
    this.#request = request;
    this.#target = target;
    this.#events = events;
    this.#owner = owner;
  }


  start(fresh: boolean): void {
    this.#tries += 1;
    const link = this.#owner.link(fresh);
    this.#link = link;
    link.inflight += 1;
    const headers: Record<string, string> = { ...this.#request.headers };
    const names = new Set(Object.keys(headers).map((name) => name.toLowerCase()));
    if (!names.has('accept-encoding')) headers['accept-encoding'] = 'identity';
    if (link.absolute && link.route.proxy?.authorization) headers['proxy-authorization'] = link.route.proxy.authorization;
    const pathAndQuery = this.#target.pathname + this.#target.search;
    this.#owner.dispatch(
      link,
      {
        path: link.absolute ? this.#target.origin + pathAndQuery : pathAndQuery,
        method: this.#request.method,
        headers,
        body: this.#request.method === 'GET' ? null : this.#request.body,
        // Only says that streams of one HTTP/2 connection may overlap: nothing is sent twice by undici.
        idempotent: link.alpn === 'h2',
      },
      {
        onRequestStart: (controller) => {
          this.#controller = controller;
          if (this.#aborted) controller.abort(new Error('aborted'));
        },
        onResponseStart: (controller, status) => {
          if (status < 200) return;
          this.#answered = true;
          this.#events.head(link.alpn === 'h2' ? now() : link.stamp, status, pairs(controller.rawHeaders));
        },
        onResponseData: (_controller, chunk) => {
          if (link.alpn === 'h2') {
            link.read += 1;
            this.#events.data(now(), link.read, chunk);
          } else this.#events.data(link.stamp, link.read, chunk);
        },
        onResponseEnd: () => {
          this.#finish();
          this.#events.ended(link.alpn === 'h2' ? now() : link.stamp);
        },
        onResponseError: (_controller, error) => {
          this.#onError(error);
        },
      },
    );
  }

  onWritten(t: Milliseconds): void {
    const link = this.#link!;
    this.#readsBefore = link.read;
    this.#reused = !link.fresh;
    const { alpn } = link;
    this.#events.opened(link.fresh ? { reused: false, redispatched: this.#redispatched, alpn, dns: link.dns, connected: link.connected, secured: link.secured } : { reused: true, redispatched: this.#redispatched, alpn, dns: null, connected: null, secured: null });
    link.fresh = false;
    this.#events.written(t);
  }

  onSent(t: Milliseconds): void {
    this.#events.sent(t);
  }

  abort(): void {
    if (this.#done) return;
    this.#aborted = true;
    if (this.#controller) this.#controller.abort(new Error('aborted'));
    else void this.#link?.destroy();
  }

  #finish(): void {
    this.#done = true;
    const link = this.#link!;
    link.inflight -= 1;
    if (link.inflight === 0 && !link.usable) void link.destroy();
  }

  #onError(error: Error): void {
    if (this.#done) return;
    const t = now();
    const link = this.#link!;
    // On a shared HTTP/2 connection the reads of others say nothing: there the connection itself must have gone.
    const untouched = this.#reused && !this.#answered && (link.alpn === 'h2' ? !link.usable : link.read === this.#readsBefore);
    this.#finish();
    if (untouched && !this.#aborted && this.#tries < 3 && closedByServer(error)) {
      this.#done = false;
      this.#redispatched = true;
      this.#controller = null;
      this.start(true);
      return;
    }
    this.#events.failed(t, error instanceof ConnectFailure ? error.failure : { kind: 'closed', message: closedMessage(error) });
  }
}

function closedByServer(error: Error): boolean {
  return ['UND_ERR_SOCKET', 'UND_ERR_INFO', 'ECONNRESET', 'EPIPE'].includes((error as { code?: string }).code ?? '');
}

function closedMessage(error: Error): string {
  const code = (error as { code?: string }).code ?? '';
  if (code === 'ECONNRESET') return 'The server reset the connection (ECONNRESET).';
  // undici's own words for an answer that HTTP forbids there: 100 that nobody asked for, 101, a status below 100.
  if (error.message === 'bad response') return 'The server answered before it was asked, or with 100 Continue, which nobody asked for.';
  if (error.message === 'bad upgrade') return 'The server answered 101 and would change the protocol: this is no endpoint that streams over HTTP.';
  if (code === 'ERR_ASSERTION') return 'The answer is not valid HTTP/1.1 (its status is no status).';
  if (code === 'UND_ERR_SOCKET') return 'The server closed the connection before the answer was complete.';
  if (code === 'UND_ERR_RES_CONTENT_LENGTH_MISMATCH') return 'The server closed the connection before the announced content-length was reached.';
  if (code === 'UND_ERR_HEADERS_OVERFLOW') return 'The response head is larger than 64 kB.';
  if (code.startsWith('HPE_')) return `The answer is not valid HTTP/1.1 (${code}).`;
  if (code === 'UND_ERR_INVALID_ARG') return `The request cannot be sent: ${error.message}. Check the endpoint’s headers and url.`;
  return `The connection failed: ${error.message}${code ? ` (${code})` : ''}.`;
}

function pairs(raw: Dispatcher.DispatchController['rawHeaders']): (readonly [string, string])[] {
  if (!Array.isArray(raw)) return [];
  const list: [string, string][] = [];
  for (let i = 0; i + 1 < raw.length; i += 2) list.push([String(raw[i]).toLowerCase(), String(raw[i + 1])]);
  return list;
}
