import * as vscode from 'vscode';
import { isLoopback, originOf } from '../probe/endpoint';
import type { EndpointMemory } from '../probe/memory';
import type { HandOverTool } from '../report/exchange/handOver';
import { answered, type Dialogs } from './dialogs';
import type { Endpoints } from './endpoints';
import { Failure } from './failure';
import { readDocument } from './probing';
import { builtInPrompt } from './promptText';
import type { Engine } from './runs';
import type { Secrets } from './secrets';
import type { Settings } from './settings';

/** What handing over needs from the rest. */
export interface HandOverParts {
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly secrets: Secrets;
  readonly memory: EndpointMemory;
  readonly dialogs: Dialogs;
  readonly loadEngine: () => Promise<Engine>;
}

/** The plan of a probe of the open prompt (or of the built-in one) for another tool, in an untitled document. `argument` names the tool; else the user chooses. */
export async function handOverToTool(parts: HandOverParts, argument: unknown): Promise<vscode.TextDocument> {
  const choice = parts.endpoints.required();
  const { documentedOptions, handOver, handOverTools } = await import('../report/exchange/index');
  const tool = handOverTools.find((one) => one === argument) ?? (await chooseTool(parts.dialogs, handOverTools.map((one) => ({ tool: one, label: documentedOptions[one].name, detail: documentedOptions[one].asOf }))));
  const document = vscode.window.activeTextEditor?.document;
  const prompt = document && document.getText().trim() !== '' ? (await readDocument(document)).prompt : builtInPrompt;
  const engine = await parts.loadEngine();
  const { endpoint } = choice;
  const detected = parts.memory.recall(endpoint.url).detection;
  const { probe, slo } = parts.settings();
  const hasKey = (await parts.secrets.get(originOf(endpoint.url))) !== null;
  const { countedTokens, o200kCounter } = await import('../prompt/tokenizer');
  const plan = engine.handOverPlan({
    dialect: engine.dialects[endpoint.api === 'auto' ? (detected?.api ?? 'openai-chat') : endpoint.api],
    endpoint: { ...endpoint, model: endpoint.model ?? detected?.models[0] ?? null },
    keyVariable: hasKey || !isLoopback(endpoint) ? 'FIRST_TOKEN_API_KEY' : null,
    prompt,
    promptTokens: countedTokens(prompt, o200kCounter(false)),
    counted: true,
    settings: probe,
    slo,
  });
  let made;
  try {
    made = handOver(plan, tool);
  } catch (error) {
    if (error instanceof Error && error.name === 'HandOverError') throw new Failure(error.message);
    throw error;
  }
  const opened = await vscode.workspace.openTextDocument({ content: made.text, language: made.language === 'sh' ? 'shellscript' : 'javascript' });
  await vscode.window.showTextDocument(opened);
  const copy = vscode.l10n.t('Copy');
  const hint = plan.keyVariable === null ? vscode.l10n.t('This is the plan for {0}. Nothing was sent.', documentedOptions[tool].name) : vscode.l10n.t('This is the plan for {0}. Nothing was sent; put the key into FIRST_TOKEN_API_KEY before you run it.', documentedOptions[tool].name);
  void parts.dialogs.choose('info', hint, copy).then((answer) => (answer === copy ? vscode.env.clipboard.writeText(made.text) : undefined));
  return opened;
}

async function chooseTool(dialogs: Dialogs, items: readonly (vscode.QuickPickItem & { readonly tool: HandOverTool })[]): Promise<HandOverTool> {
  return (await answered(dialogs.pick([...items], { title: vscode.l10n.t('Hand Over'), placeHolder: vscode.l10n.t('Tool that will carry out the plan') }))).tool;
}
