import assert from 'node:assert/strict';
import fc from 'fast-check';
import { createColumns, fillColumns } from '../../../webview/columns';
import type { Track } from '../../../webview/track';

function trackAt(stamps: readonly number[], reasoning = 0): Pick<Track, 't' | 'kinds' | 'count'> {
  return { t: Float64Array.from(stamps), kinds: Uint8Array.from(stamps, (_, i) => (i < reasoning ? 1 : 0)), count: stamps.length };
}

const stamps = fc.array(fc.double({ min: 0, max: 5000, noNaN: true }), { minLength: 2, maxLength: 200 }).map((values) => values.sort((a, b) => a - b));

describe('pixel columns of a row', () => {
  it('count every visible delta once, by kind', () => {
    fc.assert(fc.property(stamps, fc.integer({ min: 1, max: 300 }), fc.integer({ min: 0, max: 200 }), (values, width, reasoning) => {
      const columns = createColumns(width);
      fillColumns(columns, trackAt(values, reasoning), 0, 5000);
      assert.equal(sum(columns.answer) + sum(columns.reasoning), values.length);
      assert.equal(sum(columns.reasoning), Math.min(reasoning, values.length));
    }));
  });

  it('keep the longest gap at every width, so a stall never disappears by zooming out', () => {
    fc.assert(fc.property(stamps, fc.integer({ min: 1, max: 300 }), (values, width) => {
      const columns = createColumns(width);
      fillColumns(columns, trackAt(values), 0, 5000);
      assert.equal(max(columns.gap), max(gapsOf(values)));
    }));
  });

  it('show the longest gap of a zoomed span, one that reaches out of it included', () => {
    fc.assert(fc.property(stamps, fc.double({ min: 0, max: 4000, noNaN: true }), fc.double({ min: 5, max: 1000, noNaN: true }), (values, from, length) => {
      const to = from + length;
      const columns = createColumns(100);
      fillColumns(columns, trackAt(values), from, to);
      // A gap touches the span when it ends behind its start and begins before its end.
      const touching = gapsOf(values).filter((_, i) => (values[i + 1] as number) >= from && (values[i] as number) <= to);
      assert.equal(max(columns.gap), max(touching));
    }));
  });

  it('name the delta that ends each gap', () => {
    const columns = createColumns(100);
    fillColumns(columns, trackAt([0, 10, 20, 700, 710]), 0, 1000);
    assert.equal(columns.gapEnd[70], 3);
    assert.equal(columns.gap[70], 680);
  });

  it('forget the row before', () => {
    const columns = createColumns(10);
    fillColumns(columns, trackAt([0, 500, 999]), 0, 1000);
    fillColumns(columns, trackAt([0]), 0, 1000);
    assert.equal(sum(columns.answer), 1);
    assert.equal(max(columns.gap), 0);
  });
});

function gapsOf(values: readonly number[]): number[] {
  return values.slice(1).map((value, i) => value - (values[i] as number));
}

function sum(values: Iterable<number>): number {
  return [...values].reduce((total, value) => total + value, 0);
}

function max(values: Iterable<number>): number {
  return [...values].reduce((most, value) => Math.max(most, value), 0);
}
