/**
 * What an endpoint's own tokenizer says of the texts of a prompt: asked beside the editing or by a linter, one request at a time, each text
 * once. An endpoint that fails or is slow is left in peace for a while. A bundle of its own, loaded with the first question.
 */
import { countMarks } from '../prompt/cacheMark';
import type { ChatPrompt } from '../prompt/prompt';
import type { SentRequest } from '../prompt/sentRequests';
import { applyTemplate, countAtEndpoint, tokenEndpointOf, type SentTokens, type TokenEndpoint } from '../prompt/tokens';
import type { Milliseconds } from '../report/sample';
import type { Answer } from './detect';
import { endpointRoot } from './dialect/request';
import type { ProbeJob } from './index';
import type { Target } from './plan';
import { endsIn, short, type ProofTarget } from './scenario/prefixPrediction';

/** What is needed to ask an endpoint anything. */
export type EndpointAccess = Pick<ProbeJob, 'endpoint' | 'key' | 'network' | 'timeouts' | 'recorderScript' | 'memory' | 'detect'>;

/** An endpoint's counting, open for questions. All reject when the endpoint does not answer. */
export interface EndpointTokens extends ProofTarget {
  /** How it counts, or null when it counts for nobody. */
  readonly endpoint: TokenEndpoint | null;
  /** Tokens of each text; null when an answer is unreadable. */
  count(texts: readonly string[]): Promise<ReadonlyMap<string, number> | null>;
  /** Tokens of a whole request as it is sent, chat template included, and of what it shares with a later one; null where the server does not tell. */
  sent(request: SentRequest): Promise<SentTokens | null>;
  /** A short conversation as the server's chat template renders it; null where the server does not tell. */
  rendered(): Promise<string | null>;
  close(): Promise<void>;
}

/** How an endpoint counts, by what is known of it; null when it does not count for others. */
export function countingOf({ server, dialect }: Pick<ProofTarget, 'server' | 'dialect'>): TokenEndpoint | null {
  if (server !== null) return tokenEndpointOf(server);
  return dialect === 'anthropic' || dialect === 'gemini' ? tokenEndpointOf(dialect) : null;
}

/** What a target's counting is made of. */
export interface CountingParts {
  readonly target: Target;
  /** Posts JSON and gives the answer whatever its status; rejects when there is none. */
  readonly post: (url: string, body: unknown) => Promise<Answer>;
  /** A request's body as it would be sent, and its token ids with the chat template, or null where the server does not tell them. */
  readonly bodyOf: (prompt: ChatPrompt) => Readonly<Record<string, unknown>>;
  readonly tokensOf: (prompt: ChatPrompt) => Promise<readonly number[] | null>;
  readonly close: () => Promise<void>;
}

