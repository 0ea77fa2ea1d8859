/** Applies every fix that is offered for many ways of writing the same prompt, and checks by rendering and linting that each does what it says. */
import assert from 'node:assert/strict';
import { parser as javascript } from '@lezer/javascript';
import { parser as python } from '@lezer/python';
import { parseAllDocuments } from 'yaml';
import { applyEdits, ignoreFixes, markerFixes, placeFixes, type Fix } from '../../../src/prompt/fixes';
import { parseCode } from '../../../src/prompt/format/code';
import { analyseFile, type AnalysedFile } from '../../../src/prompt/lint';
import { parsePromptFile, useCodeReader } from '../../../src/prompt/parse';
import { renderForProbe } from '../../../src/prompt/samples';
import { words } from './pieces';

interface Written {
  readonly path: string;
  readonly text: string;
  /** Files beside it. */
  readonly beside?: Readonly<Record<string, string>>;
}

const rules = words(120, 'rule');
const clocks = { braces: ['{{current_time}}'], jinja: ['{{ current_time }}', '{{ now() }}'], python: ['{datetime.now()}', '{datetime.now():%d.%m.%Y %H:%M Uhr}', '{datetime.now().isoformat()}'], javascript: ['${new Date().toISOString()}', '${new Date().toLocaleString()}'] };
/** The lines of a system message with a clock: on its own line, in a sentence, between quotes, first or not. */
const shapes = (clock: string): readonly (readonly string[])[] => [
  ['You are careful.', `At: ${clock} # x`, rules],
  [`Now ${clock}. ${rules}`],
  [`It's "${clock}" now.`, 'Be kind.', rules],
  [`Time ${clock}`, rules],
];

