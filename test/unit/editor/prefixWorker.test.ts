import assert from 'node:assert/strict';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { build } from 'esbuild';
import type { JudgeBy, ScannedFile } from '../../../src/editor/prefixMessages';
import { createPrefixWorker, type PrefixWorker } from '../../../src/editor/prefixWorker';

const judge: JudgeBy = { target: {}, overrides: {}, scope: 'user', variables: {}, minLostTokens: 256, today: '2026-12-01', cost: { prefillRate: null, price: null }, tokenizer: null, tokens: 'auto', chatTemplate: null };
const rules = 'Always answer politely and briefly, in the language of the question.\n'.repeat(60);
const clock = `---\nname: x\n---\nsystem:\nIt is {{current_time}}.\n${rules}\nuser:\n{{question}}\n`;

describe('the analysis thread', function () {
  this.timeout(60_000);
  const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-thread-'));
  const script = path.join(folder, 'prefix.js');
  const workers: PrefixWorker[] = [];
  const logged: string[] = [];
  const start = (options: { readonly script?: string; readonly patience?: number } = {}): PrefixWorker => {
    const worker = createPrefixWorker({ script, log: (text) => logged.push(text), ...options });
    workers.push(worker);
    return worker;
  };
  const source = (text: string, name = 'a.prompty', root: string | null = folder) => ({ uri: name, path: path.join(folder, name), root, text });

  before(async () => {
    const root = path.resolve(__dirname, '../../..');
    await build({ entryPoints: [path.join(root, 'src/editor/prefixThread.ts')], outfile: script, bundle: true, platform: 'node', format: 'cjs', target: 'node20', mainFields: ['module', 'main'], logLevel: 'silent' });
  });
  afterEach(() => {
    for (const worker of workers.splice(0)) worker.dispose();
    logged.length = 0;
  });
  after(() => rmSync(folder, { recursive: true, force: true }));

  it('is not started before the first question', async () => {
    const worker = start();
    assert.equal(worker.started, false);
    const view = await worker.ask({ type: 'analyse', source: source(clock), version: 1, judge });
    assert.equal(worker.started, true);
    assert.equal(view.source, 'o200k');
    assert.match(view.prompts[0]?.sentence ?? '', /ends at line 5/);
  });

  it('gives fixes for the version it has looked at, and null for any other', async () => {
    const worker = start();
    await worker.ask({ type: 'analyse', source: source(clock), version: 7, judge });
    const at = clock.indexOf('{{current_time}}');
    assert.ok(((await worker.ask({ type: 'fixes', uri: 'a.prompty', version: 7, start: at, end: at })) ?? []).length > 3);
    assert.equal(await worker.ask({ type: 'fixes', uri: 'a.prompty', version: 8, start: at, end: at }), null);
    assert.equal(await worker.ask({ type: 'fixes', uri: 'other', version: 7, start: at, end: at }), null);
  });

  it('reads included files inside the root only', async () => {
    writeFileSync(path.join(folder, 'beside.jinja'), 'BESIDE '.repeat(50));
    writeFileSync(path.join(os.tmpdir(), 'first-token-outside.jinja'), 'OUTSIDE '.repeat(50));
    const worker = start();
    const total = async (text: string, root: string | null) => (await worker.ask({ type: 'analyse', source: source(text, 'x_prompt.jinja', root), version: 1, judge })).prompts[0]?.total ?? 0;
    try {
      assert.ok((await total('{% include "beside.jinja" %} x', folder)) > 40);
      assert.ok((await total('{% include "../first-token-outside.jinja" %} x', folder)) < 10);
      assert.ok((await total('{% include "beside.jinja" %} x', null)) < 10);
    } finally {
      rmSync(path.join(os.tmpdir(), 'first-token-outside.jinja'));
    }
  });

  it('uses a tokenizer.json and a chat template that are set, and says what is wrong with them', async () => {
    const worker = start();
    const wrong = await worker.ask({ type: 'analyse', source: source(clock), version: 1, judge: { ...judge, tokenizer: path.join(folder, 'none.json'), chatTemplate: path.join(folder, 'none.jinja'), overrides: { vllm: { granularity: 'x' } } } });
    assert.equal(wrong.problems.length, 3, wrong.problems.join('\n'));
    assert.equal(wrong.source, 'o200k', 'it goes on with the estimate');
    writeFileSync(path.join(folder, 'chat_template.jinja'), '{% for m in messages %}{% if loop.first %}Today is {{ strftime_now("%d %B %Y") }}.\n{% endif %}{{ m.content }}{% endfor %}');
    const dated = await worker.ask({ type: 'analyse', source: source(clock), version: 2, judge: { ...judge, chatTemplate: path.join(folder, 'chat_template.jinja') } });
    assert.match(dated.prompts[0]?.sentence ?? '', /the chat template writes the date before it/);
    const beside = await worker.ask({ type: 'analyse', source: source(clock), version: 3, judge });
    assert.match(beside.prompts[0]?.sentence ?? '', /the chat template writes the date before it/, 'a chat_template.jinja beside the file counts too');
    const elsewhere = await worker.ask({ type: 'analyse', source: source(clock, 'none/a.prompty'), version: 4, judge });
    assert.doesNotMatch(elsewhere.prompts[0]?.sentence ?? '', /chat template/);
  });

  it('counts by what the endpoint said once it has said all, and finds the date in what its chat template rendered', async () => {
    const worker = start();
    const at = source(clock, 'none/b.prompty');
    const wanted = await worker.ask({ type: 'texts', source: at, judge, known: [] });
    assert.ok(wanted && wanted.texts.length > 1 && !wanted.hosted);
    assert.match(wanted.requests[0]?.prompt.messages[0]?.text ?? '', /^It is /);
    assert.notDeepEqual(wanted.requests[0]?.later, wanted.requests[0]?.prompt, 'and as a later request would send it');
    const tokens = wanted.texts.map((text) => [text, text.length] as const);
    assert.deepEqual((await worker.ask({ type: 'texts', source: at, judge, known: tokens }))?.texts, []);
    const counted = { tokens, sent: [{ total: 99_999, common: 7, marks: null }], rendered: `<|start|>Current date: ${new Date().toISOString().slice(0, 10)}\nx`, by: 'vllm /tokenize' };
    const partly = await worker.ask({ type: 'analyse', source: at, version: 1, judge, counted: { ...counted, tokens: tokens.slice(1) } });
    assert.deepEqual([partly.source, partly.exact], ['o200k', false], 'two tokenizers are never added up');
    const view = await worker.ask({ type: 'analyse', source: at, version: 1, judge, counted });
    assert.deepEqual([view.source, view.exact], ['endpoint', true]);
    const { total, sentence = '', details = [] } = view.prompts[0] ?? {};
    assert.equal(total, 99_999, 'the tokens are those of the request as it is sent');
    assert.match(sentence, /^Cache: nothing of 99,999 tokens on vLLM.*the chat template writes the date before it/);
    assert.ok(details.some((line) => line.startsWith('As it is sent: 99,999 tokens, ')), details.join('\n'));
    assert.ok(details.includes('Tokens: counted by the endpoint (vllm /tokenize).'), details.join('\n'));
    const quiet = await worker.ask({ type: 'analyse', source: source('Only static text.', 'none/x.prompt.md'), version: 1, judge, counted: { ...counted, tokens: [['Only static text.', 3]] } });
    assert.doesNotMatch(quiet.prompts[0]?.sentence ?? '', /chat template/, 'instructions of an editor are not sent to the endpoint as they are');
  });

  it('does not ask who cannot count, need not, or must not', async () => {
    const worker = start();
    const asks = async (more: Partial<JudgeBy>, text = clock) => (await worker.ask({ type: 'texts', source: source(text), judge: { ...judge, ...more }, known: [] })) !== null;
    assert.equal(await asks({}), true, 'what is not detected yet may count');
    assert.equal(await asks({ target: { server: 'llamacpp' } }), true);
    assert.equal(await asks({ target: { server: 'ollama' } }), false);
    assert.equal(await asks({ tokens: 'local' }), false);
    assert.equal(await asks({ tokenizer: path.join(folder, 'tokenizer.json') }), false);
    assert.equal(await asks({ target: { dialect: 'anthropic' } }), false);
    assert.equal(await asks({ target: { server: 'anthropic' }, tokens: 'endpoint' }), true);
    assert.equal(await asks({}, clock.replace('name: x', '# first-token: off\nname: x')), false);
  });

  it('scans a folder in the background: questions come between, and a cancellation ends it', async () => {
    for (let i = 0; i < 200; i += 1) {
      mkdirSync(path.join(folder, 'many', `d${i % 7}`), { recursive: true });
      writeFileSync(path.join(folder, 'many', `d${i % 7}`, `p${i}.prompty`), clock);
    }
    const worker = start();
    const order: string[] = [];
    const found: ScannedFile[] = [];
    const scanning = worker.ask({ type: 'scan', roots: [path.join(folder, 'many')], globs: ['**/*.prompty'], most: 5000, judge }, { onFiles: (files) => found.push(...files) }).then((result) => (order.push('scan'), result));
    await worker.ask({ type: 'analyse', source: source(clock), version: 1, judge });
    order.push('analysis');
    assert.deepEqual(await scanning, { found: 200, complete: true });
    assert.deepEqual(order, ['analysis', 'scan']);
    assert.equal(found.length, 200);
    assert.ok(found.every(({ warnings }) => warnings === 1));
    const abort = new AbortController();
    const stopped = worker.ask({ type: 'scan', roots: [path.join(folder, 'many')], globs: ['**/*.prompty'], most: 5000, judge }, { signal: abort.signal });
    abort.abort();
    const result = await stopped;
    assert.equal(result.complete, false);
    assert.ok(result.found < 200);
    assert.equal((await worker.ask({ type: 'scan', roots: [path.join(folder, 'many')], globs: ['**/*.prompty'], most: 10, judge })).found, 10);
    assert.equal((await worker.ask({ type: 'scan', roots: [path.join(folder, 'nowhere')], globs: ['**'], most: 10, judge })).found, 0);
  });

  it('comes back after it has died, and gives up on a question that takes too long', async () => {
    const dying = path.join(folder, 'dying.js');
    writeFileSync(dying, `require('node:worker_threads').parentPort.on('message', ({ question }) => { if (question.type === 'requests') throw new Error('boom'); });`);
    const mortal = start({ script: dying });
    await assert.rejects(mortal.ask({ type: 'requests', text: '' }), /thread ended/);
    await assert.rejects(mortal.ask({ type: 'requests', text: '' }), /thread ended/);
    assert.ok(logged.some((text) => text.includes('boom')));
    mortal.dispose();
    const worker = start({ script: dying, patience: 300 });
    await assert.rejects(worker.ask({ type: 'rules', judge }), /No answer within 0\.3 s/);
    assert.ok(logged.some((text) => text.includes('no answer to "rules"')));
    worker.dispose();
    await assert.rejects(worker.ask({ type: 'rules', judge }), /has ended/);
  });
});
