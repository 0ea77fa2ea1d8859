/**
 * The server's own view: its Prometheus metrics read before, during and after a run. Names by server, from their documentation
 * (docs.vllm.ai design/metrics, SGLang production metrics, TGI reference/metrics, llama.cpp server README, TensorRT-LLM collector.py,
 * Dynamo prometheus_names.rs). Each number keeps the server's own definition; none of them is a client number.
 */
import parsePrometheus from 'parse-prometheus-text-format';
import type { ServerView } from '../report/report';
import type { Milliseconds } from '../report/sample';

/** One series of a scrape: labels (without the name) and value. */
export interface Series {
  readonly labels: Readonly<Record<string, string>>;
  readonly value: number;
}

/** A scrape: metric name → its series. */
export type Scrape = ReadonlyMap<string, readonly Series[]>;

/** A longer page would take longer to read than the time between two of them. */
const longestPage = 4_000_000;

/** Parses the text exposition format. Text that is something else (an HTML page, say) or longer than 4 MB gives an empty scrape; values without end are left out. Never throws. */
export function parseScrape(text: string): Scrape {
  const scrape = new Map<string, Series[]>();
  if (text.length > longestPage) return scrape;
  // Without the type lines the parser keeps every bucket with its labels; with them it merges histograms of several label sets into the last.
  const plain = text.split(/\r?\n/).filter((line) => /^[A-Za-z_:][\w:]*(\{|\s)/.test(line) && !/^\w+:\/\//.test(line));
  for (const line of plain) {
    let families;
    try {
      families = parsePrometheus(`${line}\n`);
    } catch {
      continue;
    }
    for (const family of families) {
      for (const metric of family.metrics) {
        const value = metric.value === undefined ? Number.NaN : Number(metric.value);
        if (!Number.isFinite(value)) continue;
        const list = scrape.get(family.name) ?? [];
        list.push({ labels: metric.labels ?? {}, value });
        scrape.set(family.name, list);
      }
    }
  }
  return scrape;
}

interface Known {
  readonly server: string;
  readonly prefix: RegExp;
  readonly gauges: readonly (readonly [names: readonly string[], label: string, combine: 'sum' | 'max'])[];
  readonly counters: readonly (readonly [names: readonly string[], label: string])[];
  readonly histograms: readonly (readonly [names: readonly string[], label: string])[];
  /** Names of the hit and query counters of the prefix cache, in tokens or blocks. */
  readonly prefixCache: readonly (readonly [hits: string, queries: string, queriesAre: 'all' | 'misses'])[];
}

const servers: readonly Known[] = [
  {
    server: 'vllm',
    prefix: /^vllm:/,
    gauges: [
      [['vllm:num_requests_running'], 'running requests', 'sum'],
      [['vllm:num_requests_waiting'], 'waiting requests', 'sum'],
      [['vllm:kv_cache_usage_perc', 'vllm:gpu_cache_usage_perc'], 'KV cache in use (share)', 'max'],
    ],
    counters: [
      [['vllm:prompt_tokens_total', 'vllm:prompt_tokens'], 'prompt tokens'],
      [['vllm:generation_tokens_total', 'vllm:generation_tokens'], 'generated tokens'],
      [['vllm:num_preemptions_total', 'vllm:num_preemptions'], 'preemptions'],
      [['vllm:request_success_total', 'vllm:request_success'], 'finished requests'],
    ],
    histograms: [
      [['vllm:time_to_first_token_seconds'], 'server TTFT: from arrival in the API server'],
      [['vllm:inter_token_latency_seconds', 'vllm:time_per_output_token_seconds'], 'server inter-token latency'],
      [['vllm:e2e_request_latency_seconds'], 'server total'],
      [['vllm:request_queue_time_seconds'], 'server queue'],
      [['vllm:request_prefill_time_seconds'], 'server prefill'],
      [['vllm:request_decode_time_seconds'], 'server decode'],
    ],
    prefixCache: [
      ['vllm:prefix_cache_hits_total', 'vllm:prefix_cache_queries_total', 'all'],
      ['vllm:prefix_cache_hits', 'vllm:prefix_cache_queries', 'all'],
      ['vllm:gpu_prefix_cache_hits_total', 'vllm:gpu_prefix_cache_queries_total', 'all'],
      ['vllm:gpu_prefix_cache_hits', 'vllm:gpu_prefix_cache_queries', 'all'],
    ],
  },
  {
    server: 'sglang',
    prefix: /^sglang:/,
    gauges: [
      [['sglang:num_running_reqs'], 'running requests', 'sum'],
      [['sglang:num_queue_reqs'], 'waiting requests', 'sum'],
      [['sglang:token_usage'], 'KV cache in use (share)', 'max'],
      [['sglang:cache_hit_rate'], 'prefix-cache hit rate (as the server averages it)', 'max'],
      [['sglang:gen_throughput'], 'generated tokens/s (as the server averages it)', 'sum'],
    ],
    counters: [
      [['sglang:prompt_tokens_total'], 'prompt tokens'],
      [['sglang:generation_tokens_total'], 'generated tokens'],
      [['sglang:cached_tokens_total'], 'cached tokens'],
      [['sglang:num_requests_total'], 'finished requests'],
      [['sglang:num_aborted_requests_total'], 'aborted requests'],
    ],
    histograms: [
      [['sglang:time_to_first_token_seconds'], 'server TTFT: from arrival in the API server'],
      [['sglang:inter_token_latency_seconds', 'sglang:time_per_output_token_seconds'], 'server inter-token latency'],
      [['sglang:e2e_request_latency_seconds'], 'server total'],
      [['sglang:queue_time_seconds'], 'server queue'],
    ],
    prefixCache: [['sglang:cached_tokens_total', 'sglang:prompt_tokens_total', 'all']],
  },
  {
    server: 'tgi',
    prefix: /^tgi_/,
    gauges: [
      [['tgi_batch_current_size'], 'running requests', 'sum'],
      [['tgi_queue_size'], 'waiting requests', 'sum'],
    ],
    counters: [
      [['tgi_request_count', 'tgi_request_count_total'], 'requests'],
      [['tgi_request_success', 'tgi_request_success_total'], 'finished requests'],
    ],
    histograms: [
      [['tgi_request_queue_duration'], 'server queue'],
      [['tgi_request_inference_duration'], 'server inference (prefill and decode)'],
      [['tgi_request_mean_time_per_token_duration'], 'server mean time per token, a value a request'],
      [['tgi_request_duration'], 'server total'],
    ],
    prefixCache: [],
  },
  {
    server: 'llamacpp',
    prefix: /^llamacpp:/,
    gauges: [
      [['llamacpp:requests_processing'], 'running requests', 'sum'],
      [['llamacpp:requests_deferred'], 'waiting requests', 'sum'],
      [['llamacpp:kv_cache_usage_ratio'], 'KV cache in use (share)', 'max'],
      [['llamacpp:n_busy_slots_per_decode'], 'busy slots per decode (average since start)', 'max'],
    ],
    counters: [
      [['llamacpp:prompt_tokens_total'], 'prompt tokens processed (cached ones not counted)'],
      [['llamacpp:prompt_seconds_total'], 'seconds of prefill'],
      [['llamacpp:tokens_predicted_total'], 'generated tokens'],
      [['llamacpp:tokens_predicted_seconds_total'], 'seconds of decode'],
      [['llamacpp:n_decode_total'], 'decode calls'],
    ],
    histograms: [],
    prefixCache: [],
  },
  {
    server: 'tensorrt-llm',
    prefix: /^trtllm[_:]/,
    gauges: [
      [['trtllm_num_requests_running', 'trtllm:num_requests_running'], 'running requests', 'sum'],
      [['trtllm_num_requests_waiting', 'trtllm:num_requests_waiting'], 'waiting requests', 'sum'],
      [['trtllm_kv_cache_utilization', 'trtllm:kv_cache_utilization'], 'KV cache in use (share)', 'max'],
      [['trtllm_kv_cache_hit_rate', 'trtllm:kv_cache_hit_rate'], 'prefix-cache hit rate (as the server averages it)', 'max'],
    ],
    counters: [[['trtllm_prompt_cached_tokens_total'], 'cached tokens']],
    histograms: [
      [['trtllm_time_to_first_token_seconds', 'trtllm:time_to_first_token_seconds'], 'server TTFT: from arrival in the server'],
      [['trtllm_time_per_output_token_seconds', 'trtllm:time_per_output_token_seconds'], 'server time per output token'],
      [['trtllm_e2e_request_latency_seconds', 'trtllm:e2e_request_latency_seconds'], 'server total'],
      [['trtllm_request_queue_time_seconds', 'trtllm:request_queue_time_seconds'], 'server queue'],
      [['trtllm_request_prefill_time_seconds'], 'server prefill'],
      [['trtllm_request_decode_time_seconds'], 'server decode'],
    ],
    prefixCache: [['trtllm_kv_cache_reused_blocks_total', 'trtllm_kv_cache_missed_blocks_total', 'misses']],
  },
  {
    server: 'dynamo',
    prefix: /^\w+_frontend_(requests_total|inflight_requests|queued_requests|time_to_first_token_seconds)/,
    gauges: [
      [['dynamo_frontend_inflight_requests'], 'requests in flight at the frontend', 'sum'],
      [['dynamo_frontend_queued_requests'], 'waiting requests at the frontend', 'sum'],
    ],
    counters: [
      [['dynamo_frontend_requests_total'], 'requests'],
      [['dynamo_frontend_output_tokens_total'], 'generated tokens'],
    ],
    histograms: [
      [['dynamo_frontend_time_to_first_token_seconds'], 'frontend TTFT: from arrival in the frontend'],
      [['dynamo_frontend_inter_token_latency_seconds'], 'frontend inter-token latency'],
      [['dynamo_frontend_request_duration_seconds'], 'frontend total'],
    ],
    prefixCache: [],
  },
];

/** Which server's metrics a scrape holds, or null. */
export function serverOf(scrape: Scrape): string | null {
  return knownOf(scrape)?.server ?? null;
}

function knownOf(scrape: Scrape): Known | undefined {
  const names = [...scrape.keys()];
  return servers.find((s) => names.some((name) => s.prefix.test(name)));
}

function present(scrape: Scrape, names: readonly string[], suffix = ''): string | undefined {
  return names.find((name) => scrape.has(name + suffix));
}

function total(scrape: Scrape, name: string, combine: 'sum' | 'max' = 'sum'): number | null {
  const series = scrape.get(name);
  if (!series || series.length === 0) return null;
  return finite(series.reduce((all, { value }) => (combine === 'sum' ? all + value : Math.max(all, value)), combine === 'sum' ? 0 : -Infinity));
}

/** A number that JSON can hold, or null. */
function finite(value: number | null): number | null {
  return value !== null && Number.isFinite(value) ? value : null;
}

/** After − before; null when the name is missing or the counter went back (the server restarted). A family that appears during the run counts from zero. */
function difference(before: Scrape, after: Scrape, name: string): number | null {
  const end = total(after, name);
  if (end === null) return null;
  const change = end - (total(before, name) ?? 0);
  return change < 0 ? null : finite(change);
}

interface Buckets {
  readonly bounds: readonly number[];
  /** Cumulative counts, one a bound. */
  readonly counts: readonly number[];
  readonly n: number;
  readonly sum: number | null;
}

function bucketDifference(before: Scrape, after: Scrape, name: string): Buckets | null {
  const byBound = new Map<number, number>();
  for (const [scrape, sign] of [[after, 1], [before, -1]] as const) {
    for (const { labels, value } of scrape.get(`${name}_bucket`) ?? []) {
      const bound = Number((labels['le'] ?? '').replace(/^\+Inf$/, 'Infinity'));
      if (!Number.isNaN(bound)) byBound.set(bound, (byBound.get(bound) ?? 0) + sign * value);
    }
  }
  const bounds = [...byBound.keys()].sort((a, b) => a - b);
  const counts = bounds.map((b) => byBound.get(b) ?? 0);
  const n = difference(before, after, `${name}_count`) ?? counts.at(-1) ?? 0;
  if (counts.some((c) => !(c >= 0 && c < Infinity)) || n <= 0) return null;
  return { bounds, counts, n, sum: difference(before, after, `${name}_sum`) };
}

/**
 * A quantile by linear interpolation inside its bucket (Prometheus' histogram_quantile), in the histogram's unit.
 * In the first bucket only its bound is known, since all that is in it may lie at its lower end; in the last, open one only the bound before it.
 * Null without counts.
 */
export function bucketQuantile(buckets: { readonly bounds: readonly number[]; readonly counts: readonly number[] }, q: number): number | { readonly above: number } | { readonly below: number } | null {
  const n = buckets.counts.at(-1) ?? 0;
  if (n <= 0) return null;
  const rank = q * n;
  const i = buckets.counts.findIndex((c) => c >= rank);
  const bound = buckets.bounds[i] ?? Number.POSITIVE_INFINITY;
  const lower = i > 0 ? (buckets.bounds[i - 1] ?? 0) : 0;
  if (bound === Number.POSITIVE_INFINITY) return { above: lower };
  if (i === 0) return { below: bound };
  const below = i > 0 ? (buckets.counts[i - 1] ?? 0) : 0;
  const inside = (buckets.counts[i] ?? 0) - below;
  return inside <= 0 ? bound : lower + (bound - lower) * ((rank - below) / inside);
}

/** The difference of two scrapes and the gauges between them as the report's ServerView; null when no known server's metrics are there. */
export function serverView(source: string, scrapes: readonly { readonly t: Milliseconds; readonly scrape: Scrape }[]): ServerView | null {
  const first = scrapes[0];
  const last = scrapes.at(-1);
  if (!first || !last || scrapes.length < 2) return null;
  const known = knownOf(last.scrape) ?? knownOf(first.scrape);
  if (!known) return null;
  const notes: string[] = [];
  const gauges = known.gauges.flatMap(([names, label, combine]) => {
    const points = scrapes.flatMap(({ t, scrape }) => {
      const name = present(scrape, names);
      const value = name === undefined ? null : total(scrape, name, combine);
      return value === null ? [] : [[t, value] as const];
    });
    const name = present(last.scrape, names);
    return points.length > 0 && name !== undefined ? [{ name, label, points }] : [];
  });
  const counters = known.counters.flatMap(([names, label]) => {
    const name = present(last.scrape, names);
    return name === undefined ? [] : [{ name, label, difference: difference(first.scrape, last.scrape, name) }];
  });
  if (counters.some((c) => c.difference === null)) notes.push('A counter went back during the run: the server restarted, so its differences are unknown.');
  const bound = (seconds: number): string => String(Number((seconds * 1000).toPrecision(6)));
  const toMs = (q: ReturnType<typeof bucketQuantile>) => (q === null ? null : typeof q === 'number' ? finite(q * 1000) : 'above' in q ? `> ${bound(q.above)}` : `≤ ${bound(q.below)}`);
  const histograms = known.histograms.flatMap(([names, label]) => {
    const name = present(last.scrape, names, '_bucket');
    const buckets = name === undefined ? null : bucketDifference(first.scrape, last.scrape, name);
    if (name === undefined || buckets === null) return [];
    const quantile = (q: number) => toMs(bucketQuantile(buckets, q));
    return [{ name, label, unit: 'ms' as const, n: buckets.n, mean: buckets.sum === null ? null : finite((buckets.sum / buckets.n) * 1000), p50: quantile(0.5), p90: quantile(0.9), p99: quantile(0.99) }];
  });
  if (histograms.length > 0) notes.push('The server’s percentiles are interpolated inside its histogram buckets and hold all its requests of the time, not only this run’s. ≤ and > stand where only the bound of the first or last bucket is known.');
  return { source, server: known.server, gauges, counters, histograms, prefixCacheHitRate: hitRate(known, first.scrape, last.scrape), notes };
}

function hitRate(known: Known, before: Scrape, after: Scrape): number | null {
  for (const [hitName, queryName, kind] of known.prefixCache) {
    const hits = difference(before, after, hitName);
    const queries = difference(before, after, queryName);
    if (hits === null || queries === null) continue;
    const all = kind === 'all' ? queries : hits + queries;
    if (all > 0) return finite(hits / all);
  }
  return null;
}

/** Cached and asked prompt tokens between two scrapes, where the server counts them; for a proof on an idle server. */
export function cachedTokensBetween(before: Scrape, after: Scrape): { readonly cached: number; readonly asked: number } | null {
  const known = knownOf(after);
  for (const [hitName, queryName, kind] of known?.prefixCache ?? []) {
    const cached = difference(before, after, hitName);
    const asked = difference(before, after, queryName);
    if (cached !== null && asked !== null && kind === 'all') return { cached, asked };
  }
  return null;
}

function gaugesOf(scrape: Scrape): Scrape {
  const known = knownOf(scrape);
  const names = known?.gauges.flatMap(([all]) => all) ?? [];
  return new Map(names.flatMap((name) => (scrape.has(name) ? [[name, scrape.get(name)!] as const] : [])));
}

/** Reads the metrics now, each `every` ms, and when stopped; a failed read leaves a gap, a server without metrics gives null. */
export function watchServer(options: {
  readonly source: string;
  /** The text of the metrics page, or null when there is none. Must give up by itself. */
  readonly read: () => Promise<string | null>;
  readonly now: () => Milliseconds;
  readonly every: Milliseconds;
}): { ready: Promise<boolean>; stop(): Promise<ServerView | null> } {
  const scrapes: { t: Milliseconds; scrape: Scrape }[] = [];
  const scrapeOnce = async (): Promise<boolean> => {
    const text = await options.read().catch(() => null);
    if (text === null) return false;
    const scrape = parseScrape(text);
    if (scrape.size === 0) return false;
    scrapes.push({ t: options.now(), scrape });
    // Between the first and the last only gauges are read: a long run would fill the memory with the rest.
    const middle = scrapes.length - 2;
    if (middle > 0) scrapes[middle] = { t: scrapes[middle]!.t, scrape: gaugesOf(scrapes[middle]!.scrape) };
    return true;
  };
  let timer: NodeJS.Timeout | undefined;
  let inFlight: Promise<unknown> = Promise.resolve();
  let busy = false;
  const ready = scrapeOnce().then((found) => {
    if (found) {
      timer = setInterval(() => {
        if (busy) return;
        busy = true;
        inFlight = scrapeOnce().finally(() => {
          busy = false;
        });
      }, options.every);
      timer.unref();
    }
    return found;
  });
  return {
    ready,
    async stop() {
      const found = await ready;
      clearInterval(timer);
      await inFlight;
      if (!found) return null;
      await scrapeOnce();
      return serverView(options.source, scrapes);
    },
  };
}
