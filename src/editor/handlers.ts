import * as vscode from 'vscode';
import { displayUrl, originOf } from '../probe/endpoint';
import type { ExperimentName } from '../probe/experiments';
import type { EndpointMemory } from '../probe/memory';
import { outcomeSentence, ms } from '../report/format';
import type { Report } from '../report/report';
import { ttft } from '../report/sample';
import { addEndpoint } from './addEndpoint';
import type { CommandHandlers } from './commands';
import { curlCommand, keyPlaceholder } from './curl';
import type { Demo } from './demo';
import { answered, type Dialogs } from './dialogs';
import type { ChoosableEndpoint, Endpoints } from './endpoints';
import { runExperiment } from './experiments';
import { exportReport, type ExportFormat } from './exportReport';
import { Failure } from './failure';
import { handOverToTool } from './handOver';
import type { Lab } from './lab';
import type { Log } from './log';
import { section } from './manifest';
import type { PrefixCommand } from './prefix';
import { isPromptFile } from './promptLenses';
import { builtInName, builtInPrompt } from './promptText';
import { readDocument, type Probing } from './probing';
import type { PromptInputs } from './promptInputs';
import { loadById, loadFile, pickReport, reportIn } from './reportPicker';
import type { ReportPanels } from './reportPanel';
import type { ReportStore } from './reportStore';
import type { Engine, Runs } from './runs';
import type { Secrets } from './secrets';
import type { Settings } from './settings';

/** What the commands act on. */
export interface HandlerParts {
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly secrets: Secrets;
  readonly demo: Demo;
  readonly lab: Lab;
  readonly probing: Probing;
  readonly memory: EndpointMemory;
  readonly runs: Runs;
  readonly inputs: PromptInputs;
  readonly panels: ReportPanels;
  readonly store: ReportStore;
  readonly dialogs: Dialogs;
  readonly log: Log;
  readonly loadEngine: () => Promise<Engine>;
  readonly exporter: (report: Report, format: ExportFormat) => Promise<string>;
}

