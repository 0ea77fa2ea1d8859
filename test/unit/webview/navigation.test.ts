import assert from 'node:assert/strict';
import type { Sample } from '../../../src/report/sample';
import { hitTest, isNavigationKey, move, orderTracks } from '../../../webview/navigation';
import { createTrack, growTrack, type Track } from '../../../webview/track';

function track(id: string, start: number, offsets: readonly number[], role: Sample['role'] = 'measured', place = 0): Track {
  const row = { id, role, start, headers: null, t: offsets.map((offset) => start + offset), kinds: offsets.map(() => 'text' as const), tokens: offsets.map(() => 1), text: offsets.map(() => 'x') };
  const made = createTrack(row, place, place + 1);
  growTrack(made, row);
  return made;
}

const a = track('a', 1000, [200, 230, 260, 900, 930]);
const b = track('b', 1100, [100, 250, 880]);
const empty = track('c', 1200, []);
const rows = [a, b, empty];

describe('what lies under the pointer', () => {
  it('is the nearest delta within reach', () => {
    assert.deepEqual(hitTest(a, 1232, 5), { part: 'delta', deltaIndex: 1 });
    assert.deepEqual(hitTest(a, 1200, 0), { part: 'delta', deltaIndex: 0 });
    assert.deepEqual(hitTest(a, 1930, 0), { part: 'delta', deltaIndex: 4 });
  });
  it('is the gap around a point farther away', () => {
    assert.deepEqual(hitTest(a, 1600, 5), { part: 'gap', deltaIndex: 3 });
  });
  it('is the row before the first token, behind the last, and where none came', () => {
    for (const t of [1050, 2500]) assert.deepEqual(hitTest(a, t, 5), { part: 'row', deltaIndex: null });
    assert.deepEqual(hitTest(empty, 1300, 5), { part: 'row', deltaIndex: null });
  });
});

describe('keys', () => {
  it('start at the first token of the first request', () => {
    assert.deepEqual(move(rows, null, 'ArrowRight'), { sampleId: 'a', deltaIndex: 0 });
    assert.deepEqual(move(rows, { sampleId: 'gone', deltaIndex: 3 }, 'ArrowDown'), { sampleId: 'a', deltaIndex: 0 });
    assert.equal(move([], null, 'ArrowDown'), null);
  });
  it('move between tokens and stop at the ends', () => {
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 1 }, 'ArrowRight'), { sampleId: 'a', deltaIndex: 2 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 4 }, 'ArrowRight'), { sampleId: 'a', deltaIndex: 4 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 0 }, 'ArrowLeft'), { sampleId: 'a', deltaIndex: 0 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: null }, 'ArrowRight'), { sampleId: 'a', deltaIndex: 0 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 2 }, 'Home'), { sampleId: 'a', deltaIndex: 0 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 2 }, 'End'), { sampleId: 'a', deltaIndex: 4 });
  });
  it('move between requests to the token nearest in time since each start', () => {
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 3 }, 'ArrowDown'), { sampleId: 'b', deltaIndex: 2 });
    assert.deepEqual(move(rows, { sampleId: 'b', deltaIndex: 1 }, 'ArrowUp'), { sampleId: 'a', deltaIndex: 2 });
    assert.deepEqual(move(rows, { sampleId: 'b', deltaIndex: 1 }, 'PageDown'), { sampleId: 'c', deltaIndex: null });
    assert.deepEqual(move(rows, { sampleId: 'c', deltaIndex: null }, 'ArrowUp'), { sampleId: 'b', deltaIndex: null });
  });
  it('jump between long gaps with Ctrl, and stay where there is none', () => {
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 0 }, 'ArrowRight', 500), { sampleId: 'a', deltaIndex: 3 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 4 }, 'ArrowLeft', 500), { sampleId: 'a', deltaIndex: 3 });
    assert.deepEqual(move(rows, { sampleId: 'a', deltaIndex: 3 }, 'ArrowRight', 500), { sampleId: 'a', deltaIndex: 3 });
  });
  it('are told from other keys', () => {
    assert.ok(isNavigationKey('PageUp'));
    assert.ok(!isNavigationKey('Enter'));
  });
});

describe('order of the rows', () => {
  const warm = track('w', 0, [500], 'warmup', 0);
  const slow = track('s', 10, [400], 'measured', 1);
  const fast = track('f', 20, [100], 'measured', 2);
  const none = track('n', 5, [], 'measured', 3);
  const ttft = (row: Track): number | null => (row.firstToken === null ? null : row.firstToken - row.start);
  const ids = (ordered: readonly Track[]): string => ordered.map((row) => row.id).join('');
  it('keeps warm-up on top and puts requests without a value last', () => {
    assert.equal(ids(orderTracks([none, fast, slow, warm], (row) => row.start)), 'wnsf');
    assert.equal(ids(orderTracks([none, slow, fast, warm], ttft)), 'wfsn');
  });
});
