import * as vscode from 'vscode';
import type { Dialogs } from './dialogs';
import { classify, type FailureAction } from './failure';
import type { Log } from './log';
import { commandIds, type CommandId } from './manifest';

/** What each command does. The record is complete or it does not compile. */
export type CommandHandlers = { readonly [Name in keyof typeof commandIds]: (...args: readonly unknown[]) => unknown };

/** Registers all commands behind one wrapper that tells cancellation, known failure and bug apart. */
export function registerCommands(handlers: CommandHandlers, parts: { readonly log: Log; readonly dialogs: Dialogs }): vscode.Disposable {
  const run = async (id: CommandId, handler: (...args: readonly unknown[]) => unknown, args: readonly unknown[]): Promise<unknown> => {
    try {
      return await handler(...args);
    } catch (error) {
      tell(id, error, parts);
      return undefined;
    }
  };
  const names = Object.keys(commandIds) as (keyof typeof commandIds)[];
  return vscode.Disposable.from(...names.map((name) => vscode.commands.registerCommand(commandIds[name], (...args: unknown[]) => run(commandIds[name], handlers[name], args))));
}

/** Shows what went wrong, once, in the words that fit its kind. Nothing for a cancellation. */
export function tell(id: string, error: unknown, { log, dialogs }: { readonly log: Log; readonly dialogs: Dialogs }): void {
  const kind = classify(error);
  if (kind === 'cancelled') return;
  const showLog = vscode.l10n.t('Show Log');
  if (kind === 'known') {
    const { message } = error as Error;
    log.warn(`${id}: ${message}`);
    const actions = actionsFor(error as Error & { readonly action?: FailureAction | null; readonly setting?: string | null });
    void dialogs.choose('warning', message, ...actions.map(({ title }) => title)).then((answer) => actions.find(({ title }) => title === answer)?.run());
    return;
  }
  log.error(`${id}: ${error instanceof Error ? (error.stack ?? error.message) : String(error)}`);
  const message = vscode.l10n.t('First Token failed in {0}. The log says where; please report it.', id);
  void dialogs.choose('error', message, showLog).then((answer) => (answer === showLog ? log.show() : undefined));
}

interface Action {
  readonly title: string;
  run(): unknown;
}

function actionsFor({ action, setting }: { readonly action?: FailureAction | null; readonly setting?: string | null }): Action[] {
  const command = (title: string, id: string, ...args: unknown[]): Action => ({ title, run: () => vscode.commands.executeCommand(id, ...args) });
  const settings = command(vscode.l10n.t('Open Settings'), 'workbench.action.openSettings', setting ?? 'firstToken');
  if (setting) return [settings];
  switch (action) {
    case 'openSettings':
      return [settings];
    case 'showLog':
      return [command(vscode.l10n.t('Show Log'), commandIds.showLog)];
    case 'addEndpoint':
      return [command(vscode.l10n.t('Add Endpoint'), commandIds.addEndpoint), command(vscode.l10n.t('Try the Demo'), commandIds.tryDemo)];
    case 'setKey':
      return [command(vscode.l10n.t('Set API Key'), commandIds.setKey)];
    case 'manageTrust':
      return [command(vscode.l10n.t('Manage Trust'), 'workbench.trust.manage')];
    default:
      return [];
  }
}
