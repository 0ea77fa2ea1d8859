/**
 * How often each place of a prompt changes: unrolls a prompt into pieces in render order and judges every one.
 * Evidence in this order: pragma or setting, a constant of the file, a call, the name, a default, nothing (`unknown`).
 */
import type { ControlSpan, ExpressionSpan, IncludeSpan, Judgement, Piece, Place, Pragma, Prompt, PromptFile, Reference, Scope, Span, Variable, Volatility } from './prompt';
import { clockByFormat, formatClass, isCalendarCall, judgeCall, judgeName, snake } from './vocabulary';

/** What the user says about variables. */
export interface VolatilityOptions {
  /** Class of a variable by name (`firstToken.prefix.variables`); words that are no class are ignored. */
  readonly variables?: Readonly<Record<string, string>>;
}

const order: readonly Volatility[] = ['constant', 'deploy', 'unknown', 'session', 'day', 'minute', 'request'];
const strengths = ['none', 'weak', 'strong', 'certain'] as const;

/** True when a place of that class differs between two requests that the scope wants to share a prefix. Unknown is not volatile. */
export function isVolatile(volatility: Volatility, scope: Scope): boolean {
  return order.indexOf(volatility) >= order.indexOf(scope === 'everyone' ? 'session' : 'day');
}

/** The faster of two classes; unknown lies between deploy and session. */
export function faster(a: Volatility, b: Volatility): Volatility {
  return order.indexOf(a) >= order.indexOf(b) ? a : b;
}

const onlyConstants = constant('literal', 'It holds only constants.');

function join(judgements: readonly Judgement[]): Judgement {
  let best = onlyConstants;
  for (const j of judgements) {
    const step = order.indexOf(j.volatility) - order.indexOf(best.volatility);
    if (step > 0 || (step === 0 && strengths.indexOf(j.strength) > strengths.indexOf(best.strength))) best = j;
  }
  return best;
}

function constant(evidence: Judgement['evidence'], reason: string, name = ''): Judgement {
  return { volatility: 'constant', evidence, strength: 'certain', name, reason };
}

const literalJudgement = constant('literal', 'Literal text is always the same.');

/** Names bound by loops, assignments and macro parameters, chained outwards. */
class Names {
  readonly names = new Map<string, Judgement>();
  readonly outer: Names | null;
  constructor(outer: Names | null) {
    this.outer = outer;
  }
  find(path: string): Judgement | null {
    return this.names.get(path) ?? this.outer?.find(path) ?? null;
  }
  /** Where the object of `object.attribute` is bound: setting an attribute inside a loop lasts behind it. */
  owner(path: string): Names {
    const root = path.split('.')[0]!;
    return this.names.has(root) || this.outer === null ? this : this.outer.owner(path);
  }
}

interface Walk {
  readonly part: number;
  readonly branches: Piece['branches'];
  readonly loop: Volatility;
  readonly history: boolean;
  readonly foreign: Place | null;
  readonly scope: Names;
  readonly depth: number;
  readonly conditional: boolean;
}

/** Unrolls one prompt of a file into judged pieces, in render order. */
export function unroll(file: PromptFile, prompt: Prompt, options: VolatilityOptions = {}): Piece[] {
  const judge = new Judge(prompt, file.pragmas, options);
  const scope = new Names(null);
  return prompt.parts.flatMap((part, index) =>
    judge.walk(part.spans, { part: index, branches: [], loop: 'constant', history: false, foreign: null, scope, depth: 0, conditional: false }),
  );
}

class Judge {
  private readonly overrides = new Map<string, { volatility: Volatility; evidence: 'pragma' | 'setting' }>();
  private readonly variables = new Map<string, Variable>();
  private work = 0;
  private readonly entered = new Set<ControlSpan>();
  private readonly prompt: Prompt;

  constructor(prompt: Prompt, pragmas: readonly Pragma[], options: VolatilityOptions) {
    this.prompt = prompt;
    for (const [name, word] of Object.entries(options.variables ?? {})) {
      const volatility = order.find((v) => v === word);
      if (volatility !== undefined) this.overrides.set(plainName(name), { volatility, evidence: 'setting' });
    }
    for (const pragma of pragmas) if (pragma.pragma === 'variable') this.overrides.set(plainName(pragma.name), { volatility: pragma.volatility, evidence: 'pragma' });
    for (const variable of prompt.variables) this.variables.set(plainName(variable.name), variable);
  }

