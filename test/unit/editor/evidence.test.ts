import assert from 'node:assert/strict';
import { answerView, createEvidence, frameView, type Evidence } from '../../../src/editor/evidence';

const evidence = (bytes: number, deltas: number): Evidence => ({
  pieces: Array.from({ length: deltas }, (_, i) => ({ kind: 'text', text: `t${i} ` })),
  places: Array.from({ length: deltas }, (_, i) => ({ read: i, frame: i + 1 })),
  frames: () => Array.from({ length: deltas + 2 }, (_, i) => ({ index: i, t: 10 * i, read: i, raw: `data: ${i}` })),
  bytes,
  tapeFile: () => '{}',
});

describe('evidence', () => {
  it('keeps the newest up to its limit', () => {
    const store = createEvidence(100);
    for (const id of ['1', '2', '3']) store.put('r', id, evidence(40, 1));
    assert.equal(store.get('r', '1'), null);
    assert.ok(store.get('r', '2') && store.get('r', '3'));
    assert.ok(store.has('r') && !store.has('other'));
  });

  it('shows frames around a delta with times, gaps and text', () => {
    const { frames } = frameView(evidence(1, 20), 's', 10);
    assert.ok(frames);
    assert.equal(frames.length, 11);
    assert.deepEqual(frames.filter(({ current }) => current), [{ index: 11, t: 110, gap: 10, read: 11, raw: 'data: 11', text: 't10 ', current: true, delta: 10 }]);
    assert.equal(frameView(evidence(1, 3), 's', 0).frames?.[0]?.gap, null);
    assert.deepEqual(frameView(null, 's', 0).frames, null);
    assert.deepEqual(frameView(evidence(1, 3), 's', 99).frames, null);
  });

  it('cuts a kept text at the deltas', () => {
    const sample = { id: '1', deltas: [[1, 'reasoning', 1], [2, 'text', 1], [3, 'token', 1], [4, 'text', 2]], visibleChars: [0, 3, 0, 4] };
    const report = { samples: [sample], texts: { expires: '', answers: { '1': { text: 'one two', reasoning: 'hm' } } } } as never;
    assert.deepEqual(answerView(null, report, '1').pieces?.map(({ text }) => text), ['hm', 'one', '', ' two']);
    assert.equal(answerView(null, { samples: [sample] } as never, '1').pieces, null);
  });
});
