/**
 * The thread in which prompt files are analysed, so that typing never waits: reads a question, answers it. Built to a script of its own;
 * the prompt part and the tokenizer are loaded on first use. Files are read from disk below the root of the question only.
 */
import { readFileSync, readdirSync, statSync } from 'node:fs';
import * as path from 'node:path';
import { parentPort } from 'node:worker_threads';
import type { EndpointCounts } from '../probe/index';
import type { AnalysedFile, CacheRule, EndpointCounter, PromptFile, TokenCounter } from '../prompt/index';
import { proofPair, ruleArithmetic } from '../prompt/proofPair';
import { sentRequests } from '../prompt/sentRequests';
import { couldBePrompt, largestLook, looksLikePrompt } from '../prompt/looksLikePrompt';
import { promptPaths } from '../prompt/globs';
import { editOutcome, editWords } from './prefixEditCost';
import type { FromThread, JudgeBy, PrefixAnswers, PrefixQuestion, ScannedFile, SideBySide, SourceText, ToThread } from './prefixMessages';
import { renderables, renderedSides } from './prefixRenders';
import { fileView, fixesAt, noPrompt, ruleView, scannedFile, type PromptPart } from './prefixView';

type Question<K extends PrefixQuestion['type']> = Extract<PrefixQuestion, { type: K }>;

/** Analyses kept for quick fixes: the open documents a person works on. */
const mostKept = 20;
const largestFile = 5_000_000;
/** More than that is not sent to an endpoint beside the editing. */
const mostTexts = 300;
const mostCharacters = 2_000_000;
const skippedFolders = new Set(['node_modules', 'bower_components', 'dist', 'out', 'build', 'target', 'venv', '__pycache__']);
const dottedFolders = new Set(['.github', '.claude', '.cursor', '.vscode', '.prompts']);

let loading: Promise<PromptPart> | null = null;
const load = () => (loading ??= import('../prompt/index'));

let counting: Promise<TokenCounter | null> | null = null;
/** The built-in tokenizer; null when it cannot be loaded. */
function loadCounter(): Promise<TokenCounter | null> {
  counting ??= Promise.all([load(), import('../prompt/tokenizer')]).then(
    ([{ remembering }, { o200kCounter }]) => remembering(o200kCounter(true)),
    () => null,
  );
  return counting;
}

const kept = new Map<string, { readonly version: number; readonly analysed: AnalysedFile }>();
const ofFile = new Map<string, { readonly changed: number; readonly counter: TokenCounter | string }>();
const cancelled = new Set<number>();

function post(message: FromThread): void {
  parentPort?.postMessage(message);
}

parentPort?.on('message', (message: ToThread) => {
  if (message.type === 'cancel') {
    cancelled.add(message.id);
    return;
  }
  answer(message.id, message.question).then(
    (value) => post({ type: 'answer', id: message.id, answer: value }),
    (error: unknown) => post({ type: 'failed', id: message.id, message: error instanceof Error ? (error.stack ?? error.message) : String(error) }),
  );
});

async function answer(id: number, question: PrefixQuestion): Promise<PrefixAnswers[keyof PrefixAnswers]> {
  const prompt = await load();
  switch (question.type) {
    case 'analyse':
      return await analyse(prompt, question);
    case 'texts':
      return await textsFor(prompt, question);
    case 'fixes': {
      const known = kept.get(question.uri);
      return known === undefined || known.version !== question.version ? null : fixesAt(prompt, known.analysed, question);
    }
    case 'rules': {
      const { book, choice } = rulesFor(prompt, question.judge, null);
      return { rules: [...book.rules.values()].map((rule) => ruleView(rule, 'chosen')), chosen: ruleView(choice.rule, choice.how) };
    }
    case 'renderable':
      return await renderable(prompt, question);
    case 'renders':
      return await renders(prompt, question);
    case 'requests':
      return prompt.requestsIn(question.text).map(({ name, place, body }) => ({ name, model: typeof body['model'] === 'string' ? body['model'] : null, line: lineOf(question.text, place.start) }));
    case 'compareRequests':
      return await requests(prompt, question);
    case 'editCost':
      return await editCost(prompt, question);
    case 'proof': {
      const { analysed, choice, counter, model } = await analysedBy(prompt, question.source, question.judge);
      if (analysed === null) throw new Error('No prompt was found in this file.');
      const { block, tell, ofTokens } = ruleArithmetic(prompt, choice.rule, model, counter);
      return { ...proofPair(prompt, analysed, question.clock), rule: ruleView(choice.rule, choice.how), block, tell, byTokens: ofTokens !== null };
    }
    case 'predict': {
      const { of, judge } = question;
      const { choice, model } = rulesFor(prompt, judge, null);
      const { counter } = await counterFor(prompt, judge, choice.rule);
      const { ofTokens, ofBodies } = ruleArithmetic(prompt, choice.rule, model, counter);
      if ('first' in of) return ofBodies(of.first, of.second, of.ends);
      if (ofTokens === null) throw new Error(`${choice.rule.name} does not follow the longest prefix.`);
      return { ...ofTokens(of.total, of.common), ...of };
    }
    case 'scan':
      return await scan(prompt, id, question);
  }
}

