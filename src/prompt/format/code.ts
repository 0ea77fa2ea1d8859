/** Prompts written as strings in Python and TypeScript/JavaScript: f-strings, template literals, `.format`, `%`, concatenation, role objects. */
import { TreeFragment, type SyntaxNode, type Tree } from '@lezer/common';
import { parser as javascript } from '@lezer/javascript';
import { parser as python } from '@lezer/python';
import { readExpression } from '../expression';
import { decodeString, Located, type StringSyntax } from '../located';
import type { ExpressionSpan, Part, Place, Problem, Prompt, Reference, Role, Span } from '../prompt';
import { parseDollars, parseFormatString } from './braces';
import { languageNamed, parseTemplate, promptOf, slotOf, type FormatInput, type InnerLanguage, type ParsedFormat } from './format';
import { roleOf } from './jinja';
import { expressionSpan, templateContext, type TemplateContext } from './template';

const promptNames = /prompt|system_?(?:message|text|content)?$|instructions?|persona|preamble/i;
const promptKeys = /^(?:system|instructions?|prompt|system_?prompt|user_?prompt|system_?message|system_?instructions?|developer)$/i;
const templateCalls = /(?:PromptTemplate|MessagePromptTemplate)(?:\.from_?template|\.fromTemplate)?$|from_?template$|fromTemplate$/;
/** Calls and tags that leave the words of their text as they are. */
const textFunctions = /^(?:dedent|outdent|endent|stripIndents?|oneLine|cleandoc|textwrap\.(?:dedent|indent|fill)|inspect\.cleandoc)$/;
/** How a string of a program is filled in: by a template language, by `str.format`, by `string.Template`. */
type CodeLanguage = InnerLanguage | 'str-format' | 'dollar';
const messageCalls = /^(?:System|Human|AI)Message(?:PromptTemplate)?$/;

/** Parses the prompt strings of a source file; a file without any gives no prompts. */
export function parseCode(input: FormatInput, language: 'python' | 'javascript', everyFunction: boolean): ParsedFormat {
  const context = templateContext(input.path, input.readFile);
  const tree = parseAgain(input, language);
  const prompts = new CodeReader(input.text, language, context, everyFunction).run(tree.topNode);
  return {
    format: language,
    language: language === 'python' ? 'f-string' : 'template literal',
    host: language === 'python' ? 'Python strings' : 'JavaScript strings',
    substituted: true,
    prompts,
    problems: input.codeErrors === true ? [...context.problems, ...syntaxErrors(tree)] : context.problems,
    dependencies: [],
  };
}

const dialects = { python, jsx: javascript.configure({ dialect: 'jsx' }), ts: javascript.configure({ dialect: 'ts' }), 'ts jsx': javascript.configure({ dialect: 'ts jsx' }) };
const grammarOf = (path: string, language: 'python' | 'javascript') => (language === 'python' ? language : /\.(?:[jt]sx)$/.test(path) ? 'ts jsx' : /\.[cm]?ts$/.test(path) ? 'ts' : 'jsx');

/** Trees of the files edited last, for those large enough to be worth it. */
const kept = new Map<string, { readonly text: string; readonly tree: Tree; readonly broken: boolean }>();
const mostKept = 4;
const worthKeeping = 20_000;

/**
 * The tree of a file; after an edit only what has changed, and what hangs on it, is parsed again. Where syntax is broken the parser guesses,
 * and would guess otherwise from another starting point, so that such a text is read from its beginning.
 */
function parseAgain({ path, text }: FormatInput, language: 'python' | 'javascript'): Tree {
  const grammar = grammarOf(path, language);
  const key = `${grammar} ${path}`;
  const before = kept.get(key);
  kept.delete(key);
  const again = before === undefined || before.broken ? null : dialects[grammar].parse(text, fragmentsFor(before, text));
  const tree = again === null || isBroken(again) ? dialects[grammar].parse(text) : again;
  if (text.length >= worthKeeping) kept.set(key, { text, tree, broken: tree !== again && isBroken(tree) });
  for (const oldest of kept.keys()) {
    if (kept.size <= mostKept) break;
    kept.delete(oldest);
  }
  return tree;
}

