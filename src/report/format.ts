/** Every failure, caveat and verdict as words; with `numbers.ts`, which it hands on, the only place that rounds or knows units. */
import type { Caveat } from './caveats';
import { answersToProve, breaches, type SloLimit } from './goodput';
import { waitReason } from './diagnosis';
import { metricWords } from './metricNames';
import { count, counted, digits, ms, outOf, pace } from './numbers';
import { proofOf } from './proof';
import type { MetricName, Report, Slo, Verdict } from './report';
import { completed, type Outcome, type OutcomeKind, type Sample } from './sample';
import { samplesNeeded } from './statistics';

export { bytes, count, counted, digits, interval, ms, msOrNone, outOf, pace, waitWords } from './numbers';

/** `served 1 904 of 1 920 prompt tokens from the cache`, shortened for a row's end. */
export function tokensCached(cached: number, prompt: number | null): string {
  return prompt === null ? `${count(cached)} cached` : `${outOf(cached, prompt)} cached`;
}

/** Mark of a token count by its source: `≈` an estimate, `≥` a lower bound, nothing when it is the server's. */
export function sourceMark(source: string | null): '' | '≈' | '≥' {
  if (source === 'deltas') return '≥';
  return source === 'local-tokenizer' ? '≈' : '';
}

const sourceWords: Readonly<Record<string, string>> = {
  token_ids: 'token ids in the stream',
  'server-count': 'the server’s running count',
  'usage-difference': 'usage in every frame',
  logprobs: 'logprobs',
  'one-per-event': 'one token an event',
  'final-usage': 'usage at the end',
  'endpoint-tokenizer': 'the endpoint’s tokenizer',
  'local-tokenizer': 'a local tokenizer (≈)',
  deltas: 'frames with content (≥)',
};

/** Where the token counts came from, in words. */
export function sourceName(source: string | null): string {
  return source === null ? 'unknown' : (sourceWords[source] ?? source);
}

/** Two or three words for how a request ended, for a row's end or a table. */
export function outcomeName(outcome: Outcome): string {
  if (outcome.kind === 'status') return outcome.status === undefined ? 'HTTP error' : `HTTP ${outcome.status}`;
  return outcomeNames[outcome.kind];
}

/** Short names of the outcomes; a `status` has its code in {@link outcomeName}. */
export const outcomeNames: Readonly<Record<OutcomeKind, string>> = {
  ok: 'ok',
  'not-streaming': 'not streamed',
  dns: 'host not found',
  connect: 'no connection',
  tls: 'TLS failed',
  status: 'HTTP error',
  'timeout-first-token': 'no first token in time',
  'timeout-stall': 'stalled',
  'timeout-total': 'too long',
  'stream-error': 'error in the stream',
  truncated: 'cut off',
  malformed: 'malformed frame',
  empty: 'empty answer',
  invalid: 'wrong answer',
  cancelled: 'cancelled',
};

/** One line, ending as a sentence does. */
function ended(text: string): string {
  const line = text.replace(/\s+/g, ' ').trim();
  return /[.!?]$/.test(line) ? line : `${line}.`;
}

/** Where a sentence is read: advice names the settings there, and in a terminal the flags too. */
export type Surface = 'editor' | 'terminal';

/** A flag with its setting for a terminal, the setting alone for the editor. */
function option(where: Surface, flag: string, setting: string): string {
  return where === 'editor' ? `(${setting})` : `(${flag}, ${setting})`;
}

