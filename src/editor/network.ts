import { defaultNetwork, type NetworkOptions } from '../probe/network';

/** The editor's own network settings, as far as a probe follows them. A bundled HTTP client does not see them by itself. */
export interface EditorNetwork {
  readonly proxy: string;
  readonly proxySupport: string;
  readonly proxyAuthorization: string | null;
  readonly strictSsl: boolean;
  readonly noProxy: readonly string[];
  readonly systemCertificates: boolean;
}

/** `firstToken.network`, as far as it names a way. */
export interface OwnNetwork {
  /** `vscode`, `env`, `none` or the URL of a proxy. */
  readonly proxy: string;
  readonly http2: boolean;
}

/** How a probe connects: `firstToken.network` first; its `vscode` means the editor's settings, and without those the environment's. */
export function networkOptions(own: OwnNetwork, editor: EditorNetwork, env: Readonly<Record<string, string | undefined>>): NetworkOptions {
  const exempt = [...editor.noProxy, env['no_proxy'] ?? env['NO_PROXY'] ?? ''].filter(Boolean).join(',');
  const base = { ...defaultNetwork, http2: own.http2, systemCertificates: editor.systemCertificates, insecure: !editor.strictSsl, noProxy: exempt };
  if (own.proxy === 'env' || own.proxy === 'none') return { ...base, proxy: own.proxy };
  if (own.proxy !== 'vscode') return { ...base, proxy: { url: own.proxy, authorization: null } };
  if (editor.proxySupport === 'off') return { ...base, proxy: 'none' };
  return { ...base, proxy: editor.proxy === '' ? 'env' : { url: editor.proxy, authorization: editor.proxyAuthorization } };
}
