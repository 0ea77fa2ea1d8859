import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { couldBePrompt, largestLook, looksLikePrompt } from '../prompt/looksLikePrompt';
import { promptPaths } from '../prompt/globs';
import { defaultPromptFiles } from '../prompt/promptPaths';

/** A file as it was given or found, and where it is. */
export interface FoundFile {
  readonly shown: string;
  readonly absolute: string;
}

/** What a search through files and folders found. */
export interface FoundPrompts {
  /** Files that were named, and those of folders that are prompts by name, or requests or templates by content. */
  readonly files: readonly FoundFile[];
  /** Files of folders that hold prompts by their content alone: strings in code, texts with instructions. They are not read on. */
  readonly unnamed: readonly string[];
}

const skippedFolders = new Set(['node_modules', 'bower_components', '.git', 'dist', 'out', 'build', 'target', 'venv', '.venv', '__pycache__']);

/** Searches what was given; `globs` is `firstToken.promptFiles`, null for its default. A file that was named is always taken. */
export function searchPrompts(given: readonly string[], cwd: string, globs: unknown): FoundPrompts {
  const named = promptPaths(Array.isArray(globs) ? globs.filter((glob) => typeof glob === 'string') : defaultPromptFiles);
  const files: FoundFile[] = [];
  const unnamed: string[] = [];
  const search = (file: FoundFile): void => {
    for (const entry of entriesOf(file.absolute)) {
      const below = { shown: path.join(file.shown, entry.name), absolute: path.join(file.absolute, entry.name) };
      if (entry.isDirectory()) {
        if (!skippedFolders.has(entry.name)) search(below);
      } else if (entry.isFile()) {
        const content = named(below.absolute) ? 'named' : contentOf(below.absolute);
        if (content === 'code' || content === 'text') unnamed.push(below.shown);
        else if (content !== null) files.push(below);
      }
    }
  };
  for (const shown of given) {
    const file = { shown, absolute: path.resolve(cwd, shown) };
    if (isFolder(file.absolute)) search(file);
    else files.push(file);
  }
  return { files, unnamed };
}

/** One sentence about the files that were left out, or null. */
export function aboutUnnamed(unnamed: readonly string[]): string | null {
  if (unnamed.length === 0) return null;
  const listed = `${unnamed.slice(0, 5).join(', ')}${unnamed.length > 5 ? ' …' : ''}`;
  return `${unnamed.length} more ${unnamed.length === 1 ? 'file holds a prompt' : 'files hold prompts'} by content but not by name: ${listed}. Name ${unnamed.length === 1 ? 'it' : 'them'}, or add a pattern to firstToken.promptFiles in .vscode/settings.json.`;
}

function isFolder(absolute: string): boolean {
  try {
    return statSync(absolute).isDirectory();
  } catch {
    return false;
  }
}

function entriesOf(folder: string) {
  return readdirSync(folder, { withFileTypes: true }).sort((a, b) => (a.name < b.name ? -1 : 1));
}

function contentOf(absolute: string): ReturnType<typeof looksLikePrompt> {
  if (couldBePrompt(absolute) === null) return null;
  try {
    return statSync(absolute).size > largestLook ? null : looksLikePrompt(readFileSync(absolute, 'utf8'), absolute);
  } catch {
    return null;
  }
}
