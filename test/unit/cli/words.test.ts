/** Lines that fit: help texts and the progress line. */
import assert from 'node:assert/strict';
import { helpWidth, layOut, usageWithout } from '../../../src/cli/help';
import { progressLine, stopHint } from '../../../src/cli/output';

describe('help texts', () => {
  it('hang a description under its own beginning, or below a long flag', () => {
    assert.equal(layOut('  --short N   one two three four five six seven', 40), '  --short N   one two three four five\n              six seven');
    assert.equal(layOut('  --a-rather-long-flag MS, --another MS   give up after', 40), '  --a-rather-long-flag MS, --another MS\n      give up after');
    assert.equal(layOut('  fits   as it is', 40), '  fits   as it is');
    assert.equal(layOut('A paragraph that goes on and on, beyond forty.', 40), 'A paragraph that goes on and on, beyond\nforty.');
  });

  it('are laid out for the terminal, for 80 columns where there is none', () => {
    assert.deepEqual([helpWidth({}), helpWidth({ columns: 60 }), helpWidth({ columns: 10 }), helpWidth({ columns: 300 })], [80, 60, 40, 100]);
  });

  it('leave out whole flags only', () => {
    assert.equal(usageWithout('  --api A   x\n  --api-kind K   y', ['--api']), '  --api-kind K   y');
  });
});

describe('the progress line', () => {
  const shown = (columns: number, text: string, hint?: string): string => {
    let written = '';
    progressLine({ isTTY: true, columns, write: (part: string) => (written += part) } as unknown as NodeJS.WriteStream).show(text, hint);
    return written.replace('\r\x1b[K', '');
  };

  it('has its hint whole or not at all, and ends in … where it is cut', () => {
    const text = '7/20  1 streaming, 30 tokens just now, about 4.20 s left';
    assert.equal(shown(120, text, stopHint), text + stopHint);
    assert.equal(shown(80, text, stopHint), text);
    assert.equal(shown(30, text, stopHint), `${text.slice(0, 28)}…`);
  });
});
