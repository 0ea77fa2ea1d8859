import assert from 'node:assert/strict';
import fc from 'fast-check';
import { displayUrl, endpointFromUrl, environmentNames, isLoopback, originOf, parseEndpoints, resolveEnvironment, urlProblem, withScheme } from '../../../src/probe/endpoint';

function problem(entry: unknown): string {
  const { problems, endpoints } = parseEndpoints([entry]);
  assert.equal(endpoints.length, 0);
  return problems.map(({ path, message }) => `${path}: ${message}`).join('\n');
}

describe('a URL as typed', () => {
  it('without a scheme is http on this machine and its network, https anywhere else', () => {
    for (const near of ['localhost:8124', '127.0.0.1:8000/v1', '[::1]:8000', '10.0.0.7:8000', '192.168.1.4', '172.20.0.3:1', 'gpu-box:8000/v1', 'nas.local', 'box.lan:11434']) assert.equal(withScheme(` ${near} `), `http://${near}`);
    for (const far of ['api.openai.com/v1', 'llm.example.com:8443/v1', '172.15.0.1', '8.8.8.8:80', '10.example.com']) assert.equal(withScheme(far), `https://${far}`);
    for (const whole of ['http://a', 'https://a:1/v1', 'unix:/run/a.sock', 'ftp://a', 'mailto:x', '', '/v1']) assert.equal(withScheme(whole), whole);
    for (const typed of ['localhost:8124', '[::1]:8000', 'api.openai.com/v1']) assert.equal(urlProblem(withScheme(typed)), null);
  });
});

