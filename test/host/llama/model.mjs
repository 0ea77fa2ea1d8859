// Writes a small GGUF of llama architecture with random, deterministic weights: enough for a real engine to run, its words mean nothing.
import { createWriteStream } from 'node:fs';
import { rename } from 'node:fs/promises';

const text = `the first token is the wait that a reader feels and the pace after it is what keeps them reading. when many people ask at once
the server puts their questions together and each of them waits a little longer, so the number to decide on is how many answers come in time.
a cache keeps what was read before and gives it back when the next question starts with the same words, up to the first word that differs.
what changes must come last. the date at the top of a prompt throws away everything behind it. measure, look, change one thing, measure again.`;

const chatml = `{% for message in messages %}{{'<|im_start|>' + message['role'] + '\\n' + message['content'] + '<|im_end|>' + '\\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}{% endif %}`;
const thinking = chatml.replace(`assistant\\n' }}`, `assistant\\n<think>\\n' }}`);

/** The byte alphabet of byte-level BPE: printable bytes stand for themselves, the others for letters from U+0100 on. */
function byteAlphabet() {
  const map = new Map();
  let next = 256;
  for (let b = 0; b < 256; b += 1) {
    const printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
    map.set(b, String.fromCodePoint(printable ? b : next++));
  }
  return map;
}

/** Trains byte-pair merges on the text above. */
function train(count, alphabet) {
  const words = (text.match(/\s?[a-z]+|[^a-z]/g) ?? []).map((w) => [...Buffer.from(w)].map((b) => alphabet.get(b)));
  const merges = [];
  while (merges.length < count) {
    const pairs = new Map();
    for (const word of words) for (let i = 0; i + 1 < word.length; i += 1) pairs.set(`${word[i]} ${word[i + 1]}`, (pairs.get(`${word[i]} ${word[i + 1]}`) ?? 0) + 1);
    const best = [...pairs].sort((a, b) => b[1] - a[1] || (a[0] < b[0] ? -1 : 1))[0];
    if (!best) break;
    const [left, right] = best[0].split(' ');
    merges.push(best[0]);
    for (const word of words) {
      for (let i = 0; i + 1 < word.length; i += 1) if (word[i] === left && word[i + 1] === right) word.splice(i, 2, left + right);
    }
  }
  return merges;
}

/** xorshift32 with a Gaussian by the sum of four uniforms: fast and the same everywhere. */
function gaussian(seed) {
  let s = seed >>> 0 || 1;
  const uniform = () => {
    s ^= s << 13; s >>>= 0; s ^= s >>> 17; s ^= s << 5; s >>>= 0;
    return s / 4294967296;
  };
  return () => (uniform() + uniform() + uniform() + uniform() - 2) * 1.7320508;
}

class Bytes {
  parts = [];
  size = 0;
  push(buffer) { this.parts.push(buffer); this.size += buffer.length; }
  u32(v) { const b = Buffer.alloc(4); b.writeUInt32LE(v); this.push(b); }
  u64(v) { const b = Buffer.alloc(8); b.writeBigUInt64LE(BigInt(v)); this.push(b); }
  f32(v) { const b = Buffer.alloc(4); b.writeFloatLE(v); this.push(b); }
  string(v) { const b = Buffer.from(v); this.u64(b.length); this.push(b); }
  key(name, type, write) { this.string(name); this.u32(type); write(); }
}

const UINT32 = 4, FLOAT32 = 6, BOOL = 7, STRING = 8, ARRAY = 9, INT32 = 5;

/**
 * Writes the model. `think`: a template that opens <think>. `junk`: bytes that are not UTF-8 are in the vocabulary, so that the
 * server now and then fails in mid-stream. About 9 M parameters, 36 MB in f32.
 */
