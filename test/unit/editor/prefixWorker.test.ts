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
    const worker = start({ script: dying, patience: 300 });
    await assert.rejects(worker.ask({ type: 'requests', text: '' }), /thread ended/);
    assert.ok(logged.some((text) => text.includes('boom')));
    await assert.rejects(worker.ask({ type: 'rules', judge }), /No answer within 0\.3 s/);
    assert.ok(logged.some((text) => text.includes('no answer to "rules"')));
    worker.dispose();
    await assert.rejects(worker.ask({ type: 'rules', judge }), /has ended/);
  });
});
