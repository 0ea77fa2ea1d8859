import * as vscode from 'vscode';
import type { Effort, Experiment, ExperimentName } from '../probe/index';
import { count } from '../report/format';
import type { Report } from '../report/report';
import { answered, type Dialogs } from './dialogs';
import type { ChoosableEndpoint, Endpoints } from './endpoints';
import type { Probing } from './probing';
import type { Engine } from './runs';
import type { Settings } from './settings';

/** What running an experiment needs from the rest. */
export interface ExperimentParts {
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly dialogs: Dialogs;
  readonly probing: Probing;
  readonly loadEngine: () => Promise<Engine>;
}

/** Runs an experiment on the selected endpoint with the prompt in front, or the built-in one. The user chooses how much it may send; that is its budget. */
export async function runExperiment(parts: ExperimentParts, name: ExperimentName, isPrompt: (document: vscode.TextDocument) => boolean): Promise<Report> {
  const choice = parts.endpoints.required();
  const { experiments, settingsFor } = await parts.loadEngine();
  const effort = await chooseEffort(experiments[name], choice, parts.dialogs);
  const document = vscode.window.activeTextEditor?.document;
  const prompt = name !== 'encoder' && document && isPrompt(document) ? document : null;
  const probe = settingsFor(effort, parts.settings().probe);
  return await parts.probing.experiment(prompt, { requests: effort.requests, probe, scenario: (_engine, job) => Promise.resolve(effort.make(job)) });
}

/** The budget stands in every line that can be chosen: choosing it is agreeing to it. */
async function chooseEffort({ title, question, efforts }: Experiment, { endpoint }: ChoosableEndpoint, dialogs: Dialogs): Promise<Effort> {
  const items = efforts.map((effort) => {
    const tokens = effort.requests * effort.maxTokens;
    const out = endpoint.price?.outputPerMillion;
    const price = out ? vscode.l10n.t(', at most {0} {1}', ((out * tokens) / 1e6).toPrecision(2), endpoint.price.currency) : '';
    return { label: effort.label, description: vscode.l10n.t('at most {0} requests, {1} output tokens{2}', count(effort.requests), count(tokens), price), detail: effort.detail, effort };
  });
  return (await answered(dialogs.pick(items, { title: `${title}: ${question}`, placeHolder: vscode.l10n.t('How much may be sent to {0}?', endpoint.name) }))).effort;
}
