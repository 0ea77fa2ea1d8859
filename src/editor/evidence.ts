/** What stands behind the numbers while the window is open: tapes and answer texts, in memory, up to a limit. */
import type { AnswerView, FrameView } from '../report/messages';
import type { Report } from '../report/report';
import type { DeltaKind, Sample } from '../report/sample';

/** One request's evidence. Structural, so that this file needs nothing of the engine at run time. */
export interface Evidence {
  /** `delta i ↔ pieces[i]`: what each delta said. */
  readonly pieces: readonly { readonly kind: DeltaKind; readonly text: string }[];
  /** Arrival of each delta as the network read (index) and frame (index) it came in. */
  readonly places: readonly { readonly read: number; readonly frame: number }[];
  /** Raw frames without secrets, read from the tape when somebody asks. Times from the request's start. */
  readonly frames: () => readonly { readonly index: number; readonly t: number; readonly read: number; readonly raw: string }[];
  readonly bytes: number;
  /** The tape as a file without secrets, for a bug report. */
  readonly tapeFile: () => string;
}

/** Evidence by report and sample. */
export interface EvidenceStore {
  put(reportId: string, sampleId: string, evidence: Evidence): void;
  get(reportId: string, sampleId: string): Evidence | null;
  /** True when the report has evidence of some of its samples. */
  has(reportId: string): boolean;
}

/** Keeps the newest evidence up to `limit` bytes of tape. */
export function createEvidence(limit = 128_000_000): EvidenceStore {
  const kept = new Map<string, Evidence>();
  let bytes = 0;
  const name = (reportId: string, sampleId: string) => `${reportId}\n${sampleId}`;
  return {
    put(reportId, sampleId, evidence) {
      kept.set(name(reportId, sampleId), evidence);
      bytes += evidence.bytes;
      for (const [oldest, { bytes: size }] of kept) {
        if (bytes <= limit) break;
        kept.delete(oldest);
        bytes -= size;
      }
    },
    get: (reportId, sampleId) => kept.get(name(reportId, sampleId)) ?? null,
    has: (reportId) => [...kept.keys()].some((key) => key.startsWith(`${reportId}\n`)),
  };
}

/** Frames around a delta: five before, five after. */
export function frameView(evidence: Evidence | null, sampleId: string, deltaIndex: number): FrameView {
  const place = evidence?.places[deltaIndex];
  if (!evidence || !place) return { sampleId, deltaIndex, frames: null };
  const all = evidence.frames();
  const at = all.findIndex(({ index }) => index === place.frame);
  const textOf = new Map<number, string>();
  const deltaOf = new Map<number, number>();
  for (const [delta, { frame }] of evidence.places.entries()) {
    textOf.set(frame, (textOf.get(frame) ?? '') + (evidence.pieces[delta]?.text ?? ''));
    if (!deltaOf.has(frame)) deltaOf.set(frame, delta);
  }
  const first = Math.max(0, at - 5);
  const frames = all.slice(first, at + 6).map(({ index, t, read, raw }, position) => {
    const before = all[first + position - 1];
    return { index, t, gap: before ? t - before.t : null, read, raw, text: textOf.get(index) ?? '', current: index === place.frame, delta: deltaOf.get(index) ?? null };
  });
  return { sampleId, deltaIndex, frames };
}

/** The answer piece by piece: from memory, else from texts kept in the report, else null. */
export function answerView(evidence: Evidence | null, report: Report, sampleId: string): AnswerView {
  if (evidence) return { sampleId, pieces: evidence.pieces };
  const kept = report.texts?.answers[sampleId];
  const sample = report.samples.find(({ id }) => id === sampleId);
  return { sampleId, pieces: kept && sample ? piecesOf(sample, kept) : null };
}

/** Cuts a kept text at the deltas' visible lengths; kept reasoning has no lengths and goes to its first delta. */
function piecesOf(sample: Sample, kept: { readonly text: string; readonly reasoning: string }): { kind: DeltaKind; text: string }[] {
  let at = 0;
  let reasoning: string = kept.reasoning;
  return sample.deltas.map(([, kind], index) => {
    if (kind === 'reasoning') {
      const text = reasoning;
      reasoning = '';
      return { kind, text };
    }
    const length = kind === 'text' ? (sample.visibleChars[index] ?? 0) : 0;
    at += length;
    return { kind, text: kept.text.slice(at - length, at) };
  });
}
