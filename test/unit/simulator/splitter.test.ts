import assert from 'node:assert/strict';
import fc from 'fast-check';
import { detokenize, renderChat, tokenBytes, tokenize } from '../../../src/simulator/splitter';

describe('splitter', () => {
  it('gives text back unchanged', () => {
    const text = fc.string({ unit: 'binary', maxLength: 60 }).filter((s) => !/\p{Surrogate}/u.test(s));
    fc.assert(fc.property(text, (s) => detokenize(tokenize(s)) === s));
    fc.assert(fc.property(fc.string({ unit: fc.constantFrom(' ', '\n', 'a', 'B', 'hello', '7', ',', '(', '\t', 'é', '🙂'), maxLength: 60 }), (s) => detokenize(tokenize(s)) === s));
  });

  it('needs about one token for four letters', () => {
    assert.deepEqual(
      tokenize('The first token waits 2024.').map((id) => new TextDecoder().decode(tokenBytes(id))),
      ['The', ' firs', 't', ' toke', 'n', ' wait', 's', ' 202', '4', '.'],
    );
  });

  it('gives every piece an id of its own, the same in every run', () => {
    assert.equal(new Set(['a', 'b', 'aa', 'A', ' a', ' A', '1', '01', ' 1', '\n', '\n\n', '  ', '.', ' .'].map((s) => tokenize(s).join())).size, 14);
    assert.deepEqual(tokenize('a'), [200_000]);
  });

  it('splits a character outside ASCII into pairs of bytes, so that a token may hold half of it', () => {
    const ids = tokenize('🙂');
    assert.equal(ids.length, 2);
    const decoder = new TextDecoder();
    assert.equal(decoder.decode(tokenBytes(ids[0]!), { stream: true }), '');
    assert.equal(decoder.decode(tokenBytes(ids[1]!), { stream: true }), '🙂');
  });

  it('keeps the tokens of what precedes when a message is added', () => {
    const first = [{ role: 'system', text: 'Be brief.' }, { role: 'user', text: 'Hi' }];
    const short = renderChat(first, null, false);
    assert.deepEqual(renderChat([...first, { role: 'assistant', text: 'Hello' }]).slice(0, short.length), short);
  });
});
