import type { Milliseconds } from '../src/report/sample';
import type { Theme } from './theme';
import { hasFailed, type Track } from './track';
import type { Span } from './viewport';

/** All rows of a long run on a narrow strip, and which of them the time line shows. */
export interface MinimapScene {
  readonly rows: readonly Track[];
  readonly whole: Span;
  /** Time on the axis of a stamp. */
  readonly at: (track: Track, t: Milliseconds) => Milliseconds;
  readonly firstRow: number;
  readonly shownRows: number;
  readonly height: number;
  readonly theme: Theme;
}

const width = 64;

/** Draws the strip: each request a line from its start over its first token to its end, failures at their ends, and a frame around the rows in view. */
export function drawMinimap(canvas: HTMLCanvasElement, scene: MinimapScene): void {
  const { rows, whole, at, height, theme } = scene;
  const ratio = window.devicePixelRatio;
  canvas.width = width * ratio;
  canvas.height = height * ratio;
  canvas.style.height = `${height}px`;
  const ctx = canvas.getContext('2d');
  if (!ctx) return;
  ctx.scale(ratio, ratio);
  const x = (track: Track, t: Milliseconds): number => ((at(track, t) - whole.from) / (whole.to - whole.from)) * width;
  const pitch = height / rows.length;
  rows.forEach((track, row) => {
    const begin = x(track, track.start);
    const first = track.firstToken === null ? null : x(track, track.firstToken);
    const end = x(track, track.last ?? track.end ?? track.start);
    ctx.globalAlpha = 0.35;
    ctx.fillStyle = theme.wait;
    ctx.fillRect(begin, row * pitch, Math.max(0.5, (first ?? end) - begin), Math.max(0.5, pitch * 0.8));
    ctx.globalAlpha = 0.8;
    ctx.fillStyle = hasFailed(track) ? theme.failure : theme.answer;
    if (first !== null) ctx.fillRect(first, row * pitch, Math.max(0.5, end - first), Math.max(0.5, pitch * 0.8));
    if (hasFailed(track)) ctx.fillRect(Math.min(end, width - 3), row * pitch, 3, Math.max(1, pitch));
  });
  ctx.globalAlpha = 1;
  ctx.strokeStyle = theme.foreground;
  ctx.lineWidth = 1;
  ctx.strokeRect(0.5, scene.firstRow * pitch + 0.5, width - 1, Math.max(4, Math.min(scene.shownRows, rows.length) * pitch - 1));
}