/** Reads a file beside another; nothing outside the root. */
function readBeside(source: Pick<SourceText, 'path' | 'root'>): (name: string) => string | null {
  return (name) => {
    if (source.root === null) return null;
    const wanted = path.resolve(path.dirname(source.path), name);
    const inside = path.relative(source.root, wanted);
    if (inside.startsWith('..') || path.isAbsolute(inside)) return null;
    try {
      return statSync(wanted).size > largestFile ? null : readFileSync(wanted, 'utf8');
    } catch {
      return null;
    }
  };
}

async function parse(prompt: PromptPart, source: SourceText): Promise<PromptFile | null> {
  await prompt.prepare([source.path]);
  return prompt.parsePromptFile(source.text, source.path, { readFile: readBeside(source) });
}

let lastBook: { readonly key: string; readonly book: ReturnType<PromptPart['loadRules']> } | null = null;

function rulesFor(prompt: PromptPart, judge: JudgeBy, fileModel: string | null, file: PromptFile | null = null) {
  const key = JSON.stringify([judge.overrides, judge.today]);
  if (lastBook?.key !== key) lastBook = { key, book: prompt.loadRules(judge.overrides ?? {}, judge.today) };
  const { book } = lastBook;
  const model = judge.target.model ?? fileModel;
  return { book, model, choice: prompt.ruleForFile({ ...judge.target, model }, file, book) };
}

const openaiRules = new Set(['openai', 'openai-5.6', 'azure']);

async function counterFor(prompt: PromptPart, judge: JudgeBy, rule: CacheRule): Promise<{ readonly counter: TokenCounter; readonly problem: string | null }> {
  const own = judge.tokenizer === null ? null : await tokenizerAt(prompt, judge.tokenizer);
  if (own !== null && typeof own !== 'string') return { counter: own, problem: null };
  const counter = await loadCounter();
  return { counter: counter === null ? prompt.bytesCounter : { ...counter, exact: openaiRules.has(rule.id) }, problem: own };
}

/** A model's own tokenizer, or why it cannot be used. */
async function tokenizerAt(prompt: PromptPart, file: string): Promise<TokenCounter | string> {
  try {
    const changed = statSync(file).mtimeMs;
    const known = ofFile.get(file);
    if (known?.changed === changed) return known.counter;
    const { tokenizerFromJson } = await import('../prompt/tokenizer');
    const counter = prompt.remembering(tokenizerFromJson(readFileSync(file, 'utf8'), null));
    ofFile.set(file, { changed, counter });
    return counter;
  } catch (error) {
    return `firstToken.prefix.tokenizer: ${error instanceof Error ? error.message : String(error)}`;
  }
}

/** What a chat template hides in every prompt, in words for the lens: that of the settings, one beside the file, or what the endpoint renders. */
function hiddenClock(prompt: PromptPart, source: SourceText, judge: JudgeBy, counted: EndpointCounts | null): { readonly words: string | null; readonly problem: string | null } {
  try {
    const template = judge.chatTemplate === null ? readBeside(source)('chat_template.jinja') : readFileSync(judge.chatTemplate, 'utf8');
    if (template === null) {
      const written = counted === null || counted.rendered === null ? null : prompt.findWrittenDate(counted.rendered, Date.now());
      return { words: written === null ? null : prompt.hiddenDateWords(written), problem: null };
    }
    const found = prompt.findHiddenClock(template);
    if (found === null) return { words: null, problem: null };
    return 'problem' in found ? { words: null, problem: `${templateName(judge)}: ${found.problem}` } : { words: prompt.hiddenDateWords(found), problem: null };
  } catch (error) {
    return { words: null, problem: `${templateName(judge)}: ${error instanceof Error ? error.message : String(error)}` };
  }
}

const templateName = ({ chatTemplate }: JudgeBy) => (chatTemplate === null ? 'chat_template.jinja' : 'firstToken.prefix.chatTemplate');

