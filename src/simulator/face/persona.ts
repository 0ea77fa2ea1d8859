/** A server as a whole: the APIs it speaks and the paths by which it can be recognised. */
import type { Load } from '../engine';
import type { Ledger } from '../ledger';
import type { SimulatorSettings } from '../settings';
import type { Face, Flavour, Problem, RawRequest, Reply } from './face';

/** What the paths beside generation may look at. */
export interface ServerView {
  readonly settings: SimulatorSettings;
  readonly ledger: Ledger;
  load(): Load;
  resetCache(): void;
  /** Resolves when a batch of inputs with so many tokens each has been encoded. */
  encode(lengths: readonly number[]): Promise<void>;
}

/** A path that does not generate. `answer` may throw `Refused`. */
export interface PlainRoute {
  readonly method: 'GET' | 'POST';
  readonly path: RegExp;
  answer(request: RawRequest, server: ServerView): Reply | Promise<Reply>;
  /** Answered without a key, as health checks are. */
  readonly open?: boolean;
}

/** One server software. The first face words refusals of unknown paths, unless `refuse` words all of them. */
export interface Persona {
  readonly id: string;
  readonly faces: readonly [Face, ...Face[]];
  readonly plain: readonly PlainRoute[];
  readonly flavour: Omit<Flavour, 'cachedTokens'>;
  /** Words every refusal, whatever the face. */
  readonly refuse?: (problem: Problem) => Reply;
  /** Keeps prefixes only at breakpoints, where its faces tell them. */
  readonly breakpoints?: boolean;
  /** Response headers of every answer. */
  readonly headers?: Readonly<Record<string, string>>;
}