export async function writeModel(file, { think = false, junk = false } = {}) {
  const [embedding, layers, heads, kvHeads, feedForward, context] = [256, 8, 8, 4, 1024, 16384];
  const alphabet = byteAlphabet();
  const merges = train(240, alphabet);
  const bytes = [...alphabet].filter(([b]) => junk || b === 10 || (b >= 32 && b < 127)).map(([, letter]) => letter);
  const special = ['<|endoftext|>', '<|im_start|>', '<|im_end|>', '<think>', '</think>'];
  const tokens = [...bytes, ...merges.map((m) => m.replace(' ', '')), ...special];
  const types = tokens.map((t) => (t === '<think>' || t === '</think>' ? 4 : special.includes(t) ? 3 : 1));
  const random = gaussian(20261130);
  const head = embedding / heads;

  const tensors = [];
  const tensor = (name, dims, fill) => tensors.push({ name, dims, fill });
  const matrix = (rows, columns, scale) => () => Float32Array.from({ length: rows * columns }, () => random() * scale);
  const ones = () => new Float32Array(embedding).fill(1);
  tensor('token_embd.weight', [embedding, tokens.length], matrix(tokens.length, embedding, 1));
  tensor('output_norm.weight', [embedding], ones);
  tensor('output.weight', [embedding, tokens.length], () => {
    const w = Float32Array.from({ length: tokens.length * embedding }, () => random() * (2.2 / Math.sqrt(embedding)));
    // Start marks never: a zero row keeps them improbable but possible for the end mark.
    for (const name of ['<|endoftext|>', '<|im_start|>', '<think>', ...(think ? [] : ['</think>'])]) w.fill(0, tokens.indexOf(name) * embedding, (tokens.indexOf(name) + 1) * embedding);
    return w;
  });
  for (let l = 0; l < layers; l += 1) {
    const s = 1 / Math.sqrt(embedding);
    tensor(`blk.${l}.attn_norm.weight`, [embedding], ones);
    tensor(`blk.${l}.attn_q.weight`, [embedding, embedding], matrix(embedding, embedding, s));
    tensor(`blk.${l}.attn_k.weight`, [embedding, head * kvHeads], matrix(head * kvHeads, embedding, s));
    tensor(`blk.${l}.attn_v.weight`, [embedding, head * kvHeads], matrix(head * kvHeads, embedding, s));
    tensor(`blk.${l}.attn_output.weight`, [embedding, embedding], matrix(embedding, embedding, s));
    tensor(`blk.${l}.ffn_norm.weight`, [embedding], ones);
    tensor(`blk.${l}.ffn_gate.weight`, [embedding, feedForward], matrix(feedForward, embedding, s));
    tensor(`blk.${l}.ffn_up.weight`, [embedding, feedForward], matrix(feedForward, embedding, s));
    tensor(`blk.${l}.ffn_down.weight`, [feedForward, embedding], matrix(embedding, feedForward, 1 / Math.sqrt(feedForward)));
  }

  const meta = new Bytes();
  const entries = [
    () => meta.key('general.architecture', STRING, () => meta.string('llama')),
    () => meta.key('general.name', STRING, () => meta.string('tiny')),
    () => meta.key('general.alignment', UINT32, () => meta.u32(32)),
    ...Object.entries({ context_length: context, embedding_length: embedding, block_count: layers, feed_forward_length: feedForward, 'rope.dimension_count': head, 'attention.head_count': heads, 'attention.head_count_kv': kvHeads, vocab_size: tokens.length })
      .map(([name, value]) => () => meta.key(`llama.${name}`, UINT32, () => meta.u32(value))),
    () => meta.key('llama.attention.layer_norm_rms_epsilon', FLOAT32, () => meta.f32(1e-5)),
    () => meta.key('llama.rope.freq_base', FLOAT32, () => meta.f32(10000)),
    () => meta.key('tokenizer.ggml.model', STRING, () => meta.string('gpt2')),
    () => meta.key('tokenizer.ggml.pre', STRING, () => meta.string('gpt-2')),
    () => meta.key('tokenizer.ggml.tokens', ARRAY, () => { meta.u32(STRING); meta.u64(tokens.length); tokens.forEach((t) => meta.string(t)); }),
    () => meta.key('tokenizer.ggml.token_type', ARRAY, () => { meta.u32(INT32); meta.u64(types.length); types.forEach((t) => meta.u32(t)); }),
    () => meta.key('tokenizer.ggml.merges', ARRAY, () => { meta.u32(STRING); meta.u64(merges.length); merges.forEach((m) => meta.string(m)); }),
    () => meta.key('tokenizer.ggml.bos_token_id', UINT32, () => meta.u32(tokens.indexOf('<|endoftext|>'))),
    () => meta.key('tokenizer.ggml.eos_token_id', UINT32, () => meta.u32(tokens.indexOf('<|im_end|>'))),
    () => meta.key('tokenizer.ggml.add_bos_token', BOOL, () => meta.push(Buffer.from([0]))),
    () => meta.key('tokenizer.chat_template', STRING, () => meta.string(think ? thinking : chatml)),
  ];
  meta.push(Buffer.from('GGUF'));
  meta.u32(3);
  meta.u64(tensors.length);
  meta.u64(entries.length);
  entries.forEach((write) => write());
  let offset = 0;
  for (const t of tensors) {
    meta.string(t.name);
    meta.u32(t.dims.length);
    t.dims.forEach((d) => meta.u64(d));
    meta.u32(0);
    meta.u64(offset);
    offset += Math.ceil((t.dims.reduce((a, b) => a * b, 1) * 4) / 32) * 32;
  }
  meta.push(Buffer.alloc((32 - (meta.size % 32)) % 32));

  const out = createWriteStream(`${file}.part`);
  for (const part of meta.parts) out.write(part);
  for (const t of tensors) {
    const values = t.fill();
    out.write(Buffer.from(values.buffer));
    out.write(Buffer.alloc((32 - ((values.length * 4) % 32)) % 32));
  }
  await new Promise((resolve, reject) => out.end((error) => (error ? reject(error) : resolve())));
  await rename(`${file}.part`, file);
}
