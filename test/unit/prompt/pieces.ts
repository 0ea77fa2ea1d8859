/** Builds prompts already unrolled from a tiny notation, so that the arithmetic is tested apart from the parsers. */
import type { BranchStep, CacheMarkSpan, ControlSpan, ExpressionSpan, Judgement, LiteralSpan, Part, Piece, Prompt, Role, Slot, Volatility } from '../../../src/prompt/prompt';
import type { TokenCounter } from '../../../src/prompt/tokens';

/** One token a word; white space belongs to none. Hand-computed numbers in the tests are words. */
export const wordCounter: TokenCounter = { source: 'o200k', exact: true, count: (text) => text.split(/\s+/).filter((w) => w !== '').length };

export const words = (n: number, word = 'w') => Array.from({ length: n }, (_, i) => `${word}${i}`).join(' ');

const judge = (volatility: Volatility, name: string): Judgement => ({ volatility, evidence: volatility === 'constant' ? 'literal' : 'name', strength: 'strong', name, reason: '' });
const notation = /\{\{(\w+):(\w+)\}\}|\[(if|for) (\w+):(\w+)\]|\[(else|end)\]|\[mark(?: (\w+))?\]/g;

export interface Built {
  readonly prompt: Prompt;
  readonly pieces: readonly Piece[];
  readonly text: string;
}

/** `{{name:class}}` a value, `[if name:class]…[else]…[end]`, `[for name:class]…[end]`, `[mark]` or `[mark 1h]` a cache marker. */
export function build(parts: readonly { readonly role: Role; readonly slot?: Slot; readonly text: string; readonly message?: number }[], more: Partial<Prompt> = {}): Built {
  const pieces: Piece[] = [];
  const built: Part[] = [];
  let text = '';
  parts.forEach((part, index) => {
    const start = text.length;
    const open: { step: BranchStep | null; loop: Volatility | null }[] = [];
    const around = () => ({ branches: open.flatMap((o) => (o.step === null ? [] : [o.step])), loop: open.map((o) => o.loop).find((l) => l !== null) ?? ('constant' as const) });
    const push = (piece: Partial<Piece> & Pick<Piece, 'kind' | 'start' | 'end' | 'span' | 'judgement'>) => pieces.push({ part: index, text: '', foreign: false, history: false, variant: false, ...around(), ...piece });
    const literal = (from: number, to: number) => {
      if (to <= from) return;
      const piece = part.text.slice(from, to);
      const span: LiteralSpan = { kind: 'literal', text: piece, start: start + from, end: start + to };
      push({ kind: 'static', start: start + from, end: start + to, text: piece, span, judgement: judge('constant', '') });
    };
    let at = 0;
    for (const match of part.text.matchAll(notation)) {
      literal(at, match.index);
      at = match.index + match[0].length;
      const place = { start: start + match.index, end: start + at };
      const [source, value, valueClass, control, name, controlClass, close, ttl] = match;
      if (value !== undefined) {
        const span: ExpressionSpan = { kind: 'expression', ...place, source, name: value, references: [{ path: value, call: false, strings: [] }], filters: [], clockFormat: null, constant: null, literals: [], macro: null, output: true };
        push({ kind: 'value', ...place, span, judgement: judge(valueClass as Volatility, value), history: value === 'history' });
      } else if (control !== undefined) {
        const end = part.text.indexOf('[end]', at) + 5;
        const exhaustive = part.text.slice(at, end).includes('[else]');
        const branch = { tag: place, references: [], spans: [] };
        const span: ControlSpan = { kind: 'control', control: control === 'if' ? 'condition' : 'loop', start: place.start, end: start + end, tag: place, source, binds: [], name: null, references: [], constant: null, branches: exhaustive ? [branch, branch] : [branch], exhaustive };
        push({ kind: 'point', ...place, span, judgement: judge(controlClass as Volatility, name ?? ''), variant: control === 'if' });
        open.push(control === 'if' ? { step: { control: place.start, branch: 0, volatility: controlClass as Volatility }, loop: null } : { step: null, loop: controlClass as Volatility });
      } else if (close === 'else') {
        const last = open.pop();
        if (last?.step) open.push({ step: { ...last.step, branch: last.step.branch + 1 }, loop: null });
      } else if (close === 'end') {
        open.pop();
      } else {
        const span: CacheMarkSpan = { kind: 'cache-mark', ...place, ttl: ttl ?? null };
        push({ kind: 'mark', ...place, span, judgement: judge('constant', '') });
      }
    }
    literal(at, part.text.length);
    text += `${part.text}\n`;
    const slot = part.slot ?? (part.role === 'system' ? 'system' : 'messages');
    built.push({ slot, role: part.role, message: slot === 'tools' ? null : (part.message ?? index), block: 0, start, end: start + part.text.length, spans: [], toolNames: [] });
  });
  return { prompt: { name: null, model: null, parts: built, variables: [], macros: {}, samples: [], chatTemplate: false, start: 0, end: text.length, ...more }, pieces, text };
}
