// Decoding against the budgets: throughput per dialect as a multiple of JSON.parse over the same frames, heap kept beyond the
// arrivals, and a 20 MB frame in small reads. Prints ratios within this run; ends with 1 when one is over its budget.
import { spawnSync } from 'node:child_process';
import { mkdtempSync, rmSync } from 'node:fs';
import { createRequire } from 'node:module';
import os from 'node:os';
import path from 'node:path';
import { crc32 } from 'node:zlib';
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

const cut = (bytes, size) => Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
// Processor time, because the machine may be busy with other things.
const clock = (work) => {
  const start = process.cpuUsage();
  work();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / 1e3;
};
const least = (values) => Math.min(...values);
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

// Frames as long as those of real servers: short ones would only measure the calls.
const chat = (content) => `data: ${JSON.stringify({ id: 'chatcmpl-9f8e7d6c5b4a39281706f5e4d3c2b1a0', object: 'chat.completion.chunk', created: 1796050248, model: 'meta-llama/Llama-3.1-8B-Instruct', choices: [{ index: 0, delta: { content }, logprobs: null, finish_reason: null }] })}\n\n`;
const chatStream = (count) => Buffer.from(Array.from({ length: count }, (_, at) => chat(` word${at % 97}`)).join('') + 'data: {"choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}\n\ndata: [DONE]\n\n');
const frames = 20_000;
const many = (make) => Buffer.from(Array.from({ length: frames }, (_, at) => make(at)).join(''));
const event = (payload, named = false) => `${named ? `event: ${payload.type}\n` : ''}data: ${JSON.stringify(payload)}\n\n`;
const word = (at) => ` word${at % 97}`;
const geminiChunk = (at) => ({ candidates: [{ content: { parts: [{ text: `${word(at)} and some more` }], role: 'model' }, index: 0 }], usageMetadata: { promptTokenCount: 7, candidatesTokenCount: at, totalTokenCount: at + 7 }, modelVersion: 'gemini-2.5-flash', responseId: 'VB-jaN_BCZuThMIPnryvyAg' });
/** One message of an AWS event stream. */
const message = (type, payload) => {
  const header = (name, value) => Buffer.concat([Buffer.from([name.length]), Buffer.from(name), Buffer.from([7, 0, value.length]), Buffer.from(value)]);
  const headers = Buffer.concat([header(':event-type', type), header(':content-type', 'application/json'), header(':message-type', 'event')]);
  const body = Buffer.from(JSON.stringify(payload));
  const bytes = Buffer.alloc(16 + headers.length + body.length);
  bytes.writeUInt32BE(bytes.length, 0);
  bytes.writeUInt32BE(headers.length, 4);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, 8)), 8);
  headers.copy(bytes, 12);
  body.copy(bytes, 12 + headers.length);
  bytes.writeUInt32BE(crc32(bytes.subarray(0, bytes.length - 4)), bytes.length - 4);
  return bytes;
};
const streams = [
  ['openai-chat', chatStream(frames)],
  ['openai-completions', many((at) => event({ id: 'cmpl-9f8e7d6c5b4a39281706', object: 'text_completion', created: 1796050248, model: 'meta-llama/Llama-3.1-8B', choices: [{ index: 0, text: word(at), logprobs: null, finish_reason: null, stop_reason: null }], usage: null }))],
  ['openai-responses', many((at) => event({ type: 'response.output_text.delta', sequence_number: at, item_id: 'msg_67c9fdcf37fc8190ba82116e33fb28c507b8b0ad4e5eb654', output_index: 0, content_index: 0, delta: word(at), logprobs: [], obfuscation: 'aB3dE6gH' }, true))],
  ['azure', many((at) => event({ choices: [{ content_filter_results: { hate: { filtered: false, severity: 'safe' } }, delta: { content: word(at) }, finish_reason: null, index: 0, logprobs: null }], created: 1796050248, id: 'chatcmpl-9f8e7d6c', model: 'gpt-4o', object: 'chat.completion.chunk', system_fingerprint: 'fp' }))],
  ['anthropic', many((at) => event({ type: 'content_block_delta', index: 0, delta: { type: 'text_delta', text: `${word(at)} and a few words more, as they come` } }, true))],
  ['gemini', many((at) => event(geminiChunk(at)).replace(/\n/g, '\r\n'))],
  ['gemini (array)', Buffer.from(`[${Array.from({ length: 8000 }, (_, at) => JSON.stringify(geminiChunk(at), null, 2)).join('\n,\n')}]`)],
  ['ollama', many((at) => `${JSON.stringify({ model: 'llama3.2:latest', created_at: '2026-11-30T14:56:07.123456789Z', message: { role: 'assistant', content: word(at) }, done: false })}\n`)],
  ['llamacpp', many((at) => event({ index: 0, content: word(at), tokens: [at], stop: false, id_slot: -1, tokens_predicted: at + 1, tokens_evaluated: 3, timings: { cache_n: 25, prompt_n: 1, prompt_ms: 1.247, prompt_per_token_ms: 1.247, prompt_per_second: 801.9, predicted_n: at + 1, predicted_ms: at + 0.001, predicted_per_token_ms: 1.01, predicted_per_second: 990.2 } }))],
  ['tgi', many((at) => event({ index: at, token: { id: 5000 + at, text: word(at), logprob: -0.123456, special: false }, generated_text: null, details: null }))],
  ['sglang', many((at) => event({ text: word(at), output_ids: [at], meta_info: { id: '9f8e7d6c5b4a39281706f5e4d3c2b1a0', finish_reason: null, prompt_tokens: 6, completion_tokens: at + 1, cached_tokens: 3, weight_version: 'default' } }))],
  ['triton', many((at) => event({ model_name: 'ensemble', model_version: '1', sequence_end: false, sequence_id: 0, sequence_start: false, text_output: word(at) }))],
  ['bedrock', Buffer.concat(Array.from({ length: frames }, (_, at) => message('contentBlockDelta', { contentBlockIndex: 0, delta: { text: word(at) }, p: 'abcdefghijklmnopqrstuvwxyzABCDEFGH' })))],
  ['cohere', many((at) => event({ type: 'content-delta', index: 0, delta: { message: { content: { text: word(at) } } } }, true))],
];

