import * as path from 'node:path';
import * as vscode from 'vscode';
import type { EndpointMemory } from '../probe/memory';
import type { Report } from '../report/report';
import type { CommandHandlers } from './commands';
import type { Consent } from './consent';
import { answered, type Dialogs } from './dialogs';
import type { Endpoints } from './endpoints';
import { Failure } from './failure';
import type { Log } from './log';
import { section } from './manifest';
import type { PrefixCompare } from './prefixCompare';
import { createPrefixCounting } from './prefixCounting';
import { createPrefixDiagnostics } from './prefixDiagnostics';
import { createPrefixDocuments, sourceOf } from './prefixDocuments';
import { createPrefixLenses } from './prefixLenses';
import type { JudgeBy } from './prefixMessages';
import { coldPrefillRate, createPrefixProofs } from './prefixProofs';
import { proofOf } from './prefixProofLens';
import { createPrefixTree } from './prefixTree';
import { createPrefixWorker } from './prefixWorker';
import type { Probing } from './probing';
import { isPromptFile } from './promptLenses';
import type { Settings } from './settings';

/** The commands of this part. */
export type PrefixCommand = 'prove' | 'proveMore' | 'selectCacheRule' | 'compareRenders' | 'compareRequests' | 'sinceLastCommit' | 'scanPrompts' | 'stopScan' | 'goToBreaker' | 'classifyVariable';

/** What this part needs from the rest. */
export interface PrefixParts {
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly memory: EndpointMemory;
  readonly probing: Probing;
  readonly consent: Consent;
  readonly dialogs: Dialogs;
  readonly log: Log;
  readonly workspaceState: vscode.Memento;
  /** dist/prefix.js. */
  readonly script: string;
  readonly extensionUri: vscode.Uri;
  readonly setScanning: (on: boolean) => void;
}

const ruleKey = 'firstToken.prefix.rule';

