/** The inputs a prompt file brings along for trying it out, and rendering with them for a probe. */
import { loadedRequestReader, parsePromptFile } from './parse';
import type { ChatPrompt, Prompt, PromptFile } from './prompt';
import { renderPrompt as render } from './renderDiff';
import { requestsIn } from './requestDiff';

/** Values by variable name: the first input set of the file, samples and defaults of its variables under it; `{}` when it has none. */
export function sampleInputs(prompt: Prompt): Readonly<Record<string, unknown>> {
  const values: Record<string, unknown> = {};
  for (const variable of prompt.variables) {
    const value = variable.sample ?? variable.default;
    if (value !== undefined) values[variable.name] = value;
  }
  return { ...values, ...prompt.samples[0] };
}

/**
 * The prompt as a probe sends it: rendered with the file's own samples and the given inputs over them. Variables without a value stay
 * as written and are named in `unrendered`. `index` picks a prompt of a file with several. `clock` is epoch milliseconds.
 */
export function renderForProbe(file: PromptFile, inputs: Readonly<Record<string, unknown>>, clock: number, index = 0): { readonly prompt: ChatPrompt; readonly unrendered: readonly string[] } {
  const prompt = file.prompts[index];
  if (prompt === undefined) return { prompt: { messages: [{ role: 'user', text: file.text }], tools: [] }, unrendered: [] };
  const own = ownRequest(file, prompt);
  if (own !== null) return { prompt: own, unrendered: [] };
  const rendered = render(file, prompt, { values: { ...sampleInputs(prompt), ...inputs }, clock, nonce: '00000000-0000-4000-8000-000000000000' });
  return { prompt: { ...rendered.chat, tools: toolsOf(prompt) }, unrendered: rendered.unrendered };
}

/** What a request file sends, as it is written there: nobody expands it. Null for other files, and where the JSON is not whole. */
function ownRequest(file: PromptFile, prompt: Prompt): ChatPrompt | null {
  const requestPrompt = loadedRequestReader();
  if (requestPrompt === null || (file.format !== 'request-json' && file.format !== 'request-jsonl')) return null;
  const source = file.text.slice(prompt.start, prompt.end);
  const [request] = requestsIn(source);
  if (request !== undefined) return requestPrompt(request.body);
  try {
    return requestPrompt(JSON.parse(source));
  } catch {
    return null;
  }
}

/** Parses a file and renders its first prompt for a probe with the file's own samples; what is no prompt file is one user message. */
export function renderFile(text: string, path: string, readFile: (path: string) => string | null = () => null, inputs: Readonly<Record<string, unknown>> = {}, clock = Date.now()): { readonly prompt: ChatPrompt; readonly unrendered: readonly string[] } {
  const file = parsePromptFile(text, path, { readFile });
  const whole = { prompt: { messages: [{ role: 'user' as const, text }], tools: [] }, unrendered: [] };
  if (file === null || file.prompts.length === 0) return whole;
  const rendered = renderForProbe(file, inputs, clock);
  return rendered.prompt.messages.length === 0 ? whole : rendered;
}

/** Tool definitions of a request body, or none. */
function toolsOf(prompt: Prompt): readonly unknown[] {
  const span = prompt.parts.find((p) => p.slot === 'tools')?.spans.find((s) => s.kind === 'literal');
  if (span?.kind !== 'literal') return [];
  try {
    const tools = JSON.parse(span.text) as unknown;
    return Array.isArray(tools) ? (tools as readonly unknown[]) : [];
  } catch {
    return [];
  }
}