/** How a request ended and what to do about it: one or two sentences with the server's own words and the name of the setting. */
export function outcomeSentence(outcome: Outcome, where: Surface = 'terminal'): string {
  const said = outcome.message === undefined || outcome.message === '' ? '' : ` It said: ${quoted(outcome.message)}`;
  switch (outcome.kind) {
    case 'ok':
      return 'The answer came to its end.';
    case 'not-streaming':
      return 'The server answered a streaming request with one JSON body, so there is only a total latency. Check that the endpoint streams, or that a proxy does not collect the answer.';
    // The message is this machine's own, in words that say what to check: nobody is quoted.
    case 'dns':
      return `${ended(outcome.message ?? 'The host name could not be found')} Check the endpoint’s url.`;
    case 'connect':
      return `${ended(outcome.message ?? 'There was no connection: check that the server runs')} Behind a proxy, check ${where === 'editor' ? 'http.proxy' : 'HTTPS_PROXY'}.`;
    case 'tls':
      if (outcome.message?.includes('did not answer')) return ended(outcome.message);
      return `${ended(outcome.message ?? 'The secure connection failed')} Check the certificate, or set the endpoint’s tls.caFile.`;
    case 'status':
      return statusSentence(outcome, said, where);
    case 'timeout-first-token':
      return 'No token came in time. Raise the endpoint’s timeouts.firstToken, or send a shorter prompt or fewer requests at once.';
    case 'timeout-stall':
      return 'The stream began and then stood still. Raise the endpoint’s timeouts.stall if such pauses are normal; otherwise look at the server’s log.';
    case 'timeout-total':
      return `The answer took longer than allowed. Raise the endpoint’s timeouts.total, or lower the maximum of tokens ${option(where, '--max-tokens', 'firstToken.probe.maxTokens')}.`;
    case 'stream-error':
      return `The server sent an error inside the stream.${said} Look at the server’s log.`;
    case 'truncated':
      return `The stream ended without its end mark.${said} The server or a proxy closed it: check their read time-outs and logs.`;
    case 'malformed':
      return `A frame was not what this API sends.${said} Check that the endpoint’s api is right${where === 'editor' ? '' : ' (--api)'}.`;
    case 'empty':
      return 'The stream ended well but held no token. Check the model’s chat template, its stop strings, and the maximum of tokens.';
    case 'invalid':
      return `The answer failed its check (firstToken.slo.valid).${said}`;
    case 'cancelled':
      return 'Cancelled by you.';
  }
}

function quoted(message: string): string {
  const line = message.replace(/\s+/g, ' ').trim();
  const short = line.length > 300 ? `${line.slice(0, 299)}…` : line;
  return `“${short}”${/[.!?…]$/.test(short) ? '' : '.'}`;
}

function statusSentence(outcome: Outcome, said: string, where: Surface): string {
  const wait = outcome.retryAfter === undefined ? '' : ` It asks to wait ${ms(outcome.retryAfter)}.`;
  const field = outcome.refusedField === undefined ? '' : ` It refuses the field ${outcome.refusedField}.`;
  return `${statusMeaning(outcome.status ?? 0)} (HTTP ${outcome.status ?? 'error'}).${field}${said}${wait}${statusStep(outcome.status ?? 0, where)}`;
}

function statusMeaning(status: number): string {
  if (status === 401) return 'The server does not accept the key';
  if (status === 403) return 'The key may not use this';
  if (status === 404) return 'The path or the model is unknown';
  if (status === 413) return 'The request is too large';
  if (status === 429) return 'Too many requests';
  if (status === 400 || status === 422) return 'The server refuses the request';
  return status >= 500 ? 'The server failed' : 'The server refused';
}

function statusStep(status: number, where: Surface): string {
  const editor = where === 'editor';
  if (status === 401) return ` Set the key: ${editor ? 'First Token: Set API Key' : 'FIRST_TOKEN_API_KEY'}.`;
  if (status === 403) return ' Check what the key is allowed to do, and the organisation.';
  if (status === 404) return ` Check the endpoint’s url and model${editor ? '' : ' (--model)'}.`;
  if (status === 413 || status === 400 || status === 422) return ' Check the prompt’s length, the model and the endpoint’s body.';
  if (status === 429) return ` Lower the concurrency (${editor ? 'firstToken.probe.concurrency' : '-c'}) or ask for a higher limit.`;
  return status >= 500 ? ' Look at the server’s log.' : '';
}

const deliveryWords: Readonly<Record<Extract<Caveat, { kind: 'delivery' }>['cause'], readonly [likely: string, step: string]>> = {
  'server-batches': ['the server sends several tokens at a time', 'vLLM and SGLang do so with --stream-interval above 1, and with speculative decoding.'],
  'buffering-proxy': ['a proxy on the way collects them', 'nginx needs both proxy_buffering off and proxy_http_version 1.1; a server can also send X-Accel-Buffering: no.'],
  'content-filter': ['a content filter holds the text back and releases it in blocks', 'On Azure, the Asynchronous Filter streams token by token.'],
  compression: ['the stream is compressed on the way', 'Switch compression off for text/event-stream in the proxy (nginx: gzip off); the probe already asks for none.'],
};

