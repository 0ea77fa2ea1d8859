import assert from 'node:assert/strict';
import fc from 'fast-check';
import { axisEnd, clampSpan, isWhole, panSpan, revealInSpan, revealRow, zoomSpan, type Span } from '../../../webview/viewport';

const whole: Span = { from: 0, to: 8000 };
const span = fc.tuple(fc.double({ min: 0, max: 7000, noNaN: true }), fc.double({ min: 10, max: 1000, noNaN: true })).map(([from, length]) => ({ from, to: from + length }));

describe('the visible span', () => {
  it('keeps the point under the pointer when zooming within bounds', () => {
    fc.assert(fc.property(span, fc.double({ min: 0, max: 1, noNaN: true }), fc.double({ min: 1.01, max: 3, noNaN: true }), (before, share, factor) => {
      const at = before.from + share * (before.to - before.from);
      const after = zoomSpan(before, at, factor, whole);
      assert.ok(Math.abs((at - after.from) / (after.to - after.from) - share) < 1e-6);
    }));
  });

  it('never leaves the whole and never gets shorter than 2 ms', () => {
    fc.assert(fc.property(span, fc.double({ min: -9000, max: 9000, noNaN: true }), fc.double({ min: 0.001, max: 1000, noNaN: true }), (before, by, factor) => {
      for (const after of [panSpan(before, by, whole), zoomSpan(before, before.from, factor, whole), clampSpan({ from: by, to: by + factor }, whole)]) {
        assert.ok(after.from >= whole.from && after.to <= whole.to + 1e-9);
        assert.ok(after.to - after.from >= 2 - 1e-9);
      }
    }));
  });

  it('pans without changing its length', () => {
    fc.assert(fc.property(span, fc.double({ min: -9000, max: 9000, noNaN: true }), (before, by) => {
      const after = panSpan(before, by, whole);
      assert.ok(Math.abs(after.to - after.from - (before.to - before.from)) < 1e-6);
    }));
  });

  it('shows everything again after zooming out far enough', () => {
    assert.ok(isWhole(zoomSpan({ from: 1000, to: 1100 }, 1050, 1e-6, whole), whole));
    assert.ok(!isWhole({ from: 0, to: 7999 }, whole));
  });

  it('moves only as far as needed to reveal a moment', () => {
    const view = { from: 1000, to: 2000 };
    assert.deepEqual(revealInSpan(view, 1500, whole), view);
    assert.deepEqual(revealInSpan(view, 2500, whole), { from: 1600, to: 2600 });
    assert.deepEqual(revealInSpan(view, 500, whole), { from: 400, to: 1400 });
  });
});

describe('the end of an axis', () => {
  it('covers what is needed, wastes at most a half, and never shrinks', () => {
    fc.assert(fc.property(fc.double({ min: 1, max: 1e6, noNaN: true }), fc.double({ min: 0, max: 1e6, noNaN: true }), (needed, current) => {
      const end = axisEnd(needed, current);
      assert.ok(end >= needed && end >= current);
      if (current === 0 && needed >= 10) assert.ok(end <= needed * 1.5);
    }));
  });

  it('grows in steps, so that a live axis stands still between them', () => {
    const ends = new Set(Array.from({ length: 900 }, (_, i) => axisEnd(1000 + 10 * i)));
    assert.ok(ends.size <= 11, [...ends].join(' '));
  });
});

describe('scrolling rows', () => {
  it('moves as little as possible and stays within the rows', () => {
    assert.equal(revealRow(10, 12, 40, 300), 10);
    assert.equal(revealRow(10, 5, 40, 300), 5);
    assert.equal(revealRow(10, 60, 40, 300), 21);
    assert.equal(revealRow(10, 299, 40, 300), 260);
    assert.equal(revealRow(5, 3, 40, 12), 0);
  });
});