async function analysedBy(prompt: PromptPart, source: SourceText, judge: JudgeBy, counted: EndpointCounts | null = null) {
  const file = await parse(prompt, source);
  const { book, choice, model } = rulesFor(prompt, judge, file?.prompts[0]?.model ?? null, file);
  const { counter, problem } = await counterFor(prompt, judge, choice.rule);
  const hidden = hiddenClock(prompt, source, judge, counted);
  const problems = [...book.problems, ...[problem, hidden.problem].filter((one) => one !== null)];
  if (file === null) return { analysed: null, choice, counter, hidden: hidden.words, problems, model };
  const whole = counted === null ? null : atEndpoint(prompt, counted.tokens, counter);
  const byEndpoint = whole === null ? null : analysedWith(prompt, file, judge, choice.rule, whole.counter, counted?.sent ?? []);
  // Counts of two tokenizers in one sum would be right for neither.
  if (byEndpoint !== null && whole?.missing.size === 0) return { analysed: byEndpoint, choice, counter: whole.counter, hidden: hidden.words, problems, model };
  return { analysed: analysedWith(prompt, file, judge, choice.rule, counter, []), choice, counter, hidden: hidden.words, problems, model };
}

function analysedWith(prompt: PromptPart, file: PromptFile, judge: JudgeBy, rule: CacheRule, counter: TokenCounter, sent: EndpointCounts['sent']): AnalysedFile {
  return prompt.analyseFile(file, {
    rule,
    model: judge.target.model ?? null,
    scope: judge.scope,
    variables: judge.variables,
    minLostTokens: judge.minLostTokens,
    counter,
    sent,
    today: judge.today,
  });
}

const atEndpoint = (prompt: PromptPart, known: EndpointCounts['tokens'], otherwise: TokenCounter): EndpointCounter => prompt.countedAtEndpoint(new Map(known), otherwise);

/** Texts that an analysis of the file counts and the endpoint has not counted yet. */
async function textsFor(prompt: PromptPart, { source, judge, known }: Question<'texts'>): Promise<PrefixAnswers['texts']> {
  const { server, dialect } = judge.target;
  const endpoint = prompt.tokenEndpointOf(server ?? dialect ?? '');
  // What is not detected yet may turn out to be a server that counts; a tokenizer.json of the settings is the model's own.
  if (judge.tokens === 'local' || (judge.tokens === 'auto' && (judge.tokenizer !== null || endpoint?.hosted === true)) || (endpoint === null && typeof server === 'string')) return null;
  const file = await parse(prompt, source);
  if (file === null || file.prompts.length === 0 || file.pragmas.some(({ pragma }) => pragma === 'off')) return null;
  const { choice } = rulesFor(prompt, judge, file.prompts[0]?.model ?? null, file);
  const { counter } = await counterFor(prompt, judge, choice.rule);
  const { counter: asking, missing } = atEndpoint(prompt, known, counter);
  const analysed = analysedWith(prompt, file, judge, choice.rule, asking, []);
  const texts = [...missing];
  if (texts.length > mostTexts || texts.reduce((sum, text) => sum + text.length, 0) > mostCharacters) return null;
  return { texts, requests: sentRequests(prompt, analysed, Date.parse(judge.today)), hosted: judge.tokens === 'endpoint' };
}

async function analyse(prompt: PromptPart, { source, version, judge, counted }: Question<'analyse'>): Promise<PrefixAnswers['analyse']> {
  const { analysed, choice, hidden, problems } = await analysedBy(prompt, source, judge, counted);
  kept.delete(source.uri);
  if (analysed === null || (analysed.prompts.length === 0 && analysed.findings.length === 0)) return noPrompt(choice);
  kept.set(source.uri, { version, analysed });
  for (const oldest of kept.keys()) {
    if (kept.size <= mostKept) break;
    kept.delete(oldest);
  }
  return fileView(prompt, analysed, choice, judge, { hidden, problems, countedBy: counted?.by ?? null });
}

async function renderable(prompt: PromptPart, { source, judge }: Question<'renderable'>): Promise<PrefixAnswers['renderable']> {
  const file = await parse(prompt, source);
  return file === null ? [] : renderables(prompt, file, judge.variables);
}

async function renders(prompt: PromptPart, { source, index, a, b, judge }: Question<'renders'>): Promise<SideBySide> {
  const file = await parse(prompt, source);
  const one = file?.prompts[index];
  if (file === null || one === undefined) throw new Error('No prompt was found in this file.');
  const { choice } = rulesFor(prompt, judge, one.model);
  const { counter } = await counterFor(prompt, judge, choice.rule);
  return renderedSides(prompt, file, one, { a, b, variables: judge.variables, counter });
}

