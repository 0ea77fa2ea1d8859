/** What the editor shows about an analysed prompt file, as plain data. Pure: runs in the analysis thread. */
import type { AnalysedFile, AnalysedPrompt, CacheRule, ChangingPlace, Finding, Fix, FixContext, PrefixReport } from '../prompt/index';
import type * as promptPart from '../prompt/index';
import type { FileView, FixView, JudgeBy, PlaceHover, PlaceLens, PromptView, RuleView, ScannedFile, Stretch } from './prefixMessages';

/** The prompt part as it was loaded. */
export type PromptPart = typeof promptPart;

type RuleChoice = ReturnType<PromptPart['ruleFor']>;

/** More than a person reads; a batch of requests has thousands. */
const mostPrompts = 100;
const mostFindings = 1000;
const mostHovers = 1000;

const whyRule: Readonly<Record<RuleChoice['how'], string>> = {
  chosen: 'picked by you',
  server: 'the server of the endpoint',
  host: 'the address of the endpoint',
  dialect: 'the API of the endpoint',
  model: 'the model the file names',
  request: 'the API that the file’s request is written for',
  assumed: 'assumed, as no endpoint tells',
};

/** The rule in words; `selected`: false when there is no endpoint. */
export function ruleView(rule: CacheRule, how: RuleChoice['how'], selected = true): RuleView {
  return { id: rule.id, name: rule.name, asOf: rule.asOf, source: rule.source, notes: rule.notes, why: how === 'assumed' && !selected ? 'assumed: no endpoint selected' : whyRule[how] };
}

const isSelected = ({ target }: JudgeBy) => (target.url ?? null) !== null;

/** What is known beside the file. */
export interface Beside {
  /** What the server's chat template hides in every prompt, in words. */
  readonly hidden: string | null;
  readonly problems: readonly string[];
  /** The endpoint that counted, when one did. */
  readonly countedBy: string | null;
}

/** Everything the editor shows of one version of a file. */
export function fileView(prompt: PromptPart, analysed: AnalysedFile, choice: RuleChoice, judge: JudgeBy, { hidden, problems, countedBy }: Beside): FileView {
  const { file, findings } = analysed;
  const off = file.pragmas.some((pragma) => pragma.pragma === 'off');
  const shown = off ? [] : analysed.prompts.slice(0, mostPrompts);
  return {
    format: file.format,
    host: file.host,
    off,
    rule: ruleView(choice.rule, choice.how, isSelected(judge)),
    source: analysed.prompts[0]?.report.source ?? 'bytes/4',
    exact: analysed.prompts[0]?.report.exact ?? false,
    prompts: shown.map((one) => promptView(prompt, analysed, one, { hidden, by: countedBy, selected: isSelected(judge) })),
    lenses: off ? [] : placeLenses(prompt, analysed, judge),
    hovers: shown.flatMap(({ report }) => report.places.map((place) => ({ place, report }))).slice(0, mostHovers).map(({ place, report }) => placeHover(prompt, place, report, judge)),
    findings: findings.slice(0, mostFindings),
    dependencies: file.dependencies,
    problems,
  };
}

/** The view of a text that is no prompt file. */
export function noPrompt(choice: RuleChoice): FileView {
  return { format: null, host: '', off: false, rule: ruleView(choice.rule, choice.how), source: 'bytes/4', exact: false, prompts: [], lenses: [], hovers: [], findings: [], dependencies: [], problems: [] };
}

function promptView(prompt: PromptPart, { file }: AnalysedFile, { index, report }: AnalysedPrompt, { hidden, by, selected }: { readonly hidden: string | null; readonly by: string | null; readonly selected: boolean }): PromptView {
  const source = file.prompts[index];
  const { end, reuse, total, common } = report.sameVariant;
  // Instructions of an editor are not sent to the endpoint as they are.
  const instructions = file.format === 'markdown' || file.format === 'claude-markdown';
  const concerns = hidden !== null && !(report.allStatic && instructions);
  const quiet = report.allStatic && report.uncached === null && !concerns;
  const scopes = prompt.scopesSentence(report);
  const why = reuse.tokens === 0 && report.sentence.includes(reuse.why) ? [] : [`Reusable: ${grouped(reuse.tokens)} of ${grouped(total)} tokens, ${reuse.why}. Common prefix: ${grouped(common)}.`];
  return {
    index,
    name: source?.name ?? null,
    start: source?.start ?? 0,
    end: source?.end ?? 0,
    sentence: concerns ? `${report.sentence} · ${hidden}` : report.sentence,
    allStatic: quiet,
    provable: !quiet || reuse.bound === 'marker' || (selected && !instructions),
    total,
    reusable: reuse.tokens,
    ends: end === null ? null : { start: end.start, end: end.end, line: end.line },
    details: [...(report.allStatic && report.uncached === null && reuse.bound !== 'marker' ? [] : why), ...(scopes === null ? [] : [scopes]), sourceOfCounts(report, by), ...sentWords(report, isTools(file, index)), ...uncounted(report), ...(source === undefined ? [] : asWritten(prompt.placeholdersIn(file, source)))],
  };
}

