// Decoding against the budgets: throughput per dialect as a multiple of JSON.parse over the same frames, heap kept beyond the
// arrivals, and a 20 MB frame in small reads. Prints ratios within this run; ends with 1 when one is over its budget.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { fileURLToPath } from 'node:url';
import { build } from 'esbuild';

if (typeof globalThis.gc !== 'function') {
  process.exit(spawnSync(process.execPath, ['--expose-gc', fileURLToPath(import.meta.url)], { stdio: 'inherit' }).status ?? 1);
}

const root = path.join(path.dirname(fileURLToPath(import.meta.url)), '..', '..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-bench-'));
const outfile = path.join(folder, 'decode.cjs');
await build({
  stdin: { contents: "export { createDecoder } from './src/probe/decode'; export { dialects } from './src/probe/dialect';", resolveDir: root, loader: 'ts' },
  bundle: true, platform: 'node', format: 'cjs', target: 'node20', outfile, logLevel: 'error',
});
const { createDecoder, dialects } = createRequire(import.meta.url)(outfile);
const ok = { status: 200, headers: [] };
let over = false;

const median = (values) => values.toSorted((a, b) => a - b)[values.length >> 1];
const cut = (bytes, size) => Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
const clock = (work) => {
  const start = process.hrtime.bigint();
  work();
  return Number(process.hrtime.bigint() - start) / 1e6;
};
const decode = (dialect, reads, onFrame) => {
  const decoder = createDecoder(dialect, ok, onFrame);
  reads.forEach((read, at) => decoder.push(at, read));
  decoder.end(reads.length, 'clean');
  return decoder;
};
const row = (name, ratio, budget, note) => {
  const bad = budget !== null && ratio > budget;
  over ||= bad;
  console.log(`  ${name.padEnd(34)} ${ratio.toFixed(2).padStart(7)} × ${budget === null ? '' : `(budget ${budget} ×) ${bad ? 'OVER' : 'ok'}`} ${note}`);
};