/** A caveat as sentences: what was seen, what it means for the numbers, what to do. */
export function caveatSentence(caveat: Caveat, where: Surface = 'terminal'): string {
  const cold = where === 'editor' ? 'Set firstToken.probe.cache to cold' : 'Run with --cache cold (firstToken.probe.cache)';
  switch (caveat.kind) {
    case 'too-few-samples':
      return tooFew(caveat, where);
    case 'cold-first':
      return `The first request took ${ms(caveat.first)} to its first token, the rest ${ms(caveat.rest)}: it pays for connecting and waking up, and pulls p99 and mean up. Send a warm-up first ${option(where, '--warmup 1', 'firstToken.probe.warmup')}.`;
    case 'cache-hits':
      return caveat.evidence === 'bimodal-ttft'
        ? `First tokens fall into two groups, and ${outOf(caveat.requests, caveat.of)} are in the fast one: repeats were probably served from the prefix cache, so the table mixes cold and warm. ${cold} to see the cold one.`
        : `${outOf(caveat.requests, caveat.of)} answers were served from the prefix cache (${cachedOf(caveat.cachedTokens, caveat.promptTokens)}): their TTFT is the warm one. ${cold} to see the other.`;
    case 'cold-not-cold':
      return `${outOf(caveat.requests, caveat.of)} requests found ${counted(caveat.cachedTokens, 'token')} in the cache although each was salted to be cold: their TTFT is too good. Look at a proxy or a semantic cache in front of the server.`;
    case 'several-tokens-per-frame':
      return `A frame holds ${digits(caveat.median)} tokens in the median, up to ${digits(caveat.max)}: gaps are between frames, not tokens. Read TPOT for the pace.`;
    case 'many-frames-per-read':
      return `In ${outOf(caveat.requests, caveat.of)} answers one read held many frames (up to ${count(caveat.max)}), which share one stamp: gaps of 0 are not the server’s. Read TPOT, and look for a proxy that collects frames.`;
    case 'one-read':
      return `${outOf(caveat.requests, caveat.of)} answers came in a single read: they have no pace, so TPOT and ITL leave them out. Check the path between here and the server for buffering.`;
    case 'delivery':
      return `Frames do not arrive as they are generated (${caveat.evidence}): probably ${deliveryWords[caveat.cause][0]}.${caveat.itlMeaningless ? ' ITL would mean nothing and is left out.' : ''} ${deliveryWords[caveat.cause][1]}`;
    case 'late-start':
      return `${outOf(caveat.requests, caveat.of)} requests started late (p99 ${ms(caveat.p99)}, at most ${ms(caveat.max)}): this machine, not the server, held them back, and latencies from start hide it. Lower the rate or concurrency, or read the rows from due.`;
    case 'late-write':
      return `In ${outOf(caveat.requests, caveat.of)} requests the head was written more than 1 ms after the start (at most ${ms(caveat.max)}), which is inside their TTFT. Close what else keeps this machine busy and run again.`;
    case 'clock-error':
      return `The stamps’ own error, ${ms(caveat.error)}, is more than a twentieth of ${metricName(caveat.metric)} ${caveat.percentile === undefined ? '' : `p${caveat.percentile} `}(${ms(caveat.value)}): differences smaller than that are not the server’s. Run again on a quieter machine.`;
    case 'failures-left-out':
      return `${outOf(caveat.failed, caveat.of)} requests failed (${kindsOf(caveat.kinds)}) and are in no latency; they count against the SLO. Look at the outcomes before the percentiles.`;
    case 'tokens-estimated':
      return `Token counts are ${caveat.source === 'deltas' ? 'the number of frames with content, a lower bound' : 'an estimate by a local tokenizer'}, because the server does not tell: TPOT and throughput carry its error. Ask the server for usage (stream_options.include_usage).`;
    case 'itl-unavailable':
      return `There is no ITL: ${caveat.reason}.${itlStep(caveat.reason)}`;
    case 'hidden-reasoning':
      return caveat.tokens === 0
        ? `In ${counted(caveat.requests, 'answer')} the model reasoned out of sight and the server does not say how many tokens that took: TPOT is none there, and TTFT contains the time. Lower the reasoning effort in the endpoint’s body to see the difference.`
        : `About ${counted(caveat.tokens, 'reasoning token')} never appeared in the stream in ${counted(caveat.requests, 'answer')}: they are in throughput and cost, not in TPOT, and TTFT contains the time they took. Lower the reasoning effort in the endpoint’s body to see the difference.`;
    case 'contradicting-usage':
      return `The server’s own counts contradict each other (${caveat.what}) in ${counted(caveat.requests, 'answer')}: the last ones were taken. Compare with the server’s log before relying on tokens.`;
    case 'connection-not-reused':
      return `${outOf(caveat.requests, caveat.of)} requests had to open a new connection, and its time is inside their TTFT (shown beside it). Check the server’s keep-alive.`;
    case 'unrendered-variables':
      return `The prompt was sent with ${caveat.names.length === 1 ? 'a variable' : 'variables'} as written (${caveat.names.join(', ')}): the answer and the token counts are not those of real use. ${caveat.names.every((name) => /^(?:\{\{|\$\{)/.test(name)) ? 'Markdown, plain text and requests have no variables: write a value in their place, or use a template format.' : 'Give values in the file’s sample inputs.'}`;
    case 'user-message-added':
      return `The prompt has no user message and this API takes none without: “${caveat.text}” was sent as one. Write a user message, or the sample question, into the file.`;
    case 'h2-stamps':
      return 'The connection was HTTP/2: stamps are per DATA frame, and streams share one connection. Compare only with other HTTP/2 runs.';
    case 'field-refused':
      return `The server refused ${caveat.field}, so it was left out: the counts it would give are missing.`;
    case 'tls-not-verified':
      return `The certificate of ${caveat.origin} was not checked: anyone on the way could have answered. Set the endpoint’s tls.caFile instead of tls.insecure.`;
    case 'stopped':
      return stopSentence(caveat);
    case 'stamp-order':
      return `Stamps of ${counted(caveat.requests, 'request')} are out of order (${caveat.what}): do not trust their times. Please report this with the tape of the request.`;
    case 'client-bottleneck':
      return `This machine was the limit, not the server (${caveat.detail}): no verdict on the SLO is given. Lower the load or use a faster machine.`;
  }
}