console.log(`decode against JSON.parse of the same frames, reads of 16 kB, least processor time of 7 interleaved rounds`);
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
  const rounds = Array.from({ length: 9 }, () => ({ parse: clock(parse), decode: clock(() => decode(dialect, reads)), single: perFrame.length > 100 ? clock(() => decode(dialect, perFrame)) : null })).slice(2);
  const [parsing, decoding, single] = ['parse', 'decode', 'single'].map((what) => least(rounds.map((round) => round[what])));
  // Bedrock's messages are half header, and every byte of them is under a checksum that JSON.parse does not compute.
  row(name, decoding / parsing, name === 'bedrock' ? 4 : 2.5, `${(bytes.length / 1e3 / decoding).toFixed(0)} MB/s, ${raws.length} frames${perFrame.length > 100 ? `; ${(single / parsing).toFixed(2)} × with a frame a read` : ''}`);
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
  const beyond = before - process.memoryUsage().heapUsed;
  if (live.length !== count) throw new Error('arrivals are missing');
  return beyond;
};
const [few, full] = [kept(1000), kept(100_000)];
console.log(`  after 1,000 frames ${(few / 1e3).toFixed(0)} kB, after 100,000 frames ${(full / 1e3).toFixed(0)} kB, of which the list of arrivals is up to ${((100_000 * 8 * 1.5) / 1e3).toFixed(0)} kB`);
row('growth per frame beyond the list', Math.max(0, (full - few) / 99_000 - 12), 4, 'bytes');

console.log('one frame in reads of 1 kB');
const single = (size) => cut(Buffer.from(chat('x'.repeat(size)) + 'data: [DONE]\n\n'), 1024);
const [small, large] = [single(5e6), single(20e6)];
const times = [small, large].map((reads) => least(Array.from({ length: 5 }, () => clock(() => decode(dialects['openai-chat'], reads)))));
row('20 MB against 5 MB', times[1] / times[0], 6, `${times[1].toFixed(0)} ms`);

rmSync(folder, { recursive: true, force: true });
process.exit(over ? 1 : 0);
