/** A saved tape as a report of one request, for looking at a bug report in the panel. */
import { buildReport, type Environment, type Report } from '../report/report';
import { sloPresets } from '../report/goodput';
import { assembleSample } from './assembly';
import { decode, type Decoded } from './decode';
import { dialects } from './dialect/index';
import { judge } from './outcome';
import { createRedactor } from './redact';
import type { SavedTape } from './tapeFile';

/** The report with what stands behind its one sample. The endpoint's name is the tape's: nothing tells where it came from. */
export function reportOfTape({ api, tape }: SavedTape, name: string, environment: Environment): { readonly report: Report; readonly decoded: Decoded } {
  const dialect = dialects[api];
  const decoded = decode(tape, dialect);
  const outcome = judge(tape, decoded, { firstToken: null, stall: null, total: null });
  const sample = assembleSample({ id: tape.id, role: 'measured', due: tape.phases.start, labels: {} }, tape, decoded, outcome, tape.phases.start, createRedactor([]));
  const report = buildReport({
    id: `tape-${tape.id}-${name}`,
    createdAt: new Date().toISOString(),
    environment,
    endpoint: { name, origin: 'a saved tape', path: '', model: null, api, server: null, tlsVerified: true, alpn: tape.alpn, refusedFields: [], price: null, gpu: null },
    plan: { scenario: 'tape', requests: 1, concurrency: 1, warmup: 0, maxTokens: null, cache: 'as-is', objective: 'chat', slo: sloPresets.chat, readerPace: 120, prompt: { name: 'not in the tape', characters: 0, sha256: '' } },
    samples: [sample],
    clockErrors: [],
  });
  return { report, decoded };
}
