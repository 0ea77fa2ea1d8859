import type { ChatMessage } from './prompt';

/** The message with the text of its first or last block changed; null when that block is no text. */
export function editText(message: ChatMessage, which: 'first' | 'last', edit: (text: string) => string): ChatMessage | null {
  if (message.parts === undefined) return { ...message, text: edit(message.text) };
  const index = which === 'first' ? 0 : message.parts.length - 1;
  const part = message.parts[index];
  if (part === undefined || (part.block !== undefined && typeof part.block['text'] !== 'string')) return null;
  const parts = message.parts.map((one, i) => (i === index ? { ...one, text: edit(one.text) } : one));
  return { ...message, text: parts.map(({ text }) => text).join(''), parts };
}
