import type { ChatPrompt, Role } from '../prompt/prompt';

/** A prompt file as it is sent: its messages, and the names it leaves open. */
export interface PromptText {
  readonly prompt: ChatPrompt;
  /** Variables nobody has filled in: sent as they stand, and said in the report. */
  readonly unrendered: readonly string[];
}

/** The built-in prompt of a spot-check: short, and open-ended enough for some hundred tokens. */
export const builtInPrompt: ChatPrompt = {
  messages: [{ role: 'user', text: 'Explain in about 120 words how a sailing boat can sail against the wind.' }],
  tools: [],
};

const roleLine = /^(system|developer|user|assistant)[ \t]*:[ \t]*$/gim;

/** Reads a prompt: front matter is left out, role lines (`system:` alone on a line) make messages, everything else is one user message. */
export function readPromptText(text: string): PromptText {
  const body = text.replace(/^\uFEFF/, '').replace(/^---\r?\n[\s\S]*?\r?\n---[ \t]*(\r?\n|$)/, '');
  return { prompt: { messages: messagesOf(body), tools: [] }, unrendered: openNames(body) };
}

function messagesOf(body: string): ChatPrompt['messages'] {
  const marks = [...body.matchAll(roleLine)];
  if (marks.length === 0 || body.slice(0, marks[0]!.index).trim() !== '') return [{ role: 'user', text: body.trim() }];
  return marks
    .map((mark, index) => ({ role: mark[1]!.toLowerCase() as Role, text: body.slice(mark.index + mark[0].length, marks[index + 1]?.index).trim() }))
    .filter(({ text }) => text !== '');
}

/** `{{name}}` and `{{ name }}`; other languages are read by the prompt parser. */
function openNames(body: string): string[] {
  return [...new Set([...body.matchAll(/\{\{-?\s*([A-Za-z_][\w.]*)\s*-?\}\}/g)].map((match) => match[1]!))];
}
