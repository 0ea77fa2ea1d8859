/** Comma-separated values by RFC 4180 (quotes doubled, line breaks inside quotes), the first line naming the columns. */

/** Rows by column name, values as text. `problem` makes the error of a bad line. */
export function parseCsv(text: string, problem: (message: string) => Error): Record<string, string>[] {
  const [head, ...rows] = records(text.replace(/^\uFEFF/, ''), problem);
  if (head === undefined) return [];
  const names = head.fields.map((name) => name.trim());
  const empty = names.indexOf('');
  if (empty >= 0) throw problem(`column ${empty + 1} has no name in the first line.`);
  const twice = names.find((name, i) => names.indexOf(name) < i);
  if (twice !== undefined) throw problem(`the column ${twice} is named twice.`);
  return rows.map(({ fields, line }) => {
    if (fields.length !== names.length) throw problem(`line ${line} has ${fields.length} values, the first line names ${names.length} columns (${names.join(', ')}).`);
    return Object.fromEntries(names.map((name, i) => [name, fields[i]!]));
  });
}

interface Line {
  readonly fields: string[];
  /** Of the file, from 1. */
  readonly line: number;
}

function records(text: string, problem: (message: string) => Error): Line[] {
  const all: Line[] = [];
  let fields: string[] = [];
  let line = 1;
  let begun = 1;
  let at = 0;
  const end = (): void => {
    if (fields.length > 1 || fields[0] !== '') all.push({ fields, line: begun });
    fields = [];
    begun = line;
  };
  while (at < text.length) {
    let value = '';
    if (text[at] === '"') {
      at += 1;
      for (;;) {
        const close = text.indexOf('"', at);
        if (close < 0) throw problem(`the quote opened in line ${begun} is never closed.`);
        value += text.slice(at, close);
        at = close + 1;
        if (text[at] !== '"') break;
        value += '"';
        at += 1;
      }
      line += value.split('\n').length - 1;
      if (at < text.length && !',\r\n'.includes(text[at]!)) throw problem(`line ${line} goes on after a closing quote: double the quotes inside a value.`);
    } else {
      const rest = /[,\r\n]/g;
      rest.lastIndex = at;
      const stop = rest.exec(text)?.index ?? text.length;
      value = text.slice(at, stop);
      at = stop;
    }
    fields.push(value);
    if (text[at] === ',') {
      at += 1;
      if (at === text.length) fields.push('');
      continue;
    }
    if (text[at] === '\r') at += 1;
    if (text[at] === '\n') at += 1;
    line += 1;
    end();
  }
  if (fields.length > 0) end();
  return all;
}
