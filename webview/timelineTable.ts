import { ms, outcomeName, tokensCached } from '../src/report/format';
import { total, ttft } from '../src/report/sample';
import { el } from './element';
import { gapBefore, type Track } from './track';

/** Number of a request as people count it; warm-up requests are named apart. */
export function nameOf(track: Pick<Track, 'role' | 'number'>): string {
  return track.role === 'measured' ? String(track.number) : `${track.role === 'warmup' ? 'w' : 't'}${track.number}`;
}

/** What stands at a row's end: how it failed, or how much came from the cache; '' for neither. */
export function noteOf(track: Track): string {
  const { sample } = track;
  if (sample === null) return '';
  if (sample.outcome.kind !== 'ok') return outcomeName(sample.outcome);
  return sample.cachedTokens !== null && sample.cachedTokens > 0 ? tokensCached(sample.cachedTokens, sample.promptTokens) : '';
}

/** The time line as a table: one row per request, in the order of the rows. */
export function timelineTable(rows: readonly Track[]): HTMLElement {
  const head = ['Request', 'First token', 'Total', 'Deltas', 'Longest gap', 'Ended'];
  return el('table', { class: 'figures' }, el('caption', { class: 'sr-only' }, 'One row per request, in the order of the time line'),
    el('thead', {}, el('tr', {}, ...head.map((text) => el('th', { scope: 'col' }, text)))), el('tbody', {}, ...rows.map(tableRow)));
}

function tableRow(track: Track): HTMLElement {
  let longest = 0;
  for (let index = 1; index < track.count; index += 1) longest = Math.max(longest, gapBefore(track, index) ?? 0);
  const cell = (text: string): HTMLElement => el('td', {}, text);
  const wait = track.sample ? ttft(track.sample) : null;
  const whole = track.sample ? total(track.sample) : null;
  return el('tr', {}, el('th', { scope: 'row' }, nameOf(track)), cell(wait === null ? 'none' : ms(wait)), cell(whole === null ? 'none' : ms(whole)), cell(String(track.count)), cell(track.count > 1 ? ms(longest) : 'none'),
    cell(track.sample ? outcomeName(track.sample.outcome) : 'running'));
}
