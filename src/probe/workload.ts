/** What a load sends: which prompt comes as the i-th, how long its answer may be, and when it is due where a trace says so. */
import type { ChatPrompt } from '../prompt/prompt';
import type { Milliseconds } from '../report/sample';
import { generator } from '../report/statistics';
import { parseCsv } from './csvRows';
import { createNonce, PlanError, type Lane, type Shot } from './plan';

/** One request to come. */
export interface WorkItem {
  readonly prompt: ChatPrompt;
  /** Null = as long as the settings allow. */
  readonly maxTokens: number | null;
  /** When a trace sent it, ms from the trace's start; null = whenever the schedule wants. */
  readonly at: Milliseconds | null;
  readonly labels: Readonly<Record<string, string | number>>;
}

/** A source of requests. */
export interface Workload {
  /** For people and the report: `built-in`, `chat.j2 with rows.csv`. */
  readonly name: string;
  /** `each`: every prompt is made new to every cache; `run`: new to this run, so that what prompts share stays shared; `none`: as they are. */
  readonly salt: 'each' | 'run' | 'none';
  /** Requests it has; null = any number. Beyond it the items come again from the start. */
  readonly length: number | null;
  /** Its items have times of their own. */
  readonly timed: boolean;
  /** Turns of one conversation follow each other: so many items belong together, and none is sent before the one before it was answered. */
  readonly turns: number;
  /** The i-th request, always the same for the same i. */
  item(index: number): WorkItem;
}

/** One prompt, over and over. */
export function fixedPrompt(prompt: ChatPrompt, name: string, salt: Workload['salt'] = 'each'): Workload {
  const item: WorkItem = { prompt, maxTokens: null, at: null, labels: {} };
  return { name, salt, length: null, timed: false, turns: 1, item: () => item };
}

/** A number of tokens, drawn anew for each request. */
export type Lengths = (random: () => number) => number;

/**
 * Reads a length: `128`, `fixed:128`, `lognormal:MEAN:SIGMA` (mean in tokens, sigma of the logarithm) or `file:PATH` (numbers, one a line or
 * as a JSON list; drawn with equal chance). Throws a PlanError that names the flag.
 */
export function parseLengths(flag: string, spec: string, readFile: (path: string) => string): Lengths {
  const wrong = (): PlanError => new PlanError(`${flag} takes a number of tokens, fixed:N, lognormal:MEAN:SIGMA or file:PATH; got "${spec}".`);
  const whole = (n: number): number => Math.max(1, Math.round(n));
  const fixed = /^(?:fixed:)?(\d+)$/.exec(spec);
  if (fixed) {
    const n = Number(fixed[1]);
    if (n < 1 || n > 10_000_000) throw wrong();
    return () => n;
  }
  const drawn = /^lognormal:(\d+(?:\.\d+)?):(\d+(?:\.\d+)?)$/.exec(spec);
  if (drawn) {
    const [mean, sigma] = [Number(drawn[1]), Number(drawn[2])];
    if (!(mean >= 1) || sigma > 5) throw wrong();
    const mu = Math.log(mean) - sigma ** 2 / 2;
    return (random) => whole(Math.exp(mu + sigma * normal(random)));
  }
  const file = /^file:(.+)$/s.exec(spec)?.[1];
  if (file === undefined) throw wrong();
  const values = numbersIn(readFile(file));
  if (values === null || values.length === 0) throw new PlanError(`${flag} ${spec}: the file must hold whole numbers of tokens above 0, one a line or as a JSON list.`);
  return (random) => values[Math.floor(random() * values.length)]!;
}

/** A standard normal value (Box and Muller, 1958). */
function normal(random: () => number): number {
  return Math.sqrt(-2 * Math.log(1 - random())) * Math.cos(2 * Math.PI * random());
}

