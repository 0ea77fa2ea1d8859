/** A proof of the prefix cache as its report shows it: its own verdict in the place of one on the SLO. Read defensively, since a report may be of another version. */
import { completed, ttft, type Sample } from './sample';
import { summarise } from './statistics';
import type { PlanSummary, Report, Summary } from './report';

/** Kinds of request in a proof, in the order they are sent, and what they are called. */
export const proofKinds = { cold: 'cold', warm: 'the same again', changed: 'a later request' } as const;

/** A kind of request of a proof. */
export type ProofKind = keyof typeof proofKinds;

/** Whether a report is a proof: of tokens, so that no SLO is asked of its answers of a few tokens. */
export function isProof({ scenario }: Pick<PlanSummary, 'scenario'>): boolean {
  return scenario === 'prefix';
}

/** Served tokens of one kind of request, at the median. */
export interface Served {
  readonly kind: ProofKind;
  readonly tokens: number;
  readonly of: number | null;
}

/** What a proof says. `state`: served against predicted over all kinds; `failed` where no request was answered. */
export interface Proof {
  readonly verdict: string | null;
  readonly state: 'yes' | 'less' | 'more' | 'unknown' | 'failed';
  readonly served: readonly Served[];
}

type Fields = Readonly<Record<string, unknown>>;
const fieldsOf = (value: unknown): Fields => (typeof value === 'object' && value !== null ? (value as Fields) : {});

/** The proof of a report; null when it is none. */
export function proofOf(report: Pick<Report, 'plan' | 'scenario'>): Proof | null {
  if (!isProof(report.plan)) return null;
  const { verdict, rows } = fieldsOf(report.scenario?.result);
  const all = Array.isArray(rows) ? rows.map(fieldsOf) : [];
  const states = all.map(({ state }) => state);
  const state = (['less', 'more', 'yes'] as const).find((one) => states.includes(one)) ?? 'unknown';
  const failed = all.length > 0 && all.every(({ n }) => n === 0) && typeof fieldsOf(report.scenario?.result)['failure'] === 'string';
  return { verdict: typeof verdict === 'string' ? verdict : null, state: failed ? 'failed' : state, served: all.flatMap(servedOf) };
}

function servedOf({ kind, served, promptTokens }: Fields): Served[] {
  const tokens = fieldsOf(served)['p50'];
  if (typeof tokens !== 'number' || typeof kind !== 'string' || !(kind in proofKinds)) return [];
  return [{ kind: kind as ProofKind, tokens, of: typeof promptTokens === 'number' ? promptTokens : null }];
}

/** TTFT of the answers of one kind of request; the values in the order they came. */
export function proofWaits(samples: readonly Sample[], kind: ProofKind): number[] {
  return samples.flatMap((s) => (s.role === 'measured' && s.labels['kind'] === kind && completed(s) ? (ttft(s) ?? []) : []));
}

/** TTFT of each kind of request that was answered: cold and warm are never one distribution. */
export function proofTtft(samples: readonly Sample[]): { readonly kind: ProofKind; readonly summary: Summary }[] {
  return (Object.keys(proofKinds) as ProofKind[]).flatMap((kind) => {
    const summary = summarise(proofWaits(samples, kind));
    return summary === null ? [] : [{ kind, summary }];
  });
}
