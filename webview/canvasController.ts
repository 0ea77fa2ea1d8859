import { Chart, DatasetController, Element, type ChartType, type Scale } from 'chart.js';

/** Chart.js wants to know an element type even for a chart that has no elements. */
class NoElement extends Element {
  static readonly id = 'none';
  static override defaults = {};
}
Chart.register(NoElement);

/**
 * A controller that paints its dataset's `scene` straight onto the canvas. Chart.js gives axes, layout, sharpness and resizing; there is no data point
 * and no element for it to parse, update, animate or hover.
 */
export abstract class CanvasController<TScene> extends DatasetController {
  static readonly defaults = { dataElementType: 'none', datasetElementType: false, animation: false };

  override parse(): void { /* The scene is painted as it is. */ }
  override update(): void { /* No elements to update. */ }

  override draw(): void {
    this.chart.ctx.save();
    this.paint(this.chart.ctx, this.chart.chartArea, this.scene);
    this.chart.ctx.restore();
  }

  /** What is to be painted now. */
  protected get scene(): TScene {
    return (this.getDataset() as unknown as { scene: TScene }).scene;
  }

  /** Paints one frame; the context's state is restored afterwards. */
  protected abstract paint(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], scene: TScene): void;

  /** A scale by its id; the charts here always have both. */
  protected scale(id: 'x' | 'y'): Scale {
    const scale = this.chart.scales[id];
    if (scale === undefined) throw new Error(`chart without ${id} axis`);
    return scale;
  }
}

/** What Chart.js is told about a chart that a {@link CanvasController} paints. */
export interface PaintedChart<TScene> {
  readonly type: string;
  readonly scene: TScene;
  readonly scales: { readonly x: object; readonly y: object };
  readonly padding?: { readonly left?: number; readonly right?: number; readonly top?: number };
}

/** A chart with one painted scene, replaced as a whole with each `show`. Made on first use, as only then its canvas has a size. */
export class Painted<TScene> {
  readonly #canvas: HTMLCanvasElement;
  #chart: Chart | null = null;

  constructor(canvas: HTMLCanvasElement) {
    this.#canvas = canvas;
  }

  /** Plot area in CSS pixels of the canvas; null before the first `show`. */
  get area(): Chart['chartArea'] | null {
    return this.#chart?.chartArea ?? null;
  }

  /** Draws a scene with its axes. */
  show(painted: PaintedChart<TScene>): void {
    const { type, scene, scales, padding } = painted;
    if (this.#chart === null) {
      this.#chart = new Chart(this.#canvas, {
        type: type as ChartType,
        data: { datasets: [{ data: [], scene } as never] },
        options: { animation: false, parsing: false, normalized: true, events: [], responsive: true, maintainAspectRatio: false, layout: { padding: padding ?? {} }, scales: scales },
      });
      return;
    }
    this.#setScene(scene);
    const { options } = this.#chart;
    for (const id of ['x', 'y'] as const) Object.assign(options.scales?.[id] ?? {}, scales[id]);
    this.#chart.update('none');
  }

  /** Draws another scene on the same axes, without laying out anything: for what follows the pointer. */
  repaint(scene: TScene): void {
    this.#setScene(scene);
    this.#chart?.draw();
  }

  /** Forgets the chart, so that the next `show` makes it with other colours. */
  reset(): void {
    this.#chart?.destroy();
    this.#chart = null;
  }

  #setScene(scene: TScene): void {
    const dataset = this.#chart?.data.datasets[0];
    if (dataset) Object.assign(dataset, { scene });
  }
}
