/** Where the time of an answer went, and what the largest part of it was. */
import { counted, digits, ms, outOf } from './numbers';
import { chunkGaps, completed, ttft, type Milliseconds, type Sample } from './sample';
import { median } from './statistics';

/** Parts of an answer's time, in order. */
export type Part = 'connection' | 'queue' | 'prefill' | 'decode' | 'stalls';

/** Time per part (ms); they add up to the total latency. */
export type Parts = Readonly<Record<Part, Milliseconds>>;

/** A gap is a stall from this multiple of the request's median gap, and from this many ms. */
const stallRatio = 5;
const stallLeast = 100;

/**
 * Splits one answer. Connection: until it was ready (0 when reused). Queue: until the response head, or what the server says it queued.
 * Prefill: until the first token; a server that sends its head at once and says nothing hides its queue here. Stalls: what long gaps took
 * beyond the median gap. Decode: the rest. Null when no token came.
 */
export function splitTime(s: Sample): Parts | null {
  if (s.firstToken === null || s.last === null) return null;
  const ready = Math.max(s.start, s.connection.reused ? s.start : (s.connection.secured ?? s.connection.connected ?? s.start));
  const wait = s.firstToken - ready;
  const told = s.serverTimings.find(({ covers }) => covers === 'prefill')?.ms;
  const queued = s.serverTimings.find(({ covers }) => covers === 'queue')?.ms;
  const head = Math.max(0, (s.headers ?? ready) - ready);
  const queue = Math.min(wait, queued ?? (told === undefined ? head : Math.max(head, wait - told)));
  const stalls = stallTime(chunkGaps(s));
  return { connection: ready - s.start, queue, prefill: wait - queue, decode: s.last - s.firstToken - stalls, stalls };
}

function stallTime(gaps: readonly Milliseconds[]): Milliseconds {
  const usual = median(gaps) ?? 0;
  return gaps.reduce((sum, gap) => sum + (isStall(gap, usual) ? gap - usual : 0), 0);
}

/** True for a gap that stands out from the request's usual one as a visible pause: five times as long, and at least 100 ms. */
export function isStall(gap: Milliseconds, usual: Milliseconds): boolean {
  return gap >= stallLeast && gap > stallRatio * usual;
}

/** Mean time per part over the answers, the largest part, and a sentence. */
export interface Diagnosis {
  readonly parts: Parts;
  readonly main: Part;
  readonly sentence: string;
}

/** Where the time of the measured answers went; null when none streamed. */
export function diagnose(samples: readonly Sample[]): Diagnosis | null {
  const answers = samples.filter((s) => s.role === 'measured' && completed(s));
  const split = answers.map(splitTime).filter((parts) => parts !== null);
  if (split.length === 0) return null;
  const parts = meanParts(split);
  const main = largest(parts, ['connection', 'queue', 'prefill', 'decode', 'stalls']);
  const whole = parts.connection + parts.queue + parts.prefill + parts.decode + parts.stalls;
  const shown = (['connection', 'queue', 'prefill', 'decode', 'stalls'] as const).filter((part) => parts[part] >= 0.01 * whole);
  const list = shown.map((part) => `${partWords[part]} ${ms(parts[part])}`).join(', ');
  return { parts, main, sentence: `An answer takes ${ms(whole)} on average: ${list}. ${advice(main, answers)}` };
}

function meanParts(split: readonly Parts[]): Parts {
  const mean = (part: Part): number => split.reduce((sum, parts) => sum + parts[part], 0) / split.length;
  return { connection: mean('connection'), queue: mean('queue'), prefill: mean('prefill'), decode: mean('decode'), stalls: mean('stalls') };
}

function largest(parts: Parts, among: readonly Part[]): Part {
  return among.reduce((most, part) => (parts[part] > parts[most] ? part : most), among[0]!);
}

const partWords: Readonly<Record<Part, string>> = { connection: 'connecting', queue: 'queueing', prefill: 'prefill', decode: 'decoding', stalls: 'stalls' };

function advice(main: Part, answers: readonly Sample[]): string {
  switch (main) {
    case 'connection':
      return 'Most of it is opening connections: keep them alive, and warm them up.';
    case 'queue':
      return 'Most of it is waiting for a place on the server: fewer requests at once, or more slots.';
    case 'prefill':
      return `Most of it is reading the prompt (${promptWords(answers)}): shorten it, or let more of it come from the prefix cache.`;
    case 'decode':
      return `Most of it is generating${tokenWords(answers)}: only a shorter answer or a faster decode step helps.`;
    case 'stalls':
      return 'Most of it is standing still in the middle of an answer: look for long prompts of others being read meanwhile, preemption, or a proxy that holds frames back.';
  }
}

function promptWords(answers: readonly Sample[]): string {
  const prompt = median(answers.flatMap((s) => s.promptTokens ?? []));
  if (prompt === null) return 'its size is not told';
  const cached = median(answers.flatMap((s) => s.cachedTokens ?? []));
  if (cached === null) return counted(prompt, 'prompt token');
  return cached === 0 ? `${counted(prompt, 'prompt token')}, none cached` : `${outOf(cached, prompt)} prompt tokens cached`;
}

function tokenWords(answers: readonly Sample[]): string {
  const tokens = median(answers.flatMap((s) => s.outputTokens.count ?? []));
  return tokens === null ? '' : ` ${digits(tokens)} tokens`;
}

/** What the wait for the first token was made of in the slower half of the answers: `most of it is prefill (1 900 prompt tokens, none cached)`; null when no token came. */
export function waitReason(samples: readonly Sample[]): string | null {
  const answers = samples.filter((s) => s.role === 'measured' && completed(s) && s.firstToken !== null).sort((a, b) => (ttft(b) ?? 0) - (ttft(a) ?? 0));
  const slow = answers.slice(0, Math.ceil(answers.length / 2));
  const split = slow.map(splitTime).filter((parts) => parts !== null);
  if (split.length === 0) return null;
  const main = largest(meanParts(split), ['connection', 'queue', 'prefill']);
  return main === 'prefill' ? `most of it is prefill (${promptWords(slow)})` : `most of it is ${partWords[main]}`;
}
