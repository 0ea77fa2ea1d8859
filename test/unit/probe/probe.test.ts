import assert from 'node:assert/strict';
import { spawn } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import type http from 'node:http';
import net from 'node:net';
import { tmpdir } from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { createMemory, createReportFile, defaultNetwork, defaultProbeSettings, endpointFromUrl, PlanError, probe, type ProbeJob, type RunEvent } from '../../../src/probe/index';
import { isReportProblem, parseReport, type Report } from '../../../src/report/report';
import { recorderScript } from './builtRecorder';
import { listen, serve, stopServers, until } from './testServer';

const planted = 'planted-key-for-everything';
const never = new AbortController().signal;

/** An OpenAI-compatible chat server: one token every few ms. */
function chatServer(more: { readonly tokens?: number; readonly pause?: number; readonly onChat?: (body: Record<string, unknown>, request: http.IncomingMessage, response: http.ServerResponse) => boolean } = {}): Promise<string> {
  const { tokens = 5, pause = 5, onChat } = more;
  return serve((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString())).on('end', () => {
      if (request.url === '/v1/models') return response.end(JSON.stringify({ object: 'list', data: [{ id: 'tiny', owned_by: 'someone' }] }));
      if (request.method === 'GET') return response.writeHead(404).end('{}');
      if (onChat?.(JSON.parse(body) as Record<string, unknown>, request, response)) return undefined;
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      let sent = 0;
      const send = (value: unknown): void => void response.write(`data: ${JSON.stringify(value)}\n\n`);
      send({ choices: [{ index: 0, delta: { role: 'assistant', content: '' } }] });
      const timer = setInterval(() => {
        if ((sent += 1) <= tokens) return send({ choices: [{ index: 0, delta: { content: `word${sent} ` } }] });
        clearInterval(timer);
        send({ choices: [{ index: 0, delta: {}, finish_reason: 'stop' }] });
        send({ choices: [], usage: { prompt_tokens: 9, completion_tokens: tokens, prompt_tokens_details: { cached_tokens: 4 } } });
        response.end('data: [DONE]\n\n');
      }, pause);
      response.on('close', () => {
        clearInterval(timer);
      });
      return undefined;
    });
  });
}

async function job(url: string, more: Partial<ProbeJob> = {}): Promise<ProbeJob> {
  return {
    endpoint: endpointFromUrl(url),
    key: planted,
    prompt: { messages: [{ role: 'user', text: 'Tell me the planted-prompt-text.' }], tools: [] },
    promptName: 'built-in',
    settings: { ...defaultProbeSettings, requests: 4 },
    slo: { ttft: 5000, attainment: 0.5 },
    objective: 'chat',
    readerPace: 120,
    network: { ...defaultNetwork, proxy: 'none' },
    environment: { product: 'test', node: process.version, platform: 'test', editor: null, remote: null },
    recorderScript: await recorderScript(),
    reportFile: null,
    memory: createMemory(),
    unrendered: [],
    keepText: false,
    ...more,
  };
}

async function events(of: ProbeJob, signal = never, onEvent: (event: RunEvent) => void = () => undefined): Promise<RunEvent[]> {
  const list: RunEvent[] = [];
  for await (const event of probe(of, signal)) {
    list.push(event);
    onEvent(event);
  }
  return list;
}

function endOf(list: readonly RunEvent[]): Extract<RunEvent, { type: 'end' }> {
  const last = list.at(-1);
  assert.ok(last?.type === 'end');
  return last;
}

function read(file: string): Report {
  const report = parseReport(readFileSync(file, 'utf8'));
  assert.ok(!isReportProblem(report), JSON.stringify(report));
  return report;
}