  /** Appends the pieces of the spans to `pieces`, which it gives back. */
  walk(spans: readonly Span[], walk: Walk, pieces: Piece[] = []): Piece[] {
    for (const span of spans) {
      this.work += 1;
      if (this.work > 200_000) break;
      this.span(span, walk, pieces);
    }
    return pieces;
  }

  private span(span: Span, walk: Walk, pieces: Piece[]): void {
    switch (span.kind) {
      case 'literal':
        pieces.push(this.piece(span, walk, 'static', literalJudgement, span.text, span.map));
        return;
      case 'raw':
        pieces.push(this.piece(span, walk, 'static', literalJudgement, span.text, span.map ?? [[0, span.start]]));
        return;
      case 'expression':
        this.expression(span, walk, pieces);
        return;
      case 'control':
        this.control(span, walk, pieces);
        return;
      case 'include':
        this.include(span, walk, pieces);
        return;
      case 'media':
        pieces.push(this.piece(span, walk, 'media', span.references.length === 0 ? literalJudgement : this.references(span.references, walk.scope)));
        return;
      case 'cache-mark':
        pieces.push(this.piece(span, walk, 'mark', literalJudgement));
        return;
      case 'comment':
      case 'role-mark':
    }
  }

  private piece(span: Span, walk: Walk, kind: Piece['kind'], judgement: Judgement, text = '', map?: Piece['map'], place?: Place, variant = false): Piece {
    const at = walk.foreign ?? place ?? span;
    const piece: Piece = {
      start: at.start,
      end: at.end,
      part: walk.part,
      kind,
      text,
      judgement,
      branches: walk.branches,
      loop: walk.loop,
      foreign: walk.foreign !== null,
      history: walk.history,
      span,
      variant,
    };
    if (map !== undefined && walk.foreign === null) (piece as { map: Piece['map'] }).map = map;
    return piece;
  }

