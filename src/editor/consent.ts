import * as vscode from 'vscode';
import { isLoopbackHost } from '../probe/network';
import { Cancelled } from './failure';
import type { Dialogs } from './dialogs';

/** What a first run would send. */
export interface Cost {
  readonly endpointName: string;
  readonly origin: string;
  readonly requests: number;
  /** Most output tokens of one request, or null for no limit. */
  readonly maxTokens: number | null;
  /** Most that it can cost in words, or null when no price is known. */
  readonly price: string | null;
  /** The endpoint has a price, so it costs money even on loopback. */
  readonly paid: boolean;
}

/** Asks once before the first request to an origin that is paid or not on this machine. */
export interface Consent {
  /** Returns when it is allowed; throws Cancelled when the user says no. */
  ask(cost: Cost): Promise<void>;
  /** Whether that was allowed already, or needs no leave. */
  given(origin: string, paid: boolean): boolean;
}

const memoryKey = 'firstToken.confirmedOrigins';

/** Answers are remembered for all workspaces. */
export function createConsent(memory: vscode.Memento, dialogs: Dialogs): Consent {
  const confirmedOrigins = () => memory.get<string[]>(memoryKey, []);
  const given = (origin: string, paid: boolean) => (!paid && isLoopbackHost(new URL(origin).hostname)) || confirmedOrigins().includes(origin);
  return {
    given,
    async ask(cost) {
      if (given(cost.origin, cost.paid)) return;
      const tokens = cost.maxTokens === null ? vscode.l10n.t('with no limit on output tokens') : vscode.l10n.t('up to {0} output tokens each', cost.maxTokens);
      const price = cost.price ?? vscode.l10n.t('No price is set for this endpoint (firstToken.endpoints › price), so the cost is not known.');
      const allowed = await dialogs.confirm({
        message: vscode.l10n.t('Send {0} requests to {1}?', cost.requests, cost.origin),
        detail: `${vscode.l10n.t('{0}: {1} requests, {2}.', cost.endpointName, cost.requests, tokens)}\n${price}\n\n${vscode.l10n.t('You are asked once for each address.')}`,
        action: vscode.l10n.t('Send'),
      });
      if (!allowed) throw new Cancelled();
      await memory.update(memoryKey, [...confirmedOrigins(), cost.origin]);
    },
  };
}
