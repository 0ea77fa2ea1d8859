import * as vscode from 'vscode';
import type { Verdict } from '../report/report';
import type { PromptResult } from './promptResults';

/** A result in one line: `212 ms · 31 tok/s`, or with the names and the p99. */
export function lensNumbers(result: Pick<PromptResult, 'ttft' | 'tpot' | 'tokensPerSecond'>, length: 'short' | 'long'): string {
  const { ttft, tokensPerSecond } = result;
  const first = ttft && (length === 'short' ? words.milliseconds(ttft.p50) : vscode.l10n.t('TTFT {0} (p99 {1})', words.milliseconds(ttft.p50), words.milliseconds(ttft.p99)));
  return [first, tokensPerSecond === null ? null : words.tokensPerSecond(tokensPerSecond)].filter(Boolean).join(' · ');
}

/** The verdict as the lens says it; empty when nothing was judged. */
export function verdictWords(verdict: Verdict | null): string {
  switch (verdict) {
    case 'met':
      return vscode.l10n.t('meets SLO');
    case 'missed':
      return vscode.l10n.t('misses SLO');
    case 'unclear':
      return vscode.l10n.t('SLO unclear: too few requests');
    case null:
      return '';
  }
}

/** The time of day for today, else the date. */
export function since(iso: string): string {
  const then = new Date(iso);
  const today = new Date().toDateString() === then.toDateString();
  return today ? then.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : then.toLocaleDateString();
}

/** Numbers with units. */
export const words = {
  milliseconds: (ms: number) => `${ms < 10 ? ms.toPrecision(2) : Math.round(ms)} ms`,
  tokensPerSecond: (rate: number) => `${rate < 10 ? rate.toPrecision(2) : Math.round(rate)} tok/s`,
};
