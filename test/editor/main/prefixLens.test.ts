import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import * as path from 'node:path';
import * as vscode from 'vscode';
import { answering, config, openFile, parts, root, setUser, until } from '../extensionUnderTest';

const sample = (name: string) => readFileSync(path.join(root, 'test/fixtures/workspace', name), 'utf8');

async function titles(document: vscode.TextDocument): Promise<{ title: string; line: number }[]> {
  const { prefix } = await parts();
  assert.ok(await prefix.documents.ready(document), `${document.uri.path} is analysed`);
  const lenses = (await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token)) ?? [];
  return lenses.map((lens) => ({ title: lens.command?.title ?? '', line: lens.range.start.line }));
}

const first = async (document: vscode.TextDocument) => (await titles(document))[0]?.title ?? '';

async function replace(document: vscode.TextDocument, from: string, to: string): Promise<void> {
  const at = document.getText().indexOf(from);
  assert.ok(at >= 0, `the text holds ${from}`);
  const edit = new vscode.WorkspaceEdit();
  edit.replace(document.uri, new vscode.Range(document.positionAt(at), document.positionAt(at + from.length)), to);
  assert.ok(await vscode.workspace.applyEdit(edit));
}

describe('the prefix-cache lens', () => {
  it('says nothing about a file that is no prompt file', async () => {
    const { prefix } = await parts();
    assert.equal(await prefix.documents.ready(await openFile('nothing.md', 'Just a note.')), null);
  });

  it('says what can be reused, where it ends and by which rule; the breaker has a lens with what it costs', async () => {
    const document = await openFile('lens.prompty', sample('support.prompty'));
    const all = await titles(document);
    assert.match(all[0]!.title, /^Cache: nothing of (about )?\d+ tokens on vLLM · ends at line 10: \{\{current_time\}\}$/);
    assert.deepEqual(all.slice(1, 3).map(({ title }) => title), ['Prove', 'Rule: vLLM']);
    assert.ok(all.slice(0, 3).every(({ line }) => line === 0));
    assert.match(all[3]!.title, /^\{\{current_time\}\} changes every minute or faster: \d+ static tokens behind it are computed again/);
    assert.equal(all[3]!.line, 9);
  });

  it('is quiet about a file in which nothing changes, and about files that are no prompts', async () => {
    const document = await openFile('quiet.prompt.md', sample('support.prompt.md'));
    const all = await titles(document);
    assert.equal(all.length, 1);
    assert.match(all[0]!.title, /^(about )?\d+ tokens, all static$/);
    assert.deepEqual(vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === 'First Token'), []);
  });

  it('has the right lens on a file of each format of the sample workspace', async () => {
    const expected: Readonly<Record<string, RegExp>> = {
      'support-fixed.prompty': /^Cache: up to (about )?\d+ of \d+ tokens \(9\d %\) on vLLM · ends at line 3\d: \{\{current_time\}\}$/,
      'release.prompt': /^Cache: up to (about )?\d+ of \d+ tokens \(9\d %\) on vLLM · while `changes` keeps its value$/,
      'summary.prompt.yml': /^Cache: up to (about )?\d+ of \d+ tokens \(9\d %\) on vLLM · ends at line \d+: \{\{input\}\}$/,
      'triage.prompt.jinja': /^Cache: .*2 variants · ends at line \d+: \{\{ (ticket_id|message) \}\}$/,
      'request.prompt.json': /^about \d+ tokens, all static, but not cached on Anthropic: the cache_control marker comes before the minimum of 1,024 tokens$/,
    };
    for (const [name, pattern] of Object.entries(expected)) {
      const title = await first(await openFile(name, sample(name)));
      assert.match(title, pattern, `${name}: ${title}`);
    }
  });

  it('follows the rule picked by hand, and the endpoint again', async () => {
    const { handlers } = await parts();
    const document = await openFile('rule.prompty', sample('support-fixed.prompty'));
    await titles(document);
    try {
      await handlers.selectCacheRule('anthropic');
      const all = await titles(document);
      assert.match(all[0]!.title, / on Anthropic/);
      assert.ok(all.some(({ title }) => title === 'Rule: Anthropic'));
    } finally {
      await handlers.selectCacheRule('auto');
    }
    assert.match(await first(document), / on vLLM/);
    const said = await answering({});
    await vscode.commands.executeCommand('firstToken.selectCacheRule', 'no-such-rule');
    assert.match(said[0]?.message ?? '', /no cache rule/);
  });

  it('follows the endpoint’s cache setting', async () => {
    const { endpoints } = await parts();
    await setUser('endpoints', [{ name: 'deep', url: 'http://127.0.0.1:9/v1', cache: 'deepseek' }]);
    try {
      await until(() => endpoints.all().some(({ endpoint }) => endpoint.name === 'deep'), 'the endpoint');
      await endpoints.select('deep');
      assert.match(await first(await openFile('endpoint.prompty', sample('support-fixed.prompty'))), / on DeepSeek/);
    } finally {
      await config().update('endpoints', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('follows the scope, marked variables and the lens settings', async () => {
    const document = await openFile('scope.prompty', sample('support-fixed.prompty').replace('You answer', 'You serve {{user_name}}. You answer'));
    try {
      assert.match(await first(document), /ends at line 3\d: \{\{current_time\}\}/, 'within one user a name does not change');
      await setUser('prefix', { scope: 'everyone' });
      await until(async () => /ends at line 10: \{\{user_name\}\}/.test(await first(document)), 'for everyone the name ends it');
      await setUser('prefix', { scope: 'everyone', variables: { user_name: 'constant' } });
      await until(async () => /\{\{current_time\}\}/.test(await first(document)), 'the variable counts as constant');
      await setUser('lens', { cache: false });
      await until(async () => !(await parts()).settings().lens.cache, 'the setting');
      const { prefix } = await parts();
      assert.deepEqual(await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token), []);
    } finally {
      for (const name of ['prefix', 'lens']) await config().update(name, undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('respects a pragma that switches the file off', async () => {
    const document = await openFile('off.prompty', sample('support.prompty').replace('name: support', '# first-token: off\nname: support'));
    const { prefix } = await parts();
    const view = await prefix.documents.ready(document);
    assert.equal(view?.off, true);
    assert.deepEqual(await prefix.lenses.provider.provideCodeLenses(document, new vscode.CancellationTokenSource().token), []);
    assert.deepEqual(vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === 'First Token'), []);
  });

  it('has diagnostics whose codes open their section of the findings page', async () => {
    const document = await openFile('diagnostics.prompty', sample('support.prompty'));
    await titles(document);
    const own = vscode.languages.getDiagnostics(document.uri).filter(({ source }) => source === 'First Token');
    const clock = own.find(({ code }) => typeof code === 'object' && code.value === 'clock');
    assert.ok(clock, own.map(({ message }) => message).join('\n'));
    assert.equal(clock.severity, vscode.DiagnosticSeverity.Warning);
    assert.equal(document.getText(clock.range), '{{current_time}}');
    const { target } = clock.code as { target: vscode.Uri };
    const line = Number(/^L(\d+)$/.exec(target.fragment)?.[1]);
    const page = await vscode.workspace.openTextDocument(target.with({ fragment: '' }));
    assert.equal(page.lineAt(line - 1).text, '## clock');
  });

  it('tells reason, evidence and the source of the rule on hover', async () => {
    const document = await openFile('hover.prompty', sample('support.prompty'));
    await titles(document);
    const hovers = await vscode.commands.executeCommand<vscode.Hover[]>('vscode.executeHoverProvider', document.uri, new vscode.Position(9, 10));
    const text = hovers.flatMap(({ contents }) => contents.map((content) => (content as vscode.MarkdownString).value)).join('\n');
    assert.match(text, /\{\{current_time\}\}.*changes every minute/);
    assert.match(text, /Evidence: .*level \d of 5/);
    assert.match(text, /Rule vLLM, as of \d{4}-\d\d-\d\d, from the provider’s own documents: /);
  });

  it('goes to the end of the reusable prefix', async () => {
    const document = await openFile('go.prompty', sample('support.prompty'));
    await titles(document);
    await vscode.commands.executeCommand('firstToken.goToBreaker', document.uri);
    assert.equal(vscode.window.activeTextEditor?.selection.active.line, 9);
  });

  it('never shows what belongs to another version: edits while it works, half-typed text, undo', async () => {
    const { prefix } = await parts();
    const document = await openFile('typing.prompty', sample('support.prompty'));
    await titles(document);
    const seen: { version: number; ends: number | null }[] = [];
    const listener = prefix.documents.onDidChange((changed) => {
      if (changed !== document) return;
      const view = prefix.documents.current(document);
      seen.push({ version: document.version, ends: view?.prompts[0]?.ends?.start ?? null });
    });
    try {
      for (const text of ['{', '{{', '{{now', '{{nowhere', '{{nowhere}', '{{nowhere}}']) {
        await replace(document, document.lineAt(10).text, text);
        assert.equal(prefix.documents.current(document), null, 'nothing is known of a text that was not looked at');
      }
      const view = await prefix.documents.ready(document);
      assert.ok(view?.prompts[0]);
      assert.equal(document.getText().slice(view.prompts[0].ends!.start, view.prompts[0].ends!.end), '{{current_time}}');
      assert.equal(seen.at(-1)?.version, document.version);
      await vscode.commands.executeCommand('undo');
      assert.equal(prefix.documents.current(document), null);
      assert.ok(await prefix.documents.ready(document));
    } finally {
      listener.dispose();
    }
  });

  it('keeps the lens of the rest when a part cannot be read, and says where', async () => {
    const document = await openFile('broken.prompty', sample('support-fixed.prompty').replace('user:\n', 'user:\n{% if tier %}\n'));
    assert.match(await first(document), /^Cache: /);
    const own = vscode.languages.getDiagnostics(document.uri).filter(({ source, code }) => source === 'First Token' && typeof code === 'object' && code.value === 'syntax');
    assert.ok(own.length > 0, 'the parse error is a diagnostic');
  });

  it('takes 5 MB, an empty file, zero bytes and a cycle of includes without an exception', async () => {
    const { prefix } = await parts();
    const large = await openFile('large.prompt.md', 'All of it is static text.\n'.repeat(240_000));
    const view = await prefix.documents.ready(large);
    assert.match(view?.findings[0]?.message ?? '', /larger than 5 MB/);
    const empty = await openFile('empty.prompt.md', '');
    assert.ok((await prefix.documents.ready(empty)) !== undefined);
    const binary = await openFile('binary.prompt', 'text more');
    await replace(binary, ' ', '\0');
    assert.match((await prefix.documents.ready(binary))?.findings[0]?.message ?? '', /not text/);
    await setUser('promptFiles', ['**/*.{prompt,prompty,prompt.md,prompt.yml,jinja}']);
    try {
      await openFile('b.jinja', 'B {% include "a.jinja" %}');
      const cycle = await openFile('a.jinja', 'A {% include "b.jinja" %} {{ now() }}');
      assert.ok((await prefix.documents.ready(cycle))?.prompts[0]);
    } finally {
      await config().update('promptFiles', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('follows an included file when that is saved', async () => {
    await setUser('promptFiles', ['**/*.{prompt,prompty,prompt.md,prompt.yml,jinja}']);
    try {
      const { prefix } = await parts();
      await openFile('rules.jinja', 'Always answer politely. '.repeat(20));
      const whole = await openFile('whole.jinja', '{% include "rules.jinja" %} Answer: {{ question }}');
      const before = (await prefix.documents.ready(whole))?.prompts[0]?.total ?? 0;
      const included = await openFile('rules.jinja', 'Always answer politely. '.repeat(20));
      await replace(included, 'Always', 'Always, always, always');
      assert.ok(await included.save());
      await until(async () => ((await prefix.documents.ready(whole))?.prompts[0]?.total ?? 0) > before, 'the longer text is counted');
    } finally {
      await config().update('promptFiles', undefined, vscode.ConfigurationTarget.Global);
    }
  });

  it('shows prompt strings in code, and nothing in code without', async () => {
    const { prefix } = await parts();
    const text = `import datetime\nSYSTEM_PROMPT = f"""You are an assistant. Today is {datetime.datetime.now()}.\n${'Always answer politely and briefly.\n'.repeat(80)}"""\n`;
    const document = await openFile('my_prompt.py', text);
    assert.match(await first(document), /^Cache: .*line 2: \{datetime\.datetime\.now\(\)\}/);
    const plain = await openFile('prompt_math.py', 'def add(a, b):\n    return a + b\n');
    assert.equal((await prefix.documents.ready(plain))?.format, null);
    assert.ok(prefix.withoutPrompt(plain));
  });
});
