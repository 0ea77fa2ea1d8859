import * as vscode from 'vscode';
import type { PrefixResult, PrefixRow } from '../probe/index';
import type { Report } from '../report/report';
import type { PrefixProof } from './prefixProofs';

/** The lens of a proof, from its report; null when the report is none or nothing was told. */
export function proofOf(report: Report, textHash: string): PrefixProof | null {
  if (report.scenario?.name !== 'prefix') return null;
  const result = report.scenario.result as PrefixResult | null;
  const changed = result?.rows.find(({ kind }) => kind === 'changed');
  if (!result || !changed?.served) return null;
  return { reportId: report.id, at: report.createdAt, textHash, lens: lensOf(changed, report.endpoint.name), tooltip: [result.verdict, ...result.sentences].join('\n') };
}

// As the other numbers of the lens.
const count = (n: number): string => Math.round(n).toLocaleString('en-US');

function lensOf({ served, predicted, promptTokens }: PrefixRow, endpoint: string): string {
  const of = promptTokens === null ? '' : vscode.l10n.t(' of {0}', count(promptTokens));
  const guess = predicted === null ? '' : predicted.exact ? vscode.l10n.t(', predicted {0}', count(predicted.tokens)) : vscode.l10n.t(', predicted about {0}', count(predicted.tokens));
  return vscode.l10n.t('Served: {0}{1} tokens on {2}{3}', count(served?.p50 ?? 0), of, endpoint, guess);
}