function asWritten(names: readonly string[]): string[] {
  return names.length === 0 ? [] : [`Sent as written: ${names.map(code).join(', ')}. This format has no variables, so nothing replaces ${names.length === 1 ? 'it' : 'them'} here.`];
}

function uncounted({ uncounted: names, qualifiers: { hidden, textTokens } }: PrefixReport): string[] {
  const values = names.length === 0 ? [] : [`the values of ${names.slice(0, 3).join(', ')}${names.length > 3 ? ` and ${names.length - 3} more` : ''}`];
  // A request as it is sent holds the sample values, and what the server hides.
  if (textTokens !== null) return values.length === 0 ? [] : [`Other requests have more or fewer tokens with ${values[0]!}.`];
  const all = [...values, ...(hidden === null ? [] : [hidden])];
  return all.length === 0 ? [] : [`Not counted: ${all.join('; ')}.`];
}

function sourceOfCounts(report: PrefixReport, by: string | null): string {
  switch (report.source) {
    case 'bytes/4':
      return 'Tokens: guessed from the bytes, one for four.';
    case 'o200k':
      return report.exact ? 'Tokens: counted with OpenAI’s o200k vocabulary.' : 'Tokens: o200k estimate (OpenAI’s vocabulary; this model’s own cuts otherwise).';
    case 'tokenizer.json':
      return 'Tokens: counted with the tokenizer.json of your settings.';
    case 'endpoint':
      return `Tokens: counted by the endpoint${by === null ? '' : ` (${by})`}.`;
  }
}

const isTools = ({ prompts }: AnalysedFile['file'], index: number) => prompts[index]?.parts.some(({ slot }) => slot === 'tools') === true;

/** Why a request has other prompt tokens than the text of its file. */
function sentWords({ allStatic, qualifiers: { textTokens, toolsAsWritten }, sameVariant: { total } }: PrefixReport, tools: boolean): string[] {
  if (toolsAsWritten) return ['The tools are counted as the file writes them; a server writes them into the prompt in its own way.'];
  if (textTokens === null || textTokens === total) return [];
  const more = total - textTokens;
  const by = `the server’s chat template${tools ? ', which writes the tools in its own way,' : ''}${allStatic ? '' : ' and the sample values'}`;
  return [`As it is sent: ${grouped(total)} tokens, ${grouped(Math.abs(more))} ${more > 0 ? 'more' : 'fewer'} than the text of the file: ${by} ${more > 0 ? 'add' : 'take'}${allStatic ? 's' : ''} them${more > 0 ? '' : ' away'}.`];
}

const grouped = (n: number) => n.toLocaleString('en-US');

/** One lens for each finding that costs tokens, so that pragmas silence both. */
function placeLenses(prompt: PromptPart, { prompts, findings }: AnalysedFile, judge: JudgeBy): PlaceLens[] {
  const byStart = new Map<number, { place: ChangingPlace; report: PrefixReport }>();
  for (const { report } of prompts) for (const place of report.places) if (place.matters && !byStart.has(place.start)) byStart.set(place.start, { place, report });
  const seen = new Set<number>();
  return findings.flatMap((finding): PlaceLens[] => {
    const found = byStart.get(finding.start);
    if (found === undefined || finding.lostTokens === 0 || finding.evidence === 'structure' || seen.has(finding.start)) return [];
    seen.add(finding.start);
    const { place, report } = found;
    return [{ at: place.start, title: prompt.placeSentence(place, prompt.lossOf(place.lostTokens, { ...judge.cost, rule: report.rule, model: report.model })) }];
  });
}

/** Levels of proof, weakest first; the editor alone reaches the first two. */
const evidenceWords = {
  strong: 'Evidence: its name, which hardly means anything else (level 0 of 5)',
  guess: 'Evidence: its name, a guess (level 0 of 5)',
  grammar: 'Evidence: the grammar of the file, certain (level 1 of 5)',
  yours: 'Evidence: you said so (a comment in the file, or firstToken.prefix.variables)',
  none: 'Evidence: none, nothing tells how often it changes',
} as const;

function evidenceOf({ judgement }: ChangingPlace): string {
  if (judgement.evidence === 'pragma' || judgement.evidence === 'setting') return evidenceWords.yours;
  if (judgement.strength === 'none') return evidenceWords.none;
  if (judgement.strength === 'certain') return evidenceWords.grammar;
  return judgement.strength === 'strong' ? evidenceWords.strong : evidenceWords.guess;
}

function placeHover(prompt: PromptPart, place: ChangingPlace, report: PrefixReport, judge: JudgeBy): PlaceHover {
  const { rule } = report;
  const loss = prompt.lossOf(place.lostTokens, { ...judge.cost, rule, model: report.model });
  const age = prompt.ageOf(rule, judge.today);
  const scopes = prompt.scopesSentence(report);
  return {
    start: place.start,
    end: place.end,
    lines: [
      `**${code(place.text)}** ${prompt.placeSentence(place, loss).slice(place.text.length).trim()}.`,
      `${place.judgement.reason} ${evidenceOf(place)}.`,
      ...(scopes === null ? [] : [scopes]),
      `Rule ${rule.name}, as of ${rule.asOf}${age.stale ? ' (older than 180 days: raises no warning by itself)' : ''}, ${sourceWords[rule.confidence]}: ${rule.source.join('; ')}. ${rule.notes}`,
    ],
  };
}