function numbersIn(text: string): number[] | null {
  let list: unknown;
  try {
    list = JSON.parse(text);
  } catch {
    list = text.split(/[\s,]+/).filter((word) => word !== '').map(Number);
  }
  const all = Array.isArray(list) ? (list as unknown[]) : [list];
  return all.every((n) => typeof n === 'number' && Number.isInteger(n) && n > 0 && n <= 10_000_000) ? (all as number[]) : null;
}

/** Words that are one token in the tokenizers of common models. */
const words = 'the and for are but not you all any can had her was one our out day get has him his how man new now old see two way who boy did its let put say she too use dad mom act add age ago air arm art ask bad bag bar bed big bit box bus buy car cat cut dog dry due eat egg end eye far few fit fly fun gas god gun guy hit hot ice job key kid law lay leg lie lot low map may mix net nor off oil own pay per pet pop pro raw red rest rich ride ring rise road rock role room root rule safe sail salt same sand save seat seed seem self sell send ship shop show side sign site size skin snow soft soil some song soon sort soul spot star stay step stop such sure take talk tall task team tell term test text than that them then they thin this time tiny told tone took tool tour town tree trip true tune turn type unit used user vary vast very view vote wait walk wall want warm wash wave weak wear week well west what when whom wide wife wild will wind wine wing wise wish with wood word work yard year zero'.split(' ');

/** Text of about `tokens` tokens: short common words; the same text for the same seed. */
export function fillerText(tokens: number, seed: number): string {
  const random = generator(seed);
  return Array.from({ length: tokens }, () => words[Math.floor(random() * words.length)]!).join(' ');
}

/** What a made-up workload is made of. Lengths in tokens, as far as one word is one token. */
export interface SyntheticWorkload {
  /** Tokens that all prompts begin with; 0 = they share nothing. */
  readonly prefixTokens: number;
  readonly promptTokens: Lengths;
  readonly outputTokens: Lengths | null;
  readonly turns: number;
  readonly seed: number;
  readonly salt?: Workload['salt'];
}

/** Made-up prompts: a shared prefix (the system message) and unique tails, of given lengths; with `turns` above 1 they are conversations that grow. */
export function synthetic(made: SyntheticWorkload): Workload {
  const { prefixTokens, promptTokens, outputTokens, turns, seed } = made;
  const system = prefixTokens > 0 ? [{ role: 'system' as const, text: fillerText(prefixTokens, seed) }] : [];
  const turn = (conversation: number, index: number) => {
    const own = (seed * 7919 + conversation * 104_729 + index * 1299) >>> 0;
    const random = generator(own);
    return { tokens: Math.max(1, promptTokens(random)), answer: outputTokens === null ? null : outputTokens(random), seed: own + 1 };
  };
  return {
    name: `synthetic${prefixTokens > 0 ? `, ${prefixTokens} tokens shared` : ''}${turns > 1 ? `, ${turns} turns` : ''}`,
    salt: made.salt ?? (prefixTokens > 0 || turns > 1 ? 'run' : 'each'),
    length: null,
    timed: false,
    turns,
    item(index) {
      const conversation = Math.floor(index / turns);
      const last = index % turns;
      const messages: { role: 'system' | 'user' | 'assistant'; text: string }[] = [...system];
      for (let i = 0; i <= last; i += 1) {
        const { tokens, answer, seed: own } = turn(conversation, i);
        messages.push({ role: 'user', text: fillerText(tokens, own) });
        // The answers before are made up too: what a model said would differ from run to run.
        if (i < last) messages.push({ role: 'assistant', text: fillerText(answer ?? tokens, own + 17) });
      }
      return { prompt: { messages, tools: [] }, maxTokens: turn(conversation, last).answer, at: null, labels: turns > 1 ? { conversation, turn: last } : {} };
    },
  };
}

/** A row of values for a prompt's variables. */
export type Row = Readonly<Record<string, unknown>>;

/** Reads rows from CSV (first line = names) or JSON Lines (an object a line). Throws a PlanError with the line. */
export function readRows(file: string, text: string): Row[] {
  const rows = /\.(jsonl|ndjson|json)$/i.test(file) ? jsonRows(file, text) : parseCsv(text, (message) => new PlanError(`${file}: ${message}`));
  if (rows.length === 0) throw new PlanError(`${file} holds no row: give a CSV file with a line of names and at least one of values, or JSON Lines.`);
  return rows;
}

