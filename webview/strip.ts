import type { Milliseconds } from '../src/report/sample';
import type { Theme } from './theme';

/** What a dot strip shows: all values (ms), and the interval of their median. */
export interface Strip {
  readonly values: readonly Milliseconds[];
  readonly interval: readonly [Milliseconds | null, Milliseconds | null];
  /** A limit of the SLO, drawn when it lies within the strip. */
  readonly limit: Milliseconds | null;
}

const dot = 2.25;

/** Draws all values as dots on one line, the interval of the median as a whisker above them. */
export function drawStrip(canvas: HTMLCanvasElement, strip: Strip, theme: Theme): void {
  const ratio = window.devicePixelRatio;
  const width = canvas.clientWidth;
  const height = canvas.clientHeight;
  if (width === 0 || strip.values.length === 0) return;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  ctx.scale(ratio, ratio);
  const [least, most] = extremes(strip.values);
  const pad = dot + 2;
  const x = (value: Milliseconds): number => (most > least ? pad + ((value - least) / (most - least)) * (width - 2 * pad) : width / 2);
  ctx.fillStyle = theme.answer;
  ctx.globalAlpha = strip.values.length > 30 ? 0.35 : 0.6;
  for (const value of strip.values) {
    ctx.beginPath();
    ctx.arc(x(value), height - dot - 3, dot, 0, 2 * Math.PI);
    ctx.fill();
  }
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.foreground;
  ctx.lineWidth = 1;
  ctx.beginPath();
  const [low, high] = strip.interval;
  if (low !== null && high !== null) {
    const y = 4.5;
    ctx.moveTo(x(low), y);
    ctx.lineTo(x(high), y);
    for (const end of [low, high]) {
      ctx.moveTo(Math.round(x(end)) + 0.5, y - 3);
      ctx.lineTo(Math.round(x(end)) + 0.5, y + 3);
    }
  }
  ctx.stroke();
  if (strip.limit !== null && strip.limit >= least && strip.limit <= most) {
    ctx.strokeStyle = theme.failure;
    ctx.setLineDash([2, 2]);
    ctx.beginPath();
    ctx.moveTo(x(strip.limit), 0);
    ctx.lineTo(x(strip.limit), height);
    ctx.stroke();
  }
}

function extremes(values: readonly number[]): [number, number] {
  let least = Number.POSITIVE_INFINITY;
  let most = Number.NEGATIVE_INFINITY;
  for (const value of values) {
    least = Math.min(least, value);
    most = Math.max(most, value);
  }
  return [least, most];
}
