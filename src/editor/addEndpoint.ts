import * as vscode from 'vscode';
import type { Detection } from '../probe/detect';
import { apis, endpointFromUrl, originOf, urlProblem, withScheme, type Endpoint } from '../probe/endpoint';
import { isLoopbackHost } from '../probe/network';
import { answered, type Dialogs } from './dialogs';
import type { Endpoints } from './endpoints';
import { Cancelled } from './failure';
import { commandIds } from './manifest';
import type { Secrets } from './secrets';
import { addUserEndpoint } from './settings';

/** What the guide needs. `test` sends one short request and tells in words how it went; it throws what a probe throws. */
export interface AddEndpointParts {
  readonly dialogs: Dialogs;
  readonly secrets: Secrets;
  readonly endpoints: Endpoints;
  readonly test: (endpoint: Endpoint) => Promise<{ readonly ok: boolean; readonly words: string }>;
  readonly detected: (url: string, detection: Detection) => void;
}

/** Without the key, which is asked for only where one is needed. */
const steps = 3;

/** Add Endpoint: URL, key where one is needed, model from the server's list, name; then a test request. Writes user settings. */
export async function addEndpoint(parts: AddEndpointParts): Promise<Endpoint> {
  const title = vscode.l10n.t('Add Endpoint');
  const typed = await answered(parts.dialogs.input({ title, step: 1, totalSteps: steps, prompt: vscode.l10n.t('URL of the endpoint: an origin, …/v1 or the full path'), placeHolder: 'http://127.0.0.1:8000/v1', validateInput: aboutUrl }));
  const url = withScheme(typed);
  let found = await look(url, await parts.secrets.get(originOf(url)));
  const asksKey = found.needsKey || needsKeyByPlace(url, found);
  const last = asksKey ? steps + 1 : steps;
  if (asksKey) {
    const key = await answered(parts.dialogs.input({ title, step: 2, totalSteps: last, password: true, prompt: vscode.l10n.t('API key for {0}, kept in the secret storage; leave empty for none', originOf(url)) }));
    if (key.trim() !== '') {
      await parts.secrets.set(originOf(url), key.trim());
      found = await look(url, key.trim());
    }
  }
  parts.detected(url, found);
  const model = await chooseModel(parts.dialogs, title, found, last);
  const name = await askName(parts, title, url, model, last);
  const endpoint = endpointFromUrl(url, { name, model });
  await addUserEndpoint({ name, url, ...(model === null ? {} : { model }) });
  await parts.endpoints.select(name);
  await offerTest(parts, endpoint, found);
  return endpoint;
}

/** What is wrong with a URL while it is typed, or how one without a scheme will be read. */
function aboutUrl(value: string): string | vscode.InputBoxValidationMessage | null {
  if (value.trim() === '') return vscode.l10n.t('Type a URL.');
  const url = withScheme(value);
  const problem = urlProblem(url);
  return problem !== null || url === value.trim() ? problem : { message: vscode.l10n.t('Enter takes it as {0}', url), severity: vscode.InputBoxValidationSeverity.Info };
}

/** Asks the server what it is. The global `fetch` follows the editor's proxy and certificates by itself. */
async function look(url: string, key: string | null): Promise<Detection> {
  const { detect } = await import('../probe/index');
  const headers: Record<string, string> = key === null ? {} : { authorization: `Bearer ${key}`, 'x-api-key': key };
  return await vscode.window.withProgress({ location: vscode.ProgressLocation.Notification, title: vscode.l10n.t('Looking at {0} …', originOf(url)) }, () =>
    detect(url, async (address) => {
      const response = await fetch(address, { headers, signal: AbortSignal.timeout(5000), redirect: 'manual' });
      return { status: response.status, headers: [...response.headers], text: (await response.text()).slice(0, 2_000_000) };
    }),
  );
}

