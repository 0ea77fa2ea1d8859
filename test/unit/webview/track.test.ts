import assert from 'node:assert/strict';
import { createTrack, deltasInSameRead, firstAtOrAfter, gapBefore, growTrack } from '../../../webview/track';
import type { LiveRow } from '../../../src/report/messages';

function row(part: Partial<LiveRow>): LiveRow {
  const t = part.t ?? [];
  return { id: 'a', role: 'measured', start: 0, headers: null, t, kinds: t.map(() => 'text'), tokens: t.map(() => null), text: t.map(() => 'x'), ...part };
}

describe('a track', () => {
  it('grows with live rows and keeps the first of each stamp', () => {
    const track = createTrack(row({}), 0, 1);
    growTrack(track, row({ headers: 20, t: [100, 130], kinds: ['reasoning', 'text'] }));
    growTrack(track, row({ headers: 25, t: Array.from({ length: 200 }, (_, i) => 160 + i) }));
    assert.equal(track.count, 202);
    assert.deepEqual([track.headers, track.firstToken, track.firstVisible, track.last], [20, 100, 130, 359]);
    assert.equal(track.pieces?.length, 202);
  });

  it('moves what it knows when the window gets another start', () => {
    const track = createTrack(row({ start: 500 }), 0, 1);
    growTrack(track, row({ start: 500, t: [600, 650] }));
    growTrack(track, row({ start: 100, t: [300] }));
    assert.deepEqual([...track.t.subarray(0, 3)], [200, 250, 300]);
    assert.deepEqual([track.start, track.firstToken, track.last], [100, 200, 300]);
  });

  it('finds deltas by time, gaps, and what came with the same read', () => {
    const track = createTrack(row({}), 0, 1);
    growTrack(track, row({ t: [10, 10, 10, 40, 55] }));
    assert.deepEqual([0, 10, 11, 55, 56].map((t) => firstAtOrAfter(track, t)), [0, 0, 3, 4, 5]);
    assert.deepEqual([0, 1, 3, 4, 5].map((index) => gapBefore(track, index)), [null, 0, 30, 15, null]);
    assert.deepEqual([0, 1, 2, 3].map((index) => deltasInSameRead(track, index)), [3, 3, 3, 1]);
  });
});
