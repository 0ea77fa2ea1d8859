import assert from 'node:assert/strict';
import path from 'node:path';
import { startSimulator, type StartedSimulator } from '../../../src/simulator/start';
import { probed, type Wanted } from './job';
import { nginxProblem, startNginx, type Nginx } from './nginx';

const simulatorScript = path.resolve(__dirname, '../../../dist/simulator.js');

describe('behind a real nginx', function () {
  this.timeout(120_000);
  let simulator: StartedSimulator;
  let upstream: string;

  before(async function () {
    const problem = nginxProblem();
    if (problem !== null) {
      for (const test of this.test!.parent!.tests) test.title += ` (${problem})`;
      this.skip();
    }
    simulator = await startSimulator({ script: simulatorScript });
    upstream = new URL(simulator.url).host;
  });
  after(async () => {
    await (simulator as StartedSimulator | undefined)?.stop();
  });

  async function behind(directives: string, use: (nginx: Nginx) => Promise<void>, more = ''): Promise<void> {
    const nginx = await startNginx(upstream, directives, more);
    try {
      await use(nginx);
    } finally {
      await nginx.stop();
    }
  }
  const quick: Wanted = { settings: { requests: 3, maxTokens: 24 } };

  it('passes a stream through unbuffered', async () => {
    await behind('proxy_buffering off; proxy_http_version 1.1;', async (nginx) => {
      const { report } = await probed(nginx.http, quick);
      assert.equal(report.outcomes.ok, 3);
      assert.ok(!report.caveats.some((c) => c.kind === 'delivery' || c.kind === 'one-read'));
    });
  });

  it('asks for no compression, so none comes', async () => {
    await behind('proxy_buffering off; gzip on; gzip_types text/event-stream; gzip_proxied any;', async (nginx) => {
      const { report } = await probed(nginx.http, quick);
      assert.equal(report.outcomes.ok, 3);
      assert.ok(!report.samples.some((s) => s.flags.some((flag) => flag.startsWith('content-encoding'))));
    });
  });

  it('speaks TLS and HTTP/2 with its own certificate authority, refuses without it', async () => {
    await behind('proxy_buffering off; proxy_http_version 1.1;', async (nginx) => {
      const refused = await probed(nginx.https, { settings: { requests: 1, warmup: 0 } });
      assert.equal(refused.report.outcomes.tls, 1);
      const trusted = await probed(nginx.https, { ...quick, network: { ca: [nginx.ca], http2: true } });
      assert.equal(trusted.report.outcomes.ok, 3);
      assert.equal(trusted.report.endpoint.alpn, 'h2');
      assert.ok(trusted.report.caveats.some((c) => c.kind === 'h2-stamps'));
      const plain = await probed(nginx.https, { ...quick, endpoint: { tls: { insecure: true, caFile: null } } });
      assert.equal(plain.report.outcomes.ok, 3);
      assert.equal(plain.report.endpoint.tlsVerified, false);
      assert.ok(plain.report.caveats.some((c) => c.kind === 'tls-not-verified'));
    });
  });

  it('gives up in prefill: a cut answer, never an empty success', async () => {
    const slow = await startSimulator({ script: simulatorScript, args: ['--fault', 'slow-first:3000'] });
    const nginx = await startNginx(new URL(slow.url).host, 'proxy_read_timeout 1s; proxy_buffering off;');
    try {
      const { report } = await probed(nginx.http, { settings: { requests: 1, warmup: 0 } });
      assert.equal(report.outcomes.ok, undefined);
      assert.ok(report.outcomes.truncated === 1 || report.outcomes.status === 1, JSON.stringify(report.outcomes));
    } finally {
      await nginx.stop();
      await slow.stop();
    }
  });

  it('has a proxy that releases frames in lumps named as what it is', async () => {
    // nginx itself hands these small frames on at once; the simulator collects them as a proxy with a slower flush does.
    const lumpy = await startSimulator({ script: simulatorScript, args: ['--fault', 'buffer:120'] });
    const nginx = await startNginx(new URL(lumpy.url).host, 'proxy_buffering off; proxy_http_version 1.1;');
    try {
      const { report } = await probed(nginx.http, { settings: { requests: 3, maxTokens: 120 } });
      assert.equal(report.outcomes.ok, 3);
      assert.ok(report.caveats.some((c) => c.kind === 'delivery' && c.cause === 'buffering-proxy' && c.itlMeaningless), JSON.stringify(report.caveats));
      assert.equal(report.summary.itl, null);
    } finally {
      await nginx.stop();
      await lumpy.stop();
    }
  });

  it('has its own 429 and 502 pages told as what they are', async () => {
    await behind(
      'limit_req zone=one; limit_req_status 429; proxy_buffering off;',
      async (nginx) => {
        const { report } = await probed(nginx.http, { settings: { requests: 4, warmup: 0, concurrency: 4, maxTokens: 4 } });
        const limited = report.samples.filter((s) => s.outcome.status === 429);
        assert.ok(limited.length > 0);
        assert.match(limited[0]?.outcome.message ?? '', /429|Too Many Requests/);
      },
      'limit_req_zone $binary_remote_addr zone=one:1m rate=1r/s;',
    );
    const dead = await startNginx('127.0.0.1:1', 'proxy_buffering off;');
    try {
      const { report } = await probed(dead.http, { settings: { requests: 1, warmup: 0 } });
      assert.equal(report.samples.at(-1)?.outcome.status, 502);
      assert.match(report.samples.at(-1)?.outcome.message ?? '', /502|Bad Gateway/);
    } finally {
      await dead.stop();
    }
  });

  it('closes idle connections between shots without failing a sample', async () => {
    await behind('proxy_buffering off; proxy_http_version 1.1; keepalive_requests 2;', async (nginx) => {
      const { report } = await probed(nginx.http, { settings: { requests: 8, maxTokens: 4 } });
      assert.equal(report.outcomes.ok, 8);
    });
  });
});
