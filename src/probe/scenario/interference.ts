/** What a long prompt costs everyone else: a steady stream of tokens while long prompts arrive. */
import type { ChatPrompt } from '../../prompt/prompt';
import { count, ms } from '../../report/format';
import { chunkGaps, type Milliseconds, type Sample } from '../../report/sample';
import { median, percentile, sorted } from '../../report/statistics';
import { PlanError } from '../plan';
import { fillerText } from '../workload';
import { endOf, firstOf, labelled, middle, oneShot, tooFewAnswers, type Detected } from './detector';
import { stepPlan, type Scenario, type ScenarioContext, type Steps } from './scenario';

/** What to send. */
export interface InterferenceOptions {
  readonly prompt: ChatPrompt;
  /** Lengths of the long prompts in tokens, rising. */
  readonly lengths: readonly number[];
  /** Streams whose gaps are watched. */
  readonly streams: number;
  /** Tokens of each watched answer. */
  readonly streamTokens: number;
  readonly repeats: number;
  readonly seed: number;
}

/** `chunked`: prompts are computed in pieces between the others' tokens; `whole-prompt`: everyone stands still meanwhile; `isolated`: nobody notices. */
export type InterferenceVerdict = 'chunked' | 'whole-prompt' | 'isolated' | 'unclear';

/** What one length of prompt did. */
export interface InterferenceAt {
  /** As the server counts, else as asked. */
  readonly promptTokens: number;
  readonly ttftMs: Milliseconds;
  /** The longest gap of a watched stream while the prompt was computed. */
  readonly spikeMs: Milliseconds;
  /** Time a watched stream lost in all. */
  readonly lostMs: Milliseconds;
}

/** What the verdict rests on. */
export interface InterferenceEvidence {
  readonly gapAloneMs: Milliseconds | null;
  readonly gapAloneP99Ms: Milliseconds | null;
  readonly longestPromptTokens: number | null;
  readonly longestTtftMs: Milliseconds | null;
  readonly longestSpikeMs: Milliseconds | null;
  readonly longestLostMs: Milliseconds | null;
  /** The longest gap as a share of the long prompt's time to its first token. */
  readonly spikeShare: number | null;
  /** Tokens computed at a time. */
  readonly chunkTokens: number | null;
  /** Time everyone loses per 1,000 tokens of somebody's prompt. */
  readonly lostPerThousandTokensMs: Milliseconds | null;
  readonly byLength: readonly InterferenceAt[];
  readonly reason: string | null;
}

/** `first-token/interference@1`. */
export type InterferenceResult = Detected<InterferenceVerdict, InterferenceEvidence> & { readonly schema: 'first-token/interference@1' };

/** Streams and long prompts together, against streams alone. */
export function interference(options: InterferenceOptions): Scenario<InterferenceResult> {
  return { name: 'interference', steps: (context) => detecting(options, context) };
}

