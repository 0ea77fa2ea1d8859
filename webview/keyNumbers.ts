import { counted, interval } from '../src/report/format';
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
    show(this.element, run.live || this.#numbers.length > 0);
    this.#tiles.forEach((tile, i) => {
      const number = this.#numbers[i];
      // While a run starts the places are kept, so that nothing below moves when the first number comes.
      show(tile.element, number !== undefined || (run.live && i < 3));
      setText(tile.label, number?.label ?? ' ');
      setText(tile.value, number?.value ?? '–');
      setText(tile.beside, number?.beside ?? '');
      setText(tile.below, number === undefined ? ' ' : below(number));
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

function createTile(): Tile {
  const parts = { label: el('dt'), value: el('span', { class: 'value' }), beside: el('span', { class: 'beside' }), below: el('dd', { class: 'below' }), canvas: el('canvas', { 'aria-hidden': 'true' }) };
  return { ...parts, element: el('div', { class: 'key-number' }, parts.label, el('dd', { class: 'large' }, parts.value, parts.beside), el('dd', {}, parts.canvas), parts.below) };
}

function below(number: KeyNumber): string {
  if (number.whisker === null) return ' ';
  const [low, high] = number.whisker;
  return `${counted(number.dots.length, 'answer')}, p50 ${low === null || high === null ? 'interval: ' : 'within '}${interval(number.whisker)}`;
}
