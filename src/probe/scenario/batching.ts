/** Does the server batch requests or iterations? From when answers come back, so it works where nothing streams. */
import type { ChatPrompt } from '../../prompt/prompt';
import { ms } from '../../report/format';
import type { Milliseconds, Sample } from '../../report/sample';
import { median } from '../../report/statistics';
import type { Shot } from '../plan';
import { endOf, firstOf, labelled, middle, oneShot, took, tooFewAnswers, type Detected } from './detector';
import { stepPlan, type Scenario, type ScenarioContext, type Steps } from './scenario';

/** What to send. */
export interface BatchingOptions {
  readonly prompt: ChatPrompt;
  /** Tokens of the short and of the long answer. */
  readonly short: number;
  readonly long: number;
  readonly trials: number;
}

/** `continuous`: answers leave and join at every step; `request-level`: a batch ends as a whole; `timed`: so, and an idle server waits for company first. */
export type BatchingVerdict = 'continuous' | 'request-level' | 'timed' | 'unclear';

/** What the verdict rests on. */
export interface BatchingEvidence {
  readonly trials: number;
  readonly streams: boolean | null;
  readonly shortAloneMs: Milliseconds | null;
  readonly longAloneMs: Milliseconds | null;
  /** The short answer, sent together with the long one. */
  readonly shortTogetherMs: Milliseconds | null;
  readonly longTogetherMs: Milliseconds | null;
  readonly shortReturnedBeforeLong: boolean | null;
  /** A third request, sent while both ran: how long until its first token, and whether that was before the long one's end. */
  readonly thirdFirstTokenMs: Milliseconds | null;
  readonly thirdStartedBeforeLongEnded: boolean | null;
  /** The wait of the third as a share of what was left of the long one: 0 joins at once, 1 waits for its end. */
  readonly thirdWaitShare: number | null;
  /** Requests are computed one after the other, never together. */
  readonly oneByOne: boolean | null;
  /** How long an idle server waits for company. */
  readonly windowMs: Milliseconds | null;
  /** Answers to a steady stream of requests come in steps of this distance. */
  readonly periodMs: Milliseconds | null;
  readonly reason: string | null;
}

/** `first-token/batching@1`. */
export type BatchingResult = Detected<BatchingVerdict, BatchingEvidence> & { readonly schema: 'first-token/batching@1' };

/** When the third request is sent, as a share of the long answer's time. */
const thirdAt = 0.35;
/** A window is the server's rule, not its bookkeeping, from these on. */
const leastWindow: Milliseconds = 10;
const leastWindowShare = 0.2;

/** A short and a long answer together and a third one on their way; where a batch is closed, also how long it stays open. */
export function batching(options: BatchingOptions): Scenario<BatchingResult> {
  return { name: 'batching', steps: (context) => detecting(options, context) };
}

type MutableEvidence = { -readonly [K in keyof BatchingEvidence]: BatchingEvidence[K] };

