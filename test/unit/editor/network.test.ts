import assert from 'node:assert/strict';
import { networkOptions, type EditorNetwork } from '../../../src/editor/network';

const editor: EditorNetwork = { proxy: '', proxySupport: 'override', proxyAuthorization: null, strictSsl: true, noProxy: [], systemCertificates: true };
const vscodeProxy = { proxy: 'vscode', http2: false };

describe('how a probe connects', () => {
  it('follows http.proxy with its authorization and exceptions', () => {
    const options = networkOptions(vscodeProxy, { ...editor, proxy: 'http://proxy:3128', proxyAuthorization: 'Basic x', noProxy: ['a.example'] }, { NO_PROXY: 'b.example' });
    assert.deepEqual(options.proxy, { url: 'http://proxy:3128', authorization: 'Basic x' });
    assert.equal(options.noProxy, 'a.example,b.example');
  });

  it('takes the environment without http.proxy, and nothing when proxies are off', () => {
    assert.equal(networkOptions(vscodeProxy, editor, {}).proxy, 'env');
    assert.equal(networkOptions(vscodeProxy, { ...editor, proxySupport: 'off', proxy: 'http://proxy:3128' }, {}).proxy, 'none');
  });

  it('puts firstToken.network before the editor', () => {
    const other = { ...editor, proxy: 'http://proxy:3128' };
    assert.equal(networkOptions({ proxy: 'none', http2: false }, other, {}).proxy, 'none');
    assert.deepEqual(networkOptions({ proxy: 'http://mine:8080', http2: true }, other, {}).proxy, { url: 'http://mine:8080', authorization: null });
    assert.equal(networkOptions({ proxy: 'none', http2: true }, other, {}).http2, true);
  });

  it('follows http.proxyStrictSSL and http.systemCertificates', () => {
    const options = networkOptions(vscodeProxy, { ...editor, strictSsl: false, systemCertificates: false }, {});
    assert.equal(options.insecure, true);
    assert.equal(options.systemCertificates, false);
  });
});
