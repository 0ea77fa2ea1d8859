/** The main-thread side of the analysis thread: started with the first question, started again after a crash. */
import { Worker } from 'node:worker_threads';
import type { FromThread, PrefixAnswers, PrefixQuestion, ScannedFile, ToThread } from './prefixMessages';

/** Asks the analysis thread. */
export interface PrefixWorker {
  /** Rejects when the thread failed or took too long (a question is given up after `patience` ms, without a limit for a scan). */
  ask<Q extends PrefixQuestion>(question: Q, options?: { readonly signal?: AbortSignal; readonly onFiles?: (files: readonly ScannedFile[]) => void }): Promise<PrefixAnswers[Q['type']]>;
  /** True once the thread has been started: nothing of it runs before the first question. */
  readonly started: boolean;
  dispose(): void;
}

interface Open {
  readonly question: PrefixQuestion;
  resolve(answer: never): void;
  reject(error: Error): void;
  readonly onFiles: ((files: readonly ScannedFile[]) => void) | undefined;
  readonly timer: NodeJS.Timeout | null;
}

/** `script` is the built thread; `log` gets what a person who reports a bug should have. */
export function createPrefixWorker({ script, log, patience = 30_000 }: { readonly script: string; readonly log: (text: string) => void; readonly patience?: number }): PrefixWorker {
  let thread: Worker | null = null;
  let started = false;
  let next = 0;
  let disposed = false;
  const open = new Map<number, Open>();

  function end(id: number): Open | undefined {
    const question = open.get(id);
    open.delete(id);
    if (question?.timer) clearTimeout(question.timer);
    return question;
  }

  function failAll(message: string): void {
    for (const id of [...open.keys()]) end(id)?.reject(new Error(message));
  }

  function start(): Worker {
    const worker = new Worker(script, { name: 'first-token-prefix' });
    started = true;
    worker.on('message', (message: FromThread) => {
      if (message.type === 'scanned') open.get(message.id)?.onFiles?.(message.files);
      else if (message.type === 'answer') end(message.id)?.resolve(message.answer as never);
      else end(message.id)?.reject(new Error(message.message));
    });
    worker.on('error', (error) => {
      log(`The analysis thread failed: ${error.stack ?? error.message}`);
    });
    worker.on('exit', () => {
      if (thread !== worker) return;
      thread = null;
      if (!disposed) failAll('The analysis thread ended.');
    });
    worker.unref();
    return worker;
  }

  /** A question nobody can answer in time (a hopeless file) must not block those behind it. */
  function giveUp(id: number): void {
    const question = end(id);
    if (!question) return;
    log(`The analysis thread was ended: no answer to "${question.question.type}" in ${patience / 1000} s.`);
    question.reject(new Error(`No answer within ${patience / 1000} s.`));
    const hanging = thread;
    thread = null;
    void hanging?.terminate();
    failAll('The analysis thread was ended.');
  }

  return {
    get started() {
      return started;
    },
    ask(question, { signal, onFiles } = {}) {
      if (disposed) return Promise.reject(new Error('The analysis thread has ended.'));
      const id = (next += 1);
      thread ??= start();
      const send = (message: ToThread): void => thread?.postMessage(message);
      return new Promise((resolve, reject) => {
        const timer = question.type === 'scan' ? null : setTimeout(() => giveUp(id), patience);
        open.set(id, { question, resolve, reject, onFiles, timer });
        signal?.addEventListener('abort', () => send({ type: 'cancel', id }), { once: true });
        send({ type: 'ask', id, question });
      });
    },
    dispose() {
      disposed = true;
      const worker = thread;
      thread = null;
      void worker?.terminate();
      for (const { timer } of open.values()) if (timer) clearTimeout(timer);
      open.clear();
    },
  };
}
