/** What a cache rule predicts for the pairs of a proof, in the server's own tokens where it tells them, else by the text. A bundle of its own, loaded with the first proof. */
import { countMarks } from '../../prompt/cacheMark';
import type { ChatPrompt, RequestApi } from '../../prompt/prompt';
import type { CountedEnds } from '../../prompt/requestDiff';
import { counted } from '../../report/format';
import type { Answer } from '../detect';
import { list, object } from '../dialect/json';
import { endpointRoot, lacksUserMessage, noUserMessage } from '../dialect/request';
import { createNonce, salted, saltedBeside, type Target } from '../plan';

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

type Body = Readonly<Record<string, unknown>>;

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
  /** For two request bodies: the second after the first. `ends`: where their blocks end in the provider's own tokens, as far as it counted them. */
  readonly ofBodies: (first: Body, second: Body, ends?: readonly [CountedEnds, CountedEnds]) => PredictedOfBodies | Promise<PredictedOfBodies>;
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
  /** True when both are requests as the file holds them, not two renders of one. */
  readonly captured?: boolean;
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
  /** Who counted: the server's tokenizer, the provider's API for counting requests, or the text. */
  readonly countedBy: 'server' | 'provider' | 'text';
  /** Breakpoints in the request as it is sent. */
  readonly markers: number;
  /** What of the file this endpoint cannot be sent, in sentences. */
  readonly notes: readonly string[];
}

/** Posts JSON to a URL of the endpoint's own server. */
export type Post = (url: string, body: unknown) => Promise<Answer>;

/** What planning asks: the server, and how a prompt's body is made. */
export interface ProofMeans {
  readonly post: Post;
  readonly bodyOf: (prompt: ChatPrompt) => Body;
}

/** Nonces and predictions of all pairs. Asks the server's tokenizer two requests a pair, or two in all where the nonce stands beside the prompt. */
export async function planProof(target: Target, wanted: ProofWanted, means: ProofMeans): Promise<PlannedProof> {
  const { bodyOf } = means;
  const subject = await wanted.subject({ server: target.server, dialect: target.dialect.id, url: target.endpoint.url, model: target.model });
  const beside = saltedBeside(target);
  const pairs: PlannedPair[] = [];
  let known: Pick<PlannedPair, 'warm' | 'changed'> | null = null;
  let server = subject.rule.ofTokens !== null;
  const ends = await endsOf(target, subject, means);
  for (let i = 0; i < wanted.pairs; i += 1) {
    const nonce = createNonce();
    const [first, second] = beside ? [subject.first, subject.second] : [salted(subject.first, nonce), salted(subject.second, nonce)];
    if (known === null || !beside) {
      const exact: Pick<PlannedPair, 'warm' | 'changed'> | null = server ? await byTokens(target, bodyOf(first), bodyOf(second), subject.rule, means.post) : null;
      if (exact === null) server = false;
      known = exact ?? (await byText(bodyOf(first), bodyOf(second), subject.rule, ends));
    }
    pairs.push({ nonce, ...known });
  }
  return { ...subject, pairs, countedBy: server ? 'server' : ends ? 'provider' : 'text', markers: countMarks(bodyOf(subject.first)), notes: notesOf(target, subject.first, bodyOf(subject.first)) };
}

const apis: Readonly<Partial<Record<string, RequestApi>>> = { 'openai-chat': 'chat', azure: 'chat', 'openai-responses': 'responses', anthropic: 'anthropic', gemini: 'gemini', bedrock: 'bedrock' };

/** What of a prompt does not reach this endpoint as its file writes it. */
function notesOf(target: Target, prompt: ChatPrompt, body: Body): string[] {
  const { id } = target.dialect;
  const parts = prompt.messages.flatMap((message) => message.parts ?? []);
  // One marker for the whole request asks for what OpenAI does by itself.
  const written = parts.filter(({ mark }) => mark !== undefined).length + countMarks(prompt.tools) + (prompt.mark !== undefined && !id.startsWith('openai-') && id !== 'azure' ? 1 : 0);
  const lost = written - countMarks(body);
  const notes: string[] = [];
  const named = prompt.own?.model ?? null;
  if (named !== null && target.model !== null && named !== target.model) notes.push(`The file names the model ${named}; sent, predicted and served is ${target.model}, the endpoint’s.`);
  if (lost > 0) notes.push(`${counted(lost, 'cache marker')} of the file cannot be written in the API of this endpoint (${id}) and ${lost === 1 ? 'is' : 'are'} left out: predicted and served are those of the request without ${lost === 1 ? 'it' : 'them'}.`);
  if (lacksUserMessage(id, prompt)) notes.push(`The file has no user message and this API (${id}) takes no request without one: “${noUserMessage}” was sent behind it.`);
  if (prompt.own === undefined || prompt.own.api === apis[id]) return notes;
  const kinds = [...new Set(parts.flatMap(({ block }) => (block === undefined || typeof block['text'] === 'string' ? [] : [typeof block['type'] === 'string' ? block['type'] : Object.keys(block)[0] ?? 'block'])))];
  const fields = Object.keys(prompt.own.fields);
  if (kinds.length > 0) notes.push(`The file is written for another API than ${id}: its blocks that are no text (${kinds.join(', ')}) are sent in words.`);
  if (fields.length > 0) notes.push(`The file is written for another API than ${id}: ${fields.join(', ')} ${fields.length === 1 ? 'is' : 'are'} not sent.`);
  return notes;
}

