/** Recorders that stay open between the plans of a scenario, so that every step finds warm connections and a running canary. */
import type { Recorder } from '../recording';
import type { RunSeams } from '../run';
import type { Target } from '../plan';

/** The seams of a run whose recorders are handed back instead of closed. */
export interface KeptRecorders {
  readonly seams: RunSeams;
  /** The busiest recorder's share of time since the last call, 0–1; null before there is a recorder that tells. */
  loopUse(): number | null;
  close(): Promise<void>;
}

/** Keeps what `seams` opens. Recorders of one set of network options are shared. */
export function keepRecorders(seams: RunSeams): KeptRecorders {
  const all: Recorder[] = [];
  const idle = new Map<string, Recorder[]>();
  const open = async (target: Target): Promise<Recorder> => {
    const kind = JSON.stringify(target.network);
    const waiting = idle.get(kind) ?? [];
    idle.set(kind, waiting);
    const recorder = waiting.pop() ?? (await seams.open(target));
    if (!all.includes(recorder)) all.push(recorder);
    return {
      record: (shot, onPart, signal) => recorder.record(shot, onPart, signal),
      warm: (url, count) => recorder.warm(url, count),
      clockErrors: (since) => recorder.clockErrors(since),
      close: () => {
        waiting.push(recorder);
        return Promise.resolve();
      },
    };
  };
  return {
    seams: { ...seams, open },
    loopUse: () => {
      const uses = all.flatMap((recorder) => recorder.loopUse?.() ?? []);
      return uses.length === 0 ? null : Math.max(...uses);
    },
    close: async () => {
      await Promise.all(all.map((recorder) => recorder.close()));
    },
  };
}
