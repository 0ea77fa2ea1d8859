/**
 * Finds out what an endpoint is from its URL and a handful of cheap GET requests: which server, which API to speak, which models,
 * where its metrics are. Says what it found and how, so that a wrong guess can be put right by naming `api` in the settings.
 */
import type { DialectId } from './dialect/dialect';
import { splitUrl } from './network';

/** What was found. `evidence` is for people: one sentence a fact. */
export interface Detection {
  readonly api: DialectId;
  /** vllm, sglang, llamacpp, tgi, ollama, lmstudio, triton, tensorrt-llm, openai, azure, anthropic, gemini, bedrock, cohere, openrouter … or null. */
  readonly server: string | null;
  readonly version: string | null;
  readonly models: readonly string[];
  readonly maxModelLen: number | null;
  /** Where a metrics page answered or is usual for this server; null when there is none. */
  readonly metricsUrl: string | null;
  readonly evidence: readonly string[];
  /** The endpoint asked for a key (401/403) on the way. */
  readonly needsKey: boolean;
  /** Nothing answered: the first error in words. */
  readonly unreachable: string | null;
}

/** An answer to one cheap GET; null when it did not come (`error` then says why). */
export interface Answer {
  readonly status: number;
  readonly headers: readonly (readonly [string, string])[];
  readonly text: string;
}

/** How to make one GET with the endpoint's headers and key; must give up by itself after a few seconds and throw with a plain message. */
export type Get = (url: string) => Promise<Answer>;

const byHost: readonly (readonly [RegExp, DialectId, string])[] = [
  [/\.openai\.azure\.com$|\.services\.ai\.azure\.com$|\.cognitiveservices\.azure\.com$/, 'azure', 'azure'],
  [/(^|\.)api\.openai\.com$/, 'openai-chat', 'openai'],
  [/(^|\.)api\.anthropic\.com$/, 'anthropic', 'anthropic'],
  [/(^|\.)generativelanguage\.googleapis\.com$|aiplatform\.googleapis\.com$/, 'gemini', 'gemini'],
  [/^bedrock-runtime\.[\w-]+\.amazonaws\.com$/, 'bedrock', 'bedrock'],
  [/(^|\.)api\.cohere\.(com|ai)$/, 'cohere', 'cohere'],
  [/(^|\.)openrouter\.ai$/, 'openai-chat', 'openrouter'],
  [/(^|\.)api\.deepseek\.com$/, 'openai-chat', 'deepseek'],
  [/(^|\.)api\.groq\.com$/, 'openai-chat', 'groq'],
  [/(^|\.)api\.mistral\.ai$/, 'openai-chat', 'mistral'],
  [/(^|\.)api\.together\.(xyz|ai)$/, 'openai-chat', 'together'],
  [/(^|\.)api\.fireworks\.ai$/, 'openai-chat', 'fireworks'],
  [/(^|\.)api\.x\.ai$/, 'openai-chat', 'xai'],
  [/(^|\.)api\.perplexity\.ai$/, 'openai-chat', 'perplexity'],
  [/(^|\.)api\.cerebras\.ai$/, 'openai-chat', 'cerebras'],
  [/(^|\.)api\.sambanova\.ai$/, 'openai-chat', 'sambanova'],
  [/(^|\.)api\.moonshot\.(ai|cn)$/, 'openai-chat', 'kimi'],
  [/(^|\.)dashscope(-intl)?\.aliyuncs\.com$/, 'openai-chat', 'qwen'],
  [/(^|\.)api\.minimaxi?\.(io|chat|com)$/, 'openai-chat', 'minimax'],
  [/(^|\.)ollama\.com$/, 'ollama', 'ollama'],
];

