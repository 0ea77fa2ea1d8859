import assert from 'node:assert/strict';
import fc from 'fast-check';
import { parseCsv } from '../../../src/probe/csvRows';
import { PlanError } from '../../../src/probe/plan';
import { fillerText, fixedPrompt, fromRows, inConversations, parseLengths, readRows, shareGpt, shotsOf, synthetic, trace } from '../../../src/probe/workload';
import { generator } from '../../../src/report/statistics';
import { tokenize } from '../../../src/simulator/splitter';

const prompt = { messages: [{ role: 'user' as const, text: 'Hello' }], tools: [] };
const noFile = (): string => {
  throw new Error('no file was to be read');
};
const refuses = (act: () => unknown, pattern: RegExp): void => {
  assert.throws(act, (error) => error instanceof PlanError && pattern.test(error.message));
};
const textOf = (item: { readonly prompt: { readonly messages: readonly { readonly text: string }[] } }): string => item.prompt.messages.map((m) => m.text).join('\n');

describe('lengths', () => {
  it('are fixed, log-normal with the mean asked for, or drawn from a file', () => {
    const random = generator(1);
    assert.equal(parseLengths('--prompt-tokens', '128', noFile)(random), 128);
    assert.equal(parseLengths('--prompt-tokens', 'fixed:7', noFile)(random), 7);
    const drawn = parseLengths('--prompt-tokens', 'lognormal:200:0.5', noFile);
    const values = Array.from({ length: 20_000 }, () => drawn(random));
    const mean = values.reduce((sum, n) => sum + n, 0) / values.length;
    const logs = values.map(Math.log);
    const logMean = logs.reduce((sum, x) => sum + x, 0) / logs.length;
    const sigma = Math.sqrt(logs.reduce((sum, x) => sum + (x - logMean) ** 2, 0) / logs.length);
    assert.ok(Math.abs(mean - 200) < 4, `mean ${mean}`);
    assert.ok(Math.abs(sigma - 0.5) < 0.02, `sigma ${sigma}`);
    for (const file of ['10\n20\n30\n', '[10, 20, 30]']) {
      const lengths = parseLengths('--prompt-tokens', 'file:lengths.txt', () => file);
      assert.deepEqual([...new Set(Array.from({ length: 100 }, () => lengths(random)))].sort(), [10, 20, 30]);
    }
  });

  it('that are none are refused with the flag', () => {
    for (const spec of ['0', '-4', 'many', 'lognormal:0:1', 'lognormal:5', 'lognormal:10:9']) refuses(() => parseLengths('--output-tokens', spec, noFile), /--output-tokens/);
    for (const file of ['', 'ten', '[1, 0]', '1.5']) refuses(() => parseLengths('--output-tokens', 'file:x', () => file), /file must hold whole numbers/);
  });
});

describe('made-up prompts', () => {
  it('have one token a word, the same for the same seed', () => {
    assert.equal(fillerText(100, 3), fillerText(100, 3));
    assert.notEqual(fillerText(100, 3), fillerText(100, 4));
    fc.assert(fc.property(fc.integer({ min: 1, max: 500 }), fc.integer({ min: 0, max: 1e6 }), (tokens, seed) => tokenize(fillerText(tokens, seed)).length === tokens), { numRuns: 50 });
  });

  it('share a prefix of exactly as many tokens, and nothing after it', () => {
    const workload = synthetic({ prefixTokens: 50, promptTokens: () => 20, outputTokens: () => 9, turns: 1, seed: 1 });
    const [a, b] = [workload.item(0), workload.item(1)];
    assert.equal(workload.salt, 'run');
    assert.equal(a.prompt.messages[0]!.text, b.prompt.messages[0]!.text);
    assert.equal(tokenize(a.prompt.messages[0]!.text).length, 50);
    assert.notEqual(a.prompt.messages[1]!.text, b.prompt.messages[1]!.text);
    assert.equal(a.maxTokens, 9);
    assert.deepEqual(workload.item(7), workload.item(7));
  });

  it('grow turn by turn in a conversation', () => {
    const workload = synthetic({ prefixTokens: 0, promptTokens: () => 5, outputTokens: null, turns: 3, seed: 1 });
    const [first, second, third, next] = [0, 1, 2, 3].map((i) => workload.item(i));
    assert.deepEqual([first, second, third, next].map((item) => item!.prompt.messages.length), [1, 3, 5, 1]);
    assert.deepEqual(third!.prompt.messages.slice(0, 3), second!.prompt.messages);
    assert.deepEqual(next!.labels, { conversation: 1, turn: 0 });
  });
});

