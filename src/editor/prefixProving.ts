/** Starting a proof. A bundle of its own, loaded with the first one. */
import * as vscode from 'vscode';
import type { Scenario } from '../probe/index';
import type { RuleArithmetic } from '../prompt/proofPair';
import type { Report } from '../report/report';
import { answered, type Dialogs } from './dialogs';
import { Cancelled } from './failure';
import type { JudgeBy, ProofPrompts, SourceText } from './prefixMessages';
import type { PrefixWorker } from './prefixWorker';
import type { Probing } from './probing';

/** How much a proof sends. */
interface ProofShape {
  readonly pairs: number;
  /** How often one prefix is sent to see which attempts hit; 0 = not. */
  readonly affinity: number;
  /** Seconds to wait before a repeat. */
  readonly expiry: readonly number[];
}

/** Enough pairs that the median has an interval, few enough to wait for. */
const plainProof: ProofShape = { pairs: 6, affinity: 0, expiry: [] };

/** Warm-up, three requests a pair, the repeats, and two for each wait. */
const requestsOf = ({ pairs, affinity, expiry }: ProofShape): number => 1 + 3 * pairs + affinity + 2 * expiry.length;

/** Asks what else to find out: whether every request of one prefix hits, or how long an entry lasts. Choosing a line is agreeing to what it sends. */
export async function chooseProof(dialogs: Dialogs): Promise<ProofShape> {
  const short: Pick<ProofShape, 'pairs'> = { pairs: 1 };
  const affinity = { ...short, affinity: 10, expiry: [] };
  const waits = { ...short, affinity: 0, expiry: [60, 300, 600] };
  const requests = (shape: ProofShape): string => vscode.l10n.t('{0} requests', requestsOf(shape));
  const items = [
    { label: vscode.l10n.t('Affinity'), description: requests(affinity), detail: vscode.l10n.t('One prefix ten times: which attempts hit? A router without affinity sends some to a replica that has not seen it.'), shape: affinity as ProofShape | null },
    { label: vscode.l10n.t('Expiry after 1, 5 and 10 minutes'), description: vscode.l10n.t('{0}, about 10 minutes', requests(waits)), detail: vscode.l10n.t('A prefix for each wait, sent once before and once after it: is it still cached?'), shape: waits },
    { label: vscode.l10n.t('Expiry after Other Waits…'), description: '', detail: vscode.l10n.t('Seconds of your own, up to a day.'), shape: null },
  ];
  const { shape } = await answered(dialogs.pick(items, { title: vscode.l10n.t('Prove Affinity or Expiry of the Prefix Cache'), placeHolder: vscode.l10n.t('What to find out; a run can be stopped and keeps what it measured') }));
  if (shape !== null) return shape;
  const typed = await answered(dialogs.input({ title: vscode.l10n.t('Expiry after Other Waits'), prompt: vscode.l10n.t('Seconds to wait before each repeat, separated by commas'), value: '30, 120, 300', validateInput: (value) => (secondsIn(value) === null ? vscode.l10n.t('Type seconds from 1 to 86400, separated by commas, as in 30, 120, 300.') : null) }));
  const expiry = secondsIn(typed);
  if (expiry === null) throw new Cancelled();
  return { ...short, affinity: 0, expiry };
}

/** Up to twenty waits, ascending; null when one is no number of seconds up to a day. */
function secondsIn(text: string): readonly number[] | null {
  const list = text.split(',').map((part) => (part.trim() === '' ? Number.NaN : Number(part)));
  return list.length > 20 || list.some((seconds) => !(seconds >= 1 && seconds <= 86_400)) ? null : [...new Set(list)].sort((a, b) => a - b);
}

/** Proves what the endpoint serves of a document: rendered in the analysis thread, sent like any probe. */
export async function startProof(document: vscode.TextDocument, parts: { readonly worker: PrefixWorker; readonly judge: () => JudgeBy; readonly probing: Probing; readonly source: SourceText }, shape: ProofShape = plainProof): Promise<Report> {
  const { worker, probing, source } = parts;
  return await probing.experiment(document, {
    requests: requestsOf(shape),
    scenario: async (engine, job, signal): Promise<Scenario<unknown>> => {
      engine.checkProof(shape, job.settings);
      const planned = await engine.prepareProof(
        job,
        {
          pairs: shape.pairs,
          // Judged again by the endpoint as it is found now: the first request may be the one that tells what server it is.
          subject: async (target) => {
            const judge: JudgeBy = { ...parts.judge(), target: { ...parts.judge().target, ...target } };
            const prompts = await worker.ask({ type: 'proof', source, judge, clock: Date.now() });
            return { first: prompts.first, second: prompts.second, change: prompts.change, captured: prompts.captured, rule: arithmetic(prompts, judge, worker) };
          },
        },
        signal,
      );
      return engine.prefixProof({ planned, affinity: shape.affinity, expiry: shape.expiry, where: 'editor' });
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
