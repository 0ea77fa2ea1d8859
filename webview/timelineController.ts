import type { Chart } from 'chart.js';
import type { Milliseconds } from '../src/report/sample';
import { CanvasController } from './canvasController';
import { createColumns, fillColumns, type Columns } from './columns';
import type { Selection } from './navigation';
import type { Theme } from './theme';
import { hasFailed, type Track } from './track';
import type { Span } from './viewport';

/** A curve of the server's own gauges, drawn under the rows on the run's axis. */
export interface GaugeLane {
  readonly label: string;
  readonly points: readonly (readonly [t: Milliseconds, value: number])[];
}

/** Everything the controller needs to paint one frame. Replaced as a whole; nothing in it is measured while painting. */
export interface TimelineScene {
  readonly rows: readonly Track[];
  readonly firstRow: number;
  readonly shownRows: number;
  readonly rowHeight: number;
  readonly laneHeight: number;
  readonly gaugeHeight: number;
  readonly gauges: readonly GaugeLane[];
  /** Visible span in ms of the axis: since each request's start, or since the run's start. */
  readonly span: Span;
  readonly axis: 'request' | 'run';
  /** Gaps longer than this are marked; null while too few are known. */
  readonly longGap: Milliseconds | null;
  /** Null = nobody reads: no diagonal. */
  readonly readerPace: Milliseconds | null;
  /** How far a request that still waits has come: ms since the run's start. */
  readonly now: Milliseconds | null;
  readonly selection: Selection | null;
  /** The row and time under the pointer, in ms of the axis. */
  readonly pointer: { readonly row: number; readonly at: Milliseconds } | null;
  readonly theme: Theme;
  readonly words: {
    readonly name: (track: Track) => string;
    readonly value: (track: Track) => string;
    readonly note: (track: Track) => string;
    readonly gap: (gap: Milliseconds) => string;
    readonly time: (t: Milliseconds) => string;
    readonly laneTitle: string;
  };
}

/** Width of the column left of the rows: name and value of each request. */
export const gutter = 112;

/** Draws requests as rows of ticks from typed arrays, one pixel column at a time. No object exists per token, at no zoom. */
export class TimelineController extends CanvasController<TimelineScene> {
  static readonly id = 'tokenTimeline';
  #columns: Columns = createColumns(1);