/** Every command in a few lines: what it takes from the palette, a menu or a lens, and whom it asks. */
export function createHandlers(parts: HandlerParts): Omit<CommandHandlers, PrefixCommand> {
  const { endpoints, dialogs, runs, panels, store, probing, demo } = parts;

  /** The report a menu item, an argument or the active panel names; else the last one; else the user's choice. */
  async function reportFor(argument: unknown, title: string): Promise<Report> {
    const id = idOf(argument);
    if (id !== null) return reportIn(await loadById(store, id));
    return panels.activeReport ?? reportIn(await pickReport(store, dialogs, { title }));
  }

  async function endpointFor(argument: unknown, title: string): Promise<ChoosableEndpoint> {
    const name = endpointName(argument);
    const all = endpoints.all();
    const named = all.find(({ endpoint }) => endpoint.name === name);
    if (named) return named;
    if (all.length === 0) return endpoints.required();
    const items = all.map((choice) => ({ label: choice.endpoint.name, description: choice.endpoint.model ?? '', detail: originOf(choice.endpoint.url), choice }));
    return (await answered(dialogs.pick(items, { title, placeHolder: vscode.l10n.t('Endpoint') }))).choice;
  }

  const experiment = (name: ExperimentName) => () => runExperiment(parts, name, (document) => isPromptFile(document, parts.settings()));

  return {
    async probePrompt(argument) {
      const document = await documentFor(argument);
      const editor = vscode.window.activeTextEditor;
      const selection = editor?.document.uri.toString() === document.uri.toString() && !(argument instanceof vscode.Uri) ? editor.selection : null;
      await probing.document(document, selection);
    },
    spotCheck: (argument) => probing.spotCheck(endpointName(argument)),
    async tryDemo() {
      const { name } = await demo.start();
      await endpoints.select(name);
      await probing.spotCheck(name);
    },
    stop: () => runs.stop(),
    addEndpoint: () => addEndpoint({ ...parts, test: (endpoint) => testRequest(endpoint, parts), detected: (url, detection) => parts.memory.detected(url, detection) }),
    async selectEndpoint(argument) {
      const name = endpointName(argument);
      if (name !== null) return await endpoints.select(name);
      await selectEndpoint(parts);
    },
    async setKey(argument) {
      const { endpoint } = await endpointFor(argument, vscode.l10n.t('Set API Key'));
      const origin = originOf(endpoint.url);
      const key = await answered(dialogs.input({ title: vscode.l10n.t('Set API Key'), password: true, prompt: vscode.l10n.t('API key for {0}. It is sent to this address only.', origin), validateInput: (value) => (value.trim() === '' ? vscode.l10n.t('Paste the key.') : null) }));
      await parts.secrets.set(origin, key.trim());
      void dialogs.choose('info', vscode.l10n.t('The key for {0} is in the secret storage.', origin));
    },
    async removeKey(argument) {
      const { endpoint } = await endpointFor(argument, vscode.l10n.t('Remove API Key'));
      const origin = originOf(endpoint.url);
      const removed = await parts.secrets.remove(origin);
      void dialogs.choose('info', removed ? vscode.l10n.t('The key for {0} is removed.', origin) : vscode.l10n.t('There was no key for {0}.', origin));
    },
    async startDemo() {
      const { name, url } = await demo.start();
      await endpoints.select(name);
      void dialogs.choose('info', vscode.l10n.t('The demo endpoint runs at {0}.', url), vscode.l10n.t('Spot-check')).then((answer) => (answer ? vscode.commands.executeCommand(`${section}.spotCheck`, name) : undefined));
    },
    stopDemo: () => demo.stop(),
    openLab: () => parts.lab.open(),
    async showLastReport() {
      if (runs.current ?? runs.last) return panels.showRun();
      const [last] = await store.list();
      if (!last) throw new Failure(vscode.l10n.t('There is no report yet. Probe an endpoint first.'), 'addEndpoint');
      panels.showReport(await loadById(store, last.id));
    },
    async openReport(argument) {
      const id = idOf(argument);
      if (argument instanceof vscode.Uri) panels.showReport(await loadFile(argument, runs.openTape));
      else panels.showReport(id === null ? await pickReport(store, dialogs, { title: vscode.l10n.t('Open Report'), openTape: runs.openTape }) : await loadById(store, id));
    },
    async compareReports(argument, others) {
      const chosen = Array.isArray(others) ? others.map(idOf).filter((id) => id !== null) : [];
      const first = chosen[0] !== undefined ? reportIn(await loadById(store, chosen[0])) : await reportFor(argument, vscode.l10n.t('Compare Reports (1/2)'));
      const second = chosen[1] !== undefined ? await loadById(store, chosen[1]) : await pickReport(store, dialogs, { title: vscode.l10n.t('Compare Reports (2/2): {0} with …', first.endpoint.name), without: first.id });
      panels.showCompare(first, reportIn(second));
    },
    async exportReport(argument, format) {
      const report = await reportFor(argument, vscode.l10n.t('Export Report'));
      return await exportReport(report, isFormat(format) ? format : null, dialogs, parts.exporter);
    },
    async forgetInputs() {
      const document = vscode.window.activeTextEditor?.document;
      if (document) await parts.inputs.forget(document);
    },
    async copyAsCurl(argument) {
      const choice = endpointName(argument) === null ? endpoints.required() : await endpointFor(argument, vscode.l10n.t('Copy as cURL'));
      const document = vscode.window.activeTextEditor?.document;
      const prompt = document && document.getText().trim() !== '' && argument === undefined ? (await readDocument(document)).prompt : builtInPrompt;
      const engine = await parts.loadEngine();
      const { api } = choice.endpoint;
      const detected = parts.memory.recall(choice.endpoint.url).detection;
      const dialect = engine.dialects[api === 'auto' ? (detected?.api ?? 'openai-chat') : api];
      const request = dialect.request({ url: choice.endpoint.url, model: choice.endpoint.model ?? detected?.models[0] ?? null, prompt, maxTokens: parts.settings().probe.maxTokens, ask: new Set(), body: choice.endpoint.body, headers: choice.endpoint.headers, key: keyPlaceholder });
      await vscode.env.clipboard.writeText(curlCommand(request));
      void dialogs.choose('info', vscode.l10n.t('Copied. Put the key into FIRST_TOKEN_API_KEY before you run it.'));
    },
    sweep: experiment('sweep'),
    rate: experiment('rate'),
    batching: experiment('batching'),
    interference: experiment('interference'),
    fairness: experiment('fairness'),
    overload: experiment('overload'),
    encoder: experiment('encoder'),
    handOver: (argument) => handOverToTool(parts, argument),
    showLog: () => parts.log.show(),
    editEndpoints: () => vscode.commands.executeCommand('workbench.action.openSettingsJson', { revealSetting: { key: `${section}.endpoints`, edit: true } }),
    async deleteReport(argument) {
      const id = idOf(argument);
      if (id !== null) await store.remove(id);
    },
  };
}

