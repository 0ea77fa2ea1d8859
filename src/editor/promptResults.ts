import { createHash } from 'node:crypto';
import type * as vscode from 'vscode';
import { lensText, statusText, verdictSentence } from '../report/format';
import type { Report } from '../report/report';

/** What a lens and the status bar say of a last run, in words that were made when it ended. */
export interface PromptResult {
  readonly reportId: string;
  /** ISO. */
  readonly at: string;
  /** Of the document as it was measured; empty for the built-in prompt. */
  readonly textHash: string;
  readonly endpoint: string;
  readonly lens: string;
  readonly status: string;
  readonly sentence: string;
}

/** Last results by document and by endpoint, remembered in the workspace. */
export interface PromptResults {
  ofDocument(uri: string): PromptResult | null;
  ofEndpoint(name: string): PromptResult | null;
  /** `uri` is null for the built-in prompt. */
  set(uri: string | null, result: PromptResult): Promise<void>;
  /** A file has a new name. */
  move(from: string, to: string): Promise<void>;
}

const memoryKey = 'firstToken.results';
const most = 200;

/** Keeps the newest results. */
export function createPromptResults(memory: vscode.Memento): PromptResults {
  const all = () => memory.get<Readonly<Record<string, PromptResult>>>(memoryKey, {});
  const put = async (entries: Readonly<Record<string, PromptResult>>, without: string[] = []) => {
    const kept = Object.entries(all()).filter(([name]) => !(name in entries) && !without.includes(name));
    await memory.update(memoryKey, Object.fromEntries([...kept, ...Object.entries(entries)].slice(-most)));
  };
  const ofEndpoint = (name: string) => `endpoint ${name}`;
  return {
    ofDocument: (uri) => all()[uri] ?? null,
    ofEndpoint: (name) => all()[ofEndpoint(name)] ?? null,
    set: (uri, result) => put({ [ofEndpoint(result.endpoint)]: result, ...(uri === null ? {} : { [uri]: result }) }),
    async move(from, to) {
      const result = all()[from];
      if (result) await put({ [to]: result }, [from]);
    },
  };
}

/** The part of a report that is remembered. */
export function promptResult(report: Report, textHash: string): PromptResult {
  return { reportId: report.id, at: report.createdAt, textHash, endpoint: report.endpoint.name, lens: lensText(report), status: statusText(report), sentence: verdictSentence(report) };
}

/** SHA-256 of a text, to tell whether it has changed. */
export function hashOf(text: string): string {
  return createHash('sha256').update(text).digest('hex');
}

/** When it was, for people: the time of day for today, else the date. */
export function since(iso: string): string {
  const then = new Date(iso);
  return new Date().toDateString() === then.toDateString() ? then.toLocaleTimeString([], { hour: '2-digit', minute: '2-digit' }) : then.toLocaleDateString();
}
