/** Comma-separated values by RFC 4180 (CRLF, quotes doubled). Text that a spreadsheet would run as a formula gets a leading apostrophe. Numbers are not rounded. */
import { gapP99, isGood } from '../goodput';
import { metricOrder, metricWords } from '../metricNames';
import type { Report } from '../report';
import { firstFrame, firstVisible, headersTime, prefillRate, readerStall, streamTail, total, tpot, ttft, type Sample } from '../sample';

type Cell = string | number | boolean | null;

/** A row a request (warm-up and negotiation too, told apart by `role`), with a header row; times in ms, none is empty. */
export function samplesToCsv(report: Report): string {
  const { slo, readerPace } = report.plan;
  const labels = [...new Set(report.samples.flatMap((s) => Object.keys(s.labels)))].sort();
  const columns: readonly (readonly [name: string, of: (s: Sample) => Cell])[] = [
    ['id', (s) => s.id],
    ['role', (s) => s.role],
    ['outcome', (s) => s.outcome.kind],
    ['status', (s) => s.outcome.status ?? null],
    ['message', (s) => s.outcome.message ?? null],
    ['finish', (s) => s.finish],
    ['good', (s) => (s.role === 'measured' && s.outcome.kind !== 'cancelled' ? isGood(s, slo) : null)],
    ['due_ms', (s) => s.due],
    ['start_ms', (s) => s.start],
    ['end_ms', (s) => s.end],
    ['connection_reused', (s) => s.connection.reused],
    ['headers_ms', headersTime],
    ['first_frame_ms', firstFrame],
    ['ttft_ms', ttft],
    ['first_visible_ms', firstVisible],
    ['tpot_ms', tpot],
    ['gap_p99_ms', gapP99],
    ['total_ms', total],
    ['stream_tail_ms', streamTail],
    ['reader_stall_ms', (s) => readerStall(s, readerPace)?.ms ?? null],
    ['output_tokens', (s) => s.outputTokens.count],
    ['token_source', (s) => s.outputTokens.source],
    ['stream_tokens', (s) => s.streamTokens],
    ['reasoning_tokens', (s) => s.reasoningTokens],
    ['prompt_tokens', (s) => s.promptTokens],
    ['cached_tokens', (s) => s.cachedTokens],
    ['prefill_tokens_per_s', prefillRate],
    ['deltas', (s) => s.deltas.length],
    ['reads', (s) => s.reads],
    ['bytes', (s) => s.bytes],
    ['flags', (s) => s.flags.join(' ')],
    ...labels.map((label) => [`label_${label}`, (s: Sample) => s.labels[label] ?? null] as const),
  ];
  return table([columns.map(([name]) => name), ...report.samples.map((s) => columns.map(([, of]) => of(s)))]);
}

/** A row a metric, with percentiles and the bounds of their 95 % intervals; times in ms. */
export function summaryToCsv(report: Report): string {
  const points = ['p50', 'p90', 'p95', 'p99'] as const;
  const header = ['metric', 'name', 'unit', 'n', 'mean', 'min', ...points, 'max', ...points.flatMap((p) => [`${p}_low`, `${p}_high`])];
  const rows = metricOrder[report.plan.objective].flatMap((metric): Cell[][] => {
    const s = report.summary[metric];
    if (s === null) return [];
    return [[metric, metricWords[metric].label, s.unit, s.n, s.mean, s.min, ...points.map((p) => s[p]), s.max, ...points.flatMap((p) => [...s.ci95[p]])]];
  });
  return table([header, ...rows]);
}

function table(rows: readonly (readonly Cell[])[]): string {
  return rows.map((row) => `${row.map(field).join(',')}\r\n`).join('');
}

function field(value: Cell): string {
  if (value === null) return '';
  if (typeof value !== 'string') return String(value);
  const safe = /^[=+\-@\t\r\n|]/.test(value.trimStart()) || /^[\t\r\n]/.test(value) ? `'${value}` : value;
  return /[",\r\n]/.test(safe) ? `"${safe.replace(/"/g, '""')}"` : safe;
}