function* detecting(options: BatchingOptions, context: ScenarioContext): Steps<BatchingResult> {
  const { prompt, short, long, trials } = options;
  const evidence: MutableEvidence = { trials, streams: null, shortAloneMs: null, longAloneMs: null, shortTogetherMs: null, longTogetherMs: null, shortReturnedBeforeLong: null, thirdFirstTokenMs: null, thirdStartedBeforeLongEnded: null, thirdWaitShare: null, oneByOne: null, windowMs: null, periodMs: null, reason: null };
  const end = (verdict: BatchingVerdict, stopped: string | null = null) => ({ result: resultOf(verdict, { ...evidence }, stopped), shown: null });
  const plan = (shots: readonly Shot[], concurrency = 1) => stepPlan(context, 'batching', { shots, concurrency });

  const warm = Array.from({ length: context.settings.warmup }, (_, i) => oneShot(`warm-${i}`, prompt, short, { role: 'warmup' }));
  const alone = yield { name: 'alone', plan: plan([...warm, ...both(prompt, 'alone', short, 3), ...both(prompt, 'alone-long', long, 3)]), soFar: null, shown: null };
  const shortAlone = middle(labelled(alone.samples, 'kind', 'alone'), took);
  const longAlone = middle(labelled(alone.samples, 'kind', 'alone-long'), took);
  evidence.shortAloneMs = shortAlone;
  evidence.longAloneMs = longAlone;
  evidence.streams = streams(labelled(alone.samples, 'kind', 'alone-long'));
  evidence.reason = tooFewAnswers(alone.samples) ?? tooShort(alone.samples);
  if (alone.stopped) return end('unclear', alone.stopped.detail);
  if (evidence.reason !== null || shortAlone === null || longAlone === null) return end('unclear');

  const window: Window = { joined: 0, apart: shortAlone };
  const opening = yield { name: 'window-1', plan: plan([...pairs(options, 0, window, shortAlone), ...four(options, shortAlone)], 4), soFar: end('unclear').result, shown: null };
  readPairs(window, opening.samples);
  evidence.oneByOne = serial(opening.samples, shortAlone);
  if (opening.stopped) return end('unclear', opening.stopped.detail);

  const together = yield { name: 'together', plan: plan(trios(options, shortAlone, longAlone), 3), soFar: end('unclear').result, shown: null };
  readTrios(evidence, together.samples, shortAlone, longAlone);
  if (together.stopped) return end('unclear', together.stopped.detail);
  if (isRule(window.joined, shortAlone)) return yield* timing(options, { evidence, window, shortAlone, plan, end });
  const wait = evidence.thirdWaitShare;
  if (wait === null) {
    evidence.reason = tooFewAnswers(together.samples) ?? 'the third request never met the long one while it ran';
    return end('unclear');
  }
  if (wait >= 0.6) {
    evidence.windowMs = window.joined;
    return end('request-level');
  }
  if (wait <= 0.4 && evidence.shortReturnedBeforeLong !== false) return end('continuous');
  evidence.reason = wait <= 0.4 ? 'the third request joined a running batch, yet the short answer came back with the long one' : `the third request waited for ${Math.round(wait * 100)} of 100 parts of the long one: neither joined nor shut out`;
  return end('unclear');
}

/** A delay after which a second request was still taken into the first one's batch, and one after which it was not. */
interface Window {
  joined: Milliseconds;
  apart: Milliseconds;
}

interface Timing {
  readonly evidence: MutableEvidence;
  readonly window: Window;
  readonly shortAlone: Milliseconds;
  readonly plan: (shots: readonly Shot[], concurrency?: number) => ReturnType<typeof stepPlan>;
  readonly end: (verdict: BatchingVerdict, stopped?: string | null) => { readonly result: BatchingResult; readonly shown: null };
}

/** An idle server waits for company: how long exactly, and in which steps do answers to a steady stream come? */
function* timing(options: BatchingOptions, { evidence, window, shortAlone, plan, end }: Timing): Steps<BatchingResult> {
  for (let round = 1; round < 3 && window.apart - window.joined > 0.03 * shortAlone; round += 1) {
    const run = yield { name: `window-${round + 1}`, plan: plan(pairs(options, round, window, shortAlone), 4), soFar: end('timed').result, shown: null };
    readPairs(window, run.samples);
    if (run.stopped) return end('timed', run.stopped.detail);
  }
  evidence.windowMs = (window.joined + window.apart) / 2;
  const every = shortAlone / 5;
  const steady = Array.from({ length: 36 }, (_, i) => oneShot(`steady-${i}`, options.prompt, options.short, { dueAt: i * every, labels: { kind: 'steady' } }));
  const run = yield { name: 'steady', plan: plan(steady, 8), soFar: end('timed').result, shown: null };
  evidence.periodMs = periodOf(labelled(run.samples, 'kind', 'steady'), shortAlone);
  return end('timed', run.stopped?.detail ?? null);
}

/** Long enough to be a rule of the server. */
function isRule(window: Milliseconds, shortAlone: Milliseconds): boolean {
  return window >= Math.max(leastWindow, leastWindowShare * shortAlone);
}

