import assert from 'node:assert/strict';
import { writeFileSync } from 'node:fs';
import path from 'node:path';
import type { SweepResult } from '../../../src/probe/scenario/sweep';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { dist, temporaryFolder, terminal, type Ended } from './terminal';

describe('experiments in the terminal', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  let simulator: StartedSimulator;
  const run = (...args: string[]): Promise<Ended> => terminal(args, { cwd: folder.path }).ended;
  const write = (name: string, content: string): void => {
    writeFileSync(path.join(folder.path, name), content);
  };

  before(async () => {
    simulator = await startSimulator({ script: path.join(dist, 'simulator.js') });
  });
  after(async () => {
    await simulator.stop();
    folder.dispose();
  });

  it('print the documented JSON and nothing else', async () => {
    const { code, stdout } = await run('sweep', '--endpoint', simulator.url, '--steps', '1,4', '--max-tokens', '4', '--json');
    const result = JSON.parse(stdout) as SweepResult;
    assert.equal(result.schema, 'first-token/sweep@1');
    assert.deepEqual(result.steps.slice(0, 2).map((step) => step.concurrency), [1, 4]);
    for (const name of ['concurrency', 'throughput', 'perUser', 'goodput', 'attainment', 'summary', 'verdict']) assert.ok(name in result.steps[0]!, name);
    assert.ok(result.sentences.length >= 2);
    assert.equal(code, 0);
    const detected = await run('batching', '--endpoint', simulator.url, '--json', '--trials', '1');
    const batching = JSON.parse(detected.stdout) as { schema: string; verdict: string; evidence: object };
    assert.deepEqual([batching.schema, ['continuous', 'request-level', 'timed', 'unclear'].includes(batching.verdict), typeof batching.evidence], ['first-token/batching@1', true, 'object']);
  });

  it('print a table and sentences for people, and keep the report', async () => {
    const { code, stdout, stderr } = await run('rate', '--endpoint', simulator.url, '--rates', '50', '--duration', '0.5', '--max-tokens', '4', '--save', 'rate.first-token.jsonl');
    assert.equal(code, 0);
    assert.match(stdout, /per second .*from due/);
    assert.match(stdout, /Ended: (the one rate asked for was measured|this machine could not send more)/);
    assert.match(stderr, /rate\.first-token\.jsonl/);
    const shown = await run('show', 'rate.first-token.jsonl');
    assert.match(shown.stdout, /^rate\.first-token\.jsonl: rate at .*\n\nrate, numbers below of step r50-1/);
  });

  it('fill a prompt from rows, and replay a trace', async () => {
    write('hello.j2', 'Say hello to {{ name }}.');
    write('people.csv', 'name\nAda\nBob\n');
    const filled = await run('sweep', 'hello.j2', '--data', 'people.csv', '--endpoint', simulator.url, '--steps', '2', '--max-tokens', '4', '--json');
    const [step] = (JSON.parse(filled.stdout) as SweepResult).steps;
    assert.ok(step!.requests >= 20 && step!.outcomes.ok === step!.requests, filled.stderr);
    write('trace.jsonl', Array.from({ length: 12 }, (_, i) => JSON.stringify({ timestamp: i * 20, input_length: 30, output_length: 4 })).join('\n'));
    const replayed = await run('rate', '--trace', 'trace.jsonl', '--endpoint', simulator.url, '--json');
    const result = JSON.parse(replayed.stdout) as { arrivals: string; steps: { requests: number; outcomes: Record<string, number> }[] };
    assert.deepEqual([result.arrivals, result.steps[0]!.requests, result.steps[0]!.outcomes], ['trace', 12, { ok: 12 }]);
  });

  it('end with the first Ctrl-C, and keep what was measured', async () => {
    const { child, ended } = terminal(['sweep', '--endpoint', simulator.url, '--steps', '1,2', '--json'], { cwd: folder.path });
    setTimeout(() => child.kill('SIGINT'), 2500);
    const { stdout } = await ended;
    const result = JSON.parse(stdout) as SweepResult;
    assert.match(result.ended, /stopped by you/);
    assert.equal(result.steps[0]!.concurrency, 1);
  });

  const wrong: readonly (readonly [string[], RegExp])[] = [
    [['sweep', '--steps', '4,2'], /--steps must be rising/],
    [['sweep', '--most', '5000'], /--most takes a whole number from 1 to 1000/],
    [['sweep', '--trace', 'trace.jsonl'], /rate --trace/],
    [['sweep', '--data', 'people.csv'], /name the file too/],
    [['sweep', 'hello.j2', '--data', 'no-name.csv'], /row 1 has no value for name/],
    [['sweep', '--prompt-tokens', '64', '--sharegpt', 's.json'], /cannot be combined/],
    [['sweep', '--max-requests', '5'], /too small for one step/],
    [['rate', '--trace', 'backwards.jsonl'], /line 2: the time runs backwards/],
    [['rate', '--rates', '0'], /--rates takes numbers above 0/],
    [['batching', '--long', '8'], /--long \(8\) must be at least four times/],
    [['interference', '--lab', '--chunked-prefill 5'], /use it with --demo/],
    [['fairness', '--tenants', 'tenants.json'], /--tenants tenants\.json/],
    [['overload', '--factor', '1'], /--factor must be above 1/],
    [['encoder', '--compare', 'http://127.0.0.1:1'], /--compare and --inputs go together/],
  ];
  for (const [args, pattern] of wrong) {
    it(`refuse ${args.join(' ')}`, async () => {
      write('hello.j2', 'Say hello to {{ name }}.');
      write('people.csv', 'name\nAda\n');
      write('trace.jsonl', '{"timestamp": 1, "input_length": 1, "output_length": 1}\n');
      write('no-name.csv', 'nam\nAda\n');
      write('s.json', '[]');
      write('tenants.json', '[{"name": "only"}]');
      write('backwards.jsonl', '{"timestamp": 2, "input_length": 1, "output_length": 1}\n{"timestamp": 1, "input_length": 1, "output_length": 1}\n');
      const { code, stderr } = await run(...args, '--endpoint', simulator.url);
      assert.match(stderr, pattern);
      assert.equal(code, 2);
    });
  }
});
