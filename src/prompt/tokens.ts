/** Counting tokens: who counted, whether exactly, and where a cut text stops being sure. */
import type { ChatPrompt } from './prompt';

/** Who counts: `bytes/4` before a tokenizer is loaded, OpenAI's vocabulary, the model's own file, or the endpoint. */
export type TokenCountSource = 'bytes/4' | 'o200k' | 'tokenizer.json' | 'endpoint';

/** Counts the tokens of a text (no chat template, no special tokens added). Never throws. */
export interface TokenCounter {
  readonly source: TokenCountSource;
  /** True when the counts are those of the model in use, false for an estimate. */
  readonly exact: boolean;
  count(text: string): number;
  /** Token ids, where the counter knows them. */
  readonly encode?: (text: string) => readonly number[];
  /** True when no token spans a line break followed by a letter or digit, so that lines may be counted one by one. */
  readonly countsByLine?: boolean;
}

const utf8Length = (text: string) => {
  let bytes = 0;
  for (let i = 0; i < text.length; i += 1) {
    const c = text.charCodeAt(i);
    bytes += c < 0x80 ? 1 : c < 0x800 ? 2 : c >= 0xd800 && c <= 0xdfff ? 2 : 3;
  }
  return bytes;
};

/** The estimate that needs nothing: one token for four UTF-8 bytes, rounded up. */
export const bytesCounter: TokenCounter = { source: 'bytes/4', exact: false, count: (text) => Math.ceil(utf8Length(text) / 4) };

const cacheLimit = 100_000;
const lineStart = /(?<=[\n\r])(?=[\p{L}\p{N}])/u;

/**
 * The same counts, remembered: after an edit only the changed lines are counted again. Lines are split only where no token of the
 * vocabulary can span the border; a counter without that promise is remembered by whole texts.
 */
export function remembering(counter: TokenCounter): TokenCounter {
  const known = new Map<string, number>();
  const one = (text: string) => {
    const found = known.get(text);
    if (found !== undefined) return found;
    const tokens = counter.count(text);
    if (known.size >= cacheLimit) known.clear();
    known.set(text, tokens);
    return tokens;
  };
  const count = counter.countsByLine === true ? (text: string) => (!/[\n\r]/.test(text) ? one(text) : text.split(lineStart).reduce((sum, line) => sum + one(line), 0)) : one;
  return { ...counter, count };
}

