import { createHash } from 'node:crypto';
import type * as vscode from 'vscode';
import type { Report, Verdict } from '../report/report';

/** What the lens says of a file's last run. */
export interface PromptResult {
  readonly reportId: string;
  /** ISO. */
  readonly at: string;
  readonly textHash: string;
  readonly endpoint: string;
  readonly ttft: { readonly p50: number; readonly p99: number } | null;
  readonly tpot: { readonly p50: number } | null;
  readonly tokensPerSecond: number | null;
  readonly verdict: Verdict | null;
}

/** Last results by document, remembered in the workspace. */
export interface PromptResults {
  get(uri: string): PromptResult | null;
  set(uri: string, result: PromptResult): Promise<void>;
  /** A file has a new name. */
  move(from: string, to: string): Promise<void>;
}

const memoryKey = 'firstToken.promptResults';
const most = 200;

/** Keeps the newest results. */
export function createPromptResults(memory: vscode.Memento): PromptResults {
  const all = () => memory.get<Readonly<Record<string, PromptResult>>>(memoryKey, {});
  const save = (results: Readonly<Record<string, PromptResult>>) => memory.update(memoryKey, Object.fromEntries(Object.entries(results).slice(-most)));
  return {
    get: (uri) => all()[uri] ?? null,
    async set(uri, result) {
      const { [uri]: _, ...others } = all();
      await save({ ...others, [uri]: result });
    },
    async move(from, to) {
      const { [from]: result, ...others } = all();
      if (result) await save({ ...others, [to]: result });
    },
  };
}

/** The part of a report that a lens shows. */
export function promptResult(report: Report, textHash: string): PromptResult {
  const { ttft, tpot } = report.summary;
  return {
    reportId: report.id,
    at: report.createdAt,
    textHash,
    endpoint: report.endpoint.name,
    ttft: ttft && { p50: ttft.p50, p99: ttft.p99 },
    tpot: tpot && { p50: tpot.p50 },
    tokensPerSecond: report.perUser?.p50 ?? null,
    verdict: report.verdict,
  };
}

/** SHA-256 of a text, to tell whether it has changed. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}
