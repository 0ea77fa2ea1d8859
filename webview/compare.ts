import type { Report } from '../src/report/report';
import { el } from './element';

/** Two reports side by side. */
export class Compare {
  readonly element = el('section', {});

  /** Draws both. */
  draw(_a: Report, _b: Report): void { /* see below */ }
}
