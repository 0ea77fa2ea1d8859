import { el, show } from './element';

/** An entry of a menu. */
export interface MenuEntry {
  readonly label: string;
  readonly run: () => void;
}

/** A button that opens a list of actions: arrows move, Enter runs, Escape and a click elsewhere close. */
export function menuButton(label: string, entries: readonly MenuEntry[]): HTMLElement {
  const list = el('ul', { class: 'menu-list', role: 'menu', 'aria-label': label });
  const button = el('button', { type: 'button', class: 'button', 'aria-haspopup': 'menu', 'aria-expanded': 'false' }, `${label} ▾`);
  button.setAttribute('aria-label', label);
  const root = el('div', { class: 'menu' }, button, list);
  const toggle = (open: boolean): void => {
    show(list, open);
    button.setAttribute('aria-expanded', String(open));
  };
  const items = entries.map((entry) => el('button', { type: 'button', role: 'menuitem', tabindex: '-1', on: { click: () => { toggle(false); button.focus(); entry.run(); } } }, entry.label));
  list.append(...items.map((item) => el('li', { role: 'none' }, item)));
  toggle(false);
  button.addEventListener('click', () => {
    toggle(list.hidden !== false);
    if (list.hidden === false) items[0]?.focus();
  });
  root.addEventListener('keydown', (event) => {
    if (list.hidden !== false) return;
    const at = items.indexOf(document.activeElement as HTMLButtonElement);
    if (event.key === 'ArrowDown') items[(at + 1) % items.length]?.focus();
    else if (event.key === 'ArrowUp') items[(at - 1 + items.length) % items.length]?.focus();
    else if (event.key === 'Escape') {
      toggle(false);
      button.focus();
    } else return;
    event.preventDefault();
    event.stopPropagation();
  });
  root.addEventListener('focusout', (event) => { if (!root.contains(event.relatedTarget as Node | null)) toggle(false); });
  return root;
}