const byPath: readonly (readonly [RegExp, DialectId])[] = [
  [/\/v1\/messages\/?$/, 'anthropic'],
  [/\/responses\/?$/, 'openai-responses'],
  [/\/openai\/deployments\//, 'azure'],
  [/\/chat\/completions\/?$/, 'openai-chat'],
  [/\/v1\/completions\/?$/, 'openai-completions'],
  [/\/api\/(chat|generate)\/?$/, 'ollama'],
  [/\/v2\/models\/[^/]+(\/versions\/[^/]+)?\/generate_stream\/?$/, 'triton'],
  [/\/generate_stream\/?$/, 'tgi'],
  [/\/generate\/?$/, 'sglang'],
  [/\/completions?\/?$/, 'llamacpp'],
  [/:(streamGenerateContent|generateContent)$/, 'gemini'],
  [/\/converse-stream\/?$/, 'bedrock'],
  [/\/v2\/chat\/?$/, 'cohere'],
];

/** The part of an endpoint's URL in front of its API paths: `https://h/prefix/v1/chat/completions` → `https://h/prefix`. No trailing slash, no query. */
export function baseOf(url: string): string {
  const { target, socketPath } = splitUrl(url);
  const base = target.pathname
    .replace(/\/(v1|v2|openai\/v1)?\/?(chat\/completions|completions|responses|messages|chat|models\/.*)\/?$/, '')
    .replace(/\/(api\/(chat|generate)|generate_stream|generate|completion)\/?$/, '')
    .replace(/\/(v1|v1beta|v2|api)\/?$/, '')
    .replace(/\/+$/, '');
  return (socketPath === null ? target.origin : `unix:${socketPath}:`) + base;
}

interface Seen {
  readonly path: string;
  readonly answer: Answer | null;
  readonly json: Record<string, unknown> | null;
}

function asRecord(text: string): Record<string, unknown> | null {
  try {
    const value: unknown = JSON.parse(text);
    return value !== null && typeof value === 'object' && !Array.isArray(value) ? (value as Record<string, unknown>) : null;
  } catch {
    return null;
  }
}

const cheap = ['/v1/models', '/version', '/props', '/get_server_info', '/info', '/api/version', '/v2'] as const;

/** Detects what is at `url`. Never throws: what cannot be found out is null, with `unreachable` in words when nothing answered. */
export async function detect(url: string, get: Get): Promise<Detection> {
  const { hostname, pathname } = splitUrl(url).target;
  const base = baseOf(url);
  const evidence: string[] = [];
  const pathApi = byPath.find(([pattern]) => pattern.test(pathname))?.[1];
  const host = byHost.find(([pattern]) => pattern.test(hostname));
  if (host) evidence.push(`The host ${hostname} is ${host[2]}.`);
  if (pathApi) evidence.push(`The path ${pathname} is of the ${pathApi} API.`);

  let unreachable: string | null = null;
  let answered = false;
  const paths = host ? hostedModels(host[1]) : cheap;
  const seen = await Promise.all(
    paths.map(async (path): Promise<Seen> => {
      try {
        const answer = await get(base + path);
        answered = true;
        return { path, answer, json: answer.status === 200 ? asRecord(answer.text) : null };
      } catch (error) {
        unreachable ??= error instanceof Error ? error.message : String(error);
        return { path, answer: null, json: null };
      }
    }),
  );
  const at = (path: string) => seen.find((s) => s.path === path)?.json ?? null;
  const needsKey = seen.some((s) => s.answer?.status === 401 || s.answer?.status === 403);
  if (needsKey) evidence.push('It asks for an API key.');

  const server = host ? { server: host[2], version: null } : identify(at, seen, evidence);
  const models = modelsOf(seen.find((s) => s.path.endsWith('models'))?.json ?? null);
  if (models.names.length > 0) evidence.push(`It lists ${models.names.length} model${models.names.length === 1 ? '' : 's'}, first ${models.names[0] ?? ''}.`);
  const api = pathApi ?? host?.[1] ?? apiOf(server.server, models.names.length > 0);
  const metricsUrl = server.server === null ? null : metricsOf(server.server, base);
  return {
    api,
    server: server.server,
    version: server.version,
    models: models.names,
    maxModelLen: models.maxModelLen,
    metricsUrl,
    evidence: evidence.length > 0 || (!answered && unreachable !== null) ? evidence : ['Nothing told what it is, so it is taken for an OpenAI-compatible chat server.'],
    needsKey,
    unreachable: answered ? null : unreachable,
  };
}

function hostedModels(api: DialectId): readonly string[] {
  if (api === 'gemini') return ['/v1beta/models'];
  return api === 'azure' || api === 'bedrock' ? [] : ['/v1/models'];
}

type At = (path: string) => Record<string, unknown> | null;
type Identity = { readonly server: string | null; readonly version: string | null };

/** A name or version is no longer. */
const longestName = 300;

function text(value: unknown): string | null {
  return typeof value === 'string' && value.length <= longestName ? value : null;
}

function identify(at: At, seen: readonly Seen[], evidence: string[]): Identity {
  const found = (server: string, version: string | null, how: string): Identity => {
    evidence.push(`${how}: ${server}${version === null ? '' : ` ${version}`}.`);
    return { server, version };
  };
  const sglang = at('/get_server_info');
  if (sglang) return found('sglang', text(sglang['version']), '/get_server_info answered');
  const props = at('/props');
  if (props && ('default_generation_settings' in props || 'build_info' in props)) return found('llamacpp', text(props['build_info']), '/props answered');
  const info = at('/info');
  if (info && ('max_total_tokens' in info || 'model_id' in info)) return found('tgi', text(info['version']), '/info answered');
  const ollama = at('/api/version');
  if (ollama && typeof ollama['version'] === 'string') return found('ollama', ollama['version'], '/api/version answered');
  const triton = at('/v2');
  if (triton && text(triton['name'])?.toLowerCase().includes('triton')) return found('triton', text(triton['version']), '/v2 answered');

  const list = at('/v1/models');
  const owners = new Set((Array.isArray(list?.['data']) ? list['data'] : []).map((m) => text((m as Record<string, unknown> | null)?.['owned_by'])));
  const version = text(at('/version')?.['version']);
  for (const owner of ['vllm', 'sglang', 'llamacpp'] as const) if (owners.has(owner)) return found(owner, version, `/v1/models is owned by ${owner}`);
  if (version !== null && at('/version')) return found('vllm', version, '/version answered as vLLM does');
  if (owners.has('organization_owner')) return found('lmstudio', null, '/v1/models is owned by organization_owner, as in LM Studio');
  if (owners.has('library')) return found('ollama', null, '/v1/models is owned by library, as in Ollama');
  if (owners.has('tensorrt_llm')) return found('tensorrt-llm', null, '/v1/models is owned by tensorrt_llm');
  if (list && 'has_more' in list && Array.isArray(list['data'])) return found('anthropic', null, '/v1/models has the Anthropic form');
  const refusal = seen.find((s) => s.path === '/v1/models')?.answer;
  if (refusal && refusal.status >= 400 && asRecord(refusal.text)?.['type'] === 'error') return found('anthropic', null, 'It refuses in the Anthropic form');
  for (const { answer } of seen) {
    const name = answer?.headers.find(([n]) => n.toLowerCase() === 'server')?.[1] ?? '';
    if (/llama\.cpp/i.test(name)) return found('llamacpp', null, `The response header server: ${name} says`);
  }
  return { server: null, version: null };
}

function apiOf(server: string | null, listsModels: boolean): DialectId {
  if (server === 'ollama' || server === 'triton' || server === 'anthropic') return server;
  if (server === 'tgi' && !listsModels) return 'tgi';
  if (server === 'sglang' && !listsModels) return 'sglang';
  return 'openai-chat';
}

function metricsOf(server: string, base: string): string | null {
  if (['vllm', 'sglang', 'tgi', 'llamacpp', 'dynamo'].includes(server)) return `${base}/metrics`;
  if (server === 'tensorrt-llm') return `${base}/prometheus/metrics`;
  if (server === 'triton' && base.startsWith('http')) {
    const url = new URL(base);
    url.port = '8002';
    return `${url.origin}/metrics`;
  }
  return null;
}

function modelsOf(list: Record<string, unknown> | null): { readonly names: readonly string[]; readonly maxModelLen: number | null } {
  const entries = [list?.['data'], list?.['models']].find((v): v is unknown[] => Array.isArray(v)) ?? [];
  const records = entries.filter((m): m is Record<string, unknown> => m !== null && typeof m === 'object');
  const names = records.flatMap((m) => {
    const name = text(m['id']) ?? text(m['name']) ?? text(m['model']);
    return name === null ? [] : [name.replace(/^models\//, '')];
  });
  const length = records.map((m) => m['max_model_len']).find((v): v is number => typeof v === 'number' && Number.isSafeInteger(v) && v > 0);
  return { names: [...new Set(names)], maxModelLen: length ?? null };
}
