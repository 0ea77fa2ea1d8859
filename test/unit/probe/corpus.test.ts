import assert from 'node:assert/strict';
import * as fs from 'node:fs';
import * as path from 'node:path';
import { createDecoder, type Decoded } from '../../../src/probe/decode';
import { asSent, decodeRecording } from '../../../src/probe/decodeFile';
import { dialects } from '../../../src/probe/dialect';
import { corpusFolder, dialectOfFile, readRows } from './corpusFiles';
import { decodeReads, invariant, schedules } from './streams';

interface Row {
  readonly file: string;
  readonly kind: 'stream' | 'http-error';
  readonly text: string;
  readonly reasoning: string;
  readonly tool_calls: readonly [string, string][];
  readonly finish: readonly [number, string | number][];
  readonly usage: Readonly<Record<string, unknown>> | null;
  readonly errors: readonly unknown[];
  readonly n_events: number;
  readonly n_text: number;
  readonly n_reasoning: number;
  readonly n_tool: number;
  readonly done: string | null;
  readonly comments: number;
}

/** APIs this project does not speak. */
const skipped: Readonly<Record<string, string>> = {
  'bedrock-invoke': 'Bedrock InvokeModelWithResponseStream is not spoken, ConverseStream is',
  'cohere-v1': 'Cohere v1 is superseded by v2',
  'sse-misc': 'Replicate and watsonx are not spoken',
};

/** Where this project reads a file otherwise than the reference, on purpose. */
const differences: Readonly<Record<string, { readonly fields: Partial<Row>; readonly why: string }>> = {
  'gemini-json-array/flash20_story.json': { fields: { finish: [[0, 'STOP']] }, why: 'finish reasons sent as enum numbers are named' },
  'openai-responses/lmstudio_tool_call.chunks.txt': {
    fields: { tool_calls: [['weather', '{"location":"San Francisco"}']] },
    why: 'the arguments come only in function_call_arguments.done, which the reference does not read',
  },
};

/** Outcomes other than ok, by what is in the file. */
const outcomes: Readonly<Record<string, string>> = {
  'gemini-sse/streaming-failure-error-mid-stream.txt': 'stream-error',
  'gemini-sse/streaming-failure-prompt-blocked-safety.txt': 'empty',
  'openrouter/minimax_error_midstream.sse': 'stream-error',
};

/** The prompt, output and cached tokens that follow from the reference's raw usage by the rules of each API. */
function usageOf(usage: Readonly<Record<string, unknown>> | null): { prompt: number | null; output: number | null; cached: number | null } {
  const at = (...path_: string[]): number | null => {
    let here: unknown = usage;
    for (const name of path_) here = (here as Record<string, unknown> | null | undefined)?.[name];
    return typeof here === 'number' ? here : null;
  };
  if (usage === null) return { prompt: null, output: null, cached: null };
  if ('promptTokenCount' in usage) {
    const [visible, thoughts] = [at('candidatesTokenCount'), at('thoughtsTokenCount')];
    return { prompt: at('promptTokenCount'), output: visible === null && thoughts === null ? null : (visible ?? 0) + (thoughts ?? 0), cached: at('cachedContentTokenCount') };
  }
  if ('eval_count' in usage) return { prompt: at('prompt_eval_count'), output: at('eval_count'), cached: null };
  if ('inputTokens' in usage) {
    const cached = at('cacheReadInputTokens');
    return { prompt: (at('inputTokens') ?? 0) + (cached ?? 0) + (at('cacheWriteInputTokens') ?? 0), output: at('outputTokens'), cached };
  }
  if ('billed_units' in usage) return { prompt: at('tokens', 'input_tokens'), output: at('tokens', 'output_tokens'), cached: at('cached_tokens') };
  if ('input_tokens' in usage) {
    const read = at('cache_read_input_tokens');
    if (!('input_tokens_details' in usage)) return { prompt: (at('input_tokens') ?? 0) + (read ?? 0) + (at('cache_creation_input_tokens') ?? 0), output: at('output_tokens'), cached: read };
    return { prompt: at('input_tokens'), output: at('output_tokens'), cached: at('input_tokens_details', 'cached_tokens') };
  }
  const prompt = at('prompt_tokens');
  const completion = at('completion_tokens');
  const reasoning = at('completion_tokens_details', 'reasoning_tokens') ?? 0;
  const excludes = reasoning > 0 && completion !== null && prompt !== null && at('total_tokens') === prompt + completion + reasoning;
  const cached = at('prompt_tokens_details', 'cached_tokens') ?? at('prompt_cache_hit_tokens') ?? at('cached_tokens');
  return { prompt, output: excludes ? completion + reasoning : completion, cached: cached === null || prompt === null ? cached : Math.min(cached, prompt) };
}