  protected override paint(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], scene: TimelineScene): void {
    const width = Math.max(1, Math.floor(area.width));
    if (this.#columns.width !== width) this.#columns = createColumns(width);
    const brush = new Brush(ctx, area, scene, this.#columns, this.chart.currentDevicePixelRatio);
    brush.rows();
    brush.lane();
    brush.gauges();
    brush.crosshair();
  }
}

/** One frame of the time line. */
class Brush {
  readonly #ctx: CanvasRenderingContext2D;
  readonly #left: number;
  readonly #top: number;
  readonly #bottom: number;
  readonly #width: number;
  readonly #scene: TimelineScene;
  readonly #theme: Theme;
  readonly #columns: Columns;
  readonly #ratio: number;
  #tickWidth = 1;
  /** Whether every visible row has room for its note: with some of them only, a row without would look like one that has none. */
  #notesFit = true;

  constructor(ctx: CanvasRenderingContext2D, area: Chart['chartArea'], scene: TimelineScene, columns: Columns, ratio: number) {
    this.#ctx = ctx;
    this.#ratio = ratio;
    this.#left = area.left;
    this.#top = area.top;
    this.#bottom = area.bottom;
    this.#width = columns.width;
    this.#scene = scene;
    this.#theme = scene.theme;
    this.#columns = columns;
  }

  rows(): void {
    const { rows, firstRow, shownRows, rowHeight } = this.#scene;
    const end = Math.min(rows.length, firstRow + shownRows);
    const visible = rows.slice(firstRow, end);
    this.#tickWidth = this.#pixelsPerDelta(visible) > 5 ? 2 : 1;
    this.#noteFont(rowHeight);
    this.#notesFit = visible.every((track) => hasFailed(track) || this.#noteFits(track));
    for (let row = firstRow; row < end; row += 1) this.#row(rows[row] as Track, row, this.#top + (row - firstRow) * rowHeight);
  }

  #noteFont(height: number): void {
    this.#ctx.font = `${Math.min(this.#theme.size - 1, height - 3)}px ${this.#theme.family}`;
  }

  #noteStart(track: Track): number {
    return this.#x(track, track.last ?? track.end ?? track.headers ?? track.start) + 8;
  }

  /** Whether the note fits behind the row's last tick; a row that ends outside the view has its note there too. */
  #noteFits(track: Track): boolean {
    const right = this.#left + this.#width;
    const x = this.#noteStart(track);
    return x - 8 > right || x + this.#ctx.measureText(this.#scene.words.note(track)).width <= right;
  }

  /** Over all visible rows, so that ticks are equally wide in all of them. */
  #pixelsPerDelta(rows: readonly Track[]): number {
    const length = rows.reduce((sum, track) => sum + (track.count > 1 ? this.#x(track, track.t[track.count - 1] as number) - this.#x(track, track.t[0] as number) : 0), 0);
    return length / rows.reduce((sum, track) => sum + track.count, 1);
  }

  #x(track: Track, t: Milliseconds): number {
    const { span, axis } = this.#scene;
    const at = axis === 'request' ? t - track.start : t;
    return this.#left + ((at - span.from) / (span.to - span.from)) * this.#width;
  }

  #row(track: Track, row: number, top: number): void {
    const ctx = this.#ctx;
    const { rowHeight: height, selection, pointer } = this.#scene;
    const selected = selection?.sampleId === track.id;
    const fill = selected ? this.#theme.selectedRow : pointer?.row === row ? this.#theme.hoverRow : null;
    if (fill !== null) {
      ctx.fillStyle = fill;
      ctx.fillRect(0, top, this.#left + this.#width, height);
      if (selected && this.#theme.contrast) this.#outline(0.5, top + 0.5, this.#left + this.#width - 1, height - 1);
    }
    this.#labels(track, top + height / 2, selected);
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.#left, top, this.#width, height);
    ctx.clip();
    ctx.globalAlpha = track.role === 'measured' ? 1 : 0.55;
    this.#wait(track, top, height);
    this.#reader(track, top, height);
    this.#ticks(track, top, height);
    this.#ending(track, top, height);
    if (selected && selection.deltaIndex !== null) this.#chosen(track, selection.deltaIndex, top, height);
    ctx.restore();
  }

  #outline(x: number, y: number, width: number, height: number): void {
    this.#ctx.strokeStyle = this.#theme.focus;
    this.#ctx.lineWidth = 1;
    this.#ctx.strokeRect(x, y, width, height);
  }

  #labels(track: Track, middle: number, selected: boolean): void {
    const ctx = this.#ctx;
    const { words, rowHeight } = this.#scene;
    const size = Math.min(this.#theme.size - 1, rowHeight - 3);
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'right';
    ctx.font = `${selected ? '600 ' : ''}${size}px ${this.#theme.family}`;
    ctx.fillStyle = selected ? this.#theme.foreground : this.#theme.muted;
    ctx.fillText(words.name(track), 36, middle);
    ctx.font = `${size}px ${this.#theme.family}`;
    ctx.fillText(words.value(track), this.#left - 10, middle);
  }

  /** The connection as a thin line, then queue and prefill as a quiet bar up to the first token; the response head is a notch in it. */
  #wait(track: Track, top: number, height: number): void {
    const ctx = this.#ctx;
    const until = track.firstToken ?? (track.outcome === null ? this.#scene.now : track.end ?? track.headers);
    const begin = this.#x(track, track.start);
    const connected = track.connected === null ? begin : this.#x(track, track.connected);
    ctx.fillStyle = this.#theme.wait;
    if (connected > begin) ctx.fillRect(begin, Math.round(top + height / 2) - 0.5, connected - begin, 1);
    if (until === null) return;
    const bar = Math.max(3, Math.round(height * 0.26));
    const y = Math.round(top + (height - bar) / 2);
    const alpha = ctx.globalAlpha;
    ctx.globalAlpha = alpha * (this.#theme.contrast ? 0.55 : 0.32);
    ctx.fillRect(connected, y, Math.max(1, this.#x(track, until) - connected), bar);
    ctx.globalAlpha = alpha * 0.9;
    if (track.headers !== null && track.headers > track.start) ctx.fillRect(Math.round(this.#x(track, track.headers)), y - 2, 1, bar + 4);
    ctx.globalAlpha = alpha;
  }

  /** Where a reader at the configured pace would be: from the first visible token at the row's foot to the last at its head. */
  #reader(track: Track, top: number, height: number): void {
    const { readerPace } = this.#scene;
    if (track.firstVisible === null || height < 14 || readerPace === null) return;
    const ctx = this.#ctx;
    const reach = readerPace * Math.max(1, track.sample?.streamTokens ?? track.count);
    ctx.strokeStyle = this.#theme.muted;
    ctx.lineWidth = 1;
    const alpha = ctx.globalAlpha;
    ctx.globalAlpha = alpha * (this.#theme.contrast ? 0.9 : 0.4);
    ctx.beginPath();
    ctx.moveTo(this.#x(track, track.firstVisible), top + height - 2);
    ctx.lineTo(this.#x(track, track.firstVisible + reach), top + 2);
    ctx.stroke();
    ctx.globalAlpha = alpha;
  }

  #ticks(track: Track, top: number, height: number): void {
    const { span, axis } = this.#scene;
    const shift = axis === 'request' ? track.start : 0;
    fillColumns(this.#columns, track, span.from + shift, span.to + shift);
    this.#gaps(track, top, height);
    // Reasoning stands half as high as the answer, so shape tells them apart where colour does not.
    this.#tickSeries(this.#columns.reasoning, this.#theme.reasoning, top + height * 0.31, height * 0.38);
    this.#tickSeries(this.#columns.answer, this.#theme.answer, top + height * 0.14, height * 0.72);
  }

  /** Neighbouring columns become one rectangle on whole pixels of the screen: between two of them a tick would have another colour than its neighbour. */
  #tickSeries(counts: Uint16Array, color: string, y: number, height: number): void {
    const ctx = this.#ctx;
    ctx.fillStyle = color;
    const ratio = this.#ratio;
    const snapped = (value: number): number => Math.round(value * ratio) / ratio;
    const left = Math.round(this.#left);
    const top = snapped(y);
    const tall = snapped(height);
    const thin = Math.max(1, Math.round(this.#tickWidth * ratio)) / ratio;
    for (let column = 0; column < counts.length; column += 1) {
      if (counts[column] === 0) continue;
      let run = column + 1;
      while (run < counts.length && counts[run] !== 0) run += 1;
      const from = snapped(left + column);
      ctx.fillRect(from, top, run - column <= this.#tickWidth ? thin : snapped(left + run) - from, tall);
      column = run;
    }
  }

  /** Long gaps: a line with end caps across the blank, with its length where there is room; a small wedge where the blank is too narrow to see. */
  #gaps(track: Track, top: number, height: number): void {
    const { longGap, words } = this.#scene;
    if (longGap === null) return;
    const ctx = this.#ctx;
    const { gap, gapEnd } = this.#columns;
    const middle = Math.round(top + height / 2) + 0.5;
    const size = Math.min(this.#theme.size - 2, height - 4);
    ctx.strokeStyle = this.#theme.gap;
    ctx.fillStyle = this.#theme.gap;
    ctx.lineWidth = 1;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.font = `${size}px ${this.#theme.family}`;
    ctx.beginPath();
    for (let column = 0; column < gap.length; column += 1) {
      const length = gap[column] as number;
      if (length <= longGap) continue;
      const end = gapEnd[column] as number;
      const from = Math.max(this.#x(track, track.t[end - 1] as number) + 1, this.#left - 4);
      const to = Math.min(this.#x(track, track.t[end] as number), this.#left + this.#width + 4);
      if (to - from < 4) {
        wedge(ctx, to, top + 1);
        continue;
      }
      // Asking for the width of a text is dear, so only where one could fit.
      const label = to - from > 30 && size >= 8 ? words.gap(length) : '';
      const room = to - from - (label === '' ? 0 : ctx.measureText(label).width);
      if (label !== '' && room > 14) {
        bracket(ctx, from, from + room / 2 - 4, middle, 'start');
        bracket(ctx, to - room / 2 + 4, to, middle, 'end');
        ctx.fillText(label, (from + to) / 2, middle);
      } else bracket(ctx, from, to, middle, 'both');
    }
    ctx.stroke();
  }

  /** A failure as a cross at the row's end with its name; otherwise a quiet note such as how much came from the cache. */
  #ending(track: Track, top: number, height: number): void {
    const note = this.#scene.words.note(track);
    if (note === '') return;
    const ctx = this.#ctx;
    const failed = hasFailed(track);
    const middle = top + height / 2;
    if (!failed && !this.#notesFit) return;
    let x = this.#noteStart(track);
    if (failed) {
      const arm = Math.min(4, height / 4);
      ctx.strokeStyle = this.#theme.failure;
      ctx.lineWidth = 1.8;
      ctx.beginPath();
      ctx.moveTo(x - arm, middle - arm);
      ctx.lineTo(x + arm, middle + arm);
      ctx.moveTo(x - arm, middle + arm);
      ctx.lineTo(x + arm, middle - arm);
      ctx.stroke();
      x += arm + 5;
    }
    this.#noteFont(height);
    ctx.textBaseline = 'middle';
    ctx.textAlign = 'left';
    ctx.fillStyle = failed ? this.#theme.failure : this.#theme.muted;
    ctx.fillText(note, failed ? Math.min(x, this.#left + this.#width - ctx.measureText(note).width - 2) : x, middle);
  }

  #chosen(track: Track, index: number, top: number, height: number): void {
    const t = track.t[index];
    if (t === undefined || index >= track.count) return;
    const ctx = this.#ctx;
    const x = Math.floor(this.#x(track, t));
    ctx.fillStyle = this.#theme.foreground;
    ctx.fillRect(x - 0.5, top + 1, 2, height - 2);
    wedgeFilled(ctx, x + 0.5, top);
  }

  /** The selected request large: tokens so far against a fast reader. */
  lane(): void {
    const { laneHeight, rows, selection, words } = this.#scene;
    if (laneHeight === 0) return;
    const ctx = this.#ctx;
    const top = this.#top + this.#scene.shownRows * this.#scene.rowHeight + 14;
    const bottom = top + laneHeight - 22;
    ctx.strokeStyle = this.#theme.grid;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(0, top - 9.5);
    ctx.lineTo(this.#left + this.#width, top - 9.5);
    ctx.stroke();
    const track = rows.find((row) => row.id === selection?.sampleId);
    this.#laneLabels(words.laneTitle, track, top, bottom);
    if (track === undefined || track.count === 0) return;
    ctx.save();
    ctx.beginPath();
    ctx.rect(this.#left, top - 2, this.#width, bottom - top + 4);
    ctx.clip();
    this.#curves(track, top, bottom);
    ctx.restore();
  }

  #laneLabels(title: string, track: Track | undefined, top: number, bottom: number): void {
    const ctx = this.#ctx;
    ctx.font = `${this.#theme.size - 2}px ${this.#theme.family}`;
    ctx.fillStyle = this.#theme.muted;
    ctx.textBaseline = 'top';
    ctx.textAlign = 'left';
    ctx.fillText(title.split('\n')[0] ?? '', 4, top);
    ctx.fillText(title.split('\n')[1] ?? '', 4, top + this.#theme.size + 1);
    if (track === undefined) return;
    ctx.textAlign = 'right';
    ctx.fillText(String(track.count), this.#left - 6, top);
    ctx.textBaseline = 'bottom';
    ctx.fillText('0', this.#left - 6, bottom + 2);
  }

  #curves(track: Track, top: number, bottom: number): void {
    const ctx = this.#ctx;
    const height = bottom - top;
    const y = (share: number): number => bottom - share * height;
    const { readerPace } = this.#scene;
    if (track.firstVisible !== null && readerPace !== null) {
      ctx.strokeStyle = this.#theme.muted;
      ctx.setLineDash([4, 3]);
      ctx.lineWidth = 1;
      ctx.beginPath();
      ctx.moveTo(this.#x(track, track.firstVisible), bottom);
      ctx.lineTo(this.#x(track, track.firstVisible + readerPace * track.count), top);
      ctx.stroke();
      ctx.setLineDash([]);
    }
    // One step a pixel is all a curve can show, so later deltas of the same pixel only lift it.
    ctx.strokeStyle = this.#theme.answer;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(this.#x(track, track.start), bottom);
    let x = Number.NEGATIVE_INFINITY;
    for (let index = 0; index < track.count; index += 1) {
      const next = this.#x(track, track.t[index] as number);
      if (next - x < 0.5 && index < track.count - 1) continue;
      ctx.lineTo(next, y(index / track.count));
      ctx.lineTo(next, y((index + 1) / track.count));
      x = next;
    }
    ctx.stroke();
  }

  /** The server's own gauges, each scaled to its maximum, on the same axis as the rows. */
  gauges(): void {
    const { gauges, gaugeHeight, shownRows, rowHeight, laneHeight, span } = this.#scene;
    const ctx = this.#ctx;
    gauges.forEach((gauge, place) => {
      const top = this.#top + shownRows * rowHeight + laneHeight + place * gaugeHeight + 8;
      const bottom = top + gaugeHeight - 12;
      const most = gauge.points.reduce((max, point) => Math.max(max, point[1]), 0);
      ctx.font = `${this.#theme.size - 2}px ${this.#theme.family}`;
      ctx.fillStyle = this.#theme.muted;
      ctx.textAlign = 'right';
      ctx.textBaseline = 'middle';
      ctx.fillText(gauge.label, this.#left - 6, (top + bottom) / 2, gutter - 10);
      ctx.save();
      ctx.beginPath();
      ctx.rect(this.#left, top - 2, this.#width, bottom - top + 4);
      ctx.clip();
      ctx.strokeStyle = this.#theme.foreground;
      ctx.lineWidth = 1;
      ctx.beginPath();
      gauge.points.forEach(([t, value], i) => {
        const x = this.#left + ((t - span.from) / (span.to - span.from)) * this.#width;
        const y = bottom - (most > 0 ? value / most : 0) * (bottom - top);
        if (i > 0) ctx.lineTo(x, bottom - (most > 0 ? (gauge.points[i - 1]?.[1] ?? 0) / most : 0) * (bottom - top));
        ctx.lineTo(x, y);
      });
      ctx.stroke();
      ctx.textAlign = 'left';
      ctx.textBaseline = 'top';
      ctx.fillText(String(Math.round(most * 100) / 100), this.#left + 2, top - 2);
      ctx.restore();
    });
  }

  crosshair(): void {
    const { pointer, span, words } = this.#scene;
    if (pointer === null) return;
    const ctx = this.#ctx;
    const x = Math.round(this.#left + ((pointer.at - span.from) / (span.to - span.from)) * this.#width) + 0.5;
    if (x < this.#left || x > this.#left + this.#width) return;
    ctx.strokeStyle = this.#theme.foreground;
    ctx.globalAlpha = 0.5;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x, this.#top);
    ctx.lineTo(x, this.#bottom);
    ctx.stroke();
    ctx.globalAlpha = 1;
    const label = words.time(pointer.at);
    ctx.font = `${this.#theme.size - 2}px ${this.#theme.family}`;
    const width = ctx.measureText(label).width + 10;
    const left = Math.min(Math.max(x - width / 2, this.#left), this.#left + this.#width - width);
    ctx.fillStyle = this.#theme.foreground;
    ctx.fillRect(left, this.#bottom + 3, width, this.#theme.size + 3);
    ctx.fillStyle = this.#theme.background;
    ctx.textAlign = 'center';
    ctx.textBaseline = 'middle';
    ctx.fillText(label, left + width / 2, this.#bottom + 4 + (this.#theme.size + 2) / 2);
  }
}

function bracket(ctx: CanvasRenderingContext2D, from: number, to: number, y: number, caps: 'start' | 'end' | 'both'): void {
  const cap = 3;
  ctx.moveTo(from, y);
  ctx.lineTo(to, y);
  if (caps !== 'end') {
    ctx.moveTo(from + 0.5, y - cap);
    ctx.lineTo(from + 0.5, y + cap);
  }
  if (caps !== 'start') {
    ctx.moveTo(to - 0.5, y - cap);
    ctx.lineTo(to - 0.5, y + cap);
  }
}

function wedge(ctx: CanvasRenderingContext2D, x: number, top: number): void {
  ctx.moveTo(x - 2.5, top);
  ctx.lineTo(x, top + 3);
  ctx.lineTo(x + 2.5, top);
}

function wedgeFilled(ctx: CanvasRenderingContext2D, x: number, top: number): void {
  ctx.beginPath();
  ctx.moveTo(x - 4, top);
  ctx.lineTo(x, top + 5);
  ctx.lineTo(x + 4, top);
  ctx.fill();
}