/** Longest piece of one word that is given up at a border; scripts without spaces would otherwise lose whole paragraphs. */
const longestCut = 64;
const longestCutUnspaced = 8;
const unspaced = /[\p{Script=Han}\p{Script=Hiragana}\p{Script=Katakana}\p{Script=Thai}\p{Script=Lao}\p{Script=Khmer}\p{Script=Myanmar}]{8}$/u;
/** Pre-tokens as the byte-pair vocabularies in use cut them, or coarser: a word with the mark before it and its contractions, digits, marks, line breaks, spaces. */
const preToken = /[^\r\n\p{L}\p{N}]?[\p{L}\p{M}]+(?:'(?:[\p{L}\p{M}]+|$))*|\p{N}+| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+/gu;
const borderBefore = /(?<=[\p{L}\p{N}]) (?=\p{L})/u;

/** The end of a text, from a place where a token certainly begins. */
function window(text: string): string {
  for (const size of [200, 4000]) {
    if (text.length <= size) return text;
    const end = text.slice(-size);
    const border = borderBefore.exec(end)?.index ?? -1;
    if (border >= 0) return end.slice(border);
  }
  return text.slice(-4000);
}

/** Line breaks at the end merge with further ones, and with the marks before them. */
const endOfLines = /(?: ?[^\s\p{L}\p{M}\p{N}]+)?[^\S\r\n]*[\r\n]\s*$/u;
/** Spaces are cut differently at the end of a text than before a digit. */
const withoutSpaces = (text: string) => text.replace(/[^\S\r\n]+$/u, '');

/**
 * The part of a text whose tokens are sure whatever comes next: the last pre-token (a word, a run of digits, marks or white space) may
 * merge with the continuation, so it is left out.
 */
export function sureHead(text: string): string {
  const lines = endOfLines.exec(text.slice(-4000));
  if (lines !== null) return withoutSpaces(text.slice(0, text.length - lines[0].length));
  const last = window(text).match(preToken)?.at(-1)?.length ?? 0;
  const length = text.length - Math.min(last, unspaced.test(text.slice(-2 * longestCutUnspaced)) ? longestCutUnspaced : longestCut);
  const next = text.charCodeAt(length);
  return withoutSpaces(text.slice(0, next >= 0xdc00 && next <= 0xdfff ? Math.max(0, length - 1) : length));
}

/** How one server counts tokens: the request to post (path below the server's origin) and how to read the answer. */
export interface TokenEndpoint {
  readonly id: 'vllm' | 'sglang' | 'llamacpp' | 'tgi' | 'anthropic' | 'openai' | 'gemini';
  /** True for a provider's API, to which the text of a prompt would leave for counting alone. */
  readonly hosted: boolean;
  /** `text`: counts a bare text. `request`: counts a whole request, so a text costs two counts (see `countAtEndpoint`). */
  readonly counts: 'text' | 'request';
  request(text: string, model: string | null): { readonly path: string; readonly body: unknown };
  /** Tokens in the answer, or null when it has another shape. */
  read(answer: unknown): number | null;
}

const field = (value: unknown, name: string): unknown => (typeof value === 'object' && value !== null ? (value as Record<string, unknown>)[name] : undefined);
const number = (value: unknown) => (typeof value === 'number' && Number.isFinite(value) ? value : null);
const length = (value: unknown) => (Array.isArray(value) ? value.length : null);
const withModel = (model: string | null, body: Record<string, unknown>) => (model === null ? body : { model, ...body });

/** Token counting as each server offers it, by rule id or dialect family. TGI's shape is not confirmed by a first-party source. */
export const tokenEndpoints: Readonly<Record<TokenEndpoint['id'], TokenEndpoint>> = {
  vllm: {
    id: 'vllm',
    hosted: false,
    counts: 'text',
    request: (text, model) => ({ path: '/tokenize', body: withModel(model, { prompt: text, add_special_tokens: false }) }),
    read: (answer) => number(field(answer, 'count')) ?? length(field(answer, 'tokens')),
  },
  sglang: {
    id: 'sglang',
    hosted: false,
    counts: 'text',
    request: (text, model) => ({ path: '/tokenize', body: withModel(model, { prompt: text, add_special_tokens: false }) }),
    read: (answer) => number(field(answer, 'count')) ?? length(field(answer, 'tokens')),
  },
  llamacpp: {
    id: 'llamacpp',
    hosted: false,
    counts: 'text',
    request: (text) => ({ path: '/tokenize', body: { content: text, add_special: false } }),
    read: (answer) => length(field(answer, 'tokens')),
  },
  tgi: {
    id: 'tgi',
    hosted: false,
    counts: 'text',
    request: (text) => ({ path: '/tokenize', body: { inputs: text } }),
    read: (answer) => length(answer),
  },
  anthropic: {
    id: 'anthropic',
    hosted: true,
    counts: 'request',
    request: (text, model) => ({ path: '/v1/messages/count_tokens', body: withModel(model, { messages: [{ role: 'user', content: text }] }) }),
    read: (answer) => number(field(answer, 'input_tokens')),
  },
  openai: {
    id: 'openai',
    hosted: true,
    counts: 'request',
    request: (text, model) => ({ path: '/v1/responses/input_tokens', body: withModel(model, { input: text }) }),
    read: (answer) => number(field(answer, 'input_tokens')),
  },
  gemini: {
    id: 'gemini',
    hosted: true,
    counts: 'request',
    request: (text, model) => ({
      path: `/v1beta/models/${encodeURIComponent(model ?? '').replace(/^models%2F/, '')}:countTokens`,
      body: { contents: [{ role: 'user', parts: [{ text }] }] },
    }),
    read: (answer) => number(field(answer, 'totalTokens')),
  },
};

const byRule: Readonly<Record<string, TokenEndpoint['id']>> = {
  vllm: 'vllm',
  sglang: 'sglang',
  llamacpp: 'llamacpp',
  tgi: 'tgi',
  anthropic: 'anthropic',
  openai: 'openai',
  'openai-5.6': 'openai',
  gemini: 'gemini',
};

/** The token counting of a server as detection names it, or of the server that a cache rule belongs to; null where it has none (Ollama, most routers). */
export function tokenEndpointOf(serverOrRule: string): TokenEndpoint | null {
  const id = Object.hasOwn(byRule, serverOrRule) ? byRule[serverOrRule] : undefined;
  return id === undefined ? null : tokenEndpoints[id];
}

/** The request that renders a conversation with the server's own chat template (llama.cpp), and how to read the answer. */
export const applyTemplate = {
  request: (prompt: ChatPrompt) => ({
    path: '/apply-template',
    body: { messages: prompt.messages.map((m) => ({ role: m.role, content: m.text })), ...(prompt.tools.length > 0 ? { tools: prompt.tools } : {}) },
  }),
  read: (answer: unknown): string | null => {
    const prompt = field(answer, 'prompt');
    return typeof prompt === 'string' ? prompt : null;
  },
};

/** Tokens of a request as it is sent, counted by its server: chat template, tools and sample values included. */
export interface SentTokens {
  readonly total: number;
  /** Those before the first that differs in a later request of the same prompt; null where there is none or no token ids are told. */
  readonly common: number | null;
  /** Those up to the end of each block with a cache marker, in order; null where nobody counted them. */
  readonly marks: readonly number[] | null;
}

/** Posts a JSON body to a path of the endpoint's origin and gives the parsed answer; rejects when it fails. */
export type Post = (path: string, body: unknown) => Promise<unknown>;

const anchor = '.';

// Bounds of a believable count. No vocabulary's tokens are longer than this on average (runs of blanks are the longest), and a token holds
// at least a byte; templates may add a few.
const longestTokenBytes = 256;
const addedTokens = 64;

/** Whether `tokens` can be the count of this text: an answer of 0, 3.5 or 10^15 is another server's, or a broken one's. */
function believable(tokens: number, text: string): boolean {
  const bytes = Buffer.byteLength(text);
  return Number.isInteger(tokens) && tokens >= Math.max(1, Math.floor(bytes / longestTokenBytes)) && tokens <= bytes + addedTokens;
}

/**
 * Asks the endpoint for the tokens of each text, one request at a time (one more to learn what an empty message costs where whole requests
 * are counted). Null when an answer is unreadable or no count of such a text; rejects when `post` does.
 */
export async function countAtEndpoint(endpoint: TokenEndpoint, texts: readonly string[], model: string | null, post: Post): Promise<ReadonlyMap<string, number> | null> {
  const ask = async (text: string) => {
    const { path, body } = endpoint.request(text, model);
    return endpoint.read(await post(path, body));
  };
  const known = new Map<string, number>();
  const wanted = [...new Set(texts)].filter((text) => text !== '');
  let overhead = 0;
  if (endpoint.counts === 'request' && wanted.length > 0) {
    const alone = await ask(anchor);
    if (alone === null || !Number.isInteger(alone) || alone < 1) return null;
    overhead = alone - 1;
  }
  for (const text of wanted) {
    const tokens = await ask(text);
    if (tokens === null || !believable(tokens - overhead, text)) return null;
    known.set(text, tokens - overhead);
  }
  return known;
}

/** A counter of what an endpoint has counted, and the texts it was asked for in vain: until there are none, its numbers are partly estimates. */
export interface EndpointCounter {
  readonly counter: TokenCounter;
  readonly missing: ReadonlySet<string>;
}

/** Counts by what the endpoint said of each text; any other text is counted by `otherwise` and noted as missing. */
export function countedAtEndpoint(known: ReadonlyMap<string, number>, otherwise: TokenCounter): EndpointCounter {
  const missing = new Set<string>();
  const count = (text: string): number => {
    const tokens = text === '' ? 0 : known.get(text);
    if (tokens !== undefined) return tokens;
    missing.add(text);
    return otherwise.count(text);
  };
  return { counter: { source: 'endpoint', exact: true, count }, missing };
}
