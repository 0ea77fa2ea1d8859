/** What a cache rule predicts for the pairs of a proof, in the server's own tokens where it tells them, else by the text. */
import { countMarks } from '../../prompt/cacheMark';
import type { ChatPrompt, RequestApi } from '../../prompt/prompt';
import { counted } from '../../report/format';
import type { Answer } from '../detect';
import { askFor } from '../dialect/index';
import { endpointRoot } from '../dialect/request';
import { createNonce, salted, type Target } from '../plan';

/** Prompt tokens of a request, those it has in common with an earlier one, and what a rule lets a server reuse of them. */
export interface PrefixPrediction {
  readonly total: number;
  readonly common: number;
  readonly tokens: number;
  /** What decided the number, in words. */
  readonly why: string;
  /** True when the server itself made the tokens, chat template included; else the text was counted and the template's tokens are missing. */
  readonly exact: boolean;
}

/** What the rule lets be reused. */
export interface PredictedReuse {
  readonly tokens: number;
  readonly why: string;
}

/** The same for two request bodies, with the tokens of their text. */
export interface PredictedOfBodies extends PredictedReuse {
  readonly total: number;
  readonly common: number;
}

/** The arithmetic of the chosen rule, which lives with the prompts. */
export interface RuleArithmetic {
  readonly id: string;
  readonly name: string;
  readonly asOf: string;
  /** Tokens of a cache block; 1 where any length is reused. */
  readonly block: number;
  /** How to make the server tell cached tokens, or null. */
  readonly tell: string | null;
  /** For rules that only ask how many leading tokens are equal; null for those that ask where messages and markers stand. */
  readonly ofTokens: ((total: number, common: number) => PredictedReuse | Promise<PredictedReuse>) | null;
  /** For two request bodies: the second after the first. */
  readonly ofBodies: (first: Readonly<Record<string, unknown>>, second: Readonly<Record<string, unknown>>) => PredictedOfBodies | Promise<PredictedOfBodies>;
}

/** The endpoint as far as a cache rule depends on it. */
export interface ProofTarget {
  readonly server: string | null;
  readonly dialect: string;
  readonly url: string;
  readonly model: string | null;
}

/** The two prompts of a proof and the rule that predicts. */
export interface ProofSubject {
  readonly first: ChatPrompt;
  readonly second: ChatPrompt;
  /** What differs between them, in words. */
  readonly change: string;
  readonly rule: RuleArithmetic;
}

/** What shall be proven: the subject follows from the endpoint that was found. */
export interface ProofWanted {
  readonly pairs: number;
  readonly subject: (target: ProofTarget) => ProofSubject | Promise<ProofSubject>;
}

/** A pair to send: the cold request and its repeats share the nonce. */
export interface PlannedPair {
  readonly nonce: string;
  /** The cold request once more. */
  readonly warm: PrefixPrediction;
  /** The second prompt after the first. */
  readonly changed: PrefixPrediction;
}

/** The pairs with what is predicted for each. */
export interface PlannedProof extends ProofSubject {
  readonly pairs: readonly PlannedPair[];
  /** Who counted: the server's tokenizer, or the text. */
  readonly countedBy: 'server' | 'text';
  /** Breakpoints in the request as it is sent. */
  readonly markers: number;
  /** What of the file this endpoint cannot be sent, in sentences. */
  readonly notes: readonly string[];
}

/** Posts JSON to a URL of the endpoint's own server. */
export type Post = (url: string, body: unknown) => Promise<Answer>;

/** True when the nonce goes beside the prompt (`cache_salt`) and leaves its tokens alone. */
export function saltedBeside({ server, dialect }: Pick<Target, 'server' | 'dialect'>): boolean {
  return server === 'vllm' && dialect.id.startsWith('openai-');
}

/** Nonces and predictions of all pairs. Asks the server's tokenizer two requests a pair, or two in all where the nonce stands beside the prompt. */
export async function planProof(target: Target, wanted: ProofWanted, post: Post): Promise<PlannedProof> {
  const subject = await wanted.subject({ server: target.server, dialect: target.dialect.id, url: target.endpoint.url, model: target.model });
  const beside = saltedBeside(target);
  const pairs: PlannedPair[] = [];
  let known: Pick<PlannedPair, 'warm' | 'changed'> | null = null;
  let server = subject.rule.ofTokens !== null;
  for (let i = 0; i < wanted.pairs; i += 1) {
    const nonce = createNonce();
    const [first, second] = beside ? [subject.first, subject.second] : [salted(subject.first, nonce), salted(subject.second, nonce)];
    if (known === null || !beside) {
      const exact: Pick<PlannedPair, 'warm' | 'changed'> | null = server ? await byTokens(target, first, second, subject.rule, post) : null;
      if (exact === null) server = false;
      known = exact ?? (await byText(target, first, second, subject.rule));
    }
    pairs.push({ nonce, ...known });
  }
  return { ...subject, pairs, countedBy: server ? 'server' : 'text', markers: countMarks(bodyOf(target, subject.first)), notes: notesOf(target, subject.first) };
}

