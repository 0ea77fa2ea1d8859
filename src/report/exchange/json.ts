import type { Report } from '../report';

/** A report as one JSON document, readable by `parseReport`; indented but for the deltas, which stay on the line of their sample. */
export function toJson(report: Report): string {
  const { samples, ...rest } = report;
  const head = JSON.stringify({ ...rest, samples: [] }, null, 2);
  if (samples.length === 0) return `${head}\n`;
  const at = head.lastIndexOf('"samples": []');
  const lines = samples.map((sample) => `    ${JSON.stringify(sample)}`).join(',\n');
  return `${head.slice(0, at)}"samples": [\n${lines}\n  ]${head.slice(at + '"samples": []'.length)}\n`;
}
