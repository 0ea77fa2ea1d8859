import assert from 'node:assert/strict';
import { mkdtempSync, readFileSync, readdirSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { createReportStore, type ReportStore } from '../../../src/editor/reportStore';
import { buildReport, serialiseFinal, serialiseHeader, type Report } from '../../../src/report/report';

function report(id: string, createdAt: string): Report {
  return buildReport({
    id,
    createdAt,
    environment: { product: 'p', node: 'n', platform: 'x', editor: null, remote: null },
    endpoint: { name: 'lab', origin: 'http://127.0.0.1:1', path: '/v1', model: null, api: 'openai-chat', server: null, tlsVerified: true, alpn: null, refusedFields: [], price: null, gpu: null },
    plan: { scenario: 'probe', requests: 3, concurrency: 1, warmup: 0, maxTokens: 8, cache: 'as-is', objective: 'chat', slo: { attainment: 0.95 }, readerPace: 120, prompt: { name: 'a.prompt.md', characters: 3, sha256: '0' } },
    samples: [],
    clockErrors: [],
  });
}

describe('the report store', () => {
  let folder: string;
  let store: ReportStore;
  let changes = 0;
  beforeEach(() => {
    folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-store-'));
    changes = 0;
    store = createReportStore(path.join(folder, 'reports'), () => (changes += 1));
  });
  afterEach(() => rmSync(folder, { recursive: true, force: true }));

  async function write(id: string, createdAt: string, ended = true, more: object = {}): Promise<string> {
    const whole = { ...report(id, createdAt), ...more };
    const file = await store.fileFor(whole);
    writeFileSync(file, serialiseHeader(report(id, createdAt)) + (ended ? serialiseFinal(whole) : ''));
    return file;
  }

  it('is empty before the first report', async () => {
    assert.deepEqual(await store.list(), []);
    assert.equal(await store.load('nothing'), null);
  });

  it('lists newest first, tells unfinished ones, and loads by id', async () => {
    await write('a', '2026-01-01T00:00:00.000Z');
    await write('b', '2026-01-02T00:00:00.000Z', false);
    const list = await store.list();
    assert.deepEqual(list.map(({ id, partial }) => [id, partial]), [['b', true], ['a', false]]);
    const loaded = await store.load('a');
    assert.ok(loaded && 'report' in loaded && loaded.report.id === 'a' && !loaded.partial);
    const partial = await store.load('b');
    assert.ok(partial && 'report' in partial && partial.partial);
  });

  it('leaves damaged files out of the list and says what is wrong when one is opened', async () => {
    await write('a', '2026-01-01T00:00:00.000Z');
    const file = await store.fileFor({ id: 'broken', createdAt: '2026-01-03T00:00:00.000Z' });
    writeFileSync(file, '{"schema":"first-token/report@1","id":');
    assert.deepEqual((await store.list()).map(({ id }) => id), ['a']);
    const loaded = await store.load('broken');
    assert.ok(loaded && 'problem' in loaded && loaded.problem.kind === 'damaged');
    writeFileSync(file, '{"schema":"first-token/report@9","id":"x"}\n');
    const other = await store.load('broken');
    assert.ok(other && 'problem' in other && other.problem.kind === 'other-version' && other.problem.found.includes('9'));
  });

  it('removes a report and keeps the newest', async () => {
    for (const day of [1, 2, 3, 4]) await write(`r${day}`, `2026-01-0${day}T00:00:00.000Z`);
    await store.remove('r3');
    assert.equal(changes, 1);
    await store.tidy(2);
    assert.deepEqual((await store.list()).map(({ id }) => id), ['r4', 'r2']);
  });

  it('deletes kept texts when their time has come, and only then', async () => {
    const answers = { '1': { text: 'the secret answer', reasoning: '' } };
    const old = await write('old', '2026-01-01T00:00:00.000Z', true, { texts: { expires: '2026-01-08T00:00:00.000Z', answers } });
    const fresh = await write('fresh', '2026-01-02T00:00:00.000Z', true, { texts: { expires: '2999-01-01T00:00:00.000Z', answers } });
    await store.tidy(100);
    assert.ok(!readFileSync(old, 'utf8').includes('secret answer'));
    assert.ok(readFileSync(fresh, 'utf8').includes('secret answer'));
    const loaded = await store.load('old');
    assert.ok(loaded && 'report' in loaded && loaded.report.texts === undefined);
    assert.equal(readdirSync(path.dirname(old)).length, 2, 'nothing is left over');
  });
});