const apis: Readonly<Partial<Record<string, RequestApi>>> = { 'openai-chat': 'chat', azure: 'chat', 'openai-responses': 'responses', anthropic: 'anthropic', gemini: 'gemini', bedrock: 'bedrock' };

/** What of a prompt does not reach this endpoint as its file writes it. */
function notesOf(target: Target, prompt: ChatPrompt): string[] {
  const { id } = target.dialect;
  const parts = prompt.messages.flatMap((message) => message.parts ?? []);
  // One marker for the whole request asks for what OpenAI does by itself.
  const written = parts.filter(({ mark }) => mark !== undefined).length + countMarks(prompt.tools) + (prompt.mark !== undefined && !id.startsWith('openai-') && id !== 'azure' ? 1 : 0);
  const lost = written - countMarks(bodyOf(target, prompt));
  const notes: string[] = [];
  if (lost > 0) notes.push(`${counted(lost, 'cache marker')} of the file cannot be written in the API of this endpoint (${id}) and ${lost === 1 ? 'is' : 'are'} left out: predicted and served are those of the request without ${lost === 1 ? 'it' : 'them'}.`);
  if (prompt.own === undefined || prompt.own.api === apis[id]) return notes;
  const kinds = [...new Set(parts.flatMap(({ block }) => (block === undefined || typeof block['text'] === 'string' ? [] : [typeof block['type'] === 'string' ? block['type'] : Object.keys(block)[0] ?? 'block'])))];
  const fields = Object.keys(prompt.own.fields);
  if (kinds.length > 0) notes.push(`The file is written for another API than ${id}: its blocks that are no text (${kinds.join(', ')}) are sent in words.`);
  if (fields.length > 0) notes.push(`The file is written for another API than ${id}: ${fields.join(', ')} ${fields.length === 1 ? 'is' : 'are'} not sent.`);
  return notes;
}

async function byTokens(target: Target, first: ChatPrompt, second: ChatPrompt, rule: RuleArithmetic, post: Post): Promise<Pick<PlannedPair, 'warm' | 'changed'> | null> {
  const a = await tokensOf(target, first, post).catch(() => null);
  const b = a === null ? null : await tokensOf(target, second, post).catch(() => null);
  if (a === null || b === null || rule.ofTokens === null) return null;
  let common = 0;
  while (common < a.length && common < b.length && a[common] === b[common]) common += 1;
  const warm = await rule.ofTokens(a.length, a.length);
  const changed = await rule.ofTokens(b.length, common);
  return { warm: { total: a.length, common: a.length, ...warm, exact: true }, changed: { total: b.length, common, ...changed, exact: true } };
}

async function byText(target: Target, first: ChatPrompt, second: ChatPrompt, rule: RuleArithmetic): Promise<Pick<PlannedPair, 'warm' | 'changed'>> {
  const [a, b] = [bodyOf(target, first), bodyOf(target, second)];
  return { warm: { ...(await rule.ofBodies(a, a)), exact: false }, changed: { ...(await rule.ofBodies(a, b)), exact: false } };
}

/** The body as it will be sent, as far as the prefix cache is concerned. */
export function bodyOf(target: Target, prompt: ChatPrompt): Readonly<Record<string, unknown>> {
  const { endpoint, dialect, model, server, memory } = target;
  const ask = askFor(dialect, { url: endpoint.url, server, refused: new Set(memory.recall(endpoint.url).refused), fixedLength: true });
  const { body } = dialect.request({ url: endpoint.url, model, prompt, maxTokens: 1, ask, body: endpoint.body, headers: {}, key: null });
  return JSON.parse(body) as Record<string, unknown>;
}

/** The prompt as the server's own token ids, chat template included; null where it does not tell them. */
export async function tokensOf(target: Target, prompt: ChatPrompt, post: Post): Promise<readonly number[] | null> {
  const root = endpointRoot(target.endpoint.url);
  const body = bodyOf(target, prompt);
  if (target.server === 'vllm' && Array.isArray(body['messages'])) {
    const { model, messages, tools, chat_template_kwargs: names } = body;
    return ids(await post(`${root}/tokenize`, { model, messages, add_generation_prompt: true, ...(tools === undefined ? {} : { tools }), ...(names === undefined ? {} : { chat_template_kwargs: names }) }));
  }
  if (target.server === 'llamacpp' && Array.isArray(body['messages'])) {
    const { messages, tools } = body;
    const rendered = answerOf(await post(`${root}/apply-template`, { messages, ...(tools === undefined ? {} : { tools }) }))['prompt'];
    return typeof rendered === 'string' ? ids(await post(`${root}/tokenize`, { content: rendered, add_special: true })) : null;
  }
  return null;
}

function ids(answer: Answer): readonly number[] | null {
  const { tokens } = answerOf(answer);
  return Array.isArray(tokens) && tokens.every((token) => typeof token === 'number') ? tokens : null;
}

function answerOf({ status, text }: Answer): Readonly<Record<string, unknown>> {
  if (status !== 200) return {};
  const value: unknown = JSON.parse(text);
  return typeof value === 'object' && value !== null ? (value as Record<string, unknown>) : {};
}
