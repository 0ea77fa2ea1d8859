import * as path from 'node:path';
import * as vscode from 'vscode';
import { ms, verdictShort } from '../report/format';
import type { Report } from '../report/report';
import { answered, type Dialogs } from './dialogs';
import { Failure } from './failure';
import { since } from './promptResults';
import { readReport, type Loaded, type ReportStore, type StoredReport } from './reportStore';

type Item = vscode.QuickPickItem & { readonly report: StoredReport | null };

/** Largest report that is opened: some thousand requests of thousands of tokens. */
const largestReport = 300_000_000;

/** Lets the user choose a stored report, or a file. */
export async function pickReport(store: ReportStore, dialogs: Dialogs, options: { readonly title: string; readonly without?: string; readonly openTape?: OpenTape }): Promise<Loaded> {
  const reports = (await store.list()).filter(({ id }) => id !== options.without);
  const file: Item = { label: vscode.l10n.t('$(folder-opened) Open a file…'), report: null };
  const items: Item[] = [...reports.map(itemOf), ...(reports.length > 0 ? [{ label: '', kind: vscode.QuickPickItemKind.Separator, report: null }] : []), file];
  const choice = await answered(dialogs.pick(items, { title: options.title, placeHolder: vscode.l10n.t('Report'), matchOnDescription: true, matchOnDetail: true }));
  if (choice.report) return await loadById(store, choice.report.id);
  const uri = await answered(dialogs.open({ title: options.title, filters: { [vscode.l10n.t('Reports, and results of other tools')]: ['jsonl', 'json', 'csv'], [vscode.l10n.t('All files')]: ['*'] } }));
  return await loadFile(uri, options.openTape);
}

/** A report of the store. */
export async function loadById(store: ReportStore, id: string): Promise<Loaded> {
  const loaded = await store.load(id);
  if (!loaded) throw new Failure(vscode.l10n.t('This report is no longer there: it was deleted, or it belongs to another workspace.'));
  return loaded;
}

/** A saved tape as a report of its one request; null when the text is none. */
export type OpenTape = (text: string, name: string) => Promise<Report | null>;

/** A report in any file, a saved tape, or a result of another tool; damaged ones and other versions come back as a problem, to be shown in the panel. */
export async function loadFile(uri: vscode.Uri, openTape?: OpenTape): Promise<Loaded> {
  const { size } = await vscode.workspace.fs.stat(uri);
  if (size > largestReport) throw new Failure(vscode.l10n.t('{0} has {1} MB, which is too large for a report.', path.basename(uri.path), Math.round(size / 1e6)));
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  const tape = openTape && text.includes('"first-token/tape@') ? await openTape(text, path.basename(uri.path)) : null;
  if (tape) return { report: tape, partial: false };
  const loaded = readReport(text, uri.fsPath);
  if (!('problem' in loaded) || loaded.problem.kind !== 'damaged') return loaded;
  const foreign = (await import('../report/exchange/index')).readForeign(text);
  return foreign ? { foreign, file: uri.fsPath } : loaded;
}

/** The report, or a Failure in words. */
export function reportIn(loaded: Loaded): Report {
  if ('report' in loaded) return loaded.report;
  if ('foreign' in loaded) throw new Failure(vscode.l10n.t('{0} is a result of {1}: it can be opened and read, but not compared with or exported as a report of First Token, as it counts differently.', path.basename(loaded.file), loaded.foreign.tool));
  const { problem } = loaded;
  if (problem.kind === 'other-version') throw new Failure(vscode.l10n.t('{0} was written by another version ({1}). Open it with that version of First Token.', path.basename(problem.path), problem.found));
  throw new Failure(vscode.l10n.t('{0} cannot be read: {1}', path.basename(problem.path), problem.detail));
}

/** What a report is called in lists: a proof says so, and what it came to. */
export function reportLabel({ proof, prompt, endpoint }: Pick<StoredReport, 'proof' | 'prompt' | 'endpoint'>): string {
  return proof ? vscode.l10n.t('Proof · {0} · {1}', prompt, servedWords(proof)) : `${endpoint} · ${prompt}`;
}

function servedWords({ state, served, of }: NonNullable<StoredReport['proof']>): string {
  const count = (n: number): string => n.toLocaleString('en-US');
  if (served === null) return state === 'failed' ? vscode.l10n.t('failed') : vscode.l10n.t('nothing told');
  return of === null ? vscode.l10n.t('{0} served', count(served)) : vscode.l10n.t('{0} of {1} served', count(served), count(of));
}

function itemOf(report: StoredReport): Item {
  return {
    label: reportLabel(report),
    description: [report.proof ? report.endpoint : report.ttft === null ? null : ms(report.ttft), report.proof ? null : verdictShort(report.verdict), report.partial ? vscode.l10n.t('not finished') : null].filter(Boolean).join(' · '),
    detail: `${since(report.createdAt)} · ${vscode.l10n.t('{0} requests', report.requests)}`,
    report,
  };
}
