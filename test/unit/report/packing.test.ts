import assert from 'node:assert/strict';
import fc from 'fast-check';
import type { ToWebview } from '../../../src/report/messages';
import { packMessage, unpackMessage } from '../../../src/report/packing';
import type { Delta, DeltaKind, Sample } from '../../../src/report/sample';

const delta = fc.tuple(fc.double({ noNaN: true, noDefaultInfinity: true }), fc.constantFrom<DeltaKind>('text', 'reasoning', 'tool', 'token'), fc.option(fc.integer({ min: 0, max: 100_000 })));
const sample = fc.tuple(fc.array(delta), fc.boolean()).map(([deltas, counted]) => bare(deltas, counted ? deltas.map((_, i) => i % 7) : []));

/** Only what packing touches; the rest travels by spread. */
function bare(deltas: readonly Delta[], visibleChars: readonly number[]): Sample {
  return { id: 'x', deltas, visibleChars } as unknown as Sample;
}

describe('packed messages', () => {
  it('come out as they went in', () => {
    fc.assert(fc.property(fc.array(sample), (samples) => {
      const counted = samples.map((s) => (s.visibleChars.length === 0 && s.deltas.length > 0 ? { ...s, visibleChars: s.deltas.map(() => 0) } : s));
      const message = { type: 'samples', samples, report: {} } as unknown as ToWebview;
      const packed = packMessage(message);
      assert.ok(packed.type === 'samples' && packed.samples.every((s) => s.deltas.length === 0));
      const unpacked = unpackMessage(packed);
      assert.ok(unpacked.type === 'samples');
      assert.deepEqual(unpacked.samples.map((s) => s.deltas), samples.map((s) => s.deltas));
      for (const [i, s] of unpacked.samples.entries()) assert.equal(s.visibleChars.length, (counted[i] as Sample).visibleChars.length);
    }));
  });

  it('keep a list of characters that does not match the deltas', () => {
    const message = { type: 'samples', samples: [bare([[1, 'text', null], [2, 'text', null]], [4])], report: {} } as unknown as ToWebview;
    const unpacked = unpackMessage(packMessage(message));
    assert.ok(unpacked.type === 'samples');
    assert.deepEqual(unpacked.samples[0]?.visibleChars, [4]);
  });

  it('of both reports of a comparison, and leave others alone', () => {
    const [a, b] = [{ id: 'a', samples: [bare([[1, 'text', 1]], [2])] }, { id: 'b', samples: [bare([[5, 'tool', null]], [0])] }];
    const message = { type: 'compare', a, b } as unknown as ToWebview;
    const unpacked = unpackMessage(packMessage(message));
    assert.ok(unpacked.type === 'compare');
    assert.deepEqual([unpacked.a, unpacked.b], [a, b]);
    const problem: ToWebview = { type: 'problem', problem: { kind: 'no-run' } };
    assert.equal(packMessage(problem), problem);
    assert.equal(unpackMessage(problem), problem);
    assert.equal(unpackMessage(message), message);
  });
});
