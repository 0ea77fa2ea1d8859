/** What a probe would send, as a plan that can be handed over to another tool: without the key and without any header that may be a secret. */
import type { ChatPrompt } from '../prompt/prompt';
import type { HandOverPlan } from '../report/exchange/handOver';
import type { Slo } from '../report/report';
import type { Dialect } from './dialect/dialect';
import type { Endpoint } from './endpoint';
import type { ProbeSettings } from './plan';

/** What there is to hand over. */
export interface HandOverInput {
  readonly dialect: Dialect;
  readonly endpoint: Pick<Endpoint, 'url' | 'model' | 'headers' | 'body' | 'tls'>;
  /** The environment variable that holds the key; null = the endpoint has none. */
  readonly keyVariable: string | null;
  readonly prompt: ChatPrompt;
  readonly settings: Pick<ProbeSettings, 'requests' | 'concurrency' | 'warmup' | 'maxTokens' | 'cache'>;
  readonly slo: Slo;
  readonly load?: HandOverPlan['load'];
  /** Tokens of a made-up prompt in place of the given one, and how many of them are shared. */
  readonly promptTokens: number;
  /** `promptTokens` is the counted size of the given prompt (`countedTokens`), not a number the user chose. */
  readonly counted?: boolean;
  readonly prefixTokens?: number;
  readonly fixedLength?: boolean;
  readonly seed?: number;
}

const placeholder = 'FIRST_TOKEN_KEY_STANDS_HERE';
const harmless = new Set(['accept', 'content-type', 'anthropic-version']);
/** Length of an answer where the settings name none. */
const usualAnswer = 256;

/** The plan in numbers. Throws TypeError for a URL that cannot be probed. */
export function handOverPlan(input: HandOverInput): HandOverPlan {
  const { dialect, endpoint, prompt, settings, slo } = input;
  const fixed = input.fixedLength === true && settings.maxTokens !== null && dialect.id.startsWith('openai-c') ? { ignore_eos: true, min_tokens: settings.maxTokens } : {};
  const request = dialect.request({ url: endpoint.url, model: endpoint.model, prompt, maxTokens: settings.maxTokens, ask: new Set(), body: { ...fixed, ...endpoint.body }, headers: endpoint.headers, key: input.keyVariable === null ? null : placeholder });
  const headers: Record<string, string> = {};
  const withheld: string[] = [];
  let keyHeader: HandOverPlan['keyHeader'] = null;
  for (const [name, value] of Object.entries(request.headers)) {
    if (value.includes(placeholder)) keyHeader = { name, prefix: value.slice(0, value.indexOf(placeholder)) };
    else if (harmless.has(name)) headers[name] = value;
    else if (name !== 'accept-encoding') withheld.push(name);
  }
  return {
    api: dialect.id,
    request: { url: withoutSecrets(request.url), headers, body: request.body },
    model: endpoint.model,
    keyVariable: keyHeader === null ? null : input.keyVariable,
    keyHeader,
    withheldHeaders: withheld,
    body: endpoint.body,
    requests: settings.requests,
    warmup: settings.warmup,
    load: input.load ?? { kind: 'closed', concurrency: settings.concurrency },
    promptTokens: Math.max(input.promptTokens, (input.prefixTokens ?? 0) + 1),
    about: input.counted === true,
    prefixTokens: input.prefixTokens ?? 0,
    outputTokens: settings.maxTokens ?? usualAnswer,
    fixedLength: input.fixedLength ?? false,
    repeats: settings.cache === 'as-is' && input.counted === true,
    slo,
    seed: input.seed ?? 1,
    insecure: endpoint.tls.insecure,
  };
}

/** Query values may be keys: only the version of an API and the form of the answer stay. */
function withoutSecrets(text: string): string {
  const url = new URL(text);
  for (const name of [...url.searchParams.keys()]) if (!/^(?:api-version|alt)$/i.test(name)) url.searchParams.delete(name);
  url.username = '';
  url.password = '';
  return url.href;
}
