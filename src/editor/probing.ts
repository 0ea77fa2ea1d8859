import * as os from 'node:os';
import * as vscode from 'vscode';
import { originOf, resolveEnvironment } from '../probe/endpoint';
import type { EndpointMemory } from '../probe/memory';
import type { ProbeSettings } from '../probe/plan';
import type { ChatPrompt } from '../prompt/prompt';
import type { Environment, Report } from '../report/report';
import type { Consent } from './consent';
import type { Dialogs } from './dialogs';
import type { ChoosableEndpoint, Endpoints } from './endpoints';
import { Cancelled, Failure } from './failure';
import { networkOptions } from './network';
import { hashOf } from './promptResults';
import type { PromptInputs } from './promptInputs';
import { builtInName, builtInPrompt, plainPrompt, readPrompt, type PromptText } from './promptText';
import type { RunRequest, Runs } from './runs';
import type { Secrets } from './secrets';
import type { Settings } from './settings';

/** From what the user points at to a run. */
export interface Probing {
  /** Probes a document, or the selected part of it. */
  document(document: vscode.TextDocument, selection: vscode.Selection | null): Promise<Report>;
  /** One warm-up and eight requests of a short prompt. */
  spotCheck(endpointName: string | null): Promise<Report>;
  /** A run as it was, with the settings of now. */
  again(request: RunRequest): Promise<Report>;
  /** An experiment with a document (null = the built-in prompt), of up to so many requests. */
  experiment(document: vscode.TextDocument | null, what: { readonly requests: number; /** In place of the settings'. */ readonly probe?: ProbeSettings; readonly scenario: NonNullable<RunRequest['scenario']> }): Promise<Report>;
  /** The engine's job for one prompt, without starting it: for the test request and Copy as cURL. */
  job(choice: ChoosableEndpoint, prompt: ChatPrompt, promptName: string, settings: ProbeSettings): Promise<RunRequest['job']>;
}

/** Larger files are hardly prompts: the largest context windows hold a few MB of text. */
const largestPrompt = 8_000_000;

/** Spot-check: enough for a p50 with an interval, over in seconds. */
export const spotCheckShape = { requests: 8, warmup: 1, concurrency: 1 } as const;
const spotCheckTokens = 128;

/** What probing needs from the rest. */
export interface ProbingParts {
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly secrets: Secrets;
  readonly consent: Consent;
  readonly dialogs: Dialogs;
  readonly inputs: PromptInputs;
  readonly runs: Runs;
  readonly memory: EndpointMemory;
  readonly recorderScript: string;
  readonly version: string;
}