/** What helps depends on why: counts help only where counts are missing. */
function itlStep(reason: string): string {
  if (reason.includes('one read')) return '';
  if (reason.includes('did not arrive')) return ' Read TPOT for the pace.';
  return ' The gaps between frames and TPOT are measured; on vLLM and SGLang return_token_ids in the endpoint’s body gives it.';
}

function metricName(metric: string): string {
  return metric in metricWords ? metricWords[metric as MetricName].short : metric;
}

function tooFew({ metric, percentile, n, needed }: Extract<Caveat, { kind: 'too-few-samples' }>, where: Surface): string {
  const lacking = [50, 90, 95, 99].filter((p) => p >= percentile && n < samplesNeeded(p / 100)).map((p) => `p${p}`);
  const names = lacking.length > 1 ? `${lacking.slice(0, -1).join(', ')} and ${lacking.at(-1) ?? ''}` : `p${percentile}`;
  return `${counted(n, 'answer')} ${n === 1 ? 'is' : 'are'} too few to bound ${names} of ${metricName(metric)}: the next run may say something else. p${percentile} needs ${count(needed)} ${option(where, `-n ${needed}`, 'firstToken.probe.requests')}.`;
}

function cachedOf(cached: number | null, prompt: number | null): string {
  if (cached === null) return 'how many tokens is unknown';
  return prompt === null ? counted(cached, 'token') : `${outOf(cached, prompt)} tokens`;
}

function kindsOf(kinds: Readonly<Partial<Record<OutcomeKind, number>>>): string {
  return Object.entries(kinds).map(([kind, n]) => `${outcomeNames[kind as OutcomeKind]} ${count(n)}`).join(', ');
}

function stopSentence({ by, detail }: Extract<Caveat, { kind: 'stopped' }>): string {
  const rest = detail === '' ? '' : ` (${detail})`;
  switch (by) {
    case 'user':
      return `Stopped by you${rest}: the numbers are of what had finished.`;
    case 'breaker':
      return `Stopped because the endpoint kept failing${rest}: the numbers are of what had finished. Fix the first error, then run again.`;
    case 'budget':
      return `Stopped by the run’s budget${rest}: the numbers are of what had finished. Raise the budget to go on.`;
    case 'interrupted':
      return `The run was cut short${rest}: the numbers are of what had been written. Run it again for the whole.`;
  }
}