function jsonRows(file: string, text: string): Row[] {
  return text.split(/\r?\n/).flatMap((line, i): Row[] => {
    if (line.trim() === '') return [];
    let row: unknown;
    try {
      row = JSON.parse(line);
    } catch {
      throw new PlanError(`${file} line ${i + 1} is not JSON: give one object a line, as in {"name": "Ada"}.`);
    }
    if (typeof row !== 'object' || row === null || Array.isArray(row)) throw new PlanError(`${file} line ${i + 1} is not an object of names and values.`);
    return [row as Row];
  });
}

/** A prompt with variables, filled in from one row after the other. `render` gives the prompt and the variables it found no value for. Throws a PlanError for a row that lacks one. */
export function fromRows(name: string, file: string, rows: readonly Row[], render: (row: Row) => { readonly prompt: ChatPrompt; readonly unrendered: readonly string[] }): Workload {
  const prompts = rows.map((row, i) => {
    const { prompt, unrendered } = render(row);
    if (unrendered.length > 0) throw new PlanError(`${file} row ${i + 1} has no value for ${unrendered.join(', ')} of ${name}; its columns are ${Object.keys(row).join(', ')}. Add the column, or take the variable out of the prompt.`);
    return prompt;
  });
  return { name: `${name} with ${file}`, salt: 'run', length: prompts.length, timed: false, turns: 1, item: (index) => ({ prompt: prompts[index % prompts.length]!, maxTokens: null, at: null, labels: { prompt: index % prompts.length } }) };
}

interface Turn {
  readonly from?: unknown;
  readonly role?: unknown;
  readonly value?: unknown;
  readonly content?: unknown;
}

const speakers: Readonly<Record<string, 'system' | 'user' | 'assistant'>> = { human: 'user', user: 'user', gpt: 'assistant', chatgpt: 'assistant', bard: 'assistant', bing: 'assistant', assistant: 'assistant', system: 'system' };

/** Conversations in the form of ShareGPT, `[{ "conversations": [{ "from": "human", "value": … }] }]`: every question with what came before it. Throws a PlanError. */
export function shareGpt(file: string, text: string): Workload {
  let json: unknown;
  try {
    json = JSON.parse(text);
  } catch {
    throw new PlanError(`${file} is not JSON: a list of conversations is expected, as in [{ "conversations": [{ "from": "human", "value": "Hello" }] }].`);
  }
  if (!Array.isArray(json)) throw new PlanError(`${file} is not a list of conversations.`);
  const items = json.flatMap((entry: unknown, conversation): WorkItem[] => {
    const fields = (entry ?? {}) as { readonly conversations?: unknown; readonly conversation?: unknown; readonly messages?: unknown };
    const turns = fields.conversations ?? fields.conversation ?? fields.messages;
    if (!Array.isArray(turns)) throw new PlanError(`${file}: entry ${conversation + 1} has no list "conversations".`);
    const messages = (turns as Turn[]).flatMap((turn) => {
      const role = speakers[String(turn.from ?? turn.role)];
      const said = turn.value ?? turn.content;
      return role !== undefined && typeof said === 'string' && said.trim() !== '' ? [{ role, text: said }] : [];
    });
    return messages.flatMap((message, i) => (message.role === 'user' ? [{ prompt: { messages: messages.slice(0, i + 1), tools: [] }, maxTokens: null, at: null, labels: { conversation } }] : []));
  });
  if (items.length === 0) throw new PlanError(`${file} holds no question of a user.`);
  return { name: file, salt: 'run', length: items.length, timed: false, turns: 1, item: (index) => items[index % items.length]! };
}

/** Tokens of one block of a trace's `hash_ids`. */
const traceBlock = 512;

