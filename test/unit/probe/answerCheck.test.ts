import assert from 'node:assert/strict';
import { createAnswerCheck } from '../../../src/probe/answerCheck';
import { PlanError } from '../../../src/probe/plan';

describe('the check of an answer', () => {
  it('is none without slo.valid', () => {
    assert.equal(createAnswerCheck(undefined), null);
  });

  it('matches a regular expression anywhere in the answer', () => {
    const check = createAnswerCheck({ pattern: '\\bwind\\b' });
    assert.equal(check?.('against the wind.'), null);
    assert.match(check?.('windy') ?? '', /pattern/);
  });

  it('takes JSON by a schema, bare or alone in a fence', () => {
    const check = createAnswerCheck({ schema: { type: 'object', required: ['city'], properties: { city: { type: 'string' }, days: { type: 'integer', minimum: 1 } } } });
    assert.equal(check?.('{"city":"Oslo","days":2}'), null);
    assert.equal(check?.('```json\n{"city":"Oslo"}\n```\n'), null);
    assert.match(check?.('{"city":"Oslo","days":0}') ?? '', /days/);
    assert.match(check?.('{"days":1}') ?? '', /schema/);
    assert.match(check?.('Oslo') ?? '', /not JSON/);
    assert.match(check?.('') ?? '', /not JSON/);
  });

  it('refuses what is no pattern and no schema, naming the setting', () => {
    assert.throws(() => createAnswerCheck({ pattern: '(' }), (error) => error instanceof PlanError && /slo\.valid\.pattern/.test(error.message));
    for (const wrong of ['abc', 5, [], {}, { pattern: 5 }, { pattern: null }]) assert.throws(() => createAnswerCheck(wrong as never), (error) => error instanceof PlanError && /slo\.valid/.test(error.message));
    assert.equal(createAnswerCheck(null as never), null);
    assert.throws(() => createAnswerCheck({ schema: 5 }), (error) => error instanceof PlanError && /slo\.valid\.schema/.test(error.message));
    assert.throws(() => createAnswerCheck({ schema: { pattern: '(' , type: 'string' } })?.('"x"'), /./);
  });
});
