import assert from 'node:assert/strict';
import * as vscode from 'vscode';
import { config, openFile, parts, until } from '../extensionUnderTest';

const rules = 'Always answer politely and briefly, in the language of the question.\n'.repeat(60);

interface Case {
  readonly name: string;
  readonly text: string;
  /** The text to put the cursor on. */
  readonly at: string;
  readonly title: RegExp;
  /** Picked by hand for the case. */
  readonly rule?: string;
  /** What must hold of the new text and its analysis. */
  readonly then: (text: string, view: NonNullable<Awaited<ReturnType<typeof viewOf>>>) => void;
}

const prompty = (top: string, user = '{{question}}') => `---\nname: x\n---\nsystem:\n${top}${rules}\nuser:\n${user}\n`;
const endsAt = (text: string, view: { readonly prompts: readonly { readonly ends: { readonly start: number; readonly end: number } | null }[] }) => {
  const ends = view.prompts[0]?.ends;
  return ends ? text.slice(ends.start, ends.end) : null;
};

const cases: readonly Case[] = [
  {
    name: 'move-behind.prompty',
    text: prompty('It is {{current_time}}.\n'),
    at: '{{current_time}}',
    title: /^Move the line behind the static text$/,
    then: (text, view) => {
      assert.ok(text.indexOf('{{current_time}}') > text.indexOf('Always answer'));
      assert.ok(view.prompts[0]!.reusable > 500, `${view.prompts[0]!.reusable} tokens`);
      assert.deepEqual(view.lenses, []);
    },
  },
  {
    name: 'move-to-user.prompty',
    text: prompty('It is {{current_time}}.\n'),
    at: '{{current_time}}',
    title: /^Move the line into the last user message$/,
    then: (text) => assert.match(text, /user:\n\{\{question\}\}\nIt is \{\{current_time\}\}\./),
  },
  {
    name: 'split.prompty',
    text: prompty(rules.repeat(2), 'Ask.').replace('\nuser:', 'The customer asks: {{question}}\n\nuser:'),
    at: '{{question}}',
    rule: 'openai-5.6',
    title: /^End the message before this line/,
    then: (text, view) => {
      assert.match(text, /\nuser:\nThe customer asks: \{\{question\}\}/);
      assert.ok(view.prompts[0]!.reusable > 500, `${view.prompts[0]!.reusable} tokens`);
    },
  },
  {
    name: 'ignore-here.prompty',
    text: prompty('It is {{current_time}}.\n'),
    at: '{{current_time}}',
    title: /^Ignore here$/,
    then: (_text, view) => {
      assert.ok(!view.findings.some(({ code }) => code === 'clock'));
      assert.deepEqual(view.lenses, []);
    },
  },
  ...(
    [
      ['ignore-here.prompt.yml', `messages:\n  - role: system\n    content: |\n      Hello.\n      It is {{current_time}}.\n${rules.replace(/^(?=.)/gm, '      ')}\n  - role: user\n    content: "{{question}}"\n`, '{{current_time}}', /content: \| # first-token: ignore-line clock\n {6}Hello/],
      ['ignore_here_prompt.py', `from datetime import datetime\n\nPROMPT = f"""Hello.\nIt is {datetime.now()}.\n${rules}"""\n`, '{datetime.now()}', /\n# first-token: ignore-line clock\nPROMPT = f"""Hello/],
      ['ignore_here_prompt.ts', `export const prompt = \`Hello.\nIt is \${new Date()}.\n${rules}\`;\n`, '${new Date()}', /^\/\/ first-token: ignore-line clock\nexport const prompt/],
      ['.claude/commands/ignore-here.md', `It is !\`date\`.\n${rules}`, '!`date`', /!`date`<!-- first-token: ignore-line command -->\.\n/],
    ] as const
  ).map(
    ([name, text, at, after]): Case => ({
      name,
      text,
      at,
      title: name.endsWith('.md') ? /^Ignore here \(the comment is sent with the prompt\)$/ : /^Ignore here$/,
      then: (changed, view) => {
        assert.match(changed, after);
        assert.ok(!view.findings.some(({ code }) => code === 'clock' || code === 'command'), name);
        assert.deepEqual(view.lenses, [], name);
      },
    }),
  ),
  {
    name: 'ignore-code.prompty',
    text: prompty('It is {{current_time}}.\n'),
    at: '{{current_time}}',
    title: /^Ignore clock in this file$/,
    then: (text, view) => {
      assert.match(text, /^---\n# first-token: ignore clock\n/);
      assert.ok(!view.findings.some(({ code }) => code === 'clock'));
    },
  },
  {
    name: 'ignore-file.prompty',
    text: prompty('It is {{current_time}}.\n'),
    at: '{{current_time}}',
    title: /^Ignore this file$/,
    then: (_text, view) => assert.ok(view.off),
  },
  {
    name: 'sort.prompt.json',
    text: `${JSON.stringify({ model: 'gpt-5.6', tools: ['zebra', 'apple'].map((name) => ({ type: 'function', function: { name, parameters: {} } })), messages: [{ role: 'system', content: rules }, { role: 'user', content: 'Hello' }] }, null, 1)}\n`,
    at: '"apple"',
    title: /^Sort the tools by name$/,
    then: (text, view) => {
      assert.ok(text.indexOf('apple') < text.indexOf('zebra'));
      assert.ok(!view.findings.some(({ code }) => code === 'unsorted-tools'));
    },
  },
];

async function viewOf(document: vscode.TextDocument) {
  return await (await parts()).prefix.documents.ready(document);
}

async function actionsAt(document: vscode.TextDocument, text: string): Promise<vscode.CodeAction[]> {
  const at = document.getText().indexOf(text);
  assert.ok(at >= 0, `the file holds ${text}`);
  const range = new vscode.Range(document.positionAt(at), document.positionAt(at + text.length));
  return await vscode.commands.executeCommand<vscode.CodeAction[]>('vscode.executeCodeActionProvider', document.uri, range);
}

/** As the user's confirmation in the preview would: every part of the edit. */
async function apply(action: vscode.CodeAction): Promise<void> {
  const confirmed = new vscode.WorkspaceEdit();
  for (const [uri, edits] of action.edit?.entries() ?? []) confirmed.set(uri, edits);
  assert.ok(confirmed.size > 0, 'the action has an edit');
  assert.ok(await vscode.workspace.applyEdit(confirmed));
}

describe('quick fixes in the editor', () => {
  afterEach(async () => {
    await (await parts()).handlers.selectCacheRule('auto');
  });

  for (const { name, text, at, title, rule, then } of cases) {
    it(`${title.source.replaceAll(/[\^$\\]/g, '')}, ${name}: applied and analysed again`, async () => {
      const document = await openFile(name, text);
      if (rule !== undefined) await (await parts()).handlers.selectCacheRule(rule);
      assert.ok((await viewOf(document))?.prompts[0], 'a prompt');
      const actions = await actionsAt(document, at);
      const action = actions.find((one) => title.test(one.title));
      assert.ok(action, `${String(title)} among ${actions.map((one) => one.title).join(' | ')}`);
      await apply(action);
      const view = await viewOf(document);
      assert.ok(view);
      then(document.getText(), view);
    });
  }

  it('Use the date without the time of day: applied and analysed again', async () => {
    const document = await openFile('coarse_prompt.jinja', `Now: {{ now().strftime('%Y-%m-%d %H:%M') }}\n${rules}{{ question }}`);
    assert.ok((await viewOf(document))?.findings.some((finding) => finding.class === 'minute'));
    const actions = await actionsAt(document, '{{ now');
    const action = actions.find((one) => one.title === 'Use the date without the time of day');
    assert.ok(action, actions.map((one) => one.title).join(' | '));
    await apply(action);
    assert.match(document.getText(), /strftime\('%Y-%m-%d'\)/);
    assert.ok((await viewOf(document))?.findings.every((finding) => finding.class !== 'minute'));
  });

  it('Add a marker: applied and analysed again', async () => {
    await (await parts()).handlers.selectCacheRule('anthropic');
    const document = await openFile('marker.prompt.json', `${JSON.stringify({ model: 'claude-sonnet-4-5', max_tokens: 100, system: rules.repeat(3), messages: [{ role: 'user', content: 'Hello' }] }, null, 1)}\n`);
    const before = await viewOf(document);
    assert.ok(before?.prompts[0]);
    const actions = await actionsAt(document, 'Always answer');
    const action = actions.find((one) => one.title.startsWith('Add a cache_control marker'));
    assert.ok(action, actions.map((one) => one.title).join(' | '));
    await apply(action);
    assert.match(document.getText(), /"cache_control": \{"type": "ephemeral"\}/);
    JSON.parse(document.getText());
  });

  it('Mark a variable: writes firstToken.prefix.variables of the workspace, and the file is judged by it', async () => {
    const document = await openFile('classify.prompty', prompty('It is {{current_time}}.\n'));
    await viewOf(document);
    const action = (await actionsAt(document, '{{current_time}}')).find((one) => one.title.startsWith('Mark current_time as constant'));
    assert.ok(action?.command);
    try {
      await vscode.commands.executeCommand(action.command.command, ...(action.command.arguments as unknown[]));
      assert.deepEqual(config().inspect<{ variables: unknown }>('prefix')?.workspaceValue?.variables, { current_time: 'constant' });
      await until(async () => endsAt(document.getText(), (await viewOf(document))!) === '{{question}}', 'the file is judged again');
    } finally {
      await config().update('prefix', undefined, vscode.ConfigurationTarget.Workspace);
    }
  });

  it('offers fixes as quick fixes of their finding, and nothing for another version', async () => {
    const document = await openFile('kinds.prompty', prompty('It is {{current_time}}.\n'));
    await viewOf(document);
    const actions = await actionsAt(document, '{{current_time}}');
    const move = actions.find((one) => one.title.startsWith('Move the line behind'));
    assert.equal(move?.kind?.value, vscode.CodeActionKind.QuickFix.value);
    const rows = move.edit?.get(document.uri) ?? [];
    assert.equal(rows.length, 2, 'what goes and what comes, and no empty row');
    assert.ok(rows.every(({ range, newText }) => !range.isEmpty || newText !== ''));
    const { prefix } = await parts();
    assert.equal(await prefix.worker.ask({ type: 'fixes', uri: document.uri.toString(), version: document.version + 1, start: 0, end: 100 }), null);
  });
});
