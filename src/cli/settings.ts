import path from 'node:path';
import { parse as parseJsonc, printParseErrorCode, type ParseError } from 'jsonc-parser';
import { UsageError } from './command';
import { readPlainFile } from './input';

/** The `firstToken.*` settings of the folder's `.vscode/settings.json`, by name without the prefix; empty when there is none. Throws a UsageError for a file that is not JSON. */
export function readWorkspaceSettings(cwd: string): { readonly file: string; readonly values: Readonly<Record<string, unknown>> } {
  const file = path.join(cwd, '.vscode', 'settings.json');
  const text = readPlainFile(file)?.replace(/^\uFEFF/, '');
  if (text === undefined) return { file, values: {} };
  const errors: ParseError[] = [];
  const root = parseJsonc(text, errors, { allowTrailingComma: true, allowEmptyContent: true }) as unknown;
  const [first] = errors;
  if (first) {
    const line = text.slice(0, first.offset).split('\n').length;
    throw new UsageError(`${file} line ${line} is not valid JSON (${printParseErrorCode(first.error)}): fix it, or run in another folder.`);
  }
  const values: Record<string, unknown> = {};
  if (root !== null && typeof root === 'object') {
    for (const [name, value] of Object.entries(root)) {
      if (name.startsWith('firstToken.')) values[name.slice('firstToken.'.length)] = value;
    }
  }
  return { file, values };
}
