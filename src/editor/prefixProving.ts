import * as vscode from 'vscode';
import type { PrefixResult, PrefixRow, Scenario } from '../probe/index';
import type { RuleArithmetic } from '../prompt/proofPair';
import { count } from '../report/format';
import type { Report } from '../report/report';
import { sourceOf } from './prefixDocuments';
import type { JudgeBy, ProofPrompts } from './prefixMessages';
import type { PrefixProof } from './prefixProofs';
import type { PrefixWorker } from './prefixWorker';
import type { Probing } from './probing';

/** Pairs of a proof: enough to see a difference, few enough to wait for. */
export const proofPairs = 6;

/** Proves what the endpoint serves of a document: rendered in the analysis thread, sent like any probe. */
export async function startProof(document: vscode.TextDocument, parts: { readonly worker: PrefixWorker; readonly judge: () => JudgeBy; readonly probing: Probing }): Promise<Report> {
  const { worker, probing } = parts;
  const source = sourceOf(document);
  return await probing.experiment(document, {
    requests: 3 * proofPairs + 1,
    scenario: async (engine, job, signal): Promise<Scenario<unknown>> => {
      const planned = await engine.prepareProof(
        job,
        {
          pairs: proofPairs,
          // Judged again by the endpoint as it is found now: the first request may be the one that tells what server it is.
          subject: async (target) => {
            const judge: JudgeBy = { ...parts.judge(), target: { ...parts.judge().target, ...target } };
            const prompts = await worker.ask({ type: 'proof', source, judge, clock: Date.now() });
            return { first: prompts.first, second: prompts.second, change: prompts.change, captured: prompts.captured, rule: arithmetic(prompts, judge, worker) };
          },
        },
        signal,
      );
      return engine.prefixProof({ planned, affinity: 0, expiry: [] });
    },
  });
}

type Body = Readonly<Record<string, unknown>>;

/** The rule's arithmetic, asked in the thread that holds the rules and the tokenizer. */
function arithmetic({ rule, block, tell, byTokens }: ProofPrompts, judge: JudgeBy, worker: PrefixWorker) {
  return {
    id: rule.id,
    name: rule.name,
    asOf: rule.asOf,
    block,
    tell,
    ofTokens: byTokens ? (total: number, common: number) => worker.ask({ type: 'predict', judge, of: { total, common } }) : null,
    ofBodies: (first: Body, second: Body, ends?: Parameters<RuleArithmetic['ofBodies']>[2]) => worker.ask({ type: 'predict', judge, of: { first, second, ...(ends ? { ends } : {}) } }),
  };
}

/** The lens of a proof, from its report; null when the report is none or nothing was told. */
export function proofOf(report: Report, textHash: string): PrefixProof | null {
  if (report.scenario?.name !== 'prefix') return null;
  const result = report.scenario.result as PrefixResult | null;
  const changed = result?.rows.find(({ kind }) => kind === 'changed');
  if (!result || !changed?.served) return null;
  return { reportId: report.id, at: report.createdAt, textHash, lens: lensOf(changed, report.endpoint.name), tooltip: [result.verdict, ...result.sentences].join('\n') };
}

function lensOf({ served, predicted, promptTokens }: PrefixRow, endpoint: string): string {
  const of = promptTokens === null ? '' : vscode.l10n.t(' of {0}', count(promptTokens));
  const guess = predicted === null ? '' : vscode.l10n.t(', predicted {0}', count(predicted.tokens));
  return vscode.l10n.t('Served: {0}{1} tokens on {2}{3}', count(served?.p50 ?? 0), of, endpoint, guess);
}
