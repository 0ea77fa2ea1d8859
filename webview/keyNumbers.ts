import { count, interval } from '../src/report/format';
import { isProof } from '../src/report/proof';
import { metricWords } from '../src/report/metricNames';
import { keyNumbers, type KeyNumber } from '../src/report/table';
import { el, setText, show } from './element';
import type { Run } from './state';
import { drawStrip } from './strip';
import { readTheme } from './theme';

interface Tile {
  readonly element: HTMLElement;
  readonly label: HTMLElement;
  readonly value: HTMLElement;
  readonly beside: HTMLElement;
  readonly below: HTMLElement;
  readonly dots: HTMLElement;
  readonly canvas: HTMLCanvasElement;
}

const most = 4;

/** At most four numbers, large: what the objective asks for first. */
export class KeyNumbers {
  readonly element: HTMLElement;
  readonly #tiles: readonly Tile[];
  #theme = readTheme();
  #run: Run | null = null;
  #numbers: readonly KeyNumber[] = [];
  #key = '';

  constructor() {
    this.#tiles = Array.from({ length: most }, createTile);
    this.element = el('section', { 'aria-label': 'Key numbers' }, el('dl', { class: 'key-numbers' }, ...this.#tiles.map((tile) => tile.element)));
  }

  /** Takes the editor's colours again. */
  rebuildTheme(): void {
    this.#theme = readTheme();
    this.#strips();
  }

  /** Draws the strips for a new width. */
  resize(): void {
    this.#strips();
  }

  /** Draws the numbers of a run so far. */
  draw(run: Run): void {
    this.#run = run;
    this.#numbers = keyNumbers(run.report);
    const proof = isProof(run.report.plan);
    const expected = proof ? [] : awaited[run.report.plan.objective];
    show(this.element, (run.live && !proof) || this.#numbers.some((number) => number.dots.length > 0));
    this.#tiles.forEach((tile, i) => {
      const number = this.#numbers[i];
      // While a run starts the places are kept, so that nothing below moves when the first number comes.
      show(tile.element, number !== undefined || (run.live && i < expected.length));
      setText(tile.label, number?.label ?? expected[i]?.label ?? '');
      setValue(tile.value, number?.value ?? '–');
      setText(tile.beside, number?.beside ?? '');
      setText(tile.below, number === undefined ? ' ' : below(number));
      // A rate of the whole run has no dots, and alone in its row no room for them.
      const dotted = number === undefined ? expected[i]?.dotted === true : number.whisker !== null;
      show(tile.dots, dotted);
      show(tile.below, dotted);
      tile.element.title = number?.definition ?? '';
      tile.canvas.classList.toggle('blank', number === undefined || number.dots.length === 0);
    });
    const key = `${run.report.id} ${this.#numbers.map((number) => `${number.id} ${number.value} ${number.dots.length}`).join(' ')} ${this.element.clientWidth}`;
    if (key !== this.#key) this.#strips();
    this.#key = key;
  }

  #strips(): void {
    const slo = this.#run?.report.plan.slo;
    this.#tiles.forEach((tile, i) => {
      const number = this.#numbers[i];
      if (number === undefined || number.dots.length === 0) return;
      const limit = number.id === 'ttft' || number.id === 'firstVisible' || number.id === 'tpot' || number.id === 'total' ? slo?.[number.id] : undefined;
      drawStrip(tile.canvas, { values: number.dots, interval: number.whisker ?? [null, null], limit: limit ?? null }, this.#theme);
    });
  }
}

const latency = (id: 'ttft' | 'tpot' | 'total') => ({ label: metricWords[id].label, dotted: true });
const rate = (label: string) => ({ label, dotted: false });
/** What the places are kept for until the first numbers come. */
const awaited = {
  chat: [latency('ttft'), latency('tpot'), rate('Goodput')],
  batch: [rate('Throughput'), latency('total'), latency('tpot')],
};

function createTile(): Tile {
  const canvas = el('canvas', { 'aria-hidden': 'true' });
  const parts = { label: el('dt'), value: el('span', { class: 'value' }), beside: el('span', { class: 'beside' }), dots: el('dd', { class: 'dots' }, canvas), below: el('dd', { class: 'below' }), canvas };
  return { ...parts, element: el('div', { class: 'key-number' }, parts.label, el('dd', { class: 'large' }, parts.value, parts.beside), parts.dots, parts.below) };
}

function below(number: KeyNumber): string {
  if (number.whisker === null) return ' ';
  const [low, high] = number.whisker;
  return low === null || high === null ? `n ${count(number.dots.length)}: too small for an interval` : `p50 within ${interval(number.whisker)}, n ${count(number.dots.length)}`;
}

/** The number large, its unit in the size of the text. */
function setValue(element: HTMLElement, text: string): void {
  if (element.textContent === text) return;
  const at = text.indexOf(' ');
  element.replaceChildren(...(at < 0 ? [text] : [text.slice(0, at), el('span', { class: 'unit' }, text.slice(at))]));
}
