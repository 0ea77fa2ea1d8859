import type { ChatPrompt } from '../prompt/prompt';
import { askFor } from './dialect/index';
import type { Target } from './plan';

/** A request's body as it will be sent, as far as the prefix cache is concerned. */
export function bodyOf(target: Target, prompt: ChatPrompt): Readonly<Record<string, unknown>> {
  const { endpoint, dialect, model, server, memory } = target;
  const ask = askFor(dialect, { url: endpoint.url, server, refused: new Set(memory.recall(endpoint.url).refused), fixedLength: true });
  const { body } = dialect.request({ url: endpoint.url, model, prompt, maxTokens: 1, ask, body: endpoint.body, headers: {}, key: null });
  return JSON.parse(body) as Record<string, unknown>;
}