/** The checks every request passes: trust, settings, one run at a time, consent. */
export function createProbing(parts: ProbingParts): Probing {
  async function job(choice: ChoosableEndpoint, prompt: ChatPrompt, promptName: string, probe: ProbeSettings): Promise<RunRequest['job']> {
    const settings = parts.settings();
    return {
      endpoint: withEnvironment(choice),
      key: await parts.secrets.get(originOf(choice.endpoint.url)),
      prompt,
      promptName,
      settings: probe,
      slo: settings.slo,
      objective: settings.objective,
      readerPace: settings.readerPace,
      network: networkOptions(settings.network, settings.editorNetwork, process.env),
      timeouts: settings.network.timeouts,
      environment: environment(parts.version),
      recorderScript: parts.recorderScript,
      memory: parts.memory,
      unrendered: [],
      keepText: settings.reports.keepText,
      keepTextDays: settings.reports.keepTextDays,
    };
  }

  async function start(choice: ChoosableEndpoint, text: { readonly prompt: ChatPrompt; readonly unrendered: readonly string[]; readonly asWritten?: readonly string[]; readonly name: string; readonly source: RunRequest['source'] }, probe: ProbeSettings, scenario?: RunRequest['scenario']): Promise<Report> {
    await onlyOne();
    await askFor(choice, probe);
    const made = { ...(await job(choice, text.prompt, text.name, probe)), unrendered: [...text.unrendered, ...(text.asWritten ?? [])] };
    return await parts.runs.start({ job: made, endpointName: choice.endpoint.name, promptName: text.name, source: text.source, ...(scenario ? { scenario } : {}) });
  }

  /** While a probe runs, the user chooses: stop it, wait for it, or leave it be. */
  async function onlyOne(): Promise<void> {
    await parts.runs.begun();
    const run = parts.runs.current;
    if (!run) return await parts.runs.idle();
    const stop = vscode.l10n.t('Stop It and Start');
    const wait = vscode.l10n.t('Start After It');
    const answer = await parts.dialogs.choose('info', vscode.l10n.t('A probe of {0} is running: {1} of {2} requests are done.', run.request.endpointName, run.done, run.total), stop, wait);
    if (answer === stop) return await parts.runs.stop();
    if (answer !== wait) throw new Cancelled();
    await parts.runs.idle();
  }

  async function askFor({ endpoint }: ChoosableEndpoint, probe: ProbeSettings): Promise<void> {
    const requests = probe.requests + probe.warmup;
    const out = endpoint.price?.outputPerMillion;
    const price = out && probe.maxTokens !== null ? vscode.l10n.t('At most {0} {1} for the output tokens.', ((out * requests * probe.maxTokens) / 1e6).toPrecision(2), endpoint.price.currency) : null;
    await parts.consent.ask({ endpointName: endpoint.name, origin: originOf(endpoint.url), requests, maxTokens: probe.maxTokens, price, paid: endpoint.price !== null });
  }

  /** The document with values for what it leaves open: remembered, or asked once. */
  async function filledIn(document: vscode.TextDocument): Promise<PromptText> {
    const read = await readDocument(document);
    if (read.unrendered.length === 0) return read;
    const values = await parts.inputs.valuesFor(document, read.unrendered);
    return Object.keys(values).length === 0 ? read : await readDocument(document, values);
  }

  return {
    job,
    async document(document, selection) {
      requireTrust();
      const choice = parts.endpoints.required();
      const selected = selection && !selection.isEmpty ? document.getText(selection) : null;
      const text = selected ?? document.getText();
      const name = vscode.workspace.asRelativePath(document.uri, false);
      checkPrompt(text, name);
      // The lens compares with the whole file, so a probed selection leaves it alone.
      const source = selected === null ? { uri: document.uri.toString(), textHash: hashOf(text) } : null;
      const read = selected === null ? await filledIn(document) : plainPrompt(text);
      return await start(choice, { ...read, name: selected === null ? name : vscode.l10n.t('{0} (selection)', name), source }, parts.settings().probe);
    },
    async experiment(document, { requests, probe = { ...parts.settings().probe, requests, warmup: 0, concurrency: 1, maxTokens: 8 }, scenario }) {
      requireTrust();
      const choice = parts.endpoints.required();
      if (document === null) return await start(choice, { prompt: builtInPrompt, unrendered: [], name: builtInName, source: null }, probe, scenario);
      const name = vscode.workspace.asRelativePath(document.uri, false);
      const text = document.getText();
      checkPrompt(text, name);
      const source = { uri: document.uri.toString(), textHash: hashOf(text) };
      return await start(choice, { ...(await filledIn(document)), name, source }, probe, scenario);
    },
    async spotCheck(endpointName) {
      requireTrust();
      const named = parts.endpoints.all().find(({ endpoint }) => endpoint.name === endpointName);
      const choice = named ?? parts.endpoints.required();
      const probe = parts.settings().probe;
      return await start(choice, { prompt: builtInPrompt, unrendered: [], name: builtInName, source: null }, { ...probe, ...spotCheckShape, maxTokens: Math.min(probe.maxTokens ?? spotCheckTokens, spotCheckTokens) });
    },
    async again(request) {
      requireTrust();
      const choice = parts.endpoints.all().find(({ endpoint }) => endpoint.name === request.endpointName);
      if (!choice) throw new Failure(vscode.l10n.t('The endpoint {0} is no longer there. Choose another one and probe again.', request.endpointName), 'addEndpoint');
      return await start(choice, { prompt: request.job.prompt, unrendered: request.job.unrendered, name: request.promptName, source: request.source }, request.job.settings, request.scenario);
    },
  };
}

/** What a document sends. Its text is taken as it stands in the editor, saved or not. */
export async function readDocument(document: vscode.TextDocument, values: Readonly<Record<string, string>> = {}): Promise<PromptText> {
  const root = vscode.workspace.getWorkspaceFolder(document.uri)?.uri.fsPath ?? null;
  return await readPrompt(document.getText(), document.isUntitled ? null : document.uri.fsPath, root, values);
}

function requireTrust(): void {
  if (!vscode.workspace.isTrusted) throw new Failure(vscode.l10n.t('This folder is in Restricted Mode, so no request is sent from it. Trust the folder to probe; reports can be read without.'), 'manageTrust');
}

function checkPrompt(text: string, name: string): void {
  if (text.includes('\0')) throw new Failure(vscode.l10n.t('{0} is not text: it holds zero bytes. Open a prompt file and probe again.', name));
  if (text.trim() === '') throw new Failure(vscode.l10n.t('{0} is empty. Write something to send.', name));
  if (text.length > largestPrompt) throw new Failure(vscode.l10n.t('{0} has {1} MB of text, more than any model takes ({2} MB is the limit here). Select the part to send and probe the selection.', name, (text.length / 1e6).toFixed(1), largestPrompt / 1e6));
}

/** Only an endpoint of the user's own settings may read the environment. */
function withEnvironment({ endpoint, from }: ChoosableEndpoint): ChoosableEndpoint['endpoint'] {
  const resolved = resolveEnvironment(endpoint, (name) => (from === 'user' ? (process.env[name] ?? null) : null));
  if (resolved.withheld.length === 0) return resolved.endpoint;
  const names = resolved.withheld.join(', ');
  if (from === 'user') throw new Failure(vscode.l10n.t('Headers of {0} ask for {1}, which the environment does not have. Set it before VS Code starts, or use Set API Key.', endpoint.name, names), 'openSettings');
  throw new Failure(vscode.l10n.t('Headers of {0} ask for the environment variable {1}. Workspace settings may not read the environment: move the endpoint to your user settings.', endpoint.name, names), 'openSettings');
}

function environment(version: string): Environment {
  return {
    product: `First Token ${version}`,
    node: process.version,
    platform: `${os.platform()} ${os.release()} ${os.arch()}`,
    editor: `${vscode.env.appName} ${vscode.version}`,
    remote: vscode.env.remoteName ?? null,
  };
}
