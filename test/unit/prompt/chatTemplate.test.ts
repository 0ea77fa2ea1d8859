import assert from 'node:assert/strict';
import { findHiddenClock, findWrittenDate, hiddenDateWords, renderChatTemplate, renderJinja, strftime } from '../../../src/prompt/chatTemplate';
import type { ChatPrompt } from '../../../src/prompt/prompt';

const clock = Date.UTC(2026, 2, 5, 7, 8, 9);
const prompt: ChatPrompt = { messages: [{ role: 'system', text: 'Be brief.' }, { role: 'user', text: 'Hi' }], tools: [] };
const chat = (system: string) => `${system}{% for m in messages %}<|{{ m.role }}|>{{ m.content }}\n{% endfor %}{% if add_generation_prompt %}<|assistant|>{% endif %}`;
const clockOf = (template: string) => {
  const found = findHiddenClock(template, prompt);
  assert.ok(found !== null && !('problem' in found), JSON.stringify(found));
  return found;
};

describe('strftime', () => {
  it('writes the usual directives in UTC', () => {
    assert.equal(strftime('%Y-%m-%d %H:%M:%S', clock), '2026-03-05 07:08:09');
    assert.equal(strftime('%A %d %B %y, %I:%M %p, day %j, %-d/%-m, 100%%', clock), 'Thursday 05 March 26, 07:08 AM, day 064, 5/3, 100%');
    assert.equal(strftime('%F %T %b %e %a', clock), '2026-03-05 07:08:09 Mar  5 Thu');
    assert.equal(strftime('%I %p', Date.UTC(2026, 0, 1, 0)), '12 AM');
    assert.equal(strftime('%Q', clock), '%Q');
  });
});

describe('rendering Jinja under a frozen clock', () => {
  it('renders names, loops and clock calls', () => {
    assert.deepEqual(renderJinja('{{ greeting|upper }} {% for x in xs %}{{ x }},{% endfor %} {{ strftime_now("%d %b %Y") }}', { greeting: 'hi', xs: [1, 2] }, clock), { text: 'HI 1,2, 05 Mar 2026' });
  });
  it('names what it cannot render', () => {
    assert.ok('problem' in renderJinja('{% include "x.j2" %}', {}, clock));
    assert.deepEqual(renderJinja('{{ raise_exception("no system role") }}', {}, clock), { problem: 'no system role' });
    assert.ok('problem' in renderJinja('{% if %}', {}, clock));
  });
  it('renders a conversation with the generation prompt', () => {
    assert.deepEqual(renderChatTemplate(chat(''), prompt, { clock }), { text: '<|system|>Be brief.\n<|user|>Hi\n<|assistant|>' });
  });
});

describe('hidden dates of a chat template', () => {
  it('finds a date of the day, and how little is left before it', () => {
    const found = clockOf(chat('Knowledge cutoff: 2025-06\nCurrent date: {{ strftime_now("%Y-%m-%d") }}\n'));
    assert.deepEqual([found.volatility, found.head, found.line], ['day', 'Knowledge cutoff: 2025-06\nCurrent date: 202', 'Current date: 2026-01-15']);
    assert.equal(found.calls.length, 1);
  });
  it('tells a time from a date', () => {
    assert.equal(clockOf(chat('{{ strftime_now("%H:%M") }}')).volatility, 'minute');
    assert.equal(clockOf(chat('{{ strftime_now("%B") }}')).volatility, 'day');
  });
  it('finds none in a template with a fixed default date, and none when the call is not reached', () => {
    assert.equal(findHiddenClock(chat('{% if not date_string is defined %}{% set date_string = "26 Jul 2024" %}{% endif %}Today: {{ date_string }}\n'), prompt), null);
    assert.equal(findHiddenClock(chat('{% if tools %}{{ strftime_now("%Y") }}{% endif %}'), prompt), null);
    assert.equal(findHiddenClock(chat(''), prompt), null);
  });
  it('a template that refuses the conversation is a problem, not a crash', () => {
    assert.deepEqual(findHiddenClock('{{ raise_exception("roles must alternate") }}', prompt), { problem: 'roles must alternate' });
  });
});

describe('a date that a server wrote by its own chat template', () => {
  const at = Date.UTC(2026, 10, 30, 20, 15, 30);
  it('is found in every usual form, a day apart for the server’s time zone', () => {
    for (const format of ['%Y-%m-%d', '%d %b %Y', '%-d %B %Y', '%B %d, %Y', '%A, %B %-d, %Y', '%m/%d/%Y']) {
      for (const clock of [at, at - 86_400_000, at + 86_400_000]) {
        const line = `Current date: ${strftime(format, clock)}`;
        assert.deepEqual(findWrittenDate(`<|start|>system\nKnowledge cutoff: 2024-06\n${line}\nx<|end|>`, at), { volatility: 'day', line }, `${format} ${line}`);
      }
    }
  });
  it('changes each minute when the time of day stands with it', () => {
    assert.equal(findWrittenDate('Now: 2026-11-30 21:15\n', at)?.volatility, 'minute');
    assert.equal(findWrittenDate('Now: 2026-11-30 20:14:59\n', at)?.volatility, 'minute');
    assert.equal(findWrittenDate('Since 2026-11-30 08:40\n', at)?.volatility, 'day');
  });
  it('is none when the template writes a fixed date', () => {
    assert.equal(findWrittenDate('Cutting Knowledge Date: December 2023\nToday Date: 26 Jul 2024\n', at), null);
    assert.equal(findWrittenDate('<|im_start|>system\nx<|im_end|>', at), null);
  });
  it('is told in words', () => {
    assert.match(hiddenDateWords({ volatility: 'day', line: 'Current date: 2026-11-30' }), /writes the date before it \(Current date: 2026-11-30\), so nothing after that is reused the next day$/);
    assert.match(hiddenDateWords({ volatility: 'minute', line: 'Now' }), /writes the time .*a minute later$/);
  });
});