const limitNames: Readonly<Record<SloLimit, string>> = { ttft: 'TTFT', firstVisible: 'first visible token', tpot: 'TPOT', gapP99: 'gap p99', total: 'total', valid: 'valid answer' };

/** The limits of an SLO in words: `TTFT ≤ 500 ms, TPOT ≤ 30 ms, in at least 95 of 100 answers`. */
export function sloText(slo: Slo): string {
  const limits = (['ttft', 'firstVisible', 'tpot', 'gapP99', 'total'] as const).flatMap((limit) => (slo[limit] === undefined ? [] : [`${limitNames[limit]} ≤ ${ms(slo[limit])}`]));
  if (slo.valid !== undefined) limits.push('the answer is valid');
  return `${limits.length === 0 ? 'the answer comes' : limits.join(', ')}, in at least ${attainmentText(slo)} answers`;
}

function attainmentText(slo: Slo): string {
  return `${digits(slo.attainment * 100)} of 100`;
}

/** What a verdict looks like before it is read; VS Code's testing icons and colours have the same three. */
export function verdictIcon(report: Report): 'passed' | 'failed' | 'queued' {
  const proof = proofOf(report);
  if (proof !== null) return proof.state === 'yes' ? 'passed' : proof.state === 'less' || proof.state === 'failed' ? 'failed' : 'queued';
  if (report.verdict === 'met') return 'passed';
  return report.verdict === 'missed' ? 'failed' : 'queued';
}

/** Marks for a terminal or a table; never the only carrier of the meaning. */
export const verdictMarks: Readonly<Record<Verdict, string>> = { met: '✓', missed: '✗', unclear: '?' };

/** Verdict as two words for a lens: `meets SLO`. */
export function verdictShort(verdict: Verdict | null): string {
  if (verdict === null) return 'no verdict';
  return { met: 'meets SLO', missed: 'misses SLO', unclear: 'SLO unclear' }[verdict];
}

/**
 * The first thing a person reads: whether the SLO holds, of how many, and the numbers it is about; or why there is no answer. `samples`
 * stands in for the report's own while they travel apart.
 */
export function verdictSentence(report: Report, samples: readonly Sample[] = report.samples, where: Surface = 'terminal'): string {
  const proof = proofOf(report);
  if (proof !== null) return proof.verdict ?? 'No pair of the proof has been answered yet.';
  const { attainment: reached, plan } = report;
  const answers = (report.outcomes.ok ?? 0) + (report.outcomes['not-streaming'] ?? 0);
  if (reached === null) return answers === 0 && Object.keys(report.outcomes).length > 0 ? 'Stopped before the first answer came.' : 'No request has ended yet.';
  if (answers === 0) return noAnswer(report, samples, where);
  const slo = `the ${plan.objective} SLO`;
  if (report.verdict === 'met') return `Meets ${slo}: ${outOf(reached.good, reached.due)} answers. ${numbersSentence(report)}`;
  if (report.verdict === 'missed') return `Misses ${slo}: ${missReason(report, samples)}.`;
  if (report.caveats.some(({ kind }) => kind === 'client-bottleneck')) return `No verdict on ${slo}: this machine was the limit, not the server. ${outOf(reached.good, reached.due)} answers were within it. ${numbersSentence(report)}`;
  if (reached.good === reached.due) {
    const needed = answersToProve(plan.slo);
    return `${reached.due === 1 ? 'The one answer so far meets' : `All ${counted(reached.due, 'answer')} so far meet`} ${slo}${needed === null ? '' : `; ${count(needed)} would prove it`}. ${numbersSentence(report)}`;
  }
  return `Unclear: ${outOf(reached.good, reached.due)} meet ${slo}, which asks for ${attainmentText(plan.slo)}; ${missReason(report, samples)}.`;
}

function noAnswer(report: Report, samples: readonly Sample[], where: Surface): string {
  const failed = samples.find((s) => s.role === 'measured' && !completed(s) && s.outcome.kind !== 'cancelled');
  const due = report.attainment?.due ?? 0;
  if (failed === undefined) return `No answer came: ${kindsOf(report.outcomes)}.`;
  const same = samples.filter((s) => s.role === 'measured' && outcomeName(s.outcome) === outcomeName(failed.outcome)).length;
  return `No answer came (${outcomeName(failed.outcome)} in ${outOf(same, due)}). ${outcomeSentence(failed.outcome, where)}`;
}

