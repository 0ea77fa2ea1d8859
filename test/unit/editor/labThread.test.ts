import assert from 'node:assert/strict';
import { existsSync } from 'node:fs';
import path from 'node:path';
import { askLab, type LabQuestion } from '../../../src/editor/labThread';
import { usualLoad } from '../../../webview/labSettings';

const script = path.resolve(__dirname, '../../../dist/lab.js');
const question = (more: Partial<LabQuestion> = {}): LabQuestion => ({ a: [], b: ['--queue', '4'], load: { ...usualLoad, requests: 30 }, version: '0', ...more });
const never = (): AbortSignal => new AbortController().signal;

describe('the lab’s thread', function () {
  this.timeout(30_000);
  before(() => {
    if (!existsSync(script)) throw new Error('dist/lab.js is missing: run npm run build first');
  });

  it('answers with both runs', async () => {
    const answer = await askLab(script, question(), never());
    assert.ok(answer.kind === 'result' && answer.a.samples.length === 30 && answer.b.samples.some((sample) => sample.outcome.status === 429));
  });

  it('names models and GPUs', async () => {
    const answer = await askLab(script, question({ a: null, b: null }), never());
    assert.ok(answer.kind === 'options' && answer.models.includes('llama-3.1-8b') && answer.gpus.includes('h200'));
  });

  it('says whose settings are wrong, and that a load is', async () => {
    const flags = await askLab(script, question({ b: ['--model', 'llama-3.1-70b'] }), never());
    assert.ok(flags.kind === 'problem' && flags.side === 'B' && /does not fit/.test(flags.message));
    const load = await askLab(script, question({ load: { ...usualLoad, requests: 9999 } }), never());
    assert.ok(load.kind === 'problem' && load.side === null);
  });

  it('ends with its signal, and with its time', async () => {
    const abort = new AbortController();
    const asked = askLab(script, question({ load: { ...usualLoad, requests: 2000 } }), abort.signal);
    abort.abort();
    await assert.rejects(asked, { name: 'Cancelled' });
    const late = await askLab(script, question({ load: { ...usualLoad, requests: 2000 } }), never(), 1);
    assert.ok(late.kind === 'problem' && /takes longer/.test(late.message));
  });
});
