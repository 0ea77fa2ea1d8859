import * as path from 'node:path';
import * as vscode from 'vscode';
import { endpointFromUrl } from '../probe/endpoint';
import { createMemory, type Remembered } from '../probe/memory';
import type { Report } from '../report/report';
import { startSimulator } from '../simulator/start';
import { registerCommands, tell, type CommandHandlers } from './commands';
import { createConsent } from './consent';
import { createDemo } from './demo';
import { editorDialogs, type Dialogs } from './dialogs';
import { createEndpoints } from './endpoints';
import { createEvidence } from './evidence';
import { saveTape } from './saveTape';
import { createHandlers } from './handlers';
import { createLab } from './lab';
import { createLog } from './log';
import { commandIds, section, type ContextKeys } from './manifest';
import { createPrefix } from './prefix';
import { createProbing } from './probing';
import { showProgressWithoutPanel } from './progress';
import { createPromptInputs } from './promptInputs';
import { createPromptLenses, isPromptFile } from './promptLenses';
import { builtInName } from './promptText';
import { createPromptResults, promptResult } from './promptResults';
import { createReportPanels } from './reportPanel';
import { createReportStore } from './reportStore';
import { createRuns, type Run } from './runs';
import { createSecrets } from './secrets';
import { onSettingsChanged, readSettings, type Settings } from './settings';
import { createStatusBar } from './statusBar';
import { registerViews } from './views';

/** What `activate` returns: for other extensions, and for the tests of this one. */
export interface EditorApi {
  readonly apiVersion: 1;
  /** Only in the extension's own tests: the parts behind the editor, with dialogs that can be answered. */
  readonly parts?: TestParts;
}

/** Inside a test: the objects as they were put together. */
export type TestParts = ReturnType<typeof compose> & { readonly context: vscode.ExtensionContext };

/** Puts the editor's parts together; all that must be ended is in `context.subscriptions`. */
export function startEditor(context: vscode.ExtensionContext): EditorApi {
  const parts = compose(context);
  // `npm start` opens the checkout under development with the panel filled.
  if (context.extensionMode === vscode.ExtensionMode.Development && process.env['FIRST_TOKEN_TRY_DEMO'] === '1') void showDemo(context.extension.id);
  return context.extensionMode === vscode.ExtensionMode.Test ? { apiVersion: 1, parts: { ...parts, context } } : { apiVersion: 1 };
}

/** The demo, with the walkthrough behind its panel: opened first, since the editor ticks only steps that are done after it has read the walkthrough. */
async function showDemo(extension: string): Promise<void> {
  await vscode.commands.executeCommand('workbench.action.openWalkthrough', `${extension}#start`, false).then(undefined, () => undefined);
  await vscode.commands.executeCommand(commandIds.tryDemo);
}