function syntaxErrors(tree: Tree): Problem[] {
  const found: Problem[] = [];
  tree.iterate({
    enter: ({ type, from, to }) => {
      if (type.isError) found.push({ start: from, end: to, message: 'This cannot be read.' });
    },
  });
  return found;
}

function isBroken(tree: Tree): boolean {
  let broken = false;
  tree.iterate({
    enter: ({ type }) => {
      broken ||= type.isError;
      return !broken;
    },
  });
  return broken;
}

/** What can be taken over when one stretch of the text has been replaced. */
function fragmentsFor(before: { readonly text: string; readonly tree: Tree }, text: string): readonly TreeFragment[] {
  const shorter = Math.min(before.text.length, text.length);
  let from = 0;
  while (from < shorter && before.text.charCodeAt(from) === text.charCodeAt(from)) from += 1;
  let tail = 0;
  while (tail < shorter - from && before.text.charCodeAt(before.text.length - 1 - tail) === text.charCodeAt(text.length - 1 - tail)) tail += 1;
  const change = { fromA: from, toA: before.text.length - tail, fromB: from, toB: text.length - tail };
  return TreeFragment.applyChanges(TreeFragment.addTree(before.tree), change.toA === from && change.toB === from ? [] : [change]);
}

/** Characters from which on a text with no telling name is looked at: what a warning takes, 256 tokens, is hardly shorter. */
const longPrompt = 1000;

/** How a sentence begins by which a text speaks to a model: not in the middle of one, as letters and licences do. */
const instructionWords = /(?:^|[.!?:>"'*#\n])[\s*#_>"'-]*(?:[Yy]ou(?:['’]re| are) (?:an? |the |now |our |my |[A-Z])|[Yy]our (?:task|job|role|goal|purpose) (?:is\b|:)|[Aa]ct as (?:an? |the ))/;

function readsAsInstructions(spans: readonly Span[]): boolean {
  const text = spans.map((s) => (s.kind === 'literal' ? s.text : s.kind === 'include' && s.spans?.[0]?.kind === 'literal' ? s.spans[0].text : ' ')).join('');
  return instructionWords.test(text.trimStart().slice(0, 400));
}

/** Values followed through assignments, once a file: names that depend on many others multiply. */
const mostLookUps = 100_000;

class CodeReader {
  private readonly prompts: Prompt[] = [];
  private readonly assigned = new Map<string, SyntaxNode[]>();
  private readonly formatted = new Map<string, SyntaxNode>();
  private readonly done = new Set<number>();
  private readonly source: string;
  private readonly language: 'python' | 'javascript';
  private readonly context: TemplateContext;
  private readonly everyFunction: boolean;

  constructor(source: string, language: 'python' | 'javascript', context: TemplateContext, everyFunction: boolean) {
    this.source = source;
    this.language = language;
    this.context = context;
    this.everyFunction = everyFunction;
  }

  run(top: SyntaxNode): Prompt[] {
    top.cursor().iterate((ref) => {
      if (ref.name === 'AssignStatement' || ref.name === 'VariableDeclaration') this.note(ref.node);
      if (ref.name === 'CallExpression') this.noteFormat(ref.node);
    });
    top.cursor().iterate((ref) => {
      if (this.inside(ref.from)) return true;
      if (ref.name === 'ArrayExpression') return !this.messages(ref.node);
      if (isText(ref.name) || ref.name === 'TaggedTemplateExpression' || ref.name === 'BinaryExpression' || ref.name === 'CallExpression') return !this.candidate(ref.node);
      return true;
    });
    return this.prompts;
  }

  private until = 0;
  private lookUps = 0;
  /** Where the last text that was looked at ends: what stands inside of it was looked at with it. */
  private judged = 0;

  private inside(from: number): boolean {
    return from < this.until;
  }

  private text(node: Place | { from: number; to: number } | null): string {
    if (node === null) return '';
    return 'from' in node ? this.source.slice(node.from, node.to) : this.source.slice(node.start, node.end);
  }

  /** Remembers `name = value` (Python) and `const name = value` (JavaScript). */
  private note(statement: SyntaxNode): void {
    for (let child = statement.firstChild; child !== null; child = child.nextSibling) {
      if (child.name !== 'VariableName' && child.name !== 'VariableDefinition') continue;
      let equals = child.nextSibling;
      if (equals?.name === 'TypeAnnotation' || equals?.name === 'TypeDef') equals = equals.nextSibling;
      if (equals?.name !== 'AssignOp' && equals?.name !== 'Equals') continue;
      const value = equals.nextSibling;
      if (value === null) continue;
      const name = this.text(child);
      const known = this.assigned.get(name);
      if (known === undefined) this.assigned.set(name, [value]);
      else known.push(value);
    }
  }

