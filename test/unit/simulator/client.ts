/** A plain HTTP client for these tests: node:http and nothing of ours. */
import http from 'node:http';
import { parseSimulatorArgs } from '../../../src/simulator/arguments';
import { openSimulator } from '../../../src/simulator/serving';

export interface Answer {
  readonly status: number;
  readonly headers: http.IncomingHttpHeaders;
  readonly body: Buffer;
  readonly text: string;
  /** Whether the body ended as HTTP says it should. */
  readonly whole: boolean;
  /** `process.hrtime` ms of each read. */
  readonly stamps: readonly number[];
}

export interface Call {
  readonly method?: string;
  readonly body?: unknown;
  readonly headers?: Record<string, string>;
  /** Hang up after so many ms. */
  readonly leaveAfter?: number;
}

export function clock(): number {
  return Number(process.hrtime.bigint()) / 1e6;
}

export function call(url: string, path: string, { method, body, headers = {}, leaveAfter }: Call = {}): Promise<Answer> {
  return new Promise((resolve, reject) => {
    const request = http.request(url + path, { method: method ?? (body === undefined ? 'GET' : 'POST'), headers: { 'content-type': 'application/json', ...headers }, agent: false });
    request.on('error', reject);
    request.on('response', (response) => {
      const parts: Buffer[] = [];
      const stamps: number[] = [];
      response.on('data', (part: Buffer) => {
        stamps.push(clock());
        parts.push(part);
      });
      response.on('error', () => undefined);
      response.on('close', () => {
        const all = Buffer.concat(parts);
        resolve({ status: response.statusCode!, headers: response.headers, body: all, text: all.toString('utf8'), whole: response.complete, stamps });
      });
    });
    if (leaveAfter !== undefined) setTimeout(() => request.destroy(new Error('left')), leaveAfter);
    request.end(body === undefined ? undefined : typeof body === 'string' ? body : JSON.stringify(body));
  });
}

export interface SseEvent {
  readonly event: string;
  readonly data: string;
}

/** Events of a well-formed SSE body with LF or CRLF. */
export function sseEvents(text: string): SseEvent[] {
  return text
    .split(/\r?\n\r?\n/)
    .filter((block) => block.trim() !== '')
    .map((block) => {
      const lines = block.split(/\r?\n/);
      const field = (name: string): string => lines.filter((line) => line.startsWith(`${name}:`)).map((line) => line.slice(name.length + 1).replace(/^ /, '')).join('\n');
      return { event: field('event'), data: field('data') };
    });
}

/** JSON of all events but the end mark. */
// eslint-disable-next-line @typescript-eslint/no-explicit-any -- read as a plain client reads it
export function sseJson(text: string): any[] {
  return sseEvents(text)
    .filter(({ data }) => data !== '' && data !== '[DONE]')
    .map(({ data }) => JSON.parse(data) as unknown);
}

/** Runs `use` against a simulator with these flags and closes it. */
export async function withSimulator<T>(flags: string, use: (url: string) => Promise<T>): Promise<T> {
  const simulator = await openSimulator(parseSimulatorArgs(flags.split(' ').filter((flag) => flag !== '')));
  try {
    return await use(simulator.url);
  } finally {
    await simulator.close();
  }
}
