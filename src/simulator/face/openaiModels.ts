import { jsonReply } from './face';
import type { PlainRoute } from './persona';

/** GET /v1/models with the one served model; `extra` adds the server's own fields. */
export function modelsRoute(owner: string, extra: (maxContext: number) => Record<string, unknown> = () => ({})): PlainRoute {
  return {
    method: 'GET',
    path: /^(?:\/openai)?(?:\/v1)?\/models$/,
    answer: (_request, { settings }) =>
      jsonReply(200, { object: 'list', data: [{ id: settings.servedModel, object: 'model', created: 1_700_000_000, owned_by: owner, ...extra(settings.maxContext) }] }),
  };
}

/** Whether a model of OpenAI's caches only at breakpoints: GPT-5.6 and later, by its name. */
export function cachesByBreakpoints(model: unknown): boolean {
  const [, major = '0', minor = '0'] = /gpt-(\d+)(?:\.(\d+))?/.exec(String(model)) ?? [];
  return Number(major) + Number(minor) / 10 >= 5.6;
}