  private noteFormat(call: SyntaxNode): void {
    const callee = call.firstChild;
    const object = callee?.firstChild;
    if (callee?.name === 'MemberExpression' && object?.name === 'VariableName' && /\.(?:format|format_map)$/.test(this.text(callee))) this.formatted.set(this.text(object), call);
  }

  /** A list of `{role, content}` or `("system", "…")`: one prompt with a part a message. */
  private messages(list: SyntaxNode): boolean {
    const parts: Part[] = [];
    const template = this.callName(list.parent?.parent ?? null);
    const language: CodeLanguage = /from_?messages|fromMessages|ChatPromptTemplate/i.test(template) ? 'f-string' : 'none';
    for (let child = list.firstChild; child !== null; child = child.nextSibling) {
      const message = this.message(child);
      if (message === null) continue;
      const place = { start: message.content.from, end: message.content.to };
      parts.push({ ...place, slot: slotOf(message.role), role: message.role, message: parts.length, block: 0, spans: this.spans(message.content, language, 0), toolNames: [] });
    }
    if (parts.length === 0 || !parts.some((p) => p.spans.length > 0)) return false;
    this.add({ start: list.from, end: list.to }, parts, null);
    return true;
  }

  private message(node: SyntaxNode): { role: Role; content: SyntaxNode } | null {
    if (node.name === 'TupleExpression' || node.name === 'ArrayExpression') {
      const strings = children(node).filter((c) => isText(c.name));
      const role = strings.length === 2 ? roleOf(this.plain(strings[0]!)) : null;
      return role === null ? null : { role, content: strings[1]! };
    }
    if (node.name === 'CallExpression') {
      const role = /(System|Human|AI)Message/.exec(this.callName(node))?.[1];
      const content = children(node.getChild('ArgList')).find((c) => this.isTextual(c));
      return role === undefined || content === undefined ? null : { role: role === 'System' ? 'system' : role === 'Human' ? 'user' : 'assistant', content };
    }
    const entries = this.entries(node);
    const role = entries.get('role');
    const content = entries.get('content');
    if (role === undefined || content === undefined) return null;
    return { role: roleOf(this.plain(role)) ?? 'user', content };
  }

  /** Keys and values of a dictionary or object literal. */
  private entries(node: SyntaxNode): Map<string, SyntaxNode> {
    const found = new Map<string, SyntaxNode>();
    if (node.name === 'DictionaryExpression') {
      const list = children(node);
      list.forEach((child, i) => {
        if (child.name === ':' && i > 0 && list[i + 1] !== undefined) found.set(this.plain(list[i - 1]!), list[i + 1]!);
      });
    } else if (node.name === 'ObjectExpression') {
      for (const property of node.getChildren('Property')) {
        const key = property.firstChild;
        const value = property.lastChild;
        if (key !== null && value !== null && key !== value) found.set(this.plain(key), value);
      }
    }
    return found;
  }

