import { execFile } from 'node:child_process';
import * as path from 'node:path';
import { promisify } from 'node:util';
import * as vscode from 'vscode';
import { count } from '../report/format';
import { answered, type Dialogs } from './dialogs';
import { Failure } from './failure';
import type { EditOutcome } from './prefixEditCost';
import { sourceOf } from './prefixDocuments';
import type { JudgeBy, Renderable, RenderSide, SideBySide } from './prefixMessages';
import type { PrefixWorker } from './prefixWorker';

/** Two renders, two requests, two versions: what differs first, shown in a diff editor. */
export interface PrefixCompare {
  /** Renders the document twice, with two input sets or at two times. */
  renders(document: vscode.TextDocument): Promise<SideBySide>;
  /** Two requests of the document, or one of it and one of another file. */
  requests(document: vscode.TextDocument): Promise<SideBySide>;
  /** What can be reused before and after the edit since HEAD, and what of it is computed again once. */
  sinceLastCommit(document: vscode.TextDocument): Promise<EditOutcome>;
  dispose(): void;
}

const scheme = 'first-token-text';
const hour = 3_600_000;
const minute = 60_000;
const nonces = ['00000000-0000-4000-8000-000000000000', '11111111-1111-4111-8111-111111111111'] as const;

/** The commands that compare. Texts shown live until the window closes. */
export function createPrefixCompare(parts: { readonly worker: PrefixWorker; readonly dialogs: Dialogs; readonly judge: () => JudgeBy; readonly now: () => number }): PrefixCompare {
  const { worker, dialogs } = parts;
  const texts = new Map<string, string>();
  const registration = vscode.workspace.registerTextDocumentContentProvider(scheme, { provideTextDocumentContent: ({ path: name }) => texts.get(name) ?? '' });
  let shown = 0;

  function virtual(name: string, text: string): vscode.Uri {
    const uri = vscode.Uri.from({ scheme, path: `/${(shown += 1)}/${name}` });
    texts.set(uri.path, text);
    for (const oldest of texts.keys()) {
      if (texts.size <= 40) break;
      texts.delete(oldest);
    }
    return uri;
  }

  async function show(left: vscode.Uri, right: vscode.Uri, title: string, at: { readonly line: number; readonly column: number } | null): Promise<void> {
    const position = new vscode.Position((at?.line ?? 1) - 1, (at?.column ?? 1) - 1);
    await vscode.commands.executeCommand('vscode.diff', left, right, title, { selection: new vscode.Range(position, position), preview: true } satisfies vscode.TextDocumentShowOptions);
  }

  async function present(name: string, names: readonly [string, string], compared: SideBySide): Promise<void> {
    const { difference } = compared;
    const where = difference === null ? vscode.l10n.t('no difference in {0} tokens', count(compared.tokens)) : vscode.l10n.t('first difference at line {0}, byte {1}, after {2} of {3} tokens', difference.line, count(difference.byte), count(difference.sameTokens), count(compared.tokens));
    await show(virtual(names[0], compared.first), virtual(names[1], compared.second), `${name}: ${where}`, difference);
    void dialogs.choose('info', [`${name}: ${where}`, ...compared.words].join('. ').replace(/\.\.$/, '.'));
  }

  async function pickPrompt(all: readonly Renderable[]): Promise<Renderable> {
    const [only] = all;
    if (!only) throw new Failure(vscode.l10n.t('No prompt was found in this file, so there is nothing to render.'));
    if (all.length === 1) return only;
    const items = all.map((one) => ({ label: one.name ?? vscode.l10n.t('Prompt {0}', one.index + 1), one }));
    return (await answered(dialogs.pick(items, { title: vscode.l10n.t('Compare Renders'), placeHolder: vscode.l10n.t('Prompt to render') }))).one;
  }

  /** Two times, two samples of the file, or another value of one variable. */
  async function pickSides(one: Renderable): Promise<readonly [RenderSide, RenderSide]> {
    const clock = parts.now();
    const base: RenderSide = { sample: 0, values: {}, clock, nonce: nonces[0] };
    const other: RenderSide = { ...base, nonce: nonces[1] };
    type Item = vscode.QuickPickItem & { sides: () => Promise<readonly [RenderSide, RenderSide]> };
    const direct = (a: RenderSide, b: RenderSide) => () => Promise.resolve([a, b] as const);
    const later: Item = { label: vscode.l10n.t('Now and an hour later'), detail: vscode.l10n.t('The same inputs at two times of the day; variables that hold the time follow it'), sides: direct(base, { ...other, clock: clock + hour + minute }) };
    const tomorrow: Item = { label: vscode.l10n.t('Today and tomorrow'), detail: vscode.l10n.t('The same inputs a day apart; variables that hold the date follow it'), sides: direct(base, { ...other, clock: clock + 24 * hour }) };
    const items: Item[] = [
      ...(one.clock === 'minute' ? [later] : []),
      ...(one.clock === null ? [] : [tomorrow]),
      ...one.samples.slice(1).map((words, i) => ({ label: vscode.l10n.t('Sample 1 and sample {0}', i + 2), detail: words, sides: direct(base, { ...other, sample: i + 1 }) })),
      ...one.variables.map(({ name, value }) => ({
        label: vscode.l10n.t('Another value of {0}', name),
        detail: value === null ? vscode.l10n.t('It has none in the file') : value.slice(0, 120),
        sides: async () => {
          const typed = await answered(dialogs.input({ title: vscode.l10n.t('Compare Renders'), prompt: vscode.l10n.t('Value of {0} in the second render', name), value: value ?? '' }));
          return [base, { ...base, values: { [name]: typed } }] as const;
        },
      })),
    ];
    if (items.length === 0) throw new Failure(vscode.l10n.t('Nothing in this prompt changes: it has no clock and no variable, so two renders are the same.'));
    return await (await answered(dialogs.pick(items, { title: vscode.l10n.t('Compare Renders'), placeHolder: vscode.l10n.t('What differs between the two renders'), matchOnDetail: true }))).sides();
  }

  async function pickRequest(text: string, title: string): Promise<number> {
    const all = await worker.ask({ type: 'requests', text });
    if (all.length === 0) throw new Failure(vscode.l10n.t('No request was found: open a JSON or JSONL file with request bodies (messages, input or contents).'));
    if (all.length === 1) return 0;
    const items = all.map(({ name, model, line }, index) => ({ label: name, description: [model, vscode.l10n.t('line {0}', line)].filter((word) => word !== null).join(' · '), index }));
    return (await answered(dialogs.pick(items, { title, placeHolder: vscode.l10n.t('Request'), matchOnDescription: true }))).index;
  }

  async function fromFile(): Promise<{ text: string; index: number }> {
    const uri = await answered(dialogs.open({ title: vscode.l10n.t('Compare Requests (2/2)'), filters: { [vscode.l10n.t('Requests')]: ['json', 'jsonl'] } }));
    const text = (await vscode.workspace.openTextDocument(uri)).getText();
    return { text, index: await pickRequest(text, vscode.l10n.t('Compare Requests (2/2)')) };
  }

  return {
    async renders(document) {
      const source = sourceOf(document);
      const one = await pickPrompt(await worker.ask({ type: 'renderable', source, judge: parts.judge() }));
      const [a, b] = await pickSides(one);
      const compared = await worker.ask({ type: 'renders', source, index: one.index, a, b, judge: parts.judge() });
      const name = path.posix.basename(document.uri.path);
      await present(name, [`first render of ${name}.txt`, `second render of ${name}.txt`], compared);
      return compared;
    },
    async requests(document) {
      const text = document.getText();
      const all = await worker.ask({ type: 'requests', text });
      const first = await pickRequest(text, vscode.l10n.t('Compare Requests (1/2)'));
      let other = { text, index: 0 };
      if (all.length > 1) {
        const rest = all.map(({ name, model, line }, index) => ({ label: name, description: [model, vscode.l10n.t('line {0}', line)].filter((word) => word !== null).join(' · '), index })).filter(({ index }) => index !== first);
        const another = { label: vscode.l10n.t('$(folder-opened) A request of another file…'), description: '', index: -1 };
        const chosen = await answered(dialogs.pick([...rest, another], { title: vscode.l10n.t('Compare Requests (2/2): {0} with …', all[first]?.name ?? ''), placeHolder: vscode.l10n.t('The request that came after it') }));
        other = chosen.index >= 0 ? { text, index: chosen.index } : await fromFile();
      } else other = await fromFile();
      const compared = await worker.ask({ type: 'compareRequests', a: { text, index: first }, b: other, judge: parts.judge() });
      await present(path.posix.basename(document.uri.path), ['first request.txt', 'second request.txt'], compared);
      return compared;
    },
    async sinceLastCommit(document) {
      if (!vscode.workspace.isTrusted) throw new Failure(vscode.l10n.t('This folder is in Restricted Mode, so git is not run in it. Trust the folder first.'), 'manageTrust');
      if (document.uri.scheme !== 'file') throw new Failure(vscode.l10n.t('Only a file on disk can be compared with its last commit.'));
      const before = await committed(document.uri.fsPath);
      const source = sourceOf(document);
      const cost = await worker.ask({ type: 'editCost', before: { ...source, text: before }, after: source, judge: parts.judge() });
      const name = path.posix.basename(document.uri.path);
      const { words } = cost;
      await show(virtual(name, before), document.uri, `${name} ${vscode.l10n.t('since HEAD')}: ${words}`, cost.line === null ? null : { line: cost.line, column: 1 });
      void dialogs.choose('info', `${name}: ${words}.`);
      return cost;
    },
    dispose: () => void registration.dispose(),
  };
}

const run = promisify(execFile);

/** The file as last committed. Plumbing only, so that nothing a repository configures is run. */
async function committed(file: string): Promise<string> {
  const cwd = path.dirname(file);
  try {
    const { stdout }: { stdout: string } = await run('git', ['-c', 'core.fsmonitor=false', 'cat-file', 'blob', `HEAD:./${path.basename(file)}`], { cwd, timeout: 15_000, maxBuffer: 20_000_000, encoding: 'utf8' });
    return stdout;
  } catch (error) {
    const { code, stderr } = error as { code?: unknown; stderr?: string };
    if (code === 'ENOENT') throw new Failure(vscode.l10n.t('git was not found. Install it, or put it on the PATH, to compare with the last commit.'));
    if (/not a git repository/i.test(stderr ?? '')) throw new Failure(vscode.l10n.t('{0} is in no git repository, so there is no last commit to compare with.', path.basename(file)));
    throw new Failure(vscode.l10n.t('The last commit does not hold {0}: it is new, or was renamed.', path.basename(file)));
  }
}