/** The counting of a target. */
export function endpointTokens({ target, post, bodyOf, tokensOf, close }: CountingParts): EndpointTokens {
  const { server, dialect, model } = target;
  const { url } = target.endpoint;
  const root = endpointRoot(url);
  const about = { server, dialect: dialect.id, url, model };
  const endpoint = countingOf(about);
  const ask = async (path: string, body: unknown): Promise<unknown> => {
    const { status, text } = await post(root + path, body);
    if (status !== 200) throw new Error(`${path} answered ${status}.`);
    return JSON.parse(text);
  };
  const fieldOf = (answer: unknown, name: string): string | null => {
    const value = typeof answer === 'object' && answer !== null ? (answer as Record<string, unknown>)[name] : null;
    return typeof value === 'string' ? value : null;
  };
  async function render(conversation: ChatPrompt): Promise<string | null> {
    if (server === 'llamacpp') {
      const { path, body } = applyTemplate.request(conversation);
      return applyTemplate.read(await ask(path, body));
    }
    const ids = server === 'vllm' ? await tokensOf(conversation) : null;
    return ids === null ? null : fieldOf(await ask('/detokenize', { ...(model === null ? {} : { model }), tokens: ids }), 'prompt');
  }
  /** By an API that counts whole requests: this one, and what of it stands before each of its markers. */
  async function sentByCounts({ messages, system, tools }: Readonly<Record<string, unknown>>): Promise<SentTokens | null> {
    const count = async (body: Readonly<Record<string, unknown>>): Promise<number> => {
      const tokens = endpoint?.read(await ask('/v1/messages/count_tokens', { model, ...body }));
      if (typeof tokens !== 'number') throw new Error('Its answer is no token count.');
      return tokens;
    };
    const body = { messages, ...(system === undefined ? {} : { system }), ...(tools === undefined ? {} : { tools }) };
    const total = await count(body);
    const marked = countMarks(body);
    if (marked === 0) return { total, common: null, marks: null };
    const ends = await endsIn(body, count, await count({ messages: [short] }));
    return { total, common: null, marks: ends.slice(0, marked).map(([, tokens]) => tokens) };
  }
  return {
    ...about,
    endpoint,
    count: async (texts) => (endpoint === null ? null : await countAtEndpoint(endpoint, texts, model, ask)),
    async sent({ prompt, later }) {
      if (prompt.messages.length === 0) return null;
      if (endpoint?.id === 'anthropic') return await sentByCounts(bodyOf(prompt));
      // The token ids are those of the messages alone: a system text beside them would be missing.
      if (bodyOf(prompt)['system'] !== undefined) return null;
      const ids = await tokensOf(prompt);
      if (ids === null) return null;
      const next = later === null ? null : await tokensOf(later);
      const differs = next === null ? -1 : ids.findIndex((id, i) => id !== next[i]);
      return { total: ids.length, common: next === null ? null : differs < 0 ? ids.length : differs, marks: null };
    },
    async rendered() {
      const user = { role: 'user', text: 'y' } as const;
      // Some chat templates take no system message.
      return (await render({ messages: [{ role: 'system', text: 'x' }, user], tools: [] }).catch(() => null)) ?? (await render({ messages: [user], tools: [] }).catch(() => null));
    },
    close,
  };
}

/** What an endpoint said about one prompt file; plain data. */
export interface EndpointCounts {
  readonly tokens: readonly (readonly [text: string, tokens: number])[];
  /** Each wanted request as it is sent; null where the server does not tell. */
  readonly sent: readonly (SentTokens | null)[];
  /** A short conversation through the server's chat template. */
  readonly rendered: string | null;
  /** Who counted: the server's name and the path that was asked. */
  readonly by: string;
}

/** What to ask about a prompt file. */
export interface WantedCounts {
  readonly texts: readonly string[];
  /** The prompts as they would be sent. */
  readonly requests: readonly SentRequest[];
  /** Ask a provider's API too, where the text leaves for counting alone. */
  readonly hosted: boolean;
}

/** Counts of endpoints, remembered. */
export interface TokenDesk {
  /** Null when the endpoint does not count, has failed lately, or the signal is aborted. Never rejects. */
  count(access: EndpointAccess, wanted: WantedCounts, signal: AbortSignal): Promise<EndpointCounts | null>;
}

/** What is remembered of one endpoint. */
interface Desk {
  since: Milliseconds;
  /** The model whose tokens these are; undefined before the first answer. */
  model: string | null | undefined;
  /** By text. */
  known: Map<string, number>;
  /** By the JSON of the request. */
  sent: Map<string, SentTokens | null>;
  rendered: string | null | undefined;
  /** When it may be asked again. */
  resting: Milliseconds;
  queue: Promise<unknown>;
}

/** All that is remembered of an endpoint is asked anew after so long: its server may have another model by then. */
const longest: Milliseconds = 10 * 60_000;
const mostKnown = 20_000;
/** Whole requests are long, and every edit makes another. */
const mostSent = 200;

/**
 * `open` opens an endpoint's counting; `now` is a monotonic clock. One endpoint is asked one question at a time; after a failure it rests
 * for `rest` ms, and one file may take `patience` ms in all. `failed` hears why.
 */