  private plain(node: SyntaxNode): string {
    return this.text(node).replace(/^[a-zA-Z]*["'`]|["'`]$/g, '');
  }

  private callName(call: SyntaxNode | null): string {
    return call?.name === 'CallExpression' || call?.name === 'NewExpression' ? this.text(call.name === 'NewExpression' ? (call.firstChild?.nextSibling ?? null) : call.firstChild) : '';
  }

  /** A string expression that is a prompt by its name, its key or the function it stands in, or a long one that reads as instructions. */
  private candidate(node: SyntaxNode): boolean {
    if (!this.isTextual(node)) return false;
    const named = this.nameOf(node);
    const name = named ?? (this.isUsed(node) ? { name: this.ownerOf(node), language: 'none' as const } : null);
    if (name === null || (named === null && (node.to - node.from < longPrompt || node.from < this.judged))) return false;
    this.judged = Math.max(this.judged, node.to);
    const spans = this.spans(node, name.language, 0);
    const size = spans.reduce((sum, s) => sum + (s.kind === 'literal' ? s.text.length : 20), 0);
    if (named === null ? size < longPrompt || !readsAsInstructions(spans) : size < 40) return false;
    const role: Role = /user|human|question/i.test(name.name) ? 'user' : 'system';
    this.add({ start: node.from, end: node.to }, [{ start: node.from, end: node.to, slot: slotOf(role), role, message: 0, block: 0, spans, toolNames: [] }], name.name === '' ? null : name.name);
    return true;
  }

  private add(place: Place, parts: readonly Part[], name: string | null): void {
    if (this.done.has(place.start)) return;
    this.done.add(place.start);
    this.until = place.end;
    this.prompts.push(promptOf(place, parts, { macros: {}, name }));
  }

  private nameOf(node: SyntaxNode): { name: string; language: CodeLanguage } | null {
    const parent = node.parent;
    if (parent === null) return null;
    if (parent.name === 'ParenthesizedExpression') return this.nameOf(parent);
    if (parent.name === 'AssignStatement' || parent.name === 'VariableDeclaration' || parent.name === 'AssignmentExpression' || parent.name === 'PropertyDeclaration') {
      const name = this.text(parent.name === 'VariableDeclaration' ? before(node, 'VariableDefinition') : parent.name === 'PropertyDeclaration' ? parent.getChild('PropertyDefinition') : parent.firstChild);
      return promptNames.test(name) ? { name, language: this.formatted.has(name) ? 'str-format' : 'none' } : null;
    }
    if (parent.name === 'Property') {
      const key = this.plain(parent.firstChild!);
      return promptKeys.test(key) || promptNames.test(key) ? { name: key, language: 'none' } : null;
    }
    if (parent.name === 'DictionaryExpression') {
      const key = node.prevSibling?.prevSibling;
      const text = key === null || key === undefined ? '' : this.plain(key);
      return promptKeys.test(text) ? { name: text, language: 'none' } : null;
    }
    if (parent.name === 'ArgList') {
      const call = this.callName(parent.parent);
      const keyword = node.prevSibling?.name === 'AssignOp' ? this.text(node.prevSibling.prevSibling) : null;
      const named = languageNamed(/template_?[fF]ormat\s*[=:]\s*["'](\w[\w-]*)/.exec(this.text(parent))?.[1]);
      if (templateCalls.test(call) && (keyword === null || keyword === 'template')) return { name: call, language: named ?? 'f-string' };
      if (messageCalls.test(call)) return { name: call, language: 'none' };
      return keyword !== null && promptKeys.test(keyword) ? { name: keyword, language: 'none' } : null;
    }
    if (parent.name === 'ReturnStatement' || parent.name === 'ArrowFunction') {
      const owner = this.functionName(parent);
      return this.everyFunction || promptNames.test(owner) ? { name: owner, language: 'none' } : null;
    }
    return null;
  }

  /** False for a string that is a statement of its own: a docstring is sent nowhere. */
  private isUsed(node: SyntaxNode): boolean {
    const { parent } = node;
    if (parent?.name === 'ParenthesizedExpression') return this.isUsed(parent);
    return parent !== null && parent.name !== 'ExpressionStatement' && parent.name !== 'Script';
  }

  /** What a string without a telling name is called: the variable it is given to, else the function it stands in. */
  private ownerOf(node: SyntaxNode): string {
    for (let up = node.parent; up !== null; up = up.parent) {
      if (up.name === 'AssignStatement') return this.text(up.firstChild);
      if (up.name === 'VariableDeclaration') return this.text(up.getChild('VariableDefinition'));
      if (/^(?:Function|Method|Class)D/.test(up.name)) break;
    }
    return this.functionName(node);
  }

  private functionName(node: SyntaxNode): string {
    for (let up: SyntaxNode | null = node; up !== null; up = up.parent) {
      if (up.name === 'FunctionDefinition') return this.text(up.getChild('VariableName'));
      if (up.name === 'FunctionDeclaration') return this.text(up.getChild('VariableDefinition'));
      if (up.name === 'MethodDeclaration') return this.text(up.getChild('PropertyDefinition'));
      if (up.name === 'ArrowFunction' && up.parent?.name === 'VariableDeclaration') return this.text(up.parent.getChild('VariableDefinition'));
    }
    return '';
  }

  /** True for anything that is surely text: a string, a chain of strings, `.format`, `.join` of a list of strings. */
  private isTextual(node: SyntaxNode): boolean {
    if (isText(node.name) || node.name === 'TaggedTemplateExpression') return true;
    if (node.name === 'ConditionalExpression') return this.cases(node).some((c) => this.isTextual(c));
    if (node.name === 'ParenthesizedExpression') return children(node).some((c) => this.isTextual(c));
    if (node.name === 'BinaryExpression') return node.firstChild !== null && node.lastChild !== null && (this.isTextual(node.firstChild) || this.isTextual(node.lastChild));
    if (node.name !== 'CallExpression') return false;
    const callee = node.firstChild;
    if (this.languageOf(this.text(callee)) !== null) return children(node.getChild('ArgList')).some((c) => this.isTextual(c));
    const method = this.text(callee?.lastChild ?? null);
    const object = callee?.firstChild ?? null;
    if (callee?.name !== 'MemberExpression' || object === null) return false;
    if (method === 'join') return object.name === 'ArrayExpression' || (isText(object.name) && children(node.getChild('ArgList')).some((c) => c.name === 'ArrayExpression'));
    return /^(?:format|format_map|substitute|safe_substitute|render|strip|trim|lstrip|rstrip|replace|dedent)$/.test(method) && this.isTextual(object);
  }

  /** The language of the text that a function takes: `same` where it only trims; null for a function that is not known to give its text back. */
  private languageOf(callee: string): CodeLanguage | 'same' | null {
    if (textFunctions.test(callee)) return 'same';
    if (this.language !== 'python') return null;
    if (/^(?:string\.)?Template$/.test(callee)) return callee === 'Template' && /^from\s+jinja2\b[^\n]*\bTemplate\b/m.test(this.source) ? 'jinja' : 'dollar';
    return callee === 'jinja2.Template' || (/\.from_string$/.test(callee) && /\bjinja/i.test(this.source)) ? 'jinja' : null;
  }

  /** The values that a conditional expression chooses from, and its condition last: `a if c else b`, `c ? a : b`. */
  private parts(node: SyntaxNode): SyntaxNode[] {
    const [first, second, third] = children(node).filter((c) => !isComment(c.name) && c.name !== 'LogicOp' && c.name !== 'if' && c.name !== 'else');
    if (first === undefined || second === undefined || third === undefined) return [];
    return this.language === 'python' ? [first, third, second] : [second, third, first];
  }

  private cases(node: SyntaxNode): SyntaxNode[] {
    return this.parts(node).slice(0, 2);
  }

  /** Texts of which one is sent, by a condition. */
  private choice(node: SyntaxNode, condition: SyntaxNode, cases: readonly SyntaxNode[], depth: number): Span {
    const tag = { start: condition.from, end: condition.to };
    const references = this.references(condition, depth + 1, true);
    const branches = cases.map((c, i) => ({ tag, references: i === 0 ? references : [], spans: this.spans(c, 'none', depth + 1) }));
    return { kind: 'control', control: 'condition', start: node.from, end: node.to, tag, source: this.text(condition), binds: [], name: null, references, constant: null, branches, exhaustive: cases.length > 1 };
  }

  /** The spans of a text expression. */
  private spans(node: SyntaxNode, language: CodeLanguage, depth: number): Span[] {
    if (depth > 8) return [];
    switch (node.name) {
      case 'String':
      case 'FormatString':
      case 'TemplateString':
        return this.string(node, language, depth);
      case 'TaggedTemplateExpression':
        return children(node).filter((c) => c.name === 'TemplateString').flatMap((c) => this.string(c, language, depth, this.text(node.firstChild) === 'String.raw'));
      case 'ConditionalExpression':
        return this.isTextual(node) ? [this.choice(node, this.parts(node)[2]!, this.cases(node), depth)] : [this.value(node, depth)];
      case 'ContinuedString':
      case 'ParenthesizedExpression':
        return children(node).filter((c) => c.name !== '(' && c.name !== ')').flatMap((c) => this.spans(c, language, depth + 1));
      case 'BinaryExpression':
        return this.binary(node, language, depth);
      case 'CallExpression':
        return this.isTextual(node) ? this.textCall(node, language, depth) : [this.value(node, depth)];
      default:
        return isComment(node.name) ? [] : [this.value(node, depth)];
    }
  }

  private binary(node: SyntaxNode, language: CodeLanguage, depth: number): Span[] {
    const [left, right] = [node.firstChild!, node.lastChild!];
    const operator = this.text(left.nextSibling);
    if (operator === '%' && this.isTextual(left)) {
      const items = right.name === 'TupleExpression' ? children(right).filter((c) => !/^[(),]$/.test(c.name)) : [right];
      const values = items.map((item) => this.references(item, depth));
      const used = { next: 0 };
      return this.spans(left, 'none', depth + 1).flatMap((s) => (s.kind === 'literal' ? percent(s, values, used) : [s]));
    }
    if (/^(?:&&|and)$/.test(operator)) return [this.choice(node, left, [right], depth)];
    if (/^(?:\|\||\?\?|or)$/.test(operator)) return [this.choice(node, left, [left, right], depth)];
    return [...this.spans(left, language, depth + 1), ...this.spans(right, language, depth + 1)];
  }

  private textCall(node: SyntaxNode, language: CodeLanguage, depth: number): Span[] {
    const callee = node.firstChild!;
    const method = this.text(callee.lastChild);
    const object = callee.firstChild!;
    const given = children(node.getChild('ArgList'));
    const taken = this.languageOf(this.text(callee));
    if (taken !== null) return given.filter((c) => this.isTextual(c)).slice(0, 1).flatMap((c) => this.spans(c, taken === 'same' ? language : taken, depth + 1));
    if (method === 'join') {
      const list = object.name === 'ArrayExpression' ? object : given.find((c) => c.name === 'ArrayExpression')!;
      return children(list).filter((c) => !/^[[\],]$/.test(c.name) && !isComment(c.name)).flatMap((c) => this.spans(c, language, depth + 1));
    }
    if (/^(?:format|format_map|substitute|safe_substitute|render)$/.test(method)) return this.bindAll(this.spans(object, method.startsWith('format') ? 'str-format' : language, depth + 1), node, depth);
    return this.spans(object, language, depth + 1);
  }

  private bindAll(spans: readonly Span[], call: SyntaxNode, depth: number): Span[] {
    const used = { next: 0 };
    return spans.map((s) => (s.kind === 'expression' ? this.bindFormat(s, call, depth, used) : s));
  }

  /** `{name}` of a format string takes the argument of that name, `{}` and `{0}` the one at that place. */
  private bindFormat(span: ExpressionSpan, call: SyntaxNode, depth: number, used: { next: number }): Span {
    const list = children(call.getChild('ArgList')).filter((c) => !isComment(c.name));
    let value: SyntaxNode | undefined;
    if (/^\d*$/.test(span.name)) {
      const placed = list.filter((c, i) => !/^[(),]$/.test(c.name) && c.name !== 'AssignOp' && list[i - 1]?.name !== 'AssignOp' && list[i + 1]?.name !== 'AssignOp');
      value = placed[span.name === '' ? used.next++ : Number(span.name)];
    } else {
      const name = span.references[0]?.path.split('.')[0] ?? '';
      const at = list.findIndex((c, i) => c.name === 'AssignOp' && this.text(list[i - 1]!) === name);
      value = at < 0 ? undefined : list[at + 1];
    }
    if (value === undefined) return span;
    const fixed = isText(value.name) && value.getChild('FormatReplacement') === null ? this.spans(value, 'none', depth + 1) : this.constantText(value, depth);
    if (fixed !== null) return { kind: 'include', start: span.start, end: span.end, source: span.source, target: span.name, references: [], path: this.context.path, spans: fixed };
    const formats = span.references.flatMap((r) => r.strings);
    const references = this.references(value, depth + 1).map((r) => ({ ...r, strings: [...r.strings, ...formats] }));
    if (references.length === 0 && value.name === 'Number') return { ...span, references: [], constant: this.text(value) };
    return { ...span, name: span.name === '' ? span.source : span.name, references: /^\d*$/.test(span.name) || references.some((r) => r.call) ? references : [...span.references] };
  }

  private string(node: SyntaxNode, language: CodeLanguage, depth: number, unescaped = false): Span[] {
    const source = this.text(node);
    const quote = /^([a-zA-Z]*)("""|'''|["'`])/.exec(source);
    if (quote === null) return [];
    const raw = unescaped || /r/i.test(quote[1]!);
    const syntax: StringSyntax = raw ? 'python-raw' : this.language === 'python' ? 'python' : 'javascript';
    const start = node.from + quote[0].length;
    const end = source.endsWith(quote[2]!) && source.length >= quote[0].length + quote[2]!.length ? node.to - quote[2]!.length : node.to;
    const replaced = children(node).filter((c) => c.name === 'FormatReplacement' || c.name === 'Interpolation');
    const name = this.assignedName(node);
    const formatCall = name === null ? undefined : this.formatted.get(name);
    const inner: CodeLanguage = language === 'none' && formatCall !== undefined ? 'str-format' : language;
    const out: Span[] = [];
    let from = start;
    const text = (to: number): void => {
      if (to <= from) return;
      const located = decodeString(this.source, from, to, syntax);
      const plain = node.name === 'FormatString' ? unbrace(located) : null;
      out.push(...(plain !== null ? [plain.literal()] : inner === 'str-format' ? parseFormatString(located, true) : inner === 'dollar' ? parseDollars(located) : parseTemplate(located, inner, this.context)));
    };
    for (const r of replaced) {
      text(r.from);
      from = r.to;
      out.push(...this.replacement(r, depth));
    }
    text(end);
    return formatCall === undefined ? out : this.bindAll(out, formatCall, depth);
  }

  private assignedName(node: SyntaxNode): string | null {
    const parent = node.parent;
    if (parent?.name === 'AssignStatement') return this.text(parent.firstChild);
    return parent?.name === 'ContinuedString' || parent?.name === 'ParenthesizedExpression' ? this.assignedName(parent) : null;
  }

  private replacement(node: SyntaxNode, depth: number): Span[] {
    const inner = children(node).filter((c) => !/^(?:[{}]|Interpolation(?:Start|End)|FormatConversion|FormatSpec|FormatSelfDoc)$/.test(c.name));
    const value = inner[0];
    const spec = node.getChild('FormatSpec');
    const format = spec === null ? null : this.text(spec).slice(1);
    const place = { start: node.from, end: node.to };
    if (value === undefined) return [{ kind: 'literal', ...place, text: '', map: [[0, place.start]] }];
    if (format === null && this.isTextual(value)) return this.spans(value, 'none', depth + 1);
    const constant = this.constantText(value, depth);
    if (constant !== null) return [{ kind: 'include', ...place, source: this.text(node), target: this.text(value), references: [], path: this.context.path, spans: constant }];
    const parts = readExpression(this.text(value));
    const span = expressionSpan(Located.slice(this.source), { start: node.from, end: node.to }, this.text(value), parts);
    const references = this.references(value, depth + 1).map((r) => (format?.includes('%') === true ? { ...r, strings: [...r.strings, format] } : r));
    return [{ ...span, references: references.length === 0 ? span.references : references, macro: null }];
  }

  private value(node: SyntaxNode, depth: number): Span {
    const place = { start: node.from, end: node.to };
    const constant = this.constantText(node, depth);
    if (constant !== null) return { kind: 'include', ...place, source: this.text(node), target: this.text(node), references: [], path: this.context.path, spans: constant };
    const span = expressionSpan(Located.slice(this.source), place, this.text(node), readExpression(this.text(node)));
    return { ...span, references: this.references(node, depth + 1), macro: null };
  }

  /** The text of a name that is given once in this file, as a text. */
  private constantText(node: SyntaxNode, depth: number): Span[] | null {
    if (node.name !== 'VariableName' || depth > 6) return null;
    const values = this.assigned.get(this.text(node)) ?? [];
    const value = values.length === 1 ? values[0]! : null;
    if (value === null || !this.isTextual(value) || (value.from <= node.from && value.to >= node.to)) return null;
    return this.spans(value, 'none', depth + 1);
  }

  /** What a value depends on, through the assignments of this file. */
  private references(node: SyntaxNode, depth: number, condition = false): Reference[] {
    this.lookUps += 1;
    const texts = depth > 6 ? [] : this.filledTexts(node);
    const own = readExpression(this.without(node, texts), condition);
    const values = texts.flatMap((t) => children(t).filter((c) => c.name === 'FormatReplacement' || c.name === 'Interpolation').flatMap((c) => this.references(c, depth + 1)));
    const references = [...own.references.map((r) => ({ ...r, strings: [...r.strings, ...own.filterStrings] })), ...values];
    if (depth > 6 || this.lookUps > mostLookUps) return references;
    return references.flatMap((r): Reference[] => {
      const root = r.path.split('.')[0]!;
      const values = this.assigned.get(root) ?? [];
      const value = values.length === 1 ? values[0]! : null;
      if (value === null || (value.from <= node.from && value.to >= node.to) || value.to - value.from > 2000) return [r];
      const through = this.references(value, depth + 1);
      if (through.length === 0 && !/[A-Za-z_]/.test(this.text(value).replace(/^[a-z]*["'][^]*["']$/i, ''))) return [{ path: 'len', call: true, strings: [] }];
      const calls = through.filter((t) => t.call).map((t) => ({ ...t, strings: [...t.strings, ...r.strings] }));
      return calls.length > 0 ? [r, ...calls] : [r];
    });
  }

  /** Strings inside a value that take values of their own. */
  private filledTexts(node: SyntaxNode): SyntaxNode[] {
    const source = this.text(node);
    if (!(this.language === 'python' ? /f["']|fr["']/i : /`/).test(source)) return [];
    const found: SyntaxNode[] = [];
    node.cursor().iterate((ref) => {
      if (ref.name !== 'FormatString' && ref.name !== 'TemplateString') return true;
      found.push(ref.node);
      return false;
    });
    return found;
  }

  private without(node: SyntaxNode, texts: readonly SyntaxNode[]): string {
    let out = '';
    let from = node.from;
    for (const text of texts) {
      out += `${this.source.slice(from, text.from)}""`;
      from = text.to;
    }
    return (out + this.source.slice(from, node.to)).replace(/^\$?\{|\}$/g, (brace) => (node.name === 'FormatReplacement' || node.name === 'Interpolation' ? '' : brace));
  }
}

function isText(name: string): boolean {
  return name === 'String' || name === 'FormatString' || name === 'TemplateString' || name === 'ContinuedString';
}

function isComment(name: string): boolean {
  return name === 'Comment' || name === 'LineComment' || name === 'BlockComment';
}

function children(node: SyntaxNode | null): SyntaxNode[] {
  const out: SyntaxNode[] = [];
  for (let child = node?.firstChild ?? null; child !== null; child = child.nextSibling) out.push(child);
  return out;
}

function before(node: SyntaxNode, name: string): SyntaxNode | null {
  for (let left = node.prevSibling; left !== null; left = left.prevSibling) if (left.name === name) return left;
  return null;
}

/** In an f-string doubled braces are one brace. */
function unbrace(located: Located): Located {
  if (!/\{\{|\}\}/.test(located.text)) return located;
  const map: [number, number][] = [];
  let out = '';
  for (let i = 0; i < located.text.length; i += 1) {
    map.push([out.length, located.at(i)]);
    out += located.text[i]!;
    if ((located.text[i] === '{' || located.text[i] === '}') && located.text[i + 1] === located.text[i]) i += 1;
  }
  return new Located(out, map, located.at(located.text.length));
}

/** Cuts `%s` and `%(name)s` out of a literal; `used.next` is the next positional value. */
function percent(span: Extract<Span, { kind: 'literal' }>, values: readonly (readonly Reference[])[], used: { next: number }): Span[] {
  const located = new Located(span.text, span.map ?? [[0, span.start]], span.end);
  const out: Span[] = [];
  let from = 0;
  for (const match of span.text.matchAll(/%(?:\((\w+)\))?[-+0# ]*\d*(?:\.\d+)?([sdrfi])/g)) {
    if (match.index > from) out.push(located.literal(from, match.index));
    from = match.index + match[0].length;
    const name = match[1];
    const parts = readExpression(name ?? 'value');
    const span_ = expressionSpan(located, { start: match.index, end: from }, name ?? match[0], parts);
    out.push({ ...span_, references: name === undefined ? (values[used.next++] ?? values.flat()) : span_.references });
  }
  if (from < span.text.length) out.push(located.literal(from, span.text.length));
  return out;
}