async function byTokens(target: Target, first: Body, second: Body, rule: RuleArithmetic, post: Post): Promise<Pick<PlannedPair, 'warm' | 'changed'> | null> {
  const a = await tokensOf(target, first, post).catch(() => null);
  const b = a === null ? null : await tokensOf(target, second, post).catch(() => null);
  if (a === null || b === null || rule.ofTokens === null) return null;
  let common = 0;
  while (common < a.length && common < b.length && a[common] === b[common]) common += 1;
  const warm = await rule.ofTokens(a.length, a.length);
  const changed = await rule.ofTokens(b.length, common);
  return { warm: { total: a.length, common: a.length, ...warm, exact: true }, changed: { total: b.length, common, ...changed, exact: true } };
}

async function byText(a: Body, b: Body, rule: RuleArithmetic, ends: readonly [CountedEnds, CountedEnds] | null): Promise<Pick<PlannedPair, 'warm' | 'changed'>> {
  return { warm: { ...(await rule.ofBodies(a, a, ends ? [ends[0], ends[0]] : undefined)), exact: false }, changed: { ...(await rule.ofBodies(a, b, ends ?? undefined)), exact: false } };
}

/** Where the marked blocks of both prompts end in Anthropic's own count, salted as they will be (every nonce is equally long); null where the endpoint does not count. */
async function endsOf(target: Target, { first, second, rule }: ProofSubject, { post, bodyOf }: ProofMeans): Promise<readonly [CountedEnds, CountedEnds] | null> {
  if (target.dialect.id !== 'anthropic' || rule.ofTokens !== null) return null;
  const nonce = createNonce();
  const count = async (body: Body): Promise<number> => {
    const { input_tokens: tokens } = answerOf(await post(`${endpointRoot(target.endpoint.url)}/v1/messages/count_tokens`, { model: target.model, ...body }));
    if (typeof tokens !== 'number') throw new Error('no count');
    return tokens;
  };
  try {
    const least = await count({ messages: [short] });
    return [await endsIn(bodyOf(salted(first, nonce)), count, least), await endsIn(bodyOf(salted(second, nonce)), count, least)];
  } catch {
    return null;
  }
}

/** The message that stands in for those that are cut off. */
export const short = { role: 'user', content: '.' };

/** Counts a request of Anthropic's form cut off behind each marked block and behind the last; `least` is what a request of the one `short` message counts. */
export async function endsIn(body: Body, count: (body: Body) => Promise<number>, least: number): Promise<CountedEnds> {
  const { system } = body;
  const tools = list(body['tools']);
  const messages = list(body['messages']);
  const before = system === undefined ? { tools } : { tools, system };
  const cut = (at: readonly unknown[], i: number) => at.slice(0, i + 1);
  const cuts: { readonly marked: boolean; readonly body: Body; readonly short: boolean }[] = [
    ...tools.map((tool, i) => ({ marked: countMarks(tool) > 0, body: { tools: cut(tools, i), messages: [short] }, short: true })),
    ...(typeof system === 'string' ? [system] : list(system)).map((block, i) => ({ marked: countMarks(block) > 0, body: { tools, system: typeof system === 'string' ? system : cut(list(system), i), messages: [short] }, short: true })),
    ...messages.flatMap((message, m) => {
      const content = object(message)?.['content'];
      const upTo = (last: unknown): Body => ({ ...before, messages: [...messages.slice(0, m), { ...object(message), content: last }] });
      return Array.isArray(content) ? content.map((block: unknown, i) => ({ marked: countMarks(block) > 0, body: upTo(cut(content as unknown[], i)), short: false })) : [{ marked: false, body: upTo(content), short: false }];
    }),
  ];
  const ends: (readonly [number, number])[] = [];
  for (const [i, { marked, body: part, short: added }] of cuts.entries()) {
    if (marked || i === cuts.length - 1) ends.push([i, (await count(list(part['tools']).length > 0 ? part : { ...part, tools: undefined })) - (added ? least : 0)]);
  }
  return ends;
}

/** A request's prompt as the server's own token ids, chat template included; null where it does not tell them. */
export async function tokensOf(target: Target, body: Body, post: Post): Promise<readonly number[] | null> {
  const root = endpointRoot(target.endpoint.url);
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