/** The prefix-cache part of the editor: lenses, line, diagnostics, hovers, fixes, the tree, comparisons and the proof. */
export function createPrefix(parts: PrefixParts) {
  const { settings, endpoints, dialogs, log, workspaceState } = parts;
  const worker = createPrefixWorker({ script: parts.script, log: (text) => log.error(text) });
  const proofs = createPrefixProofs(workspaceState, (when) => vscode.l10n.t('measured {0}, edited since', when));
  const askEndpoint = createPrefixCounting({ worker, settings, endpoints, consent: parts.consent, probing: parts.probing, log });
  const counting: typeof askEndpoint = async (...args) => {
    const counts = await askEndpoint(...args);
    // The first question may be the one that tells what server it is, and so which rule holds.
    rejudge();
    return counts;
  };
  const documents = createPrefixDocuments({ worker, log, judge, count: counting, wanted: (document) => settings().lens.cache && isPromptFile(document, settings()) });
  const lenses = createPrefixLenses({ settings, documents, proofs });
  const diagnostics = createPrefixDiagnostics({ settings, documents, worker, findingsPage: vscode.Uri.joinPath(parts.extensionUri, 'docs', 'findings.md') });
  const tree = createPrefixTree({ settings, worker, judge, scanning: parts.setScanning });
  let comparing: Promise<PrefixCompare> | null = null;
  const loadCompare = () => (comparing ??= import('./prefixCompare').then(({ createPrefixCompare }) => createPrefixCompare({ worker, dialogs, judge, now: () => Date.now() })));
  const compare: PrefixCompare = {
    renders: async (document) => await (await loadCompare()).renders(document),
    requests: async (document) => await (await loadCompare()).requests(document),
    sinceLastCommit: async (document) => await (await loadCompare()).sinceLastCommit(document),
    dispose: () => void comparing?.then((loaded) => loaded.dispose()),
  };
  let judgedBy = JSON.stringify(judge());
  const told = new Set<string>();
  const trusted = vscode.workspace.onDidGrantWorkspaceTrust(() => documents.refresh());
  const telling = documents.onDidChange((document) => {
    for (const problem of documents.current(document)?.problems ?? []) {
      if (told.has(problem)) continue;
      told.add(problem);
      log.warn(problem);
      const open = vscode.l10n.t('Open Settings');
      void dialogs.choose('warning', problem, open).then((answer) => (answer === open ? vscode.commands.executeCommand('workbench.action.openSettings', `${section}.prefix`) : undefined));
    }
  });

  /** What files are judged by now: the selected endpoint, a rule picked by hand, the settings. */
  function judge(): JudgeBy {
    const { prefix } = settings();
    const endpoint = endpoints.selected()?.endpoint ?? null;
    const detection = endpoint ? parts.memory.recall(endpoint.url).detection : null;
    const picked = workspaceState.get<string>(ruleKey) ?? null;
    return {
      target: {
        cache: picked ?? endpoint?.cache ?? null,
        server: detection?.server ?? null,
        dialect: endpoint === null ? null : endpoint.api === 'auto' ? (detection?.api ?? null) : endpoint.api,
        url: endpoint?.url ?? null,
        model: endpoint?.model ?? detection?.models[0] ?? null,
      },
      overrides: prefix.rules,
      scope: prefix.scope,
      variables: prefix.variables,
      minLostTokens: prefix.minLostTokens,
      today: new Date().toISOString().slice(0, 10),
      cost: { prefillRate: endpoint === null ? null : proofs.prefillRate(endpoint.name), price: endpoint?.price ?? null },
      tokenizer: fileOf(prefix.tokenizer),
      tokens: prefix.tokens,
      chatTemplate: fileOf(prefix.chatTemplate),
    };
  }

  /** To be called when anything that files are judged by may have changed. */
  function refresh(): void {
    rejudge();
    lenses.refresh();
  }

  function rejudge(): void {
    const now = JSON.stringify(judge());
    if (now === judgedBy) return;
    judgedBy = now;
    documents.refresh();
  }

  /** A run has ended: its prefill rate prices the breakers, and a proof stands in the lens beside what is predicted. */
  async function measured(report: Report, uri: string | null, textHash: string): Promise<void> {
    const rate = coldPrefillRate(report);
    if (rate !== null) await proofs.setPrefillRate(report.endpoint.name, rate);
    const proof = proofOf(report, textHash);
    if (proof && uri !== null) await proofs.set(uri, proof);
    refresh();
  }

  const handlers: Pick<CommandHandlers, PrefixCommand> = {
    async prove(argument) {
      const document = await documentFor(argument);
      const { startProof } = await import('./prefixProving');
      return await startProof(document, { probing: parts.probing, worker, judge, source: sourceOf(document) });
    },
    async proveMore(argument) {
      const document = await documentFor(argument);
      const { chooseProof, startProof } = await import('./prefixProving');
      const shape = await chooseProof(dialogs);
      return await startProof(document, { probing: parts.probing, worker, judge, source: sourceOf(document) }, shape);
    },
    selectCacheRule: (argument) => selectRule(typeof argument === 'string' ? argument : null),
    compareRenders: async (argument) => await compare.renders(await documentFor(argument)),
    compareRequests: async (argument) => await compare.requests(await documentFor(argument)),
    sinceLastCommit: async (argument) => await compare.sinceLastCommit(await documentFor(argument)),
    scanPrompts: () => tree.scan(),
    stopScan: () => tree.stop(),
    async goToBreaker(argument, index, offset) {
      const document = await documentFor(argument);
      const view = await documents.ready(document);
      const one = view?.prompts.find((prompt) => prompt.index === (typeof index === 'number' ? index : 0));
      const at = typeof offset === 'number' ? offset : (one?.ends?.start ?? null);
      if (at === null) return void dialogs.choose('info', [one?.sentence ?? vscode.l10n.t('No prompt was found in this file.'), ...(one?.details ?? [])].join('. '));
      const position = document.positionAt(at);
      const editor = await vscode.window.showTextDocument(document);
      editor.selection = new vscode.Selection(position, position);
      editor.revealRange(new vscode.Range(position, position), vscode.TextEditorRevealType.InCenterIfOutsideViewport);
    },
    async classifyVariable(name, value) {
      if (typeof name !== 'string' || typeof value !== 'string') return;
      const target = vscode.workspace.workspaceFolders === undefined ? vscode.ConfigurationTarget.Global : vscode.ConfigurationTarget.Workspace;
      const config = vscode.workspace.getConfiguration(section);
      const inspected = config.inspect<Record<string, unknown>>('prefix');
      const own = (target === vscode.ConfigurationTarget.Global ? inspected?.globalValue : inspected?.workspaceValue) ?? {};
      const variables = typeof own['variables'] === 'object' && own['variables'] !== null ? own['variables'] : {};
      await config.update('prefix', { ...own, variables: { ...variables, [name]: value } }, target);
    },
  };

  async function selectRule(id: string | null): Promise<void> {
    const { rules, chosen } = await worker.ask({ type: 'rules', judge: { ...judge(), target: { ...judge().target, cache: endpoints.selected()?.endpoint.cache ?? null } } });
    const picked = workspaceState.get<string>(ruleKey) ?? null;
    const auto = { label: vscode.l10n.t('Follow the selected endpoint'), description: `${chosen.name} · ${chosen.why}`, detail: picked === null ? vscode.l10n.t('selected') : '', id: null as string | null };
    const items = rules.map((rule) => ({ label: rule.name, description: rule.id, detail: [picked === rule.id ? vscode.l10n.t('selected') : '', vscode.l10n.t('as of {0}', rule.asOf), rule.notes].filter((word) => word !== '').join(' · '), id: rule.id }));
    const choice = id === null ? (await answered(dialogs.pick([auto, ...items], { title: vscode.l10n.t('Select Cache Rule'), placeHolder: vscode.l10n.t('Whose prefix cache to judge by'), matchOnDescription: true }))).id : id === 'auto' ? null : id;
    if (choice !== null && !rules.some((rule) => rule.id === choice)) throw new Failure(vscode.l10n.t('There is no cache rule "{0}".', choice), 'openSettings');
    await workspaceState.update(ruleKey, choice ?? undefined);
    refresh();
  }

  return {
    worker,
    documents,
    lenses,
    diagnostics,
    tree,
    compare,
    proofs,
    handlers,
    judge,
    refresh,
    measured,
    /** A file has another name. */
    renamed: (from: string, to: string) => proofs.move(from, to),
    /** True for code in which no prompt was found, or none yet: it gets no lens at all. */
    withoutPrompt(document: vscode.TextDocument): boolean {
      if (!/\.(?:py|[cm]?[jt]sx?)$/i.test(document.uri.path)) return false;
      const view = documents.current(document);
      return view === null || view.prompts.length === 0;
    },
    source: sourceOf,
    dispose: () => void vscode.Disposable.from(telling, trusted, worker, documents, lenses, diagnostics, tree, compare).dispose(),
  };
}

async function documentFor(argument: unknown): Promise<vscode.TextDocument> {
  const uri = argument instanceof vscode.Uri ? argument : vscode.window.activeTextEditor?.document.uri;
  if (!uri) throw new Failure(vscode.l10n.t('No file is open. Open a prompt file first.'));
  try {
    return await vscode.workspace.openTextDocument(uri);
  } catch (error) {
    throw new Failure(vscode.l10n.t('{0} cannot be read as text: {1}', vscode.workspace.asRelativePath(uri), error instanceof Error ? error.message : String(error)));
  }
}

/** A path of the settings: absolute, or below the first folder; null when none is set. */
function fileOf(setting: string): string | null {
  if (setting === '') return null;
  return path.isAbsolute(setting) ? setting : path.join(vscode.workspace.workspaceFolders?.[0]?.uri.fsPath ?? '', setting);
}
