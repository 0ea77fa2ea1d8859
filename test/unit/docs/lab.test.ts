/** docs/lab.md: its numbers are those of the formulas, its lessons are on the lab page, and every command in it is taken by the terminal tool. */
import assert from 'node:assert/strict';
import { readFileSync, writeFileSync } from 'node:fs';
import path from 'node:path';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { stepTime } from '../../../src/simulator/formula';
import { hardware, kvBytesPerToken, weightBytes } from '../../../src/simulator/model';
import { lessons } from '../../../webview/labSettings';
import { root, temporaryFolder, terminal } from '../cli/terminal';

const text = readFileSync(path.join(root, 'docs/lab.md'), 'utf8');
const commands = [...text.matchAll(/```sh\n([^]*?)```/g)].flatMap((match) => match[1]!.trim().split('\n'));
const files = [...text.matchAll(/`([\w.]+)`:\n\n```\n([^]*?)```/g)].map((match) => [match[1]!, match[2]!] as const);
const words = (command: string): string[] => [...command.matchAll(/"([^"]*)"|(\S+)/g)].map((match) => match[1] ?? match[2]!).slice(1);

describe('docs/lab.md', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  before(() => {
    for (const [name, content] of files) writeFileSync(path.join(folder.path, name), content);
  });
  after(() => folder.dispose());

  it('has the numbers of the formulas', () => {
    const demo = hardware();
    assert.equal((weightBytes(demo) / 1e9).toFixed(2), '16.06');
    assert.equal(Math.round(kvBytesPerToken(demo) / 1000), 131);
    assert.match(text, /\*\*3\.35 ms\*\*/);
    assert.equal((16.06 / 4.8).toFixed(2), '3.35');
    const rows = [...text.matchAll(/^\| (\d+) \| ([\d.]+) \| (\d+) \| ([\d ]+) \|$/gm)];
    assert.equal(rows.length, 4);
    for (const [, sequences, step, each, all] of rows) {
      const b = Number(sequences);
      const time = stepTime(demo, Array.from({ length: b }, () => ({ tokens: 1, context: 999 })));
      assert.equal(step, time.toFixed(2));
      assert.ok(Math.abs(Number(each) - 1000 / time) <= 1);
      assert.ok(Math.abs(Number(all!.replaceAll(' ', '')) - (1000 * b) / time) <= 0.002 * Number(all!.replaceAll(' ', '')), all);
    }
    const drafts = (1 - 0.7 ** 4) / (1 - 0.7);
    assert.equal(drafts.toFixed(2), '2.53');
  });

  it('names every lesson of the lab page, and no other', () => {
    const named = [...text.matchAll(/Lab page: ([^]*?)(?:\n\n|$)/g)].flatMap((match) => [...match[1]!.matchAll(/\*([^*]+)\*/g)].map((title) => title[1]!));
    assert.deepEqual([...new Set(named)].sort(), lessons.map(({ title }) => title).sort());
  });

  it('has commands', () => {
    assert.ok(commands.length > 15);
    for (const command of commands) assert.match(command, /^first-token /);
  });

  for (const command of commands) {
    it(`can be typed: ${command}`, async () => {
      const args = words(command);
      if (args[0] === 'simulate') return void parseSimulatorArgs(args.slice(1));
      // Experiments are stopped by a budget too small for their first step: by then every flag has been read and the server has started with its own.
      const experiment = !['probe', 'prove', 'lint', 'hand-over'].includes(args[0]!);
      const more = args[0] === 'probe' ? ['-n', '1', '--max-tokens', '4'] : args[0] === 'prove' ? ['--pairs', '1'] : experiment ? ['--max-requests', '1'] : [];
      const { code, stderr } = await terminal([...args, ...more], { cwd: folder.path }).ended;
      if (experiment) {
        assert.match(stderr, /budget is too small for one step/);
        assert.equal(code, 2);
      } else assert.ok(code === 0 || code === 1, `${code}: ${stderr}`);
    });
  }
});