/** A hosted service that answered without a list of models most likely wants a key. */
function needsKeyByPlace(url: string, found: Detection): boolean {
  const { hostname, protocol } = new URL(url);
  return protocol === 'https:' && !isLoopbackHost(hostname) && found.models.length === 0;
}

async function chooseModel(dialogs: Dialogs, title: string, found: Detection, last: number): Promise<string | null> {
  const own = { label: vscode.l10n.t('$(edit) Type a model name…'), model: undefined };
  const none = { label: vscode.l10n.t('$(circle-slash) No model'), description: vscode.l10n.t('the server serves one model only'), model: null };
  const told = found.unreachable === null ? found.evidence.join(' ') : vscode.l10n.t('Nothing answered: {0}', found.unreachable);
  const items = [...found.models.map((model) => ({ label: model, model })), { label: '', kind: vscode.QuickPickItemKind.Separator, model: null }, own, none];
  const choice = await answered(dialogs.pick(items, { title: `${title} (${last - 1}/${last})`, placeHolder: vscode.l10n.t('Model. {0}', told), ignoreFocusOut: true }));
  if (choice.model !== undefined) return choice.model;
  return (await answered(dialogs.input({ title, step: last - 1, totalSteps: last, prompt: vscode.l10n.t('Model, as the server names it') }))).trim() || null;
}

async function askName(parts: AddEndpointParts, title: string, url: string, model: string | null, last: number): Promise<string> {
  const taken = new Set(parts.endpoints.all().map(({ endpoint }) => endpoint.name));
  const suggestion = [new URL(url.replace(/^unix:.*/, 'http://local')).hostname, model?.split('/').at(-1)].filter(Boolean).join(' ');
  const name = await answered(
    parts.dialogs.input({
      title,
      step: last,
      totalSteps: last,
      value: taken.has(suggestion) ? '' : suggestion,
      prompt: vscode.l10n.t('A name for it'),
      validateInput: (value) => (value.trim() === '' ? vscode.l10n.t('Type a name.') : taken.has(value.trim()) ? vscode.l10n.t('There is an endpoint of that name already.') : null),
    }),
  );
  return name.trim();
}

async function offerTest(parts: AddEndpointParts, endpoint: Endpoint, found: Detection): Promise<void> {
  const test = { label: vscode.l10n.t('$(pulse) Send a test request'), description: vscode.l10n.t('one request, up to 16 tokens') };
  const api = { label: vscode.l10n.t('$(symbol-interface) Choose another API…'), description: vscode.l10n.t('detected: {0}', [...new Set([found.api, found.server, found.version])].filter(Boolean).join(' ')) };
  const done = { label: vscode.l10n.t('$(check) Done') };
  const choice = await parts.dialogs.pick([test, api, done], { title: vscode.l10n.t('{0} is added', endpoint.name), placeHolder: found.evidence.join(' '), ignoreFocusOut: true });
  if (choice === api) {
    const picked = await parts.dialogs.pick(apis.map((label) => ({ label })), { title: vscode.l10n.t('API of {0}', endpoint.name) });
    if (!picked) throw new Cancelled();
    const changed = { ...endpoint, api: picked.label };
    await addUserEndpoint({ name: endpoint.name, url: endpoint.url, ...(endpoint.model === null ? {} : { model: endpoint.model }), api: picked.label });
    return await offerTest(parts, changed, found);
  }
  if (choice !== test) return;
  const { ok, words } = await parts.test(endpoint);
  if (!ok) return void parts.dialogs.choose('warning', words);
  const probe = vscode.l10n.t('Probe Prompt');
  const spot = vscode.l10n.t('Spot-check');
  // The guide has ended; what is chosen later is a command of its own.
  void parts.dialogs.choose('info', words, ...(vscode.window.activeTextEditor ? [probe, spot] : [spot])).then((next) => {
    if (next === probe) return vscode.commands.executeCommand(commandIds.probePrompt);
    return next === spot ? vscode.commands.executeCommand(commandIds.spotCheck, endpoint.name) : undefined;
  });
}
