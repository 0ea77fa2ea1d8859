import assert from 'node:assert/strict';
import { createBreaker, defaultBreaker } from '../../../src/probe/breaker';
import type { OutcomeKind } from '../../../src/report/sample';

function firstStop(kinds: readonly OutcomeKind[]): number | null {
  const breaker = createBreaker(defaultBreaker);
  const at = kinds.findIndex((kind) => breaker({ kind }) !== null);
  return at < 0 ? null : at;
}

describe('the breaker', () => {
  it('stops after five failures in a row', () => {
    assert.equal(firstStop(['ok', 'status', 'connect', 'timeout-total', 'truncated', 'empty']), 5);
    assert.equal(firstStop(['status', 'status', 'status', 'status', 'ok', 'status', 'status', 'status', 'status']), null);
  });

  it('stops when more than half of the last twenty failed', () => {
    const alternating = Array.from({ length: 20 }, (_, k): OutcomeKind => (k % 2 === 0 ? 'status' : 'ok'));
    assert.equal(firstStop(alternating), null, 'half is not more than half');
    assert.equal(firstStop([...alternating, 'status', 'status']), 21);
  });

  it('is not told of what the user cancelled, and answers that came count as such', () => {
    assert.equal(firstStop(['status', 'status', 'status', 'status', 'cancelled', 'cancelled']), null);
    assert.equal(firstStop(Array.from({ length: 30 }, () => 'not-streaming' as const)), null);
    assert.equal(firstStop(Array.from({ length: 30 }, () => 'invalid' as const)), null);
  });
});
