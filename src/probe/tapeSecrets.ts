/** Takes secrets out of the recorded bytes of a stream, also those that came in pieces over several frames, without moving a byte. */
import { decode, frameAt, type Decoded } from './decode';
import type { Dialect } from './dialect/dialect';
import { parseJson } from './dialect/json';
import type { Tape } from './tape';

const star = '*';

/**
 * A copy of a tape's bytes in which every form of a secret is overwritten by asterisks. A secret that the stream gives in pieces is found in
 * the decoded answer; the pieces are overwritten in their frames, and so is what else there tells the same tokens (ids, bytes of
 * logprobs). Throws an Error in plain words when a secret is left, which must not be saved then.
 */
export function bytesWithoutSecrets(tape: Tape, dialect: Dialect, secrets: readonly string[]): Uint8Array {
  const bytes = Buffer.from(tape.bytes);
  for (const secret of secrets) {
    const needle = Buffer.from(secret);
    for (let at = bytes.indexOf(needle); at >= 0; at = bytes.indexOf(needle, at + needle.length)) bytes.fill(star, at, at + needle.length);
  }
  const told = decode(tape, dialect);
  if (!holds(told, secrets)) return bytes;
  overwritePieces({ ...tape, bytes }, bytes, dialect, told, secrets);
  if (holds(decode({ ...tape, bytes }, dialect), secrets)) throw new Error('The answer repeats a key in a form that cannot be taken out of the recorded bytes.');
  return bytes;
}

const answersOf = ({ text, reasoning, toolCalls, outcome }: Decoded): string[] => [text, reasoning, ...toolCalls.flatMap((call) => [call.name, call.arguments]), outcome.message ?? '', outcome.raw ?? ''];

function holds(decoded: Decoded, secrets: readonly string[]): boolean {
  return answersOf(decoded).some((answer) => secrets.some((secret) => answer.includes(secret)));
}

/** A piece of an answer: which frame brought it, and where it stands among all of its kind. */
interface Piece {
  readonly frame: number;
  readonly from: number;
  readonly text: string;
}

function piecesOf(decoded: Decoded, kind: string): { readonly all: string; readonly pieces: readonly Piece[] } {
  const pieces: Piece[] = [];
  let all = '';
  for (const { frame, beside, ...arrival } of decoded.arrivals) {
    for (const part of [arrival, beside]) {
      if (part?.kind !== kind || part.text === '') continue;
      pieces.push({ frame, from: all.length, text: part.text });
      all += part.text;
    }
  }
  return { all, pieces };
}

function overwritePieces(tape: Tape, bytes: Buffer, dialect: Dialect, told: Decoded, secrets: readonly string[]): void {
  const touched = new Map<number, string[]>();
  for (const kind of ['text', 'reasoning', 'tool']) {
    const { all, pieces } = piecesOf(told, kind);
    for (const secret of secrets) {
      for (let at = all.indexOf(secret); at >= 0; at = all.indexOf(secret, at + 1)) {
        for (const { frame, from, text } of pieces) if (from < at + secret.length && from + text.length > at) touched.set(frame, [...(touched.get(frame) ?? []), text]);
      }
    }
  }
  let from = 0;
  for (const { index, raw } of frameAt(tape, dialect)) {
    const needle = Buffer.from(raw);
    const at = needle.length === 0 ? -1 : bytes.indexOf(needle, from);
    if (at < 0) continue;
    from = at + needle.length;
    const texts = touched.get(index);
    if (texts !== undefined) bytes.write(withoutPieces(raw, texts), at);
  }
}

/** One frame's JSON with the strings that hold a piece, or are part of one, as asterisks, and the ids of tokens as ones; as many bytes as before. */
function withoutPieces(raw: string, texts: readonly string[]): string {
  const strings = raw.replace(/"((?:[^"\\]|\\.)*)"(\s*:)?/g, (literal, inner: string, colon?: string) => {
    const value = colon === undefined ? parseJson(literal) : undefined;
    const tells = typeof value === 'string' && value !== '' && texts.some((text) => text.includes(value) || value.includes(text));
    return tells ? `"${star.repeat(Buffer.byteLength(inner))}"` : literal;
  });
  return strings.replace(/\[[\d\s,]+\]|"id"\s*:\s*\d+/g, (numbers) => numbers.replace(/\d/g, '1'));
}
