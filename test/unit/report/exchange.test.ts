import assert from 'node:assert/strict';
import { samplesToCsv, summaryToCsv } from '../../../src/report/exchange/csv';
import { toJson } from '../../../src/report/exchange/json';
import { toMarkdown } from '../../../src/report/exchange/markdown';
import { makeReport } from './makeReport';
import { failed, steady } from './makeSample';

/** RFC 4180, written for the test. */
function parseCsv(text: string): string[][] {
  const rows: string[][] = [[]];
  let field = '';
  let quoted = false;
  for (let i = 0; i < text.length; i += 1) {
    const c = text[i]!;
    if (quoted) {
      if (c !== '"') field += c;
      else if (text[i + 1] === '"') field += text[(i += 1)]!;
      else quoted = false;
    } else if (c === '"') quoted = true;
    else if (c === ',') {
      rows.at(-1)!.push(field);
      field = '';
    } else if (c === '\r' && text[i + 1] === '\n') {
      rows.at(-1)!.push(field);
      field = '';
      rows.push([]);
      i += 1;
    } else field += c;
  }
  assert.deepEqual(rows.pop(), []);
  return rows;
}

const nasty = '=HYPERLINK("http://evil","x"),\nsecond line';
const report = makeReport([
  steady(0, 100.25, 10, 5, { labels: { tenant: '+cmd', step: 2 } }),
  failed(500, { kind: 'status', status: 500, message: nasty }),
  steady(900, 90, 10, 5, { role: 'warmup', finish: '-1+1' }),
]);

describe('exports', () => {
  it('CSV has a row a request that reads back, with no formula in it', () => {
    const [header, ...rows] = parseCsv(samplesToCsv(report));
    assert.equal(rows.length, 3);
    const at = (row: string[], name: string) => row[header!.indexOf(name)];
    assert.equal(at(rows[0]!, 'ttft_ms'), '100.25');
    assert.equal(at(rows[0]!, 'tpot_ms'), '10');
    assert.equal(at(rows[0]!, 'good'), 'true');
    assert.equal(at(rows[0]!, 'label_tenant'), "'+cmd");
    assert.equal(at(rows[1]!, 'message'), `'${nasty}`);
    assert.equal(at(rows[1]!, 'ttft_ms'), '');
    assert.equal(at(rows[1]!, 'good'), 'false');
    assert.equal(at(rows[2]!, 'finish'), "'-1+1");
    for (const row of rows) {
      assert.equal(row.length, header!.length);
      for (const cell of row) assert.ok(!/^\s*[=+@|]/.test(cell) && !/^-(?!\d+(\.\d+)?$)/.test(cell), cell);
    }
  });

  it('CSV of the summary has the report’s numbers, unrounded', () => {
    const [header, ...rows] = parseCsv(summaryToCsv(report));
    const ttft = rows.find((row) => row[0] === 'ttft')!;
    assert.equal(ttft[header!.indexOf('p50')], String(report.summary.ttft?.p50));
    assert.equal(ttft[header!.indexOf('p50_low')], '');
    assert.equal(rows.length, Object.values(report.summary).filter((row) => row !== null).length);
  });

  it('JSON is the report', () => {
    assert.deepEqual(JSON.parse(toJson(report)), report);
    assert.deepEqual(JSON.parse(toJson(makeReport([]))), makeReport([]));
    assert.ok(toJson(report).split('\n').length < 400);
  });

  it('Markdown has verdict, table, facts and caveats, and lets no text become markup', () => {
    const hostile = makeReport(report.samples, { endpoint: { name: '[x](http://evil) <img src=x> @someone', model: '| a\n# b' } });
    const text = toMarkdown(hostile);
    assert.match(text, /\| ms \| n \| p50 \|/);
    assert.match(text, /\| First token \(TTFT\) \| 1 \| 100 <sub>n too small<\/sub>/);
    assert.match(text, /Read with care:\n- /);
    assert.ok(!/(?<!\\)<img/.test(text));
    assert.ok(!/(?<!\\)\[x/.test(text));
    assert.ok(!/@someone/.test(text));
    assert.ok(!/:\/\//.test(text));
    assert.ok(!/\n# b/.test(text));
    assert.ok(!toMarkdown(makeReport([])).includes('undefined'));
  });
});
