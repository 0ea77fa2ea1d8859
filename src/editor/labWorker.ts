/** The lab's own thread: two simulations in virtual time, so that typing never waits for one. */
import { parentPort, workerData } from 'node:worker_threads';
import type { LabAnswer, LabQuestion } from './labThread';
import { labReport } from './labReport';
import { labGpus, labModels, runLab } from '../simulator/lab';

const { a, b, load, version } = workerData as LabQuestion;

function side(name: 'A' | 'B', flags: readonly string[]): ReturnType<typeof labReport> {
  try {
    return labReport(name, runLab(flags, load), version);
  } catch (error) {
    throw new SideError(name, error);
  }
}

class SideError extends Error {
  readonly side: 'A' | 'B' | null;
  constructor(side: 'A' | 'B', cause: unknown) {
    super(cause instanceof Error ? cause.message : String(cause));
    this.side = cause instanceof Error && cause.name === 'LabError' ? null : side;
  }
}

function answer(): LabAnswer {
  if (a === null || b === null) return { kind: 'options', models: labModels, gpus: labGpus };
  try {
    return { kind: 'result', a: side('A', a), b: side('B', b) };
  } catch (error) {
    return { kind: 'problem', side: error instanceof SideError ? error.side : null, message: error instanceof Error ? error.message : String(error) };
  }
}

parentPort?.postMessage(answer());
