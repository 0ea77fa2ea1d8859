import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { editOutcome, editWords } from '../../../src/editor/prefixEditCost';
import * as prompt from '../../../src/prompt/index';

const sample = readFileSync(path.join(__dirname, '../../fixtures/workspace/support.prompty'), 'utf8');
const rules = 'Answer politely and briefly, in the language of the question, and never guess.\n'.repeat(40);
const analysed = (text: string, file = 'a.prompty') => prompt.analyseFile(prompt.parsePromptFile(text, file)!, { counter: prompt.bytesCounter });
const outcome = (before: string | null, after: string, file?: string) => editOutcome(prompt, before === null ? null : analysed(before, file), analysed(after, file), prompt.bytesCounter);

describe('editor/prefixEditCost', () => {
  it('tells the gain of the product’s own fix, and no cost where nothing was reusable', () => {
    const before = analysed(sample);
    const report = before.prompts[0]!;
    const place = report.report.places.find(({ text }) => text.includes('current_time'))!;
    const fix = prompt.placeFixes(place, { file: before.file, prompt: before.file.prompts[0]!, pieces: report.pieces, report: report.report }, 'clock')[0]!;
    assert.ok('edits' in fix);
    const cost = outcome(sample, prompt.applyEdits(sample, fix.edits));
    assert.equal(cost.before, 0);
    assert.equal(cost.lost, 0);
    assert.ok(cost.after > 200, JSON.stringify(cost));
    const words = editWords(cost, 'vLLM');
    assert.match(words, /^0 → \d+ of \d+ tokens reusable on vLLM; nothing was reusable before/);
    assert.doesNotMatch(words, /invalidates|again/);
  });

  it('counts once only what was reusable before', () => {
    const edited = rules.split('\n').map((line, i) => (i === 29 ? line.replace('never guess', 'do not guess') : line)).join('\n');
    const cost = outcome(`system:\n${rules}First {{question}}\n${rules}`, `system:\n${edited}First {{question}}\n${rules}`);
    assert.ok(cost.lost > 150 && cost.lost < 300, JSON.stringify(cost));
    assert.ok(cost.before - cost.lost <= cost.kept);
    assert.match(editWords(cost, 'vLLM'), new RegExp(`; ${cost.lost} that were reusable are computed again once, from line 31 on$`));
  });

  it('costs nothing behind the place where reuse ended anyway', () => {
    const cost = outcome(`system:\n${rules}First {{question}}\n${rules}`, `system:\n${rules}First {{question}}\n${rules}One more line.`);
    assert.deepEqual([cost.lost, cost.before, cost.line], [0, cost.after, 83]);
    assert.match(editWords(cost, 'vLLM'), /as before; all that was reusable still is$/);
  });

  it('says when nothing has changed, and takes a new file for a whole one', () => {
    assert.equal(editWords(outcome(sample, sample), 'vLLM'), 'what is sent has not changed');
    const fresh = outcome(null, `system:\n${rules}`);
    assert.deepEqual([fresh.before, fresh.kept, fresh.lost], [0, 0, 0]);
  });

  it('compares every prompt of a file, not the first alone', () => {
    const two = (last: string) => JSON.stringify({ custom_id: 'a', body: { model: 'm', messages: [{ role: 'system', content: rules }] } }) + '\n' + JSON.stringify({ custom_id: 'b', body: { model: 'm', messages: [{ role: 'system', content: last + rules }] } });
    const cost = outcome(two('Old. '), two('New. '), 'batch.jsonl');
    assert.equal(cost.line, 2);
    assert.ok(cost.lost > 500, JSON.stringify(cost));
  });
});