function* detecting(options: InterferenceOptions, context: ScenarioContext): Steps<InterferenceResult> {
  const lengths = options.lengths.filter((length) => context.maxModelLen === null || length + 64 <= context.maxModelLen);
  if (lengths.length === 0) throw new PlanError(`The model takes at most ${context.maxModelLen ?? 0} tokens: give shorter prompts (--lengths).`);
  const stream = (id: string, i: number, more: Parameters<typeof oneShot>[3]) => oneShot(id, options.prompt, Math.max(8, Math.round(options.streamTokens * (1 - 0.15 * (i % options.streams)))), more);
  const intruder = (length: number, id: string, seed: number, more: Parameters<typeof oneShot>[3]) => oneShot(id, { messages: [{ role: 'user', text: fillerText(length, seed) }], tools: [] }, 1, { ...more, labels: { kind: 'intruder', length, ...more?.labels } });
  const finish = (evidence: InterferenceEvidence, verdict: InterferenceVerdict, stopped: string | null = null) => ({ result: resultOf(verdict, evidence, stopped), shown: null });

  const warm = Array.from({ length: context.settings.warmup }, (_, i) => oneShot(`warm-${i}`, options.prompt, 8, { role: 'warmup' }));
  const alone = yield {
    name: 'alone',
    plan: stepPlan(context, 'interference', {
      shots: [...warm, ...Array.from({ length: options.streams }, (_, i) => stream(`stream-${i}`, i, { labels: { kind: 'stream' } })), ...lengths.map((length, i) => intruder(length, `lone-${i}`, options.seed * 31 + i, { lane: 'lone' }))],
      concurrency: options.streams,
      // The long prompts go one after the other beside the streams; gaps are taken where none of them runs.
      lanes: { lone: { concurrency: 1 } },
    }),
    soFar: null,
    shown: null,
  };
  const aloneGaps = quietGaps(labelled(alone.samples, 'kind', 'stream'), labelled(alone.samples, 'kind', 'intruder'));
  const base: InterferenceEvidence = { gapAloneMs: median(aloneGaps), gapAloneP99Ms: aloneGaps.length === 0 ? null : percentile(sorted(aloneGaps), 0.99), longestPromptTokens: null, longestTtftMs: null, longestSpikeMs: null, longestLostMs: null, spikeShare: null, chunkTokens: null, lostPerThousandTokensMs: null, byLength: [], reason: null };
  if (alone.stopped) return finish(base, 'unclear', alone.stopped.detail);
  const failed = tooFewAnswers(alone.samples) ?? (aloneGaps.length < 10 ? 'tokens do not arrive one by one, so there are no gaps to watch' : null);
  if (failed !== null || base.gapAloneMs === null) return finish({ ...base, reason: failed }, 'unclear');

  const times = new Map(lengths.map((length) => [length, middle(labelled(alone.samples, 'length', length), (s) => firstOf(s) - s.start)]));
  let due = 20 * base.gapAloneMs;
  const intruders = Array.from({ length: options.repeats }, (_, repeat) => repeat).flatMap((repeat) => lengths.flatMap((length, i) => {
    const expected = times.get(length);
    if (expected === undefined || expected === null) return [];
    const shot = intruder(length, `long-${repeat}-${i}`, options.seed * 1013 + repeat * 17 + i, { dueAt: due, labels: { repeat } });
    due += 2 * expected + 10 * base.gapAloneMs!;
    return [shot];
  }));
  const pace = base.gapAloneMs * options.streamTokens * 0.8;
  const background = Array.from({ length: options.streams * Math.ceil(1 + (2 * due) / pace) }, (_, i) => stream(`watched-${i}`, i, { lane: 'watched', labels: { kind: 'stream' } }));
  const mixed = yield { name: 'mixed', plan: stepPlan(context, 'interference', { shots: [...background, ...intruders], concurrency: options.streams, lanes: { watched: { concurrency: options.streams, background: true } } }), soFar: finish(base, 'unclear').result, shown: null };
  return judge(base, mixed.samples, lengths, (evidence, verdict) => finish(evidence, verdict, mixed.stopped?.detail ?? null));
}

/** Gaps of streams while no long prompt was being computed. */
function quietGaps(streams: readonly Sample[], intruders: readonly Sample[]): Milliseconds[] {
  const busy = intruders.map((s) => [s.start, endOf(s)] as const);
  const gaps = streams.flatMap((s) => gapsOf(s).filter(([from, to]) => !busy.some(([start, end]) => to > start && from < end)).map(([from, to]) => to - from));
  return gaps.length >= 10 ? gaps : streams.flatMap(chunkGaps);
}

function gapsOf(s: Sample): (readonly [Milliseconds, Milliseconds])[] {
  return s.deltas.slice(1).map((delta, d) => [s.deltas[d]![0], delta[0]] as const);
}