/** `First token 212 ms (p99 410), then 31 tokens/s.`, or for a batch the throughput first. */
export function numbersSentence(report: Report): string {
  const { ttft: first, total: whole } = report.summary;
  if (report.plan.objective === 'batch' && report.throughput.tokensPerSecond !== null) {
    const cost = report.throughput.tokensPerCost;
    const price = cost === null ? '' : `, ${count(Number(cost.value.toPrecision(3)))} tokens per ${cost.currency}`;
    return `${pace(report.throughput.tokensPerSecond)} in all${price}${whole === null ? '' : `; an answer takes ${withP99(whole)}`}.`;
  }
  if (first === null) return whole === null ? '' : `An answer takes ${withP99(whole)}.`;
  return `First token ${withP99(first)}${report.perUser === null ? '' : `, then ${pace(report.perUser.p50)}`}.`;
}

function withP99(row: { readonly p50: number; readonly p99: number }): string {
  const [middle, slow] = [ms(row.p50), ms(row.p99)];
  const unit = middle.split(' ').at(-1)!;
  return `${middle} (p99 ${slow.endsWith(` ${unit}`) ? slow.slice(0, -unit.length - 1) : slow})`;
}

/** What most requests broke, in how many; behind a late first token, what the wait was made of. */
function missReason(report: Report, samples: readonly Sample[]): string {
  const { slo } = report.plan;
  const { due, failed, by } = breaches(samples, slo);
  const reached = report.attainment!;
  const reasons = [...by].map(([limit, n]) => ({ n, limit, text: `${limitText(limit, slo)} in ${outOf(n, due)}` }));
  if (failed > 0) reasons.push({ n: failed, limit: 'valid', text: `${outOf(failed, due)} failed (${kindsOf(failuresOf(report.outcomes))})` });
  reasons.sort((a, b) => b.n - a.n);
  const [worst] = reasons;
  if (worst === undefined) return `${outOf(reached.good, reached.due)} answers are good`;
  const wait = worst.limit === 'ttft' || worst.limit === 'firstVisible' ? waitReason(samples) : null;
  const list = reasons.slice(0, 2).map(({ text }) => text).join(', ');
  return wait === null ? list : `${list}; ${wait}`;
}

function limitText(limit: SloLimit, slo: Slo): string {
  const most = limit === 'valid' ? undefined : slo[limit];
  return most === undefined ? 'the answer is not valid' : `${limitNames[limit]} above ${ms(most)}`;
}

function failuresOf(outcomes: Report['outcomes']): Report['outcomes'] {
  return Object.fromEntries(Object.entries(outcomes).filter(([kind]) => !['ok', 'not-streaming', 'cancelled', 'invalid'].includes(kind)));
}

/** A lens after a run: `TTFT 212 ms (p99 410) · 31 tok/s · meets SLO`. */
export function lensText(report: Report): string {
  const { ttft: first, total: whole } = report.summary;
  const parts = [
    first === null ? (whole === null ? 'no answer' : `total ${withP99(whole)}`) : `TTFT ${withP99(first)}`,
    report.perUser === null ? '' : `${digits(report.perUser.p50)} tok/s`,
    report.verdict === null ? '' : verdictShort(report.verdict),
  ];
  return parts.filter((part) => part !== '').join(' · ');
}

/** The status bar behind its icon: `h200: 212 ms · 31 tok/s`. */
export function statusText(report: Report): string {
  const first = report.summary.ttft;
  const numbers = [first === null ? 'no answer' : ms(first.p50), report.perUser === null ? '' : `${digits(report.perUser.p50)} tok/s`];
  return `${report.endpoint.name}: ${numbers.filter((part) => part !== '').join(' · ')}`;
}

/** The measuring error in words: `This run’s stamps are right to 0.3 ms (p99 2.1).` */
export function clockErrorSentence(error: Report['clockError']): string {
  if (error === null) return 'The measuring error of this run is not known: its canary saw no frame.';
  return `This run’s stamps are right to ${withP99(error)}, at most ${ms(error.max)} off in ${counted(error.n, 'canary frame')}.`;
}

/** A cost rate in words: `1 230 000 tokens per USD (GPU price)`. */
export function costText(cost: NonNullable<Report['throughput']['tokensPerCost']>): string {
  return `${digits(cost.value)} tokens per ${cost.currency} (${cost.from === 'gpu' ? 'by the GPU’s price per hour' : 'by the token prices'})`;
}
