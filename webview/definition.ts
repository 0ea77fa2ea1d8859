import { el, show } from './element';

/** A definition that opens on hover and focus, next to its term; one box serves all terms. */
export class DefinitionBox {
  readonly element = el('div', { class: 'definition', role: 'tooltip', id: 'definition' }, el('p'), el('p', { class: 'muted' }));

  constructor() {
    show(this.element, false);
    document.addEventListener('keydown', (event) => { if (event.key === 'Escape') show(this.element, false); });
    window.addEventListener('scroll', () => show(this.element, false), { passive: true });
  }

  /** A term that shows `definition`, and what others call it, while it is pointed at or has the focus. */
  term(text: string, definition: string, elsewhere: string): HTMLElement {
    const term = el('span', { class: 'term', tabindex: '0', 'aria-describedby': 'definition' }, text);
    const open = (): void => this.#open(term, definition, elsewhere);
    const close = (): void => show(this.element, false);
    for (const event of ['pointerenter', 'focus']) term.addEventListener(event, open);
    for (const event of ['pointerleave', 'blur']) term.addEventListener(event, close);
    return term;
  }

  #open(term: HTMLElement, definition: string, elsewhere: string): void {
    const [first, second] = this.element.children;
    if (first) first.textContent = definition;
    if (second) second.textContent = elsewhere;
    show(this.element, true);
    const box = term.getBoundingClientRect();
    const own = this.element.getBoundingClientRect();
    const below = box.bottom + 4 + own.height < window.innerHeight;
    this.element.style.top = `${below ? box.bottom + 4 : Math.max(4, box.top - own.height - 4)}px`;
    this.element.style.left = `${Math.max(8, Math.min(box.left, window.innerWidth - own.width - 8))}px`;
  }
}