/**
 * A trace in the form of Mooncake's, a JSON object a line: `timestamp` (ms), `input_length`, `output_length` and, optionally, `hash_ids` (one
 * per 512 tokens; equal ids are equal text, so that shared prefixes are shared again). `speed` 2 replays it twice as fast. Throws a PlanError
 * with the line for what is missing and for times that run backwards.
 */
export function trace(file: string, text: string, speed = 1): Workload {
  let before = Number.NEGATIVE_INFINITY;
  const rows = jsonRows(file, text).map((row, i) => {
    const number = (name: string): number => {
      const value = row[name];
      if (typeof value === 'number' && Number.isFinite(value) && value >= 0) return value;
      throw new PlanError(`${file} line ${i + 1}: "${name}" must be a number from 0; it is ${JSON.stringify(value)}. A trace has "timestamp" (ms), "input_length" and "output_length".`);
    };
    const at = number('timestamp');
    if (at < before) throw new PlanError(`${file} line ${i + 1}: the time runs backwards (${at} ms after ${before} ms). Sort the trace by "timestamp".`);
    before = at;
    const ids = row['hash_ids'];
    return { at, input: Math.max(1, number('input_length')), output: Math.max(1, number('output_length')), ids: Array.isArray(ids) ? ids.map(Number) : null };
  });
  const first = rows[0]?.at;
  if (first === undefined) throw new PlanError(`${file} holds no request.`);
  const prompt = ({ input, ids }: (typeof rows)[number], index: number): string => {
    const blocks = Math.ceil(input / traceBlock);
    return Array.from({ length: blocks }, (_, b) => fillerText(Math.min(traceBlock, input - b * traceBlock), ids?.[b] ?? 1_000_003 * (index + 1) + b)).join(' ');
  };
  return {
    name: file,
    salt: 'run',
    length: rows.length,
    timed: true,
    turns: 1,
    item(index) {
      const row = rows[index % rows.length]!;
      return { prompt: { messages: [{ role: 'user', text: prompt(row, index % rows.length) }], tools: [] }, maxTokens: row.output, at: (row.at - first) / speed, labels: {} };
    },
  };
}

/** How a step takes requests from a workload. */
export interface ShotSource {
  readonly workload: Workload;
  /** Salt of the run, for workloads that share it. */
  readonly runNonce: string;
  readonly maxTokens: number | null;
}

/** `count` shots from the `from`-th item on, with ids of the step's name. `dueAt` gives the i-th its time; without it they wait for a slot. */
export function shotsOf(source: ShotSource, step: string, count: number, more: { readonly from?: number; readonly role?: Shot['role']; readonly dueAt?: (index: number, item: WorkItem) => Milliseconds; readonly labels?: Shot['labels'] } = {}): Shot[] {
  const { workload, runNonce, maxTokens } = source;
  const { from = 0, role = 'measured', dueAt, labels = {} } = more;
  return Array.from({ length: count }, (_, i) => {
    const item = workload.item(from + i);
    return {
      id: `${step}${role === 'warmup' ? '-warm' : ''}-${i + 1}`,
      role,
      target: 0,
      dueAt: dueAt && role === 'measured' ? dueAt(i, item) : null,
      prompt: item.prompt,
      maxTokens: item.maxTokens ?? maxTokens,
      nonce: workload.salt === 'none' ? null : workload.salt === 'run' ? runNonce : createNonce(),
      labels: { ...item.labels, ...labels },
    };
  });
}

/** Users who each hold one conversation after the other: shots of a workload with turns, in a lane a user, so that no turn overtakes the one before it. */
export function inConversations(shots: readonly Shot[], users: number, turns: number): { readonly shots: readonly Shot[]; readonly lanes: Readonly<Record<string, Lane>> } {
  const lanes: Record<string, Lane> = {};
  const placed = shots.map((shot, i) => {
    const lane = `user-${Math.floor(i / turns) % users}`;
    lanes[lane] = { concurrency: 1 };
    return { ...shot, lane };
  });
  return { shots: placed, lanes };
}
