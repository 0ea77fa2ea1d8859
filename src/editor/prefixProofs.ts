import type * as vscode from 'vscode';
import type { Report } from '../report/report';
import { prefillPace, prefillSlope } from '../report/prefill';
import { isProof } from '../report/proof';
import { hashOf, since } from './promptResults';

/** What a proof found, in words for the lens; measured, never mixed with what is predicted. */
export interface PrefixProof {
  readonly reportId: string;
  /** ISO. */
  readonly at: string;
  readonly textHash: string;
  readonly lens: string;
  readonly tooltip: string;
}

/** Last proofs by document, remembered in the workspace, and the prefill rate of each endpoint as last measured. */
export interface PrefixProofs {
  /** The proof of this document; its lens says so when the text was edited since. */
  of(document: vscode.TextDocument): PrefixProof | null;
  set(uri: string, proof: PrefixProof): Promise<void>;
  move(from: string, to: string): Promise<void>;
  /** Prompt tokens per second, cached ones left out; null when never measured. */
  prefillRate(endpointName: string): number | null;
  setPrefillRate(endpointName: string, rate: number): Promise<void>;
}

const proofsKey = 'firstToken.prefix.proofs';
// Another name than before: rates of short prompts were kept under that one.
const ratesKey = 'firstToken.prefix.prefillPaces';
const most = 200;
const largest = 2_000_000;

/** Keeps the newest. `edited` says in words that a text is no longer the measured one. */
export function createPrefixProofs(memory: vscode.Memento, edited: (when: string) => string): PrefixProofs {
  const all = () => memory.get<Readonly<Record<string, PrefixProof>>>(proofsKey, {});
  const rates = () => memory.get<Readonly<Record<string, number>>>(ratesKey, {});
  const put = async (uri: string, proof: PrefixProof, without = uri) => {
    const others = Object.entries(all()).filter(([name]) => name !== uri && name !== without);
    await memory.update(proofsKey, Object.fromEntries([...others, [uri, proof] as const].slice(-most)));
  };
  return {
    of(document) {
      const proof = all()[document.uri.toString()];
      if (!proof) return null;
      const text = document.getText();
      return text.length > largest || hashOf(text) === proof.textHash ? proof : { ...proof, lens: `${proof.lens} · ${edited(since(proof.at))}` };
    },
    set: (uri, proof) => put(uri, proof),
    async move(from, to) {
      const proof = all()[from];
      if (proof) await put(to, proof, from);
    },
    prefillRate: (name) => rates()[name] ?? null,
    setPrefillRate: async (name, rate) => await memory.update(ratesKey, { ...rates(), [name]: rate }),
  };
}

/**
 * What a prompt token costs on the endpoint of a report, as tokens per second: the difference between long and short prompts where both were
 * sent, else long ones alone, fixed costs included. Null for runs of many requests at once, which wait for each other, and without long prompts.
 */
export function coldPrefillRate({ samples, plan, scenario }: Pick<Report, 'samples' | 'plan' | 'scenario'>): number | null {
  if (plan.concurrency !== 1 || (scenario !== undefined && !isProof(plan))) return null;
  const measured = samples.filter(({ role }) => role === 'measured');
  return prefillSlope(measured) ?? prefillPace(measured)?.p50 ?? null;
}
