/** What each metric is called, in one sentence what it is, and what other tools call it. */
import type { MetricName } from './report';

/** Words for one metric. */
export interface MetricWords {
  /** As in tables: plain, abbreviation in brackets. */
  readonly label: string;
  /** As in a narrow column, a lens or a sentence with little room. */
  readonly short: string;
  /** One sentence. */
  readonly definition: string;
  /** What other tools call it, and how theirs differs. */
  readonly elsewhere: string;
  /** Values come per request, or many per request (then intervals take the request as the unit). */
  readonly unitOf: 'request' | 'gap';
}

/** Words for every metric. */
export const metricWords: Readonly<Record<MetricName, MetricWords>> = {
  ttft: {
    label: 'First token (TTFT)',
    short: 'TTFT',
    definition: 'Time from handing the request to the HTTP client until the first generated token of any kind arrived, reasoning included.',
    elsewhere: 'TTFT everywhere, but vLLM and GenAI-Perf stop the clock at the first frame, role-only included, and inference-perf and LLMPerf ignore reasoning.',
    unitOf: 'request',
  },
  firstVisible: {
    label: 'First visible token',
    short: 'visible',
    definition: 'Time from the start until the first token of the answer itself arrived, not reasoning: what the reader waits for.',
    elsewhere: 'AIPerf and GuideLLM: time to first output token (TTFO); inference-perf calls this TTFT.',
    unitOf: 'request',
  },
  firstFrame: {
    label: 'First frame',
    short: 'frame',
    definition: 'Time from the start until the first event of the stream arrived, whether or not it held a token.',
    elsewhere: 'vLLM and GenAI-Perf call this TTFT.',
    unitOf: 'request',
  },
  chunkGap: {
    label: 'Gap between frames (ICL)',
    short: 'gap',
    definition: 'Time between one frame with content and the next, whatever number of tokens it holds; all gaps of all requests together.',
    elsewhere: 'AIPerf: ICL. vLLM and SGLang print it as ITL, taking one frame for one token.',
    unitOf: 'gap',
  },
  itl: {
    label: 'Between tokens (ITL)',
    short: 'ITL',
    definition: 'A frame of k tokens after a gap g gives k values of g/k; only where the server tells k for every frame and the sums agree.',
    elsewhere: 'ITL in GenAI-Perf; in AIPerf and GuideLLM "ITL" is a mean per request, which is TPOT here.',
    unitOf: 'gap',
  },
  tpot: {
    label: 'Pace (TPOT)',
    short: 'TPOT',
    definition: 'Time from the first to the last token, divided by the tokens that came after the first frame.',
    elsewhere: 'TPOT in vLLM and SGLang; AIPerf and GuideLLM call it ITL, and the TPOT of GuideLLM includes the first token.',
    unitOf: 'request',
  },
  total: {
    label: 'Whole answer',
    short: 'total',
    definition: 'Time from the start until the last token arrived; usage and end marks after it do not count.',
    elsewhere: 'End-to-end latency (E2E) or request latency; SGLang counts to the last line, usage included.',
    unitOf: 'request',
  },
  readerStall: {
    label: 'Reader stall',
    short: 'stall',
    definition: 'How long, over the whole answer, a fast reader had to wait for words; 0 means never slower than the reader.',
    elsewhere: 'No other tool reports it.',
    unitOf: 'request',
  },
};

/** Order of the rows: a chat is about the first token and the pace, a batch about whole answers. */
export const metricOrder: Readonly<Record<'chat' | 'batch', readonly MetricName[]>> = {
  chat: ['ttft', 'firstVisible', 'tpot', 'itl', 'chunkGap', 'readerStall', 'total', 'firstFrame'],
  batch: ['total', 'tpot', 'ttft', 'firstVisible', 'itl', 'chunkGap', 'readerStall', 'firstFrame'],
};
