/** Help texts, written a flag a line, laid out for the terminal's width. */
import { wrap } from '../report/terminalReport';

const narrowest = 40;
const widest = 100;

/** Columns to lay help out for: the terminal's, 80 where there is none. */
export function helpWidth(stream: { readonly columns?: number | undefined }): number {
  return Math.min(widest, Math.max(narrowest, stream.columns ?? 80));
}

/** The text with each line wrapped to `width`: a flag's description hangs under its own beginning, or below the flag where that leaves little room. */
export function layOut(text: string, width: number): string {
  return text.split('\n').flatMap((line) => (line.length <= width ? [line] : layOutLine(line, width))).join('\n');
}

function layOutLine(line: string, width: number): string[] {
  const indent = /^ */.exec(line)![0];
  const two = /^( *\S.*?)( {2,})(\S.*)$/.exec(line);
  if (two === null) return hanging(indent, line.startsWith('first-token ') ? '    ' : indent, line.trim(), width);
  const [, flag = '', space = '', description = ''] = two;
  const column = flag.length + space.length;
  if (column <= width * 0.45) return hanging(flag + space, ' '.repeat(column), description, width);
  const below = `${indent}    `;
  return [...hanging(indent, below, flag.trim(), width), ...hanging(below, below, description, width)];
}

/** Words after `first`, the lines that follow after `next`. */
function hanging(first: string, next: string, words: string, width: number): string[] {
  if (first.length + words.length <= width) return [first + words];
  const lines = wrap(words, width - Math.max(first.length, next.length));
  return lines.map((line, i) => (i === 0 ? first : next) + line);
}

/** A usage text without the lines of these flags. */
export function usageWithout(usage: string, flags: readonly string[]): string {
  return usage.split('\n').filter((line) => !flags.some((flag) => line.startsWith(`  ${flag} `))).join('\n');
}
