/** What the simulated model says: plausible sentences about latency, always the same for the same seed. */
import { seededRandom } from './seededRandom';

const subjects = [
  'The first token', 'A long prompt', 'The queue', 'Prefill', 'The decode step', 'A cached prefix', 'The reader', 'Each new request',
  'The batch', 'Memory bandwidth', 'A full server', 'The slowest one percent', 'A short answer', 'The scheduler', 'Your system message',
];
const verbs = [
  'waits for', 'decides', 'hides', 'pays for', 'shares', 'delays', 'follows', 'limits', 'explains', 'takes its time from', 'competes with', 'shortens',
];
const objects = [
  'the weights that every step reads', 'the seat that just became free', 'the keys and values of the others', 'what the user feels', 'the next token',
  'the time to first token', 'the pace of the answer', 'a date at the top of the prompt', 'the tail of the distribution', 'the tokens before it',
  'the bytes that cross the bus', 'an answer nobody has read yet', 'the work of the whole batch',
];
const endings = [
  'when the load is low', 'at sixteen streams', 'until the cache is warm', 'no matter how fast the network is', 'in every measurement we made',
  'after the queue has drained', 'as long as the prefix stays the same', 'even on a quiet afternoon', 'and the mean does not show it', 'once memory is full',
];
const links = ['So', 'In practice', 'Put simply', 'For a reader', 'Under load', 'By contrast', 'Most of the time', 'On paper'];
const signs = ['≈ 3.4 ms', '→ 31 tokens/s', '“felt” latency', 'naïve averages', '50 µs ✓', '延迟', '🙂'];

/** About `words` words of prose. With `signs` some sentences hold characters outside ASCII, which need several tokens each. */
export function prose(seed: number, words: number, withSigns = false): string {
  const random = seededRandom(seed);
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!;
  const sentence = (): string => {
    const core = `${pick(subjects)} ${pick(verbs)} ${pick(objects)}`;
    const ended = random() < 0.6 ? `${core} ${pick(endings)}` : core;
    const opened = random() < 0.25 ? `${pick(links)}, ${ended[0]!.toLowerCase()}${ended.slice(1)}` : ended;
    return withSigns && random() < 0.4 ? `${opened} (${pick(signs)}).` : `${opened}.`;
  };
  let text = sentence();
  let written = text.split(' ').length;
  while (written < words) {
    const next = sentence();
    text += (random() < 0.15 ? '\n\n' : ' ') + next;
    written += next.split(' ').length;
  }
  return text;
}

const thoughts = [
  'The question is about', 'Let me look at', 'First I should check', 'It may depend on', 'A simple estimate of', 'I should not forget', 'Then compare it with', 'That would explain',
];

/** About `words` words of thinking aloud. */
export function reasoningProse(seed: number, words: number): string {
  const random = seededRandom(seed ^ 0x5bd1e995);
  const pick = (list: readonly string[]): string => list[Math.floor(random() * list.length)]!;
  let text = '';
  let written = 0;
  while (written < words) {
    const next = `${pick(thoughts)} ${pick(objects)}.`;
    text += (text === '' ? '' : ' ') + next;
    written += next.split(' ').length;
  }
  return text;
}
