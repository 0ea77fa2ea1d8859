import type { ServerTiming } from '../../report/sample';
import type { Dialect, FrameReader, FrameSink, HeaderList, RequestInput } from './dialect';
import { count, list, object, string, type JsonObject } from './json';
import { bearer, chatMessages, functionTools, post, promptText } from './request';

/** Durations of the last line, in ns. */
const durations: Readonly<Record<string, ServerTiming['covers']>> = { total_duration: 'total', load_duration: 'load', prompt_eval_duration: 'prefill', eval_duration: 'decode' };

/** Reads lines of `/api/chat` (`message`) and `/api/generate` (`response`), told apart by what they hold. */
class OllamaReader implements FrameReader {
  readonly #sink: FrameSink;
  readonly #lines: boolean;
  #first = true;
  #calls = 0;
  readonly endsAtClose = false;

  constructor(sink: FrameSink, headers: HeaderList) {
    this.#sink = sink;
    this.#lines = headers.some(([name, value]) => name.toLowerCase() === 'content-type' && value.includes('ndjson'));
  }

  read(_frame: unknown, json: unknown): boolean {
    const line = object(json);
    if (line === null) return false;
    const message = object(line['message']);
    const content = string(message?.['content']) || string(line['response']);
    const thinking = string(message?.['thinking']) || string(line['thinking']);
    const done = line['done'] === true;
    // A stream's last line is empty, so one that ends and speaks is a whole answer to a server that did not stream.
    if (this.#first && done && content + thinking !== '' && !this.#lines) this.#sink.whole();
    this.#first = false;
    this.#sink.delta('reasoning', thinking);
    this.#sink.delta('text', content);
    for (const value of list(message?.['tool_calls'])) {
      const call = object(object(value)?.['function']);
      if (call !== null) this.#sink.tool(this.#calls++, string(call['name']), JSON.stringify(call['arguments'] ?? {}));
    }
    if (done) this.#done(line);
    return message !== null || typeof line['response'] === 'string' || typeof line['done'] === 'boolean';
  }

  /** `prompt_eval_count` is left out when nothing was evaluated; that means unknown here, not 0. Cached tokens are told from Ollama 0.33.3 on. */
  #done(line: JsonObject): void {
    this.#sink.finish(string(line['done_reason']) || 'stop');
    this.#sink.usage({ prompt: count(line['prompt_eval_count']), output: count(line['eval_count']), cached: count(line['prompt_eval_cached_count']) });
    for (const [name, covers] of Object.entries(durations)) {
      const ns = count(line[name]);
      if (ns !== undefined) this.#sink.timing({ name, ms: ns / 1e6, covers });
    }
    this.#sink.terminal();
  }

  whole(json: unknown): boolean {
    return this.read(null, json);
  }
}

function ollamaUrl(input: RequestInput): { url: string; generate: boolean } {
  const url = new URL(input.url);
  const path = url.pathname.replace(/\/+$/, '');
  const generate = path.endsWith('/api/generate');
  url.pathname = /\/api\/(?:chat|generate)$/.test(path) ? path : `${path.replace(/\/(?:api|v1)$/, '')}/api/chat`;
  return { url: url.href, generate };
}

/** Ollama's native API; `/api/generate` where the URL names it, else `/api/chat`. */
export const ollama: Dialect = {
  id: 'ollama',
  framing: 'ndjson',
  optional: [],
  request(input) {
    const { url, generate } = ollamaUrl(input);
    const options = input.maxTokens === null ? {} : { options: { num_predict: input.maxTokens } };
    const prompt = generate ? { prompt: promptText(input.prompt) } : { messages: chatMessages(input.prompt, false), ...(input.prompt.tools.length > 0 ? { tools: functionTools(input.prompt) } : {}) };
    return post(url, input, { ...bearer(input.key), accept: 'application/x-ndjson' }, { model: input.model, ...prompt, stream: true, ...options });
  },
  reader: (sink, { headers }) => new OllamaReader(sink, headers),
};
