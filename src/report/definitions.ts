/** The same samples as other tools would report them, so that a number from elsewhere can be placed. Definitions: see each row's note. */
import { chunkGaps, completed, firstFrame, firstVisible, itlOrReason, tpot, ttft, type Milliseconds, type Sample } from './sample';
import { percentile, sorted } from './statistics';

/** Names of the tools, ours first. */
export type Tool = 'First Token' | 'vllm bench serve' | 'SGLang bench_serving' | 'AIPerf' | 'GuideLLM' | 'inference-perf' | 'GenAI-Perf' | 'LLMPerf';

/** Medians (ms) of what a tool calls TTFT, ITL and TPOT; null where it has none or the samples do not tell. */
export interface ToolRow {
  readonly tool: Tool;
  readonly ttft: Milliseconds | null;
  readonly itl: Milliseconds | null;
  readonly tpot: Milliseconds | null;
  readonly note: string;
}

interface Definition {
  readonly tool: Tool;
  readonly ttft: (s: Sample) => Milliseconds | null;
  /** Values of one request; most tools pool them. */
  readonly itl: (s: Sample) => Milliseconds[];
  readonly tpot: (s: Sample) => Milliseconds | null;
  readonly note: string;
}

const none = (): null => null;
const one = (value: Milliseconds | null): Milliseconds[] => (value === null ? [] : [value]);

/** (until − firstToken)/(N − 1), as most tools divide; null for N ≤ 1. */
function perLaterToken(s: Sample, from: Milliseconds | null, until: Milliseconds | null): Milliseconds | null {
  const n = s.outputTokens.count;
  return n === null || n <= 1 || from === null || until === null ? null : (until - from) / (n - 1);
}

const definitions: readonly Definition[] = [
  {
    tool: 'First Token',
    ttft,
    itl: (s) => {
      const values = itlOrReason(s);
      return typeof values === 'string' ? [] : values;
    },
    tpot,
    note: 'Reasoning counts as a token; a frame of k tokens gives k values; tokens of the first frame are not divided by.',
  },
  {
    tool: 'vllm bench serve',
    ttft: firstFrame,
    // One value a frame: a frame that opens the stream takes the place of the first token.
    itl: (s) => [...one(s.firstFrame !== null && s.firstToken !== null && s.firstFrame < s.firstToken ? s.firstToken - s.firstFrame : null), ...chunkGaps(s)],
    tpot: (s) => {
      if (s.outputTokens.count !== null && s.outputTokens.count <= 1) return 0;
      return perLaterToken(s, s.firstFrame, s.last);
    },
    note: 'Counts from the first frame with choices, role-only included; one frame is one token; TPOT is 0 for one token.',
  },
  {
    tool: 'SGLang bench_serving',
    ttft,
    itl: chunkGaps,
    tpot: (s) => perLaterToken(s, s.firstToken, s.end),
    note: 'One frame is one token; the latency ends at the last line, usage included.',
  },
  {
    tool: 'AIPerf',
    ttft,
    itl: (s) => one(perLaterToken(s, s.firstToken, s.last)),
    tpot: none,
    note: 'Its ITL is a mean per request; the real gaps are called ICL.',
  },
  {
    tool: 'GuideLLM',
    ttft,
    itl: (s) => one(perLaterToken(s, s.firstToken, s.last)),
    tpot: (s) => (s.last === null || s.outputTokens.count === null || s.outputTokens.count === 0 ? null : (s.last - s.start) / s.outputTokens.count),
    note: 'Its TPOT includes the first token, so a slow prefill raises it.',
  },
  {
    tool: 'inference-perf',
    ttft: firstVisible,
    itl: (s) => visibleFrames(s).flatMap(([gap, k]) => [gap, ...Array.from({ length: Math.max(0, k - 1) }, () => 0)]),
    tpot: (s) => perLaterToken(s, s.firstVisible, s.last),
    note: 'Reasoning is ignored; inside a frame of several tokens its gaps are 0.',
  },
  {
    tool: 'GenAI-Perf',
    ttft: firstFrame,
    itl: (s) => chunkGaps(s).map((gap, i) => gap / Math.max(1, s.deltas[i + 1]![2] ?? 1)),
    tpot: none,
    note: 'Counts from the first response; each gap is divided by the tokens of the later response and counted once.',
  },
  {
    tool: 'LLMPerf',
    ttft: firstVisible,
    itl: (s) => {
      const frames = s.deltas.filter((delta) => delta[1] === 'text');
      return frames.length === 0 ? [] : [(frames.at(-1)![0] - s.start) / frames.length];
    },
    tpot: none,
    note: 'Its ITL is the mean of all gaps, TTFT among them.',
  },
];

/** What a tool counts differently, in one or two sentences. */
export function noteOn(tool: Tool): string {
  return definitions.find((definition) => definition.tool === tool)!.note;
}

/** Gap and tokens of each visible frame behind the first. */
function visibleFrames(s: Sample): [gap: Milliseconds, tokens: number][] {
  const frames = s.deltas.filter((delta) => delta[1] === 'text');
  return frames.slice(1).map((delta, i) => [delta[0] - frames[i]![0], delta[2] ?? 1]);
}

/** Medians over the measured answers by each tool's own definition, from the table in the documentation. Frames without content other than the first are not in a sample, so vLLM's last frame is left out. */
export function asOtherTools(samples: readonly Sample[]): ToolRow[] {
  const done = samples.filter((s) => s.role === 'measured' && completed(s) && s.firstToken !== null);
  const middle = (values: readonly Milliseconds[]): Milliseconds | null => (values.length === 0 ? null : percentile(sorted(values), 0.5));
  return definitions.map((definition) => ({
    tool: definition.tool,
    ttft: middle(done.flatMap((s) => one(definition.ttft(s)))),
    itl: middle(done.flatMap(definition.itl)),
    tpot: middle(done.flatMap((s) => one(definition.tpot(s)))),
    note: definition.note,
  }));
}
