import assert from 'node:assert/strict';
import fc from 'fast-check';
import { bucketQuantile, cachedTokensBetween, parseScrape, serverOf, serverView, watchServer } from '../../../src/probe/serverMetrics';

const vllm = (running: number, n: number, hits: number, queries: number) => `# HELP vllm:num_requests_running Number of requests
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a \\"b\\", c"} ${running}
vllm:num_requests_running{engine="1",model_name="a"} 1.0
# TYPE vllm:time_to_first_token_seconds histogram
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.1"} ${n}
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.2"} ${2 * n}
vllm:time_to_first_token_seconds_bucket{engine="0",le="+Inf"} ${2 * n}
vllm:time_to_first_token_seconds_count{engine="0"} ${2 * n}
vllm:time_to_first_token_seconds_sum{engine="0"} ${0.15 * n}
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.1"} 0
vllm:time_to_first_token_seconds_bucket{engine="1",le="0.2"} 0
vllm:time_to_first_token_seconds_bucket{engine="1",le="+Inf"} 0
vllm:time_to_first_token_seconds_count{engine="1"} 0
vllm:time_to_first_token_seconds_sum{engine="1"} 0
# TYPE vllm:prefix_cache_hits_total counter
vllm:prefix_cache_hits_total{engine="0"} ${hits}
vllm:prefix_cache_queries_total{engine="0"} ${queries}
vllm:generation_tokens_total{engine="0"} ${n * 10}
`;