async function requests(prompt: PromptPart, { a, b, judge }: Question<'compareRequests'>): Promise<SideBySide> {
  const left = prompt.requestsIn(a.text)[a.index];
  const right = prompt.requestsIn(b.text)[b.index];
  if (left === undefined || right === undefined) throw new Error('The file no longer holds this request.');
  const { model: named } = right.body;
  const { choice, model } = rulesFor(prompt, judge, typeof named === 'string' ? named : null);
  const { counter } = await counterFor(prompt, judge, choice.rule);
  const { difference, fields, total, common, reuse } = prompt.compareRequests(left.body, right.body, { rule: choice.rule, model, counter });
  const [first, second] = [asText(prompt, left.body), asText(prompt, right.body)];
  const place = prompt.firstDifference(first, second, counter);
  const n = (tokens: number) => tokens.toLocaleString('en-US');
  const kinds = { text: 'the text differs', 'key-order': 'only the order of JSON keys differs', 'tool-order': 'only the order of the tools differs', role: 'the role differs', added: 'the second has one block more', removed: 'the first has one block more' };
  return {
    first,
    second,
    difference: place === null ? null : { ...place, sameTokens: common },
    tokens: total,
    words: [
      difference === null ? 'Every block is the same' : `${kinds[difference.kind]} at ${difference.path.join('.')}, byte ${n(difference.byte)}`,
      `${n(reuse.tokens)} of ${n(total)} tokens reusable on ${choice.rule.name}: ${reuse.why}`,
      ...(fields.length === 0 ? [] : [`Fields that also differ: ${fields.map(({ field, invalidates }) => `${field} (invalidates ${invalidates})`).join(', ')}`]),
    ],
  };
}

/** A request in the order a server renders it, for a diff editor: nothing else of the body matters to the prefix. */
function asText(prompt: PromptPart, body: Readonly<Record<string, unknown>>): string {
  return prompt
    .blocksIn(body)
    .map(({ slot, role, path: place, text, marker }) => `── ${slot === 'messages' || slot === 'system' ? role : slot} · ${place.join('.')} ──\n${text}${marker === null ? '' : `\n── cache marker${marker.ttl === null ? '' : ` ${marker.ttl}`} ──`}`)
    .join('\n\n');
}

async function editCost(prompt: PromptPart, { before, after, judge }: Question<'editCost'>): Promise<PrefixAnswers['editCost']> {
  const [old, fresh] = [await analysedBy(prompt, before, judge), await analysedBy(prompt, after, judge)];
  if (fresh.analysed === null || fresh.analysed.prompts.length === 0) throw new Error('No prompt was found in this file.');
  const outcome = editOutcome(prompt, old.analysed, fresh.analysed, fresh.counter);
  return { ...outcome, words: editWords(outcome, fresh.choice.rule.name) };
}

function lineOf(text: string, offset: number): number {
  return text.slice(0, offset).split('\n').length;
}

/** Lets questions about open documents come between the files of a scan. */
const breathe = () => new Promise<void>((resolve) => setImmediate(resolve));

async function scan(prompt: PromptPart, id: number, { roots, globs, most, judge }: Question<'scan'>): Promise<PrefixAnswers['scan']> {
  const named = promptPaths(globs);
  let found = 0;
  let batch: ScannedFile[] = [];
  const flush = () => {
    if (batch.length > 0) post({ type: 'scanned', id, files: batch });
    batch = [];
  };
  for (const root of roots) {
    for (const file of filesBelow(root)) {
      if (cancelled.delete(id)) return { found, complete: false };
      if (!named(file) && !(await isFoundByContent(file))) continue;
      const row = await scanOne(prompt, file, root, judge);
      await breathe();
      if (row === null) continue;
      found += 1;
      batch.push(row);
      if (batch.length >= 25) flush();
      if (found >= most) {
        flush();
        return { found, complete: false };
      }
    }
  }
  flush();
  return { found, complete: true };
}

/** Request bodies and templates, whatever their name; what else holds a prompt is listed by its name only. */
async function isFoundByContent(file: string): Promise<boolean> {
  const could = couldBePrompt(file);
  if (could !== 'request' && could !== 'template') return false;
  await breathe();
  try {
    return statSync(file).size <= largestLook && looksLikePrompt(readFileSync(file, 'utf8'), file) !== null;
  } catch {
    return false;
  }
}

async function scanOne(prompt: PromptPart, file: string, root: string, judge: JudgeBy): Promise<ScannedFile | null> {
  try {
    if (statSync(file).size > largestFile) return null;
    const { analysed } = await analysedBy(prompt, { uri: '', path: file, root, text: prompt.decode(readFileSync(file)) }, judge);
    return analysed === null ? null : scannedFile(analysed);
  } catch {
    return null;
  }
}

function* filesBelow(folder: string): Generator<string> {
  let entries;
  try {
    entries = readdirSync(folder, { withFileTypes: true });
  } catch {
    return;
  }
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const full = path.join(folder, entry.name);
    if (entry.isFile()) yield full;
    else if (entry.isDirectory() && !skippedFolders.has(entry.name) && (!entry.name.startsWith('.') || dottedFolders.has(entry.name))) yield* filesBelow(full);
  }
}