/** One request of up to 16 tokens, outside the panel and the store. */
async function testRequest(endpoint: ChoosableEndpoint['endpoint'], { probing, loadEngine, settings }: HandlerParts): Promise<{ ok: boolean; words: string }> {
  const engine = await loadEngine();
  const shape = { ...settings().probe, requests: 1, warmup: 0, concurrency: 1, maxTokens: 16 };
  const job = await probing.job({ endpoint, from: 'user' }, builtInPrompt, builtInName, shape);
  return await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, cancellable: true, title: vscode.l10n.t('Testing {0} …', endpoint.name) }, async (_progress, token) => {
    const abort = new AbortController();
    token.onCancellationRequested(() => abort.abort());
    let words = vscode.l10n.t('No request was sent.');
    let ok = false;
    for await (const event of engine.probe({ ...job, reportFile: null }, abort.signal)) {
      if (event.type !== 'sample' || event.sample.role !== 'measured') continue;
      const first = ttft(event.sample);
      ok = event.sample.outcome.kind === 'ok';
      words = ok && first !== null ? vscode.l10n.t('{0} answered: first token after {1}.', endpoint.name, ms(first)) : `${endpoint.name}: ${outcomeSentence(event.sample.outcome, 'editor')}`;
    }
    return { ok, words };
  });
}

async function selectEndpoint({ endpoints, dialogs, demo }: HandlerParts): Promise<void> {
  const chosen = endpoints.selected()?.endpoint.name;
  const choices = endpoints.all().map(({ endpoint }) => ({ label: endpoint.name, description: [endpoint.model, endpoint.name === chosen ? vscode.l10n.t('selected') : null].filter(Boolean).join(' · '), detail: displayUrl(endpoint.url), command: null, name: endpoint.name }));
  const add = { label: vscode.l10n.t('$(add) Add Endpoint…'), command: `${section}.addEndpoint`, name: null };
  const start = { label: vscode.l10n.t('$(beaker) Start Demo Endpoint'), command: `${section}.startDemo`, name: null };
  const separator = { label: '', kind: vscode.QuickPickItemKind.Separator, command: null, name: null };
  const items = [...choices, ...(choices.length > 0 ? [separator] : []), add, ...(demo.endpoint ? [] : [start])];
  const choice = await answered(dialogs.pick<vscode.QuickPickItem & { command: string | null; name: string | null }>(items, { title: vscode.l10n.t('Select Endpoint'), placeHolder: vscode.l10n.t('Endpoint to probe'), matchOnDetail: true }));
  if (choice.command) await vscode.commands.executeCommand(choice.command);
  else if (choice.name) await endpoints.select(choice.name);
}

async function documentFor(argument: unknown): Promise<vscode.TextDocument> {
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  if (!uri) throw new Failure(vscode.l10n.t('No prompt is open. Open a prompt file, or run Spot-check Endpoint.'));
  try {
    return await vscode.workspace.openTextDocument(uri);
  } catch (error) {
    throw new Failure(vscode.l10n.t('{0} cannot be read as text: {1}', vscode.workspace.asRelativePath(uri), error instanceof Error ? error.message : String(error)));
  }
}

/** The id of a report given as text (lens, view) or as an item of the reports view. */
function idOf(argument: unknown): string | null {
  if (typeof argument === 'string') return argument;
  return isRecord(argument) && typeof argument['id'] === 'string' ? argument['id'] : null;
}

/** The name of an endpoint given as text or as an item of the endpoints view. */
function endpointName(argument: unknown): string | null {
  if (typeof argument === 'string') return argument;
  const endpoint = isRecord(argument) ? argument['endpoint'] : null;
  return isRecord(endpoint) && typeof endpoint['name'] === 'string' ? endpoint['name'] : null;
}

function isFormat(value: unknown): value is ExportFormat {
  return value === 'json' || value === 'csv' || value === 'markdown';
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === 'object' && value !== null;
}