describe('endpoints from settings', () => {
  it('get their defaults', () => {
    const { endpoints, problems } = parseEndpoints([{ name: 'local', url: 'http://127.0.0.1:8000/v1' }]);
    assert.deepEqual(problems, []);
    assert.deepEqual(endpoints, [
      { name: 'local', url: 'http://127.0.0.1:8000/v1', model: null, api: 'auto', cache: 'auto', headers: {}, body: {}, metricsUrl: null, tls: { insecure: false, caFile: null }, timeouts: {}, price: null, gpu: null },
    ]);
  });

  it('keep everything that is told', () => {
    const entry = {
      name: 'hosted',
      url: 'https://api.example/v1/chat/completions?api-version=1',
      model: 'm',
      api: 'openai-chat',
      cache: 'openai',
      headers: { 'x-team': '${env:TEAM}' },
      body: { temperature: 0, chat_template_kwargs: { thinking: false } },
      metricsUrl: 'https://api.example/metrics',
      tls: { insecure: true, caFile: '/etc/ca.pem' },
      timeouts: { connect: 1000, firstToken: 5000, stall: null, total: 60000 },
      price: { inputPerMillion: 1, outputPerMillion: 2 },
      gpu: { name: 'H200', pricePerHour: 3.5, count: 8 },
    };
    const { endpoints, problems } = parseEndpoints([entry]);
    assert.deepEqual(problems, []);
    assert.deepEqual(endpoints[0], { ...entry, price: { currency: 'USD', inputPerMillion: 1, cachedInputPerMillion: null, outputPerMillion: 2 }, gpu: { ...entry.gpu, currency: 'USD' } });
  });

  it('say what is wrong, where, and what to do', () => {
    assert.match(problem({ name: 'a', url: 'localhost:8000' }), /^\[0\]\.url: "localhost:8000" has no scheme: write http:\/\/localhost:8000/);
    assert.match(problem({ name: 'a', url: 'api.example/v1?key=secret' }), /has no scheme: write https:\/\/api\.example\/v1$/);
    assert.match(problem({ name: 'a', url: 'ftp://x' }), /use http:\/\/ or https:\/\//);
    assert.match(problem({ name: 'a', url: 'http://user:pw@x/' }), /store it as the endpoint’s key/);
    assert.match(problem({ name: 'a', url: 'http://' }), /is not a URL/);
    assert.match(problem({ name: '', url: 'http://x' }), /^\[0\]\.name: The name is empty/);
    assert.match(problem({ url: 'http://x' }), /^\[0\]\.name: is missing/);
    assert.match(problem({ name: 'a', url: 'http://x', api: 'gpt' }), /^\[0\]\.api: "gpt" is not an API: use one of auto, openai-chat/);
    assert.match(problem({ name: 'a', url: 'http://x', apu: 'auto' }), /^\[0\]\.apu: is not a property of an endpoint/);
    assert.match(problem({ name: 'a', url: 'http://x', tls: { unsafe: true } }), /^\[0\]\.tls\.unsafe: is not a property of tls/);
    assert.match(problem({ name: 'a', url: 'http://x', timeouts: { total: '5s' } }), /^\[0\]\.timeouts\.total: must be a number of ms/);
    assert.match(problem({ name: 'a', url: 'http://x', timeouts: { connect: 1e12 } }), /^\[0\]\.timeouts\.connect: must be at most a day/);
    assert.match(problem({ name: 'a', url: 'http://x', headers: { a: 1 } }), /^\[0\]\.headers\.a: a header’s value must be text/);
    assert.match(problem('http://x'), /^\[0\]/);
    assert.match(parseEndpoints({}).problems[0]!.message, /must be a list/);
    assert.deepEqual(parseEndpoints(undefined), { endpoints: [], problems: [] });
  });

  it('leave out a second one of the same name and keep the good ones', () => {
    const { endpoints, problems } = parseEndpoints([{ name: 'a', url: 'http://x' }, { name: 'a', url: 'http://y' }, { name: 'b', url: 'nonsense' }, { name: 'c', url: 'http://z' }]);
    assert.deepEqual(endpoints.map(({ name }) => name), ['a', 'c']);
    assert.deepEqual(problems.map(({ path }) => path), ['[1].name', '[2].url']);
  });

  it('are read from anything without throwing', () => {
    fc.assert(
      fc.property(fc.anything(), (value) => {
        parseEndpoints(value);
        parseEndpoints([value]);
      }),
    );
  });
});

describe('an endpoint’s URL', () => {
  it('has an origin, a form to show and a side of the network', () => {
    assert.equal(originOf('https://api.example:443/v1?key=secret'), 'https://api.example');
    assert.equal(originOf('unix:/run/x.sock:/v1'), 'unix:/run/x.sock');
    assert.equal(displayUrl('https://api.example/v1/chat?key=secret#x'), 'https://api.example/v1/chat');
    assert.equal(displayUrl('http://127.0.0.1:8000/'), 'http://127.0.0.1:8000');
    assert.ok(isLoopback(endpointFromUrl('http://[::1]:1')));
    assert.ok(isLoopback(endpointFromUrl('unix:/run/x.sock')));
    assert.ok(!isLoopback(endpointFromUrl('http://10.0.0.1')));
    assert.equal(urlProblem('https://api.example'), null);
    assert.equal(endpointFromUrl('http://h/v1?key=secret').name, 'http://h/v1');
  });
});

describe('environment variables in headers', () => {
  const endpoint = { ...endpointFromUrl('http://h'), headers: { authorization: 'Bearer ${env:TOKEN}', both: '${env:A}-${env:B}', plain: 'x' } };

  it('are put in only where the caller allows it', () => {
    assert.deepEqual(environmentNames(endpoint), ['TOKEN', 'A', 'B']);
    const none = resolveEnvironment(endpoint, () => null);
    assert.deepEqual(none.endpoint.headers, { plain: 'x' });
    assert.deepEqual(none.withheld, ['TOKEN', 'A', 'B']);
    const some = resolveEnvironment(endpoint, (name) => ({ TOKEN: 't', A: 'a' })[name] ?? null);
    assert.deepEqual(some.endpoint.headers, { authorization: 'Bearer t', plain: 'x' });
    assert.deepEqual(some.withheld, ['B']);
  });

  it('are not looked for in what was put in', () => {
    const tricky = resolveEnvironment({ ...endpoint, headers: { a: '${env:A}' } }, () => '${env:SECRET}');
    assert.equal(tricky.endpoint.headers['a'], '${env:SECRET}');
  });
});
