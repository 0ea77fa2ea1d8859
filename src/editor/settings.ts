import * as v from 'valibot';
import * as vscode from 'vscode';
import { parseEndpoints } from '../probe/endpoint';
import { PlanError, readProbeSettings, type ProbeSettings } from '../probe/plan';
import type { Slo } from '../report/report';
import type { ChoosableEndpoint } from './endpoints';
import { section, type SettingName } from './manifest';
import type { EditorNetwork } from './network';

/** A setting that is not as it should be: `setting` is its full name with the path inside. */
export interface SettingProblem {
  readonly setting: string;
  readonly message: string;
}

const milliseconds = v.pipe(v.number(), v.minValue(0));
const limit = v.optional(v.nullable(milliseconds));
const count = (least: number, most: number) => v.pipe(v.number(), v.integer(), v.minValue(least), v.maxValue(most));

const shapes = {
  slo: v.object({
    ttft: limit,
    tpot: limit,
    firstVisible: limit,
    gapP99: limit,
    total: limit,
    valid: v.optional(v.nullable(v.union([v.object({ pattern: v.pipe(v.string(), v.check(isPattern, 'is not a regular expression')) }), v.object({ schema: v.record(v.string(), v.unknown()) })]))),
    attainment: v.pipe(v.number(), v.minValue(0), v.maxValue(1)),
  }),
  objective: v.picklist(['chat', 'batch']),
  reports: v.object({ keepText: v.boolean(), keepTextDays: count(1, 365), keep: count(1, 10_000) }),
  promptFiles: v.array(v.string()),
  readerPace: v.pipe(v.number(), v.minValue(1), v.maxValue(10_000)),
  lens: v.object({ probe: v.boolean(), result: v.boolean(), cache: v.boolean(), breakers: v.boolean(), line: v.boolean() }),
  prefix: v.object({
    scope: v.picklist(['conversation', 'user', 'everyone']),
    variables: v.record(v.string(), v.picklist(['constant', 'deploy', 'session', 'day', 'minute', 'request', 'unknown'])),
    minLostTokens: count(0, 1_000_000),
    rules: v.record(v.string(), v.unknown()),
    tokenizer: v.string(),
    tokens: v.picklist(['auto', 'endpoint', 'local']),
    chatTemplate: v.string(),
  }),
  network: v.object({
    proxy: v.pipe(v.string(), v.check(isProxy, 'is neither vscode, env, none nor the http(s) URL of a proxy')),
    http2: v.boolean(),
    timeouts: v.optional(v.object({ connect: limit, firstToken: limit, stall: limit, total: limit }), {}),
  }),
} as const;

type Read<K extends keyof typeof shapes> = v.InferOutput<(typeof shapes)[K]>;

/** The settings at one moment, checked and frozen. What was wrong is left at its default and told in `problems`. */
export interface Settings {
  readonly endpoints: readonly ChoosableEndpoint[];
  readonly slo: Slo;
  readonly objective: 'chat' | 'batch';
  readonly probe: ProbeSettings;
  readonly reports: Read<'reports'>;
  readonly promptFiles: readonly string[];
  readonly readerPace: number;
  readonly lens: Read<'lens'>;
  readonly prefix: Read<'prefix'>;
  readonly network: Read<'network'>;
  readonly editorNetwork: EditorNetwork;
  readonly problems: readonly SettingProblem[];
}

/** Reads and checks all settings. Defaults stand in package.json alone. */
export function readSettings(): Settings {
  const config = vscode.workspace.getConfiguration(section);
  const problems: SettingProblem[] = [];
  const read = <K extends keyof typeof shapes>(name: K): Read<K> => {
    const fallback = config.inspect<unknown>(name)?.defaultValue;
    const value = config.get<unknown>(name);
    const result = v.safeParse(shapes[name], isRecord(value) && isRecord(fallback) ? { ...fallback, ...value } : value);
    if (result.success) return result.output;
    problems.push(...result.issues.map((issue) => problemOf(name, issue)));
    return v.parse(shapes[name], fallback);
  };
  const { attainment, valid, ...limits } = read('slo');
  return Object.freeze({
    endpoints: readEndpoints(config, problems),
    slo: { ...withoutNulls(limits), ...(valid ? { valid } : {}), attainment },
    objective: read('objective'),
    probe: readProbe(config, problems),
    reports: read('reports'),
    promptFiles: read('promptFiles'),
    readerPace: read('readerPace'),
    lens: read('lens'),
    prefix: read('prefix'),
    network: read('network'),
    editorNetwork: readEditorNetwork(),
    problems,
  });
}

