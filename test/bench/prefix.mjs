// Prompt files against the budgets: an edit of 100 kB ≤ 50 ms and of 1 MB ≤ 1 s in the analysis thread (parse, judge, count; the tokenizer's load
// apart), a scan of 1,000 files ≤ 10 s, and typing that never waits for any of it. Times are processor time of this process, since the machine may
// be busy with other things; beside each stands what an empty question to the same thread takes. Needs dist/ built.
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import os from 'node:os';
import path from 'node:path';
import { performance } from 'node:perf_hooks';
import { Worker } from 'node:worker_threads';

const root = path.resolve(import.meta.dirname, '../..');
const folder = mkdtempSync(path.join(os.tmpdir(), 'first-token-prefix-'));
let over = false;

const thread = new Worker(path.join(root, 'dist/prefix.js'));
let next = 0;
const open = new Map();
thread.on('message', (message) => {
  if (message.type === 'scanned') return;
  const { resolve, reject } = open.get(message.id);
  open.delete(message.id);
  if (message.type === 'answer') resolve(message.answer);
  else reject(new Error(message.message));
});
const ask = (question) => new Promise((resolve, reject) => {
  const id = (next += 1);
  open.set(id, { resolve, reject });
  thread.postMessage({ type: 'ask', id, question });
});
const judge = { target: {}, overrides: {}, scope: 'user', variables: {}, minLostTokens: 256, today: new Date().toISOString().slice(0, 10), cost: { prefillRate: null, price: null }, tokenizer: null, chatTemplate: null };
const analyse = (text, name, version) => ask({ type: 'analyse', source: { uri: name, path: path.join(folder, name), root: folder, text }, version, judge });

const sentence = (i) => `Rule ${i}: when a customer asks about part ${i * 7} answer in two sentences, name the price in euro, and never invent one.\n`;
const prompty = (bytes) => {
  let body = '';
  for (let i = 0; body.length < bytes; i += 1) body += i % 40 === 39 ? `{% if tier_${i} == "gold" %}Greet them by name.{% endif %} It is {{ current_time }}.\n` : sentence(i);
  return `---\nname: bench\n---\nsystem:\n${body}\nuser:\n{{ question }}\n`;
};
const handlebars = (bytes) => {
  let body = '';
  for (let i = 0; body.length < bytes; i += 1) body += i % 40 === 39 ? '{{#if gold}}Greet {{name}}.{{/if}}\n' : sentence(i);
  return `---\nmodel: x\n---\n{{role "system"}}\n${body}\n{{role "user"}}\n{{question}}\n`;
};
const requests = (bytes) => {
  let body = '';
  for (let i = 0; body.length < bytes; i += 1) body += `${JSON.stringify({ custom_id: `r${i}`, body: { model: 'm', messages: [{ role: 'system', content: Array.from({ length: 20 }, (_, k) => sentence(k)).join('') }, { role: 'user', content: `Question ${i}` }] } })}\n`;
  return body;
};

const repeated = (bytes, line) => {
  let body = '';
  for (let i = 0; body.length < bytes; i += 1) body += line(i);
  return body;
};
/** A variable or a condition on every line: far denser than what people write. */
const denseJinja = (bytes) => repeated(bytes, (i) => `{% if tier_${i % 90} == "gold" %}Greet {{ name_${i % 50} }}.{% endif %} It is {{ user.city | upper }}, and nothing else.\n`);
const denseHandlebars = (bytes) => repeated(bytes, (i) => `{{#if gold_${i % 90}}}Greet {{name_${i % 50}}}.{{/if}} You are in {{user.city}}, and nowhere else.\n`);
const script = (bytes) => repeated(bytes, (i) => (i % 12 === 0 ? `export const prompt${i} = \`You answer for \${team${i}}, at \${new Date().toISOString()}. ${sentence(i).trim()}\`;\n` : `export function add${i}(a: string, b: number): string {\n  if (b > ${i}) return a + b.toFixed(${i % 20});\n  return [a, b].join(', ');\n}\n`));
const python = (bytes) => repeated(bytes, (i) => (i % 12 === 0 ? `PROMPT_${i} = f"""You answer for {team_${i}}, at {datetime.now()}. ${sentence(i).trim()}"""\n` : `def add_${i}(a, b):\n    if b > ${i}:\n        return a + str(b)\n    return [a, b]\n\n`));
const settings = (bytes) => `messages:\n${repeated(bytes, (i) => `  - role: ${i % 2 === 0 ? 'user' : 'assistant'}\n    content: |\n      ${sentence(i)}      ${sentence(i + 1)}`)}  - role: user\n    content: "{{input}}"\n`;

/** Processor ms of the whole process while `work` runs: the thread's, and the little of the asking side. */
const cost = async (work) => {
  const start = process.cpuUsage();
  const wall = performance.now();
  await work();
  const { user, system } = process.cpuUsage(start);
  return { cpu: (user + system) / 1e3, wall: performance.now() - wall };
};
const median = (values) => [...values].sort((a, b) => a - b)[values.length >> 1];
const row = (name, value, budget, unit, note) => {
  const bad = budget !== null && value > budget;
  over ||= bad;
  console.log(`  ${name.padEnd(44)} ${value.toFixed(value < 10 ? 2 : 0).padStart(7)} ${unit} ${budget === null ? '' : `(budget ${budget}) ${bad ? 'OVER' : 'ok'}`} ${note}`);
};