function compare(decoded: Decoded, row: Row): void {
  const expected: Row = { ...row, ...differences[row.file]?.fields };
  assert.equal(decoded.text, expected.text, 'text');
  assert.equal(decoded.reasoning, expected.reasoning, 'reasoning');
  assert.deepEqual(decoded.toolCalls.map((call) => [call.name, call.arguments]), expected.tool_calls, 'tool calls');
  assert.equal(decoded.finish, expected.finish.filter(([choice]) => choice === 0).at(-1)?.[1] ?? null, 'finish');
  assert.equal(decoded.outcome.kind, outcomes[row.file] ?? 'ok', decoded.outcome.message);
  const of = (kind: string): number => decoded.arrivals.filter((arrival) => arrival.kind === kind).length;
  assert.deepEqual([of('text'), of('reasoning'), of('tool'), of('token')], [expected.n_text, expected.n_reasoning, expected.n_tool, 0], 'deltas by kind');
  assert.equal(decoded.comments, expected.comments, 'comments');
  const usage = usageOf(expected.usage);
  // Usage that lacks the timings beside it is completed by them (llama.cpp's cached tokens).
  assert.equal(decoded.outputTokens.count, usage.output, 'output tokens');
  assert.equal(decoded.promptTokens, usage.prompt, 'prompt tokens');
  if (usage.cached !== null || !row.file.startsWith('llamacpp-openai/')) assert.equal(decoded.cachedTokens, usage.cached, 'cached tokens');
}

describe('recorded streams', () => {
  const folder = corpusFolder('streams');
  if (folder === null) {
    it('decode as the independent reference says (skipped: the recordings are not beside this checkout)');
    return;
  }
  for (const row of readRows<Row>(path.join(folder, 'EXPECTED.jsonl'))) {
    const family = row.file.slice(0, row.file.indexOf('/'));
    const bytes = (): Buffer => fs.readFileSync(path.join(folder, row.file));
    if (row.kind === 'http-error') {
      it(`${row.file} is a refusal with its status and message`, () => refusal(folder, row.file));
      continue;
    }
    const id = dialectOfFile(row.file);
    if (id === null) {
      it(`${row.file} (out of scope: ${skipped[family] ?? 'unknown API'})`);
      continue;
    }
    it(`${row.file} as ${id}, under five read schedules${differences[row.file] === undefined ? '' : `; differs on purpose: ${differences[row.file]!.why}`}`, async () => {
      const sent = asSent(bytes(), dialects[id]);
      const whole = decodeReads(id, [sent]);
      compare(whole, row);
      for (const [name, reads] of Object.entries(schedules(sent))) assert.deepEqual(invariant(decodeReads(id, reads)), invariant(whole), name);
      const file = await decodeRecording(bytes(), 'auto', false);
      assert.deepEqual([file.text, file.reasoning, file.outcome.kind], [whole.text, whole.reasoning, whole.outcome.kind], 'the API is told by content');
    });
  }
});

function refusal(folder: string, name: string): void {
  const body = fs.readFileSync(path.join(folder, name));
  const meta = JSON.parse(fs.readFileSync(path.join(folder, `${name}.meta.json`), 'utf8')) as { status: number; response_headers: Record<string, string> };
  const decoder = createDecoder(dialects['openai-chat'], { status: meta.status, headers: Object.entries(meta.response_headers) });
  decoder.push(1, body);
  decoder.end(2, 'clean');
  const { outcome } = decoder.result();
  assert.equal(outcome.kind, 'status');
  assert.equal(outcome.status, meta.status);
  assert.ok(outcome.message !== undefined && body.toString('utf8').includes(JSON.stringify(outcome.message.split(':')[0]!).slice(1, -1)), outcome.message);
  if (meta.response_headers['retry-after'] !== undefined) assert.ok(outcome.retryAfter !== undefined && outcome.retryAfter > 0);
}
