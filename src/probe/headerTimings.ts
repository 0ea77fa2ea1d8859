import type { ServerTiming } from '../report/sample';
import type { HeaderList } from './dialect/dialect';

type Covers = ServerTiming['covers'];

/** Response headers that hold a duration, what unit they use, and what they cover as far as their servers say. */
const known: Readonly<Record<string, readonly [perUnit: number, covers: Covers]>> = {
  'openai-processing-ms': [1, 'other'],
  'x-envoy-upstream-service-time': [1, 'other'],
  'x-kong-upstream-latency': [1, 'other'],
  'x-kong-proxy-latency': [1, 'other'],
  'fireworks-server-time-to-first-token': [1000, 'ttft'],
  'fireworks-server-processing-time': [1000, 'total'],
  'x-total-time': [1, 'total'],
  'x-queue-time': [1, 'queue'],
  'x-validation-time': [1, 'other'],
  'x-inference-time': [1, 'other'],
  'x-time-per-token': [1, 'other'],
};

/** The server's own durations in response headers, `server-timing` included; headers are sent before the answer, so none covers all of a stream. */
export function headerTimings(headers: HeaderList): ServerTiming[] {
  const timings: ServerTiming[] = [];
  for (const [rawName, value] of headers) {
    const name = rawName.toLowerCase();
    if (name === 'server-timing') {
      for (const entry of value.split(',')) {
        const duration = /;\s*dur\s*=\s*"?([\d.]+)/i.exec(entry)?.[1];
        const metric = entry.split(';')[0]!.trim();
        if (duration !== undefined && Number.isFinite(Number(duration)) && metric !== '') timings.push({ name: `server-timing.${metric}`, ms: Number(duration), covers: 'other' });
      }
      continue;
    }
    const rule = known[name];
    const amount = Number(value);
    if (rule !== undefined && value.trim() !== '' && Number.isFinite(amount * rule[0])) timings.push({ name, ms: amount * rule[0], covers: rule[1] });
  }
  return timings;
}