/** Pairs of short requests on an idle server, the second with a delay between those that are known. A lone answer contains the window, so its time is the most it can be. */
function pairs({ prompt, short }: BatchingOptions, round: number, { joined, apart }: Window, shortAlone: Milliseconds): Shot[] {
  const space = pairSpace(shortAlone);
  return repeated(round === 0 ? openingShares : [0.25, 0.5, 0.75]).flatMap((share, i) => {
    const delay = joined + share * (apart - joined);
    const labels = { share, pair: i };
    return [
      oneShot(`first-${round}-${i}`, prompt, short, { dueAt: i * space, labels: { kind: 'first', ...labels } }),
      oneShot(`second-${round}-${i}`, prompt, short, { dueAt: i * space + delay, labels: { kind: 'second', ...labels } }),
    ];
  });
}

/** Each three times: one moment's trouble must not decide. */
function repeated(shares: readonly number[]): number[] {
  return shares.flatMap((share) => [share, share, share]);
}

const openingShares = [0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9];

function pairSpace(shortAlone: Milliseconds): Milliseconds {
  // Two batches one after the other at most, and a breath.
  return 2.2 * shortAlone + 30;
}

/** Four at once, after the pairs. */
function four({ prompt, short }: BatchingOptions, shortAlone: Milliseconds): Shot[] {
  return Array.from({ length: 4 }, (_, k) => oneShot(`four-${k}`, prompt, short, { dueAt: repeated(openingShares).length * pairSpace(shortAlone), labels: { kind: 'four' } }));
}

/** Answers of one batch end together; where each answer goes its own way they end as far apart as they began, and those of two batches a batch apart. */
function readPairs(window: Window, samples: readonly Sample[]): void {
  const read = labelled(samples, 'kind', 'first').flatMap((a) => {
    const b = labelled(samples, 'kind', 'second').find((s) => s.labels['pair'] === a.labels['pair']);
    return b === undefined || b.start <= a.start ? [] : [{ share: a.labels['share'], delay: b.start - a.start, apart: (endOf(b) - endOf(a)) / (b.start - a.start) }];
  });
  const delays = [...new Set(read.map(({ share }) => share))].map((share) => {
    const alike = read.filter((pair) => pair.share === share);
    return { delay: median(alike.map(({ delay }) => delay))!, same: median(alike.map(({ apart }) => apart))! < 0.3 };
  });
  for (const { delay, same } of delays.sort((x, y) => x.delay - y.delay)) {
    if (same && delay < window.apart) window.joined = Math.max(window.joined, delay);
    if (!same && delay > window.joined) window.apart = Math.min(window.apart, delay);
  }
}

function trios({ prompt, short, long, trials }: BatchingOptions, shortAlone: Milliseconds, longAlone: Milliseconds): Shot[] {
  const space = 2.2 * longAlone + 1.2 * shortAlone + 30;
  return Array.from({ length: trials }, (_, i) => i).flatMap((i) => [
    oneShot(`long-${i}`, prompt, long, { dueAt: i * space, labels: { kind: 'long', trial: i } }),
    oneShot(`short-${i}`, prompt, short, { dueAt: i * space, labels: { kind: 'short', trial: i } }),
    oneShot(`third-${i}`, prompt, short, { dueAt: i * space + thirdAt * longAlone, labels: { kind: 'third', trial: i } }),
  ]);
}

function both(prompt: ChatPrompt, kind: string, tokens: number, times: number): Shot[] {
  return Array.from({ length: times }, (_, i) => oneShot(`${kind}-${i}`, prompt, tokens, { labels: { kind } }));
}

/** Whether tokens came one after the other. */
function streams(samples: readonly Sample[]): boolean | null {
  return samples.length === 0 ? null : samples.some((s) => s.firstToken !== null && s.last !== null && s.last - s.firstToken > 0.2 * took(s));
}

/** The long answer must be long, or there is nothing to wait for. */
function tooShort(samples: readonly Sample[]): string | null {
  const tokens = (kind: string): number | null => median(labelled(samples, 'kind', kind).flatMap((s) => s.outputTokens.count ?? []));
  const [short, long] = [tokens('alone'), tokens('alone-long')];
  return short !== null && long !== null && long < 3 * short ? `the long answer had ${long} tokens, the short one ${short}: give a prompt that asks for a long answer` : null;
}

/** Four at once on an idle server take four times as long as one. */
function serial(samples: readonly Sample[], shortAlone: Milliseconds): boolean | null {
  const four = labelled(samples, 'kind', 'four');
  return four.length < 4 ? null : Math.max(...four.map(endOf)) - Math.min(...four.map((s) => s.start)) > 3 * shortAlone;
}

