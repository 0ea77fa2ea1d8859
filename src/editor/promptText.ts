import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import type { ChatPrompt } from '../prompt/prompt';

/** A prompt as it is sent, and the names it leaves open. */
export interface PromptText {
  readonly prompt: ChatPrompt;
  /** Variables nobody has filled in: sent as they stand, and said in the report. */
  readonly unrendered: readonly string[];
  /** Placeholders in a format without variables, sent as they stand. */
  readonly asWritten?: readonly string[];
}

/** What reports call the built-in prompt. */
export const builtInName = 'built-in';

/** The built-in prompt of a spot-check: short, and open-ended enough for some hundred tokens. */
export const builtInPrompt: ChatPrompt = {
  messages: [{ role: 'user', text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }],
  tools: [],
};

/** Text that is sent as it stands. */
export function plainPrompt(text: string): PromptText {
  return { prompt: { messages: [{ role: 'user', text: text.trim() }], tools: [] }, unrendered: [] };
}

/**
 * Reads a prompt file by its format and renders it with the samples it brings along and the `values` given. A file that is no prompt file by its name and
 * content is sent as it stands. `file` is null for a document that is not on disk; included files are read inside `root` only.
 */
export async function readPrompt(text: string, file: string | null, root: string | null, values: Readonly<Record<string, string>> = {}): Promise<PromptText> {
  const { parsePromptFile, prepare, renderForProbe } = await import('../prompt/index');
  const name = file ?? 'untitled.txt';
  await prepare([name]);
  const parsed = parsePromptFile(text, name, { readFile: (beside) => (file === null ? null : readBeside(file, beside, root ?? path.dirname(file))) });
  if (!parsed || parsed.prompts.length === 0) return plainPrompt(text);
  const rendered = renderForProbe(parsed, values, Date.now());
  return rendered.prompt.messages.some((message) => message.text.trim() !== '') ? rendered : plainPrompt(text);
}

function readBeside(file: string, name: string, root: string): string | null {
  const wanted = path.resolve(path.dirname(file), name);
  if (path.relative(root, wanted).startsWith('..')) return null;
  try {
    return readFileSync(wanted, 'utf8');
  } catch {
    return null;
  }
}
