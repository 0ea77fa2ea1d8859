/** Places that cannot be written, files without end, and words that would steer a terminal. */
import assert from 'node:assert/strict';
import { execFileSync, spawn } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, readFileSync, symlinkSync, utimesSync, writeFileSync } from 'node:fs';
import http from 'node:http';
import net from 'node:net';
import path from 'node:path';
import { printable } from '../../../src/cli/output';
import { nextReportFile, reportFolder } from '../../../src/cli/reports';
import type { Report } from '../../../src/report/report';
import { listen, stopServers } from '../probe/testServer';
import { dist, temporaryFolder, terminal, type Ended } from './terminal';

const steering = /[\u0000-\u0008\u000b-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069]/;
const key = 'planted-KEY-4711-abcdef';
const wild = '\u001b[2J\u001b]0;title\u0007\u202eevil\u2066\u009b31m\r';

/** A server that answers with these words, the key in them. */
async function wildServer(answer: string): Promise<string> {
  const server = http.createServer((request, response) => {
    if (request.method === 'GET') {
      response.writeHead(404).end();
      return;
    }
    response.writeHead(200, { 'content-type': 'text/event-stream' });
    response.end(`data: ${JSON.stringify({ choices: [{ delta: { content: answer } }] })}\n\ndata: {"choices":[{"delta":{"content":"b"},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n`);
  });
  return `http://127.0.0.1:${await listen(server)}/v1`;
}