function compose(context: vscode.ExtensionContext) {
  const own = (file: string) => context.asAbsolutePath(path.join('dist', file));
  const keep = <T extends { dispose(): unknown }>(part: T): T => {
    context.subscriptions.push(part);
    return part;
  };
  const channel = keep(vscode.window.createOutputChannel('First Token', { log: true }));
  const log = createLog(channel);
  const dialogs: Dialogs = { ...editorDialogs };
  const secrets = createSecrets(context.secrets, (key) => log.hide(key));
  const loadEngine = () => import('../probe/index');
  let settings = readSettings();

  const demo = keep(
    createDemo({
      launch: (args) => startSimulator({ script: own('simulator.js'), args: [...args] }),
      describe: (url) => endpointFromUrl(url, { name: 'demo' }),
      changed: () => {
        endpoints.refresh();
        updateContext();
      },
    }),
  );
  const endpoints = createEndpoints({ settings: () => settings, demo, memory: context.workspaceState });
  const memory = createMemory(context.globalState.get<Readonly<Record<string, Remembered>>>('firstToken.servers', {}), (all) => void context.globalState.update('firstToken.servers', all));
  const folder = path.join((context.storageUri ?? context.globalStorageUri).fsPath, 'reports');
  const store = createReportStore(folder, () => reportsChanged());
  const evidence = createEvidence();
  const runs = keep(createRuns({ loadEngine, store, evidence, log }));
  const results = createPromptResults(context.workspaceState);
  const consent = createConsent(context.globalState, dialogs);
  const inputs = createPromptInputs(context.workspaceState, dialogs);
  const probing = createProbing({ inputs, settings: () => settings, endpoints, secrets, consent, dialogs, runs, memory, recorderScript: own('recorder.js'), version: (context.extension.packageJSON as { version: string }).version });

  const panels = keep(
    createReportPanels({
      extensionUri: context.extensionUri,
      runs,
      store,
      evidence,
      actions: {
        stop: () => void handlers.stop(),
        runAgain: (report) => void guarded(() => again(report)),
        compare: (report) => command(commandIds.compareReports, report.id),
        exportReport: (report, format) => command(commandIds.exportReport, report.id, format),
        openReport: () => command(commandIds.openReport),
        showLog: () => log.show(),
        openSettings: (setting) => command('workbench.action.openSettings', setting),
        spotCheck: () => command(commandIds.spotCheck),
        saveTape: (reportId, sampleId) => void guarded(() => saveTape(evidence.get(reportId, sampleId), sampleId, dialogs)),
        failed: (message) => log.error(`Panel: ${message}`),
        canRunAgain: (report) => jobOf(report) !== null || report.plan.prompt.name === builtInName,
      },
    }),
  );
  // Registered before the other lenses: of two providers VS Code shows the younger one first.
  const prefix = keep(createPrefix({ settings: () => settings, endpoints, memory, probing, consent, dialogs, log, workspaceState: context.workspaceState, script: own('prefix.js'), extensionUri: context.extensionUri, setScanning: (on) => setContext('firstToken.scanning', on) }));
  const lenses = keep(createPromptLenses({ settings: () => settings, results, runs, endpointName: () => endpoints.selected()?.endpoint.name ?? null, withoutPrompt: (document) => prefix.withoutPrompt(document) }));
  const statusBar = keep(createStatusBar({ endpoints, runs, results }));
  const views = keep(registerViews({ endpoints, store: () => store }));
  keep(showProgressWithoutPanel({ runs, panels }));

  const lab = keep(
    createLab({
      extensionUri: context.extensionUri,
      script: own('lab.js'),
      version: (context.extension.packageJSON as { version: string }).version,
      serve: async (flags) => {
        const { name, url } = await demo.startWith(flags);
        await endpoints.select(name);
        return url;
      },
      failed: (message) => log.error(`Lab: ${message}`),
      guarded: (work) => guarded(work),
    }),
  );

  const handlers: CommandHandlers = { ...prefix.handlers, ...createHandlers({ settings: () => settings, inputs, endpoints, secrets, demo, lab, probing, memory, runs, panels, store, dialogs, log, loadEngine, exporter: async (report, format) => (await import('../report/exchange/index')).exporters[format](report) }) };
  keep(registerCommands(handlers, { log, dialogs }));

  const command = (id: string, ...args: unknown[]) => void vscode.commands.executeCommand(id, ...args);
  const guarded = async (work: () => Promise<unknown>) => {
    try {
      await work();
    } catch (error) {
      tell('panel', error, { log, dialogs });
    }
  };
  const jobOf = (report: Report): Run | null => (runs.last?.report.id === report.id ? runs.last : null);
  const again = async (report: Report) => {
    const run = jobOf(report);
    await (run ? probing.again(run.request) : probing.spotCheck(report.endpoint.name));
  };

  function reportsChanged(): void {
    views.refreshReports();
    void store.list().then((list) => setContext('firstToken.hasReports', list.length > 0));
  }

  function updateContext(): void {
    setContext('firstToken.running', runs.current !== null || runs.starting !== null);
    setContext('firstToken.demoRunning', demo.endpoint !== null);
    setContext('firstToken.hasEndpoints', endpoints.all().length > 0);
    const { activeTextEditor } = vscode.window;
    setContext('firstToken.promptFile', activeTextEditor !== undefined && isPromptFile(activeTextEditor.document, settings));
  }

  /** Files renamed while their probe runs: old to new. */
  const renamed = new Map<string, string>();
  keep(
    vscode.workspace.onDidRenameFiles(({ files }) => {
      for (const { oldUri, newUri } of files) {
        renamed.set(oldUri.toString(), newUri.toString());
        void results.move(oldUri.toString(), newUri.toString()).then(() => lenses.refresh());
        void prefix.renamed(oldUri.toString(), newUri.toString());
      }
    }),
  );
  keep(
    runs.onChange((change) => {
      if (change.type === 'live' || change.type === 'sample') return;
      updateContext();
      if (change.type === 'begin') panels.showRun();
      if (change.type === 'end') void remember(change.run);
    }),
  );
  async function remember({ report, request }: Run): Promise<void> {
    const uri = request.source && (renamed.get(request.source.uri) ?? request.source.uri);
    // An experiment mixes cold and warm requests: its numbers are not those of a plain probe of the file.
    if (report.scenario === undefined) await results.set(uri, promptResult(report, request.source?.textHash ?? ''));
    await prefix.measured(report, uri, request.source?.textHash ?? '');
    lenses.refresh();
    statusBar.update();
    await store.tidy(settings.reports.keep);
  }

  let shownProblems = '';
  function showProblems({ problems }: Settings): void {
    const text = problems.map(({ setting, message }) => `${setting}: ${message}`).join('\n');
    if (text === shownProblems) return;
    shownProblems = text;
    const [first] = problems;
    if (!first) return;
    log.warn(text);
    const open = vscode.l10n.t('Open Settings');
    const more = problems.length > 1 ? ` ${vscode.l10n.t('({0} more in the log)', problems.length - 1)}` : '';
    const name = /^firstToken\.\w+/.exec(first.setting)?.[0] ?? section;
    void dialogs.choose('warning', `${first.setting}: ${first.message}.${more}`.replace(/\.\.+/, '.'), open).then((answer) => (answer === open ? vscode.commands.executeCommand('workbench.action.openSettings', name) : undefined));
  }

  keep(
    onSettingsChanged(() => {
      settings = readSettings();
      showProblems(settings);
      endpoints.refresh();
      lenses.refresh();
      prefix.refresh();
      updateContext();
    }),
  );
  keep(
    endpoints.onDidChange(() => {
      lenses.refresh();
      prefix.refresh();
    }),
  );
  keep(vscode.window.onDidChangeActiveTextEditor(updateContext));
  updateContext();
  reportsChanged();
  showProblems(settings);
  void store.tidy(settings.reports.keep).catch((error: unknown) => log.warn(String(error)));

  return { dialogs, log, secrets, endpoints, demo, lab, runs, store, panels, lenses, results, handlers, probing, prefix, settings: () => settings };
}

function setContext<K extends keyof ContextKeys>(key: K, value: ContextKeys[K]): void {
  void vscode.commands.executeCommand('setContext', key, value);
}