/** How lines are written as one string of the language; null where they cannot be. */
type Quote = (lines: readonly string[], indent: string) => string | null;
const escaped = (quote: string, prefix = ''): Quote => (lines) => (lines.some((line) => line.includes(quote)) ? null : `${prefix}${quote}${lines.join('\\n')}${quote}`);
const long = (quote: string, prefix = ''): Quote => (lines) => (lines.some((line) => line.endsWith(quote[0]!)) ? null : `${prefix}${quote}${lines.join('\n')}${quote}`);
const yamlBlock = (header: string): Quote => (lines, indent) => `${header}\n${lines.map((line) => `${indent}${line}`).join('\n')}`;
const yamlDouble: Quote = (lines) => `"${lines.join('\\n').replace(/"/g, '\\"')}"`;
const yamlSingle: Quote = (lines) => `'${lines.join(' ').replace(/'/g, "''")}'`;
const yamlPlain: Quote = (lines) => (/: | #|^["'{]/.test(lines.join(' ')) ? null : lines.join(' '));

function* codeFiles(): Generator<Written> {
  const pythonStrings = [long('"""', 'f'), long("'''", 'f'), escaped('"', 'f'), escaped("'", 'f')];
  for (const clock of clocks.python) {
    for (const lines of shapes(clock)) {
      for (const system of pythonStrings.map((quote) => quote(lines, ''))) {
        if (system === null) continue;
        yield { path: 'a.py', text: `SYSTEM_PROMPT = ${system}\n` };
        for (const user of ['"Say hi"', "'Say hi'", 'f"Say hi {name}"', "f'''Say hi {name}'''", 'r"Say hi"', 'name']) {
          yield { path: 'a.py', text: `def build(name):\n    return [{"role": "system", "content": ${system}}, {"role": "user", "content": ${user}}]\n` };
        }
      }
    }
    yield { path: 'a.py', text: `SYSTEM_PROMPT = "\\n".join(["You", f"Now ${clock}", """${rules}\n${rules}"""])\n` };
    yield { path: 'a.py', text: `SYSTEM_PROMPT = (f"Now ${clock}.\\n"\n    "${rules}\\n" f"Hi {name}")\n` };
  }
  for (const clock of clocks.javascript) {
    for (const lines of shapes(clock)) {
      const system = `\`${lines.join('\n')}\``;
      yield { path: 'a.ts', text: `const systemPrompt = ${system};\n` };
      for (const user of ['"Say hi"', "'Say hi'", '`Say hi ${name}`', '`Say hi`', 'name']) {
        yield { path: 'a.ts', text: `const messages = [{ role: 'system', content: ${system} }, { role: 'user', content: ${user} }];\n` };
      }
    }
    yield { path: 'a.ts', text: `const systemPrompt = ["You are", \`Now ${clock}\`, \`${rules}\n${rules}\`].join("\\n");\n` };
  }
}

function* dataFiles(): Generator<Written> {
  const kinds = [yamlBlock('|'), yamlBlock('>-'), yamlDouble, yamlSingle, yamlPlain];
  for (const clock of clocks.jinja) {
    for (const lines of shapes(clock)) {
      for (const system of kinds.map((quote) => quote(lines, '      '))) {
        if (system === null) continue;
        yield { path: 'promptfooconfig.yaml', text: `providers: [x]\nprompts:\n  - ${system}\n` };
        for (const user of kinds.map((quote) => quote(['Hello {{input}}'], '      '))) {
          if (clock === '{{ current_time }}') yield { path: 'a.prompt.yml', text: `messages:\n  - role: system\n    content: ${system}\n  - role: user\n    content: ${user ?? ''}\nmodel: m\n` };
        }
      }
      const chat = JSON.stringify([{ role: 'system', content: lines.join('\n') }, { role: 'user', content: 'Hi {{q}}' }]);
      yield { path: 'chat.json', text: chat, beside: { 'promptfooconfig.yaml': 'prompts: [file://chat.json]\nproviders: [x]\n' } };
      yield { path: 'chain.json', text: JSON.stringify({ _type: 'prompt', input_variables: ['current_time'], template_format: 'jinja2', template: lines.join('\n') }, null, 1) };
      yield { path: 'chain.yaml', text: `_type: prompt\ninput_variables: [current_time]\ntemplate_format: jinja2\ntemplate: |\n  ${lines.join('\n  ')}\n` };
    }
  }
}

function* templateFiles(): Generator<Written> {
  for (const clock of clocks.jinja) {
    for (const lines of shapes(clock)) {
      const body = lines.join('\n');
      yield { path: 'a.j2', text: `${body}\n` };
      yield { path: 'a.njk', text: `${body}\n` };
      yield { path: 'a.prompty', text: `---\nname: x\n---\nsystem:\n${body}\n\nuser:\nHello {{question}}\n` };
      yield { path: 'a.prompty', text: `system:\n${body}\n\nuser:\nHello {{question}}\n` };
      yield { path: 'a.prompty', text: `${body}\n` };
      yield { path: 'child.j2', text: `{% extends 'base.j2' %}{% block head %}\n${lines.slice(0, -1).join('\n')}\nx ${clock}\n{% endblock %}`, beside: { 'base.j2': `{% block head %}x{% endblock %}\n${rules}\n` } };
      const baml = (head: string) => `function F(current_time: string) -> string {\n  client C\n  prompt #"\n    {{ _.role("system") }}\n    ${head}${lines.join('\n    ')}\n    {{ _.role("user") }}\n    Go\n  "#\n}\n`;
      yield { path: 'a.baml', text: baml('') };
      yield { path: 'a.baml', text: baml(`${rules}\n    `) };
    }
  }
  for (const clock of clocks.braces) {
    for (const lines of shapes(clock)) {
      const body = lines.join('\n');
      yield { path: 'a.hbs', text: body };
      yield { path: 'a.mustache', text: body };
      yield { path: 'a.mustache', text: `{{=<% %>=}}${body.replaceAll('{{', '<%').replaceAll('}}', '%>')}` };
      yield { path: 'a.prompt', text: `{{role "system"}}\n${body}\n{{role "user"}}\n{{question}}\n` };
      yield { path: 'a.prompt', text: `---\nmodel: m\n---\n${body}` };
      yield { path: 'a.liquid', text: `${body}\n` };
      yield { path: 'a.poml', text: `<poml><task>${body.replace(/"/g, '')}</task></poml>` };
      yield { path: 'skprompt.txt', text: `<message role="system">${body.replaceAll('{{', '{{$')}</message>\n<message role="user">Hi {{$q}}</message>\n` };
    }
  }
  for (const time of ['{{ strftime_now("%d.%m.%Y um %H:%M Uhr") }}', '{{ strftime_now(\'%d %b\') }}']) yield { path: 'chat_template.jinja', text: `${time}\n${rules}\n{% for message in messages %}{{ message.content }}{% endfor %}` };
  yield { path: '.claude/commands/x.md', text: `!\`date\`\n${rules}\n` };
}

const clockValue = '[1970-01-01 00:00:00]';
/** All that is sent, message by message, without white space. */
const sent = ({ file }: AnalysedFile) => file.prompts.map((_, i) => renderForProbe(file, { current_time: clockValue, question: '[Q]', q: '[Q]', input: '[I]', name: '[N]' }, 0, i).prompt.messages.map(({ role, text }) => ({ role, text: text.replace(/\s+/g, '') })));
const letters = (messages: ReturnType<typeof sent>) => messages.flat().flatMap(({ text }) => Array.from(text)).sort().join('');

function assertReads({ path, text }: Written): void {
  const errors: string[] = [];
  if (/\.json$/.test(path)) JSON.parse(text);
  if (/\.ya?ml$/.test(path)) errors.push(...parseAllDocuments(text).flatMap((one) => ('errors' in one ? one.errors.map(({ message }) => message) : [])));
  const grammar = path.endsWith('.py') ? python : path.endsWith('.ts') ? javascript.configure({ dialect: 'ts' }) : null;
  grammar?.parse(text).iterate({ enter: ({ type, from }) => {
    if (type.isError) errors.push(`syntax at ${from}`);
  } });
  assert.deepEqual(errors, []);
}

/** Before Python 3.12 the quotes of an f-string may not stand in its substitutions. */
const reusesQuotes = (text: string) => /f'(?!'')[^'\n]*\{[^}'\n]*'[^'\n]*'[^}\n]*\}|f"(?!"")[^"\n]*\{[^}"\n]*"[^"\n]*"[^}\n]*\}/.test(text);

