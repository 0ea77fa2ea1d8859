/** Glob patterns as VS Code writes them (`**`, `*`, `?`, `{a,b}`, `[a-z]`), for a search that runs without it. */

/** A pattern over a whole path with forward slashes. What cannot be read as a glob matches itself only. */
export function globPattern(glob: string): RegExp {
  try {
    return new RegExp(`^${translate(glob)}$`, 'i');
  } catch {
    return new RegExp(`^${escape(glob)}$`, 'i');
  }
}

const escape = (text: string) => text.replace(/[\\^$.*+?()[\]{}|]/g, '\\$&');

function translate(glob: string): string {
  let out = '';
  let depth = 0;
  for (let i = 0; i < glob.length; i += 1) {
    const c = glob[i]!;
    if (c === '*') {
      const run = /^\*\*\/|^\*+/.exec(glob.slice(i))![0];
      out += run === '**/' ? '(?:.*/)?' : run.length > 1 ? '.*' : '[^/]*';
      i += run.length - 1;
    } else if (c === '?') out += '[^/]';
    else if (c === '{') {
      depth += 1;
      out += '(?:';
    } else if (c === '}' && depth > 0) {
      depth -= 1;
      out += ')';
    } else if (c === ',' && depth > 0) out += '|';
    else if (c === '[') {
      const set = /^\[([!^]?)([^\]]+)\]/.exec(glob.slice(i));
      out += set === null ? '\\[' : `[${set[1] === '' ? '' : '^'}${set[2]!.replace(/\\/g, '\\\\')}]`;
      i += set === null ? 0 : set[0].length - 1;
    } else out += escape(c);
  }
  return out + ')'.repeat(depth);
}

/** A test of whole paths by patterns of which a later one has the last word and `!` leaves out; letters count as the same in either case. */
export function promptPaths(globs: readonly string[]): (path: string) => boolean {
  const patterns = globs.map((glob) => (glob.startsWith('!') ? { take: false, pattern: globPattern(glob.slice(1)) } : { take: true, pattern: globPattern(glob) }));
  return (path) => {
    const clean = path.replace(/\\/g, '/');
    return patterns.findLast(({ pattern }) => pattern.test(clean))?.take ?? false;
  };
}
