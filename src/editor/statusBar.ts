import * as vscode from 'vscode';
import { commandIds } from './manifest';
import { progressWords } from './progress';
import type { Endpoints } from './endpoints';
import { since, type PromptResult, type PromptResults } from './promptResults';
import type { Runs } from './runs';

/** The one status bar item: the endpoint, its last numbers, a spinner while a probe runs. Click selects the endpoint. */
export function createStatusBar(parts: { readonly endpoints: Endpoints; readonly runs: Runs; readonly results: PromptResults }): { update(): void; dispose(): void } {
  const item = vscode.window.createStatusBarItem('firstToken.endpoint', vscode.StatusBarAlignment.Left, 10);
  item.name = vscode.l10n.t('First Token Endpoint');
  item.command = commandIds.selectEndpoint;

  function update(): void {
    const run = parts.runs.current;
    const chosen = parts.endpoints.selected();
    if (run) {
      const left = run.wait === null ? '' : vscode.l10n.t(', waits {0} s', Math.ceil(run.wait.left / 1000));
      item.text = `$(loading~spin) ${run.request.endpointName}: ${run.done}/${run.total}${left}`;
      item.tooltip = vscode.l10n.t('First Token: {0}. Click to choose another endpoint.', progressWords(run));
      item.accessibilityInformation = { label: vscode.l10n.t('First Token probes {0}: {1} of {2} requests done', run.request.endpointName, run.done, run.total) };
      item.show();
      return;
    }
    if (parts.runs.starting) {
      item.text = `$(loading~spin) ${vscode.l10n.t('{0}: connecting', parts.runs.starting.endpointName)}`;
      item.tooltip = vscode.l10n.t('First Token looks at the endpoint before the first request.');
      item.show();
      return;
    }
    if (!chosen) {
      item.hide();
      return;
    }
    const { name, model } = chosen.endpoint;
    const last = parts.results.ofEndpoint(name);
    item.text = `$(pulse) ${last?.status ?? name}`;
    item.tooltip = tooltip(name, model, last);
    item.accessibilityInformation = { label: vscode.l10n.t('First Token endpoint {0}', last?.status ?? name) };
    item.show();
  }

  const subscriptions = [parts.endpoints.onDidChange(update), parts.runs.onChange(update)];
  update();
  return {
    update,
    dispose: () => {
      for (const subscription of subscriptions) subscription.dispose();
      item.dispose();
    },
  };
}

function tooltip(name: string, model: string | null, last: PromptResult | null): vscode.MarkdownString {
  const text = new vscode.MarkdownString('', true);
  text.appendText(model ? `${name} · ${model}` : name);
  if (last) {
    text.appendMarkdown('\n\n');
    text.appendText(`${last.sentence} (${since(last.at)})`);
  }
  text.appendMarkdown('\n\n');
  text.appendText(vscode.l10n.t('Click to choose another endpoint.'));
  return text;
}