describe('a probe', () => {
  let folder = '';
  before(async () => {
    await recorderScript();
    folder = mkdtempSync(path.join(tmpdir(), 'first-token-probe-'));
  });
  after(() => {
    rmSync(folder, { recursive: true, force: true });
  });
  afterEach(stopServers);

  it('goes from a URL to a report', async () => {
    const file = path.join(folder, 'deep', 'one.first-token.jsonl');
    const list = await events(await job(await chatServer(), { reportFile: createReportFile(file) }));
    const [begin] = list;
    assert.ok(begin?.type === 'begin');
    assert.equal(begin.total, 5);
    assert.deepEqual([begin.report.endpoint.model, begin.report.endpoint.api, begin.report.endpoint.path], ['tiny', 'openai-chat', '/v1/chat/completions']);
    const { report, stopped } = endOf(list);
    assert.equal(stopped, null);
    assert.deepEqual(report.outcomes, { ok: 4 });
    assert.equal(report.summary.ttft?.n, 4);
    assert.equal(report.verdict, 'met');
    assert.deepEqual([report.cache.promptTokens, report.cache.cachedTokens], [36, 16]);
    assert.equal(report.samples.length, 5);
    assert.ok(report.samples.every((sample) => sample.connection.reused), 'connections were opened ahead');
    assert.ok(report.clockError !== null && report.clockError.n > 0);
    const saved = read(file);
    assert.deepEqual(saved.samples.map(({ id }) => id), report.samples.map(({ id }) => id));
    assert.deepEqual(saved.summary.ttft, report.summary.ttft);
    assert.ok(!JSON.stringify(list).includes(planted));
    assert.ok(!readFileSync(file, 'utf8').includes(planted));
    assert.ok(!readFileSync(file, 'utf8').includes('planted-prompt-text') && !readFileSync(file, 'utf8').includes('word1'), 'no texts unless asked for');
  });

  it('keeps texts, with an end, only when asked to', async () => {
    const { report } = endOf(await events(await job(await chatServer(), { keepText: true, keepTextDays: 3, settings: { ...defaultProbeSettings, requests: 1, warmup: 0 } })));
    assert.deepEqual(Object.values(report.texts!.answers), [{ text: 'word1 word2 word3 word4 word5 ', reasoning: '' }]);
    assert.equal(Date.parse(report.texts!.expires) - Date.parse(report.createdAt), 3 * 86_400_000);
  });

  it('keeps no text with the key in it', async () => {
    const onChat = (_body: unknown, _request: http.IncomingMessage, response: http.ServerResponse): boolean => {
      response.writeHead(200, { 'content-type': 'text/event-stream' });
      response.end(`data: ${JSON.stringify({ choices: [{ delta: { content: `your key is ${planted}` } }] })}\n\ndata: ${JSON.stringify({ choices: [{ delta: { reasoning_content: planted }, finish_reason: planted }] })}\n\ndata: [DONE]\n\n`);
      return true;
    };
    const { report } = endOf(await events(await job(await chatServer({ onChat }), { keepText: true, settings: { ...defaultProbeSettings, requests: 1, warmup: 0 } })));
    assert.equal(Object.values(report.texts!.answers)[0]?.text, 'your key is [redacted]');
    assert.ok(!JSON.stringify(report).includes(planted));
  });

  it('shows tokens while they come, once each', async () => {
    const live = new Map<string, number>();
    const list = await events(await job(await chatServer({ tokens: 30, pause: 20 }), { settings: { ...defaultProbeSettings, requests: 2, warmup: 0, concurrency: 2 } }));
    for (const event of list) if (event.type === 'live') for (const row of event.rows) live.set(row.id, (live.get(row.id) ?? 0) + row.t.length);
    assert.deepEqual([...live.keys()].sort(), ['1', '2']);
    assert.ok([...live.values()].every((count) => count > 0 && count <= 30), JSON.stringify([...live]));
  });

  it('keeps the key out of what it found, also where a server lists it as a model', async () => {
    const url = await serve((request, response) => {
      if (request.url === '/v1/models') response.end(JSON.stringify({ data: [{ id: planted }] }));
      else response.writeHead(401).end(JSON.stringify({ error: { message: `wrong: ${planted}` } }));
    });
    const all = await events(await job(url, { settings: { ...defaultProbeSettings, requests: 1, warmup: 0 } }));
    const [begin] = all;
    assert.ok(begin?.type === 'begin' && begin.detection?.needsKey);
    assert.ok(!JSON.stringify([begin, endOf(all).report]).includes(planted));
  });

  it('remembers what it found, and asks no second time', async () => {
    const memory = createMemory();
    let asked = 0;
    const url = await chatServer({
      onChat: (body, _request, response) => {
        asked += 1;
        if (!('stream_options' in body)) return false;
        response.writeHead(422).end(JSON.stringify({ detail: [{ loc: ['body', 'stream_options'], msg: 'Extra inputs are not permitted', type: 'extra_forbidden' }] }));
        return true;
      },
    });
    const settings = { ...defaultProbeSettings, requests: 1, warmup: 0 };
    const first = endOf(await events(await job(url, { memory, settings }))).report;
    assert.deepEqual([first.samples.map(({ role }) => role), first.endpoint.refusedFields], [['negotiation', 'measured'], ['stream_options']]);
    assert.equal(memory.recall(url).detection?.models[0], 'tiny');
    const second = endOf(await events(await job(url, { memory, settings }))).report;
    assert.equal(second.samples.length, 1);
    assert.equal(asked, 3);
  });

  it('refuses a job that cannot be carried out at once', async () => {
    const good = await job('http://127.0.0.1:9');
    const refused = (more: Partial<ProbeJob>, message: RegExp): void => {
      assert.throws(() => probe({ ...good, ...more }, never), (error) => error instanceof PlanError && message.test(error.message), String(message));
    };
    refused({ endpoint: { ...good.endpoint, url: 'localhost:8000' } }, /has no scheme: write http:\/\/localhost:8000/);
    refused({ prompt: { messages: [], tools: [] } }, /empty/);
    refused({ settings: { ...good.settings, requests: 0 } }, /firstToken\.probe\.requests/);
    refused({ slo: { ttft: -1, attainment: 0.9 } }, /firstToken\.slo\.ttft/);
    refused({ slo: { attainment: 95 } }, /firstToken\.slo\.attainment/);
    refused({ slo: { valid: { pattern: '(' }, attainment: 0.9 } }, /firstToken\.slo\.valid\.pattern/);
    refused({ endpoint: { ...good.endpoint, tls: { insecure: false, caFile: '/no/such/file.pem' } } }, /tls\.caFile.*cannot be read/);
    refused({ endpoint: { ...good.endpoint, tls: { insecure: false, caFile: __filename } } }, /holds no certificate/);
    refused({ endpoint: { ...good.endpoint, headers: { a: '${env:TOKEN}' } } }, /--allow-env TOKEN/);
  });

  it('needs a name for the model where the API does and the server lists none', async () => {
    const url = await serve((_request, response) => response.writeHead(404).end());
    await assert.rejects(events(await job(url, { endpoint: { ...endpointFromUrl(url), api: 'anthropic' } })), (error) => error instanceof PlanError && /--model/.test(error.message));
  });

  it('has no limit for connecting where timeouts.connect is null', async () => {
    const port = await listen(net.createServer(() => undefined));
    const endpoint = { ...endpointFromUrl(`https://127.0.0.1:${port}`), api: 'openai-chat' as const };
    const more = { detect: false, settings: { ...defaultProbeSettings, requests: 1, warmup: 0 }, network: { ...defaultNetwork, proxy: 'none' as const, connectTimeout: 100 }, timeouts: { firstToken: 1000 } };
    const outcome = async (connect: null | undefined): Promise<Report['outcomes']> => endOf(await events(await job('http://127.0.0.1', { ...more, endpoint: { ...endpoint, timeouts: connect === undefined ? {} : { connect } } }))).report.outcomes;
    assert.deepEqual(await outcome(null), { 'timeout-first-token': 1 });
    assert.deepEqual(await outcome(undefined), { tls: 1 });
  });

  it('says that the report cannot be written before it sends anything', async () => {
    let asked = 0;
    const url = await chatServer({ onChat: () => ((asked += 1), false) });
    await assert.rejects(events(await job(url, { reportFile: createReportFile(path.join(__filename, 'x.jsonl')) })), (error) => error instanceof PlanError && /--save/.test(error.message));
    assert.equal(asked, 0);
  });

  it('finishes the measurement when the disk does not', async () => {
    const broken = { begin: () => Promise.resolve(), sample: () => Promise.reject(new Error('ENOSPC: no space left')), end: () => Promise.resolve() };
    const list: RunEvent[] = [];
    await assert.rejects(async () => {
      for await (const event of probe(await job(await chatServer(), { reportFile: broken }), never)) list.push(event);
    }, /ENOSPC.*save it elsewhere/);
    assert.equal(endOf(list).report.samples.length, 5);
  });

  it('tells an endpoint that is not there as an outcome', async () => {
    const { report, stopped } = endOf(await events(await job('http://127.0.0.1:1')));
    assert.deepEqual(report.outcomes, { connect: 4 });
    assert.equal(stopped, 'breaker');
    assert.equal(report.summary.ttft, null);
  });

  it('judges answers by a pattern', async () => {
    const url = await chatServer();
    const settings = { ...defaultProbeSettings, requests: 2, warmup: 0 };
    const good = endOf(await events(await job(url, { settings, slo: { valid: { pattern: '^word1 ' }, attainment: 0.5 } }))).report;
    const bad = endOf(await events(await job(url, { settings, slo: { valid: { pattern: '^no' }, attainment: 0.5 } }))).report;
    assert.deepEqual([good.attainment?.good, bad.attainment?.good], [2, 0]);
    assert.deepEqual([good.outcomes, bad.outcomes], [{ ok: 2 }, { invalid: 2 }]);
  });

  it('gives no verdict when this machine was the limit, and says so', async function () {
    this.timeout(60_000);
    const url = await chatServer();
    let before = performance.eventLoopUtilization();
    const list = await events(await job(url, { settings: { ...defaultProbeSettings, requests: 2 } }), never, ({ type }) => {
      if (type === 'begin') before = performance.eventLoopUtilization();
      // Whoever shows the events keeps the thread busy.
      if (type === 'sample') while (performance.eventLoopUtilization(before).utilization < 0.9);
    });
    const { report } = endOf(list);
    assert.deepEqual(report.outcomes, { ok: 2 });
    assert.equal(report.verdict, null);
    const caveat = report.caveats.find(({ kind }) => kind === 'client-bottleneck');
    assert.match(caveat?.kind === 'client-bottleneck' ? caveat.detail : '', /event loop was busy (8|9)\d of 100/);
  });

  it('ends with what it has when cancelled, and closes its sockets', async () => {
    let open = 0;
    const url = await chatServer({
      tokens: 100_000,
      onChat: (_body, request) => {
        open += 1;
        request.socket.on('close', () => (open -= 1));
        return false;
      },
    });
    const file = path.join(folder, 'cancelled.first-token.jsonl');
    const abort = new AbortController();
    const list = await events(await job(url, { reportFile: createReportFile(file), settings: { ...defaultProbeSettings, requests: 3, warmup: 0, concurrency: 2 } }), abort.signal, (event) => {
      if (event.type === 'live' && event.rows.some((row) => row.t.length > 0)) abort.abort();
    });
    const { report, stopped } = endOf(list);
    assert.equal(stopped, 'user');
    assert.deepEqual(report.outcomes, { cancelled: 2 });
    assert.ok(report.samples.every(({ deltas }) => deltas.length > 0), 'what had arrived is kept');
    assert.ok(read(file).caveats.some((caveat) => caveat.kind === 'stopped'));
    await until(() => open === 0, 'all sockets closed');
  });

  it('loses only what was in flight when its process is killed', async function () {
    this.timeout(60_000);
    let chats = 0;
    const url = await chatServer({ onChat: () => ((chats += 1) > 4 ? chats > 0 : false) });
    const file = path.join(folder, 'killed.first-token.jsonl');
    const script = `
      const { probe, createReportFile } = require(${JSON.stringify(path.join(__dirname, '../../../src/probe/index.ts'))});
      const job = ${JSON.stringify(await job(url))};
      job.reportFile = createReportFile(${JSON.stringify(file)});
      job.memory = { recall: () => ({ refused: [], detection: null }), refuse() {}, detected() {}, all: {} };
      job.settings.requests = 9;
      (async () => { for await (const event of probe(job, new AbortController().signal)) if (event.type === 'sample') console.log(event.sample.id); })();`;
    const child = spawn(process.execPath, ['--require', 'tsx/cjs', '-e', script], { cwd: path.join(__dirname, '../../..'), stdio: ['ignore', 'pipe', 'inherit'] });
    let told = '';
    child.stdout.on('data', (chunk: Buffer) => (told += chunk.toString()));
    // The fifth chat (the fourth measured one) hangs; what was told of is on disk, three measured ones and the warm-up.
    await until(() => chats === 5 && told.split('\n').includes('3'), 'the request in flight');
    child.kill('SIGKILL');
    await new Promise((resolve) => child.once('close', resolve));
    const report = read(file);
    assert.deepEqual(report.samples.map(({ id }) => id), ['warmup-1', '1', '2', '3']);
    assert.ok(told.trim().split('\n').every((id) => report.samples.some((sample) => sample.id === id)), 'everything told was on disk before');
    assert.ok(report.caveats.some((caveat) => caveat.kind === 'stopped' && caveat.by === 'interrupted'));
    assert.equal(report.summary.ttft?.n, 3);
  });
});
