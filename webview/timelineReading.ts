import { count, counted, ms } from '../src/report/format';
import { total } from '../src/report/sample';
import type { Hit } from './navigation';
import { nameOf, noteOf } from './timelineTable';
import { deltasInSameRead, gapBefore, kindNames, type Track } from './track';

/** One line on a request: how long it waited, how long it took, how it ended. */
export function describeRequest(track: Track): string {
  const wait = track.firstToken === null ? null : track.firstToken - track.start;
  const whole = track.sample && total(track.sample);
  const started = wait === null ? (track.sample === null ? 'waiting for the first token' : '') : `first token after ${ms(wait)}`;
  return [`Request ${nameOf(track)}`, started, whole === null ? '' : `total ${ms(whole)}`, noteOf(track)].filter((part) => part !== '').join(' · ');
}

/** One line on a delta, or on the gap before it: when, what kind, the gap, its tokens, what came with it, its text where known. */
export function describeDelta(track: Track, index: number, part: Hit['part'], piece: string | null): string {
  const gap = gapBefore(track, index);
  const tokens = track.tokens[index] ?? Number.NaN;
  const together = deltasInSameRead(track, index);
  const kind = kindNames[track.kinds[index] ?? 0] ?? 'text';
  const what = part === 'gap' && gap !== null
    ? [`gap of ${ms(gap)} before delta ${count(index + 1)}`]
    : [ms((track.t[index] as number) - track.start), `${kind === 'text' ? 'answer' : kind} delta ${count(index + 1)} of ${count(track.count)}`, gap === null ? 'first' : `gap ${ms(gap)}`];
  return [`Request ${nameOf(track)}`, ...what, ...(Number.isNaN(tokens) ? [] : [counted(tokens, 'token')]), ...(together > 1 ? [`${counted(together, 'delta')} in this read`] : []), ...(piece === null ? [] : [JSON.stringify(piece)])].join(' · ');
}