function readTrios(evidence: MutableEvidence, samples: readonly Sample[], shortAlone: Milliseconds, longAlone: Milliseconds): void {
  const shares: number[] = [];
  let before = 0;
  let apart = 0;
  let met = 0;
  for (const long of labelled(samples, 'kind', 'long')) {
    const [short] = labelled(samples, 'kind', 'short').filter((s) => s.labels['trial'] === long.labels['trial']);
    const [third] = labelled(samples, 'kind', 'third').filter((s) => s.labels['trial'] === long.labels['trial']);
    if (short === undefined || third === undefined) continue;
    const left = endOf(long) - third.start;
    if (left <= 0.1 * longAlone) continue;
    met += 1;
    shares.push((took(third) - shortAlone) / left);
    if (firstOf(third) < endOf(long)) before += 1;
    if (endOf(short) < endOf(long) - 0.2 * (endOf(long) - long.start)) apart += 1;
  }
  evidence.shortTogetherMs = middle(labelled(samples, 'kind', 'short'), took);
  evidence.longTogetherMs = middle(labelled(samples, 'kind', 'long'), took);
  evidence.thirdFirstTokenMs = middle(labelled(samples, 'kind', 'third'), (s) => firstOf(s) - s.start);
  evidence.thirdWaitShare = median(shares);
  evidence.thirdStartedBeforeLongEnded = met === 0 ? null : before * 2 > met;
  // Where both take the same time whatever their length, coming back together says nothing.
  evidence.shortReturnedBeforeLong = met === 0 || longAlone < 2 * shortAlone ? null : apart * 2 > met;
}

/** Median distance of the moments at which answers came in groups. */
function periodOf(samples: readonly Sample[], shortAlone: Milliseconds): Milliseconds | null {
  const ends = samples.map(endOf).sort((a, b) => a - b);
  const groups = ends.filter((end, i) => i === 0 || end - ends[i - 1]! > 0.15 * shortAlone);
  // The first and the last group are cut off by the beginning and the end of the stream.
  return median(groups.slice(1).map((end, i) => end - groups[i]!).slice(0, -1));
}

function resultOf(verdict: BatchingVerdict, evidence: BatchingEvidence, stopped: string | null): BatchingResult {
  return { schema: 'first-token/batching@1', verdict, evidence, stopped, sentences: sentences(verdict, evidence, stopped) };
}

function sentences(verdict: BatchingVerdict, e: BatchingEvidence, stopped: string | null): string[] {
  const t = (value: Milliseconds | null): string => (value === null ? 'an unknown time' : ms(value));
  const together = `Sent together, the short answer took ${t(e.shortTogetherMs)} (alone ${t(e.shortAloneMs)}) and the long one ${t(e.longTogetherMs)} (alone ${t(e.longAloneMs)}).`;
  switch (verdict) {
    case 'continuous':
      return [`Batching is continuous: a short answer comes back when it is done, and a request that arrives later starts at once.`, `${together} A third request had its first token after ${t(e.thirdFirstTokenMs)}, while the long one still ran.`];
    case 'request-level':
      return e.oneByOne === true
        ? ['The server computes one request at a time: everyone waits for all who came before.', `${together} Raise the number of parallel slots (vLLM --max-num-seqs, llama.cpp --parallel, OLLAMA_NUM_PARALLEL).`]
        : ['Batching is request-level: a batch ends as a whole, so short answers wait for the longest and newcomers for the next batch.', `${together} A third request waited ${t(e.thirdFirstTokenMs)} for its first token. A server with continuous batching would return the short answer at once.`];
    case 'timed':
      return [`Batching is timed: an idle server waits about ${t(e.windowMs)} for company, then computes the batch as a whole${e.periodMs === null ? '' : `; answers come in steps about every ${t(e.periodMs)}`}.`, `A lone short answer therefore takes ${t(e.shortAloneMs)}; shorten the batch time-out where single users matter.`];
    case 'unclear':
      return [`The kind of batching is unclear${e.reason === null ? '' : `: ${e.reason}`}.`, stopped === null ? 'Run it again on a quiet server, with a longer --long.' : `The experiment was stopped (${stopped}).`];
  }
}
