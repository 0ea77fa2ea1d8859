import { readFileSync } from 'node:fs';
import { defaultNetwork, type NetworkOptions } from '../probe/network';
import { PlanError } from '../probe/plan';
import type { Environment, Slo } from '../report/report';
import { sloPresets } from '../report/goodput';
import { version } from '../../package.json';
import type { JobTimeouts } from '../probe/index';

/** Where a terminal run is measured from. */
export function terminalEnvironment(env: NodeJS.ProcessEnv): Environment {
  return { product: `First Token ${version}`, node: process.version, platform: `${process.platform} ${process.arch}`, editor: null, remote: env['SSH_CONNECTION'] ? 'ssh' : null };
}

/** `firstToken.slo` over the preset of the objective. Values are checked by the engine. */
export function sloOf(settings: Readonly<Record<string, unknown>>, objective: 'chat' | 'batch'): Slo {
  const given = settings['slo'];
  if (given === undefined || given === null) return sloPresets[objective];
  if (typeof given !== 'object' || Array.isArray(given)) throw new PlanError('firstToken.slo must be an object such as { "ttft": 500, "tpot": 30 }.', 'firstToken.slo');
  return { ...sloPresets[objective], ...given };
}

/** `firstToken.network` and NODE_EXTRA_CA_CERTS over the defaults; proxies come from HTTP(S)_PROXY unless the setting names one. */
export function networkOf(settings: Readonly<Record<string, unknown>>, env: NodeJS.ProcessEnv): { readonly network: NetworkOptions; readonly timeouts: JobTimeouts } {
  const given = settings['network'] ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new PlanError('firstToken.network must be an object such as { "proxy": "env" }.', 'firstToken.network');
  const { proxy, http2, timeouts } = given as { proxy?: unknown; http2?: unknown; timeouts?: JobTimeouts };
  const extra = env['NODE_EXTRA_CA_CERTS'];
  let ca: string[] = [];
  try {
    if (extra) ca = [readFileSync(extra, 'utf8')];
  } catch (error) {
    throw new PlanError(`NODE_EXTRA_CA_CERTS cannot be read: ${(error as Error).message}.`);
  }
  return {
    network: {
      ...defaultNetwork,
      ca,
      http2: http2 === true,
      proxy: typeof proxy === 'string' && !['env', 'vscode', 'none', ''].includes(proxy) ? { url: proxy, authorization: null } : proxy === 'none' ? 'none' : 'env',
    },
    timeouts: timeouts ?? {},
  };
}