describe('the terminal tool in hostile places', function () {
  this.timeout(60_000);
  const folder = temporaryFolder();
  const run = (args: readonly string[], env: NodeJS.ProcessEnv = {}): Promise<Ended> => terminal(args, { cwd: folder.path, env: { FIRST_TOKEN_API_KEY: key, ...env } }).ended;
  const one = ['-n', '1', '--warmup', '0'];
  let url: string;

  beforeEach(async () => {
    url = await wildServer(`${wild}${key}`);
  });
  afterEach(stopServers);
  after(() => {
    folder.dispose();
  });

  it('writes what steers a terminal as escapes, and keeps the key out of answers it prints', async () => {
    const { stdout, stderr, code } = await run(['probe', '--endpoint', url, '--text', ...one]);
    assert.equal(code, 0);
    assert.doesNotMatch(stdout + stderr, steering);
    assert.match(stdout, /\\u001b\[2J/);
    assert.doesNotMatch(stdout + stderr, /4711/);
    const file = path.join(folder.path, 'wild.sse');
    writeFileSync(file, `data: ${JSON.stringify({ choices: [{ delta: { content: wild }, finish_reason: wild }] })}\n\ndata: [DONE]\n\n`);
    assert.doesNotMatch((await run(['decode', file])).stdout, steering);
    const { stdout: json } = await run(['decode', file, '--json']);
    assert.doesNotMatch(json, steering);
    assert.equal((JSON.parse(json) as { text: string }).text, wild, 'JSON reads the escapes as what they were');
    for (const args of [[wild], ['probe', `--${wild}`], ['show', wild], ['probe', '--endpoint', wild]]) assert.doesNotMatch((await run(args)).stderr, steering);
  });

  it('shows other words as they are', () => {
    assert.equal(printable('Grüße 🌊\n\tend\r\n'), 'Grüße 🌊\n\tend\n');
  });

  it('an output on a full disk: exit code 2, and the report is kept', async function () {
    if (!existsSync('/dev/full')) this.skip();
    const ended = await shell(`"$NODE" "$CLI" probe --endpoint ${url} -n 1 --warmup 0 > /dev/full`, folder.path);
    assert.equal(ended.code, 2);
    assert.match(ended.stderr, /report is in .*jsonl\n.*could not be written: ENOSPC/s);
  });

  it('a report file that fills the disk midway: the report is printed all the same', async function () {
    if (process.platform === 'win32') this.skip();
    const file = path.join(folder.path, 'limited.jsonl');
    // A limit on the size of files stands in for the disk; one block is more than the header and less than all samples.
    const ended = await shell(`trap '' XFSZ; ulimit -f 8; "$NODE" "$CLI" probe --endpoint ${url} -n 40 -c 4 --warmup 0 --save ${file}`, folder.path);
    assert.match(ended.stdout, /First token \(TTFT\)/);
    assert.match(ended.stderr, /report file could not be written to its end/);
    assert.doesNotMatch(ended.stderr, /in a way it should not/);
  });

  it('an experiment whose report fills the disk midway: its result is printed all the same', async function () {
    if (process.platform === 'win32') this.skip();
    const file = path.join(folder.path, 'limited-sweep.jsonl');
    const { stdout, stderr } = await shell(`trap '' XFSZ; ulimit -f 8; "$NODE" "$CLI" sweep --endpoint ${url} --steps 1,2 --warmup 0 --save ${file}`, folder.path);
    assert.match(stdout, /at once +requests/);
    assert.match(stderr, /report file could not be written to its end/);
    assert.doesNotMatch(stderr, /in a way it should not|The report is in/);
  });

  it('two runs that would write one file: the second is refused, a run that was killed stands in nobody\'s way', async () => {
    const quiet = http.createServer((request, response) => {
      if (request.method === 'GET') response.writeHead(404).end();
      else response.writeHead(200, { 'content-type': 'text/event-stream' }).write(': still thinking\n\n');
    });
    const slow = `http://127.0.0.1:${await listen(quiet)}/v1`;
    const file = path.join(folder.path, 'shared.jsonl');
    const first = terminal(['probe', '--endpoint', slow, '--save', file, ...one], { cwd: folder.path });
    while (!existsSync(`${file}.lock`)) await new Promise((resolve) => setTimeout(resolve, 20));
    const second = await run(['probe', '--endpoint', url, '--save', file, ...one]);
    assert.equal(second.code, 2);
    assert.match(second.stderr, new RegExp(`another run \\(process ${first.child.pid}\\) is writing it.*--save`));
    assert.equal(readFileSync(file, 'utf8').split('\n').filter((line) => line !== '').length, 1, 'the first run has its header only');
    first.child.kill('SIGKILL');
    await first.ended;
    assert.ok(existsSync(`${file}.lock`));
    assert.equal((await run(['probe', '--endpoint', url, '--save', file, ...one])).code, 0);
    assert.ok(!existsSync(`${file}.lock`));
  });

  it('an input without end is read no further than its limit, whatever flag names it', async function () {
    if (!existsSync('/dev/zero')) this.skip();
    for (const args of [['fairness', '--tenants', '/dev/zero'], ['sweep', '/dev/zero', '--data', 'rows.csv']]) {
      writeFileSync(path.join(folder.path, 'rows.csv'), 'name\nAda\n');
      const { code, stderr } = await run([...args, '--endpoint', url]);
      assert.equal(code, 2);
      assert.match(stderr, /\/dev\/zero has more than 5 MB/);
    }
    mkdirSync(path.join(folder.path, 'endless', '.vscode'), { recursive: true });
    symlinkSync('/dev/zero', path.join(folder.path, 'endless', '.vscode', 'settings.json'));
    const { code } = await terminal(['probe', '--endpoint', url, ...one], { cwd: path.join(folder.path, 'endless') }).ended;
    assert.equal(code, 0, 'settings that are no file are none');
  });

  it('a file that holds no answer: exit code 3; a broken stream is decoded as far as it goes', async () => {
    const codeOf = async (name: string, content: string): Promise<number | null> => {
      writeFileSync(path.join(folder.path, name), content);
      assert.equal((await run(['decode', name, '--json'])).code, 0, 'the object tells the outcome');
      return (await run(['decode', name])).code;
    };
    assert.equal(await codeOf('nonsense.txt', 'Dear reader, this is a letter.\n'), 3);
    assert.equal(await codeOf('empty.sse', ''), 3);
    assert.equal(await codeOf('cut.sse', 'data: {"choices":[{"delta":{"content":"a"}}]}\n\nda'), 0);
    assert.equal(await codeOf('refused.json', '{"error":{"message":"no such model"}}'), 0);
  });

  it('a folder that is gone, and --save to a device', async function () {
    if (process.platform === 'win32') this.skip();
    const gone = await shell(`mkdir gone && cd gone && rmdir ../gone && "$NODE" "$CLI" probe --endpoint ${url}`, folder.path);
    assert.equal(gone.code, 2);
    assert.match(gone.stderr, /current folder does not exist/);
    assert.equal((await run(['probe', '--endpoint', url, '--save', '/dev/null', ...one])).code, 0);
    symlinkSync('loop', path.join(folder.path, 'loop'));
    for (const args of [['probe', 'loop', '--endpoint', url], ['probe', '--endpoint', url, '--save', 'loop', ...one], ['show', 'loop'], ['decode', 'loop']]) {
      const { code, stderr } = await run(args);
      assert.equal(code, 2);
      assert.match(stderr, /loop.*ELOOP|ELOOP.*loop/);
    }
  });

  it('--save does not overwrite what is no report', async () => {
    const prompt = path.join(folder.path, 'mine.md');
    writeFileSync(prompt, 'My prompt.\n');
    const { code, stderr } = await run(['probe', prompt, '--endpoint', url, '--save', prompt, ...one]);
    assert.equal(code, 2);
    assert.match(stderr, /would overwrite .*mine\.md/);
    assert.equal(readFileSync(prompt, 'utf8'), 'My prompt.\n');
    const report = path.join(folder.path, 'again.jsonl');
    writeFileSync(report, '');
    for (let k = 0; k < 2; k += 1) assert.equal((await run(['probe', '--endpoint', url, '--save', report, ...one])).code, 0);
  });

  it('a file without end is read no further than its limit', async function () {
    if (!existsSync('/dev/zero')) this.skip();
    const { code, stderr } = await run(['probe', '/dev/zero', '--endpoint', url]);
    assert.equal(code, 2);
    assert.match(stderr, /more than 5 MB/);
  });

  it('reads a pipe', async function () {
    if (process.platform === 'win32') this.skip();
    const { stdout } = await shell(`printf 'data: {"choices":[{"delta":{"content":"piped"}}]}\\n\\ndata: [DONE]\\n\\n' | "$NODE" "$CLI" decode /dev/stdin`, folder.path);
    assert.match(stdout, /^piped\n/);
  });

  it('a second Ctrl-C ends what waits for a pipe that nobody writes to', async function () {
    if (process.platform === 'win32') this.skip();
    const pipe = path.join(folder.path, 'pipe');
    execFileSync('mkfifo', [pipe]);
    const { child, ended } = terminal(['decode', pipe], { cwd: folder.path });
    const press = setInterval(() => child.kill('SIGINT'), 300);
    await ended;
    clearInterval(press);
    assert.equal(child.signalCode, 'SIGINT');
  });

  it('a state folder that cannot be one: says so and goes on', async () => {
    const file = path.join(folder.path, 'nofolder');
    writeFileSync(file, '');
    const { code, stderr } = await run(['probe', '--endpoint', url, ...one], { XDG_STATE_HOME: file });
    assert.equal(code, 0);
    assert.match(stderr, /will not be kept.*--save/);
    // Node's own recursive mkdir never returns there.
    const proc = await run(['probe', '--endpoint', url, ...one], { XDG_STATE_HOME: '/proc' });
    assert.equal(proc.code, 0);
    if (process.platform === 'linux') assert.match(proc.stderr, /will not be kept.*--save/);
  });

  it('variables without an absolute path name no state folder', () => {
    assert.equal(reportFolder({ XDG_STATE_HOME: '' }), reportFolder({}));
    assert.equal(reportFolder({ XDG_STATE_HOME: 'relative' }), reportFolder({}));
    const own = path.join(folder.path, 'own');
    assert.equal(reportFolder({ XDG_STATE_HOME: own }), path.join(own, 'first-token', 'reports'));
  });

  it('keeps thirty reports, and those another run may still be writing', () => {
    const env = { XDG_STATE_HOME: path.join(folder.path, 'many') };
    const reports = path.join(env.XDG_STATE_HOME, 'first-token', 'reports');
    mkdirSync(reports, { recursive: true });
    const now = new Date();
    for (let k = 10; k < 50; k += 1) {
      const file = path.join(reports, `2026-01-01T00-${k}-00-000Z-1.first-token.jsonl`);
      writeFileSync(file, '');
      const written = new Date(now.getTime() - (k === 10 ? 0 : 2 * 3_600_000));
      utimesSync(file, written, written);
    }
    nextReportFile(env, now);
    const left = readdirSync(reports);
    assert.equal(left.length, 30);
    assert.ok(left[0]!.includes('T00-10-'), 'the oldest is written to');
  });

  it('a response whose bytes cannot be JSON for any parser ends no process', async () => {
    const deep = `${'{"error":'.repeat(50_000)}1${'}'.repeat(50_000)}`;
    const server = net.createServer((socket) => {
      socket.on('error', () => undefined);
      socket.on('data', () => socket.write(`HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\ncontent-length: ${deep.length + 8}\r\n\r\ndata: ${deep}\n\n`));
    });
    const { code, stdout, stderr } = await run(['probe', '--endpoint', `http://127.0.0.1:${await listen(server)}/v1`, '--json', ...one]);
    assert.equal(stderr, '');
    assert.equal(code, 3);
    assert.deepEqual((JSON.parse(stdout) as Report).outcomes, { malformed: 1 });
  });

  function shell(command: string, cwd: string): Promise<Ended> {
    const child = spawn('/bin/sh', ['-c', command], { cwd, env: { PATH: process.env['PATH'], NODE: process.execPath, CLI: path.join(dist, 'cli.js'), HOME: cwd, XDG_STATE_HOME: path.join(cwd, 'state') } });
    let stdout = '';
    let stderr = '';
    child.stdout.on('data', (part: Buffer) => (stdout += part.toString()));
    child.stderr.on('data', (part: Buffer) => (stderr += part.toString()));
    return new Promise((resolve) => {
      child.once('close', (code) => {
        resolve({ code, stdout, stderr });
      });
    });
  }
});
