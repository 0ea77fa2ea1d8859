import type { ServerTiming } from '../../report/sample';
import type { FrameSink } from './dialect';
import { at, count, object, type JsonObject } from './json';

type Covers = ServerTiming['covers'];

/** Durations that look-alikes put into frames: where, in what unit (ms per unit), and what each covers. */
const places: readonly { readonly path: readonly string[]; readonly unit: number; readonly names: Readonly<Record<string, Covers>> }[] = [
  { path: ['x_groq', 'usage'], unit: 1000, names: { queue_time: 'queue', prompt_time: 'prefill', completion_time: 'decode', total_time: 'total' } },
  { path: ['usage'], unit: 1000, names: { queue_time: 'queue', prompt_time: 'prefill', completion_time: 'decode', total_time: 'total' } },
  { path: ['time_info'], unit: 1000, names: { queue_time: 'queue', prompt_time: 'prefill', completion_time: 'decode', total_time: 'total' } },
  { path: ['usage'], unit: 1, names: { time_to_first_token_ms: 'ttft', time_per_output_token_ms: 'other' } },
  {
    path: ['usage', 'latency_checkpoint'],
    unit: 1,
    names: { engine_ttft_ms: 'ttft', engine_tbt_ms: 'other', engine_ttlt_ms: 'total', service_ttft_ms: 'ttft', service_tbt_ms: 'other', service_ttlt_ms: 'total', pre_inference_ms: 'queue', total_duration_ms: 'total', user_visible_ttft_ms: 'ttft' },
  },
  { path: ['sla_metrics'], unit: 1, names: { ttft_ms: 'ttft' } },
  { path: ['metrics'], unit: 1, names: { time_to_first_token_ms: 'ttft', queue_time_ms: 'queue', generation_time_ms: 'decode', mean_itl_ms: 'other' } },
  { path: ['nvext', 'timing'], unit: 1, names: { ttft_ms: 'ttft', itl_ms: 'other', total_time_ms: 'total', prefill_time_ms: 'prefill' } },
  { path: ['stats'], unit: 1000, names: { time_to_first_token_seconds: 'ttft', model_load_time_seconds: 'load', time_to_first_token: 'ttft', generation_time: 'decode' } },
];

/** Hands every duration a frame carries to the sink, under its own name and path. */
export function tellFrameTimings(sink: FrameSink, frame: JsonObject): void {
  // Nearly every frame carries none; the names are spelled out because this runs for each.
  const any = frame['usage'] ?? frame['x_groq'] ?? frame['time_info'] ?? frame['sla_metrics'] ?? frame['metrics'] ?? frame['nvext'] ?? frame['stats'] ?? frame['perf_metrics'];
  if (any === undefined || any === null) return;
  for (const { path, unit, names } of places) {
    if (frame[path[0]!] === undefined || frame[path[0]!] === null) continue;
    const place = object(at(frame, ...path));
    if (place === null) continue;
    for (const [name, covers] of Object.entries(names)) {
      const amount = count(place[name]);
      if (amount !== undefined) sink.timing({ name: [...path, name].join('.'), ms: amount * unit, covers });
    }
  }
  fireworks(sink, frame['perf_metrics']);
}

/** Fireworks' `perf_metrics`: keys such as `server-time-to-first-token`, seconds, as numbers or strings. */
function fireworks(sink: FrameSink, value: unknown): void {
  for (const [name, raw] of Object.entries(object(value) ?? {})) {
    const seconds = count(Number(raw));
    if (seconds === undefined || !/time|duration/.test(name)) continue;
    sink.timing({ name: `perf_metrics.${name}`, ms: seconds * 1000, covers: name.includes('first-token') ? 'ttft' : name.includes('queue') ? 'queue' : 'other' });
  }
}
