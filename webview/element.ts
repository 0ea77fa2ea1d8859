type Child = Node | string | null | undefined | false;
type Handler = (event: Event) => void;

/** What an element gets besides its children: `class`, `text`-like attributes as strings, `true` for a bare attribute, and listeners under `on`. */
export interface Attributes {
  readonly class?: string;
  readonly on?: Readonly<Record<string, Handler>>;
  readonly [attribute: string]: string | boolean | number | null | undefined | Readonly<Record<string, Handler>>;
}

/** Makes an element. Text only ever becomes a text node, so nothing a model wrote can become markup. */
export function el<K extends keyof HTMLElementTagNameMap>(tag: K, attributes: Attributes = {}, ...children: Child[]): HTMLElementTagNameMap[K] {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === 'on') for (const [event, handler] of Object.entries(value as Record<string, Handler>)) element.addEventListener(event, handler);
    else if (value === true) element.setAttribute(name, '');
    else if (typeof value === 'string' || typeof value === 'number') element.setAttribute(name, String(value));
  }
  element.append(...children.filter((child): child is Node | string => child !== null && child !== undefined && child !== false));
  return element;
}

/** Sets an element's text only when it changed, so a selection or a screen reader is not disturbed by each update. */
export function setText(element: Element, text: string): void {
  if (element.textContent !== text) element.textContent = text;
}

/** Shows or hides an element. */
export function show(element: HTMLElement, visible: boolean): void {
  element.hidden = !visible;
}

const iconPaths = {
  pass: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm3.1 3.2.7.7-4.6 4.7-2.5-2.5.7-.7 1.8 1.8 3.9-4Z',
  fail: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11Zm2.3 2.5.7.7L8.7 8l2.3 2.3-.7.7L8 8.7 5.7 11l-.7-.7L7.3 8 5 5.7l.7-.7L8 7.3 10.3 5Z',
  unclear: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM4.5 7.4h7v1.2h-7V7.4Z',
  running: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM7.5 4h1v3.8l2.6 1.5-.5.9-3.1-1.8V4Z',
  stopped: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM5.5 5.5h5v5h-5v-5Z',
  warning: 'M8 1.6 15 14H1L8 1.6Zm0 2L2.7 13h10.6L8 3.6ZM7.4 7h1.2v3.2H7.4V7Zm0 4h1.2v1.2H7.4V11Z',
  info: 'M8 1.5a6.5 6.5 0 1 1 0 13 6.5 6.5 0 0 1 0-13Zm0 1a5.5 5.5 0 1 0 0 11 5.5 5.5 0 0 0 0-11ZM7.4 7h1.2v4.2H7.4V7Zm0-2.2h1.2V6H7.4V4.8Z',
} as const;

/** Names of the panel's icons: outlines on a 16 × 16 grid, in the current text colour. */
export type IconName = keyof typeof iconPaths;

/** Makes an icon that is hidden from screen readers; the text beside it says the same. */
export function icon(name: IconName): SVGSVGElement {
  const svg = document.createElementNS('http://www.w3.org/2000/svg', 'svg');
  svg.setAttribute('viewBox', '0 0 16 16');
  svg.setAttribute('class', `icon icon-${name}`);
  svg.setAttribute('aria-hidden', 'true');
  const path = document.createElementNS('http://www.w3.org/2000/svg', 'path');
  path.setAttribute('d', iconPaths[name]);
  path.setAttribute('fill', 'currentColor');
  path.setAttribute('fill-rule', 'evenodd');
  svg.append(path);
  return svg;
}
