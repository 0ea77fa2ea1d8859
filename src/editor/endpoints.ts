import * as vscode from 'vscode';
import type { Endpoint } from '../probe/endpoint';
import { Failure } from './failure';
import type { Demo } from './demo';
import type { Settings } from './settings';

/** An endpoint that can be chosen, and where it comes from. */
export interface ChoosableEndpoint {
  readonly endpoint: Endpoint;
  readonly from: 'user' | 'workspace' | 'demo';
}

/** The endpoints of the settings and the demo, and which one is chosen. */
export interface Endpoints {
  all(): readonly ChoosableEndpoint[];
  /** The chosen one; the only one when there is one; null when there is none. */
  selected(): ChoosableEndpoint | null;
  /** The chosen one, or a Failure that says how to get one. */
  required(): ChoosableEndpoint;
  select(name: string): Promise<void>;
  readonly onDidChange: vscode.Event<void>;
  /** To be called when settings or the demo have changed. */
  refresh(): void;
}

const memoryKey = 'firstToken.selectedEndpoint';

/** The choice is remembered in the workspace. */
export function createEndpoints(parts: { readonly settings: () => Settings; readonly demo: Demo; readonly memory: vscode.Memento }): Endpoints {
  const changed = new vscode.EventEmitter<void>();
  const all = (): readonly ChoosableEndpoint[] => {
    const demo = parts.demo.endpoint;
    return [...parts.settings().endpoints, ...(demo ? [{ endpoint: demo, from: 'demo' as const }] : [])];
  };
  const selected = (): ChoosableEndpoint | null => {
    const choices = all();
    const name = parts.memory.get<string>(memoryKey);
    return choices.find(({ endpoint }) => endpoint.name === name) ?? choices[0] ?? null;
  };
  return {
    all,
    selected,
    required() {
      const choice = selected();
      if (choice) return choice;
      const [problem] = parts.settings().problems;
      if (problem) throw new Failure(vscode.l10n.t('No endpoint can be used: {0}', problem.message), 'openSettings');
      throw new Failure(vscode.l10n.t('There is no endpoint yet. Add one, or start the demo endpoint, which needs no key.'), 'addEndpoint');
    },
    async select(name) {
      await parts.memory.update(memoryKey, name);
      changed.fire();
    },
    onDidChange: changed.event,
    refresh: () => changed.fire(),
  };
}
