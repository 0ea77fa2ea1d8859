import * as vscode from 'vscode';
import { originOf } from '../probe/endpoint';
import type { EndpointCounts, TokenDesk } from '../probe/index';
import type { Consent } from './consent';
import type { Endpoints } from './endpoints';
import type { Log } from './log';
import type { JudgeBy, SourceText } from './prefixMessages';
import type { PrefixWorker } from './prefixWorker';
import type { Probing } from './probing';
import { builtInName, builtInPrompt } from './promptText';
import type { Settings } from './settings';

/** What this needs from the rest. */
export interface CountingParts {
  readonly worker: PrefixWorker;
  readonly settings: () => Settings;
  readonly endpoints: Endpoints;
  readonly consent: Consent;
  readonly probing: Probing;
  readonly log: Log;
}

/** Exact counts change which branch of a condition is the longest, and so which texts are counted; that settles at once. */
const mostRounds = 3;

/**
 * Asks the selected endpoint to count a prompt file; null when it is not to be asked or does not answer. Only from a trusted folder, only
 * an endpoint that may be sent to without asking the user, and only as far as `firstToken.prefix.tokens` allows.
 */
export function createPrefixCounting({ worker, settings, endpoints, consent, probing, log }: CountingParts): (source: SourceText, judge: JudgeBy, signal: AbortSignal) => Promise<EndpointCounts | null> {
  let desk: TokenDesk | null = null;
  return async (source, judge, signal) => {
    const choice = endpoints.selected();
    if (!vscode.workspace.isTrusted || choice === null || judge.tokens === 'local' || !consent.given(originOf(choice.endpoint.url), choice.endpoint.price !== null)) return null;
    let counts: EndpointCounts | null = null;
    for (let round = 0; round < mostRounds && !signal.aborted; round += 1) {
      const known: EndpointCounts['tokens'] = counts?.tokens ?? [];
      const wanted = await worker.ask({ type: 'texts', source, judge, known });
      if (wanted === null) return null;
      if (counts !== null && wanted.texts.length === 0) return counts;
      const [{ reachEndpoint }, { createTokenDesk, endpointTokens }] = await Promise.all([import('../probe/index'), import('../probe/tokenCounting')]);
      desk ??= createTokenDesk({ open: async (access, aborted) => endpointTokens(await reachEndpoint(access, aborted)), now: () => performance.now(), failed: (name, why) => log.info(`${name} did not count tokens, so they are estimated: ${why}`) });
      const access = await probing.job(choice, builtInPrompt, builtInName, settings().probe);
      const more: EndpointCounts | null = await desk.count(access, wanted, signal);
      if (more === null) return null;
      counts = { ...more, tokens: [...known, ...more.tokens] };
    }
    return null;
  };
}