function judge<End>(base: InterferenceEvidence, samples: readonly Sample[], lengths: readonly number[], end: (evidence: InterferenceEvidence, verdict: InterferenceVerdict) => End): End {
  const streams = labelled(samples, 'kind', 'stream');
  const gap = base.gapAloneMs!;
  const byLength = lengths.flatMap((length): InterferenceAt[] => {
    const seen = labelled(samples, 'length', length).flatMap((long) => {
      const cost = costOf(long, streams, gap);
      return cost === null ? [] : [{ ...cost, ttft: firstOf(long) - long.start, tokens: long.promptTokens ?? length }];
    });
    return seen.length === 0 ? [] : [{ promptTokens: Math.round(median(seen.map((s) => s.tokens))!), ttftMs: median(seen.map((s) => s.ttft))!, spikeMs: median(seen.map((s) => s.spike))!, lostMs: median(seen.map((s) => s.lost))! }];
  });
  const longest = byLength.at(-1);
  if (longest === undefined) return end({ ...base, byLength, reason: tooFewAnswers(samples) ?? 'no long prompt met a running stream' }, 'unclear');
  const share = longest.spikeMs / longest.ttftMs;
  const lostShare = longest.lostMs / longest.ttftMs;
  const evidence: InterferenceEvidence = {
    ...base,
    longestPromptTokens: longest.promptTokens,
    longestTtftMs: longest.ttftMs,
    longestSpikeMs: longest.spikeMs,
    longestLostMs: longest.lostMs,
    spikeShare: share,
    chunkTokens: null,
    lostPerThousandTokensMs: (longest.lostMs / longest.promptTokens) * 1000,
    byLength,
  };
  if (longest.ttftMs < 8 * gap) return end({ ...evidence, reason: `the longest prompt took ${ms(longest.ttftMs)}, too little against gaps of ${ms(gap)}` }, 'unclear');
  if (lostShare < 0.15 && longest.spikeMs < 4 * gap + 5) return end(evidence, 'isolated');
  if (share >= 0.6) return end(evidence, 'whole-prompt');
  if (share <= 0.45) return end({ ...evidence, chunkTokens: Math.round(Math.max(1, (longest.promptTokens * longest.spikeMs) / Math.max(longest.ttftMs, longest.lostMs))) }, 'chunked');
  return end({ ...evidence, reason: `the longest gap was ${Math.round(share * 100)} of 100 parts of the long prompt’s time: give longer prompts` }, 'unclear');
}

/** What one long prompt did to the stream it hit hardest; null when no stream ran then. */
function costOf(long: Sample, streams: readonly Sample[], gap: Milliseconds): { readonly spike: Milliseconds; readonly lost: Milliseconds } | null {
  const [from, to] = [long.start, firstOf(long)];
  const costs = streams.flatMap((s) => {
    const hit = gapsOf(s).filter(([a, b]) => b > from && a <= to).map(([a, b]) => b - a);
    return hit.length === 0 ? [] : [{ spike: Math.max(...hit), lost: hit.reduce((sum, g) => sum + Math.max(0, g - gap), 0) }];
  });
  return costs.length === 0 ? null : costs.reduce((worst, cost) => (cost.spike > worst.spike ? cost : worst));
}

function resultOf(verdict: InterferenceVerdict, evidence: InterferenceEvidence, stopped: string | null): InterferenceResult {
  return { schema: 'first-token/interference@1', verdict, evidence, stopped, sentences: sentences(verdict, evidence, stopped) };
}

function sentences(verdict: InterferenceVerdict, e: InterferenceEvidence, stopped: string | null): string[] {
  if (verdict === 'unclear' || e.longestPromptTokens === null || e.longestSpikeMs === null || e.longestTtftMs === null || e.longestLostMs === null) {
    return [`What a long prompt costs the others is unclear${e.reason === null ? '' : `: ${e.reason}`}.`, stopped === null ? 'Run it again with longer prompts (--lengths) on a quiet server.' : `The experiment was stopped (${stopped}).`];
  }
  const long = `a prompt of ${count(e.longestPromptTokens)} tokens (first token after ${ms(e.longestTtftMs)})`;
  const cost = `Every stream loses about ${ms(e.lostPerThousandTokensMs ?? 0)} per 1 000 tokens of somebody’s prompt; without one its gaps are ${ms(e.gapAloneMs ?? 0)}.`;
  switch (verdict) {
    case 'chunked':
      return [`Prefill is chunked, about ${count(e.chunkTokens ?? 0)} tokens at a time: while ${long} was computed, the longest gap of a stream was ${ms(e.longestSpikeMs)}.`, cost];
    case 'whole-prompt':
      return [`Prefill is not chunked: ${long} stopped every stream for ${ms(e.longestSpikeMs)}.`, `${cost} Chunked prefill (vLLM --enable-chunked-prefill, --max-num-batched-tokens) would spread it.`];
    case 'isolated':
      return [`Long prompts do not disturb the others: during ${long} the longest gap was ${ms(e.longestSpikeMs)}.`, `Prefill seems to run elsewhere (another pool or replica); without a long prompt gaps are ${ms(e.gapAloneMs ?? 0)}.`];
  }
}
