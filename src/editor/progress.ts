import * as vscode from 'vscode';
import { waitWords } from '../report/format';
import type { ReportPanels } from './reportPanel';
import type { Run, Runs } from './runs';

/** Runs shorter than this never show a notification. */
const patience = 1000;

/** While a run goes on and no panel shows it: a notification with counts, the time left, and cancel. */
export function showProgressWithoutPanel(parts: { readonly runs: Runs; readonly panels: ReportPanels }): { dispose(): void } {
  const { runs, panels } = parts;
  let close: (() => void) | null = null;
  let timer: NodeJS.Timeout | null = null;

  function look(): void {
    const hidden = runs.current !== null && !panels.showsRun;
    if (hidden && !close) timer ??= setTimeout(show, patience);
    if (hidden) return;
    if (timer) clearTimeout(timer);
    timer = null;
    close?.();
    close = null;
  }

  function show(): void {
    timer = null;
    const run = runs.current;
    if (!run || panels.showsRun) return;
    void vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, cancellable: true, title: vscode.l10n.t('Probing {0}', run.request.endpointName) }, (progress, token) => {
      token.onCancellationRequested(() => void runs.stop());
      let reported = 0;
      const following = runs.onChange(({ run: changed }) => {
        if (!changed) return;
        progress.report({ message: progressWords(changed), increment: ((changed.done - reported) / changed.total) * 100 });
        reported = changed.done;
      });
      return new Promise<void>((resolve) => {
        close = () => {
          following.dispose();
          resolve();
        };
      });
    });
  }

  const subscriptions = [runs.onChange(look), panels.onDidChangeVisibility(look)];
  return {
    dispose: () => {
      for (const subscription of subscriptions) subscription.dispose();
      if (timer) clearTimeout(timer);
      close?.();
    },
  };
}

/** `7 of 20, about 12 s left`, or what it waits for. */
export function progressWords({ done, total, eta, wait }: Pick<Run, 'done' | 'total' | 'eta' | 'wait'>): string {
  const counts = vscode.l10n.t('{0} of {1} requests', done, total);
  if (wait !== null) return `${counts}, ${waitWords(wait)}`;
  return eta === null ? counts : vscode.l10n.t('{0}, about {1} s left', counts, Math.max(1, Math.round(eta / 1000)));
}
