import { readdirSync, readFileSync, statSync } from 'node:fs';
import path from 'node:path';
import { exitCode, oneOf, parse, UsageError, type Command } from './command';
import { note, print } from './output';
import { readWorkspaceSettings } from './settings';
import { pathToFileURL } from 'node:url';
import { version } from '../../package.json';

const scopes = ['conversation', 'user', 'everyone'] as const;
const skippedFolders = new Set(['node_modules', '.git', 'dist', 'out', '.venv', '__pycache__']);

/** `first-token lint`: how much of each prompt file a prefix cache can reuse and what breaks it; exit code 1 when there is a warning. */
export const lintCommand: Command = {
  summary: 'What breaks the prefix cache in prompt files, for people and for CI',
  usage: `first-token lint FILES… [--rule RULE] [--model MODEL] [--scope conversation|user|everyone] [--json | --sarif]

  FILES      prompt files, or folders to search for them
  --rule     the cache to judge by: vllm, sglang, llamacpp, openai, openai-5.6, anthropic, gemini … (default vllm)
  --model    the model, where minimums differ by model
  --scope    who should share the prefix (default from firstToken.prefix, else user)
  --json     one JSON array, one object a file in argument order
  --sarif    SARIF 2.1.0, for code scanning

Exit code: 0 no warning, 1 a warning, 2 a file could not be read or the arguments are wrong.`,
  async run({ args, cwd }) {
    const { values, positionals } = parse(args, {
      rule: { type: 'string' },
      model: { type: 'string' },
      scope: { type: 'string' },
      json: { type: 'boolean' },
      sarif: { type: 'boolean' },
    }, { most: 100_000, least: 1, what: 'the files to lint' });
    const { lintFile, isPromptPath, prepare, ruleIds } = await import('../prompt/index');
    const rule = values.rule ?? 'vllm';
    if (!ruleIds().includes(rule)) throw new UsageError(`--rule takes ${ruleIds().join(', ')}; got "${rule}".`);
    const settings = readWorkspaceSettings(cwd);
    const prefix = (settings.values['prefix'] ?? {}) as { scope?: string; variables?: Record<string, string>; minLostTokens?: number };
    const scope = oneOf('--scope', values.scope, scopes) ?? oneOf(`firstToken.prefix.scope in ${settings.file}`, prefix.scope, scopes) ?? 'user';

    const files = positionals.flatMap((given) => expand(path.resolve(cwd, given), given, isPromptPath));
    await prepare(files.map((f) => f.shown));
    if (files.length === 0) note(`No prompt file in ${positionals.join(', ')}.`);
    const readFile = (file: string): string | null => {
      try {
        return readFileSync(path.resolve(cwd, file), 'utf8');
      } catch {
        return null;
      }
    };
    let unreadable = 0;
    const results = [];
    for (const { shown, absolute } of files) {
      let bytes: Buffer;
      try {
        bytes = readFileSync(absolute);
      } catch (error) {
        note(`${shown} cannot be read: ${(error as Error).message}.`);
        unreadable += 1;
        continue;
      }
      results.push(lintFile(bytes, shown, {
        rule,
        model: values.model ?? null,
        scope,
        readFile,
        variables: prefix.variables ?? {},
        ...(prefix.minLostTokens === undefined ? {} : { minLostTokens: prefix.minLostTokens }),
        today: new Date(),
      }));
    }
    if (values.json) await print(`${JSON.stringify(results, null, 2)}\n`);
    else if (values.sarif) await print(`${JSON.stringify(sarif(results, cwd), null, 2)}\n`);
    else await print(results.map(inWords).join('\n') + '\n');
    if (unreadable > 0) return exitCode.usage;
    return results.some((r) => r.findings.some((f) => f.severity === 'warning')) ? 1 : exitCode.ok;
  },
};

interface Linted {
  readonly file: string;
  readonly format: string;
  readonly rule: string;
  readonly scope: string;
  readonly tokens: { readonly total: number; readonly commonPrefix: number; readonly reusable: number; readonly source: string };
  readonly findings: readonly { readonly code: string; readonly severity: 'warning' | 'information' | 'hint'; readonly start: number; readonly end: number; readonly line: number; readonly message: string }[];
}

function expand(absolute: string, shown: string, isPromptPath: (path: string) => boolean): { shown: string; absolute: string }[] {
  let folder = false;
  try {
    folder = statSync(absolute).isDirectory();
  } catch {
    return [{ shown, absolute }];
  }
  if (!folder) return [{ shown, absolute }];
  return readdirSync(absolute, { withFileTypes: true })
    .sort((a, b) => (a.name < b.name ? -1 : 1))
    .flatMap((entry) => {
      const below = path.join(absolute, entry.name);
      const name = path.join(shown, entry.name);
      if (entry.isDirectory()) return skippedFolders.has(entry.name) ? [] : expand(below, name, isPromptPath);
      return entry.isFile() && isPromptPath(below) ? [{ shown: name, absolute: below }] : [];
    });
}

function inWords(result: Linted): string {
  const n = (value: number): string => value.toLocaleString('en-US');
  const { total, reusable, commonPrefix, source } = result.tokens;
  const head = `${result.file} (${result.format}): ${n(reusable)} of ${source === 'bytes/4' ? 'about ' : ''}${n(total)} tokens reusable on ${result.rule} for the same ${result.scope}${commonPrefix === reusable ? '' : `, common prefix ${n(commonPrefix)}`}`;
  return [head, ...result.findings.map((f) => `  ${result.file}:${f.line}  ${f.severity}  ${f.message}  [${f.code}]`)].join('\n');
}

/** SARIF 2.1.0 (OASIS), with byte offsets as regions of bytes and lines from 1. */
function sarif(results: readonly Linted[], cwd: string): unknown {
  const level = { warning: 'warning', information: 'note', hint: 'note' } as const;
  const codes = [...new Set(results.flatMap((r) => r.findings.map((f) => f.code)))].sort();
  return {
    $schema: 'https://json.schemastore.org/sarif-2.1.0.json',
    version: '2.1.0',
    runs: [
      {
        tool: { driver: { name: 'First Token', version, rules: codes.map((id) => ({ id })) } },
        originalUriBaseIds: { FOLDER: { uri: `${pathToFileURL(cwd).href}/` } },
        results: results.flatMap((r) =>
          r.findings.map((f) => ({
            ruleId: f.code,
            level: level[f.severity],
            message: { text: f.message },
            locations: [
              {
                physicalLocation: {
                  artifactLocation: path.isAbsolute(r.file) ? { uri: pathToFileURL(r.file).href } : { uri: r.file.split(path.sep).map(encodeURIComponent).join('/'), uriBaseId: 'FOLDER' },
                  region: { startLine: f.line, byteOffset: f.start, byteLength: f.end - f.start },
                },
              },
            ],
          })),
        ),
      },
    ],
  };
}
