/** Two renders of one prompt: what can be made to differ, and the two texts with what has to be said about them. Pure. */
import type { Prompt, PromptFile, TokenCounter } from '../prompt/index';
import { count } from '../report/format';
import type { Renderable, RenderSide, SideBySide } from './prefixMessages';
import type { PromptPart } from './prefixView';

type Variables = Readonly<Record<string, string>>;

interface Clocks {
  /** The quickest clock of the prompt. */
  readonly quickest: 'day' | 'minute' | null;
  /** Variables that hold a date or time by their name, a pragma or the settings; calls are rendered by the clock anyway. */
  readonly variables: ReadonlyMap<string, 'day' | 'minute'>;
}

function clocksOf(prompt: PromptPart, file: PromptFile, one: Prompt, variables: Variables): Clocks {
  const found = new Map<string, 'day' | 'minute'>();
  let quickest: Clocks['quickest'] = null;
  for (const { judgement, kind } of prompt.unroll(file, one, { variables })) {
    const { volatility } = judgement;
    if (kind === 'static' || (volatility !== 'day' && volatility !== 'minute')) continue;
    quickest = quickest === 'minute' ? quickest : volatility;
    const name = judgement.name.replace(/^\$/, '');
    if (judgement.evidence !== 'call' && /^[\w.-]+$/.test(name)) found.set(name, volatility);
  }
  return { quickest, variables: found };
}

/** The prompts of a file with what two renders of each can be made to differ in. */
export function renderables(prompt: PromptPart, file: PromptFile, variables: Variables): Renderable[] {
  return file.prompts.map((one, index) => {
    const known = prompt.sampleInputs(one);
    const names = [...new Set([...one.variables.map(({ name }) => name), ...Object.keys(known), ...prompt.renderForProbe(file, {}, 0, index).unrendered])];
    return {
      index,
      name: one.name,
      samples: one.samples.map((values) => JSON.stringify(values).slice(0, 120)),
      variables: names.map((name) => ({ name, value: known[name] === undefined ? null : typeof known[name] === 'string' ? known[name] : JSON.stringify(known[name]) })),
      clock: clocksOf(prompt, file, one, variables).quickest,
    };
  });
}

/** A value at a dotted path, nested below its first name where that is no variable of its own. */
function withValue(values: Readonly<Record<string, unknown>>, path: string, value: string): Record<string, unknown> {
  const dot = path.indexOf('.');
  if (dot < 0 || Object.hasOwn(values, path)) return { ...values, [path]: value };
  const head = path.slice(0, dot);
  const inner = values[head];
  return { ...values, [head]: withValue(typeof inner === 'object' && inner !== null && !Array.isArray(inner) ? (inner as Record<string, unknown>) : {}, path.slice(dot + 1), value) };
}

/** A time in UTC as a variable of that class would hold it. */
const written = (clock: number, of: 'day' | 'minute') => new Date(clock).toISOString().replace('T', ' ').slice(0, of === 'day' ? 10 : 19);

/** Renders both sides. At two times, variables that hold a date or time get that of each side: the sample in the file would pin them. */
export function renderedSides(prompt: PromptPart, file: PromptFile, one: Prompt, given: { readonly a: RenderSide; readonly b: RenderSide; readonly variables: Variables; readonly counter: TokenCounter }): SideBySide {
  const { a, b, counter } = given;
  const clocks = a.clock === b.clock ? [] : [...clocksOf(prompt, file, one, given.variables).variables];
  const inputs = (side: RenderSide) => {
    const own = { ...prompt.sampleInputs(one), ...one.samples[side.sample], ...side.values };
    return { values: clocks.reduce<Record<string, unknown>>((values, [name, of]) => withValue(values, name, written(side.clock, of)), own), clock: side.clock, nonce: side.nonce };
  };
  const { first, second, difference } = prompt.compareRenders(file, one, inputs(a), inputs(b), counter);
  const place = difference?.place ?? null;
  const both = (names: 'unrendered' | 'leftOut') => [...new Set([...first[names], ...second[names]])];
  const leftOut = both('leftOut');
  const asWritten = both('unrendered').filter((name) => !leftOut.includes(name));
  return {
    first: first.text,
    second: second.text,
    difference,
    tokens: counter.count(second.text),
    words: [
      ...(place === null ? [] : [`It comes from line ${count(file.text.slice(0, place.start).split('\n').length)}: ${file.text.slice(place.start, place.end).replace(/\s+/g, ' ').slice(0, 60)}`]),
      ...(clocks.length === 0 ? [] : [`${clocks.map(([name]) => name).join(', ')} ${clocks.length === 1 ? 'follows' : 'follow'} the clock of each render, not a value in the file`]),
      ...(asWritten.length === 0 ? [] : [`Without a value, so left as written: ${asWritten.join(', ')}`]),
      ...(leftOut.length === 0 ? [] : [`Without a value, so the text that depends on it is left out: ${leftOut.join(', ')}`]),
    ],
  };
}
