/** Deltas as typed arrays, for the way to the webview: 100 requests of 2,000 tokens are one block of bytes instead of 200,000 small arrays. */
import type { ToWebview } from './messages';
import type { Report } from './report';
import type { Delta, DeltaKind, Sample } from './sample';

/** Deltas of several samples one after the other; `counts[i]` belong to the i-th sample. */
export interface PackedDeltas {
  readonly counts: Uint32Array;
  readonly t: Float64Array;
  /** Index into the kinds in the order text, reasoning, tool, token. */
  readonly kinds: Uint8Array;
  /** NaN = unknown. */
  readonly tokens: Float32Array;
  readonly visibleChars: Uint32Array;
}

const kinds: readonly DeltaKind[] = ['text', 'reasoning', 'tool', 'token'];

/** The message with its samples' deltas packed; call it on what is posted to the webview. Messages without samples stay as they are. */
export function packMessage(message: ToWebview): ToWebview {
  switch (message.type) {
    case 'samples': {
      const [samples, packed] = pack(message.samples);
      return { ...message, samples, packed };
    }
    case 'report': {
      const [report, packed] = packReport(message.report);
      return { ...message, report, packed };
    }
    case 'compare': {
      const [[a, packedA], [b, packedB]] = [packReport(message.a), packReport(message.b)];
      return { ...message, a, b, packed: [packedA, packedB] };
    }
    default:
      return message;
  }
}

/** The message as it was before {@link packMessage}; one that was not packed stays as it is. */
export function unpackMessage(message: ToWebview): ToWebview {
  switch (message.type) {
    case 'samples':
      return message.packed === undefined ? message : { ...message, samples: unpack(message.samples, message.packed) };
    case 'report':
      return message.packed === undefined ? message : { ...message, report: unpackReport(message.report, message.packed) };
    case 'compare':
      return message.packed === undefined ? message : { ...message, a: unpackReport(message.a, message.packed[0]), b: unpackReport(message.b, message.packed[1]) };
    default:
      return message;
  }
}

function packReport(report: Report): [Report, PackedDeltas] {
  const [samples, packed] = pack(report.samples);
  return [{ ...report, samples }, packed];
}

function unpackReport(report: Report, packed: PackedDeltas): Report {
  return { ...report, samples: unpack(report.samples, packed) };
}

function pack(samples: readonly Sample[]): [Sample[], PackedDeltas] {
  const size = samples.reduce((sum, sample) => sum + sample.deltas.length, 0);
  const packed: PackedDeltas = { counts: Uint32Array.from(samples, (sample) => sample.deltas.length), t: new Float64Array(size), kinds: new Uint8Array(size), tokens: new Float32Array(size), visibleChars: new Uint32Array(size) };
  let at = 0;
  const bare = samples.map((sample) => {
    // A report of another origin may count the characters of fewer deltas than it has; such a list travels as it is.
    const whole = sample.visibleChars.length === sample.deltas.length;
    sample.deltas.forEach(([t, kind, tokens], d) => {
      packed.t[at] = t;
      packed.kinds[at] = kinds.indexOf(kind);
      packed.tokens[at] = tokens ?? Number.NaN;
      packed.visibleChars[at] = whole ? sample.visibleChars[d]! : 0;
      at += 1;
    });
    return { ...sample, deltas: [], visibleChars: whole ? [] : sample.visibleChars };
  });
  return [bare, packed];
}

function unpack(samples: readonly Sample[], packed: PackedDeltas): Sample[] {
  let at = 0;
  return samples.map((sample, i) => {
    const end = at + packed.counts[i]!;
    const deltas: Delta[] = [];
    const chars = sample.visibleChars.length === 0 ? [...packed.visibleChars.subarray(at, end)] : sample.visibleChars;
    for (; at < end; at += 1) {
      const tokens = packed.tokens[at]!;
      deltas.push([packed.t[at]!, kinds[packed.kinds[at]!]!, Number.isNaN(tokens) ? null : tokens]);
    }
    return { ...sample, deltas, visibleChars: chars };
  });
}
