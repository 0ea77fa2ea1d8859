import assert from 'node:assert/strict';
import { isLoopbackHost, proxyFor, splitUrl } from '../../../src/probe/network';

function proxy(url: string, env: Record<string, string>, options: Parameters<typeof proxyFor>[1] = { proxy: 'env', noProxy: null }): string | null {
  return proxyFor(new URL(url), options, env)?.url ?? null;
}

describe('the choice of a proxy', () => {
  it('takes the environment’s, lower case first', () => {
    const env = { http_proxy: 'http://lower:1', HTTP_PROXY: 'http://upper:1', HTTPS_PROXY: 'http://secure:2' };
    assert.equal(proxy('http://api.example/', env), 'http://lower:1');
    assert.equal(proxy('https://api.example/', env), 'http://secure:2');
    assert.equal(proxy('https://api.example/', { http_proxy: 'http://lower:1' }), null);
    assert.equal(proxy('https://api.example/', { ALL_PROXY: 'http://all:1' }), 'http://all:1');
    assert.equal(proxy('http://api.example/', { HTTP_PROXY: '' }), null);
    assert.equal(proxy('http://api.example/', { HTTP_PROXY: 'proxy.local:3128' }), 'http://proxy.local:3128');
  });

  it('takes credentials out of the URL', () => {
    assert.deepEqual(proxyFor(new URL('https://api.example'), { proxy: 'env', noProxy: null }, { https_proxy: 'http://u:p%40ss@proxy:8080' }), { url: 'http://proxy:8080', authorization: `Basic ${Buffer.from('u:p@ss').toString('base64')}` });
    assert.equal(proxyFor(new URL('https://api.example'), { proxy: { url: 'http://proxy', authorization: 'Negotiate x' }, noProxy: null }, {})?.authorization, 'Negotiate x');
  });

  it('never proxies loopback, nor when told none', () => {
    const env = { HTTP_PROXY: 'http://p:1', HTTPS_PROXY: 'http://p:1' };
    for (const host of ['localhost', '127.0.0.1', '127.9.9.9', '[::1]', 'app.localhost']) assert.equal(proxy(`http://${host}:8000/`, env), null, host);
    assert.equal(proxy('http://api.example', env, { proxy: 'none', noProxy: null }), null);
  });

  it('follows NO_PROXY', () => {
    const env = (list: string) => ({ HTTP_PROXY: 'http://p:1', NO_PROXY: list });
    const exempt = (url: string, list: string) => proxy(url, env(list)) === null;
    assert.ok(exempt('http://api.example/', '*'));
    assert.ok(exempt('http://api.example/', 'other, api.example'));
    assert.ok(exempt('http://a.api.example/', '.api.example'));
    assert.ok(exempt('http://a.api.example/', '*.api.example'));
    assert.ok(exempt('http://a.api.example/', 'api.example'));
    assert.ok(!exempt('http://notapi.example/', 'api.example'));
    assert.ok(exempt('http://api.example:81/', 'api.example:81'));
    assert.ok(!exempt('http://api.example:82/', 'api.example:81'));
    assert.ok(exempt('http://api.example/', 'api.example:80'));
    assert.ok(exempt('http://[2001:db8::1]/', '2001:db8::1'));
    assert.ok(!exempt('http://api.example/', ''));
    assert.equal(proxy('http://api.example', { HTTP_PROXY: 'http://p:1', no_proxy: 'x', NO_PROXY: 'api.example' }), 'http://p:1');
    assert.equal(proxy('http://api.example', {}, { proxy: { url: 'http://own:1', authorization: null }, noProxy: 'api.example' }), null);
  });

  it('says when a proxy is of a kind it cannot use', () => {
    assert.throws(() => proxy('http://api.example', { HTTP_PROXY: 'socks5://p:1' }), /socks5.*not supported.*HTTPS_PROXY/);
  });
});

describe('request URLs', () => {
  it('are split into target and socket', () => {
    assert.deepEqual([splitUrl('unix:/run/x.sock:/v1/a?b=c').socketPath, splitUrl('unix:/run/x.sock:/v1/a?b=c').target.href], ['/run/x.sock', 'http://localhost/v1/a?b=c']);
    assert.deepEqual([splitUrl('unix:///run/x.sock').socketPath, splitUrl('unix:///run/x.sock').target.pathname], ['/run/x.sock', '/']);
    assert.equal(splitUrl('https://h/x').socketPath, null);
    assert.throws(() => splitUrl('ftp://h/x'), TypeError);
  });

  it('know loopback', () => {
    for (const host of ['localhost', 'LOCALHOST', '127.0.0.1', '::1', '[::1]', 'localhost.']) assert.ok(isLoopbackHost(host), host);
    for (const host of ['localhost.evil.example', '127.0.0.1.evil.example', '10.0.0.1', '[2001:db8::1]', '0.0.0.0']) assert.ok(!isLoopbackHost(host), host);
  });
});