function analyse({ path, text, beside }: Written, rule: string): AnalysedFile | null {
  const file = parsePromptFile(text, path, { readFile: (name) => beside?.[name] ?? null });
  return file === null ? null : analyseFile(file, { rule, scope: 'user', minLostTokens: 64, today: '2026-11-30' });
}

const found = (a: AnalysedFile, code: string) => a.findings.filter((f) => f.code === code);
const lostBy = (a: AnalysedFile, text: string) => a.prompts.flatMap(({ report }) => report.places).filter((p) => p.text === text && p.changes).reduce((sum, p) => sum + p.lostTokens, 0);

function checkFix(written: Written, before: AnalysedFile, fix: Extract<Fix, { readonly edits: unknown }>, at: { readonly start: number; readonly text: string; readonly code: string | null; readonly prompt: number }, rule: string): void {
  const text = applyEdits(written.text, fix.edits);
  const after = analyse({ ...written, text }, rule);
  assert.ok(after !== null, 'is still a prompt file');
  assert.equal(after.file.format, before.file.format);
  assertReads({ ...written, text });
  if (written.text.includes('\r\n')) assert.doesNotMatch(text, /(?:^|[^\r])\n/, 'one kind of line ends');
  if (written.path.endsWith('.py') && !reusesQuotes(written.text)) assert.ok(!reusesQuotes(text), 'the quotes of the string stay out of its substitutions');
  const [was, is] = [sent(before), sent(after)];
  switch (fix.kind) {
    case 'ignore':
      if (!fix.title.includes('is sent')) assert.deepEqual(is, was, 'the same is sent');
      if (at.code !== null && fix.title.startsWith('Ignore here')) assert.equal(found(after, at.code).length, found(before, at.code).length - 1, 'the finding is gone');
      if (at.code !== null && fix.title.includes(at.code)) assert.deepEqual(found(after, at.code), []);
      if (fix.title === 'Ignore this file') assert.deepEqual(after.findings, []);
      return;
    case 'move-behind':
    case 'move-to-user': {
      assert.equal(letters(is), letters(was), 'every letter and every value is sent');
      assert.deepEqual(is.map((one) => one.map(({ role }) => role)), was.map((one) => one.map(({ role }) => role)));
      assert.ok(lostBy(after, at.text) < lostBy(before, at.text), 'less is lost');
      const user = (one: typeof is) => one[at.prompt]?.findLast(({ role }) => role === 'user')?.text ?? '';
      if (fix.kind === 'move-to-user') assert.ok(user(is).startsWith(user(was)) && /1970/.test(user(is)), `the value is in the user message: ${user(is).slice(0, 200)}`);
      return;
    }
    case 'coarsen': {
      const place = after.prompts[at.prompt]?.report.places.find(({ start }) => start === at.start);
      assert.equal(place?.judgement.volatility, 'day');
      const times = (one: typeof is) => [...JSON.stringify(one).matchAll(/00:00|Uhr/g)].length;
      assert.ok(JSON.stringify(is).includes('1970') && times(is) < times(was), `only the date is left: ${JSON.stringify(is).slice(0, 200)}`);
      return;
    }
    case 'split':
      assert.equal(is.flat().map((m) => m.text).join(''), was.flat().map((m) => m.text).join(''));
      assert.ok(is[at.prompt]!.every((message) => message.text !== ''), 'no message is empty');
      assert.ok(after.prompts[at.prompt]!.report.sameVariant.reuse.tokens >= before.prompts[at.prompt]!.report.sameVariant.reuse.tokens);
      return;
    default:
      assert.equal(letters(is), letters(was));
  }
}