export function createTokenDesk(parts: {
  readonly open: (access: EndpointAccess, signal: AbortSignal) => Promise<EndpointTokens>;
  readonly now: () => Milliseconds;
  readonly failed?: (endpoint: string, why: string) => void;
  readonly rest?: Milliseconds;
  readonly patience?: Milliseconds;
}): TokenDesk {
  const { open, now, rest = 60_000, patience = 15_000 } = parts;
  const desks = new Map<string, Desk>();

  function deskOf({ endpoint, key }: EndpointAccess): Desk {
    const name = JSON.stringify([endpoint, key !== null]);
    const found = desks.get(name);
    if (found !== undefined) return found;
    const desk: Desk = { since: now(), model: undefined, known: new Map(), sent: new Map(), rendered: undefined, resting: -Infinity, queue: Promise.resolve() };
    desks.set(name, desk);
    return desk;
  }

  function refresh(desk: Desk, model: string | null): void {
    if (desk.sent.size > mostSent) desk.sent = new Map();
    if (now() - desk.since <= longest && desk.known.size <= mostKnown && (desk.model === undefined || desk.model === model)) return;
    desk.since = now();
    desk.known = new Map();
    desk.sent = new Map();
    desk.rendered = undefined;
  }

  const answer = (desk: Desk, wanted: WantedCounts, tokens: EndpointTokens['endpoint'], server: string | null): EndpointCounts | null => {
    const pairs = wanted.texts.map((text) => [text, desk.known.get(text)] as const);
    const all = pairs.flatMap(([text, count]) => (count === undefined ? [] : [[text, count] as const]));
    const sent = wanted.requests.flatMap((request) => desk.sent.get(JSON.stringify(request)) ?? (desk.sent.has(JSON.stringify(request)) ? [null] : []));
    if (all.length < pairs.length || sent.length < wanted.requests.length || desk.rendered === undefined || tokens === null) return null;
    return { tokens: all, sent, rendered: desk.rendered, by: `${server ?? tokens.id} ${tokens.request('', null).path}` };
  };

  /** The answer from what is known, where the endpoint need not be asked; `undefined` when it must be. */
  function remembered(desk: Desk, { endpoint, memory }: EndpointAccess, wanted: WantedCounts): EndpointCounts | null | undefined {
    const { detection } = memory.recall(endpoint.url);
    if (detection === null) return undefined;
    const tokens = countingOf({ server: detection.server, dialect: endpoint.api === 'auto' ? detection.api : endpoint.api });
    if (tokens === null || (tokens.hosted && !wanted.hosted)) return null;
    refresh(desk, endpoint.model ?? detection.models[0] ?? null);
    return answer(desk, wanted, tokens, detection.server) ?? undefined;
  }

  async function askEndpoint(access: EndpointAccess, wanted: WantedCounts, signal: AbortSignal): Promise<EndpointCounts | null> {
    const desk = deskOf(access);
    const known = remembered(desk, access, wanted);
    if (known !== undefined) return known;
    if (signal.aborted || now() < desk.resting) return null;
    const until = now() + patience;
    let opened: EndpointTokens | null = null;
    try {
      opened = await open(access, signal);
      const { endpoint, server } = opened;
      if (endpoint === null || (endpoint.hosted && !wanted.hosted)) return null;
      refresh(desk, opened.model);
      desk.model = opened.model;
      const missing = wanted.texts.filter((text) => desk.known.get(text) === undefined);
      // In small lots, so that an edit that makes them useless is noticed in time.
      for (let i = 0; i < missing.length; i += lot) {
        if (signal.aborted) return null;
        if (now() > until) throw new Error(`${missing.length} texts take it longer than ${patience / 1000} s.`);
        const counts = await opened.count(missing.slice(i, i + lot));
        if (counts === null) throw new Error('Its answer is no token count.');
        for (const [text, tokens] of counts) desk.known.set(text, tokens);
      }
      for (const request of wanted.requests) {
        const key = JSON.stringify(request);
        if (desk.sent.has(key)) continue;
        if (signal.aborted) return null;
        if (now() > until) throw new Error(`${wanted.requests.length} requests take it longer than ${patience / 1000} s.`);
        desk.sent.set(key, await opened.sent(request));
      }
      if (desk.rendered === undefined) desk.rendered = await opened.rendered();
      return answer(desk, wanted, endpoint, server);
    } catch (error) {
      if (signal.aborted) return null;
      desk.resting = now() + rest;
      parts.failed?.(access.endpoint.name, error instanceof Error ? error.message : String(error));
      return null;
    } finally {
      await opened?.close().catch(() => undefined);
    }
  }

  return {
    count(access, wanted, signal) {
      const desk = deskOf(access);
      const work = desk.queue.then(() => askEndpoint(access, wanted, signal));
      desk.queue = work;
      return work;
    },
  };
}

const lot = 16;
