import path from 'node:path';
import { endpointFromUrl, isLoopback, originOf, parseEndpoints, resolveEnvironment, urlProblem, apis, type Endpoint } from '../probe/endpoint';
import { ArgumentError, parseSimulatorArgs } from '../simulator/arguments';
import { startSimulator } from '../simulator/start';
import { oneOf, UsageError, wholeNumber, type CommandContext } from './command';
import { keyFor } from './keys';
import { note } from './output';
import { readWorkspaceSettings } from './settings';

/** The flags that say where to send; shared by every command that sends. */
export const targetOptions = {
  endpoint: { type: 'string' },
  model: { type: 'string' },
  api: { type: 'string' },
  demo: { type: 'boolean' },
  'allow-env': { type: 'string', multiple: true },
  insecure: { type: 'boolean' },
  'timeout-first-token': { type: 'string' },
  'timeout-stall': { type: 'string' },
  'timeout-total': { type: 'string' },
} as const;

/** What the usage texts say about them. */
export const targetUsage = `  --endpoint NAME|URL  a name from firstToken.endpoints in .vscode/settings.json, or a URL (origin, …/v1 or the full path)
  --model M            default: the first that the endpoint lists
  --api A              default auto: detected. ${apis.slice(1).join(', ')}
  --demo               start the simulated server and use it
  --allow-env NAME     let \${env:NAME} in headers of the settings file be filled in
  --insecure           do not verify certificates (shown in the report)
  --timeout-first-token MS, --timeout-stall MS, --timeout-total MS   give up after (120000, 60000, 600000)

The key is taken from FIRST_TOKEN_API_KEY. It is sent to an --endpoint URL, to the origin in FIRST_TOKEN_API_KEY_ORIGIN, or to loopback.`;

/** Where to send, and what the workspace says about everything else. `stop` ends the demo server, if one was started. */
export interface CliTarget {
  readonly endpoint: Endpoint;
  readonly key: string | null;
  readonly settings: Readonly<Record<string, unknown>>;
  readonly settingsFile: string;
  stop(): Promise<void>;
}

interface Values {
  readonly endpoint?: string | undefined;
  readonly model?: string | undefined;
  readonly api?: string | undefined;
  readonly demo?: boolean | undefined;
  readonly insecure?: boolean | undefined;
  readonly 'allow-env'?: string[] | undefined;
  readonly 'timeout-first-token'?: string | undefined;
  readonly 'timeout-stall'?: string | undefined;
  readonly 'timeout-total'?: string | undefined;
}

/** Finds the endpoint the flags mean. Throws a UsageError that names the flag or setting to change. `demoArgs`: flags for the simulated server. */
export async function resolveTarget(values: Values, context: CommandContext, demoArgs: readonly string[] = []): Promise<CliTarget> {
  const settings = readWorkspaceSettings(context.cwd);
  const api = oneOf('--api', values.api, apis);
  const limit = (flag: 'timeout-first-token' | 'timeout-stall' | 'timeout-total') => wholeNumber(`--${flag}`, values[flag], { min: 1, max: 86_400_000 });
  const limits = Object.fromEntries(Object.entries({ firstToken: limit('timeout-first-token'), stall: limit('timeout-stall'), total: limit('timeout-total') }).filter(([, value]) => value !== undefined)) as Endpoint['timeouts'];
  const more: Partial<Endpoint> = { ...(api === undefined ? {} : { api }), ...(values.model === undefined ? {} : { model: values.model }) };
  if (values.demo) {
    if (values.endpoint !== undefined) throw new UsageError('--demo starts its own server: leave out --endpoint.');
    try {
      parseSimulatorArgs(demoArgs);
    } catch (error) {
      throw error instanceof ArgumentError ? new UsageError(error.message) : error;
    }
    const simulator = await startSimulator({ script: path.join(context.dist, 'simulator.js'), args: [...demoArgs] });
    const endpoint = { ...endpointFromUrl(simulator.url), name: 'demo', timeouts: limits, ...more };
    return { endpoint, key: null, settings: settings.values, settingsFile: settings.file, stop: () => simulator.stop() };
  }
  const { endpoint: chosen, typedUrl } = choose(values.endpoint, settings);
  const tls = values.insecure ? { ...chosen.tls, insecure: true } : chosen.tls;
  const allowed = new Set(values['allow-env'] ?? []);
  const { endpoint, withheld } = resolveEnvironment({ ...chosen, tls, timeouts: { ...chosen.timeouts, ...limits }, ...more }, (name) => (allowed.has(name) ? (context.env[name] ?? '') : null));
  for (const name of withheld) note(`A header that needs the environment variable ${name} was left out. Pass --allow-env ${name} to send it.`);
  const { key, withheld: keptBack } = keyFor({ origin: originOf(endpoint.url), typedUrl, loopback: isLoopback(endpoint) }, context.env);
  if (keptBack !== null) note(keptBack);
  return { endpoint, key, settings: settings.values, settingsFile: settings.file, stop: () => Promise.resolve() };
}

function choose(given: string | undefined, settings: ReturnType<typeof readWorkspaceSettings>): { readonly endpoint: Endpoint; readonly typedUrl: boolean } {
  const { endpoints, problems } = parseEndpoints(settings.values['endpoints']);
  const named = given === undefined ? endpoints[0] : endpoints.find((endpoint) => endpoint.name === given);
  if (named) {
    // Whoever wrote the settings file must not be able to switch off certificate checks for the person who runs the command.
    if (named.tls.insecure) note(`firstToken.endpoints "${named.name}" asks not to verify certificates; only --insecure does that here.`);
    return { endpoint: { ...named, tls: { ...named.tls, insecure: false } }, typedUrl: false };
  }
  for (const problem of problems) note(`${settings.file}: firstToken.endpoints${problem.path}: ${problem.message}`);
  if (given === undefined) throw new UsageError('Say where to send: --endpoint URL, or --demo for the simulated server.');
  const looksLikeUrl = /^[a-z][a-z0-9+.-]*:/i.test(given) || /[./:]/.test(given);
  const problem = urlProblem(given);
  if (problem === null) return { endpoint: endpointFromUrl(given), typedUrl: true };
  if (looksLikeUrl) throw new UsageError(`--endpoint: ${problem}.`);
  const names = endpoints.map((endpoint) => endpoint.name);
  throw new UsageError(`There is no endpoint "${given}" in ${settings.file}${names.length > 0 ? ` (there are: ${names.join(', ')})` : ''}. Add it to firstToken.endpoints, or pass a URL.`);
}
