import assert from 'node:assert/strict';
import fc from 'fast-check';
import { binLogarithmic } from '../../../webview/bins';

describe('bins on a logarithmic axis', () => {
  it('count every value once, in the bin whose edges enclose it', () => {
    fc.assert(fc.property(fc.array(fc.double({ min: 0, max: 1e5, noNaN: true }), { minLength: 1, maxLength: 300 }), (values) => {
      const bins = binLogarithmic(values);
      assert.ok(bins);
      assert.equal([...bins.counts].reduce((sum, count) => sum + count, 0), values.length);
      const last = bins.edges.at(-1) as number;
      for (const value of values) assert.ok(value <= last * (1 + 1e-9) && (value < 0.1 || value >= (bins.edges[0] as number) * (1 - 1e-9)));
      bins.counts.forEach((count, i) => {
        const [low, high] = [bins.edges[i] as number, bins.edges[i + 1] as number];
        // Values on an edge may fall to either side by rounding.
        const inside = values.map((value) => Math.max(value, 0.1)).filter((value) => value > low * (1 + 1e-6) && value < high * (1 - 1e-6)).length;
        assert.ok(inside <= count);
      });
    }));
  });
  it('are at least a decade wide, and none for no values', () => {
    const bins = binLogarithmic([30, 30, 30]);
    assert.ok(bins && (bins.edges.at(-1) as number) / (bins.edges[0] as number) >= 10 - 1e-9);
    assert.equal(binLogarithmic([]), null);
  });
});