const begun = performance.now();
await analyse('Hello', 'first.prompt.md', 1);
row('first question: thread, prompt part, tokenizer', performance.now() - begun, null, 'ms', 'once a window, lenses come after it');

const empties = [];
for (let i = 0; i < 20; i += 1) empties.push((await cost(() => ask({ type: 'fixes', uri: 'none', version: 0, start: 0, end: 0 }))).cpu);
const empty = Math.max(0.01, median(empties));

for (const [kind, make, name] of [
  ['Prompty', prompty, 'big.prompty'],
  ['Dotprompt', handlebars, 'big.prompt'],
  ['Jinja, dense', denseJinja, 'big.j2'],
  ['Handlebars, dense', denseHandlebars, 'big.hbs'],
  ['TypeScript', script, 'prompts.ts'],
  ['Python', python, 'prompts.py'],
  ['GitHub Models', settings, 'big.prompt.yml'],
  ['batch JSONL', requests, 'big.jsonl'],
]) {
  for (const [label, bytes, budget] of [['100 kB', 100_000, 50], ['1 MB', 1_000_000, 1000]]) {
    const text = make(bytes);
    await analyse(text, name, 1);
    const view = await analyse(`${text} `, name, 2);
    const tokens = view.prompts.reduce((sum, prompt) => sum + prompt.total, 0);
    // Of files with many prompts the first hundred are shown.
    if (tokens < (view.prompts.length > 1 ? 2000 : bytes / 20)) throw new Error(`${kind}, ${label}: only ${tokens} tokens were counted, so the figure would say nothing`);
    const edits = [];
    for (let i = 0; i < (bytes > 500_000 ? 7 : 21); i += 1) {
      // Another word typed in the middle of the text each time.
      // In code: in the text of a prompt, as an edit that breaks the syntax there has the whole file read anew (the row below).
      const at = kind === 'TypeScript' || kind === 'Python' ? text.indexOf(' answer in two', text.length >> 1) : text.indexOf('\n', text.length >> 1);
      const edited = kind === 'batch JSONL' ? text.replace('Question 1"', `Question 1 ${i}"`) : `${text.slice(0, at)} word${i}${text.slice(at)}`;
      edits.push((await cost(() => analyse(edited, name, 3 + i))).cpu);
    }
    row(`${kind}, ${label}: an edit`, median(edits), budget, 'ms', `${(median(edits) / empty).toFixed(0)} × an empty question`);
  }
}

{
  const text = python(100_000);
  const at = text.indexOf('\n', text.indexOf('return [a, b]', text.length >> 1));
  const edits = [];
  for (let i = 0; i < 7; i += 1) edits.push((await cost(() => analyse(`${text.slice(0, at)} half${i}${text.slice(at)}`, 'broken_prompts.py', i))).cpu);
  row('Python, 100 kB: an edit with broken syntax', median(edits), null, 'ms', 'the whole file is parsed');
}

// While the thread works on 1 MB, the asking side must stay free: the longest it was not.
const text = prompty(1_000_000);
let longest = 0;
let last = performance.now();
const ticking = setInterval(() => {
  const now = performance.now();
  longest = Math.max(longest, now - last);
  last = now;
}, 1);
const idle = await new Promise((resolve) => setTimeout(() => resolve(longest), 300));
longest = 0;
for (let i = 0; i < 5; i += 1) await analyse(`${text}${i}`, 'typing.prompty', i);
clearInterval(ticking);
row('longest pause of the asking side, 5 × 1 MB', longest, null, 'ms', `idle here: ${idle.toFixed(0)} ms`);

const tree = path.join(folder, 'tree');
for (let i = 0; i < 1000; i += 1) {
  const below = path.join(tree, `team${i % 20}`, 'prompts');
  mkdirSync(below, { recursive: true });
  writeFileSync(path.join(below, `p${i}.${['prompty', 'prompt', 'prompt.md', 'prompt.yml'][i % 4]}`), i % 4 === 3 ? `messages:\n  - role: system\n    content: |\n${prompty(4000).split('\n').slice(4).map((line) => `      ${line}`).join('\n')}\n  - role: user\n    content: "{{input}}"\n` : (i % 4 === 1 ? handlebars : prompty)(4000 + (i % 7) * 500));
}
let scanned;
const scan = await cost(async () => {
  scanned = await ask({ type: 'scan', roots: [tree], globs: ['**/*.{prompty,prompt,prompt.md,prompt.yml}'], most: 5000, judge });
});
if (scanned.found !== 1000) {
  console.error(`  the scan found ${scanned.found} of 1000 files`);
  over = true;
}
row('scan of 1,000 files of 4–7 kB', scan.wall / 1000, 10, 's', `${(scan.cpu / 1000).toFixed(1)} s of processor time`);

await thread.terminate();
rmSync(folder, { recursive: true, force: true });
process.exitCode = over ? 1 : 0;
