import { Worker } from 'node:worker_threads';
import type { LabLoad } from '../report/messages';
import type { Report } from '../report/report';

/** What the lab's thread is asked; without flags it names the models and GPUs it knows. */
export interface LabQuestion {
  readonly a: readonly string[] | null;
  readonly b: readonly string[] | null;
  readonly load: LabLoad;
  readonly version: string;
}

/** What it answers. `side` says whose flags are wrong; null = the load. */
export type LabAnswer =
  | { readonly kind: 'options'; readonly models: readonly string[]; readonly gpus: readonly string[] }
  | { readonly kind: 'result'; readonly a: Report; readonly b: Report }
  | { readonly kind: 'problem'; readonly side: 'A' | 'B' | null; readonly message: string };

/** Asks once, in a thread that ends with the answer, with the signal, or after `limit` ms (then the answer is a problem in words). Rejects when the thread itself fails. */
export function askLab(script: string, question: LabQuestion, signal: AbortSignal, limit = 30_000): Promise<LabAnswer> {
  return new Promise((resolve, reject) => {
    const worker = new Worker(script, { workerData: question });
    const tooLong = setTimeout(() => end(() => resolve({ kind: 'problem', side: null, message: `This takes longer than ${limit / 1000} s: lower the number of requests or their lengths.` })), limit);
    const stop = (): void => end(() => reject(Object.assign(new Error('Cancelled'), { name: 'Cancelled' })));
    const end = (act: () => void): void => {
      clearTimeout(tooLong);
      signal.removeEventListener('abort', stop);
      void worker.terminate();
      act();
    };
    if (signal.aborted) return stop();
    signal.addEventListener('abort', stop, { once: true });
    worker.once('message', (answer: LabAnswer) => end(() => resolve(answer)));
    worker.once('error', (error) => end(() => reject(error)));
  });
}
