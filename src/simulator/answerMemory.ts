/** What a provider remembers of the requests it answered, to say what differs in a later one. */

/** A request as its prefix cache sees it. */
export interface Fingerprint {
  /** What makes the cache start anew: the name of a change and the value, in the order in which changes are told. */
  readonly settings: readonly (readonly [change: string, value: string])[];
  /** Role and text of the messages' blocks, in order. */
  readonly blocks: readonly string[];
  readonly prompt: Uint32Array;
}

/** The first thing that differs, and the tokens of the earlier prompt before and behind the first token that differs. */
export interface Change {
  readonly change: string;
  readonly reusable: number;
  readonly missed: number;
}

const most = 200;

/** The last 200 answers of a server, by id. */
export class AnswerMemory {
  readonly #known = new Map<string, Fingerprint>();

  remember(id: string, request: Fingerprint): void {
    this.#known.set(id, request);
    for (const first of this.#known.keys()) {
      if (this.#known.size <= most) break;
      this.#known.delete(first);
    }
  }

  find(id: string): Fingerprint | null {
    return this.#known.get(id) ?? null;
  }
}

/** How a request differs from an earlier one; null when it repeats or continues it. `input` names a change of the messages. */
export function changeSince(before: Fingerprint, after: Fingerprint, input: string): Change | null {
  const setting = after.settings.find(([, value], i) => before.settings[i]?.[1] !== value)?.[0];
  const continued = before.blocks.every((block, i) => after.blocks[i] === block);
  const change = setting ?? (continued ? null : input);
  if (change === null) return null;
  let same = 0;
  while (same < before.prompt.length && before.prompt[same] === after.prompt[same]) same++;
  const reusable = setting !== undefined && setting.startsWith('model') ? 0 : same;
  return { change, reusable, missed: before.prompt.length - reusable };
}
