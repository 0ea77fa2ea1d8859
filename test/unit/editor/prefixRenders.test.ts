import assert from 'node:assert/strict';
import { readFileSync } from 'node:fs';
import path from 'node:path';
import { renderables, renderedSides } from '../../../src/editor/prefixRenders';
import * as prompt from '../../../src/prompt/index';

const sample = readFileSync(path.join(__dirname, '../../fixtures/workspace/support.prompty'), 'utf8');
const noon = Date.UTC(2026, 4, 4, 12, 0, 0);
const parsed = (text: string, name: string) => prompt.parsePromptFile(text, name)!;

function apart(text: string, name: string, ms: number, variables: Record<string, string> = {}) {
  const file = parsed(text, name);
  const side = { sample: 0, values: {}, clock: noon, nonce: 'a' };
  return renderedSides(prompt, file, file.prompts[0]!, { a: side, b: { ...side, clock: noon + ms, nonce: 'b' }, variables, counter: prompt.bytesCounter });
}
const clock = (text: string, name: string, variables: Record<string, string> = {}) => renderables(prompt, parsed(text, name), variables)[0]?.clock;

describe('editor/prefixRenders', () => {
  it('moves a variable of a minute with the clock although the sample pins it', () => {
    const { first, second, difference, words } = apart(sample, 'a.prompty', 3_660_000);
    assert.match(first, /It is 2026-05-04 12:00:00\./);
    assert.match(second, /It is 2026-05-04 13:01:00\./);
    assert.equal(difference?.line, 2);
    assert.ok(words.some((word) => word === 'current_time follows the clock of each render, not a value in the file'), words.join('; '));
  });

  it('writes a date alone for a variable of a day, and keeps it within the day', () => {
    const text = 'Today is {{ current_date }}. {{ question }}';
    assert.equal(apart(text, 'a.jinja', 3_600_000).difference, null);
    assert.match(apart(text, 'a.jinja', 86_400_000).second, /Today is 2026-05-05\. /);
  });

  it('reaches a variable below another, and one that only the settings name', () => {
    assert.match(apart('{{ clock.now }} x', 'a.jinja', 3_600_000, { 'clock.now': 'minute' }).second, /2026-05-04 13:00:00 x/);
    assert.match(apart('{{ stamp }} x', 'a.jinja', 3_600_000, { stamp: 'minute' }).second, /2026-05-04 13:00:00 x/);
  });

  it('leaves the sample alone when no time was chosen', () => {
    const { first, difference, words } = apart(sample, 'a.prompty', 0);
    assert.equal(difference, null);
    assert.match(first, /It is 2026-05-04 09:31:07\./);
    assert.ok(words.every((word) => !word.includes('clock')));
  });

  it('tells the quickest clock, whether a variable or a call', () => {
    assert.equal(clock(sample, 'a.prompty'), 'minute');
    assert.equal(clock('Hello {{ name }}', 'a.jinja'), null);
    assert.equal(clock("{{ now().strftime('%Y-%m-%d') }} {{ name }}", 'a.jinja'), 'day');
    assert.equal(clock("{{ now().strftime('%H:%M') }}", 'a.jinja'), 'minute');
    assert.equal(clock(sample, 'a.prompty', { current_time: 'constant' }), null);
  });

  it('says of a section that is dropped that it is left out, and of a value that it is left as written', () => {
    const { words, first } = apart('Order {{ number }}.\n{% for item in order.items %}- {{ item }}\n{% endfor %}{% if gift %}A gift.{% endif %}\nEnd.', 'order-status.j2', 0);
    assert.doesNotMatch(first, /order\.items|gift/i);
    assert.deepEqual(words, ['Without a value, so left as written: number', 'Without a value, so the text that depends on it is left out: order.items, gift']);
  });
});
