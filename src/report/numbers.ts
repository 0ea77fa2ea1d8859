/** Numbers as text: rounding and units. Everything shown goes through here; other files import it from `format.ts`. */
import type { Milliseconds } from './sample';
import type { Bounds } from './statistics';

/** Between groups of three digits: narrow and not breaking, so that a number stays one word. */
const thin = '\u202F';

/** A count, exact: `1 904`. */
export function count(n: number): string {
  return String(Math.round(n)).replace(/\B(?=(\d{3})+$)/g, thin);
}

/** A count with its noun: `1 token`, `1 904 tokens`. */
export function counted(n: number, noun: string): string {
  return `${count(n)} ${noun}${Math.round(n) === 1 ? '' : 's'}`;
}

/** A measured number: three significant digits, at most three decimals. `padded` keeps trailing zeros, for columns. */
export function digits(x: number, padded = false): string {
  const sign = x < 0 ? '−' : '';
  const size = Math.abs(x);
  if (!Number.isFinite(size)) return 'none';
  if (size < 0.0005) return '0';
  const rounded = Number(size.toPrecision(3));
  const decimals = Math.min(3, Math.max(0, 2 - Math.floor(Math.log10(rounded) + 1e-12)));
  const text = rounded.toFixed(decimals);
  const [whole, fraction] = text.split('.');
  const kept = padded ? fraction : fraction?.replace(/0+$/, '');
  return `${sign}${whole!.replace(/\B(?=(\d{3})+$)/g, thin)}${kept === undefined || kept === '' ? '' : `.${kept}`}`;
}

/** A duration: ms under 10 s, then s. With three digits as in a table (`11.0 ms`); a whole number, a limit say, stands for itself (`30 ms`). */
export function ms(x: Milliseconds): string {
  const measured = !Number.isInteger(x);
  return Math.abs(Number(x.toPrecision(3))) < 10_000 ? `${digits(x, measured)} ms` : `${digits(x / 1000, measured)} s`;
}

/** A duration or `none`. */
export function msOrNone(x: Milliseconds | null): string {
  return x === null ? 'none' : ms(x);
}

/** Tokens per second in words: `31 tokens/s`. */
export function pace(tokensPerSecond: number): string {
  return `${digits(tokensPerSecond)} tokens/s`;
}

/** An interval in the unit of its column: `198–221`. Without both bounds the words are `n too small`. */
export function interval([low, high]: Bounds): string {
  return low === null || high === null ? 'n too small' : `${digits(low, true)}–${digits(high, true)}`;
}

/** A share as counts, never as a percentage without its base: `20 of 20`. */
export function outOf(part: number, whole: number): string {
  return `${count(part)} of ${count(whole)}`;
}

/** Bytes: `512 B`, `12.3 kB`, `4.5 MB`. */
export function bytes(n: number): string {
  if (n < 1000) return `${count(n)} B`;
  return n < 1e6 ? `${digits(n / 1000)} kB` : `${digits(n / 1e6)} MB`;
}

/** A wait on purpose as a countdown: `waits 60 s, then repeats; 42 s left`. */
export function waitWords({ whole, left }: { readonly whole: Milliseconds; readonly left: Milliseconds }): string {
  return `waits ${count(whole / 1000)} s, then repeats; ${count(Math.ceil(left / 1000))} s left`;
}
