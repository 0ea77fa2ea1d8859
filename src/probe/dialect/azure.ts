import type { Dialect, RequestInput } from './dialect';
import { chatBody, chatReader, openaiChat } from './openaiChat';
import { endpointUrl, post } from './request';

/** The newest stable version of the deployment API; used where the URL names none. */
const apiVersion = '2024-10-21';

/**
 * Both URL styles: `…/openai/deployments/{d}/chat/completions?api-version=…` (an origin or `…/openai` gets the deployment from
 * `model`), and the version-free `…/openai/v1` (the model is the deployment). Foundry's `…/models/chat/completions` is kept as given.
 */
function azureUrl(input: RequestInput): string {
  const url = new URL(input.url);
  const path = url.pathname.replace(/\/+$/, '').replace(/\/chat\/completions$/, '');
  if (/\/openai\/v1$/.test(path) || path.endsWith('/v1')) return endpointUrl(url.href, '/chat/completions', '/openai/v1');
  if (/\/models$/.test(path)) url.pathname = `${path}/chat/completions`;
  else if (/\/deployments\/[^/]+$/.test(path)) url.pathname = `${path}/chat/completions`;
  else url.pathname = `${path.replace(/\/openai(?:\/deployments)?$/, '')}/openai/deployments/${encodeURIComponent(input.model ?? '')}/chat/completions`;
  if (!url.searchParams.has('api-version')) url.searchParams.set('api-version', apiVersion);
  return url.href;
}

/** Azure OpenAI and Foundry: chat completions under other URLs, with `api-key`. */
export const azure: Dialect = {
  id: 'azure',
  framing: 'sse',
  optional: openaiChat.optional.map((field) => (field.field === 'max_completion_tokens' ? { field: field.field } : field)),
  request: (input) => post(azureUrl(input), input, { 'api-key': input.key }, chatBody(input, true)),
  reader: (sink) => chatReader(sink),
};