function readProbe(config: vscode.WorkspaceConfiguration, problems: SettingProblem[]): ProbeSettings {
  try {
    return readProbeSettings(config.get<unknown>('probe'));
  } catch (error) {
    if (!(error instanceof PlanError)) throw error;
    problems.push({ setting: `${section}.probe`, message: error.message });
    return readProbeSettings(config.inspect<unknown>('probe')?.defaultValue);
  }
}

/**
 * User and workspace endpoints together; the workspace's win where names are equal. Where one comes from decides what it may ask for:
 * only user settings may leave certificates unverified or read the environment.
 */
function readEndpoints(config: vscode.WorkspaceConfiguration, problems: SettingProblem[]): ChoosableEndpoint[] {
  const values = config.inspect<unknown>('endpoints');
  const parsed = (value: unknown) => {
    const result = parseEndpoints(value);
    problems.push(...result.problems.map(({ path, message }) => ({ setting: `${section}.endpoints${path}`, message })));
    return result.endpoints;
  };
  const workspace = vscode.workspace.isTrusted ? parsed(values?.workspaceValue) : [];
  const names = new Set(workspace.map(({ name }) => name));
  const user = parsed(values?.globalValue).filter(({ name }) => !names.has(name));
  return [
    ...user.map((endpoint) => ({ endpoint, from: 'user' as const })),
    ...workspace.map((endpoint) => {
      if (!endpoint.tls.insecure) return { endpoint, from: 'workspace' as const };
      problems.push({ setting: `${section}.endpoints`, message: vscode.l10n.t('tls.insecure of "{0}" counts only in user settings: move the endpoint there to use it', endpoint.name) });
      return { endpoint: { ...endpoint, tls: { ...endpoint.tls, insecure: false } }, from: 'workspace' as const };
    }),
  ];
}

/** Calls the listener when one of our settings, or the editor's network settings, may have changed. */
export function onSettingsChanged(listener: (affects: (name: SettingName) => boolean) => void): vscode.Disposable {
  const changed = vscode.workspace.onDidChangeConfiguration((event) => {
    if (event.affectsConfiguration(section) || event.affectsConfiguration('http')) listener((name) => event.affectsConfiguration(`${section}.${name}`));
  });
  const trusted = vscode.workspace.onDidGrantWorkspaceTrust(() => listener(() => true));
  return vscode.Disposable.from(changed, trusted);
}

/** Adds an endpoint to the user settings, in place of one of the same name there. */
export async function addUserEndpoint(endpoint: Readonly<Record<string, unknown>>): Promise<void> {
  const config = vscode.workspace.getConfiguration(section);
  const before = config.inspect<unknown>('endpoints')?.globalValue;
  const others = Array.isArray(before) ? before.filter((one) => !isRecord(one) || one['name'] !== endpoint['name']) : [];
  await config.update('endpoints', [...(others as unknown[]), endpoint], vscode.ConfigurationTarget.Global);
}

/** The `http.*` settings: what the editor's own requests follow. */
function readEditorNetwork(): EditorNetwork {
  const http = vscode.workspace.getConfiguration('http');
  return {
    proxy: http.get('proxy', ''),
    proxySupport: http.get('proxySupport', 'override'),
    proxyAuthorization: http.get<string | null>('proxyAuthorization', null),
    strictSsl: http.get('proxyStrictSSL', true),
    noProxy: http.get<string[]>('noProxy', []),
    systemCertificates: http.get('systemCertificates', true),
  };
}

function problemOf(name: string, issue: v.BaseIssue<unknown>): SettingProblem {
  const path = (issue.path ?? []).map(({ key }) => (typeof key === 'number' ? `[${key}]` : `.${String(key)}`)).join('');
  return { setting: `${section}.${name}${path}`, message: issue.message };
}

function withoutNulls(limits: Readonly<Record<string, number | null | undefined>>): Record<string, number> {
  return Object.fromEntries(Object.entries(limits).filter((entry): entry is [string, number] => typeof entry[1] === 'number'));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

function isPattern(text: string): boolean {
  try {
    new RegExp(text, 'u');
    return true;
  } catch {
    return false;
  }
}

function isProxy(text: string): boolean {
  return ['vscode', 'env', 'none'].includes(text) || /^https?:\/\/\S+$/.test(text);
}