const sourceWords: Readonly<Record<CacheRule['confidence'], string>> = { 'first-party': 'from the provider’s own documents', 'third-party': 'measured by third parties', unverified: 'not verified' };

/** Text as inline code in Markdown, whatever backticks it holds. */
function code(text: string): string {
  const longest = Math.max(0, ...[...text.matchAll(/`+/g)].map((run) => run[0].length));
  const fence = '`'.repeat(longest + 1);
  return longest === 0 ? `${fence}${text}${fence}` : `${fence} ${text} ${fence}`;
}

/** Quick fixes at a stretch of an analysed file, best first, each once. */
export function fixesAt(prompt: PromptPart, analysed: AnalysedFile, at: Stretch): FixView[] {
  const touches = (other: Stretch) => other.start <= at.end && at.start <= other.end;
  const findings = analysed.findings.filter(touches);
  const fixes: FixView[] = [];
  const add = (code: string | null, list: readonly Fix[]) => {
    for (const fix of list) if (!fixes.some(({ title, preview }) => title === fix.title && preview === fix.preview)) fixes.push(fixView(fix, code));
  };
  for (const one of analysed.prompts) {
    const source = analysed.file.prompts[one.index];
    if (source === undefined) continue;
    const context: FixContext = { file: analysed.file, prompt: source, pieces: one.pieces, report: one.report };
    for (const place of one.report.places.filter(touches)) add(codeAt(findings, place), prompt.placeFixes(place, context, codeAt(findings, place)));
    for (const finding of findings.filter(({ start, end }) => start <= source.end && source.start <= end)) add(finding.code, structureFixes(prompt, finding, context));
    if (touches(source)) add(null, prompt.markerFixes(context));
    if (source.parts.some((part) => part.slot === 'tools' && touches(part))) add(null, prompt.sortToolsFix(context));
  }
  return fixes;
}

/** The code of the finding for a place; several may begin where another file is included, and are told apart by their class. */
function codeAt(findings: readonly Finding[], place: ChangingPlace): string | null {
  const here = findings.filter((finding) => finding.start === place.start && finding.evidence !== 'structure');
  return (here.find((finding) => finding.class === place.judgement.volatility) ?? here[0])?.code ?? null;
}

const markable: ReadonlySet<string> = new Set(['no-marker', 'under-minimum', 'variable-in-static-message', 'marker-after-dynamic', 'look-back']);

function structureFixes(prompt: PromptPart, finding: Finding, context: FixContext): readonly Fix[] {
  const own = finding.code === 'unsorted-tools' ? prompt.sortToolsFix(context) : markable.has(finding.code) ? prompt.markerFixes(context) : [];
  return [...own, ...(finding.evidence === 'structure' || finding.evidence === 'rendered' ? prompt.ignoreFixes(context.file, finding, finding.code) : [])];
}

function fixView(fix: Fix, code: string | null): FixView {
  return { kind: fix.kind, title: fix.title, preview: fix.preview, code, edits: 'edits' in fix ? fix.edits : null, setting: 'setting' in fix ? fix.setting : null };
}

/** More than a tooltip shows. */
const mostSentences = 12;

/** One row of the tree; null when the file holds no prompt. */
export function scannedFile(analysed: AnalysedFile): ScannedFile | null {
  const { file, prompts, findings } = analysed;
  if (prompts.length === 0 || file.pragmas.some((pragma) => pragma.pragma === 'off')) return null;
  const sum = (of: (report: PrefixReport) => number) => prompts.reduce((total, { report }) => total + of(report), 0);
  return {
    path: file.path,
    format: file.format,
    tokens: sum((report) => report.sameVariant.total),
    reusable: sum((report) => (report.allStatic && report.uncached === null ? report.sameVariant.total : report.sameVariant.reuse.tokens)),
    warnings: findings.filter(({ severity }) => severity === 'warning').length,
    severity: (['warning', 'information', 'hint'] as const).find((level) => findings.some(({ severity }) => severity === level)) ?? null,
    allStatic: prompts.every(({ report }) => report.allStatic && report.uncached === null),
    about: prompts.some(({ report }) => !report.exact),
    sentences: prompts.slice(0, mostSentences).map(({ index, report }) => (prompts.length === 1 ? report.sentence : `${file.prompts[index]?.name ?? `prompt ${index + 1}`}: ${report.sentence}`)),
  };
}

/** Worst first: the smallest share that can be reused, then the most tokens. */
export function worstFirst(a: ScannedFile, b: ScannedFile): number {
  const share = ({ tokens, reusable }: ScannedFile) => (tokens === 0 ? 1 : reusable / tokens);
  return share(a) - share(b) || b.tokens - a.tokens || (a.path < b.path ? -1 : 1);
}
