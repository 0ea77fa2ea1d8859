import assert from 'node:assert/strict';
import { mkdirSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { aboutUnnamed, searchPrompts } from '../../../src/cli/promptSearch';
import { temporaryFolder, terminal } from './terminal';

describe('the prompt files of a folder', () => {
  const folder = temporaryFolder();
  const write = (name: string, text: string) => {
    mkdirSync(path.dirname(path.join(folder.path, name)), { recursive: true });
    writeFileSync(path.join(folder.path, name), text);
  };
  const request = JSON.stringify({ model: 'm', messages: [{ role: 'user', content: 'Hello' }] });
  const bot = `from datetime import datetime\ndef build(q):\n    return f"""You are a bot.\nNow: {datetime.now()}\n${'Answer politely and briefly, in the language of the question.\n'.repeat(60)}"""\n`;

  before(() => {
    write('app/anthropic-cached.json', request);
    write('app/chat.json', request);
    write('app/triage.jinja2', 'You triage tickets. {{ ticket }}');
    write('app/bot.py', bot);
    write('app/claims.prompt.md', 'Greet {{customer_name}}.');
    write('app/reply.prompty', '---\nname: a\n---\nsystem:\nHi\n');
    write('app/persona.txt', 'You are a pirate.');
    write('app/other.json', '{"messages": {"a": "b"}}');
    write('app/node_modules/x/chat.json', request);
    write('sk/prompts/sum/skprompt.txt', 'Sum up {{$input}}.');
    write('sk/prompts/sum/config.json', '{"schema": 1, "execution_settings": {}}');
    mkdirSync(path.join(folder.path, 'empty'));
  });
  after(() => folder.dispose());

  it('are those with a telling name, and requests and templates by content; the rest is named', () => {
    const { files, unnamed } = searchPrompts(['app'], folder.path, undefined);
    assert.deepEqual(files.map(({ shown }) => path.basename(shown)), ['anthropic-cached.json', 'chat.json', 'claims.prompt.md', 'reply.prompty', 'triage.jinja2']);
    assert.deepEqual(unnamed.map((name) => path.basename(name)), ['bot.py', 'persona.txt']);
    assert.match(aboutUnnamed(unnamed) ?? '', /^2 more files hold prompts by content but not by name: .*bot\.py, .*persona\.txt\. Name them, or add a pattern to firstToken\.promptFiles/);
    assert.equal(aboutUnnamed([]), null);
  });

  it('follow firstToken.promptFiles, and what is named is always taken', () => {
    assert.deepEqual(searchPrompts(['app'], folder.path, ['**/bot.py', '!**/*.md']).unnamed.map((name) => path.basename(name)), ['persona.txt']);
    assert.ok(searchPrompts(['app'], folder.path, ['**/bot.py']).files.some(({ shown }) => shown.endsWith('bot.py')));
    assert.deepEqual(searchPrompts(['app/bot.py', 'nowhere'], folder.path, undefined).files.map(({ shown }) => shown), ['app/bot.py', 'nowhere']);
  });

  it('leave out the settings of Semantic Kernel, which are read with its prompt', () => {
    assert.deepEqual(searchPrompts(['sk'], folder.path, undefined).files.map(({ shown }) => path.basename(shown)), ['skprompt.txt']);
  });

  it('are said in the terminal: what was left out, and an error where nothing is', async () => {
    const linted = await terminal(['lint', 'app'], { cwd: folder.path }).ended;
    assert.equal(linted.code, 0);
    assert.match(linted.stderr, /2 more files hold prompts by content/);
    assert.match(linted.stdout, /sent as written, as this format has no variables: \{\{customer_name\}\}/);
    const named = await terminal(['lint', 'app/bot.py'], { cwd: folder.path }).ended;
    assert.equal(named.code, 1);
    assert.match(named.stdout, /warning .*\[clock\]/);
    write('.vscode/settings.json', '{"firstToken.promptFiles": ["**/bot.py"]}');
    assert.equal((await terminal(['lint', 'app'], { cwd: folder.path }).ended).code, 1);
    const empty = await terminal(['lint', 'empty', '--json'], { cwd: folder.path }).ended;
    assert.deepEqual([empty.code, empty.stdout.trim()], [2, '[]']);
    assert.match(empty.stderr, /No prompt file in empty, so nothing was linted\./);
  });
});