/** Checks every fix for one file; counts them by kind. */
function checkFile(written: Written, rule: string, counts: Map<string, number>): void {
  const before = analyse(written, rule);
  assert.ok(before !== null && before.prompts.length > 0, `${written.path} is a prompt file:\n${written.text.slice(0, 200)}`);
  before.prompts.forEach(({ index, pieces, report }) => {
    const context = { file: before.file, prompt: before.file.prompts[index]!, pieces, report };
    const check = (fix: Fix, at: { readonly start: number; readonly text: string; readonly code: string | null }) => {
      if (!('edits' in fix)) return;
      counts.set(fix.kind, (counts.get(fix.kind) ?? 0) + 1);
      try {
        checkFix(written, before, fix, { ...at, prompt: index }, rule);
      } catch (error) {
        assert.fail(`${written.path} on ${rule}: “${fix.title}”: ${error instanceof Error ? error.message : String(error)}\n${written.text.replaceAll(rules, 'RULES')}\n--- becomes\n${applyEdits(written.text, fix.edits).replaceAll(rules, 'RULES')}`);
      }
    };
    for (const place of report.places) {
      const code = before.findings.find((f) => f.start === place.start && f.evidence !== 'structure')?.code ?? null;
      for (const fix of placeFixes(place, context, code)) check(fix, { start: place.start, text: place.text, code });
    }
    for (const finding of before.findings.filter((f) => f.evidence === 'structure' && f.code !== 'byte-order-mark')) {
      for (const fix of ignoreFixes(before.file, finding, finding.code)) check(fix, { start: finding.start, text: finding.text, code: finding.code });
    }
    for (const fix of markerFixes(context)) check(fix, { start: 0, text: '', code: null });
  });
}

describe('every fix that is offered does what it says', () => {
  const all: readonly (readonly [string, () => Generator<Written>, readonly string[], Readonly<Record<string, number>>])[] = [
    ['strings of code', codeFiles, ['vllm'], { 'move-behind': 80, 'move-to-user': 30, coarsen: 150, ignore: 400 }],
    ['YAML and JSON', dataFiles, ['vllm', 'openai-5.6'], { 'move-behind': 80, 'move-to-user': 80, ignore: 300, split: 4 }],
    ['templates', templateFiles, ['vllm', 'anthropic'], { 'move-behind': 60, 'move-to-user': 20, coarsen: 15, split: 8, ignore: 400 }],
  ];
  for (const [what, files, ruleIds, least] of all) {
    it(what, () => {
      useCodeReader(parseCode);
      const counts = new Map<string, number>();
      for (const [i, written] of [...files()].entries()) {
        for (const rule of ruleIds) checkFile(written, rule, counts);
        if (i % 5 === 0) checkFile({ ...written, text: written.text.replaceAll('\n', '\r\n') }, 'vllm', counts);
      }
      for (const [kind, number] of Object.entries(least)) assert.ok((counts.get(kind) ?? 0) >= number, `${kind}: ${counts.get(kind) ?? 0} of at least ${number} were tried`);
    }).timeout(120_000);
  }
});
