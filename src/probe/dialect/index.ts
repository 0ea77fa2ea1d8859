import { anthropic } from './anthropic';
import { azure } from './azure';
import { bedrock } from './bedrock';
import { cohere } from './cohere';
import type { Dialect, DialectId } from './dialect';
import { gemini } from './gemini';
import { llamacpp } from './llamacpp';
import { ollama } from './ollama';
import { openaiChat } from './openaiChat';
import { openaiCompletions } from './openaiCompletions';
import { openaiResponses } from './openaiResponses';
import { sglang } from './sglang';
import { tgi } from './tgi';
import { triton } from './triton';

/** Every API family by its id; a new one is a file and a line here. */
export const dialects: Readonly<Record<DialectId, Dialect>> = {
  'openai-chat': openaiChat,
  'openai-completions': openaiCompletions,
  'openai-responses': openaiResponses,
  azure,
  anthropic,
  gemini,
  ollama,
  llamacpp,
  tgi,
  sglang,
  triton,
  cohere,
  bedrock,
};

/** The dialect of that id; null when there is none. */
export function dialectOf(id: string): Dialect | null {
  return Object.hasOwn(dialects, id) ? dialects[id as DialectId] : null;
}

/** Hosted servers known by their host name, for fields that only they understand. */
const hosted: readonly (readonly [host: RegExp, server: string])[] = [
  [/(?:^|\.)api\.openai\.com$/, 'openai'],
  [/\.openai\.azure\.com$|\.cognitiveservices\.azure\.com$|\.services\.ai\.azure\.com$/, 'azure'],
  [/(?:^|\.)fireworks\.ai$/, 'fireworks'],
  [/(?:^|\.)api\.anthropic\.com$/, 'anthropic'],
];

/**
 * The optional fields to ask for: those of the dialect that fit the server (as detected, e.g. `vllm` or `vllm 0.11.0`, or known by
 * the URL's host), minus what the endpoint refused. A refused `stream_options` takes its children with it; a refused
 * `max_tokens` brings `max_completion_tokens`.
 */
export function askFor(dialect: Dialect, endpoint: { readonly url: string; readonly server: string | null; readonly refused: ReadonlySet<string>; readonly fixedLength: boolean; readonly diagnosing?: boolean }): ReadonlySet<string> {
  const host = URL.canParse(endpoint.url) ? new URL(endpoint.url).hostname : '';
  const plain = (name: string): string => name.toLowerCase().replace(/[^a-z]/g, '');
  const servers = [endpoint.server, hosted.find(([pattern]) => pattern.test(host))?.[1]].filter((s) => s !== undefined && s !== null).map(plain);
  const ask = new Set<string>();
  for (const { field, forServers, when } of dialect.optional) {
    if ((when === 'fixed-length' && !endpoint.fixedLength) || (when === 'diagnosing' && !endpoint.diagnosing)) continue;
    if (forServers !== undefined && !forServers.some((name) => servers.some((server) => server.startsWith(plain(name))))) continue;
    if (endpoint.refused.has(field) || endpoint.refused.has(field.split('.')[0]!)) continue;
    ask.add(field);
  }
  if (endpoint.refused.has('max_tokens') && !endpoint.refused.has('max_completion_tokens')) ask.add('max_completion_tokens');
  return ask;
}
