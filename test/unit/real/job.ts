/** Probes against servers nobody here wrote. */
import assert from 'node:assert/strict';
import { createMemory, defaultNetwork, defaultProbeSettings, endpointFromUrl, probe, type Endpoint, type ProbeJob, type ProbeSettings, type RunEvent } from '../../../src/probe/index';
import type { Report } from '../../../src/report/report';
import { recorderScript } from '../probe/builtRecorder';

/** The parts of a job that these tests vary. */
export interface Wanted {
  readonly key?: string;
  readonly prompt?: string;
  readonly settings?: Partial<ProbeSettings>;
  readonly endpoint?: Partial<Endpoint>;
  readonly network?: Partial<ProbeJob['network']>;
  readonly signal?: AbortSignal;
  readonly onEvent?: (event: RunEvent) => void;
}

/** What a probe told, with the decoded answers. */
export interface Probed {
  readonly report: Report;
  readonly texts: readonly string[];
  readonly reasoning: readonly string[];
}

/** Runs a probe to its end: three requests of sixteen tokens unless told otherwise. */
export async function probed(url: string, wanted: Wanted = {}): Promise<Probed> {
  const job: ProbeJob = {
    endpoint: endpointFromUrl(url, wanted.endpoint ?? {}),
    key: wanted.key ?? null,
    prompt: { messages: [{ role: 'user', text: wanted.prompt ?? 'Tell me how the first token and the pace after it are measured.' }], tools: [] },
    promptName: 'built-in',
    settings: { ...defaultProbeSettings, requests: 3, warmup: 1, maxTokens: 16, breaker: null, ...wanted.settings },
    slo: { ttft: 60_000, attainment: 0.5 },
    objective: 'chat',
    readerPace: 120,
    network: { ...defaultNetwork, proxy: 'none', ...wanted.network },
    environment: { product: 'test', node: process.version, platform: 'test', editor: null, remote: null },
    recorderScript: await recorderScript(),
    reportFile: null,
    memory: createMemory(),
    unrendered: [],
    keepText: false,
  };
  const texts: string[] = [];
  const reasoning: string[] = [];
  let report: Report | null = null;
  for await (const event of probe(job, wanted.signal ?? new AbortController().signal)) {
    wanted.onEvent?.(event);
    if (event.type === 'sample' && event.sample.role === 'measured') {
      texts.push(event.decoded.text);
      reasoning.push(event.decoded.reasoning);
    }
    if (event.type === 'end') report = event.report;
  }
  assert.ok(report);
  return { report, texts, reasoning };
}