describe('server metrics', () => {
  it('sums label sets, keeps names with colons and survives quotes in labels', () => {
    const scrape = parseScrape(vllm(2, 10, 0, 0));
    assert.equal(serverOf(scrape), 'vllm');
    assert.deepEqual(scrape.get('vllm:num_requests_running')?.map((s) => s.value), [2, 1]);
    assert.equal(scrape.get('vllm:time_to_first_token_seconds_bucket')?.length, 6);
  });

  it('takes the difference of before and after, with quantiles inside the bucket', () => {
    const view = serverView('http://x/metrics', [{ t: 0, scrape: parseScrape(vllm(0, 10, 100, 200)) }, { t: 500, scrape: parseScrape(vllm(4, 15, 150, 250)) }, { t: 1000, scrape: parseScrape(vllm(1, 20, 190, 300)) }]);
    assert.ok(view);
    const ttft = view.histograms[0];
    assert.equal(ttft?.name, 'vllm:time_to_first_token_seconds');
    assert.equal(ttft.n, 20);
    // 10 of 20 lie in the first bucket, so p50 is at most its bound; p90 lies 8/10 into the bucket from 100 to 200 ms.
    assert.equal(ttft.p50, '≤ 100');
    assert.ok(Math.abs(Number(ttft.p90) - 180) < 1e-9);
    assert.ok(Math.abs((ttft.mean ?? 0) - 75) < 1e-9);
    assert.ok(Math.abs((view.prefixCacheHitRate ?? 0) - 0.9) < 1e-9);
    assert.deepEqual(view.gauges.find((g) => g.label === 'running requests')?.points, [[0, 1], [500, 5], [1000, 2]]);
    assert.equal(view.counters.find((c) => c.label === 'generated tokens')?.difference, 100);
  });

  it('knows a restart by a counter that went back', () => {
    const view = serverView('x', [{ t: 0, scrape: parseScrape(vllm(0, 50, 100, 200)) }, { t: 1, scrape: parseScrape(vllm(0, 1, 0, 0)) }]);
    assert.equal(view?.counters.find((c) => c.label === 'generated tokens')?.difference, null);
    assert.equal(view?.prefixCacheHitRate, null);
    assert.equal(view?.histograms.length, 0);
    assert.match(view?.notes[0] ?? '', /restarted/);
  });

  it('counts from zero a family that appears during the run', () => {
    const view = serverView('x', [{ t: 0, scrape: parseScrape('other 1\n') }, { t: 1, scrape: parseScrape(vllm(0, 5, 40, 80)) }]);
    assert.equal(view?.prefixCacheHitRate, 0.5);
  });

  it('says "> last bound" for the open bucket', () => {
    assert.deepEqual(bucketQuantile({ bounds: [1, 2, Infinity], counts: [1, 2, 10] }, 0.99), { above: 2 });
    assert.equal(bucketQuantile({ bounds: [1, Infinity], counts: [0, 0] }, 0.5), null);
    assert.deepEqual(bucketQuantile({ bounds: [1, 2, Infinity], counts: [4, 8, 8] }, 0.5), { below: 1 });
    assert.equal(bucketQuantile({ bounds: [1, 2, Infinity], counts: [4, 8, 8] }, 0.75), 1.5);
  });

  it('does not invent percentiles where everything lies in the first bucket', () => {
    const page = (n: number, sum: number) => parseScrape(`vllm:num_requests_running 0\nvllm:request_queue_time_seconds_bucket{le="0.05"} ${n}\nvllm:request_queue_time_seconds_bucket{le="0.1"} ${n}\nvllm:request_queue_time_seconds_bucket{le="+Inf"} ${n}\nvllm:request_queue_time_seconds_count ${n}\nvllm:request_queue_time_seconds_sum ${sum}\n`);
    const view = serverView('x', [{ t: 0, scrape: page(0, 0) }, { t: 1, scrape: page(20, 0.0134) }]);
    const [queue] = view?.histograms ?? [];
    assert.deepEqual([queue?.mean, queue?.p50, queue?.p90, queue?.p99], [0.67, '≤ 50', '≤ 50', '≤ 50']);
    assert.ok(view?.notes.some((note) => note.includes('≤ and >')));
  });

  it('reads llama.cpp, SGLang, TGI, TensorRT-LLM and Dynamo names', () => {
    for (const [text, server] of [
      ['llamacpp:requests_processing 1\nllamacpp:tokens_predicted_total 12\n', 'llamacpp'],
      ['sglang:num_running_reqs{model_name="m"} 3.0\nsglang:cached_tokens_total{x="1"} 4\nsglang:prompt_tokens_total{x="1"} 8\n', 'sglang'],
      ['tgi_queue_size 2\ntgi_batch_current_size 4\n', 'tgi'],
      ['trtllm_num_requests_running 2\n', 'tensorrt-llm'],
      ['dynamo_frontend_inflight_requests{model="m"} 2\n', 'dynamo'],
    ] as const) {
      const scrape = parseScrape(text);
      assert.equal(serverOf(scrape), server);
      assert.ok((serverView('x', [{ t: 0, scrape }, { t: 1, scrape }])?.gauges.length ?? 0) > 0, server);
    }
  });

  it('tells cached tokens between two scrapes', () => {
    assert.deepEqual(cachedTokensBetween(parseScrape(vllm(0, 1, 16, 100)), parseScrape(vllm(0, 1, 96, 200))), { cached: 80, asked: 100 });
    assert.equal(cachedTokensBetween(parseScrape(''), parseScrape('llamacpp:requests_processing 1')), null);
  });

  it('gives nothing for a page that is no metrics page, and never throws', () => {
    assert.equal(serverOf(parseScrape('<html><body>404</body></html>')), null);
    fc.assert(fc.property(fc.string({ maxLength: 300 }), (text) => {
      parseScrape(text);
    }), { numRuns: 300 });
  });

  it('tells no number that JSON cannot hold, whatever the page says', () => {
    const page = (value: string): string => ['num_requests_running', 'kv_cache_usage_perc', 'prompt_tokens_total', 'prefix_cache_hits_total', 'prefix_cache_queries_total', 'time_to_first_token_seconds_sum', 'time_to_first_token_seconds_count'].map((name) => `vllm:${name} ${value}\nvllm:${name}{a="2"} ${value}\n`).join('') + ['0.1', '1e308', '+Inf', 'NaN'].map((le) => `vllm:time_to_first_token_seconds_bucket{le="${le}"} ${value}\n`).join('');
    for (const [before, after] of [['+Inf', '+Inf'], ['-1e308', '1e308'], ['1', '1e308'], ['NaN', '5'], ['5', '-Inf'], ['0', '7']] as const) {
      const view = serverView('x', [before, after].map((value, t) => ({ t, scrape: parseScrape(page(value)) })));
      JSON.stringify(view, (_name, value: unknown) => {
        assert.ok(typeof value !== 'number' || Number.isFinite(value), `${before} ${after}`);
        return value;
      });
    }
    assert.equal(parseScrape('vllm:num_requests_running 1\n'.repeat(200_000)).size, 0, 'a page without end is none');
    assert.equal(parseScrape('vllm:num_requests_running 1\n'.repeat(130_000)).get('vllm:num_requests_running')?.length, 130_000);
    assert.notEqual(serverView('x', [0, 1].map((t) => ({ t, scrape: parseScrape('vllm:kv_cache_usage_perc 1\n'.repeat(130_000)) }))), null);
  });

  it('watches until stopped and leaves out failed reads', async () => {
    let reads = 0;
    const watch = watchServer({ source: 'x', every: 5, now: () => reads, read: () => {
      reads += 1;
      return reads === 2 ? Promise.reject(new Error('busy')) : Promise.resolve(vllm(reads, reads, reads, reads * 2));
    } });
    assert.equal(await watch.ready, true);
    while (reads < 4) await new Promise((resolve) => setTimeout(resolve, 2));
    const view = await watch.stop();
    assert.ok((view?.gauges[0]?.points.length ?? 0) >= 3);
    const none = watchServer({ source: 'x', every: 5, now: () => 0, read: () => Promise.resolve(null) });
    assert.equal(await none.ready, false);
    assert.equal(await none.stop(), null);
  });
});
