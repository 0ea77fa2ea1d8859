import { readFileSync } from 'node:fs';
import { defaultNetwork, proxyFor, type NetworkOptions } from '../probe/network';
import { PlanError } from '../probe/plan';
import type { Environment, Slo } from '../report/report';
import { sloPresets } from '../report/goodput';
import { version } from '../../package.json';
import type { JobTimeouts } from '../probe/index';

/** Where a terminal run is measured from. */
export function terminalEnvironment(env: NodeJS.ProcessEnv): Environment {
  return { product: `First Token ${version}`, node: process.version, platform: `${process.platform} ${process.arch}`, editor: null, remote: env['SSH_CONNECTION'] ? 'ssh' : null };
}

const sloLimits = ['ttft', 'firstVisible', 'tpot', 'gapP99', 'total'] as const;

/** `firstToken.slo` over the preset of the objective; null leaves a limit out. Throws a PlanError that names the property. */
export function sloOf(settings: Readonly<Record<string, unknown>>, objective: 'chat' | 'batch'): Slo {
  const given = settings['slo'];
  if (given === undefined || given === null) return sloPresets[objective];
  if (typeof given !== 'object' || Array.isArray(given)) throw new PlanError('firstToken.slo must be an object such as { "ttft": 500, "tpot": 30 }.', 'firstToken.slo');
  const slo: Record<string, unknown> = Object.fromEntries(Object.entries({ ...sloPresets[objective], ...given }).filter(([, value]) => value !== null));
  const unknown = Object.keys(slo).find((name) => !(sloLimits as readonly string[]).includes(name) && name !== 'valid' && name !== 'attainment');
  if (unknown !== undefined) throw new PlanError(`firstToken.slo has no property "${unknown}". Its properties are ${[...sloLimits, 'valid', 'attainment'].join(', ')}.`, 'firstToken.slo');
  for (const name of sloLimits) {
    const limit = slo[name];
    if (limit !== undefined && !(typeof limit === 'number' && Number.isFinite(limit) && limit > 0)) throw new PlanError(`firstToken.slo.${name} must be a number of ms above 0, or null for no limit; it is ${JSON.stringify(limit)}.`, 'firstToken.slo');
  }
  if (typeof slo['attainment'] !== 'number') throw new PlanError('firstToken.slo.attainment must be a number from 0 to 1.', 'firstToken.slo');
  return slo as unknown as Slo;
}

/** `firstToken.readerPace`, or 120. Throws a PlanError for what is no pace. */
export function readerPaceOf(settings: Readonly<Record<string, unknown>>): number {
  const pace = settings['readerPace'] ?? 120;
  if (typeof pace !== 'number' || !(pace >= 1 && pace <= 10_000)) throw new PlanError(`firstToken.readerPace must be a number of ms from 1 to 10000; it is ${JSON.stringify(pace)}.`, 'firstToken.readerPace');
  return pace;
}

const longestLimit = 86_400_000;

function timeoutsOf(json: unknown): JobTimeouts {
  if (json === undefined || json === null) return {};
  if (typeof json !== 'object' || Array.isArray(json)) throw new PlanError('firstToken.network.timeouts must be an object such as { "total": 600000 }.', 'firstToken.network');
  for (const [name, value] of Object.entries(json as Record<string, unknown>)) {
    if (!['connect', 'firstToken', 'stall', 'total'].includes(name)) throw new PlanError(`firstToken.network.timeouts has no property "${name}". Its properties are connect, firstToken, stall, total.`, 'firstToken.network');
    if (value !== null && !(typeof value === 'number' && value >= 1 && value <= longestLimit)) throw new PlanError(`firstToken.network.timeouts.${name} must be a number of ms from 1 to ${longestLimit}, or null; it is ${JSON.stringify(value)}.`, 'firstToken.network');
  }
  return json;
}

function proxyOf(proxy: unknown): NetworkOptions['proxy'] {
  if (proxy === undefined || proxy === '' || proxy === 'env' || proxy === 'vscode') return 'env';
  if (proxy === 'none') return proxy;
  if (typeof proxy !== 'string') throw new PlanError('firstToken.network.proxy must be text: "env", "none" or the URL of a proxy.', 'firstToken.network');
  const named = { url: proxy, authorization: null };
  try {
    proxyFor(new URL('https://example.com'), { proxy: named, noProxy: '' }, {});
  } catch {
    throw new PlanError('firstToken.network.proxy is not the URL of an http: or https: proxy. Give one such as http://proxy.example.com:3128, or "env" or "none".', 'firstToken.network');
  }
  return named;
}

/** `firstToken.network` and NODE_EXTRA_CA_CERTS over the defaults; proxies come from HTTP(S)_PROXY unless the setting names one. */
export function networkOf(settings: Readonly<Record<string, unknown>>, env: NodeJS.ProcessEnv): { readonly network: NetworkOptions; readonly timeouts: JobTimeouts } {
  const given = settings['network'] ?? {};
  if (typeof given !== 'object' || Array.isArray(given)) throw new PlanError('firstToken.network must be an object such as { "proxy": "env" }.', 'firstToken.network');
  const { proxy, http2, timeouts, ...others } = given as { proxy?: unknown; http2?: unknown; timeouts?: unknown };
  const [unknown] = Object.keys(others);
  if (unknown !== undefined) throw new PlanError(`firstToken.network has no property "${unknown}". Its properties are proxy, http2, timeouts.`, 'firstToken.network');
  if (http2 !== undefined && typeof http2 !== 'boolean') throw new PlanError('firstToken.network.http2 must be true or false.', 'firstToken.network');
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
      proxy: proxyOf(proxy),
    },
    timeouts: timeoutsOf(timeouts),
  };
}
