/** What is remembered about an endpoint between runs: request fields it refused, and what detection found. Holds no secret. */
import type { Detection } from './detect';
import { displayUrl } from './endpoint';

/** What is known of one place (origin and path). */
export interface Remembered {
  /** Optional request fields the endpoint answered 400 or 422 to. */
  readonly refused: readonly string[];
  readonly detection: Detection | null;
}

/** A memory by origin and path. */
export interface EndpointMemory {
  recall(url: string): Remembered;
  refuse(url: string, field: string): void;
  detected(url: string, detection: Detection): void;
  /** Everything, JSON-safe, for keeping between sessions. */
  readonly all: Readonly<Record<string, Remembered>>;
}

const nothing: Remembered = { refused: [], detection: null };

/** A memory, with what was kept before; `onChange` is called after every change, to keep it. */
export function createMemory(kept: Readonly<Record<string, Remembered>> = {}, onChange: (all: Readonly<Record<string, Remembered>>) => void = () => undefined): EndpointMemory {
  const places = new Map(Object.entries(kept));
  const change = (url: string, next: (before: Remembered) => Remembered): void => {
    const place = displayUrl(url);
    places.set(place, next(places.get(place) ?? nothing));
    onChange(Object.fromEntries(places));
  };
  return {
    recall: (url) => places.get(displayUrl(url)) ?? nothing,
    refuse: (url, field) => {
      change(url, (before) => ({ ...before, refused: [...new Set([...before.refused, field])] }));
    },
    detected: (url, detection) => {
      change(url, (before) => ({ ...before, detection }));
    },
    get all() {
      return Object.fromEntries(places);
    },
  };
}