  private expression(span: ExpressionSpan, walk: Walk, pieces: Piece[]): void {
    if (!span.output) return;
    const macro = span.macro === null ? undefined : this.prompt.macros[span.macro.name];
    if (macro !== undefined && walk.depth < 8 && !this.entered.has(macro)) {
      this.callMacro(span, macro, walk, pieces);
      return;
    }
    const text = (sent: string, judgement = literalJudgement) => {
      if (sent !== '') pieces.push(this.piece(span, walk, 'static', judgement, sent, [[0, span.start]]));
    };
    if (span.constant !== null) {
      text(span.constant, constant('literal', 'It always renders the same text.'));
      return;
    }
    const leads = span.literals.length > 0 && /^\{\{[-+~]?\s*["'(]/.test(span.source);
    if (leads) text(span.literals[0] ?? '');
    pieces.push(this.piece(span, walk, 'value', this.references(span.references, walk.scope)));
    if (span.literals.length > 0) text(span.literals.slice(leads ? 1 : 0).join(''));
  }

  private callMacro(span: ExpressionSpan, macro: ControlSpan, walk: Walk, pieces: Piece[]): void {
    const scope = new Names(walk.scope);
    macro.binds.forEach((name, i) => {
      const given = span.macro!.arguments[i];
      scope.names.set(name, given === undefined ? constant('literal', 'The parameter has its default.', name) : this.references(given, walk.scope));
    });
    this.entered.add(macro);
    this.walk(macro.branches[0]?.spans ?? [], { ...walk, scope, foreign: walk.foreign ?? span, depth: walk.depth + 1 }, pieces);
    this.entered.delete(macro);
  }

  private control(span: ControlSpan, walk: Walk, pieces: Piece[]): void {
    const inner: Walk = span.local === true ? { ...walk, foreign: null } : walk;
    switch (span.control) {
      case 'macro':
        return;
      case 'set':
        this.assign(span, inner);
        return;
      case 'condition':
        this.condition(span, inner, pieces);
        return;
      case 'loop':
        this.loop(span, inner, pieces);
        return;
      case 'with': {
        const scope = new Names(inner.scope);
        const value = this.references(span.references, inner.scope);
        for (const name of span.binds) scope.names.set(name, value);
        for (const branch of span.branches) this.walk(branch.spans, { ...inner, scope }, pieces);
        return;
      }
      case 'block': {
        const references = span.references.length === 0 ? null : this.references(span.references, inner.scope);
        if (references !== null && references.volatility !== 'constant') pieces.push(this.piece(span, inner, 'value', references, '', undefined, span.tag));
        for (const branch of span.branches) this.walk(branch.spans, inner, pieces);
      }
    }
  }

  /** An assignment inside a condition may or may not happen: the name then has the faster of both values. */
  private assign(span: ControlSpan, walk: Walk): void {
    const body = span.branches.flatMap((b) => this.walk(b.spans, walk));
    const value =
      span.branches.length > 0
        ? join(body.map((p) => p.judgement))
        : span.references.length === 0
          ? constant('fixed', 'The file gives it a constant value.', span.binds[0])
          : this.references(span.references, walk.scope);
    for (const name of span.binds) {
      const before = walk.scope.find(name);
      if (name.includes('.')) walk.scope.owner(name).names.set(name, walk.conditional && before !== null ? join([before, value]) : value);
      else if (!walk.conditional || (before !== null && before.volatility === value.volatility)) walk.scope.names.set(name, value);
      else if (before !== null) walk.scope.names.set(name, join([before, value]));
      else if (span.references.length === 0) walk.scope.names.set(name, weaken(this.reference({ path: name, call: false, strings: [] }, null)));
      else walk.scope.names.set(name, value);
    }
  }

  /** A condition none of whose branches sends anything leaves no piece. */
  private condition(span: ControlSpan, walk: Walk, pieces: Piece[]): void {
    const before = pieces.length;
    let sends = false;
    span.branches.forEach((branch, index) => {
      const judgement = this.references(branch.references, walk.scope);
      if (branch.references.length > 0) pieces.push(this.piece(span, walk, 'point', judgement, '', undefined, branch.tag, true));
      const step = { control: span.start, branch: index, volatility: judgement.volatility };
      const empty = pieces.length;
      this.walk(branch.spans, { ...walk, branches: [...walk.branches, step], conditional: true }, pieces);
      sends ||= pieces.length > empty;
    });
    if (!sends) pieces.length = before;
  }

  private loop(span: ControlSpan, walk: Walk, pieces: Piece[]): void {
    const collection = this.references(span.references, walk.scope);
    const scope = new Names(walk.scope);
    for (const name of span.binds) scope.names.set(name, collection);
    const conversation = walk.history || (this.prompt.chatTemplate && span.references.some((r) => /^messages\b/.test(r.path)));
    const inside: Walk = { ...walk, scope, loop: faster(walk.loop, collection.volatility), history: conversation, conditional: true };
    const before = pieces.length;
    pieces.push(this.piece(span, { ...walk, history: conversation }, 'point', collection, '', undefined, span.tag));
    for (const branch of span.branches) this.walk(branch.spans, inside, pieces);
    if (pieces.length === before + 1) pieces.length = before;
  }

  private include(span: IncludeSpan, walk: Walk, pieces: Piece[]): void {
    if (span.spans !== null) {
      this.walk(span.spans, { ...walk, foreign: walk.foreign ?? span, depth: walk.depth + 1 }, pieces);
      return;
    }
    const references = this.references(span.references, walk.scope);
    const unread: Judgement = { volatility: 'unknown', evidence: 'include', strength: 'none', name: span.target ?? span.source, reason: 'The included text could not be read.' };
    pieces.push(this.piece(span, walk, 'value', isVolatile(references.volatility, 'everyone') ? references : unread));
  }

  private references(references: readonly Reference[], scope: Names): Judgement {
    const [only] = references;
    if (references.length === 1 && only !== undefined && only.strings.length === 0) return join([this.reference(only, scope)]);
    const formats = references.flatMap((r) => r.strings).filter((s) => formatClass(s) !== null);
    const helper = references.length > 1 ? references.filter((r) => !(r.call && /^(?:date|time|format_?[dD]ate|date_?[fF]ormat|moment|format|formatDateTime)$/.test(r.path))) : references;
    const judgements = (helper.length > 0 ? helper : references).map((r) => this.reference(r, scope, formats));
    return references.length === 0 ? constant('literal', 'It reads nothing.') : join(judgements);
  }

  private reference(reference: Reference, scope: Names | null, formats: readonly string[] = reference.strings): Judgement {
    const found = this.value(reference, scope, formats);
    if (reference.tested === 'defined' && found.volatility !== 'constant') return { ...found, volatility: 'deploy', evidence: 'call', strength: 'certain', reason: `Whether \`${reference.path}\` is given does not change from request to request.` };
    if (reference.tested === 'truth' && (found.volatility === 'day' || found.volatility === 'minute' || /(?:^|_)(?:id|uuid|nonce)$/.test(snake(lastOf(reference.path))))) {
      return { ...found, volatility: 'deploy', strength: 'weak', reason: `Whether \`${reference.path}\` is given does not change from request to request.` };
    }
    return found;
  }

  private value(reference: Reference, scope: Names | null, formats: readonly string[]): Judgement {
    const path = reference.path;
    const override = this.overrideOf(path);
    if (override !== null) return override;
    const bound = scope === null ? null : this.bound(path, scope, reference.call);
    if (bound !== null) return this.formatted(bound, formats);
    if (/^(?:ctx\.output_format|ctx\.client\b.*|_\.role|loop\.\w+|forloop\.\w+|@\w+|caller|self|super|varargs|kwargs)$/.test(path)) return constant('fixed', 'The host renders it from the file itself.', path);
    if (this.prompt.chatTemplate) {
      const known = chatTemplateName(path);
      if (known !== null) return known;
    }
    if (reference.call) {
      const called = this.call(reference, scope, formats);
      if (called !== null) return called;
    }
    if (formats.length > 0) return this.free(path, formats);
    const known = this.freeNames.get(path);
    if (known !== undefined) return known;
    const judgement = this.free(path, formats);
    this.freeNames.set(path, judgement);
    return judgement;
  }

  private readonly freeNames = new Map<string, Judgement>();

  /** A variable that the file does not bind. */
  private free(path: string, formats: readonly string[]): Judgement {
    const variable = this.variables.get(plainName(path)) ?? this.variables.get(plainName(path.split('.')[0]!));
    if (variable?.messages === true) return { volatility: 'request', evidence: 'call', strength: 'certain', name: path, reason: `\`${path}\` inserts the messages of the conversation.` };
    if (variable?.fixed === true) return constant('fixed', 'The file gives it a constant value.', path);
    if (variable?.shared === true) return { volatility: 'deploy', evidence: 'default', strength: 'weak', name: path, reason: `\`${path}\` has the same value in every test of the configuration.` };
    const named = judgeName(path);
    if (named !== null) {
      const judgement: Judgement = { volatility: named.volatility, evidence: 'name', strength: named.strength, name: path, reason: `The name \`${path}\` ${named.reason}.` };
      return this.formatted(variable?.default === undefined ? judgement : weaken(judgement), formats);
    }
    if (variable?.default !== undefined) return { volatility: 'deploy', evidence: 'default', strength: 'weak', name: path, reason: `\`${path}\` has a default in this file and may never be given.` };
    return { volatility: 'unknown', evidence: 'none', strength: 'none', name: path, reason: `Nothing tells how often \`${path}\` changes.` };
  }

  private overrideOf(path: string): Judgement | null {
    if (this.overrides.size === 0) return null;
    const found = this.overrides.get(plainName(path)) ?? this.overrides.get(plainName(path.split('.')[0]!));
    if (found === undefined) return null;
    const where = found.evidence === 'pragma' ? 'a comment of this file' : 'the setting firstToken.prefix.variables';
    return { volatility: found.volatility, evidence: found.evidence, strength: 'certain', name: path, reason: `It is marked ${found.volatility} by ${where}.` };
  }

  private bound(path: string, scope: Names, call: boolean): Judgement | null {
    const up = /^(?:\.\.[./]?)+/.exec(path);
    if (up !== null) {
      const levels = path.split('..').length - 1;
      let target: Names | null = scope;
      for (let i = 0; i < levels && target !== null; i += 1) target = target.outer;
      const rest = path.slice(up[0].length);
      return target === null || rest === '' ? null : this.value({ path: rest, call: false, strings: [] }, target, []);
    }
    const bare = path.replace(/\(\).*$/, '');
    const direct = scope.find(bare) ?? prefixes(bare).map((p) => scope.find(p)).find((j) => j !== null);
    if (direct !== undefined && direct !== null) return direct;
    if (call) return null;
    const item = scope.find('*');
    if (item !== null && !path.startsWith('@')) return item.volatility === 'unknown' ? null : { ...item, name: path };
    const section = scope.find('?');
    if (section !== null && !path.startsWith('@') && judgeName(path)?.strength !== 'strong' && section.volatility !== 'unknown') return { ...section, name: path };
    return null;
  }

  private call(reference: Reference, scope: Names | null, formats: readonly string[]): Judgement | null {
    const { path } = reference;
    const called = reference.given === true && (/^(?:Date|dayjs|moment|DateTime)(?:\(\).*)?$/.test(path) || isCalendarCall(path, reference.strings)) ? 'silent' : judgeCall(path, formats);
    if (called === 'silent') return constant('literal', 'The call adds nothing of its own.', path);
    const macro = this.prompt.macros[path];
    if (macro !== undefined) return this.macroValue(macro);
    if (called !== null) return { volatility: called.volatility, evidence: 'call', strength: called.strength === 'certain' ? 'certain' : called.strength, name: reference.label ?? path, reason: `\`${reference.label ?? path}\` ${called.reason}.` };
    const at = path.lastIndexOf('.');
    const method = path.slice(at + 1);
    const object = path.slice(0, Math.max(0, at)).replace(/\(\)$/, '');
    if (object !== '' && (dataMethods.test(method) || clockMethods.test(method))) return this.value({ path: object, call: path.slice(0, at).endsWith('()'), strings: reference.strings }, scope, formats);
    return null;
  }

  /** What a macro's text depends on beside its arguments: the calls in its body. Macros that call themselves end at the first turn. */
  private macroValue(macro: ControlSpan): Judgement {
    const nothing = constant('literal', 'The macro adds nothing of its own.', macro.name ?? '');
    if (this.entered.has(macro)) return nothing;
    this.entered.add(macro);
    const pieces = this.walk(macro.branches[0]?.spans ?? [], macroWalk(macro));
    this.entered.delete(macro);
    return join([nothing, ...pieces.filter((p) => p.judgement.evidence === 'call' && p.kind === 'value').map((p) => p.judgement)]);
  }

  /** A clock under a date-only format changes by the day. */
  private formatted(judgement: Judgement, formats: readonly string[]): Judgement {
    if (judgement.volatility !== 'minute' && judgement.volatility !== 'day') return judgement;
    const volatility = clockByFormat(judgement.volatility, formats);
    return volatility === judgement.volatility ? judgement : { ...judgement, volatility };
  }
}

const dataMethods =
  /^(?:get|items|keys|values|strip|lstrip|rstrip|split|rsplit|splitlines|join|replace|startswith|endswith|upper|lower|title|capitalize|format|append|pop|extend|first|last|length|trim|trimStart|trimEnd|slice|map|filter|reduce|toString|concat|includes|to_string|to_s|dump|model_dump|model_dump_json|dict|json|toUpperCase|toLowerCase|substring|substr|padStart|find|index|count|encode|decode|hex|isoformat|date|time|strftime|toISOString|toLocaleString|toLocaleDateString|toLocaleTimeString|toDateString|toUTCString|getTime|valueOf|ctime|timetuple|weekday|isoweekday|astimezone|getFullYear|getMonth|getDate|getDay|getHours|getMinutes|getSeconds|toISODate|toFormat|subtract|add|startOf|endOf|utc|tz|local|timestamp|total_seconds|plus|minus)$/;
const clockMethods = /^(?:strftime|isoformat|format|date|year|month|day)$/;

function macroWalk(macro: ControlSpan): Walk {
  const scope = new Names(null);
  for (const name of macro.binds) scope.names.set(name, constant('literal', 'A parameter.', name));
  return { part: 0, branches: [], loop: 'constant', history: false, foreign: macro, scope, depth: 7, conditional: false };
}

function weaken(judgement: Judgement): Judgement {
  return judgement.strength === 'strong' ? { ...judgement, strength: 'weak', evidence: 'default', reason: `${judgement.reason} The file gives a constant for when it is missing.` } : judgement;
}

/** In a chat template the host passes the conversation, the tools and flags that the deployment fixes. */
function chatTemplateName(path: string): Judgement | null {
  const root = path.split('.')[0]!;
  if (root === 'messages') {
    const first = /^messages\.(?:0)\b/.test(path);
    return { volatility: first ? 'deploy' : 'request', evidence: 'name', strength: first ? 'weak' : 'strong', name: path, reason: first ? 'The first message is usually the system message.' : 'The messages of the conversation.' };
  }
  if (/^(?:tools|builtin_tools|custom_tools|functions|add_generation_prompt|continue_final_message|bos_token|eos_token|pad_token|enable_thinking|thinking|reasoning_effort|tools_in_user_message|add_vision_id|chat_template_kwargs|model_identity|system_message|default_system_message)$/.test(root)) {
    return { volatility: 'deploy', evidence: 'name', strength: 'weak', name: path, reason: `\`${path}\` is fixed by the deployment.` };
  }
  return null;
}

function prefixes(path: string): string[] {
  const pieces = path.split('.');
  return pieces.slice(1).map((_, i) => pieces.slice(0, pieces.length - 1 - i).join('.'));
}

function plainName(name: string): string {
  return name.replace(/^\$/, '').trim().toLowerCase();
}

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}