// Frames as servers send them, their middle repeated until the stream is long.
const fixture = (name) => readFileSync(path.join(root, 'test', 'fixtures', 'streams', name), 'utf8');
const long = (text, separator, first, last, count) => {
  const frames = text.split(separator).filter((frame) => frame.trim() !== '');
  const middle = frames.slice(first, frames.length - last);
  const body = Array.from({ length: Math.ceil(count / middle.length) }, () => middle).flat();
  return [...frames.slice(0, first), ...body, ...frames.slice(frames.length - last)].join(separator) + (separator.includes('[') ? '' : separator);
};
// Envelopes as long as those of real servers; the fixtures' are cut short.
const chat = (content) => `data: ${JSON.stringify({ id: 'chatcmpl-9f8e7d6c5b4a39281706f5e4d3c2b1a0', object: 'chat.completion.chunk', created: 1796050248, model: 'meta-llama/Llama-3.1-8B-Instruct', choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] })}\n\n`;
const chatStream = (count) => Buffer.from(Array.from({ length: count }, (_, at) => chat(` word${at % 97}`)).join('') + 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
const frames = 20_000;
const streams = [
  ['openai-chat', chatStream(frames)],
  ['openai-completions', Buffer.from(Array.from({ length: frames }, (_, at) => `data: ${JSON.stringify({ id: 'cmpl-9f8e7d6c5b4a39281706', object: 'text_completion', created: 1796050248, model: 'meta-llama/Llama-3.1-8B', choices: [{ index: 0, text: ` word${at % 97}`, logprobs: null, finish_reason: null, stop_reason: null }], usage: null })}\n\n`).join(''))],
  ['openai-responses', Buffer.from(long(fixture('openaiResponses.sse'), '\n\n', 5, 6, frames))],
  ['azure', Buffer.from(Array.from({ length: frames }, (_, at) => `data: ${JSON.stringify({ choices: [{ content_filter_results: { hate: { filtered: false, severity: 'safe' } }, delta: { content: ` w${at % 97}` }, finish_reason: null, index: 0, logprobs: null }], created: 1796050248, id: 'chatcmpl-9f8e7d6c', model: 'gpt-4o', object: 'chat.completion.chunk', system_fingerprint: 'fp' })}\n\n`).join(''))],
  ['anthropic', Buffer.from(long(fixture('anthropic.sse'), '\n\n', 7, 8, frames))],
  ['gemini', Buffer.from(long(fixture('gemini.sse'), '\r\n\r\n', 1, 2, frames))],
  ['gemini (array)', Buffer.from(long(fixture('gemini.json').trim().slice(1, -1), '\n,\n', 1, 2, 8000)).toString(), 'array'],
  ['ollama', Buffer.from(long(fixture('ollamaGenerate.ndjson'), '\n', 0, 1, frames))],
  ['llamacpp', Buffer.from(long(fixture('llamacpp.sse'), '\n\n', 1, 2, frames))],
  ['tgi', Buffer.from(long(fixture('tgi.sse'), '\n\n', 0, 1, frames))],
  ['sglang', Buffer.from(Array.from({ length: frames }, (_, at) => `data: ${JSON.stringify({ text: ` word${at % 97}`, output_ids: [at], meta_info: { id: '9f8e7d6c5b4a', finish_reason: null, prompt_tokens: 6, completion_tokens: at + 1, cached_tokens: 3 } })}\n\n`).join(''))],
  ['triton', Buffer.from(long(fixture('triton.sse'), '\n\n', 0, 0, frames))],
  ['cohere', Buffer.from(long(fixture('cohere.sse'), '\n\n', 2, 8, frames))],
].map(([name, bytes, form]) => [name, form === 'array' ? Buffer.from(`[${bytes.replace(/,\n$/, '').trim()}]`) : bytes]);

console.log(`decode against JSON.parse of the same frames, reads of 16 kB, median of 7 interleaved pairs`);
for (const [name, bytes] of streams) {
  const dialect = dialects[name.split(' ')[0]];
  const reads = cut(bytes, 16 * 1024);
  const perFrame = [];
  let from = 0;
  for (let at = bytes.indexOf('\n\n'); at >= 0; at = bytes.indexOf('\n\n', from)) {
    perFrame.push(bytes.subarray(from, at + 2));
    from = at + 2;
  }
  const raws = [];
  const result = decode(dialect, reads, ({ raw }) => raws.push(raw)).result();
  if (result.arrivals.length < raws.length * 0.5) throw new Error(`${name}: ${result.arrivals.length} arrivals of ${raws.length} frames (${result.outcome.message})`);
  const parse = () => {
    for (const raw of raws) if (raw !== '[DONE]') JSON.parse(raw);
  };
  const pairs = Array.from({ length: 9 }, () => ({ parse: clock(parse), decode: clock(() => decode(dialect, reads)), single: perFrame.length > 100 ? clock(() => decode(dialect, perFrame)) : null })).slice(2);
  const single = perFrame.length > 100 ? `; ${median(pairs.map((p) => p.single / p.parse)).toFixed(2)} × with a frame a read` : '';
  row(name, median(pairs.map((p) => p.decode / p.parse)), 2.5, `${((bytes.length / 1e3) / median(pairs.map((p) => p.decode))).toFixed(0)} MB/s, ${raws.length} frames${single}`);
}

console.log('heap the decoder keeps beyond its arrivals');
const kept = (count) => {
  let decoder = createDecoder(dialects['openai-chat'], ok);
  const live = [];
  for (const read of cut(chatStream(count), 16 * 1024)) live.push(...decoder.push(0, read));
  gc();
  const before = process.memoryUsage().heapUsed;
  decoder = null;
  gc();
  // The decoder's own list of arrivals is 8 bytes an entry, with room to grow.
  return before - process.memoryUsage().heapUsed - live.length * 0;
};
const [few, many] = [kept(1000), kept(100_000)];
console.log(`  after 1,000 frames ${(few / 1e3).toFixed(0)} kB, after 100,000 frames ${(many / 1e3).toFixed(0)} kB, of which the list of arrivals is up to ${((100_000 * 8 * 1.5) / 1e3).toFixed(0)} kB`);
row('growth per frame beyond the list', Math.max(0, (many - few) / 99_000 - 12), 4, 'bytes');

console.log('one frame in reads of 1 kB');
const single = (size) => cut(Buffer.from(chat('x'.repeat(size)) + 'data: [DONE]\n\n'), 1024);
const [small, large] = [single(5e6), single(20e6)];
const times = Array.from({ length: 5 }, () => [clock(() => decode(dialects['openai-chat'], small)), clock(() => decode(dialects['openai-chat'], large))]).slice(1);
row('20 MB against 5 MB', median(times.map(([a, b]) => b / a)), 6, `${median(times.map(([, b]) => b)).toFixed(0)} ms`);

rmSync(folder, { recursive: true, force: true });
process.exit(over ? 1 : 0);
