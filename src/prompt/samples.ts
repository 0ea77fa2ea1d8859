/** The inputs a prompt file brings along for trying it out, and rendering with them for a probe. */
import { loadedRequestReader, parsePromptFile, withoutCode } from './parse';
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

/** A prompt as a probe sends it. */
export interface RenderedForProbe {
  readonly prompt: ChatPrompt;
  /** Variables without a value, which a user can give. */
  readonly unrendered: readonly string[];
  /** What looks like a placeholder (`{{date}}`) in a format that has no variables: it is sent as it stands, and nobody can give a value. */
  readonly asWritten: readonly string[];
}

const placeholder = /\{\{\s*[A-Za-z_][\w.-]*\s*\}\}|\$\{(?:input|selection|selectedText|file|workspaceFolder)\w*(?::[^{}\n]*)?\}/g;
const withoutVariables: ReadonlySet<string> = new Set(['markdown', 'claude-markdown', 'text', 'request-json', 'request-jsonl']);

/** What looks like a placeholder of a prompt in a format that has no variables, as `RenderedForProbe.asWritten`: outside of code, each once, at most ten. */
export function placeholdersIn(file: PromptFile, prompt: Prompt): readonly string[] {
  if (!withoutVariables.has(file.format)) return [];
  const texts = prompt.parts.flatMap(({ slot, spans }) => (slot === 'tools' ? [] : spans.map((span) => (span.kind === 'literal' ? span.text : ''))));
  return [...new Set(texts.flatMap((text) => withoutCode(text).match(placeholder) ?? []))].slice(0, 10);
}

/**
 * The prompt as a probe sends it: rendered with the file's own samples and the given inputs over them. Variables without a value stay
 * as written and are named in `unrendered`. `index` picks a prompt of a file with several. `clock` is epoch milliseconds.
 */
export function renderForProbe(file: PromptFile, inputs: Readonly<Record<string, unknown>>, clock: number, index = 0): RenderedForProbe {
  const prompt = file.prompts[index];
  const asWritten = prompt === undefined ? [] : placeholdersIn(file, prompt);
  if (prompt === undefined) return { prompt: { messages: [{ role: 'user', text: file.text }], tools: [] }, unrendered: [], asWritten };
  const own = ownRequest(file, prompt);
  if (own !== null) return { prompt: own, unrendered: [], asWritten };
  const rendered = render(file, prompt, { values: { ...sampleInputs(prompt), ...inputs }, clock, nonce: '00000000-0000-4000-8000-000000000000' });
  return { prompt: { ...rendered.chat, tools: toolsOf(prompt) }, unrendered: rendered.unrendered, asWritten };
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
export function renderFile(text: string, path: string, readFile: (path: string) => string | null = () => null, inputs: Readonly<Record<string, unknown>> = {}, clock = Date.now()): RenderedForProbe {
  const file = parsePromptFile(text, path, { readFile });
  const whole = { prompt: { messages: [{ role: 'user' as const, text }], tools: [] }, unrendered: [], asWritten: [] };
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
