import type { ChildProcess } from 'node:child_process';

export interface LlamaServer {
  readonly url: string;
  readonly process: ChildProcess;
  log(): string;
  stop(): Promise<void>;
}
export function llamaServerProblem(): string | null;
export function ensureLlamaServer(log?: (line: string) => void): Promise<string>;
export function startLlamaServer(options?: { readonly model?: 'tiny' | 'think' | 'junk'; readonly flags?: readonly string[]; readonly port?: number }): Promise<LlamaServer>;