describe('rows', () => {
  it('are read from CSV with quotes, commas and line breaks, and from JSON Lines', () => {
    assert.deepEqual(readRows('a.csv', '\uFEFFname,city\r\nAda,"Lon""don, UK"\r\n"multi\nline",x\r\n'), [{ name: 'Ada', city: 'Lon"don, UK' }, { name: 'multi\nline', city: 'x' }]);
    assert.deepEqual(readRows('a.jsonl', '{"n": 1}\n\n{"n": 2}'), [{ n: 1 }, { n: 2 }]);
  });

  it('come back whatever is in them', () => {
    const cell = fc.string({ maxLength: 12 });
    fc.assert(fc.property(fc.array(fc.tuple(cell, cell), { minLength: 1, maxLength: 8 }), (rows) => {
      const quote = (text: string): string => `"${text.replace(/"/g, '""')}"`;
      const text = ['a,b', ...rows.map((row) => row.map(quote).join(','))].join('\n');
      assert.deepEqual(parseCsv(text, (message) => new Error(message)), rows.map(([a, b]) => ({ a, b })));
    }));
  });

  it('that are broken say where', () => {
    refuses(() => readRows('a.csv', 'a,b\n1\n'), /line 2 has 1 values, the first line names 2/);
    refuses(() => readRows('a.csv', 'a,a\n1,2\n'), /named twice/);
    refuses(() => readRows('a.csv', 'a,\n1,2\n'), /column 2 has no name/);
    refuses(() => readRows('a.csv', 'a\n"1\n'), /never closed/);
    refuses(() => readRows('a.csv', 'a\n'), /no row/);
    refuses(() => readRows('a.jsonl', '{"a": 1}\nnope\n'), /line 2 is not JSON/);
    refuses(() => readRows('a.jsonl', '[1]\n'), /line 1 is not an object/);
  });

  it('fill a prompt, and a missing variable is named with the row', () => {
    const render = (row: Readonly<Record<string, unknown>>) => ({ prompt: { ...prompt, messages: [{ role: 'user' as const, text: `Hello ${String(row['name'])}` }] }, unrendered: row['name'] === undefined ? ['name'] : [] });
    const workload = fromRows('hello.j2', 'people.csv', [{ name: 'Ada' }, { name: 'Bob' }], render);
    assert.deepEqual([0, 1, 2].map((i) => textOf(workload.item(i))), ['Hello Ada', 'Hello Bob', 'Hello Ada']);
    refuses(() => fromRows('hello.j2', 'people.csv', [{ name: 'Ada' }, { nam: 'Bob' }], render), /row 2 has no value for name of hello\.j2; its columns are nam/);
  });
});

describe('conversations in the form of ShareGPT', () => {
  it('become every question with what came before it', () => {
    const file = [{ id: 'x', conversations: [{ from: 'system', value: 'Be kind' }, { from: 'human', value: 'Hi' }, { from: 'gpt', value: 'Hello' }, { from: 'human', value: 'Bye' }] }, { messages: [{ role: 'user', content: 'One' }] }];
    const workload = shareGpt('s.json', JSON.stringify(file));
    assert.equal(workload.length, 3);
    assert.deepEqual(workload.item(1).prompt.messages.map((m) => m.role), ['system', 'user', 'assistant', 'user']);
    assert.equal(textOf(workload.item(2)), 'One');
  });

  it('that are none say so', () => {
    refuses(() => shareGpt('s.json', '{'), /not JSON/);
    refuses(() => shareGpt('s.json', '{}'), /not a list/);
    refuses(() => shareGpt('s.json', '[{}]'), /entry 1 has no list/);
    refuses(() => shareGpt('s.json', '[{"conversations": []}]'), /no question/);
  });
});

describe('a trace', () => {
  const lines = [{ timestamp: 1000, input_length: 600, output_length: 20, hash_ids: [1, 2] }, { timestamp: 1500, input_length: 700, output_length: 30, hash_ids: [1, 3] }, { timestamp: 1500, input_length: 5, output_length: 1 }];
  const file = lines.map((line) => JSON.stringify(line)).join('\n');

  it('is replayed by its times, faster if asked, with the lengths it names', () => {
    const workload = trace('t.jsonl', file, 2);
    assert.deepEqual([0, 1, 2].map((i) => workload.item(i).at), [0, 250, 250]);
    assert.deepEqual([0, 1, 2].map((i) => workload.item(i).maxTokens), [20, 30, 1]);
    assert.deepEqual([0, 1, 2].map((i) => tokenize(textOf(workload.item(i))).length), [600, 700, 5]);
  });

  it('shares text where it shares blocks', () => {
    const workload = trace('t.jsonl', file);
    const [a, b] = [tokenize(textOf(workload.item(0))), tokenize(textOf(workload.item(1)))];
    assert.deepEqual(a.slice(0, 512), b.slice(0, 512));
    assert.notDeepEqual(a.slice(512), b.slice(512, 600));
  });

  it('with times running backwards or a length missing says which line', () => {
    refuses(() => trace('t.jsonl', '{"timestamp": 5, "input_length": 1, "output_length": 1}\n{"timestamp": 4, "input_length": 1, "output_length": 1}'), /line 2: the time runs backwards \(4 ms after 5 ms\)/);
    refuses(() => trace('t.jsonl', '{"timestamp": 5, "output_length": 1}'), /line 1: "input_length" must be a number/);
    refuses(() => trace('t.jsonl', ''), /no request/);
  });
});

describe('shots of a workload', () => {
  it('are salted each, by the run, or not at all', () => {
    const of = (salt: 'each' | 'run' | 'none') => shotsOf({ workload: fixedPrompt(prompt, 'x', salt), runNonce: 'r', maxTokens: 8 }, 's', 3).map((shot) => shot.nonce);
    assert.equal(new Set(of('each')).size, 3);
    assert.deepEqual(of('run'), ['r', 'r', 'r']);
    assert.deepEqual(of('none'), [null, null, null]);
  });

  it('of conversations go one after the other for each user', () => {
    const workload = synthetic({ prefixTokens: 0, promptTokens: () => 5, outputTokens: null, turns: 2, seed: 1 });
    const { shots, lanes } = inConversations(shotsOf({ workload, runNonce: 'r', maxTokens: 8 }, 's', 8), 2, 2);
    assert.deepEqual(shots.map((shot) => shot.lane), ['user-0', 'user-0', 'user-1', 'user-1', 'user-0', 'user-0', 'user-1', 'user-1']);
    assert.deepEqual(lanes, { 'user-0': { concurrency: 1 }, 'user-1': { concurrency: 1 } });
  });
});
